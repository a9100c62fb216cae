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


def lay_out(nodes: int, a: Numbers, b: Numbers) -> tuple[Floats, Floats]:
    """Positions in a square of `SIDE_M`: nodes repel each other, those that met attract (Fruchterman and Reingold).

    The start is drawn from a fixed seed, so the same contacts give the same picture: it is no part of the run's chance.
    """
    place = np.random.default_rng(0).random((nodes, 2))
    if nodes < 2:
        return place[:, 0] * SIDE_M, place[:, 1] * SIDE_M
    links, times = np.unique(np.stack([a, b]), axis=1, return_counts=True)
    strength = np.log1p(times)[:, None] / np.log1p(times.max(initial=1))
    wide = 1 / np.sqrt(nodes)  # how far neighbours stand from each other in the end
    rounds = int(min(_MOST_ROUNDS, max(10, _EFFORT // nodes**2)))
    for heat in np.linspace(0.1, 0.002, rounds):
        apart = place[:, None] - place[None]
        square = np.maximum((apart**2).sum(-1), 1e-9)
        push = (apart * (wide**2 / square)[..., None]).sum(1)
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
