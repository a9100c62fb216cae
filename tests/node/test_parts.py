"""Messages in parts: whole or not at all, once, whatever dies or is cut; nothing of them stays."""

import os
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serai.core.errors import PeerError
from serai.node import parts
from serai.node.bundle.message import Envelope, message_of, onward
from serai.node.schema import STATEMENTS, TABLES
from serai.node.store import Store
from serai.node.words import Header, Message, SendBundle
from tests.effort import THOROUGH
from tests.node.joined import Machine, Net
from tests.node.test_core import Dying, DyingNow

SIZE = 10


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", SIZE)


@pytest.fixture
def net() -> Iterator[Net]:
    made = Net()
    yield made
    made.close()


def numbered(count: int) -> bytes:
    """A payload of so many parts, each with its number."""
    return b"".join(b"%09d." % place for place in range(count))


@pytest.mark.parametrize(("size", "count"), [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (95, 10)])
def test_a_message_is_cut_and_comes_together(net: Net, tmp_path: Path, size: int, count: int) -> None:
    one, ferry, other = (Machine(name, tmp_path, net) for name in ("one", "ferry", "other"))
    one.subscribe("room", client="beside")
    other.subscribe("room")
    payload = os.urandom(size)
    one.publish("room", payload, 1.0, content_type="x", properties=(("a", "b"),))
    bundles = [message_of(data) for (data,) in one.store._all("SELECT bytes FROM data ORDER BY id")]
    assert b"".join(message.payload for message in bundles) == payload
    assert [message.part for message in bundles] == [None if count == 1 else (1, n, count) for n in range(count)]
    net.up(one, ferry, 2.0)
    net.down(one, ferry, 3.0)
    net.up(ferry, other, 4.0)
    assert one.got == other.got == [("room", payload)]
    assert sum(isinstance(word, SendBundle) for word in net.sent) == 2 * count


def test_a_cut_costs_a_part_and_not_the_message(net: Net, tmp_path: Path) -> None:
    one, other = (Machine(name, tmp_path, net, window_transfers=1) for name in ("one", "other"))
    other.subscribe("room")
    one.publish("room", numbered(5), 1.0)
    contacts = 0
    while not other.got and contacts < 5:
        contacts += 1
        net.up(one, other, 10.0 * contacts, words=17)  # the lists, and a part
        net.down(one, other, 10.0 * contacts + 1.0)
    assert other.got == [("room", numbered(5))]
    sent = [word.mark for word in net.sent if isinstance(word, SendBundle)]
    assert len(set(sent)) == 5
    assert len(sent) < 5 + contacts


def test_who_asks_later_gets_what_is_here_and_what_still_comes(net: Net, tmp_path: Path) -> None:
    one, other = (Machine(name, tmp_path, net, window_transfers=1) for name in ("one", "other"))
    one.publish("room", numbered(4), 1.0)
    net.up(one, other, 2.0, words=20)
    net.down(one, other, 3.0)
    assert 0 < len(other.node.router.store) < 4
    other.subscribe("room", now_s=4.0)
    other.subscribe("room", client="second", now_s=4.0)
    assert other.got == []
    net.up(one, other, 5.0)
    assert other.got == [("room", numbered(4))] * 2
    other.subscribe("#", client="third", now_s=6.0)
    assert len(other.got) == 2  # the node has had it: a late subscriber gets what was not yet delivered


def test_a_store_takes_all_parts_or_none(net: Net, tmp_path: Path) -> None:
    one = Machine("one", tmp_path, net, store_bundles=4)
    one.subscribe("room")
    one.offline = True
    assert one.publish("room", numbered(3), 1.0) == "stored"
    assert one.publish("room", numbered(2), 2.0) == "full"
    assert one.publish("room", b"small", 3.0) == "stored"
    assert one.store._all("SELECT count(*) FROM bundle") == [(4,)]


