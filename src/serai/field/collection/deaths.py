"""The end of a slot in which sensors died: their copies are lost, and communities form anew without them.

The sensors that are left of a community form one or several parts. Each part is a community of its own from then on,
with the same sessions as the whole had, in the same order: the bits of copies and sensors stay what they are. Of its
parts, the first keeps the community's record; the links of a session are divided between its parts where they stand.
"""

from serai.core.jit import step
from serai.field.collection.heads import elect
from serai.field.collection.layers import renew_zone
from serai.field.collection.sessions import line_up_senders, strand
from serai.field.collection.settings import CollectionRules
from serai.field.engine.batteries import forget_exhausted, mark_dead
from serai.field.engine.control import charge_floods, draw_map
from serai.field.engine.ledger import log_drop
from serai.field.engine.queues import discard, free_copy
from serai.field.engine.reach import find_listeners, find_reach
from serai.field.engine.sessions import close_session, is_going_on, link_at, open_session, session_of_bit, take_first
from serai.field.engine.state import BITS, DEAD, EXPIRED_COPY, NONE, STORED, Field


@step
def deaths_need_room(field: Field) -> bool:
    """Whether the deaths of this slot may make more communities and sessions than there are records for."""
    tally, parts, sessions = field.tally[0], 0, 0
    for i in range(tally.exhausted):
        here = field.sensors[field.exhausted[i]]
        neighbors = here.end_edge - here.first_edge  # a death leaves at most so many parts
        parts += neighbors
        sessions += neighbors * field.communities[here.community].meets
    no_room = tally.communities + parts > len(field.communities) or tally.sessions + sessions > len(field.sessions)
    tally.unburied = no_room
    return bool(no_room)


@step
def bury(field: Field, rules: CollectionRules) -> None:
    """The exhausted sensors die: their copies are lost, and their communities go on without them."""
    count = field.tally[0].exhausted
    for i in range(count):
        charge_floods(field, field.sensors[field.exhausted[i]].community)  # while all who spoke are neighbours
    for i in range(count):
        lose_copies(field, field.exhausted[i])
        mark_dead(field, field.exhausted[i])
        cut_off(field, field.exhausted[i])
    for i in range(count):
        community = field.sensors[field.exhausted[i]].community
        if community != NONE:  # not yet done with another one's death
            regroup(field, rules, community)
    forget_exhausted(field, count)


@step
def lose_copies(field: Field, sensor: int) -> None:
    """All copies at the sensor are dropped: stored, waiting and relayed ones."""
    here = field.sensors[sensor]
    lose_list(field, here.stored)
    lose_list(field, here.waiting)
    here.stored = here.waiting = NONE
    for word in range(field.communities[here.community].words):
        while field.carrying[sensor, word]:
            session = session_of_bit(field, here.community, word, field.carrying[sensor, word])
            lose(field, take_first(field, session, sensor, link_at(field, session, sensor)))


@step
def lose_list(field: Field, c: int) -> None:
    """All copies of a list are dropped."""
    while c != NONE:
        following = field.copies[c].next
        lose(field, c)
        c = following


@step
def lose(field: Field, c: int) -> None:
    """A copy is lost with its sensor."""
    copy = field.copies[c]
    if copy.state == EXPIRED_COPY:
        free_copy(field, c)
        return
    log_drop(field, copy.event, copy.holder, DEAD, NONE if copy.state == STORED else copy.subscriber)
    discard(field, c)


@step
def cut_off(field: Field, sensor: int) -> None:
    """The sensor is nobody's neighbour any more."""
    for n in range(field.sensors[sensor].first_edge, field.sensors[sensor].end_edge):
        other = field.sensors[field.neighbors[n]]
        found = False
        for i in range(other.first_edge, other.end_edge - 1):
            found = found or field.neighbors[i] == sensor
            if found:
                field.neighbors[i], field.hop_pj[i] = field.neighbors[i + 1], field.hop_pj[i + 1]
        other.end_edge -= 1
    field.sensors[sensor].end_edge = field.sensors[sensor].first_edge


