"""Counts with their nouns."""

from __future__ import annotations

import pytest

from serai.core.counting import counted


@pytest.mark.parametrize(
    ("count", "plural", "said"),
    [
        (1, "vehicles", "1 vehicle"),
        (2, "vehicles", "2 vehicles"),
        (0, "relays", "0 relays"),
        ("1..3", "walkers", "1..3 walkers"),
        (1, "people", "1 people"),
        (1, "buses", "1 buses"),
        (1, "ferries", "1 ferries"),
        (1, "moss", "1 moss"),
    ],
)
def test_one_of_them_is_named_in_the_singular_where_that_is_sure(count: object, plural: str, said: str) -> None:
    assert counted(count, plural) == said
