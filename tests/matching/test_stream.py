"""Matching that goes on: repeats, late events, changing subscriptions, and a process that is killed."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import serai
from serai.core.errors import BadInput, CannotRun
from serai.matching import job
from serai.matching.landing import Landing
from serai.matching.match import match
from serai.matching.seen import SeenIds
from serai.matching.stream import BatchReport, finish, match_stream
from serai.spark.places import alone_in
from serai.spark.stores import Folder

STREAMER = """
import os, signal, sys
from serai.matching import stream
from serai.spark.session import spark_session

events, subscriptions, out, where, batch = sys.argv[1:]
write_pairs = stream.write_pairs

def die():
    os.killpg(0, signal.SIGKILL)  # with the JVM and the workers

def write_and_die(spark, matcher, files, answer, **options):
    tally = write_pairs(spark, matcher, files, answer, **options)
    if where == "inside" and answer.parent.name == f".batch-{int(batch):08}":
        die()
    return tally

def on_batch(report):
    if where == "between" and report.batch == int(batch):
        die()

stream.write_pairs = write_and_die
spark = spark_session("local[2]")
query = stream.match_stream(spark, events, subscriptions, out, time="time_s", lateness_s=50.0, poll_s=0.1,
                            files_per_batch=1, on_batch=on_batch)
stream.finish(query)
"""


def arrive(folder: Path, name: str, rows: list[tuple[Any, float, float]]) -> None:
    """Put a file of (event, time, temperature) into the folder, whole."""
    event, when, value = zip(*rows, strict=True)
    folder.mkdir(exist_ok=True)
    aside = folder / f".{name}"
    table = pa.table({"event": pa.array(event, pa.int64()), "time_s": when, "temperature": value})
    pq.write_table(table, aside, row_group_size=7)
    aside.rename(folder / f"{name}.parquet")


def ask(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the table of subscriptions anew."""
    schema = pa.schema(
        [("subscription", pa.int64()), ("where", pa.string()), ("from", pa.float64()), ("until", pa.float64())]
    )
    aside = path.with_name(f".{path.name}")
    pq.write_table(pa.Table.from_pylist(rows, schema), aside)
    aside.rename(path)


def streamed(spark: SparkSession, tmp_path: Path, **options: Any) -> list[BatchReport]:
    """What the batches were, when all that is there is matched."""
    reports: list[BatchReport] = []
    query = match_stream(
        spark,
        tmp_path / "in",
        tmp_path / "asked.parquet",
        tmp_path / "out",
        once=True,
        on_batch=reports.append,
        **options,
    )
    finish(query)
    return reports


def pairs_in(out: Path) -> list[tuple[int, int]]:
    table = pq.read_table(out / "pairs")
    return sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


def test_repeats_are_matched_once_and_late_events_are_rejected(spark: SparkSession, tmp_path: Path) -> None:
    ask(tmp_path / "asked.parquet", [{"subscription": 1, "where": "temperature < 5"}])
    arrive(tmp_path / "in", "1", [(1, 100, 1.0), (2, 101, 9.0), (1, 100, 1.0)])
    options = {"time": "time_s", "lateness_s": 30.0}
    (first,) = streamed(spark, tmp_path, **options)
    assert (first.events, first.matched, first.unmatched, first.repeated, first.late, first.rejected) == (
        3,
        1,
        1,
        1,
        0,
        0,
    )
    arrive(tmp_path / "in", "2", [(3, 75, 1.0), (4, 70, 1.0), (2, 101, 9.0), (None, 102, 1.0), (5, 130, 2.0)])
    (second,) = streamed(spark, tmp_path, **options)
    assert (second.events, second.matched, second.unmatched, second.repeated, second.late, second.rejected) == (
        5,
        2,
        0,
        1,
        1,
        1,
    )
    assert pairs_in(tmp_path / "out") == [(1, 1), (3, 1), (5, 1)]
    rejects = [json.loads(line) for line in (tmp_path / "out/rejects/batch=00000001.jsonl").read_text().splitlines()]
    assert [(row["id"], row["reason"]) for row in rejects] == [
        (None, "no id in the column event"),
        ("4", "more than 30.0 s behind the events of earlier batches"),
    ]
    assert streamed(spark, tmp_path, **options) == []


def test_subscriptions_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    anything = "temperature > 0"
    ask(
        tmp_path / "asked.parquet",
        [{"subscription": 1, "where": anything}, {"subscription": 2, "where": anything, "until": 11.0}],
    )
    arrive(tmp_path / "in", "1", [(1, 10, 1.0), (2, 11, 1.0)])
    streamed(spark, tmp_path, time="time_s")
    ask(
        tmp_path / "asked.parquet",
        [{"subscription": 3, "where": anything, "from": 13.0}, {"subscription": 4, "where": "hum < 1"}],
    )
    arrive(tmp_path / "in", "2", [(3, 12, 1.0), (4, 13, 1.0)])
    (second,) = streamed(spark, tmp_path, time="time_s")
    assert pairs_in(tmp_path / "out") == [(1, 1), (1, 2), (2, 1), (4, 3)]
    assert (second.subscriptions, second.rejected_subscriptions) == (2, 1)
    assert "hum" in (tmp_path / "out/rejects/subscriptions.jsonl").read_text()


