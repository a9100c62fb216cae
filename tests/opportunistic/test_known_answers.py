"""Two nodes, three in a line: what comes of it can be worked out on paper, for each filter and each priority."""

from types import SimpleNamespace

import pytest

from serai.opportunistic import prophet
from serai.opportunistic.dpsp import FILTERS, Settings
from serai.opportunistic.metrics import _times_in_store
from serai.opportunistic.router.knowledge import OwnSubscriptions
from tests.opportunistic.small import deliveries, run, sent, world

A, B, C, D = range(4)
ONE_CONTACT = [(A, B, 10.0, 20.0)]


# ---- two nodes, one contact


@pytest.mark.parametrize("protocol", ["flooding", "direct", "spray", "prophet", "first-contact", "dpsp"])
def test_a_bundle_takes_its_size_over_the_rate(protocol: str) -> None:
    outcome = run(protocol, world(ONE_CONTACT, [(1.0, A, 0, 500)], [(B, 0)]))
    assert deliveries(outcome) == [(0, B, 10.5)]
    assert outcome.payload_bytes == 500
    assert outcome.wasted_bytes == 0


def test_lists_take_bytes_and_time() -> None:
    """A says what it has seen (32 + 8 bytes), B what it wants (32 + 40); the bundle waits for B's list."""
    costs = {"header_bytes": 32, "entry_bytes": 40, "id_bytes": 8}
    outcome = run("dpsp", world(ONE_CONTACT, [(1.0, A, 0, 500)], [(B, 0)]), **costs)
    assert deliveries(outcome) == [(0, B, 10.572)]
    assert (outcome.control_bytes, outcome.lists) == (40 + 72, 2)


def test_a_contact_that_ends_breaks_the_transfer() -> None:
    given = world([(A, B, 10.0, 10.3), (A, B, 20.0, 30.0)], [(1.0, A, 0, 500)], [(B, 0)])
    outcome = run("flooding", given)
    assert deliveries(outcome) == [(0, B, 20.5)]
    assert outcome.transfers["broken"] == 1
    assert (outcome.payload_bytes, outcome.wasted_bytes) == (800, 300)


def test_both_directions_and_several_contacts_at_once() -> None:
    given = world([(A, B, 10.0, 20.0), (A, C, 10.0, 20.0)], [(1.0, A, 0), (1.0, B, 0)], [(A, 0), (B, 0), (C, 0)])
    assert deliveries(run("flooding", given)) == [(0, B, 10.1), (0, C, 10.1), (1, A, 10.1), (1, C, 10.2)]


def test_one_thing_at_a_time() -> None:
    given = world([(A, B, 10.0, 20.0), (A, C, 10.0, 20.0)], [(1.0, A, 0), (1.0, B, 0)], [(A, 0), (B, 0), (C, 0)])
    outcome = run("flooding", given, {"single": True}, seen="live")
    ends = sorted(time for _, _, time in deliveries(outcome))
    assert ends == [10.1, 10.2, 10.3, 10.4]


@pytest.mark.parametrize(("lifetime", "expected"), [(9.4, []), (9.5, []), (9.51, [(0, B, 10.5)])])
def test_nothing_is_delivered_at_or_after_its_expiry(lifetime: float, expected: list[tuple[int, int, float]]) -> None:
    given = world(ONE_CONTACT, [(1.0, A, 0, 500, lifetime)], [(B, 0)])
    outcome = run("flooding", given)
    assert deliveries(outcome) == expected
    assert outcome.transfers["late"] == (not expected)
    assert run("flooding", given, skip_late=True).transfers["late"] == 0


def test_subscribed_before_the_first_publication_and_after_it() -> None:
    given = world(ONE_CONTACT, [(1.0, A, 0), (11.0, A, 0)], [(B, 0, 0.0, 11.05), (B, 0, 15.0, 100.0)])
    assert deliveries(run("flooding", given)) == [(0, B, 10.1), (1, B, 15.0)]


