"""Bundles of the Bundle Protocol version 7 (RFC 9171): blocks and their checks, to bytes and back.

A bundle is kept as its primary block and its other blocks, payload last. Blocks that we do not know stay what they are,
bytes, unless their flags say otherwise (`obey_flags`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Final, NamedTuple

from fastcrc.crc16 import ibm_sdlc
from fastcrc.crc32 import iscsi

from serai.core.errors import PeerError
from serai.node.bundle.cbor import ARRAY, BYTES, Reader, encode, head, octets, uint
from serai.node.bundle.eid import NONE, eid_value, read_eid

VERSION: Final = 7
PAYLOAD, PREVIOUS_NODE, BUNDLE_AGE, HOP_COUNT, INTEGRITY, CONFIDENTIALITY, MESSAGE = 1, 6, 7, 10, 11, 12, 192
"""Block types; 192 is ours, from the range for private use."""

FRAGMENT, ADMINISTRATIVE, WHOLE = 1, 2, 4
"""Flags of a bundle: it is a fragment, it is a record for the bundle agent, it must not be fragmented."""

DELETE_BUNDLE, DISCARD_BLOCK = 4, 16
"""Flags of a block that cannot be processed: the bundle has to go, or the block."""

ASSIGNED_FLAGS: Final = 0x17
"""All flags of a block that mean something (RFC 9171, 4.2.4)."""

NO_CRC, CRC16, CRC32C = 0, 1, 2
MAX_BLOCKS: Final = 64
_CRC: Final[dict[int, tuple[int, Callable[[bytes], int]]]] = {CRC16: (2, ibm_sdlc), CRC32C: (4, iscsi)}


_HEAD: Final = re.compile(
    rb"([\x85\x86](?:[\x00-\x17]|\x18.|\x19..|\x1a....){4})([\x40-\x57]|\x58.|\x59..|\x5a....)", re.DOTALL
)
"""What a block begins with: its numbers, and how long its data are."""
_FOUR: Final = head(BYTES, 4)
_BLANK: Final = _FOUR + bytes(4)  # in place of a CRC


class Primary(NamedTuple):
    """The primary block: who sent what to whom, when, and how long it lives (ms; since 2000, 0: unknown)."""

    destination: str
    source: str
    created_ms: int
    sequence: int
    lifetime_ms: int
    flags: int = WHOLE
    report_to: str = NONE
    offset: int = 0
    total: int = 0
    crc: int = CRC32C


class Block(NamedTuple):
    """Any other block: its data are bytes."""

    type: int
    number: int
    data: bytes
    flags: int = 0
    crc: int = CRC32C


class Bundle(NamedTuple):
    """A bundle; the payload is its last block."""

    primary: Primary
    blocks: tuple[Block, ...]

    @property
    def payload(self) -> bytes:
        """The application's bytes."""
        return self.blocks[-1].data

    def block(self, type: int) -> Block | None:
        """The first block of a type."""
        for block in self.blocks:
            if block.type == type:
                return block
        return None

    def free_number(self) -> int:
        """A block number that is not taken."""
        return max(block.number for block in self.blocks) + 1

    def replaced(self, blocks: Collection[Block], types: Collection[int]) -> Bundle:
        """The bundle with these blocks in place of all of these types."""
        kept = tuple(block for block in self.blocks if block.type not in types)
        return self._replace(blocks=(*blocks, *kept))


class BadCheck(PeerError):  # noqa: N818 - what happened
    """A block whose CRC is not that of its bytes: it was damaged on the way."""


def encode_bundle(bundle: Bundle) -> bytes:
    """The bytes of a bundle."""
    return b"".join((b"\x9f", encode_primary(bundle.primary), *map(encode_block, bundle.blocks), b"\xff"))


def encode_primary(primary: Primary) -> bytes:
    """The bytes of a primary block: they are what an integrity block protects, too."""
    destination, source, created_ms, sequence, lifetime_ms, flags, report_to, offset, total, crc = primary
    parts = [_way(destination, source, report_to, flags, crc), uint(created_ms), uint(sequence), uint(lifetime_ms)]
    if flags & FRAGMENT:
        parts += [uint(offset), uint(total)]
    return _with_crc(b"".join(parts), crc)


@lru_cache(1024)
def _way(destination: str, source: str, report_to: str, flags: int, crc: int) -> bytes:
    """What primary blocks of bundles of one source on one channel begin with, up to their timestamps."""
    length = 8 + (2 if flags & FRAGMENT else 0) + (crc != NO_CRC)
    eids = b"".join(encode(eid_value(eid)) for eid in (destination, source, report_to))
    return head(ARRAY, length) + uint(VERSION) + uint(flags) + uint(crc) + eids + head(ARRAY, 2)


def encode_block(block: Block) -> bytes:
    """The bytes of a block."""
    type, number, data, flags, crc = block
    return _with_crc(_numbers(type, number, flags, crc) + octets(data), crc)


@lru_cache(256)
def _numbers(type: int, number: int, flags: int, crc: int) -> bytes:
    return head(ARRAY, 5 + (crc != NO_CRC)) + uint(type) + uint(number) + uint(flags) + uint(crc)


