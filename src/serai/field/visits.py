"""Which sensors are within reach of a subscriber, and when, by cells: positions are looked at once a slot (second)."""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel, rule
from serai.field.communities import Communities
from serai.world.grid import CellIndex, Floats, Grid, Numbers, cell_at, index_by_cell, nodes_near
from serai.world.mobility import Tracks, is_leg, position_at
from serai.world.ranges import SensorContacts
from serai.world.tables import with_room

Reach = Literal["touching", "same-cell"]

_RINGS = {"touching": 1, "same-cell": 0}


class Visits(NamedTuple):
    """When a subscriber's cell or segment changed, by (slot, subscriber); in slot 0 that of everybody does.

    A segment is named by its first point in `Tracks`; the one after the last point is a pause.
    """

    slot: Numbers
    subscriber: Numbers
    cell: Numbers
    segment: Numbers
    moving: NDArray[np.uint8]  # 1 on a leg, 0 in a pause
    x: Floats  # position at the slot
    y: Floats


class CommunityContacts(NamedTuple):
    """When any sensor of a community is within reach of a subscriber, by (start, subscriber, community)."""

    subscriber: Numbers
    community: Numbers
    start_s: Numbers
    end_s: Numbers


@rule
def path_cells(x0: float, y0: float, x1: float, y1: float, grid: Grid, cells: Numbers) -> int:
    """Put into `cells`, in order, every cell with a point of the line from (x0, y0) to (x1, y1); how many.

    The ends fix how many columns and rows are to be crossed, so rounding can at most swap two crossings that
    lie (nearly) in one corner: the walk always ends, in the right cell. `cells` has room for columns + rows.
    """
    cell_width, cell_height = grid.width_m / grid.columns, grid.height_m / grid.rows
    first, last = cell_at(grid, x0, y0), cell_at(grid, x1, y1)
    column, row = first % grid.columns, first // grid.columns
    columns_left, rows_left = abs(last % grid.columns - column), abs(last // grid.columns - row)
    right, up = x1 > x0, y1 > y0
    cells[0] = first
    count = 1
    while columns_left > 0 or rows_left > 0:
        # How far to the next column and row, each times the other's side of the slope: nothing is divided.
        to_column = ((column + 1) * cell_width - x0 if right else x0 - column * cell_width) * abs(y1 - y0)
        to_row = ((row + 1) * cell_height - y0 if up else y0 - row * cell_height) * abs(x1 - x0)
        cross_column = rows_left == 0 or (columns_left > 0 and to_column <= to_row)
        cross_row = columns_left == 0 or (rows_left > 0 and to_row <= to_column)
        if cross_column and cross_row and right != up:
            # A cell owns its left and lower edges, so a corner belongs to the cell on its upper right: a line
            # that falls to the right or rises to the left passes through that one.
            cross_column, cross_row = right, up
        if cross_column:
            column += 1 if right else -1
            columns_left -= 1
        if cross_row:
            row += 1 if up else -1
            rows_left -= 1
        cells[count] = row * grid.columns + column
        count += 1
    return count


def visits_of(tracks: Tracks, grid: Grid, slots: int) -> Visits:
    """Which cell every subscriber is in, and on which segment, from slot 0 to `slots` - 1; changes only."""
    tracks = tracks.writable()
    by_subscriber = _empty_visits(_most_visits(tracks, grid))
    count = _find_visits(tracks, grid.as_floats(), slots, by_subscriber)
    visits = _empty_visits(count)
    _sort_visits(by_subscriber, slots, visits)
    return visits


def _empty_visits(count: int) -> Visits:
    """Room for so many visits."""
    slot, subscriber, cell, segment = np.empty((4, count), np.int32)
    x, y = np.empty((2, count))
    return Visits(slot, subscriber, cell, segment, np.empty(count, np.uint8), x, y)


def _most_visits(tracks: Tracks, grid: Grid) -> int:
    """How many visits there can be: one per segment, and one per column or row that it crosses."""
    row, column = np.divmod(grid.cell_of(tracks.x_m, tracks.y_m), grid.columns)
    return int(tracks.time_s.size + np.abs(np.diff(row)).sum() + np.abs(np.diff(column)).sum())


@kernel
def _find_visits(tracks: Tracks, grid: Grid, slots: int, visits: Visits) -> int:
    """Write down the visits of one subscriber after the other; how many."""
    count = 0
    for subscriber in range(tracks.start.size - 1):
        first, end = tracks.start[subscriber], tracks.start[subscriber + 1]
        for segment in range(first, end):
            slot = 0 if segment == first else _slot_at(tracks.time_s[segment], slots)
            last = slots if segment == end - 1 else _slot_at(tracks.time_s[segment + 1], slots)
            moving = is_leg(tracks, subscriber, segment)
            if not moving:
                last = min(last, slot + 1)  # nothing changes in a pause
            seen = -1
            while slot < last:
                x, y = position_at(tracks, subscriber, segment, slot)
                cell = cell_at(grid, x, y)
                if cell != seen:
                    visits.slot[count], visits.subscriber[count] = slot, subscriber
                    visits.cell[count], visits.segment[count] = cell, segment
                    visits.moving[count], visits.x[count], visits.y[count] = moving, x, y
                    count += 1
                    seen = cell
                slot += 1
    return count


@rule
def _slot_at(time_s: float, slots: int) -> int:
    """The first slot at or after a time, at most `slots`."""
    if time_s >= slots:
        return slots
    return max(math.ceil(time_s), 0)


@kernel
def _sort_visits(found: Visits, slots: int, visits: Visits) -> None:
    """Copy visits found subscriber by subscriber in order of (slot, subscriber)."""
    place = np.zeros(slots + 1, np.int64)
    for row in range(visits.slot.size):
        place[found.slot[row] + 1] += 1
    for slot in range(slots):
        place[slot + 1] += place[slot]
    for row in range(visits.slot.size):
        to = place[found.slot[row]]
        place[found.slot[row]] += 1
        visits.slot[to], visits.subscriber[to] = found.slot[row], found.subscriber[row]
        visits.cell[to], visits.segment[to] = found.cell[row], found.segment[row]
        visits.moving[to], visits.x[to], visits.y[to] = found.moving[row], found.x[row], found.y[row]


def sensor_contacts_by_cell(
    visits: Visits,
    grid: Grid,
    sensor_cells: Numbers,
    slots: int,
    reach: Reach = "touching",
    silent_while_pausing: bool = False,
) -> SensorContacts:
    """When each sensor's cell touches (or is) a subscriber's; with `silent_while_pausing`, on legs only."""
    index = index_by_cell(sensor_cells)
    return SensorContacts(*_contact_rows(visits, grid, index, slots, _RINGS[reach], silent_while_pausing))


def community_contacts(
    visits: Visits,
    grid: Grid,
    sensor_cells: Numbers,
    communities: Communities,
    slots: int,
    silent_while_pausing: bool = False,
) -> CommunityContacts:
    """When each community is within reach of a subscriber: at least one of its sensors touches it."""
    index = index_by_cell(sensor_cells)
    owners = CellIndex(index.cells, communities.of_sensor[index.nodes])
    return CommunityContacts(*_contact_rows(visits, grid, owners, slots, 1, silent_while_pausing))


def _contact_rows(
    visits: Visits, grid: Grid, index: CellIndex, slots: int, rings: int, silent: bool
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Subscriber, node, start and end of every contact, by (start, subscriber, node)."""
    in_time = int(np.searchsorted(visits.slot, slots))
    by_subscriber = np.argsort(visits.subscriber[:in_time], kind="stable")
    rows = _find_cell_contacts(visits, by_subscriber, index, grid.as_floats(), (slots, rings, silent))
    subscriber, node, start, end = rows[order_of_rows(rows[:, 2], rows[:, 0], rows[:, 1])].T.copy()
    return subscriber, node, start, end


def order_of_rows(first: Numbers, second: Numbers, third: Numbers) -> NDArray[np.int64]:
    """The order of rows by three columns of whole numbers, joined into one number: faster than lexsort."""
    key = first.astype(np.int64)
    for column in (second, third):
        key = key * (int(column.max(initial=0)) + 1) + column
    return np.argsort(key)


class _Running(NamedTuple):
    """Contacts of one subscriber that have not ended yet, by node."""

    opened: Numbers  # the slot in which it began; -1 if there is none
    reached: Numbers  # the last visit that had the node within reach
    nodes: Numbers  # those with a running contact


@kernel
def _find_cell_contacts(
    visits: Visits,
    by_subscriber: NDArray[np.int64],
    index: CellIndex,
    grid: Grid,
    options: tuple[int, int, bool],
) -> Numbers:
    """Rows subscriber, node, start, end, as contacts end; a node may stand in the index more than once."""
    slots, rings, silent = options
    nodes = int(index.nodes.max()) + 1 if index.nodes.size > 0 else 0
    running = _Running(np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int32), np.empty(nodes, np.int32))
    near = np.empty(index.nodes.size, np.int32)
    rows = np.empty((1024, 4), np.int32)
    count = going_on = 0
    for place in range(by_subscriber.size):
        visit = int(by_subscriber[place])
        subscriber, slot = int(visits.subscriber[visit]), int(visits.slot[visit])
        if visits.moving[visit] or not silent:
            in_reach = nodes_near(index, grid, int(visits.cell[visit]), rings, near)
            going_on = _begin_contacts(running, going_on, near[:in_reach], visit, slot)
        rows, count, going_on = _end_contacts(running, going_on, visit, subscriber, slot, rows, count)
        if place + 1 == by_subscriber.size or visits.subscriber[by_subscriber[place + 1]] != subscriber:
            rows, count, going_on = _end_contacts(running, going_on, -1, subscriber, slots, rows, count)
    return rows[:count]


@rule
def _begin_contacts(running: _Running, going_on: int, near: Numbers, visit: int, slot: int) -> int:
    """Note which nodes a visit has within reach, and begin contacts with the new ones; how many go on now."""
    for node in near:
        running.reached[node] = visit
        if running.opened[node] < 0:
            running.opened[node] = slot
            running.nodes[going_on] = node
            going_on += 1
    return going_on


@rule
def _end_contacts(
    running: _Running, going_on: int, visit: int, subscriber: int, slot: int, rows: Numbers, count: int
) -> tuple[Numbers, int, int]:
    """End contacts that a visit has no longer within reach (-1: all); the table, its rows, how many go on."""
    kept = 0
    for i in range(going_on):
        node = running.nodes[i]
        if running.reached[node] == visit:
            running.nodes[kept] = node
            kept += 1
            continue
        rows = with_room(rows, count)
        rows[count, 0], rows[count, 1] = subscriber, node
        rows[count, 2], rows[count, 3] = running.opened[node], slot
        count += 1
        running.opened[node] = -1
    return rows, count, kept
