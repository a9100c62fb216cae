"""MaxProp: answers worked by hand, from the paper's section III; and ways found quickly against ways found plainly."""

import math
from array import array
from typing import Any

import numpy as np
import pytest

from serai.opportunistic.engine.ways import cheapest, table_of
from serai.opportunistic.kit.checks import broken_rule, random_world
from serai.opportunistic.kit.engine import Network
from serai.opportunistic.maxprop import MaxProp
from serai.opportunistic.protocols import PROTOCOLS
from serai.opportunistic.rules import shared_rules
from serai.opportunistic.settings import RouterSettings
from serai.opportunistic.testing import SmallWorld, world
from serai.own.loading import declared_settings

FREE = {"header_bytes": 0, "entry_bytes": 0, "id_bytes": 0}
A, B, C, D = range(4)


def routers_after(given: SmallWorld, **settings: Any) -> list[MaxProp]:
    """The routers of all nodes at the end of a run."""
    rules = shared_rules(RouterSettings(**FREE), lists=True)
    network = Network(given.contacts, given.medium, MaxProp, declared_settings(MaxProp) | settings, rules)
    network.run()
    routers: Any = [node.router for node in network.nodes]
    return routers


def test_likelihoods_of_who_is_met_next() -> None:
    """B; then C: a half each; then B again: (1/2 + 1) / 2 and 1/2 / 2. With alpha 0.5: (2/3 + 1/2) / 1.5, 1/3 / 1.5."""
    met = world("0-1 @ 0..1, 0-2 @ 2..3, 0-1 @ 4..5")
    assert routers_after(met)[A].likelihood == {B: 0.75, C: 0.25}
    slower = routers_after(met, alpha=0.5)[A].likelihood
    assert slower == pytest.approx({B: (2 / 3 + 0.5) / 1.5, C: 1 / 3 / 1.5})


def test_the_cost_of_a_way_is_what_its_meetings_lack_to_certainty() -> None:
    """B has met A, C and A again: 3/4 and 1/4; C has met B alone; A hears of all that. From A over B to C: 0 + 3/4."""
    router = routers_after(world("0-1 @ 0..1, 1-2 @ 2..3, 0-1 @ 4..5"))[A]
    assert router.cost(A, B) == 0.0
    assert router.cost(A, C) == 0.75
    assert router.cost(C, A) == 0.0 + 0.25
    assert router.cost(A, D) == math.inf


def test_acknowledgements_clear_the_network() -> None:
    """C gets A's bundle from B at 20.1 s. B drops its own copy then, and A when it meets B again: D gets nothing."""
    contacts = "0-1 @ 0..10, 1-2 @ 20..30, 0-1 @ 40..41, 0-3 @ 50..60"
    given = world(contacts, publish="0 news @ 5 100 B", subscribe="2 news")
    ran = given.run(MaxProp)
    assert ran.deliveries == [(20.1, 0, C, 2)]
    assert ran.transfers == [(5.0, 5.1, 0, A, B, "relayed"), (20.0, 20.1, 0, B, C, "relayed")]
    assert ran.drops[0] == (40.0, 0, A, "evicted")
    assert (50.0, 50.1, 0, A, D, "relayed") in given.run(MaxProp, acks=False).transfers


def test_a_bundle_is_done_with_when_all_known_subscribers_have_it() -> None:
    """B and D want it. When A has met B, it knows of D by B's list, so it goes on to carry the bundle for D."""
    contacts = "1-3 @ 0..1, 0-1 @ 10..20, 0-3 @ 30..40"
    ran = world(contacts, publish="0 news @ 5 100 B", subscribe="1 news, 3 news").run(MaxProp)
    assert ran.deliveries == [(10.1, 0, B, 1), (30.1, 0, D, 1)]


