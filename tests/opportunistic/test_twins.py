"""Routers as arrays == the obvious version == routers as objects, on random contact plans.

Everything that can go wrong is in them."""

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serai.opportunistic import direct, dpsp, first_contact, flooding, prophet, prophet2, spray
from serai.opportunistic.engine.loop import simulate
from serai.opportunistic.engine.state import DROPS, TRANSFERS, Medium, Outcome
from serai.opportunistic.engine.stores import bit_of
from serai.opportunistic.world import Bundles, ContactWorld, Subscriptions
from serai.world.contacts import Contacts
from serai.world.grid import Floats
from tests.conftest import UNCOMPILED
from tests.opportunistic.naive import Result, run_slowly
from tests.opportunistic.routers import run_routers
from tests.test_project import modules_after

NODES, CHANNELS, END_S = 5, 3, 40.0


def worlds_from(seed: int, fewest: int = 1, most: int = 13) -> ContactWorld:
    """A world of a few nodes in which much happens; times are often whole seconds, so that things coincide."""
    rng = np.random.default_rng(seed)
    return ContactWorld(
        NODES,
        CHANNELS,
        contacts_from(rng),
        bundles_from(rng, int(rng.integers(fewest, most + 1))),
        subscriptions_from(rng, int(rng.integers(0, 9))),
        rng.random(NODES) < rng.choice([1.0, 0.7]),
    )


def times(rng: np.random.Generator, count: int) -> Floats:
    """Times within the run, half of them whole seconds."""
    drawn = rng.uniform(0, END_S, count)
    return np.where(rng.random(count) < 0.5, np.floor(drawn), drawn)


def contacts_from(rng: np.random.Generator) -> Contacts:
    """Contacts that touch, that have no length, that begin and end together with others."""
    rows = []
    for a, b in combinations(range(NODES), 2):
        if rng.random() < 0.6:
            drawn = np.sort(times(rng, int(rng.integers(2, 7))))
            drawn[1:] = np.where(rng.random(len(drawn) - 1) < 0.1, drawn[:-1], drawn[1:])
            rows += [(up, down, a, b) for up, down in pairwise(np.sort(drawn)) if rng.random() < 0.7]
    up, down, a, b = np.array(sorted(rows, key=lambda row: (row[0], row[2], row[3]))).reshape(-1, 4).T
    return Contacts(a.astype(np.int32), b.astype(np.int32), up.copy(), down.copy())


def bundles_from(rng: np.random.Generator, count: int) -> Bundles:
    """Bundles of many sizes; some live for no time at all, some expire when a transfer or a contact ends."""
    return Bundles(
        rng.integers(0, NODES, count).astype(np.int32),
        rng.integers(0, CHANNELS, count).astype(np.int32),
        np.sort(times(rng, count) * 0.6),
        rng.choice([1, 50, 100, 1000], count),
        rng.choice([0.0, 1.0, 5.0, 12.5, 100.0], count, p=[0.05, 0.1, 0.2, 0.25, 0.4]),
    )


def subscriptions_from(rng: np.random.Generator, count: int) -> Subscriptions:
    """From before the run to after it, for a while, and for no time."""
    start_s = np.where(rng.random(count) < 0.5, -np.inf, times(rng, count))
    order = np.argsort(start_s)
    return Subscriptions(
        rng.integers(0, NODES, count).astype(np.int32),
        rng.integers(0, CHANNELS, count).astype(np.int32),
        start_s[order],
        np.where(rng.random(count) < 0.6, np.inf, times(rng, count)),
    )


MEDIA = st.builds(
    Medium,
    rate_bps=st.sampled_from([400.0, 4000.0, 1e6]),
    duration_s=st.sampled_from([END_S, END_S, 25.5, 0.0]),
    capacity_bytes=st.sampled_from([1 << 60, 1 << 60, 0, 1, 100, 1050]),
    when_full=st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7]),
    single=st.booleans(),
    step_s=st.sampled_from([0.0, 0.0, 1.0, 2.5]),
    lifetime_unit_s=st.sampled_from([0.0, 0.0, 3.0, 7.5]),
    key=st.integers(0, 1 << 40),
    full_log=st.just(True),
    keep_own=st.sampled_from([0, 0, 1, 2]),
).map(
    lambda medium: medium._replace(
        lifetime_unit_s=medium.lifetime_unit_s if medium.step_s else 0.0,
        keep_own=0 if medium.when_full == 3 else medium.keep_own,  # the scenario refuses both at once
    )
)
FOR_ROUTERS = MEDIA.filter(
    lambda medium: medium.when_full != 3 and not medium.lifetime_unit_s
)  # others: simulated only

