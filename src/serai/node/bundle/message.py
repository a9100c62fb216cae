"""A message as a bundle, and what goes with it: the form in which nodes keep bundles and send them on.

Kept is the bundle as its source made it: primary block, integrity, block 192 and payload. Previous node, age and hop
count change at every hop; they are put in front of the other blocks when the bundle leaves, and taken off when it
arrives. So a bundle has the same bytes in every store, and the same size.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from serai.core.errors import PeerError
from serai.node.bundle.age import HOP_LIMIT, age_ms, hop_count
from serai.node.bundle.bpsec import covers_primary, sign, verify
from serai.node.bundle.bpv7 import (
    BUNDLE_AGE,
    CRC32C,
    FRAGMENT,
    HOP_COUNT,
    INTEGRITY,
    MESSAGE,
    NO_CRC,
    PAYLOAD,
    PREVIOUS_NODE,
    Block,
    Bundle,
    Primary,
    decode_bundle,
    decode_in_place,
    encode_block,
    encode_bundle,
    encode_primary,
    obey_flags,
)
from serai.node.bundle.cbor import Reader, decode, encode, uint
from serai.node.bundle.eid import channel_eid, eid_value, node_name, topic_of
from serai.node.words import Header, Message

DPSP: Final = "dpsp"
FRAGMENTS: Final = "$fragment/"
"""Before the topic of a fragment, so that nobody who asks for the topic gets a piece for the whole."""
CONTROL_LIFETIME_MS: Final = 60_000
_PATH: Final = (PREVIOUS_NODE, BUNDLE_AGE, HOP_COUNT)
_PLAIN: Final = Message("", b"")[3:]  # not retained, and without properties
_KNOWN: Final = (PAYLOAD, *_PATH, INTEGRITY, MESSAGE)
_SHORT: Final = 32
"""Bytes of a block 192 that are read once: most messages say no more than their QoS."""

_OWN_NUMBERS: Final = 1 << 16
"""From here on blocks are numbered that a node puts in front; no other may have such a number."""


class Refused(PeerError):  # noqa: N818 - what happened
    """A bundle that is well formed and still not taken: XFER_REFUSE 4."""


class Arrived(NamedTuple):
    """A bundle that has come: what is known of it, to whom it is addressed, and the bytes to keep."""

    header: Header
    destination: str
    payload: bytes
    data: bytes


class Envelope(NamedTuple):
    """How a node writes and reads bundles: in the name of a network, with its key (b"": without integrity blocks)."""

    node: str  # its EID
    network: str
    key: bytes = b""

    def encode(self, header: Header, message: Message) -> bytes:
        """A message as the bytes of its bundle, as they are kept."""
        primary = Primary(
            channel_eid(self.network, message.topic), header.source, header.created_ms, header.sequence,
            header.lifetime_ms,
        )  # fmt: skip
        about, payload = _about(message), Block(PAYLOAD, 1, message.payload)
        if not self.key:
            return b"".join((b"\x9f", encode_primary(primary), _about_block(about), encode_block(payload), b"\xff"))
        return encode_bundle(self._signed(Bundle(primary, (Block(MESSAGE, 2, about), payload)), (0, 1, 2)))

    def control(self, peer: str, payload: bytes, now_ms: int, sequence: int) -> bytes:
        """A list or another word of DPSP to a neighbour, as it goes over the link."""
        primary = Primary(f"{peer}{DPSP}", self.node, now_ms, sequence, CONTROL_LIFETIME_MS)
        bundle = self._signed(Bundle(primary, (Block(PAYLOAD, 1, payload),)), (0, 1))
        return onward(encode_bundle(bundle), self.node, 0, 1, limit=1)

    def open(self, data: bytes) -> Arrived:
        """What a bundle from a neighbour is; BadCheck if it was damaged, Refused if it is not for this network."""
        bundle, ends = decode_in_place(data)
        whole = bundle.blocks
        bundle = obey_flags(bundle, _KNOWN)
        limit, hops = hop_count(bundle)
        if hops > limit:
            raise Refused(f"{hops} hops, at most {limit}")
        age = age_ms(bundle)
        if age is None and bundle.primary.created_ms == 0:
            raise Refused("a bundle with neither a time nor an age")
        kept = bundle.replaced((), _PATH)
        _check_path(bundle)
        if any(block.number >= _OWN_NUMBERS for block in kept.blocks):
            raise Refused(f"a block numbered {_OWN_NUMBERS} or above")
        about = kept.block(MESSAGE)
        if self.key and not verify(kept, self.key, (0, 1, about.number) if about else (0, 1)):
            raise Refused("it was not made with the network's key")
        if bundle.primary.crc == NO_CRC and not self.key and not covers_primary(kept):  # RFC 9171, 4.3.1
            raise Refused("a primary block without a check")
        network, topic = node_name(bundle.primary.destination), topic_of(bundle.primary.destination)
        if topic is not None and network != self.network:
            raise Refused(f"it is for the network {network}")
        stays = {block.number for block in kept.blocks}
        pieces = [data[ends[place] : ends[place + 1]] for place, block in enumerate(whole) if block.number in stays]
        stored = b"".join((data[: ends[0]], *pieces, b"\xff"))
        header = _header(kept, topic or "", age or 0, hops, len(stored))
        if header.part is not None and header.part[0] + header.part[1] != header.sequence:
            raise Refused("a part of a message that has not the number of its place")
        return Arrived(header, bundle.primary.destination, kept.payload, stored)

    def _signed(self, bundle: Bundle, targets: tuple[int, ...]) -> Bundle:
        return sign(bundle, self.key, self.node, targets) if self.key else bundle


def _check_path(bundle: Bundle) -> None:
    """None of the blocks that change on the way may stand twice (RFC 9171, 4.4)."""
    found = [block.type for block in bundle.blocks if block.type in _PATH]
    if len(set(found)) < len(found):
        raise Refused("two previous nodes, ages or hop counts")


def message_of(data: bytes) -> Message:
    """The message in a bundle that is kept."""
    bundle = decode_bundle(data)
    block = bundle.block(MESSAGE)
    topic = topic_of(bundle.primary.destination) or ""
    return _said(block.data if block else b"\xa0", topic)._replace(payload=bundle.payload)


def onward(data: bytes, sender: str, age: int, hops: int, limit: int = HOP_LIMIT) -> bytes:
    """A bundle that is kept as it leaves: with its sender, its age in ms and its hops, this one counted."""
    reader = Reader(data, 1)
    reader.skip()  # behind the primary block there is room
    path = (_sender_block(sender), _path_block(BUNDLE_AGE, encode(age)), _hops_block(limit, hops))
    return b"".join((data[: reader.at], *path, data[reader.at :]))


def _path_block(type: int, content: bytes) -> bytes:
    return encode_block(Block(type, _OWN_NUMBERS + type, content, crc=CRC32C))


@lru_cache(16)
def _sender_block(sender: str) -> bytes:
    return _path_block(PREVIOUS_NODE, encode(eid_value(sender)))


@lru_cache(256)
def _hops_block(limit: int, hops: int) -> bytes:
    return _path_block(HOP_COUNT, encode([limit, hops]))


def _header(bundle: Bundle, topic: str, age: int, hops: int, size_bytes: int) -> Header:
    primary = bundle.primary
    block = bundle.block(MESSAGE)
    about = _said(block.data if block else b"\xa0", topic)
    if topic and primary.flags & FRAGMENT:
        topic = f"{FRAGMENTS}{topic}"
    return Header(
        primary.source, primary.created_ms, primary.sequence, primary.offset if primary.flags & FRAGMENT else 0, topic,
        primary.lifetime_ms, age, hops, size_bytes, about.qos, about.retain, bool(bundle.payload), about.part,
    )  # fmt: skip


def _said(data: bytes, topic: str) -> Message:
    """What block 192 says, without the payload."""
    return _short_said(data, topic) if len(data) <= _SHORT else _message(decode(data, items=5000), topic, b"")


@lru_cache(1024)
def _short_said(data: bytes, topic: str) -> Message:
    return _message(decode(data, items=5000), topic, b"")


@lru_cache(256)
def _about_block(about: bytes) -> bytes:
    """Block 192 as it goes: most messages say the same of themselves."""
    return encode_block(Block(MESSAGE, 2, about))


def _about(message: Message) -> bytes:
    """The data of block 192."""
    if message[3:] == _PLAIN:
        return b"\xa1\x01" + uint(message.qos)
    said: dict[int, Any] = {
        1: message.qos, 2: message.retain or None, 3: message.content_type, 4: message.response_topic,
        5: message.correlation, 6: [list(pair) for pair in message.properties] or None, 7: message.payload_format,
        8: list(message.part) if message.part else None,
    }  # fmt: skip
    return encode({key: value for key, value in said.items() if value is not None})


def _message(said: Any, topic: str, payload: bytes) -> Message:
    """The message that block 192 and the payload make; keys that we do not know are for later versions."""
    if not isinstance(said, dict):
        raise PeerError("block 192 is a map")
    qos, format, part = said.get(1, 0), said.get(7), said.get(8)
    _expect(type(qos) is int and 0 <= qos <= 2, "QoS is 0, 1 or 2")
    _expect(isinstance(said.get(2, False), bool), "retain is true or false")
    _expect(all(said.get(key) is None or isinstance(said[key], str) for key in (3, 4)), "types and topics are texts")
    _expect(said.get(5) is None or isinstance(said[5], bytes), "correlation data are bytes")
    _expect(format is None or (type(format) is int and format in (0, 1)), "the payload format is 0 or 1")
    return Message(
        topic, payload, qos, said.get(2, False), said.get(3), said.get(4), said.get(5), _properties(said.get(6, [])),
        format, None if part is None else _part(part),
    )  # fmt: skip


def _properties(pairs: Any) -> tuple[tuple[str, str], ...]:
    _expect(
        isinstance(pairs, list)
        and all(isinstance(pair, list) and [type(text) for text in pair] == [str, str] for pair in pairs),
        "properties are pairs of texts",
    )
    return tuple((name, value) for name, value in pairs)


def _part(part: Any) -> tuple[int, int, int]:
    _expect(isinstance(part, list) and [type(number) for number in part] == [int] * 3, "a part has three numbers")
    first, place, count = part
    _expect(first >= 0 and 0 <= place < count <= 1 << 16, "a part is one of its parts")
    return first, place, count


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise PeerError(f"block 192: {what}")
