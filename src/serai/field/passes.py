"""Which sensors are within range of a subscriber, where reach is in metres.

Positions are looked at once a slot (second). The field is cut into squares, each with the sensors whose range touches
it: what a subscriber there may hear is looked up, and only that is measured.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel, rule, step
from serai.field.visits import Visits, by_slot, slots_of
from serai.world.grid import Floats, Numbers
from serai.world.mobility import Tracks, is_leg, position_at
from serai.world.tables import with_room

_SQUARES_PER_SENSOR = 16
_ROUNDING = 1e-9  # of a square: it must not lose anybody


class Ranges(NamedTuple):
    """How far nodes hear, in metres. A link needs both its ends: the shorter range counts."""

    sensors_m: Floats
    subscribers_m: float

    @property
    def passing_m(self) -> Floats:
        """How far away each sensor and a subscriber may be from each other."""
        return np.minimum(self.sensors_m, self.subscribers_m)


class Passes(NamedTuple):
    """When a sensor is within range of a subscriber, by (subscriber, first slot, sensor); both slots included."""

    start: NDArray[np.int64]  # those of subscriber p are start[p] : start[p + 1]
    sensor: Numbers
    first: Numbers
    last: Numbers
    most: int  # sensors within range of one subscriber at a time

    @property
    def subscriber(self) -> Numbers:
        """Whose each pass is."""
        return np.repeat(np.arange(len(self.start) - 1, dtype=np.int32), np.diff(self.start))


def no_passes(tracks: Tracks) -> Passes:
    """Where reach is by cells, nobody asks for passes."""
    nothing = np.empty(0, np.int32)
    return Passes(np.zeros(len(tracks.start), np.int64), nothing, nothing, nothing, 0)


def passes_of(
    tracks: Tracks, legs: Numbers, x_m: Floats, y_m: Floats, range_m: Floats, slots: int
) -> tuple[Passes, Visits]:
    """Every pass from slot 0 to `slots` - 1, and every visit: with sensors in range, these or the leg are new."""
    sensors = Sensors(*(np.require(column, np.float64, ["C", "W"]) for column in (x_m, y_m, range_m)))
    rows, visits, most = _find_passes(tracks.writable(), legs, sensors, _sort_into_squares(sensors), slots)
    subscriber, sensor, first, last = rows.T.copy()
    start = np.searchsorted(subscriber, np.arange(tracks.start.size)).astype(np.int64)
    slot, who, segment, leg, moving, came, went = visits.T.copy()
    nowhere = np.full(len(slot), -1, np.int32)
    flags = (column.astype(np.uint8) for column in (moving, came, went))
    found = Visits(slot, who, nowhere, segment, leg, *flags)
    return Passes(start, sensor, first, last, int(most)), by_slot(found, slots)


class Sensors(NamedTuple):
    """Where sensors stand, and how near a subscriber must come."""

    x: Floats
    y: Floats
    range_m: Floats


class Squares(NamedTuple):
    """The sensors whose range touches each square: sensor[start[square] : start[square + 1]], ascending."""

    left: float
    bottom: float
    side: float
    columns: int
    rows: int
    start: NDArray[np.int64]
    sensor: Numbers


def _sort_into_squares(sensors: Sensors) -> Squares:
    """Squares over all places within range of a sensor: about half a range wide, unless there would be too many."""
    if not sensors.x.size:
        return Squares(0.0, 0.0, 1.0, 0, 0, *_nobody())
    left, bottom = (float((at - sensors.range_m).min()) for at in (sensors.x, sensors.y))
    right, top = (float((at + sensors.range_m).max()) for at in (sensors.x, sensors.y))
    side = max(
        float(sensors.range_m.mean()) / 2,
        math.sqrt((right - left) * (top - bottom) / (_SQUARES_PER_SENSOR * sensors.x.size)),
        max(right - left, top - bottom) / (_SQUARES_PER_SENSOR * sensors.x.size),
    )
    columns, rows = (int(length / side) + 1 for length in (right - left, top - bottom))
    shape = Squares(left, bottom, side, columns, rows, *_nobody())
    start, sensor = _fill_squares(sensors, shape)
    return shape._replace(start=start, sensor=sensor)


def _nobody() -> tuple[NDArray[np.int64], Numbers]:
    return np.zeros(1, np.int64), np.empty(0, np.int32)


@kernel
def _fill_squares(sensors: Sensors, squares: Squares) -> tuple[NDArray[np.int64], Numbers]:
    """Enter every sensor into the squares that its range touches."""
    start = np.zeros(squares.columns * squares.rows + 1, np.int64)
    for sensor in range(sensors.x.size):
        left, right, bottom, top = _span(sensors, squares, sensor)
        for row in range(bottom, top + 1):
            for column in range(left, right + 1):
                start[row * squares.columns + column + 1] += _touches(sensors, squares, sensor, column, row)
    for square in range(squares.columns * squares.rows):
        start[square + 1] += start[square]
    entered, free = np.empty(start[-1], np.int32), start[:-1].copy()
    for sensor in range(sensors.x.size):
        left, right, bottom, top = _span(sensors, squares, sensor)
        for row in range(bottom, top + 1):
            for column in range(left, right + 1):
                if _touches(sensors, squares, sensor, column, row):
                    square = row * squares.columns + column
                    entered[free[square]] = sensor
                    free[square] += 1
    return start, entered


@rule
def _span(sensors: Sensors, squares: Squares, sensor: int) -> tuple[int, int, int, int]:
    """The columns and rows of squares, first and last, that a sensor's range may touch."""
    x, y, reach = sensors.x[sensor] - squares.left, sensors.y[sensor] - squares.bottom, sensors.range_m[sensor]
    reach += _ROUNDING * squares.side
    return (
        max(math.floor((x - reach) / squares.side), 0),
        min(math.floor((x + reach) / squares.side), squares.columns - 1),
        max(math.floor((y - reach) / squares.side), 0),
        min(math.floor((y + reach) / squares.side), squares.rows - 1),
    )


