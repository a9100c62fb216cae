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


@dataclass(frozen=True)
class Axis:
    """Worlds that differ in one thing."""

    name: str
    title: str
    label: str
    worlds: tuple[World, ...]
    remark: str = ""


DG: Final = Variant("DG", "dg")
CED: Final = Variant("CED", "ced")
CET: Final = Variant("CET", "cet")
CET_PLUS: Final = Variant("CET++", RIVAL)
SERAI: Final = Variant("SERAI")
COMPARED: Final = (DG, CED, CET, CET_PLUS, SERAI)

DEFAULT: Final = World("as built in", 0.0)

_DIAL_DAYS: Final = (2, 4, 7, 16, 24, 40)


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


def _numbers(
    key: str, name: str, values: tuple[float, ...], *others: tuple[str, str], unit: str = ""
) -> Iterator[World]:
    for value in values:
        written = f"{value:g} {unit}".strip()
        yield World(f"{name} {written}", value, ((key, written), *others))


def _emptying(battery_j: float) -> World:
    """Batteries that are empty before the run is over; SERAI's dial is turned with them, so that its prices are not."""
    written = f"{battery_j:g} J"
    days = ("protocol.t_0", f"{24 * _DAYS_PER_J * battery_j:g} h")
    return World(f"batteries of {written}", battery_j, (("sensors.battery", written), _FELT), (days,))


_DAYS_PER_J: Final = 1.1
_FELT: Final = ("radio.control_costs", "true")

AXES: Final = (
    Axis("density", "How many sensors", "sensors", (*_numbers("sensors.count", "sensors", (40, 70, 140, 200)),)),
    Axis(
        "subscribers",
        "How many subscribers",
        "subscribers",
        (*_numbers("subscribers.count", "subscribers", (3, 5, 30, 100)),),
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
    ),
    Axis(
        "range",
        "How far the radio reaches",
        "cells a side",
        (*_numbers("field.cells", "cells a side", (10, 20, 30)),),
        "Nodes hear each other if their cells touch: the more cells, the shorter the reach.",
    ),
    Axis(
        "events",
        "How often events are born",
        "s between a sensor's events",
        (*_numbers("events.interval", "an event every", (20, 500), unit="s"),),
    ),
    Axis(
        "battery",
        "Sensors that die",
        "J in a battery",
        (_emptying(0.02), _emptying(0.05)),
        "Control messages cost too. SERAI's T_0 is as much shorter as the battery is smaller. At the default of 10 J"
        " nobody dies in two hours.",
    ),
)


def on_axis(axis: Axis) -> tuple[World, ...]:
    """The worlds of an axis in their order, the built-in one where it belongs."""
    return tuple(sorted((*axis.worlds, replace(DEFAULT, at=_DEFAULTS[axis.name])), key=lambda world: world.at))


_DEFAULTS: Final = {"density": 100, "subscribers": 10, "speed": 5, "range": 15, "events": 100, "battery": 10}


@dataclass(frozen=True)
class Case:
    """What one point of the study runs: a variant in a world, and over which part of the seeds."""

    world: World
    variant: Variant
    whole: bool

    @property
    def settings(self) -> Changes:
        """What is changed in the built-in scenario."""
        own = self.world.own if self.variant.protocol == NAME else ()
        return (*self.world.settings, *own, *self.variant.settings)

    def seeds(self, asked: int) -> int:
        """All the seeds for the main table, a fifth of them for the rest, if that leaves enough."""
        return asked if self.whole else min(asked, max(_FEWEST, asked // 5))


_FEWEST: Final = 20


def cases() -> list[Case]:
    """All that the study runs, each once."""
    beside = [variant for _, variant in dial()] + list(ABLATIONS)
    elsewhere = [world for axis in AXES for world in axis.worlds]
    return [
        *(Case(DEFAULT, variant, True) for variant in COMPARED),
        *(Case(DEFAULT, variant, False) for variant in beside),
        *(Case(world, variant, False) for world in elsewhere for variant in COMPARED),
    ]


_WHY: Final[dict[tuple[str, str], str]] = {}


def if_worse(world: World, variant: Variant, metric: str) -> str:
    """The likely reason, where another protocol is better than SERAI."""
    return _WHY.get((world.name, metric)) or _WHY.get((variant.name, metric)) or "no reason is known"
