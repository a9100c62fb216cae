"""A key-based overlay over a whole network: trees grow, queries are placed, events published, nodes fail.

What each step does is told in docs/overlay/tinymq.md; the kernels stand beside this file.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.interested import count_interested
from serai.overlay.engine.answers import Arrivals, Boxes, held_by_nodes, match_arrivals, send_back, shelved, unbroken
from serai.overlay.engine.graph import Graph, Numbers, Places
from serai.overlay.engine.hops import FullLog, full_log_of, keys_of, paths_to_rendezvous
from serai.overlay.engine.keys import RendezvousKeys, cell_boxes, domains_of, rendezvous_keys_of
from serai.overlay.engine.network import Network
from serai.overlay.engine.paths import shortest_path_hops
from serai.overlay.engine.rendezvous import QueryBoxes, RoutingParameters, place_queries, route_events
from serai.overlay.engine.repair import Repaired, hand_off, repair, without
from serai.overlay.engine.state import NONE, Layer
from serai.overlay.engine.subqueries import Subqueries, joined_subqueries
from serai.overlay.engine.trees import plant
from serai.overlay.tinymq import MAPPINGS, OverlaySettings

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

KINDS = ("event", "query", "notification", "info")
"""What nodes send each other."""


COMPARED = 400
"""How many queries, the first ones, have their notifications compared with shortest paths, which takes a search of the
whole network for each. Queries are drawn one like the other, so the first ones are a sample of all."""


class Load(NamedTuple):
    """Messages of each kind (see `KINDS`) that each node sent and received: [kind, node]."""

    sent: Counts
    received: Counts


class TreePlaces(NamedTuple):
    """Every node's place in every tree it stands in, tree by tree."""

    node: Numbers
    tree: Numbers
    parent: Numbers  # NONE: a root
    depth: Numbers
    key_length: Numbers


class QueryMessages(NamedTuple):
    """Every message with a query, and for a start (with nobody before it) each query at its subscriber's node."""

    query: Numbers
    tree: Numbers
    node: Numbers  # where it arrived
    back: Places  # the message that brought it to the sender; NONE: the subscriber's own
    hops: Numbers  # from the subscriber
    stays: Flags  # whether the node is the rendezvous of some of its rendezvous keys, and so stores the query


class Notifications(NamedTuple):
    """Every notification that reached its subscriber, in the order of the events."""

    event: Numbers
    query: Numbers
    tree: Numbers
    hops: Numbers  # from the publisher over the rendezvous to the subscriber
    shortest: Numbers  # hops from the publisher to the subscriber on the shortest path; NONE: see `COMPARED`
    again: Flags  # the subscriber had this event already


class Stage(NamedTuple):
    """The same events once more, at some time after nodes have failed; only pairs of living nodes count."""

    wanted: int
    delivered: int


class Damage(NamedTuple):
    """What failures cost: the stages of the repair, and what had to be mended."""

    failed: int
    cut_off: int  # alive, but without a path to any root
    rekeyed: int
    changed: int  # rekeyed, or at another distance from some root
    info_messages: int  # if each node says each change once: what it lost, and what it has now
    join_messages: int  # a request and an answer for each key
    handed_off: int  # messages
    resubscribed: int  # messages
    unrepaired: Stage
    repaired: Stage
    renewed: Stage


class Outcome(NamedTuple):
    """All that happened."""

    tree_places: TreePlaces
    queries: QueryMessages
    arrivals: Arrivals
    notifications: Notifications
    load: Load
    damage: Damage | None
    full: FullLog | None = None  # only on request


class _Tables(NamedTuple):
    """What the steps share: the queries and events as the rules see them."""

    network: Network
    settings: OverlaySettings
    parameters: RoutingParameters
    rendezvous_keys: RendezvousKeys
    cells: QueryBoxes
    boxes: Boxes


