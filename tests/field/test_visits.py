"""Visits, paths and contacts."""

import itertools
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.field.communities import find_communities
from serai.field.visits import Visits, community_contacts, path_cells, sensor_contacts_by_cell, visits_of
from serai.world.grid import Grid, cell_at, place_uniform
from serai.world.mobility import is_leg, position_at, random_waypoint
from tests.world import slow
from tests.world.slow import tracks_from
from tests.world.worlds import coordinates, grids, tracks

ROW = Grid(30.0, 10.0, 3, 1)


def path(grid: Grid, x0: float, y0: float, x1: float, y1: float) -> list[int]:
    room = np.full(grid.columns + grid.rows, -1, np.int32)
    return [int(cell) for cell in room[: path_cells(x0, y0, x1, y1, grid, room)]]


# ---- visits


def test_a_walker_crosses_three_cells() -> None:
    # From x = 0 to 30 at 3 m/s, 2 s of rest, then back at 5 m/s; x = 10 is reached after 10/3 s.
    walk = tracks_from([[(0.0, 0.0, 5.0), (10.0, 30.0, 5.0), (12.0, 30.0, 5.0), (18.0, 0.0, 5.0)]])
    assert slow.rows_of(visits_of(walk, ROW, 20)) == [
        (0, 0, 0, 0, 0, 1, 1, 1),
        (4, 0, 1, 0, 0, 1, 1, 1),
        (7, 0, 2, 0, 0, 1, 1, 1),
        (10, 0, 2, 1, 1, 0, 0, 0),
        (12, 0, 2, 2, 2, 1, 0, 0),
        (15, 0, 1, 2, 2, 1, 1, 1),
        (17, 0, 0, 2, 2, 1, 1, 1),
        (18, 0, 0, 3, 3, 0, 0, 0),
    ]


def test_visits_are_sorted_by_slot_then_subscriber() -> None:
    walks = tracks_from([[(0.0, 0.0, 5.0), (3.0, 30.0, 5.0)], [(0.0, 25.0, 5.0)], [(0.0, 0.0, 5.0), (2.0, 20.0, 5.0)]])
    found = visits_of(walks, ROW, 5)
    order = list(zip(found.slot.tolist(), found.subscriber.tolist(), strict=True))
    assert order == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 2), (3, 0)]


def test_a_segment_without_duration_never_becomes_current_unless_it_is_the_last() -> None:
    walk = tracks_from([[(0.0, 1.0, 1.0), (2.0, 5.0, 1.0), (2.0, 25.0, 1.0), (4.0, 25.0, 1.0), (4.0, 1.0, 1.0)]])
    found = visits_of(walk, ROW, 6)
    assert list(zip(found.slot.tolist(), found.segment.tolist(), found.cell.tolist(), strict=True)) == [
        (0, 0, 0),
        (2, 2, 2),
        (4, 4, 0),
    ]


def test_a_segment_between_two_slots_is_never_visited() -> None:
    walk = tracks_from([[(0.0, 1.0, 1.0), (1.2, 5.0, 1.0), (1.8, 25.0, 1.0)]])
    assert visits_of(walk, ROW, 4).segment.tolist() == [0, 2]


def test_no_slots_and_nobody() -> None:
    walk = tracks_from([[(0.0, 1.0, 1.0)]])
    assert all(column.size == 0 for column in visits_of(walk, ROW, 0))
    assert all(column.size == 0 for column in visits_of(tracks_from([]), ROW, 5))


def test_types_of_the_columns() -> None:
    found = visits_of(tracks_from([[(0.0, 1.0, 1.0)]]), ROW, 2)
    assert [column.dtype.str[1:] for column in found] == ["i4", "i4", "i4", "i4", "i4", "u1", "u1", "u1"]


@given(grids(), st.data())
def test_visits_as_the_obvious_version_finds_them(grid: Grid, data: st.DataObject) -> None:
    walks = data.draw(tracks(grid, first_s=2.5))
    assert slow.rows_of(visits_of(walks, grid, 20)) == slow.visits(walks, grid, 20)


