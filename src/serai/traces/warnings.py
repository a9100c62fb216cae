"""What a reader noticed about a file: lines that say nothing it understands, and cases that had to be decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from serai.core.errors import BadInput

TO_MEND = "mend the line, or leave out --strict to go on without it"
_MOST_NAMED = 5  # lines of each warning; the rest is only counted


@dataclass(frozen=True)
class ParseWarning:
    """Something that was found and decided: what and how, how often, and in which lines first."""

    what: str
    count: int
    lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        """The warning in one line: `2 x a node meets itself: left out (lines 3, 9)`."""
        named = ", ".join(str(line) for line in self.lines)
        more = ", ..." if self.count > len(self.lines) else ""
        place = f" (line{'s' if self.count > 1 else ''} {named}{more})" if self.lines else ""
        return f"{self.count:,} x {self.what}{place}"


class ParseWarnings:
    """What has been noticed so far; a strict one does not note a line that is left out, it stops there."""

    def __init__(self, path: Path, strict: bool = False) -> None:
        self.path = path
        self.strict = strict
        self._counts: dict[str, int] = {}
        self._lines: dict[str, list[int]] = {}

    def left_out(self, found: Mapping[str, Sequence[int] | np.ndarray]) -> None:
        """Note lines that are left out, by what is wrong with them; if strict, stop at the first of all."""
        firsts = {what: int(min(lines)) for what, lines in found.items() if len(lines)}
        if self.strict and firsts:
            what = min(firsts, key=lambda what: firsts[what])
            raise BadInput(f"{self.path}: line {firsts[what]}: {what}; {TO_MEND}")
        for what, lines in found.items():
            self.decided(f"{what}: left out", lines)

    def decided(self, what: str, lines: Sequence[int] | np.ndarray) -> None:
        """Note a case that was decided in one way or another, with the lines where it is."""
        if not len(lines):
            return
        self._counts[what] = self._counts.get(what, 0) + len(lines)
        named = self._lines.setdefault(what, [])
        smallest = np.partition(lines, min(_MOST_NAMED, len(lines)) - 1)[:_MOST_NAMED]
        named[:] = sorted({*named, *(int(line) for line in smallest)})[:_MOST_NAMED]

    def counted(self, what: str, count: int) -> None:
        """Note a case that stands in no line of its own."""
        if count:
            self._counts[what] = self._counts.get(what, 0) + count
            self._lines.setdefault(what, [])

    def listed(self) -> tuple[ParseWarning, ...]:
        """All that was noticed, what is most frequent first."""
        order = sorted(self._counts, key=lambda what: (-self._counts[what], what))
        return tuple(ParseWarning(what, self._counts[what], tuple(self._lines[what])) for what in order)
