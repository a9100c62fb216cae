"""Bundles under way in a session of TCPCLv4: one that comes, and how long the segments are of those that go. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from serai.node.wire import messages as wire

SEGMENT_BYTES: Final = 512 << 10
FIRST_SEGMENT_BYTES: Final = 4 << 10
"""As long as it is not known how fast a link is: it must not be silent for long between two acknowledgements."""

_PACE_S, _PACE_BYTES = 0.1, 64 << 10


@dataclass(slots=True)
class Incoming:
    """A transfer under way to us."""

    transfer: int
    total: int | None
    pieces: list[bytes]
    length: int = 0
    flags: int = 0  # of the segment that is coming
    refused: int = 0  # why

    def is_wrong(self, flags: int) -> bool:
        """Whether it has another length than was announced (RFC 9174, 5.2.5.1)."""
        total = self.total
        return total is not None and (self.length > total or (bool(flags & wire.END) and self.length != total))

    def refuse(self, reason: int) -> None:
        """Do not take it: the rest is read over."""
        self.refused = self.refused or reason
        self.pieces.clear()


class Pace:
    """How long segments may be: what the link carries in two seconds, so that acknowledgements tell of progress."""

    def __init__(self, now_s: float) -> None:
        self.segment_bytes = FIRST_SEGMENT_BYTES
        self._since_s, self._bytes, self._of = now_s, 0, (-1, 0)

    def begins(self, now_s: float) -> None:
        """Something is sent after a pause."""
        self._since_s, self._bytes = now_s, 0

    def acknowledged(self, transfer: int, length: int, now_s: float) -> None:
        """The other side has so many bytes of a transfer."""
        before, self._of = self._of, (transfer, length)
        self._bytes += length - before[1] if before[0] == transfer else length
        passed_s = now_s - self._since_s
        if passed_s >= _PACE_S or self._bytes >= _PACE_BYTES:
            rate = self._bytes / max(passed_s, 1e-3)
            self.segment_bytes = min(max(int(2.0 * rate), FIRST_SEGMENT_BYTES), SEGMENT_BYTES)
            self._since_s, self._bytes = now_s, 0
