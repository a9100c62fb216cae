"""Orders of many values: what times, cells and pairs of nodes are sorted by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_FEW = 1 << 16  # different values that are sorted by counting, in a tenth of the time


def order_of(values: NDArray[Any]) -> NDArray[np.int64]:
    """The places of the values in ascending order, equal ones as they stand.

    Times are often whole seconds of a day, and pairs of a few hundred nodes are few: then they are sorted as 16 bits.
    """
    if values.size and values.max() < values.min() + _FEW:
        above = values - values.min()
        short = above.astype(np.uint16)
        if np.array_equal(short, above):
            values = short
    return np.argsort(values, kind="stable")
