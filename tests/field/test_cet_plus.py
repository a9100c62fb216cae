"""CET++, and pruned floods: what they cost, by hand. What they deliver is in the random worlds of test_twins.py."""

import pytest
from hypothesis import given

import serai
from serai.field.protocols import PROTOCOLS
from tests.field.naive import play
from tests.field.test_properties import ELECTRONICS, ROW, TEN_METRES, row_of
from tests.field.test_serai import middle, standing, walking
from tests.field.test_serai import row_of as line_of
from tests.field.test_serai_changes import in_the_sun
from tests.field.test_twins import assert_same
from tests.field.worlds import Case, Happening, build_scenario, build_world, cases, product_records


@given(cases("cet-plus", sun=True))
def test_it_is_its_naive_twin_where_sensors_die_and_wake(case: Case) -> None:
    assert_same(product_records(*case), play(*case))


def test_when_the_dead_wake_their_kin_draw_maps_elect_and_hear_of_paths_again() -> None:
    """Three in a line, a subscriber beside the last; the middle one is dead after second 3, and lives from 7 on.

    While it is dead the others are loners, who tell nobody anything. A map of 48 bits is one message.
    """
    world = in_the_sun(line_of(3), [standing(3)], 8, weak=1)
    records = product_records(world, build_scenario(world, 8, {"name": "cet-plus"}), 0)
    assert records.naps == [(1, 3, 6)]
    once = {"hello": 1, "reply": 1, "path": 2, "route": 3, "election": 2 * 3}
    assert dict(+records.control_messages) == {kind: 2 * count for kind, count in once.items()}


@pytest.mark.parametrize(("column", "way"), [(5, [0, 1, 2]), (1, [2, 1, 0])])
@pytest.mark.parametrize("protocol", ["ced", "cet", "cet-plus"])
def test_whom_some_kin_have_met_is_met_by_all_of_them(protocol: str, column: int, way: list[int]) -> None:
    """As above; the subscriber comes at 5 s, and meets the sensor at one end alone. That at the other has an event.

    It gets it by way of the middle one, while that lives again.
    """
    walks, sensors = [walking((0, 11, 0), (4, 11, 0), (5, column, 0))], [middle(column) for column in (2, 3, 4)]
    world = in_the_sun(sensors, walks, 12, weak=1, events=[Happening(way[0], 0.5)])
    case = Case(world, build_scenario(world, 12, {"name": protocol}), 0)
    records = product_records(*case)
    assert_same(records, play(*case))
    assert [(row.event, row.subscriber) for row in records.receptions] == [(0, 0)]
    assert records.receptions[0].time_s >= 7
    assert [row.sender for row in records.transfers] == way


def test_in_a_pruned_flood_only_those_speak_who_reach_somebody_new() -> None:
    """Four in a row, a subscriber beside the last: the last three pass the path on; all pass on the map of 64 bits."""
    world = build_world(row_of(5), 3, ROW[:4], [[(0.0, *ROW[4])]], [Happening(0, 0.5)])
    pruned = product_records(world, build_scenario(world, 3, {"name": "ced", "floods": "pruned"}), 0)
    assert (pruned.control_messages["path"], pruned.control_messages["route"]) == (3, 4)
    speak, hear = TEN_METRES, ELECTRONICS  # a bit, to neighbours who are all ten metres away
    maps, paths = (64 * speak, 64 * hear), (256 * speak, 256 * hear)
    assert pruned.control_pj[0] == maps[0] + maps[1] + paths[1]
    assert pruned.control_pj[1] == maps[0] + 2 * maps[1] + paths[0] + paths[1]
    assert pruned.control_pj[2] == maps[0] + 2 * maps[1] + paths[0] + 2 * paths[1]
    whole = product_records(world, build_scenario(world, 3, {"name": "ced"}), 0)
    assert (whole.control_messages["path"], whole.control_messages["route"]) == (4, 4)
    assert whole.transfers == pruned.transfers


def test_who_reaches_more_speaks_first_and_the_rest_is_silent() -> None:
    """A star of five, and a subscriber beside one arm: the arm and the middle are enough."""
    middle = [(15.0, 15.0), (5.0, 5.0), (25.0, 25.0), (5.0, 25.0), (25.0, 5.0)]
    world = build_world(row_of(4)._replace(height_m=40.0, rows=4), 3, middle, [[(0.0, 35.0, 35.0)]], [])
    records = product_records(world, build_scenario(world, 3, {"name": "ced", "floods": "pruned"}), 0)
    assert records.control_messages["path"] == 2
    assert records.control_messages["route"] == 5 * 2  # 80 bits of map are two messages of 64


def test_cet_plus_is_cet_with_other_settings() -> None:
    scenario = serai.load_scenario("field", ["duration=600 s"], protocol="cet-plus")
    changed = ["match=sensor", "stranded=kept", "return_memory=returner", "floods=pruned", "silent_while_pausing=false"]
    sets = ["duration=600 s", *(f"protocol.{change}" for change in changed)]
    other = serai.load_scenario("field", sets, protocol="cet")
    assert serai.simulate(scenario, seed=3).ledger.reception_s.tolist() == (
        serai.simulate(other, seed=3).ledger.reception_s.tolist()
    )
    assert set(PROTOCOLS["cet-plus"].settings.model_fields) == set(PROTOCOLS["cet"].settings.model_fields)
