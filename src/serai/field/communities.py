"""Which sensors of a field hear each other, by cells or in metres, and the communities they form."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.core.jit import kernel
from serai.world.components import connected_components
from serai.world.grid import CellIndex, Floats, Grid, Numbers, index_by_cell, nodes_near
from serai.world.neighbors import neighbors_in_range

_MOST_NEIGHBORS = np.iinfo(np.int32).max


class Communities(NamedTuple):
    """The connected components of the sensors that hear each other, numbered by their lowest sensor."""

    of_sensor: Numbers
    member_start: Numbers  # members of community c: members[member_start[c] : member_start[c + 1]], ascending
    members: Numbers
    size: Numbers  # how many distinct cells the community occupies; in metres how many sensors it has
    neighbor_start: Numbers  # sensors that sensor s hears: neighbors[neighbor_start[s] : ...], ascending
    neighbors: Numbers


def find_communities(grid: Grid, cells: Numbers) -> Communities:
    """Which sensors hear each other because their cells touch, and the communities they form."""
    index, plain = index_by_cell(cells), grid.as_floats()
    degree = _count_neighbors(index, plain)
    _check(int(degree.sum()), cells.size, f"in {grid.columns} x {grid.rows} cells", "use more cells or fewer sensors")
    neighbor_start = _starts(degree)
    neighbors = _list_neighbors(index, plain, neighbor_start)
    of_sensor = connected_components(neighbor_start, neighbors)
    return _communities(of_sensor, neighbor_start, neighbors, _count_cells(index, of_sensor))


def communities_in_range(x_m: Floats, y_m: Floats, range_m: Floats) -> Communities:
    """Which sensors hear each other because each stands within the other's range, and the communities they form."""

    def check(pairs: int) -> None:
        _check(pairs, len(x_m), "with this radio range", "use a shorter range or fewer sensors")

    start, neighbors = neighbors_in_range(x_m, y_m, range_m, check)
    of_sensor = connected_components(start, neighbors)
    return _communities(of_sensor, start.astype(np.int32), neighbors, np.bincount(of_sensor))


def _check(pairs: int, sensors: int, where: str, advice: str) -> None:
    if pairs > _MOST_NEIGHBORS:
        raise BadInput(
            f"{sensors} sensors {where}: each hears {pairs // sensors}, {pairs} pairs in all,"
            f" at most {_MOST_NEIGHBORS} can be kept; {advice}"
        )


def _communities(
    of_sensor: Numbers, neighbor_start: Numbers, neighbors: Numbers, size: NDArray[np.int64]
) -> Communities:
    return Communities(
        of_sensor=of_sensor,
        member_start=_starts(np.bincount(of_sensor, minlength=len(size))),
        members=np.argsort(of_sensor, kind="stable").astype(np.int32),
        size=size.astype(np.int32),
        neighbor_start=neighbor_start,
        neighbors=neighbors,
    )


def _starts(counts: NDArray[np.int64]) -> Numbers:
    """Where each group begins when groups of these sizes stand one after the other."""
    starts = np.zeros(counts.size + 1, np.int32)
    np.cumsum(counts, out=starts[1:])
    return starts


def _count_cells(index: CellIndex, of_sensor: Numbers) -> NDArray[np.int64]:
    """In how many distinct cells each community has sensors; all sensors of a cell are of one community."""
    first_of_cell = np.flatnonzero(np.diff(index.cells, prepend=-1))
    return np.bincount(of_sensor[index.nodes[first_of_cell]])


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
