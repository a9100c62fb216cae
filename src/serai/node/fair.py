"""How neighbours share a node's time: who hands over what takes long makes way for those who do not. Pure.

A large bundle takes the node's time, and on its way to the disk that of all others, whose acknowledgements wait for the
same commit. A neighbour that sends such pieces rests after each, nineteen times as long as it took, while another sends
small ones; alone it goes on at full speed. After a list that takes long it always rests: applications wait, too.

To begin a session takes a millisecond or more, most of it before anybody has said who he is: an address may begin only
so many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

_QUICK_S: Final = 0.002
_FAIR: Final = 19.0  # beside others: a twentieth of the time
_ALONE: Final = 9.0
_LATELY_S: Final = 1.0
_AT_ONCE: Final = 16
_A_SECOND: Final = 8.0
_ADDRESSES: Final = 1024


class Share:
    """What one neighbour takes of a node's time."""

    def __init__(self) -> None:
        self.quick_s = -math.inf  # when it sent something that took no time, the last time
        self._spent_s = self._took_s = 0.0
        self._bundles = self._lists = 0  # so far

    def rest_s(
        self, spent_s: float, took_s: float, bundles: int, lists: int, others: Iterable[Share], now_s: float
    ) -> float:
        """How long nothing is read from it now, after so much work for what came, which took so long (more, where the
        machine has other work); `bundles`, `lists`: so far."""
        self._spent_s += spent_s
        self._took_s += took_s
        came, listed = bundles - self._bundles, lists > self._lists
        if not came and not listed:
            return 0.0
        spent_s, took_s, self._bundles, self._lists = self._spent_s, self._took_s, bundles, lists
        self._spent_s = self._took_s = 0.0
        if spent_s <= _QUICK_S * max(came, 1):
            self.quick_s = now_s
            return 0.0
        if any(other.quick_s > now_s - _LATELY_S for other in others if other is not self):
            return _FAIR * took_s
        return _ALONE * took_s if listed else 0.0


class Beginnings:
    """How many sessions each address may begin: 16 at once, then eight a second."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[float, float]] = {}  # by address: how many that still count, and when that was

    def may(self, address: str, now_s: float) -> bool:
        """Whether an address may begin another one now; then it has."""
        count, at_s = self._begun.pop(address, (0.0, now_s))
        count = max(count - _A_SECOND * (now_s - at_s), 0.0)
        is_free = count <= _AT_ONCE - 1
        self._begun[address] = count + is_free, now_s
        if len(self._begun) > _ADDRESSES:
            del self._begun[next(iter(self._begun))]
        return is_free
