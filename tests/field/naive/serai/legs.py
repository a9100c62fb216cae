"""Places, who hears whom, and the legs that subscribers walk."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from serai.world.grid import Grid
from tests.field.naive.parts import Point, between, cell_at

Place = tuple[float, float]


@dataclass(frozen=True)
class Reach:
    """Who hears whom: nodes whose cells are equal or touch, or within a distance."""

    grid: Grid
    range_m: float | None = None

    def hears(self, one: Place, other: Place) -> bool:
        if self.range_m is not None:
            dx, dy = one[0] - other[0], one[1] - other[1]
            return dx * dx + dy * dy <= self.range_m * self.range_m
        (column, row), (other_column, other_row) = self.spot(one), self.spot(other)
        return abs(column - other_column) <= 1 and abs(row - other_row) <= 1

    def spot(self, place: Place) -> tuple[int, int]:
        """Cell column and cell row: what ties go by; in metres they go by the number alone."""
        return spot_at(self.grid, place) if self.range_m is None else (0, 0)


@lru_cache(maxsize=100_000)
def spot_at(grid: Grid, place: Place) -> tuple[int, int]:
    row, column = divmod(cell_at(grid, *place), grid.columns)
    return column, row


@dataclass(frozen=True)
class Leg:
    """One straight walk and the pause at its end, as a subscriber announces it."""

    sets_out_s: float
    here: Place
    there: Place
    arrives_s: float
    ends_s: float  # never (infinity) after the last turning point

    def place_at(self, now: int) -> Place:
        """Where the subscriber is in a second of this leg."""
        if now >= self.arrives_s:
            return self.there
        part = (now - self.sets_out_s) / (self.arrives_s - self.sets_out_s)
        x, y = (a + (b - a) * part for a, b in zip(self.here, self.there, strict=True))
        return between(x, self.here[0], self.there[0]), between(y, self.here[1], self.there[1])


def legs_of(track: list[Point]) -> Iterator[Leg]:
    """The legs of a track; a pause at its beginning is a leg that leads nowhere."""
    moves = [i for i in range(len(track) - 1) if track[i][1:] != track[i + 1][1:]]
    begins = [*(track[move].time_s for move in moves), math.inf]
    if begins[0] != track[0].time_s:
        yield Leg(track[0].time_s, track[0][1:], track[0][1:], track[0].time_s, begins[0])
    for move, ends_s in zip(moves, begins[1:], strict=True):
        here, there = track[move], track[move + 1]
        yield Leg(here.time_s, here[1:], there[1:], there.time_s, ends_s)


@lru_cache(maxsize=200_000)
def in_reach(leg: Leg, place: Place, reach: Reach) -> tuple[float, float] | None:
    """The first and the last second of the leg in which the subscriber and a place hear each other."""
    sets_out, arrives = math.ceil(leg.sets_out_s), math.ceil(leg.arrives_s)
    ends = leg.ends_s if leg.ends_s == math.inf else math.ceil(leg.ends_s)
    walking = [now for now in range(sets_out, arrives) if reach.hears(leg.place_at(now), place)]
    if arrives < ends and reach.hears(leg.there, place):
        return (walking[0] if walking else arrives), ends - 1
    return (walking[0], walking[-1]) if walking else None
