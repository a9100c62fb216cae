"""An emulation and the simulation of the same, made and compared."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from serai.core.stopping import removed_if_stopped
from serai.log.folder import check_out
from serai.log.run import write_run
from serai.node.emulation.real import Conductor, check_real
from serai.node.emulation.virtual import run_nodes
from serai.node.emulation.world import as_run, check, in_milliseconds, recorded
from serai.opportunistic.engine.state import Outcome
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import Given, given_in, simulate_given, simulate_opportunistic

_UNORDERED = ("after",)  # columns that tell of the order among nodes at one instant, which no node knows


class Compared(NamedTuple):
    """An emulation beside the simulation."""

    emulated: OpportunisticRun
    simulated: OpportunisticRun
    differences: tuple[str, ...]  # the first of each table that differs
    lateness_s: tuple[float, ...] = ()  # by the clock: how much later each delivery was, in seconds of the scenario


def emulate(
    scenario: OpportunisticScenario, seed: int, out: Path, *, speed: float | None = None, processes: bool = False
) -> Compared:
    """Emulate a scenario and simulate the same, into a new folder: stores of all nodes, and both runs.

    `speed`: over TCP and by the clock, so many seconds of the scenario in one; None: joined in memory, at once.
    """
    check(scenario)
    check_out(out)
    given = in_milliseconds(given_in(simulate_opportunistic(scenario, seed)), scenario.duration_s)
    if speed is not None:
        check_real(given)
    try:
        with removed_if_stopped(out):
            out.mkdir(parents=True, exist_ok=True)
            return _emulated(scenario, given, seed, out, speed, processes)
    except BaseException:  # half of a comparison is none, whatever ended it; the folder was new or empty
        shutil.rmtree(out, ignore_errors=True)
        raise


def _emulated(
    scenario: OpportunisticScenario, given: Given, seed: int, out: Path, speed: float | None, processes: bool
) -> Compared:
    simulated = simulate_given(scenario, given, seed, full_log=True)
    if speed is None:
        emulated = run_nodes(scenario, given, seed, out / "nodes")
        found = Compared(emulated, simulated, tuple(differences(emulated, simulated)))
    else:
        conductor = Conductor(scenario, given, out / "nodes", speed, processes)
        found = by_the_clock(scenario, given, seed, simulated, conductor)
    write_run(simulated, out / "simulated")
    write_run(found.emulated, out / "emulated")
    return found


def by_the_clock(
    scenario: OpportunisticScenario, given: Given, seed: int, simulated: OpportunisticRun, conductor: Conductor
) -> Compared:
    """Emulate by the clock, beside a simulation of the same."""
    asyncio.run(conductor.conduct())
    found = recorded(scenario, given, conductor.stores())
    here, there = _deliveries(found.outcome, found.marks), _deliveries(simulated.outcome)
    lateness_s = sorted(here[one] - there[one] for one in here.keys() & there.keys())
    said = [*only(there, here, "simulated"), *only(here, there, "emulated")]
    return Compared(as_run(scenario, given, seed, found), simulated, tuple(said), tuple(lateness_s))


def _deliveries(outcome: Outcome, numbers: Sequence[int] | None = None) -> dict[tuple[int, int], float]:
    """When each node got each bundle that it wanted; `numbers`: of bundles in the scenario."""
    bundles = outcome.delivery_bundle.tolist()
    rows = bundles if numbers is None else [numbers[bundle] for bundle in bundles]
    nodes, times_s = outcome.delivery_node.tolist(), outcome.delivery_s.tolist()
    return {(row, node): at_s for row, node, at_s in zip(rows, nodes, times_s, strict=True)}


def only(ours: Mapping[tuple[int, int], float], theirs: Mapping[tuple[int, int], float], where: str) -> Iterator[str]:
    """The deliveries that are on one side alone, with the first of them."""
    alone = sorted((at_s, one) for one, at_s in ours.items() if one not in theirs)
    if alone:
        at_s, (bundle, node) = alone[0]
        first = f"the first: bundle {bundle} to node {node} at {at_s:.3f} s"
        yield f"deliveries: {len(alone)} of {len(ours)} only {where}, {first}"


def differences(emulated: OpportunisticRun, simulated: OpportunisticRun) -> Iterator[str]:
    """The first difference of each table, and of the counts."""
    for name, table in simulated.tables.items():
        columns = [column for column in table.column_names if column not in _UNORDERED]
        here, there = (sorted(_rows(run.tables[name], columns), key=repr) for run in (emulated, simulated))
        if here != there:
            pairs = zip([*here, None], [*there, None], strict=False)
            row, (ours, theirs) = next((row, pair) for row, pair in enumerate(pairs) if pair[0] != pair[1])
            said = f"emulated {_said(columns, ours)}; simulated {_said(columns, theirs)}"
            yield f"{name}, row {row} of {len(there)}: {said}"
    for name, count in simulated.counts().items():
        if emulated.counts()[name] != count:
            yield f"{name}: emulated {emulated.counts()[name]}, simulated {count}"


def _rows(table: Any, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    read: list[list[Any]] = [table[column].to_pylist() for column in columns]
    return list(zip(*[[_plain(value) for value in column] for column in read], strict=True))


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _said(columns: Sequence[str], row: tuple[Any, ...] | None) -> str:
    return "nothing" if row is None else ", ".join(f"{name} {value}" for name, value in zip(columns, row, strict=True))
