"""What a router knows of a neighbour while they are in contact."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from serai.opportunistic.router.knowledge import View
from serai.opportunistic.router.messages import BloomFilter, Bundle, Channel, ControlMessage, DataMessage


class Neighbour(Protocol):
    """What a neighbour answers at any moment, for nothing, with `seen = "live"`: no real one does."""

    def has_seen(self, number: int) -> bool:
        """Whether it ever had the bundle."""

    def wants(self, channel: Channel) -> bool:
        """Whether it has subscribed to the channel now."""


@dataclass
class Contact:
    """One neighbour, and what was exchanged so far."""

    rate_bps: float
    carries: bool  # whether the neighbour carries for others
    due_s: float  # when the next list is to be sent
    live: Neighbour | None
    known: set[int] = field(default_factory=set)
    filters: list[tuple[BloomFilter, float]] = field(default_factory=list)
    lists: int = 0  # received
    view: View = field(default_factory=View)
    sending: ControlMessage | DataMessage | None = None
    reserved: int = 0  # copies that the sender misses while the message is on its way

    def note(self, message: ControlMessage, view: View) -> None:
        """A list has arrived: what it says of bundles seen, and of channels."""
        if isinstance(message.seen, BloomFilter):
            self.filters.append((message.seen, message.made_s))
        else:
            self.known |= message.seen
        self.view = view
        self.lists += 1

    def knows(self, bundle: Bundle) -> bool:
        """Whether there is no need to offer the bundle; no list tells of bundles younger than itself."""
        return bundle.number in self.known or any(
            bundle.created_s <= made_s and bundle.number in seen for seen, made_s in self.filters
        )