@given(st.integers(0, 2**32), st.sampled_from(["cold", "steady"]))
def test_visits_of_random_waypoints(seed: int, start: str) -> None:
    grid = Grid(200.0, 150.0, 7, 9)
    source = np.random.SeedSequence(seed)
    walks = random_waypoint(grid, 3, 100, (1.0, 9.0), (0.0, 20.0), start, seed=source)  # type: ignore[arg-type]
    assert slow.rows_of(visits_of(walks, grid, 100)) == slow.visits(walks, grid, 100)


def test_read_only_tracks_are_as_good() -> None:
    walks = tracks_from([[(0.0, 0.0, 5.0), (10.0, 30.0, 5.0)]])
    expected = slow.rows_of(visits_of(walks, ROW, 20))
    for column in walks:
        column.flags.writeable = False
    assert slow.rows_of(visits_of(walks, ROW, 20)) == expected


@given(grids(), st.data(), st.floats(0, 40))
def test_a_position_is_never_off_its_segment(grid: Grid, data: st.DataObject, time_s: float) -> None:
    walks = data.draw(tracks(grid))
    for subscriber in range(len(walks.start) - 1):
        segment, leg, x, y = slow.where(walks, subscriber, time_s)
        assert position_at(walks, subscriber, segment, time_s) == (x, y)
        assert is_leg(walks, subscriber, segment) == leg
        end = min(segment + 1, walks.start[subscriber + 1] - 1)
        assert min(walks.x_m[segment], walks.x_m[end]) <= x <= max(walks.x_m[segment], walks.x_m[end])


# ---- paths


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ((0.5, 0.5, 2.5, 0.5), [0, 1, 2]),
        ((2.5, 0.5, 0.5, 0.5), [2, 1, 0]),
        ((0.5, 0.5, 0.5, 2.5), [0, 3, 6]),
        ((0.5, 0.5, 0.5, 0.5), [0]),
        ((0.5, 0.5, 2.5, 1.5), [0, 1, 4, 5]),
        ((0.5, 0.5, 2.5, 2.5), [0, 4, 8]),  # through two corners, which belong to the cells beyond
        ((2.5, 2.5, 0.5, 0.5), [8, 4, 0]),
        ((0.5, 2.5, 2.5, 0.5), [6, 7, 4, 5, 2]),  # corners belong to the cell on their upper right
        ((2.5, 0.5, 0.5, 2.5), [2, 5, 4, 7, 6]),
        ((1.0, 0.5, 0.5, 0.5), [1, 0]),  # an edge belongs to the cell on its right
        ((0.5, 0.5, 1.0, 0.5), [0, 1]),
        ((3.0, 3.0, 3.0, 0.0), [8, 5, 2]),  # the far edges belong to the last column and row
        ((1.0, 2.5, 1.0, 0.5), [7, 4, 1]),
    ],
)
def test_paths_by_hand(line: tuple[float, float, float, float], cells: list[int]) -> None:
    assert path(Grid(3.0, 3.0, 3, 3), *line) == cells


@given(grids(), st.data())
def test_a_path_has_exactly_the_cells_of_its_points(grid: Grid, data: st.DataObject) -> None:
    ends = [data.draw(coordinates(limit)) for limit in (grid.width_m, grid.height_m) * 2]
    assert set(path(grid, *ends)) == slow.cells_of_line(grid, *ends)


@st.composite
def any_lines(draw: st.DrawFn) -> tuple[Grid, tuple[float, float, float, float]]:
    """Fields and lines of any numbers, near ones and ends on edges included."""
    columns, rows = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    grid = Grid(draw(st.floats(0.1, 1e5)), draw(st.floats(0.1, 1e5)), columns, rows)
    shares = st.one_of(st.floats(0, 1), st.integers(0, 12).map(lambda n: n / 12), st.sampled_from([0.5, 0.5 + 1e-16]))
    x0, x1 = (min(draw(shares) * grid.width_m, grid.width_m) for _ in range(2))
    y0, y1 = (min(draw(shares) * grid.height_m, grid.height_m) for _ in range(2))
    return grid, (x0, y0, x1, y1)


