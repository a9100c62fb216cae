"""From a world to the state of a run, and bigger pools when a run outgrows them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serai.core.energy import distance, transmit_pj
from serai.core.jit import kernel
from serai.core.progress import measured_by
from serai.field.engine.ledger import first_place
from serai.field.engine.state import (
    BITS,
    CLOCK,
    COMMUNITY,
    COPY,
    DROP,
    DROPS,
    FLOODS,
    LINK,
    MESSAGES,
    NONE,
    REACHABLE,
    RECEPTION,
    SENSOR,
    SESSION,
    SUBSCRIBER,
    TALLY,
    TRANSFER,
    UNCOUNTED,
    VISIT,
    Field,
    Limits,
    Records,
    records,
)
from serai.field.visits import Visits
from serai.field.world import World
from serai.world.grid import Grid


def lay_out(
    world: World, limits: Limits, silent_while_pausing: bool, copies: bool, last_receptions: bool = False
) -> Field:
    """The state at the start of a run.

    `copies`: whether the protocol uses the pool of copies and sessions at all; `last_receptions`: whether it asks when
    somebody received an event last.
    """
    sensors, subscribers = len(world.sensor_x), len(world.low)
    place, groups = lay_out_place(world, limits), community_records(world)
    visits = visit_records(world.visits)
    pairs = np.empty(0, np.int64)
    if copies:
        cells = place["cell_start"], place["cell_sensors"]
        near = communities_in_reach(*cells, world.communities.of_sensor, world.grid.columns, world.grid.rows)
        pairs = who_will_meet(visits, *near, len(groups), subscribers, silent_while_pausing)
    sessions, links = session_records(pairs, groups, subscribers)
    words = int(groups.words.max(initial=1))
    pool = first_guess(2 * sensors + len(world.event_sensor) // 8, limits.most_sent) if copies else 0
    return fill_pools(
        Field(
            limits=limits,
            clock=records(1, CLOCK),
            communities=groups,
            visits=visits,
            tracks=world.tracks,
            event_sensor=world.event_sensor,
            event_time=world.event_time_s,
            event_slot=np.ceil(world.event_time_s).astype(np.int32),
            event_values=world.event_values,
            low=world.low,
            high=world.high,
            subscribers=records(subscribers, SUBSCRIBER, cell=NONE, located=NONE, received_in=NONE, bag=NONE),
            sessions=sessions,
            meets_start=starts(sessions.subscriber, subscribers),
            meets=np.argsort(sessions.subscriber, kind="stable").astype(np.int32),
            now_with=np.full((subscribers, REACHABLE), NONE, np.int32),
            in_session=np.zeros((len(groups), words), np.int64),
            met=np.zeros((len(groups), words), np.int64),
            links=links,
            has_pending=np.zeros((sensors, words), np.int64),
            carrying=np.zeros((sensors, words), np.int64),
            copies=records(pool, COPY),
            pending=np.zeros((pool, words), np.int64),
            calendar=np.full(limits.slots, NONE, np.int32),
            line=np.zeros(sensors, np.int64),
            next_line=np.zeros(sensors, np.int32),
            exhausted=np.zeros(sensors, np.int32),
            arrived=np.zeros(pool, np.int32),
            within_reach=np.zeros(words, np.int64),
            open_sessions=np.zeros(words, np.int64),
            **place,
            spare_links=records(int(groups.sensors.max(initial=0)), LINK),
            floods=np.zeros((len(groups), FLOODS), np.int64),
            **lay_out_ledger(world, limits, last_receptions),
        )
    )


def lay_out_place(world: World, limits: Limits) -> dict[str, Any]:
    """What stands still: the fields of a state that only the sensors and the grid decide."""
    grid, communities = world.grid, world.communities
    sensors, cells = len(world.sensor_x), grid.columns * grid.rows
    cell_start, cell_sensors = sensors_by_cell(world.sensor_cell, cells)
    placed = sensor_records(world)
    return {
        "sensors": placed,
        "neighbors": communities.neighbors.copy(),  # they lose the dead
        "neighbor_member": placed.member[communities.neighbors],
        "hop_pj": hop_costs(world.sensor_x, world.sensor_y, communities.neighbor_start, communities.neighbors, limits),
        "members": communities.members.copy(),  # they are put in another order when communities part
        "cell_start": cell_start,
        "cell_sensors": cell_sensors,
        "tree_order": np.zeros(sensors, np.int32),
        "stamps": np.zeros(cells, np.int64),
        "path": np.zeros(grid.columns + grid.rows, np.int32),
        "near": np.zeros(REACHABLE, np.int32),
        "frontier": np.zeros(sensors, np.int32),
    }


def lay_out_ledger(world: World, limits: Limits, last_receptions: bool) -> dict[str, Any]:
    """What is counted: the fields of a state that a protocol only adds to."""
    events = len(world.event_sensor)
    rows = first_guess(events * min(len(world.low), 10), limits.most_received)
    return {
        "tally": records(1, TALLY, died=NONE),
        "receptions": records(rows, RECEPTION),
        "known": np.full(table_size(rows), NONE, np.int64),
        "known_last": np.empty(table_size(rows) if last_receptions else 0, np.int32),
        "transmissions": np.zeros(events, np.int64),
        "drops": np.zeros(len(DROPS), np.int64),
        "messages": np.zeros(len(MESSAGES), np.int64),
        "transfer_log": records(rows if limits.full_log else 0, TRANSFER),
        "drop_log": records(rows if limits.full_log else 0, DROP),
    }


def first_guess(expected: int, most_in_a_slot: int) -> int:
    """Records to begin with: what is expected, and room for the worst slot."""
    return expected + 2 * most_in_a_slot + 64


def table_size(rows: int) -> int:
    """The size of a hash table for so many pairs: a power of two, at most two thirds of it in use."""
    return 1 << (rows + rows // 2).bit_length()


def sensor_records(world: World) -> Records:
    """The sensors, nothing in their queues."""
    made = records(len(world.sensor_x), SENSOR, stored=NONE, waiting=NONE, scheduled=NONE, parent=NONE, died=NONE)
    made.left_pj = np.rint(world.battery_j * 1e12).astype(np.int64)
    made.x, made.y = world.sensor_x, world.sensor_y
    made.cell = world.sensor_cell
    made.column, made.row = world.sensor_cell % world.grid.columns, world.sensor_cell // world.grid.columns
    made.community = world.communities.of_sensor
    made.first_edge, made.end_edge = world.communities.neighbor_start[:-1], world.communities.neighbor_start[1:]
    start = world.communities.member_start
    made.member[world.communities.members] = np.arange(len(made)) - np.repeat(start[:-1], np.diff(start))
    return made


def community_records(world: World) -> Records:
    """The communities, without heads."""
    start = world.communities.member_start
    made = records(len(start) - 1, COMMUNITY, tree=NONE, head=NONE)
    made.start, made.sensors, made.cells = start[:-1], np.diff(start), world.communities.cells
    made.origin = np.arange(len(made))
    return made


def visit_records(visits: Visits) -> Records:
    """The visits, one record each."""
    made = records(len(visits.slot), VISIT)
    made.slot, made.subscriber, made.cell = visits.slot, visits.subscriber, visits.cell
    made.segment, made.moving = visits.segment, visits.moving
    return made


def session_records(pairs: NDArray[np.int64], groups: Records, subscribers: int) -> tuple[Records, Records]:
    """A session for every pair (community * subscribers + subscriber), sorted, and its links."""
    made = records(len(pairs), SESSION)
    made.community, made.subscriber = np.divmod(pairs, max(subscribers, 1))
    first = starts(made.community, len(groups))
    groups.sessions, groups.meets = first[:-1], np.diff(first)
    groups.words = -(-groups.meets // BITS)  # rounded up
    nth = np.arange(len(pairs)) - first[made.community]
    made.word, made.bit = nth // BITS, np.left_shift(1, nth % BITS)
    sizes = groups.sensors[made.community]
    made.links = np.cumsum(sizes) - sizes
    return made, records(int(sizes.sum()), LINK, relayed=NONE, layer=NONE, pending=UNCOUNTED)


def starts(groups: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Where each group begins when members are sorted by group."""
    start = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(groups, minlength=count), out=start[1:])
    return start


