"""The study of SERAI: in which worlds it is set beside whom, its dial, and each of its rules taken away.

SERAI follows no paper, so nothing here is compared with a printed number. It is compared with DG, CED, CET, with the
best that CET can be (CET++), and with what contacts alone would allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from serai.field.serai_parts.settings import Settings

NAME: Final = "serai"
TITLE: Final = "SERAI beside DG, CED, CET and CET++"
RIVAL: Final = "cet-plus"
"""The protocol to beat: CET with all that can be had without a new idea."""

AIMS: Final = {"delivery_ratio": +1, "mean_delay_s": -1, "lifetime_with_control_days": +1}
"""What a protocol should be better in, all at once: 1 if more is better, -1 if less is."""

METRICS: Final = (
    *AIMS,
    "p95_delay_s",
    "transmissions_per_event",
    "control_bits",
    "control_energy_j",
    "load_imbalance",
    "sensors_alive",
)

Changes = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Variant:
    """A protocol with settings of its own, and how it is called in the study."""

    name: str
    protocol: str = NAME
    settings: Changes = ()


@dataclass(frozen=True)
class World:
    """What the built-in scenario `field` is changed to, and which of a protocol's settings go with that."""

    name: str
    at: float
    """Where it stands on the axis of its chapter."""
    settings: Changes = ()
    own: Changes = ()
    """Settings of SERAI that belong to this world."""
    cet: Changes = ()
    """Likewise of CET and CET++."""
    example: str | None = None
    """The example that it comes from, if not from `field`."""
    alone: bool = False
    """Whether SERAI is the only protocol that can be run in it."""
    every: int = 5
    """One in so many seeds is run, those of the built-in world being all."""


@dataclass(frozen=True)
class Axis:
    """Worlds that differ in one thing."""

    name: str
    title: str
    label: str
    worlds: tuple[World, ...]
    remark: str = ""
    default: float | None = None
    """Where the built-in world stands on it, if it does."""

    @property
    def is_numbered(self) -> bool:
        """Whether its worlds stand in a row, or are told apart by name only."""
        return all(world.example is None for world in self.worlds)


DG: Final = Variant("DG", "dg")
CED: Final = Variant("CED", "ced")
CET: Final = Variant("CET", "cet")
CET_PLUS: Final = Variant("CET++", RIVAL)
SERAI: Final = Variant("SERAI")
COMPARED: Final = (DG, CED, CET, CET_PLUS, SERAI)

DEFAULT: Final = World("as built in", 0.0)

_DIAL_DAYS: Final = (2, 3, 8, 11, 16, 24, 40)


def dial() -> list[tuple[float, Variant]]:
    """SERAI with other lifetimes asked of a battery, in days; the default is not among them."""
    return [(days, Variant(f"T_0 {days} d", settings=(("protocol.t_0", f"{days} d"),))) for days in _DIAL_DAYS]


def whole_dial() -> list[tuple[float, Variant]]:
    """The dial with the default where it belongs."""
    return sorted([*dial(), (Settings().t_0_s / 86_400, SERAI)], key=lambda pair: pair[0])


def _off(name: str, **settings: str) -> Variant:
    return Variant(name, settings=tuple((f"protocol.{key}", value) for key, value in settings.items()))


ABLATIONS: Final = (
    _off("carrying (bags and deposits)", carriers="0"),
    _off("offers", offers="false"),
    _off("the price of energy", kappa="0"),
    _off("waiting", lam="0 s"),
    _off("patience for exposed copies", xi="1"),
    _off("walkers", walkers="false"),
    _off("multicast", multicast="false"),
    _off("want map at birth", map_at_birth="false"),
    _off("carrier's pull at birth", pull_at_birth="false"),
    _off("choice of whom to carry for (phi)", phi="0"),
    _off("choice of where to deposit (phi_d)", phi_d="0"),
    _off("time inside routes", lamt="1e9 s", walkers="false"),
)
"""Each rule taken away on its own."""


def _numbers(key: str, name: str, values: tuple[float, ...], unit: str = "", every: int = 5) -> Iterator[World]:
    for value in values:
        written = f"{value:g} {unit}".strip()
        yield World(f"{name} {written}", value, ((key, written),), every=every)


def _lossy(percent: int) -> World:
    return World(f"{percent} % of events lost", percent, (("radio.loss", f"{percent / 100:g}"),), alone=True)


def _failing(percent: int) -> World:
    settings = (("sensors.failing", f"{percent / 100:g}"), ("sensors.fail_at", "1 h"))
    return World(f"{percent} % of sensors fail", percent, settings)


def _emptying(battery_j: float) -> World:
    """Batteries that are empty before the run is over; SERAI's dial is turned with them, so that its prices are not."""
    written = f"{battery_j:g} J"
    days = ("protocol.t_0", f"{24 * _DAYS_PER_J * battery_j:g} h")
    return World(f"batteries of {written}", battery_j, (("sensors.battery", written), _FELT), (days,))


_DAYS_PER_J: Final = 0.5
_FELT: Final = ("radio.control_costs", "true")

