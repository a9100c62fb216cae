"""What events carry and what subscribers ask for: named attributes, ranges over them, and who matches whom.

A subscription is a conjunction of ranges, `A1 < 3.2 and 2 <= A2 < 8`. It becomes a box, one closed interval
of float64 per attribute, and `matches` is the only definition of "this event is wanted".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from serai.core.errors import BadInput
from serai.core.language import comparisons, interval, is_name
from serai.core.rules import rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row = Sequence[float] | NDArray[np.float64]  # one number for each attribute

_LARGEST_INTEGER = 2**53  # beyond it float64 skips integers


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
    if not is_name(name):
        allowed = "a letter or _, then letters, digits, _ . or -, and no word of the language such as and"
        yield f'"{name}" cannot be a name: {allowed}'
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


def _written(number: float, integer: bool) -> str:
    return repr(int(number)) if integer and number.is_integer() else repr(number)
