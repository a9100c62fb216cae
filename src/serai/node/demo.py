"""Three nodes on this machine and a ferry that comes and goes: what a live network is for, in 15 seconds.

The nodes are real: stores on disk, TCPCLv4 sessions over loopback, applications over MQTT. Only that the ferry is now
at the barn, now at the house, is made up: what a beacon would say is said here, and sessions are cut when it leaves.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from serai.node.client import Node
from serai.node.config import parse_config
from serai.node.daemon import Daemon, Ports
from serai.node.wire.beacon import Beacon

NAMES: Final = ("barn", "ferry", "house")
TRIP: Final = (("barn", 2.0, 2.0), ("house", 1.0, 2.0), ("barn", 1.0, 2.0), ("house", 1.0, 2.0))
"""Where the ferry goes, how long that takes, and how long it stays, in seconds."""

CONFIG: Final = """
name = "{name}"
[network]
name = "demo"
security = "none"
[links]
listen = "127.0.0.1:0"
[mqtt]
listen = "127.0.0.1:0"
[web]
listen = "127.0.0.1:{page}"
[beacon]
on = false
[store]
durability = "crash"
"""


class Demo:
    """The nodes, what is told of them, and what was heard; `pace` shortens or stretches all times."""

    def __init__(self, tell: Callable[[str], None], pace: float) -> None:
        self.tell, self.pace = tell, pace
        self.nodes: dict[str, Daemon] = {}
        self.ports: dict[str, Ports] = {}
        self.published: dict[int, float] = {}
        self.heard: dict[str, list[int]] = {"display": [], "alarm": []}
        self.delays_s: list[float] = []

    def now_s(self) -> float:
        """Seconds of the demo."""
        return (asyncio.get_running_loop().time() - self._began_s) / self.pace

    def say(self, text: str) -> None:
        """Tell what happens, and when."""
        self.tell(f"{self.now_s():6.1f} s  {text}")

    async def run(self, folder: Path) -> None:
        """Start the nodes, let the ferry go its way, and stop them."""
        async with AsyncExitStack() as stack:
            tasks = []
            for name in NAMES:
                (folder / name).mkdir()
                node = self.nodes[name] = Daemon(parse_config(CONFIG.format(name=name, page=0), name, folder / name))
                self.ports[name] = await node.start()
                stack.push_async_callback(node.stop)
                tasks.append(asyncio.create_task(node.run()))
            self.tell(
                "Three nodes on this machine. The barn and the house cannot hear each other; a ferry goes between."
            )
            for name in NAMES:
                self.tell(f"  http://127.0.0.1:{self.ports[name]['web']}/  the page of the {name}, while this runs")
            self._began_s = asyncio.get_running_loop().time()
            apps = [
                asyncio.create_task(self._listen("display", "field/+", "")),
                asyncio.create_task(self._listen("alarm", "field/+", "t >= 24")),
                asyncio.create_task(self._measure()),
            ]
            for place, way_s, stay_s in TRIP:
                await self._visit(place, way_s, stay_s)
            for task in apps:
                task.cancel()
            await asyncio.wait(apps)
            for node in self.nodes.values():
                node.stopping.set()
            await asyncio.wait(tasks)

    async def _visit(self, place: str, way_s: float, stay_s: float) -> None:
        await asyncio.sleep(way_s * self.pace)
        self.say(f"the ferry is at the {place}")
        ferry, there = self.nodes["ferry"].links, self.nodes[place].links
        port = self.ports[place]["tcpcl"] or 0
        ferry.heard(Beacon(there.me.envelope.node, 10, (("tcpcl", port),), there.me.network), "127.0.0.1")
        await asyncio.sleep(stay_s * self.pace)
        for connection in list(ferry.connections):
            connection.transport.abort()
        self.say(f"the ferry has left the {place}")

    async def _measure(self) -> None:
        """A sensor beside the barn."""
        async with Node(port=self.ports["barn"]["mqtt"] or 0, name="sensor") as barn:
            self.say("a sensor at the barn publishes field/1, once a second")
            for number in range(8):
                self.published[number] = self.now_s()
                await barn.publish("field/1", {"n": number, "t": 20 + number % 6}, qos=2)
                await asyncio.sleep(self.pace)

    async def _listen(self, name: str, filter: str, where: str) -> None:
        """An application beside the house."""
        async with Node(port=self.ports["house"]["mqtt"] or 0, name=name) as house:
            async for message in house.messages(filter, where=where, qos=2):
                number = message.json()["n"]
                self.heard[name].append(number)
                if name == "display":
                    self.delays_s.append(self.now_s() - self.published[number])
                    self.say(
                        f"the house hears {message.topic} {message.payload.decode()}, {self.delays_s[-1]:.1f} s old"
                    )
                else:
                    self.say(f"the alarm at the house, which asked for t >= 24, hears {message.payload.decode()}")


def play(tell: Callable[[str], None] = print, pace: float = 1.0) -> bool:
    """Play the demo; whether every message has arrived once."""
    with tempfile.TemporaryDirectory(prefix="serai-demo-") as folder:
        demo = Demo(tell, pace)
        asyncio.run(demo.run(Path(folder)))
    display, alarm, count = demo.heard["display"], demo.heard["alarm"], len(demo.published)
    once = display == list(range(count)) and alarm == [number for number in range(count) if number % 6 >= 4]
    mean_s = sum(demo.delays_s) / max(1, len(demo.delays_s))
    verdict = "each once, in order" if once else "NOT as it should be"
    tell(f"{count} published, {len(display)} arrived, mean delay {mean_s:.1f} s: {verdict}.")
    return once
