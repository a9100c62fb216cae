"""What each sensor has, and what its battery gained and lost by itself, in tables, where that says something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from serai.core.harvest import HOURS
from serai.field.equipment import harvest_of, ranges_of
from serai.field.log import FieldRun, Naps
from serai.field.passes import Ranges
from serai.field.sections import FieldScenario
from serai.log.columns import Columns, array, lists, matrix
from serai.log.tables import INDEX, METRES, PICOJOULES, SECONDS, column
from serai.world.grid import Floats

_BY_HOUR: Final = pa.list_(pa.field("item", pa.float64(), nullable=False))

EQUIPMENT = pa.schema(
    [
        column("node", INDEX, "number of the sensor"),
        column("battery_j", pa.float64(), "energy of its battery at the start"),
        column("queue", INDEX, "copies that it can hold"),
        column("range_m", METRES, "how far it hears; null: reach is by cells", nullable=True),
        column("idle_w", pa.float64(), "power that it takes while it listens"),
        column("idle_pj", PICOJOULES, "energy that it spent on listening"),
        column("harvest_w", _BY_HOUR, "power that it harvests in each hour of the day"),
        column("harvested_pj", PICOJOULES, "energy that it harvested"),
        column("wasted_pj", PICOJOULES, "of that, what its battery could not hold"),
    ]
)

NAPS = pa.schema(
    [
        column("node", INDEX, "number of the sensor"),
        column("since_s", SECONDS, "when its battery was empty"),
        column("until_s", SECONDS, "when it had harvested enough: it lived again from the next second on"),
    ]
)

EQUIPPED_FIELD_TABLES = {"equipment": EQUIPMENT}
"""Only of a run whose sensors differ, listen at a cost, or harvest."""
HARVESTING_FIELD_TABLES = {"naps": NAPS}
"""Only of a run in which sensors harvest."""


def columns_of_equipment(run: FieldRun) -> dict[str, Columns]:
    """The tables of equipment and naps, if the run has them."""
    found = {"equipment": _equipment(run)} if _differ(run) else {}
    return found if run.ledger.naps is None else found | {"naps": _naps(run.ledger.naps)}


def _differ(run: FieldRun) -> bool:
    """Whether some sensor has something of its own."""
    world, usual = run.world, run.scenario
    ranges_differ = world.ranges is not None and (world.ranges.sensors_m != usual.radio.range_m).any()
    own = world.queue is not None or world.feels_time
    return bool(own or ranges_differ or (world.battery_j != usual.sensors.battery_j).any())


def _equipment(run: FieldRun) -> Columns:
    world, sensors = run.world, len(run.world.sensor_x)
    return {
        "node": np.arange(sensors, dtype=np.int32),
        "battery_j": world.battery_j,
        "queue": np.full(sensors, run.scenario.sensors.queue, np.int32) if world.queue is None else world.queue,
        "range_m": None if world.ranges is None else world.ranges.sensors_m,
        "idle_w": np.zeros(sensors) if world.idle_w is None else world.idle_w,
        "harvest_w": lists(np.zeros((sensors, HOURS)) if world.harvest is None else world.harvest.watts),
        **{
            name: np.zeros(sensors, np.int64) if getattr(run.ledger, name) is None else getattr(run.ledger, name)
            for name in ("idle_pj", "harvested_pj", "wasted_pj")
        },
    }


def _naps(naps: Naps) -> Columns:
    return {"node": naps.node, "since_s": naps.since_s.astype(np.float64), "until_s": naps.until_s.astype(np.float64)}


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
        "harvest": harvest_of(scenario, matrix(has, "harvest_w", HOURS)),
    }
    return array(has, "battery_j", np.float64), ranges_of(scenario, array(has, "range_m", np.float64)), own


def powers_from(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """What batteries gained and lost by themselves, if they did."""
    has, naps = tables.get("equipment"), tables.get("naps")
    harvested = () if naps is None else ("harvested_pj", "wasted_pj")
    idles = has is not None and (naps is not None or array(has, "idle_w", np.float64).any())
    found: dict[str, Any] = {name: array(has, name, np.int64) for name in ("idle_pj", *harvested)} if idles else {}
    if naps is not None:
        found["naps"] = Naps(*(array(naps, name, np.int32) for name in Naps._fields))
    return found