def test_parts_that_wait_for_others_do_not_leave_until_they_expire(net: Net, tmp_path: Path) -> None:
    one = Machine("one", tmp_path, net, window_transfers=1)
    other = Machine("other", tmp_path, net, window_transfers=1, store_bundles=3, skew_s=10.0)
    other.subscribe("room")
    one.publish("room", numbered(4), 1.0, lifetime_s=100.0)
    net.up(one, other, 2.0, words=20)
    net.down(one, other, 3.0)
    here = len(other.node.holdings.parts.waiting)
    assert 0 < here < 4
    other.die()
    other.start(4.0)
    assert len(other.node.holdings.parts.waiting) == here
    for number in range(10):  # others leave for each other, those stay
        other.publish("hall", b"x", 5.0 + number, lifetime_s=50.0)
    assert len(other.node.holdings.parts.waiting) == here
    net.tick(120.0)
    assert other.node.holdings.by_id == {}
    assert [other.store._all(f"SELECT count(*) FROM {table}")[0][0] for table in ("bundle", "data", "part")] == [0] * 3
    assert other.node.holdings.waiting_bytes == 0


def test_a_retained_message_counts_from_its_last_part_on(net: Net, tmp_path: Path) -> None:
    one, other = (Machine(name, tmp_path, net, window_transfers=1) for name in ("one", "other"))
    one.publish("door", b"old", 1.0, retain=True)
    net.up(one, other, 2.0)
    net.down(one, other, 3.0)
    one.publish("door", numbered(3), 4.0, retain=True)
    net.up(one, other, 5.0, words=20)
    net.down(one, other, 6.0)
    other.subscribe("door", now_s=7.0)
    assert [payload for _, payload in other.got] == [b"old"]
    net.up(one, other, 8.0)
    other.subscribe("door", client="late", now_s=9.0)
    assert [payload for _, payload in other.got] == [b"old", numbered(3), numbered(3)]
    for machine in (one, other):
        machine.die()
        machine.start(10.0)
    other.subscribe("door", client="later", now_s=11.0)
    assert [payload for _, payload in other.got][3:] == [numbered(3)]
    one.publish("door", b"", 12.0, retain=True)
    net.tick(2000.0 + 3600.0)
    assert one.store._all("SELECT count(*) FROM part") == [(0,)]


def test_conditions_do_not_look_into_parts(net: Net, tmp_path: Path) -> None:
    one, other = (Machine(name, tmp_path, net) for name in ("one", "other"))
    other.subscribe("c:room?t > 1")
    one.subscribe("c:room?t > 1")
    net.up(one, other, 1.0)
    one.publish("room", b'{"t": 22}' + b" " * 20, 2.0)  # its first part alone would meet the condition
    one.publish("room", b'{"t": 23}', 2.0)
    assert one.got == other.got == [("room", b'{"t": 23}')]


def test_a_part_that_lies_about_its_place_is_refused() -> None:
    envelope = Envelope("dtn://a/", "net", bytes(32))
    for sequence, first, place in ((7, 5, 2), (7, 7, 0)):
        header = Header("dtn://a/", 1, sequence, 0, "t", 1000)
        data = onward(envelope.encode(header, Message("t", b"x", part=(first, place, 3))), "dtn://a/", 0, 1)
        assert envelope.open(data).header.part == (first, place, 3)
    header = Header("dtn://a/", 1, 8, 0, "t", 1000)
    data = onward(envelope.encode(header, Message("t", b"x", part=(5, 2, 3))), "dtn://a/", 0, 1)
    with pytest.raises(PeerError, match="the number of its place"):
        envelope.open(data)


def test_it_may_die_at_any_statement(tmp_path: Path) -> None:
    """A message in parts is published, carried and delivered whole, whichever statement is the last."""
    n = 0
    while True:
        folder = tmp_path / str(n)
        folder.mkdir()
        Dying.left = 1 << 60
        net = Net()
        one, other = (Machine(name, folder, net, Dying) for name in ("one", "other"))
        other.subscribe("a")
        one.publish("a", numbered(3), 1.0)
        Dying.left = n
        outcome = ""
        try:
            net.up(one, other, 10.0, words=25)
            outcome = one.publish("a", numbered(4), 11.0)
            net.tick(12.0)
        except DyingNow:
            pass
        survived = Dying.left >= 0
        Dying.left = 1 << 60
        for machine in (one, other):
            machine.die()
            machine.start(20.0)
        counted = one.store._all("SELECT count(*) FROM bundle")[0][0]
        assert counted in ((7,) if outcome else (3, 7)), n
        net.words.clear()
        net.up(one, other, 21.0)
        other.take("app")
        wanted = [numbered(3), numbered(4)][: 1 if counted == 3 else 2]
        assert [payload for _, payload in other.got] == wanted, n
        net.close()
        if survived:
            break
        n += 1 if THOROUGH else 9
    assert n > 30


