"""Many connections at once: strangers that say nothing, and more neighbours than there is room for."""

import asyncio

from serai.node.links import Address
from tests.node.running import Running, running, until


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