def test_who_does_not_carry_takes_only_what_it_wants() -> None:
    given = world(ONE_CONTACT, [(1.0, A, 0), (1.0, A, 1)], [(B, 1)], carries=[True, False])
    assert sent(run("flooding", given)) == [(1, A, B)]


@pytest.mark.parametrize(
    ("when_full", "kept"),
    [(0, [0, 1]), (1, [1, 2]), (2, [0, 2]), (4, [0, 2])],
    ids=["refuse", "oldest", "soonest", "youngest"],
)
def test_a_full_store(when_full: int, kept: list[int]) -> None:
    """Room for two: the third is refused, or the oldest leaves, or who expires soonest, or the younger of the two."""
    bundles = [(1.0, A, 0, 100, 500.0), (2.0, A, 0, 100, 50.0), (3.0, A, 0, 100, 500.0)]
    given = world([(A, B, 10.0, 20.0), (B, C, 30.0, 40.0)], bundles, [(C, 0)])
    medium = {"capacity_bytes": 200, "when_full": when_full}
    outcome = run("flooding", given, medium, order="oldest")
    assert outcome.peak_bytes.max() == 200
    assert [bundle for bundle, _, _ in deliveries(outcome)] == kept


@pytest.mark.parametrize(("when_full", "kept"), [(1, [1, 2]), (5, [0, 2])], ids=["oldest", "largest"])
def test_the_largest_leaves_a_full_store(when_full: int, kept: list[int]) -> None:
    given = world([(A, B, 10.0, 20.0)], [(1.0, A, 0, 50), (2.0, A, 0, 100), (3.0, A, 0, 80)], [])
    outcome = run("flooding", given, {"capacity_bytes": 200, "when_full": when_full}, order="oldest")
    assert sent(outcome) == [(bundle, A, B) for bundle in kept]


@pytest.mark.parametrize(
    ("when_full", "until_s", "kept"),
    [(1, 5.15, [1, 2]), (6, 5.15, [0, 2]), (6, 5.05, [1, 2]), (7, 5.05, [0, 2])],
    ids=["oldest", "most-copied", "never-copied", "least-wanted"],
)
def test_what_a_node_has_seen_of_others_decides(when_full: int, until_s: float, kept: list[int]) -> None:
    """In its first contact A can hand on the newer of two bundles, or nothing; C wants what the older one is about.
    Then a third is born, and what is left goes to B."""
    met = [(A, C, 5.0, until_s), (A, B, 10.0, 20.0)]
    given = world(met, [(1.0, A, 0), (2.0, A, 1), (7.0, A, 1)], [(C, 0)])
    for seen in ("live", "vector"):
        medium = {"capacity_bytes": 200, "when_full": when_full}
        outcome = run("flooding", given, medium, order="newest", seen=seen, id_bytes=0)
        assert sorted(row for row in sent(outcome) if row[2] == B) == [(bundle, A, B) for bundle in kept]


@pytest.mark.parametrize(
    ("first", "stays"),
    [([(A, C, 5.0, 6.0), (B, C, 8.0, 9.0)], False), ([(A, B, 8.0, 9.0)], True), ([(B, C, 8.0, 9.0)], True)],
    ids=["one took it and one had it", "one took it and says so again", "one took it"],
)
def test_own_bundles_stay_until_enough_have_them(first: list[tuple[int, int, float, float]], stays: bool) -> None:
    """A offers B its bundle whatever lists say; two neighbours must have it before one of D's can take its place."""
    met = [*first, (A, B, 10.0, 11.0), (A, D, 20.0, 21.0)]
    given = world(met, [(1.0, A, 0), (2.0, D, 0)], [], carries=[True, True, True, False])
    medium = {"capacity_bytes": 100, "keep_own": 2}
    assert ((1, D, A) in sent(run("dpsp", given, medium, filters=()))) == (not stays)


@pytest.mark.parametrize(
    ("order", "expected"),
    [("oldest", [0, 1, 2]), ("newest", [2, 1, 0]), ("smallest", [1, 2, 0]), ("soonest", [2, 0, 1])],
)
def test_what_goes_first(order: str, expected: list[int]) -> None:
    bundles = [(1.0, A, 0, 90, 50.0), (2.0, A, 0, 50, 90.0), (3.0, A, 0, 70, 40.0)]
    outcome = run("flooding", world(ONE_CONTACT, bundles, []), order=order)
    assert sent(outcome) == [(bundle, A, B) for bundle in expected]


