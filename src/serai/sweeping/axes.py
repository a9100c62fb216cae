"""A swept setting and its values, as people write them: `2,5,10`, `1..11`, `40..140:20`, `20 m,40 m`."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Final

from pydantic.fields import FieldInfo

from serai.core.errors import BadInput
from serai.core.units import Quantity, parse_quantity, quantity_of
from serai.scenario.load import toml_value

_NUMBER: Final = r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_RANGE: Final = re.compile(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*(?::\s*({_NUMBER}))?\s*([^\d\s].*?)?\s*")
_MOST_VALUES: Final = 10_000


@dataclass(frozen=True)
class Axis:
    """One swept setting: its values as a scenario writes them, and as numbers in one unit if they are some."""

    key: str
    values: tuple[Any, ...]
    unit: str = ""

    def number(self, value: Any) -> float | None:
        """A value of this axis in its unit; None if it is no number."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        found = re.fullmatch(rf"({_NUMBER}) {re.escape(self.unit)}", str(value)) if self.unit else None
        return float(found[1]) if found else None

    def as_json(self) -> dict[str, Any]:
        """The axis as `sweep.json` keeps it."""
        return asdict(self) | {"values": list(self.values)}


def parse_setting(text: str) -> tuple[str, list[Any]]:
    """The key and the values of a setting on the command line; more than one value makes it an axis."""
    key, equals, values = text.partition("=")
    if not equals or not key.strip():
        raise BadInput(f"--set {text}: no key=value; write it like protocol.alpha=2,5,10")
    if key.strip() == "protocol.name":
        raise BadInput(f"--set {text}: protocols are swept with --protocols ced,cet")
    try:
        return key.strip(), values_of(values)
    except ValueError as error:
        raise BadInput(f"--set {text}: {error}") from None


def values_of(written: Any) -> list[Any]:
    """The values that were written for a setting: a list, or a text with commas and ranges, or just one."""
    if isinstance(written, list):
        found = [value for item in written for value in (values_of(item) if _has_range(item) else [item])]
    elif isinstance(written, str):
        found = [value for piece in _pieces(written) for value in _piece_values(piece)]
    else:
        found = [written]
    if not found or "" in found:
        raise ValueError("a value is missing")
    if len(found) > _MOST_VALUES:
        raise ValueError(f"{len(found):,} values; at most {_MOST_VALUES:,} are possible")
    repeated = [value for place, value in enumerate(found) if value in found[:place]]
    if repeated:
        raise ValueError(f"{repeated[0]} is there twice")
    return found


def axis_of(key: str, values: list[Any], field: FieldInfo | None) -> Axis:
    """The axis of a setting; numbers without a unit, where one is needed, are in the base unit (m, s, m/s)."""
    mark = quantity_of(field) if field else None
    if mark is None:
        return Axis(key, tuple(values))
    base_unit = mark.dimension.shown[0]
    texts = [f"{value} {base_unit}" if _is_number(value) else value for value in values]
    return Axis(key, tuple(_in_unit(text, base_unit, mark) for text in texts), base_unit)


def _in_unit(text: Any, unit: str, mark: Quantity) -> Any:
    """The same quantity in the base unit, so that an axis has one; what cannot be read is left for the checks."""
    try:
        number = parse_quantity(text, mark.dimension)
    except ValueError:
        return text
    return f"{number:.17g} {unit}" if float(f"{number:g}") != number else f"{number:g} {unit}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_range(item: Any) -> bool:
    return isinstance(item, str) and _RANGE.fullmatch(item) is not None


def _pieces(text: str) -> list[str]:
    """The text cut at its commas, but not inside quotes, brackets or braces."""
    pieces, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "[{(") - (character in "]})")
        if character == "," and not quote and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


def _piece_values(piece: str) -> list[Any]:
    found = _RANGE.fullmatch(piece)
    if not found:
        return [toml_value(piece)]
    low, high, step = Decimal(found[1]), Decimal(found[2]), Decimal(found[3] or 1)
    if step <= 0:
        raise ValueError(f"the step of a range must be more than 0, not {step}")
    if low > high:
        raise ValueError(f"the range {piece.strip()} is the wrong way round")
    count = int((high - low) / step) + 1
    if count > _MOST_VALUES:
        raise ValueError(f"{count:,} values; at most {_MOST_VALUES:,} are possible")
    numbers = [low + step * place for place in range(count)]
    return [f"{number} {found[4]}" if found[4] else _plain(number) for number in numbers]


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)
