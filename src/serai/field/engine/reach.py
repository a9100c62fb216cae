"""Who hears whom: by cells, or in metres. Whatever asks, asks here; docs/field/rules.md, "Reach".

By cells everything follows from the cell that a node is in. In metres it was found beforehand, from second to second,
which sensors pass within range of each subscriber (`serai.field.passes`): those are looked up.
"""

import math

from serai.core.jit import step
from serai.field.engine.batteries import is_dead
from serai.field.engine.state import Field, Records
from serai.field.visits import path_cells
from serai.world.mobility import position_at


@step
def locate(field: Field, subscriber: int) -> None:
    """Work out where the subscriber is in this slot, once a slot."""
    who, t = field.subscribers[subscriber], field.clock[0].slot
    if who.located == t:  # one division a slot, not one for each event it is sent
        return
    who.segment = segment_at(field, subscriber, who.segment, t)
    who.x, who.y = position_at(field.tracks, subscriber, who.segment, t)
    who.located = t


@step
def segment_at(field: Field, subscriber: int, segment: int, slot: int) -> int:
    """The segment of the subscriber's track in a slot, at or after another one."""
    last = field.tracks.start[subscriber + 1] - 1
    while segment < last and field.tracks.time_s[segment + 1] <= slot:
        segment += 1
    return segment


# ---- now


@step
def in_touch(field: Field, sensor: int, subscriber: int) -> bool:
    """Whether the sensor and the subscriber hear each other in this slot."""
    here, there = field.sensors[sensor], field.subscribers[subscriber]
    if field.limits.in_metres:
        locate(field, subscriber)
        dx, dy, reach = here.x - there.x, here.y - there.y, field.passing_m[sensor]
        return bool(dx * dx + dy * dy <= reach * reach)
    return bool(abs(here.column - there.column) <= 1 and abs(here.row - there.row) <= 1)


@step
def come_to(field: Field, visit: Records) -> None:
    """The subscriber of a visit is in its place from now on."""
    who, grid = field.subscribers[visit.subscriber], field.limits.grid
    if not field.limits.in_metres:
        who.cell, who.column, who.row = visit.cell, visit.cell % grid.columns, visit.cell // grid.columns
        return
    mine, kept = field.in_range[visit.subscriber], 0
    for i in range(who.in_range):
        if field.passes[mine[i]].last >= visit.slot:
            mine[kept] = mine[i]
            kept += 1
    end = field.pass_start[visit.subscriber + 1]
    while who.next_pass < end and field.passes[who.next_pass].first <= visit.slot:
        mine[kept] = who.next_pass
        kept += 1
        who.next_pass += 1
    who.in_range = kept


@step
def anybody_in_range(field: Field, subscriber: int) -> bool:
    """Whether there is a sensor, dead or alive, that may answer a Hello; by cells only who is nowhere knows of none."""
    who = field.subscribers[subscriber]
    return bool(who.in_range > 0 if field.limits.in_metres else who.row >= 0)


@step
def find_listeners(field: Field, subscriber: int) -> int:
    """How many living sensors hear the subscriber in its place; `listeners` lists them."""
    who, found = field.subscribers[subscriber], 0
    if field.limits.in_metres:
        for i in range(who.in_range):
            sensor = field.passes[field.in_range[subscriber, i]].sensor
            if not is_dead(field, sensor):
                field.listeners[found] = sensor
                found += 1
        return found
    grid = field.limits.grid
    for row in range(max(who.row - 1, 0), min(who.row + 2, grid.rows)):
        for column in range(max(who.column - 1, 0), min(who.column + 2, grid.columns)):
            cell = row * grid.columns + column
            for i in range(field.cell_start[cell], field.cell_start[cell + 1]):
                if not is_dead(field, field.cell_sensors[i]):
                    field.listeners[found] = field.cell_sensors[i]
                    found += 1
    return found