def simulate(network: Network, settings: OverlaySettings, full_log: bool = False) -> Outcome:
    """Everything that happens in a network under the settings of a protocol; with a full log, hop by hop."""
    tables = _tables(network, settings)
    groups = settings.layers(len(network.roots))
    routing, bits = tables.parameters.routing, tables.parameters.bits
    layers = plant(network.graph, network.roots, groups, routing, bits, settings.zones == "subtree")
    subqueries = _placed(tables, layers, np.ones(len(network.names), np.bool_))
    load = _no_load(len(network.names))
    everyone = np.ones(len(network.names), np.bool_)
    arrivals = _published(tables, layers, everyone, load)
    along = _matched(tables, arrivals, subqueries, subqueries.stays)
    _count_queries(subqueries, load)
    _count_infos(network.graph, layers, load)
    notifications = _notified(tables, arrivals, subqueries, along, everyone, load)
    mended = _mended(tables, layers) if network.fails.any() else []
    keys = keys_of(layers, [part.layer for part in mended]) if full_log else None
    return Outcome(
        _tree_places(layers),
        QueryMessages(**{name: getattr(subqueries, name) for name in QueryMessages._fields}),
        arrivals,
        notifications,
        load,
        _damage(tables, layers, subqueries, mended) if mended else None,
        _hop_by_hop(tables, layers, arrivals, subqueries, along)._replace(keys=keys) if full_log else None,
    )


def _tables(network: Network, settings: OverlaySettings) -> _Tables:
    bits = settings.attribute_bits
    domains = domains_of(network.attributes)
    mapping = MAPPINGS.index(settings.mapping)
    return _Tables(
        network,
        settings,
        RoutingParameters(settings.routing_code(), mapping, bits, bits * len(network.attributes)),
        rendezvous_keys_of(network.values, domains, mapping, bits),
        QueryBoxes(*cell_boxes(network.low, network.high, domains, bits), network.subscriber),
        Boxes(network.low, network.high),
    )


# ---- queries


def _placed(tables: _Tables, layers: Sequence[Layer], asking: Flags) -> Subqueries:
    """The subqueries of all queries whose subscribers are asking."""
    parts = []
    for layer in layers:
        query, tree = _rows(tables, layers, layer, tables.network.subscriber, tables.settings.query_trees)
        asked = asking[tables.network.subscriber[query]]
        parts.append(place_queries(layer, tables.parameters, tables.cells, query[asked], tree[asked]))
    return joined_subqueries(parts)


def _rows(tables: _Tables, layers: Sequence[Layer], layer: Layer, node: Numbers, which: str) -> tuple[Numbers, Numbers]:
    """Which of the queries (or events) at these nodes go to which trees of the layer, by their place in it."""
    number, place = np.arange(len(node), dtype=np.int32), np.arange(len(layer.trees), dtype=np.int32)
    if which == "all":
        return np.repeat(number, len(place)), np.tile(place, len(number))
    own = own_trees(tables.settings, layers)[node]
    here = np.flatnonzero(np.isin(own, layer.trees)).astype(np.int32)
    return here, np.searchsorted(layer.trees, own[here]).astype(np.int32)


def own_trees(settings: OverlaySettings, layers: Sequence[Layer]) -> Numbers:
    """The own tree of each node: the one that it stands in, in its own layer; NONE if it was cut off from it."""
    nodes = np.arange(len(layers[0].nodes))
    own_layer = np.array([settings.own_layer(node, len(layers)) for node in range(len(nodes))], np.int64)
    own: Numbers = np.stack([layer.nodes["tree"] for layer in layers])[own_layer, nodes]
    return own


# ---- events and notifications


def _published(tables: _Tables, layers: Sequence[Layer], alive: Flags, load: Load) -> Arrivals:
    """Where the events of living publishers arrive, tree by tree."""
    parts = []
    sent, received = load.sent[KINDS.index("event")], load.received[KINDS.index("event")]
    for layer in layers:
        publisher = tables.network.publisher
        event, tree = _rows(tables, layers, layer, publisher, tables.settings.event_trees)
        speaks = alive[publisher[event]]
        event, tree = event[speaks], tree[speaks]
        # In the order of the publishers' keys: who is routed next walks over nodes that are still in the cache.
        nodes = layer.nodes[publisher[event]]
        order = np.lexsort((nodes["parent"], nodes["head"], nodes["tree"], tree))
        event, tree = event[order], tree[order]
        node, hops = route_events(
            layer, tables.parameters, publisher[event], tables.rendezvous_keys[event], tree, alive, sent, received
        )
        parts.append(Arrivals(event, layer.trees[tree], node, hops))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    return Arrivals(*(column[order] for column in columns))


