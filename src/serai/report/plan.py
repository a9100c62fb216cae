"""The page of a plan: the answer, the table of the best, cost against each goal, weak spots, and all of it as CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from serai.core.statistics import Estimate
from serai.field.log import FieldRun
from serai.field.sections import FieldScenario
from serai.kinds import kind_of
from serai.log.run import SimulatedRun
from serai.log.svg import ink
from serai.planning.answer import apart, explanation, headline, money, said_value
from serai.planning.bounds import BOUND_SEEDS
from serai.planning.deployments import Deployment
from serai.planning.goals import Goal, Value
from serai.planning.relays import RUNS
from serai.planning.search import Found
from serai.report.figures import Picture
from serai.report.maps import field_map
from serai.report.page import write_page
from serai.report.panel import open_panel, whisker
from serai.report.section import Block, Section
from serai.report.tables import Cell, Table, estimated, plain, text, to_text
from serai.report.weak_spots import WeakSpot, deadline_of, weak_spots, weak_table
from serai.report.wording import Scale, in_words
from serai.scenario.section import Scenario
from serai.scenario.write import to_toml
from serai.sweeping.store import write_aside

_BEST: Final = 10
_BELOW: Final = 2
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
    logged = "full_log" in kind_of(shown.scenario).simulate_options
    runs = [kind_of(shown.scenario).simulate(shown.scenario, seed, full_log=logged) for seed in range(_WEAK_RUNS)]
    spots, weak = _weak(found, runs)
    title = found.search.base.title
    said = (*explanation(found), *((title,) if title else ()))
    return [
        Section("answer", "The answer", said, lead=headline(found)),
        Section("map", "Where it is, and what it costs", pictures=(_map(runs[0], spots), *_fronts(found))),
        Section("best", "The best of them", tables=(deployments_table(found),)),
        _changes(found),
        weak,
        _relays(found),
        _no_protocol_beats(found),
        _race(found),
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
    return _table_of(
        found,
        "best",
        "The cheapest deployments that may meet the goals, and the nearest cheaper ones that do not.",
        chosen,
    )


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


def _race(found: Found) -> Section:
    rounds = Table(
        "rounds",
        "The race, round by round: few runs of every deployment, more of those that are still undecided.",
        ("round", "runs so far", "meet all goals", "miss a goal", "dearer", "still open"),
        tuple(
            tuple(
                plain(number, f"{number:,}")
                for number in (one.number, one.runs, one.meeting, one.missing, one.dearer, one.still_open)
            )
            for one in found.result.rounds
        ),
    )
    caption = "Every deployment that was looked at."
    every = _table_of(found, "every", caption, range(len(found.search.deployments)))
    block = Block(f"All {len(every.rows)} deployments", to_text(every))
    files = (_deployments_file(found), _goals_file(found), _front_file(found))
    return Section("race", "All deployments, and the race", tables=(rounds,), blocks=(block,), files=files)


def _deployments_file(found: Found) -> Table:
    search = found.search
    keys = list(dict.fromkeys(key for one in search.deployments for key in one.settings))
    rows = tuple(
        (
            plain(one.number, f"{one.number}"),
            *(text(str(one.settings.get(key, ""))) for key in keys),
            plain(one.cost, f"{one.cost:.10g}"),
            text(standing.verdict),
            text("" if standing.decided_in is None else f"{standing.decided_in}"),
            plain(standing.runs, f"{standing.runs}"),
        )
        for one, standing in zip(search.deployments, found.result.standings, strict=True)
    )
    return Table("deployments", "", ("id", *keys, "cost", "verdict", "round", "runs"), rows)


def _goals_file(found: Found) -> Table:
    rows = tuple(
        (
            plain(standing.number, f"{standing.number}"),
            text(goal.text),
            plain(standing.runs, f"{standing.runs}"),
            *(_exact(number) for number in (value.mean, value.low, value.high)),
            text(goal.side(value)),
            _exact(value.margin),
        )
        for standing in found.result.standings
        for goal, value in zip(found.search.goals, found.values[standing.number], strict=True)
    )
    return Table("goals", "", ("id", "goal", "runs", "value", "low", "high", "side", "margin_sd"), rows)


def _front_file(found: Found) -> Table:
    search = found.search
    rows = tuple(
        (
            text(goal.text),
            plain(number, f"{number}"),
            text(str(search.deployments[number])),
            _exact(search.deployments[number].cost),
            *(_exact(one) for one in (value.mean, value.low, value.high)),
        )
        for place, goal in enumerate(search.goals)
        for number in front(found, place)
        for value in (found.values[number][place],)
    )
    return Table("front", "", ("goal", "id", "deployment", "cost", "value", "low", "high"), rows)


def _exact(number: float) -> Cell:
    return Cell(f"{number:.10g}", number if math.isfinite(number) else None, right=True)


def _changes(found: Found) -> Section:
    title = "One more, one less"
    if not found.changes:
        return Section("changes", title, absent="no deployment differs from it in a single step")
    search = found.search
    rows = tuple(
        (
            text(apart(search.deployments[change.deployment], found.shown)),
            plain(change.cost, f"{change.cost:+,.10g}"),
            *(_difference(goal, one) for goal, one in zip(search.goals, change.differences, strict=True)),
        )
        for change in found.changes
    )
    heads = ("instead", "cost", *(_asked(goal) for goal in search.goals))
    caption = f"{found.shown}: what a single other choice would change, over the same worlds (with 95 % intervals)."
    return Section("changes", title, tables=(Table("sensitivity", caption, heads, rows),))


def _asked(goal: Goal) -> str:
    """What a goal is about, without its bound."""
    return goal.text.partition(" >=")[0].partition(" <=")[0]


def _difference(goal: Goal, found: Estimate) -> Cell:
    return estimated(found, Scale("", "points" if goal.of_shares else "", 100.0 if goal.of_shares else 1.0))


# --- Where it happens


def _map(run: SimulatedRun, spots: Sequence[WeakSpot]) -> Picture:
    """A run of the deployment as a picture, with its weak spots."""
    if isinstance(run, FieldRun):
        drawn = field_map(run, "map", [spot.sensor for spot in spots])
        remark = " Numbers mark where readings come late or never: see below." if spots else ""
        relays = " Squares: relays." if run.scenario.sensors.relays else ""
        return replace(drawn, caption=f"{drawn.caption}{relays}{remark}")
    return Picture("map", run.plot().svg, "One run of it: where nodes stand and move.")


def _weak(found: Found, runs: Sequence[SimulatedRun]) -> tuple[list[WeakSpot], Section]:
    """The sensors whose events fare worst, and the chapter on them."""
    title, within_s = "Weak spots", deadline_of(found.search.goals)
    if any(_places(run) != _places(runs[0]) for run in runs[1:]):
        return [], Section("weak", title, absent="positions are drawn anew in every run")
    spots = weak_spots(runs, within_s)
    if not spots:
        return [], Section("weak", title, ("The events of every sensor nearly always arrive.",))
    return spots, Section("weak", title, tables=(weak_table(runs, spots, within_s),))


def _places(run: SimulatedRun) -> list[Any]:
    nodes = run.tables["nodes"]
    return [nodes["x_m"].to_pylist(), nodes["y_m"].to_pylist()]


def _relays(found: Found) -> Section:
    """Where relays were placed, in which order, and what each was worth."""
    title = "Where relays help most"
    if found.search.relays is None:
        return Section("relays", title, absent="none were asked for")
    keys = list(dict.fromkeys(key for one in found.search.placed for key in one.settings))
    rows = tuple(
        (
            *(text(str(placement.settings.get(key, ""))) for key in keys),
            plain(number, f"{number}") if step.taken else text("not taken"),
            text(", ".join(f"{x:.0f} / {y:.0f}" for x, y in step.places)),
            text(_asked(step.goal)),
            estimated(step.gain, Scale("", "points", 100.0)),
        )
        for placement in found.search.placed
        for number, step in enumerate(placement.steps, start=1)
    )
    caption = (
        "Relays in the order in which they were placed, before the race. Gain: in the share of readings that the goal"
        f" asks for, over {RUNS} worlds, with its 95 % interval; a place is taken while that is above 0."
    )
    heads = (*(key.rpartition(".")[2] for key in keys), "relay", "x / y, m", "goal", "gain")
    return Section("relays", title, tables=(Table("relays", caption, heads, rows),))


def _no_protocol_beats(found: Found) -> Section:
    title = "What no protocol could beat"
    known = [
        (goal, bound, value)
        for goal, bound, value in zip(found.search.goals, found.bounds, found.values[found.shown.number], strict=True)
        if bound is not None
    ]
    if not known:
        return Section("bound", title, absent="not known for these goals")
    said = tuple(
        f"{_asked(goal)}: at most {100 * bound:.1f} % with these sensors and paths, whatever the protocol; this"
        f" deployment reaches {100 * value.mean:.1f} %."
        for goal, bound, value in known
    )
    remark = f"By contacts alone ({BOUND_SEEDS} runs), as if queues, rates and batteries had no limits."
    return Section("bound", title, (*said, remark))


def _days_of_files(scenario: Scenario) -> Iterator[str]:
    """What is no sample of other days: what has been recorded."""
    if not isinstance(scenario, FieldScenario):
        return
    files = {"events": scenario.events.file, "subscriptions": scenario.subscriptions.file}
    files |= {group.name or "subscribers": group.tracks for group in scenario.groups}
    given = [f"{what} ({file.name})" for what, file in files.items() if file is not None]
    if given:
        yield f"Given rather than drawn: {', '.join(given)}. For these, the page speaks of the recorded days only."


def _priced(name: str, price: Any) -> str:
    if isinstance(price, Mapping):
        return f"{name} " + ", ".join(f"{value}: {amount:,}" for value, amount in price.items())
    return f"{name} {price:,} each"


def _given_and_drawn(found: Found, shown: Deployment) -> Section:
    runs = in_words(found.result.runs, "run")
    remarks = (
        f"“Sure” refers to the simulated world, whose movements, events and subscriptions are drawn ({runs}, seeds"
        " from 0 on; all deployments see the same seeds). It says nothing about what the model leaves out.",
        *_days_of_files(shown.scenario),
        "Readings born so late that their time is not up before the run ends are not counted.",
        f"Prices: {'; '.join(_priced(*priced) for priced in found.search.prices.items())}.",
    )
    return Section(
        "scenario", "What is given and what is drawn", remarks, blocks=(Block(str(shown), to_toml(shown.scenario)),)
    )


# --- Cost against each goal


_COLOURS: Final = {"meets": "p2", "misses": "p1", "open": "p4", "dearer": "alone"}
_CHOSEN_RADIUS, _RADIUS, _FAINT_RADIUS = 6.0, 3.5, 2.4


def _fronts(found: Found) -> tuple[Picture, ...]:
    return tuple(_front(found, place, goal) for place, goal in enumerate(found.search.goals))


def _front(found: Found, place: int, goal: Goal) -> Picture:
    """Cost against what a goal asks for: every deployment, those on the front with intervals, the goal as a line."""
    scale, deployments = 100.0 if goal.of_shares else 1.0, found.search.deployments
    known = {number: value[place] for number, value in found.values.items() if math.isfinite(value[place].mean)}
    best = front(found, place)
    strong = {*best, found.shown.number} & set(known)
    heights = [scale * value.mean for value in known.values()]
    heights += [scale * end for number in strong for end in (known[number].low, known[number].high)]
    spans = _roomy([one.cost for one in deployments]), _roomy([scale * goal.wanted, *filter(math.isfinite, heights)])
    panel = open_panel([], spans, ("cost", _asked(goal) + (", %" if scale > 1 else "")))
    drawing, ends = panel.drawing, (panel.across.low, panel.across.high)
    drawing.line([panel.point(cost, scale * goal.wanted) for cost in ends], stroke=ink("soft"), stroke_dasharray="5 4")
    drawing.text(
        drawing.width, panel.up.at(scale * goal.wanted) - 4, f"goal {scale * goal.wanted:g}", text_anchor="end"
    )
    drawing.line([panel.point(deployments[number].cost, scale * known[number].mean) for number in best],
                 stroke=ink("ink"), stroke_width=1.2)  # fmt: skip
    for number in sorted(known, key=lambda number: (number in strong, number == found.shown.number)):
        value, verdict = known[number], found.result.standings[number].verdict
        at = panel.point(deployments[number].cost, scale * value.mean)
        said = f"{deployments[number]}, {money(deployments[number].cost)}: {said_value(goal, value)}, {_MARKS[verdict]}"
        if number in strong and math.isfinite(value.low):
            interval = [panel.point(deployments[number].cost, scale * end) for end in (value.low, value.high)]
            whisker(drawing, interval, _COLOURS[verdict])
        radius = _CHOSEN_RADIUS if number == found.shown.number else _RADIUS if number in strong else _FAINT_RADIUS
        drawing.circle(*at, radius, said, fill=ink(_COLOURS[verdict]), fill_opacity=1.0 if number in strong else 0.45)
    large = "the chosen one" if found.result.named is not None else "the nearest"
    caption = (
        f"Cost against {goal.text}. The line joins the deployments that no cheaper one surpasses. Green meets all"
        f" goals, red misses one, amber is open, grey is dearer; large: {large}."
    )
    return Picture(f"cost-{place + 1}", drawing.svg(caption), caption)


def front(found: Found, place: int) -> list[int]:
    """The deployments, cheapest first, that are better in a goal than every cheaper one."""
    goal = found.search.goals[place]
    sign = 1.0 if goal.more_is_better else -1.0
    known = [one for one in found.search.deployments if math.isfinite(found.values[one.number][place].mean)]
    chosen: list[int] = []
    best = -math.inf
    for one in sorted(known, key=lambda one: (one.cost, -sign * found.values[one.number][place].mean, one.number)):
        value = sign * found.values[one.number][place].mean
        if value > best:
            best = value
            chosen.append(one.number)
    return chosen


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
