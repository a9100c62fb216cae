"""The fields that packets are made of, and the properties of MQTT 5 (sections 1.5 and 2.2.2).

Properties are a mapping by name. `user_property` is a tuple of pairs and `subscription_identifier` a tuple of numbers,
because both may stand several times; all others are one value.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from serai.core.errors import PeerError

MALFORMED: Final = 0x81
PROTOCOL_ERROR: Final = 0x82
ALIAS_INVALID: Final = 0x94

Properties = Mapping[str, Any]
NONE: Final[Properties] = MappingProxyType({})


_EVERY = (
    "connect will connack publish puback pubrec pubrel pubcomp subscribe suback unsubscribe unsuback disconnect auth"
)
_SAID = "connack puback pubrec pubrel pubcomp suback unsuback disconnect auth"


class Property(NamedTuple):
    """One kind of property: its identifier, what its value is, and in which packets it may stand."""

    code: int
    name: str
    shape: str
    packets: frozenset[str]


TABLE: Final = tuple(
    Property(code, name, shape, frozenset(packets.split()))
    for code, name, shape, packets in (
        (0x01, "payload_format_indicator", "flag", "publish will"),
        (0x02, "message_expiry_interval", "u32", "publish will"),
        (0x03, "content_type", "text", "publish will"),
        (0x08, "response_topic", "text", "publish will"),
        (0x09, "correlation_data", "binary", "publish will"),
        (0x0B, "subscription_identifier", "number", "publish subscribe"),
        (0x11, "session_expiry_interval", "u32", "connect connack disconnect"),
        (0x12, "assigned_client_identifier", "text", "connack"),
        (0x13, "server_keep_alive", "u16", "connack"),
        (0x15, "authentication_method", "text", "connect connack auth"),
        (0x16, "authentication_data", "binary", "connect connack auth"),
        (0x17, "request_problem_information", "flag", "connect"),
        (0x18, "will_delay_interval", "u32", "will"),
        (0x19, "request_response_information", "flag", "connect"),
        (0x1A, "response_information", "text", "connack"),
        (0x1C, "server_reference", "text", "connack disconnect"),
        (0x1F, "reason_string", "text", _SAID),
        (0x21, "receive_maximum", "u16", "connect connack"),
        (0x22, "topic_alias_maximum", "u16", "connect connack"),
        (0x23, "topic_alias", "u16", "publish"),
        (0x24, "maximum_qos", "flag", "connack"),
        (0x25, "retain_available", "flag", "connack"),
        (0x26, "user_property", "pair", _EVERY),
        (0x27, "maximum_packet_size", "u32", "connect connack"),
        (0x28, "wildcard_subscription_available", "flag", "connack"),
        (0x29, "subscription_identifier_available", "flag", "connack"),
        (0x2A, "shared_subscription_available", "flag", "connack"),
    )
)
_BY_CODE: Final = {property.code: property for property in TABLE}
_BY_NAME: Final = {property.name: property for property in TABLE}
_NOT_ZERO: Final = {  # and what a zero is answered with
    "receive_maximum": PROTOCOL_ERROR,
    "maximum_packet_size": PROTOCOL_ERROR,
    "subscription_identifier": PROTOCOL_ERROR,
    "topic_alias": ALIAS_INVALID,
}


_SHORT: Final = 256  # bytes of a text that is read once: topics come again and again


def _text(data: bytes) -> str:
    if b"\0" in data:
        raise PeerError("a text with the character U+0000", MALFORMED)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise PeerError("a text that is not UTF-8", MALFORMED) from None


_short_text = lru_cache(1024)(_text)


class Fields:
    """Reads the fields of one packet's body, front to back; all that does not fit is a malformed packet."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.end = data, 0, len(data)

    def take(self, size: int) -> bytes:
        """The next bytes."""
        at = self.at
        self.at = at + size
        if self.at > self.end:
            raise PeerError(f"a packet ends too early, at byte {self.end} of its body", MALFORMED)
        return self.data[at : self.at]

    def u8(self) -> int:
        """One byte."""
        return self.take(1)[0]

    def u16(self) -> int:
        """Two bytes, high one first."""
        return int.from_bytes(self.take(2))

    def u32(self) -> int:
        """Four bytes, high one first."""
        return int.from_bytes(self.take(4))

    def number(self) -> int:
        """A number of one to four bytes, seven bits in each, low ones first (1.5.5)."""
        value = 0
        for place in range(4):
            byte = self.u8()
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                if place and not byte:
                    raise PeerError("a number takes more bytes than it needs", MALFORMED)
                return value
        raise PeerError("a number of more than four bytes", MALFORMED)

    def binary(self) -> bytes:
        """Two bytes of length, then so many (1.5.6)."""
        return self.take(self.u16())

    def text(self) -> str:
        """The same, as UTF-8 without the character 0 (1.5.4)."""
        data = self.binary()
        return _short_text(data) if len(data) <= _SHORT else _text(data)

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(self.end - self.at)

    def properties(self, packet: str) -> Properties:
        """The properties that stand here, of a packet of this kind."""
        length = self.number()
        if not length:
            return NONE
        end = self.at + length
        if end > self.end:
            raise PeerError("properties are longer than their packet", MALFORMED)
        found: dict[str, Any] = {}
        while self.at < end:
            self._property(packet, found)
        if self.at != end:
            raise PeerError("a property is longer than its packet's properties", MALFORMED)
        return found

    def _property(self, packet: str, found: dict[str, Any]) -> None:
        code = self.number()
        kind = _BY_CODE.get(code)
        if kind is None or packet not in kind.packets:
            raise PeerError(f"property {code:#04x} in a packet {packet}", MALFORMED)
        value, name = self._value(kind.shape), kind.name
        if not value and name in _NOT_ZERO:
            raise PeerError(f"{name} 0", _NOT_ZERO[name])
        if kind.shape == "pair" or (kind.shape == "number" and packet == "publish"):
            found[name] = (*found.get(name, ()), value)
        elif name in found:
            raise PeerError(f"{name} stands twice", PROTOCOL_ERROR)
        else:
            found[name] = (value,) if kind.shape == "number" else value

    def _value(self, shape: str) -> Any:
        if shape == "flag":
            if (value := self.u8()) > 1:
                raise PeerError(f"a property is {value}; 0 or 1", PROTOCOL_ERROR)
            return value
        if shape == "pair":
            return self.text(), self.text()
        return getattr(self, shape)()