@pytest.mark.parametrize("seed", range(300 if THOROUGH else 4))
def test_random_meetings_cuts_and_deaths(net: Net, tmp_path: Path, seed: int) -> None:
    """Whatever happens, each subscriber has each message once and whole; and in the end nothing of them is left."""
    chance = random.Random(seed)
    machines = [Machine(name, tmp_path, net, window_transfers=chance.choice([1, 3, 64])) for name in "abcd"]
    published: list[bytes] = []
    now_s = 1.0
    for machine in machines[2:]:
        machine.subscribe("x")
    for _ in range(30):
        now_s += 1.0
        one, other = chance.sample(machines, 2)
        match chance.randrange(4):
            case 0:
                published.append(b"%d " % len(published) + os.urandom(chance.choice([0, 5, 15, 40, 90])))
                one.publish("x", published[-1], now_s)
            case 1:
                one.die()
                one.start(now_s)
            case _:
                net.up(one, other, now_s, words=chance.choice([5, 15, 30, 60, 1000]))
                net.down(one, other, now_s + 0.5)
    for _ in range(2):
        for one, other in ((0, 1), (1, 2), (2, 3), (0, 3)):
            now_s += 1.0
            net.up(machines[one], machines[other], now_s)
            net.down(machines[one], machines[other], now_s + 0.5)
    for machine in machines[2:]:
        machine.take("app")
        assert sorted(payload for _, payload in machine.got) == sorted(published)
        assert not machine.node.holdings.parts.waiting
    net.tick(now_s + 1000.0 + 3600.0)
    for machine in machines:
        assert machine.store._all("SELECT count(*) FROM part") == [(0,)]
        assert machine.node.holdings.waiting_bytes == 0
        assert machine.node.router.store.used_bytes == 0


def test_a_store_of_the_first_version_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    with sqlite3.connect(path) as old:
        part = "CREATE TABLE part(id INTEGER PRIMARY KEY, first INTEGER, place INTEGER, parts INTEGER);"
        first = TABLES.replace(part, "").replace("mark INTEGER NOT NULL", "mark INTEGER UNIQUE NOT NULL")
        old.executescript(f"{first} PRAGMA application_id = {0x73657261}; PRAGMA user_version = 1;")
        old.execute("INSERT INTO meta VALUES('epoch', x'6162636465666768')")
        old.executemany(STATEMENTS["bundle"], ((n, 10 - n, *range(15)) for n in range(1, 4)))
    old.close()
    store = Store.open(path, b"another ", "crash")
    assert store.saved().meta == {"epoch": b"abcdefgh"}
    assert store.saved().part == []
    assert store._all("SELECT * FROM bundle") == [(n, 10 - n, "0", 1, 2, 3, "4", *range(5, 15)) for n in range(1, 4)]
    assert store._all("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'bundle'") == []
    store.close()
    Store.open(path, b"another ", "crash").close()


def test_through_the_real_size(net: Net, tmp_path: Path, monkeypatch: Any) -> None:
    """16 MiB, in parts of 256 KiB: 64 of them."""
    monkeypatch.setattr(parts, "PART_BYTES", 256 << 10)
    one, other = (Machine(name, tmp_path, net) for name in ("one", "other"))
    other.subscribe("room")
    payload = os.urandom(16 << 20)
    one.publish("room", payload, 1.0)
    net.up(one, other, 2.0)
    assert other.got == [("room", payload)]
    assert sum(isinstance(word, SendBundle) for word in net.sent) == 64
