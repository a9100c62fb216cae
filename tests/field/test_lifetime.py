"""How long batteries last: what is extrapolated from a run, and what a simulation until the first death says."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.field.lifetime import lasting_s, steady_part
from serai.field.log import Naps
from serai.field.metrics import FieldMetrics, aggregate_full_log
from serai.field.world import Harvest
from serai.lab import load_scenario, measure, simulate
from tests.effort import THOROUGH
from tests.field.lifetimes import ratio_of_lifetimes
from tests.log import hand_made

J = 10**12  # in picojoules


@pytest.mark.parametrize(
    ("duration", "quiet", "lifetime", "expected"),
    [
        ("2 h", "200 s", "2000 s", (1000, 4000, 7000)),  # as in the papers
        ("2 h", "0 s", "2000 s", (1000, 4100, 7200)),
        ("1000 s", "200 s", "2000 s", (200, 500, 800)),  # a quarter of the time in which events are born
        ("100 s", "0 s", "1 s", (1, 50, 100)),  # half a second is the first
        ("10 s", "7 s", "60 s", (1, 2, 3)),
        ("10 s", "8.5 s", "60 s", None),  # too short for two halves
        ("10 s", "10 s", "60 s", None),
    ],
)
def test_the_steady_part_of_a_run(duration: str, quiet: str, lifetime: str, expected: tuple[int, ...] | None) -> None:
    events = {"quiet": quiet, "lifetime": lifetime, "attributes": {"A1": {"kind": "real", "low": 0.0, "high": 10.0}}}
    assert steady_part(hand_made.scenario(duration=duration, events=events)) == expected


# A minute by hand: its steady part is 15 s to 60 s, halved at 37 s.


def measured(
    first: list[int], second: list[int], control: tuple[list[int], list[int]] | None = None, **changes: object
):
    """The metrics of a run whose sensors spent so much in the halves of its steady part, and as much before."""
    world = hand_made.world([], [])
    blank = hand_made.ledger(world)
    halves, told = np.array([first, second]), np.zeros((2, 3), np.int64) if control is None else np.array(control)
    spent = {"event_pj": 2 * halves.sum(axis=0), "control_pj": 2 * told.sum(axis=0)}
    ledger = blank._replace(steady_event_pj=halves, steady_control_pj=told, **{**spent, **changes})
    return measure(hand_made.run(world, ledger))


def seconds(metrics: FieldMetrics) -> float:
    return metrics.lifetime_days * 86_400


def test_listening_shortens_what_is_extrapolated() -> None:
    """10 J at 30 mW last 333.3 s; at 20 mW beside the 2.25 J in 45 s (50 mW) of one sensor 142.9 s."""
    world = hand_made.world([], [])
    halves = np.array([[11 * J // 10, 0, 0], [115 * J // 100, 0, 0]])
    for idle_w, steady, expected in (([0.0, 0.0, 0.03], 0 * halves, 333.3), ([0.02] * 3, halves, 142.9)):
        idling = world._replace(idle_w=np.array(idle_w))
        ledger = hand_made.ledger(world)._replace(steady_event_pj=steady, idle_pj=60 * idling.idle_pj)
        metrics = measure(hand_made.run(idling, ledger))
        assert seconds(metrics) == pytest.approx(expected, rel=0.02)
        assert metrics.idle_energy_j == pytest.approx(60 * sum(idle_w))
        assert (metrics.alive_share, metrics.sensors_alive) == (1.0, 3)


# By the hour of the day.


def obvious_life_s(full_pj: float, by_hour: list[int], spent_pj: int, begin_s: int) -> float:
    """Minute by minute, for sixty days: when the battery is empty, to the minute."""
    left = full_pj
    for minute in range(60 * 1440):
        hour = (begin_s + 60 * minute) // 3600 % 24
        left = min(left + 60 * (by_hour[hour] - spent_pj), full_pj)
        if left <= 0:
            return 60.0 * minute
    return math.inf


a_day = st.tuples(st.integers(0, 12), st.integers(1, 12), st.integers(0, 30)).map(
    lambda sun: [sun[2] * (sun[0] <= hour < sun[0] + sun[1]) for hour in range(24)]
)


@given(
    a_day | st.lists(st.integers(0, 30), min_size=24, max_size=24),
    st.integers(1, 10_000_000),
    st.integers(0, 12),
    st.integers(0, 1439),
)
def test_a_battery_under_the_sun_lasts_as_long_as_minute_by_minute(
    by_hour: list[int], full_pj: int, spent_pj: int, begin: int
) -> None:
    sun = Harvest(np.array([by_hour]) / 1e12, 0.1, 60 * begin)
    world = hand_made.world([], [])._replace(battery_j=np.array([full_pj / 1e12]), harvest=sun)
    found, expected = (
        lasting_s(world, np.array([float(spent_pj)]))[0],
        obvious_life_s(full_pj, by_hour, spent_pj, 60 * begin),
    )
    if math.isinf(expected):
        assert found > 60 * 86_400 - 60
    else:
        assert found == pytest.approx(expected, abs=61)


def test_what_is_harvested_lengthens_what_is_extrapolated() -> None:
    """30 mW of listening beside 20 mW from six to eight, from a quarter to six on: 15 min at 30 mW leave 33 J of 60,
    two hours at 10 mW would take 72 J, so 55 minutes later the battery is empty. With 40 mW all day it never is."""
    world = hand_made.world([], [])._replace(battery_j=np.full(3, 60.0), idle_w=np.array([0.0, 0.0, 0.03]))
    for sun, expected in ((([0.0] * 6 + [0.02] * 2 + [0.0] * 16), 900 + 3300), ([0.04] * 24, math.inf)):
        there = world._replace(harvest=Harvest(np.array([sun] * 3), 0.1, 6 * 3600 - 900))
        blank = hand_made.ledger(there)
        naps = Naps(*np.zeros((3, 0), np.int32))
        ledger = blank._replace(
            idle_pj=60 * there.idle_pj, harvested_pj=there.idle_pj, wasted_pj=there.idle_pj, naps=naps
        )
        assert seconds(measure(hand_made.run(there, ledger))) == pytest.approx(expected)


def test_the_first_death_is_the_first_though_that_sensor_woke() -> None:
    world = hand_made.world([], [])
    sun = Harvest(np.zeros((3, 24)), 0.1, 0)
    naps = Naps(np.array([1], np.int32), np.array([20], np.int32), np.array([40], np.int32))
    ledger = hand_made.ledger(world)._replace(died=np.array([-1, -1, 50], np.int32), naps=naps)
    metrics = measure(hand_made.run(world._replace(harvest=sun), ledger))
    assert seconds(metrics) == 20
    assert (metrics.sensors_alive, metrics.wakings) == (2, 1)


def test_batteries_of_10_j_at_the_rate_of_the_steady_part() -> None:
    """2.25 J in its 45 s last 200 s, whatever was spent outside of it."""
    assert seconds(measured([11 * J // 10, 0, 0], [115 * J // 100, 0, 0])) == pytest.approx(200)


def test_who_is_busiest_by_chance_is_not_for_ever() -> None:
    """s0 and s1 take turns at 2 J and 1 J a half. From the whole, 3 J in 45 s, the busiest lasts 150 s, from the halves
    110 and 115 s; so the whole, too, makes it look busier than it is, by the same factor."""
    whole, halves = 10 / 3 * 45, (10 / 2 * 22, 10 / 2 * 23)
    assert seconds(measured([2 * J, J, 0], [J, 2 * J, 0])) == pytest.approx(whole**2 / math.sqrt(halves[0] * halves[1]))


def test_control_messages_have_a_steady_part_of_their_own() -> None:
    costly = measured([0, 22 * J // 10, 0], [0, 23 * J // 10, 0], ([0, 0, 44 * J // 10], [0, 0, 46 * J // 10]))
    assert seconds(costly) == pytest.approx(100)
    assert costly.lifetime_with_control_days * 86_400 == pytest.approx(50)


def test_the_dead_and_those_who_live_on() -> None:
    dead = measured([0, 22 * J // 10, 0], [0, 23 * J // 10, 0], died=np.array([-1, -1, 30], np.int32))
    assert seconds(dead) == 30
    assert dead.lifetime_events_only_days * 86_400 == pytest.approx(100)  # s2 spent nothing on events


@pytest.mark.parametrize(
    ("first", "second", "changes"),
    [
        ([0, 0, 0], [0, 0, 0], {"event_pj": np.array([2 * J, 0, 0])}),  # nothing in the steady part
        ([0, 0, 0], [0, 0, 0], {"event_pj": np.array([J, 0, 0]), "ended_s": 30.0}),  # which has not ended
    ],
)
def test_runs_without_a_steady_part_go_on_as_a_whole(first: list[int], second: list[int], changes: dict) -> None:
    assert measured(first, second, **changes).lifetime_events_only_days * 86_400 == pytest.approx(300)


def test_a_half_in_which_nobody_spends_corrects_nothing() -> None:
    assert seconds(measured([0, 0, 0], [J, 0, 0])) == pytest.approx(450)


@given(st.lists(st.tuples(st.integers(0, 10**13), st.integers(0, 10**13)), min_size=3, max_size=3))
def test_lifetime_is_that_of_the_obvious_version(spent: list[tuple[int, int]]) -> None:
    def last(amounts: list[int], time_s: int) -> float:
        lives = [10 * J * time_s / amount for amount in amounts if amount]
        return min(lives) if lives else math.inf

    early, late = ([pair[half] for pair in spent] for half in (0, 1))
    whole, ones, others = last([sum(pair) for pair in spent], 45), last(early, 22), last(late, 23)
    expected = whole if math.inf in (whole, ones, others) else whole * (whole / ones) ** 0.5 * (whole / others) ** 0.5
    found = seconds(measured(early, late))
    assert found == expected or found == pytest.approx(expected)


@pytest.mark.parametrize("protocol", ["dg", "ced", "cet"])
def test_what_was_spent_in_each_half_is_what_the_full_log_says(protocol: str) -> None:
    run = simulate(load_scenario("field", ["duration=10 min", "sensors.count=40"], protocol), seed=2, full_log=True)
    steady, again = steady_part(run.scenario), aggregate_full_log(run.full, run)
    assert steady == (100, 250, 400)
    assert again.steady_event_pj.tolist() == run.ledger.steady_event_pj.tolist()
    assert (again.steady_event_pj.sum(axis=1) > 0).all()
    assert (run.ledger.steady_event_pj.sum(axis=0) <= run.ledger.event_pj).all()


@pytest.mark.skipif(not THOROUGH, reason="some minutes of long runs: make test-all")
@pytest.mark.parametrize(("protocol", "seeds"), [("ced", 100), ("cet", 100), ("dg", 600)])
def test_what_is_extrapolated_is_within_a_hundredth_of_what_is_simulated(protocol: str, seeds: int) -> None:
    of_runs, of_means = ratio_of_lifetimes(protocol, range(40_000, 40_000 + seeds))
    for found in (of_runs, of_means):
        assert found.half_width() < 0.02
        assert abs(found.mean - 1) < 0.01 + found.half_width()
