"""Queues of copies: the pool they come from, the stored list, heaps of relayed copies, the calendar of expiry.

Queue order (CED 4.2, CET 3.3) is one rule, `goes_first`. The stored list of a sensor is kept in that order, since a
turn looks through it for copies that can go. Of relayed copies only the first of each session is ever asked for, and
they come and go at every hop: a pairing heap inserts with one comparison and needs no memory but two links of the copy.
Every copy is also in the calendar, a list for each slot, so that expiry looks at nothing but what expires.
"""

import math

import numpy as np

from serai.core.jit import rule, step
from serai.field.engine.state import EXPIRED_COPY, FREE, NONE, STORED, Field

COUNT_SHIFT = 32  # bits of a rank that belong to the event


@step
def goes_first(field: Field, one: int, other: int) -> bool:
    """Whether copy `one` stands before copy `other`: fewer deliveries, then younger, then stored, then older serial."""
    a, b = field.copies[one], field.copies[other]
    if a.rank != b.rank:
        return bool(a.rank < b.rank)
    # Same event and count: a source and a relay of it in one queue.
    if (a.state == STORED) != (b.state == STORED):
        return bool(a.state == STORED)
    return bool(a.serial < b.serial)


@rule
def rank_of(count: int, event: int) -> int:
    """Count ascending, then age ascending, as one number: events are numbered by birth, so the younger is larger."""
    return int((np.int64(count) << COUNT_SHIFT) - event)


@rule
def count_of(rank: int, event: int) -> int:
    """The delivery count that is part of a rank."""
    return int((rank + event) >> COUNT_SHIFT)


@step
def expiry_slot(birth_s: float, lifetime_s: float) -> int:
    """The first slot in which an event is older than its lifetime."""
    return int(math.floor(birth_s + lifetime_s)) + 1


@step
def new_copy(field: Field, event: int, holder: int, count: int, state: int) -> int:
    """A copy out of the pool, in its holder's queue and in the calendar; not yet in any list."""
    tally, copies = field.tally[0], field.copies
    c = tally.free_copy
    copy = copies[c]
    tally.free_copy = copy.next
    tally.free_copies -= 1
    copy.serial = tally.serial
    tally.serial += 1
    copy.event, copy.holder, copy.rank, copy.state = event, holder, rank_of(count, event), state
    copy.previous = copy.next = NONE
    field.sensors[holder].queue += 1
    # An event of less than a second is too old in the slot it is born into. Expiry comes before birth: so, the next.
    expires = expiry_slot(field.event_time[event], field.limits.lifetime)
    enter_calendar(field, c, max(expires, field.clock[0].slot + 1))
    return int(c)


@step
def enter_calendar(field: Field, c: int, expires: int) -> None:
    """Note the slot in which a copy expires, if the run lasts so long."""
    copies = field.copies
    copies[c].expires, copies[c].earlier, copies[c].later = expires, NONE, NONE
    if expires < field.limits.slots:
        first = field.calendar[expires]
        copies[c].later = first
        if first != NONE:
            copies[first].earlier = c
        field.calendar[expires] = c


@step
def leave_calendar(field: Field, c: int) -> None:
    """Take a copy out of the calendar of expiry."""
    copies = field.copies
    before, after = copies[c].earlier, copies[c].later
    if before != NONE:
        copies[before].later = after
    elif copies[c].expires < field.limits.slots:
        field.calendar[copies[c].expires] = after
    if after != NONE:
        copies[after].earlier = before


@step
def free_copy(field: Field, c: int) -> None:
    """Give a copy's record back to the pool."""
    field.copies[c].state = FREE
    field.copies[c].next = field.tally[0].free_copy
    field.tally[0].free_copy = c
    field.tally[0].free_copies += 1


@step
def discard(field: Field, c: int) -> None:
    """The end of a copy that is in no list any more: out of its queue, the calendar and the pool."""
    field.sensors[field.copies[c].holder].queue -= 1
    leave_calendar(field, c)
    free_copy(field, c)


# the stored list of a sensor, in queue order


@step
def insert_stored(field: Field, c: int, after: int) -> None:
    """Put a stored copy where it belongs, looking from `after` on (NONE: from the front)."""
    copies, sensor = field.copies, field.sensors[field.copies[c].holder]
    before, following = after, sensor.stored if after == NONE else copies[after].next
    while following != NONE and goes_first(field, following, c):
        before, following = following, copies[following].next
    copies[c].previous, copies[c].next = before, following
    if before == NONE:
        sensor.stored = c
    else:
        copies[before].next = c
    if following != NONE:
        copies[following].previous = c


@step
def remove_stored(field: Field, c: int) -> None:
    """Take a copy out of its sensor's stored list."""
    copies = field.copies
    before, following = copies[c].previous, copies[c].next
    if before == NONE:
        field.sensors[copies[c].holder].stored = following
    else:
        copies[before].next = following
    if following != NONE:
        copies[following].previous = before


# a heap of relayed copies: `previous` is the first child, `next` the next sibling


@step
def join_heaps(field: Field, one: int, other: int) -> int:
    """The heap that holds both heaps' copies."""
    if one == NONE:
        return other
    if other == NONE:
        return one
    if goes_first(field, other, one):
        one, other = other, one
    field.copies[other].next = field.copies[one].previous
    field.copies[one].previous = other
    return one


@step
def without_first(field: Field, root: int) -> int:
    """The heap without its first copy: its children joined in pairs, then the pairs (two passes).

    Joining them one by one instead would make a chain of a heap that was filled in order, and the next removal as long.
    """
    copies = field.copies
    child, pairs = copies[root].previous, NONE
    while child != NONE:
        partner = copies[child].next
        following = NONE if partner == NONE else copies[partner].next
        copies[child].next = NONE
        if partner != NONE:
            copies[partner].next = NONE
        pair = join_heaps(field, child, partner)
        copies[pair].next = pairs  # pairs are chained by `next`, which a root does not use
        pairs, child = pair, following
    heap = NONE
    while pairs != NONE:
        following = copies[pairs].next
        copies[pairs].next = NONE
        heap = join_heaps(field, heap, pairs)
        pairs = following
    return heap


@step
def without_expired(field: Field, root: int) -> int:
    """The heap with copies that expired in it cleared from its top."""
    while root != NONE and field.copies[root].state == EXPIRED_COPY:
        rest = without_first(field, root)
        free_copy(field, root)
        root = rest
    return root


@step
def mark_expired(field: Field, c: int) -> None:
    """A relayed or waiting copy has expired: out of its queue now, out of its heap or list when that is next read."""
    field.sensors[field.copies[c].holder].queue -= 1
    leave_calendar(field, c)
    field.copies[c].state = EXPIRED_COPY
