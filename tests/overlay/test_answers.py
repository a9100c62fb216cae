"""Which subquery answers an event at its rendezvous: every subquery there asked, one by one, says the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.content import Attribute
from serai.overlay.engine.answers import Arrivals, Boxes, match_arrivals, shelved
from serai.overlay.engine.keys import cell_boxes, domains_of, rendezvous_keys_of
from serai.overlay.engine.rendezvous import QueryBoxes, RoutingParameters
from serai.overlay.engine.state import NONE
from serai.overlay.engine.subqueries import Regions, Subqueries
from serai.overlay.metrics import COMPARED, margin_of_sample
from serai.overlay.tinymq import MAPPINGS, STRICT

NODES, TREES, QUERIES, EVENTS = 4, 3, 12, 30


@given(st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([1, 5, 6, 7, 21]), st.integers(0, 60))
def test_shelves_hide_nothing(seed: int, attributes: int, bits: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    mapping, all_bits = int(rng.integers(len(MAPPINGS))), attributes * bits
    domains = domains_of([Attribute(f"A{number}", "real", -1, 3) for number in range(attributes)])
    low = rng.uniform(-1, 3, (QUERIES, attributes))
    boxes = Boxes(low, rng.uniform(low, 3))
    free = rng.random((QUERIES, attributes)) < 0.2
    boxes.low[free], boxes.high[free] = -np.inf, np.inf
    values = rng.uniform(-1, 3, (EVENTS, attributes))
    values[rng.random(values.shape) < 0.1] = np.nan
    keys = rendezvous_keys_of(values, domains, mapping, bits)
    cells = QueryBoxes(*cell_boxes(boxes.low, boxes.high, domains, bits), np.zeros(QUERIES, np.int32))

    length = rng.integers(0, min(3, all_bits) + 1, count).astype(np.int32)
    region = keys[rng.integers(0, EVENTS, count)] >> (all_bits - length) << (all_bits - length)
    query, tree, node = (rng.integers(0, most, count).astype(np.int32) for most in (QUERIES, TREES, NODES))
    back, hops, held = np.full(count, NONE, np.int64), np.zeros(count, np.int32), rng.random(count) < 0.8
    subqueries = Subqueries(query, tree, node, back, hops, held, np.arange(count + 1), Regions(region, length))
    event = np.arange(EVENTS, dtype=np.int32)
    where = rng.integers(-1, NODES, EVENTS).astype(np.int32)
    arrivals = Arrivals(event, rng.integers(0, TREES, EVENTS).astype(np.int32), where, event)

    shelves = shelved(subqueries, held, NODES, TREES, cells, bits)
    parameters = RoutingParameters(STRICT, mapping, bits, all_bits)
    found = match_arrivals(arrivals, keys, values, boxes, subqueries, shelves, parameters)
    slow: list[tuple[int, int]] = []
    for arrival in range(EVENTS):
        last: dict[int, int] = {}
        for each in np.flatnonzero(held & (node == where[arrival]) & (tree == arrivals.tree[arrival])):
            low, high = boxes.low[query[each]], boxes.high[query[each]]
            is_in = ((low <= values[arrival]) & (values[arrival] <= high)) | (np.isinf(low) & np.isinf(high))
            begins = keys[arrival] >> (all_bits - length[each]) == region[each] >> (all_bits - length[each])
            if begins and is_in.all():
                last[int(query[each])] = int(each)
        slow += [(arrival, each) for each in last.values()]
    assert list(zip(*(column.tolist() for column in found), strict=True)) == slow


def test_the_margin_of_a_sample_by_hand() -> None:
    """Half of the queries with one notification of ratio 1, half with one of 3: a mean of 2, a variance of 1."""
    query = np.arange(COMPARED, dtype=np.int32)
    values = np.where(query % 2, 3.0, 1.0)
    assert margin_of_sample(values, query, COMPARED) == 0
    spread = np.sqrt(COMPARED / (COMPARED - 1) / COMPARED)
    assert margin_of_sample(values, query, 10**9) == pytest.approx(1.966 * spread, rel=1e-3)  # t for 399: 1.966
    assert margin_of_sample(values, query, 2 * COMPARED) == pytest.approx(1.966 * spread * np.sqrt(0.5), rel=1e-3)
    assert np.isnan(margin_of_sample(values[:0], query[:0], 10**9))


def test_many_notifications_of_one_query_count_as_one_draw() -> None:
    """The same ratios, each ten times over: nothing is known better."""
    rng = np.random.default_rng(5)
    query, values = np.arange(COMPARED, dtype=np.int32), rng.uniform(1, 4, COMPARED)
    once = margin_of_sample(values, query, 10**6)
    assert margin_of_sample(np.repeat(values, 10), np.repeat(query, 10), 10**6) == pytest.approx(once)


def test_intervals_hold_the_mean_of_all_queries() -> None:
    """Unequal queries, 600 times 400 of 2000: some 95 % of the intervals hold the mean (570, three deviations: 16)."""
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(600):
        count, level = rng.geometric(0.2, 2000), rng.uniform(1, 3, 2000)
        query = np.repeat(np.arange(2000, dtype=np.int32), count)
        values = level[query] + rng.uniform(0, 1, len(query)) / count[query]
        sampled = query < COMPARED
        margin = margin_of_sample(values[sampled], query[sampled], 2000)
        hits += abs(values[sampled].mean() - values.mean()) <= margin
    assert 554 <= hits <= 586
