"""SERAI in worlds so small that its rules (docs/field/serai.md) can be worked out by hand."""

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given

import serai
from serai.field import serai as protocol
from serai.field.serai_parts import layout, pools
from serai.field.world import World
from serai.scenario.section import Scenario
from serai.world.grid import Grid
from tests.conftest import UNCOMPILED
from tests.field.naive.parts import EXPIRED, FULL, RELAY, RETURN, SOURCE, SPENT, Drop, Records, Transfer
from tests.field.test_properties import assert_added_up
from tests.field.worlds import (
    ANYTHING,
    Bounds,
    Case,
    Happening,
    Place,
    Walk,
    build_scenario,
    build_world,
    cases,
    product_records,
)

CELL_M = 10.0
ELECTRONICS, AMPLIFIER = 50_000, 10  # pJ per bit, and per bit and square metre
NOTHING: Bounds = ((1.0, 0.0),)


def middle(column: float, row: float = 0) -> Place:
    return (column + 0.5) * CELL_M, (row + 0.5) * CELL_M


def standing(column: int, row: int = 0) -> Walk:
    return [(0.0, *middle(column, row))]


def walking(*points: tuple[float, float, float]) -> Walk:
    """A walk through the middles of cells: time, column, row."""
    return [(time_s, *middle(column, row)) for time_s, column, row in points]


def played(
    sensors: list[Place],
    walks: list[Walk],
    events: list[Happening],
    settings: dict[str, Any] | None = None,
    wants: list[Bounds] | None = None,
    /,
    slots: int = 20,
    **sections: dict[str, Any],
) -> Records:
    """What happens in a field of 12 by 8 cells."""
    world = build_world(Grid(12 * CELL_M, 8 * CELL_M, 12, 8), slots, sensors, walks, events, wants)
    return product_records(world, scenario_of(world, slots, settings, **sections), 0)


def scenario_of(world: World, slots: int, settings: dict[str, Any] | None, **sections: dict[str, Any]) -> Scenario:
    return build_scenario(world, slots, {"name": "serai", **(settings or {})}, **sections)


def row_of(count: int) -> list[Place]:
    """A line of sensors, each touching the next."""
    return [middle(column) for column in range(count)]


def bits(records: Records) -> dict[str, int]:
    return dict(+records.control_bits)


# --- Rules 4, 5 and 7: hello, session, handover -------------------------------------------------------------


def test_a_loner_gives_its_event_to_who_stands_beside_it() -> None:
    records = played([middle(1)], [standing(1)], [Happening(0, 0.5)], slots=3)
    assert records.transfers == [Transfer(1, 0, 0, 1, 1, SOURCE, True)]
    assert dict(+records.control_messages) == {"hello": 1, "reply": 1, "announce": 1}
    assert bits(records) == {"hello": 32, "reply": 32, "announce": 64 + 40}  # its subscription is news
    assert records.control_pj == [(32 + 32 + 104) * ELECTRONICS]
    assert records.event_pj == [250 * ELECTRONICS]


def test_nothing_is_sent_that_nobody_asked_for() -> None:
    assert not played([middle(1)], [standing(1)], [Happening(0, 0.5)], None, [NOTHING]).transfers


def test_an_announcement_is_passed_on_by_those_who_reach_somebody() -> None:
    """A line of three beside a subscriber: the last hears it, tells the middle one, and that one the first."""
    records = played(row_of(3), [standing(3)], [])
    assert records.control_messages["announce"] == 1 + 2
    speak, hear = 104 * (ELECTRONICS + AMPLIFIER * 100), 104 * ELECTRONICS
    told = 3 * 16 + 16 + 3 * 4  # map and prices of three
    known = told * (ELECTRONICS + AMPLIFIER * 100), told * ELECTRONICS  # to speak, to hear
    first = known[0] + known[1] + hear
    second = known[0] + 2 * known[1] + hear + speak
    third = known[0] + known[1] + 2 * hear + speak + 64 * ELECTRONICS + 32 * AMPLIFIER * 100  # and hello, and reply
    assert records.control_pj == [first, second, third]


def test_who_reaches_more_speaks_first() -> None:
    """A star: its middle tells all arms at once, whoever hears first."""
    star = [middle(1, 1), middle(0, 0), middle(2, 2), middle(0, 2), middle(2, 0)]
    records = played(star, [standing(3, 2)], [])
    assert records.control_messages["announce"] == 1 + 2  # by the subscriber, the arm beside it, the middle