def test_a_store_of_nothing_still_hands_over_what_is_wanted() -> None:
    given = world(ONE_CONTACT, [(1.0, A, 0)], [(B, 0)])
    outcome = run("flooding", given, {"capacity_bytes": 0})
    assert deliveries(outcome) == []
    assert outcome.drops["full"] == 1


# ---- three in a line: A meets B, B meets C, who has subscribed

LINE = [(A, B, 10.0, 20.0), (B, C, 30.0, 40.0)]


@pytest.mark.parametrize(
    ("protocol", "settings", "expected"),
    [
        ("flooding", {}, [(0, C, 30.1)]),
        ("direct", {}, []),
        ("spray", {"copies": 2}, [(0, C, 30.1)]),
        ("spray", {"copies": 1}, []),
        ("prophet", {}, []),
        ("first-contact", {}, [(0, C, 30.1)]),
        ("dpsp", {}, [(0, C, 30.1)]),
        ("dpsp", {"filters": ("known-subscription",)}, []),
    ],
)
def test_a_line(protocol: str, settings: dict[str, object], expected: list[tuple[int, int, float]]) -> None:
    assert deliveries(run(protocol, world(LINE, [(1.0, A, 0)], [(C, 0)]), **settings)) == expected


MET_BEFORE = [(B, C, 2.0, 3.0), *LINE]


@pytest.mark.parametrize("protocol", ["prophet", "dpsp"])
def test_who_has_met_the_subscriber_is_given_the_bundle(protocol: str) -> None:
    """PRoPHET: B is more likely to meet it. DPSP with all filters: B's list has it, one hop away."""
    settings = {"filters": FILTERS} if protocol == "dpsp" else {}
    assert deliveries(run(protocol, world(MET_BEFORE, [(4.0, A, 0)], [(C, 0)]), **settings)) == [(0, C, 30.1)]


@pytest.mark.parametrize(("first_a", "expected"), [(True, [(0, A, B)]), (False, [])])
def test_predictabilities_age_by_time_and_not_by_how_often_they_are_looked_at(
    first_a: bool, expected: list[tuple[int, int, int]]
) -> None:
    """A and B meet the subscriber 0.2 s apart: later, whoever met it last is the likelier, though B has met others."""
    one, other = (A, B) if first_a else (B, A)
    met = [
        (one, C, 2.0, 2.1),
        (other, C, 2.2, 2.3),
        *((B, 3, t, t + 1.0) for t in (10.0, 20.0, 30.0)),
        (A, B, 40.0, 41.0),
    ]
    assert sent(run("prophet", world(met, [(35.0, A, 0)], [(C, 0)]))) == expected


@pytest.mark.parametrize(
    ("unit", "beta", "expected"),
    [
        ("14 s", 0.9, [(0, A, B)]),
        ("16 s", 0.9, []),
        ("10 s", 0.72, [(0, A, B)]),
        ("10 s", 0.7, []),
        ("10 s", 0.0, []),
    ],
)
def test_an_old_encounter_against_a_friend_of_a_friend(
    unit: str, beta: float, expected: list[tuple[int, int, int]]
) -> None:
    """RFC 6693, 2.1.2, with P_encounter 0.7 and gamma 0.5; C has subscribed.

    A met C at 0 s: at 30 s that is 0.7 / 2^(30/unit). D met C at 10 s, and B met D at 20 s: by transitivity
    0.7 * 0.7 / 2^(10/unit) * beta, at 30 s 0.49 * beta / 2^(20/unit). So B is likelier if 0.7 * beta > 1 / 2^(10/unit):
    with beta 0.9 for units below 15.0 s, with a unit of 10 s for beta above 0.714. What A learns from B in this contact
    is less than what B has: 0.7 * beta of it.
    """
    met = [(A, C, 0.0, 1.0), (C, 3, 10.0, 11.0), (B, 3, 20.0, 21.0), (A, B, 30.0, 31.0)]
    chosen = {"encounter": 0.7, "aging": 0.5, "aging_unit": unit, "transitivity": beta}
    assert sent(run("prophet", world(met, [(25.0, A, 0)], [(C, 0)]), **chosen)) == expected


