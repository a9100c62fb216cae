"""Many connections: strangers that say nothing, more neighbours than there is room for, one session after another."""

import asyncio
import ssl
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from serai.node.fair import Beginnings
from serai.node.keys import enrol, make_network
from serai.node.links import Address
from serai.node.wire import messages as wire
from tests.node.running import Running, beside, running, until


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


def test_sessions_begun_over_and_over_leave_a_node_its_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Four fifths, and so an honest neighbour 80 % of its throughput; the crowd begins 16 at once and 8 a second."""
    make_network("net", tmp_path / "net", datetime.now(UTC))
    for name in "ab":
        enrol(name, tmp_path / "net", tmp_path / name, datetime.now(UTC))

    async def story() -> None:
        a, b = (Running(name, tmp_path / name) for name in "ab")
        async with running(a, b) as (_, port):
            a.links.dial(Address("127.0.0.1", port))
            await until(lambda: b.peers == ["dtn://a/"])
            began_s, before = time.monotonic(), b.links._serial
            with beside(f"import asyncio, tests.node.test_crowds as t; asyncio.run(t.begin_over_and_over({port}))"):
                await until(lambda: "turned away" in caplog.text)
                at_s, spent_s = time.monotonic(), time.process_time()
                await asyncio.sleep(2.0)
                assert time.process_time() - spent_s <= 0.2 * (time.monotonic() - at_s)
                a.publish(bytes(200))
                await until(lambda: len(b.core.kept) == 1)
                assert b.links._serial - before <= 16 + 8 * (time.monotonic() - began_s)

    asyncio.run(story())


def test_an_address_begins_so_many_sessions_and_others_are_not_kept_out() -> None:
    begun = Beginnings()
    assert [begun.may("a", 5.0) for _ in range(20)] == 16 * [True] + 4 * [False]
    assert begun.may("b", 5.0)
    assert [begun.may("a", 5.25) for _ in range(3)] == [True, True, False]
    assert sum(begun.may("a", 60.0) for _ in range(20)) == 16
    for number in range(3000):
        begun.may(str(number), 61.0)
    assert len(begun._begun) <= 1024
