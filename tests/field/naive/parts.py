"""The nouns of docs/field/rules.md as plain objects. Headings are those of that page."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from serai.field.sections import RadioSection
from serai.field.world import World
from serai.world.grid import Grid

SOURCE, RELAY, RETURN, PLACEMENT = "source", "relay", "return", "placement"
EXPIRED, SPENT, FULL, STRANDED, DEAD = "expired", "spent", "full", "stranded", "dead"


# --- What is written down -----------------------------------------------------------------------------------


class Reception(NamedTuple):
    """The first time that a subscriber received an event."""

    event: int
    subscriber: int
    time_s: int
    wanted: bool


class Transfer(NamedTuple):
    """One transmission of an event. Sensor s is node s, subscriber p is node N + p; no addressee is -1."""

    time_s: int
    event: int
    sender: int
    receiver: int
    addressee: int
    kind: str
    accepted: bool


class Drop(NamedTuple):
    """The end of a copy before its time."""

    time_s: int
    event: int
    node: int
    reason: str


@dataclass
class Records:
    """All that happened, in order of happening, and what it cost each sensor."""

    receptions: list[Reception] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    kept: list[tuple[bool, bool]] = field(default_factory=list)  # of each transfer: stored, moved
    drops: list[Drop] = field(default_factory=list)
    whose: list[tuple[int, bool, int]] = field(default_factory=list)  # of each drop: addressee, held, after
    drops_by_reason: Counter[str] = field(default_factory=Counter)
    transmissions: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    event_pj: list[int] = field(default_factory=list)
    control_pj: list[int] = field(default_factory=list)
    idle_pj: list[int] = field(default_factory=list)
    harvested_pj: list[int] = field(default_factory=list)
    wasted_pj: list[int] = field(default_factory=list)
    naps: list[tuple[int, int, int]] = field(default_factory=list)  # sensor, the slots in which it died and woke
    control_messages: Counter[str] = field(default_factory=Counter)
    control_bits: Counter[str] = field(default_factory=Counter)
    left_over: list[list["Copy"]] = field(default_factory=list)
    died: list[int] = field(default_factory=list)
    steady_pj: list[list[list[int]]] = field(default_factory=list)  # by half, kind (events, control) and sensor
    watched: "Watched | None" = None  # not by protocols of the user's own


@dataclass
class Watched:
    """What was seen at the end of every slot: control messages, sessions, heads, and by the minute what control took.

    A community is known by its lowest sensor.
    """

    control: list[tuple[int, str, int]] = field(default_factory=list)  # slot, kind, how many
    sessions: list[tuple[int, int, int, int]] = field(default_factory=list)  # subscriber, community, from, to
    heads: list[tuple[int, int, int]] = field(default_factory=list)  # slot, community, head
    spent: list[tuple[int, int, int]] = field(default_factory=list)  # slot, sensor, picojoules


# --- "Copies and queues" ------------------------------------------------------------------------------------


@dataclass
class Copy:
    """A copy of an event in a queue: stored (no addressee), or relayed towards its addressee."""

    event: int
    count: int
    serial: int
    addressee: int | None = None
    memory: set[int] = field(default_factory=set)
    arrived: int = -1

    @property
    def stored(self) -> bool:
        return self.addressee is None


def queue_order(copy: Copy) -> tuple[int, int, bool, int]:
    """The place of a copy in its queue (CED 4.2 C and Fig. 5, CET 3.3 and Fig. 6)."""
    return (copy.count, -copy.event, not copy.stored, copy.serial)


# --- "The world" --------------------------------------------------------------------------------------------


class Point(NamedTuple):
    """A turning point of a track."""

    time_s: float
    x: float
    y: float


class Visit(NamedTuple):
    """Where a subscriber is in a slot."""

    segment: int
    is_leg: bool
    x: float
    y: float


def tracks_of(world: World) -> Iterator[list[Point]]:
    """The turning points of each subscriber."""
    tracks = world.tracks
    for number in range(len(tracks.start) - 1):
        points = range(int(tracks.start[number]), int(tracks.start[number + 1]))
        yield [Point(float(tracks.time_s[i]), float(tracks.x_m[i]), float(tracks.y_m[i])) for i in points]


def legs_of(world: World) -> Iterator[list[int]]:
    """The leg of each segment of each subscriber, as its number within the track."""
    for begin, end in pairwise(world.tracks.start.tolist()):
        yield [leg - begin for leg in world.legs[begin:end].tolist()]


def visit_at(track: list[Point], t: int) -> Visit:
    """The visit at slot t: the last segment of the track that has begun, and the place on its line."""
    segment = max(i for i, point in enumerate(track) if point.time_s <= t)
    here = track[segment]
    if segment == len(track) - 1:
        return Visit(segment, False, here.x, here.y)
    there = track[segment + 1]
    part = (t - here.time_s) / (there.time_s - here.time_s)
    x = between(here.x + (there.x - here.x) * part, here.x, there.x)
    y = between(here.y + (there.y - here.y) * part, here.y, there.y)
    is_leg = abs(there.x - here.x) + abs(there.y - here.y) > 0  # not from or to nowhere
    return Visit(segment, is_leg, x, y)


def between(value: float, a: float, b: float) -> float:
    """The value, kept between two others: rounding must not carry a subscriber off its line."""
    return min(max(value, min(a, b)), max(a, b))


def cell_at(grid: Grid, x: float, y: float) -> int:
    """The number of the cell of a point."""
    column = min(math.floor(x / (grid.width_m / grid.columns)), grid.columns - 1)
    row = min(math.floor(y / (grid.height_m / grid.rows)), grid.rows - 1)
    return int(row * grid.columns + column)


def touches(grid: Grid, cell: int, other: int) -> bool:
    """Whether two cells are the same or share a side or a corner."""
    row, column = divmod(cell, grid.columns)
    other_row, other_column = divmod(other, grid.columns)
    return abs(row - other_row) <= 1 and abs(column - other_column) <= 1


@dataclass(eq=False)
class Sensor:
    """A sensor: its place, its queue, its counter of forwards, its accounts."""

    number: int
    x: float
    y: float
    battery_pj: int
    capacity: int
    range_m: float = math.inf
    idle_pj: int = 0  # what listening costs in a second
    idled_pj: int = 0
    harvested_pj: int = 0
    wasted_pj: int = 0
    broken: bool = False  # it has failed, and wakes no more
    queue: list[Copy] = field(default_factory=list)
    neighbors: list["Sensor"] = field(default_factory=list)
    forwards: int = 0
    sent: int = 0
    received: int = 0
    event_pj: int = 0
    control_pj: int = 0
    exhausted: bool = False
    died: int = -1


@dataclass(eq=False)
class Subscriber:
    """A subscriber: its track, where it is now, what it has received."""

    number: int
    track: list[Point]
    low: list[float]
    high: list[float]
    legs: list[int] = field(default_factory=list)  # of each segment
    carries: bool = False
    visit: Visit | None = None
    place: frozenset[int] = frozenset()
    audible: bool = False
    received_in_slot: int = 0
    known: set[int] = field(default_factory=set)
    bag: list[tuple[int, int]] = field(default_factory=list)

    @property
    def here(self) -> Visit:
        assert self.visit is not None
        return self.visit

    @property
    def leg(self) -> int:
        """The first point of the leg that it is on."""
        return self.legs[self.here.segment]


def distance(a: Sensor | Subscriber, b: Sensor | Subscriber) -> float:
    """Metres between two nodes, now."""
    (ax, ay), (bx, by) = place_of(a), place_of(b)
    return math.sqrt((ax - bx) * (ax - bx) + (ay - by) * (ay - by))


def place_of(node: Sensor | Subscriber) -> tuple[float, float]:
    """Where a node is now."""
    at = node if isinstance(node, Sensor) else node.here
    return at.x, at.y


@dataclass(eq=False)
class Session:
    """A subscriber in reach of a community: the leg it announced, the layers of the community's sensors."""

    subscriber: Subscriber
    announced: int = -1
    layers: dict[Sensor, int] = field(default_factory=dict)


