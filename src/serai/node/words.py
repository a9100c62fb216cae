"""What goes into a node's core and what comes out: bundles, lists, and effects (rows to commit, then words to say).

Times are seconds or, on the wire and in rows, whole milliseconds, since 2000-01-01 00:00 UTC: DTN time (RFC 9171).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, NamedTuple

import cbor2

from serai.opportunistic.router.messages import Bundle

Value = int | float | str | bytes | None
Row = tuple[str, tuple[Value, ...]]
"""The name of a statement of `serai.node.schema.STATEMENTS`, and its values."""

# ---- bundles


class Header(NamedTuple):
    """What a node knows of a bundle without its payload; `serai.node.bundle` reads it from bytes, and writes it."""

    source: str  # node id: dtn://NAME/
    created_ms: int  # 0: the source had no clock, and only `age_ms` counts
    sequence: int
    offset: int  # of a fragment, else 0
    topic: str  # of its channel; "" if it is addressed to a node
    lifetime_ms: int
    age_ms: int = 0  # when it came here
    hops: int = 0  # so far: 0 at the source
    size_bytes: int = 0  # of the whole bundle at its source
    qos: int = 0
    retain: bool = False
    has_payload: bool = True  # a retained message without one clears its topic
    part: tuple[int, int, int] | None = None  # first sequence, part, parts: of a message in several bundles

    @property
    def key(self) -> tuple[int, str, int, int]:
        """Its place in order of creation, the same on all nodes."""
        return self.created_ms, self.source, self.sequence, self.offset


class Message(NamedTuple):
    """What an application publishes: payload, and what block 192 of the bundle holds."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    content_type: str | None = None
    response_topic: str | None = None
    correlation: bytes | None = None
    properties: tuple[tuple[str, str], ...] = ()
    payload_format: int | None = None
    part: tuple[int, int, int] | None = None  # first sequence, part, parts


Encode = Callable[[Header, Message], bytes]
"""A bundle as bytes (`serai.node.bundle`); the header's `size_bytes` is not yet known to it."""


def mark_of(source: str, created_ms: int, sequence: int, offset: int = 0) -> int:
    """The name of a bundle on all nodes: the first 63 bits of the SHA-256 of [source, [created, sequence], offset]."""
    text = _source(source) + cbor2.dumps([created_ms, sequence]) + (cbor2.dumps(offset) if offset else b"\0")
    return int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 1


@lru_cache(1024)
def _source(source: str) -> bytes:
    """What the canonical CBOR of `[source, [created, sequence], offset]` begins with."""
    return b"\x83" + cbor2.dumps(source)


def mark_of_node(eid: str) -> int:
    """The number by which a node takes part in random orders: the first 63 bits of the SHA-256 of its id."""
    return int.from_bytes(hashlib.sha256(cbor2.dumps(eid, canonical=True)).digest()[:8]) >> 1


# ---- lists (section 5 of the design; serai.node.wire.lists turns them into CBOR and back)


class ListEntry(NamedTuple):
    """One subscription of somebody, as it stands in a list."""

    subscriber: str  # node id
    n: int  # of the subscriber's subscriptions
    interest: str  # t:FILTER or c:FILTER?CONDITION
    created_ms: int
    lifetime_ms: int
    renewal_ms: int  # it is renewed so often
    renewed: int  # how many times
    hops: int


class AllSeen(NamedTuple):
    """All bundles that the sender of a list has seen."""

    marks: frozenset[int]


class BloomSeen(NamedTuple):
    """The same as a Bloom filter: bit i is bit i % 8 of byte i // 8."""

    hashes: int
    salt: int
    bits: bytes


class JournalSeen(NamedTuple):
    """Marks numbered from `first` to `last` of the sender's journal: what was added since the receiver last heard."""

    epoch: bytes
    first: int
    last: int
    marks: frozenset[int]


class ListMessage(NamedTuple):
    """A list: what a node tells a neighbour about itself; `[1, 0, number, made_s, entries, seen]`."""

    number: int
    made_s: float
    entries: tuple[ListEntry, ...]
    seen: AllSeen | BloomSeen | JournalSeen


# ---- sessions of applications


class Subscription(NamedTuple):
    """What a session has asked for."""

    id: int  # `n` of its entry in lists
    session: str
    filter: str  # as the client wrote it; one per session
    interest: str  # that spreads: t:FILTER or c:FILTER?CONDITION
    share: str = ""  # the group of $share/GROUP/FILTER
    options: int = 0  # the options byte of MQTT 5: bits 0-1 QoS, 2 no local, 3 retain as published, 4-5 retain handling
    identifier: int = 0  # subscription identifier of MQTT 5
    since_ms: int = 0


