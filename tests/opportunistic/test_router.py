"""The router as a live node drives it: names, windows, contacts that come twice, interests, pins, memory."""

import time
from fnmatch import fnmatch
from typing import Any

import pytest

from serai.opportunistic import dpsp, flooding, spray
from serai.opportunistic.router import Bundle, ControlMessage, DataMessage, Router
from serai.opportunistic.router.messages import bloom_filter
from serai.opportunistic.rules import bloom_bit

OLDEST = dpsp.Settings(priorities=("long-delay",), order="oldest")


class Patterns:
    """Interests that are patterns of channels, or, with `>`, ask for a size."""

    def plain(self, bundle: Bundle) -> Any:
        return bundle.channel

    def is_plain(self, interest: Any) -> bool:
        return "*" not in interest and ">" not in interest

    def matches(self, interest: Any, bundle: Bundle) -> bool:
        if interest.startswith(">"):
            return bundle.size_bytes > int(interest[1:])
        return fnmatch(str(bundle.channel), interest)

    def by_channel(self, interest: Any) -> bool:
        return not interest.startswith(">")


def bundle(number: int, source: str = "a", channel: str = "news", lifetime_s: float = 100.0, size: int = 10) -> Bundle:
    return Bundle((number, source), number << 40 | 7, source, channel, float(number), size, lifetime_s)


def router(name: str, settings: Any = OLDEST, protocol: Any = dpsp.PROTOCOL, **more: Any) -> Router:
    return Router(name, protocol, protocol.rules_of(settings), mark=ord(name), **more)


def meet(one: Router, other: Router, now_s: float = 50.0) -> None:
    """Both exchange their lists."""
    for here, there in ((one, other), (other, one)):
        here.contact_up(there.node, now_s, 1e6, mark=there.mark)
    for here, there in ((one, other), (other, one)):
        message = here.next_list(there.node, now_s)
        assert message is not None
        there.receive_control(here.node, message, now_s)
        assert here.sent(there.node, message, accepted=True)


def with_bundles(name: str, count: int, **more: Any) -> Router:
    made = router(name, **more)
    for number in range(count):
        made.publish(bundle(number), float(number))
    return made


def test_names_may_be_texts_if_they_have_marks() -> None:
    one, other = with_bundles("a", 1), router("b")
    other.subscribe("s", "news", 0.0)
    meet(one, other)
    message = one.next_bundle("b", 50.0)
    assert message is not None
    assert other.receive_data("a", message, 51.0).delivered
    with pytest.raises(TypeError, match="'c' is not a number"):
        one.contact_up("c", 51.0, 1e6)


def test_a_window_holds_different_bundles_in_order() -> None:
    one, other = with_bundles("a", 3), router("b")
    meet(one, other)
    sent = [one.next_bundle("b", 50.0) for _ in range(4)]
    assert [m.bundle.key[0] for m in sent if m] == [0, 1, 2]
    assert sent[3] is None
    assert sent[1] is not None
    assert one.sent("b", sent[1], accepted=False, arrived=False)  # a transfer failed, the contact goes on
    again = one.next_bundle("b", 50.0)
    assert again is not None
    assert again.bundle == sent[1].bundle


def test_copies_under_way_come_back_when_a_contact_begins_again() -> None:
    one = with_bundles("a", 2, protocol=spray.PROTOCOL, settings=spray.Settings(copies=8))
    other = router("b", spray.Settings(copies=8), spray.PROTOCOL)
    meet(one, other)
    first, second = one.next_bundle("b", 50.0), one.next_bundle("b", 50.0)
    assert first
    assert second
    assert [one.store[m.bundle.mark].copies for m in (first, second)] == [4, 4]
    one.contact_up("b", 51.0, 1e6, mark=other.mark)
    assert [copy.copies for copy in one.store.values()] == [8, 8]
    assert one.contacts["b"].lists == 0


def test_what_comes_from_nobody_in_contact_changes_nothing() -> None:
    one = with_bundles("a", 1)
    stray = DataMessage(bundle(5, "z"), 0, 0)
    assert one.receive_data("nobody", stray, 1.0).fate == "no contact"
    assert not one.sent("nobody", stray, accepted=True)
    assert one.next_message("nobody", 1.0) is None
    one.contact_down("nobody")
    assert not one.has_seen(stray.bundle.mark)


def test_own_bundles_stay_until_neighbours_have_them() -> None:
    one, other = with_bundles("a", 3, capacity_bytes=30, keep_own=1), router("b")
    meet(one, other)
    stranger = DataMessage(bundle(90, "z"), 0, 0)
    assert one.receive_data("b", stranger, 50.0).fate == "refused"
    assert not one.has_seen(stranger.bundle.mark)
    message = one.next_bundle("b", 50.0)
    assert message is not None
    one.sent("b", message, accepted=True)
    got = one.receive_data("b", DataMessage(bundle(91, "z"), 0, 0), 50.0)
    assert (got.fate, got.evicted) == ("relayed", (message.bundle,))


