"""A field and its cells, nodes by cell, and where nodes are placed."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import rule

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]  # of sensors, subscribers, cells, communities, slots


class Grid(NamedTuple):
    """A field of `width_m` x `height_m` metres cut into `columns` x `rows` cells."""

    width_m: float
    height_m: float
    columns: int
    rows: int

    def cell_of(self, x_m: Floats, y_m: Floats) -> Numbers:
        """The cell that each point lies in; points on the far edges belong to the last column and row."""
        column = np.minimum(np.floor(x_m / (self.width_m / self.columns)), self.columns - 1)
        row = np.minimum(np.floor(y_m / (self.height_m / self.rows)), self.rows - 1)
        cells: Numbers = (row * self.columns + column).astype(np.int32)
        return cells

    def as_floats(self) -> "Grid":
        """The same grid, its sides as floats whatever they were given as: kernels compile once per type."""
        return Grid(float(self.width_m), float(self.height_m), int(self.columns), int(self.rows))


class CellIndex(NamedTuple):
    """Nodes sorted by cell, then by number, so that those in a row of cells stand together."""

    cells: Numbers
    nodes: Numbers


@rule
def cell_at(grid: Grid, x_m: float, y_m: float) -> int:
    """The cell that a point lies in: `Grid.cell_of` for one point, in kernels."""
    column = min(math.floor(x_m / (grid.width_m / grid.columns)), grid.columns - 1)
    row = min(math.floor(y_m / (grid.height_m / grid.rows)), grid.rows - 1)
    return row * grid.columns + column


def place_uniform(grid: Grid, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Points drawn uniformly from the field; asking for more leaves the first ones where they were."""
    points = rng.random((count, 2))
    return points[:, 0] * grid.width_m, points[:, 1] * grid.height_m


def place_grid(grid: Grid, count: int) -> tuple[Floats, Floats]:
    """Points in even rows, about as far apart along a row as the rows are; as many in each row as can be."""
    if count == 0:
        return np.empty(0), np.empty(0)
    across = math.sqrt(count * grid.width_m / grid.height_m)
    longest_row = min(max(math.ceil(across), 1), count)
    rows = math.ceil(count / longest_row)
    in_row = np.full(rows, count // rows)
    in_row[: count % rows] += 1
    row = np.repeat(np.arange(rows), in_row)
    place = np.arange(count) - np.repeat(np.cumsum(in_row) - in_row, in_row)
    return (place + 0.5) * grid.width_m / in_row[row], (row + 0.5) * grid.height_m / rows


def index_by_cell(cells: Numbers) -> CellIndex:
    """Sort nodes by the cell they are in."""
    order = np.argsort(cells, kind="stable").astype(np.int32)
    return CellIndex(np.ascontiguousarray(cells, dtype=np.int32)[order], order)


@rule
def nodes_near(index: CellIndex, grid: Grid, cell: int, rings: int, near: Numbers) -> int:
    """Put into `near` the nodes at most `rings` cells away from `cell` (1: those touching it); how many."""
    row, column = cell // grid.columns, cell % grid.columns
    left, right = max(column - rings, 0), min(column + rings, grid.columns - 1)
    count = 0
    for near_row in range(max(row - rings, 0), min(row + rings, grid.rows - 1) + 1):
        first = near_row * grid.columns + left
        last = near_row * grid.columns + right
        place = np.searchsorted(index.cells, first)
        while place < index.cells.size and index.cells[place] <= last:
            near[count] = index.nodes[place]
            count += 1
            place += 1
    return count
