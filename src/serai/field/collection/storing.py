"""CED 4.2: queue management. What is stored, whom it is to be sent to, and when it is dropped."""

from serai.core.jit import step
from serai.field.collection.sessions import is_offered
from serai.field.collection.settings import CollectionRules
from serai.field.engine.batteries import is_dead
from serai.field.engine.ledger import log_drop
from serai.field.engine.queues import discard, insert_stored, mark_expired, new_copy, remove_stored
from serai.field.engine.sessions import (
    clear_all_pending,
    clear_pending,
    has_pending_now,
    make_pending_for_all_met,
    session_of_bit,
)
from serai.field.engine.state import EXPIRED, FULL, NONE, STORED, Field
from serai.field.engine.turns import line_up


@step
def publish_next_event(field: Field, rules: CollectionRules) -> None:
    """The next event of the slot enters its sensor's queue, if there is room."""
    event = field.tally[0].born
    field.tally[0].born += 1
    sensor = field.event_sensor[event]
    if is_dead(field, sensor):
        return
    if field.sensors[sensor].queue >= field.sensors[sensor].capacity:
        log_drop(field, event, sensor, FULL, NONE)
    else:
        store(field, rules, new_copy(field, event, sensor, 0, STORED))


@step
def store(field: Field, rules: CollectionRules, c: int) -> None:
    """A copy takes its place among the stored ones, and is pending for all whom the community has met."""
    sensor = field.copies[c].holder
    insert_stored(field, c, NONE)
    make_pending_for_all_met(field, c)
    if rules.match_at_sensor:
        withhold(field, rules, c)
    if has_pending_now(field, sensor):  # nobody moves, so nobody else would call it
        line_up(field, sensor)


@step
def withhold(field: Field, rules: CollectionRules, c: int) -> None:
    """A copy just stored is not pending for those who have no interest in it (match = "sensor")."""
    community = field.sensors[field.copies[c].holder].community
    for word in range(field.communities[community].words):
        bits = field.pending[c, word]
        while bits:
            session = session_of_bit(field, community, word, bits)
            if not is_offered(field, rules, c, session):
                clear_pending(field, c, session)
            bits &= bits - 1


@step
def expire(field: Field) -> None:
    """4.2 A: events whose survival time has passed the network's tolerance are dropped."""
    c = field.calendar[field.clock[0].slot]
    while c != NONE:
        following = field.copies[c].later
        copy = field.copies[c]
        log_drop(field, copy.event, copy.holder, EXPIRED, NONE if copy.state == STORED else copy.subscriber)
        if copy.state == STORED:
            clear_all_pending(field, c)
            remove_stored(field, c)
            discard(field, c)
        else:  # somewhere inside a heap, which only gives up its first copy
            mark_expired(field, c)
        c = following
