"""How subscribers move: tracks of turning points, and the random waypoint model that draws them.

Every subscriber has its own random stream, so that neither more subscribers nor a longer run changes the
earlier part of anybody's walk.

Steady state: W. Navidi and T. Camp, "Stationary distributions for the random waypoint mobility model", IEEE
Transactions on Mobile Computing 3(1), 2004. A walk that begins in it needs no warm-up: from the first second
on speeds, pauses and places are distributed as they are in the long run.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.core.jit import kernel, rule
from serai.world.grid import Floats, Grid

Range = tuple[float, float]
Start = Literal["cold", "steady"]

_DRAWS_PER_LEG = 4  # destination x, y; speed; pause
_LARGEST_BLOCK = 65_536  # legs drawn at a time
_MOST_POINTS = 1_000_000_000  # of all tracks together: segments are numbered in 32 bits


class Tracks(NamedTuple):
    """Turning points of all subscribers; those of subscriber p are start[p] : start[p + 1], by time.

    Between two of them a straight line at constant speed; two at the same place are a pause. After its last
    point a subscriber stays there. A point that is nowhere (NaN) says that from then on nobody is there.
    """

    start: NDArray[np.int64]
    time_s: Floats
    x_m: Floats
    y_m: Floats

    def writable(self) -> "Tracks":
        """The same tracks, copied if they are read-only: kernels compile once per kind of array."""
        floats = (np.require(column, np.float64, ["C", "W"]) for column in self[1:])
        return Tracks(np.require(self.start, np.int64, ["C", "W"]), *floats)


@rule
def position_at(tracks: Tracks, subscriber: int, segment: int, time_s: float) -> tuple[float, float]:
    """Where a subscriber is at a time on a segment of its track; never off that segment."""
    x0, y0 = tracks.x_m[segment], tracks.y_m[segment]
    after = segment + 1
    if after == tracks.start[subscriber + 1] or tracks.time_s[after] <= tracks.time_s[segment]:
        return x0, y0
    x1, y1 = tracks.x_m[after], tracks.y_m[after]
    begin = tracks.time_s[segment]
    fraction = min(max((time_s - begin) / (tracks.time_s[after] - begin), 0.0), 1.0)
    x = min(max(x0 + (x1 - x0) * fraction, min(x0, x1)), max(x0, x1))
    y = min(max(y0 + (y1 - y0) * fraction, min(y0, y1)), max(y0, y1))
    return x, y


@rule
def is_leg(tracks: Tracks, subscriber: int, segment: int) -> bool:
    """Whether a segment leads somewhere else; otherwise it is a pause, or the subscriber is nowhere."""
    after = segment + 1
    if after == tracks.start[subscriber + 1]:
        return False
    dx, dy = tracks.x_m[after] - tracks.x_m[segment], tracks.y_m[after] - tracks.y_m[segment]
    return bool(abs(dx) + abs(dy) > 0.0)


def random_waypoint(
    grid: Grid,
    count: int,
    duration_s: float,
    speed: Range,
    pause: Range,
    start: Start = "cold",
    *,
    seed: np.random.SeedSequence,
) -> Tracks:
    """Walks of `count` subscribers, each up to its first turning point at or after `duration_s`.

    A leg leads to a uniform point of the field at a speed uniform in (lo, hi] m/s; a pause uniform in
    [lo, hi) s follows. `start="cold"`: a uniform point, moving first. `start="steady"`: from the long run.
    """
    _check(speed, pause, start)
    legs = duration_s / _mean_cycle_s(grid, speed, pause)
    if 2 * legs * count > _MOST_POINTS:
        raise BadInput(f"{count} subscribers with {legs:.3g} legs each: at most {_MOST_POINTS // 2} in all can be kept")
    block = int(min(1.25 * legs + 16, _LARGEST_BLOCK))  # enough for nearly every walk, and it changes none
    walks = [_walk(grid, duration_s, speed, pause, start, block, stream_of(seed, number)) for number in range(count)]
    begin = np.zeros(count + 1, np.int64)
    np.cumsum([walk.shape[1] for walk in walks], out=begin[1:])
    points = np.concatenate(walks, axis=1) if walks else np.empty((3, 0))
    return Tracks(begin, points[0], points[1], points[2])


def mean_distance(width_m: float, height_m: float) -> float:
    """The mean distance between two uniform points of a rectangle (B. Ghosh, 1951)."""
    a, b = width_m, height_m
    d = math.hypot(a, b)
    cubes = a**3 / b**2 + b**3 / a**2 + d * (3 - a**2 / b**2 - b**2 / a**2)
    logs = b**2 / a * math.log((a + d) / b) + a**2 / b * math.log((b + d) / a)
    # The cubes nearly cancel in a very long and narrow field; these bounds hold in any.
    return min(max((cubes + 2.5 * logs) / 15, max(a, b) / 3), (a + b) / 3)


def share_of_time_pausing(grid: Grid, speed: Range, pause: Range) -> float:
    """The long-run share of time that a random waypoint walker spends in pauses."""
    lowest, highest = speed
    slowness = 1 / lowest if lowest == highest else math.log(highest / lowest) / (highest - lowest)
    moving = mean_distance(grid.width_m, grid.height_m) * slowness
    pausing = (pause[0] + pause[1]) / 2
    return pausing / (pausing + moving)


def _check(speed: Range, pause: Range, start: str) -> None:
    """Refuse a random waypoint that cannot be walked."""
    if not (0 <= speed[0] <= speed[1] < math.inf and speed[1] > 0):
        raise BadInput(f"speed {speed[0]} to {speed[1]} m/s: need 0 <= lowest <= highest and highest > 0")
    if not 0 <= pause[0] <= pause[1] < math.inf:
        raise BadInput(f"pause {pause[0]} to {pause[1]} s: need 0 <= shortest <= longest")
    if start not in ("cold", "steady"):
        raise BadInput(f'start "{start}": one of "cold", "steady"')
    if start == "steady" and speed[0] == 0:
        raise BadInput(
            "a random waypoint with speeds down to 0 has no steady state (it slows down for ever): "
            'give a lowest speed above 0, or start "cold"'
        )


def stream_of(seed: np.random.SeedSequence, subscriber: int) -> np.random.Generator:
    """The subscriber's own random stream; `seed` itself is left as it was."""
    own = np.random.SeedSequence(
        entropy=seed.entropy, spawn_key=(*seed.spawn_key, subscriber), pool_size=seed.pool_size
    )
    return np.random.Generator(np.random.PCG64(own))


