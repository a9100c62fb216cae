"""Sessions over loopback, with and without TLS: bundles go over, cuts are survived, strangers get nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from serai.core.errors import BadInput
from serai.node.bundle.message import Envelope, onward
from serai.node.clock import NodeClock
from serai.node.keys import enrol, make_network
from serai.node.link import Self, network_id
from serai.node.links import Address, Links, LinkSettings, tls_context
from serai.node.wire import messages as wire
from serai.node.wire import tcpcl
from serai.node.wire.beacon import Beacon
from serai.node.wire.lists import encode_list
from serai.node.wire.tcpcl import Offer, Session
from serai.node.words import AllSeen, Effects, ListMessage
from tests.node.flood import Flood, message

NOW = datetime.now(UTC)
KEY = bytes(range(32))


class Running:
    """A node with links over the plain core."""

    def __init__(self, name: str, folder: Path | None = None, *, epoch: bytes | None = None, **settings: float) -> None:
        self.core = Flood()
        self.envelope = Envelope(f"dtn://{name}/", "net", KEY)
        tls: tcpcl.Tls = "required" if folder else "none"
        me = Self(self.envelope, network_id("net", KEY), epoch or name.ljust(8).encode(), tls=tls, keepalive_s=2)
        files = [folder / name for name in ("ca.pem", "node.pem", "node.key")] if folder else []
        contexts = [tls_context(server, *files) for server in (True, False)] if files else []
        self.links = Links(
            me, self.core, self.core.data, self.perform, NodeClock().instant, contexts=contexts,  # type: ignore[arg-type]
            settings=LinkSettings(**settings),  # type: ignore[arg-type]
        )  # fmt: skip
        self.sequence = 0

    def perform(self, effects: Effects) -> None:
        for word in effects.words:
            assert self.links.say(word)

    def publish(self, payload: bytes = b"x") -> None:
        self.sequence += 1
        self.perform(self.core.publish(*message(self.envelope, self.sequence, payload)))

    @property
    def peers(self) -> list[str]:
        return sorted(self.links.neighbours.links)


@asynccontextmanager
async def running(*nodes: Running) -> AsyncIterator[list[int]]:
    for node in nodes:
        node.links.start()
    ports = [await node.links.listen("127.0.0.1", 0) for node in nodes]
    try:
        yield ports
    finally:
        await asyncio.gather(*(node.links.stop() for node in nodes))


async def until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.01)


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


class Relay:
    """Stands between a dialler and a node; cuts, or keeps silent as a lost radio link does."""

    def __init__(self, port: int) -> None:
        self.port, self.silent = port, False
        self.writers: list[asyncio.StreamWriter] = []

    async def start(self) -> int:
        self.server = await asyncio.start_server(self.joined, "127.0.0.1", 0)
        return int(self.server.sockets[0].getsockname()[1])

    async def joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers += [writer, there_writer]
        await asyncio.gather(self.copy(reader, there_writer), self.copy(there_reader, writer))

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(3000):
                while self.silent:
                    await asyncio.sleep(0.05)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    def cut(self) -> None:
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()


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
            relay.server.close()
            relay.cut()

    asyncio.run(story())


def test_a_silent_link_is_given_up() -> None:
    async def story() -> None:
        a, b = Running("a", user_timeout_s=2.0), Running("b")
        async with running(a, b) as (_, port):
            relay = Relay(port)
            a.links.dial(Address("127.0.0.1", await relay.start()))
            await until(lambda: a.peers == ["dtn://b/"])
            relay.silent = True
            await until(lambda: not a.peers and not b.peers, timeout_s=8.0)  # keepalive 2 s: after 4 s
            relay.silent = False
            relay.cut()
            await until(lambda: a.peers == ["dtn://b/"])
            relay.server.close()
            relay.cut()

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


def test_a_revoked_certificate_is_refused(folders: Path) -> None:
    async def story() -> None:
        serial = enrol("b", folders / "net", folders / "b-revoked", NOW)
        a, b = Running("a", folders / "a-net"), Running("b", folders / "b-revoked")
        a.links.revoked = {serial.lower()}
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


async def as_neighbour(port: int, name: str, words: list[bytes]) -> list[tcpcl.Event]:
    """What a hostile neighbour hears that opens a session and sends these bundles."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    hello = Running(name).links.new_link(active=True).session.offer.extension
    session = Session(Offer(f"dtn://{name}/", tls="none", extension=hello), active=True, now_s=0.0)
    events: list[tcpcl.Event] = []
    try:
        async with asyncio.timeout(1.0):
            while True:
                writer.write(session.take(0.0))
                data = await reader.read(65_536)
                events += session.receive(data, 0.0)
                for number in list(session.answering):
                    session.accept(number)
                while session.state == "open" and words:
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
            bundle[:-9] + b"y" + bundle[-8:] if False else bundle.replace(b"\x41x", b"\x41y"),  # changed on the way
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


def test_strangers_that_say_nothing_do_not_keep_others_out() -> None:
    async def story() -> None:
        a, b = Running("a"), Running("b")
        async with running(a, b) as (port, _):
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
            await asyncio.sleep(0.1)
            assert a.links.strangers() <= 8
            a.links.dial(Address("127.0.0.1", 1))
            for _, writer in silent:
                writer.close()
            b.links.dial(Address("127.0.0.1", port))
            await until(lambda: a.peers == ["dtn://b/"])

    asyncio.run(story())


def test_a_port_in_use_is_said() -> None:
    async def story() -> None:
        a, b = Running("a"), Running("b")
        async with running(a) as (port,):
            with pytest.raises(BadInput, match=f"127.0.0.1:{port}: .*in use"):
                await b.links.listen("127.0.0.1", port)

    asyncio.run(story())
