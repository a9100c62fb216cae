"""Numbers and names as people read them: units and digits."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from serai.core.statistics import NOTHING, decimals_of
from serai.log.metrics import Metric

_UNITS_IN_NAMES: Final = ("_s", "_j", "_m", "_days", "_pj")


class Scale(NamedTuple):
    """How a metric is shown: its name, its unit as printed, and the factor from one to the other."""

    name: str
    unit: str
    factor: float

    @property
    def heading(self) -> str:
        """Name and unit, as the head of a column or an axis has them."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


def scale_of(metric: Metric) -> Scale:
    """How a metric is shown; fractions are shown in per cent."""
    name = metric.label or _without_unit(metric.name).replace("_", " ")
    return Scale(name, "%", 100.0) if metric.unit == "fraction" else Scale(name, metric.unit, 1.0)


def _without_unit(metric: str) -> str:
    for ending in _UNITS_IN_NAMES:
        if metric.endswith(ending):
            return metric.removesuffix(ending)
    return metric


def three_digits(value: float) -> str:
    """A number with three digits that matter."""
    return f"{value:,.{decimals_of(value, math.nan)}f}" if math.isfinite(value) else NOTHING


def signed_percent(part: float, decimals: int = 1) -> str:
    """A relative difference: +3.2 %, with a real minus sign."""
    return f"{100 * part:+.{decimals}f} %".replace("-", "−") if math.isfinite(part) else NOTHING


def in_words(count: int, noun: str) -> str:
    """A count with its noun: 1 seed, 20 seeds."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_time(seconds: float) -> str:
    """A time with the unit that fits, as people say it: 116 s, 35 min, 6.2 h, 2.4 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def in_bytes(size: float) -> str:
    """An amount of data with the unit that fits."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= least:
            return f"{size / least:,.1f} {unit}"
    return f"{size:,.0f} B"
