"""Emulation by the clock: nodes with sockets and disks, in one process or one each, through a scenario's contacts.

A contact is a wire of TCP that carries as much as the scenario's links do, and is cut at its end. Times pass `speed`
times as fast as in the scenario, for the nodes as well. What takes a moment, a session's beginning and the disk, takes
one here: so only deliveries are compared, as a set, and how much later they were is told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from serai.core.errors import BadInput
from serai.node.emulation.node import LiveNode, Pace, Remote, Start
from serai.node.emulation.wire import Wire
from serai.node.emulation.world import rows_of_sources, store_name
from serai.node.parts import PART_BYTES
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import Given

_BEGIN_S: Final = 0.2  # from when all nodes are there
_ENVELOPE_BYTES: Final = 120  # of a bundle, besides its payload
_SKEW_S: Final = 60.0


class Event(NamedTuple):
    """What is to happen, in the order of simulations where it is at one instant."""

    at_s: float
    order: int
    what: str
    row: int


def check_real(given: Given) -> None:
    """Refuse what would be counted otherwise over TCP."""
    largest = int(given.published.bundles.size_bytes.max(initial=0))
    if largest > PART_BYTES:
        raise BadInput(f"bundles of {largest} bytes: above {PART_BYTES} real nodes send several; choose smaller ones")


class Conductor:
    """Starts nodes, makes and cuts wires, lets applications publish and subscribe."""

    def __init__(
        self, scenario: OpportunisticScenario, given: Given, folder: Path, speed: float, processes: bool
    ) -> None:
        self.scenario, self.given, self.folder, self.speed, self.processes = scenario, given, folder, speed, processes
        self.nodes: list[LiveNode | Remote] = []
        self.ports: list[int] = []
        self.wires: dict[int, Wire] = {}
        self.worst_s = 0.0

    async def conduct(self) -> None:
        """From the first instant to the last."""
        self.folder.mkdir(parents=True)
        rows = rows_of_sources(self.given)
        settings = {
            "store_bytes": self.scenario.nodes.store_bytes, "store_bundles": 1 << 60, "waiting_bytes": 1 << 60,
            "when_full": self.scenario.nodes.when_full, "keep_own": self.scenario.nodes.keep_own, "skew_s": _SKEW_S,
            "each_interest": True, "entries": 1 << 60, "entries_of_peer": 1 << 60,
        }  # fmt: skip
        kind = Remote if self.processes else LiveNode
        for number, carries in enumerate(self.given.carries.tolist()):
            start = Start(number, self.folder, self.scenario.protocol, settings | {"carries": carries}, rows)
            self.nodes.append(kind(start))
        try:
            self.ports = list(await asyncio.gather(*(node.open() for node in self.nodes)))
            pace = Pace(time.monotonic() + _BEGIN_S, self.speed)
            for node in self.nodes:
                node.begin(*pace)
            for event in sorted(self._events()):
                await asyncio.sleep(pace.until_s(event.at_s))
                self.worst_s = max(self.worst_s, pace.now_s() - event.at_s)
                await getattr(self, event.what)(event.row)
            await asyncio.sleep(pace.until_s(float(self.scenario.duration_s)))
        finally:
            for wire in self.wires.values():
                wire.cut()
            await asyncio.gather(*(node.close() for node in self.nodes))

    def _events(self) -> Iterator[Event]:
        contacts, bundles, wanted = self.given.contacts, self.given.published.bundles, self.given.wanted.subscriptions
        kinds = (("down", contacts.down_s), ("subscribe", wanted.from_s), ("unsubscribe", wanted.to_s),
                 ("publish", bundles.created_s), ("up", contacts.up_s))  # fmt: skip
        for order, (what, times_s) in enumerate(kinds):
            for row, at_s in enumerate(times_s.tolist()):
                if at_s <= self.scenario.duration_s:
                    yield Event(at_s, order, what, row)

    def stores(self) -> list[Path]:
        """Where the nodes' stores are, in the order of the nodes."""
        return [self.folder / store_name(number) for number in range(len(self.given.names))]

    # -- what happens

    async def up(self, row: int) -> None:
        """A contact begins: the first of both dials."""
        a, b = int(self.given.contacts.a[row]), int(self.given.contacts.b[row])
        wire = self.wires[row] = Wire(self.ports[b], float(self.scenario.radio.rate_bps) / 8 * self.speed)
        self.nodes[a].meet(b, await wire.open())

    async def down(self, row: int) -> None:
        """It is over."""
        self.nodes[int(self.given.contacts.a[row])].part(int(self.given.contacts.b[row]))
        self.wires.pop(row).cut()

    async def subscribe(self, row: int) -> None:
        """An application asks for a channel."""
        wanted = self.given.wanted.subscriptions
        self.nodes[wanted.node[row]].subscribe(f"s{row}", self.given.published.channels[wanted.channel[row]])

    async def unsubscribe(self, row: int) -> None:
        """It does not any more."""
        self.nodes[self.given.wanted.subscriptions.node[row]].unsubscribe(f"s{row}")

    async def publish(self, row: int) -> None:
        """An application publishes as many bytes as make the bundle as large as in the scenario."""
        bundles = self.given.published.bundles
        topic, size = self.given.published.channels[bundles.channel[row]], int(bundles.size_bytes[row])
        payload = max(0, size - _ENVELOPE_BYTES)
        self.nodes[bundles.source[row]].publish(topic, payload, float(bundles.lifetime_s[row]), size)
