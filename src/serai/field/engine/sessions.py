"""Sessions: a subscriber within reach of a community, what is due to it there, and what is on its way to it.

Who walks where is known before a run, so every pair of community and subscriber that will ever meet has its session
from the start, and a bit among those of its community, in order of the subscribers' numbers. Words of these bits say
who has something for whom: `due[copy]`, `owing[sensor]`, `carrying[sensor]`, `in_session[community]`. A copy's due bits
are its memory, too: the bit of a subscriber that the community has met is set until the copy was sent for it. So nobody
looks at sessions for which there is nothing to do, and a memory costs a bit.
"""

from serai.core.jit import lowest_bit, step
from serai.field.engine.queues import first_alive, free_copy, join_heaps, without_first
from serai.field.engine.state import BITS, DEAD, NONE, RELAYED, UNCOUNTED, WAITING, Field


@step
def session_of_bit(field: Field, community: int, word: int, bits: int) -> int:
    """The community's session whose bit is the lowest of `bits` in a word."""
    return int(field.communities[community].sessions + word * BITS + lowest_bit(bits))


@step
def link_at(field: Field, session: int, sensor: int) -> int:
    """The link of a session at a sensor of its community."""
    return int(field.sessions[session].links + field.sensors[sensor].member)


@step
def find_session(field: Field, subscriber: int, community: int) -> int:
    """The session of a subscriber with a community that it meets at some time (binary search)."""
    low, high = field.meets_start[subscriber], field.meets_start[subscriber + 1]
    while high - low > 1:
        middle = (low + high) >> 1
        if field.sessions[field.meets[middle]].community <= community:
            low = middle
        else:
            high = middle
    return int(field.meets[low])


@step
def is_going_on(field: Field, session: int) -> bool:
    """Whether the session's subscriber is within reach of its community."""
    at = field.sessions[session]
    return bool(field.in_session[at.community, at.word] & at.bit)


@step
def first_going_on(field: Field, community: int) -> int:
    """The session going on with the subscriber of the lowest number, or NONE."""
    for word in range(field.communities[community].words):
        if field.in_session[community, word]:
            return session_of_bit(field, community, word, field.in_session[community, word])
    return NONE


@step
def open_session(field: Field, session: int) -> None:
    """The session is going on from now."""
    at = field.sessions[session]
    field.in_session[at.community, at.word] |= at.bit
    mine, who = field.now_with[at.subscriber], field.subscribers[at.subscriber]
    i = who.sessions
    while i > 0 and mine[i - 1] > session:  # by number, so by community
        mine[i] = mine[i - 1]
        i -= 1
    mine[i] = session
    who.sessions += 1


@step
def close_session(field: Field, session: int) -> None:
    """The session is over for now."""
    at = field.sessions[session]
    field.in_session[at.community, at.word] &= ~at.bit
    mine, who = field.now_with[at.subscriber], field.subscribers[at.subscriber]
    who.sessions -= 1
    found = False
    for i in range(who.sessions):
        found = found or mine[i] == session
        if found:
            mine[i] = mine[i + 1]


# ---- what is due


@step
def make_due(field: Field, c: int, session: int) -> None:
    """A stored copy is to be sent to the session's subscriber; nothing was counted for the session yet."""
    at = field.sessions[session]
    field.due[c, at.word] |= at.bit
    field.owing[field.copies[c].holder, at.word] |= at.bit


@step
def unmake_due(field: Field, c: int, session: int) -> None:
    """A stored copy was sent to the session's subscriber, or need not be."""
    at = field.sessions[session]
    if field.due[c, at.word] & at.bit:
        field.due[c, at.word] &= ~at.bit
        owe_one_less(field, field.copies[c].holder, session)


@step
def owe_one_less(field: Field, sensor: int, session: int) -> None:
    """One copy less is due from the sensor to the session."""
    link = field.links[link_at(field, session, sensor)]
    if link.owed != UNCOUNTED:
        set_owed(field, sensor, session, link.owed - 1)


