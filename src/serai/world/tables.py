"""Tables that kernels fill row by row, not knowing beforehand how many rows there will be."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import rule


@rule
def with_room(rows: NDArray[Any], count: int) -> NDArray[Any]:
    """The same table, or one twice as long if `count` rows fill it."""
    if count < rows.shape[0]:
        return rows
    longer = np.empty((2 * count, rows.shape[1]), rows.dtype)  # np.concatenate takes seconds to compile
    for row in range(count):
        for column in range(rows.shape[1]):
            longer[row, column] = rows[row, column]
    return longer
