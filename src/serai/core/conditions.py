"""What subscriptions ask of collected events, whose attributes are columns of some kind: numbers, times, texts.

The language is that of `serai.core.content`, with texts (`site = 'north'`, `site starts with 'no'`) and times
(`seen >= 2026-11-01T12:00:00+01:00`) besides numbers. Every condition is a closed range: of float64, of int64
(integers, and microseconds since 1970 in UTC), or of the texts that are equal to one or begin with it. A
missing value, null or NaN, meets no condition.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.content import LITERAL, Comparison, Token, comparisons, interval, refused
from serai.core.errors import BadSubscription

Kind = Literal["real", "integer", "time", "text"]
Number = int | float
SMALLEST, LARGEST = -(2**63), 2**63 - 1  # of an integer or a time
_USES: tuple[Kind, ...] = ("real", "time", "text")
_VALUES = ("number", "text", "time")
_A_TIME = "a time such as 2026-11-01T12:00:00Z"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Range(NamedTuple):
    """The attribute is to lie between the two, both included."""

    low: Number
    high: Number


class Word(NamedTuple):
    """The attribute is to be this text (`whole`), or to begin with it."""

    text: str
    whole: bool


Condition = Range | Word


@dataclass(frozen=True)
class Conditions:
    """What one subscription asks: a condition for each attribute it names; not `possible`: nothing can match."""

    on: Mapping[str, Condition]
    possible: bool = True


def wanted(conditions: Conditions, event: Mapping[str, object]) -> bool:
    """Whether an event with these values matches: the rule `serai.core.content.matches`, for columns of any kind."""
    return conditions.possible and all(_meets(event.get(name), on) for name, on in conditions.on.items())


def _meets(value: Any, condition: Condition) -> bool:
    if value is None or value != value:
        return False
    if isinstance(condition, Word):
        return bool(value == condition.text if condition.whole else value.startswith(condition.text))
    number = microseconds(value) if isinstance(value, date) else value
    return bool(condition.low <= number <= condition.high)


def microseconds(moment: date) -> int:
    """Microseconds from 1970 to a moment; one without a zone is in UTC, a day begins at midnight."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


# --- Reading one text


def read_conditions(text: str, kinds: Mapping[str, Kind]) -> Conditions:
    """What the text asks of events with these attributes."""
    return _together(text, comparisons(text, kinds, _VALUES), kinds)


def _together(text: str, parts: Iterable[Comparison], kinds: Mapping[str, Kind]) -> Conditions:
    """All the comparisons at once, one condition per attribute."""
    on: dict[str, Condition] = {}
    possible = True
    for part in parts:
        condition: Condition | None = _condition(text, part, kinds[part.name])
        if part.name in on:
            condition = both(on[part.name], condition)
        if condition is None or (isinstance(condition, Range) and not condition.low <= condition.high):
            possible = False
        else:
            on[part.name] = condition
    return Conditions(on, possible)


def both(one: Condition, other: Condition | None) -> Condition | None:
    """The condition that both together are; None if they exclude each other."""
    if isinstance(one, Range) and isinstance(other, Range):
        return Range(max(one.low, other.low), min(one.high, other.high))
    assert isinstance(one, Word)
    assert isinstance(other, Word)
    # Of two texts the longer asks more; of two equal ones the whole text asks more than a beginning. So what both ask
    # is the longer one, if it agrees with the shorter, or impossible.
    longer, shorter = (one, other) if (len(one.text), one.whole) >= (len(other.text), other.whole) else (other, one)
    fits = longer.text == shorter.text if shorter.whole else longer.text.startswith(shorter.text)
    return longer if fits else None


def _condition(text: str, part: Comparison, kind: Kind) -> Condition:
    """What one comparison asks of an attribute of this kind."""
    operator, bound = part.operator, part.bound
    if kind == "text":
        return _word(text, operator, bound)
    if operator == "starts with":
        raise refused(text, bound, f"an attribute that holds text: {part.name} does not")
    if kind == "time":
        moment = _moment(text, bound)
        return _whole_range(operator, Fraction(moment))
    if bound.kind != "number":
        raise refused(text, bound, "a number")
    if math.isinf(float(bound.text)):
        raise refused(text, bound, "a number that is not too large")
    return Range(*interval(operator, float(bound.text))) if kind == "real" else _whole_range(operator, _exact(bound))


def _word(text: str, operator: str, bound: Token) -> Word:
    if bound.kind != "text":
        raise refused(text, bound, "a text in quotes")
    if operator not in ("=", "starts with"):
        raise refused(text, bound, "= or starts with before a text")
    quote = bound.text[0]
    return Word(bound.text[1:-1].replace(2 * quote, quote), operator == "=")


def _exact(bound: Token) -> Fraction:
    return Fraction(bound.text + "0" if bound.text.endswith(".") else bound.text)


def _moment(text: str, bound: Token) -> int:
    if bound.kind == "number":
        raise refused(text, bound, _A_TIME)
    written = bound.text.strip("'\"")
    try:
        return microseconds(datetime.fromisoformat(written))
    except ValueError:
        raise refused(text, bound, _A_TIME) from None


def _whole_range(operator: str, bound: Fraction) -> Range:
    """The closed range of whole numbers for which the comparison is true, as far as 64 bits reach."""
    above, below = math.ceil(bound), math.floor(bound)
    low = {"=": above, ">=": above, ">": below + 1}.get(operator, SMALLEST)
    high = {"=": below, "<=": below, "<": above - 1}.get(operator, LARGEST)
    return Range(max(low, SMALLEST), min(high, LARGEST))


# --- Kinds that texts take for granted


