"""CET: CED, and subscribers leave events of small communities behind in other communities.

J. Zhu, N. Liu, M. Liu, H. Gong: Event transmitting oriented to publish/subscribe systems in delay tolerant sensor
networks (in Chinese). Journal of Software 2010, 21(8), 1954-1967.

Where to find what, in the paper's order:

    2.1    network model                                serai.field.communities
    3.1    the community head                           elect
    3.2.1  event collection (Figs 2, 3)                 as in CED: serai.field.collection
    3.2.2  return: (1) sizes, (2) what, when, to whom   fill_bags, return_events, return_event
           (3) notice to the head                       notify
           (4) the tree (Fig. 4 a)                      grow_tree
           (5) placement in preorder (Fig. 4 b)         place, carry
    3.3    queue management (Figs 5, 6)                 as in CED; a returned event is the node's own from then on

The rules in words, with everything the paper leaves open, are in docs/field/rules.md; each open point is a setting.
"""

from typing import Literal, NamedTuple

from pydantic import Field as setting

from serai.core.energy import distance, receive_pj, transmit_pj
from serai.core.jit import engine, shared, step
from serai.core.units import Joules
from serai.field import ced
from serai.field.collection.settings import CollectionRules, CommunitySettings, collection_rules
from serai.field.collection.storing import store
from serai.field.engine.control import energy_left_pj, is_over
from serai.field.engine.ledger import accept, locate, log_drop, log_stored, log_transfer, received_now, send_to_sensor
from serai.field.engine.queues import new_copy
from serai.field.engine.sessions import clear_pending, find_session
from serai.field.engine.setup import drive, lay_out
from serai.field.engine.slots import short_of_room
from serai.field.engine.state import FULL, NONE, PLACEMENT, RETURN, STORED, Field, Limits, in_touch
from serai.field.world import World

PAPER = "J. Zhu et al., Journal of Software 2010, 21(8), 1954-1967"


class Settings(CommunitySettings):
    """The settings of CET: those of CED and four for the return of events."""

    name: Literal["cet"] = "cet"
    gamma: int = setting(
        4, ge=0, description="Events of communities that occupy at most this many cells are returned elsewhere."
    )
    theta_j: Joules = setting(
        5.0, ge=0, alias="theta", description="A community head with less energy left than this is replaced."
    )
    return_count: Literal["kept", "reset"] = setting(
        "kept", description="A returned event keeps its delivery count, or starts again at 0."
    )
    return_memory: Literal["empty", "returner"] = setting(
        "empty", description="A returned copy's memory of whom it was sent for: empty, or it knows who left it here."
    )


class Rules(NamedTuple):
    """The settings as the kernels read them."""

    collection: CollectionRules
    gamma: int
    theta_pj: int
    keep_count: bool
    know_returner: bool


def rules_of(settings: Settings) -> Rules:
    """The settings as the kernels read them."""
    return Rules(
        collection=collection_rules(settings),
        gamma=settings.gamma,
        theta_pj=round(settings.theta_j * 1e12),
        keep_count=settings.return_count == "kept",
        know_returner=settings.return_memory == "returner",
    )


def simulate(world: World, limits: Limits, settings: Settings) -> Field:
    """Run CET over a world; every community begins with an election."""
    rules = rules_of(settings)
    field = lay_out(world, limits, rules.collection.silent_while_pausing, copies=True)
    field.communities.elections = 1
    return drive(field, lambda state, start: advance(state, rules, start))


@engine
def advance(field: Field, rules: Rules, start: int) -> int:
    """Run slots from `start` on; return the first slot not run (earlier than the last one if a pool must grow)."""
    field = shared(field)
    for slot in range(start, field.limits.slots):
        if short_of_room(field):
            return slot
        ced.run_slot(field, rules.collection, slot)
        fill_bags(field, rules)
        for subscriber in range(len(field.subscribers)):
            who = field.subscribers[subscriber]
            if who.bag != NONE and who.sessions > 0 and who.audible:
                return_events(field, rules, subscriber)
        if is_over(field):
            return slot + 1
    return field.limits.slots


# ---- 3.1: the community head


