"""Contacts of sensors by radio range."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.world.grid import Grid, place_uniform
from serai.world.mobility import random_waypoint
from serai.world.ranges import sensor_contacts_by_range
from tests.world import slow
from tests.world.slow import tracks_from
from tests.world.worlds import coordinates, grids, tracks


def rows_of(found: tuple[np.ndarray, ...]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in found), strict=True))


def test_a_walker_passes_a_sensor() -> None:
    # At 2 m/s along y = 0, past a sensor at (10, 3) with a range of 5 m: within reach from x = 6 to 14.
    walk = tracks_from([[(0.0, 0.0, 0.0), (20.0, 40.0, 0.0)]])
    found = sensor_contacts_by_range(walk, np.array([10.0, 10.0]), np.array([3.0, 6.0]), 5.0, 30.0)
    assert rows_of(found) == [(0, 0, pytest.approx(3.0), pytest.approx(7.0))]
    assert [column.dtype.str[1:] for column in found] == ["i4", "i4", "f8", "f8"]


def test_a_contact_by_range_outlasts_turning_points_and_ends_with_the_run() -> None:
    walk = tracks_from([[(1.0, 0.0, 0.0), (2.0, 4.0, 0.0), (5.0, 4.0, 0.0), (6.0, 0.0, 0.0)]])
    found = sensor_contacts_by_range(walk, np.array([0.0, 7.0]), np.array([0.0, 0.0]), 5.0, 30.0)
    assert rows_of(found) == [(0, 0, 0.0, 30.0), (0, 1, pytest.approx(1.5), pytest.approx(5.5))]
    found = sensor_contacts_by_range(walk, np.array([0.0, 7.0]), np.array([0.0, 0.0]), 5.0, 3.0)
    assert rows_of(found) == [(0, 0, 0.0, 3.0), (0, 1, pytest.approx(1.5), 3.0)]


def test_no_sensors_or_nobody() -> None:
    walk = tracks_from([[(0.0, 0.0, 0.0)]])
    assert rows_of(sensor_contacts_by_range(walk, np.empty(0), np.empty(0), 5.0, 30.0)) == []
    assert rows_of(sensor_contacts_by_range(tracks_from([]), np.zeros(1), np.zeros(1), 5.0, 30.0)) == []
    assert rows_of(sensor_contacts_by_range(tracks_from([[]]), np.zeros(1), np.zeros(1), 5.0, 30.0)) == []


@pytest.mark.parametrize("range_m", [0.0, -1.0, float("nan"), float("inf")])
def test_a_range_must_be_above_zero(range_m: float) -> None:
    with pytest.raises(BadInput, match="must be above 0"):
        sensor_contacts_by_range(tracks_from([]), np.zeros(1), np.zeros(1), range_m, 30.0)


def _grazes(walks: object, x: float, y: float, range_m: float, duration_s: float) -> bool:
    """Whether a line comes so near to the edge of the range that rounding may decide."""
    for subscriber in range(len(walks.start) - 1):  # type: ignore[attr-defined]
        for _, _, x0, y0, x1, y1 in slow.lines(walks, subscriber, duration_s):  # type: ignore[arg-type]
            dx, dy = x1 - x0, y1 - y0
            share = min(max(((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy), 0), 1) if dx or dy else 0.0
            if abs(np.hypot(x0 + share * dx - x, y0 + share * dy - y) - range_m) < 1e-6:
                return True
    return False


@given(grids(), st.sampled_from([0.3, 1.0, 2.6, 100.0]), st.sampled_from([3.3, 20.0]), st.data())
def test_contacts_by_range_as_the_obvious_version_finds_them(
    grid: Grid, range_m: float, duration_s: float, data: st.DataObject
) -> None:
    walks = data.draw(tracks(grid, first_s=2.5))
    places = st.tuples(coordinates(grid.width_m), coordinates(grid.height_m))
    sensors = data.draw(st.lists(places, max_size=8))
    x, y = [a + 0.01 for a, _ in sensors], [b - 0.03 for _, b in sensors]
    assume(not any(_grazes(walks, *place, range_m, duration_s) for place in zip(x, y, strict=True)))
    found = rows_of(sensor_contacts_by_range(walks, np.array(x), np.array(y), range_m, duration_s))
    expected = slow.range_contacts(walks, x, y, range_m, duration_s)
    expected = [row for row in expected if row[3] > row[2] + 1e-9]
    assert [row[:2] for row in sorted(found)] == [row[:2] for row in sorted(expected)]
    times = np.array([row[2:] for row in sorted(found)]).reshape(-1, 2)
    assert times == pytest.approx(np.array([row[2:] for row in sorted(expected)]).reshape(-1, 2), abs=1e-6)
    assert found == sorted(found, key=lambda row: (row[2], row[0], row[1]))


@given(st.integers(0, 2**32), st.floats(0.5, 60.0))
def test_contacts_by_range_hold_at_every_moment(seed: int, range_m: float) -> None:
    grid = Grid(200.0, 150.0, 1, 1)
    source = np.random.SeedSequence(seed)
    walks = random_waypoint(grid, 2, 200.0, (1.0, 9.0), (0.0, 20.0), seed=source)
    x, y = place_uniform(grid, 10, np.random.default_rng(source))
    found = rows_of(sensor_contacts_by_range(walks, x, y, range_m, 200.0))
    for subscriber in range(2):
        for time_s in np.linspace(0.0, 199.9, 40):
            _, _, here_x, here_y = slow.where(walks, subscriber, time_s)
            away = np.hypot(x - here_x, y - here_y)
            now = {s for p, s, start, end in found if p == subscriber and start <= time_s < end}
            assert set(np.flatnonzero(away < range_m - 1e-6)) <= now <= set(np.flatnonzero(away < range_m + 1e-6))