@step
def regroup(field: Field, rules: CollectionRules, whole: int) -> None:
    """A community that lost sensors becomes the communities that its living ones form."""
    group = field.communities[whole]
    for word in range(group.words):
        field.within_reach[word] = field.in_session[whole, word]
        while field.in_session[whole, word]:
            close_session(field, session_of_bit(field, whole, word, field.in_session[whole, word]))
    before = group.sensors
    living = divide(field, whole)
    divide_links(field, whole, before, living)
    part = whole
    while part != NONE:
        found_community(field, rules, part)
        part = part_after(field, part, whole, living)
    for nth in range(group.meets):
        if field.within_reach[nth // BITS] & (1 << (nth % BITS)):
            go_on(field, rules, nth, whole, living)
    for nth in range(group.meets):  # when it is known who is still there
        if field.within_reach[nth // BITS] & (1 << (nth % BITS)):
            end_elsewhere(field, rules, nth, whole, living)


@step
def part_after(field: Field, part: int, whole: int, living: int) -> int:
    """The next of the parts that a community has become, or NONE: they stand in `members` one after the other."""
    following = field.communities[part].start + field.communities[part].sensors
    if following >= field.communities[whole].start + living:
        return NONE
    return int(field.sensors[field.members[following]].community)


@step
def divide(field: Field, whole: int) -> int:
    """The community's living sensors as connected parts, by their lowest sensors: in `members` part after part.

    Returns how many live.
    """
    group = field.communities[whole]
    start, before, found = group.start, group.sensors, 0
    for i in range(start, start + before):
        field.sensors[field.members[i]].community = NONE
    group.sensors = 0
    for i in range(start, start + before):
        sensor = field.members[i]
        if field.sensors[sensor].died == NONE and field.sensors[sensor].community == NONE:
            part = whole if found == 0 else new_part(field, whole)
            field.communities[part].start = start + found
            field.communities[part].sensors = spread(field, sensor, part)
            field.communities[part].place = 0
            found += field.communities[part].sensors
    for i in range(before):
        field.frontier[i] = field.members[start + i]
    for i in range(before):  # in their old order, so by number within each part
        if field.sensors[field.frontier[i]].died == NONE:
            part = field.communities[field.sensors[field.frontier[i]].community]
            field.members[part.start + part.place] = field.frontier[i]
            part.place += 1
    return found


@step
def new_part(field: Field, whole: int) -> int:
    """A new community with sessions like those of the one that it is a part of."""
    tally, group = field.tally[0], field.communities[whole]
    part = spare_part(field, whole)
    if part == NONE:
        part = tally.communities
        field.communities[part].sessions = tally.sessions
        tally.communities += 1
        tally.sessions += group.meets
    sessions = field.communities[part].sessions
    field.communities[part] = group
    field.communities[part].sessions = sessions
    for nth in range(group.meets):
        field.sessions[sessions + nth] = field.sessions[group.sessions + nth]
        field.sessions[sessions + nth].community = part
    for word in range(group.words):
        field.met[part, word] = field.met[whole, word]
    return int(part)


@step
def spare_part(field: Field, whole: int) -> int:
    """A spare record of a part of the same community at the start, or NONE; there are some where the dead wake.

    So there are never more records than sensors, however often they die and wake: until their kin form anew,
    a sensor is the lowest of a new part at most once.
    """
    if len(field.power.woken) > 0:
        for part in range(field.tally[0].communities):
            if field.communities[part].spare and field.communities[part].origin == field.communities[whole].origin:
                return part
    return NONE


@step
def spread(field: Field, sensor: int, part: int) -> int:
    """The sensor and all who are connected with it are of that part; how many they are."""
    field.frontier[0], reached, i = sensor, 1, 0
    field.sensors[sensor].community = part
    while i < reached:
        here = field.sensors[field.frontier[i]]
        for n in range(here.first_edge, here.end_edge):
            if field.sensors[field.neighbors[n]].community == NONE:
                field.sensors[field.neighbors[n]].community = part
                field.frontier[reached] = field.neighbors[n]
                reached += 1
        i += 1
    return reached


@step
def divide_links(field: Field, whole: int, before: int, living: int) -> None:
    """The links of each session stand as the members do; all layers are to be worked out anew."""
    group, start = field.communities[whole], field.communities[whole].start
    for nth in range(group.meets):
        links = field.sessions[group.sessions + nth].links
        for i in range(before):
            field.spare_links[i] = field.links[links + i]
        for i in range(living):
            here = field.sensors[field.members[start + i]]
            field.links[links + i] = field.spare_links[here.member]
            field.links[links + i].layer = NONE
            part = field.communities[here.community]
            field.sessions[part.sessions + nth].links = links + part.start - start


@step
def found_community(field: Field, rules: CollectionRules, community: int) -> None:
    """A community of living sensors begins: it draws its map and, in CET, elects its head."""
    number_members(field, community)
    draw_map(field, community)
    if rules.returns and field.communities[community].sensors > 0:
        elect(field, community)


@step
def number_members(field: Field, community: int) -> None:
    """The community's sensors know their places, its size is counted, and it has no head yet."""
    group = field.communities[community]
    group.places, group.place, group.head, group.tree = 0, 0, NONE, NONE
    field.tally[0].stamp += 1
    for member in range(group.sensors):
        here = field.sensors[field.members[group.start + member]]
        here.member = member
        if field.stamps[here.cell] != field.tally[0].stamp:
            field.stamps[here.cell] = field.tally[0].stamp
            group.places += 1
    for i in range(group.start, group.start + group.sensors):
        for n in range(field.sensors[field.members[i]].first_edge, field.sensors[field.members[i]].end_edge):
            field.neighbor_member[n] = field.sensors[field.neighbors[n]].member


@step
def go_on(field: Field, rules: CollectionRules, nth: int, whole: int, living: int) -> None:
    """A session of the whole goes on with the parts in reach of its subscriber; their layers are drawn up anew."""
    group = field.communities[whole]
    subscriber = field.sessions[group.sessions + nth].subscriber
    in_reach = find_reach(field, find_listeners(field, subscriber))
    for i in range(in_reach):
        if group.start <= field.communities[field.near[i]].start < group.start + living:
            session = field.communities[field.near[i]].sessions + nth
            open_session(field, session)
            renew_zone(field, rules, session)
            line_up_senders(field, session)


@step
def end_elsewhere(field: Field, rules: CollectionRules, nth: int, whole: int, living: int) -> None:
    """A session of the whole ends with the parts out of reach of its subscriber."""
    part = whole
    while part != NONE:
        session = field.communities[part].sessions + nth
        if not is_going_on(field, session):
            strand(field, rules, session)
        part = part_after(field, part, whole, living)
