"""Means over seeds, with the confidence intervals that go with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

NOTHING: Final = "–"
"""Shown where there is no number."""


@dataclass(frozen=True)
class Estimate:
    """A mean over `count` runs and its standard error; both NaN where there is too little to say."""

    mean: float
    standard_error: float
    count: int

    def half_width(self, confidence: float = 0.95) -> float:
        """Half of the t interval around the mean; NaN for fewer than two runs."""
        if self.count < 2:
            return math.nan
        return t_quantile(confidence, self.count - 1) * self.standard_error

    def __str__(self) -> str:
        return with_interval(self)


def estimate(values: Iterable[float | None]) -> Estimate:
    """The mean of the values that exist; None and NaN (a metric that a run does not have) are left out."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    count = len(known)
    mean = math.fsum(known) / count if count else math.nan
    if count < 2 or math.isinf(mean):  # a lifetime without end has no spread to speak of
        return Estimate(mean, math.nan, count)
    variance = math.fsum((value - mean) ** 2 for value in known) / (count - 1)
    return Estimate(mean, math.sqrt(variance / count), count)


def decimals_of(mean: float, half_width: float) -> int:
    """Decimals to show: two digits of the interval, or three of the number where there is none."""
    decisive = half_width if math.isfinite(half_width) and half_width > 0 else abs(mean) / 10
    if not math.isfinite(decisive) or decisive == 0:
        return 0
    return min(6, max(0, 1 - math.floor(math.log10(decisive))))


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


@cache
def t_quantile(confidence: float, degrees: int) -> float:
    """The t with P(|T| < t) = confidence, for Student's T with that many degrees of freedom."""
    if not 0 < confidence < 1 or degrees < 1:
        raise ValueError(f"no t quantile for confidence {confidence} and {degrees} degrees of freedom")
    low, high = 0.0, math.pi / 2
    while low < (angle := (low + high) / 2) < high:
        low, high = (angle, high) if _central_probability(angle, degrees) < confidence else (low, angle)
    return math.sqrt(degrees) * math.tan(low)


def _central_probability(angle: float, degrees: int) -> float:
    """P(|T| < sqrt(degrees) tan(angle)): the finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    cosine = math.cos(angle)
    odd = degrees % 2 == 1
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 if odd else 1, degrees - 2, 2):
        term *= cosine * cosine * k / (k + 1)
        total += term
    total *= math.sin(angle)
    return (angle + total) * 2 / math.pi if odd else total


def binomial_tail(hits: int, runs: int, share: float) -> float:
    """P(X >= hits) for a binomial X: `runs` runs, each a hit with probability `share`."""
    if hits <= 0 or share >= 1:
        return 1.0
    if hits > runs or share <= 0:
        return 0.0
    whole = math.lgamma(runs + 1)
    logarithms = (
        whole - math.lgamma(k + 1) - math.lgamma(runs - k + 1) + k * math.log(share) + (runs - k) * math.log1p(-share)
        for k in range(hits, runs + 1)
    )
    return min(1.0, math.fsum(math.exp(value) for value in logarithms))


def binomial_interval(hits: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """The shares that `hits` of `runs` are compatible with (Clopper and Pearson, 1934)."""
    beyond = (1 - confidence) / 2
    # P(X >= hits) grows with the share: the lower end has it at `beyond`; the upper end likewise for the misses.
    low = _share_at(lambda share: binomial_tail(hits, runs, share), beyond) if hits else 0.0
    high = 1 - _share_at(lambda share: binomial_tail(runs - hits, runs, share), beyond) if hits < runs else 1.0
    return low, high


def _share_at(tail: Callable[[float], float], wanted: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) < wanted else (low, middle)
    return low