@pytest.mark.parametrize(("head_start", "first"), [(True, 1), (False, 0)])
def test_few_hops_give_a_head_start(head_start: bool, first: int) -> None:
    """B has A's bundle 0, whose subscriber D meets nobody but C, and its own bundle 1, which nobody is known to want.
    By the way, 0 goes to C first; but a contact of B's has transferred 100 bytes, so that own bundles go before."""
    contacts = "2-3 @ 0..1, 1-2 @ 2..3, 0-1 @ 10..11, 1-2 @ 20..20.15"
    publish, subscribe = "0 news @ 5 100 B, 1 other @ 6 100 B", "3 news"
    ran = world(contacts, publish=publish, subscribe=subscribe).run(MaxProp, head_start=head_start)
    assert [row[2] for row in ran.transfers if row[3:] == (B, C, "relayed")] == [first]


def test_the_worst_way_leaves_a_full_store() -> None:
    """A has met B, the subscriber of bundle 1; nobody is known to want bundle 0 and 2. The younger of those leaves."""
    publish = "0 lost @ 5 100 B, 0 news @ 6 100 B, 0 lost @ 7 100 B"
    full = world("0-1 @ 0..1", publish=publish, subscribe="1 news", store_bytes=200)
    assert full.run(MaxProp, head_start=False).drops == [(7.0, 0, A, "evicted")]
    publish += ", 0 lost @ 8 100 B"
    fuller = world("0-1 @ 0..1", publish=publish, subscribe="1 news", store_bytes=300)
    assert fuller.run(MaxProp, head_start=False).drops[0] == (8.0, 2, A, "evicted")


def test_as_in_the_one_lists_are_free_and_the_best_of_all_neighbours_goes_first() -> None:
    """A begins contacts with B, then with C, who has met the subscriber D: C is served first. Lists take no time."""
    contacts = "2-3 @ 0..1, 0-1 @ 10..20, 0-2 @ 10..20"
    given = world(contacts, publish="0 news @ 5 100 B", subscribe="3 news", single=True)
    ran = given.run(MaxProp, head_start=False, follows="the-one", entry_bytes=40)
    assert ran.transfers[0] == (10.0, 10.1, 0, A, C, "relayed")
    assert ran.lists == 0


def test_as_in_the_one_what_was_acknowledged_may_come_again() -> None:
    """B and D have A's bundle and are in contact when B hands it to C, the subscriber, and lets go of it. D, which has
    not heard of that and whose copy never was at B, brings it again."""
    contacts = "0-1 @ 1..2, 0-3 @ 3..4, 1-3 @ 5..40, 1-2 @ 10..11"
    given = world(contacts, publish="0 news @ 0 100 B", subscribe="2 news", single=True)
    rows = [row[3:5] for row in given.run(MaxProp, follows="the-one", seen="live").transfers]
    assert rows == [(A, B), (A, D), (B, C), (D, B)]
    assert [row[3:5] for row in given.run(MaxProp).transfers] == [(A, B), (A, D), (B, C)]


def test_in_random_worlds_nothing_happens_that_cannot() -> None:
    maxprop = PROTOCOLS["maxprop"]
    for seed in range(60):
        given, medium = random_world(seed)
        for settings in (maxprop.settings(), maxprop.settings(acks=False, seen="live", head_start=False)):
            assert broken_rule((given, maxprop.simulate(given, medium, settings))) == ""


def test_cheapest_ways_are_those_found_by_trying_until_nothing_changes() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        count = int(rng.integers(1, 12))
        known = {
            node: {int(to): float(rng.random()) for to in rng.permutation(count)[: rng.integers(0, count + 1)]}
            for node in rng.permutation(count)[: rng.integers(1, count + 1)].tolist()
        }
        packed = {node: (array("i", row).tobytes(), array("d", row.values()).tobytes()) for node, row in known.items()}
        for start in range(count):
            plain = {start: 0.0}
            for _ in range(count):
                for node, row in known.items():
                    for to, likelihood in row.items():
                        plain[to] = min(plain.get(to, math.inf), plain.get(node, math.inf) + 1.0 - likelihood)
            found = cheapest(table_of(packed), start).tolist()
            assert [found[n] if n < len(found) else math.inf for n in range(count)] == pytest.approx(
                [plain.get(n, math.inf) for n in range(count)]
            )
