"""From a world to the state of a run of SERAI: where subscribers go, and everything else empty."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel
from serai.field.contacts import sensor_contacts
from serai.field.engine.place import most_listeners, starts
from serai.field.engine.state import BITS, NONE, Field, Records, records
from serai.field.serai_parts.settings import PRICES, RING, Rules, Settings, price_bounds, price_of
from serai.field.serai_parts.state import (
    ASSIGNMENT,
    CARRIED,
    COPY,
    FOUND,
    GOAL,
    GROUP,
    LEG,
    LOAD,
    NEAR,
    NEVER,
    NODE,
    POST,
    REACH,
    SESSION,
    TALLY,
    WALKER,
    Serai,
)
from serai.field.visits import order_of_rows
from serai.field.world import World, who_hears_whom
from serai.world.mobility import Tracks
from serai.world.ranges import SensorContacts

MOST_DISTANCES = 1 << 24  # entries: 128 MiB
LONGEST_LEG_S = 10_000_000


# ---- where subscribers go


class Paths(NamedTuple):
    """The legs of all subscribers, and which sensors they pass on each."""

    legs: Records  # by subscriber and time
    start: NDArray[np.int32]  # of each subscriber's legs
    reach: Records  # by leg, community, sensor


def paths_of(world: World, slots: int) -> Paths:
    """Every leg (with the pause at its end, or the time nowhere) with its contacts, in whole seconds.

    Legs that begin before the run ends are followed to their own ends: where a subscriber goes does not depend on
    how long anybody watches.
    """
    start, first, last = legs_of(world.tracks, world.legs, slots)
    horizon = max(slots, min(int(np.ceil(world.tracks.time_s.max(initial=0.0))) + 2, slots + LONGEST_LEG_S))
    places = world.sensor_x, world.sensor_y
    ahead = world._replace(
        **who_hears_whom(world.grid, places, world.ranges, world.tracks, horizon, world.people.turning_m)
    )
    contacts = sensor_contacts(ahead, horizon)
    rows = cut_by_legs(contacts, start, first, last, horizon)
    leg, sensor = rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int32)
    rows = rows[order_of_rows(leg, world.communities.of_sensor[sensor], sensor)]
    reach = records(len(rows), REACH)
    reach.sensor, reach.begins, reach.ends = rows[:, 1], rows[:, 2], rows[:, 3]
    if len(rows):
        begins = np.flatnonzero(np.append(True, (np.diff(rows[:, :2], axis=0) != 0).any(axis=1)))
        times = np.diff(np.append(begins, len(rows)))
        reach.first = np.repeat(np.minimum.reduceat(rows[:, 2], begins), times)
        reach.last = np.repeat(np.maximum.reduceat(rows[:, 3], begins), times)
    legs = records(len(first), LEG)
    begin = starts(leg, len(first))
    legs.first, legs.last, legs.rows, legs.rows_end = first, last, begin[:-1], begin[1:]
    return Paths(legs, start, reach)


def legs_of(
    tracks: Tracks, legs: NDArray[np.int32], slots: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Where each subscriber's legs begin in a list of all of them, and the first and last second of each.

    Left out are legs that begin after the run, and those that end before their first whole second.
    """
    points, subscribers = len(tracks.time_s), len(tracks.start) - 1
    owner = np.repeat(np.arange(subscribers), np.diff(tracks.start))
    is_first, leads_away, comes_back = np.zeros(points, bool), np.zeros(points, bool), np.zeros(points, bool)
    is_first[tracks.start[:-1]] = True
    comes_back[1:] = np.isnan(tracks.x_m[:-1]) & ~np.isnan(tracks.x_m[1:])  # nobody could know of it before
    leads_away[:-1] = np.abs(np.diff(tracks.x_m)) + np.abs(np.diff(tracks.y_m)) > 0  # not from or to nowhere
    leads_away &= legs == np.arange(points)
    leads_away[tracks.start[1:] - 1] = False  # where the track ends
    begins = np.flatnonzero(is_first | leads_away | comes_back)
    owner, first = owner[begins], np.ceil(tracks.time_s[begins]).astype(np.int64)
    first = np.where(is_first[begins], 0, np.maximum(first, 0))
    is_last = np.append(owner[1:] != owner[:-1], [True] * min(len(owner), 1))
    last = np.where(is_last, NEVER, np.append(first[1:], [0] * min(len(owner), 1)) - 1)
    seen = (first <= last) & (first < slots)
    return starts(owner[seen].astype(np.int32), subscribers), first[seen], last[seen]


