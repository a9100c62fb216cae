"""The end of a slot in which sensors died: their copies are lost, and the communities that are left form anew.

What the members of a community have heard they still know in its parts: subscriptions, sessions, paths. To subscribers
the part with the lowest sensor is the same community; each other one is a new one, of which they know nothing yet.
"""

from serai.core.energy import distance
from serai.core.jit import rule, step
from serai.field.collection.deaths import cut_off, deaths_need_room, divide, number_members, part_after
from serai.field.engine.batteries import forget_exhausted, mark_dead
from serai.field.engine.state import DEAD, NONE
from serai.field.serai_parts.control import flood_map
from serai.field.serai_parts.copies import log_held_drop, remove_copy
from serai.field.serai_parts.sessions_table import session_with
from serai.field.serai_parts.state import Serai, name_anew


@step
def need_room(net: Serai) -> bool:
    """Whether the deaths of this slot may make more communities and sessions than there are records for."""
    short, field = deaths_need_room(net.field), net.field
    sessions = net.tally[0].sessions
    for i in range(field.tally[0].exhausted):
        here = field.sensors[field.exhausted[i]]
        sessions += (here.end_edge - here.first_edge) * net.groups[here.community].met
    if sessions > len(net.sessions):
        field.tally[0].unburied = short = True
    return short


@rule
def bury(net: Serai) -> None:
    """The exhausted sensors die, and their communities go on without them."""
    field, count = net.field, net.field.tally[0].exhausted
    for i in range(count):
        sensor = field.exhausted[i]
        while net.posts[sensor].copies != NONE:
            log_held_drop(net, net.posts[sensor].copies, DEAD)
            remove_copy(net, net.posts[sensor].copies)
        mark_dead(field, sensor)
        cut_off(field, sensor)
    for i in range(count):
        community = field.sensors[field.exhausted[i]].community
        if community != NONE:  # not yet done with another one's death
            regroup(net, community)
    forget_exhausted(field, count)
    net.tally[0].epoch += 1
    for subscriber in range(net.rules.subscribers):
        net.walkers[subscriber].next_change = field.clock[0].slot + 1


@step
def regroup(net: Serai, whole: int) -> None:
    """A community that lost sensors becomes the communities that its living ones form, and each draws its map."""
    first_new = net.field.tally[0].communities
    living = divide(net.field, whole)
    number_members(net.field, whole)
    part = part_after(net.field, whole, whole, living)
    while part != NONE:
        number_members(net.field, part)
        inherit(net, part, whole, part >= first_new)
        measure_neighbors(net, part)
        flood_map(net, part)
        part = part_after(net.field, part, whole, living)
    measure_neighbors(net, whole)
    flood_map(net, whole)


@step
def inherit(net: Serai, part: int, whole: int, is_fresh: bool) -> None:
    """What was heard in the whole is known in the part; a record that was spare has sessions, which are blank."""
    made, old = net.groups[part], net.groups[whole]
    made.heard, made.known = old.heard, old.known
    name_anew(net, part)
    if is_fresh:
        made.sessions, made.met = NONE, 0
    for word in range(net.rules.words):
        net.subscribed[part, word] = net.subscribed[whole, word]
    session = old.sessions
    while session != NONE:
        at = net.sessions[session]
        other = net.sessions[session_with(net, at.subscriber, part)]
        other.leg, other.rows, other.rows_end, other.until, other.carry = (
            at.leg,
            at.rows,
            at.rows_end,
            at.until,
            at.carry,
        )
        session = at.next


@step
def measure_neighbors(net: Serai, community: int) -> None:
    """How far each member must speak."""
    group = net.field.communities[community]
    for i in range(group.start, group.start + group.sensors):
        here, far_m = net.field.sensors[net.field.members[i]], 0.0
        for n in range(here.first_edge, here.end_edge):
            other = net.field.sensors[net.field.neighbors[n]]
            far_m = max(far_m, distance(here.x, here.y, other.x, other.y))
        net.posts[net.field.members[i]].far_m = far_m
