"""Numbers and names as people read them: units, digits, which end of a scale is the good one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from serai.core.statistics import Estimate

_SHORT: Final = {
    "delivery_ratio": "delivered",
    "mean_delay_s": "delay",
    "copies_per_event": "copies",
    "lifetime_days": "lifetime",
    "fairness_communities": "fairness over communities",
}
_UNITS_IN_NAMES: Final = ("_s", "_j", "_m", "_days", "_pj")
_LESS_IS_BETTER: Final = (
    *("delay", "hops", "copies", "transmissions", "messages", "bytes", "per_query", "per_node", "duplicates"),
    *("energy", "imbalance", "busiest", "gini", "control", "drops", "lost", "starved"),
)
_MORE_IS_BETTER: Final = ("ratio", "lifetime", "fairness", "delivered")
NOTHING: Final = "–"


class Scale(NamedTuple):
    """How a metric is shown: its name, its unit as printed, and the factor from one to the other."""

    name: str
    unit: str
    factor: float

    @property
    def heading(self) -> str:
        """Name and unit, as the head of a column or an axis has them."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


def scale_of(metric: str, definitions: Mapping[str, tuple[str, str]]) -> Scale:
    """How a metric is shown; fractions are shown in per cent, but for indices such as Jain's."""
    unit = definitions[metric][0] if metric in definitions else ""
    name = _SHORT.get(metric) or _without_unit(metric).replace("_", " ")
    if unit == "fraction" and "fairness" not in metric:
        return Scale(name, "%", 100.0)
    return Scale(name, "" if unit == "fraction" else unit, 1.0)


def _without_unit(metric: str) -> str:
    for ending in _UNITS_IN_NAMES:
        if metric.endswith(ending):
            return metric.removesuffix(ending)
    return metric


def better(metric: str) -> int:
    """1 if more of it is better, -1 if less is, 0 if neither can be said."""
    if any(word in metric for word in _LESS_IS_BETTER):
        return -1
    return 1 if any(word in metric for word in _MORE_IS_BETTER) else 0


def decimals_of(mean: float, half_width: float) -> int:
    """Decimals to show: two digits of the interval, or three of the number where there is none."""
    decisive = half_width if math.isfinite(half_width) and half_width > 0 else abs(mean) / 10
    if not math.isfinite(decisive) or decisive == 0:
        return 0
    return min(6, max(0, 1 - math.floor(math.log10(decisive))))


def three_digits(value: float) -> str:
    """A number with three digits that matter."""
    return f"{value:,.{decimals_of(value, math.nan)}f}" if math.isfinite(value) else NOTHING


def with_interval(estimate: Estimate, factor: float = 1.0, half_width: float | None = None) -> str:
    """A mean with the half width of its interval: 85.2 ± 1.3; without one where there is none."""
    mean = factor * estimate.mean
    if not math.isfinite(mean):
        return NOTHING
    width = factor * (estimate.half_width() if half_width is None else half_width)
    decimals = decimals_of(mean, width)
    if not math.isfinite(width):
        return f"{mean:,.{decimals}f}"
    return f"{mean:,.{decimals}f} ± {width:,.{decimals}f}"


def signed_percent(part: float, decimals: int = 1) -> str:
    """A relative difference: +3.2 %, with a real minus sign."""
    return f"{100 * part:+.{decimals}f} %".replace("-", "−") if math.isfinite(part) else NOTHING


def in_words(count: int, noun: str) -> str:
    """A count with its noun: 1 seed, 20 seeds."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
