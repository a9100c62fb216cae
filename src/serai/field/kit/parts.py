"""The engine's side of sensors, visitors and communities."""

from __future__ import annotations

from bisect import bisect_left, insort
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from serai.field.kit.sensor import Copy, Peer, Sensor, Session, Visitor
from serai.own.declaring import put
from serai.own.mistakes import Mistake

ALIVE: Final = -1


class Site:
    """A sensor, around the object that its author wrote."""

    __slots__ = (
        "author", "battery_pj", "capacity", "cell", "community", "control_pj", "died", "event_pj", "exhausted",
        "forwards", "harvested_pj", "idle_pj", "idled_pj", "kin", "line", "neighbors", "number", "peers", "queue",
        "received", "sent", "sessions", "wasted_pj", "x", "y",
    )  # fmt: skip

    def __init__(
        self, number: int, author: Sensor, x: float, y: float, cell: int, battery_j: float, capacity: int
    ) -> None:
        self.number, self.author, self.x, self.y, self.cell = number, author, x, y, cell
        self.battery_pj, self.capacity = round(battery_j * 1e12), capacity
        self.queue: dict[int, Copy] = {}
        self.line: list[tuple[Any, int, Copy]] = []  # the queue in the order in which copies go
        self.neighbors: list[Site] = []  # by number
        self.peers: dict[int, Peer] = {}  # the same, as the author sees them
        self.sessions: dict[int, Session] = {}  # by visitor
        self.community: Community | None = None
        self.forwards = 0
        self.sent = self.received = self.event_pj = self.control_pj = 0
        self.idle_pj = self.idled_pj = 0  # what listening costs in a second, and has cost so far
        self.harvested_pj = self.wasted_pj = 0
        self.kin: frozenset[int] = frozenset()  # those with which it was one community at the start
        self.exhausted, self.died = False, ALIVE

    def put(self, copy: Copy, now: int) -> None:
        """A copy for which there is room joins the queue."""
        self.queue[copy.id] = copy
        self.line_up(copy, now)

    def line_up(self, copy: Copy, now: int) -> None:
        """Give the copy the place that its priority asks for; what had none comes last."""
        put(copy, rank=_first_is_least(self.author.priority(copy, now)))
        insort(self.line, (copy.rank, copy.id, copy), key=_place)

    def remove(self, copy: Copy) -> None:
        """The copy leaves the queue."""
        del self.queue[copy.id]
        self.step_out(copy)

    def step_out(self, copy: Copy) -> None:
        """The copy has no place in line any more."""
        del self.line[bisect_left(self.line, (copy.rank, copy.id), key=_place)]

    def introduce(self, key: int, discard: Any, left_j: Any) -> None:
        """Give the author's object what it may see."""
        author = self.author
        author.node, author.capacity, author._key = self.number, self.capacity, key
        author.queue, author.sessions = MappingProxyType(self.queue), MappingProxyType(self.sessions)
        author.neighbors = MappingProxyType(self.peers)
        author._discard, author._left_j = discard, left_j


def _place(entry: tuple[Any, int, Copy]) -> tuple[Any, int]:
    return entry[0], entry[1]


def _first_is_least(priority: Any) -> Any:
    """The priority such that what goes first is the smallest."""
    parts = priority if isinstance(priority, tuple) else (priority,)
    for part in parts:
        if not isinstance(part, int | float) or part != part:
            raise Mistake("priority", f"answers {priority!r}, not a number or a tuple of numbers")
    return tuple(-part for part in parts)


class Guest:
    """A visitor: where it is, what it has received, whom it is in contact with."""

    __slots__ = (
        "at_s",
        "audible",
        "author",
        "bag",
        "cell",
        "contacts",
        "known",
        "leg",
        "moving",
        "node",
        "number",
        "peers",
        "received",
        "segment",
        "wanted",
        "x",
        "y",
    )  # fmt: skip

    def __init__(self, number: int, node: int, author: Visitor, wanted: list[bool]) -> None:
        self.number, self.node, self.author, self.wanted = number, node, author, wanted
        self.cell = self.segment = self.leg = ALIVE
        self.moving = self.audible = False
        self.at_s, self.x, self.y = ALIVE, 0.0, 0.0
        self.received = 0  # in this slot
        self.known: set[int] = set()
        self.contacts: list[tuple[int, int]] = []  # rank and sensor, in order
        self.peers: dict[int, Peer] = {}  # by sensor: how it sees this visitor
        self.bag: dict[int, Copy] = {}

    def introduce(self, key: int) -> None:
        """Give the author's object what it may see."""
        author = self.author
        author.node, author.bag, author._key, author._wanted = self.node, MappingProxyType(self.bag), key, self.wanted


class SeenLayers(NamedTuple):
    """What one sensor sees of layers."""

    of: dict[int, int]
    near: tuple[int, ...]

    def closer(self, sensor: int) -> tuple[int, ...]:
        """The touching sensors one layer closer than this sensor."""
        return self.near


class Layers:
    """Of a session: how far each sensor of the community is from those on the visitor's way."""

    __slots__ = ("_closer", "of", "sites")

    def __init__(self, sites: list[Site]) -> None:
        self.sites = sites  # all of the field
        self.of: dict[int, int] = {}
        self._closer: dict[int, tuple[int, ...]] = {}

    def set(self, layers: dict[int, int]) -> None:
        """Draw them up anew."""
        self.of = layers
        self._closer = {}

    def closer(self, sensor: int) -> tuple[int, ...]:
        """The touching sensors one layer closer."""
        if sensor not in self._closer:
            wanted = self.of.get(sensor, 0) - 1
            near = self.sites[sensor].neighbors
            self._closer[sensor] = tuple(one.number for one in near if self.of.get(one.number) == wanted)
        return self._closer[sensor]

    def seen_by(self, session: Any) -> SeenLayers:
        """What the sensor of a session sees of them."""
        sensor = session._sensor
        return SeenLayers({sensor: self.of[sensor]} if sensor in self.of else {}, self.closer(sensor))


class Announced:
    """A visitor in reach of a community: the leg that it announced last, and the layers."""

    __slots__ = ("guest", "layers", "leg")

    def __init__(self, guest: Guest, layers: Layers, leg: int = ALIVE) -> None:
        self.guest, self.layers, self.leg = guest, layers, leg


class Community:
    """Sensors that hear of each other, and the visitors in reach of them."""

    __slots__ = ("members", "sessions")

    def __init__(self, members: list[Site]) -> None:
        self.members = sorted(members, key=lambda site: site.number)
        self.sessions: dict[int, Announced] = {}  # by visitor's number
        numbers = tuple(site.number for site in self.members)
        for site in self.members:
            site.community, site.author.community = self, numbers


def find_communities(sites: list[Site]) -> list[Community]:
    """The connected components, by their lowest sensor."""
    communities, assigned = [], set[int]()
    for site in sites:
        if site.number in assigned:
            continue
        members, reached = [site], {site.number}
        for member in members:
            for other in member.neighbors:
                if other.number not in reached:
                    reached.add(other.number)
                    members.append(other)
        assigned |= reached
        communities.append(Community(members))
    return communities
