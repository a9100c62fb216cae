"""What a router knows of a neighbour while they are in contact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from serai.opportunistic.router.knowledge import View
from serai.opportunistic.router.messages import BloomFilter, Bundle, Channel, ControlMessage, DataMessage

LIST = -1  # in place of a mark: the list that is under way


class Neighbour(Protocol):
    """What a neighbour answers at any moment, for nothing, with `seen = "live"`: no real one does."""

    def has_seen(self, mark: int) -> bool:
        """Whether it ever had the bundle."""

    def wants(self, bundle: Bundle) -> bool:
        """Whether it has subscribed to the bundle now."""

    def interests(self) -> Iterable[Channel]:
        """What it has subscribed to now."""


@dataclass
class Contact:
    """One neighbour, and what was exchanged so far."""

    mark: int  # the neighbour's, in random orders
    rate_bps: float
    carries: bool  # whether the neighbour carries for others
    due_s: float  # when the next list is to be sent
    live: Neighbour | None
    known: set[int] = field(default_factory=set)
    filters: list[tuple[BloomFilter, float]] = field(default_factory=list)
    lists: int = 0  # received
    view: View = field(default_factory=View)
    sending: dict[int, tuple[ControlMessage | DataMessage, int]] = field(default_factory=dict)
    """What is under way, by marks, and the copies of each that the sender misses meanwhile."""
    queue: list[tuple[Any, int]] | None = None
    """Heap of (who goes first, mark) of what may be offered; some may be gone. None: it is to be made anew."""

    def note(self, message: ControlMessage, view: View) -> None:
        """A list has arrived: what it says of bundles seen, and of channels."""
        if isinstance(message.seen, BloomFilter):
            self.filters.append((message.seen, message.made_s))
        else:
            self.known |= message.seen
        self.view, self.queue = view, None
        self.lists += 1

    def knows(self, bundle: Bundle) -> bool:
        """Whether there is no need to offer the bundle; no list tells of bundles younger than itself."""
        return bundle.mark in self.known or any(
            bundle.created_s <= made_s and bundle.mark in seen for seen, made_s in self.filters
        )
