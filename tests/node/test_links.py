"""Sessions over loopback, with and without TLS: bundles go over, cuts are survived, strangers get nothing."""

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from serai.core.errors import BadInput
from serai.node.bundle.message import Envelope, onward
from serai.node.fair import Share
from serai.node.keys import enrol, make_network
from serai.node.link import network_id
from serai.node.links import Address, Connection
from serai.node.wire import messages as wire
from serai.node.wire import tcpcl
from serai.node.wire.beacon import Beacon
from serai.node.wire.lists import encode_list
from serai.node.wire.tcpcl import Offer, Session
from serai.node.words import AllSeen, Effects, ListEntry, ListMessage
from tests.effort import THOROUGH, within
from tests.node.flood import message
from tests.node.running import KEY, Relay, Running, beside, running, until

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks; nodes a and b of the first, b of the second, an expired b of the first."""
    base = tmp_path_factory.mktemp("keys")
    for network in ("net", "other"):
        make_network(network, base / network, NOW)
    for name, network in (("a", "net"), ("b", "net"), ("b", "other")):
        enrol(name, base / network, base / f"{name}-{network}", NOW)
    enrol("b", base / "net", base / "b-expired", NOW - timedelta(days=30), days=1)
    return base


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_bundles_go_over_both_ways(folders: Path, tls: bool) -> None:
    async def story() -> None:
        a, b = (Running(name, folders / f"{name}-net" if tls else None) for name in "ab")
        async with running(a, b) as (_, port):
            for node, count in ((a, 100), (b, 50)):
                for _ in range(count):
                    node.publish(bytes(300))
            a.publish(bytes(300_000))  # several segments
            a.links.dial(Address("127.0.0.1", port))
            await until(lambda: len(a.core.kept) == len(b.core.kept) == 151)
            assert a.core.kept.keys() == b.core.kept.keys()
            assert a.core.refusals == b.core.refusals == []
            b.publish()
            await until(lambda: len(a.core.kept) == 152)  # news go at once
        assert a.peers == b.peers == []

    asyncio.run(story())


def test_a_line_of_three_and_a_ring() -> None:
    async def story() -> None:
        nodes = [Running(name) for name in "abc"]
        async with running(*nodes) as ports:
            nodes[0].publish()
            nodes[1].links.dial(Address("127.0.0.1", ports[0]))
            nodes[2].links.dial(Address("127.0.0.1", ports[1]))
            await until(lambda: len(nodes[2].core.kept) == 1)
            assert next(iter(nodes[2].core.kept.values()))[0].hops == 2
            nodes[0].links.dial(Address("127.0.0.1", ports[2]))
            await until(lambda: all(len(node.peers) == 2 for node in nodes))

    asyncio.run(story())


def test_two_that_dial_each_other_keep_one_session() -> None:
    async def story() -> None:
        a, b = Running("a"), Running("b")
        async with running(a, b) as ports:
            a.links.dial(Address("127.0.0.1", ports[1]))
            b.links.dial(Address("127.0.0.1", ports[0]))
            await until(lambda: a.peers == ["dtn://b/"] and b.peers == ["dtn://a/"])
            await asyncio.sleep(0.3)
            await until(lambda: len(a.links.connections) == len(b.links.connections) == 1)
            assert a.links.neighbours.links["dtn://b/"].active  # dialled by the lower
            a.publish()
            await until(lambda: len(b.core.kept) == 1)

    asyncio.run(story())


def test_a_beacon_is_dialled_and_strangers_are_not() -> None:
    async def story() -> None:
        a, b = Running("a"), Running("b")
        async with running(a, b) as (_, port):
            beacon = Beacon("dtn://b/", 10, (("tcpcl", port),), network_id("net", KEY))
            for other in (
                beacon._replace(network=b"12345678"),
                beacon._replace(node="dtn://a/"),
                beacon._replace(services=()),
            ):
                a.links.heard(other, "127.0.0.1")
            await asyncio.sleep(0.1)
            assert not a.links.connections
            a.links.heard(beacon, "127.0.0.1")
            await until(lambda: a.peers == ["dtn://b/"])

    asyncio.run(story())


def test_cuts_in_the_middle_cost_nothing() -> None:
    async def story() -> None:
        a, b = Running("a"), Running("b")
        async with running(a, b) as (_, port):
            relay = Relay(port)
            through = await relay.start()
            for number in range(300):
                a.publish(bytes(20_000 if number % 10 else 100_000))
            a.links.dial(Address("127.0.0.1", through))
            cuts, before = 0, 0
            async with asyncio.timeout(20):
                while len(b.core.kept) < 300:
                    await asyncio.sleep(0.002)
                    if len(b.core.kept) >= before + 60:
                        before, cuts = len(b.core.kept), cuts + 1
                        relay.cut()
            assert cuts >= 3
            assert len(b.core.arrivals) == 300  # none twice
            relay.stop()

    asyncio.run(story())


def test_a_silent_link_is_given_up() -> None:
    async def story() -> None:
        a, b = Running("a", user_timeout_s=2.0), Running("b")
        async with running(a, b) as (_, port):
            relay = Relay(port)
            a.links.dial(Address("127.0.0.1", await relay.start()))
            await until(lambda: a.peers == ["dtn://b/"])
            relay.silent = True
            await until(lambda: not a.peers and not b.peers, timeout_s=within(8.0))  # keepalive 2 s: after 4 s
            relay.silent = False
            relay.cut()
            await until(lambda: a.peers == ["dtn://b/"])
            relay.stop()

    asyncio.run(story())


# -- who is not let in


@pytest.mark.parametrize("folder", ["b-other", "b-expired", "plain"])
def test_strangers_get_nothing(folders: Path, folder: str) -> None:
    async def story() -> None:
        a = Running("a", folders / "a-net")
        b = Running("b", None if folder == "plain" else folders / folder)
        async with running(a, b) as ports:
            a.publish()
            b.publish()
            b.links.dial(Address("127.0.0.1", ports[0]))
            a.links.dial(Address("127.0.0.1", ports[1]))
            await asyncio.sleep(1.0)
            assert a.peers == b.peers == []
            assert len(a.core.kept) == len(b.core.kept) == 1

    asyncio.run(story())


def test_a_certificate_of_another_node_is_not_enough(folders: Path) -> None:
    async def story() -> None:
        a, c = Running("a", folders / "a-net"), Running("c", folders / "b-net")  # says c, shows b
        async with running(a, c) as (port, _):
            c.links.dial(Address("127.0.0.1", port))
            await asyncio.sleep(0.5)
            assert a.peers == []

    asyncio.run(story())


@pytest.mark.parametrize(
    "number", [0x6914ABB5E50919C985520C8405D9F6BE429FB2F0, 0xFA1BA39854AA6845E83BAE517247A7A68CEF7C6]
)
def test_a_revoked_certificate_is_refused(folders: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(x509, "random_serial_number", lambda: number)  # OpenSSL writes the second with a zero in front

    async def story() -> None:
        serial = enrol("b", folders / "net", folders / f"b-{number}", NOW)
        a, b = Running("a", folders / "a-net", revoked=(serial,)), Running("b", folders / f"b-{number}")
        async with running(a, b) as (port, _):
            b.links.dial(Address("127.0.0.1", port))
            await asyncio.sleep(0.5)
            assert a.peers == []

    asyncio.run(story())


def test_of_two_nodes_with_one_name_the_second_is_refused() -> None:
    async def story() -> None:
        a, first, second = Running("a"), Running("b"), Running("b", epoch=b"another ")
        async with running(a, first, second) as (port, _, _):
            first.links.dial(Address("127.0.0.1", port))
            await until(lambda: a.peers == ["dtn://b/"])
            second.publish()
            second.links.dial(Address("127.0.0.1", port))
            await asyncio.sleep(0.5)
            assert a.links.neighbours.links["dtn://b/"].hello.epoch == b"b".ljust(8)  # type: ignore[union-attr]
            assert not a.core.kept
            twin = Running("a", epoch=b"another ")
            async with running(twin):
                twin.links.dial(Address("127.0.0.1", port))
                await asyncio.sleep(0.3)
                assert a.peers == ["dtn://b/"]

    asyncio.run(story())


async def as_neighbour(port: int, name: str, words: list[bytes], for_s: float = 1.0) -> list[tcpcl.Event]:
    """What a hostile neighbour hears that opens a session and sends these bundles."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    hello = Running(name).links.new_link(active=True).session.offer.extension
    session = Session(Offer(f"dtn://{name}/", tls="none", extension=hello), active=True, now_s=0.0)
    events: list[tcpcl.Event] = []
    try:
        async with asyncio.timeout(for_s):
            while True:
                writer.write(session.take(0.0))
                data = await reader.read(65_536)
                events += session.receive(data, 0.0)
                for number in list(session.answering):
                    session.accept(number)
                while session.state == "open" and words and len(session.sending) < 8:
                    session.send(words.pop(0))
                if not data:
                    break
    except TimeoutError:
        pass
    writer.close()
    return events


