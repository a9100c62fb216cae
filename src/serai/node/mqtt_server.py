"""The MQTT server's sockets: bytes to sessions, effects to the store, words back to bytes. It decides nothing.

server = MqttServer(clients, perform, now)      # perform: hands effects to the store, which has their words said
await server.listen("127.0.0.1", 1883)
server.say(word)                                # for every word; True if it was one of the server's
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from serai.core.errors import BadInput, PeerError
from serai.node.doors import cannot_listen
from serai.node.mqtt.access import Access, allowed
from serai.node.mqtt.clients import Clients
from serai.node.mqtt.delivery import Close, Say
from serai.node.mqtt.packets import V3, V5, Connack, Connect, Disconnect, Packet, Publish, Reader, encode
from serai.node.mqtt.session import BAD_PASSWORD, NOT_AUTHORIZED, Refused, Session, connack_reason
from serai.node.words import Effects, Queued, Word, joined

_CONNECT_S: Final = 10.0  # from the connection to its CONNECT
_BUFFER: Final = 64 << 10  # bytes that wait for a client, before it gets more
_UNCOMMITTED: Final = 256  # packets of one client whose effects wait for the disk, before more are read
_FIRST_PACKET: Final = 256 << 10  # of a client that has not yet been let in
_TELL_S: Final = 10.0


def server_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS for clients, who need no certificate of their own."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise BadInput(f"mqtt.certificate: cannot use {certificate} with the key {key}: {error}") from None
    return context


class Committed(NamedTuple):
    """The effects of so many packets of a client are on disk."""

    connection: int
    packets: int


class Connection(asyncio.Protocol):
    """One client's socket."""

    def __init__(self, server: MqttServer, number: int) -> None:
        self.server, self.number = server, number
        self.reader = Reader(_FIRST_PACKET)
        self.session: Session | None = None
        self.transport: asyncio.Transport
        self.writable = True
        self._held = b""  # bytes that came while a password was checked
        self._checking: asyncio.Task[None] | None = None
        self._uncommitted = 0
        self._out: list[bytes] = []
        self._unwritten = 0  # bytes of it
        self.told_s = float("-inf")  # when it last heard what the node says of itself

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there; it has some seconds to say who it is."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        self.transport.set_write_buffer_limits(high=_BUFFER)
        address = transport.get_extra_info("peername")
        self.near = bool(address) and ipaddress.ip_address(address[0].split("%")[0]).is_loopback
        self.server.connections[self.number] = self
        self._deadline = asyncio.get_running_loop().call_later(_CONNECT_S, self._silent)

    def _silent(self) -> None:
        if self.session is None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes have come. Messages that came together go to the store together; of whatever else a client says the
        store has the effects before the core hears of what comes next."""
        if self._checking is not None:
            self._held += data
            return
        published: list[Effects] = []
        try:
            for packet in self.reader.feed(data):
                if self.session is None:
                    self._begin(packet)
                elif type(packet) is Publish:
                    if not self.session.over:
                        published.append(self.session.receive(packet, self.server.now()))
                else:
                    self._perform(published)
                    published = []
                    if not self.session.over:
                        self._perform([self.session.receive(packet, self.server.now())])
        except PeerError as error:
            self._perform(published)
            self._failed(error)
        else:
            self._perform(published)

    def _perform(self, parts: list[Effects]) -> None:
        if not parts:
            return
        self._uncommitted += len(parts)
        if self._uncommitted >= _UNCOMMITTED:
            self.transport.pause_reading()
        self.server.perform(joined(parts).then(Committed(self.number, len(parts))))

    def committed(self, packets: int) -> None:
        """Go on reading, and sending: a client is never asked to wait longer than the disk and its own socket need."""
        waited, self._uncommitted = self._uncommitted >= _UNCOMMITTED, self._uncommitted - packets
        if waited and self._uncommitted < _UNCOMMITTED and self.writable:
            self.transport.resume_reading()
        self.pump(only_more=True)

    def _begin(self, packet: Packet) -> None:
        if not isinstance(packet, Connect):
            raise PeerError("the first packet is not CONNECT", 0x82)
        settings = self.server.clients.settings
        self.reader.largest = settings.largest_packet
        if packet.user is None:
            access = allowed(settings.users, None, None, near=self.near and settings.anonymous)
            self._let_in(packet, access)
            return
        self.transport.pause_reading()
        self._checking = asyncio.create_task(self._check(packet))

    async def _check(self, connect: Connect) -> None:
        users = self.server.clients.settings.users
        access = await asyncio.to_thread(allowed, users, connect.user, connect.password, near=self.near)
        self._checking = None
        if self.transport.is_closing():
            return
        try:
            self._let_in(connect, access)
        except PeerError as error:
            self._failed(error)
        self.transport.resume_reading()
        held, self._held = self._held, b""
        self.data_received(held)

    def _let_in(self, connect: Connect, access: Access | None) -> None:
        if access is None:
            raise Refused("unknown name or wrong password", BAD_PASSWORD if connect.user else NOT_AUTHORIZED)
        session = Session(self.number, self.server.clients, connect, access)
        began = session.begin(self.server.now(), f"serai-{secrets.token_hex(8)}")
        self.session = session
        self._perform([began])

    def _failed(self, error: PeerError) -> None:
        """A client's mistake: say why, if there are words for it, and close."""
        self.server.clients.counts["errors"] += 1
        if self.session is not None:
            self._perform([self.session.end(self.server.now(), error.reason, str(error))])
            return
        version = self.reader.version or V3
        if isinstance(error, Refused) or error.reason == 0x84:
            self.write(Connack(False, connack_reason(error.reason, version)))
        self.close()

    def write(self, packet: Packet) -> None:
        """Send a packet, together with all others that are said now."""
        data = encode(packet, self.reader.version or V3)
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out.append(data)
        self._unwritten += len(data)
        if self._unwritten >= _BUFFER:
            self._flush()

    def _flush(self) -> None:
        data, self._out, self._unwritten = b"".join(self._out), [], 0
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        """Close it when all that was said is sent."""
        self._flush()
        self.transport.close()

    def pump(self, *, only_more: bool = False) -> None:
        """Send what waits for the client, as far as its socket takes it."""
        session = self.session
        if session is None or session.over or not self.writable or (only_more and not session.outgoing.more):
            return
        effects = session.outgoing.pump(self.server.now())
        if effects.rows or effects.words:
            self._perform([effects])

    def pause_writing(self) -> None:
        """The client does not read as fast as it is told: it is not listened to, nor told more, until it has."""
        self.writable = False
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """It has."""
        self.writable = True
        if self._uncommitted < _UNCOMMITTED and self._checking is None:
            self.transport.resume_reading()
        self.pump()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._deadline.cancel()
        self.server.connections.pop(self.number, None)
        if self.session is not None:
            self.server.perform(self.session.end(self.server.now()))


