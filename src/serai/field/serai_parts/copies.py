"""Copies in the queues of sensors: their places, for whom they are, and when they are cleared away.

A sensor's copies are a list, the youngest event first; of one event that copy first which came into being first.
`asked` says for whom some copy there may be wanted: yes too often, never no too often.
"""

from serai.core.content import matches
from serai.core.jit import rule, step
from serai.field.engine.batteries import is_dead
from serai.field.engine.ledger import log_drop
from serai.field.engine.queues import expiry_slot
from serai.field.engine.state import BITS, EXPIRED, FULL, NONE, SPENT
from serai.field.serai_parts.state import (
    FREE,
    HOME,
    RELAY_COPY,
    Serai,
    holds,
    is_empty,
    is_too_old,
    lowest_in,
    put,
    take,
)

# ---- into being, and out of it


@rule
def new_copy(net: Serai, sensor: int, event: int, kind: int, exposed: bool) -> int:
    """A copy in the queue of a sensor that has room, for nobody yet; NONE if the pool is short."""
    tally = net.tally[0]
    c = tally.copies
    if c == NONE:
        tally.short = True
        return NONE
    copy = net.copies[c]
    tally.copies = copy.next
    tally.free_copies -= 1
    copy.event, copy.sensor, copy.kind, copy.exposed, copy.fresh = event, sensor, kind, exposed, False
    copy.given, copy.map, copy.walker = 0, NONE, NONE
    copy.serial = tally.serial
    tally.serial += 1
    for word in range(net.rules.words):
        net.wanted[c, word] = net.settled[c, word] = 0
    line_up_copy(net, c)
    enter_calendar(net, c, expiry_slot(net.field.event_time[event], net.field.limits.lifetime))
    net.field.sensors[sensor].queue += 1
    net.posts[sensor].version += 1
    return int(c)


@step
def line_up_copy(net: Serai, c: int) -> None:
    """Put a copy into its sensor's list."""
    copy = net.copies[c]
    post = net.posts[copy.sensor]
    before, after = NONE, post.copies
    while after != NONE and net.copies[after].event >= copy.event:
        before, after = after, net.copies[after].next
    copy.previous, copy.next = before, after
    if before == NONE:
        post.copies = c
    else:
        net.copies[before].next = c
    if after == NONE:
        post.last = c
    else:
        net.copies[after].previous = c


@rule
def remove_copy(net: Serai, c: int) -> None:
    """The end of a copy."""
    copy = net.copies[c]
    post = net.posts[copy.sensor]
    if copy.previous == NONE:
        post.copies = copy.next
    else:
        net.copies[copy.previous].next = copy.next
    if copy.next == NONE:
        post.last = copy.previous
    else:
        net.copies[copy.next].previous = copy.previous
    leave_calendar(net, c)
    unassign(net, c)
    if can_be_carried(net, c):
        post.to_carry -= 1
    if copy.map != NONE:
        free_map(net, copy.map)
    net.field.sensors[copy.sensor].queue -= 1
    copy.kind = FREE
    copy.next = net.tally[0].copies
    net.tally[0].copies = c
    net.tally[0].free_copies += 1


# ---- for whom


@step
def want(net: Serai, c: int, subscriber: int) -> None:
    """The copy is wanted by the subscriber."""
    copy = net.copies[c]
    if can_be_carried(net, c):
        net.posts[copy.sensor].to_carry -= 1
    put(net.wanted, c, subscriber)
    put(net.asked, copy.sensor, subscriber)
    net.posts[copy.sensor].version += 1
    if can_be_carried(net, c):
        net.posts[copy.sensor].to_carry += 1


@step
def settle(net: Serai, c: int, subscriber: int) -> None:
    """The subscriber was served from this copy, or needs no more: from W to S."""
    copy = net.copies[c]
    if can_be_carried(net, c):
        net.posts[copy.sensor].to_carry -= 1
    take(net.wanted, c, subscriber)
    put(net.settled, c, subscriber)
    if copy.target == subscriber:
        unassign(net, c)
    if is_empty(net, net.wanted, c) and copy.kind != HOME:
        leave_calendar(net, c)
        enter_calendar(net, c, 0)
    elif can_be_carried(net, c):
        net.posts[copy.sensor].to_carry += 1


@step
def want_again(net: Serai, c: int, subscriber: int) -> None:
    """Nothing came of serving the subscriber from this copy: from S back to W."""
    take(net.settled, c, subscriber)
    if net.copies[c].kind != HOME and is_empty(net, net.wanted, c):
        leave_calendar(net, c)
        event = net.copies[c].event
        enter_calendar(net, c, expiry_slot(net.field.event_time[event], net.field.limits.lifetime))
    want(net, c, subscriber)


