"""The comparison behind `serai demo`: each protocol in its own paper's set-up, over a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from serai.metrics import measure
from serai.papers import KNOWN_MISSES, METRICS, published
from serai.scenario import load_scenario
from serai.simulation import simulate
from serai.statistics import Estimate, estimate

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


def compare(seeds: int, on_run: Callable[[str], None]) -> list[Row]:
    """What each protocol reaches over seeds 0 .. seeds-1; `on_run` hears its name after each run."""
    return [_row(name, seeds, on_run) for name in SCENARIOS]


def _row(name: str, seeds: int, on_run: Callable[[str], None]) -> Row:
    scenario = load_scenario(name)
    runs = []
    for seed in range(seeds):
        runs.append(measure(simulate(scenario, seed=seed)))
        on_run(name)
    return Row(name, {metric: estimate(getattr(run, metric) for run in runs) for metric in METRICS})
