"""When a point has been run often enough: its interval is narrow compared with its mean, under every protocol."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from serai.core.errors import BadInput, did_you_mean
from serai.kinds import AnyKind

_GROWTH: Final = 1.5
_DIGITS: Final = 12


@dataclass(frozen=True)
class Until:
    """Stop a point when the half width of a metric's interval is at most this fraction of the mean."""

    metric: str
    fraction: float
    least: int = 10
    """Seeds before the first look: an interval from fewer says little about itself."""


def parse_until(text: str, kind: AnyKind) -> Until:
    """What --until-ci asks for: `1%`, or `mean_delay_s=2%`."""
    name, equals, width = text.rpartition("=")
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(%?)\s*", width)
    fraction = float(found[1]) / (100 if found[2] else 1) if found else math.nan
    if not 0 < fraction < 1:
        raise BadInput(f"--until-ci {text}: write it like 1%, or mean_delay_s=1% for another metric")
    metrics = [one.name for one in kind.definitions.values() if one.name not in ("protocol", "seed")]
    metric = name.strip() if equals else kind.headlines[0]
    if metric not in metrics:
        raise BadInput(f'--until-ci {text}: no metric "{metric}"; {did_you_mean(metric, metrics)}')
    return Until(metric, fraction)


def first_seeds(points: int, until: Until, most: int) -> dict[int, int]:
    """How many seeds every point begins with."""
    return dict.fromkeys(range(points), min(until.least, most))


def next_seeds(
    seeds: Mapping[int, int], summaries: Iterable[Mapping[str, Any]], until: Until, most: int
) -> dict[int, int]:
    """How many seeds every point needs after a look at the summaries: the same where it is narrow enough, else more."""
    wide = {row["point"] for row in summaries if not is_narrow(row["mean"], row["half_width"], until.fraction)}
    return {point: min(most, math.ceil(count * _GROWTH)) if point in wide else count for point, count in seeds.items()}


def is_narrow(mean: float | None, half_width: float | None, fraction: float) -> bool:
    """Whether the interval is narrow enough; a metric that no run has never is."""
    if mean is None or half_width is None:
        return False
    # Spark adds in any order: the last digits must not decide whether a point goes on.
    return float(f"{half_width:.{_DIGITS}g}") <= float(f"{fraction * abs(mean):.{_DIGITS}g}")
