"""Packets of MQTT 3.1.1 and 5 <-> bytes. Sections are those of the OASIS standard for version 5.

`Reader` takes bytes as they come and gives whole packets; what no client or server may send is a `PeerError` with the
reason code to answer. `encode` is the way back. Version 3.1.1 is 4 here, as on the wire; it has no properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

from serai.core.errors import PeerError
from serai.node.mqtt.properties import (
    MALFORMED,
    NONE,
    PROTOCOL_ERROR,
    Fields,
    Properties,
    binary,
    number,
    text,
    written,
)

V3: Final = 4
V5: Final = 5
UNSUPPORTED_VERSION: Final = 0x84
PACKET_TOO_LARGE: Final = 0x95
LARGEST: Final = (1 << 28) - 1 + 5  # any packet at all: 4 bytes of length, and the header

AckKind = Literal["puback", "pubrec", "pubrel", "pubcomp"]


class Will(NamedTuple):
    """What the server publishes for a client that goes without a word (3.1.2.5)."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = NONE


class Connect(NamedTuple):
    """3.1; a `bridge` is another broker, which says so by the highest bit of the version (mosquitto's custom)."""

    client: str
    version: int = V3
    clean: bool = True
    keep_alive_s: int = 0
    will: Will | None = None
    user: str | None = None
    password: bytes | None = None
    properties: Properties = NONE
    bridge: bool = False


class Connack(NamedTuple):
    """3.2; `reason` is a return code in 3.1.1."""

    session_present: bool = False
    reason: int = 0
    properties: Properties = NONE