class MqttServer:
    """All clients of a node. `now` is the node's time; `values` is what it tells of itself below $SYS/serai."""

    def __init__(
        self,
        clients: Clients,
        perform: Callable[[Effects], None],
        now: Callable[[], float],
        values: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.clients, self.perform, self.now, self.values = clients, perform, now, values
        self.connections: dict[int, Connection] = {}
        self._servers: list[asyncio.Server] = []
        self._numbers = 0
        self._ticking: asyncio.Task[None] | None = None

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Take connections at this address; the port is returned, in case it was 0. May be called several times."""

        def connection() -> Connection:
            self._numbers += 1
            return Connection(self, self._numbers)

        try:
            server = await asyncio.get_running_loop().create_server(connection, host, port, ssl=tls)
        except OSError as error:
            raise cannot_listen("MQTT", host, port, error) from None
        self._servers.append(server)
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        found: int = server.sockets[0].getsockname()[1]
        return found

    def say(self, word: Word) -> bool:
        """Do what a word says; False if it is not one of the server's."""
        match word:
            case Say(number, packet):
                if connection := self.connections.get(number):
                    connection.write(packet)
            case Queued(name):
                client = self.clients.by_name.get(name)
                if client and client.session and (connection := self.connections.get(client.session.connection)):
                    connection.pump()
            case Committed(number, packets):
                if connection := self.connections.get(number):
                    connection.committed(packets)
            case Close(number):
                if connection := self.connections.get(number):
                    connection.close()
            case _:
                return False
        return True

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            now_s = self.now()
            self.perform(self.clients.tick(now_s))
            for connection in list(self.connections.values()):
                if connection.session is not None:
                    self.perform(connection.session.tick(now_s))
            for effects in self._tell(now_s):
                self.perform(effects)

    def _tell(self, now_s: float) -> list[Effects]:
        """What the node says of itself, now and then to the clients that have asked for it."""
        parts = []
        for one in self.connections.values():
            if one.session and one.session.own and now_s >= one.told_s + _TELL_S:
                one.told_s = now_s
                said = {f"$SYS/serai/{name}": str(value).encode() for name, value in self.values().items()}
                parts += [one.session.tell(Publish(topic, value)) for topic, value in said.items()]
        return parts

    def status(self) -> dict[str, Any]:
        """The server in numbers."""
        live = [one.session for one in self.connections.values() if one.session and not one.session.over]
        return {
            "connected": len(live),
            "in_flight": sum(session.outgoing.in_flight for session in live),
            "waiting_for_room": sum(len(session.parked) for session in live),
            **{name: self.clients.counts[name] for name in ("published", "refused", "dropped", "errors", "wills")},
        }

    async def stop(self) -> None:
        """Take no more connections, and end those there are; sessions that last stay as they are."""
        for server in self._servers:
            server.close()
        if self._ticking is not None:
            self._ticking.cancel()
        for connection in list(self.connections.values()):
            if connection.session is not None and connection.session.version == V5:
                connection.write(Disconnect(0x8B))
            connection.close()
        for _ in range(20):
            if not self.connections:
                break
            await asyncio.sleep(0.05)
        for connection in list(self.connections.values()):
            connection.transport.abort()
        await asyncio.sleep(0)
