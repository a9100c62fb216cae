"""Logs that are not as one wishes: types that differ, numbers out of range, odd names, files that are half there."""

import json
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from serai.core.errors import BadInput
from serai.pipeline.columns import moments_of, typed_column
from serai.pipeline.readers import How, event_ids, read_log
from serai.pipeline.run import Progress
from tests.pipeline.field import event, make_field, put, rows_of
from tests.pipeline.test_pipeline import once

NOTHING = pa.schema([])


def rows_in(path: Path, form: str, **how) -> tuple[list[dict], list]:
    found = list(read_log(path, form, NOTHING, How(**how)))
    rows = pa.concat_tables([each.rows for each in found], promote_options="default")
    ids = event_ids(rows).to_pylist()
    attributes = rows.drop_columns(["node", "epoch", "seq", "event", "time", "carrier"]).to_pylist()
    told = [{"id": id} | row for id, row in zip(ids, attributes, strict=True)]
    return told, [rejected for each in found for rejected in each.rejected]


def test_json_keeps_its_types_and_csv_has_those_of_all_its_values(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [
        {"node": "n", "seq": 1, "t": 1, "ok": True, "big": 2**60, "mixed": 1, "name": "7", "more": {"a": [1]}},
        {"node": "n", "seq": 2, "t": 2.5, "ok": None, "big": 1, "mixed": "x", "name": "007", "more": None},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert rows_in(path, "json")[0] == [
        {"id": "n//1", "t": 1.0, "ok": True, "big": f"{2**60}", "mixed": "1", "name": "7", "more": '{"a": [1]}'},
        {"id": "n//2", "t": 2.5, "ok": None, "big": "1", "mixed": "x", "name": "007", "more": None},
    ]  # fmt: skip
    path.write_text("node,seq,t,code,ok,none\nn,1,-1.5e3,007,true,\nn,2,3,8,false,\nn,3.0,,9,,\n")
    assert rows_in(path, "csv")[0] == [
        {"id": "n//1", "t": -1500.0, "code": "007", "ok": True},
        {"id": "n//2", "t": 3.0, "code": "8", "ok": False},
        {"id": "n//3", "t": None, "code": "9", "ok": None},
    ]  # a column without a value has no type yet, and is left out


def test_a_value_that_subscriptions_use_otherwise_is_rejected_and_its_row_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("node,seq,temp,when\nn,1,warm,soon\nn,2,3,2026-11-01\n")
    kinds = {"temperature": "real", "when": "time"}
    rows, rejected = rows_in(path, "csv", kinds=kinds, rename={"temp": "temperature"})
    assert [(row["id"], row["temperature"], row["when"]) for row in rows] == [
        ("n//1", None, None),
        ("n//2", 3.0, datetime(2026, 11, 1, tzinfo=UTC)),
    ]
    assert [(each.id, each.reason) for each in rejected] == [
        ("n//1", 'temp: "warm" is not a number'),
        ("n//1", 'when: "soon" is not a time'),
    ]


@pytest.mark.parametrize(
    ("values", "only_texts", "expected"),
    [
        (["1", "2.", ".5", "1e3"], True, pa.float64()),
        (["1", "."], True, pa.string()),
        (["1", ""], True, pa.string()),
        (["0x1"], True, pa.string()),
        (["1_000"], True, pa.string()),
        (["٣"], True, pa.string()),
        (["true", "false"], True, pa.bool_()),
        (["true", "1"], True, pa.string()),
        (["1"], False, pa.string()),
        ([1, 2.5, None], False, pa.float64()),
        ([True, 1], False, pa.string()),
        ([float("nan")], False, pa.float64()),
        ([None], False, pa.string()),
    ],
)
def test_kinds_of_columns_without_types(values: list, only_texts: bool, expected: pa.DataType) -> None:
    assert typed_column(values, None, only_texts)[0].type == expected


def test_two_files_of_a_batch_do_not_agree_on_a_new_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first file decides, also if the two are read by different tasks; the others' values are rejected."""
    answers = []
    for files_of_task in (1, 1000):
        monkeypatch.setattr("serai.pipeline.batch._FILES_OF_TASK", files_of_task)
        field = make_field(tmp_path / str(files_of_task))
        inbox = tmp_path / str(files_of_task) / "inbox"
        put(inbox, "1.parquet", [event(1, 1, wind=2.5)])
        put(inbox, "2.parquet", [event(1, 2, wind="strong", rain="much")])
        put(inbox, "3.parquet", [event(1, 3, wind="7", rain=3)])
        put(inbox, "4.parquet", [event(1, 4, wind=True)])
        status = once(field)
        home = tmp_path / str(files_of_task) / "home"
        answers.append(
            [rows_of(home, "events", "event", "wind", "rain"), rows_of(home, "rejects", "id", "reason", "file")]
        )
        assert (status.quarantined, status.events) == ((), 4)
    assert answers[0] == answers[1]
    assert answers[0][0] == [
        ("n1/1/1", 2.5, None), ("n1/1/2", None, "much"), ("n1/1/3", 7.0, "3"), ("n1/1/4", 1.0, None)
    ]  # fmt: skip
    assert ("n1/1/2", 'wind: "strong" is no double', "2.parquet") in answers[0][1]


def test_a_column_is_of_the_type_of_its_first_value(tmp_path: Path) -> None:
    field = make_field(tmp_path)
    for number, wind in enumerate([None, 2.5]):
        put(tmp_path / "inbox", f"{number}.csv", [event(1, number, wind=wind)])
        once(field)
    assert rows_of(tmp_path / "home", "events", "event", "wind") == [("n1/1/0", None), ("n1/1/1", 2.5)]


def test_bogus_numbers_and_times_do_no_harm(tmp_path: Path) -> None:
    field = make_field(tmp_path)
    times = ["1970-01-01T00:00:00Z", "2100-06-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01", "later", -1e300]
    rows = [event(1, seq) | {"seen": seen} for seq, seen in enumerate(times)]
    put(
        tmp_path / "inbox", "a.jsonl", [*rows, *(event(1, 1) | {"seq": seq} for seq in (2**62, 2**70, -4)), event(2, 1)]
    )
    beyond = pa.array([2**62, -(2**62), 0], pa.timestamp("us"))
    pq.write_table(
        pa.table({"node": ["n3"] * 3, "epoch": ["1"] * 3, "seq": [1, 2, 3], "seen": beyond}),
        tmp_path / "inbox" / "b.parquet",
    )
    status = once(field)
    assert (status.events, status.rejected, status.quarantined) == (11, 2, ())
    nodes = {node.node: node for node in status.nodes}
    assert nodes["n1"].gaps == (f"1:6-{2**62 - 1}",)
    times_of = dict(rows_of(tmp_path / "home", "events", "event", "time"))
    assert times_of["n1/1/1"] == datetime(2100, 6, 1, tzinfo=UTC)
    assert [times_of[f"n1/1/{seq}"] for seq in (4, 5)] == [None, None]
    assert [times_of[f"n3/1/{seq}"] for seq in (1, 2, 3)] == [None, None, datetime(1970, 1, 1, tzinfo=UTC)]
    days = {path.name for path in (tmp_path / "home" / "tables" / "events").glob("day=*")}
    assert {"day=1970-01-01", "day=2100-06-01", "day=0001-01-01", "day=__HIVE_DEFAULT_PARTITION__"} <= days


def test_times_of_files_from_1970_to_2100_and_old_names_again(tmp_path: Path) -> None:
    field = make_field(tmp_path)
    inbox = tmp_path / "inbox"
    for seq, year in enumerate([2100, 1970, 2026, 1971, 2038]):
        put(inbox, f"{year}.csv", [event(1, seq)])
        moment = datetime(year, 1, 2, tzinfo=UTC).timestamp()
        os.utime(inbox / f"{year}.csv", (moment, moment))
        assert once(field).events == seq + 1
    put(inbox, "1970.csv", [event(1, 1), event(1, 7)])  # grown, and put back with its old time
    os.utime(inbox / "1970.csv", (86_400, 86_400))
    assert once(field).events == 6
    assert once(field).batches == 6


def test_names_in_any_bytes_and_files_that_nobody_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    field = make_field(tmp_path)
    inbox = tmp_path / "inbox"
    put(inbox, "good.csv", [event(1, 1)])
    (inbox / "good.csv").rename(inbox / os.fsdecode(b"\xff\xe9 \n.csv"))
    put(inbox, "kept.csv", [event(1, 2)])
    (inbox / "gone.csv").symlink_to(inbox / "nowhere.csv")
    os.mkfifo(inbox / "pipe.csv")
    opened = Path.open

    def refuse(self: Path, *rest, **more):
        if self.name == "kept.csv":
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *rest, **more)

    told: list[str] = []

    class Says(Progress):
        def on_trouble(self, words: str) -> None:
            told.append(words)

    with monkeypatch.context() as closed:
        closed.setattr(Path, "open", refuse)
        assert once(field, progress=Says()).events == 1
    assert told == [f"{inbox}/kept.csv: cannot be read (Permission denied); left out until it can"]
    assert once(field).events == 2
    assert ("\\xff\\xe9 \n.csv",) in rows_of(tmp_path / "home", "journal", "name")


def test_a_long_file_is_read_in_parts_and_forgotten_whole_if_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("readers._ROWS", 10), ("work._PIECE_ROWS", 15)):
        monkeypatch.setattr(f"serai.pipeline.{name}", value)
    monkeypatch.setattr("serai.pipeline.batch._BYTES_OF_TASK", 10_000)
    field = make_field(tmp_path)
    inbox = tmp_path / "inbox"
    many = [event(1, seq, text="x" * 100) for seq in range(100)]
    for name in ("1.csv", "2.jsonl", "3.parquet", "4.sqlite"):
        put(inbox, name, many[20 * int(name[0]) :])
    put(inbox, "5.csv", [event(2, 1)])
    put(inbox, "6.csv", many)
    with (inbox / "6.csv").open("ab") as file:
        file.write(b'n1,1,100,2026-11-01,"never closed')
    status = once(field)
    assert [each["name"] for each in status.quarantined] == ["6.csv"]
    assert [event for (event,) in rows_of(tmp_path / "home", "events", "event")] == sorted(
        [f"n1/1/{seq}" for seq in range(20, 100)] + ["n2/1/1"]
    )
    journal = dict(rows_of(tmp_path / "home", "journal", "name", "rows"))
    assert journal == {"1.csv": 80, "2.jsonl": 60, "3.parquet": 40, "4.sqlite": 20, "5.csv": 1, "6.csv": 0}
    assert status.repeated == 120


