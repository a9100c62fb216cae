"""Random numbers from a seed: one stream for each concern of a run, and content drawn from its domain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serai.core.content import Attribute

# One stream of random numbers per concern: two protocols under one seed see the same world, and a change in one
# concern (more subscribers, other attributes) leaves the draws of the others alone.
PLACEMENT, MOVEMENT, BIRTHS, CONTENT, INTERESTS, ORDER, BREAKDOWNS = range(7)


def order_key(seed: int) -> int:
    """What the protocols' random orders are drawn from."""
    return int(stream(seed, ORDER).integers(1 << 62))


def stream(seed: int, *concern: int) -> np.random.Generator:
    """The random numbers of one concern."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *concern])))


def draw_values(attributes: tuple[Attribute, ...], count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Values of every attribute for so many events, one column an attribute."""
    values = np.empty((count, len(attributes)))
    for column, attribute in enumerate(attributes):
        values[:, column] = draw(attribute, count, rng)
    return values


def draw(attribute: Attribute, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Numbers from an attribute's domain: reals from [low, high), integers from low..high."""
    if attribute.kind == "integer":
        return rng.integers(int(attribute.low), int(attribute.high), count, endpoint=True).astype(np.float64)
    return rng.uniform(attribute.low, attribute.high, count)