def test_a_neighbour_that_had_an_own_bundle_already_counts_once() -> None:
    one = with_bundles("a", 1, capacity_bytes=10, keep_own=2)
    stranger = DataMessage(bundle(90, "z"), 0, 0)

    def offer(peer: str, accepted: bool = False, duplicate: bool = False) -> str:
        one.contact_up(peer, 50.0, 1e6, mark=ord(peer))
        one.receive_control(peer, ControlMessage(0.0, 0, frozenset(), ()), 50.0)
        message = one.next_bundle(peer, 50.0)
        assert message is not None
        one.sent(peer, message, accepted=accepted, duplicate=duplicate)
        return one.receive_data(peer, stranger, 50.0).fate

    assert offer("b", duplicate=True) == "refused"
    assert offer("b", duplicate=True) == "refused"
    assert offer("c") == "refused"  # it had no room
    assert offer("b", accepted=True) == "refused"  # it began anew
    assert offer("c", accepted=True) == "relayed"


def test_what_was_not_stored_was_not_seen() -> None:
    one = with_bundles("a", 3, capacity_bytes=30, keep_own=1)
    assert one.publish(bundle(3), 3.0) == (False, [])
    assert not one.has_seen(bundle(3).mark)


def test_interests_that_match_spread_and_decide() -> None:
    patterns = {"matching": Patterns(), "settings": OLDEST.model_copy(update={"filters": ("known-subscription",)})}
    one, other = router("a", **patterns), router("b", **patterns)
    other.subscribe(1, "room/*", 0.0)
    other.subscribe(2, ">500", 0.0)
    other.subscribe(3, "exact", 0.0)
    meet(one, other)
    for number, (channel, size) in enumerate(
        [("room/1", 10), ("hall/1", 10), ("hall/1", 501), ("room/2", 600), ("exact", 1)]
    ):
        one.publish(bundle(number, channel=channel, size=size), 40.0)
    offered = []
    while message := one.next_bundle("b", 50.0):
        offered.append(message.bundle.key[0])
        assert other.receive_data("a", message, 51.0).delivered
    assert offered == [0, 2, 3, 4]


def test_a_changed_interest_is_announced_at_once() -> None:
    chosen = dpsp.Settings(announce="change")
    one, other = router("a", chosen), router("b", chosen)
    meet(one, other)
    assert one.next_list("b", 51.0) is None
    one.subscribe(1, "news", 51.0)
    assert one.next_list("b", 51.0) is not None


def test_memory_leaves_with_what_it_speaks_of() -> None:
    one, other = with_bundles("a", 40), router("b", dpsp.Settings(lifetime="30 s"))
    other.subscribe(1, "news", 0.0)
    meet(one, other)
    while message := one.next_bundle("b", 50.0):
        other.receive_data("a", message, 50.0)
        one.sent("b", message, accepted=True)
    assert len(other.delivered) == 40
    assert len(one.knowledge.known) == 1  # type: ignore[attr-defined]
    for node in (one, other):
        node.expire(1000.0)
        node.knowledge.forget(1000.0)
        assert not node.seen
        assert not node.delivered
        assert not node.store.used_bytes
        assert not node.contacts["b" if node is one else "a"].known
    assert not one.knowledge.known  # type: ignore[attr-defined]


def test_entries_live_as_long_as_their_subscribers_say() -> None:
    one, other = router("a", dpsp.Settings(lifetime="10 s")), router("b", dpsp.Settings(lifetime="100 s", renewal=1.0))
    other.subscribe(1, "news", 0.0)
    meet(one, other, now_s=1.0)
    _, entries = one.knowledge.write(99.0)
    assert [entry.subscriber for entry in entries] == ["b"]
    assert one.knowledge.write(100.0)[0] == 0


def test_a_filter_of_bytes_has_the_places_of_the_rule() -> None:
    marks = [mark * 7919 << 30 | 5 for mark in range(300)]
    made = bloom_filter(marks, 10, salt=42)
    size = 8 * len(made.bits)
    assert size == 3000
    assert made.hashes == 7
    places = {bloom_bit(42, mark, which, size) for mark in marks for which in range(7)}
    assert {i for i in range(size) if made.bits[i >> 3] >> (i & 7) & 1} == places
    assert all(mark in made for mark in marks)
    assert sum(mark + 1 in made for mark in marks) < 15  # about one in a hundred


def test_a_full_router_still_answers_quickly() -> None:
    """A heap, not a scan: a thousand choices out of 20,000 would take minutes if all were compared."""
    one = router("a", flooding.Settings(order="oldest"), flooding.PROTOCOL)
    other = router("b", flooding.Settings(order="oldest"), flooding.PROTOCOL)
    for number in range(20_000):
        one.publish(bundle(number, lifetime_s=1e6), float(number))
    meet(one, other, now_s=20_000.0)
    assert one.next_bundle("b", 20_000.0) is not None
    began = time.process_time()
    for _ in range(1000):
        assert one.next_bundle("b", 20_000.0) is not None
    assert time.process_time() - began < 0.5
