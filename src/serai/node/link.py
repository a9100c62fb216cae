"""One session with a neighbour, between TCPCL and the core: what arrives becomes calls, words become transfers. Pure.

The shell (`serai.node.links`) brings bytes and time, performs the effects that come back and writes what `take` gives.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from serai.core.errors import PeerError
from serai.node.bundle.bpv7 import BadCheck
from serai.node.bundle.cbor import decode, encode
from serai.node.bundle.eid import NAME, node_name
from serai.node.bundle.message import DPSP, Envelope, Refused, onward
from serai.node.core import Node
from serai.node.wire import tcpcl
from serai.node.wire.lists import JournalKnown, decode_words, encode_known, encode_list
from serai.node.wire.tcpcl import Offer, Session
from serai.node.words import Accept, Effects, Refusal, Refuse, SendBundle, SendKnown, SendList, Word

FIRST_RATE_BPS: Final = 1e6
"""What a link is thought to carry before anything was acknowledged over it."""

OPEN_WITHIN_S: Final = 10.0
LIST_WITHIN_S: Final = 30.0
PROGRESS_WITHIN_S: Final = 30.0

_REASON_OF: Final[dict[Refusal, int]] = {
    "duplicate": tcpcl.COMPLETED, "refused": tcpcl.NO_RESOURCES, "late": tcpcl.NOT_ACCEPTABLE,
    "unacceptable": tcpcl.NOT_ACCEPTABLE,
}  # fmt: skip
_REFUSAL_OF: Final[dict[int, Refusal]] = {tcpcl.COMPLETED: "duplicate", tcpcl.NO_RESOURCES: "refused"}


class Instant(NamedTuple):
    """Now: by a clock that only runs, for timeouts; and in the node's time, for bundles."""

    mono_s: float
    node_s: float

    @property
    def node_ms(self) -> int:
        """The node's time in whole milliseconds."""
        return round(self.node_s * 1000)


class Hello(NamedTuple):
    """What a node says of itself in SESS_INIT: `[1, network, epoch, now_ms, clock trust, carries]`."""

    network: bytes
    epoch: bytes
    now_ms: int
    trust: int  # 0: no clock, 1: taken from a neighbour, 2: its own clock is right
    carries: bool

    def encode(self) -> bytes:
        """As the value of the session extension."""
        return encode([1, *self])


def decode_hello(data: bytes) -> Hello:
    """What a neighbour says of itself."""
    match decode(data, items=20):
        case [1, bytes(network), bytes(epoch), int(now_ms), int(trust), bool(carries)] if (
            len(network) == len(epoch) == 8 and 0 <= now_ms < 1 << 62 and 0 <= trust <= 2
        ):
            return Hello(network, epoch, now_ms, int(trust), carries)
    raise PeerError("TCPCL: an extension 0x8D50 that we do not know")


def network_id(name: str, key: bytes) -> bytes:
    """The eight bytes by which nodes of a network know each other; they tell nothing of its key."""
    text = f"serai network {name}".encode()
    return (hmac.digest(key, text, "sha256") if key else hashlib.sha256(text).digest())[:8]


@dataclass(frozen=True)
class Self:
    """What a node brings to all its links."""

    envelope: Envelope
    network: bytes
    epoch: bytes
    carries: bool = True
    tls: tcpcl.Tls = "required"
    keepalive_s: int = 10


