"""Which of many points that stand still are within range of each other, and the lists of neighbours that follow."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel, rule
from serai.world.grid import Floats, Numbers, nodes_near
from serai.world.ranges import Buckets, sort_into_buckets

Places = NDArray[np.int64]


def neighbors_in_range(
    x_m: Floats, y_m: Floats, range_m: float | Floats, check: Callable[[int], None] = lambda _: None
) -> tuple[Places, Numbers]:
    """Starts and neighbours, ascending: two points are neighbours if each is within the other's range.

    `check` is told how many entries there will be before there are any, and may refuse them.
    """
    if not len(x_m):
        return np.zeros(1, np.int64), np.empty(0, np.int32)
    ranges_m = np.broadcast_to(np.asarray(range_m, np.float64), len(x_m)).copy()
    # A little wider than the range: rounding must not put two neighbours into squares that do not touch.
    widest_m = float(ranges_m.max()) * (1 + 1e-9)
    buckets = sort_into_buckets(np.column_stack((x_m, y_m)).astype(np.float64), widest_m)
    start = np.concatenate([[0], np.cumsum(_count_in_range(buckets, ranges_m))]).astype(np.int64)
    check(int(start[-1]))
    return start, _list_in_range(buckets, ranges_m, start)


@rule
def _hears(position: Floats, range_m: Floats, one: int, other: int) -> bool:
    dx, dy = position[one, 0] - position[other, 0], position[one, 1] - position[other, 1]
    least_m = min(range_m[one], range_m[other])
    return one != other and dx * dx + dy * dy <= least_m * least_m


@kernel
def _count_in_range(nodes: Buckets, range_m: Floats) -> Places:
    """How many neighbours each node has."""
    index, near = nodes.by_square, np.empty(len(nodes.position), np.int32)
    degree = np.zeros(len(near), np.int64)
    for place in range(len(near)):
        node = index.nodes[place]
        for i in range(nodes_near(index, nodes.squares, int(index.cells[place]), 1, near)):
            degree[node] += _hears(nodes.position, range_m, node, near[i])
    return degree


@kernel
def _list_in_range(nodes: Buckets, range_m: Floats, start: Places) -> Numbers:
    """The neighbours of each node, ascending: node 0 enters itself in the lists of those it hears, then node 1, ..."""
    index, near = nodes.by_square, np.empty(len(nodes.position), np.int32)
    cell_of_node = np.empty(len(near), np.int32)
    for place in range(len(near)):
        cell_of_node[index.nodes[place]] = index.cells[place]
    end, neighbors = start[:-1].copy(), np.empty(start[-1], np.int32)
    for node in range(len(near)):
        for i in range(nodes_near(index, nodes.squares, int(cell_of_node[node]), 1, near)):
            if _hears(nodes.position, range_m, node, near[i]):
                neighbors[end[near[i]]] = node
                end[near[i]] += 1
    return neighbors