@step
def can_be_carried(net: Serai, c: int) -> bool:
    """Whether a carrier may still take the event away from here."""
    copy = net.copies[c]
    return bool(copy.kind == HOME and copy.given < net.rules.carriers and not is_empty(net, net.wanted, c))


@step
def would_give_map(net: Serai, c: int, subscriber: int) -> bool:
    """Whether a want map goes along if the copy is given to a carrier: others than itself are left."""
    if not can_be_carried(net, c):
        return False
    for word in range(net.rules.words):
        left = net.wanted[c, word]
        if word == subscriber // BITS:
            left &= ~(1 << (subscriber % BITS))
        if left:
            return True
    return False


@step
def give_map(net: Serai, c: int) -> int:
    """A want map for a carrier of a home copy, which is exposed from now on; NONE if the pool of maps is short."""
    m = new_map(net)
    if m != NONE:
        for word in range(net.rules.words):
            net.maps[m, word] = net.wanted[c, word]
    if can_be_carried(net, c):
        net.posts[net.copies[c].sensor].to_carry -= 1
    net.copies[c].exposed = True
    net.copies[c].given += 1
    if can_be_carried(net, c):
        net.posts[net.copies[c].sensor].to_carry += 1
    return m


@step
def take_map_back(net: Serai, c: int, m: int, exposed: bool) -> None:
    """The want map of a home copy has not left it: it is as exposed as before, and may be given to somebody else."""
    if can_be_carried(net, c):
        net.posts[net.copies[c].sensor].to_carry -= 1
    net.copies[c].exposed = exposed
    net.copies[c].given -= 1
    if can_be_carried(net, c):
        net.posts[net.copies[c].sensor].to_carry += 1
    free_map(net, m)


@rule
def want_all_who_match(net: Serai, c: int) -> None:
    """A new event is wanted by all whose subscription its community knows and it matches."""
    field = net.field
    event, community = net.copies[c].event, field.sensors[net.copies[c].sensor].community
    for subscriber in range(net.rules.subscribers):
        if holds(net.subscribed, community, subscriber) and matches(
            field.event_values[event], field.low[subscriber], field.high[subscriber]
        ):
            want(net, c, subscriber)


@rule
def extend_wants(net: Serai, community: int, subscriber: int) -> None:
    """A community has learned a subscription: home copies that it matches are wanted by one more."""
    field, group = net.field, net.field.communities[community]
    for i in range(group.start, group.start + group.sensors):
        c = net.posts[field.members[i]].copies
        while c != NONE:
            if (
                net.copies[c].kind == HOME
                and not holds(net.settled, c, subscriber)
                and matches(field.event_values[net.copies[c].event], field.low[subscriber], field.high[subscriber])
            ):
                want(net, c, subscriber)
            c = net.copies[c].next


# ---- walkers to whom copies are assigned


@step
def assign(net: Serai, c: int, target: int) -> None:
    """The walker just found takes the copy to its target when it comes by."""
    copy, found = net.copies[c], net.found[0]
    if copy.walker == NONE:
        net.posts[copy.sensor].assigned += 1
    copy.walker, copy.target, copy.until = found.walker, target, found.until
    copy.drop_at, copy.drop_by = found.drop_at, found.drop_by
    net.posts[copy.sensor].version += 1
    if net.tally[0].assigned == len(net.assigned):
        net.tally[0].short = True
        return
    entry = net.assigned[net.tally[0].assigned]
    entry.place, entry.serial = c, copy.serial
    net.tally[0].assigned += 1


@step
def assign_again(net: Serai, c: int, walker: int) -> None:
    """Nothing came of serving the target in this second otherwise: the walker is to take the copy along as before."""
    net.copies[c].walker = walker
    net.posts[net.copies[c].sensor].assigned += 1


@step
def unassign(net: Serai, c: int) -> None:
    """Nobody is to take the copy along any more."""
    if net.copies[c].walker != NONE:
        net.copies[c].walker = NONE
        net.posts[net.copies[c].sensor].assigned -= 1


# ---- room


@rule
def victim_at(net: Serai, sensor: int) -> int:
    """The copy that a full queue drops: the oldest that is not home, or NONE."""
    c = net.posts[sensor].last
    while c != NONE and net.copies[c].kind == HOME:
        c = net.copies[c].previous
    oldest = c
    while c != NONE and net.copies[c].event == net.copies[oldest].event:  # of one event, what came first
        if net.copies[c].kind != HOME:
            oldest = c
        c = net.copies[c].previous
    return int(oldest)


