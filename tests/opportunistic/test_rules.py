"""The protocols' rules: tables of cases, and that the compiled loop asks each protocol its own."""

import math

import pytest

from serai.core.jit import kernel
from serai.opportunistic import direct, dpsp, first_contact, prophet, prophet2, spray
from serai.opportunistic.engine import answers
from serai.opportunistic.protocols import ROUTING_PROTOCOLS
from serai.opportunistic.routing import RoutingProtocol
from serai.opportunistic.rules import Offer, RouterRules

FAR = math.inf
OFFERS = [
    Offer(wanted, copies, theirs, mine, popularity, created_s)
    for wanted, copies, created_s in ((False, 0, 1.0), (True, 1, 2.0), (False, 4, 3.0))
    for theirs, mine, popularity in ((0.0, FAR, 1.0), (0.5, 0.4, 3.0), (2.0, 1.0, 0.0), (FAR, FAR, 0.0))
]


def offer(wanted: bool = False, copies: int = 0, theirs: float = 0.0, mine: float = 0.0) -> Offer:
    return Offer(wanted, copies, theirs, mine, 0.0, 0.0)


def asked(rules: RouterRules, one: Offer, other: Offer) -> tuple[bool, int, int, int]:
    """All decisions of the protocol that the rules are of, as the loop asks for them."""
    given, left = answers.splits(rules, one)
    return bool(answers.offers(rules, one)), answers.prefers(rules, one, other), given, left


compiled = kernel(asked)


@pytest.mark.parametrize("protocol", ROUTING_PROTOCOLS, ids=lambda protocol: protocol.name)
def test_the_loop_asks_each_protocol_its_own_rules(protocol: RoutingProtocol) -> None:
    settings = protocol.settings()
    rules, own = answers.compiled_rules(settings), protocol.rules_of(settings).own
    for one in OFFERS:
        for other in OFFERS:
            said = protocol.offers(own, one), protocol.prefers(own, one, other), *protocol.splits(own, one)
            assert asked(rules, one, other) == said
            assert compiled(rules, one, other) == said


def test_names_are_different_and_settings_lead_to_their_protocol() -> None:
    assert len({protocol.name for protocol in ROUTING_PROTOCOLS}) == len(ROUTING_PROTOCOLS)
    for protocol in ROUTING_PROTOCOLS:
        assert answers.protocol_of(protocol.settings()) is protocol


@pytest.mark.parametrize(("wanted", "expected"), [(True, True), (False, False)])
def test_direct_delivery_is_for_subscribers(wanted: bool, expected: bool) -> None:
    assert direct.offers(None, offer(wanted)) is expected


@pytest.mark.parametrize(
    ("copies", "binary", "given", "left"), [(8, True, 4, 4), (7, True, 3, 4), (1, True, 1, 1), (8, False, 1, 7)]
)
def test_spray_splits_copies(copies: int, binary: bool, given: int, left: int) -> None:
    assert spray.splits(spray.Spray(binary), offer(copies=copies)) == (given, left)
    assert spray.offers(spray.Spray(binary), offer(copies=copies)) is (copies > 1)
    assert spray.offers(spray.Spray(binary), offer(wanted=True, copies=copies))


@pytest.mark.parametrize(
    ("copies", "wanted", "offered", "split"),
    [(1, False, True, (1, 0)), (1, True, True, (0, 1)), (0, True, True, (0, 0)), (0, False, False, (0, 0))],
)
def test_first_contact_gives_its_copy_to_who_is_no_subscriber(
    copies: int, wanted: bool, offered: bool, split: tuple[int, int]
) -> None:
    own = first_contact.FirstContact(goes_on=True)
    assert first_contact.offers(own, offer(wanted, copies)) is offered
    assert first_contact.splits(own, offer(wanted, copies)) == split
    assert first_contact.splits(first_contact.FirstContact(goes_on=False), offer(wanted, copies)) == (copies, 0)


