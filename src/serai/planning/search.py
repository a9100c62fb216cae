"""The race on Spark: a round is one job with the runs that are missing. Interrupted, it goes on where it was.

Decisions follow from the rows alone, so there is nothing to keep but the rows: whoever gives the same command again
gets the same answer, and only what is missing is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from serai.core.statistics import Estimate, estimate
from serai.planning.bounds import bounds_of
from serai.planning.deployments import Deployment, Search, nominal_scenarios, plan_search, with_placed
from serai.planning.goals import Columns, Goal, Value, columns_of
from serai.planning.race import Result, Round, race
from serai.planning.relays import FIRST_SEED, RUNS, Placement, place_relays, rows_by_point, said_step
from serai.scenario.section import Scenario
from serai.spark.session import running_session, spark_session
from serai.sweeping.plan import Plan
from serai.sweeping.run import Progress, in_rounds
from serai.sweeping.store import Store

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

NEIGHBOUR_RUNS: Final = 80
"""At least so many common seeds tell what one more or one less would change."""


@dataclass(frozen=True)
class Change:
    """What another value of one setting would change in each goal, everything else as it is: paired differences."""

    key: str
    deployment: int
    cost: float
    differences: tuple[Estimate, ...]


@dataclass(frozen=True)
class Found:
    """The answer to a search, and the rows that it rests on."""

    search: Search
    result: Result
    values: Mapping[int, tuple[Value, ...]]
    """What the runs of each deployment say about each goal."""
    changes: tuple[Change, ...]
    bounds: tuple[float | None, ...]
    """What no protocol could beat in the deployment that is shown, for each goal that is a share of readings."""
    folder: Path

    @property
    def shown(self) -> Deployment:
        """The deployment that the answer is about: the named one, else the guess, else the nearest."""
        return self.search.deployments[_shown(self.result)]

    @property
    def nearest(self) -> int:
        """The deployment whose worst goal is the least far from being met."""
        return _nearest(self.result)


def _shown(result: Result) -> int:
    number = result.named if result.named is not None else result.guess
    return number if number is not None else _nearest(result)


def _nearest(result: Result) -> int:
    return max(result.standings, key=lambda one: (one.margin, -one.cost, -one.number)).number


def plan(
    scenario: str | Path | Scenario,
    *,
    out: str | Path,
    goal: Sequence[str] = (),
    cost: Mapping[str, Any] | None = None,
    vary: Mapping[str, Any] | None = None,
    at_most: int | None = None,
    certain: bool = False,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> Found:
    """Find the cheapest deployment that meets all goals, on Spark; what is not said here is taken from [plan].

    `vary={"subscribers.count": "2..8"}`, `cost={"subscribers": 400}`. Runs are kept in the folder `out`, where an
    unfinished plan is resumed.
    """
    search = plan_search(scenario, goal=goal, cost=cost, vary=vary, at_most=at_most, certain=certain)
    Store(out).check(search.sweep)
    return find_deployment(search, out, spark or running_session() or spark_session(), progress)


def find_deployment(
    search: Search,
    folder: str | Path,
    spark: SparkSession,
    progress: Progress | None = None,
    on_round: Callable[[Round], None] = lambda _: None,
) -> Found:
    """Race the deployments of a search; runs are kept in the folder."""
    tell = progress or Progress()
    with in_rounds(search.sweep, folder, spark, progress) as run:
        if search.relays is not None:
            search = _with_relays(search, run, tell)
        rows: dict[int, Columns] = {}
        seeds = [0] * len(search.deployments)

        def sample(wanted: Mapping[int, int]) -> Mapping[int, Columns]:
            for number, runs in wanted.items():
                seeds[number] = max(seeds[number], runs)
            rows.update(_by_deployment(run(search.sweep.with_seeds_of_cells(seeds)), search))
            return rows

        result = race([one.cost for one in search.deployments], search.goals, sample, search.limits, on_round)
        values = {one.number: _values(search.goals, rows[one.number], one.runs) for one in result.standings}
        chosen = _shown(result)
        near = neighbours(search, chosen)
        sample(dict.fromkeys([chosen, *near], max(NEIGHBOUR_RUNS, result.standings[chosen].runs)))
        changes = tuple(_change(search, rows, chosen, number, key) for number, key in near.items())
    bounds = bounds_of(search.goals, search.deployments[_shown(result)].scenario)
    return Found(search, result, values, changes, bounds, Path(folder))


def _with_relays(search: Search, run: Callable[[Plan], pa.Table], progress: Progress) -> Search:
    """Place relays, and let their number be one more choice."""
    assert search.relays is not None
    names = columns_of(search.goals)

    def simulate(scenarios: Sequence[Scenario]) -> list[Columns]:
        seeds = range(FIRST_SEED, FIRST_SEED + RUNS)
        table = run(search.sweep.over([({}, scenario) for scenario in scenarios], seeds))
        return rows_by_point(table, names)

    def tell(one: Placement) -> None:
        progress.on_notice(said_step(one))

    placed = place_relays(nominal_scenarios(search), search.goals, search.relays, simulate, tell)
    return with_placed(search, placed)


def _values(goals: Sequence[Goal], rows: Columns, runs: int) -> tuple[Value, ...]:
    """What the first runs say about each goal."""
    first = {name: column[:runs] for name, column in rows.items()}
    return tuple(goal.value(first) for goal in goals)


def _by_deployment(table: pa.Table, search: Search) -> dict[int, Columns]:
    """The rows of each deployment in the order of their seeds; the table is sorted by point, protocol and seed."""
    names = columns_of(search.goals)
    columns = {name: table[name].to_numpy().astype(np.float64) for name in names}
    point, protocol = table["point"].to_numpy(), np.array(table["protocol"].to_pylist(), dtype=object)
    found: dict[int, Columns] = {}
    for number, cell in enumerate(search.sweep.cells):
        rows = np.flatnonzero((point == cell.point) & (protocol == cell.protocol))
        found[number] = {name: values[rows] for name, values in columns.items()}
    return found


def neighbours(search: Search, chosen: int) -> dict[int, str]:
    """The deployments that differ from one in a single setting, by a single step, and in which one."""
    plan, cells = search.sweep, search.sweep.cells
    here = cells[chosen]
    near: dict[int, str] = {}
    for number, cell in enumerate(cells):
        apart = {
            axis.key: axis.values.index(plan.points[cell.point][axis.key])
            - axis.values.index(plan.points[here.point][axis.key])
            for axis in plan.axes
        }
        steps = [key for key, step in apart.items() if step]
        if cell.protocol != here.protocol and not steps:
            near[number] = "protocol"
        elif cell.protocol == here.protocol and len(steps) == 1 and abs(apart[steps[0]]) == 1:
            near[number] = steps[0]
    return near


def _change(search: Search, rows: Mapping[int, Columns], chosen: int, other: int, key: str) -> Change:
    differences = tuple(_difference(goal, rows[chosen], rows[other]) for goal in search.goals)
    return Change(key, other, search.deployments[other].cost - search.deployments[chosen].cost, differences)


def _difference(goal: Goal, here: Columns, there: Columns) -> Estimate:
    """The mean difference of the goal's number between two deployments, over the seeds that both have."""
    runs = min(len(next(iter(here.values()))), len(next(iter(there.values()))))
    per_run = [goal.per_run({name: values[:runs] for name, values in rows.items()}) for rows in (here, there)]
    return estimate((per_run[1] - per_run[0]).tolist())