@step
def is_full(net: Serai, sensor: int) -> bool:
    """Whether the sensor's queue is full."""
    return bool(net.field.sensors[sensor].queue >= net.field.sensors[sensor].capacity)


@step
def has_room(net: Serai, sensor: int) -> bool:
    """Whether the sensor has room in its queue, or can make some."""
    return not is_full(net, sensor) or victim_at(net, sensor) != NONE


@step
def make_room(net: Serai, sensor: int) -> None:
    """A full queue drops what it can do without."""
    if is_full(net, sensor):
        c = victim_at(net, sensor)
        log_held_drop(net, c, FULL)
        remove_copy(net, c)


@step
def log_held_drop(net: Serai, c: int, reason: int) -> None:
    """A copy that lay in a queue is dropped."""
    copy, field = net.copies[c], net.field
    addressee = lowest_in(net, net.wanted, c) if copy.kind == RELAY_COPY else NONE
    log_drop(field, copy.event, copy.sensor, reason, addressee)
    if field.limits.full_log:
        field.drop_log[field.tally[0].drops - 1].held = True


@step
def publish_next_event(net: Serai) -> None:
    """Rule 1: the next event of the slot enters its sensor's queue, if there is room or can be made."""
    field = net.field
    event = field.tally[0].born
    field.tally[0].born += 1
    sensor = field.event_sensor[event]
    if is_dead(field, sensor):
        return
    if not has_room(net, sensor):
        log_drop(field, event, sensor, FULL, NONE)
        return
    make_room(net, sensor)
    c = new_copy(net, sensor, event, HOME, False)
    if c != NONE:
        want_all_who_match(net, c)
        make_fresh(net, c)


@step
def make_fresh(net: Serai, c: int) -> None:
    """The copy counts as new in this second (rule 10)."""
    if net.copies[c].fresh:
        return
    if net.tally[0].fresh == len(net.fresh):
        net.tally[0].short = True
        return
    net.copies[c].fresh = True
    net.fresh[net.tally[0].fresh] = c
    net.tally[0].fresh += 1


# ---- want maps


@step
def new_map(net: Serai) -> int:
    """A want map out of the pool, not yet filled; NONE if the pool is short."""
    m = net.tally[0].maps
    if m == NONE:
        net.tally[0].short = True
        return NONE
    net.tally[0].maps = net.next_map[m]
    net.tally[0].free_maps -= 1
    return int(m)


@step
def free_map(net: Serai, m: int) -> None:
    """Give a want map back."""
    net.next_map[m] = net.tally[0].maps
    net.tally[0].maps = m
    net.tally[0].free_maps += 1


# ---- rule 2: clearing


@step
def enter_calendar(net: Serai, c: int, slot: int) -> None:
    """The copy is cleared at the first look at or after the slot that is still to come, if the run lasts so long.

    Home copies enter at their birth, when this second's look is still to come.
    """
    copy, now = net.copies[c], net.field.clock[0].slot
    interval = net.rules.clear_interval
    earliest = now if copy.kind == HOME else now + 1
    look = (max(slot, earliest) + interval - 1) // interval
    copy.clears, copy.earlier, copy.later = look, NONE, NONE
    if look < len(net.calendar):
        first = net.calendar[look]
        copy.later = first
        if first != NONE:
            net.copies[first].earlier = c
        net.calendar[look] = c


@step
def leave_calendar(net: Serai, c: int) -> None:
    """Take a copy out of the calendar of clearing."""
    copy = net.copies[c]
    if copy.earlier != NONE:
        net.copies[copy.earlier].later = copy.later
    elif copy.clears < len(net.calendar):
        net.calendar[copy.clears] = copy.later
    if copy.later != NONE:
        net.copies[copy.later].earlier = copy.earlier


@step
def clear(net: Serai) -> None:
    """Rule 2: copies that are too old go, and copies away from home that nobody is left for; assignments lapse."""
    c = net.calendar[net.field.clock[0].slot // net.rules.clear_interval]
    while c != NONE:
        following = net.copies[c].later
        log_held_drop(net, c, EXPIRED if is_too_old(net, net.copies[c].event) else SPENT)
        remove_copy(net, c)
        c = following
    kept = 0
    for i in range(net.tally[0].assigned):
        entry = net.assigned[i]
        copy = net.copies[entry.place]
        if copy.kind == FREE or copy.serial != entry.serial or copy.walker == NONE:
            continue
        if net.field.clock[0].slot > copy.until:
            unassign(net, entry.place)
            make_fresh(net, entry.place)
        else:
            net.assigned[kept] = entry
            kept += 1
    net.tally[0].assigned = kept
