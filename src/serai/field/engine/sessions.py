"""Sessions: a subscriber within reach of a community, what is pending for it there, and what is on its way to it.

Who walks where is known before a run, so every pair of community and subscriber that will ever meet has its session
from the start, and a bit among those of its community, in order of the subscribers' numbers. Sets of sessions are words
of these bits:

    in_session[community]   the sessions going on
    met[community]          those that have begun at least once
    pending[copy]           those to whose subscriber a stored copy is still to be sent
    has_pending[sensor]     those for which some copy stored at the sensor may be pending
    carrying[sensor]        those for which the sensor has relayed copies

What a sensor can do in its turn is then the intersection of a few words, however many sessions and copies there are,
and its lowest bit belongs to the subscriber with the lowest number, who goes first. A copy's pending bits are its
memory, too: the bit of a subscriber that the community has met stays set until the copy has been sent to it.

has_pending may say yes too often, never no too often: it only spares a walk through a queue. What is pending at a
sensor for a session is counted when the sensor first has a turn in it (UNCOUNTED until then), kept up to date from
there on, and at 0 the bit is cleared. To count when a session begins would be to walk through every queue of the
community, also of sensors that will have no turn before the subscriber is gone.
"""

from serai.core.jit import lowest_bit, step
from serai.field.engine.queues import free_copy, join_heaps, without_expired, without_first
from serai.field.engine.state import BITS, EXPIRED_COPY, NONE, RELAYED, UNCOUNTED, WAITING, Field


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
    # Sessions of a subscriber stand by community. That of a community it never meets is not there, and not asked for.
    low, high, origin = (
        field.meets_start[subscriber],
        field.meets_start[subscriber + 1],
        field.communities[community].origin,
    )
    while high - low > 1:
        middle = (low + high) >> 1
        if field.sessions[field.meets[middle]].community <= origin:
            low = middle
        else:
            high = middle
    # A part of a community has the same sessions as the whole, in the same order.
    nth = field.meets[low] - field.communities[origin].sessions
    return int(field.communities[community].sessions + nth)


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
    while i > 0 and lowest_sensor(field, mine[i - 1]) > lowest_sensor(field, session):  # so by community
        mine[i] = mine[i - 1]
        i -= 1
    mine[i] = session
    who.sessions += 1


@step
def lowest_sensor(field: Field, session: int) -> int:
    """The first sensor of the session's community: communities are numbered by it."""
    return int(field.members[field.communities[field.sessions[session].community].start])


@step
def close_session(field: Field, session: int) -> None:
    """The session is over for now."""
    at = field.sessions[session]
    field.in_session[at.community, at.word] &= ~at.bit
    mine, who = field.now_with[at.subscriber], field.subscribers[at.subscriber]
    who.sessions -= 1
    found = False  # from where it stands on, the others move up: they stay in order
    for i in range(who.sessions):
        found = found or mine[i] == session
        if found:
            mine[i] = mine[i + 1]


# ---- what is pending


@step
def make_pending(field: Field, c: int, session: int) -> None:
    """A stored copy is to be sent to the session's subscriber; nothing has been counted for the session yet."""
    at = field.sessions[session]
    field.pending[c, at.word] |= at.bit
    field.has_pending[field.copies[c].holder, at.word] |= at.bit


@step
def clear_pending(field: Field, c: int, session: int) -> None:
    """A stored copy was sent to the session's subscriber, or need not be."""
    at = field.sessions[session]
    if field.pending[c, at.word] & at.bit:
        field.pending[c, at.word] &= ~at.bit
        count_one_less(field, field.copies[c].holder, session)


@step
def count_one_less(field: Field, sensor: int, session: int) -> None:
    """One copy fewer is pending at the sensor for the session."""
    link = field.links[link_at(field, session, sensor)]
    if link.pending != UNCOUNTED:
        set_pending_count(field, sensor, session, link.pending - 1)


@step
def set_pending_count(field: Field, sensor: int, session: int, count: int) -> None:
    """So many copies are pending at the sensor for the session."""
    at = field.sessions[session]
    field.links[link_at(field, session, sensor)].pending = count
    if count == 0:
        field.has_pending[sensor, at.word] &= ~at.bit


@step
def count_pending(field: Field, sensor: int, session: int) -> None:
    """Count what is pending at the sensor for a session going on, unless that was done since it began."""
    at = field.sessions[session]
    if field.links[link_at(field, session, sensor)].pending != UNCOUNTED:
        return
    count, c = 0, field.sensors[sensor].stored
    while c != NONE:
        if field.pending[c, at.word] & at.bit:
            count += 1
        c = field.copies[c].next
    set_pending_count(field, sensor, session, count)


@step
def make_pending_for_all_met(field: Field, c: int) -> None:
    """A copy just stored is to be sent to everybody whom its community has met."""
    sensor = field.copies[c].holder
    community = field.sensors[sensor].community
    for word in range(field.communities[community].words):
        field.pending[c, word] = field.met[community, word]
        field.has_pending[sensor, word] |= field.met[community, word]
        # Only sessions going on are counted; in the others the count begins anew when they do.
        bits = field.in_session[community, word]
        while bits:
            link = field.links[link_at(field, session_of_bit(field, community, word, bits), sensor)]
            if link.pending != UNCOUNTED:
                link.pending += 1
            bits &= bits - 1


@step
def clear_all_pending(field: Field, c: int) -> None:
    """A stored copy is no more: it is pending for nobody.

    Its own bits may stay, they are set anew when its record is used again; the counts of sessions going on may not.
    """
    sensor = field.copies[c].holder
    community = field.sensors[sensor].community
    for word in range(field.communities[community].words):
        bits = field.pending[c, word] & field.in_session[community, word]
        while bits:
            count_one_less(field, sensor, session_of_bit(field, community, word, bits))
            bits &= bits - 1


@step
def has_pending_now(field: Field, sensor: int) -> bool:
    """Whether something stored at the sensor may be pending for a session going on."""
    community = field.sensors[sensor].community
    for word in range(field.communities[community].words):
        if field.has_pending[sensor, word] & field.in_session[community, word]:
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
    """These are the relayed copies of the session at the sensor from now on; expired ones at the top are freed.

    The bit in `carrying` says that the heap is not empty; the first copy in it may yet expire before it is read.
    """
    alive = without_expired(field, heap)
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
        if field.copies[c].state == EXPIRED_COPY:
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
