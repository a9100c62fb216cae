"""What all emulations have in common: a scenario's world as nodes see it, their names, what their logs tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from serai.core.errors import BadInput
from serai.node.log import Recording, record
from serai.node.routing import routing
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import Given
from serai.opportunistic.world import Bundles, Subscriptions, Wanted
from serai.world.contacts import Contacts, in_order
from serai.world.grid import Floats

NETWORK: Final = "emulation"


def check(scenario: OpportunisticScenario) -> None:
    """Refuse what no real node does."""
    if scenario.step_s or scenario.radio.single:
        raise BadInput("step, radio.single: nodes act when things happen, on all links at once; leave both out")
    routing(scenario.protocol)


def in_milliseconds(given: Given, duration_s: float) -> Given:
    """The same with times in whole milliseconds, without what happens after the end; bundles as nodes order them."""
    contacts = given.contacts
    up_s, down_s = _rounded(contacts.up_s), np.minimum(_rounded(contacts.down_s), duration_s)
    contacts = in_order(Contacts(contacts.a, contacts.b, up_s, down_s).at(up_s < down_s))
    bundles, published = given.published.bundles, given.published
    created_s = _rounded(bundles.created_s)
    order = np.lexsort((np.arange(len(created_s)), bundles.source, created_s))
    order = order[created_s[order] <= duration_s]
    kept = Bundles(
        bundles.source[order], bundles.channel[order], created_s[order], bundles.size_bytes[order],
        _rounded(bundles.lifetime_s[order]),
    )  # fmt: skip
    published = published._replace(bundles=kept, values=published.values[order], targets=published.targets[order])
    old = given.wanted.subscriptions
    from_s, to_s = _rounded(np.maximum(old.from_s, 0.0)), _rounded(old.to_s)
    to_s = np.where(to_s > duration_s, np.inf, to_s)
    rows = np.lexsort((to_s, old.channel, old.node, from_s))
    rows = rows[(from_s < to_s)[rows] & (from_s[rows] <= duration_s)]
    wanted = given.wanted._replace(
        subscriptions=Subscriptions(old.node[rows], old.channel[rows], from_s[rows], to_s[rows])
    )
    return given._replace(contacts=contacts, published=published, wanted=wanted)


def _rounded(times_s: Floats) -> Floats:
    rounded: Floats = np.round(times_s * 1000) / 1000
    return rounded


def eid_of(number: int) -> str:
    """The id of a node: ids are ordered as numbers are."""
    return f"dtn://n{number:07d}/"


def number_of(eid: str) -> int:
    """The number of a node."""
    return int(eid[7:-1])


def store_name(number: int) -> str:
    """The file of a node's store."""
    return f"n{number:07d}.db"


def rows_of_sources(given: Given) -> dict[int, list[int]]:
    """By source: the numbers of its bundles, in the order of their births, which is that of their sequence numbers."""
    rows: dict[int, list[int]] = defaultdict(list)
    for row, source in enumerate(given.published.bundles.source.tolist()):
        rows[source].append(row)
    return dict(rows)


def recorded(scenario: OpportunisticScenario, given: Given, stores: Sequence[Path]) -> Recording:
    """What the nodes' logs tell."""
    names = [eid_of(number) for number in range(len(stores))]
    return record(stores, 0.0, scenario.duration_s, names, given.published.channels)


def as_run(scenario: OpportunisticScenario, given: Given, seed: int, found: Recording) -> OpportunisticRun:
    """The same as a run like any other."""
    told = found.given
    # who may publish and subscribe, and what is in a bundle, is the scenario's to say and no log's
    published = given.published._replace(bundles=told.published.bundles)
    wanted = Wanted(told.wanted.subscriptions, *given.wanted[1:])
    whole = told._replace(names=given.names, published=published, wanted=wanted)
    return OpportunisticRun(
        scenario, scenario.protocol.name, seed, whole.world, found.outcome, given.names, published, wanted, True,
        given.tracks,
    )  # fmt: skip
