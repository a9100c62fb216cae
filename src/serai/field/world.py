"""The world of a run: the field and its sensors, how subscribers move, what happens and who wants to know.

Two protocols compared under one seed see the same world.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.field.communities import Communities, communities_in_range, find_communities
from serai.field.passes import Passes, Ranges, no_passes, passes_of
from serai.field.visits import Visits, visits_of
from serai.recorded.wishes import Wishes
from serai.world.courses import legs_of
from serai.world.grid import Floats, Grid, Numbers
from serai.world.mobility import Tracks

__all__ = ["UNNAMED", "People", "Wanted", "World", "who_hears_whom"]

UNNAMED = "subscriber"
"""What the nodes of a group without a name are called, with a number."""


class People(NamedTuple):
    """Who the subscribers are, P of them, in groups."""

    names: tuple[str, ...]
    groups: tuple[str, ...]  # names of the groups
    group: Numbers  # [P] which one each belongs to
    turning_m: Floats  # [P] how far from a straight line its way is still announced as one leg; 0: as it is
    carries: NDArray[np.uint8]  # [P] 1 if it asks for nothing, and only carries

    @classmethod
    def alike(cls, count: int) -> People:
        """So many subscribers without a group."""
        names = tuple(f"{UNNAMED}-{number}" for number in range(count))
        return cls(names, ("",), np.zeros(count, np.int32), np.zeros(count), np.zeros(count, np.uint8))


_NONE = np.empty(0, np.int32)


class Wanted(NamedTuple):
    """What events carry and what subscribers want of it, where a file of subscriptions says so."""

    event_values: Floats  # [E, K + marks]
    low: Floats  # [P, K + marks]
    high: Floats
    where: tuple[str, ...]
    people: People
    wishes: Wishes


class Harvest(NamedTuple):
    """What sensors harvest, and when the dead wake."""

    watts: Floats  # [N, 24] by hour of the day
    wake: float  # the share of a whole battery with which a dead sensor wakes
    since_midnight_s: int  # at the run's time 0

    @property
    def pj(self) -> NDArray[np.int64]:
        """What each sensor harvests in a second of each hour, in whole picojoules."""
        pj: NDArray[np.int64] = np.rint(self.watts * 1e12).astype(np.int64)
        return pj

    def wake_pj(self, battery_j: Floats) -> NDArray[np.int64]:
        """What must be in each battery for a dead sensor to wake, in picojoules."""
        least: NDArray[np.int64] = np.maximum(np.ceil(self.wake * np.rint(battery_j * 1e12)), 1).astype(np.int64)
        return least


class World(NamedTuple):
    """All that is given before the first slot; N sensors, P subscribers, E events, K attributes.

    Who hears whom is a matter of cells, or of metres if there are `ranges`.
    """

    grid: Grid
    sensor_names: tuple[str, ...]
    sensor_x: Floats  # [N] metres
    sensor_y: Floats
    battery_j: Floats
    tracks: Tracks
    legs: Numbers  # of each segment of the tracks: the first point of what is announced as one way
    ranges: Ranges | None
    sensor_cell: Numbers  # -1 with ranges
    communities: Communities
    visits: Visits
    passes: Passes  # with ranges only
    event_sensor: Numbers  # [E] where it was measured
    event_time_s: Floats  # birth, ascending
    event_values: Floats  # [E, K and marks], the columns of field/asking.py beside the attributes
    attribute_names: tuple[str, ...]  # [K]
    low: Floats  # [P, K and marks] what each subscriber wants: low <= value <= high
    high: Floats
    where: tuple[str, ...]  # [P] the same in words
    people: People
    texts: tuple[tuple[str, tuple[str, ...]], ...] = ()  # attributes that are texts; their values are places in these
    failing: Numbers = _NONE  # numbers of the sensors that fail on the way
    wishes: Wishes | None = None  # what a file of subscriptions says
    queue: Numbers | None = None  # [N] copies that each can hold, where some can hold more than others
    idle_w: Floats | None = None  # [N] power while listening, where that costs anything
    harvest: Harvest | None = None  # where somebody harvests

    @property
    def feels_time(self) -> bool:
        """Whether batteries change by themselves: by listening or by what is harvested."""
        return self.idle_w is not None or self.harvest is not None

    @property
    def contents(self) -> Floats:
        """[E, K] what events carry, without marks."""
        return self.event_values[:, : len(self.attribute_names)]

    @property
    def idle_pj(self) -> NDArray[np.int64]:
        """What listening costs each sensor in a second, in whole picojoules."""
        if self.idle_w is None:
            return np.zeros(len(self.sensor_x), np.int64)
        idle_pj: NDArray[np.int64] = np.rint(self.idle_w * 1e12).astype(np.int64)
        return idle_pj


def who_hears_whom(
    grid: Grid,
    sensors: tuple[Floats, Floats],
    ranges: Ranges | None,
    tracks: Tracks,
    slots: int,
    turning_m: Floats | None = None,
) -> dict[str, Any]:
    """What follows from where sensors (x, y) stand and who passes: cells or passes, communities, visits."""
    x_m, y_m = sensors
    legs = legs_of(tracks, np.zeros(tracks.start.size - 1) if turning_m is None else turning_m)
    if ranges is None:
        cells = grid.cell_of(x_m, y_m)
        groups, visits, passes = find_communities(grid, cells), visits_of(tracks, grid, slots, legs), no_passes(tracks)
    else:
        cells = np.full(len(x_m), -1, np.int32)
        groups = communities_in_range(x_m, y_m, ranges.sensors_m)
        passes, visits = passes_of(tracks, legs, x_m, y_m, ranges.passing_m, slots)
    return {
        "legs": legs, "ranges": ranges, "sensor_cell": cells, "communities": groups, "visits": visits, "passes": passes,
    }  # fmt: skip