def _with_crc(block: bytes, crc: int) -> bytes:
    """A block whose last item, if it has a CRC, is its CRC: that of the block with zeros in its place."""
    if crc == CRC32C:
        return b"".join((block, _FOUR, iscsi(block + _BLANK).to_bytes(4)))
    if crc == NO_CRC:
        return block
    size, check = _CRC[crc]
    return block + octets(check(block + octets(bytes(size))).to_bytes(size, "big"))


def decode_bundle(data: bytes) -> Bundle:
    """The bundle that these bytes are; a PeerError says why they are none, a BadCheck that they were damaged."""
    return decode_in_place(data)[0]


def decode_in_place(data: bytes) -> tuple[Bundle, list[int]]:
    """The same, and where in the bytes its blocks end, the primary block first."""
    reader = Reader(data)
    if reader.head() != (4, None):
        raise PeerError("a bundle is an array without length")
    primary = _read_primary(reader)
    blocks: list[Block] = []
    ends = [reader.at]
    while not reader.ends():
        if len(blocks) == MAX_BLOCKS:
            raise PeerError(f"more than {MAX_BLOCKS} blocks")
        blocks.append(_read_block(reader))
        ends.append(reader.at)
    reader.done()
    if [block.type for block in blocks].count(PAYLOAD) != 1 or blocks[-1].type != PAYLOAD:
        raise PeerError("a bundle has one payload, and it comes last")
    if len({block.number for block in blocks}) < len(blocks) or blocks[-1].number != 1:
        raise PeerError("the payload is block 1, and no number stands twice")
    return Bundle(primary, tuple(blocks)), ends


def _read_primary(reader: Reader) -> Primary:
    start, length = reader.at, reader.array()
    version, flags, crc = reader.uint(), reader.uint(), reader.uint()
    if version != VERSION:
        raise PeerError(f"a bundle of version {version}; we know {VERSION}")
    if length != 8 + 2 * (flags & FRAGMENT) + (crc != NO_CRC):
        raise PeerError(f"a primary block of {length} items with flags {flags:#x} and CRC type {crc}")
    destination, source, report_to = read_eid(reader), read_eid(reader), read_eid(reader)
    if reader.array() != 2:
        raise PeerError("a timestamp is a time and a number")
    created_ms, sequence, lifetime_ms = reader.uint(), reader.uint(), reader.uint()
    offset, total = (reader.uint(), reader.uint()) if flags & FRAGMENT else (0, 0)
    _check(reader, start, crc)
    return Primary(destination, source, created_ms, sequence, lifetime_ms, flags, report_to, offset, total, crc)


def _read_block(reader: Reader) -> Block:
    return _quick_block(reader) or _any_block(reader)


def _quick_block(reader: Reader) -> Block | None:
    """A block as nearly all are: short heads, and a CRC that is right or none. None: look closer."""
    data, start = reader.data, reader.at
    found = _HEAD.match(data, start)
    if found is None:
        return None
    begins = found.end()
    length, type, number, flags, crc = _read_head(found[1])
    size = _read_length(found[2])
    ends = begins + size
    if number == 0 or ends > len(data):
        return None
    if crc == NO_CRC and length == 5:
        reader.at = ends
        return Block(type, number, data[begins:ends], flags, crc)
    if crc != CRC32C or length != 6:
        return None
    at = ends + 5
    if data[ends:at] != octets(iscsi(data[start:ends] + _BLANK).to_bytes(4)):
        return None
    reader.at = at
    return Block(type, number, data[begins:ends], flags, crc)


@lru_cache(1024)
def _read_head(head: bytes) -> tuple[int, int, int, int, int]:
    """Items, type, number, flags and CRC type of a block."""
    reader = Reader(head + bytes(6))  # there is room for the items that are announced
    return reader.array(), reader.uint(), reader.uint(), reader.uint(), reader.uint()


@lru_cache(1024)
def _read_length(head: bytes) -> int:
    return Reader(head).head()[1] or 0


def _any_block(reader: Reader) -> Block:
    start, length = reader.at, reader.array()
    type, number, flags, crc = reader.uint(), reader.uint(), reader.uint(), reader.uint()
    if length != 5 + (crc != NO_CRC) or number == 0:
        raise PeerError(f"a block of {length} items with number {number} and CRC type {crc}")
    data = reader.octets()
    _check(reader, start, crc)
    return Block(type, number, data, flags, crc)


def _check(reader: Reader, start: int, crc: int) -> None:
    """See that the CRC that comes next is that of the block, with zeros in its own place."""
    if crc == NO_CRC:
        return
    if crc not in _CRC:
        raise PeerError(f"CRC type {crc}; we know 0, 1 and 2")
    size, check = _CRC[crc]
    found = reader.octets()
    block = reader.data[start : reader.at - size] + bytes(size)
    if len(found) != size or check(block).to_bytes(size, "big") != found:
        raise BadCheck("a block was damaged: its CRC is wrong")


def obey_flags(bundle: Bundle, known: Collection[int]) -> Bundle:
    """The bundle without unknown blocks that ask to be discarded; PeerError if one asks to delete the bundle."""
    unknown = [block for block in bundle.blocks if block.type not in known]
    if any(block.flags & DELETE_BUNDLE for block in unknown):
        raise PeerError("a block that we do not know asks to delete the bundle")
    gone = {block.number for block in unknown if block.flags & DISCARD_BLOCK}
    if not gone:
        return bundle
    return bundle._replace(blocks=tuple(block for block in bundle.blocks if block.number not in gone))
