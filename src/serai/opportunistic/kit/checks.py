"""What `serai protocols check` tries a protocol with: small worlds, random worlds, another process.

Against mistakes, not against malice.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.opportunistic.engine.state import RELAYED, Medium, Outcome
from serai.opportunistic.kit.loading import load_own, own_state
from serai.opportunistic.world import Bundles, ContactWorld, Subscriptions
from serai.scenario.protocol import Protocol
from serai.world.contacts import Contacts, in_order

RANDOM_WORLDS: Final = 200
_END_S: Final = 40.0
_NODES, _CHANNELS = 5, 3


class Checked(NamedTuple):
    """One check: what was looked at, and what is wrong; empty: nothing."""

    what: str
    problem: str = ""


def check_protocol(file: Path, wanted: str | None, worlds: int = RANDOM_WORLDS) -> Iterator[Checked]:
    """Try a protocol; a mistake of its author's is a `BadInput` with its place."""
    protocol = load_own(file, wanted)
    checks: dict[str, Callable[[], str]] = {
        f"{worlds} random worlds: nothing twice, nothing late, nothing to who did not ask": lambda: _invariants(
            protocol, worlds
        ),
        "no state that nodes or runs share": lambda: _keeps_to_itself(protocol, file),
        "the same in another process, under another hash seed": lambda: _same_elsewhere(protocol, file),
    }
    for what, look in checks.items():
        try:
            yield Checked(what, look())
        except BadInput as error:
            yield Checked(what, str(error))


def _invariants(protocol: Protocol, worlds: int) -> str:
    for seed in range(worlds):
        world, medium = random_world(seed)
        problem = broken_rule(world, protocol.simulate(world, medium, protocol.settings()))
        if problem:
            return f"random world {seed}: {problem}"
    return ""


def broken_rule(world: ContactWorld, outcome: Outcome) -> str:
    """What cannot have happened in a run; empty: all is well."""
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


def _keeps_to_itself(protocol: Protocol, file: Path) -> str:
    world, medium = random_world(0)
    before, after = own_state(file, protocol.name, lambda: protocol.simulate(world, medium, protocol.settings()))
    changed = sorted(name for name in before if before[name] != after.get(name))
    if changed:
        return f"{', '.join(changed)} changed during a run: state goes into self, in start()"
    return ""


def _same_elsewhere(protocol: Protocol, file: Path) -> str:
    code = "import sys; from serai.opportunistic.kit.checks import digest_of; print(digest_of(*sys.argv[1:]))"
    paths = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONHASHSEED": "4711", "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", code, str(file), protocol.name]
    there = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if there.returncode:
        return f"it fails there: {there.stderr.strip().splitlines()[-1]}"
    if there.stdout.strip() != digest_of(str(file), protocol.name):
        return "other results: does it use random, time, id() or the order of a set? Use self.random(now, ...)"
    return ""


def digest_of(file: str, name: str) -> str:
    """The results of ten random worlds as one word."""
    protocol = load_own(Path(file), name)
    digest = hashlib.sha256()
    for seed in range(10):
        world, medium = random_world(seed)
        outcome = protocol.simulate(world, medium, protocol.settings())
        rows: list[Any] = [outcome.transfer_log.tolist(), outcome.drop_log.tolist(), outcome.delivery_s.tolist()]
        digest.update(pickle.dumps(rows))
    return digest.hexdigest()


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
