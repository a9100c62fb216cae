"""Every metric of a run of an overlay, defined once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serai.core.energy import Radio, receive_pj, transmit_pj
from serai.core.interested import count_interested
from serai.core.statistics import t_quantile
from serai.log.losses import loss_metrics
from serai.log.metrics import Metrics, mean, metric, ratio
from serai.overlay.engine.run import COMPARED, KINDS, Damage, Load
from serai.overlay.engine.state import NONE
from serai.overlay.log import OverlayRun
from serai.overlay.losses import losses_of

Counts = NDArray[np.int64]

_PJ_PER_J: Final = 1e12


@dataclass(frozen=True, kw_only=True, repr=False)
class OverlayMetrics(Metrics):
    """All metrics of one run of an overlay; `docs/overlay/index.md` says more."""

    nodes: int = metric(says="Nodes in the network.")
    trees: int = metric(says="Trees, one for each root.")
    events: int = metric(says="Events published.")
    subscriptions: int = metric(says="Subscriptions (queries).")
    duplicates: int = metric(
        better=-1, says="Notifications of an event of which the subscriber had already been notified."
    )
    lost_events: int = metric(
        better=-1, says="Events that failed to reach a rendezvous in at least one tree they were sent to."
    )
    nodes_per_query: float = metric(
        better=-1, says="Mean number of nodes that store a query, in all trees together.", chapter="cost"
    )
    query_path_hops: float = metric(better=-1, says="Mean hops from a subscriber to a node that stores its query.")
    query_hops_own_tree: float = metric(
        better=-1,
        says="Mean transmissions of a query in the subscriber's own tree.",
        label="query hops, own tree",
        chapter="cost",
    )
    query_hops_all_trees: float = metric(
        better=-1,
        says="Mean transmissions of a query in all trees together.",
        label="query hops, all trees",
        chapter="cost",
    )
    notification_delay_ratio: float = metric(
        better=-1,
        says=f"Hops via the rendezvous divided by hops on the shortest path: mean ratio, first {COMPARED} queries.",
    )
    notification_delay_ratio_margin: float = metric(
        says="Half the width of the 95 % interval of the mean ratio; 0 if all queries were compared."
    )
    notification_delay_ratio_of_means: float = metric(
        better=-1, says="Mean hops via the rendezvous divided by mean hops on the shortest path."
    )
    notification_hops: float = metric(better=-1, says="Mean hops from publisher via rendezvous to subscriber.")
    shortest_hops: float = metric(says="Mean hops from publisher to subscriber on the shortest path.")
    transmissions_per_event: float = metric(
        better=-1, says="Transmissions on the way to the rendezvous, per event.", chapter="cost"
    )
    notification_transmissions_per_event: float = metric(
        better=-1, says="Transmissions of notifications, per event.", chapter="cost"
    )
    busiest_share: float = metric(
        "fraction", better=-1, says="The busiest node's share of all messages sent and received.", chapter="cost"
    )
    load_gini: float = metric(
        better=-1, says="Gini coefficient of the messages per node: 0 even, 1 all at one node.", chapter="cost"
    )
    busiest_rendezvous_share: float = metric(
        "fraction", better=-1, says="The busiest rendezvous node's share of all arrivals of events.", chapter="cost"
    )
    state_per_node: float = metric(
        better=-1, says="Mean number of keys that a node knows and query messages that it keeps.", chapter="cost"
    )
    state_per_node_max: float = metric(
        better=-1, says="Keys and query messages at the node that has the most.", chapter="cost"
    )
    info_messages: int = metric(better=-1, says="Advertisements sent until the trees were complete.")
    energy_j: float = metric(
        "J", better=-1, says="Energy that all nodes spent on events, queries and notifications.", chapter="cost"
    )
    control_energy_j: float = metric(
        "J", better=-1, says="Energy that all nodes spent on advertisements.", chapter="cost"
    )
    busiest_energy_j: float = metric(
        "J",
        better=-1,
        says="Energy of the node that spent most on events, queries and notifications.",
        chapter="cost",
    )
    failed_nodes: int = metric(says="Nodes that failed.")
    cut_off_nodes: float = metric(says="Living nodes without a path to any root.")
    rekeyed_nodes: float = metric(better=-1, says="Living nodes that lost a key and had to join anew.")
    changed_nodes: float = metric(better=-1, says="Living nodes whose key or distance to some root changed.")
    repair_messages: float = metric(
        better=-1, says="Messages sent for the repair: news, requests and answers, and queries handed on."
    )
    handed_off_messages: float = metric(better=-1, says="Query messages from parents to new children.")
    resubscription_messages: float = metric(
        better=-1, says="Transmissions when all living subscribers renew their queries."
    )
    delivery_ratio_unrepaired: float = metric(
        "fraction", better=+1, says="Delivery ratio among living nodes before any failure has been noticed."
    )
    delivery_ratio_repaired: float = metric(
        "fraction", better=+1, says="Delivery ratio among living nodes once trees are mended and queries handed on."
    )
    delivery_ratio_renewed: float = metric(
        "fraction", better=+1, says="Delivery ratio among living nodes once all subscribers have renewed their queries."
    )

    def __repr__(self) -> str:
        return (
            f"OverlayMetrics({self.protocol}, seed {self.seed}, {self.trees} trees:"
            f" {self.delivery_ratio:.1%} delivered, {self.nodes_per_query:.1f} nodes per query,"
            f" delay ratio {self.notification_delay_ratio:.2f})"
        )


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
        **loss_metrics(losses_of(run)),
        **_queries(run),
        **_delays(run),
        **_loads(run),
        **_energy(run),
        **_repair(outcome.damage),
    )


def _deliveries(run: OverlayRun) -> dict[str, Any]:
    network, told = run.network, run.outcome.notifications
    wanted = int(count_interested(network.values, network.low, network.high).sum())
    delivered = int((~told.again).sum())
    events = len(network.publisher)
    sent = run.outcome.load.sent.sum(axis=1)
    return {
        "wanted_pairs": wanted,
        "delivered_pairs": delivered,
        "delivery_ratio": ratio(delivered, wanted),
        "duplicates": int(told.again.sum()),
        "transmissions_per_event": ratio(sent[KINDS.index("event")], events),
        "notification_transmissions_per_event": ratio(sent[KINDS.index("notification")], events),
    }


def _queries(run: OverlayRun) -> dict[str, Any]:
    """Where queries are stored, and how far they had to go."""
    messages, count = run.outcome.queries, len(run.network.subscriber)
    own = own_trees(run)[run.network.subscriber]
    sent = messages.back != NONE
    stored = np.stack([messages.query, messages.tree, messages.node])[:, messages.stays]
    return {
        "nodes_per_query": ratio(len(np.unique(stored, axis=1).T), count),
        "query_path_hops": mean(messages.hops[messages.stays]),
        "query_hops_own_tree": ratio((sent & (messages.tree == own[messages.query])).sum(), count),
        "query_hops_all_trees": ratio(sent.sum(), count),
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
    queries = len(run.network.subscriber)
    return {
        "notification_delay_ratio": mean(hops / shortest),
        "notification_delay_ratio_margin": margin_of_sample(hops / shortest, told.query[apart], queries),
        "notification_delay_ratio_of_means": ratio(hops.sum(), shortest.sum()),
        "notification_hops": mean(hops),
        "shortest_hops": mean(shortest),
    }


def margin_of_sample(values: NDArray[np.float64], query: NDArray[np.int32], queries: int) -> float:
    """Half the width of the 95 % interval of the mean, given the values of the first `COMPARED` of so many queries.

    Queries are what was drawn, not notifications: those of one query have the same path home. So the mean is a ratio
    of two sums over queries, of values and of how many there are; its variance follows from how far the two stray
    from that ratio, query by query.
    """
    if queries <= COMPARED or not len(values):
        return 0.0 if queries <= COMPARED else math.nan
    sums, counts = np.bincount(query, values, COMPARED), np.bincount(query, minlength=COMPARED)
    astray = sums - values.mean() * counts
    variance = (1 - COMPARED / queries) * (astray @ astray) / (COMPARED - 1) / COMPARED / counts.mean() ** 2
    return t_quantile(0.95, COMPARED - 1) * math.sqrt(variance)


def _loads(run: OverlayRun) -> dict[str, Any]:
    outcome, graph = run.outcome, run.network.graph
    handled = messages_per_node(outcome.load)
    met = outcome.arrivals.node[outcome.arrivals.node != NONE]
    layers = len(run.scenario.protocol.layers(len(run.network.roots)))
    kept = np.bincount(outcome.queries.node, minlength=graph.nodes)
    state = (np.diff(graph.start) + 1) * layers + kept
    return {
        "busiest_share": ratio(handled.max(initial=0), handled.sum()),
        "load_gini": gini(handled),
        "busiest_rendezvous_share": ratio(np.bincount(met).max(initial=0), len(met)) if len(met) else math.nan,
        "state_per_node": mean(state),
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
        return {"failed_nodes": 0} | dict.fromkeys(_AFTER_FAILURES, math.nan)
    repair = damage.info_messages + damage.join_messages + damage.handed_off
    counted = (damage.cut_off, damage.rekeyed, damage.changed, repair, damage.handed_off, damage.resubscribed)
    stages = (damage.unrepaired, damage.repaired, damage.renewed)
    values = (*map(float, counted), *(ratio(stage.delivered, stage.wanted) for stage in stages))
    return {"failed_nodes": damage.failed} | dict(zip(_AFTER_FAILURES, values, strict=True))


_AFTER_FAILURES: Final = (
    "cut_off_nodes",
    "rekeyed_nodes",
    "changed_nodes",
    "repair_messages",
    "handed_off_messages",
    "resubscription_messages",
    "delivery_ratio_unrepaired",
    "delivery_ratio_repaired",
    "delivery_ratio_renewed",
)