class Publish(NamedTuple):
    """3.3; `packet` is 0 where the QoS is."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    packet: int = 0
    dup: bool = False
    properties: Properties = NONE


class Ack(NamedTuple):
    """PUBACK, PUBREC, PUBREL, PUBCOMP (3.4 to 3.7): a step of the delivery of a packet."""

    kind: AckKind
    packet: int
    reason: int = 0
    properties: Properties = NONE


class Wish(NamedTuple):
    """One filter of a SUBSCRIBE, with its options (3.8.3.1)."""

    filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


class Subscribe(NamedTuple):
    """3.8."""

    packet: int
    wishes: tuple[Wish, ...]
    properties: Properties = NONE


class Suback(NamedTuple):
    """3.9: one reason for each wish; up to 2 it is the QoS granted."""

    packet: int
    reasons: tuple[int, ...]
    properties: Properties = NONE


class Unsubscribe(NamedTuple):
    """3.10."""

    packet: int
    filters: tuple[str, ...]
    properties: Properties = NONE


class Unsuback(NamedTuple):
    """3.11; in 3.1.1 there are no reasons."""

    packet: int
    reasons: tuple[int, ...] = ()
    properties: Properties = NONE


class Ping(NamedTuple):
    """PINGREQ, 3.12."""


class Pong(NamedTuple):
    """PINGRESP, 3.13."""


class Disconnect(NamedTuple):
    """3.14."""

    reason: int = 0
    properties: Properties = NONE


class Auth(NamedTuple):
    """3.15."""

    reason: int = 0
    properties: Properties = NONE


Packet = (
    Connect | Connack | Publish | Ack | Subscribe | Suback | Unsubscribe | Unsuback | Ping | Pong | Disconnect | Auth
)


class Reader:
    """Bytes in, packets out. A server's reader learns the version from the CONNECT; a client's is told."""

    def __init__(self, largest: int = LARGEST, version: int = 0) -> None:
        self.largest, self.version = largest, version
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Packet]:
        """The packets that are whole with these bytes; take them all before feeding more."""
        buffer = self._buffer
        if buffer:
            buffer += data
        there = buffer or data  # nearly always whole packets come, and nothing has to be put together
        at = 0
        try:
            while at < len(there) and (head := self._head(there, at)) is not None:
                start, end = head
                if end > len(there):
                    break
                with memoryview(there) as view:  # a slice would be a copy more
                    first, body, at = there[at], bytes(view[start:end]), end
                packet = decode(first, body, self.version)
                if type(packet) is Connect:
                    self.version = packet.version
                yield packet
        finally:
            if there is buffer:
                del buffer[:at]
            else:
                buffer += data[at:]

    def _head(self, there: bytes | bytearray, at: int) -> tuple[int, int] | None:
        """Where the body of the packet at this place begins and ends; None if that cannot be told yet."""
        length = 0
        for place in range(4):
            if at + 1 + place >= len(there):
                return None
            byte = there[at + 1 + place]
            length |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                start = at + 2 + place
                if start + length - at > self.largest:
                    raise PeerError(f"a packet of {length} bytes; at most {self.largest}", PACKET_TOO_LARGE)
                return start, start + length
        raise PeerError("a length of more than four bytes", MALFORMED)


def decode(first: int, body: bytes, version: int) -> Packet:
    """The packet with this first byte and body."""
    kind, flags = first >> 4, first & 0x0F
    if kind == 3:
        return _publish(flags, body, version)
    if kind not in _DECODERS or flags != (2 if kind in (6, 8, 10) else 0):
        raise PeerError(f"no packet begins with {first:#04x}", MALFORMED)
    fields = Fields(body)
    packet = _DECODERS[kind](fields, version)
    if fields.at != fields.end:
        raise PeerError(f"{fields.end - fields.at} bytes too many in a packet", MALFORMED)
    return packet


def _publish(flags: int, body: bytes, version: int) -> Publish:
    qos = flags >> 1 & 3
    if qos == 3 or (flags & 8 and not qos):
        raise PeerError("a PUBLISH with QoS 3, or repeated with QoS 0", MALFORMED)
    fields = Fields(body)
    topic = fields.text()
    packet = _identifier(fields) if qos else 0
    properties = fields.properties("publish") if version == V5 else NONE
    return Publish(topic, body[fields.at :], qos, bool(flags & 1), packet, bool(flags & 8), properties)


def _identifier(fields: Fields) -> int:
    packet = fields.u16()
    if not packet:
        raise PeerError("packet identifier 0", PROTOCOL_ERROR)
    return packet


def _connect(fields: Fields, _version: int) -> Connect:
    name, level = fields.text(), fields.u8()
    version = {("MQIsdp", 3): V3, ("MQTT", 4): V3, ("MQTT", 5): V5}.get((name, level & 0x7F))
    if name not in ("MQTT", "MQIsdp"):
        raise PeerError(f"protocol {name!r}; we speak MQTT", MALFORMED)
    if version is None or level == 0x85:
        raise PeerError(f"{name} of level {level}; we speak MQTT 3.1.1 and 5", UNSUPPORTED_VERSION)
    flags, keep_alive_s = fields.u8(), fields.u16()
    has_will, will_qos = flags & 4, flags >> 3 & 3
    if flags & 1 or will_qos == 3 or (not has_will and flags & 0x38):
        raise PeerError(f"connect flags {flags:#04x}", MALFORMED)
    if version == V3 and flags & 0xC0 == 0x40:
        raise PeerError("a password without a user", MALFORMED)
    properties = fields.properties("connect") if version == V5 else NONE
    if "authentication_data" in properties and "authentication_method" not in properties:
        raise PeerError("authentication data without a method", PROTOCOL_ERROR)
    client, will = fields.text(), None
    if has_will:
        about = fields.properties("will") if version == V5 else NONE
        topic, payload = fields.text(), fields.binary()
        will = Will(topic, payload, will_qos, bool(flags & 0x20), about)
    user = fields.text() if flags & 0x80 else None
    password = fields.binary() if flags & 0x40 else None
    return Connect(client, version, bool(flags & 2), keep_alive_s, will, user, password, properties, level >= 0x80)


def _connack(fields: Fields, version: int) -> Connack:
    flags, reason = fields.u8(), fields.u8()
    if flags > 1 or (flags and reason):
        raise PeerError(f"CONNACK with flags {flags:#04x} and reason {reason:#04x}", MALFORMED)
    return Connack(bool(flags), reason, fields.properties("connack") if version == V5 else NONE)


def _ack(kind: AckKind) -> Callable[[Fields, int], Ack]:
    def read(fields: Fields, version: int) -> Ack:
        packet = _identifier(fields)
        if version != V5 or fields.at == fields.end:
            return Ack(kind, packet)
        reason = fields.u8()
        return Ack(kind, packet, reason, NONE if fields.at == fields.end else fields.properties(kind))

    return read


def _subscribe(fields: Fields, version: int) -> Subscribe:
    packet = _identifier(fields)
    properties = fields.properties("subscribe") if version == V5 else NONE
    wishes = []
    while fields.at < fields.end:
        filter, options = fields.text(), fields.u8()
        if options & 3 == 3 or options & 0xC0 or (version != V5 and options & 0xFC):
            raise PeerError(f"subscription options {options:#04x}", MALFORMED)
        if options & 0x30 == 0x30:
            raise PeerError("retain handling 3", PROTOCOL_ERROR)
        wishes.append(Wish(filter, options & 3, bool(options & 4), bool(options & 8), options >> 4))
    if not wishes:
        raise PeerError("a SUBSCRIBE without a filter", PROTOCOL_ERROR)
    return Subscribe(packet, tuple(wishes), properties)


def _suback(fields: Fields, version: int) -> Suback:
    packet = _identifier(fields)
    properties = fields.properties("suback") if version == V5 else NONE
    return Suback(packet, tuple(fields.rest()), properties)


def _unsubscribe(fields: Fields, version: int) -> Unsubscribe:
    packet = _identifier(fields)
    properties = fields.properties("unsubscribe") if version == V5 else NONE
    filters = []
    while fields.at < fields.end:
        filters.append(fields.text())
    if not filters:
        raise PeerError("an UNSUBSCRIBE without a filter", PROTOCOL_ERROR)
    return Unsubscribe(packet, tuple(filters), properties)


def _unsuback(fields: Fields, version: int) -> Unsuback:
    packet = _identifier(fields)
    if version != V5:
        return Unsuback(packet)
    properties = fields.properties("unsuback")
    return Unsuback(packet, tuple(fields.rest()), properties)


def _disconnect(fields: Fields, version: int) -> Disconnect:
    if version != V5 or fields.at == fields.end:
        return Disconnect()
    reason = fields.u8()
    return Disconnect(reason, NONE if fields.at == fields.end else fields.properties("disconnect"))


def _auth(fields: Fields, version: int) -> Auth:
    if version != V5:
        raise PeerError("AUTH is of MQTT 5", MALFORMED)
    if fields.at == fields.end:
        return Auth()
    return Auth(fields.u8(), fields.properties("auth"))


_DECODERS: Final[dict[int, Callable[[Fields, int], Packet]]] = {
    1: _connect,
    2: _connack,
    4: _ack("puback"),
    5: _ack("pubrec"),
    6: _ack("pubrel"),
    7: _ack("pubcomp"),
    8: _subscribe,
    9: _suback,
    10: _unsubscribe,
    11: _unsuback,
    12: lambda _fields, _version: Ping(),
    13: lambda _fields, _version: Pong(),
    14: _disconnect,
    15: _auth,
}
_ACK_HEAD: Final = {"puback": 0x40, "pubrec": 0x50, "pubrel": 0x62, "pubcomp": 0x70}
_ACK_BEGINS: Final = {kind: bytes((first, 2)) for kind, first in _ACK_HEAD.items()}


def encode(packet: Packet, version: int) -> bytes:
    """The packet as bytes of this version."""
    if type(packet) is Ack and not packet.reason and not packet.properties:  # nearly all that a server says
        return _ACK_BEGINS[packet.kind] + packet.packet.to_bytes(2)
    first, body = _encoded(packet, version)
    return bytes((first,)) + number(len(body)) + body


def _encoded(packet: Packet, version: int) -> tuple[int, bytes]:
    """First byte and body."""

    def properties(of: str) -> bytes:
        return written(packet.properties, of) if version == V5 else b""  # type: ignore[union-attr]

    match packet:
        case Publish(topic, payload, qos, retain, identifier, dup):
            first = 0x30 | dup << 3 | qos << 1 | retain
            return first, text(topic) + (identifier.to_bytes(2) if qos else b"") + properties("publish") + payload
        case Ack(kind, identifier, reason, extra):
            body = identifier.to_bytes(2)
            if version == V5 and (reason or extra):  # both may be left out (3.4.2.1)
                body += bytes((reason,)) + (properties(kind) if extra else b"")
            return _ACK_HEAD[kind], body
        case Connect():
            return 0x10, _connect_body(packet)
        case Connack(present, reason):
            return 0x20, bytes((present, reason)) + properties("connack")
        case Subscribe(identifier, wishes):
            return 0x82, identifier.to_bytes(2) + properties("subscribe") + b"".join(map(_wish, wishes))
        case Suback(identifier, reasons):
            return 0x90, identifier.to_bytes(2) + properties("suback") + bytes(reasons)
        case Unsubscribe(identifier, filters):
            return 0xA2, identifier.to_bytes(2) + properties("unsubscribe") + b"".join(map(text, filters))
        case Unsuback(identifier, reasons):
            return 0xB0, identifier.to_bytes(2) + properties("unsuback") + (bytes(reasons) if version == V5 else b"")
        case Ping():
            return 0xC0, b""
        case Pong():
            return 0xD0, b""
        case Disconnect(reason, extra):
            told = version == V5 and (reason or extra)
            return 0xE0, bytes((reason,)) + (properties("disconnect") if extra else b"") if told else b""
        case Auth(reason, extra):
            return 0xF0, bytes((reason,)) + properties("auth") if reason or extra else b""


def _wish(wish: Wish) -> bytes:
    options = wish.qos | wish.no_local << 2 | wish.retain_as_published << 3 | wish.retain_handling << 4
    return text(wish.filter) + bytes((options,))


def _connect_body(connect: Connect) -> bytes:
    will, v5 = connect.will, connect.version == V5
    flags = connect.clean << 1 | (connect.user is not None) << 7 | (connect.password is not None) << 6
    body = text(connect.client)
    if will:
        flags |= 4 | will.qos << 3 | will.retain << 5
        body += (written(will.properties, "will") if v5 else b"") + text(will.topic) + binary(will.payload)
    body += b"" if connect.user is None else text(connect.user)
    body += b"" if connect.password is None else binary(connect.password)
    head = text("MQTT") + bytes((connect.version | connect.bridge << 7, flags)) + connect.keep_alive_s.to_bytes(2)
    return head + (written(connect.properties, "connect") if v5 else b"") + body
