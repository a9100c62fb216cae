"""The cheapest ways through a network of which one knows who meets whom with which likelihood: for MaxProp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel


class Meetings(NamedTuple):
    """Who meets whom: of node i, the rows from `first[i]` up to `first[i + 1]`."""

    first: NDArray[np.int64]
    node: NDArray[np.int32]
    likelihood: NDArray[np.float64]


def table_of(known: Mapping[int, tuple[bytes, bytes]]) -> Meetings:
    """By node, whom it meets and how likely, each packed as an array."""
    order = sorted(known)
    node = np.frombuffer(b"".join(known[one][0] for one in order), np.int32)
    likelihood = np.frombuffer(b"".join(known[one][1] for one in order), np.float64)
    count = max(int(node.max(initial=0)), order[-1]) + 1
    rows = np.zeros(count + 1, np.int64)
    rows[np.array(order) + 1] = [len(known[one][0]) // 4 for one in order]
    return Meetings(np.cumsum(rows), node, likelihood)


def cheapest(table: Meetings, start: int) -> NDArray[np.float64]:
    """The cost of the cheapest way from a node to each: the sum of 1 - likelihood over its meetings."""
    return _cheapest(table.first, table.node, table.likelihood, start)


@kernel
def _cheapest(
    first: NDArray[np.int64], node: NDArray[np.int32], likelihood: NDArray[np.float64], start: int
) -> NDArray[np.float64]:
    """Dijkstra's. With hundreds of nodes that nearly all meet, looking for the nearest one by one is fast."""
    count = len(first) - 1
    cost, done = np.full(max(count, start + 1), np.inf), np.zeros(max(count, start + 1), np.bool_)
    cost[start] = 0.0
    while True:
        nearest, least = -1, np.inf
        for one in range(len(cost)):
            if not done[one] and cost[one] < least:
                nearest, least = one, cost[one]
        if nearest < 0:
            return cost
        done[nearest] = True
        if nearest >= count:
            continue
        for row in range(first[nearest], first[nearest + 1]):
            way = least + 1.0 - likelihood[row]
            if way < cost[node[row]]:
                cost[node[row]] = way
