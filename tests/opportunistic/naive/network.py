"""The obvious simulator of an opportunistic network: nodes as objects, links as objects, everybody asked every time.

It drives `Node`, or as a live node would `serai.opportunistic.router.Router`, and knows nothing of bits, windows, heaps
or lines: at every instant at which anything happens it looks at all links, bundles and subscriptions, and gives all
nodes a turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.opportunistic.naive.nouns import Bundle
from tests.opportunistic.naive.orders import of_instant, with_who


@dataclass
class Link:
    """One direction of a contact."""

    sender: int
    receiver: int
    serial: int  # contacts in the order in which they began
    message: Any = None  # a list, or a bundle
    start_s: float = 0.0
    end_s: float = math.inf


@dataclass
class Result:
    """What happened."""

    deliveries: list[tuple[float, int, int, int]] = field(default_factory=list)  # time, bundle, node, hops
    transfers: list[tuple[float, float, int, int, int, int, str]] = field(default_factory=list)
    drops: list[tuple[float, int, int, str]] = field(default_factory=list)  # time, bundle, node, reason
    control_bytes: int = 0
    lists: int = 0
    listings: list[tuple[float, float, int, int, int, str]] = field(default_factory=list)
    contacts: int = 0
    stored: dict[int, list[tuple[float, int]]] = field(default_factory=dict)  # of each node: bytes from each time on

    def byte_s(self, node: int, end_s: float) -> float:
        """The integral of what a node's store held."""
        rows = [*self.stored.get(node, []), (end_s, 0)]
        return sum(held * (then - since) for (since, held), (then, _) in pairwise(rows))


