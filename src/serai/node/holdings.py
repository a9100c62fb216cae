"""The bundles of a node, as rows of its store: carried, waiting for own sessions, or only remembered. Pure.

A bundle's bytes stay while the router carries it or a session waits for it; its row stays until its expiry is as long
over as clocks may be wrong, so that it never comes twice.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import Any, cast

from serai.node import schema
from serai.node.contacts import Draft
from serai.node.outboxes import Outboxes
from serai.node.parts import Parts
from serai.node.settings import NodeSettings
from serai.node.wire import lists
from serai.node.words import Header, Held, Saved
from serai.opportunistic.router import Bundle, Router

_RESERVED = 1000  # numbers are taken from the store so many at once


@lru_cache(1024)
def seconds(lifetime_ms: int) -> float:
    """A lifetime; many bundles have the same, and so one number in memory."""
    return lifetime_ms / 1000


class Holdings:
    """All bundles of a node; `gone(mark)` is called when one has expired."""

    def __init__(
        self, settings: NodeSettings, saved: Saved, router: Router, outboxes: Outboxes, gone: Callable[[int], None]
    ) -> None:
        self.settings, self.router, self.outboxes, self._gone = settings, router, outboxes, gone
        self.by_id: dict[int, Held] = {}
        self.late: dict[int, Held] = {}  # by mark: what has expired a moment ago
        self.waiting_bytes = 0  # kept for own sessions alone
        self.counts: Counter[str] = Counter()
        self.parts = Parts()
        self._numbers = {name: (int(saved.meta.get(name, 1)),) * 2 for name in ("sequence", "journal", "interest")}
        self._forgetting: deque[Held] = deque()  # the same in order of expiry: rows outlive their bundles by the skew
        for row in saved.bundle:
            self._restore(row)
        for id, *part in saved.part:
            created_ms, source, *_ = self.by_id[id].key
            self.parts.add(id, source, created_ms, (part[0], part[1], part[2]))

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
        return cast(Held, self.router.seen.get(mark)) or self.late[mark]

    def journal(self, after: int) -> tuple[int, frozenset[int], bool]:
        """The marks of what is alive after a number of the journal, as many as a list takes: up to which number, the
        marks, and whether that is all."""
        seen, last = self.router.seen, self._numbers["journal"][0] - 1
        numbers = range(after + 1, last + 1) if last - after < len(self.by_id) else self.by_id  # in order, too
        rows = (self.by_id[id] for id in numbers if id > after and id in self.by_id)
        told = list(islice((held for held in rows if held.mark in seen), lists.MAX_MARKS))
        is_all = len(told) < lists.MAX_MARKS
        return last if is_all else told[-1].id, frozenset(held.mark for held in told), is_all

    def status(self) -> dict[str, int]:
        """What there is, in numbers."""
        store = self.router.store
        return {
            "bundles": len(store), "bytes": store.used_bytes, "capacity_bytes": store.capacity_bytes,
            "own": len(self.router.owed), "waiting_bytes": self.waiting_bytes, "remembered": len(self.by_id),
        }  # fmt: skip

    # -- they come

    def add(
        self, held: Held, header: Header, data: bytes, stays: bool, now_s: float, draft: Draft, peer: str = ""
    ) -> None:
        """A bundle is here from now on; `stays`: the router carries it."""
        held.id = self.number("journal", draft)
        self.by_id[held.id] = held
        draft.row(
            "bundle", held.id, held.mark, header.source, header.created_ms, header.sequence, header.offset,
            header.topic, round(now_s * 1000), round(held.created_s * 1000), header.lifetime_ms, held.size_bytes,
            header.hops, 0, header.qos, int(header.retain) | 2 * header.has_payload,
            self.router.owed.left(held.mark), int(stays),
        )  # fmt: skip
        draft.row("data", held.id, data)
        if stays:
            draft.log(now_s, schema.STORED, peer, held.mark, held.size_bytes)
        else:
            self.waiting_bytes += held.size_bytes
        if header.part is not None:
            self.parts.add(held.id, header.source, header.created_ms, header.part)
            draft.row("part", held.id, *header.part)
        if held.retain:
            self._retain(held, draft)

    def _retain(self, held: Held, draft: Draft) -> None:
        """A retained message has come; one in parts counts from its last part on, and stands there by its first."""
        shown = self.shown(held)
        if shown is None:
            return
        before = self.outboxes.retained.get(str(shown.channel))
        if rows := self.outboxes.retain(shown):
            draft.rows += rows
            self.use(shown.id, 1, draft)
            if before is not None:
                self.use(before.id, -1, draft)

    def _restore(self, row: tuple[Any, ...]) -> None:
        """A bundle that was here when the node ended; what has expired since, the first tick drops."""
        id, mark, source, created_ms, sequence, offset, topic, _, begins_ms, lifetime_ms, size, hops = row[:12]
        copies, qos, flags, pinned, carried, has_data = row[12:]
        source, topic = sys.intern(source), sys.intern(topic)  # SQLite gives every row its own
        key = (created_ms, source, sequence, offset)
        held = self.by_id[id] = Held(
            key, mark, source, topic, begins_ms / 1000, size, seconds(lifetime_ms),
            id, qos, bool(flags & 1), bool(flags & 2), hops, bool(has_data),
        )  # fmt: skip
        if carried and has_data:
            self.router.keep(held, hops, copies, pinned)
        else:
            self.router.note_seen(held)
            self.waiting_bytes += size if has_data else 0

    # -- messages in parts

    def ids_of(self, id: int) -> tuple[int, ...]:
        """The rows of the whole message that a row belongs to; () if parts of it are missing."""
        return self.parts.whole(id) if id in self.parts else (id,)

    def shown(self, held: Held) -> Held | None:
        """The bundle that stands for a message in outboxes: its first part; None if not all parts are here."""
        if held.id not in self.parts:
            return held
        ids = self.parts.whole(held.id)
        return self.by_id[ids[0]] if ids and all(self.by_id[id].has_data for id in ids) else None

    def wait_for_others(self, held: Held, draft: Draft) -> None:
        """A part that is wanted here stays until the others have come, unless one has gone already."""
        if held.id in self.parts.waiting or not all(self.by_id[id].has_data for id in self.parts.known(held.id)):
            return
        self.parts.waiting.add(held.id)
        self._use(held, 1, draft)

    def waited(self, shown: Held, draft: Draft) -> None:
        """All are here, and in the outboxes where they are wanted."""
        for id in self.parts.waiting.intersection(self.ids_of(shown.id)) if self.parts.waiting else ():
            self.parts.waiting.discard(id)
            self._use(self.by_id[id], -1, draft)

    # -- they go

    def use(self, id: int, change: int, draft: Draft) -> None:
        """A message waits in one outbox more, or less: while it does, it does not leave."""
        for one in self.ids_of(id):
            self._use(self.by_id[one], change, draft)

    def _use(self, held: Held, change: int, draft: Draft) -> None:
        before, held.uses = held.uses, held.uses + change
        mark = held.mark
        if before == 0:
            self.router.store.pin(mark)
        elif held.uses == 0 and mark in self.router.store:
            self.router.store.unpin(mark)
        elif held.uses == 0 and held.has_data:
            self.forget_data(held, draft)

    def expire(self, now_s: float, draft: Draft) -> None:
        """Bundles leave whose lifetime is over, and rows that need not be remembered any more."""
        self.drop(self.router.expire(now_s, self._is_late), "expired", now_s, draft)
        while self._forgetting and self._forgetting[0].expires_s + self.settings.skew_s <= now_s:
            self._forget(self._forgetting.popleft(), draft)

    def _is_late(self, bundle: Bundle) -> None:
        assert isinstance(bundle, Held)
        self.late[bundle.mark] = bundle
        self._forgetting.append(bundle)

    def next_expiry_s(self) -> float:
        """When `expire` has something to do."""
        forgets_s = self._forgetting[0].expires_s + self.settings.skew_s if self._forgetting else math.inf
        return min(self.router.next_expiry_s(), forgets_s)

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
        self.waiting_bytes -= held.size_bytes

    def _forget(self, held: Held, draft: Draft) -> None:
        """A bundle has expired long ago: nothing of it stays, nor of a message of which it is a part."""
        for id in self.ids_of(held.id)[:1]:
            self._leave_out(self.by_id[id], draft)
        if held.has_data:
            self.forget_data(held, draft)
        if held.id in self.parts:
            self.parts.forget(held.id)
            draft.row("part.forget", held.id)
        draft.row("bundle.forget", held.id)
        del self.by_id[held.id], self.late[held.mark]
        self._gone(held.mark)

    def _leave_out(self, shown: Held, draft: Draft) -> None:
        """A message waits for nobody any more."""
        topic = str(shown.channel)
        if self.outboxes.retained.get(topic) is shown:
            del self.outboxes.retained[topic]
            draft.row("retained.forget", topic)
            self.use(shown.id, -1, draft)
        for session in self.outboxes.sessions.values() if shown.uses else ():
            if shown.id in session.queue:
                del session.queue[shown.id]
                draft.row("outbox.forget", session.client, shown.id)
                self.use(shown.id, -1, draft)
