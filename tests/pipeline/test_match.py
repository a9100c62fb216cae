"""`match` on Spark: both engines give exactly the pairs that the rule gives, in every mode."""

import os

import pyarrow as pa
import pytest

from serai.errors import BadInput
from serai.pipeline.matching import match, prepare_match
from tests.pipeline.collected import crowd, pairs_one_by_one

ENGINES = ["index", "keys"]
CROWDS = [(seed, [1, 7][seed % 2]) for seed in range(20 if os.environ.get("SERAI_THOROUGH") == "1" else 2)]
EVENTS = pa.table(
    {
        "event": [1, 2, 3, 4, None],
        "temperature": [1.0, 4.0, 7.0, None, 2.0],
        "site": ["north", "northern", "south", None, "north"],
        "time_s": [9, 8, 7, 6, 5],
    }
)
SUBSCRIPTIONS = pa.table(
    {
        "subscription": ["a", "b", "c", "d", None],
        "where": ["temperature < 5", "site starts with 'n'", "temprature < 3", "time_s > 100", "time_s > 1"],
    }
)


@pytest.fixture
def frames(spark):
    return spark.createDataFrame(EVENTS), spark.createDataFrame(SUBSCRIPTIONS)


def rows(frame):
    return sorted(map(tuple, frame.collect()))


def numbered(spark, texts):
    return spark.createDataFrame(
        pa.table({"subscription": pa.array(range(len(texts)), pa.int32()), "where": pa.array(texts, pa.string())})
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("seed", "partitions"), CROWDS)
def test_pairs_are_those_of_the_rule(spark, engine, seed, partitions):
    events, texts = crowd(seed, 150, 200)
    frame = spark.createDataFrame(events).repartition(partitions)
    found = match(frame, numbered(spark, texts), engine=engine)
    assert rows(found) == pairs_one_by_one(events, texts)


@pytest.mark.parametrize("engine", ENGINES)
def test_modes(frames, engine):
    events, subscriptions = frames
    ask = {"engine": engine}
    assert rows(match(events, subscriptions, **ask)) == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]
    assert rows(match(events, subscriptions, mode="counts", **ask)) == [("a", 2), ("b", 2), ("d", 0)]
    assert rows(match(events, subscriptions, mode="any", **ask)) == [(1,), (2,)]
    assert rows(match(events, subscriptions, mode="first", first=1, **ask)) == [(1, "a"), (1, "b")]
    latest = match(events, subscriptions, mode="first", first=1, order_by="time_s", **ask)
    assert rows(latest) == [(2, "a"), (2, "b")]


def test_what_cannot_be_used_is_rejected_with_its_reason(frames):
    nearest = 'unknown attribute "temprature"; did you mean "temperature"?, at character 1'
    assert [tuple(row) for row in prepare_match(*frames).rejected.collect()] == [
        ("subscriptions", "c", nearest, "temprature < 3"),
        ("subscriptions", None, "no id in the column subscription", "time_s > 1"),
    ]
