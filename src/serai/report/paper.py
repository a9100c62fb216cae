"""The sweep that reproduces papers: which runs it takes, and where each of their set-ups stands in a sweep's plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from serai.field.paper import ABLATIONS, PAPERS, SILENT, ablation_setup, setups
from serai.lab import load_scenario
from serai.papers.exhibits import Setup
from serai.report.results import Case
from serai.scenario.section import Scenario
from serai.sweeping.plan import Plan, cell_id, join_plans, plan_comparison

BASE: Final = "papers"
"""What folders of reproductions have in common: `serai paper all` goes on where `serai paper ced` ended."""


def paper_plan(papers: Sequence[str], seeds: int, ablate: bool = False) -> Plan:
    """All runs that these papers take, each set-up once; with `ablate` also the other readings of the open points."""
    wanted = setups(tuple(papers))
    if ablate:
        wanted += _ablations(papers) + setups(tuple(papers), (SILENT,))
    plans, seen = [], set()
    for (_, settings), together in _by_point(wanted).items():
        ordered = sorted(together, key=lambda found: found.protocol)
        scenarios = {cell_id(scenario): scenario for scenario in map(scenario_of, ordered)}
        new = {name: scenario for name, scenario in scenarios.items() if name not in seen}
        seen |= set(new)
        if new:
            plan = plan_comparison("paper", list(new.values()), seeds)
            plans.append(replace(plan, points=(dict(settings),)))
    return join_plans(paper_name(papers, ablate), plans, base=BASE)


def paper_name(papers: Sequence[str], ablate: bool) -> str:
    """How the reproduction of these papers is called on the command line."""
    return f"paper {'all' if set(papers) == set(PAPERS) else papers[0]}{' --ablate' if ablate else ''}"


def _ablations(papers: Iterable[str]) -> list[Setup]:
    protocols = {*papers, "dg"}
    return [ablation_setup(row, name) for row in ABLATIONS for name in row.protocols if name in protocols]


def _by_point(wanted: Iterable[Setup]) -> dict[tuple[bool, tuple[tuple[str, str], ...]], list[Setup]]:
    """Set-ups that differ in their protocols alone, together: in the papers' own scenarios, then in the common one."""
    points: dict[tuple[bool, tuple[tuple[str, str], ...]], list[Setup]] = {}
    for found in wanted:
        points.setdefault((found.scenario != found.protocol, found.settings), []).append(found)
    return dict(sorted(points.items(), key=lambda item: item[0][0]))


def scenario_of(found: Setup) -> Scenario:
    """The scenario of a set-up."""
    return load_scenario(found.scenario, [f"{key}={value}" for key, value in found.settings], found.protocol)


def finder(plan: Plan) -> Callable[[Setup], Case | None]:
    """Where a set-up stands in a plan, whatever it is called there; None if the plan does not have it."""
    places = {cell.id: Case(cell.point, cell.protocol) for cell in reversed(plan.cells)}

    @cache
    def case_of(found: Setup) -> Case | None:
        return places.get(cell_id(scenario_of(found)))

    return case_of
