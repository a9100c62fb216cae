"""A box over coded values asks for what the condition asks of the values themselves."""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.conditions import read_conditions, wanted
from serai.core.content import matches
from serai.core.errors import BadInput
from serai.recorded.readings import Readings, read_readings
from serai.recorded.sections import RecordedEvents
from serai.recorded.wishes import read_wishes

KINDS = {"level": "real", "count": "integer", "site": "text", "seen": "time", "alarm": "boolean"}
TEXTS = ["", "a", "ab", "abc", "b", "Nord", "nord", "ß", "Ω", "\U0001f600"]
BEGIN = datetime(2026, 5, 4, tzinfo=UTC)

rows = st.fixed_dictionaries(
    {
        "level": st.none() | st.sampled_from([-1.5, 0.0, 0.1, 3.0, 1e300]),
        "count": st.none() | st.sampled_from([-(2**53), -1, 0, 3, 2**53]),
        "site": st.none() | st.sampled_from(TEXTS[1:]),
        "seen": st.none()
        | st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)).map(lambda t: t.replace(tzinfo=UTC)),
        "alarm": st.none() | st.booleans(),
    }
)
conditions = st.one_of(
    st.builds(
        "level {} {}".format, st.sampled_from(["<", "<=", "=", ">", ">=", "!="]), st.sampled_from(["0", "0.1", "3"])
    ),
    st.builds(
        "count {} {}".format,
        st.sampled_from(["<", "<=", "=", ">", ">=", "!="]),
        st.sampled_from(["0", "2.5", "3", "9007199254740992", "9007199254740993", "-1e30", "1e30"]),
    ),
    st.builds("site {} '{}'".format, st.sampled_from(["=", "!=", "starts with"]), st.sampled_from(TEXTS)),
    st.builds("not site starts with '{}'".format, st.sampled_from(TEXTS)),
    st.builds(
        "seen {} {}".format, st.sampled_from(["<", "<=", ">", ">="]), st.sampled_from(["2026-05-04", "1970-01-01"])
    ),
    st.sampled_from(["alarm = true", "alarm != true"]),
)
texts = st.recursive(
    conditions, lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner), max_leaves=4
)


def readings_of(path: Path, named: set[str] | None = None, **thinning: Any) -> Readings:
    asked = RecordedEvents.model_validate({"file": str(path), **thinning})
    return read_readings(asked, ["s0", "s1", "s2"], BEGIN.timestamp(), 3600.0, named or set())


@given(st.lists(rows, min_size=1, max_size=12), texts)
def test_boxes_ask_what_conditions_ask(tmp_path_factory: Any, drawn: list[dict[str, Any]], text: str) -> None:
    path = tmp_path_factory.mktemp("drawn") / "readings.parquet"
    schema = pa.schema(
        [
            *(("level", pa.float64()), ("count", pa.int64()), ("site", pa.string())),
            *(
                ("seen", pa.timestamp("us", "UTC")),
                ("alarm", pa.bool_()),
                ("sensor", pa.string()),
                ("time", pa.int32()),
            ),
        ]
    )
    pq.write_table(
        pa.Table.from_pylist([row | {"sensor": "s1", "time": n} for n, row in enumerate(drawn)], schema), path
    )
    found = readings_of(path)
    boxes = [(np.array(low), np.array(high)) for low, high in found.content.boxes(text)]
    asked = read_conditions(text, KINDS)  # type: ignore[arg-type]
    for row, values in zip(drawn, found.values, strict=True):
        assert any(matches(values, low, high) for low, high in boxes) == wanted(asked, row), (text, row)


CSV = """\
time,sensor,level,site,alarm,event
2026-05-04T00:00:30,s2,1.5,north,true,7
2026-05-04T02:00:10+02:00,s0,,south,false,8
2026-05-03T23:59:59,s0,9,south,false,9
2026-05-04T00:00:30,s1,2,,,10
2026-05-04T01:00:00,s1,2,north,true,11
"""