class Link:
    """One session. `peer` is None until it is open; `closed` says why it is over."""

    def __init__(
        self,
        me: Self,
        node: Node,
        neighbours: Neighbours,
        data: Callable[[int], bytes],
        *,
        serial: int,
        trust: int,
        active: bool,
        at: Instant,
    ) -> None:
        self.me, self.node, self.neighbours, self.data, self.active = me, node, neighbours, data, active
        self._first = serial << 40  # numbers of transfers, as the core knows them, are never those of another session
        self.peer: str | None = None
        self.hello: Hello | None = None  # of a neighbour that speaks DPSP
        self.certified: str | None = None  # whom its certificate names
        self.closed: str | None = None
        self.at_fault = False  # it is over because the neighbour broke the rules
        self.wants_tls = False
        self.introduced = False  # the core knows of it
        self.since_s = self.progress_s = at.mono_s
        self.lists = self.bundles = self.bundle_bytes = 0  # heard so far
        hello = Hello(me.network, me.epoch, at.node_ms, trust, me.carries)
        offer = Offer(me.envelope.node, me.tls, me.keepalive_s, hello.encode())
        self.session = Session(offer, active=active, now_s=at.mono_s)
        self._under_way: dict[
            int, tuple[Word, int]
        ] = {}  # by number of transfer: what is sent, bytes that have arrived
        self._sequence = 0
        self._again: set[int] = set()  # transfers of the core that were asked for once more

    # -- bytes

    def take(self, at: Instant, most: int = 1 << 62) -> bytes:
        """What is to be written, so many bytes or a message more."""
        return self.session.take(at.mono_s, most)

    def receive(self, data: bytes, at: Instant) -> list[Effects]:
        """What these bytes bring."""
        effects: list[Effects] = []
        try:
            for event in self.session.receive(data, at.mono_s):
                effects += self._happened(event, at)
            if self.wants_tls and self.session.leftover():
                raise PeerError("TCPCL: bytes before the encryption")
        except PeerError as error:
            self.closed, self.at_fault = str(error), True
        return effects

    def tls_begins(self) -> None:
        """Bytes that come from now on were encrypted; they wait until it is known by whom."""
        self.wants_tls = False

    def tls_done(self, certified: str | None, at: Instant) -> list[Effects]:
        """The connection is encrypted, and the other side has shown a certificate for this name."""
        self.certified = certified
        self.session.tls_done()
        return self.receive(b"", at)

    # -- words

    def say(self, word: Word, at: Instant) -> list[Effects]:
        """Do what a word of the core says."""
        match word:
            case Accept(_, number):
                self._note(self.session.accept(number - self._first))
            case Refuse(_, number, reason):
                self._note(self.session.refuse(number - self._first, _REASON_OF[reason]))
            case SendKnown(_, epoch, upto):
                return self._send(word, self._control(encode_known(JournalKnown(epoch, upto)), at), at)
            case SendList(_, _, message):
                return self._send(word, self._control(encode_list(message), at), at)
            case SendBundle():
                age_ms = max(0, at.node_ms - word.begins_ms)
                kept = self.data(word.id)
                if not kept:  # it has expired since it was chosen
                    return self._over(word, at, refused="late")
                return self._send(word, onward(kept, self.me.envelope.node, age_ms, word.hops + 1), at)
        return []

    def pull(self, at: Instant) -> Effects | None:
        """The next transfer that the core has for the neighbour."""
        if not self.introduced or self.closed or self.session.state != "open":
            return None
        assert self.peer is not None
        effects = self.node.next_transfer(self.peer, at.node_s)
        return effects if effects.words or effects.rows else None

    def _control(self, payload: bytes, at: Instant) -> bytes:
        assert self.peer is not None
        self._sequence += 1
        return self.me.envelope.control(self.peer, payload, at.node_ms, self._sequence)

    def _send(self, word: Word, data: bytes, at: Instant) -> list[Effects]:
        if self.session.can_send(len(data)):
            if not self._under_way:
                self.progress_s = at.mono_s
            self._under_way[self.session.send(data)] = word, 0
            return []
        if self.session.state == "open":  # it takes no bundles of that size
            return self._over(word, at, refused="unacceptable")
        return []

    # -- time and end

    def tick(self, at: Instant, resting: bool = False) -> list[Effects]:
        """What time brings: keepalives, and the end of a session that does not come on; who may not speak is not
        silent."""
        if resting:
            self.session.heard_s = at.mono_s
        self._note(self.session.tick(at.mono_s))
        waited_s = at.mono_s - self.since_s
        if self.peer is None and waited_s >= OPEN_WITHIN_S:
            self.closed = self.closed or "no session within 10 s"
        if self.introduced and not self.lists and waited_s >= LIST_WITHIN_S:
            self.closed = self.closed or "no list within 30 s"
        if self._under_way and at.mono_s - self.progress_s >= PROGRESS_WITHIN_S:
            self.closed = self.closed or "no progress for 30 s"
        return []

    def end(self, reason: int = tcpcl.UNKNOWN) -> None:
        """Ask the neighbour to end the session."""
        self._note(self.session.end(reason))

    def is_silent(self, at: Instant) -> bool:
        """Whether nothing was heard for a keepalive."""
        return at.mono_s - self.session.heard_s >= max(1, self.session.keepalive_s)

    def lost(self, at: Instant) -> Effects:
        """The session is over, or another has taken its place."""
        self.closed = self.closed or "cut"
        self.neighbours.forget(self)
        if not self.introduced:
            return Effects()
        self.introduced = False
        assert self.peer is not None
        sent = {
            word.transfer: length
            for word, length in self._under_way.values()
            if isinstance(word, SendBundle | SendList)
        }
        return self.node.contact_down(self.peer, at.node_s, sent)

    # -- inside

    def _note(self, events: list[tcpcl.Event]) -> None:
        for event in events:
            if isinstance(event, tcpcl.Closed):
                self.closed = self.closed or "ended"

    def _happened(self, event: tcpcl.Event, at: Instant) -> list[Effects]:
        match event:
            case tcpcl.WantTls():
                self.wants_tls = True
            case tcpcl.Opened(peer, extension):
                return self._opened(peer, extension, at)
            case tcpcl.Received(number, data):
                return self._received(number, data, at)
            case tcpcl.Progress(number, length):
                self._moved(number, length, at)
            case tcpcl.Acknowledged(number, length):
                self._moved(number, length, at)
                return self._over(self._under_way.pop(number)[0], at)
            case tcpcl.Refused(number, reason):
                return self._refused(self._under_way.pop(number)[0], reason, at)
            case tcpcl.Closed():
                self.closed = self.closed or "ended by the neighbour"
        return []

    def _opened(self, peer: str, extension: bytes | None, at: Instant) -> list[Effects]:
        """See that the neighbour is who it says, and of our network; with DPSP the session is a contact."""
        name = node_name(peer)
        if name is None or not NAME.fullmatch(name) or peer != f"dtn://{name}/":
            raise self._ended(f"TCPCL: {peer!r} is no node that we know")
        if peer == self.me.envelope.node:
            raise self._ended(f"a node with our own name, {peer}")
        if self.me.tls == "required" and self.certified != peer:
            raise self._ended(f"{peer} shows a certificate of {self.certified}")
        hello = decode_hello(extension) if extension is not None else None
        if hello is not None and hello.network != self.me.network:
            raise self._ended(f"{peer} is of another network")
        self.peer, self.hello = peer, hello
        stays, older = self.neighbours.admit(self, at)
        effects = [older.lost(at)] if older is not None else []
        if stays and hello is not None:
            self.introduced, self.since_s = True, at.mono_s
            effects.append(
                self.node.contact_up(peer, at.node_s, FIRST_RATE_BPS, carries=hello.carries, epoch=hello.epoch)
            )
        return effects

    def _ended(self, why: str) -> PeerError:
        self.session.end(tcpcl.CONTACT_FAILURE)
        return PeerError(why)

    def _received(self, number: int, data: bytes, at: Instant) -> list[Effects]:
        assert self.peer is not None
        self.bundles += 1
        self.bundle_bytes += len(data)
        try:
            arrived = self.me.envelope.open(data)
        except BadCheck:
            self._note(self.session.refuse(number, tcpcl.RETRANSMIT))
            return []
        except Refused:
            self._note(self.session.refuse(number, tcpcl.NOT_ACCEPTABLE))
            return []
        if arrived.destination == self.me.envelope.node + DPSP:
            return self._words(number, arrived.header.source, arrived.payload, at)
        if not arrived.header.topic or not self.introduced:  # addressed to a node: nobody here asks for it
            self._note(self.session.refuse(number, tcpcl.NOT_ACCEPTABLE))
            return []
        return [self.node.bundle_received(self.peer, self._first + number, arrived.header, arrived.data, at.node_s)]

    def _words(self, number: int, source: str, payload: bytes, at: Instant) -> list[Effects]:
        """A list, or what is known of our journal; only the neighbour itself may say so."""
        assert self.peer is not None
        if source != self.peer or not self.introduced:
            self._note(self.session.refuse(number, tcpcl.NOT_ACCEPTABLE))
            return []
        said = decode_words(payload)
        if isinstance(said, JournalKnown):
            effects = self.node.journal_known(self.peer, said.epoch, said.upto, at.node_s)
        else:
            self.lists += 1
            effects = self.node.list_received(self.peer, said, at.node_s)
        return [effects.then(Accept(self.peer, self._first + number))]

    def _moved(self, number: int, length: int, at: Instant) -> None:
        self._under_way[number] = self._under_way[number][0], length
        self.progress_s = at.mono_s

    def _refused(self, word: Word, reason: int, at: Instant) -> list[Effects]:
        if reason == tcpcl.RETRANSMIT and isinstance(word, SendBundle | SendList) and word.transfer not in self._again:
            self._again.add(word.transfer)
            return self.say(word, at)
        return self._over(word, at, refused=_REFUSAL_OF.get(reason, "unacceptable"))

    def _over(self, word: Word, at: Instant, refused: Refusal | None = None) -> list[Effects]:
        """A transfer has its answer."""
        if not self.introduced or not isinstance(word, SendBundle | SendList):
            return []
        assert self.peer is not None
        self._again.discard(word.transfer)
        if refused is None:
            return [self.node.acknowledged(self.peer, word.transfer, at.node_s)]
        return [self.node.refused(self.peer, word.transfer, refused, at.node_s)]


