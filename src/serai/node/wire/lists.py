"""The words of DPSP as CBOR: lists, and how far a neighbour's journal is known.

As arrays, marks of 8 bytes one after another:

    [1, 0, number, made_s, [entry ...], seen]
        entry = [subscriber, n, interest, created, lifetime, renewal (ms), renewed, hops]
        seen = [0, marks] | [1, hashes, salt, bits] | [2, epoch, first, last, marks]
    [1, 1, epoch, upto]
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from serai.core.errors import PeerError
from serai.node.bundle.cbor import decode, encode
from serai.node.bundle.eid import MAX_BYTES as MAX_EID_BYTES
from serai.node.words import AllSeen, BloomSeen, JournalSeen, ListEntry, ListMessage

VERSION: Final = 1
MAX_BYTES: Final = 4 << 20
MAX_ENTRIES: Final = 20_000
MAX_MARKS: Final = 250_000
"""Of a journal in one list; a list with so many is followed by another, and nothing is offered before that has come."""
MAX_INTEREST_BYTES: Final = 1024
EPOCH_BYTES: Final = 8
_MAX_NUMBER: Final = 1 << 62


class JournalKnown(NamedTuple):
    """I know your journal up to here: sent first in a contact."""

    epoch: bytes
    upto: int


def encode_list(message: ListMessage) -> bytes:
    """A list as bytes."""
    return encode(
        [
            VERSION,
            0,
            message.number,
            float(message.made_s),
            [list(entry) for entry in message.entries],
            _seen(message.seen),
        ]
    )


def encode_known(known: JournalKnown) -> bytes:
    """What is known of a journal, as bytes."""
    return encode([VERSION, 1, known.epoch, known.upto])


def decode_words(data: bytes) -> ListMessage | JournalKnown:
    """What a neighbour says."""
    if len(data) > MAX_BYTES:
        raise PeerError(f"a list of {len(data)} bytes, at most {MAX_BYTES}")
    match decode(data):
        case [1, 0, int(number), float(made_s), list(entries), list(seen)] if _is_count(number):
            if not math.isfinite(made_s):
                raise PeerError("a list made at no time")
            if len(entries) > MAX_ENTRIES:
                raise PeerError(f"a list of {len(entries)} entries, at most {MAX_ENTRIES}")
            return ListMessage(number, made_s, tuple(map(_entry, entries)), _read_seen(seen))
        case [1, 1, bytes(epoch), int(upto)] if _is_count(upto) and len(epoch) == EPOCH_BYTES:
            return JournalKnown(epoch, upto)
        case [int(version), *_] if version != VERSION:
            raise PeerError(f"lists of version {version}; we know {VERSION}")
    raise PeerError("neither a list nor what is known of a journal")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MAX_NUMBER


def _entry(value: Any) -> ListEntry:
    if not isinstance(value, list) or len(value) != 8:
        raise PeerError("an entry has eight fields")
    subscriber, n, interest, created, lifetime, renewal, renewed, hops = value
    if not isinstance(subscriber, str) or not isinstance(interest, str):
        raise PeerError("an entry has a subscriber and an interest, in text")
    if len(subscriber) > MAX_EID_BYTES or len(interest.encode()) > MAX_INTEREST_BYTES:
        raise PeerError("an entry with too long a subscriber or interest")
    if not all(map(_is_count, (n, created, lifetime, renewal, renewed))) or not _is_count(hops) or hops > 255:
        raise PeerError("an entry with a number out of range")
    return ListEntry(subscriber, n, interest, created, lifetime, renewal, renewed, hops)


def _seen(seen: AllSeen | BloomSeen | JournalSeen) -> list[Any]:
    if isinstance(seen, AllSeen):
        return [0, pack_marks(seen.marks)]
    if isinstance(seen, BloomSeen):
        return [1, seen.hashes, seen.salt, seen.bits]
    return [2, seen.epoch, seen.first, seen.last, pack_marks(seen.marks)]


def _read_seen(value: Sequence[Any]) -> AllSeen | BloomSeen | JournalSeen:
    match value:
        case [0, bytes(marks)]:
            return AllSeen(unpack_marks(marks))
        case [1, int(hashes), int(salt), bytes(bits)] if (
            0 <= hashes <= 64 and 0 <= salt < 1 << 64 and (hashes or not bits)
        ):
            return BloomSeen(hashes, salt, bits)
        case [2, bytes(epoch), int(first), int(last), bytes(marks)] if len(epoch) == EPOCH_BYTES:
            # the numbers of bundles that were forgotten are left out
            if not (_is_count(first) and _is_count(last)) or len(marks) // 8 > max(0, last - first + 1):
                raise PeerError("a journal with more marks than numbers")
            return JournalSeen(epoch, first, last, unpack_marks(marks))
    raise PeerError("a list that says of seen bundles what we do not know")


def pack_marks(marks: Collection[int]) -> bytes:
    """Marks one after another, in order, so that the same marks are the same bytes."""
    return struct.pack(f">{len(marks)}Q", *sorted(marks))


def unpack_marks(data: bytes) -> frozenset[int]:
    """The marks in these bytes."""
    if len(data) % 8:
        raise PeerError("marks have eight bytes each")
    return frozenset(struct.unpack(f">{len(data) // 8}Q", data))
