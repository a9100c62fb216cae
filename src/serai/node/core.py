"""A node without its clock, disk and sockets: what happens goes in, `Effects` come out.

Memory first, commit, then speak: a method changes the node's memory at once and returns rows to commit in one
transaction, then words to say. Whoever dies in between has told nobody. Whoever calls it hands the effects to
`serai.node.store`, in the order in which they were returned, and says the words when the store has committed the rows.

`now_s` is the node's time in seconds since 2000 (DTN time); it never goes back. Bundles are kept by
`serai.node.holdings`, sessions of applications by `serai.node.outboxes`, neighbours by `serai.node.contacts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from serai.node import schema
from serai.node.bundle.message import message_of
from serai.node.contacts import Contacts, Draft
from serai.node.holdings import Holdings, seconds
from serai.node.matching import Matches, TopicMatching, same_topic
from serai.node.outboxes import RETAINED, Outboxes, Session
from serai.node.parts import count_of, cut
from serai.node.restoring import restore
from serai.node.settings import NodeSettings
from serai.node.words import (
    Accept,
    Effects,
    Encode,
    Header,
    Held,
    KnownSession,
    ListMessage,
    Message,
    Queue,
    Queued,
    Refusal,
    Refuse,
    Saved,
    Subscription,
)
from serai.opportunistic.router import Bundle, DataMessage, Router
from serai.opportunistic.rules import WHEN_FULL, is_expired


class Node:
    """One node; `saved` is what `serai.node.store` found on disk, `payload` reads one from there by the row's id."""

    def __init__(
        self,
        settings: NodeSettings,
        saved: Saved,
        encode: Encode,
        matches: Matches = same_topic,
        data: Callable[[int], bytes] = lambda id: b"",
        now_s: float = 0.0,
    ) -> None:
        self.settings, self.encode, self._data = settings, encode, data
        self.epoch = bytes(saved.meta.get("epoch", b""))
        self.matching = TopicMatching(matches, self._payload)
        self._fresh: dict[int, bytes] = {}  # what is just coming, by mark: it is not yet on disk
        self.router = Router(
            settings.name,
            settings.decisions,
            settings.rules,
            capacity_bytes=settings.store_bytes,
            most_bundles=settings.store_bundles,
            when_full=WHEN_FULL.index(settings.when_full),
            keep_own=settings.keep_own,
            carries=settings.carries,
            key=settings.key,
            mark=settings.mark_of_node(settings.name),
            matching=self.matching,
            longest_s=settings.longest_s,
        )
        self.outboxes = Outboxes()
        self.holdings = Holdings(settings, saved, self.router, self.outboxes, self._gone)
        self.contacts = Contacts(settings, self.router, self.epoch, self.holdings.journal)
        self.has_room = True  # on the disk, besides what is to be left free of it
        self.spread: dict[str, int] = {}  # interests of own sessions, and the subscription whose entry tells of each
        restore(self, saved, now_s)

    def _gone(self, mark: int) -> None:
        self.contacts.forget_mark(mark)

    # -- applications (serai.node.mqtt_server)

    def session_opened(
        self, client: str, now_s: float, *, clean: bool, version: int, lifetime_s: float, will: bytes | None
    ) -> Effects:
        """A client has connected; outcome "resumed" if its session was still there, else "new".

        If the node dies meanwhile, the session lives on for `lifetime_s` after the next start (0: it is over then).
        """
        draft, known = self._draft(), self.outboxes.sessions.get(client)
        resumed = known is not None and not clean and known.expires_s > now_s
        if known is not None and not resumed:
            self._end_session(client, now_s, draft)
        session = self.outboxes.sessions.setdefault(client, Session(client, version))
        session.version, session.expires_s, session.will = version, math.inf, will
        draft.row("session", client, version, None if lifetime_s == math.inf else -_ms(lifetime_s), will)
        return draft.effects("resumed" if resumed else "new")

    def session_closed(self, client: str, now_s: float, lifetime_s: float) -> Effects:
        """Its connection is over; the session lives on for a time (0: it ends now, inf: for ever)."""
        draft, session = self._draft(), self.outboxes.sessions.get(client)
        if session is not None and lifetime_s > 0:
            session.expires_s = now_s + lifetime_s
            expires_ms = None if lifetime_s == math.inf else _ms(session.expires_s)
            draft.row("session", client, session.version, expires_ms, session.will)
        elif session is not None:
            self._end_session(client, now_s, draft)
        return draft.effects()

    def published(
        self, client: str, message: Message, lifetime_s: float, now_s: float, size_bytes: int | None = None
    ) -> Effects:
        """A client has published; outcome "stored", or "full": there is no room, so never acknowledge it.

        "late": it lived for no time. `inbound` rows and the acknowledgement are the caller's to add (`also`, `then`).
        `size_bytes`: what it counts for in stores and on links, if not its length.
        """
        draft = self._draft()
        made = self._made(message, _ms(lifetime_s), _ms(now_s), size_bytes, draft)
        bundles = [bundle for _, bundle, _ in made]
        for header, bundle, _ in made:
            draft.log(now_s, schema.BORN, mark=bundle.mark, bytes=bundle.size_bytes, what=header.lifetime_ms,
                      text=message.topic)  # fmt: skip
        self._fresh = {bundle.mark: data for _, bundle, data in made}
        stored, evicted = self.router.publish_all(bundles, now_s) if self.has_room else (False, [])
        self.holdings.drop(evicted, "evicted", now_s, draft)
        if not stored:
            why = "expired" if is_expired(now_s, bundles[0].expires_s) else "full"
            for bundle in bundles:
                draft.log(now_s, schema.DROPPED, mark=bundle.mark, bytes=0, what=schema.DROPS.index(why))
                self.holdings.counts[why] += 1
            return draft.effects("full" if why == "full" else "late")
        for header, bundle, data in made:
            self.holdings.add(bundle, header, data, True, now_s, draft)
        self._fan_out(bundles[0], client, draft)
        self._fresh = {}
        draft.words += self.contacts.ready()
        return draft.effects("stored")

    def _made(
        self, message: Message, lifetime_ms: int, now_ms: int, size_bytes: int | None, draft: Draft
    ) -> list[tuple[Header, Held, bytes]]:
        """The bundles that a message goes in: one, or one for each of its parts."""
        sequences = [self.holdings.number("sequence", draft) for _ in range(count_of(message.payload))]
        parts = cut(message, sequences[0]) if len(sequences) > 1 else (message,)
        made = []
        for sequence, one in zip(sequences, parts, strict=True):
            header = Header(
                self.settings.name, now_ms, sequence, 0, message.topic, lifetime_ms, qos=message.qos,
                retain=message.retain, has_payload=bool(message.payload), part=one.part,
            )  # fmt: skip
            data = self.encode(header, one)
            size = len(data) if size_bytes is None else size_bytes
            made.append((header, self._bundle_of(header, now_ms, size), data))
        return made

    def subscribed(self, wanted: Subscription, now_s: float) -> Effects:
        """A session wants something (its `id` is given here); retained messages are queued as its options say."""
        draft, session = self._draft(), self.outboxes.sessions[wanted.session]
        old = session.subscriptions.get(wanted.filter)
        if old is not None:
            one = wanted._replace(id=old.id, interest=old.interest, share=old.share, since_ms=old.since_ms)
            draft.row("interest.options", one.options, one.identifier, one.id)
        else:
            one = wanted._replace(id=self.holdings.number("interest", draft), since_ms=_ms(now_s))
            draft.row("interest", *one)
        self.outboxes.add(session, one)
        queued = False
        if old is None and (self.settings.each_interest or one.interest not in self.spread):
            self.spread[one.interest] = one.id
            draft.log(now_s, schema.SUBSCRIBED, what=one.id, text=one.interest)
            for bundle in self.router.subscribe(one.id, one.interest, now_s, one.since_ms / 1000):
                held = self.holdings.of(bundle.mark)
                self._delivered(held, "", now_s, draft)
                shown = self.holdings.shown(held)
                if shown is None:
                    self.holdings.wait_for_others(held, draft)
                    continue
                queued = self._enqueue(session, Queue(shown.id, min(held.qos, one.options & 3), 0, 0, 0), draft)
                self.holdings.waited(shown, draft)
        handling = one.options >> 4 & 3
        if not one.share and (handling == 0 or (handling == 1 and old is None)):
            for held in list(self.outboxes.retained.values()):
                if held.has_payload and self.matching.meets(one.interest, held):
                    waiting = Queue(held.id, min(held.qos, one.options & 3), RETAINED, 0, 0)
                    queued = self._enqueue(session, waiting, draft) or queued
        if queued:
            draft.words.append(Queued(session.client))
        draft.words += self.contacts.ready()
        return draft.effects()

    def unsubscribed(self, client: str, filter: str, now_s: float) -> Effects:
        """It does not any more; outcome "none" if there was no such subscription."""
        draft, session = self._draft(), self.outboxes.sessions.get(client)
        if session is None or filter not in session.subscriptions:
            return Effects(outcome="none")
        self._unsubscribe(session, filter, now_s, draft)
        draft.words += self.contacts.ready()
        return draft.effects()

    def sessions(self) -> Iterable[KnownSession]:
        """All sessions, connected or not; after a start those with a will were cut off by whatever ended the node."""
        return self.outboxes.known()

    def subscriptions(self, session: str) -> Iterable[Subscription]:
        """What a session has asked for."""
        found = self.outboxes.sessions.get(session)
        return list(found.subscriptions.values()) if found else []

    def outbox(self, session: str) -> Iterable[Queue]:
        """What waits for a session, in the order in which it came."""
        found = self.outboxes.sessions.get(session)
        return found.queue.values() if found else ()

    def message(self, id: int) -> Message | None:
        """The message of a row of an outbox; None if the store does not know it yet, or any more."""
        found = [message_of(data) if (data := self._data(one)) else None for one in self.holdings.ids_of(id)]
        pieces = [one for one in found if one is not None]
        if not pieces or len(pieces) < len(found):
            return None
        if len(pieces) == 1:
            return pieces[0]
        return pieces[0]._replace(payload=b"".join(one.payload for one in pieces), part=None)

    def outbox_sent(self, session: str, bundle: int, packet: int, state: int) -> Effects:
        """It is about to be sent under a packet id, or has reached another state of the handshake."""
        queue = self.outboxes.sessions[session].queue
        queue[bundle] = queue[bundle]._replace(packet=packet, state=state)
        return Effects((("outbox.state", (packet, state, session, bundle)),))

    def outbox_done(self, session: str, bundle: int) -> Effects:
        """The client has it, or it is not wanted any more."""
        draft = self._draft()
        found = self.outboxes.sessions.get(session)
        if found is not None and bundle in found.queue:
            del found.queue[bundle]
            draft.row("outbox.forget", session, bundle)
            self.holdings.use(bundle, -1, draft)
        return draft.effects()

    # -- neighbours (serai.node.links)

    def contact_up(self, peer: str, now_s: float, rate_bps: float, *, carries: bool, epoch: bytes) -> Effects:
        """A session with a neighbour that speaks DPSP is open; `epoch`: of its store. An older one is over."""
        draft = self._draft()
        self.contacts.up(peer, now_s, rate_bps, carries, epoch, draft)
        return draft.effects()

    def contact_down(self, peer: str, now_s: float, sent_bytes: Mapping[int, int] | None = None) -> Effects:
        """It is over; `sent_bytes`: of each transfer under way, where the link knows."""
        draft = self._draft()
        self.contacts.down(peer, now_s, sent_bytes or {}, "broken", draft)
        return draft.effects()

    def journal_known(self, peer: str, epoch: bytes, upto: int, now_s: float) -> Effects:
        """The neighbour knows this node's journal up to a number."""
        return Effects(words=tuple(self.contacts.journal_known(peer, epoch, upto)))

    def list_received(self, peer: str, message: ListMessage, now_s: float) -> Effects:
        """A neighbour's list has arrived."""
        draft = self._draft()
        self.contacts.heard(peer, message, now_s, draft)
        return draft.effects()

    def bundle_received(self, peer: str, transfer: int, header: Header, data: bytes, now_s: float) -> Effects:
        """A bundle has arrived whole, with good CRCs and signature; outcome as in the log: "relayed", "late" ..."""
        now_ms = _ms(now_s)
        begins_ms = _begins_ms(header, now_ms, self.settings.clock_ms)
        held = self._bundle_of(header, begins_ms, header.size_bytes)
        if not header.topic or begins_ms > now_ms + _ms(self.settings.skew_s):
            return Effects((), (Refuse(peer, transfer, "unacceptable"),), "unacceptable")
        if held.mark in self.holdings.late and not is_expired(now_s, held.expires_s):
            return Effects((), (Refuse(peer, transfer, "duplicate"),), "duplicate")  # the clock was set back
        waiting_bytes = self.holdings.waiting_bytes + held.size_bytes
        is_full = waiting_bytes > self.settings.waiting_bytes and self.router.wants(held)
        if is_full or not (self.has_room or held.mark in self.router.seen):
            return Effects((), (Refuse(peer, transfer, "refused"),), "refused")
        draft = self._draft()
        self._fresh = {held.mark: data}
        got = self.router.receive_data(peer, DataMessage(held, max(header.hops - 1, 0), 0), now_s)
        self.holdings.drop(got.evicted, "evicted", now_s, draft)
        self.holdings.counts[got.fate] += 1
        if got.fate != "relayed":
            reason: Refusal = "unacceptable" if got.fate == "no contact" else got.fate
            draft.words.append(Refuse(peer, transfer, reason))
            return draft.effects(got.fate)
        self.holdings.add(held, header, data, got.stays, now_s, draft, peer)
        if got.delivered:
            self._delivered(held, peer, now_s, draft)
            self._hand_out(held, draft)
        if not got.stays and not held.uses:
            self.holdings.forget_data(held, draft)
        draft.words.append(Accept(peer, transfer))
        draft.words += self.contacts.ready(but=peer)
        return draft.effects("relayed")

    def next_transfer(self, peer: str, now_s: float) -> Effects:
        """The next list or bundle for a neighbour, as a word; none if the window is full or there is nothing."""
        return Effects(words=tuple(self.contacts.next_transfer(peer, now_s)))

    def acknowledged(self, peer: str, transfer: int, now_s: float) -> Effects:
        """A neighbour has taken a transfer."""
        draft = self._draft()
        self.contacts.ended(peer, transfer, "relayed", now_s, draft)
        return draft.effects(patient=True)

    def refused(self, peer: str, transfer: int, reason: Refusal, now_s: float) -> Effects:
        """A neighbour has refused a transfer."""
        draft = self._draft()
        self.contacts.ended(peer, transfer, "late" if reason == "unacceptable" else reason, now_s, draft)
        return draft.effects(patient=True)

    # -- time

    def started(self, now_s: float) -> Effects:
        """The node begins; the log says under which name."""
        draft = self._draft()
        draft.log(
            now_s, schema.STARTED, "", None, self.settings.store_bytes, int(self.settings.carries), None,
            self.settings.name,
        )  # fmt: skip
        return draft.effects()

    def tick(self, now_s: float) -> Effects:
        """Time has passed: bundles, entries and sessions expire, lists are due."""
        draft = self._draft()
        self.holdings.expire(now_s, draft)
        for entry in self.router.knowledge.forget(now_s):
            draft.row("entry.forget", str(entry.subscriber), entry.id)
        for client in self.outboxes.expired(now_s):
            self._end_session(client, now_s, draft)
        draft.words += self.contacts.due(now_s)
        return draft.effects()

    def due_s(self) -> float:
        """When `tick` is to be called next, at the latest."""
        return min(self.holdings.next_expiry_s(), self.outboxes.next_expiry_s(), self.contacts.next_due_s())

    def stop(self, now_s: float) -> Effects:
        """The node ends in an orderly way."""
        draft = self._draft()
        for peer in list(self.router.contacts):
            self.contacts.down(str(peer), now_s, {}, "unfinished", draft)
        return draft.effects()

    def status(self, now_s: float) -> dict[str, Any]:
        """The node in numbers: `name`, `neighbours`, `store`, `sessions`, `entries`, `drops`, `transfers`."""
        return {
            "name": self.settings.name,
            "neighbours": self.contacts.status(now_s),
            "before": self.contacts.before(now_s),
            "store": self.holdings.status(),
            "sessions": self.outboxes.status(),
            "entries": len(getattr(self.router.knowledge, "known", ())),
            "drops": {name: self.holdings.counts[name] for name in ("expired", "evicted", "full")},
            "transfers": {name: self.contacts.counts[name] for name in schema.TRANSFERS},
        }

    # -- inside

    def _draft(self) -> Draft:
        return Draft(self.settings.log_rows > 0)

    def _hand_out(self, held: Held, draft: Draft) -> None:
        """A bundle that is wanted here has come: its message goes into outboxes when all parts of it are here."""
        shown = self.holdings.shown(held)
        if shown is None:
            self.holdings.wait_for_others(held, draft)
        else:
            self._fan_out(shown, "", draft)
            self.holdings.waited(shown, draft)

    def _fan_out(self, held: Held, publisher: str, draft: Draft) -> None:
        """Put a message into the outboxes of all sessions that want it."""
        fitting = self.outboxes.fitting(held, self.matching)
        for client, waiting in self.outboxes.fan_out(held, fitting, publisher):
            self._enqueue(self.outboxes.sessions[client], waiting, draft)
            draft.words.append(Queued(client))

    def _enqueue(self, session: Session, waiting: Queue, draft: Draft) -> bool:
        if waiting.bundle not in session.queue:
            self.holdings.use(waiting.bundle, 1, draft)
        elif session.queue[waiting.bundle].packet:
            return False  # it is on its way to the client already
        session.queue[waiting.bundle] = waiting
        draft.row("outbox", session.client, *waiting)
        return True

    def _delivered(self, held: Held, peer: str, now_s: float, draft: Draft) -> None:
        draft.log(now_s, schema.DELIVERED, peer, held.mark, what=held.hops)
        self.holdings.counts["delivered"] += 1

    def _end_session(self, client: str, now_s: float, draft: Draft) -> None:
        session = self.outboxes.sessions[client]
        for filter in list(session.subscriptions):
            self._unsubscribe(session, filter, now_s, draft)
        for bundle in list(session.queue):
            draft.row("outbox.forget", client, bundle)
            del session.queue[bundle]
            self.holdings.use(bundle, -1, draft)
        del self.outboxes.sessions[client]
        draft.row("inbound.forget_all", client)
        draft.row("session.forget", client)

    def _unsubscribe(self, session: Session, filter: str, now_s: float, draft: Draft) -> None:
        one = self.outboxes.remove(session, filter)
        draft.row("interest.forget", one.id)
        if self.settings.each_interest or not self.outboxes.asking[one.interest]:
            entry = one.id if self.settings.each_interest else self.spread.pop(one.interest)
            draft.log(now_s, schema.UNSUBSCRIBED, what=entry, text=one.interest)
            self.router.unsubscribe(entry, now_s)

    def _bundle_of(self, header: Header, begins_ms: int, size_bytes: int) -> Held:
        """A bundle that has just come, as the router sees it and the store will know it."""
        mark = self.settings.mark_of_bundle(header.source, header.created_ms, header.sequence, header.offset)
        return Held(
            header.key, mark, header.source, header.topic, begins_ms / 1000, size_bytes,
            seconds(header.lifetime_ms), 0, header.qos, header.retain, header.has_payload, header.hops,
        )  # fmt: skip

    def _payload(self, bundle: Bundle) -> bytes:
        """What conditions look into: nothing of a message in parts."""
        assert isinstance(bundle, Held)
        if bundle.id in self.holdings.parts:
            return b""
        message = message_of(self._fresh.get(bundle.mark) or self._data(bundle.id))
        return message.payload if message.part is None else b""


def _ms(time_s: float) -> int:
    return round(time_s * 1000)


def _begins_ms(header: Header, now_ms: int, tolerance_ms: int) -> int:
    """When a bundle was created, by this node's clock: its timestamp if that agrees with its age, else by its age."""
    by_age_ms = now_ms - header.age_ms
    believed = header.created_ms and (not header.age_ms or abs(header.created_ms - by_age_ms) <= tolerance_ms)
    return header.created_ms if believed else by_age_ms
