"""Which sensors are within reach of a subscriber, and when, by cells: positions are looked at once a slot (second)."""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel, rule
from serai.field.communities import Communities
from serai.world.grid import CellIndex, Grid, Numbers, cell_at, index_by_cell, nodes_near
from serai.world.mobility import Tracks, is_leg, position_at
from serai.world.ranges import SensorContacts
from serai.world.tables import with_room

Reach = Literal["touching", "same-cell"]

_RINGS = {"touching": 1, "same-cell": 0}


class Visits(NamedTuple):
    """When a subscriber's place or leg changed, by (slot, subscriber); by cells, in slot 0 that of everybody does.

    A segment is named by its first point in `Tracks`; the one after the last point is a pause. A place is a cell; in
    metres (`serai.field.passes`) it is the set of sensors within range.
    """

    slot: Numbers
    subscriber: Numbers
    cell: Numbers  # -1 in metres
    segment: Numbers
    leg: Numbers  # its first point; the same for as long as the subscriber announces nothing new
    moving: NDArray[np.uint8]  # 1 on a leg, 0 in a pause
    came: NDArray[np.uint8]  # 1 if some sensor may be within reach that was not before,
    went: NDArray[np.uint8]  # 1 if some may no longer be: both when the cell changed


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


def visits_of(tracks: Tracks, grid: Grid, slots: int, legs: Numbers | None = None) -> Visits:
    """Which cell every subscriber is in, and on which leg, from slot 0 to `slots` - 1; changes only.

    `legs` names the leg of each segment; if left out, each segment is one.
    """
    tracks = tracks.writable()
    found = _empty_visits(_most_visits(tracks, grid))
    count = _find_visits(
        tracks, np.arange(tracks.time_s.size, dtype=np.int32) if legs is None else legs, grid.as_floats(), slots, found
    )
    return by_slot(Visits._make(column[:count] for column in found), slots)


@rule
def nowhere(grid: Grid) -> int:
    """The cell of those who are nowhere: two rows below the field, so that it touches no other."""
    return -3 * grid.columns


def by_slot(found: Visits, slots: int) -> Visits:
    """Visits found subscriber by subscriber, in order of (slot, subscriber)."""
    place = _places_by_slot(found.slot, slots)
    visits = _empty_visits(found.slot.size)
    for name in Visits._fields:
        getattr(visits, name)[place] = getattr(found, name)
    return visits


def _empty_visits(count: int) -> Visits:
    """Room for so many visits."""
    slot, subscriber, cell, segment, leg = np.empty((5, count), np.int32)
    moving, came, went = np.empty((3, count), np.uint8)
    return Visits(slot, subscriber, cell, segment, leg, moving, came, went)


def _most_visits(tracks: Tracks, grid: Grid) -> int:
    """How many visits there can be: one per segment, and one per column or row that it crosses."""
    known = np.isfinite(tracks.x_m)
    cells = grid.cell_of(np.where(known, tracks.x_m, 0.0), np.where(known, tracks.y_m, 0.0))
    row, column = np.divmod(cells, grid.columns)
    return int(tracks.time_s.size + np.abs(np.diff(row)).sum() + np.abs(np.diff(column)).sum())


@kernel
def _find_visits(tracks: Tracks, legs: Numbers, grid: Grid, slots: int, visits: Visits) -> int:
    """Write down the visits of one subscriber after the other; how many."""
    count, away = 0, nowhere(grid)
    for subscriber in range(tracks.start.size - 1):
        points = tracks.start[subscriber], tracks.start[subscriber + 1]
        before = leg = -1
        for segment in range(points[0], points[1]):
            slot, last = slots_of(tracks, points, segment, slots)
            moving = is_leg(tracks, subscriber, segment)
            if not moving:
                last = min(last, slot + 1)  # nothing changes in a pause
            while slot < last:
                x, y = position_at(tracks, subscriber, segment, slot)
                cell = cell_at(grid, x, y) if not math.isnan(x) else away
                if cell != before or legs[segment] != leg:
                    visits.slot[count], visits.subscriber[count] = slot, subscriber
                    visits.cell[count], visits.segment[count], visits.leg[count] = cell, segment, legs[segment]
                    visits.moving[count] = moving
                    visits.came[count], visits.went[count] = cell != before and cell != away, cell != before
                    count += 1
                    before, leg = cell, legs[segment]
                slot += 1
    return count


@rule
def slots_of(tracks: Tracks, points: tuple[int, int], segment: int, slots: int) -> tuple[int, int]:
    """The slots of a segment, from the first up to but not including the second; `points` are those of its track."""
    first, end = points
    begin = 0 if segment == first else _slot_at(tracks.time_s[segment], slots)
    return begin, slots if segment == end - 1 else _slot_at(tracks.time_s[segment + 1], slots)


@rule
def _slot_at(time_s: float, slots: int) -> int:
    """The first slot at or after a time, at most `slots`."""
    if time_s >= slots:
        return slots
    return max(math.ceil(time_s), 0)


@kernel
def _places_by_slot(slot_of: Numbers, slots: int) -> Numbers:
    """Where each visit stands when they are sorted by slot, and otherwise as they are."""
    start = np.zeros(slots + 1, np.int64)
    for slot in slot_of:
        start[slot + 1] += 1
    for slot in range(slots):
        start[slot + 1] += start[slot]
    place = np.empty(slot_of.size, np.int32)
    for visit in range(slot_of.size):
        place[visit] = start[slot_of[visit]]
        start[slot_of[visit]] += 1
    return place


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