@rule
def _touches(sensors: Sensors, squares: Squares, sensor: int, column: int, row: int) -> bool:
    """Whether some point of the square is within the sensor's range."""
    x, y = sensors.x[sensor] - squares.left, sensors.y[sensor] - squares.bottom
    dx = max(column * squares.side - x, x - (column + 1) * squares.side, 0.0)
    dy = max(row * squares.side - y, y - (row + 1) * squares.side, 0.0)
    reach = sensors.range_m[sensor] + _ROUNDING * squares.side
    return bool(dx * dx + dy * dy <= reach * reach)


# ---- from slot to slot


class _Open(NamedTuple):
    """The passes of one subscriber that have not ended yet."""

    is_open: NDArray[np.int64]  # [sensor] 1 if it has one
    row_of: NDArray[np.int64]  # [sensor] which
    sensors: Numbers  # those that have one


@kernel
def _find_passes(
    tracks: Tracks, legs: Numbers, sensors: Sensors, squares: Squares, slots: int
) -> tuple[Numbers, Numbers, int]:
    """Rows subscriber, sensor, first, last; rows of visits; and how many sensors were in range at once, at most."""
    count = sensors.x.size
    still = _Open(np.zeros(count, np.int64), np.empty(count, np.int64), np.empty(count + 1, np.int32))
    rows, visits = np.empty((1024, 4), np.int32), np.empty((1024, 7), np.int32)
    found = visited = most = 0
    for subscriber in range(tracks.start.size - 1):
        points = tracks.start[subscriber], tracks.start[subscriber + 1]
        in_range, leg = 0, -1
        for segment in range(points[0], points[1]):
            slot, last = slots_of(tracks, points, segment, slots)
            moving = is_leg(tracks, subscriber, segment)
            if not moving:
                last = min(last, slot + 1)  # nothing changes in a pause
            for now in range(slot, last):
                x, y = position_at(tracks, subscriber, segment, now)
                came, kept = _look(sensors, squares, still, x, y, in_range)
                if came == 0 and kept == in_range and (legs[segment] == leg or in_range == 0):
                    continue
                if visited == len(visits):
                    visits = with_room(visits, visited)
                visits[visited, 0], visits[visited, 1], visits[visited, 2] = now, subscriber, segment
                visits[visited, 3], visits[visited, 4] = legs[segment], moving
                visits[visited, 5], visits[visited, 6] = came > 0, kept < in_range
                visited += 1
                for i in range(in_range, in_range + came):
                    if found == len(rows):
                        rows = with_room(rows, found)
                    rows[found, 0], rows[found, 1], rows[found, 2] = subscriber, still.sensors[i], now
                    still.is_open[still.sensors[i]], still.row_of[still.sensors[i]] = 1, found
                    found += 1
                if kept < in_range:
                    _close(sensors, still, rows, in_range + came, (x, y, now))
                in_range, leg = kept + came, legs[segment]
                most = max(most, in_range)
        _close_all(still, rows, in_range, slots)
    return rows[:found], visits[:visited], most


@step
def _look(sensors: Sensors, squares: Squares, still: _Open, x: float, y: float, before: int) -> tuple[int, int]:
    """How many sensors are new within range of a place, and how many were so before; the new ones are listed.

    Who is within range cannot be predicted, by a processor neither: so everybody is written down, and seldom kept.
    """
    came = kept = 0
    if math.isnan(x):  # nowhere
        return came, kept
    column, row = math.floor((x - squares.left) / squares.side), math.floor((y - squares.bottom) / squares.side)
    if 0 <= column < squares.columns and 0 <= row < squares.rows:
        square = row * squares.columns + column
        for place in range(squares.start[square], squares.start[square + 1]):
            sensor = squares.sensor[place]
            hears = 1 if _hears(sensors, sensor, x, y) else 0
            still.sensors[before + came] = sensor
            came += hears & (1 - still.is_open[sensor])
            kept += hears & still.is_open[sensor]
    return came, kept


@step
def _hears(sensors: Sensors, sensor: int, x: float, y: float) -> bool:
    """Whether the sensor is within range of a place."""
    dx, dy, reach = sensors.x[sensor] - x, sensors.y[sensor] - y, sensors.range_m[sensor]
    return bool(dx * dx + dy * dy <= reach * reach)


@step
def _close(sensors: Sensors, still: _Open, rows: Numbers, count: int, place: tuple[float, float, int]) -> None:
    """End those of so many passes whose sensors are out of range of a place and time (x, y, slot)."""
    kept = 0
    for i in range(count):
        sensor = still.sensors[i]
        if _hears(sensors, sensor, place[0], place[1]):
            still.sensors[kept] = sensor
            kept += 1
        else:
            rows[still.row_of[sensor], 3] = place[2] - 1
            still.is_open[sensor] = 0


@step
def _close_all(still: _Open, rows: Numbers, count: int, slots: int) -> None:
    """End so many passes with the last slot."""
    for i in range(count):
        rows[still.row_of[still.sensors[i]], 3] = slots - 1
        still.is_open[still.sensors[i]] = 0
