"""From the rows of a sweep, through Spark, to the small summary that a report is made from."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from serai.core.statistics import Estimate
from serai.kinds import AnyKind
from serai.lab import load_scenario, simulate
from serai.log.metrics import Served
from serai.log.run import SimulatedRun
from serai.report.results import Case, DelayCurve, Difference, Point, Results
from serai.scenario.load import builtin_names
from serai.scenario.section import keys_of
from serai.scenario.write import to_toml
from serai.sweeping.plan import Cell, Plan, cell_id
from serai.sweeping.store import source_stamp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from serai.sweeping.results import Sweep

_SEEDS_DRAWN: Final = 30
_MOST_CURVES: Final = 18
_MOST_SERVED: Final = 6
_SERVED_SEEDS: Final = 10
"""Runs are simulated once more to see who was served: the rows of a sweep have only an index of it."""


def gather(sweep: Sweep, title: str = "") -> Results:
    """The summary of a finished sweep: means, paired tests, pooled delays, and a few seeds to be drawn."""
    plan, rows, estimates = sweep.plan, sweep.rows, _estimates(sweep)
    headlines = headlines_of(plan.kind, estimates)
    known = plan.kind.definitions
    instead = [known[name].compare_by for name in headlines]
    compared = [m.name for m in known.values() if m.name in (*headlines, *instead) or m.chapter == "fairness"]
    main = [number for number, point in enumerate(plan.points) if not point][:1] or list(range(len(plan.points)))
    few = rows.where(rows["point"].isin(main))
    dots = _dots(rows, headlines)
    return Results(
        title=title or plan.name,
        points=tuple(_point(plan, number) for number in range(len(plan.points))),
        cases=tuple(Case(cell.point, cell.protocol) for cell in plan.cells),
        definitions=plan.kind.definitions,
        headlines=headlines,
        estimates=estimates,
        seeds=plan.seeds,
        ignored=ignored_in(plan),
        differences=_differences(few, plan, compared),
        delays=_delay_curves(few),
        dots=dots,
        served=_served(sweep, main),
        served_seeds=min(_SERVED_SEEDS, plan.seeds),
        scenarios={Case(cell.point, cell.protocol): to_toml(cell.scenario) for cell in plan.cells},
        setting=_setting(plan),
        provenance=_provenance(sweep),
        shown=_shown(sweep, main[:1], typical_seed(estimates, dots)),  # of one point: they go by their protocols
        outdated=_is_outdated(sweep),
    )


def ignored_in(plan: Plan) -> dict[str, frozenset[str]]:
    """The swept settings that some of the protocols do not have."""
    found: dict[str, frozenset[str]] = {}
    for cell in plan.cells:
        known = keys_of(type(cell.scenario.protocol))
        lacks = frozenset(key for key in plan.points[cell.point] if _of_others(key, known))
        if lacks:
            found[cell.protocol] = found.get(cell.protocol, frozenset()) | lacks
    return found


def _setting(plan: Plan) -> str:
    worlds = {cell.scenario.in_one_line() for cell in plan.cells}
    return worlds.pop() if len(worlds) == 1 else ""


def headlines_of(kind: AnyKind, estimates: Mapping[tuple[Case, str], Estimate]) -> tuple[str, ...]:
    """The metrics of the main table: those of the kind of which anything is known."""
    known = {metric for (_, metric), found in estimates.items() if math.isfinite(found.mean)}
    return tuple(name for name in kind.headlines if name in known)


def _estimates(sweep: Sweep) -> dict[tuple[Case, str], Estimate]:
    return {(Case(*cell), metric): one for cell, found in sweep.estimates.items() for metric, one in found.items()}


def _collected(frame: DataFrame) -> list[dict[str, Any]]:
    """A small frame as rows."""
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows


def _case(row: Mapping[str, Any]) -> Case:
    return Case(row["point"], row["protocol"])


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _point(plan: Plan, number: int) -> Point:
    names = dict.fromkeys(cell.scenario.name for cell in plan.cells if cell.point == number)
    return Point(" ".join(names), {key: str(value) for key, value in plan.points[number].items()})


def _differences(rows: DataFrame, plan: Plan, metrics: list[str]) -> dict[tuple[Case, Case, str], Difference]:
    """Every pair of protocols at a point, tested under common seeds."""
    from serai.sweeping.aggregate import paired_with_each

    return {
        (_case(row), Case(row["point"], row["baseline"]), row["metric"]): Difference(
            row["mean"], _number(row["half_width"]), row["p_value"]
        )
        for row in _collected(paired_with_each(rows, plan.protocols[1:], metrics))
        if row["p_value"] is not None
    }


def _delay_curves(rows: DataFrame) -> dict[Case, DelayCurve]:
    """The pooled delays of the first cases; a page with more curves would say less."""
    from serai.sweeping.aggregate import delays

    if "delay_bin" not in rows.columns:
        return {}
    curves: dict[Case, list[tuple[float, float]]] = {}
    for row in sorted(_collected(delays(rows)), key=lambda row: (row["point"], row["protocol"], row["bin"])):
        curves.setdefault(_case(row), []).append((row["delay_s"], row["fraction"]))
    return {case: _curve(steps) for case, steps in list(curves.items())[:_MOST_CURVES]}


def _curve(steps: Iterable[tuple[float, float]]) -> DelayCurve:
    delay_s, fraction = zip(*steps, strict=True)
    return DelayCurve(delay_s, fraction)


def _dots(rows: DataFrame, metrics: Iterable[str]) -> dict[tuple[Case, str], tuple[float, ...]]:
    """The first seeds of every case, as they are."""
    chosen = list(metrics)
    few = rows.where(rows["seed"] < _SEEDS_DRAWN).select("point", "protocol", "seed", *chosen)
    dots: dict[tuple[Case, str], list[float]] = {}
    for row in sorted(_collected(few), key=lambda row: row["seed"]):
        for metric in chosen:
            if row[metric] is not None:
                dots.setdefault((_case(row), metric), []).append(row[metric])
    return {key: tuple(values) for key, values in dots.items()}


def typical_seed_of(sweep: Sweep) -> int:
    """The seed of a finished sweep that is nearest to its means."""
    estimates = _estimates(sweep)
    return typical_seed(estimates, _dots(sweep.rows, headlines_of(sweep.plan.kind, estimates)))


def typical_seed(
    estimates: Mapping[tuple[Case, str], Estimate], dots: Mapping[tuple[Case, str], tuple[float, ...]]
) -> int:
    """The seed nearest to the means of all cases and metrics, in units of how much each of them varies."""
    whole = [key for key, values in dots.items() if len(values) == max(map(len, dots.values()))]
    far = [0.0] * (len(dots[whole[0]]) if whole else 1)
    for key in whole:
        mean, values = estimates[key].mean, dots[key]
        spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        for seed, value in enumerate(values):
            far[seed] += ((value - mean) / spread) ** 2 if spread > 0 and math.isfinite(spread) else 0.0
    return far.index(min(far))


def _is_outdated(sweep: Sweep) -> bool:
    return sweep.versions.get("sources") != source_stamp()


def _shown(sweep: Sweep, points: list[int], seed: int) -> dict[Case, SimulatedRun]:
    """A run of each main case with its full log, to be drawn; none where serai has changed since the sweep was run."""
    cells = [cell for cell in sweep.plan.cells if cell.point in points]
    if len(cells) > _MOST_SERVED or _is_outdated(sweep):
        return {}
    return {Case(cell.point, cell.protocol): simulate(cell.scenario, None, seed, full_log=True) for cell in cells}


def _served(sweep: Sweep, points: list[int]) -> dict[Case, dict[str, Served]]:
    """Who is served in the main cases; nothing where serai has changed since the sweep was run."""
    cells = [cell for cell in sweep.plan.cells if cell.point in points]
    if sweep.plan.kind.served is None or len(cells) > _MOST_SERVED or _is_outdated(sweep):
        return {}
    return {Case(cell.point, cell.protocol): _served_together(cell, sweep.plan.kind.served) for cell in cells}


def _served_together(cell: Cell, served: Callable[[Any], Mapping[str, Served]]) -> dict[str, Served]:
    """What the first runs of a cell add up to."""
    total: dict[str, Served] = {}
    for seed in range(min(_SERVED_SEEDS, cell.seeds)):
        for name, found in served(simulate(cell.scenario, seed=seed)).items():
            before = total.get(name, Served(0, 0, 0))
            total[name] = Served(*(a + b for a, b in zip(before, found, strict=True)))
    return total


def _provenance(sweep: Sweep) -> dict[str, str]:
    plan = sweep.plan
    return {
        "command": command_of(plan),
        "seeds": f"0 to {plan.seeds - 1}",
        "runs": f"{sum(map(len, plan.runs().values())):,}",
        **sweep.versions,
        "Python": platform.python_version(),
    }


def command_of(plan: Plan) -> str:
    """The command that gives these numbers again."""
    seeds = f"--seeds {plan.seeds}"
    if plan.name.startswith("paper ") or plan.name == "demo":
        return f"serai {plan.name} {seeds}"
    axes = [f'--set "{axis.key}={",".join(str(value) for value in axis.values)}"' for axis in plan.axes]
    source = plan.name if _is_as_built_in(plan) else "scenario.toml"
    where = "" if source == plan.name else " (scenario.toml: the first scenario of this report, saved)"
    return " ".join([f"serai sweep {source}", *axes, f"--protocols {','.join(plan.protocols)}", seeds]) + where


def _is_as_built_in(plan: Plan) -> bool:
    """Whether the first cell is what the built-in scenario of that name gives with the swept settings alone."""
    if plan.name not in builtin_names():
        return False
    cell = plan.cells[0]
    known = keys_of(type(cell.scenario.protocol))
    changes = {key: value for key, value in plan.points[0].items() if not _of_others(key, known)}
    return cell_id(load_scenario(plan.name, changes, cell.protocol)) == cell.id


def _of_others(key: str, known: Container[str]) -> bool:
    """Whether a swept setting is one of another protocol."""
    table, _, setting = key.partition(".")
    return table == "protocol" and setting not in known
