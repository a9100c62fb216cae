"""Every hop of every event and notification: the full log of an overlay, worked out only on request.

A run itself needs to know where messages end and how many hops they took. Since nothing changes while events are
published, their paths can be walked once more afterwards, and a run without a full log pays nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import engine
from serai.overlay.engine.answers import Arrivals
from serai.overlay.engine.graph import Numbers, Places
from serai.overlay.engine.keys import RendezvousKeys
from serai.overlay.engine.network import Network
from serai.overlay.engine.rendezvous import RoutingParameters, next_hop_from_anywhere
from serai.overlay.engine.state import NONE, Layer
from serai.overlay.engine.subqueries import Subqueries

HOPS = ("event", "notification")
"""What makes a hop: an event on its way to the rendezvous, or a notification on its way to the subscriber."""


class Hops(NamedTuple):
    """Every hop, by event and tree: first to the rendezvous, then back with each notification."""

    event: Numbers
    sender: Numbers
    receiver: Numbers
    addressee: Numbers  # the subscriber's node; NONE on the way to the rendezvous
    kind: NDArray[np.int8]  # place in `HOPS`


class Losses(NamedTuple):
    """Events that found no rendezvous in a tree, and the node where each was lost."""

    event: Numbers
    node: Numbers


class Keys(NamedTuple):
    """The key of each node in each of its trees, and again, `mended`, after failures."""

    node: Numbers
    tree: Numbers
    parent: Numbers
    depth: Numbers
    head: NDArray[np.int64]  # the first bits of the key, zeros behind it
    length: Numbers
    mended: NDArray[np.bool_]


class FullLog(NamedTuple):
    """Everything that happened to events, and the keys that they went by."""

    hops: Hops
    losses: Losses
    keys: Keys | None = None  # None: written before there were any in the log


class _Paths(NamedTuple):
    """Hops one after the other: which message makes each, and as its how-manieth."""

    message: Places
    step: Places
    sender: Numbers
    receiver: Numbers


def keys_of(layers: Sequence[Layer], mended: Sequence[Layer]) -> Keys:
    """The keys of all nodes that have one, by layer, tree and node; those of the mended layers after the others."""
    parts = []
    for layer, after in (*((layer, False) for layer in layers), *((layer, True) for layer in mended)):
        nodes = layer.nodes
        order = np.argsort(nodes["tree"], kind="stable")
        order = order[nodes["tree"][order] != NONE].astype(np.int32)
        columns = (nodes[name][order] for name in ("tree", "parent", "depth", "head", "length"))
        parts.append((order, *columns, np.full(len(order), after)))
    return Keys(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def full_log_of(
    network: Network, arrivals: Arrivals, out: _Paths, subqueries: Subqueries, along: tuple[Places, Places]
) -> FullLog:
    """All hops and losses; `out`: the paths of the arrivals, `along`: the arrival and the subquery of notifications."""
    arrival_of, subquery_of = along
    back = _back_along(subqueries, subquery_of)
    arrival = np.concatenate([out.message, arrival_of[back.message]])
    told = network.subscriber[subqueries.query[subquery_of[back.message]]]
    kind = np.repeat(np.arange(2, dtype=np.int8), [len(out.message), len(back.message)])
    step, message, sender, receiver = (
        np.concatenate([getattr(out, name), getattr(back, name)]) for name in ("step", "message", "sender", "receiver")
    )
    order = np.lexsort((step, message, kind, arrival))  # arrivals are by event and tree
    addressee = np.concatenate([np.full(len(out.message), NONE, np.int32), told])
    hops = Hops(arrivals.event[arrival[order]], sender[order], receiver[order], addressee[order], kind=kind[order])
    return FullLog(hops, _losses(network, arrivals, out))


def paths_to_rendezvous(
    network: Network,
    layers: Sequence[Layer],
    parameters: RoutingParameters,
    rendezvous_keys: RendezvousKeys,
    arrivals: Arrivals,
) -> _Paths:
    """The path of each arrival from the publisher to where it ended."""
    parts = []
    for layer in layers:
        rows = np.flatnonzero(np.isin(arrivals.tree, layer.trees))
        event, hops = arrivals.event[rows], arrivals.hops[rows]
        tree = np.searchsorted(layer.trees, arrivals.tree[rows]).astype(np.int32)
        sender, receiver = np.empty((2, int(hops.sum())), np.int32)
        _walk(layer, parameters, network.publisher[event], rendezvous_keys[event], tree, hops, sender, receiver)
        parts.append(_Paths(np.repeat(rows, hops), _steps(hops), sender, receiver))
    return _Paths(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@engine
def _walk(
    layer: Layer, parameters: RoutingParameters, publisher: Numbers, rendezvous_key: RendezvousKeys, tree: Numbers,
    hops: Numbers, sender: Numbers, receiver: Numbers,
) -> None:  # fmt: skip
    """The way of each event again, hop by hop; how many hops there are is known."""
    row = 0
    for event in range(len(rendezvous_key)):
        node = publisher[event]
        for _ in range(hops[event]):
            hop = next_hop_from_anywhere(layer, parameters, node, rendezvous_key[event], tree[event])
            sender[row], receiver[row] = node, hop
            node = hop
            row += 1


def _steps(hops: Numbers) -> Places:
    """0, 1, 2 ... for the hops of each message."""
    start = np.cumsum(hops) - hops
    return np.arange(int(hops.sum())) - np.repeat(start, hops)


def _back_along(subqueries: Subqueries, subquery_of: Places) -> _Paths:
    """The path of each notification: the way back of the subquery that brought it about."""
    parts: list[tuple[Places, Places, Numbers, Numbers]] = []
    message, here, step = np.arange(len(subquery_of)), subquery_of, 0
    while len(message):
        before = subqueries.back[here]
        goes = before != NONE
        message, here, before = message[goes], here[goes], before[goes]
        parts.append((message, np.full(len(message), step), subqueries.node[here], subqueries.node[before]))
        here, step = before, step + 1
    nothing = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32)
    return _Paths(*(np.concatenate(column) for column in zip(nothing, *parts, strict=True)))


def _losses(network: Network, arrivals: Arrivals, out: _Paths) -> Losses:
    """Lost arrivals, where their paths ended."""
    end = network.publisher[arrivals.event]
    last = out.step == arrivals.hops[out.message] - 1
    end[out.message[last]] = out.receiver[last]
    lost = arrivals.node == NONE
    return Losses(arrivals.event[lost], end[lost])
