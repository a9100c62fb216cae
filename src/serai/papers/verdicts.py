"""Whether a published number is reached: the one place that decides it, for terminal, reports and documentation."""

from __future__ import annotations

from typing import Final, Literal

from serai.core.statistics import Estimate

Standing = Literal["hit", "missed", "cannot be told"]
HIT: Final[Standing] = "hit"
MISSED: Final[Standing] = "missed"
UNTOLD: Final[Standing] = "cannot be told"

NEAR: Final = 0.10
"""A published number is hit if our whole interval is within this part of it, missed if the whole is beyond."""

RULE: Final = (
    f"Hit: our whole interval lies within {100 * NEAR:.0f} % of the published number. Missed: the whole lies beyond."
)


def standing(published: float, ours: Estimate) -> Standing:
    """Whether we reach a published number, both in the same unit; an interval on both sides, or none, does not tell."""
    return standing_of(published, ours.mean, ours.half_width())


def standing_of(published: float, mean: float, half_width: float) -> Standing:
    """The same from a mean and half of its 95 % interval, as they stand in a table."""
    off, near = abs(mean - published), NEAR * abs(published)
    if off + half_width <= near:
        return HIT
    return MISSED if off - half_width > near else UNTOLD
