"""Nodes with real stores: messages arrive once, whatever dies; limits and forged lists; memory and disk that shrink."""

import gc
import random
import sqlite3
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serai.core.errors import BadInput
from serai.node import contacts
from serai.node.contacts import _nearest
from serai.node.routing import LIVE, routing
from serai.node.settings import RULES
from serai.node.store import Store
from serai.node.wire import lists
from serai.node.wire.lists import MAX_BYTES, MAX_ENTRIES, encode_list
from serai.node.words import AllSeen, ListEntry, ListMessage, Message, Refusal, SendBundle, SendList
from serai.opportunistic import dpsp, spray
from serai.opportunistic.entries import DECISIONS
from tests.effort import THOROUGH
from tests.node.joined import Machine, Net

ROUTING = dpsp.Settings(priorities=("long-delay",), combine="order", order="oldest", announce="change")


@pytest.fixture
def net() -> Iterator[Net]:
    made = Net()
    yield made
    made.close()


def test_a_message_crosses_two_hops_by_way_of_a_ferry(net: Net, tmp_path: Path) -> None:
    one, ferry, other = (Machine(name, tmp_path, net) for name in ("one", "ferry", "other"))
    other.subscribe("room/+")
    assert one.publish("room/1", b"warm", 1.0) == "stored"
    one.publish("hall/1", b"cold", 2.0)
    net.up(one, ferry, 10.0)
    net.down(one, ferry, 20.0)
    net.up(ferry, other, 30.0)
    assert other.got == [("room/1", b"warm")]
    status = one.node.status(30.0)
    assert status["transfers"]["relayed"] == 2
    assert status["before"] == [{"name": "dtn://ferry/", "ago_s": 10.0, "for_s": 10.0}]
    net.down(ferry, other, 40.0)
    net.up(ferry, other, 50.0)
    assert len(other.got) == 1


def test_content_decides_for_neighbours_too(net: Net, tmp_path: Path) -> None:
    chosen = ROUTING.model_copy(update={"filters": ("duplicate", "known-subscription")})
    one, other = (Machine(name, tmp_path, net, **routing(chosen)) for name in ("one", "other"))
    other.subscribe("c:room/#?t > 20")
    net.up(one, other, 1.0)
    for degrees in (19, 21, 30):
        one.publish("room/1", b'{"t": %d}' % degrees, 2.0)
    assert [payload for _, payload in other.got] == [b'{"t": 21}', b'{"t": 30}']
    assert sum(isinstance(word, SendBundle) for word in net.sent) == 2


def test_sessions_of_one_node_share_it(net: Net, tmp_path: Path) -> None:
    one = Machine("one", tmp_path, net)
    for client in ("a", "b"):
        one.subscribe("news", client)
    one.offline = True
    one.publish("news", b"x", 1.0)
    assert [len(list(one.node.outbox(client))) for client in ("a", "b")] == [1, 1]
    assert len(one.node.router.subscriptions.open) == 1
    one.perform(one.node.unsubscribed("a", "news", 2.0))
    assert len(one.node.router.subscriptions.open) == 1
    one.perform(one.node.unsubscribed("b", "news", 2.0))
    assert not one.node.router.subscriptions.open
    assert one.perform(one.node.unsubscribed("b", "news", 2.0)) == "none"


def test_a_retained_message_waits_for_new_subscribers_and_the_newest_wins(net: Net, tmp_path: Path) -> None:
    one = Machine("one", tmp_path, net)
    one.publish("t", b"old", 1.0, retain=True)
    one.publish("t", b"new", 2.0, retain=True)
    one.subscribe("t", now_s=3.0)
    assert one.got == [("t", b"new")]
    one.publish("t", b"", 4.0, retain=True)
    one.subscribe("t", "later", now_s=5.0)
    assert one.got == [("t", b"new"), ("t", b"")]  # the empty one went to the subscriber there was


