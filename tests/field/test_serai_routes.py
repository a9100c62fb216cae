"""Routes, floods, walks and prices of SERAI's plain version, worked out by hand."""

import math

import pytest

from serai.world.grid import Grid
from tests.field.naive.parts import Point
from tests.field.naive.serai.legs import Leg, Place, Reach, in_reach, legs_of
from tests.field.naive.serai.manual import Dials, Manual
from tests.field.naive.serai.messages import Map, Prices, Subscription
from tests.field.naive.serai.routes import (
    HOP,
    Branch,
    ByWalker,
    Chart,
    Journey,
    Routes,
    branches,
    by_walker,
    flood,
    price_step,
    routes_to,
)
from tests.field.naive.serai.sensor import Sensor, links_of

REACH = Reach(Grid(200.0, 50.0, 20, 5))
HOP_S = 10.0


def middle(column: int, row: int = 0) -> Place:
    return column * 10 + 5.0, row * 10 + 5.0


def chart(*cells: tuple[int, int], steps: dict[int, int] | None = None) -> Chart:
    """Sensors 0, 1, .. in these cells, at these steps of the scale of prices."""
    return Chart(Map({i: middle(*cell) for i, cell in enumerate(cells)}), Prices(steps or {}), REACH)


def walk(start: tuple[float, int, int], arrival: tuple[float, int, int], ends_s: float = math.inf) -> Leg:
    """A leg from (time, column, row) to (time, column, row)."""
    return Leg(start[0], middle(*start[1:]), middle(*arrival[1:]), arrival[0], ends_s)


def standing(column: int, row: int = 0) -> Leg:
    return walk((0, column, row), (0, column, row))


LINE = chart((2, 0), (3, 0), (4, 0), (5, 0))


# --- Legs: one straight walk and the pause at its end ------------------------------------------------------


def test_a_track_in_legs() -> None:
    """A pause, a walk with a pause of two pieces, a jump with a pause, a walk."""
    track = [(0, 5), (4, 5), (10, 65), (12, 65), (15, 65), (15, 5), (20, 5), (30, 105)]
    legs = list(legs_of([Point(time_s, x, 5.0) for time_s, x in track]))
    assert legs == [
        Leg(0, (5, 5), (5, 5), 0, 4),
        Leg(4, (5, 5), (65, 5), 10, 15),
        Leg(15, (65, 5), (5, 5), 15, 20),
        Leg(20, (5, 5), (105, 5), 30, math.inf),
    ]


@pytest.mark.parametrize(
    ("leg", "seconds"),
    [
        (walk((0, 0, 0), (10, 10, 0), 30), (1, 3)),  # 10 m/s past column 2: cells 1 to 3, that is x from 10 to 40
        (walk((0, 0, 0), (10, 3, 0), 30.5), (2, 30)),  # 3 m/s; it pauses within reach until 30.5 s
        (walk((0, 0, 0), (10, 3, 0)), (2, math.inf)),
        (walk((0.5, 3, 0), (10.5, 13, 0), 30), None),  # x = 40 at 1 s is outside, 35 at 0.5 s was no whole second
        (walk((0, 3, 1), (1, 5, 1), 1), (0, 0)),
        (standing(4), None),
    ],
)
def test_first_and_last_second_in_reach(leg: Leg, seconds: tuple[float, float] | None) -> None:
    assert in_reach(leg, middle(2), REACH) == seconds


# --- Routes -------------------------------------------------------------------------------------------------


def test_hops_to_where_a_subscriber_stands() -> None:
    routes = routes_to(LINE, standing(1), 7, False, HOP_S)
    assert [routes.cost[member] for member in range(4)] == [0, HOP, 2 * HOP, 3 * HOP]
    assert routes.path(3) == [3, 2, 1, 0]


def test_links_cost_half_of_both_prices() -> None:
    routes = routes_to(chart((2, 0), (3, 0), (4, 0), steps={1: 2}), standing(1), 7, False, HOP_S)
    link = HOP / 2 + round(HOP / 2 * 1.35**2)
    assert [routes.cost[member] for member in range(3)] == [0, link, link + link]


def test_it_may_be_cheaper_to_wait_for_the_walk() -> None:
    """At 2 m/s the subscriber is in reach of columns 2, 3, 4, 5 from 0, 3, 8, 13 s on: 0, .3, .8, 1.3 hops."""
    leg = walk((0, 1, 0), (90, 19, 0))
    routes = routes_to(LINE, leg, 0, True, HOP_S)
    assert [routes.cost[member] for member in range(4)] == [0, 0.3 * HOP, 0.8 * HOP, 1.3 * HOP]
    assert routes.path(3) == [3]
    slow = walk((0, 1, 0), (360, 19, 0))  # 0.5 m/s: 0, 10, 30, 50 s
    routes = routes_to(LINE, slow, 0, True, HOP_S)
    assert [routes.cost[member] for member in range(4)] == [0, HOP, 2 * HOP, 3 * HOP]
    assert routes.path(1) == [1, 0]  # a tie: the lower root
    assert routes.path(2) == [2, 1, 0]


def test_who_was_passed_is_no_goal() -> None:
    """Column 2 is left with x = 40, at 4 s; in its last second it counts at the announcement only."""
    leg = walk((0, 0, 0), (20, 20 - 1, 0))
    assert in_reach(leg, middle(2), REACH) == (1, 3)
    assert 0 in routes_to(LINE, leg, 3, True, HOP_S).goals
    assert 0 not in routes_to(LINE, leg, 3, False, HOP_S).goals
    assert routes_to(LINE, leg, 10, False, HOP_S).cost[0] == math.inf


