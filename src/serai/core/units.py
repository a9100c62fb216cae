"""Quantities with their units: `"200 m"`, `"2 h"`, `"50 nJ/bit"` as numbers in one base unit each.

`Metres`, `Seconds`, `Joules` and the others are types for pydantic fields: the text of a scenario goes in, a
number in the base unit comes out. A number is rounded once only, so `"0.2 km"` and `"200 m"` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from serai.core.errors import did_you_mean, nearest

_NUMBER = r"[+-]?(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_QUANTITY = re.compile(rf"\s*(?P<number>{_NUMBER})\s*(?P<unit>.*?)\s*", re.DOTALL)

# Words people write in full; only used to suggest the unit that is meant.
_IN_FULL = {
    "meter": "m", "meters": "m", "metre": "m", "metres": "m", "kilometers": "km", "kilometres": "km",
    "feet": "ft", "foot": "ft", "second": "s", "seconds": "s", "sec": "s", "secs": "s", "minute": "min",
    "minutes": "min", "mins": "min", "hour": "h", "hours": "h", "hr": "h", "hrs": "h", "day": "d",
    "days": "d", "mps": "m/s", "kmh": "km/h", "kph": "km/h", "joule": "J", "joules": "J", "bits": "bit",
    "watt": "W", "watts": "W", "b": "bit", "bytes": "byte", "octet": "byte", "octets": "byte",
}  # fmt: skip


@dataclass(frozen=True)
class Dimension:
    """A kind of quantity: how it is called, an example, and its units as multiples of the base unit."""

    name: str
    example: str
    units: Mapping[str, Fraction]
    shown: tuple[str, ...]  # units that `format_quantity` may write, the base unit first

    @property
    def a_name(self) -> str:
        """Its name with the article: "a length", "an energy"."""
        return f"an {self.name}" if self.name[0] in "aeiou" else f"a {self.name}"

    def __hash__(self) -> int:
        return hash(self.name)


def _scaled(**factors: str) -> dict[str, Fraction]:
    return {unit: Fraction(factor) for unit, factor in factors.items()}


# The micro sign and the Greek letter look alike, and keyboards have either.
_ENERGY = _scaled(J="1", kJ="1e3", mJ="1e-3", uJ="1e-6", nJ="1e-9", pJ="1e-12", fJ="1e-15") | {
    "\N{MICRO SIGN}J": Fraction(1, 10**6),
    "\N{GREEK SMALL LETTER MU}J": Fraction(1, 10**6),
}


def _energy_per(*endings: str) -> dict[str, Fraction]:
    return {unit + ending: factor for ending in endings for unit, factor in _ENERGY.items() if unit != "kJ"}


LENGTH = Dimension(
    "length", "200 m", _scaled(m="1", km="1e3", cm="1e-2", mm="1e-3", ft="0.3048"), ("m", "km", "cm", "mm")
)
TIME = Dimension("time", "2 h", _scaled(s="1", min="60", h="3600", d="86400", ms="1e-3"), ("s", "min", "h", "d", "ms"))
SPEED = Dimension(
    "speed", "5 m/s",
    {"m/s": Fraction(1), "km/h": Fraction(5, 18), "cm/s": Fraction(1, 100)}, ("m/s", "km/h", "cm/s"),
)  # fmt: skip
ENERGY = Dimension("energy", "10 J", _ENERGY | _scaled(Wh="3600", mWh="3.6", kWh="3.6e6"), ("J", "kJ", "mJ"))
POWER = Dimension(
    "power", "2 mW",
    _scaled(W="1", kW="1e3", mW="1e-3", uW="1e-6", nW="1e-9", pW="1e-12") | {
        "\N{MICRO SIGN}W": Fraction(1, 10**6), "\N{GREEK SMALL LETTER MU}W": Fraction(1, 10**6),
    },
    ("W", "mW", "uW", "nW"),
)  # fmt: skip
SIZE = Dimension(
    "size", "250 bit",
    _scaled(bit="1", kbit="1e3", Mbit="1e6", byte="8", B="8", kB="8e3", KiB="8192", MB="8e6", MiB="8388608", GB="8e9",
            GiB="8589934592"),
    ("bit",),
)  # fmt: skip
BYTES = Dimension(  # the same quantity, for what is stored: counted and written in bytes
    SIZE.name, "10 kB", {unit: factor / 8 for unit, factor in SIZE.units.items()}, ("byte", "kB", "MB")
)
BIT_RATE = Dimension(
    "data rate", "10 kbps",
    _scaled(bps="1", kbps="1e3", Mbps="1e6") | {
        "bit/s": Fraction(1), "kbit/s": Fraction(10**3), "Mbit/s": Fraction(10**6), "B/s": Fraction(8),
        "kB/s": Fraction(8000),
    },
    ("bps", "kbps", "Mbps"),
)  # fmt: skip
ENERGY_PER_BIT = Dimension("energy per bit", "50 nJ/bit", _energy_per("/bit"), ("J/bit", "uJ/bit", "nJ/bit", "pJ/bit"))
ENERGY_PER_BIT_M2 = Dimension(
    "energy per bit and square metre", "10 pJ/bit/m2", _energy_per("/bit/m2", "/bit/m^2", "/bit/m²"),
    ("J/bit/m2", "nJ/bit/m2", "pJ/bit/m2"),
)  # fmt: skip
ENERGY_PER_BIT_M4 = Dimension(
    "energy per bit and metre to the fourth", "0.0013 pJ/bit/m4",
    _energy_per("/bit/m4", "/bit/m^4", "/bit/m⁴"), ("J/bit/m4", "pJ/bit/m4"),
)  # fmt: skip

DIMENSIONS = (
    LENGTH, TIME, SPEED, ENERGY, POWER, SIZE, BIT_RATE, ENERGY_PER_BIT, ENERGY_PER_BIT_M2, ENERGY_PER_BIT_M4,
)  # fmt: skip


def parse_quantity(value: object, dimension: Dimension) -> float:
    """How many of the base unit `value` is (200.0 for "0.2 km"); a ValueError says why it is none."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value != value:  # NaN
        raise ValueError(f'expected {dimension.a_name} such as "{dimension.example}"')
    if not isinstance(value, str):
        raise ValueError(_without_unit(f"{value}", dimension))
    found = _QUANTITY.fullmatch(value)
    if found is None:
        raise ValueError(f'"{value}" is not {dimension.a_name}; write it like "{dimension.example}"')
    number, unit = found["number"], found["unit"]
    if not unit:
        raise ValueError(_without_unit(number, dimension))
    if unit not in dimension.units:
        raise ValueError(_unknown_unit(unit, dimension))
    return _times(number, dimension.units[unit])


