"""Sentences of CED and CET that are settings, worked out by hand; the rows of cells are those of test_properties."""

import pytest

from serai.lab import load_scenario
from tests.field.naive.parts import RETURN
from tests.field.test_properties import ROW, row_of
from tests.field.worlds import IMPLEMENTATIONS, Happening, build_scenario, build_world


@pytest.mark.parametrize("run", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())
@pytest.mark.parametrize(("zone", "delivered"), [("path", [0]), ("announced", []), ("pruned", [])])
def test_routes_under_a_sensor_that_lost_the_subscriber(run, zone: str, delivered: list[int]) -> None:
    """Sensors in cells 0 to 3; the subscriber sets out in cell 3, is in cell 4 from 5 s on and in cell 5 from 15 s on.

    At first sensors 2 and 3 are in Z, 1 and 0 hang under 2. From 5 s on only 3 is in touch. `path` draws the routes
    anew, over 3; `pruned` deletes those under 2; `announced` sends the event of 6 s to sensor 2, where it stays.
    """
    world = build_world(row_of(7), 14, ROW[:4], [[(0.0, *ROW[3]), (30.0, *ROW[6])]], [Happening(0, 6.0)])
    records = run(world, build_scenario(world, 14, {"name": "ced", "zone": zone}), 0)
    assert [row.event for row in records.receptions] == delivered
    last = {"path": 4, "announced": 2}  # node 4 is the subscriber
    assert [row.receiver for row in records.transfers][-1:] == ([last[zone]] if zone in last else [])


@pytest.mark.parametrize("run", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())
@pytest.mark.parametrize("allowed", [False, True])
def test_an_event_goes_back_to_where_it_comes_from_only_if_allowed(run, allowed: bool) -> None:
    """One community of two sensors, and a subscriber beside the second, which measures the event."""
    world = build_world(row_of(7), 5, ROW[4:6], [[(0.0, *ROW[6])]], [Happening(1, 1.0)])
    records = run(world, build_scenario(world, 5, {"name": "cet", "return_to_origin": allowed}), 0)
    returned = [(row.time_s, row.receiver) for row in records.transfers if row.kind == RETURN]
    assert returned == ([(1, 1)] if allowed else [])


@pytest.mark.parametrize("run", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())
@pytest.mark.parametrize(("protocol", "heard"), [("ced", True), ("cet", True), ("dg", False)])
def test_whether_a_pausing_subscriber_is_heard_if_nothing_else_is_asked_for(run, protocol: str, heard: bool) -> None:
    """One who stands beside the second of two sensors, in the papers' own scenarios: to DG's sensors it is silent."""
    silent = load_scenario(protocol).protocol.silent_while_pausing
    world = build_world(row_of(3), 5, ROW[:2], [[(0.0, *ROW[2])]], [Happening(1, 0.5)])
    records = run(world, build_scenario(world, 5, {"name": protocol, "silent_while_pausing": silent}), 0)
    assert [row.event for row in records.receptions] == ([0] if heard else [])
