"""The world of a run: the field and its sensors, how subscribers move, what happens and who wants to know.

Two protocols compared under one seed see the same world.
"""

from typing import NamedTuple

from serai.field.communities import Communities
from serai.field.visits import Visits
from serai.world.grid import Floats, Grid, Numbers
from serai.world.mobility import Tracks

__all__ = ["World"]


class World(NamedTuple):
    """All that is given before the first slot; N sensors, P subscribers, E events, K attributes."""

    grid: Grid
    sensor_names: tuple[str, ...]
    sensor_x: Floats  # [N] metres
    sensor_y: Floats
    sensor_cell: Numbers
    battery_j: Floats
    communities: Communities
    tracks: Tracks
    visits: Visits
    event_sensor: Numbers  # [E] where it was measured
    event_time_s: Floats  # birth, ascending
    event_values: Floats  # [E, K]
    attribute_names: tuple[str, ...]  # [K]
    low: Floats  # [P, K] what each subscriber wants: low <= value <= high
    high: Floats
    where: tuple[str, ...]  # [P] the same in words