SHARED = {
    "seen": st.sampled_from(["live", "vector", "bloom"]),
    "order": st.sampled_from(["random", "oldest", "newest", "smallest", "soonest"]),
    "wanted_first": st.booleans(),
    "consume": st.booleans(),
    "skip_late": st.booleans(),
    "announce": st.sampled_from(["repeat", "repeat", "change"]),
    "repeat": st.sampled_from(["3 s", "7.3 s", "60 s"]),
    "header_bytes": st.sampled_from([0, 32]),
    "entry_bytes": st.sampled_from([0, 40]),
    "bloom_bits": st.sampled_from([1, 2, 10]),
}
SECOND = {
    "encounter_max": st.sampled_from([0.2, 0.7]),
    "interval": st.sampled_from(["2 s", "15 s"]),
    "first_threshold": st.sampled_from([0.0, 0.1, 0.6]),
    "forward": st.sampled_from(["greater", "at-least"]),
    "aging": st.sampled_from([0.5, 0.98]),
    "aging_unit": st.sampled_from(["3 s", "30 s"]),
}
SETTINGS = st.one_of(
    st.builds(dpsp.Settings, **SHARED,
        filters=st.lists(st.sampled_from(dpsp.FILTERS), unique=True).map(tuple),
        priorities=st.lists(st.sampled_from(dpsp.PRIORITIES), unique=True).map(tuple),
        combine=st.sampled_from(["vote", "order"]), hop_tolerance=st.integers(0, 1),
        missing_entry=st.sampled_from(["pass", "far"]), lifetime=st.sampled_from(["5 s", "1000 s"]),
        renewal=st.sampled_from([0.3, 0.9])),
    st.builds(flooding.Settings, **SHARED),
    st.builds(direct.Settings, **SHARED),
    st.builds(first_contact.Settings, **SHARED, at_subscriber=st.sampled_from(["goes-on", "ends"])),
    st.builds(spray.Settings, **SHARED, copies=st.sampled_from([1, 2, 5]), spray=st.sampled_from(["binary", "source"])),
    st.builds(prophet.Settings, **SHARED, aging=st.sampled_from([0.5, 0.98]),
        aging_unit=st.sampled_from(["3 s", "30 s"]), encounter=st.sampled_from([0.2, 0.7]),
        transitivity=st.sampled_from([0.0, 0.25, 0.9])),
    st.builds(prophet.Settings, **(SHARED | {"seen": st.just("live")}), variant=st.just("the-one"),
        aging=st.sampled_from([0.5, 0.98]), aging_unit=st.sampled_from(["3 s", "30 s"]),
        encounter=st.sampled_from([0.2, 0.75]), transitivity=st.sampled_from([0.0, 0.25, 0.9])),
    st.builds(prophet2.Settings, **SHARED, **SECOND, transitivity=st.sampled_from([0.0, 0.9])),
    st.builds(prophet2.Settings, **(SHARED | {"seen": st.just("live")}), **SECOND, variant=st.just("the-one")),
)  # fmt: skip


def for_nothing(chosen: Any) -> bool:
    """Whether nodes know each other's predictabilities for nothing: no router as an object does."""
    return bool(getattr(chosen, "variant", "rfc") == "the-one")


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 1 << 32), MEDIA, SETTINGS)
def test_arrays_do_what_the_texts_say(seed: int, medium: Medium, chosen: Any) -> None:
    world = worlds_from(seed)
    assert_same(simulate(world, medium, chosen), run_slowly(world, medium, chosen), medium, world)


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 1 << 32), FOR_ROUTERS, SETTINGS.filter(lambda chosen: not for_nothing(chosen)))
def test_arrays_are_objects(seed: int, medium: Medium, chosen: Any) -> None:
    world = worlds_from(seed)
    assert_same(simulate(world, medium, chosen), run_routers(world, medium, chosen), medium, world)


def test_the_obvious_version_shares_no_code() -> None:
    for file in (Path(__file__).parent / "naive").glob("*.py"):
        imports = [line for line in file.read_text().splitlines() if line.lstrip().startswith(("import", "from"))]
        assert not [line for line in imports if "serai" in line], file
    root = str(Path(__file__).parents[2])
    loaded = modules_after(f"sys.path.insert(0, {root!r})\nimport tests.opportunistic.naive")
    assert "tests" in loaded
    assert "serai" not in loaded  # nor by way of another test


