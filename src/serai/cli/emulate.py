"""`serai emulate`: real nodes through a scenario's contacts, beside the simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from serai.cli.options import AsJson, ProtocolName, ScenarioName, Settings, print_json
from serai.core.errors import BadInput


def emulate(
    scenario: ScenarioName,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Stores and both runs go here.", show_default=False)
    ],
    protocol: ProtocolName = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="World, movement, events: all follow from it.")] = 0,
    clock: Annotated[
        Literal["virtual"], typer.Option("--clock", help="virtual: joined in memory, equal to the last bit.")
    ] = "virtual",
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Real nodes through a scenario, beside the simulation."""
    from serai.lab import load_scenario
    from serai.node.emulate import emulate as emulate_nodes
    from serai.opportunistic.sections import OpportunisticScenario

    loaded = load_scenario(scenario, overrides=settings or (), protocol=protocol)
    if not isinstance(loaded, OpportunisticScenario):
        raise BadInput(f"{scenario}: nodes meet in networks of kind opportunistic, and this one is {loaded.network}")
    found = emulate_nodes(loaded, seed, out)
    counts = found.simulated.counts()
    if as_json:
        print_json({"equal": not found.differences, "differences": list(found.differences), "counts": counts})
    else:
        print(f"{', '.join(found.emulated.in_numbers())}: emulated and simulated, written to {out}")
        print("\n".join(found.differences) or "Both are equal, table by table.")
    if found.differences:
        raise typer.Exit(1)
