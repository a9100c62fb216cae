"""What events carry and what subscribers ask for: named attributes, ranges over them, and who matches whom.

A subscription is a conjunction of ranges, `A1 < 3.2 and 2 <= A2 < 8`. It becomes a box, one closed interval
of float64 per attribute, and `matches` is the only definition of "this event is wanted".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput, BadSubscription, did_you_mean
from serai.core.jit import kernel, rule

_LARGEST_INTEGER = 2**53  # beyond it float64 skips integers
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"


@dataclass(frozen=True)
class Attribute:
    """One named number that every event carries, and the domain its values come from."""

    name: str
    kind: Literal["real", "integer"]
    low: float
    high: float

    def __post_init__(self) -> None:
        problems = list(attribute_problems(self.name, self.kind, self.low, self.high))
        if problems:
            raise BadInput(f"attribute {self.name}: {'; '.join(problems)}")


def attribute_problems(name: str, kind: str, low: float, high: float) -> Iterator[str]:
    """What is wrong with an attribute of this name and domain."""
    if re.fullmatch(_NAME, name) is None or name.lower() == "and":
        yield f'"{name}" cannot be a name: a letter or _, then letters, digits, _ . or -, and not "and"'
    if kind not in ("real", "integer"):
        yield f'unknown kind "{kind}"; one of: real, integer'
    if not (math.isfinite(low) and math.isfinite(high)):
        yield "low and high must be finite"
    elif not low < high:
        yield f"low ({low:g}) must be below high ({high:g})"
    elif kind == "integer" and not (float(low).is_integer() and float(high).is_integer()):
        yield "low and high of an integer attribute must be whole numbers"
    elif kind == "integer" and max(abs(low), abs(high)) > _LARGEST_INTEGER:
        yield "low and high of an integer attribute must lie within ±2**53, where float64 holds every integer"


@dataclass(frozen=True)
class Subscription:
    """What one subscriber asks for: the text, and per attribute named in it a closed interval of float64."""

    text: str
    ranges: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True)
class Template:
    """A subscription text with a `?` for each number to be drawn, from the domain of `attributes[number]`."""

    text: str
    attributes: tuple[str, ...]
    domains: tuple[Attribute, ...] | None = None

    def fill(self, draws: Sequence[float]) -> Subscription:
        """The subscription with one number in place of each `?`, in order."""
        if len(draws) != len(self.attributes):
            raise ValueError(f"{len(self.attributes)} numbers needed for {self.text!r}, got {len(draws)}")
        integers = {domain.name for domain in self.domains or () if domain.kind == "integer"}
        pieces = self.text.split("?")
        filled = pieces[0]
        for name, draw, rest in zip(self.attributes, draws, pieces[1:], strict=True):
            filled += _written(float(draw), name in integers) + rest
        return parse(filled, self.domains)


def parse(text: str, attributes: Sequence[Attribute] | None = None) -> Subscription:
    """The subscription that `text` says; with `attributes`, only these may be named."""
    ranges: dict[str, tuple[float, float]] = {}
    for name, operator, bound in comparisons(text, _names(attributes), ("number",)):
        low, high = interval(operator, float(bound.text))
        old_low, old_high = ranges.get(name, (-math.inf, math.inf))
        ranges[name] = max(low, old_low), min(high, old_high)
    return Subscription(text, tuple((name, low, high) for name, (low, high) in ranges.items()))


def parse_template(text: str, attributes: Sequence[Attribute] | None = None) -> Template:
    """The template that `text` says: a subscription in which `?` may stand for a number."""
    found = comparisons(text, _names(attributes), ("number", "hole"))
    names = tuple(comparison.name for comparison in found if comparison.bound.kind == "hole")
    return Template(text, names, None if attributes is None else tuple(attributes))


def _names(attributes: Sequence[Attribute] | None) -> list[str] | None:
    return None if attributes is None else [attribute.name for attribute in attributes]


def box(subscription: Subscription, names: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The bounds (low, high) that the subscription sets on each of `names`; -inf, inf where it sets none."""
    low = np.full(len(names), -np.inf)
    high = np.full(len(names), np.inf)
    for name, least, most in subscription.ranges:
        k = names.index(name)
        low[k], high[k] = least, most
    return low, high


