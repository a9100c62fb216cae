"""DPSP: what its text claims, and the study that judges it. The text prints no numbers, so there are none here.

    J. Greifenberg, D. Kutscher: Efficient Publish/Subscribe-Based Multicast for Opportunistic Networking with
    Self-Organized Resource Utilization. AINA Workshops 2008.

Every combination of filters with every combination of priorities, and Flooding, in four worlds; and beside them routers
of others, which the text's claims are not about.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from itertools import combinations
from typing import Final

FILTERS: Final = ("known-subscription", "hop-count", "duplicate")
PRIORITIES: Final = ("short-delay", "long-delay", "hop-count", "popularity")
_INITIALS: Final = {"known-subscription": "K", "hop-count": "H", "duplicate": "D"}

TITLE: Final = "DPSP: every combination of filters and priorities, Flooding, and other routers"
_NAMES: Final = {
    "flooding": "Flooding",
    "direct": "Direct delivery",
    "spray": "Spray and wait",
    "first-contact": "First contact",
    "prophet": "PRoPHET",
    "prophet2": "PRoPHETv2",
    "maxprop": "MaxProp",
    "bubble-rap": "Bubble Rap",
    "socialcast": "SocialCast",
    "socio-aware": "Socio-aware overlay",
}


@dataclass(frozen=True)
class World:
    """Where the study takes place: what its scenario says beyond the defaults."""

    name: str
    title: str
    settings: dict[str, str | int | float]


@dataclass(frozen=True)
class Variant:
    """One router of the study."""

    protocol: str
    filters: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Filters, then priorities: `D / short-delay`."""
        if self.protocol != "dpsp":
            return _NAMES[self.protocol]
        return f"{''.join(_INITIALS[name] for name in self.filters) or '-'} / {' + '.join(self.priorities) or 'none'}"

    def settings(self) -> dict[str, str | list[str]]:
        """Its settings as a scenario has them."""
        if self.protocol != "dpsp":
            return {"protocol.name": self.protocol}
        chosen = {"protocol.filters": list(self.filters), "protocol.priorities": list(self.priorities)}
        return {"protocol.name": self.protocol, **chosen}


def scenario_text(world: World, variant: Variant) -> str:
    """The scenario of a router in a world, as TOML."""
    said: dict[str, object] = {**world.settings, **variant.settings()}
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in said.items())


FLOODING: Final = Variant("flooding")
SHORT_DELAY: Final = Variant("dpsp", ("duplicate",), ("short-delay",))
"""The text's winner; with the one filter that saves sending what the neighbour has."""


BASELINES: Final = tuple(Variant(name) for name in _NAMES if name != "flooding")
"""Routers of others, with their own defaults."""


def variants() -> list[Variant]:
    """The routers that the text is about: 8 sets of filters times 16 sets of priorities, and Flooding."""
    return [FLOODING] + [Variant("dpsp", f, p) for f in _subsets(FILTERS) for p in _subsets(PRIORITIES)]


def _subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [chosen for size in range(len(names) + 1) for chosen in combinations(names, size)]


_SCARCE: Final[dict[str, str | int | float]] = {
    "duration": "3 h",
    "nodes.count": 40,
    "nodes.store": "2 MB",
    "radio.rate": "250 kbps",
    "movement.width": "1200 m",
    "movement.height": "1200 m",
    "bundles.interval": "6 s",
    "bundles.quiet": "1 h",
}
"""About six meetings of a node in an hour; stores and contacts are too small for all, so it matters what goes first."""


_ALIKE: Final[dict[str, str | int | float]] = {
    **_SCARCE,
    "movement.model": "community",
    "subscriptions.alike": "community",
    "subscriptions.mixing": 0.25,
}
"""Who meets, wants alike, but for a quarter of what each wants: what routers that look for communities are made for."""


def worlds() -> list[World]:
    """Random waypoint, a community mobility, the same with neighbours who want alike, and a real trace."""
    birds: dict[str, str | int | float] = {
        "duration": "60 d",
        "contacts.source": "trace",
        "contacts.file": str(resources.files("serai.opportunistic") / "oystercatchers.txt"),
        "nodes.store": "1 MB",
        "radio.rate": "100 bps",
        "protocol.repeat": "1 h",
        "channels.each": 30,
        "bundles.interval": "30 min",
        "bundles.lifetime": "7 d",
        "bundles.quiet": "7 d",
    }
    return [
        World("random-waypoint", "random waypoint, 40 nodes, 3 h", _SCARCE),
        World("community", "homes and visits, 40 nodes, 3 h", {**_SCARCE, "movement.model": "community"}),
        World("alike", "homes and visits, neighbours want alike, 40 nodes, 3 h", _ALIKE),
        World(
            "oystercatchers",
            "two oystercatchers, 181 meetings in 60 days",
            birds,
        ),
    ]


@dataclass(frozen=True)
class Claim:
    """What the text says, and what it is taken to mean."""

    name: str
    words: str
    reading: str


CLAIMS: Final = (
    Claim(
        "short-delay-delivers-best",
        "Short Delay performs better with respect to delivery rates than any other tested algorithm or combination",
        "no other router delivers significantly more than Short Delay (with the Duplicate filter)",
    ),
    Claim(
        "short-delay-is-quick",
        "Short Delay also performs reasonably well with respect to delays",
        "its mean delay is below the median of all routers",
    ),
    Claim(
        "flooding-is-quick",
        "When optimizing for a short average delivery delay, Flooding performs well",
        "its mean delay is below the median of all routers",
    ),
    Claim(
        "flooding-is-unreliable",
        "Flooding must be considered sub-optimal with respect to reliability",
        "it delivers significantly less than Short Delay",
    ),
    Claim(
        "flooding-is-unfair",
        "Flooding must be considered sub-optimal with respect to fairness: some nodes are never reached",
        "its worst served tenth of subscribers gets significantly less than under Short Delay",
    ),
)
