"""Places in random orders, many at once: `serai.core.order.key_in_slot`, with the half that never changes kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from serai.core.order import mix

Words = NDArray[np.uint32]


class Places:
    """The places of nodes, or of bundles, in any order."""

    def __init__(self, count: int) -> None:
        self._mixed = _mix(np.arange(1, count + 1, dtype=np.uint32))
        self._listed: list[int] = self._mixed.tolist()

    def of(self, key: int, number: int) -> int:
        """The place of one."""
        return mix(key ^ self._listed[number])

    def of_all(self, key: int) -> Words:
        """The places of all."""
        return _mix(np.uint32(key) ^ self._mixed)

    def first(self, key: int, numbers: NDArray[Any]) -> int:
        """Who has the first place of these."""
        return int(numbers[np.argmin(_mix(np.uint32(key) ^ self._mixed[numbers]))])


def _mix(h: Words) -> Words:
    """`serai.core.order.mix` of many; products of 32-bit words overflow as they should."""
    h = h ^ (h >> np.uint32(16))
    h *= np.uint32(0x21F0AAAD)
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x735A2D97)
    h ^= h >> np.uint32(15)
    return h
