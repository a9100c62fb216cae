"""The engine's side of a node: its store, what it has seen, its links, and what is counted of it."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any, Final

from serai.opportunistic.engine.state import Medium
from serai.opportunistic.kit.router import Copy, Peer, Router
from serai.opportunistic.rules import EVICT_SOONEST, REFUSE

IDLE: Final = math.inf


class Link:
    """One direction of a contact."""

    __slots__ = (
        "back", "bytes", "down_s", "due_s", "end_s", "known", "lists", "message", "open", "peer", "receiver",
        "sender", "start_s", "tried", "when_s",
    )  # fmt: skip

    back: Link

    def __init__(self, sender: Node, receiver: Node, peer: Peer, now_s: float, down_s: float) -> None:
        self.sender, self.receiver, self.peer, self.down_s = sender, receiver, peer, down_s
        self.known = 0  # no need to offer these bundles to the receiver
        self.lists = 0  # received from the other side in this contact
        self.due_s = now_s  # when the sender's list is to be sent (again)
        self.message: Any = None  # what it carries
        self.bytes, self.start_s, self.end_s, self.when_s = 0, 0.0, 0.0, IDLE
        self.open = True
        self.tried = -1  # the sender's version when it had nothing to offer


class Node:
    """A node, around the router that its author wrote."""

    __slots__ = (
        "asked",
        "busy",
        "byte_s",
        "carries",
        "given",
        "handed",
        "links",
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
        "wants",
    )  # fmt: skip

    def __init__(self, number: int, router: Router, carries: bool) -> None:
        self.number, self.router, self.carries = number, router, carries
        self.store: dict[int, Copy] = {}
        self.stored = 0  # the same as bits
        self.seen = 0  # bits of bundles that it has or had
        self.given = 0  # delivered to its own subscriber
        self.handed: dict[int, int] = {}  # own bundles: neighbours that took them
        self.open: dict[int, tuple[int, float]] = {}  # own subscriptions
        self.wants: dict[int, int] = {}  # channels, and by how many subscriptions
        self.asked = 0  # bits of bundles on these channels
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

    def is_sending(self, id: int) -> bool:
        """Whether it is sending the bundle to somebody."""
        return any(isinstance(link.message, Sending) and link.message.copy.id == id for link in self.links.values())

    def may_leave(self, keep_own: int) -> list[Copy]:
        """The copies that may leave a full store, by their number: not those being sent, nor own ones to be kept."""
        return [
            copy
            for id, copy in sorted(self.store.items())
            if not (copy.source == self.number and self.handed.get(id, 0) < keep_own) and not self.is_sending(id)
        ]


class Sending:
    """A bundle on its way."""

    __slots__ = ("attached", "copy")

    def __init__(self, copy: Copy, attached: Any) -> None:
        self.copy, self.attached = copy, attached


def usual_victim(copies: list[Copy], medium: Medium) -> Copy | None:
    """Who leaves a full store unless the router says otherwise: as `nodes.when_full` says."""
    if medium.when_full == REFUSE or not copies:
        return None
    if medium.when_full == EVICT_SOONEST:
        return min(copies, key=lambda copy: (copy.expires_s, copy.id))
    return copies[0]
