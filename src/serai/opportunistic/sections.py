"""The scenario of an opportunistic network: nodes that meet now and then, channels, bundles, subscriptions.

Who meets whom follows from a movement model, or from a trace: a file of contacts or of positions over time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from serai.core.content import Attribute
from serai.core.units import TIME, BitsPerSecond, Bytes, Metres, MetresPerSecond, Seconds, format_quantity
from serai.opportunistic.protocols import PROTOCOLS
from serai.recorded.sections import Instant, RecordedEvents
from serai.scenario.protocol import Protocols
from serai.scenario.section import (
    AnyProtocol,
    AttributesOfEvents,
    Cells,
    FilePath,
    Scenario,
    Section,
    SubscriptionTexts,
    Violation,
    misread,
)

_BESIDE_EVENTS = {
    "bundles": ("interval", "schedule", "quiet", "file"),
    "nodes": ("sources", "sinks"),
    "channels": ("count", "popularity", "activity", "each"),
    "subscriptions": ("where", "spread", "length", "alike", "groups", "mixing", "change"),
}
"""What a file of events leaves nothing to do for."""
_MOST_BUNDLES = 10_000_000
_MOST_NODES = 1_000_000
_MOST_CHANNELS = 1_000_000


class ContactSection(Section):
    """The contacts: where they come from."""

    source: Literal["movement", "trace"] = Field(
        "movement", description='Nodes move by the model of [movement], or a "trace" says who met whom or was where.'
    )
    file: FilePath = Field(
        None,
        description='The trace for source = "trace", plain or gzip. A relative path starts at the folder of this'
        " scenario.",
    )
    format: Literal[
        "auto", "one-contacts", "crawdad", "begin-duration", "sightings", "sightings-time-last", "sociopatterns",
        "one-movement", "bonnmotion", "ns2", "gpx", "movebank", "sumo",
    ] = Field("auto", description='The format of the trace; "auto": told from its first lines.')  # fmt: skip
    time_unit: Literal["us", "ms", "s", "min", "h"] = Field(
        "s", description="What the trace counts time in; files with dates need none."
    )
    nodes: str = Field(
        "",
        description='Which nodes of the trace there are: "1-41, n50"; all of them if empty. A new name meets nobody.',
    )
    begin_s: Seconds = Field(0.0, alias="begin", description="The time of the trace at which the run begins.")
    gap_s: Seconds = Field(
        0.0,
        ge=0,
        alias="gap",
        description="Between two positions of a trace further apart in time than this, a node is nowhere; 0: it is"
        " always on its way from one to the next. In a trace of contacts, two of the same nodes no further apart than"
        " this are one.",
    )
    min_contact_s: Seconds = Field(
        0.0, ge=0, alias="min_contact", description="Contacts of the trace that are shorter than this are left out."
    )

    def violations(self) -> Iterator[Violation]:
        """A file without need of it, the need without a file."""
        if self.source == "trace" and self.file is None:
            yield Violation(("source", "file"), 'needs the file of the trace; write file = "contacts.txt"')
        if self.source == "movement":
            for key in ("file", "format", "time_unit", "nodes", "begin", "gap", "min_contact"):
                if {key, f"{key}_s"} & self.model_fields_set:
                    yield Violation((key, "source"), 'only used with source = "trace"')


class MovementSection(Section):
    """The movement: how nodes walk in a field."""

    model: Literal["random-waypoint", "random-walk", "levy-walk", "community"] = Field(
        "random-waypoint",
        description="Legs to points anywhere; legs of drawn lengths and directions; the same with lengths and pauses by"
        " power laws; or legs to points of the node's home, now and then to points anywhere.",
    )
    width_m: Metres = Field(1000.0, gt=0, le=1e7, alias="width", description="The field, from west to east.")
    height_m: Metres = Field(1000.0, gt=0, le=1e7, alias="height", description="The field, from south to north.")
    speed_min_mps: MetresPerSecond = Field(
        0.5, gt=0, alias="speed_min", description="Each leg has a new speed, above this one."
    )
    speed_max_mps: MetresPerSecond = Field(
        1.5, gt=0, le=1e6, alias="speed_max", description="Each leg has a new speed, at most this one."
    )
    pause_min_s: Seconds = Field(
        0.0, ge=0, alias="pause_min", description="A pause after a leg is at least this long; above 0 in a Levy walk."
    )
    pause_max_s: Seconds = Field(
        120.0, ge=0, alias="pause_max", description="A pause after a leg is at most this long."
    )
    start: Literal["cold", "steady"] = Field(
        "steady",
        description='Random waypoint. "cold": all set off at time 0, from anywhere; "steady": as if they had long been'
        " on their way.",
    )
    leg_min_m: Metres = Field(10.0, gt=0, alias="leg_min", description="Walks: a leg is at least this long.")
    leg_max_m: Metres = Field(200.0, gt=0, le=1e7, alias="leg_max", description="Walks: a leg is at most this long.")
    leg_exponent: float = Field(
        1.6,
        gt=0,
        le=10,
        description="Levy walk: the share of legs longer than l falls as l to the power of minus this.",
    )
    pause_exponent: float = Field(0.8, gt=0, le=10, description="Levy walk: the same for pauses.")
    homes: Cells = Field(
        (2, 2), description="Community: columns and rows of homes, or one number for both; nodes get them in turn."
    )
    home_share: float = Field(0.8, ge=0, le=1, description="Community: how often a leg leads home.")

    def violations(self) -> Iterator[Violation]:
        """Ranges the wrong way round."""
        for name, unit in (("speed", "mps"), ("pause", "s"), ("leg", "m")):
            least, most = (getattr(self, f"{name}_{end}_{unit}") for end in ("min", "max"))
            if least > most:
                yield Violation(
                    (f"{name}_min", f"{name}_max"), f"{name}_min ({least:g}) is above {name}_max ({most:g})"
                )
        if self.model == "levy-walk" and self.pause_min_s == 0 < self.pause_max_s:
            yield Violation(
                ("pause_min", "model"), "a Levy walk needs a pause_min above 0: its pauses follow a power law"
            )


class NodeSection(Section):
    """The nodes: who publishes, who subscribes, who carries for others."""

    count: int = Field(
        100, ge=2, le=_MOST_NODES, description="How many there are; left out with a trace, which says it."
    )
    sources: int | None = Field(None, ge=1, description="How many publish; if left out, all may.")
    sinks: int | None = Field(None, ge=0, description="How many subscribe; if left out, all do.")
    carriers: Literal["all", "others"] = Field(
        "all",
        description='Who carries bundles for others: all nodes, or only "others" than sources and sinks.',
    )
    store_bytes: Bytes = Field(
        20_000_000, ge=0, le=1 << 60, alias="store", description="How much a node can hold, its own bundles included."
    )
    when_full: Literal[
        "refuse", "oldest", "soonest", "first-in", "youngest", "largest", "most-copied", "least-wanted"
    ] = Field(
        "oldest",
        description="A full store refuses a bundle, or drops others for it: the oldest; those that expire soonest;"
        " those that it took in first, which it may take again (as in The ONE); the youngest; the largest; those it"
        " has itself handed on most often; or those on channels that the fewest of its contacts so far wanted.",
    )  # fmt: skip
    keep_own: int = Field(
        0,
        ge=0,
        le=_MOST_NODES,
        description="A node does not drop its own bundle for others until this many neighbours have it.",
    )

    def violations(self) -> Iterator[Violation]:
        """Own bundles that are kept until taken, where a neighbour may take the same one again and again."""
        if self.when_full == "first-in" and self.keep_own:
            yield Violation(
                ("keep_own", "when_full"), 'leave it out with when_full = "first-in", where bundles come again'
            )


class ContactRadioSection(Section):
    """The radio: how far and how fast."""

    range_m: Metres = Field(
        20.0, gt=0, le=1e7, alias="range", description="How far it reaches; not used with a trace of contacts."
    )
    rate_bps: BitsPerSecond = Field(2e6, gt=0, alias="rate", description="How fast it sends, in each direction.")
    single: bool = Field(
        False,
        description="Whether a node takes part in one transfer at a time (as in The ONE); otherwise each direction of"
        " each contact is a link of its own.",
    )


class ChannelSection(Section):
    """The channels: what there is to subscribe to."""

    count: int = Field(100, ge=1, le=_MOST_CHANNELS, description="How many there are; each has one source.")
    popularity: float = Field(
        1.0,
        ge=0,
        le=10,
        description="Zipf's exponent s: subscribers choose the n-th channel n^-s times as often as the first; 0: all"
        " equally often.",
    )
    activity: float = Field(0.0, ge=0, le=10, description="Zipf's exponent for publications on a channel.")
    each: int = Field(8, ge=1, description="How many channels each sink subscribes to.")

    def violations(self) -> Iterator[Violation]:
        """More subscriptions than channels."""
        if self.each > self.count:
            yield Violation(("each", "count"), f"there are only {self.count} channels to subscribe to")


class BundleSection(Section):
    """The bundles: what is published."""

    interval_s: Seconds = Field(
        60.0, gt=0, alias="interval", description="Mean time between two publications in the whole network."
    )
    schedule: Literal["poisson", "regular"] = Field(
        "poisson", description='At random times (a Poisson process), or "regular"ly, one interval after the other.'
    )
    quiet_s: Seconds = Field(0.0, ge=0, alias="quiet", description="Nothing is published in this last part of the run.")
    size_min_bytes: Bytes = Field(
        1_000, ge=1, le=1 << 50, alias="size_min", description="A bundle is at least this large."
    )
    size_max_bytes: Bytes = Field(
        45_000, ge=1, le=1 << 50, alias="size_max", description="A bundle is at most this large."
    )
    sizes: Literal["log-uniform", "uniform"] = Field(
        "log-uniform", description="Sizes between the two: as many from 1 to 2 kB as from 10 to 20 kB, or all alike."
    )
    lifetime_s: Seconds = Field(3600.0, gt=0, alias="lifetime", description="A bundle older than this is dropped.")
    lifetime_unit_s: Seconds = Field(
        0.0,
        ge=0,
        alias="lifetime_unit",
        description='Lifetimes end to the instant (0), or count in whole units of this (The ONE: "1 min"; needs step):'
        " with less than one left a bundle goes to subscribers only, and once per unit, when it is not sending, a"
        " node looks for what it has to drop.",
    )
    file: FilePath = Field(
        None,
        description="What is published, by whom and when, instead of drawing it: a report of The ONE on created"
        " messages, or CSV.",
    )

    def violations(self) -> Iterator[Violation]:
        """Sizes the wrong way round."""
        if self.size_min_bytes > self.size_max_bytes:
            problem = f"size_min ({self.size_min_bytes:,} byte) is above size_max ({self.size_max_bytes:,} byte)"
            yield Violation(("size_min", "size_max"), problem)


class InterestSection(Section):
    """The subscriptions: who wants what, from when to when."""

    spread_s: Seconds = Field(
        0.0, ge=0, alias="spread", description="Each subscription begins at a random time up to this one; 0: at once."
    )
    length_s: Seconds = Field(
        0.0, ge=0, alias="length", description="How long a subscription lasts; 0: to the end of the run."
    )
    file: FilePath = Field(
        None, description="Who wants which channel, instead of drawing it: CSV with columns node, channel, from, to."
    )
    where: SubscriptionTexts | None = Field(
        None,
        description="Ranges of attributes instead of channels; each ? is drawn anew for each sink. A list gives one to"
        " each sink in turn.",
    )

    alike: Literal["nobody", "group", "community"] = Field(
        "nobody",
        description="Which sinks want the same channels: each chooses for itself, or groups share one taste; sinks"
        " join groups in turn, or communities of those that spend time together in this run (by modularity).",
    )
    groups: int = Field(4, ge=1, le=_MOST_NODES, description='How many groups there are (alike = "group").')
    mixing: float = Field(
        0.0, ge=0, le=1, description="The share of channels that a sink chooses for itself rather than like its group."
    )
    change_s: Seconds = Field(
        0.0,
        ge=0,
        alias="change",
        description="After each such period, popularity is dealt anew among the channels, and sinks choose again by"
        " the same tastes; 0: never.",
    )

    def violations(self) -> Iterator[Violation]:
        """Texts that are no subscriptions, whatever the attributes are; two sources of subscriptions."""
        if self.groups != type(self).model_fields["groups"].default and self.alike != "group":
            yield Violation(("groups", "alike"), 'only used with alike = "group"')
        if self.mixing > 0 and self.alike == "nobody":
            yield Violation(("mixing", "alike"), 'only used with alike = "group" or "community"')
        if self.change_s > 0 and (self.spread_s > 0 or self.length_s > 0):
            yield Violation(("change", "spread", "length"), "subscriptions change with popularity, or by themselves")
        if self.where is not None or self.file is not None:
            for key, is_set in (("alike", self.alike != "nobody"), ("change", self.change_s > 0)):
                if is_set:
                    yield Violation((key, "where", "file"), "only used where channels are drawn")
        for place, error in misread(self.where or (), None):
            yield Violation((f"where.{place}",), error.message, error.position, error.width)
        if self.where is not None and self.file is not None:
            yield Violation(("where", "file"), "either ranges or a file of subscriptions, not both")


class ContentSection(RecordedEvents):
    """The content of bundles: drawn if subscriptions are ranges (each cell of the domain a channel), or of a file."""

    attributes: AttributesOfEvents = Field(
        (Attribute("A1", "real", 0.0, 10.0), Attribute("A2", "real", 0.0, 10.0)),
        description="What every bundle carries: named numbers, drawn uniformly between low and high.",
    )
    cells: int = Field(
        4,
        ge=1,
        le=1000,
        description="Into how many parts each attribute's domain is cut; each cell is a channel, and a sink"
        " subscribes to all that its range touches.",
    )

    def violations(self) -> Iterator[Violation]:
        """Too many channels; what does not stand beside a file."""
        yield from super().violations()
        if self.file is not None and "cells" in self.model_fields_set:
            yield Violation(("cells", "file"), "leave it out: with a file of events nodes match the content itself")
        if self.cells ** len(self.attributes) > _MOST_CHANNELS:
            yield Violation(("cells", "attributes"), f"more than {_MOST_CHANNELS:,} channels; use fewer cells")


class OpportunisticScenario(Scenario):
    """One whole experiment in an opportunistic network, but for the seed."""

    network: ClassVar[str] = "opportunistic"
    PROTOCOLS: ClassVar[Protocols] = PROTOCOLS
    FILES: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("protocol", "file"),
        ("contacts", "file"),
        ("bundles", "file"),
        ("subscriptions", "file"),
        ("events", "file"),
    )

    duration_s: Seconds = Field(7200.0, gt=0, le=2e9, alias="duration", description="Simulated time.")
    step_s: Seconds = Field(
        0.0,
        ge=0,
        alias="step",
        description="Everything happens at its exact time (0), or at multiples of this, as simulators with ticks do:"
        ' "1 s".',
    )
    begin: Instant | None = Field(
        None, description="The date of the run's time 0, for the files of [events] and [subscriptions]."
    )
    contacts: ContactSection = Field(default_factory=ContactSection)
    movement: MovementSection = Field(default_factory=MovementSection)
    nodes: NodeSection = Field(default_factory=NodeSection)
    radio: ContactRadioSection = Field(default_factory=ContactRadioSection)
    channels: ChannelSection = Field(default_factory=ChannelSection)
    bundles: BundleSection = Field(default_factory=BundleSection)
    subscriptions: InterestSection = Field(default_factory=InterestSection)
    events: ContentSection = Field(default_factory=ContentSection)
    protocol: Annotated[Any, AnyProtocol(PROTOCOLS)] = Field(
        default_factory=lambda: PROTOCOLS["dpsp"].settings(),
        description="The protocol and its settings; `serai protocols` lists them all.",
    )

    def violations(self) -> Iterator[Violation]:
        """Constraints between sections that are violated."""
        yield from self._trace_violations()
        yield from self._content_violations()
        if self.bundles.lifetime_unit_s > 0 and self.step_s == 0:
            yield Violation(("bundles.lifetime_unit", "step"), 'only used with ticks; write step = "1 s"')
        quiet_s, duration_s = self.bundles.quiet_s, self.duration_s
        if quiet_s >= duration_s:
            problem = (
                f"quiet ({quiet_s:g} s) is as long as the run ({duration_s:g} s) or longer: nothing would be published;"
                ' choose less, down to "0 s"'
            )
            yield Violation(("bundles.quiet", "duration"), problem)
        drawn = self.bundles.file is None and self.events.file is None
        if drawn and (duration_s - quiet_s) / self.bundles.interval_s > _MOST_BUNDLES:
            keys = ("bundles.interval", "duration", "bundles.quiet")
            yield Violation(keys, f"more than {_MOST_BUNDLES:,} bundles would be published; use a longer interval")

    def _file_violations(self) -> Iterator[Violation]:
        """What does not stand beside a file of events."""
        if self.subscriptions.file is None:
            yield Violation(("events.file", "subscriptions.file"), 'needs subscriptions.file = "wishes.csv"')
        for section, keys in _BESIDE_EVENTS.items():
            for key in keys:
                if {key, f"{key}_s"} & getattr(self, section).model_fields_set:
                    yield Violation((f"{section}.{key}", "events.file"), "leave it out: the file of events says it")

    def _content_violations(self) -> Iterator[Violation]:
        if self.events.file is not None:
            yield from self._file_violations()
            return
        if self.subscriptions.where is None:
            if self.events.model_fields_set:
                yield Violation(
                    ("events", "subscriptions.where"), "only used with ranges: subscriptions.where is not set"
                )
            return
        if self.bundles.file is not None:
            yield Violation(
                ("subscriptions.where", "bundles.file"), "a file of bundles has channels, so ranges match nothing"
            )
        for place, error in misread(self.subscriptions.where, self.events.attributes):
            keys = (f"subscriptions.where.{place}", "events.attributes")
            yield Violation(keys, error.message, error.position, error.width)

    def _trace_violations(self) -> Iterator[Violation]:
        traced = self.contacts.source == "trace"
        if traced and "count" in self.nodes.model_fields_set:
            yield Violation(("nodes.count", "contacts.source"), "leave it out: the trace says how many nodes there are")
        for role in ("sources", "sinks"):
            number = getattr(self.nodes, role)
            if not traced and number is not None and number > self.nodes.count:
                yield Violation((f"nodes.{role}", "nodes.count"), f"there are only {self.nodes.count} nodes")

    def in_one_line(self) -> str:
        """Who moves how or which trace it is, for how long."""
        if self.contacts.source == "trace":
            who = f"nodes of {self.contacts.file.name if self.contacts.file else 'a trace'}"
        else:
            field = self.movement
            who = f"{self.nodes.count} nodes · {field.width_m:g} x {field.height_m:g} m · {field.model}"
        return f"{who} · {format_quantity(self.duration_s, TIME)}"

    def as_written(self) -> dict[str, Any]:
        """The scenario as TOML data, without the tables and keys that are of no use in it."""
        data = super().as_written()
        traced = self.contacts.source == "trace"
        if traced:
            del data["nodes"]["count"]
        else:
            data["contacts"] = {"source": "movement"}
        if traced and self.movement == MovementSection():
            del data["movement"]
        if self.events.file is not None:
            for section, keys in _BESIDE_EVENTS.items():
                data[section] = {key: value for key, value in data[section].items() if key not in keys}
            data["events"] = {
                key: data["events"][key] for key in ("file", "every", "on_change") if key in data["events"]
            }
        elif self.subscriptions.where is None:
            del data["events"]
        return data
