"""What grows by a part at a time, in a store: parts are merged as they come, so that a start reads few of them.

Part 00000004-00000007 is what the numbers 4 to 7 added. Two neighbours are merged when the later one covers as many
numbers as the earlier: of n numbers there are then at most log2(n) parts, and each row is written again log2(n) times
at most. A merged part is there before its parents go; what a crash leaves of them is covered by it and not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from serai.spark.stores import Store

_LARGEST: Final = 1 << 29  # bytes of parts that are merged: larger ones stay as they are, and memory is bounded

_TRIES: Final = 5


class Part(NamedTuple):
    """The numbers that a part is about, both included."""

    first: int
    last: int


@dataclass(frozen=True)
class Runs:
    """The parts in a folder of a store."""

    store: Store
    folder: str
    suffix: str

    def name_of(self, part: Part) -> str:
        """Where a part lies in the store."""
        return f"{self.folder}/{part.first:08}-{part.last:08}.{self.suffix}"

    def parts(self, before: int | None = None) -> list[Part]:
        """The parts about numbers before this one, ascending, each number in one of them."""
        covering: list[Part] = []
        for part in sorted(self._all(), key=lambda part: (part.first, -part.last)):
            if (before is None or part.last < before) and (not covering or part.last > covering[-1].last):
                covering.append(part)
        return covering

    def read(self, before: int | None = None) -> list[bytes]:
        """What is in the parts about numbers before this one; also while somebody else merges them."""
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                return [self.store.read(self.name_of(part)) for part in self.parts(before)]
        return [self.store.read(self.name_of(part)) for part in self.parts(before)]

    def add(self, number: int, data: bytes) -> None:
        """Write what a number adds; written anew it is the same."""
        self.store.write(self.name_of(Part(number, number)), data)

    def merge(self, before: int, merged: Callable[[Sequence[bytes]], bytes]) -> None:
        """Merge parts about numbers before this one, which do not change any more."""
        parts = self.parts(before)
        first, size = len(parts), 0
        while first > 0 and (first == len(parts) or _span(parts[first - 1]) <= parts[-1].last - parts[first].first + 1):
            size += self.store.size(self.name_of(parts[first - 1]))
            if size > _LARGEST:
                break
            first -= 1
        together = parts[first:]
        if len(together) < 2:
            return
        data = merged([self.store.read(self.name_of(part)) for part in together])
        whole = Part(together[0].first, together[-1].last)
        self.store.write(self.name_of(whole), data)
        inside = [part for part in self._all() if whole.first <= part.first and part.last <= whole.last]
        self.store.remove(self.name_of(part) for part in inside if part != whole)

    def _all(self) -> list[Part]:
        found = []
        for name in self.store.names(self.folder):
            stem, _, suffix = name.partition(".")
            if suffix == self.suffix:
                first, _, last = stem.partition("-")
                found.append(Part(int(first), int(last)))
        return found


def _span(part: Part) -> int:
    return part.last - part.first + 1
