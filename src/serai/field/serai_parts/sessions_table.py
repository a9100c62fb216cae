"""The sessions of subscribers with communities, found by both: a hash table (open addressing)."""

import math

from serai.core.jit import step
from serai.core.order import mix
from serai.field.engine.state import NONE
from serai.field.serai_parts.state import Serai


@step
def place_of_session(net: Serai, subscriber: int, community: int) -> int:
    """Where the session stands in the table, or would stand; there are always free places."""
    last = len(net.session_table) - 1
    place = (mix(community) + mix(subscriber) * 3) & last
    while net.session_table[place] != NONE:
        session = net.sessions[net.session_table[place]]
        if session.subscriber == subscriber and session.community == community:
            break
        place = (place + 1) & last
    return int(place)


@step
def find_session(net: Serai, subscriber: int, community: int) -> int:
    """The session of a subscriber with a community, or NONE if they have never met."""
    return int(net.session_table[place_of_session(net, subscriber, community)])


@step
def session_with(net: Serai, subscriber: int, community: int) -> int:
    """The session of a subscriber with a community; made, if they meet for the first time."""
    place = place_of_session(net, subscriber, community)
    if net.session_table[place] == NONE:
        session = net.tally[0].sessions
        net.tally[0].sessions += 1
        net.session_table[place] = session
        made, group, who = net.sessions[session], net.groups[community], net.walkers[subscriber]
        made.subscriber, made.community, made.leg, made.carry = subscriber, community, NONE, False
        made.wait = math.nan
        made.next, made.next_met = group.sessions, who.met
        made.rows, made.rows_end, made.until = 0, 0, NONE
        group.sessions, who.met = session, session
        group.met += 1
    return int(net.session_table[place])