@step
def set_owed(field: Field, sensor: int, session: int, count: int) -> None:
    """So many copies are due from the sensor to the session."""
    at = field.sessions[session]
    field.links[link_at(field, session, sensor)].owed = count
    if count == 0:
        field.owing[sensor, at.word] &= ~at.bit


@step
def count_owed(field: Field, sensor: int, session: int) -> None:
    """Count what is due from the sensor to a session going on, if that was not done since it began."""
    at = field.sessions[session]
    if field.links[link_at(field, session, sensor)].owed != UNCOUNTED:
        return
    count, c = 0, field.sensors[sensor].stored
    while c != NONE:
        if field.due[c, at.word] & at.bit:
            count += 1
        c = field.copies[c].next
    set_owed(field, sensor, session, count)


@step
def make_due_to_all_met(field: Field, c: int) -> None:
    """A copy just stored is to be sent to everybody whom its community has met."""
    sensor = field.copies[c].holder
    community = field.sensors[sensor].community
    for word in range(field.communities[community].words):
        field.due[c, word] = field.met[community, word]
        field.owing[sensor, word] |= field.met[community, word]
        bits = field.in_session[community, word]
        while bits:
            link = field.links[link_at(field, session_of_bit(field, community, word, bits), sensor)]
            if link.owed != UNCOUNTED:
                link.owed += 1
            bits &= bits - 1


@step
def forget_due(field: Field, c: int) -> None:
    """A stored copy is no more: it is due to nobody."""
    sensor = field.copies[c].holder
    community = field.sensors[sensor].community
    for word in range(field.communities[community].words):
        bits = field.due[c, word] & field.in_session[community, word]
        while bits:
            owe_one_less(field, sensor, session_of_bit(field, community, word, bits))
            bits &= bits - 1


@step
def owes_now(field: Field, sensor: int) -> bool:
    """Whether something stored at the sensor may be due to a session going on."""
    community = field.sensors[sensor].community
    for word in range(field.communities[community].words):
        if field.owing[sensor, word] & field.in_session[community, word]:
            return True
    return False


# ---- what is under way


@step
def address(field: Field, c: int, session: int) -> None:
    """Put a relayed copy among those of the session at its sensor."""
    copy, at = field.copies[c], field.sessions[session]
    copy.subscriber, copy.state = at.subscriber, RELAYED
    copy.previous = copy.next = NONE
    link = field.links[link_at(field, session, copy.holder)]
    link.relayed = join_heaps(field, link.relayed, c)
    field.carrying[copy.holder, at.word] |= at.bit


@step
def take_first(field: Field, session: int, sensor: int, link: int) -> int:
    """Take the first relayed copy of the session at the sensor, over its link, out of its heap."""
    c = field.links[link].relayed
    set_relayed(field, session, sensor, link, without_first(field, c))
    return int(c)


@step
def set_relayed(field: Field, session: int, sensor: int, link: int, heap: int) -> None:
    """These are the relayed copies of the session at the sensor from now on; the dead at the top are cleared away."""
    alive = first_alive(field, heap)
    field.links[link].relayed = alive
    if alive == NONE:
        at = field.sessions[session]
        field.carrying[sensor, at.word] &= ~at.bit


@step
def join_waiting(field: Field, session: int, sensor: int, anybody: bool) -> None:
    """Relayed copies that wait at the sensor for this subscriber (or for anybody) join its session."""
    here, subscriber = field.sensors[sensor], field.sessions[session].subscriber
    c = here.waiting
    here.waiting = NONE
    while c != NONE:
        following = field.copies[c].next
        if field.copies[c].state == DEAD:
            free_copy(field, c)
        elif anybody or field.copies[c].subscriber == subscriber:
            address(field, c, session)
        else:
            field.copies[c].next = here.waiting
            here.waiting = c
        c = following


@step
def keep_waiting(field: Field, c: int) -> None:
    """A relayed copy waits in its queue for somebody to come."""
    here = field.sensors[field.copies[c].holder]
    field.copies[c].state, field.copies[c].next = WAITING, here.waiting
    here.waiting = c
