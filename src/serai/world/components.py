"""Which nodes of a graph can reach each other, over any number of links."""

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel

Numbers = NDArray[np.int32]


@kernel
def connected_components(start: Numbers | NDArray[np.int64], neighbors: Numbers) -> Numbers:
    """The connected component of each node, numbered by their lowest node.

    The neighbours of node x are neighbors[start[x] : start[x + 1]]; links go both ways. From each node that has no
    component yet everything within reach is filled, depth first: in the order of nodes, so that the next component is
    always that of the lowest node without one.
    """
    nodes = start.size - 1
    of_node = np.full(nodes, -1, np.int32)
    waiting = np.empty(nodes, np.int32)
    found = 0
    for lowest in range(nodes):
        if of_node[lowest] >= 0:
            continue
        of_node[lowest] = found
        waiting[0] = lowest
        count = 1
        while count > 0:
            count -= 1
            node = waiting[count]
            for other in neighbors[start[node] : start[node + 1]]:
                if of_node[other] < 0:
                    of_node[other] = found
                    waiting[count] = other
                    count += 1
        found += 1
    return of_node