def test_subscribers_bring_and_fetch_subscriptions() -> None:
    """The second one to come brings its own, and takes the first one's along; a third community hears of both."""
    walks = [standing(1), walking((0, 5, 0), (4, 5, 0), (8, 1, 0), (9, 1, 0), (13, 5, 0))]
    records = played([middle(1), middle(6)], walks, [], slots=20)
    # Both bring their own at 0; the second announces its next leg at 4. The first's loner learns of the second, and
    # tells it of the first; at 9 another leg; and at last the second's loner hears of the first.
    assert bits(records)["announce"] == 2 * (64 + 40) + 64 + (64 + 40) + 64 + (64 + 40)
    assert records.control_messages["subscriptions"] == 1
    assert bits(records)["subscriptions"] == 40


def test_a_copy_that_does_not_fit_into_the_budget_waits() -> None:
    """Three events a second are 750 bits; hello, reply and announcement take 168 of the first."""
    events = [Happening(0, 0.0)] * 3
    records = played([middle(1)], [standing(1)], events, slots=3, radio={"rate": 3})
    assert [(row.time_s, row.event) for row in records.transfers] == [(0, 2), (0, 1), (1, 0)]


# --- Rule 6 and routes --------------------------------------------------------------------------------------


def test_a_community_pushes_to_where_the_subscriber_is() -> None:
    """The event was born before anybody came, so nobody was known to want it; with the announcement somebody is."""
    records = played(row_of(3), [walking((0, 11, 7), (5, 11, 7), (6, 3, 0))], [Happening(0, 0.5)], slots=12)
    assert records.transfers == [
        Transfer(6, 0, 0, 1, 3, SOURCE, True),
        Transfer(6, 0, 1, 2, 3, RELAY, True),
        Transfer(6, 0, 2, 3, 3, SOURCE, True),
    ]
    assert records.event_pj[1] == 250 * (2 * ELECTRONICS + AMPLIFIER * 100)


@pytest.mark.parametrize(
    ("lamt", "hops", "handed_s"),
    [
        ("20 s", 0, 36),  # 35 s of waiting are 1.75 hops: it stays, though others are passed earlier
        ("10 s", 0, 36),  # all cost 3.5 hops, or 4: of equal roots the lowest number
        ("5 s", 1, 6),  # the fourth: 5 s and three hops, as the fifth by four hops at once
    ],
)
def test_an_announced_path_is_a_road(lamt: str, hops: int, handed_s: int) -> None:
    """Somebody walks along a line of five, a metre a second; an event at its far end can go to meet it."""
    walks = [walking((0, 5, 0), (50, 0, 0))]
    records = played(row_of(5), walks, [Happening(0, 0.5)], {"lamt": lamt}, slots=60)
    assert [row.time_s for row in records.transfers] == [1, 1, 1, handed_s][3 - 3 * hops :]
    assert records.transfers[-1] == Transfer(handed_s, 0, 3 * hops, 5, 5, SOURCE, True)


@pytest.mark.parametrize(("lam", "sent"), [("348 s", True), ("349 s", False)])
def test_a_sensor_waits_if_it_was_served_more_cheaply(lam: str, sent: bool) -> None:
    """Two sessions cost it 0 and 2 hops: the mean saving is one hop. T_wait at 48 s is 348 s x 2 known / 2 heard."""
    walks = [walking((0, 0, 1), (4, 0, 7)), walking((0, 3, 5), (40, 3, 5), (50, 3, 0))]
    records = played(row_of(3), walks, [Happening(0, 10.5)], {"lam": lam}, [NOTHING, ANYTHING], slots=60)
    assert len(records.transfers) == (3 if sent else 0)
    assert not sent or records.transfers[0].time_s == 48


# --- Rule 3: prices -----------------------------------------------------------------------------------------


def test_who_has_worked_more_asks_for_more() -> None:
    """Two ways around a square: the lower number first, until the next prices say what it has spent."""
    square = [middle(0, 1), middle(1, 0), middle(1, 2), middle(2, 1)]
    events = [Happening(0, 2.0 + second) for second in range(14)]
    settings = {"kappa": 20.0, "t_0": "150000 s", "price_interval": 10}
    records = played(square, [standing(3, 1)], events, settings, slots=16)
    by_way = [(row.time_s, row.receiver) for row in records.transfers if row.sender == 0]
    assert by_way == [(second, 1 if second < 11 else 2) for second in range(2, 16)]
    # The map, 14 + 2 bits a member: 4 x 64 bits; prices at 1 and 11 s: 2 x 4 x 32.
    assert bits(records)["map"] == 256
    assert bits(records)["price"] == 256


# --- Carrying, deposits, offers -----------------------------------------------------------------------------

