"""Emulation in memory: real cores with real stores, equal to the simulation to the last bit.

The cores are joined in memory, by a clock that is only a number. Lists and bundles go from one to the other as the
bytes of the wire; a link charges for them what the rules say (`list_bytes`, a bundle's size), and carries one at a
time, as links of simulations do. What the nodes logged is then a run like the simulated one, and must be equal to it.

The wire has whole milliseconds, so the times of the scenario are rounded to them, for both.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from serai.core.order import key_in_slot
from serai.core.streams import order_key
from serai.node.bundle.message import Envelope, onward
from serai.node.core import Node
from serai.node.emulation.world import NETWORK, as_run, eid_of, number_of, recorded, rows_of_sources, store_name
from serai.node.routing import routing
from serai.node.settings import NodeSettings
from serai.node.store import Store
from serai.node.wire.lists import JournalKnown, decode_words, encode_known, encode_list
from serai.node.words import (
    Accept,
    Effects,
    ListMessage,
    Message,
    Queued,
    Refuse,
    SendBundle,
    SendKnown,
    SendList,
    Subscription,
)
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.rules import instant_key, transfer_s
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import Given
from serai.world.grid import Floats


def run_nodes(scenario: OpportunisticScenario, given: Given, seed: int, folder: Path) -> OpportunisticRun:
    """What the nodes make of it, as their logs tell."""
    emulation = Emulation(scenario, given, seed, folder)
    try:
        emulation.run()
    finally:
        emulation.close()
    found = recorded(scenario, given, [machine.path for machine in emulation.machines])
    return as_run(scenario, given, seed, found)


@dataclass
class Link:
    """One direction of a contact, and what it carries."""

    sender: int
    receiver: int
    order: int
    word: SendList | SendBundle | None = None
    data: bytes = b""  # of the bundle, as it was when its transfer began


class Machine:
    """A node with its store; its applications take what waits for them at once."""

    def __init__(self, number: int, folder: Path, settings: dict[str, Any]) -> None:
        self.eid = eid_of(number)
        self.path = folder / store_name(number)
        self.store = Store.open(self.path, number.to_bytes(8), "crash")
        self.envelope = Envelope(self.eid, NETWORK)
        self.node = Node(
            NodeSettings(self.eid, **settings), self.store.saved(), self.envelope.encode, data=self.store.data
        )
        self.perform(self.node.started(0.0))

    def perform(self, effects: Effects) -> deque[Any]:
        """Commit the rows; the words that may be said then, but for those to applications, which are said."""
        self.store.commit([effects])
        left: deque[Any] = deque()
        for word in effects.words:
            if isinstance(word, Queued):
                for queued in list(self.node.outbox(word.session)):
                    self.perform(self.node.outbox_done(word.session, queued.bundle))
            else:
                left.append(word)
        return left


class Emulation:
    """All nodes and the links between them; what happens at an instant happens in the order of simulations."""

    def __init__(self, scenario: OpportunisticScenario, given: Given, seed: int, folder: Path) -> None:
        self.given, self.rate_bps, self.end_s = given, float(scenario.radio.rate_bps), float(scenario.duration_s)
        self.key = order_key(seed)
        folder.mkdir(parents=True)
        rows = rows_of_sources(given)
        common = {
            **routing(scenario.protocol), "store_bytes": scenario.nodes.store_bytes, "store_bundles": 1 << 60,
            "waiting_bytes": 1 << 60, "when_full": scenario.nodes.when_full, "keep_own": scenario.nodes.keep_own,
            "skew_s": 0.0, "window_transfers": 1, "key": self.key, "fixed_rate": True, "each_interest": True,
            "mark_of_node": number_of, "entries": 1 << 60, "entries_of_peer": 1 << 60,
            "mark_of_bundle": lambda source, created_ms, sequence, offset: rows[number_of(source)][sequence - 1],
        }  # fmt: skip
        self.machines = [
            Machine(node, folder, common | {"carries": bool(carries)}) for node, carries in enumerate(given.carries)
        ]
        self.links: dict[tuple[int, int], Link] = {}
        self.of_node: dict[int, dict[int, Link]] = {node: {} for node in range(len(self.machines))}
        self.under_way: list[tuple[float, int, int, int]] = []  # heap of (end, sender, receiver, order)
        self.contacts = 0
        self.now_s = -math.inf

    def close(self) -> None:
        """Leave the stores to others."""
        for machine in self.machines:
            machine.store.close()

    # -- time

    def run(self) -> None:
        """From the first instant to the last."""
        contacts, bundles, wanted = self.given.contacts, self.given.published.bundles, self.given.wanted.subscriptions
        ups, births = _Agenda(contacts.up_s), _Agenda(bundles.created_s)
        begins, ends, downs = _Agenda(wanted.from_s), _Agenda(wanted.to_s), _Agenda(contacts.down_s)
        agendas = (ups, births, begins, ends, downs)
        while (now_s := min(*(agenda.next_s for agenda in agendas), self._next_s())) <= self.end_s:
            self._finish(now_s)
            for contact in downs.until(now_s):
                self._contact_down(int(contacts.a[contact]), int(contacts.b[contact]), now_s)
            for machine in self.machines:
                if machine.node.due_s() <= now_s:
                    machine.perform(machine.node.tick(now_s))
            for row in begins.until(now_s):
                self._subscribe(row, now_s)
            for row in ends.until(now_s):
                machine = self.machines[wanted.node[row]]
                machine.perform(machine.node.unsubscribed(f"s{row}", "t", now_s))
            for row in births.until(now_s):
                self._publish(row, now_s)
            for contact in ups.until(now_s):
                self._contact_up(int(contacts.a[contact]), int(contacts.b[contact]), now_s)
            self._take_turns(now_s)
        for machine in self.machines:
            machine.perform(machine.node.stop(self.end_s))

    def _next_s(self) -> float:
        """When something is due that nobody has planned: the end of a transfer, an expiry, a list."""
        busy = self.under_way[0][0] if self.under_way else math.inf
        return min([busy, *(self._due_s(node, machine) for node, machine in enumerate(self.machines))])

    def _due_s(self, number: int, machine: Machine) -> float:
        node = machine.node
        lists = [
            node.router.contacts[eid_of(peer)].due_s for peer, link in self.of_node[number].items() if link.word is None
        ]
        return min(node.holdings.next_expiry_s(), *(due_s for due_s in lists if due_s > self.now_s), math.inf)

    # -- what happens

    def _subscribe(self, row: int, now_s: float) -> None:
        wanted = self.given.wanted.subscriptions
        machine, topic = self.machines[wanted.node[row]], self.given.published.channels[wanted.channel[row]]
        client = f"s{row}"
        machine.perform(
            machine.node.session_opened(client, now_s, clean=True, version=5, lifetime_s=math.inf, will=None)
        )
        machine.perform(machine.node.subscribed(Subscription(0, client, "t", f"t:{topic}", options=0x20), now_s))

    def _publish(self, row: int, now_s: float) -> None:
        bundles = self.given.published.bundles
        machine = self.machines[bundles.source[row]]
        message = Message(self.given.published.channels[bundles.channel[row]], b"")
        lifetime_s, size = float(bundles.lifetime_s[row]), int(bundles.size_bytes[row])
        machine.perform(machine.node.published("publisher", message, lifetime_s, now_s, size))

    def _contact_up(self, a: int, b: int, now_s: float) -> None:
        known: list[SendKnown] = []
        for one, other in ((a, b), (b, a)):
            machine, peer = self.machines[one], self.machines[other]
            carries, epoch = peer.node.settings.carries, peer.node.epoch
            words = machine.perform(
                machine.node.contact_up(peer.eid, now_s, self.rate_bps, carries=carries, epoch=epoch)
            )
            self.links[one, other] = self.of_node[one][other] = Link(one, other, self.contacts)
            known += [word for word in words if isinstance(word, SendKnown)]
        self.contacts += 1
        for word, sender in zip(known, (a, b), strict=True):
            self._tell_known(eid_of(sender), word, now_s)

    def _tell_known(self, sender: str, word: SendKnown, now_s: float) -> None:
        """How far a journal is known; costs nothing: simulations have no such thing."""
        said = decode_words(encode_known(JournalKnown(word.epoch, word.upto)))
        assert isinstance(said, JournalKnown)
        peer = self.machines[number_of(word.peer)]
        peer.perform(peer.node.journal_known(sender, said.epoch, said.upto, now_s))

    def _contact_down(self, a: int, b: int, now_s: float) -> None:
        for one, other in ((a, b), (b, a)):
            machine = self.machines[one]
            machine.perform(machine.node.contact_down(eid_of(other), now_s))
            del self.links[one, other], self.of_node[one][other]

    def _take_turns(self, now_s: float) -> None:
        self.now_s = now_s
        key = instant_key(self.key, now_s)
        busy = [node for node, links in self.of_node.items() if links]
        for node in sorted(busy, key=lambda node: (key_in_slot(key, node), node)):
            machine = self.machines[node]
            for peer, link in self.of_node[node].items():
                if link.word is None:
                    for word in machine.perform(machine.node.next_transfer(eid_of(peer), now_s)):
                        link.word = word
                        link.data = machine.store.data(word.id) if isinstance(word, SendBundle) else b""
                        end_s = now_s + transfer_s(word.size_bytes, self.rate_bps)
                        heapq.heappush(self.under_way, (end_s, node, peer, link.order))

    def _finish(self, now_s: float) -> None:
        """What has been sent by now arrives; what a broken contact carried does not."""
        while self.under_way and self.under_way[0][0] <= now_s:
            _, one, other, order = heapq.heappop(self.under_way)
            link = self.links.get((one, other))
            if link is None or link.order != order:
                continue
            word, link.word = link.word, None
            sender, receiver = self.machines[one], self.machines[other]
            if isinstance(word, SendList):
                message = decode_words(encode_list(word.message))
                assert isinstance(message, ListMessage)
                for said_now in receiver.perform(receiver.node.list_received(sender.eid, message, now_s)):
                    if isinstance(said_now, SendKnown):
                        self._tell_known(receiver.eid, said_now, now_s)
                sender.perform(sender.node.acknowledged(receiver.eid, word.transfer, now_s))
                continue
            assert isinstance(word, SendBundle)
            age_ms = round(now_s * 1000) - word.begins_ms
            arrived = receiver.envelope.open(onward(link.data, sender.eid, age_ms, word.hops + 1))
            header = arrived.header._replace(size_bytes=word.size_bytes)
            said = receiver.perform(
                receiver.node.bundle_received(sender.eid, word.transfer, header, arrived.data, now_s)
            )
            for answer in said:
                if isinstance(answer, Accept):
                    sender.perform(sender.node.acknowledged(receiver.eid, word.transfer, now_s))
                elif isinstance(answer, Refuse):
                    sender.perform(sender.node.refused(receiver.eid, word.transfer, answer.reason, now_s))


class _Agenda:
    """Rows in order of time, those of one time in the order in which they stand."""

    def __init__(self, times_s: Floats) -> None:
        order = np.argsort(times_s, kind="stable")
        self._rows = deque(zip(times_s[order].tolist(), order.tolist(), strict=True))

    @property
    def next_s(self) -> float:
        """The time of the next one."""
        return self._rows[0][0] if self._rows else math.inf

    def until(self, now_s: float) -> Iterator[int]:
        """All up to a time, once."""
        while self._rows and self._rows[0][0] <= now_s:
            yield self._rows.popleft()[1]
