"""Rules 4 and 5: a subscriber looks around, says HELLO in a new cell, and tells communities where it is going."""

from serai.core.jit import lowest_bit, rule, step
from serai.field.engine.batteries import is_dead
from serai.field.engine.state import BITS, NONE
from serai.field.serai_parts.control import (
    ANNOUNCE_BITS,
    SUBSCRIPTION_BITS,
    broadcast,
    count_message,
    hear,
    tell_subscriber,
)
from serai.field.serai_parts.copies import extend_wants
from serai.field.serai_parts.routes import cost_between, remember_cost
from serai.field.serai_parts.sessions_table import session_with
from serai.field.serai_parts.state import ANNOUNCE, FAR, NEVER, SUBSCRIPTIONS, Serai, count_bits, put, take

# ---- who is in reach


@step
def look_around(net: Serai, subscriber: int) -> None:
    """Draw up anew which sensors are in reach, by place; and when that will next change."""
    who, now = net.walkers[subscriber], net.field.clock[0].slot
    while net.legs[who.leg].last < now:
        who.leg += 1
    leg, before, mine = net.legs[who.leg], who.near, net.near[subscriber]
    for i in range(before):  # what was known of those who stay in reach is kept behind the new list
        mine[len(mine) - before + i] = mine[i]
    who.near, who.next_change, who.new_leg = 0, leg.last + 1, False
    for i in range(leg.rows, leg.rows_end):
        row = net.reach[i]
        if row.begins > now:
            who.next_change = min(who.next_change, row.begins)
        elif row.ends >= now and not is_dead(net.field, row.sensor):
            who.next_change = min(who.next_change, row.ends + 1)
            come_near(net, subscriber, row.sensor, before)
    who.ready = True


@step
def come_near(net: Serai, subscriber: int, sensor: int, before: int) -> None:
    """Put a sensor in its place among those in reach."""
    who, mine = net.walkers[subscriber], net.near[subscriber]
    i = who.near
    while i > 0 and net.posts[mine[i - 1].sensor].place > net.posts[sensor].place:
        mine[i] = mine[i - 1]
        i -= 1
    near = mine[i]
    near.sensor, near.seen, near.full = sensor, NONE, False
    near.session = session_with(net, subscriber, net.field.sensors[sensor].community)
    is_announced = net.sessions[near.session].leg == who.leg
    for n in range(len(mine) - before, len(mine)):
        if mine[n].sensor == sensor:
            near.full = mine[n].full
            if mine[n].session == near.session and is_announced:
                near.seen = mine[n].seen
    if not is_announced:
        who.new_leg = True
    who.near += 1


# ---- rule 5


@rule
def begin_session(net: Serai, session: int, first: int) -> None:
    """ANNOUNCE to the first sensor of the community in reach, and from there to all; SUBS back."""
    at = net.sessions[session]
    group, who = net.groups[at.community], net.walkers[at.subscriber]
    news = missing = 0
    for word in range(net.rules.words):
        mine, theirs = net.learned[at.subscriber, word], net.subscribed[at.community, word]
        news += count_bits(mine & ~theirs)
        missing += count_bits(theirs & ~mine)
    bits = ANNOUNCE_BITS + SUBSCRIPTION_BITS * news
    at.carry = at.wait > net.rules.phi * who.least
    count_message(net, ANNOUNCE, bits)
    hear(net, first, bits)
    who.spent_bits += bits
    if missing > 0:
        count_message(net, SUBSCRIPTIONS, SUBSCRIPTION_BITS * missing)
        tell_subscriber(net, first, at.subscriber, SUBSCRIPTION_BITS * missing)
    flood_from(net, first, bits)
    group.heard += 1
    if news > 0 or missing > 0:
        exchange_subscriptions(net, session)
    note_path(net, session)
    cost_for_all(net, session)


@step
def exchange_subscriptions(net: Serai, session: int) -> None:
    """The community and the subscriber tell each other the subscriptions that they know."""
    at = net.sessions[session]
    for word in range(net.rules.words):
        news = net.learned[at.subscriber, word] & ~net.subscribed[at.community, word]
        net.subscribed[at.community, word] |= news
        net.learned[at.subscriber, word] |= net.subscribed[at.community, word]
        net.groups[at.community].known += count_bits(news)
        while news:
            extend_wants(net, at.community, word * BITS + lowest_bit(news))
            news &= news - 1