LONER_AND_PAIR = [middle(0), middle(5), middle(6)]
CARRIER = walking((0, 4, 0), (10, 4, 0), (14, 1, 0), (30, 1, 0), (34, 4, 0))
SEEN = {"carriers": 1}


def test_a_carrier_takes_an_event_to_another_community() -> None:
    """It learns the other one's subscription from the pair, so that the loner knows it when the event is born."""
    records = played(LONER_AND_PAIR, [CARRIER, standing(7)], [Happening(0, 20.5)], SEEN, slots=60)
    carrier, other = 3, 4
    deposited = records.transfers[1].time_s
    assert records.transfers == [
        Transfer(21, 0, 0, carrier, carrier, SOURCE, True),
        Transfer(deposited, 0, carrier, 1, -1, RETURN, True),
        Transfer(deposited, 0, 1, 2, other, SOURCE, True),
        Transfer(deposited + 1, 0, 2, other, other, SOURCE, True),
    ]
    assert 30 < deposited <= 34
    assert bits(records)["want_map"] == 2 + 2  # given to the carrier, and left by it
    # The deposit is exposed, and so is its relay copy: that is offered before it is handed over.
    assert bits(records)["offer"] == 48
    assert [drop.reason for drop in records.drops] == [SPENT, SPENT]  # when nobody is left for them


def test_what_was_delivered_elsewhere_is_offered_and_declined() -> None:
    """The other one comes to the loner later: it is asked, and has the event."""
    walks = [CARRIER, walking((0, 7, 0), (50, 7, 0), (54, 1, 0))]
    records = played(LONER_AND_PAIR, walks, [Happening(0, 20.5)], SEEN, slots=70)
    assert len(records.transfers) == 4
    assert bits(records)["offer"] == 48 + 48
    without = played(LONER_AND_PAIR, walks, [Happening(0, 20.5)], {**SEEN, "offers": False}, slots=70)
    assert without.transfers[4:] == [Transfer(without.transfers[4].time_s, 0, 0, 4, 4, SOURCE, True)]
    assert "offer" not in bits(without)


@pytest.mark.parametrize("settings", [{"carriers": 0}, {"deposits": 0}, {"phi_d": 10.0}, {"phi": 3.0}])
def test_when_nobody_carries(settings: dict[str, Any]) -> None:
    records = played(LONER_AND_PAIR, [CARRIER, standing(7)], [Happening(0, 20.5)], SEEN | settings, slots=60)
    assert records.transfers == [Transfer(21, 0, 0, 3, 3, SOURCE, True)]


def test_loners_are_left_nothing() -> None:
    records = played(LONER_AND_PAIR[:2], [CARRIER, standing(6)], [Happening(0, 20.5)], SEEN, slots=60)
    assert [row.kind for row in records.transfers] == [SOURCE]


@pytest.mark.parametrize("deposits", [0, 1, 2, 3, 4])
def test_an_event_is_left_in_so_many_communities(deposits: int) -> None:
    """A carrier takes it from a loner past three pairs, one after the other, and back again."""
    sensors = [middle(0, 7), *(middle(column, row) for row in (0, 2, 4) for column in (8, 9))]
    walks = [
        walking((0, 9, 5), (2, 9, 5), (12, 0, 7), (20, 0, 7), (30, 10, 5), (40, 10, 0), (50, 10, 5)),
        walking((0, 9, 5), (1, 9, 5), (2, 11, 7)),
    ]
    settings = {"carriers": 1, "deposits": deposits}
    records = played(sensors, walks, [Happening(0, 15.5)], settings, [NOTHING, ANYTHING], slots=60)
    left = [(row.sender, row.receiver) for row in records.transfers if row.kind == RETURN]
    assert left == [(7, 5), (7, 4), (7, 2)][: min(deposits, 3)]


# --- Rule 8: walkers ----------------------------------------------------------------------------------------


def test_a_walker_takes_an_event_along_to_another_ones_path() -> None:
    """Eight in a line; one stands at the far end, who is faster than seven hops are cheap walks there."""
    walks = [standing(8), walking((0, 0, 0), (14, 7, 0))]
    records = played(row_of(8), walks, [Happening(0, 0.5)], None, [ANYTHING, NOTHING], slots=20)
    wanting, walker = 8, 9
    assert records.transfers == [
        Transfer(2, 0, 0, walker, wanting, SOURCE, True),
        Transfer(11, 0, walker, 7, wanting, RETURN, True),
        Transfer(11, 0, 7, wanting, wanting, SOURCE, True),  # in second 11 number 1 comes before number 0
    ]
    assert bits(records)["address"] == 24 + 8


