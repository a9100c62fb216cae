"""Control messages: counted as they happen, their energy charged to the sensors.

In a flood every sensor of a community speaks once: what that costs a sensor depends on its living neighbours only. So
unless the battery feels control messages, the slots only count floods per community, and the sums are made when a
community changes and at the end.
"""

import math

from serai.core.energy import distance, receive_pj, transmit_pj
from serai.core.jit import step
from serai.field.engine.batteries import charge
from serai.field.engine.flooding import find_speakers
from serai.field.engine.reach import in_touch
from serai.field.engine.state import ELECTION, FLOODS, HELLO, PATH, REPLY, ROUTE, Field

MAP_BITS = 16  # of each member: who it is and where it stands


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
def tell_path(field: Field, community: int, subscriber: int) -> None:
    """PATH goes through the community; in a pruned flood from its lowest sensor in touch with the subscriber."""
    if not field.limits.pruned_floods:
        flood(field, community, PATH)
        return
    group = field.communities[community]
    first = group.start
    while not in_touch(field, field.members[first], subscriber):
        first += 1
    field.tally[0].stamp += 1
    scratch = field.floods_now, field.frontier, field.speakers
    count = find_speakers(field, *scratch, field.members[first], field.tally[0].stamp)
    for i in range(count):
        speak(field, field.speakers[i], PATH, field.limits.path_bits)


@step
def speak(field: Field, sensor: int, kind: int, bits: float) -> None:
    """A sensor speaks once, as loud as it must, and all its neighbours hear it."""
    here, far_m = field.sensors[sensor], 0.0
    for n in range(here.first_edge, here.end_edge):
        other = field.sensors[field.neighbors[n]]
        far_m = max(far_m, distance(here.x, here.y, other.x, other.y))
        charge(field, field.neighbors[n], receive_pj(field.limits.radio, bits))
    field.messages[kind] += 1
    charge(field, sensor, transmit_pj(field.limits.radio, bits, far_m))


@step
def tell_layers(field: Field, community: int) -> None:
    """ROUTE: every sensor tells its layer; who knows the map works the layers out."""
    if not field.limits.pruned_floods:
        flood(field, community, ROUTE)


@step
def draw_map(field: Field, community: int) -> None:
    """Pruned floods need a map: every sensor passes it on, in as many messages of the size of ROUTE as it takes."""
    group = field.communities[community]
    if field.limits.pruned_floods and group.sensors > 1:
        messages = math.ceil(MAP_BITS * group.sensors / max(field.limits.route_bits, 1.0))
        for i in range(group.start, group.start + group.sensors):
            for _ in range(messages):
                speak(field, field.members[i], ROUTE, field.limits.route_bits)


@step
def draw_all_maps(field: Field) -> None:
    """At the start of a run every community draws its map."""
    if field.clock[0].slot == 0:
        for community in range(field.tally[0].communities):
            draw_map(field, community)


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


@step
def look_at_spending(field: Field, slot: int) -> None:
    """At the begin, middle and end of the steady part: note what each sensor has spent before this slot."""
    limits, nth = field.limits, field.tally[0].looks
    if slot != limits.steady_begin and slot != limits.steady_middle and slot != limits.steady_end:
        return
    charge_all_floods(field)
    for sensor in range(len(field.sensors)):
        field.spent_pj[nth, 0, sensor] = field.sensors[sensor].event_pj
        field.spent_pj[nth, 1, sensor] = field.sensors[sensor].control_pj
    field.tally[0].looks += 1


@step
def charge_all_floods(field: Field) -> None:
    """All communities pay for their floods."""
    for community in range(field.tally[0].communities):
        charge_floods(field, community)