def test_csv_and_parquet_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(CSV)
    rows = [line.split(",") for line in CSV.splitlines()[1:]]
    times = [datetime.fromisoformat(row[0]) for row in rows]
    table = {
        "time": [(time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC) for time in times],
        "sensor": [row[1] for row in rows],
        "level": [float(row[2]) if row[2] else None for row in rows],
        "site": [row[3] or None for row in rows],
        "alarm": [{"true": True, "false": False}.get(row[4]) for row in rows],
        "event": [int(row[5]) for row in rows],
    }
    pq.write_table(pa.table(table), tmp_path / "r.parquet")
    one, other = readings_of(tmp_path / "r.csv"), readings_of(tmp_path / "r.parquet")
    assert one.time_s.tolist() == other.time_s.tolist() == [10.0, 30.0, 30.0]
    assert one.sensor.tolist() == other.sensor.tolist() == [0, 1, 2]
    assert np.array_equal(one.values, other.values, equal_nan=True)
    assert one.content == other.content
    assert one.content.names == ("level", "site", "alarm")
    assert one.content.texts == {"site": ["north", "south"]}
    assert one.lines == ("line 3", "line 5", "line 2")
    assert other.lines == ("row 2", "row 4", "row 1")


def test_time_and_sensor_may_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(CSV)
    found = readings_of(tmp_path / "r.csv", {"sensor", "time"})
    (box,) = found.content.boxes("sensor = 's1' and time >= 2026-05-04T00:00:30")
    assert [bool(matches(values, *map(np.array, box))) for values in found.values] == [False, True, False]


def test_without_a_begin_dates_count_from_the_first(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(CSV)
    asked = RecordedEvents.model_validate({"file": str(tmp_path / "r.csv")})
    found = read_readings(asked, ["s0", "s1", "s2"], None, 3600.0, set())
    assert found.time_s.tolist() == [0.0, 11.0, 31.0, 31.0]


def refusal(path: Path, text: str, **thinning: Any) -> str:
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        readings_of(path, **thinning)
    return str(caught.value).replace(f"{path}: ", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("time,sensor,a\n", "no rows below the header"),
        ("sensor,a\ns0,1\n", "missing column time (or timestamp, at); it has: sensor, a"),
        ("time,a\n0,1\n", "missing column sensor (or node, source); it has: time, a"),
        ("time,sensor\n0,s0\n", "no column with an attribute; it has: time, sensor"),
        ("time,sensor,a,a\n0,s0,1,1\n", "column a stands twice in the header, or has no name"),
        ("time,sensor,a\n0,s7,1\n", 'line 2: no sensor is called "s7"; one of: s0, s1, s2'),
        ("time,sensor,a\n0,s0,1\n1,s0,x\n2,s0,3", 'line 3: a: "x" is not a number, as most values of the column are'),
        ("time,sensor,a\n0,s0,1\n,s0,2\n", "line 3: no time"),
        ("time,sensor,a\nnow,s0,1\n", "line 2: time holds neither seconds nor dates (2026-05-01T06:00)"),
        (
            "time,sensor,a\n7200,s0,1\n",
            "no reading in the time of the run, 0 to 3600 s; they are from 7200 to 7200 s; times are seconds since its"
            " begin",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path / "r.csv", text) == said


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = "time,sensor,a\n0,s0,1\n1,s9,2\n2,s1,inf\n3,,4\n4,s1\n"
    lines = [line.split(":")[0] for line in refusal(tmp_path / "r.csv", text).splitlines()]
    assert lines == ["line 3", "line 4", "line 5", "line 6"]


def test_parquet_is_refused_by_row(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({"time": [0, 1], "sensor": [0, 1], "a": [1.0, math.nan], "b": [[1], [2]]}), path)
    with pytest.raises(BadInput) as caught:
        readings_of(path)
    assert "column b holds list" in str(caught.value)
    assert "row 2: a: nan is no finite number" in str(caught.value)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(BadInput, match="cannot be read as Parquet"):
        readings_of(path)


def test_changes_of_unknown_attributes_are_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path / "r.csv", CSV, on_change={"lvel": 1.0})
    assert said.endswith('has no attribute lvel; did you mean "level"?')
    assert "write site = 0" in refusal(tmp_path / "r.csv", CSV, on_change={"site": 1.0})


def test_subscriptions_are_refused_all_at_once(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(CSV)
    (tmp_path / "q.csv").write_text(
        "subscriber,where,from,until\nfox,level < 2,,\nall,lvel < 2,,\nall,site < 3,,\nall,,,\nall,level < 2,9,9\n"
        "all,level < 2,soon,\nall,level < 2,3,\nall,level < 2,4,\n"
    )
    with pytest.raises(BadInput) as caught:
        read_wishes(tmp_path / "q.csv", {"all": [0, 1]}, readings_of(tmp_path / "r.csv").content, None)
    told = [line.split(": ", 1)[1] for line in str(caught.value).splitlines()]
    assert [line.split(":")[0] for line in told] == [f"line {number}" for number in (2, 3, 4, 5, 6, 7)]
