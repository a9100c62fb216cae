"""`serai emulate`: real nodes through a scenario's contacts, beside the simulation."""

from __future__ import annotations

import sys
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
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="World, movement and events all follow from it.")] = 0,
    clock: Annotated[
        Literal["virtual", "real"],
        typer.Option("--clock", help="virtual: in memory, equal to the last bit; real: over TCP."),
    ] = "virtual",
    speed: Annotated[
        float | None,
        typer.Option("--speed", metavar="X", min=0.01, help="With the real clock: how many times as fast; default: 1."),
    ] = None,
    processes: Annotated[
        bool, typer.Option("--processes", help="With the real clock: a process for each node.")
    ] = False,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Real nodes through a scenario, beside the simulation."""
    from serai.lab import load_scenario
    from serai.node.emulation.compare import emulate as emulate_nodes
    from serai.opportunistic.sections import OpportunisticScenario

    loaded = load_scenario(scenario, overrides=settings or (), protocol=protocol)
    if not isinstance(loaded, OpportunisticScenario):
        raise BadInput(f"{scenario}: nodes meet in networks of kind opportunistic, and this one is {loaded.network}")
    if clock == "virtual" and (speed is not None or processes):
        raise BadInput("--speed and --processes are for --clock real: a virtual clock is only a number")
    pace = None if clock == "virtual" else speed or 1.0
    if pace is not None:
        print(f"by the clock: {loaded.duration_s / pace:.0f} s", file=sys.stderr)
    found = emulate_nodes(loaded, seed, out, speed=pace, processes=processes)
    late_s = found.lateness_s
    if as_json:
        said = {"equal": not found.differences, "differences": list(found.differences)}
        late = {"median": late_s[len(late_s) // 2], "most": late_s[-1]} if late_s else None
        print_json(said | {"counts": found.simulated.counts(), "late_s": late})
    else:
        print(f"{', '.join(found.emulated.in_numbers())}: emulated and simulated, written to {out}")
        equal = "Both are equal, table by table." if pace is None else f"The same {len(late_s)} deliveries."
        print("\n".join(found.differences) or equal)
        if late_s:
            print(f"Later than simulated: median {late_s[len(late_s) // 2]:.3f} s, at most {late_s[-1]:.3f} s.")
    if found.differences:
        raise typer.Exit(1)
