"""Rule 6: as a subscriber announces its path, sensors that it will not pass push what they have to those it will.

So too what a carrier may take away. And offers: an exposed copy is not sent before it is asked for.
"""

from serai.core.jit import rule, step
from serai.field.engine.ledger import find
from serai.field.engine.state import NONE
from serai.field.serai_parts.control import OFFER_BITS, OFFER_HEADER_BITS, count_message, tell, tell_subscriber
from serai.field.serai_parts.copies import assign, free_map, give_map, settle, would_give_map
from serai.field.serai_parts.routes import find_walker, find_way, waits
from serai.field.serai_parts.sending import ARRIVED, STUCK, UNPAID, can_keep, lay_down, map_size, send_along
from serai.field.serai_parts.state import HOME, OFFER, Serai, holds, is_empty, take, waiting_time


@rule
def push(net: Serai, session: int, first: int, heard: int) -> None:
    """Every sensor of the community whose route leaves it pushes; `heard`: sessions before this one."""
    at = net.sessions[session]
    group = net.field.communities[at.community]
    net.tally[0].stamp += 1
    for member in range(group.sensors):
        sensor = net.field.members[group.start + member]
        if net.root[member] == sensor or net.field.sensors[sensor].exhausted:
            continue
        if holds(net.asked, sensor, at.subscriber) or (at.carry and net.posts[sensor].to_carry > 0):
            push_from(net, session, first, heard, sensor)


@rule
def push_from(net: Serai, session: int, first: int, heard: int, sensor: int) -> None:
    """One sensor pushes: copies wanted by the subscriber, and, if it carries, home copies that others want."""
    at, member = net.sessions[session], net.field.sensors[sensor].member
    subscriber, route, root = at.subscriber, net.cost[member], net.root[member]
    by_walker = holds(net.asked, sensor, subscriber) and find_walker(net, session, sensor, route, True)
    detour = net.found[0].cost if by_walker else route
    if waits(net, sensor, detour, False, heard) and waits(net, sensor, detour, True, heard):
        return
    hops, still = find_way(net, net.way, sensor, root), False
    c = net.posts[sensor].copies
    while c != NONE:
        copy = net.copies[c]
        wanted = holds(net.wanted, c, subscriber)
        if wanted or (at.carry and hops <= net.rules.pull_hops and may_pull(net, c, subscriber, heard)):
            walks = wanted and by_walker and (copy.walker == NONE or copy.target == subscriber)
            if not waits(net, sensor, detour if walks else route, bool(copy.exposed), heard):
                if copy.exposed and net.rules.offers and not is_accepted(net, session, sensor, first, copy.event):
                    settle(net, c, subscriber)
                elif walks:
                    assign(net, c, subscriber)
                elif not push_copy(net, c, subscriber, hops, at.carry and would_give_map(net, c, subscriber)):
                    return
        still = still or holds(net.wanted, c, subscriber)
        c = copy.next
    if not still:
        take(net.asked, sensor, subscriber)


@step
def may_pull(net: Serai, c: int, subscriber: int, heard: int) -> bool:
    """Whether a carrier that does not want a copy itself may take it away for others: it needs time to live."""
    copy, field = net.copies[c], net.field
    if copy.kind != HOME or copy.given >= net.rules.carriers or is_empty(net, net.wanted, c):
        return False
    if holds(net.settled, c, subscriber):
        return False
    left_s = field.event_time[copy.event] + field.limits.lifetime - field.clock[0].slot
    return bool(left_s > waiting_time(net, field.sensors[copy.sensor].community, heard) / 4)


@rule
def push_copy(net: Serai, c: int, subscriber: int, hops: int, gives: bool) -> bool:
    """Send a copy along `way` for so many hops, where it waits for the subscriber; whether the sensor could pay for it.

    If it is not heard on the way, it stays where it is.

    `gives`: the want map of all others goes along, for the subscriber carries.
    """
    copy, exposed = net.copies[c], bool(net.copies[c].exposed)
    fate, place = send_along(net, copy.event, copy.sensor, hops, subscriber, map_size(net) if gives else 0)
    if fate == UNPAID:
        return False
    if fate == STUCK and place == copy.sensor:
        return True
    settle(net, c, subscriber)
    m, relay = give_map(net, c) if gives else NONE, NONE
    if fate == ARRIVED or (fate == STUCK and can_keep(net, place, copy.event, subscriber, True)):
        relay = lay_down(net, place, copy.event, subscriber, exposed)
    if relay != NONE:
        net.copies[relay].map = m
    elif m != NONE:
        free_map(net, m)
    return True


@rule
def is_accepted(net: Serai, session: int, sensor: int, first: int, event: int) -> bool:
    """OFFER: the question goes along prices to the sensor that the subscriber spoke to; whether it wants the event.

    What goes over one link in a session, or from that sensor to the subscriber, shares a header.
    """
    subscriber, here, stamp = net.sessions[session].subscriber, sensor, net.tally[0].stamp
    for i in range(find_way(net, net.offer_way, sensor, first)):
        there, bits = net.field.neighbors[net.offer_way[i]], OFFER_BITS
        if net.posts[here].offered != stamp:
            net.posts[here].offered = stamp
            bits += OFFER_HEADER_BITS
        count_message(net, OFFER, bits)
        tell(net, here, there, bits)
        here = there
    ask(net, first, subscriber)
    return is_new_to(net, subscriber, event)


@step
def ask(net: Serai, sensor: int, subscriber: int) -> None:
    """An offer goes from a sensor to the subscriber."""
    bits = offer_size(net, sensor, subscriber)
    net.posts[sensor].told = ask_stamp(net, subscriber)
    count_message(net, OFFER, bits)
    tell_subscriber(net, sensor, subscriber, bits)


@step
def offer_size(net: Serai, sensor: int, subscriber: int) -> int:
    """The bits of an offer to the subscriber: the sensor's first one to it in this second has a header."""
    first = net.posts[sensor].told != ask_stamp(net, subscriber)
    return OFFER_BITS + (OFFER_HEADER_BITS if first else 0)


@step
def ask_stamp(net: Serai, subscriber: int) -> int:
    """A number for a subscriber and a second."""
    return int(net.field.clock[0].slot * net.rules.subscribers + subscriber + 1)


@step
def is_new_to(net: Serai, subscriber: int, event: int) -> bool:
    """Whether the subscriber has not received the event yet."""
    return bool(net.field.known[find(net.field, event, subscriber)] == NONE)