@pytest.mark.parametrize(("mu_w", "walks"), [(4.999, True), (5.0, False)])
def test_a_walker_must_be_so_much_better(mu_w: float, walks: bool) -> None:
    """By the walker: a hop, and 10 s that are worth another. By the sensors: seven hops."""
    subscribers = [standing(8), walking((0, 0, 0), (14, 7, 0))]
    records = played(row_of(8), subscribers, [Happening(0, 0.5)], {"mu_w": mu_w}, [ANYTHING, NOTHING], slots=20)
    assert (len(records.transfers) == 3) == walks
    assert (len(records.transfers) == 8) != walks


# --- Rule 10: new copies ------------------------------------------------------------------------------------

FORK = [middle(0, 1), middle(1, 1), middle(2, 1), middle(3, 0), middle(3, 2)]


def test_a_tree_branches_where_it_is_nearest_to_each_goal() -> None:
    records = played(FORK, [standing(4, 0), standing(4, 2)], [Happening(0, 1.5)], slots=5)
    upper, lower = 5, 6
    assert records.transfers == [
        Transfer(2, 0, 0, 1, -1, SOURCE, True),
        Transfer(2, 0, 1, 2, -1, RELAY, True),
        Transfer(2, 0, 2, 3, upper, RELAY, True),
        Transfer(2, 0, 2, 4, lower, RELAY, True),
        Transfer(3, 0, 4, lower, lower, SOURCE, True),  # in second 3 number 1 comes before number 0
        Transfer(3, 0, 3, upper, upper, SOURCE, True),
    ]
    assert bits(records)["address"] == 16 + 16 + 8 + 8
    alone = played(FORK, [standing(4, 0), standing(4, 2)], [Happening(0, 1.5)], {"multicast": False}, slots=5)
    assert len(alone.transfers) == 3 + 3 + 2
    assert "address" not in bits(alone)


def test_goals_with_one_root_share_a_relay_copy() -> None:
    records = played(row_of(3), [standing(3, 0), standing(3, 1)], [Happening(0, 1.5)], slots=5)
    assert [row[:4] for row in records.transfers] == [(2, 0, 0, 1), (2, 0, 1, 2), (3, 0, 2, 4), (3, 0, 2, 3)]
    assert bits(records)["address"] == 16 + 16


# --- Rules 1 and 2: full queues, clearing -------------------------------------------------------------------


def test_a_full_queue_drops_what_is_not_home_and_then_refuses() -> None:
    """A chain bends round, a path leads straight from its first sensor to its last; each sensor has room for one."""
    chain = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 2), (6, 3), (6, 4), (6, 5)]
    events = [Happening(0, 10.5), Happening(8, 20.0), Happening(8, 25.0), Happening(1, 30.0)]
    records = played(
        [middle(*cell) for cell in chain],
        [walking((0, 0, 1), (60, 6, 7))],
        events,
        slots=60,
        sensors={"queue": 1},
    )
    assert [(row.time_s, row.event, row.receiver, row.accepted) for row in records.transfers if row.receiver > 7] == [
        (11, 0, 8, True),
        (30, 3, 8, False),
        (45, 1, 9, True),
    ]
    assert records.drops == [Drop(20, 0, 8, FULL), Drop(25, 2, 8, FULL), Drop(30, 3, 8, FULL)]
    assert records.whose == [(9, True, 8), (-1, False, 8), (9, False, 15)]  # for whom, held, after so many transfers


def test_copies_are_cleared_at_every_fifth_second() -> None:
    events = [Happening(0, 1.0), Happening(0, 4.0)]
    records = played([middle(1)], [], events, {"clear_interval": 5}, slots=30, events={"lifetime": "10 s"})
    assert sorted(records.drops) == [Drop(15, 0, 0, EXPIRED), Drop(15, 1, 0, EXPIRED)]


# --- Pools ---------------------------------------------------------------------------------------------------


