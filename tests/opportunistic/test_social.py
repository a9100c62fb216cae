"""Bubble Rap, SocialCast and the socio-aware overlay: answers worked by hand, from their papers."""

from typing import Any

import pytest

from serai.opportunistic.bubble import BubbleRap
from serai.opportunistic.kit.checks import broken_rule, random_world
from serai.opportunistic.kit.engine import Network
from serai.opportunistic.protocols import PROTOCOLS
from serai.opportunistic.rules import shared_rules
from serai.opportunistic.settings import RouterSettings
from serai.opportunistic.socialcast import Level, SocialCast
from serai.opportunistic.socioaware import SocioAware
from serai.opportunistic.testing import SmallWorld, world
from serai.own.loading import declared_settings

A, B, C, D, E = range(5)


def routers_after(given: SmallWorld, router: Any, **settings: Any) -> list[Any]:
    """The routers of all nodes at the end of a run."""
    rules = shared_rules(RouterSettings(header_bytes=0, entry_bytes=0, id_bytes=0), lists=True)
    network = Network(given.contacts, given.medium, router, declared_settings(router) | settings, rules)
    network.run()
    return [node.router for node in network.nodes]


# ---- Bubble Rap


@pytest.mark.parametrize(("window_s", "rank"), [(100.0, 2.0), (3.0, 1.5)])
def test_a_rank_is_the_mean_number_of_nodes_met_in_a_window(window_s: float, rank: float) -> None:
    """B and C, then B again after 4 s: two in one window; or two in the first window and one in the second."""
    met = world("0-1 @ 0..1, 0-2 @ 2..2.5, 0-1 @ 4..5", duration_s=5.0)
    assert routers_after(met, BubbleRap, window=window_s)[A].rank(5.0) == rank
    lasting = world("0-1 @ 0..5, 0-2 @ 4..5", duration_s=5.0)
    assert routers_after(lasting, BubbleRap, window=3.0)[A].rank(5.0) == (1 + 2) / 2


@pytest.mark.parametrize(("cliques", "community"), [(3, {A, B, C, D}), (4, {A, B, C})])
def test_who_shares_familiar_nodes_with_a_community_belongs_to_it(cliques: int, community: set[int]) -> None:
    """A has been with B and C for 20 s, and so has D, whom A meets for a second: two familiar nodes in common."""
    long = "0-1 @ 0..20, 0-2 @ 0..20, 1-3 @ 0..20, 2-3 @ 0..20"
    met = world(f"{long}, 0-1 @ 30..31, 0-2 @ 30..31, 0-3 @ 40..41")
    routers = routers_after(met, BubbleRap, familiar=10.0, cliques=cliques)
    assert routers[A].community == community
    assert routers[D].community == {D}  # it has heard of nobody's familiar nodes since it has some itself


def test_bundles_climb_to_those_who_meet_more() -> None:
    """At 10 s B has met three nodes and A one; at 20 s A has met two and E one."""
    met = world("1-2 @ 0..1, 1-3 @ 2..3, 0-1 @ 10..11, 0-4 @ 20..21", publish="0 news @ 5 100 B", subscribe="9 news")
    assert met.run(BubbleRap).transfers == [(10.0, 10.1, 0, A, B, "relayed")]


@pytest.mark.parametrize(("hand_over", "last"), [(True, []), (False, [(60.0, 60.1, 0, A, C, "relayed")])])
def test_bundles_sink_into_the_community_of_a_subscriber(hand_over: bool, last: list[Any]) -> None:
    """B has met fewer nodes than A, but C, who wants the bundle, is familiar to it. A keeps none, unless it may."""
    contacts = "1-2 @ 0..20, 1-2 @ 30..31, 0-3 @ 32..33, 0-4 @ 34..35, 0-1 @ 40..41, 0-2 @ 60..61"
    met = world(contacts, publish="0 news @ 36 100 B", subscribe="2 news")
    ran = met.run(BubbleRap, familiar=10.0, hand_over=hand_over)
    assert ran.transfers == [(40.0, 40.1, 0, A, B, "relayed"), *last]


