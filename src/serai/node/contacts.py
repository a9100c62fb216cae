"""Neighbours: what is under way to them, the words of lists, and whose journal is known up to where. Pure."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from serai.node import schema
from serai.node.settings import NodeSettings
from serai.node.wire import lists
from serai.node.words import (
    AllSeen,
    BloomSeen,
    Effects,
    Held,
    JournalSeen,
    ListEntry,
    ListMessage,
    Ready,
    Row,
    SendBundle,
    SendKnown,
    SendList,
    Value,
    Word,
)
from serai.opportunistic.entries import Entry, SubscriptionList
from serai.opportunistic.router import ControlMessage, DataMessage, Router
from serai.opportunistic.router.contact import LIST
from serai.opportunistic.router.messages import BloomFilter
from serai.opportunistic.rules import VECTOR, sent_bytes, tells_seen

_JOURNALS = 16  # neighbours whose journals are remembered
_REMEMBERED = 20  # neighbours that have gone, for the page
_MOST_MARKS = 2_000_000  # in all of them; those of neighbours that were away longest go first
_MOST_STRANGE = 100  # marks in one of them, besides as many as are known here
_RATE_OVER_S = 5.0
_MOST_ENTRY_BYTES = 2_000_000  # in one list
_LEAST_RATE_BPS = 1000.0
_MOST_HOPS = 255
_LONGEST_INTEREST = 1024
_LONGEST_MS = 366 * 86_400_000


class Draft:
    """Rows and words as they come up."""

    def __init__(self, has_log: bool = True) -> None:
        self.rows: list[Row] = []
        self.words: list[Word] = []
        self._has_log = has_log

    def row(self, statement: str, *values: Value) -> None:
        """A row to commit."""
        self.rows.append((statement, values))

    def log(
        self, time_s: float, kind: int, peer: str = "", mark: int | None = None, bytes: int | None = None,
        what: int | None = None, began_s: float | None = None, text: str | None = None,
    ) -> None:  # fmt: skip
        """A row of the log: see `serai.node.schema`."""
        if self._has_log:
            self.rows.append(("log", (time_s, kind, peer, mark, bytes, what, began_s, text)))

    def effects(self, outcome: str = "", patient: bool = False) -> Effects:
        """All of it."""
        return Effects(tuple(self.rows), tuple(self.words), outcome, patient)


@dataclass(slots=True)
class Transfer:
    """A list or a bundle on its way."""

    message: ControlMessage | DataMessage
    began_s: float
    journal: int = 0  # of a list: up to where it tells of this node's journal
    is_all: bool = True  # and whether that is all of it

    @property
    def size_bytes(self) -> int:
        """What it takes."""
        return self.message.size_bytes


@dataclass
class Neighbour:
    """A contact that lasts."""

    since_s: float
    epoch: bytes  # b"": it does not speak of journals
    asked: bool  # whether it has said what it knows of this node's journal
    told: int = 0  # up to where it knows it
    transfers: dict[int, Transfer] = field(default_factory=dict)
    acknowledged: deque[tuple[float, int]] = field(default_factory=deque)  # of the last seconds: when it began, size
    recent_bytes: int = 0  # their sum
    bytes_under_way: int = 0  # not yet acknowledged


@dataclass
class Journal:
    """What is known of a neighbour's journal."""

    epoch: bytes
    upto: int = 0
    marks: set[int] = field(default_factory=set)
    goes_on: bool = False  # more of it was announced
    whole: int = 0  # so many marks there were when it was last told from its beginning
    asked: bool = False  # whether it was asked for from its beginning, and has not come yet


