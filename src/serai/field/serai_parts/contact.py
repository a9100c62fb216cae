"""Rules 7 to 9: what a subscriber is given by the sensors in reach, and what it leaves with them."""

from serai.core.jit import rule, step
from serai.field.engine.ledger import accept, log_refused, log_stored, log_transfer
from serai.field.engine.state import NONE, RETURN
from serai.field.serai_parts.air import acknowledge, gets_lost, tries
from serai.field.serai_parts.control import GOAL_BITS, LOAD_BITS, hear
from serai.field.serai_parts.copies import (
    free_map,
    give_map,
    has_room,
    make_fresh,
    make_room,
    new_copy,
    settle,
    want,
    would_give_map,
)
from serai.field.serai_parts.pushing import ask, is_new_to, offer_size
from serai.field.serai_parts.sending import (
    ARRIVED,
    LOST,
    STUCK,
    UNPAID,
    count_along,
    hand_event,
    left_bits,
    map_size,
)
from serai.field.serai_parts.state import DEPOSIT, HOME, RELAY_COPY, Serai, holds, is_cleared, is_empty, take

GIVEN, NOT_NOW, NEVER_AGAIN = range(3)  # NOT_NOW: no bits left, or not heard; NEVER_AGAIN: its battery is empty

# ---- rule 7: handover


@step
def hand_over(net: Serai, subscriber: int) -> None:
    """Every sensor in reach in which something is new gives the subscriber what it wants, then what it carries."""
    mine = net.near[subscriber]
    for i in range(net.walkers[subscriber].near):
        near = mine[i]
        if near.seen != net.posts[near.sensor].version and not net.field.sensors[near.sensor].exhausted:
            version = net.posts[near.sensor].version
            if empty_queue(net, near.sensor, subscriber, near.session):
                near.seen = version


@rule
def empty_queue(net: Serai, sensor: int, subscriber: int, session: int) -> bool:
    """A sensor gives all it can, youngest first; whether nothing is left for want of bits."""
    done = True
    if holds(net.asked, sensor, subscriber):
        c, still = net.posts[sensor].copies, False
        while c != NONE:
            if holds(net.wanted, c, subscriber):
                fate = give(net, c, subscriber, session)
                if fate == NEVER_AGAIN:
                    return False
                still = still or fate == NOT_NOW
            c = net.copies[c].next
        if not still:
            take(net.asked, sensor, subscriber)
        done = not still
    if net.sessions[session].carry and net.posts[sensor].to_carry > 0:
        c = net.posts[sensor].copies
        while c != NONE:
            if is_for_carrier(net, c, subscriber):
                fate = give(net, c, subscriber, session)
                if fate == NEVER_AGAIN:
                    return False
                done = done and fate == GIVEN
            c = net.copies[c].next
    return done


@step
def is_for_carrier(net: Serai, c: int, subscriber: int) -> bool:
    """Whether a carrier that does not want a copy itself may have it: a home copy that others want."""
    copy = net.copies[c]
    if copy.kind != HOME or copy.given >= net.rules.carriers or is_empty(net, net.wanted, c):
        return False
    return not holds(net.settled, c, subscriber) and not holds(net.wanted, c, subscriber)


@rule
def give(net: Serai, c: int, subscriber: int, session: int) -> int:
    """Give the subscriber a copy, after an offer if it is exposed, and the want map that it is to carry."""
    copy, gives = net.copies[c], net.sessions[session].carry and would_give_map(net, c, subscriber)
    map_bits = map_size(net) if gives or copy.map != NONE else 0
    asks = bool(copy.exposed) and net.rules.offers
    needed = int(net.field.limits.bits) + map_bits + (offer_size(net, copy.sensor, subscriber) if asks else 0)
    if needed > left_bits(net, subscriber):
        return NOT_NOW
    if asks:
        ask(net, copy.sensor, subscriber)
        if not is_new_to(net, subscriber, copy.event):
            settle(net, c, subscriber)
            return GIVEN
    fate = hand_event(net, copy.event, copy.sensor, subscriber, subscriber, (map_bits, 0))
    if fate != ARRIVED:
        return NEVER_AGAIN if fate == UNPAID else NOT_NOW
    settle(net, c, subscriber)
    m, copy.map = copy.map, NONE
    if gives:
        m = give_map(net, c)
    if m != NONE:
        put_into_bag(net, copy.event, m, subscriber, session)
    return GIVEN


