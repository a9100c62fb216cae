"""The study of SERAI: its runs, what was measured, and where SERAI is better and where worse. No pages here."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from serai.core.statistics import Estimate, estimate
from serai.field.study import (
    AIMS,
    AXES,
    COMPARED,
    DEFAULT,
    METRICS,
    NAME,
    SERAI,
    Case,
    Variant,
    World,
    cases,
    if_worse,
)
from serai.lab import load_scenario, measure, simulate
from serai.scenario.examples import example_folders
from serai.scenario.section import Scenario
from serai.sweeping.plan import Plan, join_plans, plan_comparison

if TYPE_CHECKING:
    from serai.sweeping.results import Sweep

_BOUNDS: Final = ("direct", "community", "epidemic")
_BOUND_SEEDS: Final = 200

Place = tuple[str, str]
"""The names of a world and of a variant."""


def study_plan(seeds: int) -> Plan:
    """Every variant in every world: a point each; what two of them share is run once."""
    plans = []
    for case in cases():
        plan = plan_comparison("field", [_scenario(case)], case.seeds(seeds))
        plans.append(replace(plan, points=({"world": case.world.name, "variant": case.variant.name},)))
    return join_plans(f"paper {NAME}", plans)


def _scenario(case: Case) -> Scenario:
    name = case.world.example
    source = "field" if name is None else example_folders()[name] / f"{name}.toml"
    return load_scenario(source, [f"{key}={value}" for key, value in case.settings], case.variant.protocol)


@dataclass(frozen=True)
class Study:
    """What was measured, by the names of world and variant."""

    seeds: int
    runs: int
    estimates: dict[tuple[str, str, str], Estimate]
    """By world, variant and metric."""
    differences: dict[tuple[str, str, str], Estimate]
    """The variant minus SERAI in the same world, under common seeds."""
    won: dict[Place, dict[str, int]]
    """In how many seeds SERAI is at least as good as the variant, by metric and in `all_at_once`; and their `count`."""
    delays: dict[str, tuple[list[float], list[float]]]
    """By variant, in the built-in world: delays, and the part of all wanted pairs served within each."""
    bounds: dict[str, tuple[Estimate, Estimate]]
    """What contacts alone would allow there: ratio and mean delay."""
    version: str

    def at(self, world: World, variant: Variant, metric: str) -> Estimate:
        """The mean of a metric; it has no value where nothing was run."""
        return self.estimates.get((world.name, variant.name, metric), Estimate(math.nan, math.nan, 0))

    def share_won(self, world: World, variant: Variant, what: str = "all_at_once") -> float:
        """The part of the seeds in which SERAI is at least as good."""
        won = self.won[world.name, variant.name]
        return won[what] / won["count"]


def read_study(sweep: Sweep) -> Study:
    """Bring the small answers home from Spark."""
    from serai.sweeping.aggregate import delays, paired, relabelled, summary, wins

    plan = sweep.plan
    names = [(number, point["world"], point["variant"]) for number, point in enumerate(plan.points)]
    rows = relabelled(sweep.rows, names)
    found = {_key(row): _estimate(row) for row in summary(rows, METRICS).toArrow().to_pylist()}
    differences = {_key(row): _estimate(row) for row in paired(rows, SERAI.name, METRICS).toArrow().to_pylist()}
    won = {(row.pop("point"), row.pop("protocol")): row for row in wins(rows, SERAI.name, AIMS).toArrow().to_pylist()}
    served: dict[str, tuple[list[float], list[float]]] = {}
    main = rows.where((rows["point"] == DEFAULT.name) & rows["protocol"].isin([one.name for one in COMPARED]))
    for row in sorted(delays(main).toArrow().to_pylist(), key=lambda row: (row["protocol"], row["bin"])):
        delay_s, fraction = served.setdefault(row["protocol"], ([], []))
        delay_s.append(row["delay_s"])
        fraction.append(row["fraction"])
    runs = sum(map(len, plan.runs().values()))
    return Study(plan.seeds, runs, found, differences, won, served, _bounds(plan.seeds), sweep.versions["serai"])


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["point"], row["protocol"], row["metric"]


def _estimate(row: dict[str, Any]) -> Estimate:
    mean, error = (math.nan if row[name] is None else row[name] for name in ("mean", "standard_error"))
    return Estimate(mean, error, row["count"])


def _bounds(seeds: int) -> dict[str, tuple[Estimate, Estimate]]:
    """The upper bounds of the first worlds: they depend on the world alone, so the quickest protocol stands in."""
    scenario = load_scenario("field", [], "dg")
    worlds = range(min(seeds, _BOUND_SEEDS))
    found = [measure(simulate(scenario, seed=seed), upper_bound=True).as_dict() for seed in worlds]

    def mean(name: str) -> Estimate:
        return estimate([float(value) for one in found if (value := one[name]) is not None])

    return {name: (mean(f"upper_bound_{name}"), mean(f"upper_bound_{name}_delay_s")) for name in _BOUNDS}


# --- Where it wins and where it loses


@dataclass(frozen=True)
class Loss:
    """A world in which another protocol is better than SERAI in one respect, beyond chance."""

    world: World
    variant: Variant
    metric: str

    @property
    def why(self) -> str:
        """The likely reason."""
        return if_worse(self.world, self.variant, self.metric)


def losses(study: Study) -> list[Loss]:
    """Every one of them: the paired interval leaves out 0."""
    return [
        Loss(world, variant, metric)
        for world in worlds()
        for variant in COMPARED
        if variant is not SERAI
        for metric, sign in AIMS.items()
        if _is_better(sign, study.differences.get((world.name, variant.name, metric)))
    ]


def _is_better(sign: int, difference: Estimate | None) -> bool:
    return difference is not None and sign * difference.mean > difference.half_width()


def worlds() -> list[World]:
    """All worlds of the study, the built-in one first."""
    return [DEFAULT, *(world for axis in AXES for world in axis.worlds)]