# ---- filters


def test_known_subscription_looks_at_both_lists() -> None:
    """A knows of the subscription, B does not: it passes."""
    given = world([(A, C, 2.0, 3.0), (A, B, 10.0, 20.0)], [(4.0, A, 0)], [(C, 0)])
    assert sent(run("dpsp", given, filters=("known-subscription",))) == [(0, A, B)]


@pytest.mark.parametrize(("tolerance", "expected"), [(0, []), (1, [(0, B, A)])])
def test_hop_count_keeps_bundles_from_going_away(tolerance: int, expected: list[tuple[int, int, int]]) -> None:
    """B, one hop from the subscriber, has the bundle; A, two hops from it, has not."""
    met = [(B, C, 2.0, 3.0), (A, B, 5.0, 6.0), (A, B, 10.0, 20.0)]
    given = world(met, [(8.0, B, 0)], [(C, 0)])
    assert sent(run("dpsp", given, filters=("hop-count", "duplicate"), hop_tolerance=tolerance)) == expected


@pytest.mark.parametrize(("missing", "expected"), [("pass", [(0, B, A)]), ("far", [])])
def test_hop_count_without_an_entry(missing: str, expected: list[tuple[int, int, int]]) -> None:
    given = world([(B, C, 2.0, 3.0), (A, B, 10.0, 20.0)], [(8.0, B, 0)], [(C, 0)])
    assert sent(run("dpsp", given, filters=("hop-count", "duplicate"), missing_entry=missing)) == expected


@pytest.mark.parametrize("seen", ["live", "vector", "bloom"])
def test_duplicate_asks_what_the_neighbour_has_seen(seen: str) -> None:
    twice = world([(A, B, 10.0, 20.0), (A, B, 30.0, 40.0)], [(1.0, A, 0)], [(B, 0)])
    assert run("dpsp", twice, seen=seen, filters=("duplicate",)).transfers["duplicate"] == 0
    without = run("dpsp", twice, seen=seen, filters=())
    assert without.transfers["duplicate"] == 2  # both send it: neither knows that the other has it
    assert without.wasted_bytes == 200


def test_a_bloom_filter_loses_nothing_for_good() -> None:
    """One bit for each bundle mistakes many for seen; another contact has another filter, and in the end all arrive."""
    contacts = [(A, B, 10.0 * n, 10.0 * n + 5.0) for n in range(1, 60)]
    bundles = [(0.1 * n, [A, B][n % 2], 0, 10) for n in range(60)]
    first = run("flooding", world(contacts[:1], bundles, [(A, 0), (B, 0)]), seen="bloom", bloom_bits=1)
    assert len(first.delivery_s) < 60
    outcome = run("flooding", world(contacts, bundles, [(A, 0), (B, 0)]), seen="bloom", bloom_bits=1)
    assert len(outcome.delivery_s) == 60


# ---- subscription lists


def test_entries_spread_with_growing_hop_counts_and_lapse() -> None:
    """C's subscription reaches A over B; after its lifetime without renewal nobody knows it any more."""
    chain = [(B, C, 2.0, 3.0), (A, B, 5.0, 6.0)]
    soon = world([*chain, (A, 3, 10.0, 11.0)], [(8.0, A, 0)], [(C, 0, 0.0, 4.0)])
    late = world([*chain, (A, 3, 150.0, 151.0)], [(140.0, A, 0)], [(C, 0, 0.0, 4.0)])
    settings = {"filters": ("known-subscription",), "lifetime": "100 s"}
    assert sent(run("dpsp", soon, **settings)) == [(0, A, 3)]
    assert sent(run("dpsp", late, **settings)) == []