@step
def put_into_bag(net: Serai, event: int, m: int, subscriber: int, session: int) -> None:
    """The subscriber carries the event and its want map from here on."""
    who, tally = net.walkers[subscriber], net.tally[0]
    i = tally.carried
    if i == NONE:
        tally.short = True
        free_map(net, m)
        return
    item = net.carried[i]
    tally.carried = item.next
    tally.free_carried -= 1
    item.event, item.map, item.served, item.next = event, m, 0, NONE
    at = net.sessions[session]
    item.home, item.home_wait = net.groups[at.community].name, at.wait
    if who.bag == NONE:
        who.bag = i
    else:
        net.carried[who.bag_end].next = i
    who.bag_end = i
    who.ready = True


# ---- rule 8: walkers


@step
def load(net: Serai, subscriber: int) -> None:
    """Sensors in reach hand the subscriber what it is to take along to other paths."""
    mine = net.near[subscriber]
    for i in range(net.walkers[subscriber].near):
        if net.posts[mine[i].sensor].assigned > 0 and not net.field.sensors[mine[i].sensor].exhausted:
            load_from(net, mine[i].sensor, subscriber)


@rule
def load_from(net: Serai, sensor: int, subscriber: int) -> None:
    """One sensor hands a walker the copies assigned to it."""
    c = net.posts[sensor].copies
    while c != NONE:
        copy = net.copies[c]
        fits = int(net.field.limits.bits) + LOAD_BITS <= left_bits(net, subscriber)
        if copy.walker == subscriber and net.field.clock[0].slot <= copy.until and fits:
            fate = hand_event(net, copy.event, sensor, subscriber, copy.target, (0, LOAD_BITS))
            if fate == UNPAID:
                return
            if fate == ARRIVED:
                take_load(net, subscriber, c)
                settle(net, c, copy.target)
        c = copy.next


@step
def take_load(net: Serai, subscriber: int, c: int) -> None:
    """The walker takes the event of a copy along."""
    who, tally, copy = net.walkers[subscriber], net.tally[0], net.copies[c]
    i = tally.loads
    if i == NONE:
        tally.short = True
        return
    taken = net.loads[i]
    tally.loads = taken.next
    tally.free_loads -= 1
    taken.event, taken.target, taken.drop_at, taken.drop_by = copy.event, copy.target, copy.drop_at, copy.drop_by
    taken.next = NONE
    if who.loads == NONE:
        who.loads = i
    else:
        net.loads[who.loads_end].next = i
    who.loads_end = i


@rule
def unload(net: Serai, subscriber: int) -> None:
    """A walker drops what it took along where it was to, or, when its time has passed, at any sensor."""
    who = net.walkers[subscriber]
    before, i = NONE, who.loads
    while i != NONE:
        taken, following = net.loads[i], net.loads[i].next
        gone = is_cleared(net, taken.event)
        place = NONE if gone else place_to_drop(net, subscriber, i)
        fits = int(net.field.limits.bits) + GOAL_BITS <= left_bits(net, subscriber)
        if gone or (place != NONE and fits and drop_load(net, subscriber, place, taken.event, taken.target)):
            if before == NONE:
                who.loads = following
            else:
                net.loads[before].next = following
            if following == NONE:
                who.loads_end = before
            taken.next = net.tally[0].loads
            net.tally[0].loads = i
            net.tally[0].free_loads += 1
        else:
            before = i
        i = following


@step
def place_to_drop(net: Serai, subscriber: int, i: int) -> int:
    """The sensor in reach at which a walker drops a load now, or NONE."""
    mine = net.near[subscriber]
    for n in range(net.walkers[subscriber].near):
        if mine[n].sensor == net.loads[i].drop_at:
            return int(mine[n].sensor)
    if net.field.clock[0].slot > net.loads[i].drop_by and net.walkers[subscriber].near > 0:
        return int(mine[0].sensor)
    return NONE


