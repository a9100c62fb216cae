"""`match` on Spark: both engines give exactly the pairs that the rule gives, in every mode."""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from serai.core.errors import BadInput
from serai.matching import match as matching_module
from serai.matching.match import match, prepare_match
from tests.effort import THOROUGH
from tests.matching.collected import crowd, pairs_one_by_one

ENGINES = ["index", "keys"]
CROWDS = [(seed, [7, 1][seed % 2]) for seed in range(20 if THOROUGH else 1)]
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


@pytest.mark.parametrize("mode", ["pairs", "counts"])
def test_workers_read_parquet_files_by_themselves(spark, tmp_path, mode):
    events, texts = crowd(5, 200, 60)
    folder = tmp_path / "events"
    folder.mkdir()
    pq.write_table(events.slice(0, 150), folder / "one.parquet", row_group_size=40)
    pq.write_table(events.slice(150), folder / "two.parquet")
    expected = pairs_one_by_one(events, texts)
    found = rows(match(folder, numbered(spark, texts), mode=mode, engine="index"))
    if mode == "pairs":
        assert found == expected
    else:
        assert found == [(s, sum(other == s for _, other in expected)) for s in range(len(texts))]


def test_bounds_as_columns(spark):
    events = pa.table({"event": [1, 2, 3], "t": [1.0, 5.0, None], "n": [1, 2, 3], "site": ["a", "ab", "b"]})
    asked = pa.table(
        {
            "subscription": [10, 11, 12, 13, 14],
            "t_low": [0.0, None, -math.inf, math.nan, None],
            "t_high": [5.0, None, math.inf, 1.0, None],
            "n_low": pa.array([None, 1.5, None, None, 1e300]),
            "site": [None, None, "ab", None, None],
            "site_prefix": [None, None, "a", None, None],
        }
    )
    for engine in ENGINES:
        matching = prepare_match(spark.createDataFrame(events), spark.createDataFrame(asked), engine=engine)
        assert rows(matching.answer) == [(1, 10), (2, 10), (2, 11), (2, 12), (3, 11)]
        assert rows(matching.rejected.select("id", "reason")) == [("13", "t_low is NaN")]


def test_names_of_ours_are_free_for_attributes(spark):
    events = pa.table(
        {"event": [1, 2], "key": [1, 2], "value0": [3, 4], "order": ["a", "b"], "subscription": [5.0, 6.0]}
    )
    texts = ["key = 1 and value0 = 3", "order starts with 'b' and subscription > 5"]
    for engine in ENGINES:
        frames = spark.createDataFrame(events), numbered(spark, texts)
        assert rows(match(*frames, engine=engine)) == [(1, 0), (2, 1)]
        assert rows(match(*frames, engine=engine, mode="first", first=1, order_by="order")) == [(1, 0), (2, 1)]


def test_more_subscriptions_than_are_sent_around_are_partitioned_by_key(spark, monkeypatch):
    monkeypatch.setattr(matching_module, "MOST_ON_DRIVER", 20)
    events, texts = crowd(8, 100, 120)
    matching = prepare_match(spark.createDataFrame(events), numbered(spark, [*texts, "nothing < 3"]))
    assert rows(matching.answer) == pairs_one_by_one(events, texts)
    assert rows(matching.rejected.select("id", "row")) == [("120", "nothing < 3")]
    assert "partitioned by key" in str(matching.plan)


def test_strict_stops_with_the_reasons(frames):
    with pytest.raises(BadInput, match=r"(?s)2 rows cannot be used.*subscriptions c: unknown attribute"):
        match(*frames, strict=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "pair"}, 'no mode "pair"; did you mean "pairs"?'),
        ({"engine": "indx"}, 'no engine "indx"; did you mean "index"?'),
        ({"mode": "first"}, "needs a number of events"),
        ({"first": 3}, "needs a number of events"),
        (
            {"mode": "first", "first": 1, "order_by": "time"},
            'no column "time" to order the events by; did you mean "time_s"?',
        ),
    ],
)
def test_bad_options_are_refused(frames, options, words):
    with pytest.raises(BadInput) as caught:
        match(*frames, **options)
    assert words in str(caught.value)


def test_missing_ids_are_said(frames):
    events, subscriptions = frames
    with pytest.raises(BadInput, match="the events have no column event"):
        match(events.drop("event"), subscriptions)
    with pytest.raises(BadInput, match="the subscriptions have no column subscription"):
        match(events, subscriptions.drop("subscription"))


def test_nothing_to_match(spark, frames):
    events, subscriptions = frames
    for engine in ENGINES:
        assert rows(match(events.limit(0), subscriptions, engine=engine)) == []
        assert rows(match(events, subscriptions.limit(0), engine=engine)) == []
