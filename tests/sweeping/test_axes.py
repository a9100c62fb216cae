"""Swept settings as people write them."""

from typing import Any

import pytest

from serai.core.errors import BadInput
from serai.field.sections import FieldScenario
from serai.scenario.section import known_keys
from serai.sweeping.axes import Axis, axis_of, parse_setting, values_of


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("2,5,10", [2, 5, 10]),
        ("7", [7]),
        ("1..4", [1, 2, 3, 4]),
        ("40..140:20", [40, 60, 80, 100, 120, 140]),
        ("40..130:20", [40, 60, 80, 100, 120]),
        ("0.1..0.5:0.1", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("1..3 m/s", ["1 m/s", "2 m/s", "3 m/s"]),
        ("20 m, 1 km", ["20 m", "1 km"]),
        ("1..3,10", [1, 2, 3, 10]),
        ("true,false", [True, False]),
        ("oldest,newest", ["oldest", "newest"]),
        ('"A1 < 3, B > 2",B > 1', ["A1 < 3, B > 2", "B > 1"]),
        ("[1, 2],[3]", [[1, 2], [3]]),
        ([2, 5], [2, 5]),
        (["1..3", 7], [1, 2, 3, 7]),
        (True, [True]),
    ],
)
def test_values(written: Any, values: list[Any]) -> None:
    assert values_of(written) == values


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("protocol.alpha", "no key=value"),
        ("=3", "no key=value"),
        ("protocol.alpha=2,,5", "a value is missing"),
        ("protocol.alpha=", "a value is missing"),
        ("protocol.alpha=5..2", "wrong way round"),
        ("protocol.alpha=1..9:0", "more than 0"),
        ("protocol.alpha=1..1000000", "at most 10,000"),
        ("protocol.alpha=1..3,2", "2 is there twice"),
        ("protocol.name=ced,cet", "--protocols"),
    ],
)
def test_what_cannot_be_swept_is_said_with_what_was_written(written: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        parse_setting(written)
    assert f"--set {written}" in str(caught.value)


def test_numbers_without_a_unit_are_in_the_base_unit() -> None:
    speed = known_keys(FieldScenario)["subscribers.speed_max"]
    axis = axis_of("subscribers.speed_max", [1, 2.5, "36 km/h"], speed)
    assert axis == Axis("subscribers.speed_max", ("1 m/s", "2.5 m/s", "10 m/s"), "m/s")
    assert [axis.number(value) for value in axis.values] == [1, 2.5, 10]


def test_a_setting_without_a_unit_is_left_as_it_is() -> None:
    axis = axis_of("protocol.alpha", [2, 5], known_keys(FieldScenario)["protocol.alpha"])
    assert axis == Axis("protocol.alpha", (2, 5))
    assert axis.number(5) == 5
    assert Axis("protocol.queue", ("oldest",)).number("oldest") is None