@step
def elect(field: Field, rules: Rules, community: int) -> None:
    """Replace a head that has less than theta left by the sensor with most energy; a new head grows a new tree."""
    group = field.communities[community]
    if energy_left_pj(field, group.head) < rules.theta_pj:
        best, most = NONE, 0
        for i in range(group.start, group.start + group.sensors):
            left = energy_left_pj(field, field.members[i])
            if best == NONE or left > most:
                best, most = field.members[i], left
        group.head = best
        group.elections += 1
    if group.tree != group.head:  # also before the first return: trees are not grown for who never needs one
        grow_tree(field, community)


# ---- 3.2.2 (1), (2): what is returned, when and to whom


@step
def fill_bags(field: Field, rules: Rules) -> None:
    """Matched events of small communities go into the bags of those who received them in this slot."""
    tally = field.tally[0]
    while tally.looked_at < tally.receptions:  # the ledger grows in order of reception: each row is seen once
        row = field.receptions[tally.looked_at]
        if row.wanted and field.communities[origin_of(field, row.event)].cells <= rules.gamma:
            who = field.subscribers[row.subscriber]
            if who.bag == NONE:
                who.bag = tally.looked_at
            else:
                field.receptions[who.bag_end].next = tally.looked_at
            who.bag_end = tally.looked_at
        tally.looked_at += 1


@step
def origin_of(field: Field, event: int) -> int:
    """The community that the event comes from."""
    return int(field.sensors[field.event_sensor[event]].community)


@step
def return_events(field: Field, rules: Rules, subscriber: int) -> None:
    """With what is left of its second, a subscriber returns events from its bag, oldest reception first."""
    who = field.subscribers[subscriber]
    spare = field.limits.rate - received_now(field, subscriber)
    before, entry = NONE, who.bag
    while entry != NONE and spare > 0:
        row = field.receptions[entry]
        community = NONE
        expired = field.clock[0].slot - field.event_time[row.event] > field.limits.lifetime
        if not expired:
            community = receiving_community(field, subscriber, origin_of(field, row.event))
        if expired or community != NONE:
            take_out(field, subscriber, before, entry)
        else:
            before = entry
        if community != NONE:
            return_event(field, rules, subscriber, community, entry)
            spare -= 1
        entry = row.next  # of an entry taken out, too: it still knows what came after it


@step
def take_out(field: Field, subscriber: int, before: int, entry: int) -> None:
    """Take an entry out of the subscriber's bag."""
    who, following = field.subscribers[subscriber], field.receptions[entry].next
    if before == NONE:
        who.bag = following
    else:
        field.receptions[before].next = following
    if following == NONE:
        who.bag_end = before


@step
def receiving_community(field: Field, subscriber: int, origin: int) -> int:
    """The first community in session, other than the origin, of at least two sensors; or NONE."""
    for i in range(field.subscribers[subscriber].sessions):
        community = field.sessions[field.now_with[subscriber, i]].community
        if community != origin and field.communities[community].sensors > 1:
            return int(community)
    return NONE


@step
def return_event(field: Field, rules: Rules, subscriber: int, community: int, entry: int) -> None:
    """Hand one event to the nearest sensor of the community, which has it placed by the head."""
    row = field.receptions[entry]
    elect(field, rules, community)
    receiver = nearest(field, subscriber, community)
    log_transfer(field, row.event, len(field.sensors) + subscriber, receiver, NONE, RETURN, False)
    accept(field, receiver)
    notify(field, receiver)
    goal = next_place(field, community)
    place(field, rules, entry, receiver, goal)


@step
def nearest(field: Field, subscriber: int, community: int) -> int:
    """The sensor of the community in touch with the subscriber that is nearest to it (ties: lower number)."""
    locate(field, subscriber)
    who, group = field.subscribers[subscriber], field.communities[community]
    best, least = NONE, 0.0
    for i in range(group.start, group.start + group.sensors):
        sensor = field.members[i]
        if in_touch(field, sensor, subscriber):
            away = distance(field.sensors[sensor].x, field.sensors[sensor].y, who.x, who.y)
            if best == NONE or away < least:
                best, least = sensor, away
    return best


# ---- 3.2.2 (3): the notice


@step
def notify(field: Field, receiver: int) -> None:
    """The receiver tells the head along the tree, and hears back where to put the event."""
    sensor = receiver
    while field.sensors[sensor].parent != NONE:
        parent = field.sensors[sensor].parent
        a, b = field.sensors[sensor], field.sensors[parent]
        send = transmit_pj(field.limits.radio, field.limits.notice_bits, distance(a.x, a.y, b.x, b.y))
        both = send + receive_pj(field.limits.radio, field.limits.notice_bits)
        a.notice_pj += both  # one way it sends, the other way it receives; so does its parent
        b.notice_pj += both
        field.tally[0].notices += 2
        sensor = parent


