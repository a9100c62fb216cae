"""Dead sensors wake: communities form anew of those that were one at the start, and tell each other what they know.

Who wakes has forgotten everything. What some of the others have heard of subscriptions all know then; announced paths
are forgotten, and announced again by who comes or is in reach. To subscribers the part with the lowest sensor is the
community that was there at the start, the others are new.
"""

import math

from serai.core.jit import lowest_bit, rule, step
from serai.field.collection.deaths import number_members
from serai.field.collection.kin import are_kin, form_anew, is_renewed, wake_sensors
from serai.field.engine.state import BITS, NONE
from serai.field.serai_parts.control import flood_map, note_wait
from serai.field.serai_parts.copies import extend_wants
from serai.field.serai_parts.deaths import measure_neighbors
from serai.field.serai_parts.state import Serai, count_bits, name_anew, take


@rule
def wake(net: Serai) -> None:
    """The end of the slot for sensors that have harvested enough."""
    count = wake_sensors(net.field)
    for i in range(count):
        net.posts[net.field.power.woken[i]].ring = 0  # what it knew is lost
    for i in range(count):
        kin = net.field.power.kin[net.field.power.woken[i]]
        if not is_renewed(net.field, kin):
            share_what_is_known(net, kin)
            form_anew(net.field, kin)
            begin_anew(net, kin)
    if count > 0:
        net.tally[0].epoch += 1
        for subscriber in range(net.rules.subscribers):
            net.walkers[subscriber].next_change = net.field.clock[0].slot + 1


@step
def share_what_is_known(net: Serai, kin: int) -> None:
    """Subscriptions and the number of sessions heard, put together in the record of the kin; paths are forgotten."""
    heard = 0
    for word in range(net.rules.words):
        known = 0
        for community in range(net.field.tally[0].communities):
            if are_kin(net.field, community, kin):
                known |= net.subscribed[community, word]
        net.subscribed[kin, word] = known
    for community in range(net.field.tally[0].communities):
        if are_kin(net.field, community, kin):
            heard = max(heard, net.groups[community].heard)
        if net.field.communities[community].origin == kin:
            forget_paths(net, community, community != kin)
    net.groups[kin].heard = heard


@step
def forget_paths(net: Serai, community: int, is_new: bool) -> None:
    """Nobody has announced a path here; a community that is new to subscribers has told them nothing, either."""
    session, kin = net.groups[community].sessions, net.field.communities[community].origin
    while session != NONE:
        at = net.sessions[session]
        for i in range(at.rows, at.rows_end):
            if net.field.power.kin[net.reach[i].sensor] == kin:  # what others know of it they still know
                take(net.passing, net.reach[i].sensor, at.subscriber)
        at.leg, at.rows, at.rows_end, at.until, at.carry = NONE, 0, 0, NONE, False
        if is_new and not math.isnan(at.wait):
            note_wait(net, at.subscriber, session, math.inf)
            at.wait = math.nan
        session = at.next


@rule
def begin_anew(net: Serai, kin: int) -> None:
    """Each community of these kin knows what all of them know, and draws its map."""
    known = 0
    for word in range(net.rules.words):
        known += count_bits(net.subscribed[kin, word])
    for community in range(net.field.tally[0].communities):
        if not are_kin(net.field, community, kin):
            continue
        if community != kin:
            name_anew(net, community)
        number_members(net.field, community)
        net.groups[community].heard, net.groups[community].known = net.groups[kin].heard, known
        for word in range(net.rules.words):
            news = net.subscribed[kin, word]
            net.subscribed[community, word] = news
            while news:
                extend_wants(net, community, word * BITS + lowest_bit(news))
                news &= news - 1
        measure_neighbors(net, community)
        flood_map(net, community)