class Contacts:
    """All neighbours of a node. `journal(after)`: see `serai.node.holdings`."""

    def __init__(
        self,
        settings: NodeSettings,
        router: Router,
        epoch: bytes,
        journal: Callable[[int], tuple[int, frozenset[int], bool]],
    ) -> None:
        self.settings, self.router, self.epoch = settings, router, epoch
        self.journal = journal
        self.neighbours: dict[str, Neighbour] = {}
        self.journals: OrderedDict[str, Journal] = OrderedDict()
        self.counts: Counter[str] = Counter()
        self._gone: dict[str, tuple[float, float]] = {}  # neighbours of before: until when, and for how long
        self._transfers = 0
        self._has_entries = isinstance(router.knowledge, SubscriptionList)

    # -- contacts

    def up(self, peer: str, now_s: float, rate_bps: float, carries: bool, epoch: bytes, draft: Draft) -> None:
        """A contact begins."""
        self.down(peer, now_s, {}, "broken", draft)
        self.router.contact_up(peer, now_s, rate_bps, carries, mark=self.settings.mark_of_node(peer))
        self.neighbours[peer] = Neighbour(now_s, epoch, asked=not epoch)
        if epoch:
            journal = self.journals.pop(peer, None)
            if journal is None or journal.epoch != epoch or _is_stale(journal):
                journal = Journal(epoch)
            self.journals[peer] = journal
            while len(self.journals) > _JOURNALS:
                self.journals.popitem(last=False)
            draft.words.append(SendKnown(peer, epoch, journal.upto))
        draft.words.append(Ready(peer))

    def down(self, peer: str, now_s: float, sent: Mapping[int, int], outcome: str, draft: Draft) -> None:
        """A contact is over, if there was one; what was under way came to nothing."""
        neighbour = self.neighbours.pop(peer, None)
        if neighbour is None:
            return
        rate_bps = self.router.contacts[peer].rate_bps
        for number, transfer in neighbour.transfers.items():
            went = sent.get(number, sent_bytes(transfer.size_bytes, rate_bps, now_s - transfer.began_s))
            self._log(peer, transfer, min(went, transfer.size_bytes), outcome, now_s, draft)
        self.router.contact_down(peer)
        draft.log(now_s, schema.CONTACT, peer, began_s=neighbour.since_s)
        self._gone.pop(peer, None)
        self._gone[peer] = now_s, now_s - neighbour.since_s
        if len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]

    # -- what goes out

    def next_transfer(self, peer: str, now_s: float) -> list[Word]:
        """The next list or bundle, if the window has room."""
        neighbour = self.neighbours.get(peer)
        if neighbour is None or not neighbour.asked or not self._has_room(peer, neighbour):
            return []
        message = self.router.next_message(peer, now_s)
        if message is None:
            return []
        self._transfers += 1
        number = self._transfers
        transfer = neighbour.transfers[number] = Transfer(message, now_s)
        neighbour.bytes_under_way += message.size_bytes
        if isinstance(message, ControlMessage):
            return [SendList(peer, number, self._list(neighbour, transfer, message), message.size_bytes)]
        held = message.bundle
        assert isinstance(held, Held)
        begins_ms = round(held.created_s * 1000)
        return [SendBundle(peer, number, held.id, held.mark, message.hops, begins_ms, held.size_bytes)]

    def _has_room(self, peer: str, neighbour: Neighbour) -> bool:
        """At most so many transfers, and what the link carries in a second; but always one."""
        if not neighbour.transfers:
            return True
        second = int(self.router.contacts[peer].rate_bps / 8)
        most = min(self.settings.window_bytes, second)
        return len(neighbour.transfers) < self.settings.window_transfers and neighbour.bytes_under_way < most

    def _list(self, neighbour: Neighbour, transfer: Transfer, message: ControlMessage) -> ListMessage:
        seen: AllSeen | BloomSeen | JournalSeen
        if isinstance(message.seen, BloomFilter):
            seen = BloomSeen(message.seen.hashes, message.seen.salt, message.seen.bits)
        elif neighbour.epoch and self.router.rules.seen == VECTOR and tells_seen(self.router.rules):
            transfer.journal, marks, transfer.is_all = self.journal(neighbour.told)
            seen = JournalSeen(self.epoch, neighbour.told + 1, transfer.journal, marks)
        else:
            seen = AllSeen(message.seen)
        if self._has_entries:
            entries = _nearest(tuple(map(_told, message.content)))
        else:
            wanted = sorted(map(str, message.content))
            entries = tuple(ListEntry(self.settings.name, n, one, 0, 1, 1, 0, 0) for n, one in enumerate(wanted))
        return ListMessage(self._transfers, message.made_s, entries, seen)

    def ended(self, peer: str, number: int, outcome: str, now_s: float, draft: Draft) -> None:
        """A neighbour has answered."""
        neighbour = self.neighbours.get(peer)
        transfer = neighbour.transfers.pop(number, None) if neighbour else None
        if neighbour is None or transfer is None:
            return
        message = transfer.message
        neighbour.bytes_under_way -= message.size_bytes
        accepted = outcome == "relayed"
        owed = self.router.owed.left(message.bundle.mark) if isinstance(message, DataMessage) else 0
        self.router.sent(peer, message, accepted=accepted, duplicate=outcome == "duplicate")
        if isinstance(message, ControlMessage) and accepted:
            neighbour.told = max(neighbour.told, transfer.journal)
            if not transfer.is_all:  # the rest at once
                self.router.contacts[peer].due_s = now_s
        elif isinstance(message, DataMessage) and (left := self.router.owed.left(message.bundle.mark)) < owed:
            assert isinstance(message.bundle, Held)
            draft.row("bundle.pinned", left, message.bundle.id)
        self._log(peer, transfer, transfer.size_bytes, outcome, now_s, draft)
        self._estimate(peer, neighbour, transfer, now_s)
        draft.words.append(Ready(peer))

    def _estimate(self, peer: str, neighbour: Neighbour, transfer: Transfer, now_s: float) -> None:
        """The rate of a link is what was acknowledged in the last seconds."""
        if self.settings.fixed_rate:
            return
        recent = neighbour.acknowledged
        recent.append((transfer.began_s, transfer.size_bytes))
        neighbour.recent_bytes += transfer.size_bytes
        while now_s - recent[0][0] > _RATE_OVER_S and len(recent) > 1:
            neighbour.recent_bytes -= recent.popleft()[1]
        passed_s = max(now_s - recent[0][0], 0.05)
        self.router.contacts[peer].rate_bps = max(8 * neighbour.recent_bytes / passed_s, _LEAST_RATE_BPS)

    def _log(self, peer: str, transfer: Transfer, size: int, outcome: str, now_s: float, draft: Draft) -> None:
        if isinstance(transfer.message, DataMessage):
            self.counts[outcome] += 1
            mark, what = transfer.message.bundle.mark, schema.TRANSFERS.index(outcome)
            draft.log(now_s, schema.TRANSFER, peer, mark, size, what, transfer.began_s)
        else:
            entries, what = len(transfer.message.content), schema.TRANSFERS.index(outcome)
            draft.log(now_s, schema.LIST, peer, entries, size, what, transfer.began_s)

    # -- what comes in

    def journal_known(self, peer: str, epoch: bytes, upto: int) -> list[Word]:
        """A neighbour says how far it knows this node's journal."""
        neighbour = self.neighbours.get(peer)
        if neighbour is None:
            return []
        neighbour.asked, neighbour.told = True, upto if epoch == self.epoch else 0
        for transfer in neighbour.transfers.values():  # it does not count what was on its way when it said so
            transfer.journal = 0
        return [Ready(peer)]

    def heard(self, peer: str, message: ListMessage, now_s: float, draft: Draft) -> None:
        """A neighbour's list has arrived."""
        if peer not in self.neighbours:
            return
        content: Any
        if self._has_entries:
            content = self._believed(message.entries[: self.settings.entries_of_peer], now_s)
        else:
            content = frozenset(entry.interest for entry in message.entries)
        seen: frozenset[int] | BloomFilter
        is_delta = False
        if isinstance(message.seen, BloomSeen):
            seen = BloomFilter(message.seen.bits, message.seen.hashes, message.seen.salt)
        elif isinstance(message.seen, JournalSeen):
            seen, is_delta = self._read_journal(peer, message.seen, draft)
            if len(message.seen.marks) == lists.MAX_MARKS:
                return
        else:
            seen = message.seen.marks
        made_s = min(message.made_s, now_s + self.settings.skew_s)
        for entry in self.router.receive_control(peer, ControlMessage(made_s, 0, seen, content, is_delta), now_s):
            draft.row("entry", *_told(entry))
        draft.words.append(Ready(peer))

    def _read_journal(self, peer: str, seen: JournalSeen, draft: Draft) -> tuple[frozenset[int], bool]:
        """The marks of a neighbour's journal, with its first list all; whether they are only what has just come."""
        journal = self.journals.get(peer)
        if journal is None or journal.epoch != seen.epoch:
            journal = self.journals[peer] = Journal(seen.epoch)
        anew = seen.first == 1
        if seen.first > journal.upto + 1:  # something is missing: begin again
            journal.upto = 0
            journal.marks = set(seen.marks)
            draft.words.append(SendKnown(peer, seen.epoch, 0))
        else:
            if anew:
                journal.marks.clear()
                journal.asked = False
            if len(journal.marks) >= _MOST_MARKS:  # what is not remembered is refused as a duplicate
                seen = seen._replace(marks=frozenset())
            journal.marks |= seen.marks
            journal.upto = max(journal.upto, seen.last)
        self._forget_journals(peer)
        goes_on, journal.goes_on = journal.goes_on, len(seen.marks) == lists.MAX_MARKS
        if anew or goes_on:
            journal.whole = len(journal.marks)
        elif _is_stale(journal) and not journal.asked:
            journal.asked = True
            draft.words.append(SendKnown(peer, seen.epoch, 0))
        if goes_on:
            return frozenset(journal.marks), False
        return (seen.marks if self.router.contacts[peer].lists else frozenset(journal.marks)), not anew

    def _forget_journals(self, but: str) -> None:
        """Journals take memory, whoever has sent them: those of neighbours that were away longest go."""
        while len(self.journals) > 1 and sum(len(one.marks) for one in self.journals.values()) > _MOST_MARKS:
            first = next(iter(self.journals))
            if first == but:
                self.journals.move_to_end(first)
            else:
                del self.journals[first]

    def _believed(self, entries: tuple[ListEntry, ...], now_s: float) -> tuple[Entry, ...]:
        """The entries that can be true."""
        limit_ms = (now_s + self.settings.skew_s) * 1000
        known: Mapping[Any, Any] = getattr(self.router.knowledge, "known", {})
        room = self.settings.entries - len(known)
        believed = []
        for told in entries:
            if not _can_be(told, limit_ms):
                self.counts["entries refused"] += 1
                continue
            if (told.subscriber, told.n) not in known:
                if room <= 0:
                    self.counts["entries refused"] += 1
                    continue
                room -= 1
            believed.append(read_entry(told))
        return tuple(believed)

    # -- time

    def ready(self, but: str = "") -> list[Word]:
        """Neighbours for which there may be something new."""
        return [Ready(peer) for peer in self.neighbours if peer != but]

    def due(self, now_s: float) -> list[Word]:
        """Neighbours to which a list is due."""
        return [Ready(peer) for peer in self.neighbours if self._due_s(peer) <= now_s]

    def next_due_s(self) -> float:
        """When the next list is due."""
        return min(map(self._due_s, self.neighbours), default=math.inf)

    def _due_s(self, peer: str) -> float:
        contact = self.router.contacts[peer]
        return math.inf if LIST in contact.sending or not self.neighbours[peer].asked else contact.due_s

    def forget_mark(self, mark: int) -> None:
        """A bundle has expired: nobody needs to know any more who has it."""
        for journal in self.journals.values():
            journal.marks.discard(mark)

    def status(self, now_s: float) -> list[dict[str, Any]]:
        """Each neighbour in numbers."""
        return [
            {
                "name": peer, "for_s": now_s - one.since_s, "under_way": len(one.transfers),
                "bytes_under_way": one.bytes_under_way, "rate_bps": self.router.contacts[peer].rate_bps,
                "lists": self.router.contacts[peer].lists,
            }
            for peer, one in self.neighbours.items()
        ]  # fmt: skip

    def before(self, now_s: float) -> list[dict[str, Any]]:
        """Those that have gone, the last one first."""
        gone = [(peer, *times) for peer, times in reversed(self._gone.items()) if peer not in self.neighbours]
        return [{"name": peer, "ago_s": now_s - until_s, "for_s": for_s} for peer, until_s, for_s in gone]


