"""Rule 10: what becomes of copies that are new in this second, as soon as everybody has been attended to.

A new copy goes to all whose announced path passes its community: along one tree, in which each branch leaves the tree
where it is nearest to its goal.
"""

from serai.core.jit import lowest_bit, rule, step
from serai.field.engine.ledger import log_drop
from serai.field.engine.state import BITS, DEAD, NONE, RELAY, SOURCE
from serai.field.serai_parts.control import GOAL_BITS
from serai.field.serai_parts.copies import (
    assign,
    assign_again,
    can_be_carried,
    free_map,
    give_map,
    make_room,
    new_copy,
    settle,
    take_map_back,
    want,
    want_again,
    would_give_map,
)
from serai.field.serai_parts.pushing import push_copy
from serai.field.serai_parts.routes import cheapest, find_contact, find_walker, find_way, waits
from serai.field.serai_parts.sending import ARRIVED, STUCK, UNPAID, can_keep, hop, map_size
from serai.field.serai_parts.sessions_table import find_session
from serai.field.serai_parts.state import FAR, FREE, RELAY_COPY, Serai, holds


@step
def spread_new_copies(net: Serai) -> None:
    """All new copies, in the order in which they came into being."""
    tally = net.tally[0]
    for i in range(1, tally.fresh):  # nearly sorted as they are
        c, n = net.fresh[i], i
        while n > 0 and net.copies[net.fresh[n - 1]].serial > net.copies[c].serial:
            net.fresh[n] = net.fresh[n - 1]
            n -= 1
        net.fresh[n] = c
    for i in range(tally.fresh):
        c = net.fresh[i]
        if net.copies[c].fresh and net.copies[c].kind != FREE:  # it may have had to make room since
            net.copies[c].fresh = False
            if not net.field.sensors[net.copies[c].sensor].exhausted:
                spread(net, c)
    tally.fresh = 0


@rule
def spread(net: Serai, c: int) -> None:
    """Send a new copy to all who are to come by in its community, unless it pays to wait."""
    goals = find_goals(net, c)
    if goals > 1 and net.rules.multicast:
        send_down_tree(net, c, goals)
    else:
        for i in range(goals):
            goal = net.goals[i]
            gives = i == goals - 1 and last_gives(net, c, i)
            hops = find_way(net, net.way, net.copies[c].sensor, goal.root)
            if not push_copy(net, c, goal.subscriber, hops, gives):
                return
    if goals == 0 and net.rules.pull_at_birth and can_be_carried(net, c):
        call_carrier(net, c)


# ---- who is to have it


@step
def find_goals(net: Serai, c: int) -> int:
    """Whom the copy is sent to now, by rising cost, into `goals`; how many. One may be left to a walker instead."""
    copy, goals = net.copies[c], 0
    community = net.field.sensors[copy.sensor].community
    heard = net.groups[community].heard
    for word in range(net.rules.words):
        bits = net.wanted[c, word]
        while bits:
            session = find_session(net, word * BITS + lowest_bit(bits), community)
            bits &= bits - 1
            if session == NONE:
                continue
            cost, root = cheapest(net, session, copy.sensor, False)
            if root == NONE or root == copy.sensor:
                continue
            by_walker = copy.walker == NONE and find_walker(net, session, copy.sensor, cost, False)
            if waits(net, copy.sensor, net.found[0].cost if by_walker else cost, bool(copy.exposed), heard):
                continue
            if by_walker:
                assign(net, c, net.sessions[session].subscriber)
            else:
                goals = add_goal(net, goals, session, cost, root)
    return goals


@step
def add_goal(net: Serai, count: int, session: int, cost: int, root: int) -> int:
    """Add a goal in its place; how many there are now."""
    i = count
    while i > 0 and net.goals[i - 1].cost > cost:  # of equal costs the lower number was there before
        net.goals[i] = net.goals[i - 1]
        i -= 1
    goal = net.goals[i]
    goal.session, goal.subscriber, goal.cost, goal.root = session, net.sessions[session].subscriber, cost, root
    return count + 1


@step
def last_gives(net: Serai, c: int, i: int) -> bool:
    """Whether the want map of all who are left goes along to the last goal, when all before it are settled."""
    goal = net.goals[i]
    carries = net.sessions[goal.session].carry and net.rules.map_at_birth
    return bool(carries and would_give_map(net, c, goal.subscriber))


# ---- one tree for all


@rule
def send_down_tree(net: Serai, c: int, goals: int) -> None:
    """Multicast: over each link once, to all goals beyond it."""
    copy, exposed, walker = net.copies[c], bool(net.copies[c].exposed), net.copies[c].walker
    for i in range(goals - 1):
        settle(net, c, net.goals[i].subscriber)
    gives = last_gives(net, c, goals - 1)
    settle(net, c, net.goals[goals - 1].subscriber)
    m = give_map(net, c) if gives else NONE
    nodes = grow_tree(net, copy.sensor, goals, bool(gives))
    for n in range(1, nodes):
        if not net.tree[net.tree[n].parent].arrived:
            continue
        fate = go_down(net, copy.event, n, goals)
        net.tree[n].arrived = fate == ARRIVED
        place = place_of_copy(net, n, fate)
        has_map = net.goals[goals - 1].node == n if place == n else net.tree[n].map
        if place == 0:
            take_back(net, c, n, goals, walker)
            if has_map:
                take_map_back(net, c, m, exposed)
                m = NONE
        elif place != NONE and lay_down_for_all(net, copy.event, place, n, goals, exposed) and has_map:
            net.copies[net.tree[place].relay].map = m
            m = NONE
    if m != NONE:
        free_map(net, m)


