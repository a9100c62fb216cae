"""When sensors and communities are within reach of a subscriber, by cells or in metres.

What can happen in a run happens at whole seconds: these are the contacts that bounds and losses are worked out from.
For the log, contacts in metres are also found to the exact time.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel, rule
from serai.field.visits import (
    CommunityContacts,
    Reach,
    community_contacts,
    order_of_rows,
    sensor_contacts_by_cell,
    slots_of,
)
from serai.field.world import World
from serai.world.grid import Floats, Numbers
from serai.world.mobility import Tracks, is_leg
from serai.world.ranges import SensorContacts, sensor_contacts_by_range
from serai.world.tables import with_room

_IN_REACH_OF_CELL = 9  # communities around a cell: no more than there are cells


def sensor_contacts(
    world: World, slots: int, reach: Reach = "touching", silent_while_pausing: bool = False
) -> SensorContacts:
    """When each sensor and a subscriber hear each other, in whole seconds; on legs only with `silent_while_pausing`."""
    if world.ranges is None:
        return sensor_contacts_by_cell(
            world.visits, world.grid, world.sensor_cell, slots, reach, silent_while_pausing=silent_while_pausing
        )
    passes = world.passes
    found = np.flatnonzero(passes.first < slots)
    end = np.minimum(passes.last[found] + 1, slots)
    rows = SensorContacts(passes.subscriber[found], passes.sensor[found], passes.first[found], end)
    if silent_while_pausing:
        rows = _on_legs(rows, _legs_of(world.tracks.writable(), slots, False))
    return _in_order(rows._replace(start_s=rows.start_s.astype(np.int32), end_s=rows.end_s.astype(np.int32)))


def exact_contacts(world: World, duration_s: float, silent_while_pausing: bool = False) -> SensorContacts:
    """The same to the exact time, where reach is in metres."""
    assert world.ranges is not None
    rows = sensor_contacts_by_range(
        world.tracks, world.sensor_x, world.sensor_y, world.ranges.passing_m, float(duration_s)
    )
    if silent_while_pausing:
        rows = _on_legs(rows, _legs_of(world.tracks.writable(), int(duration_s), True))
    return _in_order(rows)


def contacts_with_communities(world: World, slots: int, silent_while_pausing: bool = False) -> CommunityContacts:
    """When at least one sensor of each community and a subscriber hear each other, in whole seconds."""
    if world.ranges is None:
        return community_contacts(
            world.visits, world.grid, world.sensor_cell, world.communities, slots, silent_while_pausing
        )
    found = sensor_contacts(world, slots, silent_while_pausing=silent_while_pausing)
    community = world.communities.of_sensor[found.sensor]
    order = np.lexsort((found.start_s, community, found.subscriber))
    rows = _merged(np.column_stack((found.subscriber, community, found.start_s, found.end_s))[order].astype(np.int32))
    by_start = order_of_rows(rows[:, 2], rows[:, 0], rows[:, 1])
    return CommunityContacts(*rows[by_start].T.copy())


def most_communities_in_contact(world: World) -> int:
    """With how many communities a subscriber is in contact at a time, at most."""
    return _IN_REACH_OF_CELL if world.ranges is None else max(world.passes.most, 1)


def _in_order(rows: SensorContacts) -> SensorContacts:
    order = np.lexsort((rows.sensor, rows.subscriber, rows.start_s))
    return SensorContacts._make(column[order] for column in rows)


@kernel
def _merged(rows: Numbers) -> Numbers:
    """Rows subscriber, community, start, end, that stand in this order, those that overlap or touch made one."""
    merged, count = rows.copy(), 0
    for row in range(len(rows)):
        last = merged[count - 1] if count > 0 else merged[0]
        same = count > 0 and last[0] == rows[row, 0] and last[1] == rows[row, 1]
        if same and rows[row, 2] <= last[3]:
            last[3] = max(last[3], rows[row, 3])
            continue
        for column in range(4):
            merged[count, column] = rows[row, column]
        count += 1
    return merged[:count].copy()


class _Legs(NamedTuple):
    """When each subscriber is on its way, legs without a pause between them made one: of p, start[p] : start[p + 1]."""

    start: NDArray[np.int64]
    begin_s: Floats
    end_s: Floats


def _legs_of(tracks: Tracks, slots: int, exact: bool) -> _Legs:
    rows, start = _find_legs(tracks, slots, exact)
    begin_s, end_s = rows.T.copy()
    return _Legs(start, begin_s, end_s)


@kernel
def _find_legs(tracks: Tracks, slots: int, exact: bool) -> tuple[Floats, NDArray[np.int64]]:
    """Rows begin, end, and where those of each subscriber start: in slots, or exact times."""
    start = np.zeros(tracks.start.size, np.int64)
    rows, count = np.empty((1024, 2)), 0
    for subscriber in range(tracks.start.size - 1):
        points = tracks.start[subscriber], tracks.start[subscriber + 1]
        start[subscriber] = count
        for segment in range(points[0], points[1]):
            if not is_leg(tracks, subscriber, segment):
                continue
            first, last = slots_of(tracks, points, segment, slots)
            begin_s, end_s = float(first), float(last)
            if exact:
                begin_s, end_s = 0.0 if segment == points[0] else tracks.time_s[segment], tracks.time_s[segment + 1]
            if begin_s >= end_s:
                continue
            if count > start[subscriber] and rows[count - 1, 1] == begin_s:
                rows[count - 1, 1] = end_s
                continue
            rows = with_room(rows, count)
            rows[count, 0], rows[count, 1] = begin_s, end_s
            count += 1
    start[-1] = count
    return rows[:count], start


def _on_legs(contacts: SensorContacts, legs: _Legs) -> SensorContacts:
    """The parts of contacts in which the subscriber is on its way."""
    columns = [np.ascontiguousarray(column, np.float64) for column in contacts]
    rows = _cut_to_legs(np.column_stack(columns), legs)
    subscriber, sensor, start_s, end_s = rows.T.copy()
    return SensorContacts(subscriber.astype(np.int32), sensor.astype(np.int32), start_s, end_s)


@kernel
def _cut_to_legs(contacts: Floats, legs: _Legs) -> Floats:
    """Rows subscriber, sensor, start, end of what lies within legs."""
    rows, count = np.empty((1024, 4)), 0
    for contact in contacts:
        subscriber = int(contact[0])
        leg = _first_leg_after(contact[2], legs, subscriber)
        while leg < legs.start[subscriber + 1] and legs.begin_s[leg] < contact[3]:
            rows = with_room(rows, count)
            rows[count, 0], rows[count, 1] = contact[0], contact[1]
            rows[count, 2], rows[count, 3] = max(contact[2], legs.begin_s[leg]), min(contact[3], legs.end_s[leg])
            count += 1
            leg += 1
    return rows[:count]


@rule
def _first_leg_after(time_s: float, legs: _Legs, subscriber: int) -> int:
    """The subscriber's first leg that ends after a time."""
    low, high = legs.start[subscriber], legs.start[subscriber + 1]
    while low < high:
        middle = (low + high) // 2
        if legs.end_s[middle] <= time_s:
            low = middle + 1
        else:
            high = middle
    return int(low)
