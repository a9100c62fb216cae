"""Whether a published number is reached: the one place that decides it, for terminal, reports and documentation."""

from __future__ import annotations

from typing import Final, Literal

from serai.core.statistics import Estimate

Standing = Literal["hit", "missed", "cannot be told"]
HIT: Final[Standing] = "hit"
MISSED: Final[Standing] = "missed"
UNTOLD: Final[Standing] = "cannot be told"

NEAR: Final = 0.10
"""A published number is hit if our mean is within this part of it; an interval wider than that says nothing."""

RULE: Final = (
    f"Hit: our mean is within {100 * NEAR:.0f} % of the published number, and our interval is no wider than that."
)


def standing(published: float, ours: Estimate) -> Standing:
    """Whether our mean reaches a published number, both in the same unit; with a wide interval, or none, who knows."""
    return standing_of(published, ours.mean, ours.half_width())


def standing_of(published: float, mean: float, half_width: float) -> Standing:
    """The same from a mean and half of its 95 % interval, as they stand in a table."""
    if not half_width <= NEAR * abs(published):
        return UNTOLD
    return HIT if abs(mean - published) <= NEAR * abs(published) else MISSED
