"""CET++, and pruned floods: what they cost, by hand. What they deliver is in the random worlds of test_twins.py."""

import serai
from serai.field.protocols import PROTOCOLS
from tests.field.test_properties import ELECTRONICS, ROW, TEN_METRES, row_of
from tests.field.worlds import Happening, build_scenario, build_world, product_records


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