@dataclass(eq=False)
class Community:
    """A connected component of the sensors, its sessions by subscriber; for CET its head and placement."""

    number: int
    sensors: list[Sensor]
    size: int = 0  # the number of distinct cells it occupies (CET 3.2.2 (1)); in metres, of sensors
    sessions: list[Session] = field(default_factory=list)
    head: Sensor | None = None
    placed: int = 0

    @property
    def is_loner(self) -> bool:
        return len(self.sensors) == 1

    def session_of(self, subscriber: int | None) -> Session | None:
        """The running session of a subscriber."""
        for session in self.sessions:
            if session.subscriber.number == subscriber:
                return session
        return None


def find_communities(sensors: list[Sensor]) -> list[Community]:
    """The communities (CED 3, CET definition 1), numbered by their lowest sensor."""
    communities: list[Community] = []
    assigned: set[Sensor] = set()
    for sensor in sensors:
        if sensor in assigned:
            continue
        members = [sensor]
        for member in members:
            members += [other for other in member.neighbors if other not in members]
        assigned.update(members)
        members.sort(key=lambda member: member.number)
        communities.append(Community(len(communities), members))
    return communities


def layers_from(zone: Iterable[Sensor]) -> dict[Sensor, int]:
    """The layer of every sensor of a community: 0 in the zone, k + 1 beside layer k (CED 4.1, Fig. 2)."""
    layer_of = dict.fromkeys(zone, 0)
    layer = 0
    while layer in layer_of.values():
        for sensor in [sensor for sensor in layer_of if layer_of[sensor] == layer]:
            for neighbor in sensor.neighbors:
                layer_of.setdefault(neighbor, layer + 1)
        layer += 1
    return layer_of


# --- "Energy and control messages" --------------------------------------------------------------------------


def transmit_pj(radio: RadioSection, bits: int, distance_m: float) -> int:
    """What sending costs by the first-order radio model, in whole picojoules."""
    square = distance_m * distance_m
    free_space = radio.free_space_j_per_bit_m2 * square
    multipath = radio.multipath_j_per_bit_m4 * square * square
    never = radio.multipath_j_per_bit_m4 == 0
    d0 = math.inf if never else math.sqrt(radio.free_space_j_per_bit_m2 / radio.multipath_j_per_bit_m4)
    amplifier = free_space if distance_m < d0 else multipath
    return round(bits * (radio.electronics_j_per_bit + amplifier) * 1e12)


def receive_pj(radio: RadioSection, bits: int) -> int:
    """What receiving costs, in whole picojoules."""
    if not radio.receive_costs:
        return 0
    return round(bits * radio.electronics_j_per_bit * 1e12)
