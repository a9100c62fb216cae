"""What happens in a field: each sensor's events, drawn from streams of its own.

Event k of sensor i depends on the seed, i and k alone: one sensor more leaves the events of the others as they are, and
so does a longer run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serai.core.content import Attribute
from serai.core.draws import exponential, fraction, own_stream
from serai.core.jit import kernel
from serai.core.streams import BIRTHS, CONTENT, stream
from serai.world.grid import Floats, Numbers
from serai.world.tables import with_room

_SENSOR, _NTH, _TIME = range(3)
_COLUMNS = 3


def draw_events(
    interval_s: Floats, busy_s: float, attributes: tuple[Attribute, ...], seed: int
) -> tuple[Numbers, Floats, Floats]:
    """Which sensor publishes when and what, numbered in order of birth (ties: by sensor).

    Each sensor is a Poisson process of its own mean interval until `busy_s`.
    """
    expected = int(1.1 * float((busy_s / interval_s).sum())) + 64
    born = _draw_births(np.empty((expected, _COLUMNS)), interval_s, float(busy_s), _key(seed, BIRTHS))
    born = born[np.argsort(born[:, _TIME], kind="stable")]  # they are by sensor now, so ties stay so
    sensor, nth = born[:, _SENSOR].astype(np.int32), born[:, _NTH].astype(np.int64)
    values = np.empty((len(born), len(attributes)))
    for column, attribute in enumerate(attributes):
        domain = (float(attribute.low), float(attribute.high), attribute.kind == "integer")
        _draw_values(sensor, nth, domain, _key(seed, CONTENT, column), values, column)
    return sensor, born[:, _TIME].copy(), values


def _key(seed: int, *concern: int) -> int:
    """What the sensors' streams of one concern are made of."""
    return int(stream(seed, *concern).integers(1 << 62))


@kernel
def _draw_births(rows: Floats, interval_s: Floats, busy_s: float, key: int) -> Floats:
    """Sensor, number at the sensor, and time of every birth, sensor by sensor."""
    count = 0
    for sensor in range(len(interval_s)):
        own, nth = own_stream(key, sensor), 0
        passed, n = exponential(own, 0)  # in mean intervals
        while passed * interval_s[sensor] < busy_s:
            rows = with_room(rows, count)
            rows[count, _SENSOR], rows[count, _NTH], rows[count, _TIME] = sensor, nth, passed * interval_s[sensor]
            count += 1
            nth += 1
            gap, n = exponential(own, n)
            passed += gap
    return rows[:count].copy()


@kernel
def _draw_values(
    sensor: Numbers, nth: NDArray[np.int64], domain: tuple[float, float, bool], key: int, values: Floats, column: int
) -> None:
    """A value of one attribute for each event, evenly from its domain."""
    low, high, whole = domain
    width = high - low + whole
    for event in range(len(sensor)):
        above = fraction(own_stream(key, sensor[event]), nth[event]) * width
        # Rounding may lead beyond the highest.
        values[event, column] = min(low + (np.floor(above) if whole else above), high)
