"""What nodes hold and send."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Bundle:
    """Content on a channel."""

    number: int
    source: int
    channel: int
    created_s: float
    size_bytes: int
    lifetime_s: float

    @property
    def mark(self) -> int:
        return self.number

    @property
    def key(self) -> int:
        return self.number

    @property
    def expires_s(self) -> float:
        return self.created_s + self.lifetime_s


@dataclass
class Copy:
    """A bundle in a store."""

    bundle: Bundle
    hops: int
    copies: int
    came_s: float
    handed_on: int = 0


@dataclass(frozen=True)
class BundleMessage:
    """A bundle on its way."""

    bundle: Bundle
    hops: int
    copies: int
    reserved: int  # copies that the sender misses meanwhile

    @property
    def size_bytes(self) -> int:
        return self.bundle.size_bytes


@dataclass(frozen=True)
class ListMessage:
    """A list on its way: what its sender has seen, and what the protocol has to say."""

    made_s: float
    size_bytes: int
    seen: Any  # something that knows by `in` which bundles
    told: Any


@dataclass(frozen=True)
class Bloom:
    """A set of places; whoever has all of its own among them counts as seen."""

    places: set[int]
    places_of: Any

    def __contains__(self, number: int) -> bool:
        return self.places_of(number) <= self.places


@dataclass
class Contact:
    """What one node knows of another while they are in contact."""

    peer: Any
    carries: bool
    due_s: float  # when the next list is to be sent
    lists: list[ListMessage] = field(default_factory=list)  # received
    passed: set[int] = field(default_factory=set)  # bundles that went either way
    view: Any = None  # what the protocol made of the last list
    sending: BundleMessage | ListMessage | None = None
    now_s: float = 0.0  # when the node last looked what to send


@dataclass(frozen=True)
class Received:
    """What became of a bundle that arrived."""

    fate: str
    delivered: bool = False
    evicted: tuple[Bundle, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A subscription in a list of DPSP's."""

    id: int
    subscriber: int
    channel: int
    created_s: float
    hops: int


@dataclass(frozen=True)
class Distances:
    """What DPSP notes for each channel when a list has arrived."""

    theirs: dict[int, int]
    mine: dict[int, int]
    popularity: dict[int, int]

    def their_hops(self, channel: int) -> float:
        return self.theirs.get(channel, math.inf)

    def my_hops(self, channel: int) -> float:
        return self.mine.get(channel, math.inf)
