"""A run in a field: the world it happened in, what happened, and on request everything that happened to events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.field.naps import lived_at
from serai.field.sections import FieldScenario
from serai.field.world import World
from serai.log.run import SimulatedRun, TableForm

if TYPE_CHECKING:
    from serai.field.metrics import FieldMetrics

Times = NDArray[np.int32]  # whole seconds: field protocols run in slots
Numbers = NDArray[np.int32]  # of events, sensors, subscribers, nodes
Counts = NDArray[np.int64]
Codes = NDArray[np.int8]  # places in a list of words
Flags = NDArray[np.bool_]

OUTCOMES: Final = ("accepted", "refused", "lost")


class Naps(NamedTuple):
    """The times between deaths and wakings of sensors that harvest; those who woke no more are not among them."""

    node: Numbers
    since_s: Times  # it died with this second
    until_s: Times  # and woke with this one


class Ledger(NamedTuple):
    """What metrics need of a run: always kept, and equal to the full log added up."""

    reception_event: Numbers  # first reception of each (event, subscriber), in the order of happening
    reception_subscriber: Numbers
    reception_s: Times
    reception_wanted: NDArray[np.bool_]
    transmissions: Counts  # [event]
    sent: Counts  # [sensor] event messages
    received: Counts  # [sensor] event messages, refused ones not counted
    event_pj: Counts  # [sensor] picojoules
    control_pj: Counts  # [sensor] picojoules
    steady_event_pj: Counts  # [half, sensor] of these, in the halves of the run's steady part: field/lifetime.py
    steady_control_pj: Counts
    died: Times  # [sensor] the second in which its battery was empty; -1: it lived at the end
    drops: dict[str, int]  # by reason
    control_messages: dict[str, int]  # by kind
    control_bits: dict[str, int]  # by kind
    ended_s: float | None = None  # when the first death ended the run, if it was to end with it
    idle_pj: Counts | None = None  # [sensor] picojoules that listening took, where it costs anything
    harvested_pj: Counts | None = None  # [sensor], where anybody harvests
    wasted_pj: Counts | None = None  # [sensor] of these, what its battery could not hold
    naps: Naps | None = None  # where anybody harvests

    def spent_pj(self, control: bool) -> Counts:
        """What each sensor spent on events and on listening, and on `control` messages too."""
        spent = self.event_pj + self.control_pj if control else self.event_pj
        return spent if self.idle_pj is None else spent + self.idle_pj


class Transfers(NamedTuple):
    """Every transmission of an event, in the order of happening; ends are nodes: subscriber p is N + p."""

    time_s: Times
    event: Numbers
    sender: Numbers
    receiver: Numbers
    addressee: Numbers  # the subscriber (as a node) the copy is on its way to, or -1
    kind: Codes  # place in `serai.field.engine.state.TRANSFERS`
    outcome: Codes  # place in `OUTCOMES`
    stored: Flags  # whether one more copy lies in the receiver's queue
    moved: Flags  # whether one copy less lies in the sender's


class Drops(NamedTuple):
    """Every copy lost, in the order of happening."""

    time_s: Times
    event: Numbers
    node: Numbers
    addressee: Numbers  # the subscriber (as a node) the copy was on its way to, or -1
    reason: Codes  # place in `serai.field.engine.state.DROPS`
    held: Flags  # whether it lay in the sensor's queue
    after: Counts  # so many transfers


class Control(NamedTuple):
    """How many control messages were sent in each second, by kind; seconds without any are left out."""

    time_s: Times
    kind: Codes  # place in the ledger's `control_messages`
    messages: Counts


class Sessions(NamedTuple):
    """When a subscriber (as a node) and a community, known by its lowest sensor, were in session."""

    subscriber: Numbers
    member: Numbers
    start_s: Times
    end_s: Times  # the first second without it; the end of the run


class Heads(NamedTuple):
    """Which sensor became head of which community, known by its lowest sensor, and when (CET)."""

    time_s: Times
    member: Numbers
    node: Numbers


class Spent(NamedTuple):
    """What control messages took of each sensor's energy since its row before; each full minute, and at the end."""

    time_s: Times
    node: Numbers
    control_pj: Counts


class Watched(NamedTuple):
    """What happened beside events, second by second."""

    control: Control
    sessions: Sessions
    heads: Heads
    spent: Spent


class FullLog(NamedTuple):
    """Everything that happened, one row each; kept only on request."""

    transfers: Transfers
    drops: Drops
    watched: Watched | None = None  # not by protocols of the user's own


@dataclass(frozen=True, eq=False, repr=False)
class FieldRun(SimulatedRun):
    """One simulated run: what was asked for, the world it happened in, and what happened."""

    scenario: FieldScenario
    world: World
    ledger: Ledger
    full: FullLog | None = None

    COUNTED = ("drops", "control_messages", "control_bits", "ended_s")

    @cached_property
    def metrics(self) -> FieldMetrics:
        """Every metric of the run, worked out when first asked for."""
        from serai.field.metrics import measure_field

        return measure_field(self)

    @property
    def born(self) -> Flags:
        """Which events of the world were born: not those of sensors already dead, nor any after the end of the run."""
        second = np.ceil(self.world.event_time_s).astype(np.int64)
        ended_s = np.inf if self.ledger.ended_s is None else self.ledger.ended_s
        born: Flags = lived_at(self.ledger, self.world.event_sensor, second) & (second <= ended_s)
        return born

    @property
    def full_log(self) -> bool:
        """Whether every transfer and every drop was kept."""
        return self.full is not None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the events' attributes."""
        return self.world.attribute_names

    @property
    def texts(self) -> Mapping[str, tuple[str, ...]]:
        """Of attributes that are texts: what their values, places from 0, stand for."""
        return dict(self.world.texts)

    def in_numbers(self) -> tuple[str, ...]:
        """How much there is of everything, in a few words each."""
        return (
            f"{len(self.world.sensor_x)} sensors",
            f"{len(self.world.low)} subscribers",
            f"{len(self.world.event_sensor)} events",
            f"{len(self.ledger.reception_event)} receptions",
        )

    def counts(self) -> dict[str, Any]:
        """Sums that need no table."""
        return {name: getattr(self.ledger, name) for name in self.COUNTED}

    @staticmethod
    def form() -> TableForm[FieldRun, FieldScenario]:
        """How runs of this kind of network stand in tables."""
        from serai.field.tables import FORM

        return FORM
