"""The laboratory's bench: load a scenario, simulate it, measure the run, keep it. The same calls for all kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from serai.core.jit import announced_compilation
from serai.kinds import CATALOGUE, KINDS, kind_of_run
from serai.log.folder import RUN_FILE, check_keys, read_description
from serai.log.run import write_run as write_run
from serai.scenario.load import Overrides, load, parse
from serai.scenario.section import Scenario
from serai.scenario.write import json_schema, starting_text


def load_scenario(source: str | Path, overrides: Overrides = (), protocol: str | None = None) -> Scenario:
    """The scenario of a TOML file or of a built-in name, under another protocol if given, then with changes.

    A change is `dotted.key=value` as on the command line, or an item of a mapping: `{"protocol.alpha": 10}`.
    """
    return load(CATALOGUE, source, overrides, protocol)


def parse_scenario(
    text: str, source: str = "scenario.toml", overrides: Overrides = (), protocol: str | None = None
) -> Scenario:
    """The scenario that a TOML text says; messages call the text `source`."""
    return parse(CATALOGUE, text, source, overrides, protocol)


def new_scenario_text(name: str = "field") -> str:
    """A scenario file to start from: all that the built-in scenario `name` says, each key explained."""
    return starting_text(CATALOGUE, name)


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of scenario files, for editors that complete and check TOML."""
    return json_schema(CATALOGUE)


def simulate(scenario: Scenario, protocol: str | None = None, seed: int = 0, **options: Any) -> Any:
    """Run a scenario once. The same scenario, protocol and seed give the same run, on any machine.

    `full_log=True` keeps every transfer and drop; in a field, `until_death=True` goes on until a sensor dies.
    """
    if protocol is not None:
        scenario = scenario.with_protocol(protocol)
    with announced_compilation(scenario.protocol.name):
        return KINDS[scenario.network].simulate(scenario, seed, **options)


def measure(run: Any, **options: Any) -> Any:
    """Every metric of a run; in a field, `ceiling=True` adds what its contacts alone would allow (takes longer)."""
    return kind_of_run(run).measure(run, **options)


def delays(run: Any) -> Any:
    """The delay of each delivered pair (an array), and how many pairs were wanted; None where nobody waits."""
    answer = kind_of_run(run).delays
    return answer(run) if answer else None


def read_run(folder: str | Path) -> Any:
    """The run that a folder keeps, equal to the one that was written there."""
    place = Path(folder)
    said = read_description(place)
    check_keys(place, said, ("scenario", "tables"))
    scenario = parse_scenario(said["scenario"], source=str(place / RUN_FILE))
    return KINDS[scenario.network].read(place, said, scenario)