def test_a_bundle_of_32_bits_has_a_bit_of_62() -> None:
    """As records hold it, and as the uncompiled loop reads it."""
    assert [bit_of(np.int32(bundle)) for bundle in (0, 31, 61, 62)] == [1, 1 << 31, 1 << 61, 1]


@settings(max_examples=8 if UNCOMPILED else 40, deadline=None)
@given(st.integers(0, 1 << 32), MEDIA, SETTINGS)
def test_more_bundles_than_a_word_has_bits(seed: int, medium: Medium, chosen: Any) -> None:
    world = worlds_from(seed, fewest=65, most=140)
    fast = simulate(world, medium, chosen)
    assert_same(fast, run_slowly(world, medium, chosen), medium, world)
    if not for_nothing(chosen) and medium.when_full != 3 and not medium.lifetime_unit_s:
        assert_same(fast, run_routers(world, medium, chosen), medium, world)


def assert_same(fast: Outcome, slow: Result, medium: Medium, world: ContactWorld) -> None:
    """Both runs did the same, in the same order."""
    rows = zip(fast.delivery_s, fast.delivery_bundle, fast.delivery_node, fast.delivery_hops, strict=True)
    transfers = [(*row[:6], TRANSFERS[row[6]]) for row in fast.transfer_log.tolist()]
    # unfinished transfers are noted at the end, in whatever order
    assert sorted(transfers, key=_when) == sorted(slow.transfers, key=_when)
    assert [(row.time_s, row.bundle, row.node, DROPS[row.reason]) for row in fast.drop_log] == slow.drops
    if medium.step_s == 0:  # at ticks, births wait for the next one, and no row says when that is
        told = stores_by_the_log(fast, world, medium.duration_s)
        for node in range(NODES):
            assert steps(told[node]) == steps(slow.stored.get(node, []))
    assert list(rows) == slow.deliveries
    listings = [(*row[:5], TRANSFERS[row[6]]) for row in fast.list_log.tolist()]
    assert sorted(listings) == sorted(slow.listings)
    assert (fast.control_bytes, fast.lists, fast.contacts) == (slow.control_bytes, slow.lists, slow.contacts)
    counts = {name: sum(row[6] == name for row in slow.transfers) for name in TRANSFERS}
    assert fast.transfers == counts
    assert fast.payload_bytes == sum(row[2] for row in slow.transfers)
    wasted = ("duplicate", "refused", "late", "broken")
    assert fast.wasted_bytes == sum(row[2] for row in slow.transfers if row[6] in wasted)
    for node in range(NODES):
        assert fast.stored_byte_s[node] == pytest.approx(slow.byte_s(node, medium.duration_s), abs=1e-6)
        assert fast.peak_bytes[node] == max((held for _, held in slow.stored.get(node, [])), default=0)


def stores_by_the_log(fast: Outcome, world: ContactWorld, duration_s: float) -> list[list[tuple[float, int]]]:
    """What each node's store holds after each change that the full log tells of, in order of time."""
    size, unborn = world.bundles.size_bytes, {row.bundle for row in fast.drop_log if not row.held}
    born = zip(world.bundles.created_s, world.bundles.source, strict=True)
    changes = [(t, node, size[b]) for b, (t, node) in enumerate(born) if b not in unborn and t <= duration_s]
    for row in fast.transfer_log:
        changes += [(row.end_s, row.receiver, size[row.bundle])] if row.stored else []
        changes += [(row.end_s, row.sender, -size[row.bundle])] if row.moved else []
    changes += [(row.time_s, row.node, -size[row.bundle]) for row in fast.drop_log if row.held]
    stores: list[list[tuple[float, int]]] = [[] for _ in range(NODES)]
    for time_s, node, change in sorted(changes, key=lambda row: row[0]):
        held = stores[node][-1][1] if stores[node] else 0
        stores[node].append((float(time_s), int(held + change)))
    return stores


def steps(held: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """A store's contents from each time on at which they change: the last word of each time."""
    last: list[tuple[float, int]] = []
    for time_s, size in dict(held).items():
        if size != (last[-1][1] if last else 0):
            last.append((time_s, size))
    return last


def _when(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (row[6] == "unfinished", row[1], row[4:6] if row[6] == "unfinished" else ())
