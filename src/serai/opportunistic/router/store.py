"""The store of a router: copies of bundles, and who leaves when it is full."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from serai.opportunistic.router.messages import Bundle
from serai.opportunistic.rules import EVICT_OLDEST, REFUSE, leaves_before


@dataclass
class Copy:
    """A bundle in the store."""

    bundle: Bundle
    hops: int
    copies: int


class Store(dict[int, Copy]):
    """Copies by the numbers of their bundles, up to so many bytes."""

    def __init__(self, capacity_bytes: int = 1 << 60, when_full: int = EVICT_OLDEST) -> None:
        super().__init__()
        self.capacity_bytes, self.when_full = capacity_bytes, when_full

    @property
    def used_bytes(self) -> int:
        """What all bundles in it take."""
        return sum(copy.bundle.size_bytes for copy in self.values())

    def by_creation(self) -> list[Copy]:
        """All copies, in the order in which their bundles were created."""
        return [copy for _, copy in sorted(self.items())]

    def make_room(self, size_bytes: int, sending: Collection[int]) -> tuple[bool, list[Bundle]]:
        """Whether a bundle of this size fits, and what had to leave for it; what is being sent stays."""
        evicted: list[Bundle] = []
        if size_bytes > self.capacity_bytes:
            return False, evicted
        while self.used_bytes + size_bytes > self.capacity_bytes:
            may_go = [copy.bundle for copy in self.by_creation() if copy.bundle.number not in sending]
            if not may_go or self.when_full == REFUSE:
                return False, evicted
            victim = may_go[0]
            for bundle in may_go[1:]:
                if leaves_before(self.when_full, bundle.expires_s, victim.expires_s):
                    victim = bundle
            evicted.append(self.pop(victim.number).bundle)
        return True, evicted
