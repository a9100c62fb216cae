"""Counts that are added up batch by batch, beside what a look at all events says."""

import random
import statistics
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from serai.pipeline.reports import cells_of
from serai.pipeline.summary import CELL_S, Summary, added_up, steps_of, summary_of, summary_of_pairs
from serai.spark.stores import Folder

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


def some_events(draw: random.Random, rows: int) -> pa.Table:
    columns = defaultdict(list)
    for _ in range(rows):
        columns["node"].append(draw.choice(["a", "b", "ü"]))
        columns["epoch"].append(draw.choice(["", "1"]))
        columns["seq"].append(draw.choice([draw.randint(0, 500), None]))
        columns["carrier"].append(draw.choice([None, "ferry", "bus"]))
        columns["time"].append(draw.choice([BEGIN + timedelta(seconds=draw.randint(-200_000, 90_000)), None]))
    kinds = {"seq": pa.int64(), "carrier": pa.string(), "time": pa.timestamp("us", "UTC")}
    return pa.table({name: pa.array(values, kinds.get(name)) for name, values in columns.items()})


@pytest.mark.parametrize("seed", range(5))
def test_what_is_told_is_what_a_look_at_all_says(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    store, all_rows = Folder(tmp_path), []
    for batch in range(6):
        rows, arrived = some_events(draw, draw.randint(0, 60)), BEGIN + timedelta(days=batch)
        Summary.write(store, batch, summary_of(rows, arrived) if len(rows) else added_up([]))
        Summary.merge(store, batch)
        all_rows += [row | {"arrived": arrived} for row in rows.to_pylist()]
    summary = Summary(store, 6)
    for what, column in (("node", "node"), ("carrier", "carrier")):
        told = summary.told(what)
        names = {row[column] for row in all_rows} - {None}
        assert set(told) == names
        for name in names:
            mine = [row for row in all_rows if row[column] == name]
            delays = sorted((row["arrived"] - row["time"]).total_seconds() for row in mine if row["time"])
            assert told[name].events == len(mine)
            middle = delays[(len(delays) + 1) // 2 - 1]
            assert told[name].median_s == pytest.approx(middle, rel=0.021, abs=0.05)
            assert told[name].p95_s == pytest.approx(delays[int(np.ceil(0.95 * len(delays))) - 1], rel=0.021, abs=0.05)
            if what == "node":
                assert told[name].low == round(delays[0] * 1e6)
    carried = {(row["carrier"], row["node"]) for row in all_rows if row["carrier"]}
    assert set(summary.of("carried")["of"].to_pylist()) == {f"{one}\0{other}" for one, other in carried}
    latest = max(row["time"] for row in all_rows if row["time"] and row["node"] == "ü")
    times = summary.told("time")
    assert max(times[f"ü\0{epoch}"].high for epoch in ("", "1")) == round(latest.timestamp() * 1e6)


def test_cells_say_when_events_came_from_and_when_they_are_missing() -> None:
    minutes = [(1, 0), (2, 1), (5, 2), (6, 12), (20, 31)]  # number, minute: 3 and 4 are missing, then 7 to 19
    rows = pa.table(
        {
            "node": ["n"] * 5,
            "epoch": [""] * 5,
            "carrier": pa.nulls(5, pa.string()),
            "seq": [number for number, _ in minutes],
            "time": pa.array([BEGIN + timedelta(minutes=each) for _, each in minutes], pa.timestamp("us", "UTC")),
        }
    )

    class Given:
        def of(self, what: str) -> pa.Table:
            table = summary_of(rows, BEGIN + timedelta(days=1))
            return table.filter(pa.compute.equal(table["what"], what))

    cells = cells_of(Given())["n"]  # type: ignore[arg-type]
    begin = BEGIN.timestamp()
    assert (cells.begin_s - begin).tolist() == [0, CELL_S, 3 * CELL_S]
    assert cells.came.tolist() == [3, 1, 1]
    holes = [(hole.missing, hole.after_s - begin, hole.before_s - begin) for hole in cells.holes]
    assert holes == [(2, 0, CELL_S), (13, 2 * CELL_S, 3 * CELL_S)]


def test_cells_of_long_ago_and_of_clocks_ahead_are_forgotten() -> None:
    rows = pa.table(
        {
            "node": ["n"] * 4,
            "epoch": [""] * 4,
            "carrier": pa.nulls(4, pa.string()),
            "seq": [1, 2, 3, 4],
            "time": pa.array(
                [BEGIN - timedelta(days=50), BEGIN, BEGIN + timedelta(days=9), BEGIN + timedelta(days=99)]
            ),
        }
    )
    found = added_up([summary_of(rows, BEGIN + timedelta(days=10))])
    cells = found.filter(pa.compute.equal(found["what"], "cell"))
    assert sorted(cells["low"].to_pylist()) == [2, 3]
    assert sum(found.filter(pa.compute.equal(found["what"], "node"))["rows"].to_pylist()) == 4


def test_pairs_are_counted_by_subscription_and_delay() -> None:
    draw = np.random.default_rng(1)
    ids = pa.array([f"s{number}" for number in range(1000)])
    for pairs in (50, 5000):  # few: by sorting, many: by counting
        subscriptions, steps = draw.integers(0, 1000, pairs).astype(np.int32), draw.integers(-3, 9, pairs)
        found = summary_of_pairs(ids, subscriptions, steps)
        plain: dict[tuple[str, int], int] = defaultdict(int)
        for subscription, step in zip(subscriptions, steps, strict=True):
            plain[f"s{subscription}", int(step)] += 1
        told = zip(*(found[name].to_pylist() for name in ("of", "at", "rows")), strict=True)
        assert {(of, at): rows for of, at, rows in told} == plain


def test_steps_are_four_percent_apart() -> None:
    delays_s = [-90_000.0, -0.2, 0.0, 0.2, 60.0, 3600.0, 86_400.0]
    steps = steps_of(pa.chunked_array([pa.array([round(each * 1e6) for each in delays_s])]))
    assert (np.diff(steps) > 0).all()
    back = np.sign(steps) * np.expm1(np.abs(steps) * np.log(1.04))
    assert back.tolist() == pytest.approx(delays_s, rel=0.021, abs=0.05)
    assert statistics.median(steps.tolist()) == steps[3]
