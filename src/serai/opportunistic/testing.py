"""Small worlds in one line, to try a protocol of your own in: known answers say more than large numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from serai.core.errors import BadInput
from serai.opportunistic.engine.state import DROPS, TRANSFERS, Medium, Outcome
from serai.opportunistic.kit.engine import Network
from serai.opportunistic.kit.router import Router
from serai.opportunistic.rules import WHEN_FULL, shared_rules
from serai.opportunistic.settings import RouterSettings
from serai.opportunistic.world import Bundles, ContactWorld, Subscriptions
from serai.own.loading import declared_settings
from serai.world.contacts import Contacts, in_order

_NUMBER = r"\s*([0-9]*\.?[0-9]+)\s*"
_CONTACT = re.compile(rf"\s*(\d+)\s*-\s*(\d+)\s*@{_NUMBER}\.\.{_NUMBER}")
_PUBLISH = re.compile(rf"\s*(\d+)\s+(\w+)\s*@{_NUMBER}(?:(\d+)\s*B\s*)?(?:for{_NUMBER}s\s*)?")
_SUBSCRIBE = re.compile(r"\s*(\d+)\s+(\w+)\s*")


@dataclass(frozen=True)
class Ran:
    """What happened in a small world."""

    outcome: Outcome

    @property
    def deliveries(self) -> list[tuple[float, int, int, int]]:
        """Time, bundle, node, hops."""
        rows = self.outcome
        columns = (rows.delivery_s, rows.delivery_bundle, rows.delivery_node, rows.delivery_hops)
        return [(round(float(t), 6), int(b), int(n), int(h)) for t, b, n, h in zip(*columns, strict=True)]

    @property
    def transfers(self) -> list[tuple[float, float, int, int, int, str]]:
        """Start, end, bundle, sender, receiver, what became of it."""
        return [
            (round(start, 6), round(end, 6), bundle, sender, receiver, TRANSFERS[fate])
            for start, end, _, bundle, sender, receiver, fate, _, _ in self.outcome.transfer_log.tolist()
        ]

    @property
    def drops(self) -> list[tuple[float, int, int, str]]:
        """Time, bundle, node, reason."""
        return [(round(float(r.time_s), 6), int(r.bundle), int(r.node), DROPS[r.reason]) for r in self.outcome.drop_log]

    @property
    def lists(self) -> int:
        """How many lists arrived."""
        return self.outcome.lists


@dataclass(frozen=True)
class SmallWorld:
    """Contacts, bundles and subscriptions, and the medium between."""

    contacts: ContactWorld
    medium: Medium

    def run(self, router: type[Router], **settings: Any) -> Ran:
        """Run a router class; lists cost nothing unless their sizes are given."""
        shared = {key: settings.pop(key) for key in list(settings) if key in RouterSettings.model_fields}
        free = {"header_bytes": 0, "entry_bytes": 0, "id_bytes": 0}
        rules = shared_rules(RouterSettings(**free | shared), lists=router.lists or None)
        own = declared_settings(router)
        unknown = settings.keys() - own.keys()
        if unknown:
            raise BadInput(f"{router.__name__}: no setting {', '.join(sorted(unknown))}; it has: {', '.join(own)}")
        return Ran(Network(self.contacts, self.medium, router, own | settings, rules).run())


def world(
    contacts: str,
    *,
    publish: str = "",
    subscribe: str = "",
    rate_bps: float = 8000.0,
    duration_s: float = 1000.0,
    store_bytes: int = 1 << 60,
    when_full: str = "oldest",
    step_s: float = 0.0,
    single: bool = False,
    seed: int = 0,
) -> SmallWorld:
    """A world from three texts.

    `"0-1 @ 0..10, 1-2 @ 20..30"`: nodes 0 and 1 meet from second 0 to 10, and so on.
    `publish="0 news @ 5 100 B for 60 s"`: node 0 publishes 100 bytes on channel news in second 5, to live for 60 s;
    if left out, 100 B and 1000 s.
    `subscribe="2 news"`: node 2 wants that. The rate is a thousand bytes a second.
    """
    met = [_read(_CONTACT, text, "0-1 @ 0..10") for text in _parts(contacts)]
    born = sorted(
        (_read(_PUBLISH, text, "0 news @ 5 100 B") for text in _parts(publish)), key=lambda row: float(row[2])
    )
    asked = [_read(_SUBSCRIBE, text, "2 news") for text in _parts(subscribe)]
    channels = {name: number for number, name in enumerate(dict.fromkeys([row[1] for row in [*born, *asked]]))}
    numbers = [int(n) for row in met for n in row[:2]] + [int(row[0]) for row in [*born, *asked]]
    nodes = max(numbers, default=0) + 1
    a, b, up, down = np.array([[float(part) for part in row] for row in met]).reshape(-1, 4).T
    made = ContactWorld(
        nodes,
        max(len(channels), 1),
        in_order(Contacts(a.astype(np.int32), b.astype(np.int32), up.copy(), down.copy())),
        Bundles(
            np.array([int(row[0]) for row in born], np.int32),
            np.array([channels[row[1]] for row in born], np.int32),
            np.array([float(row[2]) for row in born]),
            np.array([int(row[3] or 100) for row in born], np.int64),
            np.array([float(row[4] or 1000) for row in born]),
        ),
        Subscriptions(
            np.array([int(row[0]) for row in asked], np.int32),
            np.array([channels[row[1]] for row in asked], np.int32),
            np.full(len(asked), -math.inf),
            np.full(len(asked), math.inf),
        ),
        np.ones(nodes, bool),
    )
    full = WHEN_FULL.index(when_full)
    return SmallWorld(made, Medium(rate_bps, duration_s, store_bytes, full, single, step_s, seed, full_log=True))


def _parts(text: str) -> list[str]:
    return [part for part in text.split(",") if part.strip()]


def _read(pattern: re.Pattern[str], text: str, example: str) -> tuple[Any, ...]:
    found = pattern.fullmatch(text)
    if found is None:
        raise BadInput(f'"{text.strip()}": write it like "{example}"')
    return found.groups()
