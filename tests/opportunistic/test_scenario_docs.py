"""docs/opportunistic/index.md says every key of a scenario, with its default and its choices."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from serai.core.units import Quantity
from serai.lab import parse_scenario
from serai.opportunistic.protocols import PROTOCOLS
from serai.opportunistic.sections import OpportunisticScenario
from serai.scenario.section import Section, keys_of

PAGE = (Path(__file__).parents[2] / "docs" / "opportunistic" / "index.md").read_text(encoding="utf-8")


def test_the_example_of_ranges_is_a_scenario() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    scenario = parse_scenario(text)
    assert isinstance(scenario, OpportunisticScenario)
    assert scenario.events.cells == 8


def expected() -> Iterator[tuple[str, Any]]:
    """Every key of such a scenario, with its field."""
    for name, field in keys_of(OpportunisticScenario).items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            for key, inner in keys_of(field.annotation).items():
                if key != "attributes":
                    yield f"{name}.{key}", inner
        elif name != "protocol":
            yield name, field


def documented() -> dict[str, tuple[str, str]]:
    rows = {}
    for chapter in PAGE.partition("## Every key")[2].split("\n### ")[1:]:
        table = re.match(r"`\[(.*)\]`", chapter)
        for key, default, meaning in re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", chapter, flags=re.M):
            rows[f"{table[1]}.{key}" if table else key] = (default.strip("`"), meaning)
    return rows


def test_every_key_has_its_row_and_no_other() -> None:
    assert set(documented()) == {key for key, _ in expected()} | {"protocol.name"}
    assert all(f'`"{name}"`' in documented()["protocol.name"][1] for name in PROTOCOLS)


@pytest.mark.parametrize(("key", "field"), list(expected()))
def test_the_default_is_the_one_of_the_code_and_every_choice_is_named(key: str, field: Any) -> None:
    default, meaning = documented()[key]
    unit = next((mark for mark in field.metadata if isinstance(mark, Quantity)), None)
    value = field.get_default()
    if isinstance(value, tuple):
        value = value[0]
    assert default == ("none" if value is None else json.dumps(unit.format(value) if unit else value))
    assert meaning.endswith(".")
    for choice in get_args(field.annotation):
        if isinstance(choice, str) and key != "contacts.format":
            assert f'`"{choice}"`' in meaning
