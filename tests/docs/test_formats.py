"""The pages on opportunistic networks say what the code does: every key, and an example of every format."""

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
from serai.traces import FORMATS, detect_format, read_trace
from serai.traces.messages import read_interests, read_messages

DOCS = Path(__file__).parents[2] / "docs"
FORMATS_PAGE = (DOCS / "traces.md").read_text(encoding="utf-8")
CONTACTS_PAGE = (DOCS / "opportunistic" / "index.md").read_text(encoding="utf-8")


def example(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", FORMATS_PAGE, re.DOTALL)
    return str(found)


@pytest.mark.parametrize("form", FORMATS)
def test_the_example_of_every_format_is_of_that_format(form: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(example(form))
    assert detect_format(path) == form
    trace = read_trace(path, strict=True)
    assert trace.names
    assert all("still up" in warning.what for warning in trace.warnings)
    assert f"`{form}`" in FORMATS_PAGE


@pytest.mark.parametrize("language", ["messages", "csv"])
def test_the_examples_of_messages_can_be_read(language: str, tmp_path: Path) -> None:
    path = tmp_path / "messages"
    path.write_text(example(language))
    assert len(read_messages(path, strict=True).source) == 2


def test_the_example_of_subscriptions_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "subscriptions.csv"
    path.write_text(example("subscriptions"))
    found = read_interests(path, strict=True)
    assert found.node == ["n1", "n3"]
    assert found.to_s.tolist() == [float("inf"), 7200.0]


def test_the_example_of_ranges_is_a_scenario() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", CONTACTS_PAGE, re.DOTALL)
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
    for chapter in CONTACTS_PAGE.partition("## Every key")[2].split("\n### ")[1:]:
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
