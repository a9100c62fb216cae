"""CED 4.1 (a) to (c): Hello, and the sessions that begin and end as subscribers walk past communities."""

from serai.core.content import matches
from serai.core.jit import step
from serai.field.collection.layers import prune_layers, renew_zone
from serai.field.collection.settings import CollectionRules
from serai.field.engine.control import tell_path
from serai.field.engine.ledger import log_drop
from serai.field.engine.queues import discard, free_copy
from serai.field.engine.reach import find_reach, is_near
from serai.field.engine.sessions import (
    address,
    close_session,
    find_session,
    first_going_on,
    is_going_on,
    join_waiting,
    keep_waiting,
    make_pending,
    open_session,
    take_first,
)
from serai.field.engine.slots import begin_visit
from serai.field.engine.state import EXPIRED_COPY, NONE, STRANDED, UNCOUNTED, Field, Records
from serai.field.engine.turns import line_up
from serai.field.engine.visiting import is_visiting


@step
def meet(field: Field, rules: CollectionRules) -> None:
    """The next visit of the slot."""
    nth = field.tally[0].visited
    field.tally[0].visited += 1
    meet_in(field, rules, field.visits[nth])


@step
def meet_all(field: Field, rules: CollectionRules) -> None:
    """All visits of a slot in which sensors are new: also of those who stay where they are beside them."""
    for subscriber in range(len(field.subscribers)):
        if is_visiting(field, subscriber):
            meet_in(field, rules, field.power.visit[0])


@step
def meet_in(field: Field, rules: CollectionRules, visit: Records) -> None:
    """A visit: sessions end, begin, and hear of a changed path."""
    in_reach = find_reach(field, begin_visit(field, visit, rules.silent_while_pausing))
    leave(field, rules, visit.subscriber, in_reach)
    if not field.subscribers[visit.subscriber].audible:
        return
    for i in range(in_reach):
        session = find_session(field, visit.subscriber, field.near[i])
        # A visit may change the cell, the leg or both, and only some of it concerns a session that goes on.
        if not is_going_on(field, session):
            begin_session(field, rules, session)
            announce(field, rules, session)
        elif visit.moving and field.sessions[session].announced != visit.leg:
            announce(field, rules, session)
        elif rules.zone_moves and (visit.went or (visit.came and rules.zone_in_range)):
            renew_zone(field, rules, session)
        elif rules.zone_pruned and visit.went:
            prune_layers(field, rules, session)
        elif not (visit.came or visit.went):
            continue
        line_up_senders(field, session)


@step
def leave(field: Field, rules: CollectionRules, subscriber: int, in_reach: int) -> None:
    """End the sessions with communities out of reach."""
    who = field.subscribers[subscriber]
    i = 0
    while i < who.sessions:  # ending one moves the others up: then the next stands at the same place
        session = field.now_with[subscriber, i]
        if is_near(field, field.sessions[session].community, in_reach):
            i += 1
        else:
            end_session(field, rules, session)


@step
def begin_session(field: Field, rules: CollectionRules, session: int) -> None:
    """Begin a session: at the first one, all that is stored becomes pending; waiting copies go on."""
    open_session(field, session)
    at = field.sessions[session]
    group, met_before = field.communities[at.community], at.met
    at.met = True
    field.met[at.community, at.word] |= at.bit
    for i in range(group.start, group.start + group.sensors):
        # From the first session on, what is stored later becomes pending at once (make_pending_for_all_met).
        if not met_before:
            make_all_pending(field, rules, session, field.members[i])
        if rules.keep_stranded:
            join_waiting(field, session, field.members[i], rules.open_relays)


@step
def make_all_pending(field: Field, rules: CollectionRules, session: int, sensor: int) -> None:
    """All copies stored at the sensor become pending for the session, as far as they are of interest."""
    c = field.sensors[sensor].stored
    while c != NONE:
        if is_offered(field, rules, c, session):
            make_pending(field, c, session)
        c = field.copies[c].next


@step
def is_offered(field: Field, rules: CollectionRules, c: int, session: int) -> bool:
    """Whether a stored copy is sent to the session's subscriber at all."""
    if not rules.match_at_sensor:
        return True
    subscriber = field.sessions[session].subscriber
    if rules.returns and field.subscribers[subscriber].carries:
        return True
    return matches(field.event_values[field.copies[c].event], field.low[subscriber], field.high[subscriber])


@step
def end_session(field: Field, rules: CollectionRules, session: int) -> None:
    """End a session."""
    close_session(field, session)
    strand(field, rules, session)


@step
def strand(field: Field, rules: CollectionRules, session: int) -> None:
    """The session is over: its relayed copies are re-addressed, kept or deleted (CET 3.2.1)."""
    at = field.sessions[session]
    successor = first_going_on(field, at.community) if rules.open_relays else NONE
    group = field.communities[at.community]
    for member in range(group.sensors):
        sensor = field.members[group.start + member]
        while field.links[at.links + member].relayed != NONE:
            settle_stranded(field, rules, take_first(field, session, sensor, at.links + member), successor)
        field.links[at.links + member].pending = UNCOUNTED  # while it is away nobody keeps count
        if not rules.once:
            make_all_pending(field, rules, session, sensor)


@step
def settle_stranded(field: Field, rules: CollectionRules, c: int, successor: int) -> None:
    """What becomes of a relayed copy whose subscriber has left."""
    if field.copies[c].state == EXPIRED_COPY:
        free_copy(field, c)
    elif successor != NONE:
        address(field, c, successor)
        line_up(field, field.copies[c].holder)
    elif rules.keep_stranded:
        keep_waiting(field, c)
    else:
        copy = field.copies[c]
        log_drop(field, copy.event, copy.holder, STRANDED, copy.subscriber)
        discard(field, c)


@step
def announce(field: Field, rules: CollectionRules, session: int) -> None:
    """PATH: the subscriber tells the community its path (4.1 b, c), and Z is drawn up from it."""
    at = field.sessions[session]
    at.announced = field.subscribers[at.subscriber].leg
    tell_path(field, at.community, at.subscriber)
    renew_zone(field, rules, session)


@step
def line_up_senders(field: Field, session: int) -> None:
    """Sensors with something for the session stand in line."""
    at = field.sessions[session]
    group = field.communities[at.community]
    for i in range(group.start, group.start + group.sensors):
        if (field.has_pending[field.members[i], at.word] | field.carrying[field.members[i], at.word]) & at.bit:
            line_up(field, field.members[i])
