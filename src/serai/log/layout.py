"""Places for nodes that have none: those that meet often stand near each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.integer[Any]]

SIDE_M = 1000.0
_EFFORT = 40_000_000  # pairs of nodes, over all rounds
_MOST_ROUNDS = 200
_LEAST_ROUNDS = 30
_FELT = 64  # others that push a node in a round, where there are too many for all to do so


def lay_out(nodes: int, a: Numbers, b: Numbers) -> tuple[Floats, Floats]:
    """Positions in a square of `SIDE_M`: nodes repel each other, those that met attract (Fruchterman and Reingold).

    The start is drawn from a fixed seed, so the same contacts give the same picture: it is no part of the run's chance.
    """
    rng = np.random.default_rng(0)
    place = rng.random((nodes, 2))
    if nodes < 2:
        return place[:, 0] * SIDE_M, place[:, 1] * SIDE_M
    met, times = np.unique(a.astype(np.int64) * nodes + b, return_counts=True)
    links = met // nodes, met % nodes
    strength = np.log1p(times)[:, None] / np.log1p(times.max(initial=1))
    wide = 1 / np.sqrt(nodes)  # how far neighbours stand from each other in the end
    felt = nodes if _LEAST_ROUNDS * nodes**2 <= _EFFORT else _FELT
    rounds = int(min(_MOST_ROUNDS, max(_LEAST_ROUNDS, _EFFORT // (felt * nodes))))
    for heat in np.linspace(0.1, 0.002, rounds):
        others = place[None] if felt == nodes else place[rng.integers(0, nodes, (nodes, felt))]
        apart = place[:, None] - others
        square = np.maximum((apart**2).sum(-1), 1e-9)
        push = (apart * (wide**2 / square)[..., None]).sum(1) * (nodes / felt)
        along = place[links[0]] - place[links[1]]
        pull = along * np.sqrt((along**2).sum(1, keepdims=True)) / wide * strength
        np.add.at(push, links[0], -pull)
        np.add.at(push, links[1], pull)
        push -= (place - 0.5) * wide  # those that nobody meets stay in the picture
        length = np.maximum(np.sqrt((push**2).sum(1, keepdims=True)), 1e-9)
        place += push / length * np.minimum(length, heat)
    low, high = place.min(0), place.max(0)
    square_m = (place - low) / np.maximum(high - low, 1e-9) * SIDE_M
    return square_m[:, 0], square_m[:, 1]
