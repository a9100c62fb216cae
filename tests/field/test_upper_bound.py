"""What contacts alone would allow."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.field.upper_bound import UpperBound, upper_bounds
from serai.field.world import People, World, who_hears_whom
from serai.world.grid import Grid, place_uniform
from serai.world.mobility import random_waypoint
from tests.world import slow
from tests.world.worlds import worlds

SLOTS = 30
GRID = Grid(100.0, 10.0, 10, 1)


def world_of(sensors: list[float], walks: list[list[tuple[float, float]]], events: list[tuple[int, float]]) -> World:
    """A corridor of ten cells; everybody wants everything. Walks are (time, x), events (sensor, birth)."""
    x = np.array(sensors)
    y = np.full(len(x), 5.0)
    tracks = slow.tracks_from([[(time_s, place, 5.0) for time_s, place in walk] for walk in walks])
    return World(
        grid=GRID,
        sensor_names=("",) * len(x),
        sensor_x=x,
        sensor_y=y,
        battery_j=np.full(len(x), 10.0),
        tracks=tracks,
        event_sensor=np.array([sensor for sensor, _ in events], np.int32),
        event_time_s=np.array([born_s for _, born_s in events]),
        event_values=np.zeros((len(events), 1)),
        attribute_names=("A",),
        low=np.full((len(walks), 1), -np.inf),
        high=np.full((len(walks), 1), np.inf),
        where=("",) * len(walks),
        people=People.alike(len(walks)),
        **who_hears_whom(GRID, (x, y), None, tracks, SLOTS),
    )


def test_a_walker_meets_first_the_community_and_then_the_source() -> None:
    # Sensors in cells 3 and 4 are a community; the walker goes at 1.5 m/s.
    world = world_of([35.0, 45.0], [[(0.0, 0.0), (60.0, 90.0)]], [(1, 0.5)])
    found = upper_bounds(world, 100.0, SLOTS)
    assert found["community"] == UpperBound(1.0, 14 - 0.5)  # x = 21 at 14 s: cell 2 touches cell 3
    assert found["direct"] == UpperBound(1.0, 20 - 0.5)  # x = 30 at 20 s: cell 3 touches cell 4
    assert found["epidemic"] == found["community"]


def test_too_old_is_not_possible() -> None:
    world = world_of([35.0, 45.0], [[(0.0, 0.0), (60.0, 90.0)]], [(1, 0.5)])
    found = upper_bounds(world, 13.5, SLOTS)
    assert found["community"] == UpperBound(1.0, 13.5)
    assert found["direct"].ratio == 0.0
    assert math.isnan(found["direct"].mean_delay_s)


def test_a_ferry_carries_what_the_reader_never_meets() -> None:
    # The ferry stands at the source until 10 s, then goes to the other end, where the reader stands.
    ferry, reader = [(0.0, 5.0), (10.0, 5.0), (20.0, 95.0)], [(0.0, 95.0)]
    world = world_of([5.0, 95.0], [ferry, reader], [(0, 3.0)])
    found = upper_bounds(world, 100.0, SLOTS)
    assert found["direct"].ratio == found["community"].ratio == 0.5
    assert found["epidemic"].ratio == 1.0
    # x = 86 at 19 s is in cell 8, which touches cell 9. The ferry had it at once.
    assert found["epidemic"].mean_delay_s == (0 + 16) / 2


def test_two_subscribers_exchange_through_a_community_within_a_slot() -> None:
    ferry, reader = [(0.0, 5.0), (10.0, 5.0), (11.0, 50.0)], [(0.0, 50.0)]
    world = world_of([5.0, 45.0], [ferry, reader], [(0, 0.0)])
    assert upper_bounds(world, 100.0, SLOTS)["epidemic"] == UpperBound(1.0, 11 / 2)


def test_silent_while_pausing() -> None:
    world = world_of([5.0], [[(0.0, 5.0), (10.0, 5.0), (20.0, 95.0)]], [(0, 2.0)])
    assert upper_bounds(world, 100.0, SLOTS)["direct"] == UpperBound(1.0, 0.0)
    assert upper_bounds(world, 100.0, SLOTS, silent_while_pausing=True)["direct"] == UpperBound(1.0, 8.0)


def test_what_is_born_in_the_last_second_is_too_late() -> None:
    world = world_of([5.0], [[(0.0, 5.0)]], [(0, SLOTS - 1.0), (0, SLOTS - 0.5)])
    assert upper_bounds(world, 100.0, SLOTS)["epidemic"] == UpperBound(0.5, 0.0)


@pytest.mark.parametrize("walks", [[], [[(0.0, 5.0)]]])
def test_nothing_wanted_is_nan(walks: list[list[tuple[float, float]]]) -> None:
    events = [(0, 1.0)] if not walks else []
    for bound in upper_bounds(world_of([5.0], walks, events), 100.0, SLOTS).values():
        assert math.isnan(bound.ratio)
        assert math.isnan(bound.mean_delay_s)


@given(world=worlds(SLOTS), slots=st.sampled_from([1, SLOTS // 2, SLOTS]), silent=st.booleans(), data=st.data())
def test_the_same_as_the_obvious_version(world: World, slots: int, silent: bool, data: st.DataObject) -> None:
    lifetime_s = data.draw(st.sampled_from([0.0, 1.0, 5.5, 1000.0]))
    expected = slow.arrivals(world, slots, silent)
    for name, found in upper_bounds(world, lifetime_s, slots, silent).items():
        assert found == pytest.approx(slow.upper_bound(world, expected[name], lifetime_s), rel=0, abs=0, nan_ok=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_crowd_on_the_move_for_long(seed: int) -> None:
    """Many contacts at a time: connections form, grow, split, and their rows are used again and again."""
    rng, slots = np.random.default_rng(seed), 120 if slow.COMPILED else 40
    grid = Grid(80.0, 80.0, 8, 8)
    x, y = place_uniform(grid, 12, rng)
    tracks = random_waypoint(grid, 7, slots, (2.0, 12.0), (0.0, 5.0), seed=np.random.SeedSequence(seed))
    born = np.sort(rng.integers(0, 8 * slots, 40) / 8)
    world = World(
        grid=grid,
        sensor_names=("",) * 12,
        sensor_x=x,
        sensor_y=y,
        battery_j=np.full(len(x), 10.0),
        tracks=tracks,
        event_sensor=rng.integers(0, 12, 40).astype(np.int32),
        event_time_s=born,
        event_values=rng.random((40, 2)),
        attribute_names=("A1", "A2"),
        low=np.zeros((7, 2)),
        high=rng.uniform(0.3, 1.2, (7, 2)),
        where=("",) * 7,
        people=People.alike(7),
        **who_hears_whom(grid, (x, y), None, tracks, slots),
    )
    expected = slow.arrivals(world, slots, silent=True)
    for name, found in upper_bounds(world, 30.0, slots, silent_while_pausing=True).items():
        assert found == slow.upper_bound(world, expected[name], 30.0)


@given(world=worlds(SLOTS))
def test_each_bound_is_at_least_as_high_as_the_one_below(world: World) -> None:
    found = upper_bounds(world, 10.0, SLOTS)
    if not math.isnan(found["direct"].ratio):
        assert found["direct"].ratio <= found["community"].ratio <= found["epidemic"].ratio
