"""MTCP (draft-ietf-dtn-mtcpcl): bundles over a connection as CBOR byte strings, one after another, never answered."""

from __future__ import annotations

from collections.abc import Iterator

from serai.core.errors import PeerError
from serai.node.bundle.cbor import BYTES, Reader


def encode_frame(bundle: bytes) -> bytes:
    """A bundle as it goes over the connection."""
    size = len(bundle)
    for width, first in ((1, 0x58), (2, 0x59), (4, 0x5A), (8, 0x5B)):
        if size < 24:
            return bytes([0x40 | size]) + bundle
        if size < 1 << 8 * width:
            return bytes([first]) + size.to_bytes(width, "big") + bundle
    raise AssertionError("a bundle of more than 2^64 bytes")


class Frames:
    """The receiving end: bytes in, bundles out."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._waiting = bytearray()

    def receive(self, data: bytes) -> Iterator[bytes]:
        """The bundles that are now complete."""
        self._waiting += data
        while self._waiting:
            first = self._waiting[0]
            if first >> 5 != BYTES or first & 31 > 27:
                raise PeerError("MTCP: not a byte string")
            head = 1 + (0 if first & 31 < 24 else 1 << ((first & 31) - 24))
            if len(self._waiting) < head:
                return
            _, size = Reader(bytes(self._waiting[:head])).head()
            assert size is not None
            if size > self.max_bytes:
                raise PeerError(f"MTCP: a bundle of {size} bytes, at most {self.max_bytes}")
            if len(self._waiting) < head + size:
                return
            bundle = bytes(self._waiting[head : head + size])
            del self._waiting[: head + size]
            yield bundle
