"""More ways to move: random walk, Levy walk, and walkers who belong to a community.

As in `mobility`, every node has its own random stream and is kept as its turning points.

Levy walk: I. Rhee et al., "On the Levy-walk nature of human mobility", IEEE/ACM Transactions on Networking 19(3),
2011. Flights and pauses follow truncated power laws. Here the speed is drawn anew for each flight, as in the other
models. Community: T. Spyropoulos, K. Psounis, C. Raghavendra, "Performance analysis of mobility-assisted routing",
MobiHoc 2006. Each node has a home, one of the equal parts of the field, and goes to a point of it or anywhere.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.core.jit import kernel, rule
from serai.world.grid import Floats, Grid
from serai.world.mobility import Range, Tracks, stream_of
from serai.world.tables import with_room

Model = Literal["random-walk", "levy-walk", "community"]

_MODELS = ("random-walk", "levy-walk", "community")
_RANDOM_WALK, _LEVY_WALK, _COMMUNITY = range(3)
_DRAWS_PER_LEG = 5
_LEGS_DRAWN = 256  # at a time


class Walk(NamedTuple):
    """How nodes walk: speeds and pauses for all models, legs for walks, homes for communities."""

    model: Model
    speed: Range  # m/s
    pause: Range  # s
    leg: Range = (10.0, 100.0)  # metres, of a leg in a random walk or a flight in a Levy walk
    leg_exponent: float = 1.6  # Levy walk: P(leg > l) ~ l^-exponent, between the shortest and the longest
    pause_exponent: float = 0.8
    home_share: float = 0.8  # community: how often a leg leads to the node's home


def walk(grid: Grid, count: int, duration_s: float, how: Walk, *, seed: np.random.SeedSequence) -> Tracks:
    """Walks of `count` nodes, each up to its first turning point at or after `duration_s`.

    In a community, home number n is cell n modulo the number of cells of the grid.
    """
    _check(how)
    walks = [_one_walk(grid, number, duration_s, how, stream_of(seed, number)) for number in range(count)]
    begin = np.zeros(count + 1, np.int64)
    np.cumsum([len(points) for points in walks], out=begin[1:])
    points = np.concatenate(walks) if walks else np.empty((0, 3))
    return Tracks(begin, *points.T.copy())


def _check(how: Walk) -> None:
    """Refuse a walk that cannot be walked."""
    if how.model not in _MODELS:
        raise BadInput(f'model "{how.model}": one of {", ".join(_MODELS)}')
    if not 0 < how.speed[0] <= how.speed[1] < math.inf:
        raise BadInput(f"speed {how.speed[0]} to {how.speed[1]} m/s: need 0 < lowest <= highest")
    if not 0 <= how.pause[0] <= how.pause[1] < math.inf:
        raise BadInput(f"pause {how.pause[0]} to {how.pause[1]} s: need 0 <= shortest <= longest")
    if not 0 < how.leg[0] <= how.leg[1] < math.inf:
        raise BadInput(f"leg {how.leg[0]} to {how.leg[1]} m: need 0 < shortest <= longest")
    if how.leg_exponent <= 0 or how.pause_exponent <= 0 or not 0 <= how.home_share <= 1:
        raise BadInput("exponents of a Levy walk must be above 0, the share of legs home between 0 and 1")
    if how.model == "levy-walk" and how.pause[0] == 0 < how.pause[1]:
        raise BadInput("a Levy walk draws pauses from a power law, which needs a shortest pause above 0")


class _Area(NamedTuple):
    """The field, and a node's home in it."""

    width_m: float
    height_m: float
    home_left: float
    home_bottom: float
    home_width_m: float
    home_height_m: float


def _one_walk(grid: Grid, number: int, duration_s: float, how: Walk, rng: np.random.Generator) -> Floats:
    """The turning points of one node as columns time, x, y."""
    area, model = _area(grid, number), _MODELS.index(how.model)
    left, bottom, width_m, height_m = area[2:] if model == _COMMUNITY else (0.0, 0.0, area.width_m, area.height_m)
    x, y = rng.random(2)
    parts = [np.array([[0.0, left + x * width_m, bottom + y * height_m]])]
    numbers = _Numbers(*(float(n) for n in (*how.speed, *how.pause, *how.leg, *how[4:])))
    while parts[-1][-1, 0] < duration_s:
        draws = rng.random((_LEGS_DRAWN, _DRAWS_PER_LEG))
        parts.append(_walk_on(parts[-1][-1].copy(), draws, area, numbers, model, float(duration_s)))
    return np.concatenate(parts)