@pytest.mark.parametrize(
    ("predictability", "since_s", "expected"),
    [(0.0, FAR, 0.4), (0.09, 100.0, 0.4), (0.5, FAR, 0.75), (0.5, 100.0, 0.75), (0.5, 20.0, 0.55), (0.5, 0.0, 0.5)],
    ids=["first", "as good as first", "heard of", "after long", "soon", "at once"],
)
def test_in_the_second_version_encounters_soon_after_another_count_less(
    predictability: float, since_s: float, expected: float
) -> None:
    """P_encounter_max 0.5 after I_typ = 100 s; P_encounter_first 0.4 below 0.1. After 20 s: 0.5 + 0.5 * 0.5 / 5."""
    chosen = prophet2.Settings(encounter_max=0.5, interval="100 s", encounter_first=0.4)
    own = prophet2.rules_of(chosen).own
    assert prophet.after_encounter(own, predictability, since_s) == pytest.approx(expected)
    assert not prophet.offers(own, offer())
    at_least = prophet2.rules_of(prophet2.Settings(forward="at-least")).own
    assert prophet.offers(at_least, offer(theirs=0.2, mine=0.2))
    assert not prophet.offers(at_least, offer(theirs=0.19, mine=0.2))


def test_prophets_predictabilities() -> None:
    """RFC 6693, section 2.1.2, with P_encounter 0.5, beta 0.25, gamma 0.5 for 10 s."""
    own = prophet.Prophet(0.5, 0.25, 0.5, 10.0, as_the_one=False)
    assert prophet.after_encounter(own, 0.0, FAR) == 0.5
    assert prophet.after_encounter(own, 0.5, 1.0) == 0.75
    assert prophet.aging_factor(own, 20.0) == 0.25
    assert prophet.by_way_of(own, 0.0, 0.5, 0.8) == pytest.approx(0.1)
    assert prophet.by_way_of(own, 0.3, 0.5, 0.8) == 0.3
    assert prophet.in_addition(own, 0.2, 0.5, 0.8) == pytest.approx(0.2 + 0.8 * 0.1)
    assert prophet.prefers(own, offer(theirs=0.3), offer(theirs=0.2)) == 0
    the_one = own._replace(as_the_one=True)
    assert prophet.prefers(the_one, offer(theirs=0.3), offer(theirs=0.2)) == 1
    assert prophet.prefers(the_one, offer(theirs=0.2), offer(theirs=0.3)) == -1
    assert prophet.offers(own, offer(theirs=0.3, mine=0.2))
    assert not prophet.offers(own, offer(theirs=0.2, mine=0.2))


@pytest.mark.parametrize(
    ("filters", "tolerance", "missing", "theirs", "mine", "passes"),
    [
        ((), 0, "pass", FAR, FAR, True),
        (("known-subscription",), 0, "pass", FAR, FAR, False),
        (("known-subscription",), 0, "pass", FAR, 3.0, True),
        (("known-subscription",), 0, "pass", 3.0, FAR, True),
        (("hop-count",), 0, "pass", 2.0, 2.0, True),
        (("hop-count",), 0, "pass", 3.0, 2.0, False),
        (("hop-count",), 1, "pass", 3.0, 2.0, True),
        (("hop-count",), 0, "pass", FAR, 2.0, True),
        (("hop-count",), 0, "far", FAR, 2.0, False),
        (("hop-count",), 0, "far", FAR, FAR, True),
    ],
)
def test_dpsp_filters(
    filters: tuple[dpsp.Filter, ...], tolerance: int, missing: str, theirs: float, mine: float, passes: bool
) -> None:
    settings = dpsp.Settings.model_validate({"filters": filters, "hop_tolerance": tolerance, "missing_entry": missing})
    assert dpsp.offers(dpsp.rules_of(settings).own, offer(theirs=theirs, mine=mine)) is passes


@pytest.mark.parametrize(
    ("heard", "known", "expected"),
    [((1, 9), (0, 1), True), ((0, 0), (1, 9), False), ((0, 1), (0, 3), True), ((0, 1), (0, 2), False)],
    ids=["younger", "older", "nearer", "as near, once it is one hop further"],
)
def test_news_of_a_subscription(heard: tuple[int, int], known: tuple[int, int], expected: bool) -> None:
    assert dpsp.is_news(*heard, *known) is expected


@pytest.mark.parametrize(("renewed", "hops"), [(0, 0), (0, 5), (7, 0), (123_456, 65_535)])
def test_an_entry_comes_back_from_its_number(renewed: int, hops: int) -> None:
    entry = dpsp.packed(renewed, hops)
    assert (dpsp.renewed_in(entry), dpsp.hops_in(entry)) == (renewed, hops)
    assert dpsp.renewed_in(dpsp.UNKNOWN) < 0
