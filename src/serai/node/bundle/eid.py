"""Endpoint identifiers: `dtn://NAME/` for nodes, `dtn://NETWORK/~TOPIC` for channels (RFC 9171, 4.2.5)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from serai.core.errors import PeerError
from serai.node.bundle.cbor import Reader

NONE: Final = "dtn:none"
MAX_BYTES: Final = 4 * 1024
"""Of an EID: a topic of 1,024 bytes, percent-encoded, and a name."""

NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
"""What a node or a network may be called: as in the names of hosts."""

_DTN: Final = re.compile(r"//[!-.0-~]+/[!-~]*")  # a node name without a slash, and a demux


def node_eid(name: str) -> str:
    """The EID of the node with this name."""
    return f"dtn://{name}/"


def node_name(eid: str) -> str | None:
    """The name of the node or network that an EID of the scheme dtn begins with."""
    return eid[6:].partition("/")[0] if eid.startswith("dtn://") else None


@lru_cache(1024)
def channel_eid(network: str, topic: str) -> str:
    """The group endpoint of a topic: bytes outside 0x21-0x7E, and "%", are percent-encoded."""
    return f"dtn://{network}/~{_encoded(topic)}"


@lru_cache(1024)
def topic_of(eid: str) -> str | None:
    """The topic of a channel; None if the EID is no channel, or not one that we would write so."""
    found = re.fullmatch(r"dtn://([^/]+)/~(.*)", eid)
    if found is None:
        return None
    try:
        topic = re.sub(rb"%([0-9A-F]{2})", lambda hex: bytes([int(hex[1], 16)]), found[2].encode()).decode()
    except UnicodeDecodeError:
        return None
    return topic if _encoded(topic) == found[2] else None  # one topic, one channel


def _encoded(topic: str) -> str:
    return "".join(chr(byte) if 0x21 <= byte <= 0x7E and byte != 0x25 else f"%{byte:02X}" for byte in topic.encode())


def eid_value(eid: str) -> list[Any]:
    """An EID as CBOR has it."""
    scheme, _, rest = eid.partition(":")
    if scheme == "ipn":
        return [2, [int(part) for part in rest.split(".")]]
    return [1, 0 if rest == "none" else rest]


def read_eid(reader: Reader) -> str:
    """The EID that comes next."""
    data, at = reader.data, reader.at
    if data[at : at + 2] == b"\x82\x01":  # the quick way, for most of them: they come again and again
        first, length = data[at + 2 : at + 3], data[at + 3 : at + 4]
        end = at + 4 + length[0] if first == b"\x78" and length else at + 3 + (first[0] & 31 if first else 0)
        if end <= len(data) and (eid := _known_eid(data[at:end])) is not None:
            reader.at = end
            return eid
    return eid_of(reader.value(2), at)


@lru_cache(1024)
def _known_eid(data: bytes) -> str | None:
    """The EID of the scheme dtn that these bytes are; None if they are none."""
    reader = Reader(data)
    try:
        eid = eid_of(reader.value(2))
        reader.done()
    except PeerError:
        return None
    return eid


def eid_of(value: Any, at: int = 0) -> str:
    """The EID that a decoded value is."""
    match value:
        case [1, 0]:
            return NONE
        case [1, str(rest)] if len(rest) <= MAX_BYTES and _DTN.fullmatch(rest):
            return f"dtn:{rest}"
        case [2, [*parts]] if len(parts) in (2, 3) and all(type(part) is int and part >= 0 for part in parts):
            return "ipn:" + ".".join(map(str, parts))
    raise PeerError(f"no endpoint that we know at byte {at}")
