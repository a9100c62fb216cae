"""Which sensors of a field hear each other, and the communities they form."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.core.jit import kernel
from serai.world.components import connected_components
from serai.world.grid import CellIndex, Grid, Numbers, index_by_cell, nodes_near

_MOST_NEIGHBORS = np.iinfo(np.int32).max


class Communities(NamedTuple):
    """The connected components of the sensors under *touch*, numbered by their lowest sensor."""

    of_sensor: Numbers
    member_start: Numbers  # members of community c: members[member_start[c] : member_start[c + 1]], ascending
    members: Numbers
    cells: Numbers  # size: how many distinct cells the community occupies
    neighbor_start: Numbers  # sensors that touch sensor s: neighbors[neighbor_start[s] : ...], ascending
    neighbors: Numbers


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
