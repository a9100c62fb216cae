"""Nodes with real links over the plain core, a relay to stand between them, and processes beside them."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from serai.node.bundle.message import Envelope
from serai.node.clock import NodeClock
from serai.node.link import Self, network_id
from serai.node.links import Links, LinkSettings, tls_context
from serai.node.wire import tcpcl
from serai.node.words import Effects
from tests.node.flood import Flood, message
from tests.node.wires import ROOT

KEY = bytes(range(32))


class Running:
    """A node with links over the plain core."""

    def __init__(
        self,
        name: str,
        folder: Path | None = None,
        *,
        epoch: bytes | None = None,
        revoked: Sequence[str] = (),
        **settings: float,
    ) -> None:
        self.core = Flood()
        self.envelope = Envelope(f"dtn://{name}/", "net", KEY)
        tls: tcpcl.Tls = "required" if folder else "none"
        me = Self(self.envelope, network_id("net", KEY), epoch or name.ljust(8).encode(), tls=tls, keepalive_s=2)
        files = [folder / name for name in ("ca.pem", "node.pem", "node.key")] if folder else []
        contexts = [tls_context(server, *files) for server in (True, False)] if files else []
        self.links = Links(
            me, self.core, self.core.data, self.perform, NodeClock().instant, contexts=contexts, revoked=revoked,  # type: ignore[arg-type]
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


async def until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.01)


@contextmanager
def beside(code: str) -> Iterator[None]:
    """Meanwhile a process of its own does this, and must not give up."""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


class Relay:
    """Stands between a dialler and a node: cuts, keeps silent as a lost radio link does, is slow, and writes down."""

    def __init__(self, port: int, rate_bps: float = 0.0) -> None:
        self.port, self.rate_bps, self.silent = port, rate_bps, False
        self.talk: list[tuple[int, bytes]] = []  # 0: of the dialler
        self.writers: list[asyncio.StreamWriter] = []

    async def start(self) -> int:
        self.server = await asyncio.start_server(self.joined, "127.0.0.1", 0)
        return int(self.server.sockets[0].getsockname()[1])

    async def joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers += [writer, there_writer]
        await asyncio.gather(self.copy(0, reader, there_writer), self.copy(1, there_reader, writer))

    async def copy(self, who: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(3000):
                while self.silent:
                    await asyncio.sleep(0.05)
                if self.rate_bps:
                    await asyncio.sleep(8 * len(data) / self.rate_bps)
                self.talk.append((who, data))
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    def cut(self) -> None:
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    def stop(self) -> None:
        self.server.close()
        self.cut()
