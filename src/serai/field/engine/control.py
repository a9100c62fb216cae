"""Control messages: counted as they happen, their energy charged to the sensors.

In a flood every sensor of a community speaks once: what that costs a sensor depends on its living neighbours only. So
unless the battery feels control messages, the slots only count floods per community, and the sums are made when a
community changes and at the end.
"""

from serai.core.energy import receive_pj, transmit_pj
from serai.core.jit import step
from serai.field.engine.batteries import charge, is_dead
from serai.field.engine.state import ELECTION, FLOODS, HELLO, PATH, REPLY, Field


@step
def say_hello(field: Field, cell: int) -> None:
    """A Hello is said in a cell: every sensor in touch hears it, and replies (CED 4.1 a)."""
    limits, grid = field.limits, field.limits.grid
    reply = transmit_pj(limits.radio, limits.reply_bits, limits.broadcast_m)
    cost = receive_pj(limits.radio, limits.hello_bits) + reply
    field.messages[HELLO] += 1
    row, column = cell // grid.columns, cell % grid.columns
    for near_row in range(max(row - 1, 0), min(row + 2, grid.rows)):
        for near_column in range(max(column - 1, 0), min(column + 2, grid.columns)):
            near = near_row * grid.columns + near_column
            for i in range(field.cell_start[near], field.cell_start[near + 1]):
                if not is_dead(field, field.cell_sensors[i]):
                    field.messages[REPLY] += 1
                    charge(field, field.cell_sensors[i], cost)


@step
def flood(field: Field, community: int, kind: int) -> None:
    """Every sensor of the community speaks once; a loner floods nothing: nobody would hear it."""
    sensors = field.communities[community].sensors
    if sensors > 1:
        field.messages[kind] += sensors
        field.floods[community, kind] += 1
        if field.limits.control_costs:
            charge_floods(field, community)


@step
def charge_floods(field: Field, community: int) -> None:
    """The community's sensors pay for the floods that they have not paid for yet: to speak, and to hear each other."""
    group, limits = field.communities[community], field.limits
    for kind in range(FLOODS):
        times = int(field.floods[community, kind])
        if times == 0:
            continue
        field.floods[community, kind] = 0
        bits = limits.path_bits if kind == PATH else limits.election_bits if kind == ELECTION else limits.route_bits
        speak, hear = transmit_pj(limits.radio, bits, limits.broadcast_m), receive_pj(limits.radio, bits)
        for i in range(group.start, group.start + group.sensors):
            sensor = field.members[i]
            neighbors = int(field.sensors[sensor].end_edge - field.sensors[sensor].first_edge)
            charge(field, sensor, times * (speak + neighbors * hear))


@step
def is_over(field: Field) -> bool:
    """Whether the run ends with this slot: the last, or that of the first death; if so, all floods are paid for."""
    last = field.clock[0].slot == field.limits.slots - 1
    over = last or (field.limits.until_death and field.tally[0].died >= 0)
    if over:
        field.tally[0].over = True
        for community in range(field.tally[0].communities):
            charge_floods(field, community)
    return bool(over)