@step
def place_of_copy(net: Serai, n: int, fate: int) -> int:
    """The node at which a copy is to lie after the hop to the n-th: at a root, or where it was not heard; or NONE."""
    if fate == STUCK:
        return int(net.tree[n].parent)
    return n if fate == ARRIVED and net.tree[n].root else NONE


@step
def take_back(net: Serai, c: int, n: int, goals: int, walker: int) -> None:
    """The copy did not get from its sensor to a node: those beyond are to be served as before, or by that walker."""
    for i in range(goals):
        if is_beyond(net, n, net.goals[i].node):
            want_again(net, c, net.goals[i].subscriber)
            if walker != NONE and net.copies[c].target == net.goals[i].subscriber:
                assign_again(net, c, walker)


@rule
def grow_tree(net: Serai, sensor: int, goals: int, gives: bool) -> int:
    """The tree to all goals: each branch leaves it where it is nearest to its goal; how many nodes it has."""
    net.tree[0].sensor, net.tree[0].parent, net.tree[0].root, net.tree[0].arrived = sensor, NONE, False, True
    net.tree[0].outgoing, net.tree[0].relay = 0, NONE
    nodes = 1
    for i in range(goals):
        goal = net.goals[i]
        at = 0
        if i > 0:
            at = nearest_node(net, goal.session, nodes)
            goal.root = cheapest(net, goal.session, net.tree[at].sensor, False)[1]
        for n in range(find_way(net, net.way, net.tree[at].sensor, goal.root)):
            node = net.tree[nodes]
            node.sensor, node.parent, node.edge = net.field.neighbors[net.way[n]], at, net.way[n]
            node.goals, node.outgoing, node.root, node.map, node.arrived = 0, 0, False, False, False
            node.relay = NONE
            net.tree[at].outgoing += 1
            at = nodes
            nodes += 1
        goal.node = at
        net.tree[at].root = True
        while at != 0:
            net.tree[at].goals += 1
            net.tree[at].map = gives and i == goals - 1
            at = net.tree[at].parent
    return nodes


@step
def nearest_node(net: Serai, session: int, nodes: int) -> int:
    """The node of the tree from which the route to a subscriber is cheapest: of equal ones the lowest sensor."""
    nearest, least = 0, FAR
    for n in range(nodes):
        cost = cheapest(net, session, net.tree[n].sensor, False)[0]
        if cost < least or (cost == least and net.tree[n].sensor < net.tree[nearest].sensor):
            nearest, least = n, cost
    return nearest


@rule
def go_down(net: Serai, event: int, n: int, goals: int) -> int:
    """The event goes over the link to a node: what becomes of it."""
    node = net.tree[n]
    parent = net.tree[node.parent]
    addressee = NONE
    if node.goals == 1:
        for i in range(goals):
            if is_beyond(net, n, net.goals[i].node):
                addressee = net.goals[i].subscriber
    kind = SOURCE if node.parent == 0 else RELAY
    along = (map_size(net) if node.map else 0, GOAL_BITS * node.goals)
    fate = hop(net, event, parent.sensor, node.edge, addressee, kind, bool(node.root), along)
    parent.outgoing -= 1
    is_last = parent.outgoing == 0 and not parent.root
    if fate == STUCK:
        return STUCK
    if fate == UNPAID:
        if node.parent != 0 and is_last:
            log_drop(net.field, event, parent.sensor, DEAD, NONE)
    elif net.field.limits.full_log and not is_last:  # the copy that came to the parent stays for others
        net.field.transfer_log[net.field.tally[0].transfers - 1].moved = False
    return fate


@step
def is_beyond(net: Serai, n: int, node: int) -> bool:
    """Whether the way from the tree's first node to `node` leads through the n-th."""
    while node > n:
        node = net.tree[node].parent
    return node == n


@step
def lay_down_for_all(net: Serai, event: int, place: int, n: int, goals: int, exposed: bool) -> bool:
    """One relay copy at a node of the tree for all goals at the n-th; if that is another one, for all beyond it.

    Whether it lies there.
    """
    node = net.tree[place]
    if node.relay == NONE:
        if place != n and not can_keep(net, node.sensor, event, NONE, node.outgoing == 0):
            return False
        make_room(net, node.sensor)
        node.relay = new_copy(net, node.sensor, event, RELAY_COPY, exposed)
    if node.relay == NONE:
        return False
    node.root = True  # the event stays here, too
    for i in range(goals):
        if net.goals[i].node == n or (place != n and is_beyond(net, n, net.goals[i].node)):
            want(net, node.relay, net.goals[i].subscriber)
    return True


# ---- to a carrier


@rule
def call_carrier(net: Serai, c: int) -> None:
    """A new event that was sent to nobody goes to the cheapest carrier within some hops, unless one will come by."""
    copy, now = net.copies[c], net.field.clock[0].slot
    best, least, best_root = NONE, FAR, NONE
    session = net.groups[net.field.sensors[copy.sensor].community].sessions
    while session != NONE:
        at = net.sessions[session]
        if at.carry and at.until > now and not holds(net.settled, c, at.subscriber):
            contact = find_contact(net, session, copy.sensor)
            if contact != NONE and net.reach[contact].last > now:
                return
            cost, root = cheapest(net, session, copy.sensor, False)
            better = cost < least or (cost == least and best != NONE and at.subscriber < net.sessions[best].subscriber)
            if root != NONE and better and not holds(net.wanted, c, at.subscriber):
                hops = find_way(net, net.way, copy.sensor, root)
                if hops <= net.rules.pull_hops:
                    best, least, best_root = session, cost, root
        session = at.next
    if best != NONE:
        hops = find_way(net, net.way, copy.sensor, best_root)
        push_copy(net, c, net.sessions[best].subscriber, hops, True)
