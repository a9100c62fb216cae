"""How a run of an overlay stands in tables, and comes back from them: its trees, and the messages that they carry.

An overlay has no clock: its links are contacts that never end, and times are null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from serai.log.columns import Columns, array, codes, lists, matrix, words
from serai.log.run import TableForm
from serai.log.tables import COUNT, INDEX, TEXT, WORD, column
from serai.overlay.engine.answers import Arrivals
from serai.overlay.engine.graph import Graph, graph_of_links
from serai.overlay.engine.hops import HOPS, FullLog, Hops, Keys, Losses
from serai.overlay.engine.network import Network
from serai.overlay.engine.run import KINDS, Damage, Load, Notifications, Outcome, QueryMessages, Stage, TreePlaces
from serai.overlay.engine.state import NONE
from serai.overlay.log import OverlayRun
from serai.overlay.sections import OverlayScenario

BITS_PER_BYTE: Final = 8

BROKERS = pa.schema(
    [
        column("node", INDEX, "number of the node"),
        column("root_of", INDEX, "the tree whose root it is; -1: of none"),
        column("fails", pa.bool_(), "whether it fails after the events were published"),
    ]
)

MEMBERSHIPS = pa.schema(
    [
        column("node", INDEX, "number of the node"),
        column("tree", INDEX, "a tree in which it stands"),
        column("parent", INDEX, "its parent there; -1: it is the root"),
        column("depth", INDEX, "hops to the root along the tree"),
        column("key_length", INDEX, "bits of its key there"),
    ]
)

QUERY_MESSAGES = pa.schema(
    [
        column("subscription", INDEX, "number of the subscription"),
        column("tree", INDEX, "the tree that this message is for"),
        column("node", INDEX, "where it arrived"),
        column("back", COUNT, "row of the message that brought it to the sender; -1: not sent, the subscriber's own"),
        column("hops", INDEX, "hops from the subscriber"),
        column("stays", pa.bool_(), "whether the node stores the query: it is a rendezvous of it"),
    ]
)

ARRIVALS = pa.schema(
    [
        column("event", INDEX, "number of the event"),
        column("tree", INDEX, "the tree that it was sent to"),
        column("node", INDEX, "its rendezvous there; -1: it was lost"),
        column("hops", INDEX, "hops from the publisher"),
    ]
)

NOTIFICATIONS = pa.schema(
    [
        column("event", INDEX, "number of the event"),
        column("subscription", INDEX, "the subscription that it matches, and whose node was told"),
        column("tree", INDEX, "the tree in which they met"),
        column("hops", INDEX, "hops from the publisher via the rendezvous to the subscriber"),
        column(
            "shortest", INDEX, "hops from the publisher to the subscriber on the shortest path; -1: not searched for"
        ),
        column("again", pa.bool_(), "whether the subscriber had been told of this event before, by another tree"),
    ]
)

LOAD = pa.schema(
    [
        column("node", INDEX, "number of the node"),
        column("kind", WORD, "`event`, `query`, `notification` or `info` (an advertisement)"),
        column("sent", COUNT, "messages of this kind it sent"),
        column("received", COUNT, "messages of this kind it received"),
    ]
)

KEYS = pa.schema(
    [
        column("node", INDEX, "number of the node"),
        column("tree", INDEX, "a tree in which it has a key"),
        column("parent", INDEX, "its parent there; -1: it is the root"),
        column("depth", INDEX, "hops to the root along the tree"),
        column("key", TEXT, "the bits of its key that rendezvous keys are compared with"),
        column("key_length", INDEX, "bits of the whole key"),
        column("mended", pa.bool_(), "whether it has this key after the failures"),
    ]
)

OVERLAY_TABLES = {
    "brokers": BROKERS,
    "memberships": MEMBERSHIPS,
    "query_messages": QUERY_MESSAGES,
    "arrivals": ARRIVALS,
    "notifications": NOTIFICATIONS,
    "load": LOAD,
}
FULL_OVERLAY_TABLES = {"keys": KEYS}


# --- Writing


def columns_of(run: OverlayRun) -> dict[str, Columns]:
    """The columns of each table."""
    network, outcome = run.network, run.outcome
    columns = {
        "nodes": _nodes(network),
        "tracks": {"node": np.empty(0, np.int32), "time_s": 0.0, "x_m": None, "y_m": None},
        "contacts": _links(network.graph),
        "events": _events(run),
        "subscriptions": _subscriptions(network),
        "deliveries": _deliveries(network, outcome.notifications),
        "brokers": _brokers(network),
        "memberships": outcome.tree_places._asdict(),
        "query_messages": outcome.queries._asdict() | {"subscription": outcome.queries.query},
        "arrivals": outcome.arrivals._asdict(),
        "notifications": outcome.notifications._asdict() | {"subscription": outcome.notifications.query},
        "load": _load(outcome.load),
    }
    if outcome.full is not None:
        columns |= {"transfers": _transfers(run, outcome.full.hops), "drops": _drops(outcome.full.losses)}
        columns |= {"keys": _keys(outcome.full.keys, _bits(run.scenario))} if outcome.full.keys else {}
    return columns


def _nodes(network: Network) -> Columns:
    return {
        "node": np.arange(len(network.names), dtype=np.int32),
        "name": list(network.names),
        "role": "node",
        "x_m": network.x_m,
        "y_m": network.y_m,
    }


def _links(graph: Graph) -> Columns:
    owner = np.repeat(np.arange(graph.nodes, dtype=np.int32), np.diff(graph.start))
    once = owner < graph.neighbors
    return {"a": owner[once], "b": graph.neighbors[once], "start_s": 0.0, "end_s": np.inf}


def _events(run: OverlayRun) -> Columns:
    network = run.network
    return {
        "event": np.arange(len(network.publisher), dtype=np.int32),
        "node": network.publisher,
        "time_s": None,
        "channel": "",
        "values": lists(network.values),
        "size_bytes": _size_bytes(run),
        "lifetime_s": np.inf,
        "target": -1,
        "transmissions": _transmissions(len(network.publisher), run.outcome),
    }


def _size_bytes(run: OverlayRun) -> float:
    return float(run.scenario.events.size_bits) / BITS_PER_BYTE


def _transmissions(events: int, outcome: Outcome) -> NDArray[np.int64]:
    """How often each event was sent: to its rendezvous in every tree, and from there in every notification."""
    arrivals, told = outcome.arrivals, outcome.notifications
    way = np.zeros((events, int(arrivals.tree.max(initial=-1)) + 1), np.int64)
    way[arrivals.event, arrivals.tree] = arrivals.hops
    sent: NDArray[np.int64] = way.sum(axis=1)
    np.add.at(sent, told.event, told.hops - way[told.event, told.tree])
    return sent


def _subscriptions(network: Network) -> Columns:
    return {
        "subscription": np.arange(len(network.subscriber), dtype=np.int32),
        "node": network.subscriber,
        "channel": "",
        "where": list(network.where),
        "low": lists(network.low),
        "high": lists(network.high),
        "from_s": -np.inf,
        "to_s": np.inf,
    }


def _deliveries(network: Network, told: Notifications) -> Columns:
    """The first notification of each event at each node, whichever of the node's subscriptions it was for."""
    node = network.subscriber[told.query]
    order = np.lexsort((told.hops, node, told.event))
    event, node, hops = told.event[order], node[order], told.hops[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (event[1:] != event[:-1]) | (node[1:] != node[:-1])
    return {"event": event[first], "node": node[first], "time_s": None, "hops": hops[first], "wanted": True}


def _brokers(network: Network) -> Columns:
    root_of = np.full(len(network.names), NONE, np.int32)
    root_of[network.roots] = np.arange(len(network.roots))
    return {"node": np.arange(len(network.names), dtype=np.int32), "root_of": root_of, "fails": network.fails}


def _load(load: Load) -> Columns:
    kinds, nodes = load.sent.shape
    return {
        "node": np.tile(np.arange(nodes, dtype=np.int32), kinds),
        "kind": words(np.repeat(np.arange(kinds, dtype=np.int8), nodes), KINDS),
        "sent": load.sent.ravel(),
        "received": load.received.ravel(),
    }


def _transfers(run: OverlayRun, hops: Hops) -> Columns:
    """Every hop; nobody fails before the events are published, so each is accepted."""
    own = {"kind": words(hops.kind, HOPS), "bytes": _size_bytes(run), "outcome": "accepted"}
    return hops._asdict() | own | {"start_s": None, "end_s": None, "stored": False, "moved": False}


def _drops(losses: Losses) -> Columns:
    return losses._asdict() | {"time_s": None, "reason": "lost", "addressee": -1, "held": False, "after": None}


def _bits(scenario: OverlayScenario) -> int:
    """How many bits a rendezvous key has."""
    return int(scenario.protocol.attribute_bits) * len(scenario.events.attributes)


def _keys(keys: Keys, bits: int) -> Columns:
    pairs = zip(keys.head.tolist(), keys.length.tolist(), strict=True)
    own = {"key": [f"{head:0{bits}b}"[:length] for head, length in pairs], "key_length": keys.length}
    return keys._asdict() | own


# --- Reading


def parts_from(scenario: OverlayScenario, said: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """The network and the outcome that were written as these tables."""
    return {
        "network": _network_from(scenario, tables),
        "outcome": _outcome_from(said["counts"]["damage"], tables, _bits(scenario)),
    }


def _network_from(scenario: OverlayScenario, tables: Mapping[str, pa.Table]) -> Network:
    nodes, events, subscriptions = tables["nodes"], tables["events"], tables["subscriptions"]
    attributes = scenario.events.attributes
    root_of = array(tables["brokers"], "root_of", np.int32)
    roots = np.flatnonzero(root_of != NONE)
    one, other = (array(tables["contacts"], end, np.int32) for end in ("a", "b"))
    return Network(
        names=tuple(nodes["name"].to_pylist()),
        x_m=array(nodes, "x_m", np.float64),
        y_m=array(nodes, "y_m", np.float64),
        graph=graph_of_links(len(nodes), one, other),
        roots=roots[np.argsort(root_of[roots])].astype(np.int32),
        attributes=attributes,
        publisher=array(events, "node", np.int32),
        values=matrix(events, "values", len(attributes)),
        subscriber=array(subscriptions, "node", np.int32),
        low=matrix(subscriptions, "low", len(attributes)),
        high=matrix(subscriptions, "high", len(attributes)),
        where=tuple(subscriptions["where"].to_pylist()),
        fails=array(tables["brokers"], "fails", np.bool_),
    )


def _outcome_from(damage: Mapping[str, Any] | None, tables: Mapping[str, pa.Table], bits: int) -> Outcome:
    load = tables["load"]
    shape = (len(KINDS), len(tables["nodes"]))
    order = np.argsort(codes(load, "kind", KINDS), kind="stable")
    sent, received = (array(load, name, np.int64)[order].reshape(shape) for name in ("sent", "received"))
    return Outcome(
        tree_places=TreePlaces(*_columns(tables["memberships"], TreePlaces)),
        queries=QueryMessages(*_columns(tables["query_messages"], QueryMessages)),
        arrivals=Arrivals(*_columns(tables["arrivals"], Arrivals)),
        notifications=Notifications(*_columns(tables["notifications"], Notifications)),
        load=Load(sent, received),
        damage=None if damage is None else _damage_from(damage),
        full=_full_log_from(tables, bits) if "transfers" in tables else None,
    )


def _full_log_from(tables: Mapping[str, pa.Table], bits: int) -> FullLog:
    transfers, drops = tables["transfers"], tables["drops"]
    plain = {name: array(transfers, name, np.int32) for name in ("event", "sender", "receiver", "addressee")}
    losses = (array(drops, name, np.int32) for name in ("event", "node"))
    keys = _keys_from(tables["keys"], bits) if "keys" in tables else None
    return FullLog(Hops(kind=codes(transfers, "kind", HOPS), **plain), Losses(*losses), keys)


def _keys_from(table: pa.Table, bits: int) -> Keys:
    plain = {name: array(table, name, np.int32) for name in ("node", "tree", "parent", "depth")}
    heads = [int(key.ljust(bits, "0") or "0", 2) for key in table["key"].to_pylist()]
    length, mended = array(table, "key_length", np.int32), array(table, "mended", np.bool_)
    return Keys(head=np.array(heads, np.int64), length=length, mended=mended, **plain)


def _columns(table: pa.Table, rows: Any) -> list[Any]:
    """The columns of a table as arrays, in the order of the fields of what they make up."""
    names = ["subscription" if name == "query" else name for name in rows._fields]
    return [array(table, name, table.schema.field(name).type.to_pandas_dtype()) for name in names]


def _damage_from(said: Mapping[str, Any]) -> Damage:
    values: dict[str, Any] = {
        name: Stage(**value) if isinstance(value, dict) else value for name, value in said.items()
    }
    return Damage(**values)


FORM = TableForm(OVERLAY_TABLES, columns_of, parts_from, FULL_OVERLAY_TABLES)