def kinds_by_use(texts: Iterable[str | None]) -> dict[str, Kind]:
    """How most of the texts use each attribute they name: for events that come without types, as in CSV files."""
    shapes: Counter[tuple[str, ...]] = Counter()
    example: dict[tuple[str, ...], str] = {}
    for text in texts:
        if text is not None:
            pieces = _PIECE.split(text)
            shape = (*pieces[::2], *map(_kind_of, pieces[1::2]))
            shapes[shape] += 1
            example[shape] = text
    votes: dict[str, Counter[Kind]] = {}
    for shape, count in shapes.items():
        with suppress(BadSubscription):  # it will be rejected when it is read
            for name, operator, bound in comparisons(example[shape], None, _VALUES):
                votes.setdefault(name, Counter())[_kind_by_use(operator, bound)] += count
    return {name: max(_USES, key=lambda kind: voted[kind]) for name, voted in votes.items()}


def _kind_by_use(operator: str, bound: Token) -> Kind:
    if bound.kind == "number":
        return "real"
    return "time" if bound.kind == "time" or operator not in ("=", "starts with") else "text"


# --- Reading very many texts

# Subscriptions come by the million from a few forms, so nearly all differ only in their literals: `A1 < 3 and A2 > 7`,
# `A1 < 4.5 and A2 > 2`. A text is cut at its literals. What is left, with the kind of each literal, is its shape; one
# text of each shape is parsed, and the literals of the others are put in their places, numbers a whole column at once.
_WORTH_IT = 4  # texts alike
# Atomic, (?>...): it takes a whole number as the parser does and gives nothing back, or 12 would also match as 1 and 2.
_NUMBER = "((?>[+-]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[eE][+-]?[0-9]+)?))"
_PIECE = re.compile(
    rf"(?<![A-Za-z0-9_.-])({re.sub(r'[(][?]P<[a-z]+>', '(?:', LITERAL)})", re.VERBOSE | re.IGNORECASE | re.DOTALL
)


@dataclass
class Readings:
    """The conditions of many subscriptions as columns; nothing is asked where `named` is False."""

    reasons: list[str | None]  # why a text could not be read
    possible: NDArray[np.bool_]  # it was read, and something can match it
    named: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    low: dict[str, NDArray[Any]] = field(default_factory=dict)
    high: dict[str, NDArray[Any]] = field(default_factory=dict)
    word: dict[str, list[str | None]] = field(default_factory=dict)
    whole: dict[str, NDArray[np.bool_]] = field(default_factory=dict)

    def open(self, name: str, kind: Kind) -> None:
        """Make room for conditions on an attribute."""
        if name in self.named:
            return
        rows = len(self.reasons)
        self.named[name] = np.zeros(rows, np.bool_)
        if kind == "text":
            self.word[name], self.whole[name] = [None] * rows, np.zeros(rows, np.bool_)
        elif kind == "real":
            self.low[name], self.high[name] = np.full(rows, -np.inf), np.full(rows, np.inf)
        else:
            self.low[name], self.high[name] = np.full(rows, SMALLEST), np.full(rows, LARGEST)

    def reject(self, row: int, reason: str) -> None:
        """Say why a subscription cannot be used."""
        self.reasons[row], self.possible[row] = reason, False

    def put(self, row: int, conditions: Conditions, kinds: Mapping[str, Kind]) -> None:
        """Write down what one subscription asks."""
        self.possible[row] = conditions.possible
        for name, condition in conditions.on.items():
            self.open(name, kinds[name])
            self.named[name][row] = True
            if isinstance(condition, Word):
                self.word[name][row], self.whole[name][row] = condition
            else:
                self.low[name][row], self.high[name][row] = condition


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
        pieces = _PIECE.split(text)
        literals = pieces[1::2]
        rows = alike.setdefault((*pieces[::2], *map(_kind_of, literals)), [])
        rows.append((row, literals))
        only_numbers = all(_kind_of(literal) == "number" for literal in literals)
        like_the_last = re.compile(_NUMBER.join(map(re.escape, pieces[::2]))) if only_numbers else None
    for rows in alike.values():
        _read_alike(texts, rows, kinds, readings)
    return readings


def _kind_of(literal: str) -> str:
    if literal[0] in "'\"":
        return "text"
    return "time" if literal[4:5] == "-" and literal[:4].isdigit() else "number"


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
        parts = [part._replace(bound=part.bound._replace(text=literals[place])) for part, place in others]
        try:
            readings.put(row, _together("", parts, kinds), kinds)
        except BadSubscription:  # once more, for the place of what is wrong
            _read_one(texts[row] or "", row, kinds, readings)
    numbers = np.array([row for row, _ in rows])
    for part, place in places:
        if kinds[part.name] == "real":
            bounds = np.array([float(literals[place]) for _, literals in rows])
            _narrow(readings, part, numbers, bounds)
            for row in numbers[np.isinf(bounds)].tolist():  # too large: read again, for the message
                _read_one(texts[row] or "", row, kinds, readings)


def _places_of_literals(text: str, kinds: Mapping[str, Kind]) -> list[tuple[Comparison, int]] | None:
    """The comparisons of a text, each with the number of its literal; None if it has to be read by itself."""
    try:
        read_conditions(text, kinds)
    except BadSubscription:
        return None
    parts = comparisons(text, kinds, _VALUES)
    number_at = {found.start(): number for number, found in enumerate(_PIECE.finditer(text))}
    places = [number_at.get(part.bound.position) for part in parts]
    if len(number_at) != len(parts):  # a literal with no comparison of its own, as part of a name: do not guess
        return None
    return [(part, place) for part, place in zip(parts, places, strict=True) if place is not None]


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
