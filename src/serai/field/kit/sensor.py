"""What the author of a field protocol writes: a class derived from `Sensor`, and one from `Visitor` if visitors carry.

The engine keeps slots, contacts, communities, layers, budgets, energy, queues, deliveries and logs. A sensor sees its
own queue and what it was told, never another sensor, a clock or the event loop. Nodes have the numbers of the tables:
sensors come first, then those who pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from serai.own.declaring import Guarded, drawn, put

if TYPE_CHECKING:
    from serai.field.kit.parts import Layers


class Copy(Guarded):
    """A copy of an event, in a queue or in a visitor's bag."""

    __slots__ = ("addressee", "arrived_s", "born_s", "event", "hops", "id", "note", "rank", "source", "values")
    OWN = ("note", "addressee")

    id: int  # copies are numbered as they come into being; one that is handed on keeps its number
    event: int  # events are numbered by birth: the larger, the younger
    source: int  # the sensor that measured it
    born_s: float
    values: Mapping[str, float]  # what was measured
    arrived_s: int  # when this copy came here
    hops: int  # from the source to here
    addressee: int | None  # the visitor it is on its way to; None: it is kept here for whoever comes
    note: Any  # the holder's own; it dies with the copy, and never travels
    rank: Any  # the engine's: its place in the queue

    def __init__(self, id: int, event: int, source: int, born_s: float, values: Mapping[str, float]) -> None:
        put(self, id=id, event=event, source=source, born_s=born_s, values=values)
        put(self, arrived_s=0, hops=0, addressee=None, note=None, rank=None)

    def passed_on(self, id: int, arrived_s: int, addressee: int | None) -> Copy:
        """The same event one hop further."""
        fresh = Copy(id, self.event, self.source, self.born_s, self.values)
        put(fresh, arrived_s=arrived_s, hops=self.hops + 1, addressee=addressee)
        return fresh


class Peer(Guarded):
    """Another node, as a sensor sees it: a sensor that it touches, or a visitor in contact."""

    __slots__ = ("_wanted", "id", "is_visitor", "note", "since_s")

    id: int
    is_visitor: bool
    since_s: int  # when the contact began; of a sensor: 0
    note: Any  # the sensor's own, for the contact

    def __init__(self, id: int, since_s: int, wanted: Sequence[bool] | None) -> None:
        put(self, id=id, is_visitor=wanted is not None, since_s=since_s, note=None, _wanted=wanted)

    def wants(self, copy: Copy) -> bool:
        """Whether it is a visitor that asked for such events."""
        return self._wanted is not None and self._wanted[copy.event]  # type: ignore[attr-defined]


class Session(Peer):
    """A visitor in reach of the sensor's community, as this sensor sees it."""

    __slots__ = ("_layers", "_sensor")

    def __init__(self, id: int, since_s: int, wanted: Sequence[bool], sensor: int, layers: Layers) -> None:
        super().__init__(id, since_s, wanted)
        put(self, _sensor=sensor, _layers=layers)

    @property
    def layer(self) -> int | None:
        """How many hops it is to a sensor on the visitor's way; 0: this one is; None: there is no way."""
        layer: int | None = self._layers.of.get(self._sensor)  # type: ignore[attr-defined]
        return layer

    @property
    def closer(self) -> tuple[int, ...]:
        """The touching sensors that are one layer closer, by number."""
        closer: tuple[int, ...] = self._layers.closer(self._sensor)  # type: ignore[attr-defined]
        return closer


class Visitor:
    """Who passes: override `received` and it carries what it likes, to leave it behind with sensors on its way."""

    node: int
    """Its number."""
    bag: Mapping[int, Copy]
    """What it carries, by id, in the order in which it came."""
    _key: int
    _wanted: Sequence[bool]

    def start(self) -> None:
        """A run begins: state goes into `self`, here. There is no `__init__`."""

    def tell(self, now: int) -> Any:
        """What its Hello tells the sensors in reach: plain data, charged to them."""
        return None

    def hear(self, sensor: int, content: Any, now: int) -> None:
        """What a sensor's reply to its Hello tells."""

    def received(self, copy: Copy, sensor: int, attached: Any, now: int) -> bool:
        """A copy has come, the first of this event: does it go into the bag? It stays there until it is too old."""
        return False

    def offers(self, copy: Copy, sensor: int, now: int) -> bool:
        """Is this copy of the bag left with this sensor? Asked after all turns, oldest first, by sensor."""
        return True

    def moves(self, copy: Copy, sensor: int) -> bool:
        """Whether the copy leaves the bag with it."""
        return True

    def attach(self, copy: Copy, sensor: int, now: int) -> Any:
        """Plain data that travels with the copy."""
        return None

    def sent(self, copy: Copy, sensor: int, attached: Any, accepted: bool, now: int) -> None:
        """The copy was left with the sensor, or refused there."""

    # ---- provided

    def wants(self, copy: Copy) -> bool:
        """Whether it asked for such events."""
        return self._wanted[copy.event]

    def random(self, now: int, *what: int) -> float:
        """A number in [0, 1) that depends on the run, the visitor, the time and `what`: ask again, get it again."""
        return drawn(self._key, self.node, now, what)