# ---- SocialCast


def test_a_level_that_does_not_wander_is_the_mean_of_what_was_seen() -> None:
    """With the prior 0, which counts as one observation: 1/2, 2/3, 3/4. One that wanders trusts the last ones more."""
    level, wandering = Level(), Level()
    for expected in (1 / 2, 2 / 3, 3 / 4):
        level.observe(1.0, 0.0)
        wandering.observe(1.0, 0.5)
        assert level.value == pytest.approx(expected)
    assert wandering.value > level.value
    first = Level()
    first.observe(1.0, 0.5)
    assert first.value == pytest.approx(1.5 / 2.5)


@pytest.mark.parametrize(("replicas", "served"), [(1, []), (2, [(150.0, 150.1, 0, A, C, "relayed")])])
def test_who_was_with_subscribers_carries(replicas: int, served: list[Any]) -> None:
    """B has been with C, the subscriber; D has not. Of one copy A has none left for C, of two it has."""
    contacts = "1-2 @ 0..100, 0-3 @ 60..61, 0-1 @ 105..106, 0-2 @ 150..151, 1-2 @ 200..201"
    met = world(contacts, publish="0 news @ 50 100 B", subscribe="2 news")
    ran = met.run(SocialCast, period=10.0, change_weight=0.0, replicas=replicas)
    last = [] if served else [(200.0, 200.1, 0, B, C, "relayed")]
    assert ran.transfers == [(105.0, 105.1, 0, A, B, "relayed"), *served, *last]


def test_the_share_of_neighbours_that_came_or_went_counts() -> None:
    """At 10 s B is new (1 of 1), at 20 s B has left and C come (2 of 2), at 30 s C is still there (0 of 1)."""
    met = world("0-1 @ 1..11, 0-2 @ 12..40", duration_s=30.0)
    router = routers_after(met, SocialCast, period=10.0, wander=0.0)[A]
    assert router.change.value == pytest.approx((0 + 1 + 1 + 0) / 5)  # from 0 s on, and the prior
    assert router.utility(0) == pytest.approx(0.25 * 2 / 5)


# ---- the socio-aware overlay


def test_publications_go_by_way_of_brokers() -> None:
    """A, B and C know each other by B, D and E each other. A's bundle moves to B, the broker, from there to D, whose
    friend E wants it, and to E. C has one, too, but has heard from B that it meets two members: D gets none there."""
    long = "0-1 @ 0..20, 1-2 @ 0..20, 3-4 @ 0..20, 0-1 @ 30..31, 1-2 @ 32..33, 1-2 @ 34..35, 3-4 @ 34..35"
    contacts = f"{long}, 0-1 @ 40..41, 2-3 @ 45..46, 1-3 @ 50..51, 3-4 @ 60..61, 0-4 @ 70..71"
    met = world(contacts, publish="0 news @ 36 100 B, 2 news @ 37 100 B", subscribe="4 news")
    ran = met.run(SocioAware, familiar=10.0)
    assert ran.transfers == [
        (40.0, 40.1, 0, A, B, "relayed"),
        (50.0, 50.1, 0, B, D, "relayed"),
        (60.0, 60.1, 0, D, E, "relayed"),
    ]
    assert ran.deliveries == [(60.1, 0, E, 3)]


@pytest.mark.parametrize("name", ["bubble-rap", "socialcast", "socio-aware"])
def test_in_random_worlds_nothing_happens_that_cannot(name: str) -> None:
    protocol = PROTOCOLS[name]
    soon = {"period": "3 s"} if name == "socialcast" else {"familiar": "2 s", "window": "5 s", "cliques": 2}
    for seed in range(40):
        given, medium = random_world(seed)
        chosen = protocol.settings(repeat="4 s", entry_bytes=40, **soon)
        assert broken_rule((given, protocol.simulate(given, medium, chosen))) == ""