@rule
def matches(values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> bool:
    """Whether an event with these values is wanted by the box: low <= value <= high for every attribute.

    NaN stands for a missing value: only an attribute that the box leaves free (-inf .. inf) accepts it.
    """
    for k in range(len(low)):
        free = low[k] == -np.inf and high[k] == np.inf
        if not free and not (low[k] <= values[k] <= high[k]):
            return False
    return True


# --- Counting the interested ---

_BLOCK = 2048  # subscriptions at a time: bounds the tables, whatever the number of subscriptions
_ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_ONE = np.uint64(1)
_EVERY_2ND = np.uint64(0x5555_5555_5555_5555)
_TWO_OF_4 = np.uint64(0x3333_3333_3333_3333)
_FOUR_OF_8 = np.uint64(0x0F0F_0F0F_0F0F_0F0F)


def count_interested(
    values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.int64]:
    """How many of the boxes low[P, K] .. high[P, K] match each of the events values[E, K]."""
    counts = np.zeros(len(values), np.int64)
    events = np.ascontiguousarray(values, np.float64)
    never = np.isnan(low) | np.isnan(high)
    # inf .. -inf matches nothing as well, and has a place in the order.
    lows = np.ascontiguousarray(np.where(never, np.inf, low))
    highs = np.ascontiguousarray(np.where(never, -np.inf, high))
    for start in range(0, len(low), _BLOCK):
        block = slice(start, start + _BLOCK)
        by_low, by_high = _Bounds.sorted(lows[block]), _Bounds.sorted(highs[block])
        free = np.isneginf(lows[block]) & np.isposinf(highs[block])
        _add_interested(events, by_low, by_high, free, counts)
    return counts


class _Bounds(NamedTuple):
    """The lows (or highs) of the boxes, ascending within each attribute: [attribute, rank]."""

    value: NDArray[np.float64]
    box: NDArray[np.int64]  # whose it is

    @classmethod
    def sorted(cls, bounds: NDArray[np.float64]) -> _Bounds:
        """The bounds [box, attribute] in order."""
        by_attribute = np.ascontiguousarray(bounds.T)
        order = np.argsort(by_attribute, axis=1)
        return cls(np.take_along_axis(by_attribute, order, axis=1), order)


@kernel
def _add_interested(
    values: NDArray[np.float64],
    by_low: _Bounds,
    by_high: _Bounds,
    free: NDArray[np.bool_],
    counts: NDArray[np.int64],
) -> None:
    """Add to each event's count how many of the boxes match it; `free[box, k]`: the box asks nothing of attribute k.

    Asking `matches` of every box and event takes boxes x events x attributes comparisons. Instead, all possible
    answers are worked out beforehand: between two neighbouring bounds every value of an attribute lies in the same
    boxes. begun[k, rank] is the set of the boxes with the `rank` smallest lows in attribute k, those that begin at or
    before a value of that rank; lasting[k, rank] is all but those with the `rank` smallest highs, those that do not
    end before it. So a value's two ranks, found by bisection, pick two sets per attribute, and the boxes in all of
    them match. A set is a row of bits, 64 boxes to a word, and that is what makes it fast.
    """
    boxes, width = free.shape
    everyone = np.zeros((boxes + 63) // 64, np.uint64)
    for box in range(boxes):
        everyone[box // 64] |= _bit(box)
    begun = np.zeros((width, boxes + 2, len(everyone)), np.uint64)
    lasting = np.zeros((width, boxes + 1, len(everyone)), np.uint64)
    ranks = np.empty((width, 2, len(values)), np.int32)
    for k in range(width):
        _fill_sets(begun[k], lasting[k], everyone, by_low.box[k], by_high.box[k])
        for box in range(boxes):
            # A missing value is not ranked like a number: it picks the set behind all of those, of the boxes that ask
            # nothing of this attribute, and from `lasting` everyone.
            if free[box, k]:
                begun[k, boxes + 1, box // 64] |= _bit(box)
        _rank_values(ranks[k], values[:, k], by_low.value[k], by_high.value[k])
    wanted = np.empty_like(everyone)
    for event in range(len(values)):
        # Words in the inner loop: they lie side by side, so several are combined by one instruction.
        for word in range(len(wanted)):
            wanted[word] = everyone[word]
        for k in range(width):
            first, second = ranks[k, 0, event], ranks[k, 1, event]
            for word in range(len(wanted)):
                wanted[word] &= begun[k, first, word] & lasting[k, second, word]
        for word in range(len(wanted)):
            counts[event] += _bits_in(wanted[word])


@rule
def _fill_sets(
    begun: NDArray[np.uint64],
    lasting: NDArray[np.uint64],
    everyone: NDArray[np.uint64],
    by_low: NDArray[np.int64],
    by_high: NDArray[np.int64],
) -> None:
    """Fill in the sets of one attribute: each is the one before it with one box more, or one less.

    Words are copied one by one. For `begun[rank + 1] = begun[rank]` numba compiles what raises an error about shapes,
    and with it all that it takes to write a number as text: 3 s.
    """
    for word in range(len(everyone)):
        lasting[0, word] = everyone[word]
    for rank in range(len(by_low)):
        for word in range(len(everyone)):
            begun[rank + 1, word] = begun[rank, word]
            lasting[rank + 1, word] = lasting[rank, word]
        begun[rank + 1, by_low[rank] // 64] |= _bit(by_low[rank])
        lasting[rank + 1, by_high[rank] // 64] &= _ALL ^ _bit(by_high[rank])


@rule
def _rank_values(
    ranks: NDArray[np.int32],
    values: NDArray[np.float64],
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
) -> None:
    """Fill in for each value how many lows are <= it and how many highs are < it."""
    for event in range(len(values)):
        if np.isnan(values[event]):
            ranks[0, event], ranks[1, event] = len(lows) + 1, 0
        else:
            ranks[0, event] = _rank(lows, values[event], True)
            ranks[1, event] = _rank(highs, values[event], False)


@rule
def _rank(bounds: NDArray[np.float64], value: float, with_equal: bool) -> int:
    """How many of the ascending bounds are below the value, or equal to it if `with_equal`."""
    first, last = 0, len(bounds)
    while first < last:
        middle = (first + last) // 2
        if bounds[middle] < value or (with_equal and bounds[middle] == value):
            first = middle + 1
        else:
            last = middle
    return first


@rule
def _bit(box: int) -> np.uint64:
    return _ONE << np.uint64(box % 64)


@rule
def _bits_in(word: np.uint64) -> np.int64:
    """How many bits are set. All in uint64: mixed with int64 it would turn into a float."""
    word = word - ((word >> np.uint64(1)) & _EVERY_2ND)
    word = (word & _TWO_OF_4) + ((word >> np.uint64(2)) & _TWO_OF_4)
    word = (word + (word >> np.uint64(4))) & _FOUR_OF_8
    word = word + (word >> np.uint64(8))
    word = word + (word >> np.uint64(16))
    word = word + (word >> np.uint64(32))
    return np.int64(word & np.uint64(0x7F))


# --- Reading a subscription ---

LITERAL = r"""
      (?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)
    | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
"""
"""What may stand for a value, as a regular expression (verbose)."""
_TOKEN = re.compile(
    rf"""\s*(?:{LITERAL}
    | (?P<open>['"].*)
    | (?P<and>(?:and(?![A-Za-z0-9_.-])|∧|&&?))
    | (?P<operator>starts\s+with(?![A-Za-z0-9_.-])|<=|>=|==|≤|≥|<|>|=)
    | (?P<name>{_NAME})
    | (?P<hole>\?)
    | (?P<end>\Z)
    | (?P<unknown>.)
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_SAME = {"==": "=", "≤": "<=", "≥": ">="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_OPERATORS = "< <= > >= or ="
_A_VALUE = {
    ("number",): "a number",
    ("number", "hole"): "a number or ?",
    ("number", "text", "time"): "a number, a text in quotes or a time",
}


class Token(NamedTuple):
    """A piece of a subscription text, and where it stands."""

    kind: str
    text: str
    position: int


class Comparison(NamedTuple):
    """`name operator bound`."""

    name: str
    operator: str
    bound: Token


def interval(operator: str, bound: float) -> tuple[float, float]:
    """The closed interval of float64 that holds exactly the numbers for which the comparison is true."""
    low = {"=": bound, ">=": bound, ">": math.nextafter(bound, math.inf)}.get(operator, -math.inf)
    high = {"=": bound, "<=": bound, "<": math.nextafter(bound, -math.inf)}.get(operator, math.inf)
    return low, high


def comparisons(text: str, names: Iterable[str] | None, values: tuple[str, ...]) -> list[Comparison]:
    """The comparisons that a text consists of, with values of these kinds of tokens; only `names` may be named."""
    return _Parser(text, None if names is None else list(names), values).comparisons()


def refused(text: str, token: Token, expected: str) -> BadSubscription:
    """The error that says what was expected where the token stands."""
    seen = "the end" if token.kind == "end" else f'"{token.text}"'
    message = f"expected {expected}, found {seen}"
    return BadSubscription(text, token.position, message, expected, max(1, len(token.text)))


def _written(number: float, integer: bool) -> str:
    return repr(int(number)) if integer and number.is_integer() else repr(number)


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str, names: list[str] | None, values: tuple[str, ...]) -> None:
        self.text = text
        self.names = names
        self.values = values
        self.a_value = _A_VALUE[values]
        self.position = 0
        self.token = self.read()

    def comparisons(self) -> list[Comparison]:
        """subscription := comparison { "and" comparison }"""
        found = self.comparison()
        while self.token.kind == "and":
            self.take()
            found += self.comparison()
        if self.token.kind != "end":
            self.fail("and, or the end")
        return found

    def comparison(self) -> list[Comparison]:
        """comparison := name operator value | name "starts with" text | value operator name [ operator value ]"""
        if self.token.kind == "name":
            name = self.name()
            return [Comparison(name, self.operator("text" in self.values), self.value())]
        if self.token.kind not in self.values:
            self.fail("a comparison such as A1 < 3")
        first, first_operator = self.value(), self.operator()
        name = self.name()
        found = [Comparison(name, _TURNED[first_operator], first)]
        if self.token.kind == "operator":
            found.append(Comparison(name, self.second_operator(first_operator), self.value()))
        return found

    def second_operator(self, first: str) -> str:
        """The operator after `2 <= A2`, which must point the same way."""
        allowed = {"<": "< or <=", ">": "> or >="}.get(first[0])
        if allowed is None:
            self.fail("and, or the end")
        token = self.token
        operator = self.operator()
        if operator[0] != first[0]:
            self.fail(f"{allowed}, so that the range points one way", token)
        return operator

    def name(self) -> str:
        if self.token.kind != "name":
            self.fail("the name of an attribute")
        token = self.take()
        if self.names is not None and token.text not in self.names:
            message = f'unknown attribute "{token.text}"; {did_you_mean(token.text, self.names)}'
            raise BadSubscription(self.text, token.position, message, ", ".join(self.names), len(token.text))
        return token.text

    def operator(self, with_beginnings: bool = False) -> str:
        text = self.token.text.lower()
        beginning = text.startswith("starts")
        if self.token.kind != "operator" or (beginning and not with_beginnings):
            self.fail("< <= > >= = or starts with" if with_beginnings else _OPERATORS)
        self.take()
        return "starts with" if beginning else _SAME.get(text, text)

    def value(self) -> Token:
        if self.token.kind == "open" and "text" in self.values:
            self.fail(f"a text that ends with {self.token.text[0]}")
        if self.token.kind not in self.values:
            self.fail(self.a_value)
        if self.token.kind == "number" and math.isinf(float(self.token.text)):
            self.fail("a number that is not too large")
        return self.take()

    def take(self) -> Token:
        """The token under the cursor, which moves on to the next."""
        token, self.token = self.token, self.read()
        return token

    def read(self) -> Token:
        found = _TOKEN.match(self.text, self.position)
        assert found is not None  # whatever is there is at least `unknown`
        assert found.lastgroup is not None
        self.position = found.end()
        return Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup))

    def fail(self, expected: str, token: Token | None = None) -> NoReturn:
        raise refused(self.text, token or self.token, expected)