def test_text_files_arrive_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "asked.csv").write_text("subscription,where\n1,temperature < 5\n")
    (tmp_path / "in" / "1.csv").write_text("event,temperature\na,1\nb,warm\na,1\nc,7\n")
    reports: list[BatchReport] = []
    finish(
        match_stream(
            spark, tmp_path / "in", tmp_path / "asked.csv", tmp_path / "out", once=True, on_batch=reports.append
        )
    )
    assert pairs_in(tmp_path / "out") == [("a", 1)]
    assert (reports[0].events, reports[0].matched, reports[0].unmatched, reports[0].repeated, reports[0].rejected) == (
        4,
        1,
        1,
        1,
        1,
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"time": "tme_s"}, 'no column "tme_s"; did you mean "time_s"?'),
        ({"lateness_s": 3.0}, "can only be said with the column"),
    ],
)
def test_bad_options_are_refused(spark: SparkSession, tmp_path: Path, options: dict[str, Any], words: str) -> None:
    ask(tmp_path / "asked.parquet", [])
    arrive(tmp_path / "in", "1", [(1, 10, 1.0)])
    with pytest.raises(BadInput, match=words.replace("?", r"\?")):
        streamed(spark, tmp_path, **options)


def test_an_empty_folder_is_waited_at(spark: SparkSession, tmp_path: Path) -> None:
    ask(tmp_path / "asked.parquet", [])
    (tmp_path / "in").mkdir()
    assert streamed(spark, tmp_path) == []


def test_no_file_is_lost_by_age_or_by_name_and_bad_ones_are_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    asked = {1: "temperature < 5", 2: "wind > 9"}  # nothing is known of wind at first
    ask(tmp_path / "asked.parquet", [{"subscription": number, "where": text} for number, text in asked.items()])
    inbox, out = tmp_path / "in", tmp_path / "out"
    for name, when, event in (("new", 1_700_000_000, 1), ("old", 0, 2), ("future", 4_102_444_800, 3)):
        arrive(inbox, name, [(event, 100, 1.0)])
        os.utime(inbox / f"{name}.parquet", (when, when))
    (first,) = streamed(spark, tmp_path, time="time_s")
    assert (first.events, first.matched, first.quarantined) == (3, 3, 0)

    arrive(inbox, "new", [(1, 100, 1.0), (4, 100, 1.0)])  # has grown, and comes again with an old time
    os.utime(inbox / "new.parquet", (86_400, 86_400))
    whole = (inbox / "new.parquet").read_bytes()
    (inbox / "again.parquet").write_bytes(whole)
    (inbox / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (inbox / "empty.parquet").touch()
    (inbox / "text.parquet").write_text("event,temperature\n9,1\n")
    (inbox / "site=north").mkdir()
    tables = {
        "other-ids": {"event": ["x"], "temperature": [1.0]},
        "nameless": {"name": ["x"]},
        "site=north/wind": {"event": [5], "wind": [10.0]},
        "whole-degrees": {"event": [6], "temperature": [4]},
        "too-hot": {"event": [7], "temperature": [2**60 + 1]},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), inbox / f"{name}.parquet")
    (second,) = streamed(spark, tmp_path, time="time_s")
    assert (second.events, second.matched, second.repeated, second.quarantined) == (4, 3, 1, 6)
    assert pairs_in(out) == [(1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (6, 1)]
    rejects = [json.loads(line) for line in (out / "rejects/batch=00000001.jsonl").read_text().splitlines()]
    reasons = {row["id"].removesuffix(".parquet"): row["reason"] for row in rejects}
    assert sorted(reasons) == ["cut", "empty", "nameless", "other-ids", "text", "too-hot"]
    assert "not a Parquet file" in reasons["cut"]
    assert reasons["empty"] == "an empty file"
    assert "the column event is string here, and int64 in other files" in reasons["other-ids"]
    assert len(list((out / "quarantine").iterdir())) == 6
    assert list((out / "landed").iterdir()) == []
    assert streamed(spark, tmp_path, time="time_s") == []
    assert pq.read_schema(out / "columns.parquet").names == ["event", "time_s", "temperature", "wind", "site"]

    ask(tmp_path / "asked.parquet", [{"subscription": 2, "where": "site = 'south'"}])  # a column in names of folders
    (inbox / "site=south").mkdir()
    pq.write_table(pa.table({"event": [8]}), inbox / "site=south" / "x.parquet")
    (third,) = streamed(spark, tmp_path, time="time_s")
    assert (third.matched, third.rejected_subscriptions) == (1, 0)


def test_two_streams_do_not_work_in_one_folder(spark: SparkSession, tmp_path: Path) -> None:
    ask(tmp_path / "asked.parquet", [])
    arrive(tmp_path / "in", "1", [(1, 10, 1.0)])
    (tmp_path / "out").mkdir()
    with alone_in(tmp_path / "out"), pytest.raises(CannotRun, match="another serai is at work"):
        streamed(spark, tmp_path, time="time_s")
    assert list((tmp_path / "out").iterdir()) == []
    assert len(streamed(spark, tmp_path, time="time_s")) == 1


def test_pairs_are_sorted_in_runs_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "SORTED_AT_ONCE", 5)
    schema = pa.schema([("event", pa.int64()), ("subscription", pa.int64())])
    tables = [pa.table({"event": [1, 2, 3], "subscription": [9 - k, 5, 1]}, schema) for k in range(5)]
    runs = list(job._sorted_runs(tables, schema))
    assert [run["subscription"].to_pylist() for run in runs] == [[1, 1, 5, 5, 8, 9], [1, 1, 5, 5, 6, 7], [1, 5, 5]]
    assert [len(run) for run in job._sorted_runs([], schema)] == [0]