@step
def drop_load(net: Serai, subscriber: int, sensor: int, event: int, target: int) -> bool:
    """A walker gives a sensor an event for another subscriber, and is rid of it; it goes on as a new copy does."""
    fate = give_back(net, subscriber, sensor, event, target, (0, GOAL_BITS))
    if fate == ARRIVED:
        c = new_copy(net, sensor, event, RELAY_COPY, False)
        if c != NONE:
            want(net, c, target)
            make_fresh(net, c)
    return fate != STUCK


@rule
def give_back(net: Serai, subscriber: int, sensor: int, event: int, addressee: int, along: tuple[int, int]) -> int:
    """A subscriber sends a sensor an event, with a map or an address: LOST, STUCK, or ARRIVED where room was made."""
    field, sender = net.field, len(net.field.sensors) + subscriber
    for nth in range(tries(net)):
        net.walkers[subscriber].spent_bits += int(field.limits.bits) + along[0] + along[1]
        count_along(net, along[0], along[1])
        if gets_lost(net, event, sender, sensor, addressee, RETURN, nth):
            continue
        reason = accept(field, sensor, not has_room(net, sensor))
        log_transfer(field, event, sender, sensor, addressee, RETURN, reason != NONE)
        if reason != NONE:
            log_refused(field, event, sensor, reason, addressee)
            return LOST
        log_stored(field)
        hear(net, sensor, along[0] + along[1])
        acknowledge(net, sender, sensor)
        make_room(net, sensor)
        return ARRIVED
    return STUCK


# ---- rule 9: deposits


@rule
def deposit(net: Serai, subscriber: int) -> None:
    """A carrier leaves the events of its bag in communities that wait less, or not much more, than their home."""
    who = net.walkers[subscriber]
    who.ready = False
    before, i = NONE, who.bag
    while i != NONE:
        item, following = net.carried[i], net.carried[i].next
        gone = is_cleared(net, item.event) or net.rules.deposits == 0
        if not gone:
            near = place_to_deposit(net, subscriber, i)
            if near != NONE and int(net.field.limits.bits) + map_size(net) > left_bits(net, subscriber):
                who.ready = True
            elif near != NONE:
                who.ready = True  # one of an event in a second: more may be due in the next
                leave_event(net, subscriber, near, i)
            gone = item.served >= net.rules.deposits
        if gone:
            if before == NONE:
                who.bag = following
            else:
                net.carried[before].next = following
            if following == NONE:
                who.bag_end = before
            free_map(net, item.map)
            item.next = net.tally[0].carried
            net.tally[0].carried = i
            net.tally[0].free_carried += 1
        else:
            before = i
        i = following


@step
def place_to_deposit(net: Serai, subscriber: int, i: int) -> int:
    """The first sensor in reach at which the event may be left, as its place in `near`; or NONE."""
    mine, item = net.near[subscriber], net.carried[i]
    for n in range(net.walkers[subscriber].near):
        session = net.sessions[mine[n].session]
        name = net.groups[session.community].name
        if name == item.home or net.field.communities[session.community].sensors < 2:
            continue
        if mine[n].full or not session.wait * net.rules.phi_d <= item.home_wait:
            continue
        served = False
        for d in range(item.served):
            served = served or net.served[i, d] == name
        if not served:
            return n
    return NONE


@step
def leave_event(net: Serai, subscriber: int, near: int, i: int) -> None:
    """A carrier leaves an event of its bag at a sensor, with the want map; it goes on from there as a new copy does."""
    item, at = net.carried[i], net.near[subscriber, near]
    fate = give_back(net, subscriber, at.sensor, item.event, NONE, (map_size(net), 0))
    if fate == STUCK:
        return
    net.served[i, item.served] = net.groups[net.sessions[at.session].community].name
    item.served += 1
    if fate != ARRIVED:
        return
    c = new_copy(net, at.sensor, item.event, DEPOSIT, True)
    if c != NONE:
        for other in range(net.rules.subscribers):
            if holds(net.maps, item.map, other):
                want(net, c, other)
        make_fresh(net, c)
