"""Batteries bind: nobody spends more than it has, the dead do nothing, and communities go on without them."""

import numpy as np
from hypothesis import given

from tests.field.naive.parts import DEAD, RELAY, SOURCE, Drop, Transfer
from tests.field.test_properties import ELECTRONICS, ROW, TEN_METRES, row_of
from tests.field.worlds import Case, Happening, any_cases, build_scenario, build_world, product_records


@given(any_cases)
def test_nobody_spends_more_than_its_battery_holds_and_the_dead_do_nothing(case: Case) -> None:
    records = product_records(*case)
    for sensor, battery_j in enumerate(case.world.battery_j.tolist()):
        control_pj = records.control_pj[sensor] if case.scenario.radio.control_costs else 0
        assert records.event_pj[sensor] + control_pj <= round(battery_j * 1e12)
        if records.died[sensor] >= 0:
            after = [row for row in records.transfers if row.time_s > records.died[sensor]]
            assert not [row for row in after if sensor in (row.sender, row.receiver)]
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


def test_a_sensor_that_can_pay_exactly_dies_with_that_second() -> None:
    """DG: three events of 12.75 uJ, ten metres away, and a battery for two: it sends two, and its queue is lost."""
    world = build_world(row_of(2), 5, ROW[:1], [[(0.0, *ROW[1])]], [Happening(0, 1.0)] * 3)
    world = world._replace(battery_j=np.array([25.5e-6]))
    records = product_records(world, build_scenario(world, 5, {"name": "dg"}), 0)
    assert [(row.time_s, row.event) for row in records.transfers] == [(1, 2), (1, 1)]
    assert sorted(records.drops) == [Drop(1, event, 0, DEAD) for event in (0, 1, 2)]
    assert (records.died, records.event_pj) == ([1], [25_500_000])