def _area(grid: Grid, number: int) -> _Area:
    """The field and the home of a node: one cell after the other, all of them in turn."""
    width_m, height_m = grid.width_m / grid.columns, grid.height_m / grid.rows
    cell = number % (grid.columns * grid.rows)
    left, bottom = cell % grid.columns * width_m, cell // grid.columns * height_m
    return _Area(*(float(n) for n in (grid.width_m, grid.height_m, left, bottom, width_m, height_m)))


class _Numbers(NamedTuple):
    """What a kernel needs to know of a walk."""

    speed_min: float
    speed_max: float
    pause_min: float
    pause_max: float
    leg_min: float
    leg_max: float
    leg_exponent: float
    pause_exponent: float
    home_share: float


@kernel
def _walk_on(last: Floats, draws: Floats, area: _Area, how: _Numbers, model: int, duration_s: float) -> Floats:
    """The turning points after `last` (time, x, y), until time is up or the draws are used."""
    points = np.empty((4 * draws.shape[0], 3))
    points[0] = last
    count = 1
    for leg in range(draws.shape[0]):
        if points[count - 1, 0] >= duration_s:
            break
        draw = draws[leg]
        speed_mps = how.speed_max - (how.speed_max - how.speed_min) * draw[2]
        if model == _COMMUNITY:
            points, count = _go_somewhere(points, count, draw, area, how.home_share, speed_mps)
        else:
            exponent = how.leg_exponent if model == _LEVY_WALK else 0.0
            far_m = _drawn(draw[1], how.leg_min, how.leg_max, exponent)
            points, count = _go_straight(points, count, 2.0 * math.pi * draw[0], far_m, speed_mps, area)
        pause_s = _drawn(draw[3], how.pause_min, how.pause_max, how.pause_exponent if model == _LEVY_WALK else 0.0)
        if pause_s > 0.0:
            end = points[count - 1]
            points, count = _then(points, count, end[0] + pause_s, end[1], end[2])
    return points[1:count].copy()


@rule
def _drawn(draw: float, lowest: float, highest: float, exponent: float) -> float:
    """A number between two others: uniform (exponent 0), or by a power law, P(more than n) ~ n^-exponent."""
    if exponent == 0.0 or lowest == highest:
        return lowest + (highest - lowest) * draw
    tail = (lowest / highest) ** exponent  # what the law has beyond the highest
    return float(min(lowest / (1.0 - draw * (1.0 - tail)) ** (1.0 / exponent), highest))


@rule
def _go_somewhere(
    points: Floats, count: int, draw: Floats, area: _Area, home_share: float, speed_mps: float
) -> tuple[Floats, int]:
    """A leg to a point of the node's home or, less often, of the whole field."""
    left, bottom, width_m, height_m = 0.0, 0.0, area.width_m, area.height_m
    if draw[4] < home_share:
        left, bottom, width_m, height_m = area.home_left, area.home_bottom, area.home_width_m, area.home_height_m
    x, y = left + draw[0] * width_m, bottom + draw[1] * height_m
    dx, dy = x - points[count - 1, 1], y - points[count - 1, 2]
    return _then(points, count, points[count - 1, 0] + math.sqrt(dx * dx + dy * dy) / speed_mps, x, y)


@rule
def _go_straight(
    points: Floats, count: int, angle: float, far_m: float, speed_mps: float, area: _Area
) -> tuple[Floats, int]:
    """A leg of a length in a direction; at the edges of the field it is thrown back as a ball is."""
    along_x, along_y = math.cos(angle), math.sin(angle)
    while far_m > 0.0:
        time_s, x, y = points[count - 1, 0], points[count - 1, 1], points[count - 1, 2]
        to_x = _to_edge(x, along_x, area.width_m)
        to_y = _to_edge(y, along_y, area.height_m)
        step_m = min(far_m, to_x, to_y)
        x = min(max(x + along_x * step_m, 0.0), area.width_m)
        y = min(max(y + along_y * step_m, 0.0), area.height_m)
        if step_m > 0.0:
            points, count = _then(points, count, time_s + step_m / speed_mps, x, y)
        along_x = -along_x if to_x <= step_m else along_x
        along_y = -along_y if to_y <= step_m else along_y
        far_m -= step_m
    return points, count


@rule
def _to_edge(place: float, along: float, limit: float) -> float:
    """How far it is to the edge in one direction; endless for who goes along it."""
    if along > 0.0:
        return (limit - place) / along
    return -place / along if along < 0.0 else np.inf


@rule
def _then(points: Floats, count: int, time_s: float, x: float, y: float) -> tuple[Floats, int]:
    """Add the next turning point; the table, and how many there are now."""
    points = with_room(points, count)
    points[count, 0], points[count, 1], points[count, 2] = time_s, x, y
    return points, count + 1
