"""Cells, placement and communities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.world.grid import Grid, cell_at, index_by_cell, nodes_near, place_grid, place_uniform
from tests.world import slow
from tests.world.worlds import grids

PAPER = Grid(200.0, 200.0, 15, 15)


@pytest.mark.parametrize(
    ("x", "y", "cell"),
    [
        (0.0, 0.0, 0),
        (13.0, 0.0, 0),
        (13.34, 0.0, 1),
        (0.0, 13.34, 15),
        (200.0, 0.0, 14),
        (0.0, 200.0, 210),
        (200.0, 200.0, 224),
        (100.0, 100.0, 7 * 15 + 7),
    ],
)
def test_the_cell_of_a_point(x: float, y: float, cell: int) -> None:
    assert PAPER.cell_of(np.array([x]), np.array([y])).tolist() == [cell]
    assert cell_at(PAPER, x, y) == cell


def test_a_cell_owns_its_left_and_lower_edges() -> None:
    grid = Grid(4.0, 2.0, 4, 2)
    assert grid.cell_of(np.array([1.0, 1.0, 0.5]), np.array([0.5, 1.0, 1.0])).tolist() == [1, 5, 4]


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 50), st.integers(1, 50), st.floats(1e-3, 1e6))
def test_every_point_of_the_field_has_a_cell(x: float, y: float, columns: int, rows: int, side: float) -> None:
    grid = Grid(side, 2 * side, columns, rows)
    found = grid.cell_of(np.array([x * side]), np.array([y * 2 * side]))
    assert found.dtype == np.int32
    assert 0 <= found[0] < columns * rows
    assert found[0] == cell_at(grid, x * side, y * 2 * side) == slow.cell(grid, x * side, y * 2 * side)


def test_uniform_placement_fills_the_field_and_keeps_the_first_sensors() -> None:
    grid = Grid(200.0, 50.0, 15, 15)
    x, y = place_uniform(grid, 20_000, np.random.default_rng(1))
    again_x, again_y = place_uniform(grid, 100, np.random.default_rng(1))
    assert np.array_equal(x[:100], again_x)
    assert np.array_equal(y[:100], again_y)
    # Quarters of each side hold a quarter each, within five standard deviations.
    for share in (x / 200.0, y / 50.0):
        assert np.abs(np.bincount((share * 4).astype(int), minlength=4) - 5000).max() < 5 * 61.3


def test_grid_placement() -> None:
    x, y = place_grid(Grid(10.0, 10.0, 3, 3), 4)
    assert x.tolist() == [2.5, 7.5, 2.5, 7.5]
    assert y.tolist() == [2.5, 2.5, 7.5, 7.5]
    x, y = place_grid(Grid(200.0, 100.0, 3, 3), 7)
    assert x.tolist() == pytest.approx([25, 75, 125, 175, 200 / 6, 100, 1000 / 6])
    assert y.tolist() == [25.0] * 4 + [75.0] * 3


@given(st.integers(0, 200), st.floats(0.01, 1e4), st.floats(0.01, 1e4))
def test_grid_placement_is_inside_and_apart(count: int, width: float, height: float) -> None:
    x, y = place_grid(Grid(width, height, 3, 3), count)
    assert len(set(zip(x.tolist(), y.tolist(), strict=True))) == len(x) == count
    assert ((x > 0) & (x < width) & (y > 0) & (y < height)).all()


@given(grids(), st.integers(0, 2), st.data())
def test_nodes_near_a_cell(grid: Grid, rings: int, data: st.DataObject) -> None:
    all_cells = st.integers(0, grid.columns * grid.rows - 1)
    cells, here = data.draw(st.lists(all_cells, max_size=25)), data.draw(all_cells)
    near = np.empty(len(cells), np.int32)
    count = nodes_near(index_by_cell(np.array(cells, np.int32)), grid, here, rings, near)
    expected = [node for node, there in enumerate(cells) if slow.touch(grid, here, there, rings)]
    assert sorted(near[:count].tolist()) == expected
