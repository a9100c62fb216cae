"""Powers by the hour of the day: as written, and back again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.harvest import HOURS, format_harvest, parse_harvest

MORNING, EVENING = 2e-3, 0.5e-3


def by_hour(**powers: float) -> tuple[float, ...]:
    return tuple(powers.get(f"h{hour}", 0.0) for hour in range(HOURS))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2 mW", (MORNING,) * HOURS),
        ("0 W", (0.0,) * HOURS),
        ({"6-8": "2 mW", "20-21": "0.5 mW"}, by_hour(h6=MORNING, h7=MORNING, h20=EVENING)),
        ({"22-2": "2 mW"}, by_hour(h22=MORNING, h23=MORNING, h0=MORNING, h1=MORNING)),
        ({"23-24": "2 mW", " 0 - 1 ": "0.5 mW"}, by_hour(h23=MORNING, h0=EVENING)),
        ({"0-24": "2 mW"}, (MORNING,) * HOURS),
        ("6-8: 2 mW; 20-21:0.5 mW", by_hour(h6=MORNING, h7=MORNING, h20=EVENING)),
        (["2 mW"] * 23 + ["0 W"], (MORNING,) * 23 + (0.0,)),
        ({}, (0.0,) * HOURS),
    ],
)
def test_what_is_written_is_meant(written: Any, expected: tuple[float, ...]) -> None:
    assert parse_harvest(written) == expected


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("2", 'a power needs a unit; write "2 mW"'),
        ("-1 mW", '"-1 mW" is not between 0 and 1000 W'),
        ("2 kW", '"2 kW" is not between 0 and 1000 W'),
        ("2 mJ", '"mJ" is a unit of energy; a power is needed, such as "2 mW"'),
        (["2 mW"] * 23, "24 powers are needed, one for each hour of the day, not 23"),
        ([0.002] * 24, 'a power needs a unit; write "0.002 mW"'),
        ({"6-25": "2 mW"}, '"6-25" is not a span of hours; write it like "6-18", from 0 to 24'),
        ({"24-6": "2 mW"}, '"24-6" is not a span of hours; write it like "6-18", from 0 to 24'),
        ({"6-6": "2 mW"}, '"6-6" is not a span of hours; write it like "6-18", from 0 to 24'),
        ({"noon": "2 mW"}, '"noon" is not a span of hours; write it like "6-18", from 0 to 24'),
        ({"6-9": "2 mW", "8-10": "1 mW"}, "the hour from 8 to 9 is there twice"),
        ({"22-2": "2 mW", "0-1": "1 mW"}, "the hour from 0 to 1 is there twice"),
        ({"6-9": 2}, 'a power needs a unit; write "2 mW"'),
        ("6-9: 2 mW; 9-10", '"" is not a power; write it like "2 mW"'),
        ("6-18 2 mW", '"6-18 2 mW" has no colon; write it like "6-18: 2 mW"'),
        ("6-18", '"6-18" has no colon; write it like "6-18: 2 mW"'),
        ("6-9: 2 mW;", '"" is not a span of hours; write it like "6-18", from 0 to 24'),
        (True, 'expected a power such as "2 mW"'),
    ],
)
def test_what_cannot_be_used_is_told(written: Any, problem: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011
        parse_harvest(written)
    assert str(error.value) == problem


@given(st.lists(st.sampled_from([0.0, 2e-3, 60e-6, 1.5]), min_size=HOURS, max_size=HOURS).map(tuple))
def test_it_comes_back(powers: tuple[float, ...]) -> None:
    assert parse_harvest(format_harvest(powers)) == powers
