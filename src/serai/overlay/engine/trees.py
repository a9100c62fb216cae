"""TinyMQ III.B, for a whole network at once: how trees grow from their roots, what a node knows of its neighbours.

The fast twin of what the brokers (serai.overlay.broker.membership) agree on by messages. Nodes advertise first come,
first served: the roots in their order, then each node in the order in which it joined. Whoever hears an advertisement
(in order of number) and has no key yet becomes the advertiser's next child.
"""

from collections.abc import Sequence

import numpy as np

from serai.core.jit import kernel, rule
from serai.overlay.engine.graph import Graph, Numbers, Places, spread
from serai.overlay.engine.state import LINK, NONE, Layer, Links, Nodes, empty_nodes, records
from serai.overlay.tinymq import (
    AS_PRINTED,
    CHILD,
    OTHER_TREE,
    PARENT,
    SAME_TREE,
    TREE_EDGES,
    head_of_child,
    is_nearer,
)


def plant(graph: Graph, roots: Numbers, layers: Sequence[Sequence[int]], routing: int, bits: int) -> tuple[Layer, ...]:
    """The trees of a network, layer by layer: those of one layer grow at once and share the nodes out."""
    return tuple(_planted(graph, roots, np.array(trees, np.int32), routing, bits) for trees in layers)


def _planted(graph: Graph, roots: Numbers, trees: Numbers, routing: int, bits: int) -> Layer:
    nodes = empty_nodes(graph.nodes)
    nodes["tree"][roots[trees]] = trees
    queue = np.empty(graph.nodes, np.int32)
    queue[: len(trees)] = roots[trees]
    grow(graph, nodes, queue, len(trees), bits)
    return survey(graph, nodes, roots[trees], trees, routing)


def survey(graph: Graph, nodes: Nodes, roots: Numbers, trees: Numbers, routing: int) -> Layer:
    """The layer of nodes that have their keys: what each knows of its neighbours, and the paths to the roots."""
    link_start = np.zeros(graph.nodes + 1, np.int64)
    np.cumsum(_count_links(graph, nodes, routing), out=link_start[1:])
    links = records(int(link_start[-1]), LINK)
    _fill_links(graph, nodes, routing, links)
    hops, toward = _paths_to_roots(graph, nodes, roots)
    return Layer(trees, roots, nodes, link_start, links, hops, toward)


@kernel
def grow(graph: Graph, nodes: Nodes, queue: Numbers, count: int, bits: int) -> int:
    """Let the first `count` nodes of the queue advertise, then all who join; how many have advertised in the end."""
    taken = np.full(len(nodes) + 1, NONE, np.int32)  # [nth child] the last parent that was seen to have such a one
    first = 0
    while first < count:
        parent = queue[first]
        first += 1
        neighbors = graph.neighbors[graph.start[parent] : graph.start[parent + 1]]
        for other in neighbors:
            if nodes[other].parent == parent:
                taken[nodes[other].nth] = parent
        nth = 1
        for other in neighbors:
            if nodes[other].tree == NONE:
                while taken[nth] == parent:
                    nth += 1
                join(nodes, other, parent, nth, bits)
                queue[count] = other
                count += 1
                nth += 1
    return count


@rule
def join(nodes: Nodes, child: int, parent: int, nth: int, bits: int) -> None:
    """Give the node the key of its new parent's nth child."""
    nodes[child].tree = nodes[parent].tree
    nodes[child].parent = parent
    nodes[child].nth = nth
    nodes[child].head = head_of_child(nodes[parent].head, nodes[parent].length, nth, bits)
    nodes[child].length = nodes[parent].length + nth
    nodes[child].depth = nodes[parent].depth + 1


@rule
def _relation(nodes: Nodes, node: int, other: int) -> int:
    """What a neighbour is to a node."""
    if nodes[other].tree != nodes[node].tree:
        return OTHER_TREE
    if nodes[node].parent == other:
        return PARENT
    return CHILD if nodes[other].parent == node else SAME_TREE


@rule
def _is_used(nodes: Nodes, node: int, other: int, routing: int) -> bool:
    """Whether a message may ever go from the node to this neighbour by its key: the other links need not be kept."""
    if nodes[node].tree == NONE or nodes[other].tree == NONE:
        return False
    relation = _relation(nodes, node, other)
    if relation == OTHER_TREE:
        return routing == AS_PRINTED
    return relation != SAME_TREE or routing != TREE_EDGES


@kernel
def _count_links(graph: Graph, nodes: Nodes, routing: int) -> Places:
    counts = np.zeros(len(nodes), np.int64)
    for node in range(len(nodes)):
        for place in range(graph.start[node], graph.start[node + 1]):
            counts[node] += _is_used(nodes, node, graph.neighbors[place], routing)
    return counts


@kernel
def _fill_links(graph: Graph, nodes: Nodes, routing: int, links: Links) -> None:
    count = 0
    for node in range(len(nodes)):
        for place in range(graph.start[node], graph.start[node + 1]):
            other = graph.neighbors[place]
            if _is_used(nodes, node, other, routing):
                links[count].head = nodes[other].head
                links[count].length = nodes[other].length
                links[count].depth = nodes[other].depth
                links[count].node = other
                links[count].relation = _relation(nodes, node, other)
                count += 1


@kernel
def _paths_to_roots(graph: Graph, nodes: Nodes, roots: Numbers) -> tuple[Numbers, Numbers]:
    """How far each node is from each root, and its neighbour on the path there."""
    hops, toward = np.empty((len(roots), len(nodes)), np.int32), np.empty((len(roots), len(nodes)), np.int32)
    waiting = np.empty(len(nodes), np.int32)
    for tree in range(len(roots)):
        spread(graph, roots[tree : tree + 1], hops[tree], waiting)
        for node in range(len(nodes)):
            toward[tree, node] = _nearest(graph, hops[tree], node)
    return hops, toward


@rule
def _nearest(graph: Graph, hops: Numbers, node: int) -> int:
    """The neighbour nearest to the root, the lowest number of several; NONE if there is no path."""
    best, nearest = hops[node], NONE
    for place in range(graph.start[node], graph.start[node + 1]):
        other = graph.neighbors[place]
        if is_nearer(hops[other], best):
            best, nearest = hops[other], other
    return nearest
