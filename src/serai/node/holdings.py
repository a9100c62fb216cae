"""The bundles of a node, as rows of its store: carried, waiting for own sessions, or only remembered. Pure.

A bundle's bytes stay while the router carries it or a session waits for it; its row stays until its expiry is as long
over as clocks may be wrong, so that it never comes twice.
"""

from __future__ import annotations

import heapq
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from serai.node import schema
from serai.node.contacts import Draft
from serai.node.outboxes import Outboxes
from serai.node.settings import NodeSettings
from serai.node.words import Header, Held, Saved
from serai.opportunistic.router import Bundle, Router

_RESERVED = 1000  # numbers are taken from the store so many at once


class Holdings:
    """All bundles of a node; `gone(mark)` is called when one has expired."""

    def __init__(
        self, settings: NodeSettings, saved: Saved, router: Router, outboxes: Outboxes, gone: Callable[[int], None]
    ) -> None:
        self.settings, self.router, self.outboxes, self._gone = settings, router, outboxes, gone
        self.by_id: dict[int, Held] = {}
        self.ids: dict[int, int] = {}  # by mark, also of what has expired a moment ago
        self.waiting_bytes = 0  # kept for own sessions alone
        self.counts: Counter[str] = Counter()
        self._numbers = {name: (int(saved.meta.get(name, 1)),) * 2 for name in ("sequence", "journal", "interest")}
        self._forgetting: list[tuple[float, int]] = []  # heap of (when, id) of rows that outlive their bundles
        for row in saved.bundle:
            self._restore(row, saved.with_data)

    def number(self, name: str, draft: Draft) -> int:
        """The next number of a kind, which is never given out twice: the store knows of it before anybody else."""
        number, reserved = self._numbers[name]
        if number >= reserved:
            reserved = number + _RESERVED
            draft.row("meta", name, reserved)
        self._numbers[name] = (number + 1, reserved)
        return number

    def of(self, mark: int) -> Held:
        """A bundle that is here, or was a moment ago."""
        return self.by_id[self.ids[mark]]

    def journal(self, after: int) -> tuple[int, frozenset[int]]:
        """The last number of the journal, and the marks of what is alive among those after a number."""
        seen, last = self.router.seen, self._numbers["journal"][0] - 1
        if last - after < len(seen):
            found = (self.by_id[id].bundle.mark for id in range(after + 1, last + 1) if id in self.by_id)
            return last, frozenset(mark for mark in found if mark in seen)
        return last, frozenset(mark for mark in seen if self.ids[mark] > after)

    # -- they come

    def add(
        self, bundle: Bundle, header: Header, data: bytes, stays: bool, now_s: float, draft: Draft, peer: str = ""
    ) -> Held:
        """A bundle is here from now on; `stays`: the router carries it."""
        held = Held(self.number("journal", draft), bundle, header.qos, header.retain, header.has_payload, header.hops)
        self._remember(held)
        draft.row(
            "bundle", held.id, bundle.mark, header.source, header.created_ms, header.sequence, header.offset,
            header.topic, round(now_s * 1000), round(bundle.created_s * 1000), header.lifetime_ms, bundle.size_bytes,
            header.hops, 0, header.qos, int(header.retain) | 2 * header.has_payload,
            self.router.owed.get(bundle.mark, 0), int(stays),
        )  # fmt: skip
        draft.row("data", held.id, data)
        if stays:
            draft.log(now_s, schema.STORED, peer, bundle.mark, bundle.size_bytes)
        else:
            self.waiting_bytes += bundle.size_bytes
        before = self.outboxes.retained.get(header.topic)
        if rows := self.outboxes.retain(held):
            draft.rows += rows
            self.use(held.id, 1, draft)
            if before is not None:
                self.use(before.id, -1, draft)
        return held

    def _remember(self, held: Held) -> None:
        self.by_id[held.id], self.ids[held.bundle.mark] = held, held.id
        heapq.heappush(self._forgetting, (held.bundle.expires_s + self.settings.skew_s, held.id))

    def _restore(self, row: tuple[Any, ...], with_data: frozenset[int]) -> None:
        """A bundle that was here when the node ended; what has expired since, the first tick drops."""
        id, mark, source, created_ms, sequence, offset, topic, _, begins_ms, lifetime_ms, size, hops = row[:12]
        copies, qos, flags, pinned, carried = row[12:]
        source, topic = sys.intern(source), sys.intern(topic)  # SQLite gives every row its own
        key = (created_ms, source, sequence, offset)
        bundle = Bundle(key, mark, source, topic, begins_ms / 1000, size, lifetime_ms / 1000)
        self._remember(Held(id, bundle, qos, bool(flags & 1), bool(flags & 2), hops, id in with_data))
        if carried and id in with_data:
            self.router.keep(bundle, hops, copies, pinned)
        else:
            self.router.note_seen(bundle)
            self.waiting_bytes += size if id in with_data else 0

    # -- they go

    def use(self, id: int, change: int, draft: Draft) -> None:
        """A bundle waits in one outbox more, or less: while it does, it does not leave."""
        held = self.by_id[id]
        before, held.uses = held.uses, held.uses + change
        mark = held.bundle.mark
        if before == 0:
            self.router.store.pin(mark)
        elif held.uses == 0 and mark in self.router.store:
            self.router.store.unpin(mark)
        elif held.uses == 0 and held.has_data:
            self.forget_data(held, draft)

    def expire(self, now_s: float, draft: Draft) -> None:
        """Bundles leave whose lifetime is over, and rows that need not be remembered any more."""
        self.drop(self.router.expire(now_s), "expired", now_s, draft)
        while self._forgetting and self._forgetting[0][0] <= now_s:
            self._forget(self.by_id[heapq.heappop(self._forgetting)[1]], draft)

    def next_expiry_s(self) -> float:
        """When `expire` has something to do."""
        return min(self.router.next_expiry_s(), self._forgetting[0][0] if self._forgetting else math.inf)

    def drop(self, bundles: Iterable[Bundle], why: str, now_s: float, draft: Draft) -> None:
        """Bundles have left the router's store."""
        for bundle in bundles:
            held = self.of(bundle.mark)
            draft.log(now_s, schema.DROPPED, "", bundle.mark, bundle.size_bytes, schema.DROPS.index(why))
            draft.row("bundle.held", 0, held.id)
            self.counts[why] += 1
            self.waiting_bytes += bundle.size_bytes
            if not held.uses:
                self.forget_data(held, draft)

    def forget_data(self, held: Held, draft: Draft) -> None:
        """Nobody needs a bundle's bytes any more."""
        held.has_data = False
        draft.row("data.forget", held.id)
        self.waiting_bytes -= held.bundle.size_bytes

    def _forget(self, held: Held, draft: Draft) -> None:
        """A bundle has expired long ago: nothing of it stays."""
        topic = str(held.bundle.channel)
        if self.outboxes.retained.get(topic) is held:
            del self.outboxes.retained[topic]
            draft.row("retained.forget", topic)
            self.use(held.id, -1, draft)
        for session in self.outboxes.sessions.values() if held.uses else ():
            if held.id in session.queue:
                del session.queue[held.id]
                draft.row("outbox.forget", session.client, held.id)
                self.use(held.id, -1, draft)
        if held.has_data:
            self.forget_data(held, draft)
        draft.row("bundle.forget", held.id)
        del self.by_id[held.id], self.ids[held.bundle.mark]
        self._gone(held.bundle.mark)