class _Along(NamedTuple):
    """Notifications as they begin: which arrival, along which subquery."""

    arrival: Places
    subquery: Places


def _matched(tables: _Tables, arrivals: Arrivals, subqueries: Subqueries, looked_at: Flags) -> _Along:
    network, parameters = tables.network, tables.parameters
    nodes, trees = len(network.names), len(network.roots)
    shelves = shelved(subqueries, looked_at, nodes, trees, tables.cells, parameters.attribute_bits)
    keys, boxes = tables.rendezvous_keys, tables.boxes
    return _Along(*match_arrivals(arrivals, keys, network.values, boxes, subqueries, shelves, parameters))


def _notified(
    tables: _Tables, arrivals: Arrivals, subqueries: Subqueries, along: _Along, alive: Flags, load: Load
) -> Notifications:
    """The notifications in a network in which nobody has failed."""
    begun = np.bincount(along.subquery, minlength=len(subqueries.node))
    kind = KINDS.index("notification")
    send_back(subqueries, begun, alive, True, load.sent[kind], load.received[kind])
    event, query = arrivals.event[along.arrival], subqueries.query[along.subquery]
    hops = arrivals.hops[along.arrival] + subqueries.hops[along.subquery]
    # The first to come is the one with the fewest hops; of several the one in the tree with the lowest number.
    pair = event.astype(np.int64) * len(tables.network.low) + query
    if (np.diff(arrivals.event) > 0).all():  # in one tree only, so no pair comes twice
        order = np.argsort(pair, kind="stable")
    else:
        order = np.lexsort((subqueries.tree[along.subquery], hops, pair))
    event, query, hops = event[order], query[order], hops[order]
    again = np.zeros(len(event), np.bool_)
    again[1:] = (event[1:] == event[:-1]) & (query[1:] == query[:-1])
    return Notifications(
        event, query, subqueries.tree[along.subquery][order], hops, _shortest(tables.network, event, query), again
    )


def _hop_by_hop(
    tables: _Tables, layers: Sequence[Layer], arrivals: Arrivals, subqueries: Subqueries, along: _Along
) -> FullLog:
    network = tables.network
    out = paths_to_rendezvous(network, layers, tables.parameters, tables.rendezvous_keys, arrivals)
    return full_log_of(network, arrivals, out, subqueries, along)


def _shortest(network: Network, event: Numbers, query: Numbers) -> Numbers:
    """The hops on the shortest path from each event's publisher to the subscriber, for the queries compared by them."""
    path_hops = np.full(len(query), NONE, np.int32)
    pairs = np.flatnonzero(query < COMPARED)
    source, target = network.subscriber[query[pairs]], network.publisher[event[pairs]]
    path_hops[pairs] = shortest_path_hops(network.graph, source, target)
    return path_hops


# ---- what nodes have to do


def _no_load(nodes: int) -> Load:
    return Load(np.zeros((len(KINDS), nodes), np.int64), np.zeros((len(KINDS), nodes), np.int64))


def _count_queries(subqueries: Subqueries, load: Load) -> None:
    kind, nodes = KINDS.index("query"), load.sent.shape[1]
    sent = subqueries.back != NONE
    load.sent[kind] += np.bincount(subqueries.node[subqueries.back[sent]], minlength=nodes)
    load.received[kind] += np.bincount(subqueries.node[sent], minlength=nodes)


def _count_infos(graph: Graph, layers: Sequence[Layer], load: Load) -> None:
    """Advertisements, heard by all neighbours: a node sends one whenever something in its state is new.

    All roots begin at once, so news of a root that is h hops away comes in round h: a node speaks once for each
    different distance among its roots, whether it has one key or several.
    """
    hops = np.sort(np.concatenate([layer.hops for layer in layers]), axis=0)
    rounds = 1 + (np.diff(hops, axis=0) > 0).sum(axis=0)
    kind = KINDS.index("info")
    load.sent[kind] += rounds
    owner = np.repeat(np.arange(graph.nodes), np.diff(graph.start))
    load.received[kind] += np.bincount(owner, weights=rounds[graph.neighbors], minlength=graph.nodes).astype(np.int64)


