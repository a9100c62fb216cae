"""`serai match`: tables in files of every format, every row accounted for, nothing half-written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

Run = Callable[..., Any]
EVENTS = [
    {"event": 1, "temperature": 1.5, "site": "north", "seen": "2026-11-01T12:00:00+01:00"},
    {"event": 2, "temperature": 4.0, "site": 'the "south"', "seen": "2026-11-02"},
    {"event": 3, "temperature": 9.0, "site": "north, west", "seen": None},
]
SUBSCRIPTIONS = [
    {"subscription": 10, "where": "temperature < 5 and site = 'north'"},
    {"subscription": 11, "where": "seen >= 2026-11-01T11:00:00Z"},
    {"subscription": 12, "where": "site starts with 'north'"},
    {"subscription": 13, "where": "site = 'the \"south\"'"},
    {"subscription": 14, "where": "temprature < 5"},
]
EXPECTED = [(1, 10), (1, 11), (1, 12), (2, 11), (2, 13), (3, 12)]


def write(rows: list[dict[str, Any]], path: Path) -> str:
    table = pa.Table.from_pylist(rows)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        if "seen" in table.column_names:
            seen = pa.array(["2026-11-01 11:00:00", "2026-11-02 00:00:00", None]).cast(pa.timestamp("us"))
            table = table.set_column(3, "seen", seen.cast(pa.timestamp("us", "UTC")))
        pq.write_table(table, path)
    return str(path)


def read(path: Path) -> list[tuple[int, int]]:
    if path.suffix == ".csv":
        table = pyarrow.csv.read_csv(path)
    elif path.suffix == ".jsonl":
        table = pa.Table.from_pylist([json.loads(line) for line in path.read_text().splitlines()])
    else:
        table = pq.read_table(path)
    return sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_every_format(serai: Run, spark: Any, tmp_path: Path, suffix: str) -> None:
    events = write(EVENTS, tmp_path / f"events.{suffix}")
    subscriptions = write(SUBSCRIPTIONS, tmp_path / f"subscriptions.{suffix}")
    answer = serai("match", "--events", events, "--subscriptions", subscriptions, "--out", f"pairs.{suffix}", "--json")
    assert answer.code == 0, answer.err
    said = json.loads(answer.out)
    assert read(tmp_path / f"pairs.{suffix}") == EXPECTED
    assert (said["events"], said["matched_events"], said["unmatched_events"], said["rejected_events"]) == (3, 3, 0, 0)
    assert (said["subscriptions"], said["rejected_subscriptions"], said["rows"]) == (5, 1, 6)
    rejected = json.loads((tmp_path / said["rejects"]).read_text())
    assert rejected["id"] == "14"
    assert 'did you mean "temperature"?' in rejected["reason"]
    assert not list(tmp_path.glob(".serai-*"))


def test_rows_that_cannot_be_used_are_kept_with_their_reasons(serai: Run, spark: Any, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("event,t\n1,5\n2,warm\n,3\n4\n5,\n6,7\n")
    (tmp_path / "s.csv").write_text("subscription,where\n1,t < 6\n")
    answer = serai(
        "match", "--events", "e.csv", "--subscriptions", "s.csv", "--out", "o", "--engine", "keys", "--explain"
    )
    assert answer.code == 0, answer.err
    assert read(tmp_path / "o") == [(1, 1)]
    assert "matched 1, unmatched 2, rejected 3" in answer.out
    assert "engine keys: asked for" in answer.out
    rejected = [json.loads(line) for line in (tmp_path / "o.rejects.jsonl").read_text().splitlines()]
    assert sorted((row.get("id", ""), row["reason"], row["row"]) for row in rejected) == [
        ("", "no id in the column event", '{"t":"3"}'),
        ("2", 't: "warm" is not a number', '{"event":2,"t":"warm"}'),
        ("4", "this line is no row of the table", "4"),
    ]


BAD = {
    "nothing there": (["--events", "no.csv"], ["no.csv", "no such file"]),
    "no format": (["--events", "what"], ["what", ".parquet", ".csv", ".jsonl"]),
    "no Parquet": (["--events", "fake.parquet"], ["fake.parquet"]),
    "no id": (["--events", "s.csv"], ["s.csv", "event"]),
    "taken": (["--out", "e.csv"], ["e.csv", "exists already"]),
    "strict": (["--strict"], ["cannot be used", "warm"]),
    "mode": (["--mode", "pair"], ['"pairs"']),
}


@pytest.mark.parametrize(("more", "words"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_and_nothing_is_written(
    serai: Run, spark: Any, tmp_path: Path, more: list[str], words: list[str]
) -> None:
    (tmp_path / "e.csv").write_text("event,t\n1,5\n2,warm\n")
    (tmp_path / "s.csv").write_text("subscription,where\n1,t < 6\n")
    (tmp_path / "what").write_text("?")
    (tmp_path / "fake.parquet").write_text("?")
    before = sorted(path.name for path in tmp_path.iterdir())
    answer = serai(*["match", "--events", "e.csv", "--subscriptions", "s.csv", "--out", "o.csv"], *more)
    assert answer.code == 2, answer.err
    assert answer.out == ""
    assert all(word in answer.err for word in words), answer.err
    assert "Traceback" not in answer.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_partitioned_in_and_out(serai: Run, spark: Any, tmp_path: Path) -> None:
    for day, event, serial in ((1, 1, 2**63 + 1), (2, 2, 2**63 + 2)):
        folder = tmp_path / "events" / f"day={day}"
        folder.mkdir(parents=True)
        rows = {
            "event": [event],
            "serial": pa.array([serial], pa.uint64()),
            "alarm": [event == 2],
            "温度": [1.0 * event],
        }
        pq.write_table(pa.table(rows), folder / "x.parquet")
    texts = [f"serial = {2**63 + 1}", "day = 2 and alarm = true", "温度 > 0 or day in (1, 2)"]
    write([{"subscription": number, "where": text} for number, text in enumerate(texts)], tmp_path / "s.parquet")
    words = ("match", "--events", "events", "--subscriptions", "s.parquet", "--out")
    answer = serai(*words, "pairs", "--partition-by", "day")
    assert answer.code == 0, answer.err
    table = pq.read_table(tmp_path / "pairs")
    assert sorted(zip(*(table[name].to_pylist() for name in ("event", "subscription", "day")), strict=True)) == [
        (1, 0, 1),
        (1, 2, 1),
        (2, 1, 2),
        (2, 2, 2),
    ]
    assert sorted(path.name for path in (tmp_path / "pairs").iterdir()) == ["day=1", "day=2"]
    refused = serai(*words, "more", "--partition-by", "dya")
    assert (refused.code, "did you mean" in refused.err) == (2, True)
