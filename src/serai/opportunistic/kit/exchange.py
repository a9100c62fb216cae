"""Transfers between the nodes of the plain engine: they begin, and arrive or do not."""

from __future__ import annotations

import heapq
from typing import Any

from serai.opportunistic.engine.state import Medium
from serai.opportunistic.kit.choosing import Answers, Choosing, choose
from serai.opportunistic.kit.lists import ListMessage, write_list
from serai.opportunistic.kit.log import Log
from serai.opportunistic.kit.nodes import IDLE, Link, Node, Sending, usual_victim
from serai.opportunistic.kit.places import Places
from serai.opportunistic.kit.router import Copy, Router
from serai.opportunistic.rules import (
    EVICT_FIRST_IN,
    EVICT_LEAST_WANTED,
    LIVE,
    RouterRules,
    is_expired,
    sent_bytes,
    transfer_s,
)
from serai.opportunistic.world import ContactWorld
from serai.own.content import FREE_BYTES, encoded_bytes, frozen
from serai.own.declaring import put
from serai.own.mistakes import Mistake


class Exchange:
    """All nodes of a run, and what goes from one to another."""

    def __init__(self, world: ContactWorld, medium: Medium, router: type[Router], settings: Any, rules: RouterRules):
        self.world, self.medium, self.router, self.rules = world, medium, router, rules
        self.written = {name for name in vars(Router) if getattr(router, name) is not getattr(Router, name)} | {"hear"}
        self.now_s, self.key, self.at_node = 0.0, 0, 0
        self.steps = 0  # choices and calls so far
        self.places = Places(world.nodes)
        self.choosing = Choosing(rules, Answers.of(router), self.places, Places(len(world.bundles.source)), {})
        self.nodes = [self._node(number, settings) for number in range(world.nodes)]
        self.log = Log(world, medium)
        self.alive = 0  # bits of bundles born and not expired
        self.too_old = 0  # bits of those with less than a unit of lifetime left, where that counts
        self.heap: list[tuple[float, int, int, int, Link]] = []  # when something is due on a link
        self.pushed = 0
        self.line: list[Node] = []  # who takes a turn at this instant
        self.free_lists = self.best_of_links = False  # as the routers say when they start
        self.moving: tuple[int, int] | None = None  # the node and the bundle whose transfer has just ended

    def _node(self, number: int, settings: Any) -> Node:
        router = object.__new__(self.router)
        for name, value in settings.items():
            setattr(router, name, value)
        node = Node(number, router, bool(self.world.carries[number]))
        node.introduce(self.medium.key, self.medium.capacity_bytes, lambda *what, node=node: self.discard(node, *what))
        return node

    def at(self) -> str:
        """Where and when: for messages."""
        return f"node {self.at_node}, t = {self.now_s:.1f} s"

    def schedule(self, link: Link, when_s: float) -> None:
        """Something is due on the link at `when_s`, or (IDLE) nothing is."""
        link.when_s = when_s
        if when_s != IDLE:
            self.pushed += 1
            heapq.heappush(self.heap, (when_s, link.sender.number, link.receiver.number, self.pushed, link))

    def call(self, node: Node, method: str, *arguments: Any) -> None:
        """Call a method that may change a router's mind about everything; one that nobody wrote changes nothing."""
        self.steps += 1
        if method in self.written:
            self.at_node = node.number
            getattr(node.router, method)(*arguments)
            node.version += 1

    def drop(self, node: Node, copy: Copy, reason: str) -> None:
        """A node loses a copy."""
        node.remove(copy, self.now_s)
        self.log.drop(self.now_s, copy.id, node.number, reason, held=True)
        self.call(node, "dropped", copy, reason, self.now_s)

    def discard(self, node: Node, id: int, may_return: bool) -> bool:
        """A router lets go of a copy: within `sent` it has moved on, at other times that counts as evicted."""
        copy, moves = node.store.get(id), self.moving == (node.number, id)
        if copy is None or (node.is_sending(id) and not moves):
            return False
        node.remove(copy, self.now_s)
        if not moves:
            self.log.drop(self.now_s, id, node.number, "evicted", held=True)
        if may_return:
            self.forget(node, id)
        return True

    def forget(self, node: Node, id: int) -> None:
        """A node may take again what it has dropped, unless it was delivered there."""
        if node.given >> id & 1:
            return
        node.seen &= ~(1 << id)
        if self.rules.seen == LIVE:
            for link in node.links.values():
                link.back.known &= ~(1 << id)
                link.back.tried = -1
            self.stir_neighbours(node)

    def make_room(self, node: Node, size_bytes: int) -> bool:
        """Whether a bundle of this size fits into the store, after others have left if need be."""
        capacity = self.medium.capacity_bytes
        if size_bytes > capacity:
            return False
        while node.used_bytes + size_bytes > capacity:
            copies = node.may_leave(self.medium.keep_own)
            victim = usual_victim(node, copies, self.medium)
            if "evict" in self.written:
                self.at_node = node.number
                victim = node.router.evict(copies, self.now_s) if copies else None
                if victim is not None and not any(victim is copy for copy in copies):
                    raise Mistake("evict", f"answers {victim!r}, which is none of the copies it was given")
            if victim is None:
                return False
            self.drop(node, victim, "evicted")
            if self.medium.when_full == EVICT_FIRST_IN:
                self.forget(node, victim.id)
        return True

    def stir(self, node: Node) -> None:
        """Put a node in line for a turn at this instant."""
        if not node.stirred and node.links:
            node.stirred = True
            self.line.append(node)

    def stir_neighbours(self, node: Node) -> None:
        """Put all whom a node is in contact with in line."""
        for link in node.links.values():
            self.stir(link.receiver)

    def begin_list(self, link: Link) -> None:
        """Send the sender's list, if there are lists and one is due."""
        if not self.rules.lists or self.free_lists or link.due_s > self.now_s:
            return
        link.due_s = self.now_s + self.rules.repeat_s
        self.at_node = link.sender.number
        message = write_list(link, self.rules, self.alive, self.key, self.now_s)
        link.sender.version += "tell" in self.written
        self.begin(link, message, message.size_bytes)

    def begin_bundle(self, link: Link, wanted_only: bool = False) -> bool:
        """Send the best bundle there is for the receiver, if the sender knows enough of it; whether there is one."""
        sender = link.sender
        if link.tried == sender.version or (self.rules.lists and not link.lists):
            return False
        copy = self.choose(link, wanted_only)
        if copy is None:
            return False
        attached, extra = None, 0
        if "attach" in self.written:
            attached = frozen(sender.router.attach(copy, link.peer, self.now_s), "attach")
            sender.version += 1
            sender.changed(copy.id)
            extra = max(encoded_bytes(attached) - FREE_BYTES, 0)
        self.begin(link, Sending(copy, attached), copy.size_bytes + extra)
        return True

    def choose(self, link: Link, wanted_only: bool) -> Copy | None:
        """The best bundle there is for the receiver."""
        self.at_node = link.sender.number
        self.steps += 1
        copy = choose(link, self.choosing, self.key, self.now_s, wanted_only, self.too_old)
        if copy is None and not wanted_only:
            link.tried = link.sender.version  # nothing to offer until something changes
        return copy

    def begin(self, link: Link, message: ListMessage | Sending, size_bytes: int) -> None:
        """The sender begins to send."""
        link.message, link.bytes, link.start_s = message, size_bytes, self.now_s
        link.end_s = self.now_s + transfer_s(size_bytes, self.medium.rate_bps)
        link.sender.busy += 1
        link.receiver.busy += 1
        if self.medium.step_s == 0:
            self.schedule(link, link.end_s)

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
            self.log.listing(link, message.entries, self.now_s, sent, outcome)
            return
        self.log.transfer(link, message.copy.id, self.now_s, sent, outcome, stored=False, moved=False)
        link.sender.changed(message.copy.id)
        self.call(link.sender, "sent", message.copy, link.peer, message.attached, False, self.now_s)

    def finish(self, link: Link) -> None:
        """What the link carries has arrived."""
        message = link.message
        self.count_bytes(link, link.bytes)
        if isinstance(message, ListMessage):
            self.log.listing(link, message.entries, self.now_s, link.bytes, "relayed")
            self.release(link)
            self.hear(link, message)
        else:
            self.arrive(link, message)

    def hear(self, link: Link, message: ListMessage) -> None:
        """A list has come over the link."""
        back = link.back
        back.known |= message.seen
        back.lists += 1
        put(back.peer, lists=back.lists)
        self.call(link.receiver, "hear", back.peer, message.content, self.now_s)
        link.receiver.all_changed()
        if back.lists == 1:
            self.count_wanted(link.receiver, back.peer.channels)

    def exchange_for_nothing(self, link: Link) -> None:
        """Both sides of a new contact tell each other, and neither has heard the other before it tells."""
        pair = (link, link.back)
        told = []
        for side in pair:
            self.at_node = side.sender.number
            told.append(write_list(side, self.rules, self.alive, self.key, self.now_s, free=True))
        for side, message in zip(pair, told, strict=True):
            self.hear(side, message)

    def count_wanted(self, node: Node, channels: Any) -> None:
        """A neighbour wants these channels, if that will decide who leaves a full store."""
        if self.medium.when_full == EVICT_LEAST_WANTED:
            node.wanted_by.update(channels)

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
        if copy.source == sender.number and outcome in ("relayed", "duplicate"):
            sender.held_by.setdefault(copy.id, set()).add(receiver.number)
        held = copy.id in sender.store
        sent = link.bytes
        self.release(link)
        sender.changed(copy.id)
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