def test_a_disk_that_fails_is_no_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong with the disk stops the batch; were it the file's fault, good files would be set aside."""
    field = make_field(tmp_path)
    put(tmp_path / "inbox", "a.parquet", [event(1, 1)])

    def fail(*_, **__):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr(pq, "ParquetFile", fail)
        with pytest.raises(OSError, match="Input/output"):
            once(field)
    assert once(field).quarantined == ()


def test_sqlite_values_of_several_types_and_odd_names(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as database:
        database.execute('create table "odd ""name" (node, seq, "air temp", note, blob)')
        rows = [("n", 1, 3, 1, b"\xff"), ("n", 2, 2.5, "two", None)]
        database.executemany('insert into "odd ""name" values (?, ?, ?, ?, ?)', rows)
    database.close()
    assert rows_in(path, "sqlite")[0] == [
        {"id": "n//1", "air temp": 3.0, "note": "1", "blob": "\\xff"},
        {"id": "n//2", "air temp": 2.5, "note": "two", "blob": None},
    ]


def test_files_that_are_none_are_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for form, content, words in (
        ("csv", b"", "no rows"),
        ("csv", b"node,seq\n", "no rows"),
        ("csv", b"a,b\n1,2\n", "no column node; its columns are: a, b"),
        ("csv", b"node\xff,seq\n1,2\n", "not a file of texts"),
        ("parquet", b"PAR1xxxxPAR1", "not a Parquet file"),
        ("sqlite", b"SQLite format 3\0" + b"x" * 500, "cannot be read"),
        (None, b"\n", "an empty file"),
        (None, b"GIF89a", "of no format that is known"),
    ):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=words):
            list(read_log(path, form, NOTHING, How()))


def test_moments() -> None:
    texts = pa.chunked_array([["2026-11-01T12:00:00Z", "2026-11-01 12:00", "1.5", "x", None, "20261101"]])
    noon = datetime(2026, 11, 1, 12, tzinfo=UTC)
    expected = [noon, noon, datetime.fromtimestamp(1.5, UTC), None, None, datetime.fromtimestamp(20261101, UTC)]
    assert moments_of(texts).to_pylist() == expected
