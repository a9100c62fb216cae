"""From a world to the state of a run, and bigger pools when a run outgrows them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serai.core.harvest import HOURS
from serai.core.jit import kernel
from serai.core.progress import measured_by
from serai.field.engine.ledger import first_place
from serai.field.engine.place import lay_out_place, most_communities, starts, who_will_meet
from serai.field.engine.state import (
    BITS,
    CLOCK,
    COMMUNITY,
    COPY,
    DROP,
    DROPS,
    FLOODS,
    LINK,
    LOOKS,
    MESSAGES,
    NAP,
    NONE,
    PASS,
    RECEPTION,
    SESSION,
    SUBSCRIBER,
    TALLY,
    TRANSFER,
    UNCOUNTED,
    VISIT,
    Field,
    Limits,
    Power,
    Records,
    records,
)
from serai.field.engine.watch import blank_watch, with_room
from serai.field.passes import Passes
from serai.field.visits import Visits
from serai.field.world import World


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
    pairs = who_will_meet(world, visits, place, silent_while_pausing) if copies else np.empty(0, np.int64)
    sessions, links = session_records(pairs, groups, subscribers)
    words = int(groups.words.max(initial=1))
    pool = first_guess(2 * sensors + len(world.event_sensor) // 8, limits.most_sent) if copies else 0
    return fill_pools(
        Field(
            limits=limits,
            clock=records(1, CLOCK),
            communities=groups,
            visits=visits,
            passes=pass_records(world.passes),
            pass_start=world.passes.start,
            tracks=world.tracks,
            legs=world.legs,
            event_sensor=world.event_sensor,
            event_time=world.event_time_s,
            event_slot=np.ceil(world.event_time_s).astype(np.int32),
            event_values=world.event_values,
            low=world.low,
            high=world.high,
            subscribers=subscriber_records(world),
            sessions=sessions,
            meets_start=starts(sessions.subscriber, subscribers),
            meets=np.argsort(sessions.subscriber, kind="stable").astype(np.int32),
            now_with=np.full((subscribers, most_communities(world)), NONE, np.int32),
            in_range=np.full((subscribers, world.passes.most), NONE, np.int32),
            in_session=np.zeros((len(groups), words), np.int64),
            met=np.zeros((len(groups), words), np.int64),
            links=links,
            zones=np.zeros(0 if world.ranges is None else len(links), np.int64),
            has_pending=np.zeros((sensors, words), np.int64),
            carrying=np.zeros((sensors, words), np.int64),
            copies=records(pool, COPY),
            pending=np.zeros((pool, words), np.int64),
            calendar=np.full(limits.slots, NONE, np.int32),
            line=np.zeros(sensors, np.int64),
            next_line=np.zeros(sensors, np.int32),
            exhausted=np.zeros(sensors, np.int32),
            failing=world.failing,
            idle_pj=world.idle_pj if world.feels_time else np.empty(0, np.int64),
            idled_pj=np.zeros(sensors if world.feels_time else 0, np.int64),
            power=lay_out_power(world, place["hop_pj"]),
            arrived=np.zeros(pool, np.int32),
            within_reach=np.zeros(words, np.int64),
            open_sessions=np.zeros(words, np.int64),
            **place,
            spare_links=records(int(groups.sensors.max(initial=0)), LINK),
            floods=np.zeros((len(groups), FLOODS), np.int64),
            spent_pj=np.zeros((LOOKS, 2, sensors), np.int64),
            watch=blank_watch(sensors, subscribers, most_communities(world), limits.full_log),
            **lay_out_ledger(world, limits, last_receptions),
        )
    )


def lay_out_power(world: World, hop_pj: NDArray[np.int64]) -> Power:
    """Who harvests what, and what waking needs to know of the start; empty where nobody harvests."""
    sensors = 0 if world.harvest is None else len(world.sensor_x)
    pj = np.empty((0, HOURS), np.int64) if world.harvest is None else world.harvest.pj
    wake_pj = np.empty(0, np.int64) if world.harvest is None else world.harvest.wake_pj(world.battery_j)
    groups = world.communities
    return Power(
        harvest_pj=pj,
        capacity_pj=np.rint(world.battery_j[:sensors] * 1e12).astype(np.int64),
        wake_pj=wake_pj,
        harvested_pj=np.zeros(sensors, np.int64),
        wasted_pj=np.zeros(sensors, np.int64),
        woken=np.zeros(sensors, np.int32),
        naps=records(2 * sensors, NAP),
        visit=records(1, VISIT),
        kin=groups.of_sensor[:sensors].astype(np.int32),
        renewed=np.full(len(groups.size) if sensors else 0, NONE, np.int64),
        members=groups.members[:sensors].astype(np.int32),
        start=groups.member_start.astype(np.int32),
        neighbors=groups.neighbors.astype(np.int32).copy() if sensors else np.empty(0, np.int32),
        edges=groups.neighbor_start.astype(np.int32),
        hop_pj=hop_pj.copy() if sensors else np.empty(0, np.int64),
    )


def with_spare_parts(field: Field) -> Field:
    """The state with a record for every community that sensors could form by waking in one slot."""
    if not len(field.power.woken):
        return field
    tally = field.tally[0]
    groups, sessions = int(tally.communities) + len(field.sensors), int(tally.sessions) + len(field.links)
    per_group = {name: grown(getattr(field, name), groups) for name in ("communities", "in_session", "met", "floods")}
    return field._replace(sessions=grown(field.sessions, sessions), **per_group)


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
        "message_bits": np.zeros(0, np.int64),
        "transfer_log": records(rows if limits.full_log else 0, TRANSFER),
        "drop_log": records(rows if limits.full_log else 0, DROP),
    }


def first_guess(expected: int, most_in_a_slot: int) -> int:
    """Records to begin with: what is expected, and room for the worst slot."""
    return expected + 2 * most_in_a_slot + 64


def table_size(rows: int) -> int:
    """The size of a hash table for so many pairs: a power of two, at most two thirds of it in use."""
    return 1 << (rows + rows // 2).bit_length()


def community_records(world: World) -> Records:
    """The communities, without heads."""
    start = world.communities.member_start
    made = records(len(start) - 1, COMMUNITY, tree=NONE, head=NONE)
    made.start, made.sensors, made.places = start[:-1], np.diff(start), world.communities.size
    made.origin = np.arange(len(made))
    return made


def visit_records(visits: Visits) -> Records:
    """The visits, one record each."""
    made = records(len(visits.slot), VISIT)
    made.slot, made.subscriber, made.cell = visits.slot, visits.subscriber, visits.cell
    made.segment, made.leg, made.moving = visits.segment, visits.leg, visits.moving
    made.came, made.went = visits.came, visits.went
    return made


def pass_records(passes: Passes) -> Records:
    """The passes, one record each."""
    made = records(len(passes.sensor), PASS)
    made.sensor, made.first, made.last = passes.sensor, passes.first, passes.last
    return made


def subscriber_records(world: World) -> Records:
    """The subscribers, before their first visit."""
    made = records(len(world.low), SUBSCRIBER, cell=NONE, located=NONE, received_in=NONE, bag=NONE)
    made.next_pass, made.carries = world.passes.start[:-1], world.people.carries
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
    return with_spare_parts(field)


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
    if len(field.power.woken):
        naps = grown(field.power.naps, int(tally.naps) + len(field.sensors))
        field = with_spare_parts(field._replace(power=field.power._replace(naps=naps)))
    if limits.full_log:
        transfers = int(tally.transfers) + limits.most_sent + limits.most_received * (2 + int(tally.longest))
        drops = int(tally.drops) + len(field.copies) + slot_rows + limits.most_born
        field = field._replace(transfer_log=grown(field.transfer_log, transfers), drop_log=grown(field.drop_log, drops))
        field = field._replace(watch=with_room(field.watch, len(field.sensors), len(field.subscribers), grown))
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