def number(value: int) -> bytes:
    """A number as in `Fields.number`."""
    if value < 0x80:
        return bytes((value,))
    if value >= 1 << 28:
        raise ValueError(f"{value} is beyond what MQTT can say, 268435455")
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def binary(value: bytes) -> bytes:
    """Two bytes of length, then the bytes."""
    if len(value) > 0xFFFF:
        raise ValueError(f"{len(value)} bytes in a field of at most 65535")
    return struct.pack(">H", len(value)) + value


def text(value: str) -> bytes:
    """A text with its length."""
    return binary(value.encode())


def written(properties: Properties, packet: str) -> bytes:
    """The properties of a packet as bytes, their length first."""
    if not properties:
        return b"\0"
    body = bytearray()
    for name, value in properties.items():
        kind = _BY_NAME[name]
        if packet not in kind.packets:
            raise ValueError(f"{name} may not stand in a packet {packet}")
        for one in value if kind.shape in ("pair", "number") else (value,):
            body.append(kind.code)
            body += _written_value(kind.shape, one)
    return number(len(body)) + body


def _written_value(shape: str, value: Any) -> bytes:
    if shape == "pair":
        return text(value[0]) + text(value[1])
    if shape == "text":
        return text(value)
    if shape == "binary":
        return binary(value)
    if shape == "number":
        return number(value)
    return int(value).to_bytes({"flag": 1, "u16": 2, "u32": 4}[shape])