def test_of_equal_ways_the_lowest_neighbour() -> None:
    square = chart((2, 1), (3, 2), (3, 0), (4, 1))  # 0 and 3 are two hops apart, over 1 or 2
    assert Routes(square, {0: 0.0}).path(3) == [3, 1, 0]


# --- Prices -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("weight", "step"), [(1.0, 0), (1.16, 0), (1.17, 1), (21.0, 10), (90.0, 15), (1e9, 15)])
def test_prices_are_sent_on_a_logarithmic_scale(weight: float, step: int) -> None:
    assert price_step(weight) == step


@pytest.mark.parametrize(
    ("size", "known", "share", "step"),
    [
        (40, 10, 1.0, 10),  # w = 1 + 20
        (40, 10, 0.5, 1),  # w = 1 + 20 / 64 = 1.3125
        (40, 10, 2.0, 15),  # w = 1281: the end of the scale
        (20, 10, 0.5, 10),  # half as large: the battery is to last twice as long
        (40, 5, 0.5, 10),
        (80, 20, 4.0, 10),
        (40, 0, 0.1, 10),  # nothing known counts as one
    ],
)
def test_the_price_of_energy(size: int, known: int, share: float, step: int) -> None:
    """A share of the rate at which 10 J last 11 days: r = share x size and subscriptions' factors, w = 1 + 20 r^6."""
    sensor = Sensor(0, middle(0), 10.0, 200, Manual(Dials(), REACH, 20, 250, 2000.0))
    sensor.members = Map({i: middle(0) for i in range(size)})
    sensor.known = {p: Subscription(p, ()) for p in range(known)}
    now = 900
    assert sensor.price_step(now, share * 10 / (11 * 86_400) * (now + 300)) == step


# --- The walker alternative ---------------------------------------------------------------------------------

LONG_LINE = chart(*((column, 0) for column in range(2, 8)))


def journey(walker: Leg, now: int = 10, target: Leg | None = None) -> Journey:
    """From sensor 0 (column 2) to subscriber 0, with the help of subscriber 1."""
    legs = {0: target or standing(8), 1: walker}
    return Journey(0, 0, now, routes_to(LONG_LINE, legs[0], now, False, HOP_S), legs, HOP_S)


def test_a_walker_on_the_way() -> None:
    """10 m/s from column 1: taken at 10 s, and in reach of column 7 (x >= 60) at 15 s: 1 + .5 hops instead of 5."""
    assert by_walker(journey(walk((10, 1, 0), (27, 18, 0)))) == ByWalker(1.5 * HOP, 1, 5)


def test_a_walker_who_is_here_later() -> None:
    """It sets out at column 8 and comes to sensor 0 (x < 40) at 15 s, with x = 35: then it reaches column 4, too."""
    found = by_walker(journey(walk((10, 8, 0), (16, 2, 0), 100)))
    assert found == ByWalker((1 + 3 + 0.5) * HOP, 1, 2)


def test_a_walker_who_has_gone() -> None:
    assert by_walker(journey(walk((10, 1, 0), (27, 18, 0)), now=13)) is None


def test_a_walker_cannot_bring_what_its_target_leaves_before() -> None:
    """The target stands at column 8 until 15 s; the walker is there at 15 s. Column 6 is reached at 14 s."""
    target = walk((0, 8, 0), (0, 8, 0), 16)
    assert by_walker(journey(walk((10, 1, 0), (27, 18, 0)), target=target)) == ByWalker((1 + 1 + 0.4) * HOP, 1, 4)


def test_waiting_for_the_target_counts_once() -> None:
    """The target comes down to columns 6 and 7 at 36 s, 26 s from now; the walker is there before. A tie: the lower."""
    target = walk((10, 7, 4), (50, 7, 0))  # 1 m/s from y = 45; in reach below y = 20
    assert in_reach(target, middle(7), REACH) == (36, math.inf)
    assert by_walker(journey(walk((10, 1, 0), (27, 18, 0)), target=target)) == ByWalker((1 + 0 + 2.6) * HOP, 1, 4)


# --- Flood and multicast ------------------------------------------------------------------------------------


def test_who_reaches_most_speaks_next() -> None:
    """0 hears 1 and 2; 1 leads to two more, 2 to one; one of 1's leads on to the last."""
    community = chart((5, 2), (4, 1), (6, 3), (3, 0), (3, 2), (7, 4), (2, 3))
    assert flood(community, 0) == [0, 1, 2, 4]


def test_who_is_dear_speaks_later() -> None:
    community = chart((5, 2), (4, 1), (6, 3), (3, 0), (3, 2), (7, 4), (2, 3), steps={1: 3})
    assert flood(community, 0) == [0, 2, 1, 4]  # two for 1.35^3 = 2.46 are fewer than one for 1


def test_a_loner_floods_nothing() -> None:
    assert flood(chart((5, 2)), 0) == []


def test_branches_leave_where_they_are_nearest() -> None:
    """A cross: 0 - 1 - 2 - 3 along row 2, 4 - 5 up from 2."""
    cross = chart((2, 2), (3, 2), (4, 2), (5, 2), (4, 3), (4, 4))
    far = {p: Routes(cross, {goal: 0.0}) for p, goal in ((7, 3), (8, 5), (9, 5))}
    tree = branches(0, [(9, far[9]), (8, far[8]), (7, far[7])])
    assert far[7].cost[0] == far[8].cost[0] == 3 * HOP
    assert tree == [Branch(7, [0, 1, 2, 3]), Branch(8, [1, 4, 5]), Branch(9, [5])]
    assert links_of(tree) == [(0, 1, [7, 8, 9]), (1, 2, [7]), (2, 3, [7]), (1, 4, [8, 9]), (4, 5, [8, 9])]
