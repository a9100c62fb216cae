"""Places, who hears whom, and the legs that subscribers walk."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from serai.world.grid import Grid
from tests.field.naive.parts import Point, between, cell_at

Place = tuple[float, ...]  # and for sensors that may hear less or more far than subscribers, how far


@dataclass(frozen=True)
class Reach:
    """Who hears whom: nodes whose cells are equal or touch, or each within the other's range."""

    grid: Grid
    range_m: float | None = None

    def hears(self, one: Place, other: Place) -> bool:
        if math.isnan(one[0]) or math.isnan(other[0]):
            return False
        if self.range_m is not None:
            dx, dy = one[0] - other[0], one[1] - other[1]
            least_m = min(place[2] if len(place) > 2 else self.range_m for place in (one, other))
            return dx * dx + dy * dy <= least_m * least_m
        (column, row), (other_column, other_row) = self.spot(one), self.spot(other)
        return abs(column - other_column) <= 1 and abs(row - other_row) <= 1

    def spot(self, place: Place) -> tuple[int, int]:
        """Cell column and cell row: what ties go by; in metres they go by the number alone."""
        return spot_at(self.grid, place) if self.range_m is None else (0, 0)


@lru_cache(maxsize=100_000)
def spot_at(grid: Grid, place: Place) -> tuple[int, int]:
    row, column = divmod(cell_at(grid, *place[:2]), grid.columns)
    return column, row


@dataclass(frozen=True)
class Leg:
    """One way and the pause at its end, as a subscriber announces it."""

    sets_out_s: float
    here: Place
    there: Place
    arrives_s: float
    ends_s: float  # never (infinity) after the last turning point
    via: tuple[Point, ...] = ()  # where it turns on its way
    gone_s: float = math.inf  # when it is nowhere

    def place_at(self, now: int) -> Place:
        """Where the subscriber is in a second of this leg."""
        if now >= self.gone_s:
            return math.nan, math.nan
        if now >= self.arrives_s:
            return self.there
        stops = [Point(self.sets_out_s, *self.here), *self.via, Point(self.arrives_s, *self.there)]
        here, there = next((a, b) for a, b in pairwise(stops) if now < b.time_s)
        part = (now - here.time_s) / (there.time_s - here.time_s)
        x, y = here.x + (there.x - here.x) * part, here.y + (there.y - here.y) * part
        return between(x, here.x, there.x), between(y, here.y, there.y)


def legs_of(track: list[Point], legs: list[int] | None = None) -> Iterator[Leg]:
    """The legs of a track; a pause at its beginning, or after a time nowhere, is a leg that leads nowhere.

    `legs` says of each segment which one its leg begins with; if left out, each is one.
    """
    first = legs or list(range(len(track)))
    starts = [i for i in range(len(track)) if i == 0 or sets_out(track, first, i) or comes_back(track, i)]
    for start, following in pairwise([*starts, len(track)]):
        end, ends_s = start, math.inf if following == len(track) else track[following].time_s
        if sets_out(track, first, start):
            end += 1
            while end < len(track) - 1 and first[end] == start:
                end += 1
        here, there, gone_s = track[start], track[end], gone_at(track[end : following + 1])
        yield Leg(here.time_s, here[1:], there[1:], there.time_s, ends_s, tuple(track[start + 1 : end]), gone_s)


def sets_out(track: list[Point], first: list[int], i: int) -> bool:
    """Whether a walk begins at a point of a track."""
    return i + 1 < len(track) and moves_on(track[i], track[i + 1]) and first[i] == i


def comes_back(track: list[Point], i: int) -> bool:
    """Whether the subscriber was nowhere before."""
    return math.isnan(track[i - 1].x) and not math.isnan(track[i].x)


def gone_at(points: list[Point]) -> float:
    """When nobody is there any more, if ever."""
    return next((point.time_s for point in points if math.isnan(point.x)), math.inf)


def moves_on(here: Point, there: Point) -> bool:
    """Whether somebody goes from one point to another one."""
    return abs(there.x - here.x) + abs(there.y - here.y) > 0


@lru_cache(maxsize=200_000)
def in_reach(leg: Leg, place: Place, reach: Reach) -> tuple[float, float] | None:
    """The first and the last second of the leg, from 0 on, in which the subscriber and a place hear each other."""
    sets_out, arrives = max(math.ceil(leg.sets_out_s), 0), max(math.ceil(leg.arrives_s), 0)
    ends = leg.ends_s if leg.ends_s == math.inf else math.ceil(leg.ends_s)
    walking = [now for now in range(sets_out, arrives) if reach.hears(leg.place_at(now), place)]
    ends = ends if leg.gone_s == math.inf else min(ends, math.ceil(leg.gone_s))
    if arrives < ends and reach.hears(leg.there, place):
        return (walking[0] if walking else arrives), ends - 1
    return (walking[0], walking[-1]) if walking else None