def test_a_run_that_outgrows_its_pools_is_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools with room for one record more at the start of a slot: they grow, and the run begins again and again."""
    sets = ["protocol.name=serai", "events.quiet=0 s", "events.interval=20 s", "sensors.count=30", "field.cells=8"]
    scenario = serai.load_scenario("field", [*sets, f"duration={140 if UNCOMPILED else 300} s"])
    usual = serai.simulate(scenario, seed=5, full_log=True)
    rooms = []

    def with_room(net: Any, field: Any, room: pools.Room) -> Any:
        rooms.append(room)
        return pools.with_room(net, field, room)

    monkeypatch.setattr(protocol, "with_room", with_room)
    monkeypatch.setattr(protocol, "usual_room", lambda limits: pools.Room(1, 1, 1, 1))
    assert serai.simulate(scenario, seed=5, full_log=True) == usual
    assert len(usual.ledger.reception_s) > 100
    assert max(rooms).copies >= 4, "nothing ran short inside a slot"
    assert len(rooms) > 3 * len(set(rooms)), "the pools never grew between slots"


# --- Legs ---------------------------------------------------------------------------------------------------


def test_what_is_passed_after_the_run_is_not_passed_on_the_last_leg() -> None:
    """A walk of 0.2 cells a second, from and back to where the sensor is; the run ends on the way there."""
    there_and_back = walking((0, 0, 0), (40, 8, 0), (80, 0, 0))
    world = build_world(Grid(12 * CELL_M, 8 * CELL_M, 12, 8), 20, [middle(0)], [there_and_back], [])
    reach = layout.paths_of(world, 20).reach
    assert [(row.sensor, row.first, row.last) for row in reach] == [(0, 0, 7)]  # x < 20 m until 7.5 s


def test_who_comes_back_from_nowhere_begins_a_leg() -> None:
    """It stands beside the sensor until 5 s, and again from 12 s on, which nobody could know of before."""
    gone = [(0.0, *middle(1)), (5.0, *middle(1)), (5.0, math.nan, math.nan), (12.0, math.nan, math.nan)]
    world = build_world(
        Grid(12 * CELL_M, 8 * CELL_M, 12, 8), 20, [middle(0)], [[*gone, (12.0, *middle(1)), (30.0, *middle(1))]], []
    )
    legs, _, reach = layout.paths_of(world, 20)
    assert [(row.first, row.last) for row in legs] == [(0, 11), (12, layout.NEVER)]
    assert [(row.first, row.last) for row in reach] == [(0, 4), (12, layout.NEVER)]


@pytest.mark.parametrize(("deposits", "left"), [(0, 0), (1, 1)])
def test_where_nothing_is_deposited_it_is_not_even_done_at_once(deposits: int, left: int) -> None:
    """A carrier stands between two pairs; who wants the event was there, and is gone."""
    pairs = [middle(0), middle(1), middle(3), middle(4)]
    walks = [standing(2), walking((0, 2, 0), (2, 2, 0), (2, 10, 0), (20, 10, 0))]
    records = played(pairs, walks, [Happening(1, 5.5)], {"carriers": 1, "deposits": deposits}, [NOTHING, ANYTHING])
    assert len(records.receptions) == 1
    assert [row.kind for row in records.transfers].count(RETURN) == left


# --- Any world ----------------------------------------------------------------------------------------------


@given(cases("serai"))
def test_the_books_balance(case: Case) -> None:
    """Rows add up to the ledger, queues are what the log says, and nothing comes before its birth or long after it."""
    records = product_records(*case)
    assert_added_up(case, records)
    births, latest = case.world.event_time_s, case.scenario.events.lifetime_s + case.scenario.protocol.clear_interval
    assert all(0 <= row.time_s - births[row.event] <= latest for row in records.receptions)
    follow_queues(case, records)


def follow_queues(case: Case, records: Records) -> None:
    """Births, what is stored, what moves and what was held when it was dropped add up to queues that fit."""
    held: Counter[int] = Counter()
    rows = list(zip(records.transfers, records.kept, strict=True))[::-1]
    drops = list(zip(records.drops, records.whose, strict=True))[::-1]
    refused = {(drop.event, drop.node) for drop, (_, was_held, _) in drops if not was_held}
    for slot in range(case.scenario.duration_s):
        for event, sensor in enumerate(case.world.event_sensor.tolist()):
            lives = not 0 <= records.died[sensor] < slot
            if math.ceil(case.world.event_time_s[event]) == slot and lives and (event, sensor) not in refused:
                held[sensor] += 1
        while True:
            if drops and drops[-1][0].time_s == slot and drops[-1][1][2] <= len(records.transfers) - len(rows):
                drop, (_, was_held, _) = drops.pop()
                held[drop.node] -= was_held
            elif rows and rows[-1][0].time_s == slot:
                row, (stored, moved) = rows.pop()
                held[row.receiver] += stored
                held[row.sender] -= moved
            else:
                break
        usual, own = case.scenario.sensors.queue, case.world.queue
        for sensor in range(len(case.world.sensor_x)):
            assert 0 <= held[sensor] <= (usual if own is None else own[sensor])
    assert not drops
    assert not rows
