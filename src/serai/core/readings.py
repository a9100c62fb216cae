"""The conditions of very many subscriptions, read at once into columns; `serai.core.conditions` says what they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serai.core.conditions import (
    ENDS,
    VALUES,
    Conditions,
    Kind,
    Span,
    kind_of,
    read_conditions,
    shape_of,
    together,
)
from serai.core.errors import BadSubscription
from serai.core.language import PIECE, Comparison, alternatives

# Subscriptions come by the million from a few forms, so nearly all differ only in their literals: `A1 < 3 and A2 > 7`,
# `A1 < 4.5 and A2 > 2`. A text is cut at its literals. What is left, with the kind of each literal, is its shape; one
# text of each shape is parsed, and the literals of the others are put in their places, numbers a whole column at once.
_WORTH_IT = 4  # texts alike
# Atomic, (?>...): it takes a whole number as the parser does and gives nothing back, or 12 would also match as 1 and 2.
_NUMBER = "((?>[+-]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[eE][+-]?[0-9]+)?))"


@dataclass
class Readings:
    """The conditions of many subscriptions as columns; nothing is asked where `named` is False.

    A row is what a subscription asks, or one of its alternatives: row r belongs to the subscription `owner[r]`. The
    first rows are one for each subscription, in their order.
    """

    reasons: list[str | None]  # of each subscription, why its text could not be read
    possible: NDArray[np.bool_]  # it was read, and something can match it
    named: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    low: dict[str, NDArray[Any]] = field(default_factory=dict)
    high: dict[str, NDArray[Any]] = field(default_factory=dict)
    spans: dict[str, list[Span | None]] = field(default_factory=dict)  # of texts
    others: list[tuple[int, Conditions]] = field(default_factory=list)  # alternatives that have no row yet

    def __post_init__(self) -> None:
        self.owner = np.arange(len(self.reasons))

    def open(self, name: str, kind: Kind) -> None:
        """Make room for conditions on an attribute."""
        if name in self.named:
            return
        rows = len(self.possible)
        self.named[name] = np.zeros(rows, np.bool_)
        if kind == "text":
            self.spans[name] = [None] * rows
            return
        whole = np.uint64 if kind == "unsigned" else np.int64
        self.low[name], self.high[name] = (np.full(rows, end, float if kind == "real" else whole) for end in ENDS[kind])

    def reject(self, row: int, reason: str) -> None:
        """Say why a subscription cannot be used."""
        self.reasons[row] = reason
        self.possible[self.owner == row] = False

    def put(self, row: int, conditions: Conditions, kinds: Mapping[str, Kind]) -> None:
        """Write down what one subscription asks."""
        self.possible[row] = conditions.possible
        self.others += [(row, other) for other in conditions.others]
        for name, condition in conditions.on.items():
            self.open(name, kinds[name])
            self.named[name][row] = True
            if isinstance(condition, Span):
                self.spans[name][row] = condition
            else:
                self.low[name][row], self.high[name][row] = condition

    def close(self, kinds: Mapping[str, Kind]) -> None:
        """Give the alternatives rows of their own."""
        others, self.others = self.others, []
        rows, more = len(self.possible), len(others)
        if not more:
            return
        self.owner = np.concatenate([self.owner, [owner for owner, _ in others]])
        self.possible = np.concatenate([self.possible, np.ones(more, np.bool_)])
        free = Readings([None] * more, np.ones(more, np.bool_))
        for name in self.named:
            free.open(name, kinds[name])
            for mine, new in ((self.named, free.named), (self.low, free.low), (self.high, free.high)):
                if name in mine:
                    mine[name] = np.concatenate([mine[name], new[name]])
            if name in self.spans:
                self.spans[name] += free.spans[name]
        for row, (_, conditions) in enumerate(others, rows):
            self.put(row, conditions, kinds)


def read_many(texts: Sequence[str | None], kinds: Mapping[str, Kind]) -> Readings:
    """What each of the texts asks; like `read_conditions` for each, and much faster where texts are alike.

    Texts that differ only in their literals are read once; the literals of the others are put in their places.
    """
    readings = Readings([None] * len(texts), np.ones(len(texts), np.bool_))
    alike: dict[tuple[str, ...], list[tuple[int, list[str]]]] = {}
    like_the_last: re.Pattern[str] | None = None
    rows: list[tuple[int, list[str]]] = []
    for row, text in enumerate(texts):
        if text is None:
            readings.reject(row, "no text in the column where")
            continue
        # Texts of one shape tend to stand together: the pattern of the last one is tried before anything is cut.
        if like_the_last is not None and (found := like_the_last.fullmatch(text)):
            rows.append((row, list(found.groups())))
            continue
        pieces = PIECE.split(text)
        literals = pieces[1::2]
        rows = alike.setdefault(shape_of(text, pieces), [])
        rows.append((row, literals))
        only_numbers = "`" not in text and all(kind_of(literal) == "number" for literal in literals)
        like_the_last = re.compile(_NUMBER.join(map(re.escape, pieces[::2]))) if only_numbers else None
    for rows in alike.values():
        _read_alike(texts, rows, kinds, readings)
    readings.close(kinds)
    return readings


def _read_alike(
    texts: Sequence[str | None], rows: list[tuple[int, list[str]]], kinds: Mapping[str, Kind], readings: Readings
) -> None:
    """Read texts that are equal but for their literals."""
    places = _places_of_literals(texts[rows[0][0]] or "", kinds)
    if places is None or len(rows) < _WORTH_IT:
        for row, _ in rows:
            _read_one(texts[row] or "", row, kinds, readings)
        return
    # Times, integers and texts one by one: their bounds are exact, beyond what a column of float64 holds.
    others = [(part, place) for part, place in places if kinds[part.name] != "real"]
    for row, literals in rows if others else ():
        parts = [
            part if place is None else part._replace(bound=part.bound._replace(text=literals[place]))
            for part, place in others
        ]
        try:
            boxes = together("", parts, kinds)
            readings.put(row, Conditions(boxes[0] if boxes else {}, possible=bool(boxes)), kinds)
        except BadSubscription:  # once more, for the place of what is wrong
            _read_one(texts[row] or "", row, kinds, readings)
    numbers = np.array([row for row, _ in rows])
    for part, place in places:
        if kinds[part.name] == "real" and place is not None:
            bounds = np.array([float(literals[place]) for _, literals in rows])
            _narrow(readings, part, numbers, bounds)
            for row in numbers[np.isinf(bounds)].tolist():  # too large: read again, for the message
                _read_one(texts[row] or "", row, kinds, readings)


def _places_of_literals(text: str, kinds: Mapping[str, Kind]) -> list[tuple[Comparison, int | None]] | None:
    """The comparisons of a text, each with the number of its literal; None if it has to be read by itself.

    A boolean is not cut out of a text, so it has no number.
    """
    try:
        read_conditions(text, kinds)
    except BadSubscription:
        return None
    parts, *others = alternatives(text, kinds, VALUES)
    if others or any(part.operator in ("!=", "not starts with") for part in parts):
        return None
    number_at = {found.start(): number for number, found in enumerate(PIECE.finditer(text))}
    places = [number_at.get(part.bound.position) for part in parts]
    if len(number_at) != sum(part.bound.kind != "boolean" for part in parts):
        return None  # a literal with no comparison of its own, as part of a name: do not guess
    return list(zip(parts, places, strict=True))


def _next_after(bounds: NDArray[np.float64], end: float) -> NDArray[np.float64]:
    """The next numbers towards that end; beyond the largest there is infinity, and that is no accident."""
    with np.errstate(over="ignore"):
        return np.nextafter(bounds, end)


def _narrow(readings: Readings, part: Comparison, rows: NDArray[np.int64], bounds: NDArray[np.float64]) -> None:
    """Add the same comparison with another bound for each of the rows; `interval` for arrays."""
    readings.open(part.name, "real")
    readings.named[part.name][rows] = True
    low, high = readings.low[part.name], readings.high[part.name]
    if part.operator in ("=", ">=", ">"):
        least = _next_after(bounds, np.inf) if part.operator == ">" else bounds
        low[rows] = np.maximum(low[rows], least)
    if part.operator in ("=", "<=", "<"):
        most = _next_after(bounds, -np.inf) if part.operator == "<" else bounds
        high[rows] = np.minimum(high[rows], most)
    readings.possible[rows] &= low[rows] <= high[rows]


def _read_one(text: str, row: int, kinds: Mapping[str, Kind], readings: Readings) -> None:
    try:
        readings.put(row, read_conditions(text, kinds), kinds)
    except BadSubscription as error:
        readings.reject(row, f"{error.message}, at character {error.position + 1}")
