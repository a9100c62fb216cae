"""A run in a few lines for the terminal: each kind of network says which, the command line fills them in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from serai.log.losses import LOST
from serai.log.metrics import Metrics


class Line(NamedTuple):
    """Name, value and remark; a metric in braces stands for its value as people read it."""

    name: str
    value: str
    remark: str


DELIVERED = Line("delivered", "{delivery_ratio}", "{delivered_pairs} of {wanted_pairs} wanted")
DELAY = Line("delay", "{mean_delay_s} s", "median {median_delay_s} s, 95 % within {p95_delay_s} s")


def counted(name: str, counts: Mapping[str, int], noun: str = "") -> Line:
    """How many there are of everything together, and of each."""
    return Line(name, f"{sum(counts.values()):,}", noun + " · ".join(f"{what} {n:,}" for what, n in counts.items()))


def counted_losses(metrics: Metrics) -> list[Line]:
    """Why pairs were lost; nothing without a full log."""
    lost = {name.replace("_", " "): getattr(metrics, f"lost_{name}") for name in LOST}
    if any(math.isnan(count) for count in lost.values()):
        return []
    return [counted("lost", {name: count for name, count in lost.items() if count})]
