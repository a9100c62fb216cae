"""Every metric of a run of an overlay, defined once."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serai.core.energy import Radio, receive_pj, transmit_pj
from serai.core.interested import count_interested
from serai.log.metrics import Definition
from serai.overlay.engine.run import KINDS, Damage, Load, Stage
from serai.overlay.engine.state import NONE
from serai.overlay.log import OverlayRun

Counts = NDArray[np.int64]

_PJ_PER_J: Final = 1e12

DEFINITIONS: Final[dict[str, Definition]] = {
    "protocol": Definition("", "The protocol's name."),
    "seed": Definition("", "The seed of the run."),
    "nodes": Definition("", "Nodes of the network."),
    "trees": Definition("", "Trees, one for each root."),
    "events": Definition("", "Events published."),
    "subscriptions": Definition("", "Subscriptions (queries)."),
    "delivery_ratio": Definition("fraction", "Wanted pairs whose subscriber was notified, of all."),
    "wanted_pairs": Definition("", "Pairs of an event and a subscription that it matches."),
    "delivered_pairs": Definition("", "Wanted pairs whose subscriber was notified."),
    "duplicates": Definition("", "Notifications of an event that the subscriber had been notified of already."),
    "lost_events": Definition("", "Events that reached no rendezvous in some tree they were sent to."),
    "nodes_per_query": Definition("", "Nodes that store a query, in all trees together."),
    "query_path_hops": Definition("", "Hops from a subscriber to a node that stores its query, on average."),
    "query_hops_own_tree": Definition("", "Transmissions of a query in the subscriber's own tree."),
    "query_hops_all_trees": Definition("", "Transmissions of a query in all trees together."),
    "notification_delay_ratio": Definition(
        "", "Hops over the rendezvous, over those of the shortest path: the mean of the ratios."
    ),
    "notification_delay_ratio_of_means": Definition("", "The same as the ratio of the means."),
    "notification_hops": Definition("", "Mean hops from publisher over rendezvous to subscriber."),
    "shortest_hops": Definition("", "Mean hops from publisher to subscriber on the shortest path."),
    "transmissions_per_event": Definition("", "Transmissions on the way to the rendezvous, per event."),
    "notification_transmissions_per_event": Definition("", "Transmissions of notifications, per event."),
    "busiest_share": Definition("fraction", "The busiest node's share of all messages sent and received."),
    "load_gini": Definition("", "Gini coefficient of the messages per node: 0 even, 1 all at one node."),
    "busiest_rendezvous_share": Definition("fraction", "Share of the events that meet at one node, the busiest."),
    "state_per_node": Definition("", "Keys that a node knows and query messages that it keeps, on average."),
    "state_per_node_max": Definition("", "The same for the node with most."),
    "info_messages": Definition("", "Advertisements sent until the trees stood."),
    "energy_j": Definition("J", "Energy that all nodes spent on events, queries and notifications."),
    "control_energy_j": Definition("J", "Energy that all nodes spent on advertisements."),
    "busiest_energy_j": Definition("J", "Energy of the node that spent most on events, queries and notifications."),
    "failed_nodes": Definition("", "Nodes that failed."),
    "cut_off_nodes": Definition("", "Living nodes without a path to any root."),
    "rekeyed_nodes": Definition("", "Living nodes that lost a key and had to join anew."),
    "changed_nodes": Definition("", "Living nodes whose key or distance to some root changed."),
    "repair_messages": Definition("", "Messages of the repair: news, requests and answers, queries handed on."),
    "handed_off_messages": Definition("", "Query messages from parents to new children."),
    "resubscription_messages": Definition("", "Transmissions when all living subscribers ask again."),
    "delivery_ratio_unrepaired": Definition("fraction", "Of pairs of living nodes, before anybody knows of the dead."),
    "delivery_ratio_repaired": Definition("fraction", "The same when trees are mended and queries handed on."),
    "delivery_ratio_renewed": Definition("fraction", "The same when all subscribers have asked again."),
}
"""Every metric by name; `docs/metrics.md` has the formulas."""


@dataclass(frozen=True, repr=False)
class OverlayMetrics:
    """All metrics of one run; `DEFINITIONS` says what each of them is."""

    protocol: str
    seed: int
    nodes: int
    trees: int
    events: int
    subscriptions: int
    delivery_ratio: float
    wanted_pairs: int
    delivered_pairs: int
    duplicates: int
    lost_events: int
    nodes_per_query: float
    query_path_hops: float
    query_hops_own_tree: float
    query_hops_all_trees: float
    notification_delay_ratio: float
    notification_delay_ratio_of_means: float
    notification_hops: float
    shortest_hops: float
    transmissions_per_event: float
    notification_transmissions_per_event: float
    busiest_share: float
    load_gini: float
    busiest_rendezvous_share: float
    state_per_node: float
    state_per_node_max: float
    info_messages: int
    energy_j: float
    control_energy_j: float
    busiest_energy_j: float
    failed_nodes: int
    cut_off_nodes: float
    rekeyed_nodes: float
    changed_nodes: float
    repair_messages: float
    handed_off_messages: float
    resubscription_messages: float
    delivery_ratio_unrepaired: float
    delivery_ratio_repaired: float
    delivery_ratio_renewed: float

    def as_dict(self) -> dict[str, str | int | float | None]:
        """Every metric by name, ready for JSON: None where there is no finite number."""
        return {metric.name: _finite(getattr(self, metric.name)) for metric in fields(self)}

    def __repr__(self) -> str:
        return (
            f"OverlayMetrics({self.protocol}, seed {self.seed}, {self.trees} trees:"
            f" {self.delivery_ratio:.1%} delivered, {self.nodes_per_query:.1f} nodes per query,"
            f" delay ratio {self.notification_delay_ratio:.2f})"
        )


def _finite(value: str | int | float) -> str | int | float | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def measure_overlay(run: OverlayRun) -> OverlayMetrics:
    """Every metric of a run."""
    network, outcome = run.network, run.outcome
    return OverlayMetrics(
        protocol=run.protocol,
        seed=run.seed,
        nodes=len(network.names),
        trees=len(network.roots),
        events=len(network.publisher),
        subscriptions=len(network.subscriber),
        lost_events=len(np.unique(outcome.arrivals.event[outcome.arrivals.node == NONE])),
        info_messages=int(outcome.load.sent[KINDS.index("info")].sum()),
        **_deliveries(run),
        **_queries(run),
        **_delays(run),
        **_loads(run),
        **_energy(run),
        **_repair(outcome.damage),
    )


def _ratio(part: float, whole: float) -> float:
    """part / whole, NaN of nothing; plain numbers whatever came in."""
    return float(part) / float(whole) if whole else math.nan


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else math.nan


def _deliveries(run: OverlayRun) -> dict[str, Any]:
    network, told = run.network, run.outcome.notifications
    wanted = int(count_interested(network.values, network.low, network.high).sum())
    delivered = int((~told.again).sum())
    events = len(network.publisher)
    sent = run.outcome.load.sent.sum(axis=1)
    return {
        "wanted_pairs": wanted,
        "delivered_pairs": delivered,
        "delivery_ratio": _ratio(delivered, wanted),
        "duplicates": int(told.again.sum()),
        "transmissions_per_event": _ratio(sent[KINDS.index("event")], events),
        "notification_transmissions_per_event": _ratio(sent[KINDS.index("notification")], events),
    }


def _queries(run: OverlayRun) -> dict[str, Any]:
    """Where queries are stored, and how far they had to go."""
    messages, count = run.outcome.queries, len(run.network.subscriber)
    own = own_trees(run)[run.network.subscriber]
    sent = messages.back != NONE
    stored = np.stack([messages.query, messages.tree, messages.node])[:, messages.stays]
    return {
        "nodes_per_query": _ratio(len(np.unique(stored, axis=1).T), count),
        "query_path_hops": _mean(messages.hops[messages.stays]),
        "query_hops_own_tree": _ratio((sent & (messages.tree == own[messages.query])).sum(), count),
        "query_hops_all_trees": _ratio(sent.sum(), count),
    }


def own_trees(run: OverlayRun) -> NDArray[np.int32]:
    """The own tree of each node."""
    places, nodes = run.outcome.tree_places, len(run.network.names)
    layers = run.scenario.protocol.layers(len(run.network.roots))
    layer_of_tree = np.empty(len(run.network.roots), np.int64)
    for layer, trees in enumerate(layers):
        layer_of_tree[trees] = layer
    own_layer = np.array([run.scenario.protocol.own_layer(node, len(layers)) for node in range(nodes)], np.int64)
    is_own = layer_of_tree[places.tree] == own_layer[places.node]
    own = np.full(nodes, NONE, np.int32)
    own[places.node[is_own]] = places.tree[is_own]
    return own


def _delays(run: OverlayRun) -> dict[str, Any]:
    """How much longer than the shortest path; who is told by itself has no path to compare with."""
    told = run.outcome.notifications
    apart = ~told.again & (told.shortest > 0)
    hops, shortest = told.hops[apart], told.shortest[apart]
    return {
        "notification_delay_ratio": _mean(hops / shortest),
        "notification_delay_ratio_of_means": _ratio(hops.sum(), shortest.sum()),
        "notification_hops": _mean(hops),
        "shortest_hops": _mean(shortest),
    }


def _loads(run: OverlayRun) -> dict[str, Any]:
    outcome, graph = run.outcome, run.network.graph
    handled = messages_per_node(outcome.load)
    met = outcome.arrivals.node[outcome.arrivals.node != NONE]
    layers = len(run.scenario.protocol.layers(len(run.network.roots)))
    kept = np.bincount(outcome.queries.node, minlength=graph.nodes)
    state = (np.diff(graph.start) + 1) * layers + kept
    return {
        "busiest_share": _ratio(handled.max(initial=0), handled.sum()),
        "load_gini": gini(handled),
        "busiest_rendezvous_share": _ratio(np.bincount(met).max(initial=0), len(met)) if len(met) else math.nan,
        "state_per_node": _mean(state),
        "state_per_node_max": float(state.max(initial=0)),
    }


def messages_per_node(load: Load) -> Counts:
    """Events, queries and notifications that each node sent and received."""
    payload = [place for place, kind in enumerate(KINDS) if kind != "info"]
    handled: Counts = load.sent[payload].sum(axis=0) + load.received[payload].sum(axis=0)
    return handled


def gini(loads: Counts) -> float:
    """How unevenly a load is shared: 0 if all carry the same, towards 1 if one carries all; NaN of nothing."""
    total, count = int(loads.sum()), len(loads)
    if not total:
        return math.nan
    ranked = np.sort(loads)
    return float((2 * np.arange(1, count + 1) - count - 1) @ ranked / (count * total))


def _energy(run: OverlayRun) -> dict[str, Any]:
    """Every message is sent as far as the radio reaches, and costs whoever hears that it is meant for it."""
    scenario, load = run.scenario, run.outcome.load
    radio = scenario.radio
    model = Radio(
        radio.electronics_j_per_bit, radio.free_space_j_per_bit_m2, radio.multipath_j_per_bit_m4, radio.receive_costs
    )
    event, query, info = scenario.events.size_bits, scenario.subscriptions.size_bits, scenario.control.info_bits
    bits = dict(zip(KINDS, (event, query, event, info), strict=True))
    spent = np.stack(
        [
            load.sent[place] * transmit_pj(model, float(bits[kind]), radio.range_m)
            + load.received[place] * receive_pj(model, float(bits[kind]))
            for place, kind in enumerate(KINDS)
        ]
    )
    payload = spent[: KINDS.index("info")].sum(axis=0)
    return {
        "energy_j": int(payload.sum()) / _PJ_PER_J,
        "busiest_energy_j": int(payload.max(initial=0)) / _PJ_PER_J,
        "control_energy_j": int(spent[KINDS.index("info")].sum()) / _PJ_PER_J,
    }


def _repair(damage: Damage | None) -> dict[str, Any]:
    if damage is None:
        nothing = [name for name in DEFINITIONS if name.endswith(_REPAIR)]
        return {"failed_nodes": 0} | dict.fromkeys(nothing, math.nan)
    return {
        "failed_nodes": damage.failed,
        "cut_off_nodes": float(damage.cut_off),
        "rekeyed_nodes": float(damage.rekeyed),
        "changed_nodes": float(damage.changed),
        "repair_messages": float(damage.info_messages + damage.join_messages + damage.handed_off),
        "handed_off_messages": float(damage.handed_off),
        "resubscription_messages": float(damage.resubscribed),
        "delivery_ratio_unrepaired": _stage_ratio(damage.unrepaired),
        "delivery_ratio_repaired": _stage_ratio(damage.repaired),
        "delivery_ratio_renewed": _stage_ratio(damage.renewed),
    }


_REPAIR: Final = (
    "cut_off_nodes",
    "rekeyed_nodes",
    "changed_nodes",
    "repair_messages",
    "handed_off_messages",
    "resubscription_messages",
    "_unrepaired",
    "_repaired",
    "_renewed",
)


def _stage_ratio(stage: Stage) -> float:
    return _ratio(stage.delivered, stage.wanted)
