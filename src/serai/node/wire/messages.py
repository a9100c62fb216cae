"""The messages of TCPCLv4 (RFC 9174) as bytes, and a cursor to read them."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from serai.core.errors import PeerError

MAGIC: Final = b"dtn!"
VERSION: Final = 4
CAN_TLS: Final = 1
XFER_SEGMENT, XFER_ACK, XFER_REFUSE, KEEPALIVE, SESS_TERM, MSG_REJECT, SESS_INIT = range(1, 8)
"""Types of messages."""
END, START = 1, 2
"""Flags of segments and acknowledgements."""
REPLY: Final = 1
TYPE_UNKNOWN, UNSUPPORTED, UNEXPECTED = 1, 2, 3
"""Why a message is rejected."""

TRANSFER_LENGTH: Final = 1
CRITICAL: Final = 1
MAX_NODE_BYTES: Final = 1024
_INIT = struct.Struct(">BHQQH")
_SEGMENT = struct.Struct(">BBQ")
_ITEM = struct.Struct(">BHH")
_ACK = struct.Struct(">BBQQ")
_FIRST = struct.Struct(">BBQIBHHQQ")  # of a segment that begins a transfer, with the length of all of it
_ONLY = struct.Struct(">BBQIQ")  # of one that is all of it

KEEPALIVE_MESSAGE: Final = bytes([KEEPALIVE])


class Incomplete(Exception):  # noqa: N818 - it is no error
    """The rest of a message has not come yet."""


class Extension(NamedTuple):
    """An item of a list of extensions."""

    critical: bool
    type: int
    value: bytes


class SessInit(NamedTuple):
    """What a node says at the beginning of a session."""

    keepalive_s: int
    segment_mru: int
    transfer_mru: int
    node: str
    extensions: tuple[Extension, ...]


class Segment(NamedTuple):
    """What a piece of a bundle begins with; its bytes follow."""

    flags: int
    transfer: int
    total: int | None  # the length of the bundle, where the sender says so
    unknown_critical: bool  # an extension that we would have to know
    size: int


def contact_header(tls: bool) -> bytes:
    """The first bytes of either side."""
    return MAGIC + bytes([VERSION, CAN_TLS if tls else 0])


def session_init(init: SessInit) -> bytes:
    """SESS_INIT."""
    node, items = init.node.encode(), b"".join(map(_item, init.extensions))
    head = _INIT.pack(SESS_INIT, init.keepalive_s, init.segment_mru, init.transfer_mru, len(node))
    return head + node + len(items).to_bytes(4, "big") + items


def _item(item: Extension) -> bytes:
    return _ITEM.pack(CRITICAL if item.critical else 0, item.type, len(item.value)) + item.value


def segment(transfer: int, size: int, total: int | None, *, last: bool) -> bytes:
    """What XFER_SEGMENT begins with, up to its data; `total`: the length of all, where this is the first of several."""
    if total is not None:
        return _FIRST.pack(XFER_SEGMENT, START, transfer, 13, 0, TRANSFER_LENGTH, 8, total, size)
    return _SEGMENT.pack(XFER_SEGMENT, END if last else 0, transfer) + size.to_bytes(8, "big")


def only_segment(transfer: int, size: int) -> bytes:
    """The same where it is the first and the last: its own length says all (RFC 9174, 5.2.5.1)."""
    return _ONLY.pack(XFER_SEGMENT, START | END, transfer, 0, size)


def acknowledgement(transfer: int, length: int, flags: int) -> bytes:
    """XFER_ACK, with the flags of the segment that it answers."""
    return _ACK.pack(XFER_ACK, flags, transfer, length)


def refusal(transfer: int, reason: int) -> bytes:
    """XFER_REFUSE."""
    return _SEGMENT.pack(XFER_REFUSE, reason, transfer)


def termination(reason: int, reply: bool) -> bytes:
    """SESS_TERM."""
    return bytes([SESS_TERM, REPLY if reply else 0, reason])


def rejection(reason: int, kind: int) -> bytes:
    """MSG_REJECT."""
    return bytes([MSG_REJECT, reason, kind])


class Cursor:
    """A place in received bytes; Incomplete where they end too early."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        """So many bytes."""
        start, end = self.at, self.at + count
        if end > len(self.data):
            raise Incomplete
        self.at = end
        return self.data[start:end]

    def uint(self, width: int) -> int:
        """A number of so many bytes."""
        return int.from_bytes(self.take(width), "big")

    def some(self, most: int) -> bytes:
        """What there is, up to so many bytes."""
        start, self.at = self.at, min(self.at + most, len(self.data))
        return self.data[start : self.at]

    def header(self) -> tuple[int, bool]:
        """A contact header: the version, and whether the other side can encrypt."""
        for place, byte in enumerate(self.data[self.at : self.at + len(MAGIC)]):
            if byte != MAGIC[place]:
                raise PeerError("TCPCL: this does not speak TCPCL")
        self.take(len(MAGIC))
        version, flags = self.take(2)
        return version, bool(flags & CAN_TLS)

    def init(self, max_items_bytes: int) -> SessInit:
        """The rest of SESS_INIT."""
        keepalive_s, segment_mru, transfer_mru = self.uint(2), self.uint(8), self.uint(8)
        size = self.uint(2)
        if size > MAX_NODE_BYTES:
            raise PeerError(f"TCPCL: a node id of {size} bytes")
        try:
            node = self.take(size).decode()
        except UnicodeDecodeError:
            raise PeerError("TCPCL: a node id that is not UTF-8") from None
        return SessInit(keepalive_s, segment_mru, transfer_mru, node, self._items(max_items_bytes))

    def segment(self, max_data_bytes: int, max_items_bytes: int) -> Segment:
        """The rest of XFER_SEGMENT, up to its data."""
        flags, transfer = self.uint(1), self.uint(8)
        total, unknown = None, False
        if flags & START:
            for item in self._items(max_items_bytes):
                if item.type == TRANSFER_LENGTH and len(item.value) == 8:
                    total = int.from_bytes(item.value, "big")
                else:
                    unknown = unknown or item.critical
        size = self.uint(8)
        if size > max_data_bytes:
            raise PeerError(f"TCPCL: a segment of {size} bytes, at most {max_data_bytes}")
        return Segment(flags, transfer, total, unknown, size)

    def _items(self, max_bytes: int) -> tuple[Extension, ...]:
        size = self.uint(4)
        if size > max_bytes:
            raise PeerError(f"TCPCL: extensions of {size} bytes, at most {max_bytes}")
        inside = Cursor(self.take(size))
        found = []
        try:
            while inside.at < size:
                flags, type, length = _ITEM.unpack(inside.take(_ITEM.size))
                found.append(Extension(bool(flags & CRITICAL), type, inside.take(length)))
        except Incomplete:
            raise PeerError("TCPCL: an extension longer than the list of them") from None
        return tuple(found)