class Sensor:
    """A protocol: override what makes yours different. Left as it is, sensors flood what they measure."""

    turns: ClassVar[Literal["sensor", "visitor"]] = "sensor"
    """Who is asked: each sensor in its turn, drawn anew every second; or each visitor, which sensors in contact send
    to one after the other, in an order drawn when the contact began."""
    communities: ClassVar[bool] = False
    """Whether sensors form communities: paths and layers are flooded (and charged), and `to` is a `Session`."""
    visitor: ClassVar[type[Visitor]] = Visitor
    every_s: ClassVar[int | None] = None
    """At multiples of it every sensor may `tell` its neighbours something."""

    node: int
    """Its number."""
    queue: Mapping[int, Copy]
    """Its copies, by id."""
    capacity: int
    """How many copies the queue holds."""
    neighbors: Mapping[int, Peer]
    """The living sensors that it touches, by number."""
    sessions: Mapping[int, Session]
    """The visitors in reach of its community, by number; empty without `communities`."""
    community: tuple[int, ...] = ()
    """The living sensors of its community, by number; empty without `communities`."""
    _key: int
    _discard: Any
    _left_j: Any

    def start(self) -> None:
        """A run begins: state goes into `self`, here. There is no `__init__`."""

    def created(self, copy: Copy, now: int) -> None:
        """The sensor has measured something: set `copy.note`."""

    def contact_up(self, peer: Peer, now: int) -> None:
        """A visitor comes within reach of this sensor."""

    def contact_down(self, peer: Peer, now: int) -> None:
        """It is gone."""

    def session_up(self, session: Session, now: int) -> None:
        """A visitor has come within reach of the community, and announced its path."""

    def session_down(self, session: Session, now: int) -> None:
        """It is gone: what is on its way to it goes nowhere (`discard`, or another addressee)."""

    def offers(self, copy: Copy, to: Any, now: int) -> bool:
        """Is this copy for this peer or session? Asked again only if something has changed here."""
        return True

    def priority(self, copy: Copy, now: int) -> Any:
        """A number, or a tuple of numbers: the highest goes first, ties by age of the copy.

        Asked when the copy comes and after each `sent` of it. Default: the youngest event.
        """
        return copy.event

    def relay(self, copy: Copy, session: Session, now: int) -> int:
        """Which sensor of `session.closer` gets it? Default: they take turns."""
        raise NotImplementedError

    def moves(self, copy: Copy, to: Any) -> bool:
        """Whether the copy leaves the queue when it is sent; else it stays, and another one goes."""
        return False

    def attach(self, copy: Copy, to: Any, now: int) -> Any:
        """Plain data that travels with the copy. Above 16 bytes it is charged."""
        return None

    def sent(self, copy: Copy, to: Any, attached: Any, accepted: bool, now: int) -> None:
        """The copy was sent; not accepted: the other sensor's queue is full, or its battery empty."""

    def keeps(self, copy: Copy, sender: int, attached: Any, now: int) -> bool:
        """A copy has come: is it put into the queue? Default: unless there is one of this event and addressee."""
        return all((one.event, one.addressee) != (copy.event, copy.addressee) for one in self.queue.values())

    def received(self, copy: Copy, sender: int, attached: Any, now: int) -> None:
        """A copy has come and is kept: set `copy.note`."""

    def evict(self, copies: Sequence[Copy], now: int) -> Copy | None:
        """The queue is full: which of these leaves? Default: None, nothing is accepted."""
        return None

    def dropped(self, copy: Copy, reason: str, now: int) -> None:
        """A copy has left the queue: "expired" or "full"."""

    def tell(self, now: int) -> Any:
        """If the class sets `every_s`: what to tell all neighbours, plain data; None: nothing. Charged."""
        return None

    def reply(self, visitor: int, now: int) -> Any:
        """What the reply to a visitor's Hello tells it: plain data, charged."""
        return None

    def hear(self, sender: int, content: Any, now: int) -> None:
        """What a neighbour tells, or a visitor's Hello."""

    # ---- provided

    def discard(self, copy: Copy, reason: Literal["spent", "stranded"] = "spent") -> None:
        """Let go of a copy of the queue; the log says why."""
        self._discard(copy, reason)

    @property
    def left_j(self) -> float:
        """What is left of the battery, in joules."""
        left_j: float = self._left_j()
        return left_j

    def random(self, now: int, *what: int) -> float:
        """A number in [0, 1) that depends on the run, the sensor, the time and `what`: ask again, get it again."""
        return drawn(self._key, self.node, now, what)
