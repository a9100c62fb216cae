"""Boxes, grids and the worker's answers, without Spark: the same pairs as one by one."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.content import matches
from serai.core.readings import read_many
from serai.matching import index as index_module
from serai.matching.boxes import boxes_of
from serai.matching.index import build_index, find_pairs
from serai.matching.worker import Matcher, Tally, in_batches
from tests.matching.collected import kinds_of, pairs_one_by_one, worlds

INF, NAN = math.inf, math.nan
NUMBERS = st.sampled_from(
    [-INF, -1.7e308, -1.0, -5e-324, -0.0, 0.0, 1.0, math.nextafter(1.0, 2.0), 2.0, 1.7e308, INF, NAN]
)


@st.composite
def boxes(draw):
    width = draw(st.integers(0, 4))
    counts = draw(st.integers(0, 8)), *[draw(st.integers(0, 80))] * 2
    values, low, high = (
        np.array(draw(st.lists(NUMBERS, min_size=n * width, max_size=n * width)), np.float64).reshape(n, width)
        for n in counts
    )
    if draw(st.booleans()):  # most boxes of the usual kind: some attributes bounded, some free
        free = np.array(draw(st.lists(st.booleans(), min_size=low.size, max_size=low.size)), bool).reshape(low.shape)
        low[free], high[free] = -INF, INF
    return values, low, high


def found(values, low, high, **options):
    matched = np.zeros(len(values), bool)
    pairs = [
        (int(row), int(box))
        for part in find_pairs(build_index(low, high), values, matched, **options)
        for row, box in zip(*part, strict=True)
    ]
    assert set(np.flatnonzero(matched).tolist()) == {row for row, _ in pairs}
    return pairs


@given(boxes(), st.sampled_from([1, 3, 16]))
def test_pairs_found_are_those_that_match(world, most_groups):
    values, low, high = world
    expected = [(e, b) for e in range(len(values)) for b in range(len(low)) if matches(values[e], low[b], high[b])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "MOST_GROUPS", most_groups)
        patch.setattr(index_module, "_FEWEST_OUT", 1)  # the answer comes in many parts
        assert sorted(found(values, low, high, most=1)) == expected
        some = found(values, low, high, one_each=True)
    assert len({row for row, _ in some}) == len(some)
    assert set(some) <= set(expected)
    assert {row for row, _ in some} == {row for row, _ in expected}


def test_a_crowd_of_boxes_of_all_shapes():
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(size=(400, 3)), rng.integers(-2, 3, (100, 3)).astype(float)])
    values[rng.random(values.shape) < 0.05] = NAN
    width = np.exp(rng.normal(-2, 2, (3000, 3)))
    low = np.where(rng.random((3000, 3)) < 0.2, np.round(rng.normal(size=(3000, 3))), rng.normal(size=(3000, 3)))
    high = low + width
    free = rng.random((3000, 3)) < 0.4
    low[free], high[free] = -INF, INF
    inside = ((low[None] <= values[:, None]) & (values[:, None] <= high[None]) | free[None]).all(2)
    assert sorted(found(values, low, high)) == [tuple(pair) for pair in np.argwhere(inside).tolist()]


def test_boxes_that_leave_an_attribute_free_are_not_spread_over_it():
    rng = np.random.default_rng(5)
    boxes = 20_000
    low, high = np.full((boxes, 4), -INF), np.full((boxes, 4), INF)
    axis = np.arange(boxes) % 4
    low[np.arange(boxes), axis] = rng.random(boxes)
    high[np.arange(boxes), axis] = low[np.arange(boxes), axis] + 1e-4
    index = build_index(low, high)
    assert len(index.grids) == 4
    assert sum(len(grid.listed) for grid in index.grids) < 8 * boxes


@given(worlds(), st.integers(1, 5))
def test_the_worker_answers_as_one_by_one(world, rows):
    events, texts = world
    kinds = kinds_of(events)
    asked = boxes_of(read_many(texts, kinds), kinds, pa.array(range(len(texts)), pa.int64()))
    expected = pairs_one_by_one(events, texts)
    columns = events.select(["event", *asked.attributes])
    batches = list(in_batches(columns.to_batches(max_chunksize=2), rows))
    tally = Tally()
    answers = [row for table in Matcher(asked).answer(batches, tally) for row in table.to_pylist()]
    assert sorted((row["event"], row["subscription"]) for row in answers) == expected
    assert (tally.events, tally.pairs) == (len(events), len(expected))
    assert tally.matched == len({event for event, _ in expected})
    wanted = [event for table in Matcher(asked, "any").answer(batches) for event in table["event"].to_pylist()]
    assert sorted(wanted) == sorted({event for event, _ in expected})
    counts = [row for table in Matcher(asked, "counts").answer(batches) for row in table.to_pylist()]
    assert {row["subscription"]: row["events"] for row in counts} == {
        s: sum(other == s for _, other in expected) for _, s in expected
    }


def test_a_box_that_asks_nothing_accepts_missing_values_whatever_the_groups():
    low = np.array([[0.0, -INF], [0.0, -INF], [-INF, -INF], [-INF, 0.0]])
    high = np.array([[0.0, INF], [1.0, INF], [INF, INF], [INF, 0.0]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "MOST_GROUPS", 1)
        assert sorted(found(np.array([[NAN, NAN], [0.0, NAN]]), low, high)) == [(0, 2), (1, 0), (1, 1), (1, 2)]
