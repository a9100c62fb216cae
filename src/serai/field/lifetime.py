"""How long batteries last: what a run of some hours says about the day on which the first one is empty.

Two things make a short run look better or worse than a long one:

* At its start queues are empty and nobody has been met, and at its end nothing is born any more. So sensors go on as
  they did in the *steady part* between the two.
* The busiest of many sensors owes some of what it spent to chance, the more the shorter one looks: in a longer time
  somebody else would have had that luck. How much, the halves of the steady part tell: from the whole of it to its
  halves the time to the first death shrinks by some factor, and from for ever to the whole by about the same
  (Quenouille's correction of bias, on a logarithmic scale).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.field.log import FieldRun
from serai.field.sections import FieldScenario

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_S_PER_DAY: Final = 86_400
_PJ_PER_J: Final = 1e12
_SETTLED: Final = 1 / 2  # of the events' lifetime: most copies that are sent are younger than that
_AT_MOST: Final = 1 / 4  # of the time in which events are born


class Lifetimes(NamedTuple):
    """Days until the first battery is empty: as it is, or extrapolated without and with control messages."""

    days: float
    events_only_days: float
    with_control_days: float


class SteadyPart(NamedTuple):
    """Where a run's steady part begins, is halved, and ends: whole seconds, each the first of what follows."""

    begin: int
    middle: int
    end: int

    @property
    def seconds(self) -> tuple[int, int]:
        """How long each half is."""
        return self.middle - self.begin, self.end - self.middle


def steady_part(scenario: FieldScenario) -> SteadyPart | None:
    """The part of a run without its empty start and its quiet end; None if the run is too short to have one."""
    born_s = scenario.duration_s - scenario.events.quiet_s
    begin = max(1, round(min(_SETTLED * scenario.events.lifetime_s, _AT_MOST * born_s)))
    end = math.floor(born_s)
    return SteadyPart(begin, (begin + end) // 2, end) if end - begin >= 2 else None


def lifetimes_of(run: FieldRun) -> Lifetimes:
    """Until when batteries last: the first death, if the run has seen one, else extrapolated."""
    ledger = run.ledger
    events_only = _first_death_days(run, ledger.spent_pj(control=False), ledger.steady_event_pj)
    with_control = _first_death_days(
        run, ledger.spent_pj(control=True), ledger.steady_event_pj + ledger.steady_control_pj
    )
    dead = ledger.died[ledger.died >= 0]
    extrapolated = with_control if run.scenario.radio.control_costs else events_only
    days = int(dead.min()) / _S_PER_DAY if len(dead) else extrapolated
    return Lifetimes(days, events_only, with_control)


def _first_death_days(run: FieldRun, spent_pj: Counts, steady_pj: Counts) -> float:
    """When the first battery is empty if every sensor goes on as in the run; infinite if none spends any.

    The dead, who are seen no longer, and runs without a whole steady part are extrapolated from all that they spent.
    """
    if not len(spent_pj):
        return math.nan
    ledger, battery_pj = run.ledger, run.world.battery_j * _PJ_PER_J
    living = ledger.died < 0
    end_s: float = run.scenario.duration_s if ledger.ended_s is None else ledger.ended_s
    from_all = _lives_s(battery_pj, spent_pj, np.where(living, end_s, ledger.died))
    steady = steady_part(run.scenario)
    if steady is not None:
        steady_pj = steady_pj + np.outer(steady.seconds, run.world.idle_pj)
    if steady is None or end_s < steady.end or not (living & (steady_pj.sum(axis=0) > 0)).any():
        return float(from_all.min()) / _S_PER_DAY
    lasting = _steady_life_s(battery_pj[living], steady_pj[:, living], steady)
    return min(lasting, float(from_all[~living].min(initial=math.inf))) / _S_PER_DAY


def _steady_life_s(battery_pj: Floats, steady_pj: Counts, steady: SteadyPart) -> float:
    """When the first battery is empty if all sensors always spend as in the halves of the steady part."""
    whole = _lives_s(battery_pj, steady_pj.sum(axis=0), sum(steady.seconds)).min()
    halves = [_lives_s(battery_pj, pj, seconds).min() for pj, seconds in zip(steady_pj, steady.seconds, strict=True)]
    shrunk = math.sqrt(halves[0]) * math.sqrt(halves[1]) / whole
    return float(whole if math.isinf(shrunk) else whole / shrunk)


def _lives_s(battery_pj: Floats, spent_pj: Counts, seconds: Floats | float) -> Floats:
    """How long each battery lasts at what was spent in so many seconds."""
    return np.where(spent_pj > 0, battery_pj / np.maximum(spent_pj, 1) * seconds, math.inf)