@given(any_lines())
def test_a_path_leads_from_end_to_end_without_a_gap(
    case: tuple[Grid, tuple[float, float, float, float]],
) -> None:
    grid, (x0, y0, x1, y1) = case
    cells = path(grid, x0, y0, x1, y1)
    assert cells[0] == cell_at(grid, x0, y0)
    assert cells[-1] == cell_at(grid, x1, y1)
    assert len(set(cells)) == len(cells)
    assert all(0 <= cell < grid.columns * grid.rows for cell in cells)
    assert all(slow.touch(grid, one, other) for one, other in itertools.pairwise(cells))


@given(any_lines())
def test_a_path_misses_no_sampled_point(case: tuple[Grid, tuple[float, float, float, float]]) -> None:
    grid, (x0, y0, x1, y1) = case
    cells = set(path(grid, x0, y0, x1, y1))
    for share in np.linspace(0, 1, 50 if slow.COMPILED else 10):
        x, y = x0 + (x1 - x0) * share, y0 + (y1 - y0) * share
        # On an edge, rounding may put the sample to either side; one of the cells there must be on the path.
        around = {
            cell_at(grid, min(max(x + dx, 0.0), grid.width_m), min(max(y + dy, 0.0), grid.height_m))
            for dx in (-1e-9 * grid.width_m, 0.0, 1e-9 * grid.width_m)
            for dy in (-1e-9 * grid.height_m, 0.0, 1e-9 * grid.height_m)
        }
        assert around & cells


@given(any_lines())
def test_a_path_has_no_cell_that_the_line_stays_away_from(
    case: tuple[Grid, tuple[float, float, float, float]],
) -> None:
    grid, line = case
    exact = slow.cells_of_line(grid, *line)
    for cell in set(path(grid, *line)) - exact:
        # Only rounding at an edge can make the difference: the line passes by within next to nothing.
        assert any(slow.touch(grid, cell, other) for other in exact)
        assert _distance_in_cells(grid, cell, line) < 1e-6


def _distance_in_cells(grid: Grid, cell: int, line: tuple[float, float, float, float]) -> float:
    """How far the line passes from a cell, in cells: by bisection on the share, the distance being convex."""
    width, height = grid.width_m / grid.columns, grid.height_m / grid.rows

    def distance(share: float) -> float:
        x = (line[0] + (line[2] - line[0]) * share) / width - cell % grid.columns
        y = (line[1] + (line[3] - line[1]) * share) / height - cell // grid.columns
        return max(-x, x - 1, -y, y - 1, 0.0)

    low, high = 0.0, 1.0
    for _ in range(100):
        third = (high - low) / 3
        if distance(low + third) <= distance(high - third):
            high -= third
        else:
            low += third
    return min(distance(low), distance(high), distance(0.0), distance(1.0))


@given(grids(), st.data())
def test_a_walk_stays_on_the_path_of_its_segment(grid: Grid, data: st.DataObject) -> None:
    walks = data.draw(tracks(grid))
    found = visits_of(walks, grid, 20)
    for slot, subscriber, cell, segment, _, moving, _, _ in slow.rows_of(found):
        if moving:
            _, _, x, y = slow.where(walks, subscriber, slot)
            assert cell in path(grid, x, y, walks.x_m[segment + 1], walks.y_m[segment + 1])
        assert walks.start[subscriber] <= segment < walks.start[subscriber + 1]


# ---- contacts by cell


def rows_of(found: tuple[np.ndarray, ...]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in found), strict=True))


def test_contacts_of_a_walker_with_three_sensors() -> None:
    walk = tracks_from([[(0.0, 0.0, 5.0), (10.0, 50.0, 5.0), (13.0, 50.0, 5.0)]])  # 5 m/s along five cells
    grid = Grid(50.0, 10.0, 5, 1)
    visits = visits_of(walk, grid, 20)
    cells = np.array([0, 2, 4], np.int32)
    assert rows_of(sensor_contacts_by_cell(visits, grid, cells, 20)) == [(0, 0, 0, 4), (0, 1, 2, 8), (0, 2, 6, 20)]
    same = sensor_contacts_by_cell(visits, grid, cells, 20, reach="same-cell")
    assert rows_of(same) == [(0, 0, 0, 2), (0, 1, 4, 6), (0, 2, 8, 20)]
    silent = sensor_contacts_by_cell(visits, grid, cells, 20, silent_while_pausing=True)
    assert rows_of(silent) == [(0, 0, 0, 4), (0, 1, 2, 8), (0, 2, 6, 10)]


