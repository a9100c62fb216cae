"""Who wanted what, and who got what, in an opportunistic network."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.world import within_ranges
from serai.world.grid import Floats, Numbers


class Pairs(NamedTuple):
    """Pairs of a bundle and a node; of delivered ones also when and over how many hops."""

    bundle: Numbers
    node: Numbers
    delay_s: Floats = np.empty(0)
    hops: Numbers = np.empty(0, np.int32)


def wanted_pairs(run: OpportunisticRun) -> Pairs:
    """Every bundle with every node, but its source, that has subscribed to its channel at some time of its life.

    With ranges a channel is a part of what a node has subscribed to: only what lies within its ranges counts.
    """
    bundles, subscriptions = run.world.bundles, run.world.subscriptions
    by_channel = np.argsort(bundles.channel, kind="stable")
    start = np.searchsorted(bundles.channel[by_channel], subscriptions.channel, "left")
    end = np.searchsorted(bundles.channel[by_channel], subscriptions.channel, "right")
    row = np.repeat(np.arange(len(start)), end - start)
    within = np.arange(len(row)) - np.repeat(np.cumsum(end - start) - (end - start), end - start)
    bundle, node = by_channel[start[row] + within], subscriptions.node[row]
    born_s, over_s = bundles.created_s[bundle], (bundles.created_s + bundles.lifetime_s)[bundle]
    since_s = np.maximum(born_s, subscriptions.from_s[row])
    meet = (since_s < np.minimum(over_s, subscriptions.to_s[row])) & (since_s <= run.scenario.duration_s)
    meet &= bundles.source[bundle] != node
    meet[meet] &= within_ranges(run.published, run.wanted, bundle[meet], node[meet])
    pair = np.unique(bundle[meet].astype(np.int64) * run.world.nodes + node[meet])
    return Pairs((pair // run.world.nodes).astype(np.int32), (pair % run.world.nodes).astype(np.int32))


def delivered_pairs(run: OpportunisticRun) -> Pairs:
    """Every delivery, in the order in which they happened; with ranges only what was wanted."""
    outcome = run.outcome
    right = within_ranges(run.published, run.wanted, outcome.delivery_bundle, outcome.delivery_node)
    bundle = outcome.delivery_bundle[right]
    delay_s = outcome.delivery_s[right] - run.world.bundles.created_s[bundle]
    return Pairs(bundle, outcome.delivery_node[right], delay_s, outcome.delivery_hops[right])