def _tree_places(layers: Sequence[Layer]) -> TreePlaces:
    parts = []
    for layer in layers:
        nodes = layer.nodes
        order = np.argsort(nodes["tree"], kind="stable").astype(np.int32)
        parts.append([order, *(nodes[name][order] for name in ("tree", "parent", "depth", "length"))])
    return TreePlaces(*(np.concatenate(column) for column in zip(*parts, strict=True)))


# ---- failures


def _mended(tables: _Tables, layers: Sequence[Layer]) -> list[Repaired]:
    """The layers without the nodes that fail, when the others have mended them."""
    dead = tables.network.fails
    left = without(tables.network.graph, dead)
    return [repair(left, layer, dead, tables.parameters) for layer in layers]


def _damage(tables: _Tables, layers: Sequence[Layer], subqueries: Subqueries, mended: Sequence[Repaired]) -> Damage:
    """Let nodes fail and the others mend it, and publish all events again at each stage."""
    network, dead = tables.network, tables.network.fails
    alive = ~dead
    unrepaired = _stage(tables, layers, subqueries, alive)

    after = [part.layer for part in mended]
    kept = subqueries
    for part in mended:
        held = held_by_nodes(subqueries, alive[subqueries.node], len(network.names))
        kept = hand_off(part, tables.parameters, tables.cells, kept, held)
    handed_off = len(kept.node) - len(subqueries.node)
    repaired = _stage(tables, after, kept, alive)

    again = _placed(tables, after, alive)
    renewed = _stage(tables, after, joined_subqueries([kept, again]), alive)
    changed, rekeyed = _changed(layers, after, alive)
    return Damage(
        failed=int(dead.sum()),
        cut_off=int((alive & (np.stack([layer.nodes["tree"] for layer in after]) == NONE).all(axis=0)).sum()),
        rekeyed=int(rekeyed.sum()),
        changed=int(changed.sum()),
        info_messages=int(changed.sum() + rekeyed.sum()),
        join_messages=2 * sum(len(part.joined) for part in mended),
        handed_off=handed_off,
        resubscribed=int((again.back != NONE).sum()),
        unrepaired=unrepaired,
        repaired=repaired,
        renewed=renewed,
    )


def _changed(before: Sequence[Layer], after: Sequence[Layer], alive: Flags) -> tuple[Flags, Flags]:
    """The living nodes whose state changed, and among them those that lost their key."""
    changed, rekeyed = np.zeros(len(alive), np.bool_), np.zeros(len(alive), np.bool_)
    for old, new in zip(before, after, strict=True):
        changed |= (old.hops != new.hops).any(axis=0)
        rekeyed |= _lost_keys(old, alive)
    return (changed | rekeyed) & alive, rekeyed & alive


def _lost_keys(layer: Layer, alive: Flags) -> Flags:
    """The nodes with a dead ancestor."""
    lost, parent = ~alive, layer.nodes["parent"]
    for depth in range(1, int(layer.nodes["depth"].max(initial=0)) + 1):
        level = np.flatnonzero(layer.nodes["depth"] == depth)
        lost[level] |= lost[parent[level]]
    return lost


def _stage(tables: _Tables, layers: Sequence[Layer], subqueries: Subqueries, alive: Flags) -> Stage:
    """Publish all events of living publishers; who of the living subscribers gets them?"""
    network = tables.network
    arrivals = _published(tables, layers, alive, _no_load(len(network.names)))
    along = _matched(tables, arrivals, subqueries, alive[subqueries.node])
    reaches = unbroken(subqueries, alive)[along.subquery]
    event, query = arrivals.event[along.arrival][reaches], subqueries.query[along.subquery][reaches]
    delivered = np.unique(event.astype(np.int64) * max(1, len(network.low)) + query)
    asks = alive[network.subscriber]
    wanted = count_interested(network.values[alive[network.publisher]], network.low[asks], network.high[asks])
    return Stage(int(wanted.sum()), len(delivered))
