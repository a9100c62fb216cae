"""The small answers of a sweep, brought home from Spark."""

from __future__ import annotations

import math
from collections import defaultdict

from serai.core.statistics import Estimate
from serai.sweeping.aggregate import summary
from serai.sweeping.results import Sweep

Estimates = dict[tuple[int, str], dict[str, Estimate]]
"""(point, protocol) -> metric -> its mean over the seeds."""


def estimates_of(sweep: Sweep) -> Estimates:
    """The mean of every metric in every cell, in the order of the table's columns."""
    found: Estimates = defaultdict(dict)
    for row in summary(sweep.rows).toArrow().to_pylist():
        mean, error = (math.nan if row[name] is None else row[name] for name in ("mean", "standard_error"))
        found[row["point"], row["protocol"]][row["metric"]] = Estimate(mean, error, row["count"])
    return dict(found)
