"""Which sensors are within radio range of a subscriber, and when: exact times."""

import math
from typing import NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.core.jit import kernel, rule
from serai.world.grid import CellIndex, Floats, Grid, Numbers, index_by_cell
from serai.world.mobility import Tracks
from serai.world.tables import with_room

_Line = tuple[float, float, float, float]  # x0, y0, x1, y1


class SensorContacts(NamedTuple):
    """When a sensor is within reach of a subscriber, by (start, subscriber, sensor); `end_s` is exclusive."""

    subscriber: Numbers
    sensor: Numbers
    start_s: Numbers | Floats
    end_s: Numbers | Floats


def sensor_contacts_by_range(
    tracks: Tracks, x_m: Floats, y_m: Floats, range_m: float | Floats, duration_s: float
) -> SensorContacts:
    """When each sensor is at most `range_m` (its own, or one for all) away from a subscriber: exact times."""
    given_m = np.asarray(range_m, np.float64)
    if not ((given_m > 0) & (given_m < math.inf)).all():
        raise BadInput(f"radio range {range_m} m: must be above 0")
    if x_m.size == 0:
        return SensorContacts(*np.empty((2, 0), np.int32), *np.empty((2, 0)))
    positions = np.column_stack((x_m, y_m)).astype(np.float64)
    ranges_m = np.broadcast_to(given_m, x_m.size).copy()
    buckets = sort_into_buckets(positions, float(ranges_m.max()))
    rows = _find_range_contacts(tracks.writable(), buckets, ranges_m, float(duration_s))
    subscriber, sensor, start_s, end_s = rows[np.lexsort((rows[:, 1], rows[:, 0], rows[:, 2]))].T.copy()
    return SensorContacts(subscriber.astype(np.int32), sensor.astype(np.int32), start_s, end_s)


class Buckets(NamedTuple):
    """Nodes sorted into squares, to look them up by place."""

    position: Floats  # [N, 2]
    by_square: CellIndex
    squares: Grid
    left: float  # where the squares begin
    bottom: float


