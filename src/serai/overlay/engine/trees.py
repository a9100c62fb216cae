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


def plant(
    graph: Graph, roots: Numbers, layers: Sequence[Sequence[int]], routing: int, bits: int, by_subtree: bool = False
) -> tuple[Layer, ...]:
    """The trees of a network, layer by layer: those of one layer grow at once and share the nodes out."""
    return tuple(_planted(graph, roots, np.array(trees, np.int32), routing, bits, by_subtree) for trees in layers)


def _planted(graph: Graph, roots: Numbers, trees: Numbers, routing: int, bits: int, by_subtree: bool) -> Layer:
    nodes = empty_nodes(graph.nodes)
    nodes["tree"][roots[trees]] = trees
    queue = np.empty(graph.nodes, np.int32)
    queue[: len(trees)] = roots[trees]
    count = grow(graph, nodes, queue, len(trees), bits)
    if by_subtree:
        share_out(nodes, queue[:count], bits)
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
    nodes[child].head = head_of_child(nodes[parent].zone_head, nodes[parent].zone_length, nth, bits)
    nodes[child].length = nodes[parent].zone_length + nth
    nodes[child].zone_head, nodes[child].zone_length = nodes[child].head, nodes[child].length
    nodes[child].depth = nodes[parent].depth + 1


# ---- zones by subtree


@kernel
def share_out(nodes: Nodes, joined: Numbers, bits: int) -> None:
    """Give all nodes (in the order of joining) keys anew: each zone is shared out by the sizes of subtrees.

    A node and its children get the words of a Huffman code, each weighing as much as there are nodes: itself one, a
    child its subtree. A child's key is the node's with its word; what begins with its own word the node keeps.
    """
    size, children = np.ones(len(nodes), np.int64), np.zeros(len(nodes) + 1, np.int64)
    for place in range(len(joined) - 1, -1, -1):
        parent = nodes[joined[place]].parent
        if parent != NONE:
            size[parent] += size[joined[place]]
            children[parent + 1] += 1
    start = np.cumsum(children)
    end, child = start.copy(), np.empty(len(nodes), np.int32)
    for node in joined:
        if nodes[node].parent != NONE:
            child[end[nodes[node].parent]] = node
            end[nodes[node].parent] += 1
    for node in joined:
        family = child[start[node] : start[node + 1]]
        weight = np.ones(2 * len(family) + 1, np.int64)
        for place in range(len(family)):
            weight[place + 1] = size[family[place]]
        above, word = _huffman(weight, len(family) + 1)
        own = nodes[node].head, nodes[node].length
        for place in range(len(family)):
            other = family[place]
            nodes[other].nth = 0
            nodes[other].head, nodes[other].length = _with_word(own, above, word, place + 1, bits)
        nodes[node].zone_head, nodes[node].zone_length = _with_word(own, above, word, 0, bits)


@rule
def _huffman(weight: Places, leaves: int) -> tuple[Numbers, Numbers]:
    """A code for the first so many weights: which pair each is put into, and the bit that tells it from the other half.

    The two lightest are put together, of equal ones the earlier, until all are one; the lighter gets the one. Pairs
    stand behind the leaves, in the order in which they are made.
    """
    above, word = np.full(len(weight), NONE, np.int32), np.zeros(len(weight), np.int32)
    for pair in range(leaves, len(weight)):
        weight[pair] = 0
        for bit in (1, 0):
            lightest = NONE
            for place in range(pair):
                if above[place] == NONE and (lightest == NONE or weight[place] < weight[lightest]):
                    lightest = place
            above[lightest], word[lightest] = pair, bit
            weight[pair] += weight[lightest]
    return above, word


@rule
def _with_word(own: tuple[int, int], above: Numbers, word: Numbers, leaf: int, bits: int) -> tuple[int, int]:
    """Head and length of a key and the word of a leaf behind it."""
    head, length = own
    place = leaf
    while above[place] != NONE:
        length += 1
        place = above[place]
    last, place = length, leaf
    while above[place] != NONE:  # from the last bit of the word to the first
        if last <= bits:
            head |= int(word[place]) << (bits - last)
        last -= 1
        place = above[place]
    return head, length


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