def test_forged_lists_and_replayed_bundles() -> None:
    async def story() -> None:
        a = Running("a")
        good, forger = Envelope("dtn://b/", "net", KEY), Envelope("dtn://b/", "net", b"guessed")
        other = Envelope("dtn://c/", "net", KEY)
        said = encode_list(ListMessage(1, 2.0, (), AllSeen(frozenset())))
        bundle = onward(message(good, 1)[1], "dtn://b/", 0, 1)
        words = [
            forger.control("dtn://a/", said, 1, 1),  # not made with the network's key
            other.control("dtn://a/", said, 1, 1),  # of another node than the neighbour
            bundle,
            bundle,  # again
            onward(message(forger, 2)[1], "dtn://b/", 0, 1),
            onward(message(good, 3)[1], "dtn://b/", 0, 65),
            bundle.replace(b"\x41x", b"\x41y"),  # changed on the way
        ]
        async with running(a) as (port,):
            events = await as_neighbour(port, "b", words)
        answers = [event for event in events if isinstance(event, tcpcl.Acknowledged | tcpcl.Refused)]
        refused = {event.transfer: event.reason for event in answers if isinstance(event, tcpcl.Refused)}
        assert refused == {0: 4, 1: 4, 3: 1, 4: 4, 5: 4, 6: 4}
        assert [event.transfer for event in answers if isinstance(event, tcpcl.Acknowledged)] == [2]
        assert len(a.core.arrivals) == 1

    asyncio.run(story())


