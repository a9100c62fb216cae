"""Small random worlds for Hypothesis. Numbers are multiples of 1/8, so that sums and products are exact."""

import numpy as np
from hypothesis import strategies as st

from serai.field.passes import Ranges
from serai.field.world import People, World, who_hears_whom
from serai.world.grid import Grid
from serai.world.mobility import Tracks
from tests.world.slow import tracks_from

sides = st.sampled_from([1, 2, 3, 5, 8])


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    columns, rows = draw(sides), draw(sides)
    width, height = draw(st.sampled_from([0.5, 1.0, 4.0])), draw(st.sampled_from([0.5, 1.0, 4.0]))
    return Grid(width * columns, height * rows, columns, rows)


def coordinates(limit: float) -> st.SearchStrategy[float]:
    return st.integers(0, int(limit * 8)).map(lambda eighth: eighth / 8)


@st.composite
def tracks(draw: st.DrawFn, grid: Grid, most: int = 4, first_s: float = 0.0) -> Tracks:
    walks = []
    for _ in range(draw(st.integers(0, most))):
        time_s = draw(st.sampled_from([0.0, first_s]))
        walk = [(time_s, draw(coordinates(grid.width_m)), draw(coordinates(grid.height_m)))]
        for _ in range(draw(st.integers(0, 6))):
            time_s += draw(st.integers(0, 40)) / 8
            x, y = walk[-1][1:]
            if draw(st.integers(0, 3)):
                x, y = draw(coordinates(grid.width_m)), draw(coordinates(grid.height_m))
            walk.append((time_s, x, y))
        walks.append(walk)
    return tracks_from(walks)


@st.composite
def some_ranges(draw: st.DrawFn, sensors: int) -> Ranges:
    """Reach in metres: all alike, or each its own."""
    lengths = st.sampled_from([0.25, 1.0, 1.25, 3.0, 5.0])
    common = draw(lengths)
    own = draw(st.lists(lengths, min_size=sensors, max_size=sensors)) if draw(st.booleans()) else [common] * sensors
    return Ranges(np.array(own), common)


@st.composite
def worlds(draw: st.DrawFn, slots: int) -> World:
    grid = draw(grids())
    walks = draw(tracks(grid))
    sensors = draw(st.lists(st.tuples(coordinates(grid.width_m), coordinates(grid.height_m)), min_size=1, max_size=8))
    x, y = np.array(sensors, np.float64).T.copy()
    births = sorted(draw(st.lists(st.integers(0, 8 * slots + 16).map(lambda n: n / 8), max_size=12)))
    numbers = st.integers(0, len(sensors) - 1)
    event_sensor = draw(st.lists(numbers, min_size=len(births), max_size=len(births)))
    subscribers = len(walks.start) - 1
    bounds = st.integers(-1, 4)
    boxes = [[draw(bounds) for _ in range(2)] for _ in range(2 * subscribers)]
    low, high = np.array(boxes, np.float64).reshape(2, subscribers, 2)
    low, high = np.minimum(low, high), np.maximum(low, high)
    ranges = draw(st.none() | some_ranges(len(sensors)))
    values = np.array([[draw(bounds) for _ in range(2)] for _ in births], np.float64).reshape(-1, 2)
    return World(
        grid=grid,
        sensor_names=tuple(f"s{number}" for number in range(len(x))),
        sensor_x=x,
        sensor_y=y,
        battery_j=np.full(len(x), 10.0),
        tracks=walks,
        event_sensor=np.array(event_sensor, np.int32),
        event_time_s=np.array(births, np.float64),
        event_values=values,
        attribute_names=("A1", "A2"),
        low=low,
        high=high,
        where=("",) * subscribers,
        people=People.alike(subscribers),
        **who_hears_whom(grid, (x, y), ranges, walks, slots),
    )
