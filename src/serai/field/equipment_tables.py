"""What each sensor has, and what listening took of it, in tables: where that is not what the scenario gives to all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from serai.field.equipment import ranges_of
from serai.field.log import Counts, FieldRun
from serai.field.passes import Ranges
from serai.field.sections import FieldScenario
from serai.log.columns import Columns, array
from serai.log.tables import INDEX, METRES, PICOJOULES, column
from serai.world.grid import Floats

EQUIPMENT = pa.schema(
    [
        column("node", INDEX, "number of the sensor"),
        column("battery_j", pa.float64(), "energy of its battery at the start"),
        column("queue", INDEX, "copies that it can hold"),
        column("range_m", METRES, "how far it hears; null: reach is by cells", nullable=True),
        column("idle_w", pa.float64(), "power that it takes while it listens"),
        column("idle_pj", PICOJOULES, "energy that listening took of it"),
    ]
)

EQUIPPED_FIELD_TABLES = {"equipment": EQUIPMENT}
"""Only of a run whose sensors differ, or where listening costs energy."""


def columns_of_equipment(run: FieldRun) -> dict[str, Columns]:
    """The table of equipment, if the run has it."""
    return {"equipment": _equipment(run)} if _differ(run) else {}


def _differ(run: FieldRun) -> bool:
    """Whether some sensor has something of its own."""
    world, usual = run.world, run.scenario
    ranges_differ = world.ranges is not None and (world.ranges.sensors_m != usual.radio.range_m).any()
    own = world.queue is not None or world.idle_w is not None
    return bool(own or ranges_differ or (world.battery_j != usual.sensors.battery_j).any())


def _equipment(run: FieldRun) -> Columns:
    world, sensors = run.world, len(run.world.sensor_x)
    return {
        "node": np.arange(sensors, dtype=np.int32),
        "battery_j": world.battery_j,
        "queue": np.full(sensors, run.scenario.sensors.queue, np.int32) if world.queue is None else world.queue,
        "range_m": None if world.ranges is None else world.ranges.sensors_m,
        "idle_w": np.zeros(sensors) if world.idle_w is None else world.idle_w,
        "idle_pj": np.zeros(sensors, np.int64) if run.ledger.idle_pj is None else run.ledger.idle_pj,
    }


def equipment_from(
    scenario: FieldScenario, sensors: int, has: pa.Table | None
) -> tuple[Floats, Ranges | None, dict[str, Any]]:
    """Batteries, ranges, and what else of a world sensors have of their own."""
    if has is None:
        usual_m = np.full(sensors, scenario.radio.range_m or np.nan)
        return np.full(sensors, scenario.sensors.battery_j), ranges_of(scenario, usual_m), {}
    queue, idle_w = array(has, "queue", np.int32), array(has, "idle_w", np.float64)
    own = {
        "queue": None if (queue == scenario.sensors.queue).all() else queue,
        "idle_w": idle_w if idle_w.any() else None,
    }
    return array(has, "battery_j", np.float64), ranges_of(scenario, array(has, "range_m", np.float64)), own


def idle_pj_from(has: pa.Table | None) -> Counts | None:
    """What listening took of each sensor, where it costs anything."""
    idles = has is not None and array(has, "idle_w", np.float64).any()
    return array(has, "idle_pj", np.int64) if idles else None