@step
def find_reach(field: Field, heard: int) -> int:
    """How many communities the listeners, so many of them, are of; `near` lists them."""
    found = 0
    for i in range(heard):
        community = field.sensors[field.listeners[i]].community
        if not is_near(field, community, found):
            field.near[found] = community
            found += 1
    return found


@step
def is_near(field: Field, community: int, count: int) -> bool:
    """Whether the community is among the first so many that are near."""
    for i in range(count):
        if field.near[i] == community:
            return True
    return False


# ---- on the way


@step
def note_zone(field: Field, session: int, in_range_only: bool) -> None:
    """Z is that of where the session's subscriber is now, and of where it is going unless `in_range_only`."""
    at = field.sessions[session]
    who = field.subscribers[at.subscriber]
    if not field.limits.in_metres:
        locate(field, at.subscriber)
        at.zone_x, at.zone_y, at.zone_segment, at.zone_cell = who.x, who.y, who.segment, who.cell
        return
    field.tally[0].stamp += 1
    at.zone = field.tally[0].stamp
    for i in range(who.in_range):
        enter_zone(field, session, field.passes[field.in_range[at.subscriber, i]].sensor)
    if in_range_only or not who.moving:
        return
    until, n = end_of_leg(field, at.subscriber), who.next_pass
    while n < field.pass_start[at.subscriber + 1] and field.passes[n].first <= until:
        enter_zone(field, session, field.passes[n].sensor)
        n += 1


@step
def enter_zone(field: Field, session: int, sensor: int) -> None:
    """The sensor is in Z, if it is of the session's community."""
    at, here = field.sessions[session], field.sensors[sensor]
    if here.community == at.community:
        field.zones[at.links + here.member] = at.zone


@step
def end_of_leg(field: Field, subscriber: int) -> int:
    """The first slot at or after the end of the leg that the subscriber is on."""
    who, tracks = field.subscribers[subscriber], field.tracks
    point = last_point(field, subscriber, who.segment)
    return int(math.ceil(tracks.time_s[point]))


@step
def last_point(field: Field, subscriber: int, segment: int) -> int:
    """The point where the leg of a segment ends."""
    last = field.tracks.start[subscriber + 1] - 1
    point = segment
    while point < last and field.legs[point] == field.legs[segment]:
        point += 1
    return point


@step
def draw_zone(field: Field, session: int, in_range_only: bool) -> int:
    """The stamp by which `in_zone` knows the sensors of Z, as it was noted."""
    at, tracks = field.sessions[session], field.tracks
    if field.limits.in_metres:
        return int(at.zone)
    field.tally[0].stamp += 1  # a new stamp each time: no need to wipe out the old zone
    stamp = field.tally[0].stamp
    end = at.zone_segment if in_range_only else last_point(field, at.subscriber, at.zone_segment)
    if end == at.zone_segment:  # nowhere to go
        mark_around(field, at.zone_cell, stamp)
    x, y = at.zone_x, at.zone_y
    for point in range(at.zone_segment + 1, end + 1):
        count = path_cells(x, y, tracks.x_m[point], tracks.y_m[point], field.limits.grid, field.path)
        for i in range(count):
            mark_around(field, field.path[i], stamp)
        x, y = tracks.x_m[point], tracks.y_m[point]
    return int(stamp)


@step
def mark_around(field: Field, cell: int, stamp: int) -> None:
    """From these cells a sensor hears a subscriber in this one."""
    grid = field.limits.grid
    column, row = cell % grid.columns, cell // grid.columns
    for near_row in range(max(row - 1, 0), min(row + 2, grid.rows)):
        for near_column in range(max(column - 1, 0), min(column + 2, grid.columns)):
            field.stamps[near_row * grid.columns + near_column] = stamp


@step
def in_zone(field: Field, session: int, member: int, stamp: int) -> bool:
    """Whether a member of the session's community is in Z."""
    at = field.sessions[session]
    if field.limits.in_metres:
        return bool(field.zones[at.links + member] == stamp)
    sensor = field.members[field.communities[at.community].start + member]
    return bool(field.stamps[field.sensors[sensor].cell] == stamp)