class Queue(NamedTuple):
    """A message in the outbox of a session; its bytes are `store.data(bundle)`."""

    bundle: int  # id of its row
    qos: int  # at which it is to be delivered
    flags: int  # 1: retain is set
    packet: int  # 0: it was not sent yet
    state: int  # of the session's machine


class KnownSession(NamedTuple):
    """A session that a client may come back to, or that it holds now."""

    client: str
    version: int
    expires_s: float  # inf while it is connected, or for ever
    will: bytes | None  # as `session_opened` was given it; statement `session.will` takes it away


# ---- what is on disk


@dataclass(slots=True)
class Held(Bundle):
    """A bundle as the core remembers it, with its row of the table `bundle`: one object for the router and for it."""

    id: int  # of its row; 0: it has just come and has none yet
    qos: int
    retain: bool
    has_payload: bool
    hops: int
    has_data: bool = True
    uses: int = 0  # outboxes it waits in, and 1 if it is the retained message of its topic


class Saved(NamedTuple):
    """The rows of a store at the start of a node, table by table; an empty one is a new node's."""

    meta: Mapping[str, Any] = {}
    bundle: Iterable[tuple[Any, ...]] = ()
    """To be read once; behind its columns each row has whether there is one of `data`."""
    interest: Sequence[tuple[Any, ...]] = ()
    entry: Sequence[tuple[Any, ...]] = ()
    session: Sequence[tuple[Any, ...]] = ()
    outbox: Sequence[tuple[Any, ...]] = ()
    part: Sequence[tuple[Any, ...]] = ()
    retained: Sequence[tuple[Any, ...]] = ()


# ---- effects


class SendList(NamedTuple):
    """Send a list to a neighbour; its end is `Node.acknowledged(peer, transfer)`."""

    peer: str
    transfer: int
    message: ListMessage
    size_bytes: int = 0  # what it takes by the rules of simulations


class SendKnown(NamedTuple):
    """Tell a neighbour how far its journal is known: `[1, 1, epoch, upto]`. Nobody acknowledges it."""

    peer: str
    epoch: bytes
    upto: int


class SendBundle(NamedTuple):
    """Send a bundle whose bytes are `store.data(id)`, with its age and hops (`serai.node.bundle.message.onward`)."""

    peer: str
    transfer: int
    id: int
    mark: int
    hops: int  # so far; one more at the neighbour
    begins_ms: int  # when it was created, by the clock of this node: its age is the rest
    size_bytes: int


class Accept(NamedTuple):
    """XFER_ACK with END."""

    peer: str
    transfer: int


Refusal = Literal["duplicate", "refused", "late", "unacceptable"]


class Refuse(NamedTuple):
    """XFER_REFUSE: 1 completed (duplicate), 2 no resources (refused), 4 not acceptable (late, unacceptable)."""

    peer: str
    transfer: int
    reason: Refusal


class Ready(NamedTuple):
    """There may be something for the neighbour: ask `Node.next_transfer(peer)`, until it says nothing."""

    peer: str


class Queued(NamedTuple):
    """There is something new in the outbox of a session: see `Node.outbox`."""

    session: str


Word = object
"""Any of the above, and whatever a shell has added with `Effects.then`, such as a PUBACK."""


@dataclass(slots=True)  # not frozen, which takes three times as long to make; nobody changes one
class Effects:
    """Rows to commit in one transaction; then, and only then, words to say, in this order."""

    rows: tuple[Row, ...] = ()
    words: tuple[Word, ...] = ()
    outcome: str = field(default="", compare=False)
    """What became of what went in, known at once: see the method that gave it. It may not be told before the commit."""
    patient: bool = field(default=False, compare=False)
    """Nobody outside is told anything: the words need not wait for the rows, nor the rows be on disk soon."""

    def __add__(self, other: Effects) -> Effects:
        """Both, in one transaction."""
        return Effects(self.rows + other.rows, self.words + other.words, self.outcome or other.outcome)

    def then(self, *words: Word) -> Effects:
        """The same, with more to say after the commit."""
        return Effects(self.rows, self.words + words, self.outcome)

    def also(self, *rows: Row) -> Effects:
        """The same, with more to commit along."""
        return Effects(self.rows + rows, self.words, self.outcome)


def joined(effects: Iterable[Effects]) -> Effects:
    """All of them, in one transaction."""
    parts = list(effects)
    if len(parts) == 1:
        return parts[0]
    rows = tuple(chain.from_iterable(part.rows for part in parts))
    words = tuple(chain.from_iterable(part.words for part in parts))
    patient = bool(parts) and all(part.patient for part in parts)
    ready = [word for word in words if type(word) is Ready]
    if len(ready) > 1:  # each once is enough, when all else is said
        words = (*(word for word in words if type(word) is not Ready), *dict.fromkeys(ready))
    return Effects(rows, words, patient=patient)
