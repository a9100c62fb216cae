"""Random waypoint: what a walk looks like, that it does not depend on others, and its statistics."""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.world.grid import Grid
from serai.world.mobility import Tracks, mean_distance, random_waypoint, share_of_time_pausing
from tests.world import slow

FIELD = Grid(200.0, 100.0, 15, 15)
SPEED, PAUSE = (1.0, 5.0), (0.0, 120.0)
MANY = 3000 if slow.COMPILED else 300


def walk(count: int, duration_s: float, start: str = "cold", **changes: object) -> Tracks:
    settings: dict[str, object] = {"speed": SPEED, "pause": PAUSE, "seed": np.random.SeedSequence(7)}
    return random_waypoint(FIELD, count, duration_s, start=start, **(settings | changes))  # type: ignore[arg-type]


class Segment(NamedTuple):
    subscriber: int
    begin_s: float
    seconds: float
    metres: float


def segments(tracks: Tracks) -> Iterator[Segment]:
    for subscriber in range(len(tracks.start) - 1):
        points = slow.points_of(tracks, subscriber)
        for (_, t0, x0, y0), (_, t1, x1, y1) in itertools.pairwise(points):
            yield Segment(subscriber, t0, t1 - t0, math.hypot(x1 - x0, y1 - y0))


def same_until(one: Tracks, other: Tracks, subscriber: int, time_s: float) -> bool:
    """Whether a subscriber moves in the same way in both until a time: its turning points up to and after it."""
    ours, theirs = ([point[1:] for point in slow.points_of(tracks, subscriber)] for tracks in (one, other))
    needed = 1 + sum(point[0] < time_s for point in ours)
    return ours[:needed] == theirs[:needed]


# ---- the shape of a walk


@given(
    seed=st.integers(0, 2**64),
    start=st.sampled_from(["cold", "steady"]),
    duration_s=st.sampled_from([0.0, 1.0, 700.0]),
    slowest=st.floats(0.1, 3.0),
    wider=st.floats(0.0, 5.0),
    shortest=st.floats(0.0, 30.0),
    longer=st.floats(0.0, 30.0),
)
def test_legs_and_pauses_are_within_their_ranges(
    seed: int, start: str, duration_s: float, slowest: float, wider: float, shortest: float, longer: float
) -> None:
    speed, pause = (slowest, slowest + wider), (shortest, shortest + longer)
    tracks = walk(3, duration_s, start, speed=speed, pause=pause, seed=np.random.SeedSequence(seed))
    assert ((tracks.x_m >= 0) & (tracks.x_m <= 200) & (tracks.y_m >= 0) & (tracks.y_m <= 100)).all()
    assert tracks.start[-1] == len(tracks.time_s)
    for subscriber in range(3):
        times = [point[1] for point in slow.points_of(tracks, subscriber)]
        assert times[0] == 0.0
        assert times[-1] >= duration_s
        assert len(times) <= 3 or times[-3] < duration_s  # it ends with the first point at or after the end
    for subscriber, begin_s, seconds, metres in segments(tracks):
        assert seconds >= 0
        if metres > 1e-6:
            assert speed[0] * (1 - 1e-6) <= metres / seconds <= speed[1] * (1 + 1e-6)
        elif start == "cold" or begin_s > 0:
            assert pause[0] - 1e-6 <= seconds <= pause[1] + 1e-6
        else:
            assert seconds <= pause[1] + 1e-6
        assert subscriber < 3


def test_a_cold_walk_moves_first_and_a_leg_is_followed_by_a_pause() -> None:
    legs = [segment.metres > 0 for segment in segments(walk(1, 5000.0))]
    assert legs == [number % 2 == 0 for number in range(len(legs))]


def test_without_pauses_there_is_no_point_twice() -> None:
    for start in ("cold", "steady"):
        assert all(segment.metres > 0 for segment in segments(walk(5, 2000.0, start, pause=(0.0, 0.0))))


def test_one_speed_for_all() -> None:
    for start in ("cold", "steady"):
        found = list(segments(walk(3, 2000.0, start, speed=(2.0, 2.0))))
        assert all(s.metres / s.seconds == pytest.approx(2.0) for s in found if s.metres > 0)


def test_nobody_walks() -> None:
    tracks = walk(0, 100.0)
    assert [len(column) for column in tracks] == [1, 0, 0, 0]


