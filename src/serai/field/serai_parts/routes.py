"""Routes: what it costs to bring something to a subscriber, by which sensors, and when it is better to wait.

All members of a community know the map, the prices and the announced paths, so all work out the same routes. The
costs between sensors change with prices and map only: those from one sensor to all others are worked out when somebody
first asks, and kept until then. There is room for those of every sensor unless communities are very large; then the
sensors take turns.

Costs are whole numbers of 1/2000 hop: sums are exact in any order, and ties are ties.
"""

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import lowest_bit, rule, step
from serai.field.engine.state import BITS, NONE
from serai.field.serai_parts.sessions_table import find_session
from serai.field.serai_parts.settings import COST_UNITS, RING
from serai.field.serai_parts.state import FAR, Serai, waiting_time

MEMBER_BITS = 24  # of an entry in the line of a search


# ---- between sensors


@step
def cost_between(net: Serai, goal: int, sensor: int) -> int:
    """What the way between two sensors of a community costs: the mean price of both ends of each link."""
    row = net.posts[goal].row
    if row == NONE or net.posts[goal].row_epoch != net.tally[0].epoch:
        row = work_out_row(net, goal)
    return int(net.distances[row, net.field.sensors[sensor].member])


@rule
def work_out_row(net: Serai, goal: int) -> int:
    """Work out the costs from a sensor to all members of its community (Dijkstra); the row they stand in."""
    row = room_for(net, goal)
    members = net.field.communities[net.field.sensors[goal].community].sensors
    for member in range(members):
        net.distances[row, member] = FAR
    net.distances[row, net.field.sensors[goal].member] = 0
    net.line[0], waiting = goal, 1  # cost and sensor in one number
    while waiting > 0:
        first = net.line[0]
        waiting = drop_first(net, waiting)
        sensor, cost = first & ((1 << MEMBER_BITS) - 1), first >> MEMBER_BITS
        here = net.field.sensors[sensor]
        if cost > net.distances[row, here.member]:
            continue
        for n in range(here.first_edge, here.end_edge):
            other = net.field.neighbors[n]
            further = cost + link_cost(net, sensor, other)
            if further < net.distances[row, net.field.sensors[other].member]:
                net.distances[row, net.field.sensors[other].member] = further
                waiting = line_up(net, waiting, (further << MEMBER_BITS) | other)
    return int(row)


@step
def room_for(net: Serai, goal: int) -> int:
    """The row of a sensor's distances: its own, or one that another had."""
    post = net.posts[goal]
    if post.row == NONE:
        row = net.tally[0].next_row
        net.tally[0].next_row = (row + 1) % len(net.row_owner)
        if net.row_owner[row] != NONE:
            net.posts[net.row_owner[row]].row = NONE
        net.row_owner[row], post.row = goal, row
    post.row_epoch = net.tally[0].epoch
    return int(post.row)


@step
def link_cost(net: Serai, sensor: int, neighbor: int) -> int:
    """What a link costs: a price is in parts of half a hop, so the mean of two prices is their sum."""
    return int(net.posts[sensor].price + net.posts[neighbor].price)


@step
def line_up(net: Serai, count: int, entry: int) -> int:
    """Add an entry to the search's line (a binary heap); how many stand in it now."""
    i = count
    while i > 0 and net.line[(i - 1) >> 1] > entry:
        net.line[i] = net.line[(i - 1) >> 1]
        i = (i - 1) >> 1
    net.line[i] = entry
    return count + 1


@step
def drop_first(net: Serai, count: int) -> int:
    """Take the first entry out of the search's line; how many are left."""
    left = count - 1
    last, i = net.line[left], 0
    while 2 * i + 1 < left:
        child = 2 * i + 1
        if child + 1 < left and net.line[child + 1] < net.line[child]:
            child += 1
        if net.line[child] >= last:
            break
        net.line[i] = net.line[child]
        i = child
    net.line[i] = last
    return left


@step
def next_edge(net: Serai, sensor: int, goal: int) -> int:
    """The next hop from a sensor to another one that is not itself, as an edge: of the best the lowest number."""
    cost, edge = cost_between(net, goal, sensor), net.field.sensors[sensor].first_edge
    other = net.field.neighbors[edge]
    while cost_between(net, goal, other) + link_cost(net, sensor, other) != cost:
        edge += 1
        other = net.field.neighbors[edge]
    return int(edge)


@rule
def find_way(net: Serai, way: NDArray[np.int32], sensor: int, goal: int) -> int:
    """Put the hops from a sensor to another one into `way`, as edges; how many."""
    hops = 0
    while sensor != goal:
        edge = next_edge(net, sensor, goal)
        way[hops] = edge
        hops += 1
        sensor = net.field.neighbors[edge]
    return hops


