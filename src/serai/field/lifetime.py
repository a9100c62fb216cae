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

from serai.core.harvest import HOURS
from serai.field.log import FieldRun
from serai.field.naps import first_death_s, lived_s
from serai.field.sections import FieldScenario
from serai.field.world import World

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_S_PER_DAY: Final = 86_400
_PJ_PER_J: Final = 1e12
_S_PER_HOUR: Final = 3_600
_DAYS_TO_SETTLE: Final = 10
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
    first_s = first_death_s(ledger)
    extrapolated = with_control if run.scenario.radio.control_costs else events_only
    days = extrapolated if first_s is None else first_s / _S_PER_DAY
    return Lifetimes(days, events_only, with_control)


def _first_death_days(run: FieldRun, spent_pj: Counts, steady_pj: Counts) -> float:
    """When the first battery is empty if every sensor goes on as in the run; infinite if none spends any.

    The dead, who are seen no longer, and runs without a whole steady part are extrapolated from all that they spent.
    """
    if not len(spent_pj):
        return math.nan
    ledger, world = run.ledger, run.world
    living = ledger.died < 0
    end_s: float = run.scenario.duration_s if ledger.ended_s is None else ledger.ended_s
    seconds = np.where(living, end_s, ledger.died) if ledger.naps is None else lived_s(ledger, math.floor(end_s))
    from_all = _lives_s(world, spent_pj, seconds)
    steady = steady_part(run.scenario)
    if steady is not None:
        steady_pj = steady_pj + np.outer(steady.seconds, world.idle_pj)
    if steady is None or end_s < steady.end or not (living & (steady_pj.sum(axis=0) > 0)).any():
        return float(from_all.min()) / _S_PER_DAY
    lasting = _steady_life_s(world, living, steady_pj, steady)
    return min(lasting, float(from_all[~living].min(initial=math.inf))) / _S_PER_DAY


def _steady_life_s(world: World, living: NDArray[np.bool_], steady_pj: Counts, steady: SteadyPart) -> float:
    """When the first battery is empty if the living always spend as in the halves of the steady part."""
    whole = _lives_s(world, steady_pj.sum(axis=0), sum(steady.seconds))[living].min()
    parts = zip(steady_pj, steady.seconds, strict=True)
    halves = [_lives_s(world, pj, seconds)[living].min() for pj, seconds in parts]
    if math.isinf(whole) or any(map(math.isinf, halves)):  # by what it harvests every sensor lives on
        return float(whole)
    shrunk = math.sqrt(halves[0]) * math.sqrt(halves[1]) / whole
    return float(whole if math.isinf(shrunk) else whole / shrunk)


def _lives_s(world: World, spent_pj: Counts, seconds: Floats | Counts | float) -> Floats:
    """How long each battery lasts at what was spent in so many seconds."""
    battery_pj = world.battery_j * _PJ_PER_J
    if world.harvest is not None:
        return lasting_s(world, spent_pj / np.maximum(seconds, 1))
    return np.where(spent_pj > 0, battery_pj / np.maximum(spent_pj, 1) * seconds, math.inf)


def lasting_s(world: World, spent_pj_per_s: Floats) -> Floats:
    """How long each battery lasts if so much is always spent, day by day with what is harvested in its hours."""
    battery_pj = world.battery_j * _PJ_PER_J
    if world.harvest is None:
        return np.where(spent_pj_per_s > 0, battery_pj / np.maximum(spent_pj_per_s, 1e-12), math.inf)
    hour = world.harvest.since_midnight_s // _S_PER_HOUR
    net = np.roll(world.harvest.pj - spent_pj_per_s[:, None], -hour, axis=1) * float(_S_PER_HOUR)
    late_s = world.harvest.since_midnight_s % _S_PER_HOUR  # the first hour has begun already
    return np.array([_lasting_s(full, by_hour, late_s) for full, by_hour in zip(battery_pj, net, strict=True)])


def _lasting_s(full_pj: float, by_hour_pj: Floats, late_s: int) -> float:
    """How long one battery lasts that begins full, and gains or loses so much in each hour of a day."""
    left, time_s = full_pj, float(-late_s)
    changes = by_hour_pj.tolist()
    for days in range(_DAYS_TO_SETTLE):
        morning, clipped = left, False
        for nth, change in enumerate(changes):
            share = 1.0 - late_s / _S_PER_HOUR if days == nth == 0 else 1.0
            if left + change * share <= 0:
                return float(time_s + (nth + 1 - share - left / change) * _S_PER_HOUR)
            clipped |= left + change * share > full_pj
            left = min(left + change * share, full_pj)
        time_s += HOURS * _S_PER_HOUR
        lost = morning - left
        if lost <= 0 and days > 0:
            return math.inf
        if lost > 0 and not clipped and days > 0:  # from now on each day takes the same
            deepest = -min(0.0, float(np.cumsum(by_hour_pj).min()))
            whole = max(math.floor((left - deepest) / lost), 0)
            left, time_s = left - whole * lost, time_s + whole * HOURS * _S_PER_HOUR
    return math.inf
