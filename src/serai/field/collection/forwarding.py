"""CED 4.1: a sensor's turn. Events go layer by layer towards Z, evenly over the relays (Fig. 3), to the subscriber."""

from serai.core.jit import step
from serai.field.collection.layers import build_layers
from serai.field.collection.settings import CollectionRules
from serai.field.engine.ledger import (
    accept,
    can_send,
    log_drop,
    log_refused,
    log_transfer,
    receive,
    received_now,
    to_subscriber_pj,
)
from serai.field.engine.queues import count_of, discard, goes_first, insert_stored, new_copy, rank_of, remove_stored
from serai.field.engine.reach import in_touch
from serai.field.engine.sessions import (
    address,
    clear_all_pending,
    clear_pending,
    count_pending,
    find_session,
    link_at,
    session_of_bit,
    set_relayed,
    take_first,
)
from serai.field.engine.state import EXPIRED_COPY, NONE, RELAY, RELAYED, SOURCE, SPENT, Field
from serai.field.engine.turns import line_up


@step
def take_turn(field: Field, rules: CollectionRules, sensor: int) -> None:
    """A sensor's turn: up to `rate` events, in queue order, each towards its subscriber; an exhausted one has none."""
    here = field.sensors[sensor]
    if here.exhausted:
        return
    find_open_sessions(field, rules, sensor)
    stored = next_pending(field, sensor, here.stored)
    for _ in range(field.limits.rate):
        relaying = first_relaying(field, sensor)
        if stored == NONE and relaying == NONE:
            break
        # Stored and relayed copies are one queue in the paper, two structures here: the first of both goes.
        link = NONE if relaying == NONE else link_at(field, relaying, sensor)
        if relaying == NONE or (stored != NONE and goes_first(field, stored, field.links[link].relayed)):
            stored = send_stored(field, rules, sensor, stored)
        else:
            send_relayed(field, rules, sensor, relaying, link)
        if here.exhausted:
            return
        stored = next_pending(field, sensor, stored)  # which sessions are open may have changed
    if has_more_to_send(field, sensor):
        line_up(field, sensor)


@step
def find_open_sessions(field: Field, rules: CollectionRules, sensor: int) -> None:
    """Note which sessions the sensor can serve, of those it has something for, and which of these are open now."""
    community = field.sensors[sensor].community
    for word in range(field.communities[community].words):
        bits = (field.has_pending[sensor, word] | field.carrying[sensor, word]) & field.in_session[community, word]
        within_reach = open_now = 0
        while bits:
            session, bit = session_of_bit(field, community, word, bits), bits & -bits
            # Layers are worked out by whoever first has something to send: many zones pass without anybody.
            if field.sessions[session].stale:
                build_layers(field, rules, session)
            layer = field.links[link_at(field, session, sensor)].layer
            forwards = layer > 0
            subscriber = field.sessions[session].subscriber
            # From layer 1 on there is always somebody closer; in Z the subscriber itself must be within touch.
            if field.subscribers[subscriber].audible and (
                forwards or (layer == 0 and in_touch(field, sensor, subscriber))
            ):
                count_pending(field, sensor, session)
                within_reach |= bit
                if forwards or received_now(field, subscriber) < field.limits.rate:
                    open_now |= bit
            bits ^= bit
        field.within_reach[word], field.open_sessions[word] = within_reach, open_now


@step
def has_more_to_send(field: Field, sensor: int) -> bool:
    """Whether the sensor could send more in the next slot without anybody moving.

    Within reach, not open: a subscriber that can take no more in this slot can in the next.
    """
    for word in range(field.communities[field.sensors[sensor].community].words):
        if (field.has_pending[sensor, word] | field.carrying[sensor, word]) & field.within_reach[word]:
            return True
    return False


@step
def next_pending(field: Field, sensor: int, c: int) -> int:
    """The sensor's first stored copy from c on that is pending for an open session, or NONE."""
    words = field.communities[field.sensors[sensor].community].words
    # The sensor's own bits first: they spare most sensors the walk through a queue in which nothing can go.
    for word in range(words):
        if field.has_pending[sensor, word] & field.open_sessions[word]:
            break
    else:
        return NONE
    while c != NONE:
        for word in range(words):
            if field.pending[c, word] & field.open_sessions[word]:
                return c
        c = field.copies[c].next
    return NONE


@step
def first_relaying(field: Field, sensor: int) -> int:
    """The open session whose first relayed copy at the sensor goes before the others', or NONE."""
    community, best, best_copy = field.sensors[sensor].community, NONE, NONE
    for word in range(field.communities[community].words):
        bits = field.open_sessions[word] & field.carrying[sensor, word]
        while bits:
            session = session_of_bit(field, community, word, bits)
            link = link_at(field, session, sensor)
            c = field.links[link].relayed
            if field.copies[c].state == EXPIRED_COPY:  # since the heap was last read
                set_relayed(field, session, sensor, link, c)
                c = field.links[link].relayed
            if c != NONE and (best_copy == NONE or goes_first(field, c, best_copy)):
                best, best_copy = session, c
            bits &= bits - 1
    return int(best)


