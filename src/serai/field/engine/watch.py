"""What a full log has of every slot, beside transfers and drops: control messages, who is in session, who is head.

Looked at once a slot, after everything in it; a run without a full log pays nothing. A community is known by its sensor
with the lowest number: numbers of communities change when sensors die.
"""

from collections.abc import Callable

import numpy as np

from serai.core.jit import step
from serai.field.engine.control import charge_floods
from serai.field.engine.state import NONE, Field, Records, Watch, records

MINUTE_SLOTS = 60
MOST_KINDS = 16  # of control messages, whatever the protocol

SEEN = np.dtype([(name, "i8") for name in ("control", "sessions", "heads", "spent", "at_once")])  # rows; see below
CONTROL = np.dtype([("messages", "i8"), ("time_s", "i4"), ("kind", "i1")], align=True)
SESSION_ROW = np.dtype([("time_s", "i4"), ("subscriber", "i4"), ("member", "i4"), ("begins", "?")], align=True)
HEAD_ROW = np.dtype([("time_s", "i4"), ("member", "i4"), ("node", "i4")], align=True)
SPENT_ROW = np.dtype([("pj", "i8"), ("time_s", "i4"), ("node", "i4")], align=True)


def blank_watch(sensors: int, subscribers: int, at_once: int, on: bool) -> Watch:
    """Nothing seen yet; without a full log nothing ever will be. `at_once`: sessions of a subscriber, at most."""
    many, most = (sensors, subscribers) if on else (0, 0)
    return Watch(
        seen=records(1, SEEN, at_once=at_once),
        messages=np.zeros(MOST_KINDS, np.int64),
        member=np.full((most, at_once), NONE, np.int32),
        head=np.full(many, NONE, np.int32),
        control_pj=np.zeros(many, np.int64),
        control_log=records(64 * MOST_KINDS if on else 0, CONTROL),
        session_log=records(8 * at_once * most, SESSION_ROW),
        head_log=records(4 * many, HEAD_ROW),
        spent_log=records(8 * many, SPENT_ROW),
    )


def with_room(watch: Watch, sensors: int, subscribers: int, grown: Callable[[Records, int], Records]) -> Watch:
    """The same with room for one more slot: `is_short` asks whether there is."""
    seen = watch.seen[0]
    return watch._replace(
        control_log=grown(watch.control_log, int(seen.control) + MOST_KINDS),
        session_log=grown(watch.session_log, int(seen.sessions + 2 * seen.at_once * subscribers)),
        head_log=grown(watch.head_log, int(seen.heads) + sensors),
        spent_log=grown(watch.spent_log, int(seen.spent) + sensors),
    )


@step
def is_short(field: Field) -> bool:
    """Whether the rows of one more slot may not fit."""
    watch, sensors = field.watch, len(field.sensors)
    seen = watch.seen[0]
    return bool(
        seen.control + MOST_KINDS > len(watch.control_log)
        or seen.sessions + 2 * seen.at_once * len(field.subscribers) > len(watch.session_log)
        or seen.heads + sensors > len(watch.head_log)
        or seen.spent + sensors > len(watch.spent_log)
    )


@step
def look(field: Field, last: bool) -> None:
    """What has changed in this slot."""
    look_at_control(field)
    for subscriber in range(len(field.subscribers)):
        look_at_sessions(field, subscriber)
    for community in range(field.tally[0].communities):
        look_at_head(field, community)
    if last or (field.clock[0].slot + 1) % MINUTE_SLOTS == 0:
        look_at_energy(field)


@step
def look_at_control(field: Field) -> None:
    """Control messages of this slot, by kind."""
    watch = field.watch
    for kind in range(len(field.messages)):
        more = field.messages[kind] - watch.messages[kind]
        if more > 0:
            row = watch.control_log[watch.seen[0].control]
            watch.seen[0].control += 1
            row.time_s, row.kind, row.messages = field.clock[0].slot, kind, more
            watch.messages[kind] = field.messages[kind]


@step
def first_member(field: Field, community: int) -> int:
    """The community's sensor with the lowest number."""
    return int(field.members[field.communities[community].start])


@step
def look_at_sessions(field: Field, subscriber: int) -> None:
    """Sessions of a subscriber that are over, then those that have begun."""
    watch, going_on = field.watch, field.subscribers[subscriber].sessions
    for i in range(watch.seen[0].at_once):
        member, found = watch.member[subscriber, i], False
        for n in range(going_on):
            community = field.sessions[field.now_with[subscriber, n]].community
            found = found or first_member(field, community) == member
        if member != NONE and not found:
            note_session(field, subscriber, member, False)
            watch.member[subscriber, i] = NONE
    for n in range(going_on):
        member, free, known = first_member(field, field.sessions[field.now_with[subscriber, n]].community), 0, False
        for i in range(watch.seen[0].at_once):
            known = known or watch.member[subscriber, i] == member
        if not known:
            while watch.member[subscriber, free] != NONE:
                free += 1
            watch.member[subscriber, free] = member
            note_session(field, subscriber, member, True)


@step
def note_session(field: Field, subscriber: int, member: int, begins: bool) -> None:
    """A session has begun, or is over."""
    row = field.watch.session_log[field.watch.seen[0].sessions]
    field.watch.seen[0].sessions += 1
    row.time_s, row.subscriber, row.member, row.begins = field.clock[0].slot, subscriber, member, begins


@step
def look_at_head(field: Field, community: int) -> None:
    """A community with another head than it had."""
    group = field.communities[community]
    if group.sensors == 0 or group.head == NONE:
        return
    member = first_member(field, community)
    if field.watch.head[member] == group.head:
        return
    field.watch.head[member] = group.head
    row = field.watch.head_log[field.watch.seen[0].heads]
    field.watch.seen[0].heads += 1
    row.time_s, row.member, row.node = field.clock[0].slot, member, group.head


@step
def look_at_energy(field: Field) -> None:
    """What control messages took of each sensor since this was last looked at."""
    watch = field.watch
    for community in range(field.tally[0].communities):
        charge_floods(field, community)
    for sensor in range(len(field.sensors)):
        more = field.sensors[sensor].control_pj - watch.control_pj[sensor]
        if more > 0:
            row = watch.spent_log[watch.seen[0].spent]
            watch.seen[0].spent += 1
            row.time_s, row.node, row.pj = field.clock[0].slot, sensor, more
            watch.control_pj[sensor] = field.sensors[sensor].control_pj
