"""The laboratory's bench: load a scenario, simulate it, measure the run, keep it. The same calls for all kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, overload

import numpy as np

from serai.core.errors import BadInput
from serai.core.jit import announced_compilation
from serai.field.log import FieldRun
from serai.field.metrics import FieldMetrics
from serai.field.sections import FieldScenario
from serai.kinds import CATALOGUE, check_options, kernels_of, kind_of, kind_of_run, preset
from serai.log.folder import RUN_FILE, check_keys, read_description
from serai.log.metrics import Floats, Metrics
from serai.log.pairs import RunPairs
from serai.log.run import RecordedRun, Run, SimulatedRun
from serai.log.run import write_run as write_run
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.metrics import OpportunisticMetrics
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import given_in, simulate_given
from serai.overlay.log import OverlayRun
from serai.overlay.metrics import OverlayMetrics
from serai.overlay.sections import OverlayScenario
from serai.own.texts import remember_texts
from serai.scenario.load import Overrides, load, parse, with_overrides
from serai.scenario.section import Scenario
from serai.scenario.write import json_schema, starting_text, to_toml


def load_scenario(
    source: str | Path, overrides: Overrides = (), protocol: str | None = None, like: str | None = None
) -> Scenario:
    """The scenario of a TOML file or of a built-in name, under another protocol if given, then with changes.

    A change is `dotted.key=value` as on the command line, or an item of a mapping: `{"protocol.alpha": 10}`. Before
    them, `like="the-one"` sets what makes a run comparable with that simulator's.
    """
    if like is None:
        return load(CATALOGUE, source, overrides, protocol)
    kind = kind_of(load(CATALOGUE, source, (), protocol))
    common = with_overrides(preset(kind, like, ""), overrides)
    chosen = load(CATALOGUE, source, common, protocol).protocol.name  # a change may have named it
    return load(CATALOGUE, source, with_overrides(preset(kind, like, chosen), overrides), protocol)


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


@overload
def simulate(
    scenario: FieldScenario,
    protocol: str | None = None,
    seed: int = 0,
    *,
    full_log: bool = False,
    until_death: bool = False,
) -> FieldRun: ...
@overload
def simulate(
    scenario: OverlayScenario, protocol: str | None = None, seed: int = 0, *, full_log: bool = False
) -> OverlayRun: ...
@overload
def simulate(
    scenario: OpportunisticScenario, protocol: str | None = None, seed: int = 0, *, full_log: bool = False
) -> OpportunisticRun: ...
@overload
def simulate(
    scenario: str | Path | Scenario, protocol: str | None = None, seed: int = 0, **options: bool
) -> SimulatedRun: ...
def simulate(
    scenario: str | Path | Scenario, protocol: str | None = None, seed: int = 0, **options: bool
) -> SimulatedRun:
    """Run a scenario once: a built-in name, a file, or a scenario.

    The same scenario, protocol and seed give the same run, on any machine. `full_log=True` keeps every transfer and
    drop; in a field, `until_death=True` goes on until a sensor dies.
    """
    chosen = scenario_of(scenario, protocol)
    kind = kind_of(chosen)
    check_options(options, kind.simulate_options, f"simulate, for networks of kind {kind.name!r}")
    with announced_compilation(kernels_of(chosen)):
        run: SimulatedRun = kind.simulate(chosen, seed, **options)
    return run


def simulate_again(
    folder: str | Path, protocol: str | None = None, overrides: Overrides = (), seed: int = 0, *, full_log: bool = False
) -> OpportunisticRun:
    """What would have happened: the contacts, publications and subscriptions of a run folder under another protocol."""
    run = read_run(folder)
    if not isinstance(run, OpportunisticRun):
        raise BadInput(f"{folder}: only runs of contacts can be simulated again")
    text = to_toml(run.scenario)
    scenario = parse_scenario(text, str(Path(folder) / RUN_FILE), overrides, protocol)
    assert isinstance(scenario, OpportunisticScenario)
    with announced_compilation(scenario.protocol.name):
        return simulate_given(scenario, given_in(run), seed, full_log)


def scenario_of(scenario: str | Path | Scenario, protocol: str | None = None) -> Scenario:
    """What a name, a file or a scenario stands for, under another protocol if given."""
    if not isinstance(scenario, Scenario):
        return load_scenario(scenario, protocol=protocol)
    return scenario if protocol is None else scenario.with_protocol(CATALOGUE.known(protocol))


@overload
def measure(run: FieldRun, *, upper_bound: bool = False) -> FieldMetrics: ...
@overload
def measure(run: OverlayRun) -> OverlayMetrics: ...
@overload
def measure(run: OpportunisticRun) -> OpportunisticMetrics: ...
@overload
def measure(run: Run, **options: bool) -> Metrics: ...
def measure(run: Run, **options: bool) -> Metrics:
    """Every metric of a run; in a field, `upper_bound=True` adds what its contacts alone would allow (takes longer)."""
    kind = kind_of_run(run)
    check_options(options, kind.measure_options, f"measure, for networks of kind {kind.name!r}")
    metrics: Metrics = kind.measure(run, **options)
    return metrics


def pairs_of(run: Run) -> RunPairs:
    """What became of every wanted pair of an event and a subscriber."""
    kind = kind_of_run(run)
    if kind.pairs is None:
        raise BadInput(f"in networks of kind {kind.name!r} nobody waits for a delivery")
    pairs: RunPairs = kind.pairs(run)
    return pairs


def delay_cdf(run: Run) -> tuple[Floats, Floats]:
    """The delays of delivered pairs, ascending, and the fraction of all *wanted* pairs served within each.

    The undelivered count: the curve ends at the delivery ratio, not at 1.
    """
    pairs = pairs_of(run)
    delays_s = np.sort(pairs.delay_s)
    return delays_s, np.arange(1, len(delays_s) + 1) / max(int(pairs.wanted.sum()), 1)


def read_run(folder: str | Path) -> Run:
    """The run that a folder keeps, equal to the one that was written there; of real nodes, their tables."""
    place = Path(folder)
    said = read_description(place)
    if said.get("origin") == "field" and "scenario" not in said:
        return RecordedRun.read(place, said)
    check_keys(place, said, ("scenario",))
    if "protocol_texts" in said:  # of the user's own, whose file may be gone
        remember_texts(said["protocol_texts"])
    scenario = parse_scenario(said["scenario"], source=str(place / RUN_FILE))
    run: SimulatedRun = kind_of(scenario).run.read(place, said, scenario)
    return run
