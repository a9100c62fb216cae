"""Many connections: strangers that say nothing, more neighbours than there is room for, one session after another."""

import asyncio
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from serai.node.fair import Beginnings
from serai.node.keys import enrol, make_network
from serai.node.links import Address
from serai.node.wire import messages as wire
from tests.node.running import Running, running, until
from tests.node.wires import ROOT

HONEST = 3000  # bundles, so that it lasts some time


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


def test_sessions_are_bounded_whoever_has_dialled() -> None:
    async def story() -> None:
        a, *others = (Running(name, sessions=2) for name in "abcd")
        async with running(a, *others) as (port, *_):
            for number, other in enumerate(others):
                other.links.dial(Address("127.0.0.1", port))
                await until(lambda: len(a.peers) == min(number + 1, 2))  # noqa: B023
            await asyncio.sleep(0.3)
            assert a.peers == ["dtn://b/", "dtn://c/"]
            await others[0].links.stop()
            await until(lambda: a.peers == ["dtn://c/", "dtn://d/"])  # it had been dialling on

    asyncio.run(story())


async def begin_over_and_over(port: int) -> None:
    """64 sessions at a time, each as far as a node's answer to the first word of TLS."""
    out = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    hello = out.read()

    async def begin() -> None:
        while True:
            with suppress(OSError, TimeoutError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                for said in (wire.contact_header(True), hello):
                    writer.write(said)
                    await asyncio.wait_for(reader.read(100), 1.0)
                writer.transport.abort()
            await asyncio.sleep(0)

    await asyncio.wait_for(asyncio.gather(*(begin() for _ in range(64))), 60.0)


def test_sessions_begun_over_and_over_leave_a_neighbour_its_time(tmp_path: Path) -> None:
    """It keeps 80 % of its throughput; counted is what the node and the neighbour take."""
    make_network("net", tmp_path / "net", datetime.now(UTC))
    for name in "ab":
        enrol(name, tmp_path / "net", tmp_path / name, datetime.now(UTC))

    async def story(hostile: bool) -> float:
        a, b = (Running(name, tmp_path / name) for name in "ab")
        async with running(a, b) as (_, port):
            a.links.dial(Address("127.0.0.1", port))
            await until(lambda: b.peers == ["dtn://a/"])
            crowd = f"import asyncio, tests.node.test_crowds as t; asyncio.run(t.begin_over_and_over({port}))"
            beside = subprocess.Popen([sys.executable, "-c", crowd], cwd=ROOT) if hostile else None
            try:
                await until(lambda: not hostile or b.links.strangers() > 0)
                began_s = time.process_time()
                for _ in range(HONEST):
                    a.publish(bytes(200))
                await until(lambda: len(b.core.kept) == HONEST, 60.0)
                took_s = time.process_time() - began_s
                assert beside is None or beside.poll() is None  # it did not give up
            finally:
                if beside is not None:
                    beside.kill()
                    beside.wait()
        return took_s

    alone_s, beside_s = (min(asyncio.run(story(hostile)) for _ in range(2)) for hostile in (False, True))
    assert alone_s >= 0.8 * beside_s, (alone_s, beside_s)


def test_an_address_begins_so_many_sessions_and_others_are_not_kept_out() -> None:
    begun = Beginnings()
    assert [begun.may("a", 5.0) for _ in range(20)] == 16 * [True] + 4 * [False]
    assert begun.may("b", 5.0)
    assert [begun.may("a", 5.25) for _ in range(3)] == [True, True, False]
    assert sum(begun.may("a", 60.0) for _ in range(20)) == 16
    for number in range(3000):
        begun.may(str(number), 61.0)
    assert len(begun._begun) <= 1024