def test_a_contact_outlasts_a_change_of_cell_and_segment() -> None:
    walk = tracks_from([[(0.0, 5.0, 5.0), (2.0, 15.0, 5.0), (6.0, 5.0, 5.0)]])
    visits = visits_of(walk, ROW, 9)
    assert len(visits.slot) == 5
    assert rows_of(sensor_contacts_by_cell(visits, ROW, np.array([0], np.int32), 9)) == [(0, 0, 0, 9)]


def test_contacts_end_with_the_slots_asked_for() -> None:
    walk = tracks_from([[(0.0, 5.0, 5.0), (10.0, 25.0, 5.0)]])
    visits = visits_of(walk, ROW, 20)
    cells = np.array([0, 2], np.int32)
    assert rows_of(sensor_contacts_by_cell(visits, ROW, cells, 2)) == [(0, 0, 0, 2)]
    assert rows_of(sensor_contacts_by_cell(visits, ROW, cells, 5)) == [(0, 0, 0, 5), (0, 1, 3, 5)]


@given(grids(), st.booleans(), st.sampled_from(["touching", "same-cell"]), st.data())
def test_contacts_by_cell_as_the_obvious_version_finds_them(
    grid: Grid, silent: bool, reach: str, data: st.DataObject
) -> None:
    walks = data.draw(tracks(grid))
    cells = data.draw(st.lists(st.integers(0, grid.columns * grid.rows - 1), max_size=10))
    numbers = np.array(cells, np.int32)
    visits = visits_of(walks, grid, 20)
    found = sensor_contacts_by_cell(visits, grid, numbers, 20, reach, silent)  # type: ignore[arg-type]
    rings = 1 if reach == "touching" else 0
    assert rows_of(found) == slow.cell_contacts(walks, grid, cells, 20, rings, silent)
    assert all(column.dtype == np.int32 for column in found)


@given(grids(), st.booleans(), st.data())
def test_community_contacts_are_those_of_its_sensors_together(grid: Grid, silent: bool, data: st.DataObject) -> None:
    walks = data.draw(tracks(grid))
    cells = np.array(data.draw(st.lists(st.integers(0, grid.columns * grid.rows - 1), max_size=10)), np.int32)
    groups = find_communities(grid, cells)
    visits = visits_of(walks, grid, 20)
    expected = {
        (subscriber, groups.of_sensor[sensor], slot)
        for subscriber, sensor, start, end in rows_of(
            sensor_contacts_by_cell(visits, grid, cells, 20, "touching", silent)
        )
        for slot in range(int(start), int(end))
    }
    found = rows_of(community_contacts(visits, grid, cells, groups, 20, silent))
    slots = [(p, c, slot) for p, c, start, end in found for slot in range(int(start), int(end))]
    assert set(slots) == expected
    assert len(slots) == len(expected)
    assert not {(p, c, end) for p, c, _, end in found} & expected  # each lasts until it really ends


# ---- speed


@pytest.mark.skipif(not slow.COMPILED, reason="too slow in plain Python")
def test_the_papers_world_is_built_in_a_moment() -> None:
    grid = Grid(200.0, 200.0, 15, 15)

    def build() -> Visits:
        find_communities(grid, grid.cell_of(*place_uniform(grid, 100, np.random.default_rng(1))))
        walks = random_waypoint(grid, 10, 7200, (1.0, 5.0), (0.0, 120.0), seed=np.random.SeedSequence(1))
        return visits_of(walks, grid, 7200)

    build()
    seconds = []
    for _ in range(20):
        begin = time.process_time()
        build()
        seconds.append(time.process_time() - begin)
    assert min(seconds) < 5e-3  # measured: 0.7 ms
