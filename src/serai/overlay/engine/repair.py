"""What is lost with nodes that fail, and how the others mend it: docs/overlay/tinymq.md, "Joins, leaves and failures".

The fast twin of what the brokers (serai.overlay.broker.membership) agree on by messages.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel, rule, step
from serai.overlay.engine.answers import Held
from serai.overlay.engine.graph import Graph, Numbers, Places
from serai.overlay.engine.rendezvous import QueryBoxes, Rules, cut, enter, with_room
from serai.overlay.engine.state import NONE, Layer, Nodes, Pieces
from serai.overlay.engine.trees import grow, join, survey
from serai.overlay.tinymq import AS_PRINTED, is_prefix, touches

Flags = NDArray[np.bool_]


class Repaired(NamedTuple):
    """A layer after the repair, and who had to join anew, in the order of joining."""

    layer: Layer
    joined: Numbers


def without(graph: Graph, gone: Flags) -> Graph:
    """The graph without the links of some nodes; the nodes keep their numbers."""
    owner = np.repeat(np.arange(graph.nodes), np.diff(graph.start))
    left = ~gone[owner] & ~gone[graph.neighbors]
    start = np.zeros(graph.nodes + 1, np.int64)
    np.cumsum(np.bincount(owner[left], minlength=graph.nodes), out=start[1:])
    return Graph(start, graph.neighbors[left])


def repair(left: Graph, layer: Layer, dead: Flags, rules: Rules) -> Repaired:
    """Steps 1 and 2: keys that hung on the dead are lost, and their nodes join anew in the network that is `left`."""
    nodes = layer.nodes.copy()
    _lose_keys(nodes, dead, np.argsort(nodes["depth"], kind="stable"))
    return rejoin(left, nodes, layer, rules)


def rejoin(graph: Graph, nodes: Nodes, layer: Layer, rules: Rules) -> Repaired:
    """Step 2: nodes without a key join those that have one."""
    joined = _rejoin(graph, nodes, rules.bits)
    return Repaired(survey(graph, nodes, layer.roots, layer.trees, rules.routing), joined)


@kernel
def _lose_keys(nodes: Nodes, dead: Flags, by_depth: Places) -> None:
    lost = dead.copy()
    for node in by_depth:  # parents first
        parent = nodes[node].parent
        if nodes[node].tree != NONE and parent != NONE and lost[parent]:
            lost[node] = True
    for node in range(len(nodes)):
        if lost[node]:
            nodes[node].tree = nodes[node].parent = NONE
            nodes[node].nth = nodes[node].length = nodes[node].depth = 0
            nodes[node].head = 0


@kernel
def _rejoin(graph: Graph, nodes: Nodes, bits: int) -> Numbers:
    queue = np.empty(len(nodes), np.int32)
    had_key = np.empty(len(nodes), np.bool_)
    for node in range(len(nodes)):
        had_key[node] = nodes[node].tree != NONE
    count = 0
    for node in range(len(nodes)):
        if had_key[node]:
            continue
        for parent in graph.neighbors[graph.start[node] : graph.start[node + 1]]:
            if had_key[parent]:
                join(nodes, node, parent, _free_number(graph, nodes, parent), bits)
                queue[count] = node
                count += 1
                break
    count = grow(graph, nodes, queue, count, bits)
    return queue[:count].copy()


@rule
def _free_number(graph: Graph, nodes: Nodes, parent: int) -> int:
    """The lowest number that no child of the node has."""
    neighbors = graph.neighbors[graph.start[parent] : graph.start[parent + 1]]
    taken = np.zeros(len(neighbors) + 2, np.bool_)
    for other in neighbors:
        if nodes[other].parent == parent and nodes[other].nth < len(taken):
            taken[nodes[other].nth] = True
    nth = 1
    while taken[nth]:
        nth += 1
    return nth


def hand_off(repaired: Repaired, rules: Rules, boxes: QueryBoxes, pieces: Pieces, held: Held) -> Pieces:
    """Step 3: all pieces, with what each new child is given of its parent's. (The paper forgets it.)"""
    if rules.routing == AS_PRINTED:
        return pieces
    return _hand_off(repaired.layer, rules, boxes, repaired.joined, pieces, held)


@kernel
def _hand_off(layer: Layer, rules: Rules, boxes: QueryBoxes, joined: Numbers, pieces: Pieces, held: Held) -> Pieces:
    given_start = np.zeros(len(layer.nodes) + 1, np.int64)  # the new pieces of node x begin at given_start[x], ...
    given_end = np.zeros(len(layer.nodes) + 1, np.int64)  # ... and end here: all of them come at its joining
    count = len(pieces.node)
    for child in joined:
        own, parent = layer.nodes[child], layer.nodes[child].parent
        given_start[child] = count
        if own.length <= rules.bits:
            for place in range(held.start[parent], held.start[parent + 1]):
                pieces = _room_to_give(pieces, count, held.of[place])
                count = _give(layer, rules, boxes, pieces, count, held.of[place], child)
            for piece in range(given_start[parent], given_end[parent]):
                pieces = _room_to_give(pieces, count, piece)
                count = _give(layer, rules, boxes, pieces, count, piece, child)
        given_end[child] = count
    return cut(pieces, count)


@rule
def _room_to_give(pieces: Pieces, count: int, piece: int) -> Pieces:
    most = pieces.region_start[piece + 1] - pieces.region_start[piece]
    return with_room(pieces, count + 1, pieces.region_start[count] + most)


@step
def _give(layer: Layer, rules: Rules, boxes: QueryBoxes, pieces: Pieces, count: int, piece: int, child: int) -> int:
    """Send a new child those strings of a piece that its key begins, if there are any; how many pieces there are."""
    own, query = layer.nodes[child], pieces.query[piece]
    if pieces.tree[piece] != own.tree:
        return count
    end = pieces.region_start[count]
    for place in range(pieces.region_start[piece], pieces.region_start[piece + 1]):
        prefix, length = pieces.regions.prefix[place], pieces.regions.length[place]
        if length < own.length and is_prefix(prefix, length, own.head, rules.bits):
            prefix, length = own.head, own.length
        if length < own.length or not is_prefix(own.head, own.length, prefix, rules.bits):
            continue
        first, last = boxes.first[query], boxes.last[query]
        if touches(first, last, prefix, length, rules.mapping, rules.attribute_bits):
            pieces.regions.prefix[end], pieces.regions.length[end] = prefix, length
            end += 1
    if end == pieces.region_start[count]:
        return count
    enter(pieces, count, query, own.tree, child, piece, pieces.hops[piece] + 1)
    pieces.stays[count] = True
    pieces.region_start[count + 1] = end
    return count + 1
