"""Random expressions of every kind: read, indexed and matched as an oracle says that shares nothing with serai."""

import random

import pyarrow as pa
import pytest

from serai.core.conditions import Kind, read_conditions, wanted
from serai.core.readings import read_many
from serai.matching import boxes as boxes_module
from serai.matching.boxes import boxes_of, kind_of
from serai.matching.match import match
from serai.matching.worker import Matcher, Tally
from tests.effort import THOROUGH
from tests.matching import oracle

CASES = 20_000 if THOROUGH else 1_250  # texts, each for 20 events
PER_WORLD = 250


def kinds_of(table: pa.Table) -> dict[str, Kind]:
    return {column.name: kind_of(column.type) for column in table.schema if column.name != "event"}  # type: ignore[misc]


@pytest.mark.parametrize("world", range(CASES // PER_WORLD))
def test_the_index_and_the_rule_say_what_the_oracle_says(world: int) -> None:
    draw = random.Random(world)
    table = oracle.events(draw, 20)
    asked = [oracle.expression(draw, draw.randint(0, 3)) for _ in range(PER_WORLD)]
    asked += draw.choices(asked, k=20)  # some ask the same
    texts, kinds = [one.text for one in asked], kinds_of(table)
    expected = oracle.pairs(table, asked)
    conditions = [read_conditions(text, kinds) for text in texts]
    assert [
        (row["event"], s) for row in table.to_pylist() for s, one in enumerate(conditions) if wanted(one, row)
    ] == expected
    matcher = Matcher(
        given := boxes_of(read_many(texts, kinds), kinds, pa.array(range(len(texts)))),
        columns=("event", *given.attributes),
    )
    tally = Tally()
    found = pa.concat_tables(
        matcher.answer([table.select(["event", *given.attributes]).rename_columns(matcher.column_names())], tally)
    )
    assert sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == expected
    assert (tally.pairs, tally.matched) == (len(expected), len({event for event, _ in expected}))


@pytest.mark.parametrize("engine", ["index", "keys"])
def test_both_engines_say_what_the_oracle_says(spark, tmp_path, engine) -> None:
    draw = random.Random(engine)
    table = oracle.events(draw, 60)
    asked = [oracle.expression(draw, 2) for _ in range(150)]
    pa.parquet.write_table(table, tmp_path / "events.parquet")
    subscriptions = pa.table({"subscription": range(len(asked)), "where": [one.text for one in asked]})
    found = match(tmp_path / "events.parquet", spark.createDataFrame(subscriptions), engine=engine)
    assert sorted(map(tuple, found.collect())) == oracle.pairs(table, asked)


def test_subscriptions_that_ask_the_same_are_compared_once() -> None:
    table = pa.table({"event": range(50), "t": [float(number) for number in range(50)]})
    texts = ["10 <= t < 20"] * 10_000 + ["t < 3 or t < 5"]
    asked = boxes_of(read_many(texts, {"t": "real"}), {"t": "real"}, pa.array(range(len(texts))))
    assert len(asked.low) == 3
    tally = Tally()
    found = pa.concat_tables(
        Matcher(asked, columns=("event", "t")).answer([table.rename_columns(["event", "value0"])], tally)
    )
    assert (tally.pairs, tally.matched) == (10 * 10_000 + 5, 15)
    assert len(set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))) == tally.pairs


def test_boxes_are_told_apart_when_their_fingerprints_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes_module, "_fingerprints", lambda low, high: low[:, 0].astype("uint64") % 2)
    texts = ["t = 1", "t = 3", "t = 2", "t = 1", "t = 4"]
    asked = boxes_of(read_many(texts, {"t": "real"}), {"t": "real"}, pa.array(range(len(texts))))
    table = pa.table({"event": [1, 2, 3, 4], "value0": [1.0, 2.0, 3.0, 4.0]})
    found = pa.concat_tables(Matcher(asked, columns=("event", "t")).answer([table]))
    pairs = sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert pairs == [(1, 0), (1, 3), (2, 2), (3, 1), (4, 4)]
