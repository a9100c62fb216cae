"""The pages on scenarios and content say what the code does."""

import json
import re
from pathlib import Path

import pytest
from pydantic import PlainSerializer

from serai.core.content import Attribute, parse, parse_template
from serai.core.errors import BadScenario, BadSubscription
from serai.core.language import alternatives
from serai.core.units import DIMENSIONS, Quantity
from serai.field.sections import FieldScenario
from serai.lab import parse_scenario
from serai.scenario.section import AttributeTable, keys_of, known_keys

DOCS = Path(__file__).parents[2] / "docs"
SCENARIO = (DOCS / "scenario.md").read_text()
CONTENT = (DOCS / "content.md").read_text()


def documented():
    """Every row of the tables of keys: dotted key -> (default, meaning)."""
    reference = SCENARIO.partition("## Every key")[2].partition("## Changes")[0]
    rows = {}
    for chapter in reference.split("\n### ")[1:]:
        table = re.match(r"`\[(.*)\]`", chapter)
        for key, default, meaning in re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", chapter, flags=re.M):
            rows[f"{table[1]}.{key}" if table else key] = (default.strip("`"), meaning)
    return rows


def default_of(field):
    """The default of a key as it would be written in a file."""
    unit = next((mark for mark in field.metadata if isinstance(mark, Quantity)), None)
    default = field.get_default()
    if field.is_required() or default is None:
        return "none"
    if isinstance(default, tuple):
        written = next((mark.func for mark in field.metadata if isinstance(mark, PlainSerializer)), list)
        default = written(default) if default else []
    return json.dumps(unit.format(default) if unit else default)


def expected_keys():
    keys = {key: field for key, field in known_keys(FieldScenario, []).items() if key not in keys_of(FieldScenario)}
    keys |= {key: keys_of(FieldScenario)[key] for key in ("title", "name", "duration", "begin")}
    keys |= {f"events.attributes.{key}": field for key, field in keys_of(AttributeTable).items()}
    del keys["events.attributes"]  # has a chapter of its own
    return keys


def test_every_key_has_its_row_and_no_other():
    assert set(documented()) == set(expected_keys()) | {"protocol.name"}


@pytest.mark.parametrize(("key", "field"), expected_keys().items())
def test_the_default_is_the_one_of_the_code(key, field):
    default, meaning = documented()[key]
    assert default == default_of(field)
    assert meaning.endswith((".", ")"))


def test_every_unit_is_listed():
    words = set(re.findall(r"`([^`]+)`", SCENARIO.partition("## Units")[2].partition("## Every key")[0]))
    words.add("\N{GREEK SMALL LETTER MU}W")  # it looks like the micro sign
    simple = [unit for dimension in DIMENSIONS[:7] for unit in dimension.units]
    assert [unit for unit in simple if unit not in words and "J" not in unit] == []


def test_the_example_is_a_scenario():
    (text,) = re.findall(r"```toml\n(.*?)```", SCENARIO, flags=re.S)
    scenario = parse_scenario(text)
    assert scenario.protocol.name == "cet"
    assert len(scenario.subscriptions.where) == 2


def test_the_example_of_messages_is_what_is_said():
    (said,) = re.findall(r"```text\n(.*?)```", SCENARIO, flags=re.S)
    lines = ["[field]", 'width = "200 mm2"', "[sensors]", "capacity = 100", "[subscriptions]"]
    text = "\n".join([*lines, 'where = "A1 < 3 ro A2 < 3"'])
    with pytest.raises(BadScenario) as caught:
        parse_scenario(text, "meadow.toml", ["protocol.gamma=3"])
    assert f"{caught.value}\n" == said


def test_the_example_of_a_bad_subscription_is_what_is_said():
    (said,) = re.findall(r"```text\n(.*?)```", CONTENT, flags=re.S)
    with pytest.raises(BadSubscription) as caught:
        parse("A1 < and A2 < 8")
    assert f"{caught.value}\n" == said


def test_the_examples_of_subscriptions_can_be_read():
    table = CONTENT.partition("| written |")[2].partition("Also understood")[0]
    texts = re.findall(r"`([^`]+)`", table)
    assert len(texts) > 8
    for text in texts:
        alternatives(text, None, ("number",))


def test_the_python_example():
    attributes = [Attribute("A1", "real", 0, 10), Attribute("A2", "integer", 0, 10)]
    assert str(parse("A1 < 3.2 and 2 <= A2 < 8", attributes).ranges).replace("'", '"') in CONTENT
    filled = parse_template("A1 < ? and A2 < ?", attributes).fill([4.2, 7])
    assert f'"{filled.text}"' in CONTENT