def _is_stale(journal: Journal) -> bool:
    """Whether it is time to ask for all of it: of bundles that never came here nobody says when they expire."""
    return len(journal.marks) > 2 * journal.whole + _MOST_STRANGE


def _nearest(entries: tuple[ListEntry, ...]) -> tuple[ListEntry, ...]:
    """The entries for which a list has room: of too many those of the nearest subscribers."""
    if len(entries) <= lists.MAX_ENTRIES and sum(map(_size, entries)) <= _MOST_ENTRY_BYTES:
        return entries
    nearest = sorted(entries, key=lambda entry: entry.hops)[: lists.MAX_ENTRIES]
    ends = accumulate(map(_size, nearest))
    return tuple(entry for entry, end in zip(nearest, ends, strict=True) if end <= _MOST_ENTRY_BYTES)


def _size(entry: ListEntry) -> int:
    """So many bytes it takes at most."""
    return len(entry.subscriber) + len(entry.interest.encode()) + 61  # six numbers of nine bytes, and three heads


def _can_be(told: ListEntry, limit_ms: float) -> bool:
    """Whether an entry is within what time and reason allow."""
    return (
        0 <= told.hops <= _MOST_HOPS
        and 0 < told.renewal_ms <= told.lifetime_ms <= _LONGEST_MS
        and told.created_ms <= limit_ms
        and 0 <= told.renewed * told.renewal_ms <= limit_ms - told.created_ms
        and len(told.interest.encode()) <= _LONGEST_INTEREST
    )


def _told(entry: Entry) -> ListEntry:
    """An entry as it stands in a list and in the store."""
    begins, lives, renewal = (
        round(1000 * time_s) for time_s in (entry.subscribed_s, entry.lifetime_s, entry.renewal_s)
    )
    assert isinstance(entry.id, int)
    who, what = str(entry.subscriber), str(entry.channel)
    return ListEntry(who, entry.id, what, begins, lives, renewal, entry.renewed, entry.hops)


def read_entry(told: ListEntry) -> Entry:
    """An entry as the router knows it."""
    begins, lives, renewal = (time_ms / 1000 for time_ms in (told.created_ms, told.lifetime_ms, told.renewal_ms))
    return Entry(told.n, told.subscriber, told.interest, begins, lives, renewal, told.renewed, told.hops)
