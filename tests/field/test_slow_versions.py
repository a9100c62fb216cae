"""Metrics against the obvious slow version of each, on ledgers that Hypothesis draws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.field.log import FieldRun
from serai.field.metrics import by_community
from serai.lab import delay_cdf, measure
from serai.log.metrics import jain
from tests.log import hand_made

VALUES = st.sampled_from([0.0, 1.0, 2.5, 7.0, 10.0, math.nan])
BOUNDS = st.sampled_from([-math.inf, 0.0, 1.0, 2.5, 5.0, math.inf])


@st.composite
def runs(draw: st.DrawFn) -> FieldRun:
    """A run in which events were received at random, by whoever."""
    times = sorted(draw(st.lists(st.floats(0, 50), max_size=8)))
    events = [(draw(st.integers(0, 2)), time_s, draw(VALUES)) for time_s in times]
    boxes = draw(st.lists(st.tuples(BOUNDS, BOUNDS), max_size=4))
    world = hand_made.world(events, boxes)
    pairs = [(event, subscriber) for event in range(len(events)) for subscriber in range(len(boxes))]
    got = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    receptions = [
        (
            event,
            subscriber,
            math.ceil(events[event][1]) + draw(st.integers(0, 60)),
            wants(boxes[subscriber], events[event][2]),
        )
        for event, subscriber in got
    ]
    return hand_made.run(world, hand_made.ledger(world, receptions))


def wants(box: tuple[float, float], value: float) -> bool:
    return box == (-math.inf, math.inf) or box[0] <= value <= box[1]


def wanted_pairs(run: FieldRun) -> list[tuple[int, int]]:
    world = run.world
    return [
        (event, subscriber)
        for event in range(len(world.event_sensor))
        for subscriber in range(len(world.low))
        if wants((world.low[subscriber, 0], world.high[subscriber, 0]), world.event_values[event, 0])
    ]


def slow_delays(run: FieldRun) -> list[float]:
    received = {
        (int(event), int(subscriber)): int(time_s) for event, subscriber, time_s in zip(*run.ledger[:3], strict=True)
    }
    return sorted(
        received[pair] - float(run.world.event_time_s[pair[0]]) for pair in wanted_pairs(run) if pair in received
    )


def slow_quantile(ascending: list[float], share: Fraction) -> float:
    """The value at place share * (n - 1), on the straight line between its neighbours."""
    place = share * (len(ascending) - 1)
    below = int(place)
    above = min(below + 1, len(ascending) - 1)
    return ascending[below] + float(place - below) * (ascending[above] - ascending[below])


def slow_jain(shares: list[Fraction]) -> float:
    squares = sum(share * share for share in shares)
    return float(sum(shares) ** 2 / (len(shares) * squares)) if squares else math.nan


def same(one: float, other: float) -> bool:
    return one == pytest.approx(other, rel=1e-12, abs=1e-12, nan_ok=True)


@given(runs())
def test_delivery_ratio(run):
    metrics, wanted = measure(run), wanted_pairs(run)
    got = set(zip(run.ledger.reception_event.tolist(), run.ledger.reception_subscriber.tolist(), strict=True))
    assert metrics.wanted_pairs == len(wanted)
    assert metrics.delivered_pairs == sum(pair in got for pair in wanted)
    assert same(metrics.delivery_ratio, metrics.delivered_pairs / len(wanted) if wanted else math.nan)


@given(runs())
def test_delays(run):
    metrics, delays_s = measure(run), slow_delays(run)
    if not delays_s:
        assert math.isnan(metrics.mean_delay_s)
        assert math.isnan(metrics.median_delay_s)
        assert math.isnan(metrics.p95_delay_s)
        return
    assert same(metrics.mean_delay_s, math.fsum(delays_s) / len(delays_s))
    assert same(metrics.median_delay_s, slow_quantile(delays_s, Fraction(1, 2)))
    assert same(metrics.p95_delay_s, slow_quantile(delays_s, Fraction(95, 100)))


@given(runs())
def test_delay_curve(run):
    delays_s, fraction = delay_cdf(run)
    wanted = wanted_pairs(run)
    assert delays_s.tolist() == slow_delays(run)
    for delay, share in zip(delays_s[:-1], fraction[:-1], strict=True):
        assert share <= sum(other <= delay for other in delays_s) / len(wanted)
    if len(fraction):
        assert same(fraction[-1], measure(run).delivery_ratio)


@given(runs())
def test_fairness(run):
    delivered = set(zip(run.ledger.reception_event.tolist(), run.ledger.reception_subscriber.tolist(), strict=True))
    wanted: dict[int, list[bool]] = {}
    for event, subscriber in wanted_pairs(run):
        community = int(run.world.communities.of_sensor[run.world.event_sensor[event]])
        wanted.setdefault(community, []).append((event, subscriber) in delivered)
    ratios = [Fraction(sum(came), len(came)) for came in wanted.values()]
    assert same(measure(run).fairness_communities, slow_jain(ratios))
    table = by_community(run)
    for community, came in wanted.items():
        assert (table.wanted_pairs[community], table.delivered_pairs[community]) == (len(came), sum(came))
    assert table.wanted_pairs.sum() == sum(map(len, wanted.values()))


@given(st.lists(st.fractions(0, 1, max_denominator=20), max_size=12))
def test_jain(shares):
    assert same(jain(np.array(shares, float)), slow_jain(shares))


@given(st.lists(st.integers(0, 10**15), min_size=3, max_size=3))
def test_load_imbalance(spent):
    world = hand_made.world([], [])
    metrics = measure(hand_made.run(world, hand_made.ledger(world, event_pj=spent)))
    assert same(metrics.load_imbalance, float(Fraction(3 * max(spent), sum(spent))) if sum(spent) else math.nan)
