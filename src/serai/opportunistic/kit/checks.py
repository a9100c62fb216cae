"""What `serai protocols check` tries a router with: random worlds in which much happens."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, Final

import numpy as np

from serai.opportunistic.engine.state import RELAYED, Medium, Outcome
from serai.opportunistic.kit.family import ROUTERS
from serai.opportunistic.kit.router import Router
from serai.opportunistic.testing import Ran, world
from serai.opportunistic.world import Bundles, ContactWorld, Subscriptions
from serai.own.alone import Part
from serai.own.checking import Trial
from serai.scenario.protocol import Protocol
from serai.world.contacts import Contacts, in_order

_END_S: Final = 40.0
_NODES, _CHANNELS = 5, 3


def broken_rule(played: tuple[ContactWorld, Outcome]) -> str:
    """What cannot have happened in a run; empty: all is well."""
    world, outcome = played
    bundles, seen = world.bundles, set[tuple[int, int]]()
    expires_s = bundles.created_s + bundles.lifetime_s
    wants = set(zip(world.subscriptions.node.tolist(), world.subscriptions.channel.tolist(), strict=True))
    for bundle, node, time_s in zip(outcome.delivery_bundle, outcome.delivery_node, outcome.delivery_s, strict=True):
        if (bundle, node) in seen:
            return f"bundle {bundle} was delivered to node {node} twice"
        seen.add((bundle, node))
        if (node, bundles.channel[bundle]) not in wants:
            return f"bundle {bundle} was delivered to node {node}, which did not ask for it"
        if not bundles.created_s[bundle] <= time_s < expires_s[bundle]:
            return f"bundle {bundle} was delivered at {time_s:g} s, outside of its life"
    holders = {(int(b), int(n)) for b, n in enumerate(bundles.source)}
    for row in sorted(outcome.transfer_log.tolist(), key=lambda row: row[1]):
        bundle, sender, receiver, fate = row[3:7]
        if (bundle, sender) not in holders:
            return f"node {sender} sent bundle {bundle}, which it never had"
        if fate == RELAYED:
            if (bundle, receiver) in holders:
                return f"node {receiver} took bundle {bundle} twice"
            holders.add((bundle, receiver))
    return ""


def play(protocol: Protocol, seed: int) -> tuple[ContactWorld, Outcome]:
    """Run a protocol in the random world of a seed."""
    world, medium = random_world(seed)
    return world, protocol.simulate(world, medium, protocol.settings())


def rows(played: tuple[ContactWorld, Outcome]) -> list[Any]:
    """What happened, as plain data."""
    outcome = played[1]
    return [outcome.transfer_log.tolist(), outcome.drop_log.tolist(), outcome.delivery_s.tolist()]


def random_world(seed: int) -> tuple[ContactWorld, Medium]:
    """A world of a few nodes in which much happens: contacts that touch, stores that fill, bundles that expire."""
    rng = np.random.default_rng(seed)
    rows = []
    for one, other in combinations(range(_NODES), 2):
        times = np.sort(rng.integers(0, int(_END_S), rng.integers(0, 4) * 2)).astype(float)
        rows += [
            (one, other, since, until) for since, until in zip(times[::2], times[1::2], strict=True) if since < until
        ]
    a, b, up, down = np.array(sorted(rows, key=lambda row: (row[2], row[0], row[1]))).reshape(-1, 4).T
    count, asked = int(rng.integers(1, 20)), int(rng.integers(1, 8))
    world = ContactWorld(
        _NODES,
        _CHANNELS,
        in_order(Contacts(a.astype(np.int32), b.astype(np.int32), up.copy(), down.copy())),
        Bundles(
            rng.integers(0, _NODES, count).astype(np.int32),
            rng.integers(0, _CHANNELS, count).astype(np.int32),
            np.sort(rng.uniform(0, _END_S / 2, count)),
            rng.choice([50, 100, 1000], count),
            rng.choice([1.0, 5.0, 100.0], count),
        ),
        Subscriptions(
            rng.integers(0, _NODES, asked).astype(np.int32),
            rng.integers(0, _CHANNELS, asked).astype(np.int32),
            np.full(asked, -math.inf),
            np.full(asked, math.inf),
        ),
        np.ones(_NODES, bool),
    )
    capacity = int(rng.choice([1 << 60, 1050]))
    return world, Medium(float(rng.choice([400.0, 8000.0])), _END_S, capacity, 1, key=seed, full_log=True)


def known_answers(protocol: Protocol) -> str:
    """What comes out wrong in worlds of which the answer is known; empty: nothing."""
    free = protocol.settings(header_bytes=0, entry_bytes=0, id_bytes=0)

    def deliveries(contacts: str, publish: str, **more: Any) -> list[tuple[float, int, int, int]]:
        small = world(contacts, publish=publish, subscribe="1 news, 2 news", **more)
        return Ran(protocol.simulate(small.contacts, small.medium, free)).deliveries

    if [row[1:] for row in deliveries("0-1 @ 10..600", "0 news @ 5 100 B")] != [(0, 1, 1)]:
        return "a subscriber was in contact with the source for ten minutes and was not handed the bundle, once"
    if deliveries("0-1 @ 10..10.05", "0 news @ 5 100 B"):
        return "a bundle was delivered over a contact that was too short for it"
    if deliveries("0-1 @ 10..20", "0 news @ 5 100 B for 5.1 s"):
        return "a bundle was delivered at the very instant of its expiry"
    got = {
        row[1] for row in deliveries("0-1 @ 10..600", "0 a @ 5 90 B, 0 b @ 6 90 B, 0 news @ 7 90 B", store_bytes=200)
    }
    return "" if got <= {2} else "somebody was delivered what nobody asked for"


TRIAL: Final = Trial(
    family=ROUTERS,
    parts=(Part(Router, "", ("store", "subscriptions", "capacity_bytes"), ("_discard",), ("hear",)),),
    module=__name__,
    holds="nothing twice, nothing late, nothing to who did not ask",
    play=play,
    broken_rule=broken_rule,
    rows=rows,
    known_answers=known_answers,
)