class Network:
    """All nodes, and what is given."""

    def __init__(self, world: Any, medium: Any, settings: dict[str, Any], node_of: Callable[[int, bool], Any]) -> None:
        """`node_of(number, carries)` makes a node."""
        self.world, self.medium = world, medium
        self.nodes = [node_of(node, bool(world.carries[node])) for node in range(world.nodes)]
        self.all_links = settings.get("variant") == "the-one"  # the best for all neighbours goes first
        always = settings["name"] in ("dpsp", "prophet", "prophet2") and not self.all_links
        self.has_lists = settings["seen"] != "live" or always
        self.wanted_first = settings["wanted_first"]
        self.links: list[Link] = []
        self.result = Result()
        self.now_s = -1.0
        self.down_s: dict[int, float] = {}  # of each contact
        rows = world.bundles
        self.to_come = [
            Bundle(number, int(source), int(channel), float(created), int(size), float(lifetime))
            for number, (source, channel, created, size, lifetime) in enumerate(zip(*rows, strict=True))
        ]
        contacts = [
            (self.seen_s(up), self.seen_s(down), int(a), int(b))
            for a, b, up, down in zip(*world.contacts, strict=True)
            if self.seen_s(up) < self.seen_s(down) and self.seen_s(up) <= medium.duration_s
        ]
        self.contacts = sorted(contacts, key=lambda m: (m[0], m[2], m[3]))
        subscriptions = world.subscriptions
        self.subscriptions = [
            (int(node), int(channel), max(float(start), 0.0), float(end))
            for node, channel, start, end in zip(*subscriptions, strict=True)
        ]
        self.begun: set[int] = set()
        self.over: set[int] = set()

    def seen_s(self, time_s: float) -> float:
        """When a change of a contact is noticed."""
        step_s = self.medium.step_s
        return math.ceil(time_s / step_s) * step_s if step_s else float(time_s)

    # ---- time

    def run(self) -> Result:
        """From the first instant to the last."""
        if self.medium.step_s:
            self.run_ticks()
        else:
            self.run_events()
        for link in self.links:
            if link.message is not None:
                self.give_up(link, "unfinished", self.medium.duration_s)
        return self.result

    def run_events(self) -> None:
        while True:
            now_s = self.next_s()
            if now_s > self.medium.duration_s:
                return
            for link in self.due(now_s):
                self.finish(link, now_s)
            self.end_contacts(now_s)
            self.expire(now_s)
            self.change_subscriptions(now_s)
            self.give_births(now_s)
            self.begin_contacts(now_s)
            self.take_turns(now_s)

    def run_ticks(self) -> None:
        tick = 0
        while tick * self.medium.step_s <= self.medium.duration_s:
            tick_s = tick * self.medium.step_s
            while self.to_come and self.to_come[0].created_s <= min(tick_s, self.medium.duration_s):
                now_s = self.to_come[0].created_s
                self.expire(now_s)
                self.change_subscriptions(now_s)
                self.give_births(now_s)
                self.take_turns(now_s)
            self.end_contacts(tick_s)
            self.expire(tick_s)
            self.change_subscriptions(tick_s)
            self.begin_contacts(tick_s)
            self.take_turns(tick_s)
            tick += 1

    def next_s(self) -> float:
        """The next time at which anything happens."""
        times = [link.end_s for link in self.links if link.message is not None]
        times += [m[0] for m in self.contacts] + [self.ends_s(link) for link in self.links]
        times += [bundle.created_s for bundle in self.to_come]
        times += [r.seen[n].expires_s for r in self.nodes for n in r.seen]
        times += [s[2] for i, s in enumerate(self.subscriptions) if i not in self.begun]
        times += [s[3] for i, s in enumerate(self.subscriptions) if i in self.begun - self.over]
        for link in self.links:
            due_s = self.nodes[link.sender].contacts[link.receiver].due_s
            if self.has_lists and link.message is None and due_s > self.now_s:
                times.append(due_s)
        self.now_s = min(times, default=math.inf)
        return self.now_s

    def ends_s(self, link: Link) -> float:
        return self.down_s[link.serial]

    # ---- what happens

    def due(self, now_s: float) -> list[Link]:
        ready = [link for link in self.links if link.message is not None and link.end_s <= now_s]
        return sorted(ready, key=lambda link: (link.end_s, link.sender, link.receiver))

    def end_contacts(self, now_s: float) -> None:
        ending = sorted({(self.ends_s(link), link.serial) for link in self.links if self.ends_s(link) <= now_s})
        for _, serial in ending:
            pair = sorted((link for link in self.links if link.serial == serial), key=lambda link: link.sender)
            for link in pair:
                if link.message is not None:
                    if link.end_s <= now_s:
                        self.finish(link, now_s)
                    else:
                        self.give_up(link, "broken", now_s)
            for link in pair:
                self.nodes[link.sender].contact_down(link.receiver)
                self.links.remove(link)

    def begin_contacts(self, now_s: float) -> None:
        while self.contacts and self.contacts[0][0] <= now_s:
            _, down_s, a, b = self.contacts.pop(0)
            serial = self.result.contacts
            self.result.contacts += 1
            self.down_s[serial] = down_s
            for one, other in ((a, b), (b, a)):
                peer = self.nodes[other]
                self.nodes[one].contact_up(other, now_s, self.medium.rate_bps, peer.carries, peer)
                self.links.append(Link(one, other, serial))

    def expire(self, now_s: float) -> None:
        over = sorted({(b.expires_s, n) for r in self.nodes for n, b in r.seen.items() if b.expires_s <= now_s})
        gone = {(node, bundle.mark) for node, r in enumerate(self.nodes) for bundle in r.expire(now_s)}
        for _, number in over:
            for node in range(self.world.nodes):
                if (node, number) in gone:
                    self.drop(now_s, number, node, "expired")

    def drop(self, now_s: float, number: int, node: int, reason: str) -> None:
        self.result.drops.append((now_s, number, node, reason))
        self.note_store(node, now_s)

    def note_store(self, node: int, now_s: float) -> None:
        held = sum(copy.bundle.size_bytes for copy in self.nodes[node].store.values())
        self.result.stored.setdefault(node, []).append((now_s, held))

    def change_subscriptions(self, now_s: float) -> None:
        for id, (node, channel, start_s, end_s) in enumerate(self.subscriptions):
            if start_s <= now_s and id not in self.begun:
                self.begun.add(id)
                if end_s <= now_s:  # nobody has noticed it
                    self.over.add(id)
                    continue
                for bundle in self.nodes[node].subscribe(id, channel, now_s, start_s):
                    hops = self.nodes[node].store[bundle.mark].hops
                    self.result.deliveries.append((now_s, bundle.mark, node, hops))
        for id, (node, _, _, end_s) in enumerate(self.subscriptions):
            if end_s <= now_s and id in self.begun - self.over:
                self.over.add(id)
                self.nodes[node].unsubscribe(id, now_s)

    def give_births(self, now_s: float) -> None:
        while self.to_come and self.to_come[0].created_s <= now_s:
            bundle = self.to_come.pop(0)
            stored, evicted = self.nodes[bundle.source].publish(bundle, now_s)
            for gone in evicted:
                self.drop(now_s, gone.mark, bundle.source, "evicted")
            if not stored:
                reason = "expired" if bundle.expires_s <= now_s else "full"
                self.drop(now_s, bundle.number, bundle.source, reason)
            self.note_store(bundle.source, now_s)

    # ---- turns

    def take_turns(self, now_s: float) -> None:
        key = of_instant(self.medium.key, now_s)
        for node in sorted(range(self.world.nodes), key=lambda node: (with_who(key, node), node)):
            own = [link for link in self.links if link.sender == node]
            if self.medium.step_s:
                for link in own:
                    if link.message is not None and link.end_s <= now_s:
                        self.finish(link, now_s)
                for bundle in self.nodes[node].drop_old(now_s) if self.medium.lifetime_unit_s else []:
                    self.drop(now_s, bundle.number, node, "expired")
            if self.medium.single:
                self.do_one_thing(own, now_s)
                continue
            for link in own:
                if link.message is None:
                    self.begin(link, self.nodes[node].next_message(link.receiver, now_s), now_s)

    def do_one_thing(self, own: list[Link], now_s: float) -> None:
        """Lists, then what a neighbour wants, then what a neighbour has for this node, then anything."""
        back = {(link.sender, link.receiver): link for link in self.links}
        theirs = [back[link.receiver, link.sender] for link in own]
        wanted = self.wanted_first
        tries = [(link, "list") for link in own]
        tries += [(link, "wanted") for link in own] * wanted + [(link, "wanted") for link in theirs] * wanted
        tries += [(link, "any") for link in (self.likeliest_first(own, now_s) if self.all_links else own)]
        for link, what in tries:
            if self.is_busy(link.sender) or self.is_busy(link.receiver):
                continue
            sender = self.nodes[link.sender]
            if what == "list":
                message = sender.next_list(link.receiver, now_s)
            else:
                message = sender.next_bundle(link.receiver, now_s, what == "wanted")
            self.begin(link, message, now_s)
            if message is not None:
                return

    def likeliest_first(self, own: list[Link], now_s: float) -> list[Link]:
        """The links by how likely their receivers are to deliver what would go to them (PRoPHET of The ONE)."""
        able = [link for link in own if not self.is_busy(link.sender) and not self.is_busy(link.receiver)]
        best = {link.receiver: self.nodes[link.sender].best(link.receiver, now_s) for link in able}
        some = [link for link in able if best[link.receiver] is not None]
        worth = {}
        for link in some:
            node, copy = self.nodes[link.sender], best[link.receiver]
            contact = node.contacts[link.receiver]
            first = self.wanted_first and node.protocol.is_wanted(contact, copy)
            worth[link.receiver] = (not first, -node.protocol.chances(contact, copy)[0])
        return sorted(some, key=lambda link: worth[link.receiver])

    def is_busy(self, node: int) -> bool:
        return any(link.message is not None and node in (link.sender, link.receiver) for link in self.links)

    def begin(self, link: Link, message: Any, now_s: float) -> None:
        if message is not None:
            link.message, link.start_s = message, now_s
            link.end_s = now_s + message.size_bytes * 8 / self.medium.rate_bps

    def finish(self, link: Link, now_s: float) -> None:
        message, link.message = link.message, None
        sender, receiver = self.nodes[link.sender], self.nodes[link.receiver]
        if is_list(message):
            self.result.control_bytes += message.size_bytes
            self.result.lists += 1
            self.result.listings.append(
                (link.start_s, now_s, message.size_bytes, link.sender, link.receiver, "relayed")
            )
            receiver.receive_control(link.sender, message, now_s)
            sender.sent(link.receiver, message, accepted=True)
            return
        got = receiver.receive_data(link.sender, message, now_s)
        sender.sent(link.receiver, message, accepted=got.fate == "relayed", duplicate=got.fate == "duplicate")
        for gone in got.evicted:
            self.drop(now_s, gone.mark, link.receiver, "evicted")
        if got.delivered:
            self.result.deliveries.append((now_s, message.bundle.mark, link.receiver, message.hops + 1))
        self.note_store(link.receiver, now_s)
        self.note_store(link.sender, now_s)
        self.note_transfer(link, message, now_s, message.size_bytes, got.fate)

    def give_up(self, link: Link, fate: str, now_s: float) -> None:
        message, link.message = link.message, None
        sent = min(message.size_bytes, int((now_s - link.start_s) * self.medium.rate_bps / 8))
        self.nodes[link.sender].sent(link.receiver, message, accepted=False, arrived=False)
        if is_list(message):
            self.result.control_bytes += sent
            self.result.listings.append((link.start_s, now_s, sent, link.sender, link.receiver, fate))
        else:
            self.note_transfer(link, message, now_s, sent, fate)

    def note_transfer(self, link: Link, message: Any, now_s: float, sent: int, fate: str) -> None:
        row = (link.start_s, now_s, sent, message.bundle.mark, link.sender, link.receiver, fate)
        self.result.transfers.append(row)


def is_list(message: Any) -> bool:
    """Whether a message is a list, not a bundle."""
    return not hasattr(message, "bundle")
