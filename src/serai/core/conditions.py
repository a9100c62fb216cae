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
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from serai.core.content import LITERAL, Comparison, Token, comparisons, interval, refused
from serai.core.errors import BadSubscription

Kind = Literal["real", "integer", "time", "text"]
Number = int | float
SMALLEST, LARGEST = -(2**63), 2**63 - 1  # of an integer or a time
_USES: tuple[Kind, ...] = ("real", "time", "text")
VALUES = ("number", "text", "time")
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
    return together(text, comparisons(text, kinds, VALUES), kinds)


def together(text: str, parts: Iterable[Comparison], kinds: Mapping[str, Kind]) -> Conditions:
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

PIECE = re.compile(
    rf"(?<![A-Za-z0-9_.-])({re.sub(r'[(][?]P<[a-z]+>', '(?:', LITERAL)})", re.VERBOSE | re.IGNORECASE | re.DOTALL
)
"""A literal in a text, where it does not belong to a name."""


def kinds_by_use(texts: Iterable[str | None]) -> dict[str, Kind]:
    """How most of the texts use each attribute they name: for events that come without types, as in CSV files."""
    shapes: Counter[tuple[str, ...]] = Counter()
    example: dict[tuple[str, ...], str] = {}
    for text in texts:
        if text is not None:
            pieces = PIECE.split(text)
            shape = (*pieces[::2], *map(kind_of, pieces[1::2]))
            shapes[shape] += 1
            example[shape] = text
    votes: dict[str, Counter[Kind]] = {}
    for shape, count in shapes.items():
        with suppress(BadSubscription):  # it will be rejected when it is read
            for name, operator, bound in comparisons(example[shape], None, VALUES):
                votes.setdefault(name, Counter())[_kind_by_use(operator, bound)] += count
    return {name: max(_USES, key=lambda kind: voted[kind]) for name, voted in votes.items()}


def _kind_by_use(operator: str, bound: Token) -> Kind:
    if bound.kind == "number":
        return "real"
    return "time" if bound.kind == "time" or operator not in ("=", "starts with") else "text"


def kind_of(literal: str) -> str:
    """What a literal is: a number, a text or a time."""
    if literal[0] in "'\"":
        return "text"
    return "time" if literal[4:5] == "-" and literal[:4].isdigit() else "number"
