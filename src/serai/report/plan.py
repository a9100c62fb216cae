"""The page of a plan: the answer, the table of the best, cost against each goal, weak spots, and all of it as CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from serai.core.statistics import Estimate
from serai.kinds import kind_of
from serai.lab import pairs_of, simulate
from serai.log.run import SimulatedRun
from serai.log.svg import ink
from serai.planning.answer import explanation, headline, money, said_value
from serai.planning.deployments import Deployment
from serai.planning.goals import Goal, Value
from serai.planning.search import Found
from serai.report.figures import Picture
from serai.report.page import write_page
from serai.report.panel import open_panel
from serai.report.section import Block, Section
from serai.report.tables import Cell, Table, estimated, plain, text
from serai.report.wording import Scale, in_words
from serai.scenario.write import to_toml
from serai.sweeping.store import write_aside

_BEST: Final = 10
_BELOW: Final = 2
_WEAKEST: Final = 10
_WEAK_RUNS: Final = 10
_MARKS: Final = {"meets": "met", "misses": "missed", "open": "open", "dearer": "not needed"}


def write_plan_report(found: Found) -> Path:
    """Write the page, its tables and answer.json into the plan's folder; the path of the page."""
    answer = json.dumps(answer_json(found), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_aside(found.folder / "answer.json", answer.encode())
    goals = " · ".join(goal.text for goal in found.search.goals)
    return write_page(found.folder, f"Plan: {found.search.name}", goals, _chapters(found))


def _chapters(found: Found) -> list[Section]:
    shown = found.shown
    runs = [simulate(shown.scenario, seed=seed) for seed in range(_WEAK_RUNS)]
    return [
        Section("answer", "The answer", (headline(found), *explanation(found))),
        Section("best", "The best of them", tables=(deployments_table(found),), pictures=_fronts(found)),
        _changes(found),
        _where(runs),
        _no_protocol_beats(shown),
        _everything(found),
        _given_and_drawn(found, shown),
    ]


# --- Tables


def deployments_table(found: Found) -> Table:
    """The cheapest that were not thrown out, and the nearest below them that were."""
    search, standings = found.search, found.result.standings
    by_cost = sorted(search.deployments, key=lambda one: (one.cost, -standings[one.number].margin))
    kept = [one for one in by_cost if standings[one.number].verdict != "misses"][:_BEST]
    least = kept[0].cost if kept else math.inf
    below = [one for one in by_cost if standings[one.number].verdict == "misses" and one.cost <= least]
    below = sorted(below, key=lambda one: standings[one.number].margin)[-_BELOW:]
    chosen = sorted(
        {one.number for one in [*below, *kept]}, key=lambda number: (search.deployments[number].cost, number)
    )
    return _table_of(found, "best", "The cheapest that may do, and the nearest below them that do not.", chosen)


def terminal_table(found: Found) -> Table:
    """The same without intervals, goals by their numbers: narrow enough for a terminal."""
    table = deployments_table(found)
    goals = range(2, 2 + len(found.search.goals))
    heads = tuple(f"({place - 1})" if place in goals else head for place, head in enumerate(table.heads))
    rows = tuple(
        tuple(
            replace(cell, text=cell.text.partition(" (")[0]) if place in goals else cell
            for place, cell in enumerate(row)
        )
        for row in table.rows
    )
    return replace(table, heads=heads, rows=rows)


def _table_of(found: Found, name: str, caption: str, numbers: Sequence[int]) -> Table:
    search, standings = found.search, found.result.standings
    heads = ("deployment", "cost", *(goal.text for goal in search.goals), "goals", "runs")
    rows = tuple(
        (
            text(str(search.deployments[number]), strong=number == found.result.named),
            plain(search.deployments[number].cost, f"{search.deployments[number].cost:,.10g}"),
            *(_value_cell(goal, value) for goal, value in zip(search.goals, found.values[number], strict=True)),
            text(_MARKS[standings[number].verdict]),
            plain(standings[number].runs, f"{standings[number].runs:,}"),
        )
        for number in numbers
    )
    return Table(name, caption, heads, rows)


def _value_cell(goal: Goal, value: Value) -> Cell:
    return Cell(said_value(goal, value), value.mean if math.isfinite(value.mean) else None, right=True)


def _everything(found: Found) -> Section:
    every = _table_of(
        found, "deployments", "Every deployment that was looked at.", range(len(found.search.deployments))
    )
    rounds = Table(
        "rounds",
        "The race, round by round.",
        ("round", "runs so far", "meet all goals", "miss a goal", "dearer", "still open"),
        tuple(
            tuple(
                plain(number, f"{number:,}")
                for number in (one.number, one.runs, one.meeting, one.missing, one.dearer, one.still_open)
            )
            for one in found.result.rounds
        ),
    )
    return Section("everything", "All deployments, and the race", tables=(every, rounds))


def _changes(found: Found) -> Section:
    title = "One more, one less"
    if not found.changes:
        return Section("changes", title, absent="no deployment differs from it in a single step")
    search = found.search
    rows = tuple(
        (
            text(str(search.deployments[change.deployment])),
            plain(change.cost, f"{change.cost:+,.10g}"),
            *(_difference(goal, one) for goal, one in zip(search.goals, change.differences, strict=True)),
        )
        for change in found.changes
    )
    heads = ("instead", "cost", *(_asked(goal) for goal in search.goals))
    caption = "What a single other choice would change, over the same worlds (differences with 95 % intervals)."
    return Section("changes", title, tables=(Table("sensitivity", caption, heads, rows),))


def _asked(goal: Goal) -> str:
    """What a goal is about, without its bound."""
    return goal.text.partition(" >=")[0].partition(" <=")[0]


def _difference(goal: Goal, found: Estimate) -> Cell:
    in_points = goal.share is not None or not isinstance(goal.measure, str)
    return estimated(found, Scale("", "points" if in_points else "", 100.0 if in_points else 1.0))


# --- Where it happens


def _where(runs: Sequence[SimulatedRun]) -> Section:
    """A run of the deployment as a picture, and the sensors whose events fare worst."""
    caption = "One run of it: where nodes stand and go. The colour: the share of its events that arrived."
    picture = Picture("map", runs[0].plot().svg, caption)
    stand_still = all(_places(run) == _places(runs[0]) for run in runs[1:])
    if not stand_still:
        remark = "Positions are drawn anew in every run, so that no sensor is weak by its place."
        return Section("where", "Where it happens", (remark,), pictures=(picture,))
    return Section("where", "Where it happens", tables=(_weak_spots(runs),), pictures=(picture,))


def _places(run: SimulatedRun) -> list[Any]:
    nodes = run.tables["nodes"]
    return [nodes["x_m"].to_pylist(), nodes["y_m"].to_pylist()]


def _weak_spots(runs: Sequence[SimulatedRun]) -> Table:
    nodes = runs[0].tables["nodes"]
    wanted, delivered, passed = (np.zeros(nodes.num_rows) for _ in range(3))
    for run in runs:
        pairs = pairs_of(run)
        source = run.tables["events"]["node"].to_numpy()[: len(pairs.wanted)]
        wanted += np.bincount(source, pairs.wanted, nodes.num_rows)
        delivered += np.bincount(source[pairs.delivered], minlength=nodes.num_rows)
        for end in ("a", "b"):
            passed += np.bincount(run.tables["contacts"][end].to_numpy(), minlength=nodes.num_rows) / len(runs)
    share = np.divide(delivered, wanted, out=np.ones(nodes.num_rows), where=wanted > 0)
    weakest = np.argsort(share, kind="stable")[:_WEAKEST]
    rows = tuple(
        (
            text(str(nodes["name"][int(node)].as_py())),
            *(
                plain(nodes[axis][int(node)].as_py(), f"{nodes[axis][int(node)].as_py():.0f}")
                for axis in ("x_m", "y_m")
            ),
            plain(100 * share[node], f"{100 * share[node]:.1f}"),
            plain(passed[node], f"{passed[node]:.1f}"),
            text("nobody passes" if passed[node] == 0 else ""),
        )
        for node in weakest
    )
    caption = f"The sensors whose events fare worst, over {len(runs)} runs."
    heads = ("sensor", "x, m", "y, m", "arrived, % of wanted", "contacts in a run", "why")
    return Table("weak_spots", caption, heads, rows)


def _no_protocol_beats(shown: Deployment) -> Section:
    title = "What no protocol could beat"
    kind = kind_of(shown.scenario)
    if "upper_bound" not in kind.measure_options:
        return Section("bound", title, absent="not known for this kind of network")
    found = [kind.measure(simulate(shown.scenario, seed=seed), upper_bound=True) for seed in range(3)]
    best = float(np.mean([one.upper_bound_epidemic for one in found]))
    got = float(np.mean([one.delivery_ratio for one in found]))
    said = (
        f"With these sensors and ways at most {100 * best:.1f} % of what is wanted can arrive, whatever the protocol"
        f" (3 runs, to their very end); {100 * got:.1f} % does."
    )
    return Section("bound", title, (said,))


def _given_and_drawn(found: Found, shown: Deployment) -> Section:
    runs = in_words(found.result.runs, "run")
    remarks = (
        f"Sure means: about the simulated world, whose movements, events and wishes are drawn ({runs}, seeds from 0 on;"
        " all deployments see the same seeds). It says nothing about what the model leaves out.",
        "Readings born so late that their time ends after the run are not counted.",
        "Prices: " + ", ".join(f"{name} {price}" for name, price in found.search.prices.items()) + ".",
    )
    return Section(
        "scenario", "What is given and what is drawn", remarks, blocks=(Block(str(shown), to_toml(shown.scenario)),)
    )


# --- Cost against each goal


_COLOURS: Final = {"meets": "p2", "misses": "p1", "open": "p4", "dearer": "alone"}
_CHOSEN_RADIUS, _RADIUS = 6.0, 3.5


def _fronts(found: Found) -> tuple[Picture, ...]:
    return tuple(_front(found, place, goal) for place, goal in enumerate(found.search.goals))


def _front(found: Found, place: int, goal: Goal) -> Picture:
    """Cost against what a goal asks for: every deployment with its interval, the goal as a line."""
    scale = 100.0 if goal.share is not None or not isinstance(goal.measure, str) else 1.0
    bound = scale * (goal.bound if goal.share is None else goal.share)
    known = {number: value[place] for number, value in found.values.items() if math.isfinite(value[place].mean)}
    heights = [scale * end for value in known.values() for end in (value.low, value.high) if math.isfinite(end)]
    costs = [one.cost for one in found.search.deployments]
    panel = open_panel(
        [], (_roomy(costs), _roomy([bound, *heights])), ("cost", _asked(goal) + (", %" if scale > 1 else ""))
    )
    drawing, ends = panel.drawing, (panel.across.low, panel.across.high)
    drawing.line([panel.point(cost, bound) for cost in ends], stroke=ink("soft"), stroke_dasharray="5 4")
    drawing.text(drawing.width, panel.up.at(bound) - 4, f"goal {bound:g}", text_anchor="end")
    for number, value in known.items():
        deployment, verdict = found.search.deployments[number], found.result.standings[number].verdict
        colour, mean = ink(_COLOURS[verdict]), scale * value.mean
        interval = [scale * end if math.isfinite(end) else mean for end in (value.low, value.high)]
        said = f"{deployment}, {money(deployment.cost)}: {said_value(goal, value)}, {_MARKS[verdict]}"
        drawing.line([panel.point(deployment.cost, end) for end in interval], stroke=colour, stroke_opacity=0.5)
        radius = _CHOSEN_RADIUS if number == found.result.named else _RADIUS
        drawing.circle(*panel.point(deployment.cost, mean), radius, said, fill=colour)
    caption = f"Cost against {goal.text}. Green meets all goals, red misses one, amber is open, grey is dearer."
    return Picture(f"cost-{place + 1}", drawing.svg(f"{caption} Large: the chosen one."), caption)


def _roomy(numbers: Sequence[float]) -> tuple[float, float]:
    """From the least to the most, with a little room at both ends."""
    room = 0.06 * (max(numbers) - min(numbers)) or 0.5
    return min(numbers) - room, max(numbers) + room


# --- As JSON


def answer_json(found: Found) -> dict[str, Any]:
    """The answer for other programs."""
    search, result = found.search, found.result
    named = None if result.named is None else search.deployments[result.named]
    return {
        "ending": result.ending,
        "named": named and named.settings,
        "cost": named and named.cost,
        "guess": None if result.guess is None else search.deployments[result.guess].settings,
        "open_cheaper": [search.deployments[number].settings for number in result.open_cheaper],
        "sentence": " ".join([headline(found), *explanation(found)]),
        "goals": [goal.text for goal in search.goals],
        "confidence": search.limits.confidence,
        "runs": result.runs,
        "deployments": len(search.deployments),
    }
