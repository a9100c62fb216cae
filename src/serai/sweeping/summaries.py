"""The small answers of a sweep, brought home from Spark."""

from __future__ import annotations

import math

from serai.core.statistics import Estimate
from serai.sweeping.aggregate import metrics_of, summary
from serai.sweeping.results import Sweep

Estimates = dict[tuple[int, str], dict[str, Estimate]]
"""(point, protocol) -> metric -> its mean over the seeds."""


def estimates_of(sweep: Sweep) -> Estimates:
    """The mean of every metric in every cell, cells and metrics in the table's order."""
    names, found = metrics_of(sweep.rows), dict[tuple[int, str, str], Estimate]()
    for row in summary(sweep.rows, names).toArrow().to_pylist():
        mean, error = (math.nan if row[name] is None else row[name] for name in ("mean", "standard_error"))
        found[row["point"], row["protocol"], row["metric"]] = Estimate(mean, error, row["count"])
    cells = sorted({key[:2] for key in found})
    return {cell: {name: found[*cell, name] for name in names} for cell in cells}
