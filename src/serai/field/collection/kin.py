"""The end of a slot in which dead sensors wake, whatever the protocol: docs/field/rules.md, "Waking".

All that were one community at the start are *kin*. When one of them wakes, all the living among them form communities
anew; in the next slot they are new to whoever is beside one of them.
"""

from serai.core.jit import step
from serai.field.collection.deaths import new_part, spread
from serai.field.engine.control import charge_floods
from serai.field.engine.state import NONE, Field


@step
def wake_sensors(field: Field) -> int:
    """Wake the sensors that died in an earlier slot and have harvested enough; how many, `woken` lists them."""
    power, slot, count = field.power, field.clock[0].slot, 0
    for sensor in range(len(power.woken)):
        here = field.sensors[sensor]
        if here.died == NONE or here.died == slot or here.left_pj < power.wake_pj[sensor]:
            continue
        nap = power.naps[field.tally[0].naps]
        field.tally[0].naps += 1
        nap.node, nap.since_s, nap.until_s = sensor, here.died, slot
        here.died, here.exhausted = NONE, False
        power.woken[count] = sensor
        count += 1
    return count


@step
def is_renewed(field: Field, kin: int) -> bool:
    """Whether these kin have formed anew in this slot already; if not, they are said to have, for the next one."""
    following = field.clock[0].slot + 1
    if field.power.renewed[kin] == following:
        return True
    field.power.renewed[kin] = field.tally[0].renewed = following
    return False


@step
def are_kin(field: Field, community: int, kin: int) -> bool:
    """Whether the community has sensors, and they are of these kin."""
    group = field.communities[community]
    return bool(group.origin == kin and group.sensors > 0)


@step
def form_anew(field: Field, kin: int) -> None:
    """The living of these kin are in communities again, as they touch; the first record is the kin's own."""
    power = field.power
    first, end = power.start[kin], power.start[kin + 1]
    for community in range(field.tally[0].communities):
        if are_kin(field, community, kin):
            charge_floods(field, community)  # while all who spoke are neighbours
        if field.communities[community].origin == kin:
            field.communities[community].sensors = 0
            field.communities[community].spare = community != kin
    for i in range(first, end):
        field.sensors[power.members[i]].community = NONE
        renew_edges(field, power.members[i])
    found, links = 0, field.communities[kin].sessions
    for i in range(first, end):
        sensor = power.members[i]
        if field.sensors[sensor].died == NONE and field.sensors[sensor].community == NONE:
            part = kin if found == 0 else new_part(field, kin)
            group = field.communities[part]
            group.start, group.place = first + found, 0
            for nth in range(group.meets):
                field.sessions[group.sessions + nth].links = field.sessions[links + nth].links + found
            group.sensors = spread(field, sensor, part)
            found += group.sensors
    for i in range(first, end):
        if field.sensors[power.members[i]].died == NONE:
            group = field.communities[field.sensors[power.members[i]].community]
            field.members[group.start + group.place] = power.members[i]
            group.place += 1


@step
def renew_edges(field: Field, sensor: int) -> None:
    """The sensor's neighbours are those of the start that live."""
    here, power = field.sensors[sensor], field.power
    here.end_edge = here.first_edge
    if here.died != NONE:
        return
    for n in range(power.edges[sensor], power.edges[sensor + 1]):
        if field.sensors[power.neighbors[n]].died == NONE:
            field.neighbors[here.end_edge], field.hop_pj[here.end_edge] = power.neighbors[n], power.hop_pj[n]
            here.end_edge += 1