def test_ids_seen_before_are_known() -> None:
    rng = np.random.default_rng(1)
    seen, plain = SeenIds(), set()
    for _ in range(60):
        ids = rng.integers(0, 500, rng.integers(0, 30))
        fresh = seen.fresh(ids)
        expected = [
            value not in plain and value not in ids[:place].tolist() for place, value in enumerate(ids.tolist())
        ]
        assert fresh.tolist() == expected
        seen.add(ids[fresh], 0.0)
        plain |= set(ids.tolist())
    assert len(seen.runs) < 10


def test_copies_have_times_in_the_order_of_the_names_of_files(tmp_path: Path) -> None:
    """On a fast disk many are copied in one tick of its clock, and Spark would take them in any order."""
    (tmp_path / "in").mkdir()
    for number in range(50):
        (tmp_path / "in" / f"{number:02}.jsonl").write_text(f'{{"event": {number}}}')
    (tmp_path / "home").mkdir()
    landing = Landing({"": tmp_path / "in"}, Folder(tmp_path / "home"))
    assert landing.land() == 50
    times_ms = [(tmp_path / "home" / "landed" / copy).stat().st_mtime_ns // 10**6 for copy in landing.waiting()]
    assert len(set(times_ms)) == 50
    assert times_ms == sorted(times_ms)


# --- Killed


def killed(tmp_path: Path, where: str, batch: int) -> None:
    """Stream in a process of its own, which is killed inside a batch, its pairs written but not in place; or between
    batches, when its pairs are in place and Spark does not know yet."""
    arguments = [tmp_path / "in", tmp_path / "asked.parquet", tmp_path / "out", where, batch]
    done = subprocess.run(
        [sys.executable, "-c", STREAMER, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(serai.__file__).parents[1])},
        start_new_session=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (tmp_path / f"out/pairs/batch={batch:08}").exists() == (where == "between")


def world_of_batches(tmp_path: Path, files: int) -> list[dict[str, Any]]:
    """Files with fresh events, repeats and events that are late but not too late; and subscriptions."""
    draw = random.Random(4)
    sent: list[tuple[int, float, float]] = []
    for number in range(files):
        fresh = [
            (100 * number + k, 10.0 * number + k % 10 - draw.choice([0, 0, 30]), draw.uniform(0, 10)) for k in range(20)
        ]
        arrive(tmp_path / "later", f"{number:03}", fresh + draw.sample(sent, min(5, len(sent))))
        sent += fresh
    return [
        {"subscription": k, "where": f"{k} <= temperature < {k + 3}", "from": 20.0 * (k % 3), "until": 200.0 + k}
        for k in range(8)
    ]


def test_killed_between_and_inside_batches_nothing_is_lost_or_there_twice(spark: SparkSession, tmp_path: Path) -> None:
    files = 6
    asked = world_of_batches(tmp_path, files)
    ask(tmp_path / "asked.parquet", [row for row in asked if row["from"] == 0])
    (tmp_path / "in").mkdir()
    waiting = sorted((tmp_path / "later").iterdir())
    for path in waiting[:2]:
        path.rename(tmp_path / "in" / path.name)
    killed(tmp_path, "inside", 1)
    ask(tmp_path / "asked.parquet", asked)  # subscriptions change while nobody looks; they hold from later on
    for path in waiting[2:]:
        path.rename(tmp_path / "in" / path.name)
    killed(tmp_path, "between", 3)
    streamed(spark, tmp_path, time="time_s", lateness_s=50.0, files_per_batch=1)
    table = pq.read_table(tmp_path / "in")
    events = table.group_by("event", use_threads=False).aggregate([("time_s", "first"), ("temperature", "first")])
    events = events.rename_columns(["event", "time_s", "temperature"])
    frame = spark.createDataFrame(pa.Table.from_pylist(asked))
    expected = sorted(map(tuple, match(spark.createDataFrame(events), frame, time="time_s").collect()))
    assert pairs_in(tmp_path / "out") == expected
    reports = [json.loads(path.read_text()) for path in sorted((tmp_path / "out/batches").iterdir())]
    assert [report["batch"] for report in reports] == list(range(files))
    assert sum(report["events"] for report in reports) == len(table)
    assert sum(report["repeated"] for report in reports) == len(table) - len(events)
    assert sum(report["late"] for report in reports) == 0
