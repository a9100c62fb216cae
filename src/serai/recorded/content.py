"""What conditions ask of readings, as boxes of float64: texts become their places in order, times seconds since 1970.

The order of texts is kept, so a text is within a span exactly if its place is within a range, and
`serai.core.content.matches` stays the one rule.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from serai.core.conditions import VALUES, Condition, Conditions, Kind, Span, read_conditions
from serai.core.content import Attribute
from serai.core.errors import BadSubscription
from serai.core.language import alternatives

_US_PER_S = 1e6
_LARGEST_INTEGER = 2**53
_LARGEST = sys.float_info.max

Box = tuple[list[float], list[float]]


class Content(NamedTuple):
    """The attributes that events carry: their names, kinds, and of texts all that occur, in order."""

    names: tuple[str, ...]
    kinds: Mapping[str, Kind]
    texts: Mapping[str, Sequence[str]]
    domains: tuple[Attribute, ...]  # the least and the greatest value of each whose name needs no backquotes

    @classmethod
    def of(cls, attributes: Sequence[Attribute]) -> Content:
        """The content of events that are drawn."""
        names = tuple(attribute.name for attribute in attributes)
        return cls(names, dict.fromkeys(names, "real"), {}, tuple(attributes))

    def boxes(self, text: str) -> list[Box]:
        """What a text asks for: one of these boxes, closed, over all attributes; none if nothing can match."""
        return [self._box(part) for part in _parts(read_conditions(text, self.kinds)) if part.possible]

    def _box(self, asked: Conditions) -> Box:
        low, high = [-math.inf] * len(self.names), [math.inf] * len(self.names)
        for name, condition in asked.on.items():
            place = self.names.index(name)
            low[place], high[place] = self._range(name, condition)
            if low[place] == -math.inf and high[place] == math.inf:  # would accept a missing value, too
                low[place], high[place] = -_LARGEST, _LARGEST
        return low, high

    def _range(self, name: str, condition: Condition) -> tuple[float, float]:
        if isinstance(condition, Span):
            known = self.texts[name]
            end = len(known) if condition.high is None else bisect_left(known, condition.high)
            return bisect_left(known, condition.low), end - 1
        kind, (low, high) = self.kinds[name], condition
        if kind == "time":
            return low / _US_PER_S, high / _US_PER_S
        if kind == "integer":
            return _within_float(low), _within_float(high)
        return float(low), float(high)


def _within_float(bound: float) -> float:
    """A bound on whole numbers that float64 holds; beyond them all it is without end."""
    return float(bound) if abs(bound) <= _LARGEST_INTEGER else math.copysign(math.inf, bound)


def _parts(asked: Conditions) -> Iterator[Conditions]:
    yield asked
    yield from asked.others


def names_in(texts: Iterable[str]) -> set[str]:
    """The attributes that texts name; a text that cannot be read names none."""
    named: set[str] = set()
    for text in texts:
        for values in (VALUES, ("number", "hole")):
            with suppress(BadSubscription):  # will be refused where it is read
                named |= {part.name for parts in alternatives(text, None, values) for part in parts}
    return named
