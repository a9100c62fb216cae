"""What each sensor has: what its file says of it, else what the scenario gives to all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.core.harvest import HOURS
from serai.field.passes import Ranges
from serai.field.sections import MOST_EVENTS, FieldScenario
from serai.field.world import Harvest
from serai.world.equipment import Own
from serai.world.files import bad_file
from serai.world.grid import Floats, Numbers

_DAY_S = 86_400
_MOST_J = 9e6


class Equipment(NamedTuple):
    """Batteries, mean times between events, queues, ranges and powers of N sensors; relays are the last of them."""

    battery_j: Floats
    interval_s: Floats  # infinite: nothing happens there
    queue: Numbers | None  # None: as the scenario says
    ranges: Ranges | None  # None: by cells
    idle_w: Floats | None  # None: listening costs nobody anything
    harvest: Harvest | None  # None: nobody harvests


def equip(scenario: FieldScenario, own: Own) -> Equipment:
    """What the sensors of a scenario have."""
    _check_ranges(scenario, own)
    relays = len(scenario.sensors.relays or ())
    interval_s = _filled(own.interval_s, scenario.events.interval_s)
    interval_s[len(interval_s) - relays :] = math.inf
    if scenario.events.file is None:
        _check_events(scenario, interval_s)
    idle_w = _filled(own.idle_w, scenario.sensors.idle_w)
    battery_j = _filled(own.battery_j, scenario.sensors.battery_j)
    queue = _filled(own.queue, scenario.sensors.queue).astype(np.int32)
    return Equipment(
        battery_j=battery_j,
        interval_s=interval_s,
        queue=None if (queue == scenario.sensors.queue).all() else queue,
        ranges=ranges_of(scenario, _filled(own.range_m, scenario.radio.range_m or math.nan)),
        idle_w=idle_w if idle_w.any() else None,
        harvest=_harvest(scenario, own, battery_j),
    )


def harvest_of(scenario: FieldScenario, watts: Floats) -> Harvest | None:
    """What sensors harvest under a scenario, if anything."""
    begin_s = 0 if scenario.begin is None else math.floor(scenario.begin) % _DAY_S
    return Harvest(watts, scenario.sensors.wake, begin_s) if watts.any() else None


def _harvest(scenario: FieldScenario, own: Own, battery_j: Floats) -> Harvest | None:
    usual = scenario.sensors.harvest_w
    watts = np.array([usual if one is None else one for one in own.harvest_w], np.float64).reshape(-1, HOURS)
    most_j = float((battery_j + watts.mean(axis=1) * scenario.duration_s).max(initial=0.0))
    if watts.any() and most_j > _MOST_J:
        where = scenario.sensors.file if any(own.harvest_w) else "sensors.harvest"
        raise BadInput(
            f"{where}: the battery of a sensor and what it harvests in the whole run come to {most_j / 1e6:.6g} MJ;"
            " at most 9 MJ can be counted: less power, or a shorter duration"
        )
    return harvest_of(scenario, watts)


def ranges_of(scenario: FieldScenario, sensors_m: Floats) -> Ranges | None:
    """How far nodes hear, if reach is in metres."""
    range_m = scenario.radio.range_m
    return None if range_m is None else Ranges(sensors_m, range_m)


def _filled(own: Sequence[float | None], usual: float) -> Floats:
    return np.array([usual if value is None else value for value in own], np.float64)


def _check_ranges(scenario: FieldScenario, own: Own) -> None:
    """Ranges of sensors need that of the subscribers."""
    first = next((place for place, range_m in zip(own.places, own.range_m, strict=True) if range_m is not None), None)
    if first is not None and scenario.radio.range_m is None:
        problem = 'range: only with reach in metres: write radio.range = "60 m", or leave it out'
        assert scenario.sensors.file is not None
        raise bad_file(scenario.sensors.file, [f"{first}: {problem}"])


def _check_events(scenario: FieldScenario, interval_s: Floats) -> None:
    expected = float((max(0.0, scenario.duration_s - scenario.events.quiet_s) / interval_s).sum())
    if expected > MOST_EVENTS:
        where = scenario.sensors.file or "events.interval"
        problem = f"about {expected:.1g} events would be born; at most {MOST_EVENTS:,} are possible"
        raise BadInput(f"{where}: {problem}")
