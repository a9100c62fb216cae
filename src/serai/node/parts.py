"""Messages too large for one bundle: how they are cut into parts, and which parts are here. Pure.

Each part is a bundle of its own, so that a cut link costs one part and not the message. Its block 192 says of which
message it is: the sequence number of the first part, its own place, and how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from serai.node.words import Message

PART_BYTES: Final = 256 << 10
"""A message whose payload is longer goes in parts of this size."""

Whole = tuple[str, int, int, int]
"""A message in parts: its source, when it was created, the sequence number of its first part, the number of parts."""


def count_of(payload: bytes) -> int:
    """In how many bundles it goes."""
    return max(1, -(-len(payload) // PART_BYTES))


def cut(message: Message, first: int) -> Iterator[Message]:
    """Its parts; the first is the bundle with this sequence number."""
    count = count_of(message.payload)
    for place in range(count):
        piece = message.payload[place * PART_BYTES : (place + 1) * PART_BYTES]
        yield message._replace(payload=piece, part=(first, place, count))


class Parts:
    """The parts that a node knows, by the ids of their rows; a bundle that is no part is not known here."""

    def __init__(self) -> None:
        self._place: dict[int, tuple[Whole, int]] = {}
        self._ids: dict[Whole, dict[int, int]] = {}
        self.waiting: set[int] = set()  # wanted here, and kept until the others have come

    def __contains__(self, id: int) -> bool:
        return id in self._place

    def add(self, id: int, source: str, created_ms: int, part: tuple[int, int, int]) -> None:
        """One more is here."""
        first, place, count = part
        whole = source, created_ms, first, count
        self._place[id] = whole, place
        self._ids.setdefault(whole, {})[place] = id

    def forget(self, id: int) -> None:
        """It is not known any more."""
        whole, place = self._place.pop(id)
        self.waiting.discard(id)
        ids = self._ids[whole]
        del ids[place]
        if not ids:
            del self._ids[whole]

    def whole(self, id: int) -> tuple[int, ...]:
        """All parts of the message that it is one of, in order; () as long as one is missing."""
        whole, _ = self._place[id]
        ids, count = self._ids[whole], whole[3]
        return tuple(ids[place] for place in range(count)) if len(ids) == count else ()

    def incomplete(self) -> list[int]:
        """All parts of messages of which another is missing."""
        return [id for id in self._place if not self.whole(id)]

    def known(self, id: int) -> list[int]:
        """Those that are here of the message that it is one of."""
        return list(self._ids[self._place[id][0]].values())
