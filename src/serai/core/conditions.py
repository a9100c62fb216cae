"""What subscriptions ask of collected events, whose attributes are columns of some kind: numbers, times, texts.

The language is that of `serai.core.language`, with texts (`site = 'north'`, `site starts with 'no'`), times
(`seen >= 2026-11-01T12:00:00+01:00`) and booleans (`alarm = true`) besides numbers. Every condition is a range: closed,
of float64 or of whole numbers (integers, microseconds since 1970 in UTC, 0 and 1 for false and true), or half open, of
texts in the order of their code points. A missing value, null or NaN, meets no condition. No numpy here: for nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from serai.core.errors import BadSubscription
from serai.core.language import MOST_ALTERNATIVES, PIECE, Comparison, Token, alternatives, interval, refused

Kind = Literal["real", "integer", "unsigned", "time", "text", "boolean"]
Number = int | float
SMALLEST, LARGEST = -(2**63), 2**63 - 1  # of an integer or a time
ENDS: Mapping[Kind, tuple[Number, Number]] = {
    "real": (-math.inf, math.inf),
    "integer": (SMALLEST, LARGEST),
    "unsigned": (0, 2**64 - 1),
    "time": (SMALLEST, LARGEST),
    "boolean": (0, 1),
}
"""The least and the greatest of each kind of number."""
_USES: tuple[Kind, ...] = ("real", "time", "text", "boolean")
VALUES = ("number", "text", "time", "boolean")
_A_TIME = "a time such as 2026-11-01T12:00:00Z"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Range(NamedTuple):
    """The attribute is to lie between the two, both included."""

    low: Number
    high: Number


class Span(NamedTuple):
    """The attribute is to be a text from `low` on and before `high`; None: there is no end."""

    low: str
    high: str | None


Condition = Range | Span


def exactly(text: str) -> Span:
    """Only this text: the next one after it has a NUL more."""
    return Span(text, text + "\0")


def beginning(text: str) -> Span:
    """All texts that begin so."""
    kept = text.rstrip("\U0010ffff")  # behind the last code point there is none
    if not kept:
        return Span(text, None)
    last = ord(kept[-1])
    return Span(text, kept[:-1] + chr(0xE000 if last == 0xD7FF else last + 1))  # surrogates are no characters


@dataclass(frozen=True)
class Conditions:
    """What one subscription asks: a condition for each attribute it names, or else what one of the `others` asks.

    Not `possible`: nothing can match.
    """

    on: Mapping[str, Condition]
    possible: bool = True
    others: tuple[Conditions, ...] = ()


def wanted(conditions: Conditions, event: Mapping[str, object]) -> bool:
    """Whether an event with these values matches: the rule `serai.core.content.matches`, for columns of any kind."""
    if conditions.possible and all(_meets(event.get(name), on) for name, on in conditions.on.items()):
        return True
    return any(wanted(other, event) for other in conditions.others)


def _meets(value: Any, condition: Condition) -> bool:
    if value is None or value != value:
        return False
    if isinstance(condition, Span):
        return isinstance(value, str) and condition.low <= value and (condition.high is None or value < condition.high)
    if isinstance(value, str):
        return False
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
    found = [
        box for parts in alternatives(text, kinds, VALUES) for box in together(text, parts, kinds) if box is not None
    ]
    if not found:
        return Conditions({}, possible=False)
    if len(found) > MOST_ALTERNATIVES:
        raise _too_many(text)
    return Conditions(found[0], others=tuple(Conditions(box) for box in found[1:]))


def _too_many(text: str) -> BadSubscription:
    expected = f"at most {MOST_ALTERNATIVES:,} alternatives; write it as several subscriptions"
    return BadSubscription(text, 0, f"expected {expected}", expected, len(text))


def together(text: str, parts: Iterable[Comparison], kinds: Mapping[str, Kind]) -> list[dict[str, Condition]]:
    """All the comparisons at once, one condition per attribute; several such boxes where something is excluded."""
    boxes: list[dict[str, Condition]] = [{}]
    for part in parts:
        asked = _conditions(text, part, kinds[part.name])
        tried = [
            (box, both(box[part.name], one) if part.name in box else one if not _is_empty(one) else None)
            for box in boxes
            for one in asked
        ]
        boxes = [box | {part.name: condition} for box, condition in tried if condition is not None]
        if len(boxes) > MOST_ALTERNATIVES:
            raise _too_many(text)
    return boxes


def _is_empty(condition: Condition) -> bool:
    if isinstance(condition, Range):
        return not condition.low <= condition.high
    return condition.high is not None and not condition.low < condition.high


def both(one: Condition, other: Condition) -> Condition | None:
    """The condition that both together are; None if they exclude each other."""
    if isinstance(one, Range) and isinstance(other, Range):
        found: Condition = Range(max(one.low, other.low), min(one.high, other.high))
    else:
        assert isinstance(one, Span)
        assert isinstance(other, Span)
        ends = [end for end in (one.high, other.high) if end is not None]
        found = Span(max(one.low, other.low), min(ends, default=None))
    return None if _is_empty(found) else found


def _conditions(text: str, part: Comparison, kind: Kind) -> list[Condition]:
    """What one comparison asks of an attribute of this kind: one of these."""
    operator, bound = part.operator, part.bound
    if kind == "text":
        return _spans(text, operator, bound)
    if operator.endswith("starts with"):
        raise refused(text, bound, f"an attribute that holds text: {part.name} does not")
    exact = _bound(text, operator, bound, kind)
    operators = ("<", ">") if operator == "!=" else (operator,)
    if kind == "real":
        return [Range(*interval(each, float(bound.text))) for each in operators]
    return [_whole_range(each, exact, *ENDS[kind]) for each in operators]


def _bound(text: str, operator: str, bound: Token, kind: Kind) -> Fraction:
    """What a number, a time or a boolean is compared with."""
    if kind == "time":
        return Fraction(_moment(text, bound))
    if kind == "boolean":
        if bound.kind != "boolean" or operator not in ("=", "!="):
            raise refused(text, bound, "= true or = false")
        return Fraction(bound.text.lower() == "true")
    if bound.kind != "number":
        raise refused(text, bound, "a number")
    if math.isinf(float(bound.text)):
        raise refused(text, bound, "a number that is not too large")
    return Fraction(0) if kind == "real" else _exact(bound)


def _spans(text: str, operator: str, bound: Token) -> list[Condition]:
    if bound.kind != "text":
        raise refused(text, bound, "a text in quotes")
    if operator not in ("=", "!=", "starts with", "not starts with"):
        raise refused(text, bound, "= or starts with before a text")
    quote = bound.text[0]
    word = bound.text[1:-1].replace(2 * quote, quote)
    span = beginning(word) if operator.endswith("starts with") else exactly(word)
    if operator in ("=", "starts with"):
        return [span]
    return [Span("", span.low), *([Span(span.high, None)] if span.high is not None else [])]


def _exact(bound: Token) -> Fraction:
    return Fraction(bound.text + "0" if bound.text.endswith(".") else bound.text)


def _moment(text: str, bound: Token) -> int:
    if bound.kind in ("number", "boolean"):
        raise refused(text, bound, _A_TIME)
    written = bound.text.strip("'\"")
    try:
        return microseconds(datetime.fromisoformat(written))
    except ValueError:
        raise refused(text, bound, _A_TIME) from None


def _whole_range(operator: str, bound: Fraction, least: Number, most: Number) -> Range:
    """The closed range of whole numbers for which the comparison is true, as far as the kind reaches."""
    above, below = math.ceil(bound), math.floor(bound)
    low = {"=": above, ">=": above, ">": below + 1}.get(operator, least)
    high = {"=": below, "<=": below, "<": above - 1}.get(operator, most)
    return Range(max(low, least), min(high, most))


# --- Kinds that texts take for granted


def kinds_by_use(texts: Iterable[str | None]) -> dict[str, Kind]:
    """How most of the texts use each attribute they name: for events that come without types, as in CSV files."""
    shapes: Counter[tuple[str, ...]] = Counter()
    example: dict[tuple[str, ...], str] = {}
    for text in texts:
        if text is not None:
            shape = shape_of(text, PIECE.split(text))
            shapes[shape] += 1
            example[shape] = text
    votes: dict[str, Counter[Kind]] = {}
    for shape, count in shapes.items():
        with suppress(BadSubscription):  # it will be rejected when it is read
            for parts in alternatives(example[shape], None, VALUES):
                for name, operator, bound in parts:
                    votes.setdefault(name, Counter())[_kind_by_use(operator, bound)] += count
    return {name: max(_USES, key=lambda kind: voted[kind]) for name, voted in votes.items()}


def _kind_by_use(operator: str, bound: Token) -> Kind:
    if bound.kind in ("number", "boolean"):
        return "real" if bound.kind == "number" else "boolean"
    return "time" if bound.kind == "time" or operator[0] in "<>" else "text"


def shape_of(text: str, pieces: list[str]) -> tuple[str, ...]:
    """What texts that differ only in their literals have in common; `pieces` is the text, cut at its literals."""
    if "`" in text:  # a name in backquotes may hold what looks like a literal
        return (text,)
    return (*pieces[::2], *map(kind_of, pieces[1::2]))


def kind_of(literal: str) -> str:
    """What a literal is: a number, a text or a time."""
    if literal[0] in "'\"":
        return "text"
    return "time" if literal[4:5] == "-" and literal[:4].isdigit() else "number"
