"""Small worlds in one line, and runs of them: a thousand bytes a second, lists that cost nothing unless said."""

import math
from typing import Any

import numpy as np

from serai.kinds import PROTOCOLS
from serai.opportunistic.engine.state import Medium, Outcome
from serai.opportunistic.world import Bundles, ContactWorld, Subscriptions
from serai.world.contacts import Contacts, in_order

RATE_BPS = 8000.0
FREE = {"header_bytes": 0, "entry_bytes": 0, "id_bytes": 0}


def world(
    contacts: list[tuple[int, int, float, float]],
    bundles: list[tuple[float, int, int] | tuple[float, int, int, int] | tuple[float, int, int, int, float]],
    subscriptions: list[tuple[int, int] | tuple[int, int, float, float]],
    carries: list[bool] | None = None,
) -> ContactWorld:
    """Contacts (a, b, up, down); bundles (created, source, channel, size = 100, lifetime = 1000); subscriptions
    (node, channel, from = -inf, to = inf)."""
    a, b, up, down = np.array(contacts, float).reshape(-1, 4).T
    rows = [(*row, *(100, 1000.0)[len(row) - 3 :]) for row in sorted(bundles)]
    created, source, channel, size, lifetime = np.array(rows, float).reshape(-1, 5).T
    wishes = [(*row, *(-math.inf, math.inf)[len(row) - 2 :]) for row in subscriptions]
    node, wanted, start, end = np.array(sorted(wishes, key=lambda row: row[2]), float).reshape(-1, 4).T
    nodes = int(max([*a, *b, *source, *node])) + 1
    return ContactWorld(
        nodes,
        int(max([*channel, *wanted], default=0)) + 1,
        in_order(Contacts(a.astype(np.int32), b.astype(np.int32), up.copy(), down.copy())),
        Bundles(
            source.astype(np.int32), channel.astype(np.int32), created.copy(), size.astype(np.int64), lifetime.copy()
        ),
        Subscriptions(node.astype(np.int32), wanted.astype(np.int32), start.copy(), end.copy()),
        np.ones(nodes, bool) if carries is None else np.array(carries),
    )


def run(protocol: str, given: ContactWorld, medium: dict[str, Any] | None = None, **settings: Any) -> Outcome:
    """What comes of it."""
    chosen = PROTOCOLS[protocol].settings(**(FREE | settings))
    how = Medium(**({"rate_bps": RATE_BPS, "duration_s": 1000.0, "full_log": True} | (medium or {})))
    return PROTOCOLS[protocol].simulate(given, how, chosen)


def deliveries(outcome: Outcome) -> list[tuple[int, int, float]]:
    """Bundle, node and time of each delivery."""
    rows = zip(outcome.delivery_bundle, outcome.delivery_node, outcome.delivery_s, strict=True)
    return [(int(bundle), int(node), round(float(time), 6)) for bundle, node, time in rows]


def sent(outcome: Outcome) -> list[tuple[int, int, int]]:
    """Bundle, sender and receiver of each transfer of a bundle that was new to the receiver, in order."""
    log = outcome.transfer_log
    return [(int(r.bundle), int(r.sender), int(r.receiver)) for r in log if r.outcome == 0]