@pytest.mark.parametrize(
    "first",
    [b"GET / HTTP/1.1\r\n", wire.contact_header(False) + b"\x01", b"\x16\x03\x01"],
    ids=["HTTP", "no SESS_INIT", "TLS"],
)
def test_others_are_sent_away(first: bytes) -> None:
    async def story() -> None:
        a = Running("a")
        async with running(a) as (port,):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            async with asyncio.timeout(3.0):
                await reader.read()
            writer.close()

    asyncio.run(story())


def test_a_port_in_use_is_said() -> None:
    async def story() -> None:
        a, b = Running("a"), Running("b")
        async with running(a) as (port,):
            with pytest.raises(BadInput, match=f"127.0.0.1:{port}: .*in use"):
                await b.links.listen("127.0.0.1", port)

    asyncio.run(story())


def test_a_slow_link_without_a_cut_carries_everything() -> None:
    """1,500 messages of 1 KiB at 1 Mbit/s (150 of them when there is little time)."""

    async def story(count: int) -> None:
        a, b = Running("a"), Running("b")
        async with running(a, b) as (_, port):
            relay = Relay(port, rate_bps=1e6)
            for _ in range(count):
                a.publish(bytes(1024))
            a.links.dial(Address("127.0.0.1", await relay.start()))
            await until(lambda: len(b.core.kept) == count, timeout_s=120.0)
            assert len(a.links.connections) == 1  # no session was given up
            assert len(b.core.arrivals) == count
            relay.stop()

    asyncio.run(story(1500 if THOROUGH else 150))


def test_a_neighbour_that_does_not_read_does_not_stop_another() -> None:
    """Nothing is handed to a socket that is full: memory stays small, and others go on."""

    async def story() -> None:
        a, b = Running("a"), Running("b")
        async with running(a, b) as (port, _):
            for _ in range(300):
                a.publish(bytes(60_000))
            relay = Relay(port)
            c = Running("c")
            async with running(c):
                c.links.dial(Address("127.0.0.1", await relay.start()))
                await until(lambda: a.peers == ["dtn://c/"])
                relay.silent = True
                b.links.dial(Address("127.0.0.1", port))
                await until(lambda: len(b.core.kept) == 300)
                waiting = [one.transport.get_write_buffer_size() for one in a.links.connections]
                assert max(waiting, default=0) < 2 << 20
                relay.silent = False
                relay.stop()

    asyncio.run(story())


HONEST = 20_000  # bundles: more than a second, so that the other one gets its turns


