"""Scenarios: a TOML file becomes a frozen, validated object, or a list of everything wrong with it."""

from serai.scenario.contacts import ContactsScenario
from serai.scenario.field import FieldScenario
from serai.scenario.load import builtin_names, builtin_text, load_scenario, parse_scenario
from serai.scenario.overlay import OverlayScenario
from serai.scenario.section import Scenario
from serai.scenario.write import new_scenario_text, scenario_schema, to_toml

__all__ = [
    "ContactsScenario",
    "FieldScenario",
    "OverlayScenario",
    "Scenario",
    "builtin_names",
    "builtin_text",
    "load_scenario",
    "new_scenario_text",
    "parse_scenario",
    "scenario_schema",
    "to_toml",
]