# ---- to a subscriber


@rule
def cheapest(net: Serai, session: int, sensor: int, announcing: bool) -> tuple[int, int]:
    """The cost of the best route to a session's subscriber, and its root: the member that hands over.

    Of the members that the subscriber still reaches on its path; as it announces it, those count that it is about to
    leave. FAR and NONE if there is none.
    """
    at, now = net.sessions[session], net.field.clock[0].slot
    best, root = FAR, NONE
    for i in range(at.rows, at.rows_end):
        row = net.reach[i]
        if row.last < now or (row.last == now and not announcing):
            continue
        if net.field.sensors[row.sensor].community != at.community:  # dead, or parted from the others
            continue
        cost = net.rules.per_second * max(row.first - now, 0)
        if cost <= best:
            cost += cost_between(net, row.sensor, sensor)
            if cost < best:  # rows are in order of sensors: of equal ones the lowest number stays
                best, root = cost, row.sensor
    return best, root


@rule
def find_contact(net: Serai, session: int, sensor: int) -> int:
    """The row that says when a session's subscriber reaches a sensor on the path it announced, or NONE."""
    low, high = net.sessions[session].rows, net.sessions[session].rows_end
    while low < high:
        middle = (low + high) >> 1
        if net.reach[middle].sensor < sensor:
            low = middle + 1
        else:
            high = middle
    if low < net.sessions[session].rows_end and net.reach[low].sensor == sensor:
        return int(low)
    return NONE


# ---- by way of a walker


@rule
def find_walker(net: Serai, session: int, sensor: int, cost: int, announcing: bool) -> bool:
    """Whether another subscriber who passes the sensor does better than a route of that cost; `found` says who.

    It takes the copy along and drops it at a sensor, from which it goes on to the path of the session's subscriber.
    """
    best = net.found[0]
    best.cost, best.walker = cost - net.rules.margin, NONE
    if not net.rules.walkers or best.cost <= COST_UNITS:
        return False
    subscriber, community = net.sessions[session].subscriber, net.sessions[session].community
    for word in range(net.rules.words):
        bits = net.passing[sensor, word]
        while bits:
            walker = word * BITS + lowest_bit(bits)
            bits &= bits - 1
            if walker != subscriber:
                try_walker(net, session, sensor, find_session(net, walker, community), announcing)
    return bool(best.walker != NONE)


@step
def try_walker(net: Serai, session: int, sensor: int, taken: int, announcing: bool) -> None:
    """Whether the walker of the session `taken` does better than the best so far."""
    now, second = net.field.clock[0].slot, net.rules.per_second
    best, walk, contact = net.found[0], net.sessions[taken], find_contact(net, taken, sensor)
    if contact == NONE:
        return
    taken_s = max(now, net.reach[contact].first)
    if taken_s > net.reach[contact].last:
        return
    for i in range(walk.rows, walk.rows_end):
        dropped_s = max(taken_s, net.reach[i].first)
        if dropped_s > net.reach[i].last or COST_UNITS + second * (dropped_s - now) >= best.cost:
            continue
        if net.field.sensors[net.reach[i].sensor].community != walk.community:
            continue
        onward, root = cheapest(net, session, net.reach[i].sensor, announcing)
        if root == NONE:
            continue
        meeting = net.reach[find_contact(net, session, root)]
        if meeting.last <= dropped_s:
            continue
        until_met = second * max(meeting.first - now, 0)
        cost = COST_UNITS + (onward - until_met) + max(second * (dropped_s - now), until_met)
        if cost < best.cost:
            best.cost, best.walker, best.until = cost, walk.subscriber, net.reach[contact].last
            best.drop_at, best.drop_by = net.reach[i].sensor, net.reach[i].last


# ---- to wait


@step
def remember_cost(net: Serai, sensor: int, cost: int) -> None:
    """Put the cost of a route that was just announced into the sensor's ring."""
    net.ring[sensor, net.posts[sensor].ring % RING] = cost
    net.posts[sensor].ring += 1


@rule
def waits(net: Serai, sensor: int, cost: int, exposed: bool, heard: int) -> bool:
    """Whether the sensor waits for a cheaper route: the last ones were so much cheaper that it pays.

    What is gained, in seconds, against how long it takes until the next session, about.
    """
    count = min(net.posts[sensor].ring, RING)
    saved = 0
    for i in range(count):
        saved += max(cost - net.ring[sensor, i], 0)
    patience = waiting_time(net, net.field.sensors[sensor].community, heard) * (net.rules.xi if exposed else 1.0)
    return bool(net.rules.lam * saved > patience * (COST_UNITS * count))
