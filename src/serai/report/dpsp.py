"""The study of DPSP: its runs, the routers ranked in each world, and the text's claims judged."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from serai.core.statistics import Estimate, with_interval
from serai.lab import parse_scenario
from serai.log.metrics import declared
from serai.opportunistic.metrics import OpportunisticMetrics
from serai.opportunistic.paper import (
    BASELINES,
    CLAIMS,
    FLOODING,
    SHORT_DELAY,
    TITLE,
    Claim,
    Variant,
    World,
    scenario_text,
    variants,
    worlds,
)
from serai.papers.claims import FAILS, HOLDS, OPEN, Verdict
from serai.report.figures import Picture
from serai.report.page import write_page
from serai.report.routers import Router, delivery_against_bytes
from serai.report.section import Block, Section
from serai.report.tables import Cell, Table, estimated, text, to_text
from serai.report.wording import Scale, in_words, scale_of
from serai.sweeping.plan import Plan, join_plans, plan_comparison

if TYPE_CHECKING:
    from serai.sweeping.results import Sweep

SHOWN: Final = ("delivery_ratio", "mean_delay_s", "worst_tenth_ratio", "bytes_per_delivery")
BESIDE: Final = ("delivery_ratio", "mean_delay_s", "bytes_per_delivery", "fairness_subscribers", "worst_tenth_ratio")
_FEW: Final = 8
_LEGEND: Final = "Filters: K Known Subscription, H Hop Count, D Duplicate, - none; then the priorities, by vote."


def study_plan(seeds: int) -> Plan:
    """Every router in every world: a point each, named by its settings."""
    plans = []
    for world in worlds():
        for variant in (*variants(), *BASELINES):
            scenario = parse_scenario(scenario_text(world, variant), source=f"{world.name}, {variant.name}")
            point = {"world": world.name, "router": variant.name}
            plans.append(replace(plan_comparison(world.name, [scenario], seeds), points=(point,)))
    return join_plans("paper dpsp", plans)


@dataclass(frozen=True)
class Study:
    """What was measured: for each world and router every metric, and how each differs from Short Delay."""

    seeds: int
    estimates: dict[tuple[str, str], dict[str, Estimate]]
    differences: dict[tuple[str, str, str], Estimate]
    """By world, router and metric: the router minus Short Delay, under common seeds."""


def read_study(sweep: Sweep) -> Study:
    """Bring the small answers home from Spark."""
    from serai.sweeping.aggregate import paired, relabelled, summary

    plan = sweep.plan
    # Routers of one world, side by side, are what protocols at one point are.
    names = [(number, point["world"], point["router"]) for number, point in enumerate(plan.points)]
    side_by_side = relabelled(sweep.rows, names)
    estimates: dict[tuple[str, str], dict[str, Estimate]] = {}
    for row in summary(side_by_side, BESIDE).toArrow().to_pylist():
        estimates.setdefault((row["point"], row["protocol"]), {})[row["metric"]] = _estimate(row)
    found = paired(side_by_side, SHORT_DELAY.name, BESIDE).toArrow().to_pylist()
    return Study(plan.seeds, estimates, {(r["point"], r["protocol"], r["metric"]): _estimate(r) for r in found})


def _estimate(row: dict[str, Any]) -> Estimate:
    mean, error = (math.nan if row[name] is None else row[name] for name in ("mean", "standard_error"))
    return Estimate(mean, error, row["count"])


def routers_of(study: Study, world: str) -> dict[str, dict[str, Estimate]]:
    """What the routers that the text is about did in a world."""
    return {name: found for (place, name), found in study.estimates.items() if place == world and name not in _OTHERS}


_OTHERS: Final = tuple(variant.name for variant in BASELINES)


# --- Claims


@dataclass(frozen=True)
class Judged:
    """A claim in one world: the verdict, and what it rests on."""

    claim: Claim
    verdict: Verdict
    evidence: str


def judge(study: Study, world: str) -> list[Judged]:
    """All claims of the text in one world."""
    judges: dict[str, Callable[[Study, str], tuple[Verdict, str]]] = {
        "short-delay-delivers-best": _delivers_best,
        "short-delay-is-quick": lambda study, world: _is_quick(study, world, SHORT_DELAY),
        "flooding-is-quick": lambda study, world: _is_quick(study, world, FLOODING),
        "flooding-is-unreliable": lambda study, world: _is_worse(study, world, "delivery_ratio"),
        "flooding-is-unfair": lambda study, world: _is_worse(study, world, "worst_tenth_ratio"),
    }
    return [Judged(claim, *judges[claim.name](study, world)) for claim in CLAIMS]


def _delivers_best(study: Study, world: str) -> tuple[Verdict, str]:
    """No other router delivers significantly more; with so many compared, each is asked at 5 % over their number."""
    routers = [name for name in routers_of(study, world) if name != SHORT_DELAY.name]
    differences = {name: study.differences[world, name, "delivery_ratio"] for name in routers}
    best = max(differences, key=lambda name: differences[name].mean)
    gain = differences[best]
    width = gain.half_width(1 - 0.05 / len(routers))
    said = f"best: {best}, {100 * gain.mean:+.1f} points against Short Delay"
    if math.isnan(width):
        return OPEN, said
    better = sum(found.mean > found.half_width(1 - 0.05 / len(routers)) for found in differences.values())
    if better:
        return FAILS, f"{said}; {better} of {len(routers)} deliver significantly more"
    return (HOLDS, said) if gain.mean <= 0 else (OPEN, said)


def _is_quick(study: Study, world: str, router: Variant) -> tuple[Verdict, str]:
    """The mean delay lies below the median of all routers."""
    delays = {
        name: found["mean_delay_s"]
        for name, found in routers_of(study, world).items()
        if math.isfinite(found["mean_delay_s"].mean)
    }
    if router.name not in delays:
        return OPEN, "it delivered nothing"
    middle, own = statistics.median(found.mean for found in delays.values()), delays[router.name]
    said = f"{with_interval(own)} s, the median router {middle:,.0f} s"
    if math.isnan(own.half_width()) or abs(own.mean - middle) < own.half_width():
        return OPEN, said
    return (HOLDS if own.mean < middle else FAILS), said


def _is_worse(study: Study, world: str, metric: str) -> tuple[Verdict, str]:
    """Flooding has significantly less of a metric than Short Delay."""
    difference = study.differences[world, FLOODING.name, metric]
    said = f"Flooding minus Short Delay: {with_interval(difference, 100.0)} points".replace("-", "−")
    if math.isnan(difference.half_width()) or abs(difference.mean) <= difference.half_width():
        return OPEN, said
    return (HOLDS if difference.mean < 0 else FAILS), said


# --- Tables


def ranking(study: Study, world: World, most: int | None = None) -> Table:
    """The routers of a world by what they deliver; of many only the first, Flooding, Short Delay and the last."""
    names = sorted(
        routers_of(study, world.name),
        key=lambda name: -_or_nothing(study.estimates[world.name, name]["delivery_ratio"].mean),
    )
    shown = names if most is None else _some(names, most)
    scales = [_scale(study, metric) for metric in SHOWN]
    rows = tuple(_row(study, world, names.index(name) + 1, name) for name in shown)
    heads = ("rank", "router", *(scale.heading for scale in scales))
    return Table(f"ranking-{world.name}", f"Routers by delivery: {world.title}", heads, rows, (_LEGEND,))


def _row(study: Study, world: World, rank: int, name: str) -> tuple[Cell, ...]:
    found, strong = study.estimates[world.name, name], name in (FLOODING.name, SHORT_DELAY.name)
    cells = [estimated(found[metric], _scale(study, metric), strong) for metric in SHOWN]
    return (Cell(str(rank), float(rank)), text(name, strong), *cells)


def _scale(study: Study, metric: str) -> Scale:
    """How a metric is shown, alike for all routers and worlds."""
    return scale_of(declared(OpportunisticMetrics)[metric], (found[metric].mean for found in study.estimates.values()))


def _some(names: Sequence[str], most: int) -> list[str]:
    chosen = {*names[:most], FLOODING.name, SHORT_DELAY.name, names[-1]}
    return [name for name in names if name in chosen]


def _or_nothing(value: float) -> float:
    return value if math.isfinite(value) else -1.0


def side_by_side(study: Study, world: World) -> Table:
    """Routers of others beside Flooding, Short Delay, and the DPSP router that delivers most."""
    own = routers_of(study, world.name)
    best = max(own, key=lambda name: _or_nothing(own[name]["delivery_ratio"].mean))
    found = {name: study.estimates[world.name, name] for name in {best, FLOODING.name, SHORT_DELAY.name, *_OTHERS}}
    names = sorted(found, key=lambda name: (-_or_nothing(found[name]["delivery_ratio"].mean), name))
    scales = [_scale(study, metric) for metric in BESIDE]
    rows = tuple(
        (
            text(f"{name} (DPSP)" if name in own and name != FLOODING.name else name, name in own),
            *(estimated(found[name][metric], scale, name in own) for metric, scale in zip(BESIDE, scales, strict=True)),
            _gain(study, world, name),
        )
        for name in names
    )
    heads = ("router", *(scale.heading for scale in scales), "delivered more than Short Delay, points")
    notes = (
        "Each with its defaults and the same seeds. The best of 128 DPSP routers was chosen by these very runs, which"
        " flatters it.",
        "The last column is paired, run by run.",
    )
    return Table(f"beside-{world.name}", f"Side by side: {world.title}", heads, rows, notes)


def _gain(study: Study, world: World, name: str) -> Cell:
    if name == SHORT_DELAY.name:
        return text("-")
    gain = study.differences[world.name, name, "delivery_ratio"]
    return Cell(with_interval(gain, 100.0), 100.0 * gain.mean)


def claims_table(study: Study) -> Table:
    """Every claim in every world."""
    rows = tuple(
        (text(judged.claim.words), text(world.name), text(judged.verdict), text(judged.evidence))
        for place, _ in enumerate(CLAIMS)
        for world in worlds()
        for judged in [judge(study, world.name)[place]]
    )
    readings = tuple(f"“{claim.words}” is taken to mean: {claim.reading}." for claim in CLAIMS)
    return Table("claims", "What the text claims", ("claim", "world", "verdict", "evidence"), rows, readings)


# --- Page and terminal


def write_study(study: Study, folder: Path) -> Path:
    """The page of the study, with its tables beside it."""
    count = len(variants()) + len(BASELINES)
    seeds = in_words(study.seeds, "seed")
    answer = (
        f"{count} routers in {len(worlds())} worlds, {seeds} each; means with 95 % intervals. The text prints no"
        " numbers, so nothing here is compared with one.",
        *(f"{_heading(world)}: {judge(study, world.name)[0].evidence}." for world in worlds()),
        "Delays are of what was delivered: a router that gives up on the slow ones looks quick.",
    )
    chapters = [
        Section(
            "answer",
            "The answer",
            (*answer, _LEGEND),
            pictures=tuple(_picture(study, one) for one in worlds()),
            lead=lead_of(study),
        ),
        Section("claims", "The text's claims", tables=(claims_table(study),)),
        Section("beside", "DPSP beside other routers", tables=tuple(side_by_side(study, one) for one in worlds())),
        *(Section(world.name, _heading(world), tables=(ranking(study, world),)) for world in worlds()),
        Section("scenarios", "The worlds", blocks=tuple(_block(world) for world in worlds())),
        Section("reproduce", "How to reproduce", (f"serai paper dpsp --seeds {study.seeds}",)),
    ]
    return write_page(folder, TITLE, f"{count} routers · {len(worlds())} worlds · {seeds}", chapters)


def lead_of(study: Study) -> str:
    """What becomes of the text's first claim, in a sentence."""
    verdicts = [judge(study, world.name)[0].verdict for world in worlds()]
    beaten = verdicts.count(FAILS) or "none"
    first = f"In {beaten} of {len(verdicts)} worlds others deliver more than Short Delay, the text's winner"
    holds, unclear = verdicts.count(HOLDS), verdicts.count(OPEN)
    more = [f"in {holds} none does"] if holds else []
    more += [f"in {unclear} that cannot be told"] if unclear else []
    return f"{'; '.join([first, *more])}."


