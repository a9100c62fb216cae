"""CET: CED, and subscribers leave events of small communities behind in other communities.

J. Zhu, N. Liu, M. Liu, H. Gong: Event transmitting oriented to publish/subscribe systems in delay tolerant sensor
networks (in Chinese). Journal of Software 2010, 21(8), 1954-1967.

Where to find what, in the paper's order:

    2.1    network model                                serai.field.communities
    3.1    the community head                           collection.heads, look_after_head
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
from serai.field.collection.deaths import bury, deaths_need_room
from serai.field.collection.heads import elect
from serai.field.collection.settings import CollectionRules, CommunitySettings, collection_rules
from serai.field.collection.storing import store
from serai.field.collection.waking import wake
from serai.field.engine.batteries import charge, listen
from serai.field.engine.ledger import (
    accept,
    can_send,
    log_drop,
    log_refused,
    log_stored,
    log_transfer,
    received_now,
)
from serai.field.engine.queues import new_copy
from serai.field.engine.reach import in_touch, locate
from serai.field.engine.sessions import clear_pending, find_session
from serai.field.engine.setup import drive, lay_out
from serai.field.engine.slots import is_over, short_of_room
from serai.field.engine.state import (
    DEAD,
    FULL,
    NONE,
    NOTICE,
    PLACEMENT,
    RETURN,
    STORED,
    Field,
    Limits,
)
from serai.field.world import World

PAPER = "J. Zhu et al., Journal of Software 2010, 21(8), 1954-1967"


class Settings(CommunitySettings):
    """The settings of CET: those of CED and five for the return of events."""

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
        "empty", description="Whom a returned copy remembers as served: nobody, or the subscriber that left it here."
    )
    return_to_origin: bool = setting(
        False, description="Whether an event may also be returned to the community that it comes from."
    )


class Rules(NamedTuple):
    """The settings as the kernels read them."""

    return_to_origin: bool

    collection: CollectionRules
    gamma: int
    theta_pj: int
    keep_count: bool
    know_returner: bool


def rules_of(settings: Settings) -> Rules:
    """The settings as the kernels read them."""
    return Rules(
        return_to_origin=settings.return_to_origin,
        collection=collection_rules(settings, returns=True),
        gamma=settings.gamma,
        theta_pj=round(settings.theta_j * 1e12),
        keep_count=settings.return_count == "kept",
        know_returner=settings.return_memory == "returner",
    )


def simulate(world: World, limits: Limits, settings: Settings) -> Field:
    """Run CET over a world."""
    rules = rules_of(settings)
    field = lay_out(world, limits, rules.collection.silent_while_pausing, copies=True)
    return drive(field, lambda state, start: advance(state, rules, start))


@engine
def advance(field: Field, rules: Rules, start: int) -> int:
    """Run slots from `start` on; return the first slot not run (earlier than the last one if a pool must grow)."""
    field = shared(field)
    for slot in range(start, field.limits.slots):
        if short_of_room(field):
            return slot
        if not field.tally[0].unburied:
            if slot == 0:
                elect_first_heads(field)
            run_slot(field, rules, slot)
            listen(field)
        if deaths_need_room(field):
            return slot
        if field.tally[0].exhausted > 0:
            bury(field, rules.collection)
        wake(field, rules.collection)
        if is_over(field):
            return slot + 1
    return field.limits.slots


@step
def run_slot(field: Field, rules: Rules, slot: int) -> None:
    """One second of the field: docs/field/rules.md, "A slot of CED and CET", steps 1 to 5."""
    ced.run_slot(field, rules.collection, slot)
    fill_bags(field, rules)
    for subscriber in range(len(field.subscribers)):
        who = field.subscribers[subscriber]
        if who.bag != NONE and who.sessions > 0 and who.audible:
            return_events(field, rules, subscriber)


# ---- 3.1: the community head


@step
def elect_first_heads(field: Field) -> None:
    """At the start of a run every community elects a head."""
    for community in range(field.tally[0].communities):
        elect(field, community)


@step
def look_after_head(field: Field, rules: Rules, community: int) -> None:
    """A head that has less than theta left is replaced; a new head grows a new tree."""
    group = field.communities[community]
    if field.sensors[group.head].left_pj < rules.theta_pj:
        elect(field, community)
    if group.tree != group.head:  # also before the first return: trees are not grown for who never needs one
        grow_tree(field, community)


# ---- 3.2.2 (1), (2): what is returned, when and to whom


@step
def fill_bags(field: Field, rules: Rules) -> None:
    """Events of small communities go into the bags of those who received them in this slot and asked for them, or only
    carry."""
    tally = field.tally[0]
    while tally.looked_at < tally.receptions:  # the ledger grows in order of reception: each row is seen once
        row = field.receptions[tally.looked_at]
        origin = origin_of(field, row.event)
        who = field.subscribers[row.subscriber]
        if (row.wanted or who.carries) and (origin == NONE or field.communities[origin].places <= rules.gamma):
            if who.bag == NONE:
                who.bag = tally.looked_at
            else:
                field.receptions[who.bag_end].next = tally.looked_at
            who.bag_end = tally.looked_at
        tally.looked_at += 1


@step
def origin_of(field: Field, event: int) -> int:
    """The community that the event comes from, or NONE if its sensor is dead."""
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
            barred = NONE if rules.return_to_origin else origin_of(field, row.event)
            community = receiving_community(field, subscriber, barred)
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
def receiving_community(field: Field, subscriber: int, barred: int) -> int:
    """The first community in session, other than that barred, of at least two sensors; or NONE."""
    for i in range(field.subscribers[subscriber].sessions):
        community = field.sessions[field.now_with[subscriber, i]].community
        if community != barred and field.communities[community].sensors > 1:
            return int(community)
    return NONE


@step
def return_event(field: Field, rules: Rules, subscriber: int, community: int, entry: int) -> None:
    """Hand one event to the nearest sensor of the community, which has it placed by the head."""
    row = field.receptions[entry]
    look_after_head(field, rules, community)
    receiver = nearest(field, subscriber, community)
    refused = accept(field, receiver, False) != NONE
    log_transfer(field, row.event, len(field.sensors) + subscriber, receiver, NONE, RETURN, refused)
    if refused:
        log_refused(field, row.event, receiver, DEAD, NONE)
        return
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
        charge(field, sensor, both)  # one way it sends, the other way it receives; so does its parent
        charge(field, parent, both)
        field.messages[NOTICE] += 2
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
        for n in range(field.sensors[sensor].first_edge, field.sensors[sensor].end_edge):
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
        for n in range(field.sensors[sensor].end_edge - 1, field.sensors[sensor].first_edge - 1, -1):
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
    if not carry(field, row.event, receiver, goal):
        return
    if field.sensors[goal].queue >= field.sensors[goal].capacity:
        log_drop(field, row.event, goal, FULL, NONE)
        return
    c = new_copy(field, row.event, goal, row.count if rules.keep_count else 0, STORED)
    log_stored(field)
    store(field, rules.collection, c)
    if rules.know_returner:
        clear_pending(field, c, find_session(field, row.subscriber, field.sensors[goal].community))


@step
def carry(field: Field, event: int, start: int, goal: int) -> bool:
    """Take an event along the tree from one sensor to another: up to where their ways meet, then down.

    Whether it arrived: a sensor on the way may be exhausted.
    """
    # The deeper of the two climbs until they meet: that is where the way turns down. Upward hops can be made at once,
    # downward ones are known only from the goal upward, so they are noted and made in reverse.
    meeting, other = start, goal
    while meeting != other:
        if field.sensors[meeting].depth >= field.sensors[other].depth:
            parent = field.sensors[meeting].parent
            if not hop(field, event, meeting, parent):
                return False
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
        if not hop(field, event, field.sensors[field.frontier[i]].parent, field.frontier[i]):
            return False
    return True


@step
def hop(field: Field, event: int, sender: int, receiver: int) -> bool:
    """One paid hop of a placement; an event that a sensor cannot pay for is lost there."""
    a, b, limits = field.sensors[sender], field.sensors[receiver], field.limits
    if not can_send(field, sender, transmit_pj(limits.radio, limits.bits, distance(a.x, a.y, b.x, b.y))):
        log_refused(field, event, sender, DEAD, NONE)
        return False
    refused = accept(field, receiver, False) != NONE
    log_transfer(field, event, sender, receiver, NONE, PLACEMENT, refused)
    if refused:
        log_refused(field, event, receiver, DEAD, NONE)
    return not refused
