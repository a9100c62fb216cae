"""The store of a router: copies of bundles, and who leaves when it is full."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from serai.opportunistic.router.messages import Bundle
from serai.opportunistic.rules import EVICT_OLDEST, EVICT_SOONEST, REFUSE, Kept, leaves_before


@dataclass(slots=True)
class Copy:
    """A bundle in the store."""

    bundle: Bundle
    hops: int
    copies: int
    sent: int = 0  # how often it was handed on from here


class Store:
    """Copies by the marks of their bundles, up to so many bytes; those pinned or being sent do not leave for others."""

    def __init__(self, capacity_bytes: int = 1 << 60, when_full: int = EVICT_OLDEST, most: int = 1 << 60) -> None:
        self.capacity_bytes, self.when_full, self.most = capacity_bytes, when_full, most
        self.used_bytes = 0
        self.asked: Callable[[Bundle], int] = lambda bundle: 0
        """How many contacts wanted a bundle's channel, where that decides who leaves."""
        self.sending: Counter[int] = Counter()  # how many links a bundle is on
        self._pins: dict[int, int] = {}
        self._copies: dict[int, Copy] = {}
        self._leaving: list[tuple[Any, int]] | None = None
        """Heap of (who leaves first, mark); some may be gone or pinned. None: nobody had to leave so far."""

    def __contains__(self, mark: int) -> bool:
        return mark in self._copies

    def __getitem__(self, mark: int) -> Copy:
        return self._copies[mark]

    def __len__(self) -> int:
        return len(self._copies)

    def get(self, mark: int) -> Copy | None:
        """The copy of a bundle, if there is one."""
        return self._copies.get(mark)

    def values(self) -> Iterator[Copy]:
        """All copies."""
        return iter(self._copies.values())

    def by_creation(self) -> list[Copy]:
        """All copies, in the order in which their bundles were created."""
        return sorted(self._copies.values(), key=lambda copy: copy.bundle.key)

    def put(self, copy: Copy, pins: int = 0) -> None:
        """Store a copy for which there is room; `pins`: it stays until as many have been taken out."""
        mark = copy.bundle.mark
        self._copies[mark] = copy
        self.used_bytes += copy.bundle.size_bytes
        if pins > 0:
            self._pins[mark] = pins
        else:
            self._may_leave(copy.bundle)

    def take(self, mark: int) -> Bundle:
        """Remove a copy."""
        bundle = self._copies.pop(mark).bundle
        self.used_bytes -= bundle.size_bytes
        self._pins.pop(mark, None)
        if self._leaving is not None and len(self._leaving) > 2 * len(self._copies) + 64:  # most of it is gone already
            self._leaving = [entry for entry in self._leaving if entry[1] in self._copies]
            heapq.heapify(self._leaving)
        return bundle

    def pin(self, mark: int) -> None:
        """Keep a copy until it is unpinned as often as it was pinned."""
        if mark in self._copies:
            self._pins[mark] = self._pins.get(mark, 0) + 1

    def unpin(self, mark: int) -> int:
        """Take out one pin of those that keep a copy; how many are left."""
        left = self._pins.get(mark, 0) - 1
        if left > 0:
            self._pins[mark] = left
        elif self._pins.pop(mark, None) is not None:
            self._may_leave(self._copies[mark].bundle)
        return max(left, 0)

    def pins(self, mark: int) -> int:
        """How many pins keep a copy."""
        return self._pins.get(mark, 0)

    def make_room(self, size_bytes: int, count: int = 1) -> tuple[bool, list[Bundle]]:
        """Whether bundles of this size together fit, and what had to leave for them; what is being sent stays."""
        evicted: list[Bundle] = []
        kept: list[tuple[Any, int]] = []
        fits = size_bytes <= self.capacity_bytes
        while fits and not self._has_room(size_bytes, count):
            victim = None if self.when_full == REFUSE else self._first_to_leave(kept)
            if victim is None:
                fits = False
            else:
                evicted.append(self.take(victim))
        for entry in kept:
            heapq.heappush(self._heap(), entry)
        return fits, evicted

    def _has_room(self, size_bytes: int, count: int) -> bool:
        return self.used_bytes + size_bytes <= self.capacity_bytes and len(self._copies) + count <= self.most

    def _first_to_leave(self, kept: list[tuple[Any, int]]) -> int | None:
        """The bundle that leaves first; those that are being sent go from the heap to `kept`."""
        if self.when_full not in (EVICT_OLDEST, EVICT_SOONEST):
            return self._first_of_all()
        leaving = self._heap()
        while leaving:
            entry = heapq.heappop(leaving)
            mark = entry[1]
            if mark not in self._copies or mark in self._pins:
                continue
            if not self.sending[mark]:
                return mark
            kept.append(entry)
        return None

    def _first_of_all(self) -> int | None:
        """The same where a bundle's place may change while it is here: all are compared."""
        first: Copy | None = None
        for copy in self.by_creation():
            mark = copy.bundle.mark
            if mark in self._pins or self.sending[mark]:
                continue
            if first is None or leaves_before(self.when_full, self._kept(copy), self._kept(first)):
                first = copy
        return None if first is None else first.bundle.mark

    def _kept(self, copy: Copy) -> Kept:
        return Kept(copy.bundle.expires_s, copy.bundle.size_bytes, 0.0, copy.sent, self.asked(copy.bundle))

    def _heap(self) -> list[tuple[Any, int]]:
        """Who may leave, made when it is asked for the first time: most stores are never full."""
        if self._leaving is None:
            loose = (copy.bundle for mark, copy in self._copies.items() if mark not in self._pins)
            self._leaving = list(map(self._place, loose))
            heapq.heapify(self._leaving)
        return self._leaving

    def _may_leave(self, bundle: Bundle) -> None:
        if self._leaving is not None:
            heapq.heappush(self._leaving, self._place(bundle))

    def _place(self, bundle: Bundle) -> tuple[Any, int]:
        """By the rule `leaves_before`, and of those that it does not tell apart the older one first."""
        first = (bundle.expires_s, bundle.key) if self.when_full == EVICT_SOONEST else bundle.key
        return first, bundle.mark
