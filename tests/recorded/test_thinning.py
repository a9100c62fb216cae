"""Thinning keeps the readings that an obvious slow version keeps."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from serai.recorded.thinning import thinned

Row = tuple[int, float, tuple[float, ...]]

values = st.sampled_from([0.0, 0.4, 0.5, 1.0, 1.5, -2.0, math.nan])
rows = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.5, 1, 2, 3, 10, 11.5]), st.tuples(values, values)))


def slowly(rows: list[Row], every_s: float | None, change: list[float]) -> list[bool]:
    """Sensor by sensor, one list after the other."""
    kept = set(range(len(rows)))
    for sensor in {row[0] for row in rows}:
        own = [place for place, row in enumerate(rows) if row[0] == sensor]
        if every_s is not None:
            own = spread(own, rows, every_s)
        if change:
            own = changing(own, rows, change)
        kept -= {place for place, row in enumerate(rows) if row[0] == sensor and place not in own}
    return [place in kept for place in range(len(rows))]


def spread(own: list[int], rows: list[Row], every_s: float) -> list[int]:
    chosen: list[int] = []
    for place in own:
        if not chosen or rows[place][1] - rows[chosen[-1]][1] >= every_s:
            chosen.append(place)
    return chosen


def changing(own: list[int], rows: list[Row], change: list[float]) -> list[int]:
    chosen: list[int] = []
    for place in own:
        if not chosen or any(
            differs(new, old, least)
            for new, old, least in zip(rows[place][2], rows[chosen[-1]][2], change, strict=True)
        ):
            chosen.append(place)
    return chosen


def differs(new: float, old: float, least: float) -> bool:
    if math.isnan(new) or math.isnan(old):
        return math.isnan(new) is not math.isnan(old)
    return new != old and abs(new - old) >= least


@given(rows, st.sampled_from([None, 0.5, 1.0, 2.5]), st.sampled_from([[], [0.5, 0.0], [1.0, 1.5]]))
def test_thinning_is_its_slow_version(drawn: list[Row], every_s: float | None, change: list[float]) -> None:
    drawn = sorted(drawn, key=lambda row: row[:2])
    drawn.sort(key=lambda row: row[1])
    sensor, time_s = np.array([row[0] for row in drawn], np.int32), np.array([row[1] for row in drawn], np.float64)
    watched = np.array([row[2][: len(change)] for row in drawn], np.float64).reshape(len(drawn), len(change))
    kept = thinned(sensor, time_s, every_s, watched, np.array(change, np.float64))
    assert kept.tolist() == slowly(drawn, every_s, change)
