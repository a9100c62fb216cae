"""The field: its cells, where the sensors stand, and which of them hear each other."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.core.jit import kernel, rule
from serai.world.components import connected_components

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]  # of sensors, subscribers, cells, communities, slots

_MOST_NEIGHBORS = np.iinfo(np.int32).max


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


class Communities(NamedTuple):
    """The connected components of the sensors under *touch*, numbered by their lowest sensor."""

    of_sensor: Numbers
    member_start: Numbers  # members of community c: members[member_start[c] : member_start[c + 1]], ascending
    members: Numbers
    cells: Numbers  # size: how many distinct cells the community occupies
    neighbor_start: Numbers  # sensors that touch sensor s: neighbors[neighbor_start[s] : ...], ascending
    neighbors: Numbers


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


def find_communities(grid: Grid, cells: Numbers) -> Communities:
    """Which sensors hear each other, and the communities they form."""
    index, plain = index_by_cell(cells), grid.as_floats()
    degree = _count_neighbors(index, plain)
    total = int(degree.sum())
    if total > _MOST_NEIGHBORS:
        raise BadInput(
            f"{cells.size} sensors in {grid.columns} x {grid.rows} cells: each hears {total // cells.size}, "
            f"{total} pairs in all, at most {_MOST_NEIGHBORS} can be kept; use more cells or fewer sensors"
        )
    neighbor_start = _starts(degree)
    neighbors = _list_neighbors(index, plain, neighbor_start)
    of_sensor = connected_components(neighbor_start, neighbors)
    communities = int(of_sensor.max(initial=-1)) + 1
    return Communities(
        of_sensor=of_sensor,
        member_start=_starts(np.bincount(of_sensor, minlength=communities)),
        members=np.argsort(of_sensor, kind="stable").astype(np.int32),
        cells=_count_cells(index, of_sensor, communities),
        neighbor_start=neighbor_start,
        neighbors=neighbors,
    )


def _starts(counts: NDArray[np.int64]) -> Numbers:
    """Where each group begins when groups of these sizes stand one after the other."""
    starts = np.zeros(counts.size + 1, np.int32)
    np.cumsum(counts, out=starts[1:])
    return starts


def _count_cells(index: CellIndex, of_sensor: Numbers, communities: int) -> Numbers:
    """In how many distinct cells each community has sensors; all sensors of a cell are of one community."""
    first_of_cell = np.flatnonzero(np.diff(index.cells, prepend=-1))
    owners = of_sensor[index.nodes[first_of_cell]]
    return np.bincount(owners, minlength=communities).astype(np.int32)


@kernel
def _count_neighbors(index: CellIndex, grid: Grid) -> NDArray[np.int64]:
    """How many other sensors touch each sensor."""
    degree = np.empty(index.nodes.size, np.int64)
    near = np.empty(index.nodes.size, np.int32)
    for place in range(index.nodes.size):
        degree[index.nodes[place]] = nodes_near(index, grid, int(index.cells[place]), 1, near) - 1
    return degree


@kernel
def _list_neighbors(index: CellIndex, grid: Grid, neighbor_start: Numbers) -> Numbers:
    """The sensors that touch each sensor, ascending.

    Touching is mutual, so sensor 0 enters itself in the lists of those it touches, then sensor 1, and so on:
    every list comes out in order without being sorted.
    """
    sensors = index.nodes.size
    cell_of_sensor = np.empty(sensors, np.int32)
    for place in range(sensors):
        cell_of_sensor[index.nodes[place]] = index.cells[place]
    near = np.empty(sensors, np.int32)
    end = neighbor_start[:-1].copy()
    neighbors = np.empty(neighbor_start[-1], np.int32)
    for sensor in range(sensors):
        for place in range(nodes_near(index, grid, int(cell_of_sensor[sensor]), 1, near)):
            other = near[place]
            if other != sensor:
                neighbors[end[other]] = sensor
                end[other] += 1
    return neighbors
