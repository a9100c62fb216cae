"""Surely at least so much, whatever the runs are like: a proof by betting, for shares between 0 and 1.

Somebody who bets against "the mean is at most q" multiplies a stake of 1, run by run, by 1 + f (x - q) / q, with some f
between 0 and 1. If the mean is at most q that is no profitable game, so a stake ever as high as 1 / level has a
probability of at most the level (Ville 1939; Waudby-Smith and Ramdas 2024), after any number of runs and however often
one looks. Nobody knows which f is best; the mean of several stakes is a fair game as well.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FRACTIONS: Final = 0.98 * 0.6 ** np.arange(12)
"""Large ones win where misses are rare, small ones where runs differ widely: from 0.98 down to 0.0036."""


def surely_at_least(shares: Floats, bound: float, level: float) -> bool:
    """Whether the mean of shares like these is at least the bound; wrong with a probability of at most `level`."""
    return _highest_stake(shares, bound) >= 1 / level


def surely_below(shares: Floats, bound: float, level: float) -> bool:
    """Whether the mean of shares like these is below the bound; wrong with a probability of at most `level`."""
    return _highest_stake(1 - shares, 1 - bound) >= 1 / level


def _highest_stake(shares: Floats, bound: float) -> float:
    """The most that all stakes together were ever worth against a mean of at most the bound."""
    factors = np.log1p(np.outer(_FRACTIONS, (shares - bound) / bound))
    with np.errstate(over="ignore"):  # more than any number is more than enough
        stakes = np.exp(np.cumsum(factors, axis=1)).mean(axis=0)
    return float(stakes.max(initial=0.0))
