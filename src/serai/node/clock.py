"""The node's time: seconds since 2000 that never go back, whatever happens to the clock of the machine."""

from __future__ import annotations

import ctypes
import time
from typing import Final, Literal

from serai.node.link import Instant

EPOCH_S: Final = 946_684_800
"""2000-01-01 00:00 UTC in Unix time: where the time of bundles begins."""

NO_CLOCK, TAKEN, TRUSTED = range(3)
_UNSYNCHRONISED: Final = 5  # TIME_ERROR of adjtimex(2)

ClockSetting = Literal["auto", "trusted", "untrusted"]


class NodeClock:
    """Wall time if it is ahead, else the last time given out and what has passed since by a clock that only runs."""

    def __init__(self, setting: ClockSetting = "auto", last_s: float = 0.0) -> None:
        self.setting = setting
        self._last_s, self._mono_s = last_s, time.monotonic()
        self._ahead_s = 0.0  # of the wall clock, where a neighbour knows better
        self._taken = False

    def instant(self) -> Instant:
        """Now."""
        mono_s = time.monotonic()
        wall_s = time.time() - EPOCH_S + self._ahead_s
        self._last_s = max(wall_s, self._last_s + mono_s - self._mono_s)
        self._mono_s = mono_s
        return Instant(mono_s, self._last_s)

    def trust(self) -> int:
        """How far others may rely on it."""
        if self.setting == "trusted" or (self.setting == "auto" and is_synchronised()):
            return TRUSTED
        return TAKEN if self._taken else NO_CLOCK

    def heard(self, now_ms: int, trust: int) -> None:
        """A neighbour has said what time it is: believed where it knows and we do not."""
        if trust == TRUSTED and self.trust() != TRUSTED:
            self._ahead_s = now_ms / 1000 - (time.time() - EPOCH_S)
            self._taken = True


def is_synchronised() -> bool:
    """Whether the kernel says that its clock is synchronised; where it cannot be asked, no."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        state: int = libc.adjtimex(ctypes.create_string_buffer(512))  # a struct timex of zeros: only asks
    except (OSError, AttributeError):
        return False
    return 0 <= state < _UNSYNCHRONISED
