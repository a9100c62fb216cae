"""What events carry and what subscribers ask for: named attributes, ranges over them, and who matches whom.

A subscription is a conjunction of ranges, `A1 < 3.2 and 2 <= A2 < 8`. It becomes a box, one closed interval
of float64 per attribute, and `matches` is the only definition of "this event is wanted".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

from serai.core.errors import BadInput, BadSubscription, did_you_mean
from serai.core.rules import rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row = Sequence[float] | NDArray[np.float64]  # one number for each attribute

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


def box(subscription: Subscription, names: Sequence[str]) -> tuple[list[float], list[float]]:
    """The bounds (low, high) that the subscription sets on each of `names`; -inf, inf where it sets none."""
    low, high = [-math.inf] * len(names), [math.inf] * len(names)
    for name, least, most in subscription.ranges:
        k = names.index(name)
        low[k], high[k] = least, most
    return low, high


@rule
def matches(values: Row, low: Row, high: Row) -> bool:
    """Whether an event with these values is wanted by the box: low <= value <= high for every attribute.

    NaN stands for a missing value: only an attribute that the box leaves free (-inf .. inf) accepts it.
    """
    for k in range(len(low)):
        free = low[k] == -math.inf and high[k] == math.inf
        if not free and not (low[k] <= values[k] <= high[k]):
            return False
    return True


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
