"""A plain node for tests of links: it keeps everything in memory and gives everything to everybody, once."""

from collections import deque
from itertools import count
from typing import Any

from serai.node.words import (
    Accept,
    AllSeen,
    Effects,
    Header,
    ListMessage,
    Message,
    Ready,
    Refusal,
    Refuse,
    SendBundle,
    SendList,
    Word,
    mark_of,
)


class Flood:
    """The part of a core that links call."""

    def __init__(self, window: int = 64) -> None:
        self.kept: dict[int, tuple[Header, bytes]] = {}  # by mark
        self.known: dict[str, set[int] | None] = {}  # by peer; None until its list has come
        self.queues: dict[str, deque[int]] = {}  # what a peer may not have, from its list on
        self.sending: dict[tuple[str, int], int] = {}
        self.lists_due: set[str] = set()
        self.refusals: list[tuple[str, str]] = []
        self.arrivals: list[tuple[str, str]] = []
        self.transfers = count(1)
        self.window = window

    def data(self, id: int) -> bytes:
        return self.kept[id][1]

    def publish(self, header: Header, data: bytes) -> Effects:
        mark = mark_of(*header[:4])
        self.kept[mark] = header, data
        for queue in self.queues.values():
            queue.append(mark)
        return Effects(words=tuple(map(Ready, self.known)))

    def contact_up(self, peer: str, now_s: float, rate_bps: float, *, carries: bool, epoch: bytes) -> Effects:
        self.contact_down(peer, now_s)
        self.known[peer] = None
        self.lists_due.add(peer)
        return Effects(words=(Ready(peer),))

    def contact_down(self, peer: str, now_s: float, sent_bytes: Any = None) -> Effects:
        self.known.pop(peer, None)
        self.queues.pop(peer, None)
        self.sending = {key: mark for key, mark in self.sending.items() if key[0] != peer}
        return Effects()

    def list_received(self, peer: str, message: ListMessage, now_s: float) -> Effects:
        assert isinstance(message.seen, AllSeen)
        if peer not in self.queues:
            self.queues[peer] = deque(self.kept)
        self.known[peer] = set(message.seen.marks)
        return Effects(words=(Ready(peer),))

    def next_transfer(self, peer: str, now_s: float) -> Effects:
        if peer in self.lists_due:
            self.lists_due.discard(peer)
            message = ListMessage(1, now_s, (), AllSeen(frozenset(self.kept)))
            return Effects(words=(SendList(peer, next(self.transfers), message),))
        known = self.known.get(peer)
        if known is None or sum(whom == peer for whom, _ in self.sending) >= self.window:
            return Effects()
        queue = self.queues[peer]
        while queue and queue[0] in known:
            queue.popleft()
        if not queue:
            return Effects()
        mark = queue.popleft()
        transfer, header = next(self.transfers), self.kept[mark][0]
        self.sending[peer, transfer] = mark
        return Effects(
            words=(SendBundle(peer, transfer, mark, mark, header.hops, header.created_ms, header.size_bytes),)
        )

    def bundle_received(self, peer: str, transfer: int, header: Header, data: bytes, now_s: float) -> Effects:
        mark = mark_of(*header[:4])
        known = self.known.get(peer)
        if known is not None:
            known.add(mark)
        if mark in self.kept:
            return Effects(words=(Refuse(peer, transfer, "duplicate"),))
        self.arrivals.append((peer, header.topic))
        words: list[Word] = [Accept(peer, transfer)]
        return Effects(words=(*words, *self.publish(header, data).words))

    def acknowledged(self, peer: str, transfer: int, now_s: float) -> Effects:
        mark, known = self.sending.pop((peer, transfer), None), self.known.get(peer)
        if mark is not None and known is not None:
            known.add(mark)
        return Effects(words=(Ready(peer),))

    def refused(self, peer: str, transfer: int, reason: Refusal, now_s: float) -> Effects:
        self.refusals.append((peer, reason))
        return self.acknowledged(peer, transfer, now_s)


def message(envelope: Any, sequence: int, payload: bytes = b"x", topic: str = "t") -> tuple[Header, bytes]:
    """A bundle of this node, as it is kept."""
    header = Header(envelope.node, 800_000_000_000, sequence, 0, topic, 10**12)
    data = envelope.encode(header, Message(topic, payload))
    return header._replace(size_bytes=len(data)), data