def test_the_first_walk_of_seed_7_stays_as_it_is() -> None:
    """The movement of every published run: other numbers need a line in the changelog."""
    tracks = walk(1, 100.0)
    assert tracks.time_s.tolist() == pytest.approx(
        [0.0, 43.90243500642892, 64.20176556691206, 85.54893953497115, 122.66585462813265], rel=1e-12
    )
    assert tracks.x_m[:2].tolist() == pytest.approx([159.57183736867125, 118.27022348597933], rel=1e-12)
    assert tracks.y_m[:2].tolist() == pytest.approx([5.309388325640407, 86.88251433502354], rel=1e-12)


# ---- independence


@given(st.integers(0, 2**64), st.sampled_from(["cold", "steady"]))
def test_more_subscribers_change_nobody(seed: int, start: str) -> None:
    few = walk(2, 300.0, start, seed=np.random.SeedSequence(seed))
    many = walk(5, 300.0, start, seed=np.random.SeedSequence(seed))
    for subscriber in range(2):
        assert slow.points_of(few, subscriber) == slow.points_of(many, subscriber)


@given(st.integers(0, 2**64), st.sampled_from(["cold", "steady"]))
def test_a_longer_run_changes_nothing_before(seed: int, start: str) -> None:
    short = walk(2, 300.0, start, seed=np.random.SeedSequence(seed))
    long = walk(2, 20_000.0, start, seed=np.random.SeedSequence(seed))
    assert all(same_until(short, long, subscriber, 300.0) for subscriber in range(2))


def test_a_walk_of_many_blocks_of_draws_is_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = walk(2, 5000.0)
    monkeypatch.setattr("serai.world.mobility._LARGEST_BLOCK", 3)
    assert all(map(np.array_equal, walk(2, 5000.0), expected))


def test_the_seed_is_left_as_it_was_and_its_children_differ() -> None:
    seed = np.random.SeedSequence(7)
    first, second = walk(1, 100.0, seed=seed), walk(1, 100.0, seed=seed)
    assert all(map(np.array_equal, first, second))
    assert seed.n_children_spawned == 0
    child = walk(1, 100.0, seed=np.random.SeedSequence(7, spawn_key=(3,)))
    assert child.x_m[0] != first.x_m[0]


# ---- statistics, with fixed seeds; bounds are five standard errors unless said otherwise


def within_errors(sample: np.ndarray, mean: float, errors: float = 5.0) -> bool:
    return bool(abs(np.mean(sample) - mean) < errors * np.std(sample) / math.sqrt(len(sample)))


def uniform(sample: np.ndarray, low: float, high: float) -> bool:
    """Kolmogorov-Smirnov at about one in a million."""
    ordered = np.sort((sample - low) / (high - low))
    ranks = np.arange(len(ordered) + 1) / len(ordered)
    distance = max(np.abs(ordered - ranks[:-1]).max(), np.abs(ordered - ranks[1:]).max())
    return bool(distance < 2.7 / math.sqrt(len(ordered)))


def test_waypoints_speeds_and_pauses_are_uniform() -> None:
    # The third leg and pause of every walk: long walks would hold fewer slow legs.
    tracks = walk(MANY, 5000.0)
    third = tracks.start[:-1] + 4
    speed = np.hypot(np.diff(tracks.x_m), np.diff(tracks.y_m))[third] / np.diff(tracks.time_s)[third]
    pause = np.diff(tracks.time_s)[third + 1]
    assert uniform(tracks.x_m[third + 1], 0, 200)
    assert uniform(tracks.y_m[third + 1], 0, 100)
    assert uniform(speed, 1, 5)
    assert uniform(pause, 0, 120)
    assert within_errors(speed, 3.0)


def test_cold_walks_start_anywhere() -> None:
    tracks = walk(MANY, 1.0)
    assert uniform(tracks.x_m[tracks.start[:-1]], 0, 200)
    assert uniform(tracks.y_m[tracks.start[:-1]], 0, 100)


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [
        (1.0, 1.0, 0.5214054331647207),  # (2 + sqrt 2 + 5 asinh 1) / 15
        (200.0, 200.0, 104.28108663294414),
        (1.0, 1e-9, 1 / 3),
        (1e-9, 1.0, 1 / 3),
        (1e12, 1.0, 1e12 / 3),
    ],
)
def test_mean_distance(width: float, height: float, expected: float) -> None:
    assert mean_distance(width, height) == pytest.approx(expected, rel=1e-6)


def test_mean_distance_of_a_sample() -> None:
    points = np.random.default_rng(1).random((4, 100_000)) * np.array([[200], [200], [100], [100]])
    assert within_errors(np.hypot(points[0] - points[1], points[2] - points[3]), mean_distance(200, 100))


