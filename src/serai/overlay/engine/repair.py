"""What is lost with nodes that fail, and how the others mend it: docs/overlay/tinymq.md, "Joins, leaves and failures".

The fast twin of what the brokers (serai.overlay.broker.membership) agree on by messages. A key begins with the keys of
all ancestors, so one dead node takes the keys of its whole subtree with it, in that tree. The others keep
their keys and the subqueries they hold; only what new children take over has to be handed on to them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel, rule, step
from serai.overlay.engine.answers import Held
from serai.overlay.engine.graph import Graph, Numbers, Places
from serai.overlay.engine.rendezvous import QueryBoxes, RoutingParameters
from serai.overlay.engine.state import NONE, Layer, Nodes
from serai.overlay.engine.subqueries import Subqueries, add_subquery, trimmed, with_room
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


def repair(left: Graph, layer: Layer, dead: Flags, parameters: RoutingParameters) -> Repaired:
    """Steps 1 and 2: keys that hung on the dead are lost, and their nodes join anew in the network that is `left`."""
    nodes = layer.nodes.copy()
    _lose_keys(nodes, dead, np.argsort(nodes["depth"], kind="stable"))
    return rejoin(left, nodes, layer, parameters)


def rejoin(graph: Graph, nodes: Nodes, layer: Layer, parameters: RoutingParameters) -> Repaired:
    """Step 2: nodes without a key join those that have one."""
    joined = _rejoin(graph, nodes, parameters.bits)
    return Repaired(survey(graph, nodes, layer.roots, layer.trees, parameters.routing), joined)


@kernel
def _lose_keys(nodes: Nodes, dead: Flags, by_depth: Places) -> None:
    """Take the key from every node with a dead ancestor: by depth, a parent's loss is known before its children's."""
    lost = dead.copy()
    for node in by_depth:
        parent = nodes[node].parent
        if nodes[node].tree != NONE and parent != NONE and lost[parent]:
            lost[node] = True
    for node in range(len(nodes)):
        if lost[node]:
            nodes[node].tree = nodes[node].parent = NONE
            nodes[node].nth = nodes[node].length = nodes[node].depth = 0
            nodes[node].head = nodes[node].zone_head = nodes[node].zone_length = 0


@kernel
def _rejoin(graph: Graph, nodes: Nodes, bits: int) -> Numbers:
    """Let nodes without a key join, nearest to those that kept theirs first; who has joined, in that order.

    The first round asks who *had* a key when it began (`had_key`), not who has one by now: in the live network all of
    them ask at once, and a node that has just joined cannot yet have been heard. From then on `grow` goes on as in a
    new network.
    """
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
    """The lowest number that no child of the node has. The others keep theirs, so there may be gaps to fill."""
    neighbors = graph.neighbors[graph.start[parent] : graph.start[parent + 1]]
    taken = np.zeros(len(neighbors) + 2, np.bool_)  # some number up to the count of neighbours + 1 is always free
    for other in neighbors:
        if nodes[other].parent == parent and nodes[other].nth < len(taken):
            taken[nodes[other].nth] = True
    nth = 1
    while taken[nth]:
        nth += 1
    return nth


def hand_off(
    repaired: Repaired, parameters: RoutingParameters, boxes: QueryBoxes, subqueries: Subqueries, held: Held
) -> Subqueries:
    """Step 3: all subqueries, with what each new child is given of its parent's. (The paper forgets it.)"""
    if parameters.routing == AS_PRINTED:
        return subqueries
    return _hand_off(repaired.layer, parameters, boxes, repaired.joined, subqueries, held)


@kernel
def _hand_off(
    layer: Layer, parameters: RoutingParameters, boxes: QueryBoxes, joined: Numbers, subqueries: Subqueries, held: Held
) -> Subqueries:
    """Go through the new children in the order of joining: a parent has all of its subqueries before its child joins.

    What a parent holds is in two places: `held` says what lay there before, and what it was given itself, as a new
    child of somebody, was added in one go at its joining. A key longer than a rendezvous key begins none.
    """
    given_start = np.zeros(len(layer.nodes) + 1, np.int64)  # the new subqueries of node x begin at given_start[x], ...
    given_end = np.zeros(len(layer.nodes) + 1, np.int64)  # ... and end here: all of them come at its joining
    count = len(subqueries.node)
    for child in joined:
        own, parent = layer.nodes[child], layer.nodes[child].parent
        given_start[child] = count
        if own.length <= parameters.bits:
            for place in range(held.start[parent], held.start[parent + 1]):
                subqueries = _room_to_give(subqueries, count, held.of[place])
                count = _give_to_child(layer, parameters, boxes, subqueries, count, held.of[place], child)
            for subquery in range(given_start[parent], given_end[parent]):
                subqueries = _room_to_give(subqueries, count, subquery)
                count = _give_to_child(layer, parameters, boxes, subqueries, count, subquery, child)
        given_end[child] = count
    return trimmed(subqueries, count)


@rule
def _room_to_give(subqueries: Subqueries, count: int, subquery: int) -> Subqueries:
    most = subqueries.region_start[subquery + 1] - subqueries.region_start[subquery]
    return with_room(subqueries, count + 1, subqueries.region_start[count] + most)


@step
def _give_to_child(
    layer: Layer, parameters: RoutingParameters, boxes: QueryBoxes, subqueries: Subqueries, count: int, subquery: int,
    child: int,
) -> int:  # fmt: skip
    """Send a new child those rendezvous keys of a subquery that its key begins, if any; how many subqueries there are.

    A prefix of the region and the child's key either exclude each other, or one begins the other: then the longer of
    the two is what they have in common.
    """
    own, query = layer.nodes[child], subqueries.query[subquery]
    if subqueries.tree[subquery] != own.tree:
        return count
    end = subqueries.region_start[count]
    for place in range(subqueries.region_start[subquery], subqueries.region_start[subquery + 1]):
        prefix, length = subqueries.regions.prefix[place], subqueries.regions.length[place]
        if length < own.length and is_prefix(prefix, length, own.head, parameters.bits):
            prefix, length = own.head, own.length
        if length < own.length or not is_prefix(own.head, own.length, prefix, parameters.bits):
            continue
        first, last = boxes.first[query], boxes.last[query]
        if touches(first, last, prefix, length, parameters.mapping, parameters.attribute_bits):
            subqueries.regions.prefix[end], subqueries.regions.length[end] = prefix, length
            end += 1
    if end == subqueries.region_start[count]:
        return count
    add_subquery(subqueries, count, query, own.tree, child, subquery, subqueries.hops[subquery] + 1)
    subqueries.stays[count] = True
    subqueries.region_start[count + 1] = end
    return count + 1
