"""What the metrics of all kinds of network share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Definition(NamedTuple):
    """The unit of a metric, and what it is."""

    unit: str
    meaning: str


def ratio(part: float, whole: float) -> float:
    """A part of a whole; NaN where there is no whole."""
    return float(part / whole) if whole else float("nan")


def jain(shares: Floats) -> float:
    """Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all shares are equal, 1/n if one has it all."""
    return ratio(shares.sum() ** 2, len(shares) * np.square(shares).sum())
