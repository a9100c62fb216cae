"""Delays of a run as counts in fixed bins, so that the runs of a sweep can be added up.

A median of medians is no median: to pool delays, all of them are needed. They are kept as counts in bins that are the
same for every run and every network: the first ends at 1 s, each further one 2 % higher. At the end of a bin the
pooled curve is exact; a quantile is known to within 1 %.
"""

from __future__ import annotations

from itertools import accumulate, repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

GROWTH: Final = 1.02
_BINS: Final = 1200  # the last one ends after 600 years

# Multiplied one by one: `GROWTH ** bin` may differ in the last bit from one machine to the next.
ENDS_S: Final = np.array(list(accumulate(repeat(GROWTH, _BINS - 1), lambda end, growth: end * growth, initial=1.0)))
"""Where each bin ends: bin k holds the delays above the end of bin k-1, up to and including its own."""


def count_delays(delays_s: NDArray[np.float64]) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
    """The bins that some of the delays are in, ascending, and how many are in each."""
    bins = np.minimum(np.searchsorted(ENDS_S, delays_s, side="left"), _BINS - 1)
    counts = np.bincount(bins, minlength=1)
    occupied = np.flatnonzero(counts)
    return occupied.astype(np.int16), counts[occupied].astype(np.int32)
