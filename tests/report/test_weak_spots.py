"""Where a deployment is weak: also where a battery was empty before anybody came."""

import numpy as np
import pytest

from serai.core.jit import announced_compilation
from serai.field.log import FieldRun
from serai.field.simulation import run_protocol
from serai.report.weak_spots import battery_days, said_why, weak_spots
from serai.world.grid import Grid
from tests.field.worlds import Happening, build_scenario, build_world

FAR, BESIDE = (115.0, 5.0), (25.0, 5.0)


def test_a_sensor_that_listened_until_its_battery_was_empty() -> None:
    """Two sensors of one community, somebody who comes after two minutes, and a battery for one minute of listening.

    The event of second 70 is never born, so it is nobody's; that of second 80 is the other sensor's.
    """
    born = [(0, 10.5), (1, 15.5), (0, 20.5), (0, 30.5), (0, 70.5), (1, 80.5)]
    walk = [(0.0, *FAR), (100.0, *FAR), (120.0, *BESIDE)]
    world = build_world(
        Grid(120.0, 10.0, 12, 1), 300, [(5.0, 5.0), (15.0, 5.0)], [walk], [Happening(*event) for event in born]
    )
    world = world._replace(battery_j=np.array([6e-3, 10.0]), idle_w=np.array([1e-4, 1e-4]))
    scenario = build_scenario(world, 300, {"name": "ced"}, events={"lifetime": "150 s"})
    with announced_compilation("ced"):
        ledger, full = run_protocol(world, scenario, 0, full_log=True)
    assert ledger.died.tolist() == [59, -1]
    run = FieldRun(scenario, "ced", 0, world, ledger, full)
    (spot,) = weak_spots([run], None)
    assert (spot.sensor, spot.in_time, spot.why) == (0, 0.0, (("dead", 1.0),))
    assert said_why(spot) == "battery empty (100 %)"
    days = battery_days([run])
    assert days is not None
    assert days[0] == pytest.approx(60 / 86_400)
    assert days[1] == pytest.approx(10.0 / 1e-4 / 86_400, rel=0.01)