async def attack(port: int, kind: str) -> None:
    """A neighbour that says lists of 20,000 entries, or hands over the largest bundles, as fast as it may."""
    envelope = Envelope("dtn://hostile/", "net", KEY)
    if kind == "lists":
        entry = ListEntry("dtn://x/", 1, "t:" + 40 * "x", 1000, 60_000, 30_000, 2, 3)
        said = encode_list(ListMessage(1, 2.0, (entry,) * 20_000, AllSeen(frozenset())))
        word = envelope.control("dtn://b/", said, 1, 1)
    else:
        word = onward(message(envelope, 1, bytes(4_190_000))[1], "dtn://hostile/", 0, 1)
    await as_neighbour(port, "hostile", [word] * 100_000, for_s=60.0)


@pytest.mark.parametrize("kind", ["lists", "bundles"])
def test_a_hostile_neighbour_leaves_others_their_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An honest neighbour keeps 80 % of its throughput: of all that the two nodes take, a fifth goes to the other."""
    spent_s: Counter[str | None] = Counter()
    receive = Connection.data_received

    def timed(self: Connection, data: bytes) -> None:
        began_s = time.thread_time()
        receive(self, data)
        spent_s[self.link.peer] += time.thread_time() - began_s

    async def story() -> float:
        a, b = Running("a"), Running("b")
        give = b.core.next_transfer  # what it is given itself is not counted
        b.core.next_transfer = lambda peer, now_s: Effects() if "hostile" in peer else give(peer, now_s)
        async with running(a, b) as (_, port):
            with beside(f"import asyncio, tests.node.test_links as t; asyncio.run(t.attack({port}, {kind!r}))"):
                await until(lambda: spent_s["dtn://hostile/"] > 0.02)
                already = len(b.core.kept)
                for _ in range(HONEST):
                    a.publish(bytes(200))
                spent_s.clear()
                began_s = time.process_time()
                a.links.dial(Address("127.0.0.1", port))
                await until(lambda: len(b.core.kept) >= already + HONEST)
                return time.process_time() - began_s

    monkeypatch.setattr(Connection, "data_received", timed)
    took_s = asyncio.run(story())
    assert spent_s["dtn://hostile/"] <= 0.2 * took_s


def test_who_sends_what_takes_long_makes_way_for_who_does_not() -> None:
    large, small = Share(), Share()
    assert large.rest_s(0.05, 0.05, 0, 0, [large, small], 1.0) == 0.0  # half of a bundle
    assert large.rest_s(0.05, 0.05, 1, 0, [large, small], 1.0) == 0.0  # and the rest: nobody else is there
    assert small.rest_s(0.05, 0.05, 64, 0, [large, small], 1.1) == 0.0  # less than a millisecond each
    assert large.rest_s(0.05, 0.05, 2, 0, [large, small], 1.2) == pytest.approx(0.95)
    assert large.rest_s(0.05, 0.05, 3, 0, [large, small], 3.0) == 0.0  # the other one has gone on
    assert large.rest_s(0.05, 0.05, 3, 1, [large], 3.1) == pytest.approx(0.45)  # a list brings nothing, so always
    assert large.rest_s(0.001, 0.5, 3, 2, [large], 3.2) == 0.0


def test_an_answer_of_an_older_session_is_not_taken_for_one_of_the_new() -> None:
    """Transfers are numbered from 0 in every session; a commit may come after the session has changed."""
    node = Running("a")
    at = node.links.instant()
    hello = Running("b").links.new_link(active=True).session.offer.extension
    first = onward(message(Envelope("dtn://b/", "net", KEY), 1)[1], "dtn://b/", 0, 1)
    second = onward(message(Envelope("dtn://b/", "net", KEY), 2)[1], "dtn://b/", 0, 1)
    answers = []
    for bundle in (first, second):
        link = node.links.new_link(active=False)
        there = Session(Offer("dtn://b/", tls="none", extension=hello), active=True, now_s=0.0)
        for _ in range(2):
            link.receive(there.take(0.0), at)
            there.receive(link.take(at), 0.0)
        there.send(bundle)
        (effects,) = link.receive(there.take(0.0), at)
        answers.append(effects.words[0])
    assert link.say(answers[0], at) == []
    assert link.take(at) == b""
    link.say(answers[1], at)
    assert there.receive(link.take(at), 0.0) == [tcpcl.Acknowledged(0, len(second))]
