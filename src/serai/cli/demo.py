"""The comparison behind `serai demo`: each protocol in its own paper's set-up, over a few seeds, on Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from serai.core.statistics import Estimate
from serai.field.paper import KNOWN_MISSES, METRICS, published
from serai.lab import load_scenario
from serai.sweep.plan import Plan, plan_comparison
from serai.sweep.store import OtherSweep, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from serai.sweep.run import Progress

SCENARIOS: Final = ("ced", "cet", "dg")


@dataclass(frozen=True)
class Row:
    """What one protocol reached: an estimate per metric of `METRICS`."""

    protocol: str
    estimates: dict[str, Estimate]

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON-ready values, with the printed numbers and why one is missed."""
        return {metric: self._cell(metric) for metric in METRICS}

    def _cell(self, metric: str) -> dict[str, Any]:
        ours, theirs = self.estimates[metric], published(self.protocol, metric)
        cell: dict[str, Any] = {"mean": ours.mean, "half_width": ours.half_width(), "runs": ours.count}
        if theirs is not None:
            cell |= {"published": theirs.as_metric, "source": theirs.source}
        if missed := KNOWN_MISSES.get((self.protocol, metric)):
            cell["missed"] = missed
        return cell


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


def compare(seeds: int, folder: Path, spark: SparkSession, progress: Progress) -> list[Row]:
    """What each protocol reaches over seeds 0 .. seeds-1."""
    from serai.sweep.run import run_sweep
    from serai.sweep.summaries import estimates_of

    estimates = estimates_of(run_sweep(demo_plan(seeds), folder, spark, progress=progress))
    return [Row(name, estimates[0, name]) for name in SCENARIOS]
