"""The comparison behind `serai demo`: each protocol in its own paper's set-up, over a few seeds, on Spark."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from serai.cli.options import WIDTH, seeds_of
from serai.core.statistics import Estimate
from serai.field.paper import IF_MISSED, METRICS, published
from serai.lab import load_scenario
from serai.papers.verdicts import MISSED, NEAR, UNTOLD, Standing, standing
from serai.sweeping.plan import Plan, plan_comparison
from serai.sweeping.store import OtherSweep, Store

if TYPE_CHECKING:
    from serai.sweeping.results import Sweep

_OPENS_S: Final = 60.0
SCENARIOS: Final = ("ced", "cet", "dg")


@dataclass(frozen=True)
class Row:
    """What one protocol reached: an estimate per metric of `METRICS`."""

    protocol: str
    estimates: dict[str, Estimate]

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON-ready values, with the printed numbers, whether they are reached, and why not."""
        return {metric: self._cell(metric) for metric in METRICS}

    def standing(self, metric: str) -> Standing | None:
        """Whether the printed number is reached; None where nothing is printed."""
        theirs = published(self.protocol, metric)
        return standing(theirs.as_metric, self.estimates[metric]) if theirs else None

    def _cell(self, metric: str) -> dict[str, Any]:
        ours, theirs = self.estimates[metric], published(self.protocol, metric)
        cell: dict[str, Any] = {"mean": ours.mean, "half_width": ours.half_width(), "runs": ours.count}
        if theirs is not None:
            cell |= {"published": theirs.as_metric, "source": theirs.source, "verdict": self.standing(metric)}
        if self.standing(metric) == MISSED:
            cell["missed"] = why_missed(self.protocol, metric)
        return cell


def why_missed(protocol: str, metric: str) -> str:
    """The likely reason why a published number is missed."""
    return IF_MISSED.get((protocol, metric), "no reason is known")


def demo_plan(seeds: int) -> Plan:
    """Each protocol in the set-up of its own paper, with common seeds."""
    return plan_comparison("demo", [load_scenario(name) for name in SCENARIOS], seeds)


def make_room(folder: Path, seeds: int) -> None:
    """See that the demo can be written there; the demo of another version is replaced."""
    store, plan = Store(folder), demo_plan(seeds)
    try:
        store.check(plan)
    except OtherSweep:
        store.clear()
        store.write_plan(plan)


def rows_of(sweep: Sweep) -> list[Row]:
    """What each protocol reaches over the seeds."""
    return [Row(name, sweep.estimates[0, name]) for name in SCENARIOS]


# --- The table


def write_typical_replay(protocol: str, sweep: Sweep) -> Path:
    """A page that plays the run of a protocol whose seed is nearest to the means, beside the report.

    It opens a minute after the birth of the event whose life the report shows.
    """
    from serai.lab import pairs_of, simulate
    from serai.replay.page import write_page
    from serai.replay.run import PAGE, page_of
    from serai.replay.thin import Wish
    from serai.report.gather import typical_seed_of
    from serai.report.maps import typical_life

    run = simulate(protocol, None, typical_seed_of(sweep), full_log=True)
    life = typical_life(run)
    wish = Wish(float(pairs_of(run).born_s[life.event]) + _OPENS_S, events=(life.event,)) if life else Wish()
    return write_page(page_of(run, wish=wish)[0], sweep.folder / PAGE)


class _Column(NamedTuple):
    """How a metric is shown: ours with factor and decimals, and the printed number beside it."""

    name: str
    heading: str
    factor: float
    decimals: int
    printed_heading: str
    printed_decimals: int
    printed_width: int


_COLUMNS: Final = {
    "delivery_ratio": _Column("delivery", "delivered %", 100, 1, "%", 1, 7),
    "mean_delay_s": _Column("delay", "delay s", 1, 1, "s", 1, 7),
    "copies_per_event": _Column("copies", "copies", 1, 2, "copies", 1, 6),
    "lifetime_days": _Column("lifetime", "lifetime d", 1, 2, "d", 2, 7),
}
_WIDTH_OF_OURS: Final = 12


_MARKS: Final = {MISSED: "*", UNTOLD: "?"}


def comparison(rows: Sequence[Row], seeds: int) -> str:
    """The table of `serai demo`: ours with intervals, the papers' beside them, what is missed below."""
    ours = "".join(f"{column.heading:>{_WIDTH_OF_OURS}}" for column in _COLUMNS.values())
    theirs = "".join(f"{column.printed_heading:>{column.printed_width - 1}} " for column in _COLUMNS.values()).rstrip()
    title = f" mean ± 95 % CI over {seeds_of(seeds)}" if seeds > 1 else f" {seeds_of(seeds)}"
    return "\n".join(
        [
            f"{title:<{4 + len(ours)}}{'published':>{len(theirs)}}",
            f"{'':4}{ours}{theirs}",
            *map(_comparison_row, rows),
            "",
            *(line for remark in _remarks(rows) for line in textwrap.wrap(remark, WIDTH, subsequent_indent="   ")),
        ]
    ).rstrip()


def _remarks(rows: Iterable[Row]) -> Iterator[str]:
    """What the marks in the table mean: what is missed for each reason, then those of which nothing is known."""
    found = [(row, metric) for row in rows for metric in _COLUMNS]
    reasons: dict[str, list[str]] = {}
    for row, metric in found:
        if row.standing(metric) == MISSED:
            what = f"{row.protocol.upper()}'s {_COLUMNS[metric].name}"
            reasons.setdefault(why_missed(row.protocol, metric), []).append(what)
    for reason, missed in reasons.items():
        yield f" * missed: {' and '.join(missed)}: {reason}"
    if any(row.standing(metric) == UNTOLD for row, metric in found):
        yield f" ? cannot be told with so few seeds: the interval crosses {100 * NEAR:.0f} % of what is published"


def _comparison_row(row: Row) -> str:
    ours = [_with_interval(row.estimates[metric], column) for metric, column in _COLUMNS.items()]
    theirs = [_printed(row, metric, column) for metric, column in _COLUMNS.items()]
    numbers = "".join(f" {cell:>{_WIDTH_OF_OURS - 1}}" for cell in ours)
    return f" {row.protocol.upper():<3}{numbers}{''.join(theirs)}".rstrip()


def _with_interval(estimate: Estimate, column: _Column) -> str:
    if not math.isfinite(estimate.mean):
        return "-"
    mean, half_width = column.factor * estimate.mean, column.factor * estimate.half_width()
    interval = "" if math.isnan(half_width) else f" ±{half_width:.{column.decimals}f}"
    return f"{mean:.{column.decimals}f}{interval}"


def _printed(row: Row, metric: str, column: _Column) -> str:
    """The paper's number, and a mark behind it if ours misses it, or if that cannot be told."""
    number, found = published(row.protocol, metric), row.standing(metric)
    text = f"{number.value:.{column.printed_decimals}f}" if number else "-"
    mark = _MARKS.get(found, " ") if found else " "  # in the gap before the next column
    return f"{text:>{column.printed_width - 1}}{mark}"
