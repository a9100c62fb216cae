"""What lies in a sensor's queue, and what of it is sent."""

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.field.naive.serai.messages import Errand, Event, Parcel

HOME, RELAY, DEPOSIT = "home", "relay", "deposit"


class Assignment(NamedTuple):
    """A copy promised to a walker: (q, b, p, until), and what it will be told."""

    walker: int
    until_s: float
    errand: Errand

    @property
    def target(self) -> int:
        return self.errand.target


@dataclass(eq=False)
class Copy:
    """A copy in a queue, with the letters of the text: W, S, nc, CW."""

    event: Event
    kind: str
    wanted: set[int]
    settled: set[int] = field(default_factory=set)
    exposed: bool = False
    carriers: int = 0
    carry: frozenset[int] = frozenset()
    assigned: Assignment | None = None
    is_new: bool = False
    serial: int = -1  # the how manieth to come into being: by this the clock takes new copies

    def settle(self, subscriber: int) -> None:
        """p: W -> S. Nobody has to walk for it any more."""
        self.wanted.discard(subscriber)
        self.settled.add(subscriber)
        if self.assigned and self.assigned.target == subscriber:
            self.assigned = None

    def take_back(self, parcel: Parcel, wanted: frozenset[int], assigned: "Assignment | None") -> None:
        """It has not left the sensor: all is as before it was sent, when these wanted it."""
        self.settled -= parcel.targets
        self.wanted |= parcel.targets & wanted
        if assigned and assigned.target in parcel.targets:
            self.assigned = assigned
        if parcel.carry and self.kind == HOME:
            self.exposed = parcel.exposed
            self.carriers -= 1


class Sending(NamedTuple):
    """Messages from link to link, and what stays at the ends."""

    hops: list[tuple[int, int, Parcel]]
    left: dict[int, Parcel]  # by sensor
    wanted: frozenset[int]  # W before
    assigned: Assignment | None  # to whom it was before