def test_a_subscriber_renews_its_entry() -> None:
    """At 95 s C's entry is 90 s old and renewed: at 150 s A still knows of it. What was heard at 5 s has lapsed."""
    settings = {"filters": ("known-subscription",), "lifetime": "100 s"}
    heard_late = world([(A, C, 95.0, 96.0), (A, B, 150.0, 151.0)], [(140.0, A, 0)], [(C, 0, 0.0, 1000.0)])
    heard_early = world([(A, C, 5.0, 6.0), (A, B, 150.0, 151.0)], [(140.0, A, 0)], [(C, 0, 0.0, 1000.0)])
    assert sent(run("dpsp", heard_late, **settings)) == [(0, A, B)]
    assert sent(run("dpsp", heard_early, **settings)) == []


@pytest.mark.parametrize(("tolerance", "expected"), [(0, []), (1, [(0, A, 3)]), (2, [(0, A, 3), (0, A, 4)])])
def test_an_entry_is_one_hop_further_at_each_node(tolerance: int, expected: list[tuple[int, int, int]]) -> None:
    """C's entry goes to B (1 hop), A (2), D (3) and E (4). Then A has a bundle, and D is one hop further, E two."""
    heard = [(B, C, 2.0, 3.0), (A, B, 5.0, 6.0), (A, D, 8.0, 9.0), (D, E, 11.0, 12.0)]
    given = world([*heard, (A, D, 30.0, 31.0), (A, E, 40.0, 41.0)], [(20.0, A, 0)], [(C, 0)])
    assert sent(run("dpsp", given, filters=("hop-count", "duplicate"), hop_tolerance=tolerance)) == expected


# ---- priorities: a contact that is long enough for one bundle

ONE_ONLY = (A, B, 50.0, 50.15)


@pytest.mark.parametrize(("priority", "first"), [("short-delay", 2), ("long-delay", 0)])
def test_delay_priorities(priority: str, first: int) -> None:
    given = world([ONE_ONLY], [(1.0, A, 0), (2.0, A, 0), (3.0, A, 0)], [])
    assert sent(run("dpsp", given, priorities=(priority,))) == [(first, A, B)]


D, E, F = 3, 4, 5
NEAR_AND_POPULAR = [(B, C, 2.0, 3.0), (D, E, 2.0, 3.0), (D, F, 2.0, 3.0), (B, D, 5.0, 6.0), (A, B, 10.0, 11.0)]
"""C wants channel 0 and is one hop from B; E and F want channel 1 and are two hops from it."""
WISHES = [(C, 0), (E, 1), (F, 1)]


@pytest.mark.parametrize(
    ("priorities", "combine", "first"),
    [
        (("hop-count",), "vote", 0),
        (("popularity",), "vote", 1),
        (("hop-count", "popularity"), "order", 0),
        (("popularity", "hop-count"), "order", 1),
        (("hop-count", "popularity", "long-delay"), "vote", 0),
        (("hop-count", "popularity", "short-delay"), "vote", 1),
    ],
)
def test_hop_count_popularity_and_majorities(priorities: tuple[str, ...], combine: str, first: int) -> None:
    """Bundle 0 (older) is on the near channel, bundle 1 on the popular one."""
    given = world([*NEAR_AND_POPULAR, ONE_ONLY], [(20.0, A, 0), (21.0, A, 1)], WISHES)
    outcome = run("dpsp", given, priorities=priorities, combine=combine)
    assert sent(outcome) == [(first, A, B)]


def test_wanted_first_goes_before_any_priority() -> None:
    given = world([ONE_ONLY], [(1.0, A, 1), (2.0, A, 0)], [(B, 1)])
    assert sent(run("dpsp", given, priorities=("short-delay",))) == [(1, A, B)]
    assert sent(run("dpsp", given, priorities=("short-delay",), wanted_first=True)) == [(0, A, B)]


# ---- spray


