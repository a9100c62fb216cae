"""Where the roots of the trees stand: the sinks of the network (TinyMQ III.B), which never fail.

Every way gives a sequence that does not change when more roots are asked for, but for the evenly spaced ones along an
edge: so that two tree counts under one seed differ by the added roots alone.
"""

import numpy as np
from numpy.typing import NDArray

from serai.overlay.engine.graph import Floats, Graph, Numbers, hops_from


def random_roots(nodes: int, count: int, rng: np.random.Generator) -> Numbers:
    """So many nodes, drawn at random."""
    return rng.permutation(nodes)[:count].astype(np.int32)


def roots_along_edge(x_m: Floats, y_m: Floats, width_m: float, count: int, spacing_m: float | None) -> Numbers:
    """The nodes nearest to points along the southern edge (y = 0), `spacing_m` apart from the west, or all along it."""
    apart = width_m / count if spacing_m is None else spacing_m
    roots: list[int] = []
    for number in range(count):
        distance = np.hypot(x_m - apart * (number + 0.5), y_m)
        distance[roots] = np.inf  # a node is the root of one tree
        roots.append(int(distance.argmin()))
    return np.array(roots, np.int32)


def k_centre_roots(graph: Graph, count: int, rng: np.random.Generator) -> Numbers:
    """Each as many hops away from those before it as can be (ties: lower number); the first one at random.

    The farthest-first rule: no node is more than twice as far from its nearest root as with the best choice of roots.
    """
    roots: NDArray[np.int32] = rng.permutation(graph.nodes)[:1].astype(np.int32)
    while len(roots) < count:
        roots = np.append(roots, np.int32(hops_from(graph, roots).argmax()))
    return roots