AXES: Final = (
    Axis(
        "density",
        "How many sensors",
        "sensors",
        (
            *_numbers("sensors.count", "sensors", (40, 70, 140)),
            *_numbers("sensors.count", "sensors", (200,), every=10),
        ),
        default=100,
    ),
    Axis(
        "subscribers",
        "How many subscribers",
        "subscribers",
        (
            *_numbers("subscribers.count", "subscribers", (3, 5, 30)),
            *_numbers("subscribers.count", "subscribers", (100,), every=50),
        ),
        default=10,
    ),
    Axis(
        "speed",
        "How fast subscribers walk",
        "Vmax, m/s",
        (
            World("Vmax 1 m/s", 1.0, (("subscribers.speed_max", "1 m/s"), ("subscribers.speed_min", "0.1 m/s"))),
            *_numbers("subscribers.speed_max", "Vmax", (3, 11), unit="m/s"),
        ),
        "Speeds are drawn above 1 m/s, and above 0.1 m/s where 1 m/s is the fastest.",
        default=5,
    ),
    Axis(
        "range",
        "How far the radio reaches",
        "cells a side",
        (*_numbers("field.cells", "cells a side", (10, 20, 30)),),
        "Nodes hear each other if their cells touch: the more cells, the shorter the reach.",
        default=15,
    ),
    Axis(
        "metres",
        "How far the radio reaches, in metres",
        "m",
        (*_numbers("radio.range", "range", (10, 15, 20), unit="m"), *_numbers("radio.range", "range", (30,), "m", 10)),
        "Nodes hear each other if they are at most so far apart. Cells that touch, as built in, are 13 to 38 m across.",
    ),
    Axis(
        "events",
        "How often events are born",
        "s between a sensor's events",
        (*_numbers("events.interval", "an event every", (20, 500), unit="s"),),
        default=100,
    ),
    Axis(
        "loss",
        "Events that are lost",
        "% lost",
        (_lossy(5), _lossy(10), _lossy(20)),
        "SERAI alone: the others acknowledge nothing, and how they would is not in their papers, so they are not run"
        " with losses. Each sending of an event is lost by chance; it is acknowledged in 16 bits, and sent four times"
        " at most. Control messages, offers and acknowledgements are not lost.",
        default=0,
    ),
    Axis(
        "failing",
        "Sensors that fail after an hour",
        "% that fail",
        (_failing(10), _failing(20), _failing(40)),
        "They fail all at once, with all that lies in them, whatever is left in their batteries; lifetimes are what"
        " batteries would have lasted.",
        default=0,
    ),
    Axis(
        "battery",
        "Sensors that die",
        "J in a battery",
        (_emptying(0.02), _emptying(0.05)),
        "Control messages cost too. SERAI's T_0 is as much shorter as the battery is smaller. At the default of 10 J"
        " nobody dies in two hours.",
        default=10,
    ),
    Axis(
        "own",
        "A park and a shore",
        "",
        (
            World("park", 1, example="park", every=50),
            World("birds", 2, example="birds", cet=(("protocol.theta", "1 J"), ("protocol.gamma", "12")), every=50),
        ),
        "The examples `park` (vehicles on their rounds, and rangers) and `birds` (oystercatchers that carry, and a"
        " boat), as `serai examples copy` gives them. T_0 is that of the built-in world, which is not theirs.",
    ),
)


def on_axis(axis: Axis) -> tuple[World, ...]:
    """The worlds of an axis in their order, the built-in one where it belongs."""
    built_in = () if axis.default is None else (replace(DEFAULT, at=axis.default),)
    return tuple(sorted((*axis.worlds, *built_in), key=lambda world: world.at))


def runs_in(world: World) -> tuple[Variant, ...]:
    """Who is compared in a world."""
    return (SERAI,) if world.alone else COMPARED


@dataclass(frozen=True)
class Case:
    """What one point of the study runs: a variant in a world, and over which part of the seeds."""

    world: World
    variant: Variant
    whole: bool

    @property
    def settings(self) -> Changes:
        """What is changed in the built-in scenario."""
        family = {NAME: self.world.own, "cet": self.world.cet, RIVAL: self.world.cet}
        own = family.get(self.variant.protocol, ())
        return (*self.world.settings, *own, *self.variant.settings)

    def seeds(self, asked: int) -> int:
        """All the seeds for the main table, a fifth of them or fewer for the rest, if that leaves enough."""
        return asked if self.whole else min(asked, max(_FEWEST, asked // self.world.every))


_FEWEST: Final = 20


def cases() -> list[Case]:
    """All that the study runs, each once."""
    beside = [variant for _, variant in dial()] + list(ABLATIONS)
    elsewhere = [world for axis in AXES for world in axis.worlds]
    return [
        *(Case(DEFAULT, variant, True) for variant in COMPARED),
        *(Case(DEFAULT, variant, False) for variant in beside),
        *(Case(world, variant, False) for world in elsewhere for variant in runs_in(world)),
    ]


_FEWER: Final = "it delivers less: what would have come late never comes"
_WHY: Final[dict[tuple[str, str], str]] = {
    ("DG", "mean_delay_s"): _FEWER,
    ("CED", "mean_delay_s"): _FEWER,
    ("CET", "mean_delay_s"): _FEWER,
    ("DG", "lifetime_with_control_days"): "it delivers less, and sensors relay nothing",
    ("CED", "lifetime_with_control_days"): "it delivers less: nobody carries, so nothing is left in other communities",
}


def if_worse(world: World, variant: Variant, metric: str) -> str:
    """The likely reason, where another protocol is better than SERAI."""
    return _WHY.get((world.name, metric)) or _WHY.get((variant.name, metric)) or "no reason is known"