def _picture(study: Study, world: World) -> Picture:
    """All routers of a world; named are Short Delay, Flooding, the best of DPSP and the routers of others."""
    own = routers_of(study, world.name)
    best = max(own, key=lambda name: _or_nothing(own[name]["delivery_ratio"].mean))
    labels = {best: "best of DPSP", SHORT_DELAY.name: "Short Delay", FLOODING.name: FLOODING.name}
    labels |= {name: name for name in _OTHERS}
    families = dict.fromkeys(own, "dpsp") | {FLOODING.name: "flooding"} | dict.fromkeys(_OTHERS, "other")
    routers = [
        Router(
            name,
            families[name],
            labels.get(name, ""),
            study.estimates[world.name, name]["delivery_ratio"],
            study.estimates[world.name, name]["bytes_per_delivery"],
        )
        for name in dict.fromkeys([*labels, *families])  # those that are named first
    ]
    return delivery_against_bytes(f"routers-{world.name}", _heading(world), routers)


def _heading(world: World) -> str:
    return world.title[0].upper() + world.title[1:]


def _block(world: World) -> Block:
    return Block(_heading(world), scenario_text(world, SHORT_DELAY))


def as_text(study: Study) -> str:
    """The study for a terminal."""
    lines = []
    for world in worlds():
        lines += [f" {world.title}", to_text(_narrow(ranking(study, world, _FEW))), ""]
        lines += [" beside routers of others", to_text(_narrow(side_by_side(study, world))), ""]
        for judged in judge(study, world.name):
            lines.append(f"  {judged.verdict:<15} {judged.claim.name}")
            lines.append(f"  {'':<15} {judged.evidence}")
        lines.append("")
    return "\n".join([*lines, f" {_LEGEND}"])


def _narrow(table: Table) -> Table:
    """The columns that fit a terminal."""
    keep = 5
    return replace(table, heads=table.heads[:keep], rows=tuple(row[:keep] for row in table.rows))


def as_dict(study: Study) -> dict[str, Any]:
    """The whole study, ready for JSON."""
    return {
        world.name: {
            "claims": [
                {"claim": j.claim.words, "reading": j.claim.reading, "verdict": j.verdict, "evidence": j.evidence}
                for j in judge(study, world.name)
            ],
            "routers": {
                name: {metric: _as_dict(measured) for metric, measured in found.items()}
                for (place, name), found in study.estimates.items()
                if place == world.name
            },
        }
        for world in worlds()
    }


def _as_dict(measured: Estimate) -> dict[str, float | None]:
    return {"mean": _none(measured.mean), "half_width": _none(measured.half_width())}


def _none(value: float) -> float | None:
    return value if math.isfinite(value) else None
