"""The scenario of an overlay: static nodes that all reach each other; its defaults are the TinyMQ paper's set-up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from serai.core.content import Attribute, parse_template
from serai.core.units import Bits, Metres
from serai.overlay.protocols import PROTOCOLS
from serai.overlay.tinymq import MOST_BITS
from serai.recorded.sections import ASKED_FILE, RecordedEvents
from serai.scenario.protocol import Protocols
from serai.scenario.section import (
    AnyProtocol,
    AttributesOfEvents,
    FilePath,
    RadioCosts,
    Scenario,
    Section,
    SubscriptionTexts,
    Violation,
    misread,
)

_MOST_NODES = 10_000_000


class AreaSection(Section):
    """The area in which the nodes stand: a rectangle."""

    width_m: Metres = Field(500.0, gt=0, le=1e7, alias="width", description="From west to east.")
    height_m: Metres = Field(200.0, gt=0, le=1e7, alias="height", description="From south to north.")


class NodeSection(Section):
    """The nodes: each may publish, subscribe, and be where events and subscriptions meet."""

    count: int = Field(1500, ge=1, le=_MOST_NODES, description="How many there are; left out where a file says it.")
    placement: Literal["uniform", "grid", "file", "links"] = Field(
        "uniform",
        description='Where they stand: "uniform" at random, on a regular "grid", or as a "file" says; or "links": a'
        " file says who hears whom, and there are no positions.",
    )
    file: FilePath = Field(
        None,
        description='Positions (CSV or GeoJSON) for placement = "file"; a CSV file with columns from and to for'
        ' "links". A relative path starts at the folder of this scenario.',
    )
    draws: int = Field(
        1000,
        ge=1,
        le=1_000_000,
        description='How often "uniform" may be drawn anew until every node can reach every other.',
    )
    largest: bool = Field(
        False, description="Whether to go on with the largest part of a network that is not connected."
    )

    def violations(self) -> Iterator[Violation]:
        """A file without need of it, the need without a file."""
        from_file = self.placement in ("file", "links")
        if from_file and self.file is None:
            yield Violation(("placement", "file"), f'needs a file; write file = "{self.placement}.csv"')
        if not from_file and self.file is not None:
            yield Violation(("file", "placement"), 'only used with placement = "file" or "links"')
        if from_file and "count" in self.model_fields_set:
            yield Violation(("count", "placement"), "leave it out: the file says how many there are")


def _names(value: object) -> object:
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise PydanticCustomError("names", 'expected a list of names of nodes, such as ["s0", "s7"]')


class RootSection(Section):
    """The roots of the trees: the network's sinks, which never fail."""

    count: int = Field(10, ge=1, le=10_000, description="How many trees there are.")
    placement: Literal["random", "edge", "k-centre", "given"] = Field(
        "random",
        description='Which nodes they are: "random" ones, along an "edge" of the field, each far from the others'
        ' ("k-centre"), or those "given" in `nodes`.',
    )
    spacing_m: Metres | None = Field(
        None,
        gt=0,
        le=1e7,
        alias="spacing",
        description='With placement = "edge": how far apart; left out: evenly all along the edge.',
    )
    nodes: Annotated[
        tuple[str, ...],
        BeforeValidator(_names),
        PlainSerializer(list, when_used="json"),
        WithJsonSchema({"type": "array", "items": {"type": "string"}}),
    ] = Field((), description='The names of the roots for placement = "given"; the first `count` of them are used.')

    def violations(self) -> Iterator[Violation]:
        """Names without need of them, too few of them, one twice; a spacing without an edge."""
        if self.placement == "given" and len(self.nodes) < self.count:
            yield Violation(("nodes", "count"), f"{len(self.nodes)} names for {self.count} roots")
        if self.placement != "given" and self.nodes:
            yield Violation(("nodes", "placement"), 'only used with placement = "given"')
        if twice := sorted({name for name in self.nodes if self.nodes.count(name) > 1}):
            yield Violation(("nodes",), f"named twice: {', '.join(twice)}")
        if self.placement != "edge" and self.spacing_m is not None:
            yield Violation(("spacing", "placement"), 'only used with placement = "edge"')


class OverlayEventSection(RecordedEvents):
    """The events: each is published by a node drawn at random, or as a file says."""

    DRAWN: ClassVar[tuple[str, ...]] = ("count",)  # keys are made of the attributes' domains, which a file does not say

    count: int = Field(10_000, ge=0, le=100_000_000, description="How many there are.")
    size_bits: Bits = Field(250, ge=1, le=1_000_000_000, alias="size", description="Size of an event on the air.")
    attributes: AttributesOfEvents = Field(
        (Attribute("A1", "real", 0.0, 1.0), Attribute("A2", "real", 0.0, 1.0)),
        description="What every event carries: named numbers, drawn uniformly between low and high.",
    )


class OverlaySubscriptionSection(Section):
    """The subscriptions, which the TinyMQ paper calls queries: each by a node drawn at random."""

    count: int = Field(100, ge=0, le=10_000_000, description="How many there are.")
    widest: float = Field(
        0.14,
        gt=0,
        le=1,
        description="Random boxes, unless `where` is given: each side is widest x r / 100 of the attribute's domain,"
        " r = 1 .. 100 with probability proportional to 1 / r (Zipf).",
    )
    where: SubscriptionTexts | None = Field(
        None,
        description="Ranges of attributes instead of random boxes; each ? is drawn anew for each subscriber, from the"
        " attribute's domain. A list gives one to each subscriber in turn.",
    )
    file: FilePath = ASKED_FILE
    size_bits: Bits = Field(250, ge=1, le=1_000_000_000, alias="size", description="Size of a subscription on the air.")

    def violations(self) -> Iterator[Violation]:
        """Texts that are no subscriptions, whatever the attributes are; what does not stand beside a file."""
        for key in ("count", "widest", "where") if self.file is not None else ():
            if key in self.model_fields_set:
                yield Violation((key, "file"), "leave it out: the file of subscriptions says who asks for what")
        for place, error in misread(self.where or (), None):
            yield Violation((f"where.{place}",), error.message, error.position, error.width)


