"""Sessions with neighbours over TCP and TLS, as asyncio has them; the decisions are in `serai.node.link`."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from serai.core.errors import BadInput
from serai.node.bundle.eid import node_eid
from serai.node.core import Node
from serai.node.doors import Door, cannot_listen
from serai.node.fair import Beginnings, Share
from serai.node.link import Instant, Link, Neighbours, Self
from serai.node.wire.beacon import Beacon
from serai.node.words import Accept, Effects, Ready, Refuse, SendBundle, SendKnown, SendList, Word, joined

log = logging.getLogger("serai.node.links")

BUFFER_BYTES: Final = 64 << 10
"""Bytes that wait in a socket before it gets more."""

FIRST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_PUNISHMENT_S = 0.5, 60.0, 600.0
_TICK_S: Final = 0.5
_LINGER_S: Final = 1.0
_WORDS: Final = frozenset((Accept, Refuse, SendBundle, SendList, SendKnown, Ready))


@dataclass(frozen=True)
class LinkSettings:
    """How sessions are kept; times in seconds."""

    dial_s: float = 5.0
    user_timeout_s: float = 5.0
    sessions: int = 64
    strangers: int = 8  # connections that have not said who they are


@dataclass(frozen=True)
class Address:
    """Where a neighbour may be."""

    host: str
    port: int
    name: str | None = None  # whom we expect there

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass
class _Dialled:
    """An address that is dialled again and again."""

    address: Address
    configured: bool
    pause_s: float = FIRST_PAUSE_S
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Connection(asyncio.Protocol):
    """One connection with a neighbour."""

    def __init__(self, links: Links, *, active: bool) -> None:
        self.links = links
        self.link = links.new_link(active)
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.share, self.resting = Share(), False
        self.writable, self.pulling, self.said_why, self.flushing = True, False, False, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there: say the first word, if it is ours."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        self.address = transport.get_extra_info("peername")  # a transport that is closed does not know it any more
        _tune(transport.get_extra_info("socket"), self.links.settings)
        self.transport.set_write_buffer_limits(high=BUFFER_BYTES)
        self.links.connections.add(self)
        self.links.of_link[self.link] = self
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        link, before, at_s, began_s = self.link, self.link.bundle_bytes, time.monotonic(), time.thread_time()
        self._react(lambda: link.receive(data, self.links.instant()))
        disk_s, now_s = self.links.disk_s(link.bundle_bytes - before), time.monotonic()
        spent_s, took_s = time.thread_time() - began_s + disk_s, now_s - at_s + disk_s
        others = (one.share for one in self.links.connections)
        rest_s = self.share.rest_s(spent_s, took_s, link.bundles, link.lists, others, now_s)
        if rest_s:
            self._rest(rest_s)
        if self.link.wants_tls and self.link.closed is None:
            self.transport.pause_reading()  # what comes next is for TLS
            self.link.tls_begins()
            self.links.keep(self._encrypt())

    def _rest(self, for_s: float) -> None:
        """Read on a little later: it is the others' turn."""
        self.resting = True
        self.transport.pause_reading()
        asyncio.get_running_loop().call_later(for_s, self._read_on)

    def _read_on(self) -> None:
        self.resting = False
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def _react(self, happens: Callable[[], list[Effects]]) -> None:
        was_open = self.link.peer is not None
        found = happens()
        if self.link.peer is not None and not was_open:
            self.links.opened(self)
        # At once: what is said of the first may ask for a bundle that the core has from the last, and no store yet.
        self.links.perform(joined(found))
        self.flush()
        self.links.pull(self)

    def flush_soon(self) -> None:
        """The same when all else that happens now is done: many words, one write."""
        if not self.flushing:
            self.flushing = True
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Write what the session has to say, and close if it is over."""
        self.flushing = False
        most = BUFFER_BYTES if self.link.closed is None else 1 << 62  # the last words are few
        while (self.writable or self.link.closed) and not self.transport.is_closing():
            data = self.link.take(self.links.instant(), most)
            if not data:
                break
            self.transport.write(data)
        if self.link.closed is not None:
            self.close(self.link.closed)

    def close(self, why: str) -> None:
        """The session is over; what was written still goes out, but nobody waits long for it."""
        self.link.closed = self.link.closed or why
        if not self.said_why:
            self.said_why = True
            level = logging.INFO if why.startswith("ended") else logging.WARNING
            log.log(level, "%s: %s", self.link.peer or self.address, self.link.closed)
        if not self.transport.is_closing():
            self.transport.close()
            asyncio.get_running_loop().call_later(_LINGER_S, self.transport.abort)

    def pause_writing(self) -> None:
        """The socket is full."""
        self.writable = False

    def resume_writing(self) -> None:
        """The socket takes more."""
        self.writable = True
        self.flush()
        self.links.pull(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self.links.lost(self)
        if not self.over.done():
            self.over.set_result(None)

    async def _encrypt(self) -> None:
        self.flush()
        if self.transport.is_closing():
            return
        context = self.links.tls(self.link.active)
        try:
            transport = await asyncio.get_running_loop().start_tls(
                self.transport, self, context, server_side=not self.link.active, ssl_handshake_timeout=10.0
            )
        except (TimeoutError, OSError) as error:  # ssl.SSLError is an OSError
            self.close(f"no encryption: {getattr(error, 'verify_message', None) or error}")
            return
        if transport is None:
            return
        self.transport = transport
        self.transport.set_write_buffer_limits(high=BUFFER_BYTES)
        certificate = transport.get_extra_info("peercert") or {}
        if int(certificate.get("serialNumber", "0"), 16) in self.links.revoked:
            self.close("its certificate is revoked")
            return
        self._react(lambda: self.link.tls_done(named_in(certificate), self.links.instant()))


def named_in(certificate: dict[str, Any]) -> str | None:
    """The node that a certificate names: its URI of the scheme dtn."""
    names = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"]
    return next((name for name in names if name.startswith("dtn:")), None)


def _tune(connection: socket.socket | None, settings: LinkSettings) -> None:
    if connection is None:
        return
    with suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(settings.user_timeout_s * 1000))


def tls_context(server: bool, ca: Path, certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.3 with certificates of the network's CA on both sides; host names play no part."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(ca)
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise BadInput(f"cannot use the certificates {ca}, {certificate}, {key}: {error}") from None
    return context


class Links:
    """All sessions of a node. Effects go to `perform`; `say` does what words say after their commit."""

    def __init__(
        self,
        me: Self,
        node: Node,
        data: Callable[[int], bytes],
        perform: Callable[[Effects], None],
        instant: Callable[[], Instant],
        *,
        trust: Callable[[], int] = lambda: 2,
        disk_s: Callable[[int], float] = lambda size: 0.0,  # how long so many bytes take on their way to the disk
        contexts: Sequence[ssl.SSLContext] = (),  # for the side that is dialled, and the side that dials
        revoked: Sequence[str] = (),
        settings: LinkSettings | None = None,
        heard_time: Callable[[int, int], None] = lambda now_ms, trust: None,
    ) -> None:
        self.me, self.node, self.data, self.perform, self.instant = me, node, data, perform, instant
        self.trust, self.contexts, self.settings = trust, contexts, settings or LinkSettings()
        self.revoked = {int(serial, 16) for serial in revoked}  # some write zeros in front, some do not
        self.heard_time, self.disk_s = heard_time, disk_s
        self.neighbours = Neighbours(me.envelope.node)
        self.connections: set[Connection] = set()
        self.of_link: dict[Link, Connection] = {}
        self._serial = 0
        self._doors: list[Door] = []
        self._begun = Beginnings()
        self._dialled: dict[tuple[str, int], _Dialled] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._shunned: dict[tuple[str, int], float] = {}  # addresses of neighbours that broke the rules: until when

    # -- connections

    async def listen(self, host: str, port: int) -> int:
        """Take connections at this address; the port is returned, in case it was 0."""
        door = Door(self.why_not_taken, lambda: Connection(self, active=False))
        self._doors.append(door)
        try:
            return await door.open(host, port)
        except OSError as error:
            door.close()
            raise cannot_listen("TCPCL", host, port, error) from None

    def start(self) -> None:
        """Let time pass for all sessions."""
        self.keep(self._tick())

    def dial(self, address: Address) -> None:
        """Keep dialling a configured neighbour."""
        self._dial(address, configured=True)

    def heard(self, beacon: Beacon, host: str) -> None:
        """A beacon has come from this host: dial it at once, unless there is a session."""
        port = beacon.port("tcpcl")
        if port is None or beacon.network != self.me.network or beacon.node == self.me.envelope.node:
            return
        if beacon.node in self.neighbours.links or self._shunned.get((host, port), 0.0) > self.instant().mono_s:
            return
        for one in self._dialled.values():
            if one.address.name is not None and node_eid(one.address.name) == beacon.node:
                one.wake.set()
                return
        self._dial(Address(host, port), configured=False)

    def _dial(self, address: Address, *, configured: bool) -> None:
        key = address.host, address.port
        one = self._dialled.get(key)
        if one is None:
            one = self._dialled[key] = _Dialled(address, configured)
            one.task = self.keep(self._keep_dialling(one))
        one.wake.set()

    async def _keep_dialling(self, one: _Dialled) -> None:
        """Dial with longer and longer pauses; who was only heard by beacon is forgotten after a failure."""
        address, longest_s = one.address, LONGEST_PAUSE_S
        while True:
            one.wake.clear()
            expected = node_eid(address.name) if address.name else None
            if len(self.connections) < self.settings.sessions and expected not in self.neighbours.links:
                connection = await self._connect(address)
                if connection is not None:
                    await asyncio.shield(connection.over)  # which stays whole if the dialling is given up
                    longest_s = self._judge(connection.link, one)
            if not one.configured:
                del self._dialled[address.host, address.port]
                return
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(one.wake.wait(), one.pause_s)
            one.pause_s = min(2 * one.pause_s, longest_s)

    def _judge(self, link: Link, one: _Dialled) -> float:
        """After a session: whoever breaks the rules is left alone for longer and longer, up to 10 minutes."""
        if not link.at_fault:
            if link.peer is not None:
                one.pause_s = FIRST_PAUSE_S
            return LONGEST_PAUSE_S
        self._shunned[one.address.host, one.address.port] = self.instant().mono_s + LONGEST_PAUSE_S
        return LONGEST_PUNISHMENT_S

    async def _connect(self, address: Address) -> Connection | None:
        loop = asyncio.get_running_loop()
        try:
            dialling = loop.create_connection(lambda: Connection(self, active=True), address.host, address.port)
            _, connection = await asyncio.wait_for(dialling, self.settings.dial_s)
        except (TimeoutError, OSError) as error:
            log.debug("%s: %s", address, error)
            return None
        return connection

    # -- what connections call

    def new_link(self, active: bool) -> Link:
        """A link for a connection that begins."""
        self._serial += 1
        at, trust = self.instant(), self.trust()
        return Link(
            self.me, self.node, self.neighbours, self.data, serial=self._serial, trust=trust, active=active, at=at
        )

    def why_not_taken(self, address: str) -> str | None:
        """Why one more connection, which comes from there, is one too many."""
        if len(self.connections) + self._coming() >= self.settings.sessions:
            return f"there are {self.settings.sessions} sessions"
        if self.strangers() + self._coming() >= self.settings.strangers:
            return "too many that have not said who they are"
        if not self._begun.may(address, self.instant().mono_s):
            return "it begins too many sessions"
        return None

    def _coming(self) -> int:
        return sum(len(door.coming) for door in self._doors)

    def strangers(self) -> int:
        """Connections whose other side has not said who it is."""
        return sum(connection.link.peer is None for connection in self.connections)

    def tls(self, active: bool) -> ssl.SSLContext:
        """The context for the side that dials, or is dialled."""
        return self.contexts[1 if active else 0]

    def opened(self, connection: Connection) -> None:
        """A neighbour has said who it is."""
        link = connection.link
        for other in list(self.connections):
            if other.link.closed is not None:  # this session has taken its place
                other.flush()
        if link.closed is None:
            log.info("%s: session open (%s)", link.peer, "dialled" if link.active else "was dialled")
            if link.hello is not None:
                self.heard_time(link.hello.now_ms, link.hello.trust)

    def lost(self, connection: Connection) -> None:
        """A connection is gone."""
        self.connections.discard(connection)
        self.of_link.pop(connection.link, None)
        self.perform(connection.link.lost(self.instant()))

    # -- words

    def say(self, word: Word) -> bool:
        """Do what a word says; False if it is not one for links."""
        if type(word) not in _WORDS:
            return False
        link = self.neighbours.links.get(word.peer)  # type: ignore[attr-defined]
        connection = self.of_link.get(link) if link else None
        if link is None or connection is None:
            return True
        if type(word) is Ready:
            self.pull(connection)
            return True
        for effects in link.say(word, self.instant()):
            self.perform(effects)
        if link.session.unwritten < BUFFER_BYTES:
            connection.flush_soon()
        else:
            connection.flush()
        return True

    def pull(self, connection: Connection) -> None:
        """Give the neighbour what the core has for it, as long as the socket takes more."""
        if connection.pulling:  # what is performed may be said at once, and ask again
            return
        connection.pulling = True
        while connection.writable and not connection.transport.is_closing():
            effects = connection.link.pull(self.instant())
            if effects is None:
                break
            self.perform(effects)
        connection.pulling = False

    # -- time and end

    def keep(self, coroutine: Any) -> asyncio.Task[None]:
        """Run something beside, until the end."""
        task: asyncio.Task[None] = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            for connection in list(self.connections):
                if hasattr(connection, "transport"):
                    connection.link.tick(self.instant(), connection.resting)
                    connection.flush()

    async def stop(self) -> None:
        """Take no more connections and end all sessions, in order where that is quick."""
        for door in self._doors:
            door.close()
        for task in list(self._tasks):
            task.cancel()
        waiting = [connection.over for connection in self.connections]
        for connection in list(self.connections):
            connection.link.end()
            connection.flush()
        if waiting:
            await asyncio.wait(waiting, timeout=_LINGER_S)
        for connection in list(self.connections):
            connection.transport.abort()
        await asyncio.sleep(0)