def test_a_store_full_of_what_must_stay_refuses(net: Net, tmp_path: Path) -> None:
    one, other = (Machine(name, tmp_path, net, store_bundles=2) for name in ("one", "other"))
    assert [one.publish("t", b"%d" % n, 1.0) for n in range(3)] == ["stored", "stored", "full"]
    net.up(one, other, 2.0)
    assert one.publish("t", b"4", 3.0) == "stored"  # the neighbour has the others
    assert one.node.status(3.0)["drops"] == {"expired": 0, "evicted": 1, "full": 1}


def offered(one: Machine, other: Machine, now_s: float) -> SendBundle:
    """What a node sends to a neighbour that has told it nothing."""
    one.perform(one.node.contact_up(other.eid, now_s, 1e6, carries=True, epoch=b"another."))
    one.perform(one.node.journal_known(other.eid, b"", 0, now_s))
    one.perform(one.node.list_received(other.eid, ListMessage(1, now_s, (), AllSeen(frozenset())), now_s))
    found = one.node.next_transfer(other.eid, now_s).words
    if isinstance(found[0], SendList):
        found = one.node.next_transfer(other.eid, now_s).words
    assert isinstance(found[0], SendBundle)
    return found[0]


@pytest.mark.parametrize(
    ("reason", "then"),
    [("duplicate", "stored"), ("refused", "full"), ("late", "full"), ("unacceptable", "full")],
)
def test_an_own_bundle_that_a_neighbour_has_already_need_not_stay(
    reason: Refusal, then: str, net: Net, tmp_path: Path
) -> None:
    one, other = (Machine(name, tmp_path, net, store_bundles=1) for name in ("one", "other"))
    one.publish("t", b"1", 1.0)
    one.perform(one.node.refused(other.eid, offered(one, other, 2.0).transfer, reason, 2.0))
    one.die()
    one.start(3.0)
    assert one.publish("t", b"2", 3.0) == then


def test_a_neighbour_counts_once_for_an_own_bundle_also_after_a_restart(net: Net, tmp_path: Path) -> None:
    one = Machine("one", tmp_path, net, store_bundles=1, keep_own=2)
    other, third = (Machine(name, tmp_path, net) for name in ("other", "third"))
    one.publish("t", b"1", 1.0)
    for now_s in (2.0, 3.0):
        one.die()
        one.start(now_s)
        one.perform(one.node.refused(other.eid, offered(one, other, now_s).transfer, "duplicate", now_s))
        assert one.publish("t", b"2", now_s) == "full"
    one.perform(one.node.acknowledged(third.eid, offered(one, third, 4.0).transfer, 4.0))
    assert one.publish("t", b"2", 4.0) == "stored"