class Neighbours:
    """All links by whom they lead to; who stays when there are two with one neighbour."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.links: dict[str, Link] = {}

    def admit(self, link: Link, at: Instant) -> tuple[bool, Link | None]:
        """Whether a link that has just opened stays, and which older one has to go for it."""
        assert link.peer is not None
        older = self.links.get(link.peer)
        if older is None or older.closed is not None:
            self.links[link.peer] = link
            return True, older
        if link.hello and older.hello and link.hello.epoch != older.hello.epoch and not older.is_silent(at):
            link.closed = f"another node is called {link.peer}, too"  # its store is another one
            link.session.end(tcpcl.CONTACT_FAILURE)
            return False, None
        dialled_by_lower = link.active == (self.node < link.peer)
        if not (
            older.is_silent(at) or (dialled_by_lower and older.active != link.active) or older.active == link.active
        ):
            link.closed = "there is a session already"
            link.session.end(tcpcl.BUSY)
            return False, None
        older.closed = older.closed or "a newer session takes its place"
        self.links[link.peer] = link
        return True, older

    def forget(self, link: Link) -> None:
        """The link is over."""
        if link.peer is not None and self.links.get(link.peer) is link:
            del self.links[link.peer]

    def status(self, at: Instant) -> list[dict[str, Any]]:
        """Each neighbour now: name, who dialled, how long it has been there, what is under way."""
        return [
            {
                "name": node_name(peer), "dialled": link.active, "since_s": round(at.mono_s - link.since_s, 1),
                "dpsp": link.hello is not None, "under_way": len(link.session.sending),
            }
            for peer, link in sorted(self.links.items())
        ]  # fmt: skip