@step
def note_path(net: Serai, session: int) -> None:
    """All members know now which sensors the subscriber passes, and when."""
    at = net.sessions[session]
    for i in range(at.rows, at.rows_end):
        if net.field.sensors[net.reach[i].sensor].community == at.community:  # what others know of it they still know
            take(net.passing, net.reach[i].sensor, at.subscriber)
    at.leg = net.walkers[at.subscriber].leg
    first = net.legs[at.leg].rows
    while net.field.sensors[net.reach[first].sensor].community != at.community:
        first += 1
    at.rows = at.rows_end = first
    at.until = NONE
    for i in range(first, net.legs[at.leg].rows_end):
        if net.field.sensors[net.reach[i].sensor].community == at.community:
            put(net.passing, net.reach[i].sensor, at.subscriber)
            at.rows_end, at.until = i + 1, max(at.until, net.reach[i].last)


@step
def cost_for_all(net: Serai, session: int) -> None:
    """Every member works out its route, into `cost` and `root`, and remembers what it costs."""
    at, now = net.sessions[session], net.field.clock[0].slot
    group = net.field.communities[at.community]
    for member in range(group.sensors):
        net.cost[member], net.root[member] = FAR, NONE
    for i in range(at.rows, at.rows_end):
        row = net.reach[i]
        if row.last < now or net.field.sensors[row.sensor].community != at.community:
            continue
        waiting = net.rules.per_second * max(row.first - now, 0)
        cost_between(net, row.sensor, row.sensor)  # its row stands from here on
        line = net.posts[row.sensor].row
        for member in range(group.sensors):
            cost = waiting + net.distances[line, member]
            if cost < net.cost[member]:
                net.cost[member], net.root[member] = cost, row.sensor
    for member in range(group.sensors):
        remember_cost(net, net.field.members[group.start + member], net.cost[member])


# ---- the flood


@rule
def flood_from(net: Serai, first: int, bits: int) -> None:
    """Of the sensors reached, the one with most unreached neighbours per price speaks next, until all are reached."""
    group = net.field.communities[net.field.sensors[first].community]
    if group.sensors == 1:
        return
    net.tally[0].stamp += 1
    for i in range(group.start, group.start + group.sensors):
        here = net.field.sensors[net.field.members[i]]
        net.posts[net.field.members[i]].unreached = here.end_edge - here.first_edge
    reached = 1
    reach_in_flood(net, first)
    waiting = line_up_speaker(net, 0, first)
    while reached < group.sensors:
        speaker = net.way[0]
        waiting = drop_speaker(net, waiting)
        post = net.posts[speaker]
        if post.unreached == 0:
            continue
        if post.unreached != post.key:  # others have spoken since: it may not be first any more
            waiting = line_up_speaker(net, waiting, speaker)
            continue
        broadcast(net, speaker, ANNOUNCE, bits)
        here = net.field.sensors[speaker]
        for n in range(here.first_edge, here.end_edge):
            if net.posts[net.field.neighbors[n]].reached != net.tally[0].stamp:
                reached += 1
                reach_in_flood(net, net.field.neighbors[n])
        for n in range(here.first_edge, here.end_edge):
            if net.posts[net.field.neighbors[n]].key == NEVER:
                waiting = line_up_speaker(net, waiting, net.field.neighbors[n])


@step
def reach_in_flood(net: Serai, sensor: int) -> None:
    """The sensor has heard: for its neighbours one fewer is left to be reached."""
    net.posts[sensor].reached, net.posts[sensor].key = net.tally[0].stamp, NEVER
    here = net.field.sensors[sensor]
    for n in range(here.first_edge, here.end_edge):
        net.posts[net.field.neighbors[n]].unreached -= 1


@step
def speaks_first(net: Serai, one: int, other: int) -> bool:
    """Whether a sensor speaks before another: more unreached neighbours per price, then the lower number."""
    a, b = net.posts[one], net.posts[other]
    if a.key * b.price != b.key * a.price:
        return bool(a.key * b.price > b.key * a.price)
    return one < other


@step
def line_up_speaker(net: Serai, count: int, sensor: int) -> int:
    """Add a sensor to the line of speakers (a binary heap in `way`); how many stand in it now."""
    net.posts[sensor].key = net.posts[sensor].unreached
    i = count
    while i > 0 and speaks_first(net, sensor, net.way[(i - 1) >> 1]):
        net.way[i] = net.way[(i - 1) >> 1]
        i = (i - 1) >> 1
    net.way[i] = sensor
    return count + 1


@step
def drop_speaker(net: Serai, count: int) -> int:
    """Take the first sensor out of the line of speakers; how many are left."""
    left = count - 1
    last, i = net.way[left], 0
    while 2 * i + 1 < left:
        child = 2 * i + 1
        if child + 1 < left and speaks_first(net, net.way[child + 1], net.way[child]):
            child += 1
        if not speaks_first(net, net.way[child], last):
            break
        net.way[i] = net.way[child]
        i = child
    net.way[i] = last
    return left
