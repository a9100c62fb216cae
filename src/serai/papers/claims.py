"""What the text of a paper claims, as data, and whether measured means bear it out.

A claim is judged from means and their standard errors alone. It *holds*, it *does not hold*, or it *cannot be told*
with so few seeds. Differences are taken as if the two means were independent: under common seeds they are closer
than that, so a claim is rather left open than decided wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from serai.core.statistics import Estimate, t_quantile

Verdict = Literal["holds", "does not hold", "cannot be told"]
HOLDS: Final[Verdict] = "holds"
FAILS: Final[Verdict] = "does not hold"
OPEN: Final[Verdict] = "cannot be told"

STEP_BACK: Final = 0.1
"""A step against a trend is forgiven up to this part of the whole change: the papers speak of curves, not of steps."""


class Measured(NamedTuple):
    """One point of a curve: where on the axis (None: the paper's defaults), and what was measured there."""

    at: float | None
    estimate: Estimate


Curves = Callable[[str, str], Sequence[Measured]]
"""The points measured for a protocol and a metric, along the axis of the claim's figure."""


@dataclass(frozen=True)
class Judgement:
    """The answer, the curves it was read from (by protocol, as the sentence runs), what decided if not plain."""

    verdict: Verdict
    curves: dict[str, tuple[Measured, ...]]
    reason: str = ""


@dataclass(frozen=True)
class Trend:
    """A metric of one protocol rises, falls or (`at_most`) changes little along the axis of a figure.

    `at_most` is the largest difference between two points of the curve, relative to its mean.
    """

    exhibit: str
    section: str
    words: str
    protocol: str
    metric: str
    direction: Literal["rises", "falls"] | None = None
    at_most: float | None = None
    note: str = ""
    if_not: str = ""
    """Why it probably does not hold here, if it does not."""
    backwards: bool = False
    """The sentence goes along the axis from its far end to its near one, and so does the judgement's curve."""

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols it speaks of."""
        return (self.protocol,)

    def judge(self, curves: Curves) -> Judgement:
        """Whether the curve does what is claimed."""
        points = _known(curves(self.protocol, self.metric))[:: -1 if self.backwards else 1]
        seen = {self.protocol: points}
        if len(points) < 2:
            return Judgement(OPEN, seen, "fewer than two points were measured")
        answers = []
        if self.direction is not None:
            answers.append(_direction(points, 1 if self.direction == "rises" else -1))
        if self.at_most is not None:
            answers.append(_spread(points, self.at_most))
        verdict = _all_of(verdict for verdict, _ in answers)
        return Judgement(verdict, seen, "; ".join(reason for found, reason in answers if reason and found == verdict))


@dataclass(frozen=True)
class Order:
    """A metric of protocol `above` is larger than that of protocol `below`, everywhere in the exhibit."""

    exhibit: str
    section: str
    words: str
    metric: str
    above: str
    below: str
    note: str = ""
    if_not: str = ""
    """Why it probably does not hold here, if it does not."""

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols it speaks of."""
        return (self.above, self.below)

    def judge(self, curves: Curves) -> Judgement:
        """Whether one curve runs above the other wherever both were measured."""
        above, below = _known(curves(self.above, self.metric)), _known(curves(self.below, self.metric))
        there = {point.at: point.estimate for point in below}
        pairs = [(point.at, difference(point.estimate, there[point.at])) for point in above if point.at in there]
        seen = {self.above: above, self.below: below}
        if not pairs:
            return Judgement(OPEN, seen, "not measured")
        against = [at for at, gap in pairs if gap.high < 0]
        unclear = [at for at, gap in pairs if not gap.low > 0]
        if against:
            return Judgement(FAILS, seen, _places("the other way round", against))
        return Judgement(OPEN, seen, _places("too close", unclear)) if unclear else Judgement(HOLDS, seen)


Claim = Trend | Order


class Difference(NamedTuple):
    """How much more one mean is than another, and half of the 95 % interval around that."""

    mean: float
    half_width: float

    @property
    def low(self) -> float:
        """The least it may be."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """The most it may be."""
        return self.mean + self.half_width


def difference(more: Estimate, less: Estimate, confidence: float = 0.95) -> Difference:
    """more - less, as if the two were independent; the interval is NaN where one of them has no spread."""
    gap = more.mean - less.mean
    degrees = min(more.count, less.count) - 1
    if degrees < 1:
        return Difference(gap, math.nan)
    return Difference(gap, t_quantile(confidence, degrees) * math.hypot(more.standard_error, less.standard_error))


def _known(points: Iterable[Measured]) -> tuple[Measured, ...]:
    return tuple(point for point in points if math.isfinite(point.estimate.mean))


def _direction(points: Sequence[Measured], sign: int) -> tuple[Verdict, str]:
    """Whether the curve goes up (sign 1) or down (-1) as a whole, and nowhere clearly back."""
    whole = _signed(difference(points[-1].estimate, points[0].estimate), sign)
    if whole.high < 0:
        return FAILS, "the other way round"
    for before, after in pairwise(points):
        step = _signed(difference(after.estimate, before.estimate), sign)
        if step.high < 0 and -step.mean > STEP_BACK * abs(whole.mean):
            return FAILS, f"turns after {_number(before.at)}"
    return (HOLDS, "") if whole.low > 0 else (OPEN, "the ends are too close")


def _signed(gap: Difference, sign: int) -> Difference:
    return Difference(sign * gap.mean, gap.half_width)


def _spread(points: Sequence[Measured], at_most: float) -> tuple[Verdict, str]:
    """Whether no two points are further apart than `at_most` of the curve's mean."""
    estimates = sorted((point.estimate for point in points), key=lambda estimate: estimate.mean)
    mean = math.fsum(estimate.mean for estimate in estimates) / len(estimates)
    if mean == 0:
        return OPEN, "all zero"
    gap = difference(estimates[-1], estimates[0])
    reason = f"differs by {100 * gap.mean / abs(mean):.0f} %"
    if gap.low > at_most * abs(mean):
        return FAILS, reason
    return (HOLDS if gap.high <= at_most * abs(mean) else OPEN), reason


def _all_of(verdicts: Iterable[Verdict]) -> Verdict:
    found = set(verdicts)
    return FAILS if FAILS in found else OPEN if OPEN in found else HOLDS


def _places(what: str, places: Sequence[float | None]) -> str:
    named = [_number(at) for at in places if at is not None]
    return f"{what} at {', '.join(named)}" if named else what


def _number(at: float | None) -> str:
    return "the defaults" if at is None else f"{at:g}"
