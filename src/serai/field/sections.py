"""The scenario of a field: sensors in communities, subscribers who walk by; its defaults are the papers' set-up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from serai.core.content import Attribute
from serai.core.counting import counted
from serai.core.errors import BadSubscription
from serai.core.harvest import HOURS, MOST_W, format_harvest, parse_harvest
from serai.core.units import (
    TIME,
    Bits,
    Joules,
    Metres,
    Seconds,
    Watts,
    WholeSeconds,
    format_quantity,
)
from serai.field.protocols import PROTOCOLS
from serai.field.subscribers import SubscriberSection
from serai.recorded.sections import ASKED_FILE, Instant, RecordedEvents
from serai.scenario.groups import Repeatable
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


def _place(value: object) -> object:
    numbers = list(value) if isinstance(value, list | tuple) else []
    if len(numbers) != 2 or any(type(axis) not in (int, float) for axis in numbers):
        raise PydanticCustomError("place", "expected longitude and latitude in degrees, such as [11.05, 47.99]")
    if abs(numbers[0]) > 180 or abs(numbers[1]) > 90:
        raise PydanticCustomError("place", "longitude is between -180 and 180 degrees, latitude between -90 and 90")
    return float(numbers[0]), float(numbers[1])


Place = Annotated[
    tuple[float, float],
    BeforeValidator(_place),
    WithJsonSchema({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
]


def _harvest(value: object) -> object:
    try:
        return parse_harvest(value)
    except ValueError as error:
        raise PydanticCustomError("harvest", "{problem}", {"problem": str(error)}) from None


_POWER = {"type": "string", "examples": ["2 mW"]}
Harvest = Annotated[
    tuple[float, ...],
    BeforeValidator(_harvest),
    PlainSerializer(format_harvest, when_used="json"),
    WithJsonSchema(
        {
            "anyOf": [
                _POWER,
                {"type": "object", "additionalProperties": _POWER},
                {"type": "array", "items": _POWER, "minItems": HOURS, "maxItems": HOURS},
            ],
            "examples": ["2 mW", {"6-18": "2 mW"}],
        }
    ),
]
"""A power for each hour of the day."""

_MOST_CELLS = 100_000_000
_SMALLEST_CELL_M = 0.001
MOST_EVENTS = 1_000_000_000


class FieldSection(Section):
    """The field: a rectangle cut into cells."""

    width_m: Metres = Field(200.0, gt=0, le=1e7, alias="width", description="From west to east.")
    height_m: Metres = Field(200.0, gt=0, le=1e7, alias="height", description="From south to north.")
    cells: Cells = Field(
        (15, 15),
        description="Columns and rows of the grid, [15, 12], or one number for both. Two nodes hear each other if"
        " their cells are the same or touch; unused if there is a radio.range.",
    )

    origin: Place | None = Field(
        None,
        description="Longitude and latitude of the lower left corner, [11.05, 47.99]; left out: the corner of the"
        " sensors' bounding box, if their file has degrees.",
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
        description='Positions for placement = "file": CSV or GeoJSON, with what each sensor has of its own: battery,'
        " interval, queue, range, idle, harvest. A relative path starts at the folder of this scenario.",
    )
    battery_j: Joules = Field(10.0, gt=0, le=9e6, alias="battery", description="Energy of each sensor at the start.")
    queue: int = Field(
        200,
        ge=1,
        le=1_000_000,
        description="How many copies a sensor can hold; a full queue accepts nothing.",
    )

    failing: float = Field(
        0.0, ge=0, le=1, description="The fraction of the sensors that fail, drawn for each seed: 0.2 is every fifth."
    )
    fail_at_s: WholeSeconds = Field(
        3600,
        ge=0,
        le=2_000_000_000,
        alias="fail_at",
        description="When they fail, all at once, as if their batteries were empty.",
    )

    idle_w: Watts = Field(
        0.0,
        ge=0,
        le=MOST_W,
        alias="idle",
        description="Power that a sensor needs for listening, which it does all its life; none in the papers' worlds.",
    )
    harvest_w: Harvest = Field(
        (0.0,) * HOURS,
        alias="harvest",
        description='Power that a sensor harvests: "2 mW", by the hour of the day {"6-18" = "2 mW"}, or 24 powers.',
    )
    wake: float = Field(
        0.1,
        gt=0,
        le=1,
        description="A dead sensor that harvests wakes when its battery holds this share of what it held at the start.",
    )
    relays: Places = Field(
        None,
        description="Where relays stand, [[120, 80], [40, 15.5]] in metres from the field's lower left corner:"
        " sensors without events of their own, not counted in `count` or `file`.",
    )

    def violations(self) -> Iterator[Violation]:
        """A file without need of it, the need without a file."""
        if self.placement == "file" and self.file is None:
            yield Violation(("placement", "file"), 'needs a file of positions; write file = "sensors.csv"')
        if self.placement != "file" and self.file is not None:
            yield Violation(("file", "placement"), 'only used with placement = "file"')
        if self.placement == "file" and "count" in self.model_fields_set:
            yield Violation(("count", "placement"), "leave it out: the file of positions says how many there are")


class EventSection(RecordedEvents):
    """The events: born at random at every sensor, or as a file says."""

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

    file: FilePath = ASKED_FILE

    def violations(self) -> Iterator[Violation]:
        """Texts that are no subscriptions, whatever the attributes are; two sources of subscriptions."""
        if self.file is not None and "where" in self.model_fields_set:
            yield Violation(("where", "file"), "either texts or a file of subscriptions, not both")
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
    loss: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="The fraction of all transmissions of events that are lost; only with protocols that acknowledge.",
    )
    control_costs: bool = Field(
        False, description="Whether control messages also drain the battery (they are counted in any case)."
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
    FILES: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("protocol", "file"),
        ("sensors", "file"),
        ("events", "file"),
        ("subscriptions", "file"),
        ("subscribers", "tracks"),
        ("subscribers", "route", "line"),
        ("subscribers", "route", "places"),
    )

    duration_s: WholeSeconds = Field(
        7200, ge=1, le=2_000_000_000, alias="duration", description="Simulated time, in whole seconds."
    )
    begin: Instant | None = Field(
        None,
        description="The date of the run's time 0, in UTC: files with dates count from it; left out: from their first"
        " date.",
    )
    field: FieldSection = Field(default_factory=FieldSection)
    sensors: SensorSection = Field(default_factory=SensorSection)
    subscribers: Annotated[Any, Repeatable(SubscriberSection)] = Field(
        default_factory=SubscriberSection,
        description="The subscribers: those who move through the field and collect events; one table, or one for each"
        " group: [[subscribers]].",
    )
    events: EventSection = Field(default_factory=EventSection)
    subscriptions: SubscriptionSection = Field(default_factory=SubscriptionSection)
    radio: RadioSection = Field(default_factory=RadioSection)
    control: ControlSection = Field(default_factory=ControlSection)
    protocol: Annotated[Any, AnyProtocol(PROTOCOLS)] = Field(
        default_factory=PROTOCOLS[DEFAULT_PROTOCOL].settings,
        description="The protocol and its settings; `serai protocols` lists them all.",
    )

    @property
    def groups(self) -> tuple[SubscriberSection, ...]:
        """The groups of subscribers, be it one or several."""
        return self.subscribers if isinstance(self.subscribers, tuple) else (self.subscribers,)

    def violations(self) -> Iterator[Violation]:
        """Constraints between sections that are violated."""
        yield from self._time_violations()
        yield from self._group_violations()
        wishes = self.subscriptions.where if self._asks_as_all() or self.subscriptions.model_fields_set else ()
        for place, error in self._misread(wishes):
            keys = (f"subscriptions.where.{place}", "events.attributes")
            yield Violation(keys, error.message, error.position, error.width)
        if self.radio.loss and not getattr(self.protocol, "acknowledges", False):
            problem = f"{self.protocol.name} acknowledges nothing, and what were lost would stay so; only serai does"
            yield Violation(("radio.loss", "protocol.name"), problem)
        if self.radio.range_m is not None and getattr(self.protocol, "reach", "touching") != "touching":
            yield Violation(("protocol.reach", "radio.range"), "there are no cells: leave it out with a radio.range")

        for x_m, y_m in self.sensors.relays or ():
            if not (0 <= x_m <= self.field.width_m and 0 <= y_m <= self.field.height_m):
                inside = f"0 to {self.field.width_m:g} m across, 0 to {self.field.height_m:g} m up"
                problem = f"[{x_m:g}, {y_m:g}] is outside the field, which reaches from {inside}"
                yield Violation(("sensors.relays", "field.width"), problem)

    def _misread(self, texts: Sequence[str]) -> Iterator[tuple[int, BadSubscription]]:
        """Texts that do not fit the attributes; those of a file are not known yet."""
        return misread(texts, self.events.attributes) if self.events.file is None else iter(())

    def _asks_as_all(self) -> bool:
        """Whether some group asks for what [subscriptions] says."""
        return self.subscriptions.file is None and any(
            group.where is None and not group.only_carries for group in self.groups
        )

    def _group_violations(self) -> Iterator[Violation]:
        several = isinstance(self.subscribers, tuple)
        for number, group in enumerate(self.groups):
            table = f"subscribers.{number}" if several else "subscribers"
            if group.where is not None and self.subscriptions.file is not None:
                keys = (f"{table}.where", "subscriptions.file")
                yield Violation(keys, "leave it out: the file of subscriptions says who asks for what")
            for place, error in self._misread(group.where or ()):
                keys = (f"{table}.where.{place}", "events.attributes")
                yield Violation(keys, error.message, error.position, error.width)

    def _time_violations(self) -> Iterator[Violation]:
        if self.events.file is not None:
            return
        quiet, duration = self.events.quiet_s, self.duration_s
        if quiet > duration:
            problem = f'quiet ({quiet:g} s) is longer than the run ({duration} s): choose less, down to "0 s"'
            yield Violation(("events.quiet", "duration"), problem)
        expected = self.sensors.count * max(0.0, duration - quiet) / self.events.interval_s
        if expected > MOST_EVENTS:
            keys = ("events.interval", "sensors.count", "duration", "events.quiet")
            problem = f"about {expected:.1g} events would be born; at most {MOST_EVENTS:,} are possible"
            yield Violation(keys, problem)

    def in_one_line(self) -> str:
        """What stands where, who walks, for how long."""
        file = self.sensors.file
        sensors = f"sensors of {file.name}" if file else f"{self.sensors.count} sensors"
        return (
            f"{sensors} · {self.field.width_m:g} x {self.field.height_m:g} m"
            f" · {', '.join(map(in_words, self.groups))} · {format_quantity(float(self.duration_s), TIME)}"
        )

    def as_written(self) -> dict[str, Any]:
        """The scenario as TOML data; the number of sensors is left to their file, if they have one."""
        data = super().as_written()
        if self.sensors.placement == "file":
            del data["sensors"]["count"]
        if self.events.file is not None:
            for key in ("interval", "quiet", "attributes"):
                del data["events"][key]
        if self.subscriptions.file is not None:
            del data["subscriptions"]["where"]
        elif not self._asks_as_all() and not self.subscriptions.model_fields_set:
            del data["subscriptions"]  # a default that may not fit the attributes
        written = data["subscribers"]
        several = [group.as_written(one) for group, one in zip(self.groups, _as_list(written), strict=True)]
        return data | {"subscribers": several if isinstance(written, list) else several[0]}


def in_words(group: SubscriberSection) -> str:
    """How many subscribers of a group there are: "10 subscribers", "tracks of vehicles.gpx"."""
    count, name = group.asked, group.name or "subscribers"
    if count is None:
        return f"{name} of {group.tracks.name}" if group.tracks else name
    return counted(count, name)


def _as_list(written: Any) -> list[Any]:
    return written if isinstance(written, list) else [written]