def test_a_journal_too_long_for_a_list_is_told_in_several(net: Net, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(lists, "MAX_MARKS", 10)
    one, other = Machine("one", tmp_path, net), Machine("other", tmp_path, net)
    for n in range(35):
        one.publish("t", b"%d" % n, 1.0, lifetime_s=10.0 if n % 5 == 0 else 1000.0)
    net.up(one, other, 2.0)
    net.down(one, other, 3.0)
    third = Machine("third", tmp_path, net)
    net.tick(20.0)
    net.sent.clear()
    net.up(other, third, 21.0)
    told = [word.message.seen for word in net.sent if isinstance(word, SendList) and word.peer == third.eid]
    assert [len(seen.marks) for seen in told[:3]] == [10, 10, 8]  # of those that have not expired
    assert [seen.first for seen in told[1:3]] == [seen.last + 1 for seen in told[:2]]
    assert third.node.contacts.journals[other.eid].marks == set(one.node.router.seen) == set(third.node.router.seen)
    net.down(other, third, 30.0)
    net.sent.clear()
    net.up(other, third, 31.0)
    assert not [word for word in net.sent if isinstance(word, SendBundle)]
    told = [word.message.seen for word in net.sent if isinstance(word, SendList) and word.peer == third.eid]
    assert [len(seen.marks) for seen in told] == [0]


def test_of_too_many_entries_the_nearest_are_told() -> None:
    entries = tuple(ListEntry("dtn://x/", n, "t:" + 90 * "x", 1, 1, 1, 0, n % 7) for n in range(30_000))
    told = _nearest(entries)
    assert 10_000 < len(told) <= MAX_ENTRIES
    assert len(encode_list(ListMessage(1, 2.0, told, AllSeen(frozenset(range(250_000)))))) < MAX_BYTES
    assert max(entry.hops for entry in told) <= min(entry.hops for entry in set(entries) - set(told))
    assert _nearest(entries[:1000]) == entries[:1000]


def test_a_disk_without_room_takes_nothing_new_until_there_is_some(net: Net, tmp_path: Path) -> None:
    one, other = Machine("one", tmp_path, net), Machine("other", tmp_path, net)
    other.subscribe("t")
    other.node.has_room = False
    assert [one.publish("t", b"1", 1.0), other.publish("t", b"2", 1.0)] == ["stored", "full"]
    net.up(one, other, 2.0)
    assert (other.got, len(other.node.holdings.by_id)) == ([], 0)
    net.down(one, other, 3.0)
    other.node.has_room = True
    net.up(one, other, 4.0)
    assert other.got == [("t", b"1")]
    assert other.publish("t", b"2", 5.0) == "stored"


def test_nothing_is_forgotten_by_a_restart(net: Net, tmp_path: Path) -> None:
    one, other = Machine("one", tmp_path, net), Machine("other", tmp_path, net)
    other.subscribe("t")
    other.offline = True
    for n in range(5):
        one.publish("t", b"%d" % n, float(n))
    net.up(one, other, 10.0)
    before = state(other)
    net.down(one, other, 11.0)
    for machine in (one, other):
        machine.die()
        machine.start(12.0)
    assert state(other) == before
    other.offline = False
    other.take("app")
    assert [payload for _, payload in other.got] == [b"0", b"1", b"2", b"3", b"4"]
    net.up(one, other, 20.0)
    one.publish("t", b"5", 21.0)
    assert len(other.got) == 6
    assert len({held.key for held in one.node.holdings.by_id.values()}) == 6


def state(machine: Machine) -> Any:
    node = machine.node
    return (
        {mark: (copy.bundle, copy.hops) for mark, copy in node.router.store._copies.items()},
        set(node.router.seen),
        node.router.delivered,
        [list(node.outbox(client)) for client in node.outboxes.sessions],
        node.router.knowledge.known,  # type: ignore[attr-defined]
        node.holdings.waiting_bytes,
        node.router.store.used_bytes,
    )


def test_a_clock_set_back_brings_nothing_twice(net: Net, tmp_path: Path) -> None:
    one, other = Machine("one", tmp_path, net), Machine("other", tmp_path, net)
    other.subscribe("t")
    one.publish("t", b"x", 100.0, lifetime_s=50.0)
    net.up(one, other, 101.0)
    other.perform(other.node.tick(200.0))
    assert not other.node.router.seen
    net.down(one, other, 102.0)
    net.up(one, other, 103.0)
    assert other.got == [("t", b"x")]
    other.perform(other.node.tick(100.0 + 50.0 + 3600.0))
    assert not other.node.holdings.by_id
    for table in ("bundle", "data", "outbox"):
        assert other.store._all(f"SELECT count(*) FROM {table}") == [(0,)]


ENTRY = ListEntry("dtn://x/", 1, "t:a", 0, 10_000, 9_000, 0, 0)
LIES = [
    ENTRY._replace(hops=-7),
    ENTRY._replace(hops=256),
    ENTRY._replace(renewed=10**9),
    ENTRY._replace(renewed=-1),
    ENTRY._replace(created_ms=4_000_000),
    ENTRY._replace(renewal_ms=0),
    ENTRY._replace(lifetime_ms=10**12),
    ENTRY._replace(interest="t:" + "a" * 1023),
]


@pytest.mark.parametrize("lie", LIES)
def test_an_entry_that_cannot_be_true_is_not_believed(lie: ListEntry, net: Net, tmp_path: Path) -> None:
    one, other = Machine("one", tmp_path, net, entries=2), Machine("other", tmp_path, net)
    net.up(one, other, 1.0)
    fine = [ENTRY._replace(n=n) for n in (2, 3, 4)]
    one.perform(one.node.list_received(other.eid, ListMessage(9, 1.0, (lie, *fine), AllSeen(frozenset())), 1.0))
    assert {entry.id for entry in one.node.router.knowledge.known.values()} == {2, 3}  # type: ignore[attr-defined]
    assert one.node.contacts.counts["entries refused"] == 2


def test_lists_tell_only_what_is_new_in_the_journal(net: Net, tmp_path: Path) -> None:
    one, other = Machine("one", tmp_path, net), Machine("other", tmp_path, net)
    for n in range(2000):
        one.perform(one.node.published("app", one_message(n), 1000.0, 1.0))
    net.words.clear()
    net.up(one, other, 2.0)
    first = net.list_bytes
    assert first > 16_000
    net.down(one, other, 3.0)
    net.up(one, other, 4.0)
    assert net.list_bytes - first < 16_500  # what `other` got from `one` is new in its own journal
    second = net.list_bytes
    net.down(one, other, 5.0)
    net.up(one, other, 6.0)
    assert net.list_bytes - second < 200
    assert sum(isinstance(word, SendBundle) for word in net.sent) == 2000


def test_journals_of_many_neighbours_are_bounded_together(net: Net, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(contacts, "_MOST_MARKS", 50)
    here = Machine("here", tmp_path, net)
    there = [Machine(f"there{n}", tmp_path, net) for n in range(5)]
    for n, machine in enumerate(there):
        for message in range(30):
            machine.publish(f"t{n}", b"%d" % message, 1.0)
    for round in range(3):
        for n, machine in enumerate(there):
            net.up(here, machine, 10.0 + 10.0 * round + n)
            net.down(here, machine, 10.0 + 10.0 * round + n + 0.5)
            known = {peer: len(journal.marks) for peer, journal in here.node.contacts.journals.items()}
            assert machine.eid in known
            assert sum(known.values()) <= 50 or len(known) == 1
    assert all(len(machine.node.router.seen) == 150 for machine in [here, *there])


def test_a_contact_that_lasts_forgets_what_never_came_and_has_expired(net: Net, tmp_path: Path) -> None:
    """Nobody says when a bundle expires that was never here, so now and then the neighbour tells its journal anew."""
    one, other = Machine("one", tmp_path, net), Machine("other", tmp_path, net, store_bundles=0)
    net.up(one, other, 0.0)
    for minute in range(1, 40):
        now_s = 61.0 * minute
        net.tick(now_s)
        for n in range(50):
            one.publish("t", b"%d" % n, now_s, lifetime_s=100.0)
        net.tick(now_s + 1.0)
    assert other.node.contacts.counts["refused"] == 0
    assert one.node.contacts.counts["refused"] == 39 * 50
    assert len(one.node.router.seen) <= 150
    assert len(other.node.contacts.journals[one.eid].marks) <= 500
    assert len(other.node.router.contacts[one.eid].known) <= 500
    assert net.list_bytes < 39 * 2 * 1000  # most lists tell only what is new


def one_message(n: int) -> Any:
    return Message("t", b"%d" % n, 1)


def test_what_no_live_node_can_do_is_refused() -> None:
    with pytest.raises(BadInput, match="one of: dpsp, flooding, direct"):
        routing(spray.Settings())
    with pytest.raises(BadInput, match="one of: vector, bloom"):
        routing(dpsp.Settings(seen="live"))
    assert routing(LIVE) == {"decisions": dpsp.PROTOCOL, "rules": RULES}  # without what reads settings, and with it
    assert all(getattr(dpsp.PROTOCOL, name) == getattr(DECISIONS, name) for name in vars(DECISIONS))


# ---- a store that dies


class Dying(Store):
    """It dies before the n-th statement of all that are run: nothing after that reaches the disk."""

    left = 1 << 60

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        Dying.left -= 1
        if Dying.left < 0:
            raise DyingNow
        super().execute(statement, values)


class DyingNow(Exception):  # noqa: N818 - it is no error
    pass


def meet(net: Net, machines: list[Machine]) -> None:
    """A contact in which messages go both ways, and one that is published meanwhile."""
    one, other = machines
    net.up(one, other, 10.0)
    one.publish("a", b"during", 11.0)
    net.tick(12.0)
    net.down(one, other, 13.0)


def test_it_may_die_at_any_statement_of_a_contact(tmp_path: Path) -> None:
    """Whatever was said before stays true: nothing lost that was accepted, nothing delivered twice."""
    n = 0
    while True:
        folder = tmp_path / str(n)
        folder.mkdir()
        Dying.left = 1 << 60
        net = Net()
        machines = [Machine(name, folder, net, Dying) for name in ("one", "other")]
        for machine, topic in zip(machines, "ab", strict=True):
            machine.subscribe("b" if topic == "a" else "a")
            for message in range(3):
                machine.publish(topic, b"%d" % message, float(message))
        Dying.left = n
        try:
            meet(net, machines)
            survived = True
        except DyingNow:
            survived = False
        Dying.left = 1 << 60
        published = during_was_stored(machines[0]) if not survived else True
        for machine in machines:
            machine.die()
            machine.start(20.0)
        net.words.clear()
        net.up(*machines, 21.0)
        for machine in machines:
            machine.take("app")
        wanted = [[b"0", b"1", b"2"], [b"0", b"1", b"2"] + [b"during"] * published]
        assert [sorted(payload for _, payload in machine.got) for machine in machines] == wanted, n
        net.close()
        if survived:
            break
        n += 1 if THOROUGH else 3
    assert n > 60


def during_was_stored(machine: Machine) -> bool:
    reader = sqlite3.connect(machine.path)
    (found,) = reader.execute(
        "SELECT count(*) FROM bundle WHERE sequence = 4 AND source = ?", (machine.eid,)
    ).fetchone()
    reader.close()
    return bool(found)


@pytest.mark.skipif(not THOROUGH, reason="a week of contacts takes a minute: make test-all")
def test_a_week_of_contacts_leaves_memory_as_it_was_after_a_day(net: Net, tmp_path: Path) -> None:
    """Everything that is remembered leaves with what it speaks of; the file on disk stays as large as well."""
    machines = [
        Machine(name, tmp_path, net, store_bytes=20_000, store_bundles=100, log_rows=0) for name in ("a", "b", "c", "d")
    ]
    rng = random.Random(1)
    for machine in machines:
        machine.subscribe("even/+")
    tracemalloc.start()
    after: list[tuple[int, int]] = []
    for minute in range(0, 7 * 24 * 60, 10):
        now_s = 60.0 * minute
        net.tick(now_s)
        one, other = rng.sample(machines, 2)
        topic = f"{'even' if minute % 20 else 'odd'}/{minute % 240}"  # few: what was read last is remembered, a bit
        one.publish(topic, bytes(200), now_s, lifetime_s=4 * 3600.0)
        net.up(one, other, now_s + 60.0)
        other.publish("even/x", b"now", now_s + 90.0, lifetime_s=3600.0, retain=True)
        net.down(one, other, now_s + 120.0)
        net.sent.clear()
        for machine in machines:
            machine.got.clear()
        if minute % (24 * 60) == 24 * 60 - 10:
            gc.collect()
            after.append((tracemalloc.get_traced_memory()[0], sum(one.path.stat().st_size for one in machines)))
    tracemalloc.stop()
    assert len(after) == 7
    first, last = (sum(memory for memory, _ in days) / 3 for days in (after[:3], after[4:]))  # stores are never alike
    assert last == pytest.approx(first, rel=0.05), after
    assert all(disk <= 1.5 * after[0][1] for _, disk in after), after