def format_quantity(value: float, dimension: Dimension) -> str:
    """`value` with its unit, to be read back exactly; in the base unit unless another is clearly shorter."""
    base, *others = dimension.shown
    best, best_effort = f"{_plain(value)} {base}", _effort(_plain(value)) - 1
    for unit in others:
        number = _plain(float(Fraction(value) / dimension.units[unit]))
        exact = _times(number, dimension.units[unit]) == value
        if exact and _effort(number) < best_effort:
            best, best_effort = f"{number} {unit}", _effort(number)
    return best


def _times(number: str, factor: Fraction) -> float:
    rough = float(number)
    if rough in (float("inf"), float("-inf")):
        raise ValueError(f"{number} is too large")
    if rough == 0:
        return 0.0  # whatever the exponent, which may be too long for a fraction
    try:
        return float(Fraction(number) * factor)
    except OverflowError:
        raise ValueError(f"{number} is too large") from None


def _without_unit(number: str, dimension: Dimension) -> str:
    return f'{dimension.a_name} needs a unit; write "{number} {dimension.example.split()[1]}"'


def _unknown_unit(unit: str, dimension: Dimension) -> str:
    meant = _IN_FULL.get(unit.lower())
    if meant not in dimension.units:
        meant = nearest(unit, dimension.units)
    for other in DIMENSIONS:
        if unit in other.units and other is not dimension:
            needed = f'{dimension.a_name} is needed, such as "{dimension.example}"'
            return f'"{unit}" is a unit of {other.name}; {needed}'
    advice = f'did you mean "{meant}"?' if meant else did_you_mean(unit, dimension.units)
    return f'unknown unit "{unit}"; {advice}'


def _plain(number: float) -> str:
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else repr(number)


def _effort(number: str) -> int:
    """How hard a number is to read: its length, exponents counting as much as they hide."""
    return len(number) + 10 * ("e" in number)


@dataclass(frozen=True)
class Quantity:
    """Marks a pydantic field as written with a unit: the text is parsed before the number is validated."""

    dimension: Dimension
    whole: str | None = None  # what must come in whole numbers: "bits"

    def parse(self, value: object) -> float | int:
        """The number for the text `value`, in the base unit."""
        try:
            number = parse_quantity(value, self.dimension)
        except ValueError as error:
            raise PydanticCustomError("unit", "{problem}", {"problem": str(error)}) from None
        if self.whole is None:
            return number
        if not number.is_integer():
            raise PydanticCustomError("unit", "must be a whole number of {what}", {"what": self.whole})
        return int(number)

    def format(self, value: float) -> str:
        """The text that gives `value` again."""
        return format_quantity(float(value), self.dimension)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # Attributes hold numbers; what is written to a file (JSON mode) is the text that the user knows.
        as_text = core_schema.plain_serializer_function_ser_schema(self.format, when_used="json")
        return core_schema.no_info_before_validator_function(self.parse, handler(source), serialization=as_text)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        units = "|".join(re.escape(unit) for unit in self.dimension.units)
        return {
            "type": "string",
            "pattern": rf"^\s*{_NUMBER}\s*(?:{units})\s*$",
            "examples": [self.dimension.example],
        }


def quantity_of(field: FieldInfo) -> Quantity | None:
    """What a field is written in, if that has a unit; also of one that may be left out (`Metres | None`)."""
    marks = [*field.metadata, *(mark for choice in get_args(field.annotation) for mark in get_args(choice))]
    return next((mark for mark in marks if isinstance(mark, Quantity)), None)


Metres = Annotated[float, Quantity(LENGTH)]
Seconds = Annotated[float, Quantity(TIME)]
WholeSeconds = Annotated[int, Quantity(TIME, whole="seconds")]
MetresPerSecond = Annotated[float, Quantity(SPEED)]
Joules = Annotated[float, Quantity(ENERGY)]
Watts = Annotated[float, Quantity(POWER)]
Bits = Annotated[int, Quantity(SIZE, whole="bits")]
Bytes = Annotated[int, Quantity(BYTES, whole="bytes")]
BitsPerSecond = Annotated[float, Quantity(BIT_RATE)]
JoulesPerBit = Annotated[float, Quantity(ENERGY_PER_BIT)]
JoulesPerBitM2 = Annotated[float, Quantity(ENERGY_PER_BIT_M2)]
JoulesPerBitM4 = Annotated[float, Quantity(ENERGY_PER_BIT_M4)]
