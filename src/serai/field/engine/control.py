"""Control messages: counted as they happen, their energy charged to the sensors.

In a flood every sensor of a community speaks once: what that costs a sensor depends on its living neighbours only. So
unless the battery feels control messages, the slots only count floods per community, and the sums are made when a
community changes and at the end.
"""

from serai.core.energy import receive_pj, transmit_pj
from serai.core.jit import step
from serai.field.engine.batteries import charge
from serai.field.engine.state import ELECTION, FLOODS, HELLO, PATH, REPLY, Field


@step
def say_hello(field: Field, heard: int) -> None:
    """A Hello: the listeners, so many of them, hear it and reply (CED 4.1 a)."""
    field.messages[HELLO] += 1
    field.messages[REPLY] += heard
    for i in range(heard):
        charge(field, field.listeners[i], field.hello_pj[field.listeners[i]])


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
        hear = receive_pj(limits.radio, bits)
        for i in range(group.start, group.start + group.sensors):
            sensor = field.members[i]
            speak = transmit_pj(limits.radio, bits, field.broadcast_m[sensor])
            neighbors = int(field.sensors[sensor].end_edge - field.sensors[sensor].first_edge)
            charge(field, sensor, times * (speak + neighbors * hear))
