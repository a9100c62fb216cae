"""TinyMQ: the figures and claims of its evaluation, and how each is reproduced.

    K. Shi, Z. Deng, X. Qin: TinyMQ: A Content-based Publish/Subscribe Middleware for Wireless Sensor Networks.
    SENSORCOMM 2011, 12-17.

Four numbers stand in the text (section IV, at ten trees); of the figures no value is read off. The paper does not say
where its sinks stand, how wide queries are or which hops are counted: each of these is a *reading* below, and the four
numbers are set beside every one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from serai.papers.claims import Claim, Order, Trend
from serai.papers.exhibits import Axis, Exhibit, Paper, Setup

PAPER: Final = Paper("tinymq", "Shi et al., SENSORCOMM 2011, 12-17", 1)

TREES: Final = Axis("roots.count", "trees", "", tuple(range(1, 11)), 10, "1 to 10, as in the paper's Figs 3 to 6")

_BOTH: Final = ("tinymq", "pub2sub")
_HOPS: Final = ("query_path_hops", "query_hops_own_tree", "query_hops_all_trees")
_DELAYS: Final = ("notification_delay_ratio", "notification_delay_ratio_of_means")
_REPAIR: Final = ("rekeyed_nodes", "changed_nodes", "repair_messages")
_LOAD: Final = ("busiest_share", "load_gini", "busiest_rendezvous_share")

EXHIBITS: Final[dict[str, Exhibit]] = {
    exhibit.name: exhibit
    for exhibit in (
        Exhibit("fig-3", "tinymq", "Fig. 3", 16, "IV", "nodes that store a query", _BOTH, ("nodes_per_query",), TREES),
        Exhibit("fig-4", "tinymq", "Fig. 4", 16, "IV", "hops of a query", _BOTH, _HOPS, TREES),
        Exhibit("fig-5", "tinymq", "Fig. 5", 16, "IV", "notification delay", _BOTH, _DELAYS, TREES),
        Exhibit("fig-6", "tinymq", "Fig. 6", 16, "IV", "repair cost", ("tinymq",), _REPAIR, TREES),
        Exhibit(
            "load", "tinymq", "no figure", 14, "III.B", "load balance, claimed and not measured", _BOTH, _LOAD, TREES
        ),
    )
}

FAILING: Final = (0.05, 0.1, 0.3)
"""The fractions of nodes that fail in Fig. 6."""


@dataclass(frozen=True)
class Reading:
    """One way to fill in what the paper leaves open about its set-up."""

    name: str
    words: str
    settings: tuple[tuple[str, str], ...] = ()


RANDOM: Final = Reading("random", "sinks at random, W = 0.14")
READINGS: Final = (
    RANDOM,
    Reading(
        "edge",
        "sinks 25 m apart along the southern edge, W = 0.17",
        (("roots.placement", "edge"), ("roots.spacing", "25 m"), ("subscriptions.widest", "0.17")),
    ),
    Reading("k-centre", "each sink far from the others, W = 0.14", (("roots.placement", "k-centre"),)),
)
"""W is the side of the widest query, as a fraction of the domain."""

CHOSEN_AFTERWARDS: Final = (
    "W and the places of the sinks were chosen after seeing results: W so that PUB-2-SUB+ comes near 23 nodes, the edge"
    " because 18 → 10 hops appear there. A pair that is hit shows that one reading explains both numbers, not more."
)


@dataclass(frozen=True)
class Anchor:
    """A number of the text, at ten trees, and the metrics that it may mean."""

    exhibit: str
    protocol: str
    value: float
    metrics: tuple[str, ...]


ANCHORS: Final = (
    Anchor("fig-3", "pub2sub", 23, ("nodes_per_query",)),
    Anchor("fig-3", "tinymq", 18, ("nodes_per_query",)),
    Anchor("fig-4", "pub2sub", 18, _HOPS),
    Anchor("fig-4", "tinymq", 10, _HOPS),
)
"""Section IV: "when the number of trees is 10 ... decreases from 23 to 18, ... from 18 to 10"."""

_TREES_APART: Final = "with one tree the two systems store the same; the claim is judged from two trees on"

CLAIMS: Final[tuple[Claim, ...]] = (
    Order("fig-3", "IV", "TinyMQ stores a query at fewer nodes", "nodes_per_query", "pub2sub", "tinymq", _TREES_APART),
    *(
        Order("fig-4", "IV", f"a query of TinyMQ takes fewer hops ({words})", metric, "pub2sub", "tinymq")
        for metric, words in zip(_HOPS, ("path", "own tree", "all trees"), strict=True)
    ),
    Trend("fig-4", "IV", "hops of TinyMQ fall with more trees (own tree)", "tinymq", _HOPS[1], "falls"),
    Order("fig-5", "IV", "TinyMQ notifies with less delay (mean of ratios)", _DELAYS[0], "pub2sub", "tinymq"),
    Order("fig-5", "IV", "TinyMQ notifies with less delay (ratio of means)", _DELAYS[1], "pub2sub", "tinymq"),
    Trend("fig-6", "IV", "with more trees fewer nodes are affected (re-keyed)", "tinymq", "rekeyed_nodes", "falls"),
    Trend(
        "fig-6",
        "IV",
        "with more trees fewer nodes are affected (any state)",
        "tinymq",
        "changed_nodes",
        "falls",
        note="the text says both: most nodes must update their distances, and fewer are affected with more trees",
    ),
    Order(
        "load",
        "III.B",
        "TinyMQ's load balance is better than PUB-2-SUB+'s (busiest node)",
        _LOAD[0],
        "pub2sub",
        "tinymq",
    ),
    Order("load", "III.B", "TinyMQ's load balance is better than PUB-2-SUB+'s (Gini)", _LOAD[1], "pub2sub", "tinymq"),
)


def setup(protocol: str, trees: float, reading: Reading = RANDOM, failing: float = 0.0) -> Setup:
    """What has to be run for one point; what is the built-in scenario's own default is not said again."""
    settings = list(reading.settings)
    if trees != TREES.default:
        settings.append((TREES.key, TREES.written(trees)))
    if failing:
        settings.append(("failures.fraction", f"{failing:g}"))
    return Setup("tinymq", protocol, tuple(settings))


def setups() -> Iterator[Setup]:
    """Everything that has to be run: the default first, then tree by tree."""
    for reading in READINGS:
        for trees in reversed(TREES.values):
            for protocol in _BOTH:
                yield setup(protocol, trees, reading)
    for failing in FAILING:
        for trees in TREES.values:
            yield setup("tinymq", trees, failing=failing)
