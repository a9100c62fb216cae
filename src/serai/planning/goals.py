"""What a deployment has to do, as people write it, and what each run says about it.

A goal gives every run a *score* such that the goal is met if and only if the mean score is at least 0. The runs are
the sample, never the pairs in them: what happens to the pairs of one run hangs together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput, did_you_mean
from serai.core.statistics import binomial_interval, estimate
from serai.core.units import TIME, parse_quantity
from serai.kinds import AnyKind
from serai.log.pairs import COUNTS, Count

Floats = NDArray[np.float64]
Columns = Mapping[str, Floats]
"""The rows of the first seeds of a deployment, a column for each metric and count."""

DEFAULT_SHARE: Final = 0.9
"""`lifetime_days >= 60` means: in 90 % of the runs."""

_GOAL: Final = re.compile(
    r"\s*(?P<name>[a-z]\w*)\s*(?:\(\s*(?P<of>[^)]*?)\s*\))?\s*(?P<sign>>=|<=)\s*(?P<bound>[^\s].*?)"
    r"(?:\s+in\s+(?P<share>[0-9.]+)\s*%\s+of\s+runs)?\s*"
)
_QUANTILE: Final = re.compile(r"p(?P<level>[0-9]{1,2})_delay_s|(?P<median>median)_delay_s")
_EXAMPLE: Final = '"delivery_ratio >= 95 %", "on_time(1 h) >= 95 %", "lifetime_days >= 60 in 90 % of runs"'


@dataclass(frozen=True)
class Value:
    """What the runs say about a goal: the number it speaks of, and its 95 % interval."""

    mean: float
    low: float
    high: float
    margin: float = math.nan
    """How far the mean score is from 0, in standard deviations of a run."""


@dataclass(frozen=True)
class Goal:
    """Something that a deployment has to do."""

    text: str
    """As it is read: `p95_delay_s <= 1 h` is `on_time(1 h) >= 95 %`."""
    measure: Count | str
    """What is counted in a run, or the metric that is looked at."""
    bound: float
    at_least: bool = True
    share: float | None = None
    """The share of runs in which it must hold; None: on average over all runs."""

    @property
    def of_shares(self) -> bool:
        """Whether it speaks of a share, of readings or of runs, and not of the mean of some other metric."""
        return self.share is not None or isinstance(self.measure, Count)

    def columns(self) -> tuple[str, ...]:
        """The columns of a run that it needs."""
        return self.measure.columns() if isinstance(self.measure, Count) else (self.measure,)

    def score(self, rows: Columns) -> Floats:
        """The score of each run."""
        if self.share is not None:
            return self._holds(rows).astype(np.float64) - self.share
        if isinstance(self.measure, Count):
            met, of = (rows[name] for name in self.measure.columns())
            return met - self.bound * of
        # A metric that a run does not have says nothing about the goal.
        distance = np.nan_to_num(rows[self.measure] - self.bound, nan=0.0)
        return distance if self.at_least else -distance

    def worst(self, rows: Columns) -> float | None:
        """The mean score of runs in which nothing arrives at all; None where no run is the worst possible."""
        if self.share is not None or not isinstance(self.measure, Count):
            return None
        return -self.bound * float(rows[self.measure.columns()[1]].mean())

    @property
    def wanted(self) -> float:
        """What the number that it speaks of has to come up to."""
        return self.bound if self.share is None else self.share

    @property
    def more_is_better(self) -> bool:
        """Whether that number must not be below, or else not be above."""
        return self.at_least or self.share is not None

    def side(self, value: Value) -> str:
        """Where the 95 % interval of a number is: "above" what is wanted, "below", or "open"."""
        low, high = (value.low, value.high) if self.more_is_better else (-value.high, -value.low)
        wanted = self.wanted if self.more_is_better else -self.wanted
        return "above" if low >= wanted else "below" if high < wanted else "open"

    def value(self, rows: Columns) -> Value:
        """The number that the goal speaks of, over all these runs."""
        margin = margin_of(self.score(rows))
        if self.share is not None:
            held, runs = int(self._holds(rows).sum()), len(self._holds(rows))
            return Value(held / runs, *binomial_interval(held, runs), margin)
        if isinstance(self.measure, Count):
            met, of = (rows[name] for name in self.measure.columns())
            pooled = float(met.sum() / of.sum()) if of.sum() else math.nan
            # A ratio of two means: its spread is that of what remains of each run (Cochran 1977, 2.11).
            width = estimate(met - pooled * of).half_width() / float(of.mean()) if of.sum() else math.nan
            return Value(pooled, max(0.0, pooled - width), min(1.0, pooled + width), margin)
        found = estimate(rows[self.measure].tolist())
        return Value(found.mean, found.mean - found.half_width(), found.mean + found.half_width(), margin)

    def per_run(self, rows: Columns) -> Floats:
        """The number that the goal speaks of, in each run; NaN where it has none."""
        if self.share is not None:
            return self._holds(rows).astype(np.float64)
        if isinstance(self.measure, Count):
            met, of = (rows[name] for name in self.measure.columns())
            shares: Floats = np.divide(met, of, out=np.full(len(of), math.nan), where=of > 0)
            return shares
        return rows[self.measure]

    def shares(self, rows: Columns) -> tuple[Floats, float]:
        """The share of each run, and what it has to be on average; a run in which nobody wants anything has just that.

        Only for goals on shares and on shares of runs.
        """
        bound = self.bound if self.share is None else self.share
        shares = self.per_run(rows)
        return np.where(np.isnan(shares), bound, shares), bound

    def _holds(self, rows: Columns) -> NDArray[np.bool_]:
        if isinstance(self.measure, Count):
            met, of = (rows[name] for name in self.measure.columns())
            return met >= self.bound * of
        values = rows[self.measure]
        return values >= self.bound if self.at_least else values <= self.bound


def margin_of(score: Floats) -> float:
    """The mean of a score, in standard deviations of a run."""
    spread, mean = float(score.std(ddof=1)), float(score.mean())
    if spread:
        return mean / spread
    return math.copysign(math.inf, mean) if mean else 0.0


def columns_of(goals: Sequence[Goal]) -> list[str]:
    """The columns of a run that these goals need."""
    return sorted({name for goal in goals for name in goal.columns()})


def parse_goal(text: str, kind: AnyKind) -> Goal:
    """The goal that a text means for a kind of network."""
    found = _GOAL.fullmatch(text)
    if found is None:
        raise BadInput(f'plan.goal "{text}": not a goal; write it like {_EXAMPLE}')
    share = float(found["share"]) / 100 if found["share"] else None
    if share is not None and not 0 < share < 1:
        raise BadInput(f'plan.goal "{text}": the share of runs must be between 0 and 100 %, both left out')
    try:
        return _goal(found["name"], found["of"], found["sign"], found["bound"], share, kind)
    except ValueError as error:
        raise BadInput(f'plan.goal "{text}": {error}') from None


def _goal(name: str, of: str | None, sign: str, bound: str, share: float | None, kind: AnyKind) -> Goal:
    quantile = _QUANTILE.fullmatch(name)
    if quantile and of is None:
        if sign != "<=":
            raise ValueError("a delay has an upper limit; write <=")
        level = 0.5 if quantile["median"] else int(quantile["level"]) / 100
        return _counted("on_time", bound, level, share, kind)
    if name == "delivery_ratio" or name in COUNTS:
        if sign != ">=":
            raise ValueError("more is better; write >=")
        if name != "delivery_ratio" and not of:
            raise ValueError(f"within which time? Write it like {name}(1 h)")
        return _counted("delivered" if name == "delivery_ratio" else name, of, _fraction(bound), share, kind)
    averaged = name == "mean" and of is not None
    metric = str(of) if averaged else name
    if averaged and share is not None:
        raise ValueError(f"either the mean of all runs or a share of them: mean({of}), or {of} ... in 90 % of runs")
    known = [one.name for one in kind.definitions.values() if one.name not in ("protocol", "seed")]
    if metric not in known:
        raise ValueError(f'no metric "{metric}"; {did_you_mean(metric, [*known, *COUNTS])}')
    limit = _number(bound, kind.definitions[metric].unit)
    if averaged:
        return Goal(f"mean({metric}) {sign} {bound}", metric, limit, sign == ">=")
    share = DEFAULT_SHARE if share is None else share
    return Goal(f"{metric} {sign} {bound} in {100 * share:g} % of runs", metric, limit, sign == ">=", share)


def _counted(what: str, within: str | None, bound: float, share: float | None, kind: AnyKind) -> Goal:
    if kind.pairs is None:
        raise ValueError(f"in networks of kind {kind.name!r} nobody waits for a delivery")
    within_s = parse_quantity(within, TIME) if within else None
    if within_s is not None and within_s <= 0:
        raise ValueError("the time must be more than 0")
    name = "delivery_ratio" if within is None else f"{what}({within})"
    runs = "" if share is None else f" in {100 * share:g} % of runs"
    return Goal(f"{name} >= {100 * bound:g} %{runs}", Count(what, within_s), bound, True, share)


def _fraction(text: str) -> float:
    found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(%?)", text)
    fraction = float(found[1]) / (100 if found and found[2] else 1) if found else math.nan
    if not 0 < fraction < 1:
        raise ValueError(f'"{text}" is not a share between 0 and 100 %; write it like 95 %')
    return fraction


def _number(text: str, unit: str) -> float:
    """A bound in the metric's own unit; a time may have another one."""
    if unit == "fraction":
        return _fraction(text)
    try:
        return float(text)
    except ValueError:
        if unit in ("s", "d"):
            return parse_quantity(text, TIME) / (86_400 if unit == "d" else 1)
        known = f"a number of {unit}" if unit else "a number"
        raise ValueError(f'"{text}" is not {known}') from None
