"""What routers send each other: bundles, and lists in which a node tells of itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from serai.opportunistic.rules import bloom_bit, bloom_hashes, bloom_size

Channel = Hashable


@dataclass(frozen=True)
class Bundle:
    """Content on a channel. Numbers follow the order of creation."""

    number: int
    source: int
    channel: Channel
    created_s: float
    size_bytes: int
    lifetime_s: float

    @property
    def expires_s(self) -> float:
        """When its lifetime is over."""
        return self.created_s + self.lifetime_s


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class BloomFilter:
    """The numbers of seen bundles, and of some that it cannot tell from them."""

    bits: frozenset[int]
    size: int
    hashes: int
    salt: int

    def __contains__(self, number: object) -> bool:
        assert isinstance(number, int)
        return all(bloom_bit(self.salt, number, which, self.size) in self.bits for which in range(self.hashes))


def bloom_filter(numbers: Iterable[int], bits_each: int, salt: int) -> BloomFilter:
    """The Bloom filter of these numbers."""
    numbers = list(numbers)
    size, hashes = bloom_size(bits_each, len(numbers)), bloom_hashes(bits_each)
    bits = {bloom_bit(salt, number, which, size) for number in numbers for which in range(hashes)}
    return BloomFilter(frozenset(bits), size, hashes, salt)
