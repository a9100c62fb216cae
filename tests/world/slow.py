"""Obvious versions of the world's kernels: one node, one slot, one pair at a time."""

import itertools
import math
import os
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from serai.field.visits import Visits
from serai.field.world import World
from serai.world.grid import Grid
from serai.world.mobility import Tracks

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


def touch(grid: Grid, one: int, other: int, rings: int = 1) -> bool:
    columns = abs(one % grid.columns - other % grid.columns)
    rows = abs(one // grid.columns - other // grid.columns)
    return max(columns, rows) <= rings


def cell(grid: Grid, x: float, y: float) -> int:
    column = min(math.floor(x / (grid.width_m / grid.columns)), grid.columns - 1)
    row = min(math.floor(y / (grid.height_m / grid.rows)), grid.rows - 1)
    return row * grid.columns + column


def communities(grid: Grid, cells: list[int]) -> list[set[int]]:
    """By lowest sensor: grow each until nobody touches it any more."""
    left, found = set(range(len(cells))), []
    while left:
        group = {min(left)}
        while more := {s for s in left - group if any(touch(grid, cells[s], cells[g]) for g in group)}:
            group |= more
        found.append(group)
        left -= group
    return found


def components(nodes: int, links: set[tuple[int, int]]) -> list[int]:
    """The component of each node: groups are merged link by link, then numbered by their lowest node."""
    groups = [{node} for node in range(nodes)]
    for link in links:
        touched = [group for group in groups if group & set(link)]
        groups = [group for group in groups if group not in touched] + [set().union(*touched)]
    return [next(n for n, group in enumerate(sorted(groups, key=min)) if node in group) for node in range(nodes)]


def points_of(tracks: Tracks, subscriber: int) -> list[tuple[int, float, float, float]]:
    """(number, time, x, y) of the subscriber's turning points."""
    numbers = range(tracks.start[subscriber], tracks.start[subscriber + 1])
    return [(i, float(tracks.time_s[i]), float(tracks.x_m[i]), float(tracks.y_m[i])) for i in numbers]


def where(tracks: Tracks, subscriber: int, time_s: float) -> tuple[int, bool, float, float]:
    """Segment, whether it is a leg, and position at a time."""
    points = points_of(tracks, subscriber)
    begun = [place for place, (_, start_s, _, _) in enumerate(points) if start_s <= time_s]
    place = begun[-1] if begun else 0
    number, start_s, x0, y0 = points[place]
    if place + 1 == len(points):
        return number, False, x0, y0
    _, end_s, x1, y1 = points[place + 1]
    fraction = (time_s - start_s) / (end_s - start_s) if begun else 0.0
    x = sorted((x0, x0 + (x1 - x0) * fraction, x1))[1]
    y = sorted((y0, y0 + (y1 - y0) * fraction, y1))[1]
    return number, (x0, y0) != (x1, y1), x, y


def visits(tracks: Tracks, grid: Grid, slots: int) -> list[tuple[int, ...]]:
    """(slot, subscriber, cell, segment, leg, moving, came, went) of every change."""
    rows: list[tuple[int, ...]] = []
    seen: dict[int, tuple[int, int]] = {}
    for slot in range(slots):
        for subscriber in range(len(tracks.start) - 1):
            segment, moving, x, y = where(tracks, subscriber, slot)
            now = (cell(grid, x, y), segment)
            if seen.get(subscriber) != now:
                moved = int(subscriber not in seen or seen[subscriber][0] != now[0])
                rows.append((slot, subscriber, now[0], segment, segment, int(moving), moved, moved))
            seen[subscriber] = now
    return rows


def rows_of(found: Visits) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in found), strict=True))


def in_reach(
    tracks: Tracks, grid: Grid, sensor_cells: list[int], slot: int, rings: int, silent: bool
) -> set[tuple[int, int]]:
    """The pairs (subscriber, sensor) within reach in a slot."""
    pairs = set()
    for subscriber in range(len(tracks.start) - 1):
        _, moving, x, y = where(tracks, subscriber, slot)
        here = cell(grid, x, y)
        for sensor, there in enumerate(sensor_cells):
            if touch(grid, here, there, rings) and (moving or not silent):
                pairs.add((subscriber, sensor))
    return pairs


