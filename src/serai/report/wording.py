"""Numbers and names as people read them: units and digits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from serai.core.statistics import NOTHING, decimals_of
from serai.log.metrics import Metric

_UNITS_IN_NAMES: Final = ("_s", "_j", "_m", "_days", "_pj")
_THOUSANDS: Final = (("G", 1e9), ("M", 1e6), ("k", 1e3))
_AMOUNTS_OF_DATA: Final = {"byte": "B", "bit": "bit"}


class Scale(NamedTuple):
    """How a metric is shown: its name, its unit as printed, and the factor from one to the other."""

    name: str
    unit: str
    factor: float

    @property
    def heading(self) -> str:
        """Name and unit, as the head of a column or an axis has them."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


def scale_of(metric: Metric, values: Iterable[float] = ()) -> Scale:
    """How a metric is shown: fractions in per cent, amounts of data in the unit that fits the largest of the values."""
    name = metric.label or _without_unit(metric.name).replace("_", " ")
    if metric.unit == "fraction":
        return Scale(name, "%", 100.0)
    if metric.unit in _AMOUNTS_OF_DATA:
        unit, largest = _AMOUNTS_OF_DATA[metric.unit], max((v for v in values if math.isfinite(v)), default=0.0)
        prefix, least = next((one for one in _THOUSANDS if largest >= one[1]), ("", 1.0))
        return Scale(name, prefix + unit, 1 / least)
    return Scale(name, metric.unit, 1.0)


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
    """A time with the unit that fits, as people say it: 116 s, 35 min, 2 h, 6.2 h, 2.4 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    size, unit = (seconds / 3600, "h") if seconds < 172_800 else (seconds / 86_400, "days")
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"


def in_bytes(size: float) -> str:
    """An amount of data with the unit that fits."""
    for prefix, least in _THOUSANDS:
        if size >= least:
            return f"{size / least:,.1f} {prefix}B"
    return f"{size:,.0f} B"