def test_binary_spray_gives_half_and_source_spray_one() -> None:
    """Four copies: A gives B two, B gives C one; then each has one or two left, and D gets what is left to give."""
    met = [(A, B, 10.0, 11.0), (B, C, 20.0, 21.0), (C, D, 30.0, 31.0), (B, D, 40.0, 41.0), (A, D, 50.0, 51.0)]
    given = world(met, [(1.0, A, 0)], [])
    assert sent(run("spray", given, copies=4)) == [(0, A, B), (0, B, C), (0, A, D)]
    assert sent(run("spray", given, copies=4, spray="source")) == [(0, A, B), (0, A, D)]


def test_of_an_odd_number_of_copies_the_giver_keeps_the_larger_half() -> None:
    """A has 5 and gives B 2, C 1 of 3, D 1 of 2, and E nothing; B gives F 1 of 2, and G nothing."""
    by_a = [(A, who, 10.0 * who, 10.0 * who + 1.0) for who in (B, C, D, E)]
    by_b = [(B, who, 10.0 * who, 10.0 * who + 1.0) for who in (F, 6)]
    given = world([*by_a, *by_b], [(1.0, A, 0)], [])
    assert sent(run("spray", given, copies=5)) == [(0, A, B), (0, A, C), (0, A, D), (0, B, F)]


def test_copies_of_a_broken_transfer_come_back() -> None:
    met = [(A, B, 10.0, 10.05), (A, B, 20.0, 21.0)]
    assert sent(run("spray", world(met, [(1.0, A, 0)], []), copies=2)) == [(0, A, B)]


# ---- first contact


def test_the_single_copy_is_gone_once_it_was_handed_on() -> None:
    """B has it, so C, whom A meets next, gets nothing; it does not come back to A, which has had it."""
    given = world([(A, B, 10.0, 11.0), (A, C, 20.0, 21.0), (A, B, 30.0, 31.0)], [(1.0, A, 0)], [(C, 0)])
    outcome = run("first-contact", given)
    assert sent(outcome) == [(0, A, B)]
    assert outcome.stored_byte_s[A] == pytest.approx(100 * (10.1 - 1.0))
    assert outcome.stored_byte_s[B] == pytest.approx(100 * (1000.0 - 10.1))
    assert sum(outcome.drops.values()) == 0


def test_only_one_of_two_neighbours_gets_the_copy() -> None:
    given = world([(A, B, 10.0, 20.0), (A, C, 10.0, 20.0)], [(1.0, A, 0)], [])
    assert len(sent(run("first-contact", given))) == 1


def test_a_subscriber_is_handed_the_bundle_and_the_copy_goes_on() -> None:
    """B wants it, C takes the copy from A all the same and brings it to E; what B has goes to subscribers only."""
    met = [(A, B, 10.0, 11.0), (B, D, 20.0, 21.0), (A, C, 30.0, 31.0), (C, E, 40.0, 41.0), (B, F, 50.0, 51.0)]
    outcome = run("first-contact", world(met, [(1.0, A, 0)], [(B, 0), (E, 0), (F, 0)]))
    assert sent(outcome) == [(0, A, B), (0, A, C), (0, C, E), (0, B, F)]


def test_the_copy_of_a_broken_or_refused_transfer_stays() -> None:
    met = [(A, B, 10.0, 10.05), (A, C, 20.0, 21.0)]
    assert sent(run("first-contact", world(met, [(1.0, A, 0)], []))) == [(0, A, C)]
    full = world([(A, B, 10.0, 11.0), (A, C, 20.0, 21.0)], [(1.0, A, 0), (2.0, B, 0)], [])
    outcome = run("first-contact", full, {"capacity_bytes": 100, "when_full": 0})
    assert sent(outcome) == [(0, A, C)]
    assert outcome.transfers["refused"] == 2


# ---- as in The ONE


def test_the_copy_ends_at_the_first_subscriber() -> None:
    given = world([(A, B, 10.0, 11.0), (A, C, 20.0, 21.0), (B, C, 30.0, 31.0)], [(1.0, A, 0)], [(B, 0)])
    assert sent(run("first-contact", given)) == [(0, A, B), (0, A, C)]
    outcome = run("first-contact", given, at_subscriber="ends", consume=True)
    assert sent(outcome) == [(0, A, B)]
    assert sum(outcome.drops.values()) == 0