@kernel
def cut_by_legs(
    contacts: SensorContacts,
    start: NDArray[np.int32],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    horizon: int,
) -> NDArray[np.int64]:
    """Rows leg, sensor, first and last second of contact within the leg; what goes on at the horizon never ends."""
    rows, count = np.empty((len(contacts.sensor) + 1024, 4), np.int64), 0
    for i in range(len(contacts.sensor)):
        subscriber = contacts.subscriber[i]
        begin, end = int(contacts.start_s[i]), int(contacts.end_s[i]) - 1
        if end == horizon - 1:
            end = NEVER
        low, high = start[subscriber], start[subscriber + 1]  # the leg of its first second: a binary search
        while high - low > 1:
            middle = (low + high) // 2
            if first[middle] <= begin:
                low = middle
            else:
                high = middle
        for leg in range(low, start[subscriber + 1]):
            if first[leg] > end:
                break
            if last[leg] < begin:  # it begins after the last leg that begins in the run
                continue
            if count == len(rows):
                more = np.empty((2 * count, 4), np.int64)
                for row in range(count):
                    for k in range(4):
                        more[row, k] = rows[row, k]
                rows = more
            rows[count, 0], rows[count, 1] = leg, contacts.sensor[i]
            rows[count, 2], rows[count, 3] = max(begin, first[leg]), min(end, last[leg])
            count += 1
    return rows[:count].copy()


# ---- the state


def lay_out_serai(world: World, field: Field, settings: Settings, rules: Rules) -> Serai:
    """The state at the start of a run; no pool has room for anything yet."""
    sensors, subscribers, words = len(world.sensor_x), rules.subscribers, rules.words
    paths = paths_of(world, field.limits.slots)
    widest = int(field.communities.sensors.max(initial=1))
    crowd = most_listeners(world)
    own = np.zeros((subscribers, words), np.int64)
    for subscriber in range(subscribers):
        own[subscriber, subscriber // BITS] = 1 << (subscriber % BITS)
    return Serai(
        field=field,
        rules=rules,
        tally=records(1, TALLY, copies=NONE, maps=NONE, carried=NONE, loads=NONE, names=len(field.communities)),
        posts=post_records(world, field),
        groups=records(len(field.communities), GROUP, sessions=NONE, name=np.arange(len(field.communities))),
        subscribed=np.zeros((len(field.communities), words), np.int64),
        price_at=np.array(price_bounds(settings)),
        prices=np.array([price_of(step) for step in range(PRICES)], np.int64),
        distances=np.empty((rows_of_distances(sensors, widest), widest), np.int64),
        row_owner=np.full(rows_of_distances(sensors, widest), NONE, np.int32),
        ring=np.zeros((sensors, RING), np.int64),
        passing=np.zeros((sensors, words), np.int64),
        legs=paths.legs,
        reach=paths.reach,
        walkers=walker_records(paths, subscribers),
        near=records(subscribers * 2 * crowd, NEAR).reshape(subscribers, 2 * crowd),
        learned=own,
        sessions=records(0, SESSION),
        session_table=np.zeros(0, np.int32),
        copies=records(0, COPY),
        wanted=np.zeros((0, words), np.int64),
        settled=np.zeros((0, words), np.int64),
        asked=np.zeros((sensors, words), np.int64),
        calendar=np.full(field.limits.slots // rules.clear_interval + 2, NONE, np.int32),
        maps=np.zeros((0, words), np.int64),
        next_map=np.zeros(0, np.int32),
        carried=records(0, CARRIED),
        served=np.zeros((0, max(rules.deposits, 1)), np.int32),
        loads=records(0, LOAD),
        fresh=np.zeros(0, np.int32),
        assigned=records(0, ASSIGNMENT),
        cost=np.zeros(widest, np.int64),
        root=np.zeros(widest, np.int32),
        line=np.zeros(len(field.neighbors) + 1, np.int64),
        way=np.zeros(widest + 1, np.int32),
        offer_way=np.zeros(widest + 1, np.int32),
        found=records(1, FOUND),
        goals=records(max(subscribers, 1), GOAL),
        tree=records(widest + 1, NODE),
    )


def rows_of_distances(sensors: int, widest: int) -> int:
    """For how many sensors at a time the distances to all members are kept."""
    return min(sensors, max(MOST_DISTANCES // widest, 1))


def post_records(world: World, field: Field) -> Records:
    """The sensors, nothing in their queues, their prices as low as can be."""
    made = records(len(world.sensor_x), POST, copies=NONE, last=NONE, row=NONE, row_epoch=NONE, price=price_of(0))
    made.battery_pj = field.sensors.left_pj
    made.place[np.lexsort((field.sensors.row, field.sensors.column))] = np.arange(len(made))
    first, end = field.sensors.first_edge, field.sensors.end_edge
    owner = np.repeat(np.arange(len(made)), end - first)
    east_m, north_m = (place[owner] - place[field.neighbors] for place in (world.sensor_x, world.sensor_y))
    np.maximum.at(made.far_m, owner, np.sqrt(east_m * east_m + north_m * north_m))
    return made


def walker_records(paths: Paths, subscribers: int) -> Records:
    """The subscribers at the start of their first leg, knowing nothing of communities."""
    made = records(subscribers, WALKER, least_at=NONE, met=NONE, bag=NONE, bag_end=NONE, loads=NONE, loads_end=NONE)
    made.leg, made.least = paths.start[:-1], np.inf
    return made
