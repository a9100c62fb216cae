"""What nodes tell each other: plain values, each with its size in bits ("Messages")."""

from dataclasses import dataclass, field

from tests.field.naive.serai.legs import Leg, Place


@dataclass(frozen=True)
class Event:
    """A reading: where, when and what; its number says which one it is."""

    number: int
    source: int
    born_s: float
    values: tuple[float, ...]


@dataclass(frozen=True)
class Subscription:
    """What a subscriber wants of each attribute: low, high."""

    subscriber: int
    bounds: tuple[tuple[float, float], ...]

    def matches(self, event: Event) -> bool:
        return all(low <= value <= high for value, (low, high) in zip(event.values, self.bounds, strict=True))


@dataclass(frozen=True)
class Hello:
    subscriber: int
    bits: int = 32


@dataclass(frozen=True)
class Reply:
    """What a sensor says of itself: who and in which community (alone in it or not), how long it waits, is it full."""

    sensor: int
    community: int
    alone: bool
    wait_s: float
    full: bool
    leg: Leg | None = None  # the one that it has heard of last, by the second of its announcement
    bits: int = 32


@dataclass(frozen=True, eq=False)
class Map:
    """The members of a community, where they stand, and what it is called; a new one is called as none was before."""

    places: dict[int, Place]
    name: int = 0

    @property
    def bits(self) -> int:
        return 16 * len(self.places)


@dataclass(frozen=True, eq=False)
class Prices:
    """The members' prices as steps of a logarithmic scale, in the order of the map."""

    steps: dict[int, int]

    @property
    def bits(self) -> int:
        return 16 + 4 * len(self.steps)


@dataclass(frozen=True, eq=False)
class Reunion:
    """What kin tell each other when some of them wake: the subscriptions they know, sessions heard, prices."""

    known: dict[int, Subscription]
    heard: int
    prices: Prices

    @classmethod
    def of(cls, memories: "list[Reunion]") -> "Reunion":
        """What some of them knew, all of them know."""
        known, steps = dict[int, Subscription](), dict[int, int]()
        for memory in memories:
            known |= memory.known
            steps |= memory.prices.steps
        return cls(known, max(memory.heard for memory in memories), Prices(steps))


@dataclass(frozen=True, eq=False)
class Announce:
    """A subscriber's leg, whether it offers to carry, and the subscriptions that the community lacks."""

    subscriber: int
    carries: bool
    leg: Leg
    news: tuple[Subscription, ...]

    @property
    def bits(self) -> int:
        return 64 + 40 * len(self.news)


@dataclass(frozen=True)
class Subs:
    """The subscriptions that a subscriber lacks."""

    news: tuple[Subscription, ...]

    @property
    def bits(self) -> int:
        return 40 * len(self.news)


@dataclass(frozen=True)
class Offer:
    """Have you got this event? The first one on a link has a header."""

    event: int
    header: bool

    @property
    def bits(self) -> int:
        return 16 + 32 * self.header


@dataclass(frozen=True)
class Errand:
    """What a walker is asked for: to take the event to a sensor for a subscriber, by then."""

    target: int
    drop: int
    until_s: float


@dataclass(frozen=True)
class Parcel:
    """An EVENT on its way, and what goes along with it."""

    event: Event
    size_bits: int
    targets: frozenset[int] = frozenset()
    exposed: bool = False
    carry: frozenset[int] = frozenset()  # the want map for a carrier, if there is anybody on it
    map_bits: int = 0  # of a want map: one for each subscriber there is
    listed: int = 0  # destinations that a multicast has to name
    errand: Errand | None = field(default=None)
    address: bool = False  # whether a walker, as it drops the event, names whom it is for

    @property
    def want_map_bits(self) -> int:
        return self.map_bits if self.carry else 0

    @property
    def address_bits(self) -> int:
        return 8 * self.listed + (24 if self.errand else 0) + (8 if self.address else 0)

    @property
    def along_bits(self) -> int:
        """What goes along with the event."""
        return self.want_map_bits + self.address_bits

    @property
    def bits(self) -> int:
        return self.size_bits + self.along_bits