class FailureSection(Section):
    """Nodes that fail, all at once, after the subscriptions are in place."""

    fraction: float = Field(
        0.0, ge=0, lt=1, description="The fraction of the nodes that fail, drawn at random; roots never do."
    )


class OverlayRadioSection(RadioCosts):
    """The radio: how far it reaches and what it costs."""

    range_m: Metres = Field(
        20.0,
        gt=0,
        le=1e7,
        alias="range",
        description="Two nodes at most this far apart hear each other. Every message is sent this far: no node knows"
        " where the others stand.",
    )


class OverlayControlSection(Section):
    """The sizes of control messages."""

    info_bits: Annotated[Bits, Field(ge=0, le=1_000_000_000)] = Field(
        250, alias="info", description="A node tells its neighbours its key, its root and its distances."
    )


class OverlayScenario(Scenario):
    """A static, connected network in which events and subscriptions meet at rendezvous nodes."""

    network: ClassVar[str] = "overlay"
    PROTOCOLS: ClassVar[Protocols] = PROTOCOLS
    FILES: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("nodes", "file"),
        ("events", "file"),
        ("subscriptions", "file"),
    )

    field: AreaSection = Field(default_factory=AreaSection)
    nodes: NodeSection = Field(default_factory=NodeSection)
    roots: RootSection = Field(default_factory=RootSection)
    events: OverlayEventSection = Field(default_factory=OverlayEventSection)
    subscriptions: OverlaySubscriptionSection = Field(default_factory=OverlaySubscriptionSection)
    failures: FailureSection = Field(default_factory=FailureSection)
    radio: OverlayRadioSection = Field(default_factory=OverlayRadioSection)
    control: OverlayControlSection = Field(default_factory=OverlayControlSection)
    protocol: Annotated[Any, AnyProtocol(PROTOCOLS)] = Field(
        default_factory=PROTOCOLS["tinymq"].settings,
        description="The protocol and its settings; `serai protocols` lists them all.",
    )

    def violations(self) -> Iterator[Violation]:
        """Constraints between sections that are violated."""
        yield from self._root_violations()
        yield from self._subscription_violations()
        attributes, bits = len(self.events.attributes), self.protocol.attribute_bits
        if attributes * bits > MOST_BITS:
            problem = f"{attributes} attributes of {bits} bits are {attributes * bits} bits; at most {MOST_BITS} fit"
            yield Violation(("protocol.attribute_bits", "events.attributes"), problem)

    def _root_violations(self) -> Iterator[Violation]:
        if self.nodes.file is None and self.roots.count > self.nodes.count:
            problem = f"{self.roots.count} roots, but there are only {self.nodes.count} nodes"
            yield Violation(("roots.count", "nodes.count"), problem)
        if self.nodes.placement == "links" and self.roots.placement == "edge":
            yield Violation(("roots.placement", "nodes.placement"), "nodes of a file of links stand nowhere")

    def _subscription_violations(self) -> Iterator[Violation]:
        attributes = self.events.attributes
        where = self.subscriptions.where or ()
        misreadings = list(misread(where, attributes))
        for place, error in misreadings:
            keys = (f"subscriptions.where.{place}", "events.attributes")
            yield Violation(keys, error.message, error.position, error.width)
        for place in sorted(set(range(len(where))) - {place for place, _ in misreadings}):
            for attribute in _missed(where[place], attributes):
                domain = f"{attribute.low:g} .. {attribute.high:g}"
                problem = f"can match nothing: the domain of {attribute.name} is {domain}"
                yield Violation((f"subscriptions.where.{place}", "events.attributes"), problem)

    def in_one_line(self) -> str:
        """How many nodes and trees, queries and events."""
        file = self.nodes.file
        nodes = f"nodes of {file.name}" if file else f"{self.nodes.count} nodes"
        trees = "1 tree" if self.roots.count == 1 else f"{self.roots.count} trees"
        asked, happens = self.subscriptions, self.events
        queries = f"queries of {asked.file.name}" if asked.file else f"{asked.count:,} queries"
        events = f"events of {happens.file.name}" if happens.file else f"{happens.count:,} events"
        return f"{nodes} · {trees} · {queries} · {events}"

    def as_written(self) -> dict[str, Any]:
        """The scenario as TOML data, without what only its file says or `where` replaces."""
        data = super().as_written()
        if self.nodes.file is not None:
            del data["nodes"]["count"]
        if self.events.file is not None:
            del data["events"]["count"]
        if self.subscriptions.file is not None:
            del data["subscriptions"]["count"]
        if self.subscriptions.where is not None or self.subscriptions.file is not None:
            del data["subscriptions"]["widest"]
        return data


def _missed(text: str, attributes: tuple[Attribute, ...]) -> Iterator[Attribute]:
    """The attributes of which the subscription matches no value, whatever is drawn for its holes."""
    template = parse_template(text, attributes)
    domain = {attribute.name: attribute for attribute in attributes}
    missed = set(domain)
    for end in ("low", "high"):
        filled = template.fill([float(getattr(domain[name], end)) for name in template.attributes])
        ranges = {name: (low, high) for name, low, high in filled.ranges}
        missed &= {
            name
            for name, (low, high) in ranges.items()
            if low > high or high < domain[name].low or low > domain[name].high
        }
    return (attribute for attribute in attributes if attribute.name in missed)