def heard(world: World, slot: int, silent: bool) -> set[tuple[int, int]]:
    """The pairs (subscriber, sensor) of a world that hear each other in a slot."""
    if world.ranges is None:
        return in_reach(world.tracks, world.grid, world.sensor_cell.tolist(), slot, 1, silent)
    pairs = set()
    for subscriber in range(len(world.tracks.start) - 1):
        _, moving, x, y = where(world.tracks, subscriber, slot)
        for sensor, (sensor_x, sensor_y, range_m) in enumerate(
            zip(world.sensor_x.tolist(), world.sensor_y.tolist(), world.ranges.sensors_m.tolist(), strict=True)
        ):
            far = (x - sensor_x) * (x - sensor_x) + (y - sensor_y) * (y - sensor_y)
            if far <= min(range_m, world.ranges.subscribers_m) ** 2 and (moving or not silent):
                pairs.add((subscriber, sensor))
    return pairs


def contacts(world: World, slots: int, silent: bool) -> list[tuple[int, int, int, int]]:
    """(subscriber, sensor, start, end), by (start, subscriber, sensor), by whatever reach the world has."""
    return _runs([heard(world, slot, silent) for slot in range(slots)])


def _runs(by_slot: list[set[tuple[int, int]]]) -> list[tuple[int, int, int, int]]:
    """How long each pair stays, from slot to slot."""
    running: dict[tuple[int, int], int] = {}
    done = []
    for slot, now in enumerate([*by_slot, set()]):
        for pair in [pair for pair in running if pair not in now]:
            done.append((*pair, running.pop(pair), slot))
        for pair in now:
            running.setdefault(pair, slot)
    return sorted(done, key=lambda row: (row[2], row[0], row[1]))


def cell_contacts(
    tracks: Tracks, grid: Grid, sensor_cells: list[int], slots: int, rings: int, silent: bool
) -> list[tuple[int, int, int, int]]:
    """(subscriber, sensor, start, end), by (start, subscriber, sensor)."""
    return _runs([in_reach(tracks, grid, sensor_cells, slot, rings, silent) for slot in range(slots)])


