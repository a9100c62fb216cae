"""Where a deployment is weak: the sensors whose events come late or never, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.field.lifetime import lasting_s
from serai.field.log import FieldRun
from serai.field.losses import losses_of
from serai.field.naps import lived_s
from serai.lab import pairs_of
from serai.log.losses import LOST
from serai.log.pairs import Count
from serai.log.run import SimulatedRun
from serai.planning.goals import Goal
from serai.report.tables import Table, plain, text

MOST: Final = 10
_STRONG: Final = 0.995
"""What nearly always works is no weak spot."""
_LATE: Final = len(LOST)
_WORDS: Final = {
    "never_met": "no subscriber passes in time",
    "not_sent": "passes are too short",
    "stranded": "the subscriber had left",
    "expired": "waits too long in queues",
    "full": "queue full",
    "dead": "battery empty",
    "late": "comes late",
}
_REASONS: Final = (*LOST, "late")
_S_PER_DAY: Final = 86_400.0
_PJ_PER_J: Final = 1e12

Numbers = NDArray[Any]


class WeakSpot(NamedTuple):
    """A sensor, by its number, and what becomes of its events; shares of what is wanted."""

    sensor: int
    in_time: float
    why: tuple[tuple[str, float], ...]
    """The reasons, the most frequent first, with their shares."""


def deadline_of(goals: Sequence[Goal]) -> float | None:
    """The time within which readings are asked for, if any goal says it: the shortest."""
    return min(
        (goal.measure.within_s for goal in goals if isinstance(goal.measure, Count) and goal.measure.within_s),
        default=None,
    )


def weak_spots(runs: Sequence[SimulatedRun], within_s: float | None) -> list[WeakSpot]:
    """The sensors whose events fare worst over these runs, the weakest first; with full logs also why."""
    nodes = runs[0].tables["nodes"].num_rows
    wanted, in_time = np.zeros(nodes), np.zeros(nodes)
    reasons = np.zeros((len(_REASONS), nodes))
    for run in runs:
        pairs = pairs_of(run)
        source = run.tables["events"]["node"].to_numpy()
        source = source[run.born] if isinstance(run, FieldRun) else source[: len(pairs.wanted)]
        limit_s = pairs.lifetime_s if within_s is None else np.full(len(source), within_s)
        fair = pairs.born_s + limit_s <= pairs.duration_s
        wanted += np.bincount(source[fair], pairs.wanted[fair], nodes)
        soon = pairs.delay_s <= limit_s[pairs.delivered]
        in_time += np.bincount(source[pairs.delivered[soon & fair[pairs.delivered]]], minlength=nodes)
        reasons[_LATE] += np.bincount(source[pairs.delivered[~soon & fair[pairs.delivered]]], minlength=nodes)
        reasons[:_LATE] += _lost(run, nodes)
    share = np.divide(in_time, wanted, out=np.ones(nodes), where=wanted > 0)
    weakest = [int(node) for node in np.argsort(share, kind="stable")[:MOST] if share[node] < _STRONG]
    return [WeakSpot(node, float(share[node]), _why(reasons[:, node], wanted[node])) for node in weakest]


def _lost(run: SimulatedRun, nodes: int) -> Numbers:
    """How many pairs of each node's events were lost for each reason; nothing where nobody knows."""
    lost = losses_of(run) if isinstance(run, FieldRun) else None
    counts = np.zeros((len(LOST), nodes))
    if lost is not None and isinstance(run, FieldRun):
        np.add.at(counts, (lost.why, run.world.event_sensor[lost.event]), 1)
    return counts


def _why(counts: Numbers, wanted: float) -> tuple[tuple[str, float], ...]:
    order = [int(place) for place in np.argsort(-counts, kind="stable") if counts[place] > 0]
    return tuple((_REASONS[place], float(counts[place] / max(wanted, 1.0))) for place in order)


def said_why(spot: WeakSpot) -> str:
    """Why, in words: the reasons that explain most of it."""
    return ", ".join(f"{_WORDS[reason]} ({100 * share:.0f} %)" for reason, share in spot.why[:2] if share >= 0.01)


def weak_table(runs: Sequence[SimulatedRun], spots: Sequence[WeakSpot], within_s: float | None) -> Table:
    """The weak spots as a table; the numbers are those of the map."""
    nodes = runs[0].tables["nodes"]
    lives = battery_days(runs)
    rows = tuple(
        (
            plain(number, f"{number}"),
            text(str(nodes["name"][spot.sensor].as_py())),
            *(plain(_at(nodes, axis, spot.sensor), f"{_at(nodes, axis, spot.sensor):.0f}") for axis in ("x_m", "y_m")),
            plain(100 * spot.in_time, f"{100 * spot.in_time:.1f}"),
            text(said_why(spot)),
            *([plain(lives[spot.sensor], f"{lives[spot.sensor]:,.0f}")] if lives is not None else []),
        )
        for number, spot in enumerate(spots, start=1)
    )
    when = "ever" if within_s is None else "in time"
    caption = f"The sensors whose events fare worst, over {len(runs)} runs; why: share of the wanted pairs."
    heads = ("", "sensor", "x, m", "y, m", f"arrives {when}, %", "why")
    return Table("weak_spots", caption, heads + (("battery lasts, days",) if lives is not None else ()), rows)


def _at(nodes: Any, axis: str, node: int) -> float:
    return float(nodes[axis][node].as_py())


def battery_days(runs: Sequence[SimulatedRun]) -> Numbers | None:
    """How long each sensor's battery lasts if it goes on as in these runs; None where there are none."""
    fields = [run for run in runs if isinstance(run, FieldRun)]
    if not fields:
        return None
    spent_pj = sum(run.ledger.spent_pj(run.scenario.radio.control_costs) for run in fields)
    lived = sum(lived_s(run.ledger, int(pairs_of(run).duration_s)) for run in fields)
    world, spent_per_s = fields[0].world, spent_pj / np.maximum(lived, 1)
    lives: Numbers = lasting_s(world, spent_per_s) / _S_PER_DAY
    return lives
