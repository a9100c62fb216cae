"""Communities of sensors."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.field import communities
from serai.field.communities import find_communities
from serai.world.grid import Grid, place_uniform
from tests.world import slow
from tests.world.worlds import grids

PAPER = Grid(200.0, 200.0, 15, 15)


def test_communities_by_hand() -> None:
    # . . 4 . .      0, 2 and 3 hang together over a corner and a side; 1 and 4 are loners
    # 0 . . . .      (4 touches neither 2 nor 3); 5 stands in the cell of 0.
    # . 2 3 . 1
    grid = Grid(5.0, 3.0, 5, 3)
    found = find_communities(grid, np.array([5, 4, 1, 2, 12, 5], np.int32))
    assert found.of_sensor.tolist() == [0, 1, 0, 0, 2, 0]
    assert found.member_start.tolist() == [0, 4, 5, 6]
    assert found.members.tolist() == [0, 2, 3, 5, 1, 4]
    assert found.size.tolist() == [3, 1, 1]
    assert found.neighbor_start.tolist() == [0, 2, 2, 5, 6, 6, 8]
    assert found.neighbors.tolist() == [2, 5, 0, 3, 5, 2, 0, 2]


def test_no_sensors_no_communities() -> None:
    found = find_communities(PAPER, np.empty(0, np.int32))
    assert [column.tolist() for column in found] == [[], [0], [], [], [0], []]


@given(grids(), st.data())
def test_communities_as_the_obvious_version_finds_them(grid: Grid, data: st.DataObject) -> None:
    last = grid.columns * grid.rows - 1
    cells = data.draw(st.lists(st.integers(0, last), max_size=25))
    found = find_communities(grid, np.array(cells, np.int32))
    expected = slow.communities(grid, cells)
    starts = found.member_start.tolist()
    members = [found.members[a:b].tolist() for a, b in itertools.pairwise(starts)]
    assert members == [sorted(group) for group in expected]
    assert all(found.of_sensor[sensor] == number for number, group in enumerate(expected) for sensor in group)
    assert found.size.tolist() == [len({cells[sensor] for sensor in group}) for group in expected]
    for sensor, here in enumerate(cells):
        neighbors = found.neighbors[found.neighbor_start[sensor] : found.neighbor_start[sensor + 1]]
        touching = [s for s, there in enumerate(cells) if s != sensor and slow.touch(grid, here, there)]
        assert neighbors.tolist() == touching
    assert all(column.dtype == np.int32 for column in found)


def test_sides_given_as_whole_numbers_are_the_same_grid() -> None:
    cells = np.array([0, 1, 9], np.int32)
    whole = find_communities(Grid(200, 200, 15, 15), cells)
    assert all(map(np.array_equal, whole, find_communities(PAPER, cells)))


def test_more_pairs_than_can_be_kept_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(communities, "_MOST_NEIGHBORS", 10)
    with pytest.raises(BadInput, match=r"4 sensors in 15 x 15 cells: each hears 3, 12 pairs in all, at most 10"):
        find_communities(PAPER, np.zeros(4, np.int32))


@pytest.mark.skipif(not slow.COMPILED, reason="too slow in plain Python")
def test_time_grows_with_the_sensors_not_with_their_pairs() -> None:
    seconds = []
    for sensors in (5_000, 40_000):
        side = round((sensors * 2.25) ** 0.5)
        grid = Grid(float(side), float(side), side, side)
        cells = grid.cell_of(*place_uniform(grid, sensors, np.random.default_rng(1)))
        tries = []
        for _ in range(4):
            begin = time.process_time()
            find_communities(grid, cells)
            tries.append(time.process_time() - begin)
        seconds.append(min(tries))
    assert seconds[1] < 32 * seconds[0]  # eight times the sensors; their pairs would be 64 times as many
