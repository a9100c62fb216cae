"""CBOR as neighbours send it: the part of RFC 8949 that bundles, lists and beacons use, read with limits.

Nothing here makes an object of a sender's choosing: no tags, no references, no objects beyond numbers, texts, lists and
maps; lengths are believed only as far as there are bytes; nesting and the number of items are bounded.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from cbor2 import dumps as encode

from serai.core.errors import PeerError

__all__ = ["ARRAY", "BYTES", "TEXT", "UINT", "Reader", "decode", "encode", "head", "octets", "uint"]

UINT, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, OTHER = range(8)
"""The major types."""

MAX_DEPTH: Final = 8
MAX_ITEMS: Final = 400_000
_NAMES: Final = ("a number", "a negative number", "bytes", "a text", "an array", "a map", "a tag", "a simple value")
_WIDTHS: Final = {24: struct.Struct(">B"), 25: struct.Struct(">H"), 26: struct.Struct(">I"), 27: struct.Struct(">Q")}
_FLOATS: Final = {25: struct.Struct(">e"), 26: struct.Struct(">f"), 27: struct.Struct(">d")}
_SIMPLE: Final[dict[int, Any]] = {20: False, 21: True, 22: None}


_HEADS: Final = tuple(bytes((first,)) for first in range(256))


def head(kind: int, argument: int) -> bytes:
    """The first bytes of an item: what `encode` begins with, without the cost of an encoder for each."""
    first = kind << 5
    if argument < 24:
        return _HEADS[first | argument]
    if argument < 1 << 8:
        return _HEADS[first | 24] + _HEADS[argument]
    if argument < 1 << 16:
        return _HEADS[first | 25] + argument.to_bytes(2)
    if argument < 1 << 32:
        return _HEADS[first | 26] + argument.to_bytes(4)
    return _HEADS[first | 27] + argument.to_bytes(8)


def uint(value: int) -> bytes:
    """An unsigned number."""
    return head(UINT, value)


def octets(value: bytes) -> bytes:
    """A byte string."""
    return head(BYTES, len(value)) + value


class Reader:
    """A place in some CBOR, from which items are taken one after another."""

    __slots__ = ("at", "data", "items")

    def __init__(self, data: bytes, at: int = 0, items: int = MAX_ITEMS) -> None:
        self.data, self.at, self.items = data, at, items

    def head(self) -> tuple[int, int | None]:
        """The major type of the next item and its argument; None for an indefinite length or the end of one."""
        data, at = self.data, self.at
        if at >= len(data):
            raise PeerError(f"CBOR ends too early, at byte {at}")
        first = data[at]
        info = first & 31
        self.at = at + 1
        if info < 24:
            return first >> 5, info
        if info == 31:
            return first >> 5, None
        if info > 27:
            raise PeerError(f"not CBOR: byte {first:#04x} at {at}")
        width = _WIDTHS[info]
        if at + 1 + width.size > len(data):
            raise PeerError(f"CBOR ends too early, at byte {at}")
        self.at = at + 1 + width.size
        return first >> 5, width.unpack_from(data, at + 1)[0]

    def _take(self, kind: int) -> int | None:
        at = self.at
        found, argument = self.head()
        if found != kind:
            raise PeerError(f"expected {_NAMES[kind]} at byte {at}, found {_NAMES[found]}")
        return argument

    def uint(self) -> int:
        """An unsigned number."""
        data, at = self.data, self.at
        if at < len(data) and data[at] < 28:  # the quick way, for nearly all
            first = data[at]
            if first < 24:
                self.at = at + 1
                return first
            end = at + 1 + (1 << first - 24)
            if end <= len(data):
                self.at = end
                return int.from_bytes(data[at + 1 : end])
        value = self._take(UINT)
        if value is None:
            raise PeerError(f"not CBOR at byte {self.at - 1}")
        return value

    def array(self) -> int:
        """The length of an array, whose items follow."""
        return self._length(self._take(ARRAY))

    def octets(self) -> bytes:
        """A byte string."""
        return self._string(BYTES, self._take(BYTES))

    def skip(self) -> None:
        """Pass over one item, of numbers, strings and arrays, that was read before: its lengths are right."""
        start, left = self.at, 1
        while left:
            kind, argument = self.head()
            if argument is None:  # a length that is not said: the slow way
                self.at = start
                self.value()
                return
            if kind in (BYTES, TEXT):
                self.at += argument
            elif kind == ARRAY:
                left += argument
            left -= 1

    def ends(self) -> bool:
        """Whether the break of an indefinite length stands here; if so it is taken."""
        if self.at < len(self.data) and self.data[self.at] == 0xFF:
            self.at += 1
            return True
        return False

    def done(self) -> None:
        """Nothing may follow."""
        if self.at != len(self.data):
            raise PeerError(f"{len(self.data) - self.at} bytes too many")

    def value(self, depth: int = MAX_DEPTH) -> Any:
        """Any item."""
        at = self.at
        self.items -= 1
        if depth < 0 or self.items < 0:
            raise PeerError(f"CBOR nested too deeply or of too many items, at byte {at}")
        kind, argument = self.head()
        if kind in (BYTES, TEXT):
            return self._text(at, argument) if kind == TEXT else self._string(kind, argument)
        if kind == ARRAY:
            return self._array(argument, depth)
        if kind == MAP:
            return self._map(argument, depth)
        if kind == OTHER:
            return self._other(at, argument)
        if kind == TAG or argument is None:
            raise PeerError(f"not expected at byte {at}: {_NAMES[kind]}")
        return argument if kind == UINT else -1 - argument

    # -- inside

    def _length(self, claimed: int | None) -> int:
        if claimed is None:
            raise PeerError(f"an array without length at byte {self.at - 1}")
        if claimed > len(self.data) - self.at:  # each item takes a byte at least
            raise PeerError(f"{claimed} items or bytes announced at byte {self.at}, which are not there")
        return claimed

    def _string(self, kind: int, claimed: int | None) -> bytes:
        if claimed is None:
            chunks = []
            while not self.ends():
                chunks.append(self._string(kind, self._length(self._take(kind))))
            return b"".join(chunks)
        start = self.at
        self.at = start + self._length(claimed)
        return self.data[start : self.at]

    def _text(self, at: int, claimed: int | None) -> str:
        try:
            return self._string(TEXT, claimed).decode()
        except UnicodeDecodeError:
            raise PeerError(f"a text at byte {at} is not UTF-8") from None

    def _array(self, claimed: int | None, depth: int) -> list[Any]:
        if claimed is not None:
            return [self.value(depth - 1) for _ in range(self._length(claimed))]
        found = []
        while not self.ends():
            found.append(self.value(depth - 1))
        return found

    def _map(self, claimed: int | None, depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        left = -1 if claimed is None else self._length(claimed)
        while left and not (left < 0 and self.ends()):
            at, key = self.at, self.value(min(0, depth - 1))  # nothing may be nested in a key
            if not isinstance(key, int | str) or key in found:
                raise PeerError(f"a map's key at byte {at} is no number or text, or stands twice")
            found[key] = self.value(depth - 1)
            left -= 1
        return found

    def _other(self, at: int, argument: int | None) -> Any:
        info = self.data[at] & 31
        if info in _FLOATS:
            return _FLOATS[info].unpack_from(self.data, at + 1)[0]
        if argument not in _SIMPLE or info > 23:
            raise PeerError(f"not expected at byte {at}: {_NAMES[OTHER]}")
        return _SIMPLE[argument]


def decode(data: bytes, items: int = MAX_ITEMS) -> Any:
    """The one item that these bytes are."""
    reader = Reader(data, items=items)
    value = reader.value()
    reader.done()
    return value
