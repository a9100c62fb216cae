"""The plain engine: it drives one `Router` object per node through a world of contacts (docs/opportunistic/dpsp.md).

Same worlds, same rules and same outcome as the compiled loop (`serai.opportunistic.engine`), in Python. Which bundles a
node has is a whole number of any length with one bit per bundle, so that a queue is two operations on numbers.
"""

from __future__ import annotations

import heapq
import math
from typing import Any

from serai.core.order import key_in_slot
from serai.opportunistic.engine.setup import contacts_that_count, order_of
from serai.opportunistic.engine.state import Medium, Outcome
from serai.opportunistic.kit.choosing import Answers, choose
from serai.opportunistic.kit.content import FREE_BYTES, encoded_bytes, frozen
from serai.opportunistic.kit.lists import ListMessage, write_list
from serai.opportunistic.kit.log import Log
from serai.opportunistic.kit.mistakes import Mistake
from serai.opportunistic.kit.nodes import IDLE, Link, Node, Sending, usual_victim
from serai.opportunistic.kit.router import Copy, Peer, Router, put
from serai.opportunistic.rules import RouterRules, instant_key, is_expired, sent_bytes, transfer_s
from serai.opportunistic.world import ContactWorld, check


class Network:
    """All nodes of a run, and what happens to them."""

    def __init__(self, world: ContactWorld, medium: Medium, router: type[Router], settings: Any, rules: RouterRules):
        check(world)
        self.world, self.medium, self.router = world, medium, router
        self.answers = Answers.of(router)
        self.evicts = router.evict is not Router.evict
        self.attaches = router.attach is not Router.attach
        self.now_s, self.key, self.at_node = 0.0, 0, 0
        self.rules = rules
        self.nodes = [self._node(number, settings) for number in range(world.nodes)]
        self.log = Log(world, medium)
        self.alive = 0
        self.heap: list[tuple[float, int, int, int, Link]] = []
        self.pushed = 0
        self.line: list[Node] = []
        self.tick = self.periods = self.up = self.born = self.over = self.began = self.ended = 0
        self.contacts = contacts_that_count(world.contacts, medium)
        self.links: list[Link] = []  # those from a to b of open contacts
        self.down: list[tuple[float, int, Link]] = []  # when contacts end, a heap
        expires_s = world.bundles.created_s + world.bundles.lifetime_s
        self.expires_s = expires_s.tolist()
        self.by_expiry = order_of(expires_s).tolist()
        self.from_s = [max(since, 0.0) for since in world.subscriptions.from_s.tolist()]
        self.to_s = world.subscriptions.to_s.tolist()
        self.by_end = order_of(world.subscriptions.to_s).tolist()
        self.noticed = [False] * len(self.to_s)

    def _node(self, number: int, settings: Any) -> Node:
        router = object.__new__(self.router)
        for name, value in settings.items():
            setattr(router, name, value)
        node = Node(number, router, bool(self.world.carries[number]))
        node.introduce(self.medium.key, self.medium.capacity_bytes, lambda id, node=node: self.discard(node, id))
        return node

    def at(self) -> str:
        """Where and when: for messages."""
        return f"node {self.at_node}, t = {self.now_s:.1f} s"

    # ---- time

    def run(self) -> Outcome:
        """From the first instant to the last."""
        for node in self.nodes:
            self.at_node = node.number
            node.router.start()
            self.rules = self.rules._replace(leaves_out_seen=bool(node.router.leaves_out_seen))
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
            self.take_turns(self.nodes if ticks else self.line)
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
        if self.router.every_s:
            times.append(self.periods * self.router.every_s)
        while self.heap and (self.heap[0][4].when_s != self.heap[0][0] or not self.heap[0][4].open):
            heapq.heappop(self.heap)
        if self.heap:
            times.append(self.heap[0][0])
        self.now_s = min(times)
        return False

    def schedule(self, link: Link, when_s: float) -> None:
        """Something is due on the link at `when_s`, or (IDLE) nothing is."""
        link.when_s = when_s
        if when_s != IDLE:
            self.pushed += 1
            heapq.heappush(self.heap, (when_s, link.sender.number, link.receiver.number, self.pushed, link))

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
        every_s = self.router.every_s
        if not every_s:
            return
        while self.periods * every_s <= self.now_s:
            self.periods += 1
            for node in self.nodes:
                self.call(node, "periodic", self.now_s)
                self.stir(node)

    def call(self, node: Node, method: str, *arguments: Any) -> None:
        """Call a method of a router that may change its mind about everything."""
        self.at_node = node.number
        getattr(node.router, method)(*arguments)
        node.version += 1

    # ---- contacts

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

    def _link(self, sender: Node, receiver: Node, down_s: float) -> Link:
        live = None if self.rules.lists else receiver.wants
        peer = Peer(receiver.number, self.now_s, receiver.carries, self.medium.rate_bps, live)
        return Link(sender, receiver, peer, self.now_s, down_s)

    # ---- bundles and subscriptions

    def expire(self) -> None:
        """Bundles whose lifetime is over leave all stores."""
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

    def drop(self, node: Node, copy: Copy, reason: str) -> None:
        """A node loses a copy."""
        node.remove(copy, self.now_s)
        self.log.drop(self.now_s, copy.id, node.number, reason, held=True)
        self.call(node, "dropped", copy, reason, self.now_s)

    def discard(self, node: Node, id: int) -> bool:
        """A router lets go of a copy: within `sent` it has moved on, at other times that counts as evicted."""
        copy, moves = node.store.get(id), self.moving == (node.number, id)
        if copy is None or (node.is_sending(id) and not moves):
            return False
        node.remove(copy, self.now_s)
        if not moves:
            self.log.drop(self.now_s, id, node.number, "evicted", held=True)
        return True

    moving: tuple[int, int] | None = None
    """The node and the bundle whose transfer has just ended."""

    def change_subscriptions(self) -> None:
        """Subscriptions that begin now, then those that end."""
        rows = self.world.subscriptions
        while self.began < len(self.from_s) and self.from_s[self.began] <= self.now_s:
            number = self.began
            self.began += 1
            node, channel = self.nodes[rows.node[number]], int(rows.channel[number])
            if self.to_s[number] <= self.from_s[number]:
                continue
            node.wants[channel] = node.wants.get(channel, 0) + 1
            self.noticed[number] = self.now_s < self.to_s[number]
            if self.noticed[number]:
                node.open[number] = (channel, self.from_s[number])
                for id, copy in sorted(node.store.items()):
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
            node.wants[channel] -= 1
            if not node.wants[channel]:
                del node.wants[channel]
            node.open.pop(number, None)
            if self.noticed[number]:
                self.subscriptions_changed(node)

    def subscriptions_changed(self, node: Node) -> None:
        """Neighbours may see it live; with `announce = "change"` lists are due."""
        node.version += 1
        for link in node.links.values():
            link.receiver.version += 1
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
            copy = Copy(id, node.number, int(rows.channel[id]), float(rows.created_s[id]), self.expires_s[id], size)
            self.call(node, "created", copy, self.now_s)
            node.put(copy, self.now_s)
            self.stir(node)
            if self.medium.single and self.rules.wanted_first:
                self.stir_neighbours(node)  # they may ask for it before it is offered

    def make_room(self, node: Node, size_bytes: int) -> bool:
        """Whether a bundle of this size fits into the store, after others have left if need be."""
        capacity = self.medium.capacity_bytes
        if size_bytes > capacity:
            return False
        while node.used_bytes + size_bytes > capacity:
            copies = node.may_leave(self.medium.keep_own)
            victim = usual_victim(copies, self.medium)
            if self.evicts:
                self.at_node = node.number
                victim = node.router.evict(copies, self.now_s) if copies else None
                if victim is not None and not any(victim is copy for copy in copies):
                    raise Mistake("evict", f"answers {victim!r}, which is none of the copies it was given")
            if victim is None:
                return False
            self.drop(node, victim, "evicted")
        return True

    # ---- turns

    def stir(self, node: Node) -> None:
        """Put a node in line for a turn at this instant."""
        if not node.stirred and node.links:
            node.stirred = True
            self.line.append(node)

    def stir_neighbours(self, node: Node) -> None:
        """Put all whom a node is in contact with in line."""
        for link in node.links.values():
            self.stir(link.receiver)

    def take_turns(self, nodes: list[Node]) -> None:
        """All in line take their turn, in an order drawn for the instant."""
        key = self.key
        in_line = sorted(
            (node for node in nodes if node.links), key=lambda node: (key_in_slot(key, node.number), node.number)
        )
        for node in in_line:
            self.at_node = node.number
            if self.medium.step_s > 0:
                for link in list(node.links.values()):
                    if link.message is not None and link.end_s <= self.now_s:
                        self.finish(link)
            if self.medium.single:
                self.do_one_thing(node)
            else:
                for link in node.links.values():
                    if link.message is None:
                        self.begin_list(link)
                    if link.message is None:
                        self.begin_bundle(link)
        for node in self.line:
            node.stirred = False
        self.line.clear()

    def do_one_thing(self, node: Node) -> None:
        """A node that does one thing at a time: lists; what a neighbour wants; what one has for it; anything."""
        wanted = self.rules.wanted_first
        rounds = [0] * self.rules.lists + [1, 2] * wanted + [3]
        for this_round in rounds:
            for own in node.links.values():
                if node.busy:
                    return
                link = own.back if this_round == 2 else own
                if link.sender.busy or link.receiver.busy:
                    continue
                if this_round == 0:
                    self.begin_list(link)
                else:
                    self.begin_bundle(link, wanted_only=this_round < 3)

    def begin_list(self, link: Link) -> None:
        """Send the sender's list, if there are lists and one is due."""
        if not self.rules.lists or link.due_s > self.now_s:
            return
        link.due_s = self.now_s + self.rules.repeat_s
        self.at_node = link.sender.number
        message = write_list(link, self.rules, self.alive, self.key, self.now_s)
        link.sender.version += 1
        self.begin(link, message, message.size_bytes)

    def begin_bundle(self, link: Link, wanted_only: bool = False) -> None:
        """Send the best bundle there is for the receiver, if the sender knows enough of it."""
        sender = link.sender
        if link.tried == sender.version or (self.rules.lists and not link.lists):
            return
        self.at_node = sender.number
        copy = choose(link, self.rules, self.answers, self.key, self.now_s, wanted_only)
        if copy is None:
            if not wanted_only:
                link.tried = sender.version  # nothing to offer until something changes
            return
        attached, extra = None, 0
        if self.attaches:
            attached = frozen(sender.router.attach(copy, link.peer, self.now_s))
            sender.version += 1
            extra = max(encoded_bytes(attached) - FREE_BYTES, 0)
        self.begin(link, Sending(copy, attached), copy.size_bytes + extra)

    def begin(self, link: Link, message: ListMessage | Sending, size_bytes: int) -> None:
        """The sender begins to send."""
        link.message, link.bytes, link.start_s = message, size_bytes, self.now_s
        link.end_s = self.now_s + transfer_s(size_bytes, self.medium.rate_bps)
        link.sender.busy += 1
        link.receiver.busy += 1
        if self.medium.step_s == 0:
            self.schedule(link, link.end_s)

    # ---- transfers that end

    def release(self, link: Link) -> None:
        """The link carries nothing any more; those who may have waited for that are stirred."""
        link.message = None
        link.sender.busy -= 1
        link.receiver.busy -= 1
        if self.medium.step_s == 0:
            self.schedule(link, link.due_s if self.rules.lists and link.due_s > self.now_s else IDLE)
            self.stir(link.sender)
            self.stir(link.receiver)
            if self.medium.single:
                self.stir_neighbours(link.sender)
                self.stir_neighbours(link.receiver)

    def give_up(self, link: Link, outcome: str) -> None:
        """What the link carries does not arrive."""
        message = link.message
        sent = sent_bytes(link.bytes, self.medium.rate_bps, self.now_s - link.start_s)
        self.count_bytes(link, sent)
        self.release(link)
        if isinstance(message, ListMessage):
            self.log.control_bytes += sent
            return
        self.log.transfer(link, message.copy.id, self.now_s, sent, outcome, stored=False, moved=False)
        self.call(link.sender, "sent", message.copy, link.peer, message.attached, False, self.now_s)

    def finish(self, link: Link) -> None:
        """What the link carries has arrived."""
        message = link.message
        self.count_bytes(link, link.bytes)
        if isinstance(message, ListMessage):
            self.log.control_bytes += link.bytes
            self.log.lists += 1
            back = link.back
            back.known |= message.seen
            back.lists += 1
            put(back.peer, lists=back.lists)
            self.release(link)
            self.call(link.receiver, "hear", back.peer, message.content, self.now_s)
        else:
            self.arrive(link, message)

    def count_bytes(self, link: Link, count: int) -> None:
        """Both sides know what went over the link."""
        put(link.peer, bytes_out=link.peer.bytes_out + count)
        put(link.back.peer, bytes_in=link.back.peer.bytes_in + count)

    def arrive(self, link: Link, message: Sending) -> None:
        """A bundle has arrived: is it new and alive, is it wanted, is there room?"""
        copy, sender, receiver = message.copy, link.sender, link.receiver
        bit = 1 << copy.id
        link.known |= bit  # not again in this contact, nor back
        link.back.known |= bit
        outcome, stays = "relayed", False
        if is_expired(self.now_s, copy.expires_s):
            outcome = "late"
        elif receiver.seen & bit:
            outcome = "duplicate"
        else:
            wanted = copy.channel in receiver.wants
            stays = not (wanted and self.rules.consume) and self.make_room(receiver, copy.size_bytes)
            if wanted or stays:
                self._take_in(link, message, wanted, stays)
            else:
                outcome = "refused"
        accepted = outcome == "relayed"
        if accepted:
            put(copy, sent=copy.sent + 1)
            if copy.source == sender.number:
                sender.handed[copy.id] = sender.handed.get(copy.id, 0) + 1
        held = copy.id in sender.store
        sent = link.bytes
        self.release(link)
        self.moving = (sender.number, copy.id)
        self.call(sender, "sent", copy, link.peer, message.attached, accepted, self.now_s)
        self.moving = None
        moved = held and copy.id not in sender.store
        self.log.transfer(link, copy.id, self.now_s, sent, outcome, stored=stays, moved=moved)

    def _take_in(self, link: Link, message: Sending, wanted: bool, stays: bool) -> None:
        """The receiver has a new copy, to keep or just to read."""
        receiver, fresh = link.receiver, message.copy.passed_on(self.now_s)
        receiver.seen |= 1 << fresh.id
        self.call(receiver, "received", fresh, link.back.peer, message.attached, self.now_s)
        if stays:
            receiver.put(fresh, self.now_s)
        if wanted:
            self.log.deliver(self.now_s, receiver, fresh)


def simulate_plain(
    world: ContactWorld, medium: Medium, router: type[Router], settings: dict[str, Any], rules: RouterRules
) -> Outcome:
    """Run a router class over a world of contacts."""
    return Network(world, medium, router, settings, rules).run()