def sort_into_buckets(position: Floats, range_m: float) -> Buckets:
    """Nodes by squares no smaller than the radio range, and so large that few of them are empty."""
    left, bottom = (float(least) for least in position.min(axis=0))
    width, height = (float(extent) for extent in np.ptp(position, axis=0))
    side = float(max(range_m, max(width, height) / math.ceil(math.sqrt(len(position)))))
    columns, rows = int(width // side) + 1, int(height // side) + 1
    squares = Grid(columns * side, rows * side, columns, rows)
    index = index_by_cell(squares.cell_of(position[:, 0] - left, position[:, 1] - bottom))
    return Buckets(position, index, squares, left, bottom)


@kernel
def _find_range_contacts(tracks: Tracks, sensors: Buckets, range_m: Floats, duration_s: float) -> Floats:
    """Rows subscriber, sensor, start, end, as contacts end."""
    widest_m = range_m.max()
    opened = np.full(sensors.position.shape[0], -1.0)  # when the contact began that goes on; -1 if none does
    near = np.empty(sensors.position.shape[0], np.int32)
    rows = np.empty((1024, 4))
    count = 0
    for subscriber in range(tracks.start.size - 1):
        first, last = int(tracks.start[subscriber]), int(tracks.start[subscriber + 1]) - 1
        for segment in range(first - 1, last + 1 if first <= last else first - 1):
            line, begin_s, end_s = _segment(tracks, first, last, segment, duration_s)
            if end_s <= 0.0 or end_s < begin_s or begin_s >= duration_s:
                continue
            if not (math.isfinite(line[0]) and math.isfinite(line[2])):  # nowhere
                rows, count = _close_all(opened, subscriber, begin_s, rows, count)
                continue
            for i in range(_sensors_along(line, sensors, widest_m, near)):
                sensor = near[i]
                x, y = sensors.position[sensor, 0], sensors.position[sensor, 1]
                enter, leave, stays = within_range(line, x, y, range_m[sensor])
                if enter > leave:
                    continue
                if opened[sensor] < 0.0:
                    opened[sensor] = max(begin_s + enter * (end_s - begin_s), 0.0)
                if stays and end_s < duration_s:
                    continue
                lost_s = min(begin_s + leave * (end_s - begin_s), duration_s)
                if lost_s > opened[sensor]:
                    rows = with_room(rows, count)
                    rows[count, 0], rows[count, 1] = subscriber, sensor
                    rows[count, 2], rows[count, 3] = opened[sensor], lost_s
                    count += 1
                opened[sensor] = -1.0
    return rows[:count]


@rule
def _close_all(opened: Floats, subscriber: int, end_s: float, rows: Floats, count: int) -> tuple[Floats, int]:
    """End the subscriber's contacts, all of them: the rows, and how many there are."""
    for sensor in range(opened.size):
        if opened[sensor] >= 0.0 and end_s > opened[sensor]:
            rows = with_room(rows, count)
            rows[count, 0], rows[count, 1], rows[count, 2], rows[count, 3] = subscriber, sensor, opened[sensor], end_s
            count += 1
        opened[sensor] = -1.0
    return rows, count


@rule
def _segment(tracks: Tracks, first: int, last: int, segment: int, duration_s: float) -> tuple[_Line, float, float]:
    """Line, begin and end of a segment; before its first point and after its last nobody moves."""
    here, there = max(segment, first), min(segment + 1, last)
    begin_s = 0.0 if segment < first else tracks.time_s[here]
    end_s = duration_s if segment == last else tracks.time_s[there]
    return (tracks.x_m[here], tracks.y_m[here], tracks.x_m[there], tracks.y_m[there]), begin_s, end_s


@rule
def _sensors_along(line: _Line, sensors: Buckets, range_m: float, near: Numbers) -> int:
    """Put into `near` all sensors that may come within range of a line; how many."""
    x0, y0, x1, y1 = (
        line[0] - sensors.left,
        line[1] - sensors.bottom,
        line[2] - sensors.left,
        line[3] - sensors.bottom,
    )
    index, columns, rows = sensors.by_square, sensors.squares.columns, sensors.squares.rows
    side = sensors.squares.width_m / columns
    reach = range_m + 1e-6 * side  # rounding must not lose anybody
    lowest, highest = math.floor((min(y0, y1) - reach) / side), math.floor((max(y0, y1) + reach) / side)
    count = 0
    for row in range(max(lowest, 0), min(highest, rows - 1) + 1):
        # The part of the line that comes within reach of this row of squares, as shares of its length.
        begin, end = 0.0, 1.0
        if y0 != y1:
            a, b = (row * side - reach - y0) / (y1 - y0), ((row + 1) * side + reach - y0) / (y1 - y0)
            begin, end = max(min(a, b), 0.0), min(max(a, b), 1.0)
        a, b = x0 + (x1 - x0) * begin, x0 + (x1 - x0) * end
        leftmost, rightmost = math.floor((min(a, b) - reach) / side), math.floor((max(a, b) + reach) / side)
        if rightmost < 0 or leftmost >= columns:
            continue
        last = row * columns + min(rightmost, columns - 1)
        place = np.searchsorted(index.cells, row * columns + max(leftmost, 0))
        while place < index.cells.size and index.cells[place] <= last:
            near[count] = index.nodes[place]
            count += 1
            place += 1
    return count


@rule
def within_range(line: _Line, x: float, y: float, range_m: float) -> tuple[float, float, bool]:
    """From which to which share of a line (x, y) is within range (1, 0: never), and whether it is at the end.

    The ends are judged by their distance alone, so that two segments agree about the point they share.
    """
    x0, y0, x1, y1 = line[0] - x, line[1] - y, line[2] - x, line[3] - y
    square = range_m * range_m
    at_start, at_end = x0 * x0 + y0 * y0 <= square, x1 * x1 + y1 * y1 <= square
    if at_start and at_end:
        return 0.0, 1.0, True
    # |start + share * (end - start)|^2 = range^2:  a share^2 + 2 b share + c = 0
    dx, dy = x1 - x0, y1 - y0
    a, b, c = dx * dx + dy * dy, x0 * dx + y0 * dy, x0 * x0 + y0 * y0 - square
    root = math.sqrt(max(b * b - a * c, 0.0))
    if at_start:
        return 0.0, min(max((root - b) / a, 0.0), 1.0), False
    if at_end:
        return min(max((-root - b) / a, 0.0), 1.0), 1.0, True
    if root == 0.0 or b >= 0.0 or -b >= a:
        return 1.0, 0.0, False  # the nearest point of the line is an end, or is too far
    return max((-root - b) / a, 0.0), min((root - b) / a, 1.0), False
