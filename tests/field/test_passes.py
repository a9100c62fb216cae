"""Reach in metres: who passes whom and when, from second to second and to the exact time."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from serai.field.contacts import contacts_with_communities, exact_contacts, sensor_contacts
from serai.field.passes import Ranges
from serai.field.world import World, who_hears_whom
from serai.world.grid import Grid
from tests.conftest import UNCOMPILED
from tests.field.naive import play
from tests.field.naive.parts import Records
from tests.field.test_twins import assert_same
from tests.field.worlds import ANYTHING, Happening, Walk, build_scenario, build_world, product_records
from tests.world import slow
from tests.world.worlds import worlds

SLOTS = 20
OPEN = Grid(100.0, 100.0, 1, 1)


def rows_of(found: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in found), strict=True))


def one_walker(walk: Walk, sensors: list[tuple[float, float]], ranges: Ranges) -> World:
    return build_world(OPEN, SLOTS, sensors, [walk], [], [ANYTHING], ranges=ranges)


def alike(range_m: float, sensors: int) -> Ranges:
    return Ranges(np.full(sensors, range_m), range_m)


# ---- by hand


def test_a_walker_passes_two_sensors() -> None:
    """At 2 m/s along y = 0; sensors at x = 10 (5 m away at most from 5 to 15) and at x = 20, 3 m beside the way."""
    walk = [(0.0, 0.0, 0.0), (10.0, 20.0, 0.0)]
    world = one_walker(walk, [(10.0, 0.0), (20.0, 3.0)], alike(5.0, 2))
    assert rows_of(world.passes[1:4]) == [(0, 3, 7), (1, 8, SLOTS - 1)]
    assert world.passes.most == 1
    #       slot, who, cell, segment, leg, moving, came, went
    assert rows_of(world.visits) == [
        (3, 0, -1, 0, 0, 1, 1, 0),
        (8, 0, -1, 0, 0, 1, 1, 1),
        (10, 0, -1, 1, 1, 0, 0, 0),
    ]
    assert rows_of(exact_contacts(world, 20.0)) == [(0, 0, 2.5, 7.5), (0, 1, 8.0, 20.0)]
    assert rows_of(exact_contacts(world, 20.0, silent_while_pausing=True)) == [(0, 0, 2.5, 7.5), (0, 1, 8.0, 10.0)]


def test_at_the_very_end_of_the_range_they_still_hear_each_other() -> None:
    world = one_walker([(0.0, 3.0, 4.0)], [(0.0, 0.0), (3.0, 9.0), (3.0, 9.0000001)], alike(5.0, 3))
    assert world.passes.sensor.tolist() == [0, 1]
    assert world.communities.of_sensor.tolist() == [0, 1, 1]


def test_a_link_needs_both_ends() -> None:
    """Sensors 10 m apart, of which one hears 20 m and the other 9; a subscriber that hears 12 m between them."""
    ranges = Ranges(np.array([20.0, 9.0, 20.0]), 12.0)
    world = one_walker([(0.0, 0.0, 11.0)], [(0.0, 0.0), (10.0, 0.0), (0.0, 15.0)], ranges)
    assert world.communities.of_sensor.tolist() == [0, 1, 0]
    assert world.passes.sensor.tolist() == [0, 2]  # 11 m away; not the one with 9 m, nor for its own 20 m


def test_who_is_far_from_all_sensors_makes_no_visits() -> None:
    walk = [(0.0, 0.0, 0.0), (5.0, 10.0, 0.0), (6.0, 10.0, 0.0), (10.0, 90.0, 90.0)]
    world = one_walker(walk, [(50.0, 0.0)], alike(5.0, 1))
    assert rows_of(world.visits) == []


def test_without_sensors_or_subscribers() -> None:
    nobody = np.empty(0)
    walks = slow.tracks_from([[(0.0, 1.0, 1.0)]])
    found = who_hears_whom(OPEN, (nobody, nobody), alike(5.0, 0), walks, 5)
    assert len(found["passes"].sensor) == len(found["visits"].slot) == 0
    found = who_hears_whom(OPEN, (np.ones(1), np.ones(1)), alike(5.0, 1), slow.tracks_from([]), 5)
    assert found["passes"].start.tolist() == [0]


# ---- as the obvious versions find them


@given(worlds(SLOTS))
def test_passes_and_visits(world: World) -> None:
    assume(world.ranges is not None)
    passes = world.passes
    found = [(p, s, first, last + 1) for p, s, first, last in rows_of((passes.subscriber, *passes[1:4]))]
    assert sorted(found) == sorted(slow.contacts(world, SLOTS, silent=False))
    assert found == sorted(found, key=lambda row: (row[0], row[2], row[1]))
    by_slot = [slow.heard(world, slot, silent=False) for slot in range(SLOTS)]
    counts = [sum(p == who for p, _ in heard) for heard in by_slot for who in range(len(world.low))]
    assert passes.most == max(counts, default=0)
    expected, before, leg_of = [], set[tuple[int, int]](), {}
    for slot, heard in enumerate(by_slot):
        for who in range(len(world.low)):
            then, now = ({s for p, s in pairs if p == who} for pairs in (before, heard))
            segment, moving, _, _ = slow.where(world.tracks, who, slot)
            if now != then or (now and leg_of.get(who) != segment):
                expected.append(
                    (slot, who, -1, segment, segment, int(moving), int(bool(now - then)), int(bool(then - now)))
                )
                leg_of[who] = segment
        before = heard
    assert rows_of(world.visits) == expected


@given(worlds(SLOTS), st.booleans(), st.sampled_from([1, 7, SLOTS]))
def test_contacts_from_second_to_second(world: World, silent: bool, slots: int) -> None:
    expected = slow.contacts(world, slots, silent)
    assert rows_of(sensor_contacts(world, slots, silent_while_pausing=silent)) == expected
    group = world.communities.of_sensor.tolist()
    in_reach = {(p, group[s], t) for p, s, begin, end in expected for t in range(begin, end)}
    found = rows_of(contacts_with_communities(world, slots, silent))
    told = [(p, c, t) for p, c, begin, end in found for t in range(begin, end)]
    assert set(told) == in_reach
    assert len(told) == len(in_reach)
    assert not {(p, c, end) for p, c, _, end in found} & in_reach  # each lasts until it really ends
    assert found == sorted(found, key=lambda row: (row[2], row[0], row[1]))


@settings(max_examples=20)
@given(worlds(SLOTS))
def test_exact_contacts_at_steps_of_a_millisecond(world: World) -> None:
    assume(world.ranges is not None)
    found = rows_of(exact_contacts(world, float(SLOTS)))
    step_s = 0.1 if UNCOMPILED else 0.001
    times = np.arange(0.0, SLOTS, step_s)
    for who in range(len(world.low)):
        first, end = world.tracks.start[who : who + 2]
        at = [np.interp(times, world.tracks.time_s[first:end], axis[first:end]) for axis in world.tracks[2:]]
        still = np.ones(len(times), bool)  # times at which a jump leaves the place open
        for jump in np.flatnonzero(np.diff(world.tracks.time_s[first:end]) == 0):
            still &= np.abs(times - world.tracks.time_s[first:end][jump]) > 2 * step_s
        for sensor in range(len(world.sensor_x)):
            away = np.hypot(at[0] - world.sensor_x[sensor], at[1] - world.sensor_y[sensor])
            reach = world.ranges.passing_m[sensor]
            inside = np.zeros(len(times), bool)
            for p, s, start_s, end_s in found:
                if (p, s) == (who, sensor):
                    inside |= (times >= start_s) & (times < end_s)
            # A contact of no length is none; at its ends rounding may decide.
            sure = still & (np.abs(away - reach) > 1e-3)
            assert (inside == (away <= reach))[sure].all()


# ---- how many communities there can be around a point


@given(st.integers(0, 2**32), st.floats(1.0, 30.0))
def test_at_most_five_communities_are_in_range_of_a_point_if_ranges_are_alike(seed: int, range_m: float) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, 100, (2, 40))
    group = who_hears_whom(OPEN, (x, y), alike(range_m, 40), slow.tracks_from([]), 1)["communities"].of_sensor
    for at_x, at_y in rng.uniform(0, 100, (50, 2)):
        near = np.hypot(x - at_x, y - at_y) <= range_m
        assert len(set(group[near].tolist())) <= 5


@pytest.mark.parametrize("protocol", ["dg", "ced", "cet"])
def test_where_ranges_differ_there_can_be_more(protocol: str) -> None:
    """Sensors in a row, each with a range that just reaches back to where the subscriber comes by."""
    places = [(2.1**n, 0.0) for n in range(7)]
    ranges = Ranges(np.array([x + 0.01 for x, _ in places]), 100.0)
    walk = [(0.0, 0.0, 90.0), (10.0, 0.0, 0.0), (15.0, 0.0, 0.0), (20.0, 0.0, 90.0)]
    events = [Happening(n % 7, float(n % 13)) for n in range(60)]
    world = build_world(OPEN, 30, places, [walk, walk], events, ranges=ranges)
    assert len(world.communities.size) == 7
    assert world.passes.most == 7
    scenario = build_scenario(world, 30, {"name": protocol}, radio={"rate": 100})
    records = product_records(world, scenario, 5)
    assert_same(records, play(world, scenario, 5))
    assert {row.sender for row in records.transfers} >= set(range(7))


# ---- a world given by cells, and the same in metres


def checkerboard(ranges: Ranges | None) -> World:
    """A sensor in the middle of every cell of 6 x 5; subscribers jump from middle to middle once a second.

    Middles of cells that touch are at most 14.2 m apart, the others at least 20 m: whoever hears 15 m hears just those.
    They keep away from the edges: so with every new cell some sensors come within reach, and others are left.
    """
    grid = Grid(60.0, 50.0, 6, 5)
    places = [(10 * column + 5.0, 10 * row + 5.0) for row in range(5) for column in range(6)]
    walks: list[Walk] = [
        [(0.0, 15.0, 25.0), (3.0, 45.0, 25.0), (8.0, 45.0, 25.0), (9.0, 45.0, 35.0), (12.0, 15.0, 35.0)],
        [(0.0, 15.0, 15.0), (2.0, 35.0, 35.0), (9.0, 35.0, 35.0), (11.0, 15.0, 15.0)],
    ]
    rng = np.random.default_rng(3)
    events = [Happening(int(rng.integers(30)), float(rng.uniform(0, 25))) for _ in range(200)]
    return build_world(grid, 40, places, walks, events, ranges=ranges)


def same_broadcasts(records: Records, other: Records) -> Records:
    """The records, with the energy of control messages that the other ones have."""
    assert records.watched is not None
    assert other.watched is not None
    watched = replace(records.watched, spent=other.watched.spent)
    steady_pj = [[ours[0], theirs[1]] for ours, theirs in zip(records.steady_pj, other.steady_pj, strict=True)]
    return replace(records, control_pj=other.control_pj, steady_pj=steady_pj, watched=watched)


@pytest.mark.parametrize("zone", ["path", "announced", "pruned", "in-range"])
@pytest.mark.parametrize("protocol", ["ced", "cet"])
def test_a_world_of_cells_and_the_same_in_metres_give_the_same(protocol: str, zone: str) -> None:
    """But for the energy of broadcasts, which cross two diagonals of cells, or the range: 15 m against 28.3 m."""
    settings = {"name": protocol, "zone": zone, "gamma": 100} if protocol == "cet" else {"name": protocol, "zone": zone}
    by_cells, in_metres = (
        product_records(world, build_scenario(world, 40, settings, radio={"rate": 3}), 7)
        for world in (checkerboard(None), checkerboard(alike(15.0, 30)))
    )
    assert_same(same_broadcasts(in_metres, by_cells), by_cells)
    assert len(by_cells.transfers) > 200


def test_dg_in_a_world_of_cells_and_in_the_same_in_metres() -> None:
    by_cells, in_metres = (
        product_records(world, build_scenario(world, 40, {"name": "dg"}), 7)
        for world in (checkerboard(None), checkerboard(alike(15.0, 30)))
    )
    assert_same(same_broadcasts(in_metres, by_cells), by_cells)
    assert math.dist((0, 0), (10, 10)) < 15 < 20
