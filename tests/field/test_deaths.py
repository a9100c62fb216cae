"""Batteries bind: nobody spends more than it has, the dead do nothing, and communities go on without them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.jit import announced_compilation
from serai.field.protocols import PROTOCOLS
from serai.field.simulation import limits_of
from serai.field.world import Harvest
from tests.field.naive.parts import DEAD, RELAY, SOURCE, Drop, Transfer
from tests.field.test_properties import ELECTRONICS, ROW, TEN_METRES, row_of
from tests.field.worlds import Case, Happening, any_cases, build_scenario, build_world, cases, product_records


@given(any_cases)
def test_nobody_spends_more_than_its_battery_holds_and_the_dead_do_nothing(case: Case) -> None:
    records = product_records(*case)
    for sensor, battery_j in enumerate(case.world.battery_j.tolist()):
        control_pj = records.control_pj[sensor] if case.scenario.radio.control_costs else 0
        assert records.event_pj[sensor] + control_pj + records.idle_pj[sensor] <= round(battery_j * 1e12)
        if records.died[sensor] >= 0:
            after = [row for row in records.transfers if row.time_s > records.died[sensor]]
            assert not [row for row in after if sensor in (row.sender, row.receiver)]
            left = [drop for drop in records.drops if drop.node == sensor and drop.time_s > records.died[sensor]]
            assert not left  # nothing lies there that could expire, nothing is born for which there is no room
    assert all(drop.time_s <= records.died[drop.node] for drop in records.drops if drop.reason == DEAD)


def test_a_community_falls_apart_when_the_sensor_between_dies() -> None:
    """The middle one of three can pay for one event to pass (receive 12.5 uJ, send 12.75 uJ), not for a second."""
    born = [Happening(0, 0.5), Happening(0, 5.5), Happening(0, 8.5), Happening(2, 8.75), Happening(1, 9.5)]
    world = build_world(row_of(4), 12, ROW[:3], [[(0.0, *ROW[3])]], born)
    world = world._replace(battery_j=np.array([10.0, 26e-6, 10.0]))
    records = product_records(world, build_scenario(world, 12, {"name": "ced", "hops": "one"}), 0)
    assert records.transfers == [
        Transfer(1, 0, 0, 1, 3, SOURCE, True),
        Transfer(2, 0, 1, 2, 3, RELAY, True),
        Transfer(3, 0, 2, 3, 3, RELAY, True),
        Transfer(6, 1, 0, 1, 3, SOURCE, False),  # it cannot pay, and dies
        Transfer(9, 3, 2, 3, 3, SOURCE, True),
    ]  # event 2 has no way any more, event 4 was never born
    assert records.drops == [Drop(6, 1, 1, DEAD)]
    assert records.died == [-1, 6, -1]
    assert records.event_pj[1] == 250 * (ELECTRONICS + TEN_METRES)
    # One flood of each kind at the start; after the death there are only loners, who flood nothing.
    assert (records.control_messages["path"], records.control_messages["route"]) == (3, 3)


def test_listening_empties_a_battery_in_the_second_worked_out_by_hand() -> None:
    """DG: 100 uJ a second out of 1 mJ last from second 0 to 9; two events of 12.75 uJ at second 3 leave 74.5 uJ for 9.

    The other one has 950 uJ: at second 9 it pays the 50 uJ that are left, and dies with it.
    """
    born = [Happening(0, 2.5), Happening(0, 2.75), Happening(0, 9.0), Happening(0, 9.25), Happening(1, 9.0)]
    world = build_world(row_of(4), 12, [ROW[0], ROW[3]], [[(0.0, *ROW[1])]], born)
    world = world._replace(battery_j=np.array([1e-3, 0.95e-3]), idle_w=np.array([1e-4, 1e-4]))
    records = product_records(world, build_scenario(world, 12, {"name": "dg", "resend": "once"}), 0)
    assert [(row.time_s, row.event) for row in records.transfers] == [(3, 1), (3, 0), (9, 2)]
    assert (records.died, records.event_pj[1]) == ([9, 9], 0)
    assert records.idle_pj == [10**9 - records.event_pj[0], 950_000_000]
    assert records.drops[-1] == Drop(9, 3, 1, DEAD)  # event 4 was never born


@given(
    st.tuples(st.sampled_from(["ced", "cet", "cet-plus", "dg", "serai"]), st.booleans()).flatmap(
        lambda given: cases(*given)
    ),
    st.integers(0, 10**8),
    st.floats(0, 1),
)
def test_the_books_balance_in_every_second(case: Case, idle_pj: int, until: float) -> None:
    """Spent and left are what the battery held and what was harvested but not lost, after any second."""
    world, scenario, key = case
    slots = math.ceil(until * scenario.duration_s) or 1
    world = world._replace(idle_w=np.array([idle_pj * share / 1e12 for share in range(len(world.sensor_x))]))
    shorter = scenario.model_copy(update={"duration_s": slots})
    with announced_compilation(scenario.protocol.name):
        limits = limits_of(world, shorter, key, False, False)
        field = PROTOCOLS[scenario.protocol.name].simulate(world, limits, scenario.protocol)
    sensors, idled = field.sensors, field.idled_pj if len(field.idled_pj) else 0
    spent = sensors.event_pj + idled + (sensors.control_pj if scenario.radio.control_costs else 0)
    power, full_pj = field.power, np.rint(world.battery_j * 1e12)
    gained = power.harvested_pj - power.wasted_pj if world.harvest is not None else 0
    assert (spent + sensors.left_pj == full_pj + gained).all()
    assert (sensors.left_pj <= full_pj).all()
    naps = power.naps[: field.tally[0].naps]
    assert (naps.since_s < naps.until_s).all()
    asleep = np.bincount(naps.node, naps.until_s - naps.since_s, len(full_pj))
    lived = np.where(sensors.died < 0, slots, sensors.died + 1) - asleep
    never_died = (sensors.died < 0) & (asleep == 0)
    assert (idled == world.idle_pj * slots)[never_died].all()
    assert (idled <= world.idle_pj * lived).all()
    if world.harvest is not None:  # however often they die and wake
        assert field.tally[0].communities <= len(full_pj)


def test_a_sensor_wakes_by_the_sun_at_six() -> None:
    """DG, a day's first hours from 5:59:50 on: 10 uJ, 1 uW of listening, and from six on 3 uW of sun.

    The battery is empty with second 9, the last before six. From then on each second brings 3 uJ: at the end of second
    10 and of 11 it is above the share of 0.4 (4 uJ) only after the second of them. So it lives from second 12 on, gains
    2 uJ in each, and is full at the end of second 13, with nothing lost; afterwards 2 uJ are lost in each second.
    """
    born = [Happening(0, 4.5), Happening(0, 10.5), Happening(0, 11.5), Happening(0, 13.5)]
    world = build_world(row_of(2), 20, ROW[:1], [[(0.0, *ROW[1])]], born, [((1.0, 0.0),)])
    watts = np.array([[3e-6 * (6 <= hour < 18) for hour in range(24)]])
    sun = Harvest(watts, 0.4, 6 * 3600 - 10)
    world = world._replace(battery_j=np.array([10e-6]), idle_w=np.array([1e-6]), harvest=sun)
    records = product_records(world, build_scenario(world, 20, {"name": "dg", "match": "sensor"}), 0)
    assert records.naps == [(0, 9, 11)]
    assert records.died == [-1]
    assert records.drops == [Drop(9, 0, 0, DEAD)]  # events 1 is never born, 2 and 3 are
    assert records.idle_pj == [(10 + 8) * 10**6]
    assert records.harvested_pj == [10 * 3 * 10**6]
    assert records.wasted_pj == [(10 + 30 - 18 - 10) * 10**6]
    assert (records.control_messages["hello"], records.control_messages["reply"]) == (2, 2)  # at second 0, and at 12


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_who_has_woken_is_new_to_a_subscriber_that_never_left(protocol: str) -> None:
    """As above, but ten times as much of everything: enough to send. What happens while it is dead is not born."""
    born = [Happening(0, 10.5), Happening(0, 15.5)]
    world = build_world(row_of(2), 20, ROW[:1], [[(0.0, *ROW[1])]], born)
    watts = np.array([[30e-6 * (6 <= hour < 18) for hour in range(24)]])
    sun = Harvest(watts, 0.4, 6 * 3600 - 10)
    world = world._replace(battery_j=np.array([100e-6]), idle_w=np.array([10e-6]), harvest=sun)
    records = product_records(world, build_scenario(world, 20, {"name": protocol}), 0)
    assert records.naps == [(0, 9, 11)]
    assert [(row.event, row.time_s) for row in records.receptions] == [(1, 16)]
    assert records.control_messages["hello"] == 2


@pytest.mark.parametrize("protocol", ["ced", "cet", "serai"])
def test_communities_that_part_and_form_anew_take_no_more_room(protocol: str) -> None:
    """The middle one of three dies every few seconds, and each time leaves two communities."""
    world = build_world(row_of(4), 200, ROW[:3], [[(0.0, *ROW[3])]], [])
    sun = Harvest(np.outer([0.0, 2e-6, 0.0], np.ones(24)), 0.5, 0)
    world = world._replace(battery_j=np.array([1.0, 10e-6, 1.0]), idle_w=np.array([0.0, 5e-6, 0.0]), harvest=sun)
    scenario = build_scenario(world, 200, {"name": protocol})
    with announced_compilation(protocol):
        limits = limits_of(world, scenario, 0, full_log=False, until_death=False)
        field = PROTOCOLS[protocol].simulate(world, limits, scenario.protocol)
    assert field.tally[0].naps > 20
    assert field.tally[0].communities == 2


@pytest.mark.parametrize("protocol", ["dg", "ced", "cet"])
def test_what_the_dead_held_is_lost_at_once_and_what_happens_there_is_not_born(protocol: str) -> None:
    """Three events of 12.75 uJ, and a battery for two: all three copies are lost; what is born later would expire."""
    born = [*[Happening(0, 1.0)] * 3, Happening(0, 2.5)]
    world = build_world(row_of(2), 12, ROW[:1], [[(0.0, *ROW[1])]], born)
    world = world._replace(battery_j=np.array([25.5e-6]))
    scenario = build_scenario(world, 12, {"name": protocol}, events={"lifetime": "5 s"})
    records = product_records(world, scenario, 0)
    assert (records.died, records.sent) == ([1], [2])
    assert sorted(records.drops) == [Drop(1, event, 0, DEAD) for event in (0, 1, 2)]


def test_a_sensor_that_can_pay_exactly_dies_with_that_second() -> None:
    """DG: three events of 12.75 uJ, ten metres away, and a battery for two: it sends two, and its queue is lost."""
    world = build_world(row_of(2), 5, ROW[:1], [[(0.0, *ROW[1])]], [Happening(0, 1.0)] * 3)
    world = world._replace(battery_j=np.array([25.5e-6]))
    records = product_records(world, build_scenario(world, 5, {"name": "dg"}), 0)
    assert [(row.time_s, row.event) for row in records.transfers] == [(1, 2), (1, 1)]
    assert sorted(records.drops) == [Drop(1, event, 0, DEAD) for event in (0, 1, 2)]
    assert (records.died, records.event_pj) == ([1], [25_500_000])
