"""Fewer readings of each sensor: one in a time, or only where something has changed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel
from serai.world.grid import Floats, Numbers

Flags = NDArray[np.bool_]


def thinned(sensor: Numbers, time_s: Floats, every_s: float | None, watched: Floats, change: Floats) -> Flags:
    """Which readings are kept, of rows in order of time.

    Of each sensor the first is kept, and then each that comes `every_s` or more after the last that was kept. Of those
    that are left, each in which one of the `watched` columns differs by `change` or more (0: at all) from the last that
    was kept; a value that comes or goes is a change.
    """
    kept = np.ones(len(sensor), np.bool_)
    count = int(sensor.max(initial=-1)) + 1
    if every_s is not None:
        _one_in_a_time(sensor, time_s, float(every_s), np.full(count, -np.inf), kept)
    if len(change):
        _where_changed(sensor, watched, change, np.full(count, -1, np.int64), kept)
    return kept


@kernel
def _one_in_a_time(sensor: Numbers, time_s: Floats, every_s: float, last_s: Floats, kept: Flags) -> None:
    for row in range(len(sensor)):
        kept[row] = time_s[row] - last_s[sensor[row]] >= every_s
        if kept[row]:
            last_s[sensor[row]] = time_s[row]


@kernel
def _where_changed(sensor: Numbers, watched: Floats, change: Floats, last: NDArray[np.int64], kept: Flags) -> None:
    for row in range(len(sensor)):
        if not kept[row]:
            continue
        before = last[sensor[row]]
        changed = before < 0
        if before >= 0:
            for k in range(len(change)):
                new, old = watched[row, k], watched[before, k]
                if np.isnan(new) or np.isnan(old):
                    changed |= np.isnan(new) != np.isnan(old)
                else:
                    changed |= new != old and abs(new - old) >= change[k]
        kept[row] = changed
        if changed:
            last[sensor[row]] = row
