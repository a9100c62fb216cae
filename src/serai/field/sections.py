"""The scenario of a field: sensors in communities, subscribers who walk by; its defaults are the papers' set-up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from serai.core.content import Attribute
from serai.core.units import (
    TIME,
    Bits,
    Joules,
    Metres,
    MetresPerSecond,
    Seconds,
    WholeSeconds,
    format_quantity,
)
from serai.field.protocols import PROTOCOLS
from serai.scenario.protocol import Protocols
from serai.scenario.section import (
    DEFAULT_PROTOCOL,
    AnyProtocol,
    AttributesOfEvents,
    Cells,
    FilePath,
    Places,
    RadioCosts,
    Scenario,
    Section,
    SubscriptionTexts,
    Violation,
    misread,
)

_MOST_CELLS = 100_000_000
_SMALLEST_CELL_M = 0.001
_MOST_EVENTS = 1_000_000_000


class FieldSection(Section):
    """The field: a rectangle cut into cells."""

    width_m: Metres = Field(200.0, gt=0, le=1e7, alias="width", description="From west to east.")
    height_m: Metres = Field(200.0, gt=0, le=1e7, alias="height", description="From south to north.")
    cells: Cells = Field(
        (15, 15),
        description="Columns and rows of the grid, [15, 12], or one number for both. Two nodes hear each"
        " other if their cells are the same or touch; without meaning if there is a radio.range.",
    )

    @property
    def columns(self) -> int:
        """How many cells lie side by side."""
        return self.cells[0]

    @property
    def rows(self) -> int:
        """How many cells lie one above the other."""
        return self.cells[1]

    def violations(self) -> Iterator[Violation]:
        """Cells too small or too many."""
        if self.width_m / self.columns < _SMALLEST_CELL_M:
            problem = f"{self.columns:,} columns over {self.width_m:g} m would be less than 1 mm wide"
            yield Violation(("cells", "width"), problem)
        elif self.height_m / self.rows < _SMALLEST_CELL_M:
            problem = f"{self.rows:,} rows over {self.height_m:g} m would be less than 1 mm high"
            yield Violation(("cells", "height"), problem)
        elif self.columns * self.rows > _MOST_CELLS:
            yield Violation(("cells",), f"at most {_MOST_CELLS:,} cells are possible")


class SensorSection(Section):
    """The sensors: static nodes where events are born."""

    count: int = Field(
        100,
        ge=1,
        le=10_000_000,
        description='How many there are; left out with placement = "file", where the file says it.',
    )
    placement: Literal["uniform", "grid", "file"] = Field(
        "uniform",
        description='Where they stand: "uniform" at random, on a regular "grid", or as a "file" says.',
    )
    file: FilePath = Field(
        None,
        description='Positions for placement = "file": CSV or GeoJSON. A relative path starts at the folder'
        " of this scenario.",
    )
    battery_j: Joules = Field(10.0, gt=0, le=9e6, alias="battery", description="Energy of each sensor at the start.")
    queue: int = Field(
        200,
        ge=1,
        le=1_000_000,
        description="How many copies a sensor can hold; a full queue accepts nothing.",
    )

    relays: Places = Field(
        None,
        description="Where relays stand, [[120, 80], [40, 15.5]] in metres from the field's lower left corner: sensors"
        " at which nothing happens. `count` and `file` leave them out.",
    )

    def violations(self) -> Iterator[Violation]:
        """A file without need of it, the need without a file."""
        if self.placement == "file" and self.file is None:
            yield Violation(("placement", "file"), 'needs a file of positions; write file = "sensors.csv"')
        if self.placement != "file" and self.file is not None:
            yield Violation(("file", "placement"), 'only used with placement = "file"')
        if self.placement == "file" and "count" in self.model_fields_set:
            yield Violation(("count", "placement"), "leave it out: the file of positions says how many there are")


class SubscriberSection(Section):
    """The subscribers: they walk from waypoint to waypoint and collect events."""

    count: int = Field(10, ge=0, le=10_000_000, description="How many there are.")
    speed_min_mps: MetresPerSecond = Field(
        1.0,
        ge=0,
        alias="speed_min",
        description="Each leg has a new speed, above this one. At 0 a leg may be so slow that it lasts for hours.",
    )
    speed_max_mps: MetresPerSecond = Field(
        5.0, gt=0, le=1e6, alias="speed_max", description="Each leg has a new speed, at most this one."
    )
    pause_min_s: Seconds = Field(
        0.0, ge=0, alias="pause_min", description="A pause at a waypoint is at least this long."
    )
    pause_max_s: Seconds = Field(
        120.0, ge=0, alias="pause_max", description="A pause at a waypoint is at most this long."
    )
    start: Literal["cold", "steady"] = Field(
        "cold",
        description='"cold": all set off at time 0, from anywhere; "steady": as if they had long been on their way.',
    )

    def violations(self) -> Iterator[Violation]:
        """Ranges the wrong way round."""
        if self.speed_min_mps > self.speed_max_mps:
            least, most = self.speed_min_mps, self.speed_max_mps
            problem = f"speed_min ({least:g} m/s) is above speed_max ({most:g} m/s)"
            yield Violation(("speed_min", "speed_max"), problem)
        if self.pause_min_s > self.pause_max_s:
            problem = f"pause_min ({self.pause_min_s:g} s) is above pause_max ({self.pause_max_s:g} s)"
            yield Violation(("pause_min", "pause_max"), problem)


class EventSection(Section):
    """The events: born at random at every sensor."""

    interval_s: Seconds = Field(
        100.0,
        gt=0,
        alias="interval",
        description="Mean time between the events of one sensor (a Poisson process).",
    )
    quiet_s: Seconds = Field(200.0, ge=0, alias="quiet", description="No event is born in this last part of the run.")
    lifetime_s: Seconds = Field(
        2000.0,
        gt=0,
        alias="lifetime",
        description="A copy whose event is older than this is dropped: the papers' beta.",
    )
    size_bits: Bits = Field(250, ge=1, le=1_000_000_000, alias="size", description="Size of an event on the air.")
    attributes: AttributesOfEvents = Field(
        (Attribute("A1", "real", 0.0, 10.0), Attribute("A2", "real", 0.0, 10.0)),
        description="What every event carries: named numbers, drawn uniformly between low and high.",
    )


class SubscriptionSection(Section):
    """The subscriptions: what each subscriber asks for."""

    where: SubscriptionTexts = Field(
        ("A1 < ? and A2 < ?",),
        description="Ranges of attributes; each ? is drawn anew for each subscriber, from the attribute's"
        " domain. A list gives one to each subscriber in turn.",
    )

    def violations(self) -> Iterator[Violation]:
        """Texts that are no subscriptions, whatever the attributes are."""
        for place, error in misread(self.where, None):
            yield Violation((f"where.{place}",), error.message, error.position, error.width)


class RadioSection(RadioCosts):
    """The radio: how far it reaches, how fast it is and what it costs."""

    range_m: Metres | None = Field(
        None,
        gt=0,
        le=1e7,
        alias="range",
        description="Two nodes at most this far apart hear each other; left out: those in cells that touch.",
    )
    rate: int = Field(20, ge=1, le=1_000_000, description="Events that a node can send, or receive, in a second.")
    control_costs: bool = Field(
        False, description="Whether the battery feels control messages too (they are counted in any case)."
    )


_Control = Annotated[Bits, Field(ge=0, le=1_000_000_000)]


class ControlSection(Section):
    """The sizes of control messages."""

    hello_bits: _Control = Field(64, alias="hello", description="A subscriber says that it is there.")
    reply_bits: _Control = Field(96, alias="reply", description="A sensor answers a Hello.")
    path_bits: _Control = Field(256, alias="path", description="A sensor passes on where a subscriber is going.")
    route_bits: _Control = Field(64, alias="route", description="A sensor tells its neighbours its layer.")
    election_bits: _Control = Field(
        64, alias="election", description="A sensor takes part in electing a community's head."
    )
    notice_bits: _Control = Field(
        64, alias="notice", description="A returned event is announced to the head, or the head answers."
    )


class FieldScenario(Scenario):
    """Sensors in a field, and subscribers who walk through it."""

    network: ClassVar[str] = "field"
    PROTOCOLS: ClassVar[Protocols] = PROTOCOLS
    FILES: ClassVar[tuple[tuple[str, ...], ...]] = (("protocol", "file"), ("sensors", "file"))

    duration_s: WholeSeconds = Field(
        7200, ge=1, le=2_000_000_000, alias="duration", description="Simulated time, in whole seconds."
    )
    field: FieldSection = Field(default_factory=FieldSection)
    sensors: SensorSection = Field(default_factory=SensorSection)
    subscribers: SubscriberSection = Field(default_factory=SubscriberSection)
    events: EventSection = Field(default_factory=EventSection)
    subscriptions: SubscriptionSection = Field(default_factory=SubscriptionSection)
    radio: RadioSection = Field(default_factory=RadioSection)
    control: ControlSection = Field(default_factory=ControlSection)
    protocol: Annotated[Any, AnyProtocol(PROTOCOLS)] = Field(
        default_factory=PROTOCOLS[DEFAULT_PROTOCOL].settings,
        description="The protocol and its settings; `serai protocols` lists them all.",
    )

    def violations(self) -> Iterator[Violation]:
        """Constraints between sections that are violated."""
        yield from self._time_violations()
        for place, error in misread(self.subscriptions.where, self.events.attributes):
            keys = (f"subscriptions.where.{place}", "events.attributes")
            yield Violation(keys, error.message, error.position, error.width)
        if self.radio.range_m is not None and getattr(self.protocol, "reach", "touching") != "touching":
            yield Violation(("protocol.reach", "radio.range"), "there are no cells: leave it out with a radio.range")

        for x_m, y_m in self.sensors.relays or ():
            if not (0 <= x_m <= self.field.width_m and 0 <= y_m <= self.field.height_m):
                inside = f"0 to {self.field.width_m:g} m across, 0 to {self.field.height_m:g} m up"
                problem = f"[{x_m:g}, {y_m:g}] is outside the field, which reaches from {inside}"
                yield Violation(("sensors.relays", "field.width"), problem)

    def _time_violations(self) -> Iterator[Violation]:
        quiet, duration = self.events.quiet_s, self.duration_s
        if quiet > duration:
            problem = f"quiet ({quiet:g} s) is longer than the run ({duration} s)"
            yield Violation(("events.quiet", "duration"), problem)
        expected = self.sensors.count * max(0.0, duration - quiet) / self.events.interval_s
        if expected > _MOST_EVENTS:
            keys = ("events.interval", "sensors.count", "duration", "events.quiet")
            problem = f"about {expected:.1g} events would be born; at most {_MOST_EVENTS:,} are possible"
            yield Violation(keys, problem)

    def in_one_line(self) -> str:
        """What stands where, who walks, for how long."""
        file = self.sensors.file
        sensors = f"sensors of {file.name}" if file else f"{self.sensors.count} sensors"
        return (
            f"{sensors} · {self.field.width_m:g} x {self.field.height_m:g} m"
            f" · {self.subscribers.count} subscribers · {format_quantity(float(self.duration_s), TIME)}"
        )

    def as_written(self) -> dict[str, Any]:
        """The scenario as TOML data; the number of sensors is left to their file, if they have one."""
        data = super().as_written()
        if self.sensors.placement == "file":
            del data["sensors"]["count"]
        return data