def sensors_by_cell(cells: NDArray[np.int32], count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The sensors in each cell: starts, and sensors by cell and number."""
    return starts(cells, count), np.argsort(cells, kind="stable").astype(np.int32)


def sensors_in_touch(cells: NDArray[np.int32], grid: Grid) -> NDArray[np.int64]:
    """How many sensors touch each cell."""
    crowd = np.bincount(cells, minlength=grid.rows * grid.columns).reshape(grid.rows, grid.columns)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(crowd, 1), (3, 3))
    counts: NDArray[np.int64] = around.sum(axis=(2, 3)).ravel()
    return counts


@kernel
def communities_in_reach(
    cell_start: NDArray[np.int32],
    cell_sensors: NDArray[np.int32],
    of_sensor: NDArray[np.int32],
    columns: int,
    rows: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The communities in touch with each cell, by number."""
    start = np.zeros(columns * rows + 1, np.int32)
    reach = np.empty(columns * rows * REACHABLE, np.int32)
    total = 0
    for cell in range(columns * rows):
        row, column = cell // columns, cell % columns
        for near_row in range(max(row - 1, 0), min(row + 2, rows)):
            for near_column in range(max(column - 1, 0), min(column + 2, columns)):
                near = near_row * columns + near_column
                if cell_start[near] == cell_start[near + 1]:
                    continue
                community = of_sensor[cell_sensors[cell_start[near]]]  # all sensors of a cell are in one
                i = total
                while i > start[cell] and reach[i - 1] > community:
                    i -= 1
                if i > start[cell] and reach[i - 1] == community:
                    continue
                for n in range(total, i, -1):
                    reach[n] = reach[n - 1]
                reach[i] = community
                total += 1
        start[cell + 1] = total
    return start, reach[:total].copy()


def who_will_meet(
    visits: Records,
    reach_start: NDArray[np.int32],
    reach: NDArray[np.int32],
    communities: int,
    subscribers: int,
    silent_while_pausing: bool,
) -> NDArray[np.int64]:
    """The pairs (community * subscribers + subscriber) that will ever meet, sorted: who walks where is known."""
    # Sorted by subscriber, so that one mark per community tells whether the pair is known.
    audible = visits.moving.astype(bool) | (not silent_while_pausing)
    heard = visits[audible]
    order = np.argsort(heard.subscriber, kind="stable")
    return np.sort(
        pairs_that_meet(heard.subscriber[order], heard.cell[order], reach_start, reach, communities, subscribers)
    )


@kernel
def pairs_that_meet(
    subscriber: NDArray[np.int32],
    cell: NDArray[np.int32],
    reach_start: NDArray[np.int32],
    reach: NDArray[np.int32],
    communities: int,
    subscribers: int,
) -> NDArray[np.int64]:
    """The pairs that meet, each once; the visits are sorted by subscriber."""
    last_met = np.full(communities, NONE, np.int64)
    pairs = np.empty(len(cell) * REACHABLE, np.int64)
    count = 0
    for i in range(len(cell)):
        for n in range(reach_start[cell[i]], reach_start[cell[i] + 1]):
            if last_met[reach[n]] != subscriber[i]:
                last_met[reach[n]] = subscriber[i]
                pairs[count] = np.int64(reach[n]) * subscribers + subscriber[i]
                count += 1
    return pairs[:count].copy()


@kernel
def hop_costs(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    neighbor_start: NDArray[np.int32],
    neighbors: NDArray[np.int32],
    limits: Limits,
) -> NDArray[np.int64]:
    """What sending one event to each neighbour costs, in picojoules."""
    costs = np.empty(len(neighbors), np.int64)
    for sensor in range(len(x)):
        for n in range(neighbor_start[sensor], neighbor_start[sensor + 1]):
            other = neighbors[n]
            costs[n] = transmit_pj(limits.radio, limits.bits, distance(x[sensor], y[sensor], x[other], y[other]))
    return costs


def drive(field: Field, advance: Callable[[Field, int], int]) -> Field:
    """Run a protocol's slots to the end (or to the first death), growing the pools whenever it asks for room."""
    clock, slots = field.clock, max(field.limits.slots, 1)
    with measured_by(lambda: float(clock[0].slot / slots)):
        reached = advance(field, 0)
        while not field.tally[0].over:
            field = grow(field)
            reached = advance(field, reached)
    return field


# ---- pools


def fill_pools(field: Field) -> Field:
    """Chain all copies of a new state into the list of free ones; all other records are in use."""
    chain_free(field.copies, 0)
    field.tally[0].free_copies = len(field.copies)
    field.tally[0].communities, field.tally[0].sessions = len(field.communities), len(field.sessions)
    return field


def chain_free(pool: Records, start: int) -> None:
    """Chain the records of a pool from `start` on, in order."""
    pool.next[start:] = np.arange(start + 1, len(pool) + 1)
    if len(pool) > start:
        pool.next[-1] = NONE


def grow(field: Field) -> Field:
    """The same state with every pool that is short made half as large again, or as large as it must be."""
    tally, limits = field.tally[0], field.limits
    # What `short_of_room` asks for: the worst that one slot can do, so that no pool is ever grown inside one.
    slot_rows = limits.most_sent + limits.most_received
    if len(field.copies) and tally.free_copies < slot_rows + limits.most_born:
        field = grow_copies(field, slot_rows + limits.most_born)
    if tally.unburied:
        field = grow_communities(field)
    rows = int(tally.receptions) + limits.most_received
    if rows > len(field.receptions) or 3 * rows > 2 * len(field.known):
        receptions = grown(field.receptions, rows)
        size = table_size(len(receptions))
        known, known_last = moved_table(field.known, field.known_last, len(field.subscribers), size)
        field = field._replace(receptions=receptions, known=known, known_last=known_last)
    if limits.full_log:
        transfers = int(tally.transfers) + limits.most_sent + limits.most_received * (2 + int(tally.longest))
        drops = int(tally.drops) + len(field.copies) + slot_rows + limits.most_born
        field = field._replace(transfer_log=grown(field.transfer_log, transfers), drop_log=grown(field.drop_log, drops))
    return field


def grow_copies(field: Field, least_free: int) -> Field:
    """The same state with more copies to be had: the new ones go to the front of the list of free ones."""
    old, tally = len(field.copies), field.tally[0]
    copies = grown(field.copies, old + least_free)
    chain_free(copies, old)
    copies.next[-1] = tally.free_copy
    tally.free_copy = old
    tally.free_copies += len(copies) - old
    return field._replace(
        copies=copies, pending=grown(field.pending, len(copies)), arrived=np.zeros(len(copies), np.int32)
    )


def grow_communities(field: Field) -> Field:
    """The same state with room for the communities and sessions that the deaths of one slot may make."""
    tally, dying = field.tally[0], field.sensors[field.exhausted[: field.tally[0].exhausted]]
    parts = (dying.end_edge - dying.first_edge).astype(np.int64)
    groups = int(tally.communities + parts.sum())
    sessions = int(tally.sessions + (parts * field.communities.meets[dying.community]).sum())
    per_group = {name: grown(getattr(field, name), groups) for name in ("communities", "in_session", "met", "floods")}
    return field._replace(sessions=grown(field.sessions, sessions), **per_group)


def grown(array: Any, least: int) -> Any:
    """The array with room for `least` entries: half as long again at least, if it must grow at all."""
    if least <= len(array):
        return array
    bigger = np.zeros((max(least, len(array) + len(array) // 2), *array.shape[1:]), array.dtype)
    bigger[: len(array)] = array
    return bigger.view(type(array))


@kernel
def moved_table(
    known: NDArray[np.int64], known_last: NDArray[np.int32], subscribers: int, size: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The hash table of pairs received, moved to one of another size."""
    moved, moved_last = np.full(size, NONE, np.int64), np.empty(size if len(known_last) > 0 else 0, np.int32)
    for old in range(len(known)):
        if known[old] == NONE:
            continue
        place = first_place(known[old] // subscribers, known[old] % subscribers, subscribers, size)
        while moved[place] != NONE:
            place = (place + 1) & (size - 1)
        moved[place] = known[old]
        if len(known_last) > 0:
            moved_last[place] = known_last[old]
    return moved, moved_last