def cells_of_line(grid: Grid, x0: float, y0: float, x1: float, y1: float) -> set[int]:
    """Every cell with a point of the line, in exact arithmetic; cells own their left and lower edges."""
    a, b = Fraction(x0), Fraction(y0)
    dx, dy = Fraction(x1) - a, Fraction(y1) - b
    width, height = Fraction(grid.width_m) / grid.columns, Fraction(grid.height_m) / grid.rows
    shares = {Fraction(0), Fraction(1)}
    if dx:
        shares |= {(column * width - a) / dx for column in range(grid.columns + 1)}
    if dy:
        shares |= {(row * height - b) / dy for row in range(grid.rows + 1)}
    crossings = sorted(share for share in shares if 0 <= share <= 1)
    between = [(one + other) / 2 for one, other in itertools.pairwise(crossings)]
    found = set()
    for share in [*crossings, *between]:
        column = min((a + dx * share) // width, grid.columns - 1)
        row = min((b + dy * share) // height, grid.rows - 1)
        found.add(int(row * grid.columns + column))
    return found


def lines(tracks: Tracks, subscriber: int, duration_s: float) -> Iterator[tuple[float, ...]]:
    """(begin, end, x0, y0, x1, y1) of every segment; nobody moves before the first and after the last point."""
    points = [point[1:] for point in points_of(tracks, subscriber)]
    points = [(0.0, *points[0][1:]), *points, (max(duration_s, points[-1][0]), *points[-1][1:])]
    for (begin, x0, y0), (end, x1, y1) in itertools.pairwise(points):
        if begin < duration_s:
            yield begin, end, x0, y0, x1, y1


def range_contacts(
    tracks: Tracks, x: list[float], y: list[float], range_m: float, duration_s: float
) -> list[tuple[int, int, float, float]]:
    """(subscriber, sensor, start, end), by (subscriber, sensor, start): pair by pair, segment by segment."""
    found = []
    for subscriber in range(len(tracks.start) - 1):
        for sensor in range(len(x)):
            pieces: list[list[float]] = []
            for begin, end, *line in lines(tracks, subscriber, duration_s):
                piece = _time_in_range(begin, end, line, x[sensor], y[sensor], range_m)
                if piece is None:
                    continue
                if pieces and piece[0] <= pieces[-1][1] + 1e-9:
                    pieces[-1][1] = piece[1]
                else:
                    pieces.append(list(piece))
            cut = [(start, min(end, duration_s)) for start, end in pieces if start < duration_s]
            found += [(subscriber, sensor, start, end) for start, end in cut]
    return found


def _time_in_range(
    begin: float, end: float, line: list[float], x: float, y: float, range_m: float
) -> tuple[float, float] | None:
    """When a point that moves along a line is within range of (x, y): the roots of a quadratic."""
    x0, y0, x1, y1 = line[0] - x, line[1] - y, line[2] - x, line[3] - y
    dx, dy = x1 - x0, y1 - y0
    a, b, c = dx * dx + dy * dy, 2 * (x0 * dx + y0 * dy), x0 * x0 + y0 * y0 - range_m**2
    if a == 0:
        return (begin, end) if c <= 0 else None
    discriminant = b * b - 4 * a * c
    if discriminant <= 0:
        return None
    first = max((-b - math.sqrt(discriminant)) / (2 * a), 0.0)
    last = min((-b + math.sqrt(discriminant)) / (2 * a), 1.0)
    return (begin + first * (end - begin), begin + last * (end - begin)) if first <= last else None


def wants(world: World, event: int, subscriber: int) -> bool:
    values, low, high = world.event_values[event], world.low[subscriber], world.high[subscriber]
    return all(low[k] <= values[k] <= high[k] for k in range(len(values)))


def arrivals(world: World, slots: int, silent: bool) -> dict[str, dict[tuple[int, int], int]]:
    """By upper bound: the slot in which each event can first reach each subscriber, wanted or not."""
    group = world.communities.of_sensor.tolist()
    reach = [heard(world, slot, silent) for slot in range(slots)]
    found: dict[str, dict[tuple[int, int], int]] = {"direct": {}, "community": {}, "epidemic": {}}
    for event, (source, born_s) in enumerate(zip(world.event_sensor, world.event_time_s, strict=True)):
        home = group[source]
        knowing: set[tuple[str, int]] = {("community", home)}
        for slot in range(math.ceil(born_s), slots):
            for subscriber, sensor in sorted(reach[slot]):
                if sensor == source:
                    found["direct"].setdefault((event, subscriber), slot)
                if group[sensor] == home:
                    found["community"].setdefault((event, subscriber), slot)
            pairs = [(("community", group[s]), ("subscriber", p)) for p, s in reach[slot]]
            while any(len(knowing & set(pair)) == 1 for pair in pairs):
                knowing |= {node for pair in pairs if knowing & set(pair) for node in pair}
            for kind, number in knowing:
                if kind == "subscriber":
                    found["epidemic"].setdefault((event, number), slot)
    return found


def upper_bound(world: World, first: dict[tuple[int, int], int], lifetime_s: float) -> tuple[float, float]:
    """Ratio and mean delay over the wanted pairs."""
    pairs = [(e, p) for e in range(len(world.event_sensor)) for p in range(len(world.low)) if wants(world, e, p)]
    delays = [first[pair] - world.event_time_s[pair[0]] for pair in pairs if pair in first]
    served = [delay for delay in delays if delay <= lifetime_s]
    ratio = len(served) / len(pairs) if pairs else math.nan
    return ratio, math.fsum(served) / len(served) if served else math.nan


def tracks_from(walks: list[list[tuple[float, float, float]]]) -> Tracks:
    """Tracks of these turning points (time, x, y)."""
    start = np.cumsum([0, *(len(walk) for walk in walks)])
    time_s, x, y = np.array([point for walk in walks for point in walk], np.float64).reshape(-1, 3).T.copy()
    return Tracks(start, time_s, x, y)
