"""The engine's side of a node: its store, what it has seen, its links, and what is counted of it."""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from types import MappingProxyType
from typing import Any, Final

from serai.opportunistic.engine.state import Medium
from serai.opportunistic.kit.router import Copy, Peer, Router
from serai.opportunistic.rules import LIVE, REFUSE, Kept, RouterRules, leaves_before

IDLE: Final = math.inf


class Link:
    """One direction of a contact."""

    __slots__ = (
        "asked", "back", "bytes", "down_s", "due_s", "end_s", "known", "lists", "message", "open", "peer", "receiver",
        "sender", "start_s", "tried", "when_s",
    )  # fmt: skip

    back: Link

    def __init__(self, sender: Node, receiver: Node, peer: Peer, now_s: float, down_s: float) -> None:
        self.asked = Asked() if sender.router.stable else None
        self.sender, self.receiver, self.peer, self.down_s = sender, receiver, peer, down_s
        self.known = 0  # no need to offer these bundles to the receiver
        self.lists = 0  # received from the other side in this contact
        self.due_s = now_s  # when the sender's list is to be sent (again)
        self.message: Any = None  # what it carries
        self.bytes, self.start_s, self.end_s, self.when_s = 0, 0.0, 0.0, IDLE
        self.open = True
        self.tried = -1  # the sender's version when it had nothing to offer

    def candidates(self, rules: RouterRules) -> int:
        """The bundles that the receiver may be offered, as bits."""
        bits = self.sender.stored & ~self.known
        return bits & ~self.receiver.seen if rules.seen == LIVE and rules.leaves_out_seen else bits


class Asked:
    """What a router said of the copies for one neighbour, where that holds for a while (`Router.stable`)."""

    __slots__ = ("by_worth", "ids", "worth_of", "worths")

    def __init__(self) -> None:
        self.ids = 0  # bits of the bundles that it was asked about
        self.worth_of: dict[int, tuple[float, ...]] = {}  # of those that it offers
        self.by_worth: dict[tuple[float, ...], int] = {}  # the same as bits
        self.worths: list[tuple[float, ...]] = []  # ascending

    def note(self, id: int, worth: tuple[float, ...] | None) -> None:
        """What it said of a copy; None: it does not offer it."""
        self.ids |= 1 << id
        if worth is not None:
            self.worth_of[id] = worth
            if worth not in self.by_worth:
                insort(self.worths, worth)
            self.by_worth[worth] = self.by_worth.get(worth, 0) | 1 << id

    def first(self, bits: int, candidates: int) -> int:
        """Those of the highest worth among some of the candidates, all of which it was asked about."""
        worths, by_worth = self.worths, self.by_worth
        while worths and not by_worth[worths[-1]] & candidates:  # they have left: whoever comes back is new
            self.ids &= ~by_worth.pop(worths.pop())
        for worth in reversed(worths):
            if by_worth[worth] & bits:
                return by_worth[worth] & bits
        return 0

    def forget(self, id: int) -> None:
        """What it said of a copy may no longer be true."""
        self.ids &= ~(1 << id)
        worth = self.worth_of.pop(id, None)
        if worth in self.by_worth:
            self.by_worth[worth] &= ~(1 << id)

    def forget_all(self) -> None:
        """Nor what it said of any."""
        self.ids = 0
        self.worth_of, self.by_worth, self.worths = {}, {}, []


class Node:
    """A node, around the router that its author wrote."""

    __slots__ = (
        "asked",
        "busy",
        "byte_s",
        "carries",
        "given",
        "held_by",
        "links",
        "looked_s",
        "number",
        "open",
        "peak_bytes",
        "router",
        "seen",
        "since_s",
        "stirred",
        "store",
        "stored",
        "used_bytes",
        "version",
        "wanted_by",
        "wants",
    )  # fmt: skip

    def __init__(self, number: int, router: Router, carries: bool) -> None:
        self.number, self.router, self.carries = number, router, carries
        self.store: dict[int, Copy] = {}
        self.stored = 0  # the same as bits
        self.seen = 0  # bits of bundles that it has or had
        self.given = 0  # delivered to its own subscriber
        self.held_by: dict[int, set[int]] = {}  # own bundles: neighbours that took them, or had them already
        self.open: dict[int, tuple[int, float]] = {}  # own subscriptions
        self.wants: dict[int, int] = {}  # channels, and by how many subscriptions
        self.asked = 0  # bits of bundles on these channels
        self.wanted_by: Counter[int] = Counter()  # channels, and contacts whose neighbour wanted them, if that matters
        self.looked_s = 0.0  # when it last looked for bundles that have too little of their lifetime left
        self.links: dict[int, Link] = {}  # by the neighbour, in the order in which contacts began
        self.busy = 0
        self.stirred = False
        self.version = 0  # goes up whenever its answers may be others than before
        self.used_bytes = self.peak_bytes = 0
        self.byte_s = self.since_s = 0.0

    def introduce(self, key: int, capacity_bytes: int, discard: Any) -> None:
        """Give the router what it may see of the node."""
        router = self.router
        router.node, router.capacity_bytes = self.number, capacity_bytes
        router.store, router.subscriptions = MappingProxyType(self.store), MappingProxyType(self.open)
        router._key, router._discard = key, discard

    def put(self, copy: Copy, now_s: float) -> None:
        """Store a copy for which there is room."""
        self.store[copy.id] = copy
        self.stored |= 1 << copy.id
        self.changed(copy.id)
        self._use(copy.size_bytes, now_s)
        self.version += 1

    def remove(self, copy: Copy, now_s: float) -> None:
        """Take a copy out of the store."""
        del self.store[copy.id]
        self.stored &= ~(1 << copy.id)
        self._use(-copy.size_bytes, now_s)

    def _use(self, change: int, now_s: float) -> None:
        self.byte_s += self.used_bytes * (now_s - self.since_s)
        self.since_s = now_s
        self.used_bytes += change
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)

    def changed(self, id: int) -> None:
        """The router has to be asked anew about a copy."""
        for link in self.links.values():
            if link.asked is not None:
                link.asked.forget(id)

    def all_changed(self) -> None:
        """And about all."""
        for link in self.links.values():
            if link.asked is not None:
                link.asked.forget_all()

    def is_sending(self, id: int) -> bool:
        """Whether it is sending the bundle to somebody."""
        return any(isinstance(link.message, Sending) and link.message.copy.id == id for link in self.links.values())

    def may_leave(self, keep_own: int) -> list[Copy]:
        """The copies that may leave a full store, by their number: not those being sent, nor own ones to be kept."""
        return [
            copy
            for id, copy in sorted(self.store.items())
            if not (copy.source == self.number and len(self.held_by.get(id, ())) < keep_own) and not self.is_sending(id)
        ]


class Sending:
    """A bundle on its way."""

    __slots__ = ("attached", "copy")

    def __init__(self, copy: Copy, attached: Any) -> None:
        self.copy, self.attached = copy, attached


def usual_victim(node: Node, copies: list[Copy], medium: Medium) -> Copy | None:
    """Who leaves a full store unless the router says otherwise: as `nodes.when_full` says."""
    if medium.when_full == REFUSE or not copies:
        return None
    first = copies[0]
    for copy in copies[1:]:
        if leaves_before(medium.when_full, _kept(node, copy), _kept(node, first)):
            first = copy
    return first


def _kept(node: Node, copy: Copy) -> Kept:
    return Kept(copy.expires_s, copy.size_bytes, copy.arrived_s, copy.sent, node.wanted_by[copy.channel])
