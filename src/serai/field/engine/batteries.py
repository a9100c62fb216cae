"""Batteries: who pays for what, and who can no longer. docs/field/rules.md, "Batteries".

A sensor that cannot pay for an event, or has nothing left, is exhausted: it neither sends nor accepts events in the
rest of the slot, and dies with it.
"""

from serai.core.harvest import HOURS
from serai.core.jit import step
from serai.field.engine.state import NONE, Field

HOUR_SLOTS = 3600
NEVER_PJ = (1 << 63) - 1


@step
def pay(field: Field, sensor: int, cost: int) -> bool:
    """Whether the sensor can pay for an event; if so, it has."""
    here = field.sensors[sensor]
    if here.exhausted or cost > here.left_pj:
        exhaust(field, sensor)
        return False
    here.left_pj -= cost
    here.event_pj += cost
    if here.left_pj == 0:
        exhaust(field, sensor)
    return True


@step
def charge(field: Field, sensor: int, cost: int) -> None:
    """The sensor pays for control messages: if the battery feels them, at most what is left in it."""
    here = field.sensors[sensor]
    if field.limits.control_costs:
        cost = min(cost, here.left_pj)
        here.left_pj -= cost
        if here.left_pj == 0:
            exhaust(field, sensor)
    here.control_pj += cost


@step
def listen(field: Field) -> None:
    """At the end of a slot all harvest, and the living pay for having listened, at most what is in their batteries."""
    for sensor in range(len(field.idle_pj)):
        here = field.sensors[sensor]
        if len(field.power.woken) > 0:
            harvest(field, sensor)
        if here.died == NONE:
            cost = min(field.idle_pj[sensor], here.left_pj)
            here.left_pj -= cost
            field.idled_pj[sensor] += cost
            if here.left_pj == 0:
                exhaust(field, sensor)
        if len(field.power.woken) > 0 and here.left_pj > field.power.capacity_pj[sensor]:
            field.power.wasted_pj[sensor] += here.left_pj - field.power.capacity_pj[sensor]
            here.left_pj = field.power.capacity_pj[sensor]


@step
def harvest(field: Field, sensor: int) -> None:
    """What a second brings."""
    hour = (field.limits.since_midnight + field.clock[0].slot) // HOUR_SLOTS % HOURS
    income = field.power.harvest_pj[sensor, hour]
    field.sensors[sensor].left_pj += income
    field.power.harvested_pj[sensor] += income


@step
def exhaust(field: Field, sensor: int) -> None:
    """The sensor dies with this slot."""
    here, tally = field.sensors[sensor], field.tally[0]
    if not here.exhausted:
        here.exhausted = True
        field.exhausted[tally.exhausted] = sensor
        tally.exhausted += 1


@step
def let_fail(field: Field) -> None:
    """Sensors that are to fail in this slot are as if their batteries were empty."""
    if field.clock[0].slot == field.limits.fail_slot:
        for i in range(len(field.failing)):
            exhaust(field, field.failing[i])
            if len(field.power.wake_pj) > 0:
                field.power.wake_pj[field.failing[i]] = NEVER_PJ  # it does not wake


@step
def is_dead(field: Field, sensor: int) -> bool:
    """Whether the sensor has died in an earlier slot."""
    return bool(field.sensors[sensor].died != NONE)


@step
def mark_dead(field: Field, sensor: int) -> None:
    """The sensor is dead from now on."""
    field.sensors[sensor].died = field.clock[0].slot
    if field.tally[0].died == NONE:
        field.tally[0].died = field.clock[0].slot


@step
def forget_exhausted(field: Field, count: int) -> None:
    """The first so many of the exhausted are buried; what their burial cost may have exhausted others."""
    for i in range(count, field.tally[0].exhausted):
        field.exhausted[i - count] = field.exhausted[i]
    field.tally[0].exhausted -= count
