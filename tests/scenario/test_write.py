"""Writing: a scenario as TOML reads back as the same scenario; the schema fits what is written."""

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.field.sections import FieldScenario
from serai.kinds import CATALOGUE, PROTOCOLS
from serai.lab import load_scenario, new_scenario_text, parse_scenario, scenario_schema
from serai.scenario.load import builtin_names, builtin_text
from serai.scenario.section import known_keys
from serai.scenario.write import to_toml


@pytest.mark.parametrize(
    ("name", "protocol"),
    [(name, protocol) for name in builtin_names() for protocol in load_scenario(name).PROTOCOLS],
)
def test_a_built_in_scenario_reads_back_equal(name, protocol):
    scenario = load_scenario(name, protocol=protocol)
    again = parse_scenario(to_toml(scenario))
    assert again == scenario
    for other in scenario.PROTOCOLS:
        assert again.with_protocol(other) == scenario.with_protocol(other)


SECONDS = st.floats(0.001, 7200).map(lambda number: f"{number!r} s")
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "title": st.text(),
        "name": st.text(),
        "duration": st.integers(10**7, 10**9).map(lambda number: f"{number} s"),
        "field.width": st.floats(0.1, 1e6).map(lambda number: f"{number!r} ft"),
        "field.cells": st.integers(1, 9) | st.tuples(st.integers(1, 9), st.integers(1, 9)).map(list),
        "sensors.battery": st.floats(1e-6, 1e3).map(lambda number: f"{number!r} mWh"),
        "subscribers.speed_max": st.floats(4, 1e3).map(lambda number: f"{number!r} km/h"),
        "subscribers.pause_max": st.floats(0, 1e3).map(lambda number: f"{number!r} min"),
        "events.lifetime": SECONDS,
        "events.quiet": SECONDS,
        "events.attributes.x-1": st.tuples(st.floats(-1e9, -1), st.floats(1, 1e300)).map(
            lambda ends: {"low": ends[0], "high": ends[1]}
        ),
        'events.attributes."a.b"': st.just({"kind": "integer", "low": -(2**53), "high": 2**53}),
        "subscriptions.where": st.lists(
            st.sampled_from(["A1 < ?", "1 <= A2 < ? and A1 ≥ 3", "A1\t< 3"]), min_size=1, max_size=3
        ),
        "radio.range": st.floats(1e-3, 1e5).map(lambda number: f"{number!r} ft"),
        "radio.electronics": st.floats(0, 1e9).map(lambda number: f"{number!r} pJ/bit"),
        "protocol.alpha": st.integers(0, 10**9),
    },
)


@given(CHANGES)
def test_any_scenario_reads_back_equal(changes):
    scenario = load_scenario("field", changes)
    assert parse_scenario(to_toml(scenario)) == scenario


def test_every_key_is_written_out():
    for name in PROTOCOLS:
        data = tomllib.loads(to_toml(parse_scenario("", protocol=name)))
        written = {key for key, value in data.items()} | {
            f"{table}.{key}" for table, values in data.items() if isinstance(values, dict) for key in values
        }
        left_out = {
            "sensors.file",
            "sensors.relays",
            "nodes.file",
            "roots.spacing",
            "radio.range",
            "begin",
            "field.origin",
            *(key for key in known_keys(FieldScenario, []) if key.startswith("subscribers.")),
            "subscriptions.where",
            *(f"events.{key}" for key in ("file", "every", "on_change")),
            "subscriptions.file",
            "sweep",
            "plan",
        } - written
        known = set(known_keys(CATALOGUE.scenario_of(name), [name]))
        if CATALOGUE.scenario_of(name).network == "opportunistic":
            assert written <= known  # what a scenario has no use for is not written
        else:
            assert written == known - left_out


def test_a_file_of_positions_is_written_instead_of_a_count(tmp_path):
    (tmp_path / "my.toml").write_text('[sensors]\nplacement = "file"\nfile = "sensors.csv"')
    (tmp_path / "sensors.csv").touch()
    scenario = load_scenario(tmp_path / "my.toml")
    assert "count" not in tomllib.loads(to_toml(scenario))["sensors"]
    assert parse_scenario(to_toml(scenario)) == scenario


@pytest.mark.parametrize("name", builtin_names())
def test_a_new_scenario_says_what_the_built_in_does_and_explains_it(name):
    text = new_scenario_text(name)
    new, old = parse_scenario(text), load_scenario(name)
    assert new.model_dump(exclude={"name", "title"}) == old.model_dump(exclude={"name", "title"})
    keys = re.findall(r"^(\[?\w[\w.]*\]?)(?: =.*)?$", text, flags=re.M)
    uncommented = [
        key
        for before, key in zip(text.split("\n"), text.split("\n")[1:], strict=False)
        if re.match(r"\[|[a-z]\w* =", key) and not before.startswith("#")
    ]
    assert len(keys) > 30
    assert uncommented == []
    assert max(map(len, text.split("\n"))) <= 100


def test_only_a_built_in_scenario_can_be_begun_from():
    with pytest.raises(BadInput, match=r'no built-in scenario "my\.toml"'):
        new_scenario_text("my.toml")


def fits(value, schema, definitions):
    """A validator of the few words of JSON Schema that ours is made of."""
    if schema is False:
        return False
    if "$ref" in schema:
        return fits(value, definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return any(fits(value, option, definitions) for option in schema[choice])
    if "enum" in schema or "const" in schema:
        return value in schema.get("enum", [schema.get("const")])
    kind = schema["type"]
    if kind == "object":
        inner = schema.get("properties", {})
        return (
            isinstance(value, dict)
            and set(schema.get("required", ())) <= set(value)
            and all(
                fits(item, inner.get(key, schema.get("additionalProperties")), definitions)
                for key, item in value.items()
            )
        )
    if kind == "array":
        return isinstance(value, list) and all(fits(item, schema["items"], definitions) for item in value)
    if kind == "string":
        return isinstance(value, str) and re.search(schema.get("pattern", ""), value) is not None
    kinds = {"integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
    return isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool))


@pytest.mark.parametrize("name", builtin_names())
def test_built_in_scenarios_fit_the_schema(name):
    schema = scenario_schema()
    assert fits(tomllib.loads(builtin_text(name)), schema, schema["$defs"])
    assert fits(tomllib.loads(to_toml(load_scenario(name))), schema, schema["$defs"])


def test_the_schema_refuses_a_number_without_a_unit():
    schema = scenario_schema()
    assert not fits({"field": {"width": 200}}, schema, schema["$defs"])
    assert not fits({"protocol": {"name": "xyz"}}, schema, schema["$defs"])


def test_defaults_and_descriptions_in_the_schema_are_what_can_be_written():
    schema = scenario_schema()
    assert schema["title"] == "serai scenario"
    for table in schema["$defs"].values():
        for key, value in table["properties"].items():
            assert "default" not in value or fits(value["default"], value, schema["$defs"]), key
            assert "description" in value or "$ref" in value or key in ("name", "protocol"), key