ADDED = [(B, C, 1.0, 2.0), (C, D, 3.0, 4.0), (B, E, 5.0, 6.0), (A, B, 7.0, 8.0), (A, D, 9.0, 10.0), (A, E, 20.0, 21.0)]
HALVES = {"encounter": 0.5, "transitivity": 0.25, "aging": 1.0, "seen": "live"}


def test_what_neighbours_know_is_added_up() -> None:
    """B and D have met C, the subscriber (0.5); E has met B (0.5 * 0.5 * 0.25 = 0.0625), A has met both. The largest of
    A's is no larger than E's; together they are 0.0625 + 0.9375 * 0.0625 = 0.121, so A gets E's bundle."""
    given = world(ADDED, [(15.0, E, 0)], [(C, 0)])
    assert sent(run("prophet", given, **HALVES)) == []
    assert sent(run("prophet", given, variant="the-one", **HALVES)) == [(0, E, A)]


def test_who_is_likeliest_of_all_neighbours_is_served_first() -> None:
    """B has met D, the subscriber, once (0.5) and C twice (0.75); A can do one thing at a time."""
    met = [(B, D, 1.0, 2.0), (C, D, 3.0, 4.0), (C, D, 5.0, 6.0), (A, B, 10.0, 20.0), (A, C, 10.0, 20.0)]
    given = world(met, [(7.0, A, 0)], [(D, 0)])
    outcome = run("prophet", given, {"single": True}, variant="the-one", **HALVES)
    assert sent(outcome) == [(0, A, C), (0, A, B)]


def test_lifetimes_in_whole_minutes() -> None:
    """From 70 s on less than a minute of 120 s is left: B gets the bundle before; C does not; D, a subscriber, does.
    A looks at 60 s and at 120 s, when it drops what would live until 130 s; so E comes too late."""
    met = [(A, B, 68.0, 71.0), (A, C, 72.0, 75.0), (A, D, 76.0, 79.0), (A, E, 122.0, 125.0)]
    given = world(met, [(10.0, A, 0, 100, 120.0)], [(D, 0), (E, 0)])
    ticks = {"step_s": 1.0, "single": True}
    assert sent(run("flooding", given, ticks, seen="live")) == [(0, A, B), (0, A, C), (0, A, D), (0, A, E)]
    outcome = run("flooding", given, ticks | {"lifetime_unit_s": 60.0}, seen="live")
    assert sent(outcome) == [(0, A, B), (0, A, D)]
    assert {float(row.time_s) for row in outcome.drop_log} == {120.0}


def test_who_came_first_leaves_first_and_may_come_again() -> None:
    """Room for two. B has bundle 1 of its own since 2 s and bundle 0, which is older, since 10.1 s: bundle 1 leaves at
    20 s. In the second contact A has it for B again, and gets bundle 2."""
    bundles = [(1.0, A, 0), (2.0, B, 0), (20.0, B, 0)]
    given = world([(A, B, 10.0, 11.0), (A, B, 30.0, 30.15)], bundles, [])
    outcome = run("flooding", given, {"capacity_bytes": 200, "when_full": 3}, seen="live")
    assert sent(outcome) == [(0, A, B), (1, B, A), (1, A, B), (2, B, A)]
    drops = [(float(row.time_s), int(row.bundle), int(row.node)) for row in outcome.drop_log]
    assert drops == [(20.0, 1, B), (30.1, 0, B), (30.1, 0, A)]
    again = SimpleNamespace(outcome=outcome, world=given)
    assert sorted(_times_in_store(again).round(6)) == [18.0, 20.0, 29.1]


def test_settings_say_what_they_mean() -> None:
    with pytest.raises(ValueError, match='needs seen = "live"'):
        prophet.Settings(variant="the-one")
    rules = prophet.rules_of(prophet.Settings(variant="the-one", seen="live"))
    with pytest.raises(ValueError, match="for nothing"):
        prophet.Predictabilities(0, rules.own, OwnSubscriptions())
    with pytest.raises(ValueError, match="each may stand here once"):
        Settings(priorities=("short-delay", "short-delay"))
