"""The plain engine: it drives one `Router` object per node through a world of contacts (docs/opportunistic/dpsp.md).

Same worlds, same rules and same outcome as the compiled loop (`serai.opportunistic.engine`), in Python. Which bundles a
node has is a whole number of any length with one bit per bundle, so that a queue is two operations on numbers.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from serai.opportunistic.engine.setup import contacts_that_count
from serai.opportunistic.engine.state import Medium, Outcome
from serai.opportunistic.kit.exchange import Exchange
from serai.opportunistic.kit.nodes import IDLE, Link, Node
from serai.opportunistic.kit.router import Copy, Peer, Router
from serai.opportunistic.rules import RouterRules, has_unit_left, instant_key, is_expired
from serai.opportunistic.world import ContactWorld, check
from serai.world.orders import order_of


class Network(Exchange):
    """A run: what happens, in its order."""

    def __init__(self, world: ContactWorld, medium: Medium, router: type[Router], settings: Any, rules: RouterRules):
        check(world)
        super().__init__(world, medium, router, settings, rules)
        self.every_s: float | None = None  # as the routers say when they start
        self.asking: dict[int, dict[Node, None]] = {}  # who wants what is on a channel
        self.tick = self.periods = self.up = self.born = self.over = self.aged = self.began = self.ended = 0
        self.contacts = contacts_that_count(world.contacts, medium)
        self.down: list[tuple[float, int, Link]] = []  # when contacts end, a heap
        expires_s = world.bundles.created_s + world.bundles.lifetime_s
        self.expires_s = expires_s.tolist()
        self.by_expiry = order_of(expires_s).tolist()
        self.from_s = [max(since, 0.0) for since in world.subscriptions.from_s.tolist()]
        self.to_s = world.subscriptions.to_s.tolist()
        self.by_end = order_of(world.subscriptions.to_s).tolist()
        self.noticed = [False] * len(self.to_s)

    def run(self) -> Outcome:
        """From the first instant to the last."""
        for node in self.nodes:
            self.at_node = node.number
            node.router.start()
            self.rules = self.rules._replace(leaves_out_seen=bool(node.router.leaves_out_seen))
            self.every_s = node.router.every_s
            self.free_lists, self.best_of_links = bool(node.router.free_lists), bool(node.router.best_of_links)
        self.choosing = self.choosing._replace(rules=self.rules)
        ticks = self.medium.step_s > 0
        while True:
            birth_only = self.go_to_next_instant()
            if self.now_s > self.medium.duration_s:
                break
            self.key = instant_key(self.medium.key, self.now_s)
            if not ticks:
                self.finish_what_is_due()
            if not birth_only:
                self.end_contacts()
            self.expire()
            self.change_subscriptions()
            self.give_births()
            if not birth_only:
                self.begin_contacts()
            self.call_periodic()
            self.take_turns(ticks)
        self.now_s = self.medium.duration_s
        for node in self.nodes:
            for link in node.links.values():
                if link.message is not None:
                    self.give_up(link, "unfinished")
        return self.log.outcome(self.nodes, self.up)

    def go_to_next_instant(self) -> bool:
        """Set the clock to the next instant at which something happens; whether it is a birth between ticks."""
        created_s = self.world.bundles.created_s
        born_s = float(created_s[self.born]) if self.born < len(created_s) else IDLE
        if self.medium.step_s > 0:
            tick_s = self.tick * self.medium.step_s
            if born_s <= tick_s:
                self.now_s = born_s
                return True
            self.tick += 1
            self.now_s = tick_s
            return False
        times = [born_s]
        if self.up < len(self.contacts.a):
            times.append(float(self.contacts.up_s[self.up]))
        if self.down:
            times.append(self.down[0][0])
        if self.over < len(self.by_expiry):
            times.append(self.expires_s[self.by_expiry[self.over]])
        if self.began < len(self.from_s):
            times.append(self.from_s[self.began])
        if self.ended < len(self.to_s):
            times.append(self.to_s[self.by_end[self.ended]])
        if self.every_s:
            times.append(self.periods * self.every_s)
        while self.heap and (self.heap[0][4].when_s != self.heap[0][0] or not self.heap[0][4].open):
            heapq.heappop(self.heap)
        if self.heap:
            times.append(self.heap[0][0])
        self.now_s = min(times)
        return False

    def finish_what_is_due(self) -> None:
        """Transfers that end now have arrived; senders of lists that are due now may send them."""
        while self.heap and self.heap[0][0] <= self.now_s:
            when_s, _, _, _, link = heapq.heappop(self.heap)
            if link.when_s != when_s or not link.open:
                continue
            link.when_s = IDLE
            if link.message is None:
                self.stir(link.sender)
            else:
                self.finish(link)

    def call_periodic(self) -> None:
        """Routers that asked for it are called at multiples of their period."""
        every_s = self.every_s
        if not every_s:
            return
        while self.periods * every_s <= self.now_s:
            self.periods += 1
            for node in self.nodes:
                self.call(node, "periodic", self.now_s)
                self.stir(node)

    def end_contacts(self) -> None:
        """Contacts that end now are over, and what was under way in them is broken."""
        while self.down and self.down[0][0] <= self.now_s:
            link = heapq.heappop(self.down)[2]
            pair = (link, link.back)
            for side in pair:
                if side.message is not None:
                    if side.end_s <= self.now_s:  # at a tick: it ended since the last one
                        self.finish(side)
                    else:
                        self.give_up(side, "broken")
                if self.medium.single:
                    self.stir_neighbours(side.sender)
                    self.stir(side.sender)
            for side in pair:
                side.open = False
                del side.sender.links[side.receiver.number]
            for side in pair:
                self.call(side.sender, "contact_down", side.peer, self.now_s)

    def begin_contacts(self) -> None:
        """Contacts that begin now: nobody knows anything of the other yet."""
        contacts = self.contacts
        while self.up < len(contacts.a) and contacts.up_s[self.up] <= self.now_s:
            one, other = self.nodes[contacts.a[self.up]], self.nodes[contacts.b[self.up]]
            down_s = float(contacts.down_s[self.up])
            there, back = self._link(one, other, down_s), self._link(other, one, down_s)
            there.back, back.back = back, there
            heapq.heappush(self.down, (down_s, self.up, there))
            self.up += 1
            for link in (there, back):
                link.sender.links[link.receiver.number] = link
                self.call(link.sender, "contact_up", link.peer, self.now_s)
                self.stir(link.sender)
                if not self.rules.lists:
                    self.count_wanted(link.sender, link.receiver.wants.keys())
            if self.rules.lists and self.free_lists:
                self.exchange_for_nothing(there)

    def _link(self, sender: Node, receiver: Node, down_s: float) -> Link:
        live = None if self.rules.lists and not self.free_lists else receiver.wants
        peer = Peer(receiver.number, self.now_s, receiver.carries, self.medium.rate_bps, live)
        return Link(sender, receiver, peer, self.now_s, down_s)

    def expire(self) -> None:
        """Bundles whose lifetime is over leave all stores."""
        unit_s = self.medium.lifetime_unit_s
        while unit_s and self.aged < len(self.by_expiry):
            id = self.by_expiry[self.aged]
            if has_unit_left(self.now_s, self.expires_s[id], unit_s):
                break
            self.too_old |= 1 << id
            self.aged += 1
        while self.over < len(self.by_expiry) and is_expired(self.now_s, self.expires_s[self.by_expiry[self.over]]):
            id = self.by_expiry[self.over]
            self.over += 1
            if not self.alive >> id & 1:
                continue
            self.alive &= ~(1 << id)
            for node in self.nodes:
                copy = node.store.get(id)
                if copy is not None:
                    self.drop(node, copy, "expired")

    def change_subscriptions(self) -> None:
        """Subscriptions that begin now, then those that end."""
        rows = self.world.subscriptions
        while self.began < len(self.from_s) and self.from_s[self.began] <= self.now_s:
            number = self.began
            self.began += 1
            node, channel = self.nodes[rows.node[number]], int(rows.channel[number])
            if self.to_s[number] <= self.from_s[number]:
                continue
            self.want(node, channel, +1)
            self.noticed[number] = self.now_s < self.to_s[number]
            if self.noticed[number]:
                node.open[number] = (channel, self.from_s[number])
                for _, copy in sorted(node.store.items()):
                    if copy.channel == channel:
                        self.log.deliver(self.now_s, node, copy)
                self.subscriptions_changed(node)
            if not self.rules.lists:  # the neighbours know at once
                self.stir(node)
                self.stir_neighbours(node)
        while self.ended < len(self.to_s) and self.to_s[self.by_end[self.ended]] <= self.now_s:
            number = self.by_end[self.ended]
            self.ended += 1
            if self.to_s[number] <= self.from_s[number]:
                continue
            node, channel = self.nodes[rows.node[number]], int(rows.channel[number])
            self.want(node, channel, -1)
            node.open.pop(number, None)
            if self.noticed[number]:
                self.subscriptions_changed(node)

    def want(self, node: Node, channel: int, change: int) -> None:
        """A node has one subscription more or less to a channel."""
        count = node.wants.get(channel, 0) + change
        on_channel = self.choosing.on_channel.get(channel, 0)
        if count:
            node.wants[channel] = count
            node.asked |= on_channel
            self.asking.setdefault(channel, {})[node] = None
        else:
            del node.wants[channel], self.asking[channel][node]
            node.asked &= ~on_channel

    def subscriptions_changed(self, node: Node) -> None:
        """Neighbours may see it live; with `announce = "change"` lists are due."""
        node.version += 1
        node.all_changed()
        for link in node.links.values():
            link.receiver.version += 1
            if link.back.asked is not None:
                link.back.asked.forget_all()
            if self.rules.lists and self.rules.announce:
                link.due_s = min(link.due_s, self.now_s)
        if self.rules.lists and self.rules.announce:
            self.stir(node)

    def give_births(self) -> None:
        """Bundles that are created now enter their sources' stores."""
        rows = self.world.bundles
        while self.born < len(rows.source) and rows.created_s[self.born] <= self.now_s:
            id = self.born
            self.born += 1
            node, size = self.nodes[rows.source[id]], int(rows.size_bytes[id])
            is_late = is_expired(self.now_s, self.expires_s[id])
            if is_late or not self.make_room(node, size):
                self.log.drop(self.now_s, id, node.number, "expired" if is_late else "full", held=False)
                continue
            node.seen |= 1 << id
            self.alive |= 1 << id
            channel = int(rows.channel[id])
            self.choosing.on_channel[channel] = self.choosing.on_channel.get(channel, 0) | 1 << id
            for asking in self.asking.get(channel, ()):
                asking.asked |= 1 << id
            copy = Copy(id, node.number, channel, float(rows.created_s[id]), self.expires_s[id], size)
            self.call(node, "created", copy, self.now_s)
            node.put(copy, self.now_s)
            self.stir(node)
            if self.medium.single and self.rules.wanted_first:
                self.stir_neighbours(node)  # they may ask for it before it is offered

    def take_turns(self, ticks: bool) -> None:
        """All in line take their turn, in an order drawn for the instant; at a tick, all who are in contact."""
        for node in self._in_order(ticks):
            self.at_node = node.number
            if ticks and node.busy:
                for link in list(node.links.values()):
                    if link.message is not None and link.end_s <= self.now_s:
                        self.finish(link)
            if self.is_time_to_look(node):
                self.drop_old(node)
            if not self.medium.single:
                for link in node.links.values():
                    if link.message is None:
                        self.begin_list(link)
                    if link.message is None:
                        self.begin_bundle(link)
            elif not node.busy:
                self.do_one_thing(node)
        for node in self.line:
            node.stirred = False
        self.line.clear()

    def _in_order(self, ticks: bool) -> list[Node]:
        if ticks:
            order = np.argsort(self.places.of_all(self.key), kind="stable")
            everybody = (self.nodes[number] for number in order.tolist())
            return [node for node in everybody if node.links or self.is_time_to_look(node)]
        return sorted(self.line, key=lambda node: (self.places.of(self.key, node.number), node.number))

    def is_time_to_look(self, node: Node) -> bool:
        """Whether the node should look for bundles that have too little of their lifetime left."""
        unit_s = self.medium.lifetime_unit_s
        return unit_s > 0 and self.now_s - node.looked_s >= unit_s

    def drop_old(self, node: Node) -> None:
        """Drop what has too little of its lifetime left, unless the node is sending: then it looks when it is done."""
        if any(link.message is not None for link in node.links.values()):
            return
        node.looked_s = self.now_s
        for id, copy in sorted(node.store.items()):
            if self.too_old >> id & 1:
                self.drop(node, copy, "expired")

    def do_one_thing(self, node: Node) -> None:
        """A node that does one thing at a time: lists; what a neighbour wants; what one has for it; anything."""
        free = [link for link in node.links.values() if not link.receiver.busy]
        if self.rules.lists:
            for link in free:
                self.begin_list(link)
                if node.busy:
                    return
        version = node.version
        own = [link for link in free if link.tried != version]
        if self.rules.wanted_first:
            for link in own:
                if self.begin_bundle(link, wanted_only=True):
                    return
            for link in free:
                if link.back.tried != link.receiver.version and self.begin_bundle(link.back, wanted_only=True):
                    return
        if self.best_of_links:
            self.begin_best(own)
            return
        for link in own:
            if self.begin_bundle(link):
                return

    def begin_best(self, links: list[Link]) -> None:
        """Of the best bundles for each neighbour, begin the best; of equals, that for the first."""
        best: Link | None = None
        best_worth: tuple[Any, ...] = ()
        for link in links:
            if self.rules.lists and not link.lists:
                continue
            copy = self.choose(link, wanted_only=False)
            if copy is not None:
                answer = link.sender.router.priority(copy, link.peer, self.now_s)
                worth = answer if isinstance(answer, tuple) else (answer,)
                if best is None or worth > best_worth:
                    best, best_worth = link, worth
        if best is not None:
            self.begin_bundle(best)
