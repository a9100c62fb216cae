"""What routers send each other: bundles, and lists in which a node tells of itself."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from typing import Any

from serai.core.order import key_in_slot, mix
from serai.opportunistic.rules import bloom_hashes, bloom_size

Channel = Hashable


@dataclass(slots=True)  # not frozen, which takes three times as long to make; nobody changes one
class Bundle:
    """Content on a channel."""

    key: Any  # its place in order of creation: sortable, the same on all nodes
    mark: int  # its name, the same on all nodes: below 2^63
    source: Hashable
    channel: Channel
    created_s: float
    size_bytes: int
    lifetime_s: float
    expires_s: float = field(init=False)  # when its lifetime is over

    def __post_init__(self) -> None:
        self.expires_s = self.created_s + self.lifetime_s


@dataclass(slots=True)
class DataMessage:
    """A bundle on its way to a neighbour."""

    bundle: Bundle
    hops: int  # so far
    copies: int  # that go with it, where copies are counted

    @property
    def size_bytes(self) -> int:
        """What the bundle takes on the link."""
        return self.bundle.size_bytes


@dataclass(frozen=True)
class ControlMessage:
    """A list: what a node tells a neighbour about itself."""

    made_s: float
    size_bytes: int
    seen: frozenset[int] | BloomFilter
    content: Any
    """Of the protocol: the channels it wants, the entries of its subscription list, or its predictabilities."""
    is_delta: bool = False  # `seen` is only what is new since the last list


@dataclass(frozen=True)
class BloomFilter:
    """The marks of seen bundles, and of some that it cannot tell from them."""

    bits: bytes  # the place i is bit i % 8 of byte i // 8
    hashes: int
    salt: int

    def __contains__(self, mark: object) -> bool:
        assert isinstance(mark, int)
        (place, stride), size = _first_place(self.salt, mark), 8 * len(self.bits)
        for _ in range(self.hashes):
            at = place % size
            if not self.bits[at >> 3] >> (at & 7) & 1:
                return False
            place += stride
        return True


def bloom_filter(marks: Collection[int], bits_each: int, salt: int) -> BloomFilter:
    """The Bloom filter of these marks; its places are those of the rule `bloom_bit`."""
    size, hashes = bloom_size(bits_each, len(marks)), bloom_hashes(bits_each)
    bits = bytearray(size // 8)
    for mark in marks:
        place, stride = _first_place(salt, mark)
        for _ in range(hashes):
            at = place % size
            bits[at >> 3] |= 1 << (at & 7)
            place += stride
    return BloomFilter(bytes(bits), hashes, salt)


def _first_place(salt: int, mark: int) -> tuple[int, int]:
    """Where a mark's bits begin, and how far they are apart."""
    first = key_in_slot(salt, mark)
    return first, mix(first + 1) | 1