def _mean_cycle_s(grid: Grid, speed: Range, pause: Range) -> float:
    """About how long a leg and its pause last."""
    mean_speed = (speed[0] + speed[1]) / 2
    return mean_distance(grid.width_m, grid.height_m) / mean_speed + (pause[0] + pause[1]) / 2


def _walk(
    grid: Grid,
    duration_s: float,
    speed: Range,
    pause: Range,
    start: Start,
    block: int,
    rng: np.random.Generator,
) -> Floats:
    """The turning points of one subscriber as rows time, x, y."""
    begin = _cold_start(grid, rng) if start == "cold" else _steady_start(grid, speed, pause, rng)
    parts = [begin]
    limits = (float(grid.width_m), float(grid.height_m), float(duration_s))
    ranges = (float(speed[0]), float(speed[1]), float(pause[0]), float(pause[1]))
    while parts[-1][0, -1] < duration_s:
        draws = rng.random((block, _DRAWS_PER_LEG))
        parts.append(_continue_walk(parts[-1][:, -1].copy(), draws, limits, ranges))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _cold_start(grid: Grid, rng: np.random.Generator) -> Floats:
    """A uniform point, about to move."""
    x, y = rng.random(2)
    return np.array([[0.0], [x * grid.width_m], [y * grid.height_m]])


def _steady_start(grid: Grid, speed: Range, pause: Range, rng: np.random.Generator) -> Floats:
    """The rest of a pause or of a leg, as somebody finds it who looks at a walk that has gone on for ever."""
    if rng.random() < share_of_time_pausing(grid, speed, pause):
        return _rest_of_pause(grid, pause, rng)
    return _rest_of_leg(grid, speed, pause, rng)


def _rest_of_pause(grid: Grid, pause: Range, rng: np.random.Generator) -> Floats:
    """At a uniform point for the rest of a pause: long pauses are met more often, at any moment of them."""
    x, y, length, rest = rng.random(4)
    met_s = math.sqrt(pause[0] ** 2 + length * (pause[1] ** 2 - pause[0] ** 2))
    here = (x * grid.width_m, y * grid.height_m)
    return np.array([[0.0, rest * met_s], [here[0]] * 2, [here[1]] * 2])


def _rest_of_leg(grid: Grid, speed: Range, pause: Range, rng: np.random.Generator) -> Floats:
    """Somewhere on a leg, then the pause that follows it: long legs are met more often, and slow ones."""
    longest = math.hypot(grid.width_m, grid.height_m)
    while True:
        x0, x1, y0, y1, chance = rng.random(5)
        x0, x1, y0, y1 = x0 * grid.width_m, x1 * grid.width_m, y0 * grid.height_m, y1 * grid.height_m
        length = math.hypot(x1 - x0, y1 - y0)
        if chance * longest < length:
            break
    walked, slow, rest = rng.random(3)
    speed_mps = speed[0] * (speed[1] / speed[0]) ** slow
    here = (x0 + (x1 - x0) * walked, y0 + (y1 - y0) * walked)
    arrival_s = (1 - walked) * length / speed_mps
    pause_s = pause[0] + (pause[1] - pause[0]) * rest
    points = np.array([[0.0, arrival_s, arrival_s + pause_s], [here[0], x1, x1], [here[1], y1, y1]])
    return points if pause_s > 0 else points[:, :2]


@kernel
def _continue_walk(
    last: Floats, draws: Floats, limits: tuple[float, float, float], ranges: tuple[float, float, float, float]
) -> Floats:
    """The turning points after `last` (time, x, y), until time is up or the draws are used."""
    width_m, height_m, duration_s = limits
    slowest, fastest, shortest, longest = ranges
    time_s, x, y = last[0], last[1], last[2]
    points = np.empty((3, 2 * draws.shape[0]))
    count = 0
    for leg in range(draws.shape[0]):
        if time_s >= duration_s:
            break
        next_x, next_y = draws[leg, 0] * width_m, draws[leg, 1] * height_m
        # A draw is in [0, 1), so the speed is in (slowest, fastest]: never 0.
        speed_mps = fastest - (fastest - slowest) * draws[leg, 2]
        time_s += math.sqrt((next_x - x) * (next_x - x) + (next_y - y) * (next_y - y)) / speed_mps
        x, y = next_x, next_y
        count = _add_point(points, count, time_s, x, y)
        pause_s = shortest + (longest - shortest) * draws[leg, 3]
        if pause_s > 0 and time_s < duration_s:
            time_s += pause_s
            count = _add_point(points, count, time_s, x, y)
    return points[:, :count].copy()


@rule
def _add_point(points: Floats, count: int, time_s: float, x: float, y: float) -> int:
    """Write down the next turning point; how many there are now."""
    points[0, count] = time_s
    points[1, count] = x
    points[2, count] = y
    return count + 1