def test_steady_state_share_of_time_pausing() -> None:
    # 60 s of pause to 80.5 m at a mean of ln 5 / 4 seconds per metre.
    share = share_of_time_pausing(FIELD, SPEED, PAUSE)
    assert share == pytest.approx(60 / (60 + mean_distance(200, 100) * math.log(5) / 4))
    tracks = walk(MANY, 1.0, "steady")
    first = tracks.start[:-1]
    pausing = (tracks.x_m[first] == tracks.x_m[first + 1]) & (tracks.y_m[first] == tracks.y_m[first + 1])
    assert within_errors(pausing, share)


def test_steady_state_speed_is_reciprocal() -> None:
    # Density 1 / (v ln 5) on (1, 5): log v is uniform, the mean is 4 / ln 5 = 2.485, not 3.
    tracks = walk(MANY, 1.0, "steady", pause=(0.0, 0.0))
    first = tracks.start[:-1]
    metres = np.hypot(tracks.x_m[first + 1] - tracks.x_m[first], tracks.y_m[first + 1] - tracks.y_m[first])
    speed = metres / tracks.time_s[first + 1]
    assert uniform(np.log(speed), 0, math.log(5))
    assert within_errors(speed, 4 / math.log(5))


def test_steady_state_rest_of_a_pause() -> None:
    # Pauses of 100 to 200 s: the rest of one that is met has mean E[T^2] / 2 E[T] = 77.8 s.
    tracks = walk(MANY, 1.0, "steady", pause=(100.0, 200.0), speed=(50.0, 50.0))
    first = tracks.start[:-1]
    pausing = (tracks.x_m[first] == tracks.x_m[first + 1]) & (tracks.y_m[first] == tracks.y_m[first + 1])
    assert within_errors(tracks.time_s[first + 1][pausing], (100**2 + 100 * 200 + 200**2) / 3 / 300)


def state_at(tracks: Tracks, time_s: float) -> np.ndarray:
    """Rows moving, x, y of every subscriber at a time."""
    found = [slow.where(tracks, subscriber, time_s)[1:] for subscriber in range(len(tracks.start) - 1)]
    return np.array(found, np.float64).T


def test_the_steady_state_is_steady() -> None:
    """Now and much later a steady walker moves as often, and is as near to the middle of the field."""
    tracks = walk(MANY, 1500.0, "steady")
    now, later = state_at(tracks, 0.0), state_at(tracks, 1500.0)
    for early, late in ((now[0], later[0]), (abs(now[1] - 100), abs(later[1] - 100)), (now[2], later[2])):
        error = math.sqrt((np.var(early) + np.var(late)) / MANY)
        assert abs(np.mean(early) - np.mean(late)) < 5 * error


def test_a_cold_start_becomes_steady() -> None:
    tracks = walk(MANY, 3000.0)
    moving, x, _ = state_at(tracks, 3000.0)
    assert state_at(tracks, 0.0)[0].all()
    assert within_errors(moving, 1 - share_of_time_pausing(FIELD, SPEED, PAUSE))
    assert np.mean(abs(x - 100)) < 46  # a uniform point would be 50 m away from the middle


# ---- what cannot be walked


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"speed": (5.0, 1.0)}, "speed 5.0 to 1.0 m/s: need 0 <= lowest <= highest"),
        ({"speed": (0.0, 0.0)}, "highest > 0"),
        ({"speed": (-1.0, 1.0)}, "speed -1.0 to 1.0"),
        ({"speed": (1.0, math.inf)}, "speed 1.0 to inf"),
        ({"speed": (math.nan, 1.0)}, "speed nan"),
        ({"pause": (3.0, 1.0)}, "pause 3.0 to 1.0 s"),
        ({"pause": (-1.0, 1.0)}, "pause -1.0 to 1.0 s"),
        ({"start": "warm"}, 'start "warm": one of "cold", "steady"'),
        ({"start": "steady", "speed": (0.0, 5.0)}, "no steady state"),
        ({"speed": (1e12, 1e12), "pause": (0.0, 0.0)}, "legs each: at most 500000000 in all"),
    ],
)
def test_what_cannot_be_walked_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput) as error:
        walk(2, 3600.0, **changes)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_a_lowest_speed_of_zero_is_fine_from_a_cold_start() -> None:
    tracks = walk(20, 3600.0, speed=(0.0, 5.0))
    assert np.isfinite(tracks.time_s).all()