@step
def send_stored(field: Field, rules: CollectionRules, sensor: int, c: int) -> int:
    """Send a stored copy towards the first open session it is pending for; return the copy to look at next.

    4.2 B: each sending by the source counts as a successful delivery. 4.2 C: the copy is kept, in its new place.
    """
    copy = field.copies[c]
    session, count = first_pending_session(field, c), count_of(copy.rank, copy.event)
    edge = next_hop(field, session, sensor)
    if not can_send(field, sensor, hop_cost(field, session, sensor, edge)):
        return c
    clear_pending(field, c, session)
    if edge == NONE:
        hand_over(field, session, sensor, copy.event, count, SOURCE)
    elif forward(field, session, sensor, edge, copy.event, SOURCE):
        arrive(field, rules, new_copy(field, copy.event, field.neighbors[edge], count, RELAYED), session)
    following = copy.next
    copy.rank = rank_of(count + 1, copy.event)
    if count + 1 > rules.alpha:
        log_drop(field, copy.event, sensor, SPENT, NONE)
        clear_all_pending(field, c)
        remove_stored(field, c)
        discard(field, c)
        return int(following)
    # One more delivery moves the copy back, never forward. What lies before it in the queue was passed over in this
    # turn, and sessions only close during a turn, so the search goes on from here: a turn walks through the queue once.
    if following == NONE or goes_first(field, c, following):
        return c
    remove_stored(field, c)
    insert_stored(field, c, following)
    return int(following)


@step
def first_pending_session(field: Field, c: int) -> int:
    """The open session, of the lowest subscriber, that the copy is pending for."""
    word = 0
    while not field.pending[c, word] & field.open_sessions[word]:
        word += 1
    community = field.sensors[field.copies[c].holder].community
    return session_of_bit(field, community, word, field.pending[c, word] & field.open_sessions[word])


@step
def send_relayed(field: Field, rules: CollectionRules, sensor: int, session: int, link: int) -> None:
    """Send the first relayed copy of the session on."""
    edge = next_hop(field, session, sensor)
    if not can_send(field, sensor, hop_cost(field, session, sensor, edge)):
        return
    c = take_first(field, session, sensor, link)
    copy = field.copies[c]
    if edge == NONE:
        hand_over(field, session, sensor, copy.event, count_of(copy.rank, copy.event), RELAY)
        discard(field, c)
        return
    if forward(field, session, sensor, edge, copy.event, RELAY):
        # The same record moves on: it keeps its serial number, and its place in the calendar.
        field.sensors[sensor].queue -= 1
        field.sensors[field.neighbors[edge]].queue += 1
        copy.holder = field.neighbors[edge]
        arrive(field, rules, c, session)
    else:
        discard(field, c)


@step
def hand_over(field: Field, session: int, sensor: int, event: int, count: int, kind: int) -> None:
    """Give an event to the subscriber itself; at `rate` events a second its session closes until the next."""
    at = field.sessions[session]
    log_transfer(field, event, sensor, len(field.sensors) + at.subscriber, at.subscriber, kind, False)
    receive(field, at.subscriber, event, count)
    if field.subscribers[at.subscriber].received >= field.limits.rate:
        field.open_sessions[at.word] &= ~at.bit


@step
def next_hop(field: Field, session: int, sensor: int) -> int:
    """The next of the neighbours one layer closer, taken in turn: "evenly forwarded" (4.1, Fig. 3); as an edge.

    In layer 0 it is NONE: the subscriber itself.
    """
    links, link = field.sessions[session].links, field.links[link_at(field, session, sensor)]
    if link.layer == 0:
        return NONE
    closer, relays = link.layer - 1, link.relays
    # The counter is the sensor's, over all sessions: evenness is a matter of the relays' batteries, not of subscribers.
    nth = field.sensors[sensor].forwards % relays
    field.sensors[sensor].forwards += 1
    edge = field.sensors[sensor].first_edge
    while True:
        if field.links[links + field.neighbor_member[edge]].layer == closer:
            if nth == 0:
                return int(edge)
            nth -= 1
        edge += 1


@step
def hop_cost(field: Field, session: int, sensor: int, edge: int) -> int:
    """What the sensor pays to send an event over the edge, or to the session's subscriber."""
    if edge == NONE:
        return to_subscriber_pj(field, sensor, field.sessions[session].subscriber)
    return int(field.hop_pj[edge])


@step
def forward(field: Field, session: int, sensor: int, edge: int, event: int, kind: int) -> bool:
    """Send an event over an edge; a full queue accepts nothing (4.2 C): the event is lost, the sender has paid."""
    receiver = field.neighbors[edge]
    reason = accept(field, receiver, True)
    log_transfer(field, event, sensor, receiver, field.sessions[session].subscriber, kind, reason != NONE)
    if reason != NONE:
        log_refused(field, event, receiver, reason, field.sessions[session].subscriber)
    return bool(reason == NONE)


@step
def arrive(field: Field, rules: CollectionRules, c: int, session: int) -> None:
    """A relayed copy has come to its next sensor: it may go on in this slot, or (hops = "one") from the next."""
    if rules.one_hop:  # kept apart: in no heap, so no turn of this slot finds it
        field.copies[c].subscriber = field.sessions[session].subscriber
        field.arrived[field.tally[0].arrived] = c
        field.tally[0].arrived += 1
    else:
        address(field, c, session)
        line_up(field, field.copies[c].holder)


@step
def line_up_arrived(field: Field) -> None:
    """At the end of the slot, copies that arrived in it (hops = "one") stand in line for the next."""
    for i in range(field.tally[0].arrived):
        c = field.arrived[i]
        sensor = field.copies[c].holder
        address(field, c, find_session(field, field.copies[c].subscriber, field.sensors[sensor].community))
        line_up(field, sensor)
    field.tally[0].arrived = 0
