"""A session of TCPCLv4 (RFC 9174) as a state machine: bytes and calls in, events and bytes out.

In short:

    session = Session(Offer("dtn://a/", ...), active=True, now_s=0.0)
    session.take(now_s)                  -> bytes for the connection
    session.receive(data, now_s)         -> events; a PeerError ends it; what `take` gives then may still be sent
    session.tls_done()                   the connection is encrypted now (after the event WantTls)
    session.send(bundle)                 -> the number of the transfer; Acknowledged or Refused follow
    session.accept(number), session.refuse(number, reason)      answers to Received
    session.tick(now_s)                  -> events; keepalives are sent, silence is noticed
    session.end(reason)                  SESS_TERM
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from serai.core.errors import PeerError
from serai.node.wire import messages as wire
from serai.node.wire.messages import Cursor, Incomplete, SessInit
from serai.node.wire.transfers import SEGMENT_BYTES, Incoming, Pace

EXTENSION: Final = 0x8D50
"""The type of our session extension, from the range for private use."""

MAX_EXTENSION_BYTES: Final = 1024
MIN_SEGMENT_BYTES: Final = 512
TRANSFER_BYTES: Final = 4 << 20

COMPLETED, NO_RESOURCES, RETRANSMIT, NOT_ACCEPTABLE, EXTENSION_FAILURE, SESSION_ENDS = 1, 2, 3, 4, 5, 6
"""Why a transfer is refused."""
UNKNOWN, IDLE, VERSION_MISMATCH, BUSY, CONTACT_FAILURE, EXHAUSTED = range(6)
"""Why a session ends."""

_NONE, _SAME = -1, -2  # in place of a transfer: it is of none; it belongs to the piece before it
Tls = Literal["required", "none"]
State = Literal["header", "tls", "init", "open", "ending", "closed"]


@dataclass(frozen=True)
class Offer:
    """What a node brings into a session."""

    node: str
    tls: Tls = "required"
    keepalive_s: int = 10
    extension: bytes = b""
    segment_mru: int = SEGMENT_BYTES
    transfer_mru: int = TRANSFER_BYTES


class WantTls(NamedTuple):
    """Both sides can encrypt: do so, then call `tls_done`."""


class Opened(NamedTuple):
    """The session is open: who is there, and what it says of itself in our extension (None: it has none)."""

    peer: str
    extension: bytes | None


class Received(NamedTuple):
    """A bundle is here; it is to be accepted or refused."""

    transfer: int
    data: bytes


class Progress(NamedTuple):
    """The neighbour has so many bytes of a transfer."""

    transfer: int
    length: int


class Acknowledged(NamedTuple):
    """The neighbour has taken a bundle."""

    transfer: int
    length: int


class Refused(NamedTuple):
    """The neighbour does not take a bundle."""

    transfer: int
    reason: int


class Ending(NamedTuple):
    """The neighbour will end the session; nothing new may be sent."""

    reason: int


class Closed(NamedTuple):
    """Nothing is under way any more: the connection may be closed."""

    reason: int


Event = WantTls | Opened | Received | Progress | Acknowledged | Refused | Ending | Closed


class Session:
    """One session."""

    def __init__(self, offer: Offer, *, active: bool, now_s: float) -> None:
        self.offer, self.active = offer, active
        self.state: State = "header"
        self.heard_s = self.said_s = now_s
        self.keepalive_s = 0
        self.peer: SessInit | None = None
        self.sending: dict[int, int] = {}  # transfers that were not answered yet, with their lengths
        self.answering: dict[int, tuple[int, int]] = {}  # transfers that we have not answered yet: length, flags
        self._answers: dict[int, bytes] = {}  # that wait for those of earlier transfers
        self._incoming: Incoming | None = None
        self._left: int | None = None  # bytes of the segment that is coming
        self._next_sent = self._next_received = 0
        self._waiting = b""
        self._out: deque[tuple[int, bytes | memoryview]] = deque()  # with the transfer of which it is, or -1
        self.unwritten = 0  # bytes of it
        self._pace = Pace(now_s)
        self._told_end = self._heard_end = False
        if active:
            self._say(wire.contact_header(offer.tls == "required"))

    # -- bytes

    def take(self, now_s: float, most: int = 1 << 62) -> bytes:
        """What is to be written to the connection now: so many bytes, and the rest of the last message's."""
        out, taken, size = self._out, [], 0
        while out and (size < most or out[0][0] == _SAME):
            piece = out.popleft()[1]
            taken.append(piece)
            size += len(piece)
        if size:
            self.unwritten -= size
            self.said_s = now_s
        return b"".join(taken)

    def receive(self, data: bytes, now_s: float) -> list[Event]:
        """What has happened by these bytes."""
        self.heard_s = now_s
        cursor = Cursor(self._waiting + data if self._waiting else data)
        events: list[Event] = []
        start = 0
        try:
            while cursor.at < len(cursor.data) and self.state not in ("tls", "closed"):
                events += self._message(cursor) if self._left is None else self._data(cursor)
                start = cursor.at
        except Incomplete:
            pass
        except PeerError:
            self.state = "closed"
            raise
        self._waiting = cursor.data[start:]
        return events

    def leftover(self) -> bytes:
        """Bytes behind the contact header: they belong to TLS."""
        data, self._waiting = self._waiting, b""
        return data

    def tls_done(self) -> None:
        """The connection is encrypted now."""
        self._begin_init()

    # -- transfers

    def can_send(self, size: int) -> bool:
        """Whether a bundle of this size may be sent now."""
        return self.state == "open" and self.peer is not None and size <= self.peer.transfer_mru

    def send(self, data: bytes) -> int:
        """Send a bundle; the answer comes as Acknowledged or Refused with the number of this transfer."""
        assert self.peer is not None
        assert self.can_send(len(data))
        number, self._next_sent = self._next_sent, self._next_sent + 1
        size = len(data)
        if not self.sending:
            self._pace.begins(self.heard_s)
        self.sending[number] = size
        step = min(self.peer.segment_mru, self._pace.segment_bytes)
        if size <= step:
            self._put(number, wire.only_segment(number, size), data)
            return number
        view = memoryview(data)
        for start in range(0, size, step):
            piece, last = view[start : start + step], start + step >= size
            self._put(number, wire.segment(number, len(piece), None if start else size, last=last), piece)
        return number

    def accept(self, number: int) -> list[Event]:
        """The bundle is on disk."""
        if number in self.answering:
            self._answer(number, wire.acknowledgement(number, *self.answering[number]))
        return self._maybe_closed()

    def refuse(self, number: int, reason: int) -> list[Event]:
        """The bundle is not taken."""
        if number in self.answering:
            self._answer(number, wire.refusal(number, reason))
        return self._maybe_closed()

    # -- time and end

    def tick(self, now_s: float) -> list[Event]:
        """What time brings: a keepalive, or the end after too long a silence."""
        if now_s >= self.heard_s + 2 * self.keepalive_s and self._keeps_alive():
            self.end(IDLE)
            self.state = "closed"
            return [Closed(IDLE)]
        if now_s >= self.said_s + self.keepalive_s and self._keeps_alive():
            self._say(wire.KEEPALIVE_MESSAGE)
        return []

    def due_s(self) -> float:
        """When `tick` is to be called next."""
        if not self._keeps_alive():
            return float("inf")
        return min(self.said_s + self.keepalive_s, self.heard_s + 2 * self.keepalive_s)

    def end(self, reason: int = UNKNOWN) -> list[Event]:
        """Say that the session is to end; what is under way is still finished."""
        if self.state in ("init", "open", "ending") and not self._told_end:
            self._say(wire.termination(reason, reply=self._heard_end))
            self._told_end = True
        self.state = "ending" if self.state in ("open", "ending") else "closed"
        return self._maybe_closed()

    # -- inside

    def _say(self, message: bytes) -> None:
        self._out.append((_NONE, message))
        self.unwritten += len(message)

    def _put(self, number: int, head: bytes, data: bytes | memoryview) -> None:
        """A segment; its data are not copied, and never parted from its head."""
        self._out.append((number, head))
        self._out.append((_SAME, data))
        self.unwritten += len(head) + len(data)

    def _answer(self, number: int, answer: bytes) -> None:
        """Say what became of a transfer, when that was said of all before it (RFC 9174, 5.2.4)."""
        answering, answers = self.answering, self._answers
        answers[number] = answers.get(number, b"") + answer
        while answering and (first := next(iter(answering))) in answers:
            self._say(answers.pop(first))
            del answering[first]

    def _keeps_alive(self) -> bool:
        return self.keepalive_s > 0 and self.state in ("open", "ending")

    def _maybe_closed(self) -> list[Event]:
        over = self.state == "ending" and self._told_end and self._heard_end
        if not over or self.sending or self.answering or self._incoming:
            return []
        self.state = "closed"
        return [Closed(UNKNOWN)]

    def _message(self, cursor: Cursor) -> list[Event]:
        if self.state == "header":
            return self._header(cursor)
        kind = cursor.uint(1)
        expected = (wire.SESS_INIT, wire.SESS_TERM, wire.MSG_REJECT) if self.state == "init" else _HANDLERS
        if kind not in _HANDLERS or kind not in expected or (kind == wire.SESS_INIT and self.state != "init"):
            raise self._rejected(wire.UNEXPECTED if kind in _HANDLERS else wire.TYPE_UNKNOWN, kind)
        return _HANDLERS[kind](self, cursor)

    def _rejected(self, reason: int, kind: int) -> PeerError:
        self._say(wire.rejection(reason, kind))
        return PeerError(f"TCPCL: a message of type {kind}, which was not expected in the state {self.state}")

    def _header(self, cursor: Cursor) -> list[Event]:
        """Both say what they can; an active node has spoken first (RFC 9174, 4.3)."""
        version, theirs = cursor.header()
        if not self.active:
            self._say(wire.contact_header(self.offer.tls == "required"))
        if version != wire.VERSION:
            if not self.active:
                self._say(wire.termination(VERSION_MISMATCH, reply=False))
            raise PeerError(f"TCPCL: version {version}; we know {wire.VERSION}")
        if self.offer.tls == "none":
            self._begin_init()
            return []
        if not theirs:
            self._say(wire.termination(CONTACT_FAILURE, reply=False))
            raise PeerError("TCPCL: it does not encrypt, and we require that")
        self.state = "tls"
        return [WantTls()]

    def _begin_init(self) -> None:
        self.state = "init"
        if self.active:
            self._say(self._own_init())

    def _own_init(self) -> bytes:
        offer = self.offer
        items = (wire.Extension(False, EXTENSION, offer.extension),) if offer.extension else ()
        init = SessInit(offer.keepalive_s, offer.segment_mru, offer.transfer_mru, offer.node, items)
        return wire.session_init(init)

    def _init(self, cursor: Cursor) -> list[Event]:
        peer = cursor.init(MAX_EXTENSION_BYTES)
        known = [item for item in peer.extensions if item.type == EXTENSION]
        unknown = any(item.critical for item in peer.extensions if item.type != EXTENSION)
        if unknown or peer.segment_mru < MIN_SEGMENT_BYTES:
            self.end(CONTACT_FAILURE)
            raise PeerError("TCPCL: an extension that we would have to know, or segments too short")
        if not self.active:
            self._say(self._own_init())
        self.peer, self.state = peer, "open"
        self.keepalive_s = min(peer.keepalive_s, self.offer.keepalive_s)
        return [Opened(peer.node, known[0].value if known else None)]

    def _segment(self, cursor: Cursor) -> list[Event]:
        piece = cursor.segment(self.offer.segment_mru, MAX_EXTENSION_BYTES)
        incoming = self._incoming
        if piece.flags & wire.START:
            if (incoming is not None and not incoming.refused) or piece.transfer < self._next_received:
                raise self._rejected(wire.UNEXPECTED, wire.XFER_SEGMENT)
            self._next_received = piece.transfer + 1
            incoming = self._incoming = Incoming(piece.transfer, piece.total, [])
            if piece.unknown_critical:
                incoming.refused = EXTENSION_FAILURE
            elif self.state == "ending":
                incoming.refused = SESSION_ENDS
        if incoming is None or incoming.transfer != piece.transfer:
            raise self._rejected(wire.UNEXPECTED, wire.XFER_SEGMENT)
        incoming.length += piece.size
        if max(incoming.length, incoming.total or 0) > self.offer.transfer_mru or incoming.is_wrong(piece.flags):
            incoming.refuse(NOT_ACCEPTABLE)
        if incoming.refused:  # at once, and again for every segment that was under way
            self.answering.setdefault(piece.transfer, (0, 0))
            self._answer(piece.transfer, wire.refusal(piece.transfer, incoming.refused))
        incoming.flags, self._left = piece.flags, piece.size
        return self._data(cursor)

    def _data(self, cursor: Cursor) -> list[Event]:
        """Bytes of a segment: whatever of them is there is taken at once."""
        incoming = self._incoming
        assert incoming is not None
        assert self._left is not None
        data = cursor.some(self._left)
        if not incoming.refused:
            incoming.pieces.append(data)
        self._left -= len(data)
        if self._left:
            return []
        self._left = None
        return self._segment_ends(incoming)

    def _segment_ends(self, incoming: Incoming) -> list[Event]:
        """A segment is here: acknowledge it, but for the last, which waits for the disk."""
        ends, transfer = incoming.flags & wire.END, incoming.transfer
        if ends:
            self._incoming = None
        if incoming.refused:
            return self._maybe_closed()
        if not ends:
            self._say(wire.acknowledgement(transfer, incoming.length, incoming.flags))
            return []
        self.answering[transfer] = incoming.length, incoming.flags
        return [Received(transfer, b"".join(incoming.pieces))]

    def _ack(self, cursor: Cursor) -> list[Event]:
        flags, transfer, length = cursor.uint(1), cursor.uint(8), cursor.uint(8)
        if transfer not in self.sending:
            return self._late_answer(transfer, wire.XFER_ACK)
        if length > self.sending[transfer]:
            raise self._rejected(wire.UNEXPECTED, wire.XFER_ACK)
        self._pace.acknowledged(transfer, length, self.heard_s)
        if not flags & wire.END:
            return [Progress(transfer, length)]
        if self.sending.pop(transfer) != length:
            raise self._rejected(wire.UNEXPECTED, wire.XFER_ACK)
        return [Acknowledged(transfer, length), *self._maybe_closed()]

    def _refuse(self, cursor: Cursor) -> list[Event]:
        reason, transfer = cursor.uint(1), cursor.uint(8)
        if self.sending.pop(transfer, None) is None:
            return self._late_answer(transfer, wire.XFER_REFUSE)
        self._stop_sending(transfer)
        return [Refused(transfer, reason), *self._maybe_closed()]

    def _late_answer(self, transfer: int, kind: int) -> list[Event]:
        """Segments that were under way when a bundle was refused are answered, too; of others nobody may speak."""
        if transfer >= self._next_sent:
            raise self._rejected(wire.UNEXPECTED, kind)
        return []

    def _stop_sending(self, transfer: int) -> None:
        """No segment begins any more of a bundle that was refused."""
        kept: list[tuple[int, bytes | memoryview]] = []
        goes = False
        for number, piece in self._out:
            goes = number == transfer or (number == _SAME and goes)
            if goes:
                self.unwritten -= len(piece)
            else:
                kept.append((number, piece))
        if len(kept) < len(self._out):
            self._out = deque(kept)

    def _keepalive(self, cursor: Cursor) -> list[Event]:
        return []

    def _term(self, cursor: Cursor) -> list[Event]:
        flags, reason = cursor.uint(1), cursor.uint(1)
        if self.state == "init":
            self.state = "closed"
            return [Closed(reason)]
        if self._heard_end or bool(flags & wire.REPLY) > self._told_end:
            raise self._rejected(wire.UNEXPECTED, wire.SESS_TERM)
        self._heard_end = True
        return [Ending(reason), *self.end(reason)]

    def _reject(self, cursor: Cursor) -> list[Event]:
        reason, kind = cursor.uint(1), cursor.uint(1)
        raise PeerError(f"TCPCL: it rejects a message of type {kind} (reason {reason})")


_HANDLERS: Final[dict[int, Callable[[Session, Cursor], list[Event]]]] = {
    wire.XFER_SEGMENT: Session._segment,
    wire.XFER_ACK: Session._ack,
    wire.XFER_REFUSE: Session._refuse,
    wire.KEEPALIVE: Session._keepalive,
    wire.SESS_TERM: Session._term,
    wire.MSG_REJECT: Session._reject,
    wire.SESS_INIT: Session._init,
}
