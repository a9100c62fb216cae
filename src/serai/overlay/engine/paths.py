"""The shortest paths between many pairs of nodes: 64 breadth-first searches at once, one bit of a word for each.

A node is looked at again only when news of some source reaches it, and news of sources that stand close together comes
at nearly the same time: so neighbours among the sources are searched from together. For 10,000 sources in a network of
100,000 nodes that is some ten times less work than one search after the other. Where sources stand far apart nothing
is gained by it, and each is searched from by itself.
"""

import math

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel, rule
from serai.overlay.engine.graph import FAR, Graph, Numbers, Places, hops_from, spread

Words = NDArray[np.uint64]

_AT_ONCE = 64
_NODES_IN_A_SQUARE_HOP = 6  # about; it only decides which sources are searched from together
_FAR_APART = 25  # nodes for each source


def shortest_path_hops(graph: Graph, source: Numbers, target: Numbers) -> Numbers:
    """The hops between each pair source[p], target[p]; `FAR` where there is no path."""
    if not len(source):
        return np.empty(0, np.int32)
    places = np.unique(source)
    if graph.nodes >= _FAR_APART * len(places):
        return _far_apart(graph, source, target)
    places = _in_patches(graph, places)
    group = np.empty(graph.nodes, np.int64)
    group[places] = np.arange(len(places))
    order = np.argsort(group[source], kind="stable")
    start = np.searchsorted(group[source][order], np.arange(0, len(places) + _AT_ONCE, _AT_ONCE))
    path_hops = np.empty(len(source), np.int32)
    path_hops[order] = _search(graph, places, start, group[source][order], target[order])
    return path_hops


def _far_apart(graph: Graph, source: Numbers, target: Numbers) -> Numbers:
    """The hops between each pair, source by source.

    Nodes are numbered anew by their hops from one of them: neighbours then stand close together in memory.
    """
    old = np.argsort(hops_from(graph, source[:1]), kind="stable")
    new = np.empty(graph.nodes, np.int32)
    new[old] = np.arange(graph.nodes, dtype=np.int32)
    degree = np.diff(graph.start)[old]
    start = np.concatenate([[0], np.cumsum(degree)])
    links = np.repeat(graph.start[old] - start[:-1], degree) + np.arange(start[-1])
    order = np.argsort(source, kind="stable")
    path_hops = np.empty(len(source), np.int32)
    renumbered = Graph(start, new[graph.neighbors[links]])
    path_hops[order] = _search_one_by_one(renumbered, new[source[order]], new[target[order]])
    return path_hops


def _in_patches(graph: Graph, source: Numbers) -> Numbers:
    """The sources in such an order that those of each 64 stand close together, judged by hops from two far corners."""
    one = hops_from(graph, source[:1])
    corner = int(np.where(one == FAR, 0, one).argmax())
    other = hops_from(graph, np.array([corner], np.int32))
    width = max(1, round(math.sqrt(_AT_ONCE * graph.nodes / len(source) / _NODES_IN_A_SQUARE_HOP)))
    return source[np.lexsort((one[source], other[source] // width))]


@kernel
def _search_one_by_one(graph: Graph, source: Numbers, target: Numbers) -> Numbers:
    """The hops of pairs sorted by their sources."""
    nodes = len(graph.start) - 1
    hops, waiting = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    path_hops = np.empty(len(target), np.int32)
    for pair in range(len(target)):
        if pair == 0 or source[pair] != source[pair - 1]:
            spread(graph, source[pair : pair + 1], hops, waiting)
        path_hops[pair] = hops[target[pair]]
    return path_hops


@kernel
def _search(graph: Graph, source: Numbers, start: Places, group: Places, target: Numbers) -> Numbers:
    """The hops of pairs sorted by the group (the place in `source`) of their sources; batch b has start[b] .. ."""
    nodes = len(graph.start) - 1
    seen, news, coming = np.zeros(nodes, np.uint64), np.zeros(nodes, np.uint64), np.zeros(nodes, np.uint64)
    now, then = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    first_at = np.full(nodes, -1, np.int64)  # [node] a pair of the batch whose target it is ...
    next_at = np.empty(len(target), np.int64)  # [pair] ... and the next one with the same target
    path_hops = np.full(len(target), FAR, np.int32)
    for batch in range(len(start) - 1):
        seen[:] = 0
        for pair in range(start[batch], start[batch + 1]):
            next_at[pair] = first_at[target[pair]]
            first_at[target[pair]] = pair
        count = 0
        for place in range(batch * 64, min((batch + 1) * 64, len(source))):
            now[count] = source[place]
            count += 1
            seen[source[place]] = news[source[place]] = np.uint64(1) << np.uint64(place % 64)
            _note(path_hops, first_at, next_at, group, source[place], news[source[place]], 0)
        hops = 0
        while count > 0:
            hops += 1
            count = _advance(graph, seen, news, coming, now, count, then)
            now, then = then, now
            for place in range(count):
                _note(path_hops, first_at, next_at, group, now[place], news[now[place]], hops)
        for pair in range(start[batch], start[batch + 1]):
            first_at[target[pair]] = -1
    return path_hops


@rule
def _advance(graph: Graph, seen: Words, news: Words, coming: Words, now: Numbers, count: int, then: Numbers) -> int:
    """Tell the neighbours of the first `count` nodes what is news; who learned something stands in `then`."""
    reached = 0
    for place in range(count):
        node = now[place]
        for link in range(graph.start[node], graph.start[node + 1]):
            other = graph.neighbors[link]
            new = news[node] & ~seen[other]
            if new:
                if not coming[other]:
                    then[reached] = other
                    reached += 1
                coming[other] |= new
    for place in range(reached):
        node = then[place]
        news[node] = coming[node]
        seen[node] |= coming[node]
        coming[node] = 0
    return reached


@rule
def _note(
    path_hops: Numbers, first_at: Places, next_at: Places, group: Places, node: int, new: np.uint64, hops: int
) -> None:
    """Enter the hops of those pairs with this target whose source is new here."""
    pair = first_at[node]
    while pair >= 0:
        if (new >> np.uint64(group[pair] % 64)) & np.uint64(1):
            path_hops[pair] = hops
        pair = next_at[pair]
