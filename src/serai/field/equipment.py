"""What each sensor has: what its file says of it, else what the scenario gives to all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.field.passes import Ranges
from serai.field.sections import MOST_EVENTS, FieldScenario
from serai.world.equipment import Own
from serai.world.files import bad_file
from serai.world.grid import Floats, Numbers


class Equipment(NamedTuple):
    """Batteries, mean times between events, queues, ranges and powers of N sensors; relays are the last of them."""

    battery_j: Floats
    interval_s: Floats  # infinite: nothing happens there
    queue: Numbers | None  # None: as the scenario says
    ranges: Ranges | None  # None: by cells
    idle_w: Floats | None  # None: listening costs nobody anything


def equip(scenario: FieldScenario, own: Own) -> Equipment:
    """What the sensors of a scenario have."""
    _check_ranges(scenario, own)
    relays = len(scenario.sensors.relays or ())
    interval_s = _filled(own.interval_s, scenario.events.interval_s)
    interval_s[len(interval_s) - relays :] = math.inf
    if scenario.events.file is None:
        _check_events(scenario, interval_s)
    idle_w = _filled(own.idle_w, scenario.sensors.idle_w)
    queue = _filled(own.queue, scenario.sensors.queue).astype(np.int32)
    return Equipment(
        battery_j=_filled(own.battery_j, scenario.sensors.battery_j),
        interval_s=interval_s,
        queue=None if (queue == scenario.sensors.queue).all() else queue,
        ranges=ranges_of(scenario, _filled(own.range_m, scenario.radio.range_m or math.nan)),
        idle_w=idle_w if idle_w.any() else None,
    )


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
