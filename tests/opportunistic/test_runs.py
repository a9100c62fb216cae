"""Runs of opportunistic networks: the same in the folder as in memory, and metrics that can be worked out by hand."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from serai.core.errors import BadInput
from serai.lab import delay_cdf, measure, parse_scenario, read_run, simulate, write_run
from serai.log.metrics import arrow_schema
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.metrics import (
    OpportunisticMetrics,
    delivered_pairs,
    message_stats,
    wanted_pairs,
)
from serai.opportunistic.world import Published, Wanted, check
from tests.opportunistic.small import run as run_small
from tests.opportunistic.small import world

SCENARIO = """
duration = "20 min"
[movement]
width = "120 m"
height = "120 m"
[nodes]
count = 12
store = "100 kB"
[channels]
count = 5
each = 2
[bundles]
interval = "20 s"
lifetime = "5 min"
{more}
[protocol]
name = "{protocol}"
"""
RANGES = '[subscriptions]\nwhere = "A1 < ? and A2 < ?"\n'


def some_run(protocol: str = "dpsp", more: str = "", **options: Any) -> OpportunisticRun:
    scenario = parse_scenario(SCENARIO.format(protocol=protocol, more=more))
    return simulate(scenario, seed=5, **options)


@pytest.mark.parametrize("full_log", [False, True])
@pytest.mark.parametrize("more", ["", RANGES])
def test_a_run_comes_back_from_its_folder(more: str, full_log: bool, tmp_path: Path) -> None:
    run = some_run(more=more, full_log=full_log)
    assert len(run.outcome.delivery_s) > 5
    back = read_run(write_run(run, tmp_path / "run"))
    assert back == run
    assert measure(back) == measure(run)


def test_the_same_seed_the_same_run() -> None:
    assert some_run() == some_run()
    assert some_run().world.bundles.created_s.tolist() == some_run("flooding").world.bundles.created_s.tolist()


@pytest.mark.parametrize("more", ["", RANGES, '[subscriptions]\nspread = "10 min"\nlength = "4 min"\n'])
def test_pairs_one_by_one(more: str) -> None:
    """What metrics count, by looking at every bundle and every node."""
    run = some_run("flooding", more)
    bundles, wishes, sinks = run.world.bundles, run.world.subscriptions, run.wanted.sinks.tolist()
    wanted = set()
    for bundle in range(len(bundles.source)):
        expires_s = bundles.created_s[bundle] + bundles.lifetime_s[bundle]
        for node, channel, from_s, to_s in zip(*wishes, strict=True):
            since_s = max(bundles.created_s[bundle], from_s)
            fits = channel == bundles.channel[bundle] and node != bundles.source[bundle]
            if fits and since_s < min(expires_s, to_s) and since_s <= 1200:
                low, high = (
                    bound[sinks.index(node)] if len(bound) else [] for bound in (run.wanted.low, run.wanted.high)
                )
                if all(a <= v <= b for a, v, b in zip(low, run.published.values[bundle], high, strict=True)):
                    wanted.add((bundle, int(node)))
    found = wanted_pairs(run)
    assert set(zip(found.bundle.tolist(), found.node.tolist(), strict=True)) == wanted
    got = delivered_pairs(run)
    delivered = list(zip(got.bundle.tolist(), got.node.tolist(), strict=True))
    assert len(set(delivered)) == len(delivered) > 5
    assert set(delivered) <= wanted
    assert np.all(got.delay_s >= 0)
    assert np.all(got.delay_s < 300)


def small_run() -> OpportunisticRun:
    """A line: 0 meets 1, 1 meets 2; two bundles, of which 1 and 2 want the first, and 2 the second, which breaks."""
    contacts, wishes = [(0, 1, 10.0, 10.5), (1, 2, 20.0, 20.1875)], [(1, 0), (2, 0), (2, 1)]
    given = world(contacts, [(0.0, 0, 0, 125), (1.0, 0, 1, 125)], wishes)
    outcome = run_small("flooding", given, {"duration_s": 100.0}, order="oldest")
    scenario = parse_scenario('duration = "100 s"\n[protocol]\nname = "flooding"\n')
    published = Published(
        given.bundles, ("a", "b"), np.array([0], np.int32), np.empty((2, 0)), np.array([-1, -1], np.int32)
    )
    wanted = Wanted(given.subscriptions, np.array([1, 2], np.int32))
    return OpportunisticRun(scenario, "flooding", 0, given, outcome, ("x", "y", "z"), published, wanted, True)


def test_metrics_of_a_line_of_three() -> None:
    metrics = measure(small_run())
    assert (metrics.wanted_pairs, metrics.delivered_pairs) == (3, 2)
    assert metrics.delivery_ratio == pytest.approx(2 / 3)
    assert metrics.mean_delay_s == pytest.approx((10.125 + 20.125) / 2)
    assert metrics.mean_hops == 1.5
    assert metrics.copies_per_bundle == 1.5  # the first to 1 and 2, the second to 1
    assert (metrics.transfers_relayed, metrics.transfers_broken) == (3, 1)
    assert (metrics.payload_bytes, metrics.wasted_bytes) == (3 * 125 + 62, 62)
    assert metrics.fairness_subscribers == pytest.approx((1 + 0.5) ** 2 / (2 * (1 + 0.25)))
    assert metrics.fairness_channels == pytest.approx(0.5)
    assert (metrics.worst_tenth_ratio, metrics.starved_subscribers) == (0.5, 0.0)
    assert metrics.store_peak_bytes == 250
    held = 125 * (100 + 99 + 89.875 + 89.75 + 79.875)
    assert metrics.store_mean_bytes == pytest.approx(held / 300)


def test_delay_curve_counts_the_undelivered() -> None:
    delays_s, served = delay_cdf(small_run())
    assert delays_s == pytest.approx([10.125, 20.125])
    assert served == pytest.approx([1 / 3, 2 / 3])


def test_in_the_ones_words() -> None:
    stats = message_stats(small_run())
    assert (stats["created"], stats["started"], stats["relayed"], stats["aborted"]) == (2, 4, 3, 1)
    assert (stats["delivered"], stats["overhead_ratio"], stats["hopcount_med"]) == (2, 0.5, 2)
    assert stats["latency_med"] == 20.125
    assert math.isnan(stats["buffertime_avg"])  # nothing was dropped


def test_every_metric_fits_its_column() -> None:
    schema = arrow_schema(OpportunisticMetrics)
    for run in (some_run(more="", full_log=False), small_run()):
        table = pa.Table.from_pylist([measure(run).as_dict()], schema=schema)
        table.validate(full=True)
        assert table.to_pylist() == [measure(run).as_dict()]
        assert all(column.nullable or not table[column.name].null_count for column in schema)


@pytest.mark.parametrize(
    ("contacts", "problem"),
    [
        ([(0, 0, 1.0, 2.0)], "its nodes must be two"),
        ([(0, 1, 3.0, 2.0)], "ends before it begins"),
        ([(0, 1, 1.0, 5.0), (0, 1, 2.0, 3.0)], "overlap"),
    ],
)
def test_impossible_contacts_are_refused(contacts: list[tuple[int, int, float, float]], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        check(world(contacts, [(0.0, 1, 0)], []))
