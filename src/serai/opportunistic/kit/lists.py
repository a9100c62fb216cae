"""Lists on their way: what a router has to say, and which bundles its node has seen."""

from __future__ import annotations

from typing import Any, NamedTuple

from serai.opportunistic.kit.nodes import Link
from serai.opportunistic.rules import (
    BLOOM,
    RouterRules,
    bloom_bit,
    bloom_hashes,
    bloom_size,
    link_key,
    list_bytes,
    tells_seen,
)
from serai.own.content import FREE_BYTES, encoded_bytes, frozen
from serai.own.mistakes import Mistake


class ListMessage(NamedTuple):
    """A list on its way."""

    content: Any
    seen: int  # bits of bundles; a Bloom filter's mistakes are among them
    size_bytes: int
    entries: int


def write_list(
    link: Link, rules: RouterRules, alive: int, key: int, now_s: float, *, free: bool = False
) -> ListMessage:
    """The sender's list: what it tells, and what it has seen of the bundles alive. If it is free, nobody counts."""
    content = frozen(link.sender.router.tell(link.peer, now_s), "tell")
    seen = link.sender.seen & alive
    count = seen.bit_count()
    entries = 0 if free else link.sender.router.entries(content)
    size = list_bytes(rules, entries, count)
    charged = rules.header_bytes + rules.entry_bytes * entries
    if not free and rules.entry_bytes and encoded_bytes(content) > charged + FREE_BYTES:
        said = f"{encoded_bytes(content)} bytes in {entries} entries, for which {charged} are charged"
        raise Mistake("tell", f"tells {said}; tell more entries, or raise entry_bytes")
    if not tells_seen(rules):
        seen = 0
    elif rules.seen == BLOOM:
        seen = _as_a_filter_says(seen, alive, rules, link_key(key, link.sender.number, link.receiver.number))
    return ListMessage(content, seen, size, entries)


def _as_a_filter_says(seen: int, alive: int, rules: RouterRules, salt: int) -> int:
    """The bundles alive that a Bloom filter of the seen ones takes for seen: those, and some more."""
    size, hashes = bloom_size(rules.bloom_bits, seen.bit_count()), bloom_hashes(rules.bloom_bits)

    def places(id: int) -> list[int]:
        return [bloom_bit(salt, id, which, size) for which in range(hashes)]

    filled = {place for id in bits_of(seen) for place in places(id)}
    return sum(1 << id for id in bits_of(alive) if all(place in filled for place in places(id)))


def bits_of(bits: int) -> list[int]:
    """The places of the bits that are set, ascending."""
    if not bits:
        return []
    first = (bits & -bits).bit_length() - 1
    digits = bin(bits >> first)[:1:-1]  # lowest first
    places, place = [], digits.find("1")
    while place >= 0:
        places.append(first + place)
        place = digits.find("1", place + 1)
    return places