# ---- 3.2.2 (4): the tree


@step
def grow_tree(field: Field, community: int) -> None:
    """The head's tree, breadth first, and its preorder; placement starts again at the root."""
    group = field.communities[community]
    group.tree, group.place = group.head, 0
    for i in range(group.start, group.start + group.sensors):
        field.sensors[field.members[i]].depth = NONE
    root = group.head
    field.sensors[root].parent, field.sensors[root].depth = NONE, 0
    field.frontier[0], joined, i = root, 1, 0
    while i < joined:
        sensor = field.frontier[i]
        for n in range(field.neighbor_start[sensor], field.neighbor_start[sensor + 1]):
            child = field.sensors[field.neighbors[n]]
            if child.depth == NONE:
                child.parent, child.depth = sensor, field.sensors[sensor].depth + 1
                field.frontier[joined] = field.neighbors[n]
                joined += 1
        i += 1
    deepest = field.sensors[field.frontier[joined - 1]].depth
    field.tally[0].longest = max(field.tally[0].longest, 2 * deepest)
    write_preorder(field, community)


@step
def write_preorder(field: Field, community: int) -> None:
    """List the tree's sensors in preorder: each node, then its children's subtrees in the order they joined."""
    group = field.communities[community]
    stack, height, written = field.frontier, 1, group.start
    stack[0] = group.head
    while height > 0:
        height -= 1
        sensor = stack[height]
        field.tree_order[written] = sensor
        written += 1
        # A sensor's children joined by number: pushed from the highest, the lowest comes off first.
        for n in range(field.neighbor_start[sensor + 1] - 1, field.neighbor_start[sensor] - 1, -1):
            if field.sensors[field.neighbors[n]].parent == sensor:
                stack[height] = field.neighbors[n]
                height += 1


# ---- 3.2.2 (5): placement


@step
def next_place(field: Field, community: int) -> int:
    """The next sensor in cyclic preorder."""
    group = field.communities[community]
    sensor = field.tree_order[group.start + group.place]
    group.place = (group.place + 1) % group.sensors
    return int(sensor)


@step
def place(field: Field, rules: Rules, entry: int, receiver: int, goal: int) -> None:
    """Carry a returned event along the tree to its place, where it is stored as the sensor's own."""
    row = field.receptions[entry]
    carry(field, row.event, receiver, goal)
    if field.sensors[goal].queue >= field.limits.queue:
        log_drop(field, row.event, goal, FULL, NONE)
        return
    c = new_copy(field, row.event, goal, row.count if rules.keep_count else 0, STORED)
    log_stored(field)
    store(field, rules.collection, c)
    if rules.know_returner:
        clear_pending(field, c, find_session(field, row.subscriber, field.sensors[goal].community))


@step
def carry(field: Field, event: int, start: int, goal: int) -> None:
    """Take an event along the tree from one sensor to another: up to where their ways meet, then down."""
    # The deeper of the two climbs until they meet: that is where the way turns down. Upward hops can be made at once,
    # downward ones are known only from the goal upward, so they are noted and made in reverse.
    meeting, other = start, goal
    while meeting != other:
        if field.sensors[meeting].depth >= field.sensors[other].depth:
            parent = field.sensors[meeting].parent
            hop(field, event, meeting, parent)
            meeting = parent
        else:
            other = field.sensors[other].parent
    below = goal
    down = 0
    while below != meeting:
        field.frontier[down] = below
        down += 1
        below = field.sensors[below].parent
    for i in range(down - 1, -1, -1):
        hop(field, event, field.sensors[field.frontier[i]].parent, field.frontier[i])


@step
def hop(field: Field, event: int, sender: int, receiver: int) -> None:
    """One paid hop of a placement."""
    a, b, limits = field.sensors[sender], field.sensors[receiver], field.limits
    cost = transmit_pj(limits.radio, limits.bits, distance(a.x, a.y, b.x, b.y))
    send_to_sensor(field, sender, receiver, cost, True)
    log_transfer(field, event, sender, receiver, NONE, PLACEMENT, False)
