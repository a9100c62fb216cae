"""Quantities: the same number however it is written, and back."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from serai.core.units import (
    BIT_RATE,
    DIMENSIONS,
    ENERGY,
    ENERGY_PER_BIT,
    ENERGY_PER_BIT_M2,
    ENERGY_PER_BIT_M4,
    LENGTH,
    SIZE,
    SPEED,
    TIME,
    Bits,
    Metres,
    WholeSeconds,
    format_quantity,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("text", "dimension", "number"),
    [
        ("200 m", LENGTH, 200.0),
        ("0.2 km", LENGTH, 200.0),
        ("200m", LENGTH, 200.0),
        (" 1_000 mm ", LENGTH, 1.0),
        ("10 ft", LENGTH, 3.048),
        ("2 h", TIME, 7200.0),
        ("90 min", TIME, 5400.0),
        ("1.5 d", TIME, 129_600.0),
        ("250 ms", TIME, 0.25),
        ("5 m/s", SPEED, 5.0),
        ("18 km/h", SPEED, 5.0),
        ("10 J", ENERGY, 10.0),
        ("1 Wh", ENERGY, 3600.0),
        ("3 \u00b5J", ENERGY, 3e-6),
        ("3 \u03bcJ", ENERGY, 3e-6),
        ("250 bit", SIZE, 250.0),
        ("32 byte", SIZE, 256.0),
        ("32 B", SIZE, 256.0),
        ("1 KiB", SIZE, 8192.0),
        ("10 kbps", BIT_RATE, 10_000.0),
        ("10 kbit/s", BIT_RATE, 10_000.0),
        ("50 nJ/bit", ENERGY_PER_BIT, 50e-9),
        ("10 pJ/bit/m2", ENERGY_PER_BIT_M2, 10e-12),
        ("10 pJ/bit/m^2", ENERGY_PER_BIT_M2, 10e-12),
        ("10 pJ/bit/m²", ENERGY_PER_BIT_M2, 10e-12),
        ("0.0013 pJ/bit/m4", ENERGY_PER_BIT_M4, 0.0013e-12),
        ("0.0013 pJ/bit/m^4", ENERGY_PER_BIT_M4, 0.0013e-12),
        ("-.5e1 m", LENGTH, -5.0),
        ("5. m", LENGTH, 5.0),
        ("1e-999999999999 m", LENGTH, 0.0),
    ],
)
def test_a_quantity_is_a_number_in_the_base_unit(text, dimension, number):
    assert parse_quantity(text, dimension) == number


@pytest.mark.parametrize(
    ("value", "dimension", "message"),
    [
        (200, LENGTH, 'a length needs a unit; write "200 m"'),
        (0.5, TIME, 'a time needs a unit; write "0.5 h"'),
        ("200", LENGTH, 'a length needs a unit; write "200 m"'),
        (10, ENERGY, 'an energy needs a unit; write "10 J"'),
        ("200 mm2", LENGTH, 'unknown unit "mm2"; did you mean "mm"?'),
        ("200 feet", LENGTH, 'unknown unit "feet"; did you mean "ft"?'),
        ("200 M", LENGTH, 'unknown unit "M"; did you mean "m"?'),
        ("2 hours", TIME, 'unknown unit "hours"; did you mean "h"?'),
        ("5 mps", SPEED, 'unknown unit "mps"; did you mean "m/s"?'),
        ("9 parsec", LENGTH, 'unknown unit "parsec"; one of: m, km, cm, mm, ft'),
        ("200 s", LENGTH, '"s" is a unit of time; a length is needed, such as "200 m"'),
        ("wide", LENGTH, '"wide" is not a length; write it like "200 m"'),
        ("", LENGTH, '"" is not a length; write it like "200 m"'),
        ("nan m", LENGTH, '"nan m" is not a length; write it like "200 m"'),
        ("1e999 m", LENGTH, "1e999 is too large"),
        ("1e308 km", LENGTH, "1e308 is too large"),
        (True, LENGTH, 'expected a length such as "200 m"'),
        ([200], LENGTH, 'expected a length such as "200 m"'),
        (float("nan"), LENGTH, 'expected a length such as "200 m"'),
    ],
)
def test_what_is_no_quantity_is_refused_with_a_remedy(value, dimension, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_quantity(value, dimension)


@pytest.mark.parametrize(
    ("number", "dimension", "text"),
    [
        (7200.0, TIME, "2 h"),
        (43200.0, TIME, "12 h"),
        (86400.0, TIME, "1 d"),
        (5400.0, TIME, "90 min"),
        (2000.0, TIME, "2000 s"),
        (120.0, TIME, "2 min"),
        (60.0, TIME, "60 s"),
        (0.0, TIME, "0 s"),
        (200.0, LENGTH, "200 m"),
        (1 / 3, LENGTH, "0.3333333333333333 m"),
        (50e-9, ENERGY_PER_BIT, "50 nJ/bit"),
        (0.0013e-12, ENERGY_PER_BIT_M4, "0.0013 pJ/bit/m4"),
    ],
)
def test_quantities_are_written_in_a_fitting_unit(number, dimension, text):
    assert format_quantity(number, dimension) == text


@given(st.floats(-1e280, 1e280), st.sampled_from(DIMENSIONS))
def test_what_is_written_reads_back_exactly(number, dimension):
    assert parse_quantity(format_quantity(number, dimension), dimension) == number


@given(st.integers(-(10**6), 10**6), st.integers(-9, 9))
def test_a_number_is_rounded_once_only(mantissa, exponent):
    assert parse_quantity(f"{mantissa}e{exponent} km", LENGTH) == float(f"{mantissa}e{exponent + 3}")


class Box(BaseModel):
    width: Metres = 1.0
    wait: WholeSeconds = 1
    size: Bits = 1


def test_a_field_holds_the_number_and_is_written_as_text():
    box = Box(width="2 km", wait="1.5 min", size="2 byte")
    assert (box.width, box.wait, box.size) == (2000.0, 90, 16)
    assert type(box.wait) is type(box.size) is int
    assert box.model_dump(mode="json") == {"width": "2 km", "wait": "90 s", "size": "16 bit"}
    assert box.model_dump() == {"width": 2000.0, "wait": 90, "size": 16}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("wait", "1.5 s", "must be a whole number of seconds"),
        ("size", "0.3 bit", "must be a whole number of bits"),
        ("width", 3, 'a length needs a unit; write "3 m"'),
    ],
)
def test_a_field_says_what_is_wrong(key, value, message):
    with pytest.raises(ValidationError) as caught:
        Box(**{key: value})
    assert [error["msg"] for error in caught.value.errors()] == [message]


def test_the_schema_asks_for_a_text_with_a_unit():
    pattern = Box.model_json_schema()["properties"]["width"]["pattern"]
    assert re.search(pattern, "200 m")
    assert re.search(pattern, "-1.5e3km")
    assert not re.search(pattern, "200")
    assert not re.search(pattern, "200 s")
    assert math.isfinite(Box().width)
