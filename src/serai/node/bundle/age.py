"""What a bundle tells of its way: its age, its hops, who sent it last (RFC 9171, 4.4)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from serai.core.errors import PeerError
from serai.node.bundle.bpv7 import BUNDLE_AGE, HOP_COUNT, PREVIOUS_NODE, Bundle
from serai.node.bundle.cbor import Reader, decode
from serai.node.bundle.eid import eid_of

HOP_LIMIT: Final = 64


def age_ms(bundle: Bundle) -> int | None:
    """How old the bundle was when it was sent; None if it does not say."""
    block = bundle.block(BUNDLE_AGE)
    if block is None:
        return None
    reader = Reader(block.data)
    age = reader.uint()
    reader.done()
    return age


def hop_count(bundle: Bundle) -> tuple[int, int]:
    """The limit and the number of hops so far."""
    block = bundle.block(HOP_COUNT)
    return (255, 0) if block is None else _hops(block.data)


@lru_cache(256)
def _hops(data: bytes) -> tuple[int, int]:
    reader = Reader(data)
    if reader.array() != 2:
        raise PeerError("a hop count is a limit and a count")
    limit, count = reader.uint(), reader.uint()
    reader.done()
    if not 1 <= limit <= 255:
        raise PeerError(f"a hop limit of {limit}; 1 to 255")
    return limit, count


def previous_node(bundle: Bundle) -> str | None:
    """Who sent the bundle last, by its own word."""
    block = bundle.block(PREVIOUS_NODE)
    return None if block is None else eid_of(decode(block.data))
