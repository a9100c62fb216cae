"""Points that stop when their interval is narrow enough."""

import pytest

from serai.core.errors import BadInput
from serai.kinds import FIELD
from serai.sweeping.stopping import Until, first_seeds, is_narrow, next_seeds, parse_until


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1%", Until("delivery_ratio", 0.01)),
        ("2.5 %", Until("delivery_ratio", 0.025)),
        ("0.05", Until("delivery_ratio", 0.05)),
        ("mean_delay_s=3%", Until("mean_delay_s", 0.03)),
    ],
)
def test_what_is_asked_for(text: str, expected: Until) -> None:
    assert parse_until(text, FIELD) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [("wide", "write it like 1%"), ("0%", "write it like"), ("200%", "write it like"), ("delay=1%", "did you mean")],
)
def test_what_cannot_be_asked_for(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        parse_until(text, FIELD)


def test_only_points_that_are_wide_go_on() -> None:
    until = Until("delivery_ratio", 0.1)
    rows = [
        {"point": 0, "mean": 1.0, "half_width": 0.05},
        {"point": 0, "mean": 1.0, "half_width": 0.1},
        {"point": 1, "mean": 1.0, "half_width": 0.05},
        {"point": 1, "mean": 1.0, "half_width": 0.2},  # the other protocol of the point is not narrow enough
        {"point": 2, "mean": None, "half_width": None},
    ]
    assert first_seeds(3, until, 100) == {0: 10, 1: 10, 2: 10}
    assert next_seeds({0: 10, 1: 10, 2: 10}, rows, until, 100) == {0: 10, 1: 15, 2: 15}
    assert next_seeds({0: 10, 1: 90, 2: 100}, rows, until, 100) == {0: 10, 1: 100, 2: 100}


def test_the_last_digits_do_not_decide() -> None:
    assert is_narrow(1.0, 0.1 + 1e-16, 0.1)
    assert is_narrow(-2.0, 0.2, 0.1)
    assert is_narrow(0.0, 0.0, 0.1)
    assert not is_narrow(0.0, 0.1, 0.1)
