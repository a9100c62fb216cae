"""One node of an emulation by the clock: a real core, store and links over TCP, told what to do by a conductor.

`python -m serai.node.emulation.node` is one in a process of its own: the first line of its input says what it is
(`Start`, pickled, in base64), the others are commands: the name of a method, and its arguments, in JSON.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import pickle
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from serai.core.errors import CannotRun
from serai.node.bundle.message import Envelope
from serai.node.core import Node
from serai.node.emulation.world import NETWORK, eid_of, number_of, store_name
from serai.node.link import Instant, Self, network_id
from serai.node.links import Links
from serai.node.routing import routing
from serai.node.settings import NodeSettings
from serai.node.store import Store, Writer
from serai.node.wire.beacon import Beacon
from serai.node.words import Message, Queued, Subscription, Word
from serai.opportunistic.settings import RouterSettings

_AGAIN_S: Final = 0.005
_LONGEST_SLEEP_S: Final = 0.1


class Pace(NamedTuple):
    """The clock of all nodes of an emulation: seconds of the scenario, so many in one real second."""

    began_s: float  # by the clock that only runs, which all processes of a machine have in common
    speed: float

    def now_s(self) -> float:
        """The time in the scenario."""
        return max(0.0, (time.monotonic() - self.began_s) * self.speed)

    def until_s(self, scenario_s: float) -> float:
        """How long that is from now, in real seconds."""
        return max(0.0, self.began_s + scenario_s / self.speed - time.monotonic())

    def instant(self) -> Instant:
        """Now, as links have it."""
        return Instant(time.monotonic(), self.now_s())


class Start(NamedTuple):
    """What a node is."""

    number: int
    folder: Path
    protocol: RouterSettings
    settings: dict[str, Any]  # of its core, but for what follows from the protocol and from `rows`
    rows: dict[int, list[int]]  # by source: the numbers of its bundles, in the order of their births


class LiveNode:
    """A node with its store and its links; its applications take what waits for them at once."""

    def __init__(self, start: Start) -> None:
        self.eid, self.pace = eid_of(start.number), Pace(math.inf, 1.0)  # as long as nothing has begun
        self.store = Store.open(start.folder / store_name(start.number), start.number.to_bytes(8), "crash")
        envelope = Envelope(self.eid, NETWORK)
        settings = NodeSettings(
            self.eid, **routing(start.protocol), **start.settings, mark_of_node=number_of,
            mark_of_bundle=lambda source, created_ms, sequence, offset: start.rows[number_of(source)][sequence - 1],
        )  # fmt: skip
        self.node = Node(settings, self.store.saved(), envelope.encode, data=self._data)
        self.writer = Writer(self.store, asyncio.get_running_loop().call_soon_threadsafe, self.say)
        me = Self(envelope, network_id(NETWORK, b""), self.node.epoch, settings.carries, tls="none")
        self.links = Links(me, self.node, self._data, self.writer.perform, lambda: self.pace.instant())
        self._meeting: dict[int, asyncio.Task[None]] = {}
        self._passing: asyncio.Task[None] | None = None

    def _data(self, id: int) -> bytes:
        return self.writer.data(id)

    def say(self, word: Word) -> None:
        """Hand a word to the links, or be the application that it is for."""
        if isinstance(word, Queued):
            for queued in list(self.node.outbox(word.session)):
                self.writer.perform(self.node.outbox_done(word.session, queued.bundle))
        else:
            self.links.say(word)

    async def open(self) -> int:
        """Be there; the port at which sessions are taken."""
        return await self.links.listen("127.0.0.1", 0)

    async def _pass_time(self) -> None:
        while True:
            self.writer.perform(self.node.tick(self.pace.now_s()))
            await asyncio.sleep(min(max(self.pace.until_s(self.node.due_s()), 0.001), _LONGEST_SLEEP_S))

    # -- what the conductor says

    def begin(self, began_s: float, speed: float) -> None:
        """All nodes are there: time passes from then on."""
        self.pace = Pace(began_s, speed)
        self.writer.perform(self.node.started(0.0))
        self.links.start()
        self._passing = asyncio.create_task(self._pass_time())

    def publish(self, topic: str, payload_bytes: int, lifetime_s: float, size_bytes: int) -> None:
        """An application publishes; `size_bytes`: what the bundle counts for in stores."""
        message = Message(topic, bytes(payload_bytes))
        effects = self.node.published("publisher", message, lifetime_s, self.pace.now_s(), size_bytes)
        self.writer.perform(effects)

    def subscribe(self, client: str, topic: str) -> None:
        """An application asks for a channel."""
        now_s = self.pace.now_s()
        opened = self.node.session_opened(client, now_s, clean=True, version=5, lifetime_s=math.inf, will=None)
        self.writer.perform(opened)
        self.writer.perform(self.node.subscribed(Subscription(0, client, "t", f"t:{topic}", options=0x20), now_s))

    def unsubscribe(self, client: str) -> None:
        """It does not ask any more."""
        self.writer.perform(self.node.unsubscribed(client, "t", self.pace.now_s()))

    def meet(self, other: int, port: int) -> None:
        """A contact begins, and this node is the one that dials."""
        self.part(other)
        self._meeting[other] = asyncio.create_task(self._dial(other, port))

    async def _dial(self, other: int, port: int) -> None:
        beacon = Beacon(eid_of(other), 1, (("tcpcl", port),), self.links.me.network)
        while True:  # what is left of the contact before may still be in the way
            self.links.heard(beacon, "127.0.0.1")
            await asyncio.sleep(_AGAIN_S)

    def part(self, other: int) -> None:
        """It is over: the wire is cut by whoever holds it."""
        task = self._meeting.pop(other, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """The end of the scenario."""
        for other in list(self._meeting):
            self.part(other)
        if self._passing is not None:
            self._passing.cancel()
        self.writer.perform(self.node.stop(self.pace.now_s()))
        await self.links.stop()
        await asyncio.to_thread(self.writer.stop)
        self.store.close()


class Remote:
    """The same in a process of its own."""

    def __init__(self, start: Start) -> None:
        self._start = start

    async def open(self) -> int:
        """Start the process; the port at which sessions are taken."""
        program = [sys.executable, "-m", "serai.node.emulation.node"]
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(base64.b64encode(pickle.dumps(self._start)) + b"\n")
        said = await self._process.stdout.readline()
        if not said:
            raise CannotRun(f"the process of node {self._start.number} ended before it began; its reason is above")
        return int(said)

    def __getattr__(self, name: str) -> Any:
        return lambda *values: self._tell(name, values)

    def _tell(self, name: str, values: tuple[Any, ...]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, *values]).encode() + b"\n")

    async def close(self) -> None:
        """The end of the scenario; the process ends when its store is written."""
        assert self._process.stdin is not None
        self._process.stdin.write_eof()
        await self._process.wait()


async def _serve() -> None:
    """Be a node until the input ends."""
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    node = LiveNode(pickle.loads(base64.b64decode(await lines.readline())))
    print(await node.open(), flush=True)
    while line := await lines.readline():
        name, *values = json.loads(line)
        getattr(node, name)(*values)
    await node.close()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve())
