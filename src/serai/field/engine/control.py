"""Control messages: counted as they happen, their energy worked out from the counts when somebody asks.

Every flood costs each sensor of a community the same, every Hello each sensor in touch with a cell the same: so the
slots only count floods per community and Hellos per cell, and the sums are made at the end (or, for the few who need a
sensor's energy in the middle of a run, for that sensor).
"""

from serai.core.energy import receive_pj, transmit_pj
from serai.core.jit import step
from serai.field.engine.state import Field


@step
def hellos_heard(field: Field, sensor: int) -> int:
    """How many Hellos were said within touch of the sensor."""
    here, heard = field.sensors[sensor], 0
    for row in range(max(here.row - 1, 0), min(here.row + 2, field.limits.grid.rows)):
        for column in range(max(here.column - 1, 0), min(here.column + 2, field.limits.grid.columns)):
            heard += field.hellos[row * field.limits.grid.columns + column]
    return heard


@step
def broadcast_pj(field: Field, sensor: int, bits: float) -> int:
    """What a flood in which every sensor speaks once costs this one: to say it, and to hear its neighbours."""
    neighbors = field.neighbor_start[sensor + 1] - field.neighbor_start[sensor]
    heard = receive_pj(field.limits.radio, bits)
    return transmit_pj(field.limits.radio, bits, field.limits.broadcast_m) + int(neighbors) * heard


@step
def control_pj(field: Field, sensor: int) -> int:
    """What the sensor has spent on control messages so far."""
    here = field.sensors[sensor]
    reply = transmit_pj(field.limits.radio, field.limits.reply_bits, field.limits.broadcast_m)
    spent = hellos_heard(field, sensor) * (receive_pj(field.limits.radio, field.limits.hello_bits) + reply)
    group = field.communities[here.community]
    if group.sensors > 1:  # a loner floods nothing: nobody would hear it
        spent += group.paths * broadcast_pj(field, sensor, field.limits.path_bits)
        spent += group.routes * broadcast_pj(field, sensor, field.limits.route_bits)
        # In an election everybody speaks twice.
        spent += 2 * group.elections * broadcast_pj(field, sensor, field.limits.election_bits)
    return int(spent + here.notice_pj)


@step
def energy_left_pj(field: Field, sensor: int) -> int:
    """What is left in the sensor's battery."""
    left = field.limits.battery_pj - field.sensors[sensor].event_pj
    if field.limits.control_costs:
        left -= control_pj(field, sensor)
    return int(left)


@step
def is_over(field: Field) -> bool:
    """Whether the run ends with this slot: the last, or that of the first death; if so, control energy is summed up."""
    last = field.clock[0].slot == field.limits.slots - 1
    over = (field.limits.until_death and first_death(field)) or last
    if over:
        for sensor in range(len(field.sensors)):
            field.sensors[sensor].control_pj = control_pj(field, sensor)
    return bool(over)


@step
def first_death(field: Field) -> bool:
    """Whether some sensor's battery is empty after this slot; the tally keeps when."""
    for sensor in range(len(field.sensors)):
        if energy_left_pj(field, sensor) <= 0:
            field.tally[0].died = field.clock[0].slot
            return True
    return False
