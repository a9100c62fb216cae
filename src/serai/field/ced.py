"""CED: sensors form communities; when a subscriber comes by, a community sends it its events.

N. Liu, M. Liu, J. Zhu, H. Gong: A Community-Based Event Delivery Protocol in Publish/Subscribe Systems for Delay
Tolerant Sensor Networks. Sensors 2009, 9(10), 7580-7594.

Where to find what, in the paper's order:

    3    network model: cells, communities, loners      serai.world
    4.1  (a) Hello                                      serai.field.engine.slots.step_into
         (b) first contact, PATH                        meet, welcome, announce
         (c) changed path                               meet
         (d) the set Z                                  mark_zone
         the routing graph (Fig. 2)                     draw_layers
         forwarding, evenly over the relays (Fig. 3)    take_turn, choose_relay, forward
         loner nodes                                    a community of one: its sensor is always in Z
         matching at the subscriber                     serai.field.engine.ledger.receive
    4.2  A survival time                                the age of an event: expire
         B successful delivery time                     send_stored
         C queue order, drops, full queue (Fig. 5)      engine.field.queues.goes_first, send_stored, expire, forward

The rules in words, with everything the paper leaves open, are in docs/field/rules.md; each open point is a setting.
"""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict
from pydantic import Field as setting

from serai.core.content import matches
from serai.core.jit import engine, shared, step
from serai.field.engine.control import is_over
from serai.field.engine.ledger import (
    locate,
    log_drop,
    log_transfer,
    receive,
    received_now,
    send_to_sensor,
    send_to_subscriber,
)
from serai.field.engine.queues import (
    bury,
    count_of,
    discard,
    free_copy,
    goes_first,
    insert_stored,
    new_copy,
    rank_of,
    remove_stored,
)
from serai.field.engine.sessions import (
    address,
    close_session,
    count_owed,
    find_session,
    first_going_on,
    forget_due,
    is_going_on,
    join_waiting,
    keep_waiting,
    link_at,
    make_due,
    make_due_to_all_met,
    open_session,
    owes_now,
    session_of_bit,
    set_relayed,
    take_first,
    unmake_due,
)
from serai.field.engine.setup import drive, lay_out
from serai.field.engine.slots import AFTER_ALL, births_left, set_clock, short_of_room, step_into, visits_left
from serai.field.engine.state import (
    DEAD,
    EXPIRED,
    FULL,
    NONE,
    RELAY,
    RELAYED,
    SOURCE,
    SPENT,
    STORED,
    STRANDED,
    UNCOUNTED,
    Field,
    Limits,
    in_touch,
)
from serai.field.engine.turns import call_next_line, line_up, pop_place, sensor_at
from serai.field.visits import path_cells
from serai.field.world import World

PAPER = "N. Liu et al., Sensors 2009, 9(10), 7580-7594"


class CommunitySettings(BaseModel):
    """What CED and CET share: the queue's limit, and one name for each point that the papers leave open."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    alpha: int = setting(20, ge=0, description="A stored copy is dropped when it was sent more often than this.")
    resend: Literal["once", "each-contact"] = setting(
        "once", description="A source sends an event towards a subscriber once ever, or again at each new contact."
    )
    zone: Literal["path", "announced", "in-range"] = setting(
        "path",
        description="The set Z: sensors along the rest of the leg, redrawn at each new cell; along the leg as"
        " announced; or only those in range now.",
    )
    relays: Literal["addressed", "open"] = setting(
        "addressed",
        description="A relayed copy is for one subscriber; or, when that one leaves, for another who is there.",
    )
    stranded: Literal["deleted", "kept"] = setting(
        "deleted", description="Relayed copies whose subscriber has left are deleted, or kept until it comes back."
    )
    hops: Literal["many", "one"] = setting(
        "many", description="A relayed copy may cross several hops in one second, or one."
    )
    match: Literal["subscriber", "sensor"] = setting(
        "subscriber", description="Events are matched by the subscriber on receipt, or before they are sent."
    )
    silent_while_pausing: bool = setting(
        True, description="A pausing subscriber is silent: nothing is sent towards it (4.1 a: 'while moving')."
    )


class Settings(CommunitySettings):
    """The settings of CED."""

    name: Literal["ced"] = "ced"


class Rules(NamedTuple):
    """The settings as the kernels read them."""

    alpha: int
    once: bool
    zone_moves: bool
    zone_in_range: bool
    open_relays: bool
    keep_stranded: bool
    one_hop: bool
    match_at_sensor: bool
    silent_while_pausing: bool


def rules_of(settings: CommunitySettings) -> Rules:
    """The settings as the kernels read them."""
    return Rules(
        alpha=settings.alpha,
        once=settings.resend == "once",
        zone_moves=settings.zone != "announced",
        zone_in_range=settings.zone == "in-range",
        open_relays=settings.relays == "open",
        keep_stranded=settings.stranded == "kept",
        one_hop=settings.hops == "one",
        match_at_sensor=settings.match == "sensor",
        silent_while_pausing=settings.silent_while_pausing,
    )


def simulate(world: World, limits: Limits, settings: Settings) -> Field:
    """Run CED over a world."""
    rules = rules_of(settings)
    field = lay_out(world, limits, rules.silent_while_pausing, copies=True)
    return drive(field, lambda state, start: advance(state, rules, start))


@engine
def advance(field: Field, rules: Rules, start: int) -> int:
    """Run slots from `start` on; return the first slot not run (earlier than the last one if a pool must grow)."""
    field = shared(field)
    for slot in range(start, field.limits.slots):
        if short_of_room(field):
            return slot
        run_slot(field, rules, slot)
        if is_over(field):
            return slot + 1
    return field.limits.slots


@step
def run_slot(field: Field, rules: Rules, slot: int) -> None:
    """One second of the field: docs/field/rules.md, "A slot of CED and CET", steps 1 to 4."""
    set_clock(field, slot)
    call_next_line(field)
    expire(field)
    while births_left(field):
        give_birth(field, rules)
    while visits_left(field):
        meet(field, rules)
    while field.tally[0].in_line > 0:
        field.clock[0].turn = pop_place(field)
        take_turn(field, rules, sensor_at(field.clock[0].turn))
    field.clock[0].turn = AFTER_ALL
    settle_arrived(field)


# ---- 4.1 (a)-(c): Hello, PATH, sessions


@step
def meet(field: Field, rules: Rules) -> None:
    """The next visit of the slot: sessions end, begin, and hear of a changed path."""
    visit = field.visits[field.tally[0].visited]
    field.tally[0].visited += 1
    moved = step_into(field, visit, rules.silent_while_pausing)
    leave(field, rules, visit.subscriber)
    if not field.subscribers[visit.subscriber].audible:
        return
    for i in range(field.reach_start[visit.cell], field.reach_start[visit.cell + 1]):
        session = find_session(field, visit.subscriber, field.reach[i])
        if not is_going_on(field, session):
            welcome(field, rules, session)
            announce(field, session)
        elif visit.moving and field.sessions[session].announced != visit.segment:
            announce(field, session)
        elif moved and rules.zone_moves:
            redraw_zone(field, session)
        elif not moved:
            continue
        wake(field, session)


@step
def leave(field: Field, rules: Rules, subscriber: int) -> None:
    """End the sessions with communities out of reach."""
    who = field.subscribers[subscriber]
    i = 0
    while i < who.sessions:
        session = field.now_with[subscriber, i]
        if is_in_reach(field, who.cell, field.sessions[session].community):
            i += 1
        else:
            see_off(field, rules, session)


@step
def is_in_reach(field: Field, cell: int, community: int) -> bool:
    """Whether the community has a sensor in touch with the cell."""
    for i in range(field.reach_start[cell], field.reach_start[cell + 1]):
        if field.reach[i] == community:
            return True
    return False


@step
def welcome(field: Field, rules: Rules, session: int) -> None:
    """Begin a session: at the first one, all that is stored becomes due; waiting copies go on."""
    open_session(field, session)
    at = field.sessions[session]
    group, met_before = field.communities[at.community], at.met
    at.met = True
    field.met[at.community, at.word] |= at.bit
    for i in range(group.start, group.start + group.sensors):
        if not met_before:
            owe_everything(field, rules, session, field.members[i])
        if rules.keep_stranded:
            join_waiting(field, session, field.members[i], rules.open_relays)


@step
def owe_everything(field: Field, rules: Rules, session: int, sensor: int) -> None:
    """All copies stored at the sensor become due to the session, as far as they are of interest."""
    c = field.sensors[sensor].stored
    while c != NONE:
        if is_offered(field, rules, c, session):
            make_due(field, c, session)
        c = field.copies[c].next


@step
def is_offered(field: Field, rules: Rules, c: int, session: int) -> bool:
    """Whether a stored copy is sent to the session's subscriber at all."""
    if not rules.match_at_sensor:
        return True
    subscriber = field.sessions[session].subscriber
    return matches(field.event_values[field.copies[c].event], field.low[subscriber], field.high[subscriber])


@step
def see_off(field: Field, rules: Rules, session: int) -> None:
    """End a session: its relayed copies are re-addressed, kept or deleted (CET 3.2.1)."""
    close_session(field, session)
    at = field.sessions[session]
    heir = first_going_on(field, at.community) if rules.open_relays else NONE
    group = field.communities[at.community]
    for member in range(group.sensors):
        sensor = field.members[group.start + member]
        while field.links[at.links + member].relayed != NONE:
            strand(field, rules, take_first(field, session, sensor, at.links + member), heir)
        field.links[at.links + member].owed = UNCOUNTED
        if not rules.once:
            owe_everything(field, rules, session, sensor)


@step
def strand(field: Field, rules: Rules, c: int, heir: int) -> None:
    """What becomes of a relayed copy whose subscriber has left."""
    if field.copies[c].state == DEAD:
        free_copy(field, c)
    elif heir != NONE:
        address(field, c, heir)
        line_up(field, field.copies[c].holder)
    elif rules.keep_stranded:
        keep_waiting(field, c)
    else:
        log_drop(field, field.copies[c].event, field.copies[c].holder, STRANDED)
        discard(field, c)


@step
def announce(field: Field, session: int) -> None:
    """PATH: the subscriber tells the community its path (4.1 b, c), and Z is drawn up from it."""
    at = field.sessions[session]
    at.announced = field.subscribers[at.subscriber].segment
    field.communities[at.community].paths += 1
    redraw_zone(field, session)


@step
def wake(field: Field, session: int) -> None:
    """Sensors with something for the session stand in line."""
    at = field.sessions[session]
    group = field.communities[at.community]
    for i in range(group.start, group.start + group.sensors):
        if (field.owing[field.members[i], at.word] | field.carrying[field.members[i], at.word]) & at.bit:
            line_up(field, field.members[i])


# ---- 4.1 (d): the set Z and the routing graph


@step
def redraw_zone(field: Field, session: int) -> None:
    """Z is drawn up anew from here; the layers follow when somebody has something to send."""
    at = field.sessions[session]
    locate(field, at.subscriber)
    who = field.subscribers[at.subscriber]
    at.zone_x, at.zone_y, at.zone_segment, at.zone_cell = who.x, who.y, who.segment, who.cell
    at.stale = True
    field.communities[at.community].routes += 1


@step
def mark_zone(field: Field, rules: Rules, session: int) -> int:
    """Stamp the cells from which a sensor can hear the subscriber on its way; return the stamp."""
    at, tracks, grid = field.sessions[session], field.tracks, field.limits.grid
    field.tally[0].stamp += 1
    stamp = field.tally[0].stamp
    if rules.zone_in_range:
        field.path[0], count = at.zone_cell, 1
    else:
        end = min(at.zone_segment + 1, tracks.start[at.subscriber + 1] - 1)
        count = path_cells(at.zone_x, at.zone_y, tracks.x_m[end], tracks.y_m[end], grid, field.path)
    for i in range(count):
        column, row = field.path[i] % grid.columns, field.path[i] // grid.columns
        for near_row in range(max(row - 1, 0), min(row + 2, grid.rows)):
            for near_column in range(max(column - 1, 0), min(column + 2, grid.columns)):
                field.stamps[near_row * grid.columns + near_column] = stamp
    return int(stamp)


@step
def draw_layers(field: Field, rules: Rules, session: int) -> None:
    """The routing graph (Fig. 2): Z is layer 0, its neighbours layer 1, and so on through the community."""
    at = field.sessions[session]
    at.stale = False
    stamp = mark_zone(field, rules, session)
    if is_drawn(field, session, stamp):
        return
    group, reached = field.communities[at.community], 0
    for member in range(group.sensors):
        sensor, link = field.members[group.start + member], field.links[at.links + member]
        link.relays = 0
        if field.stamps[field.sensors[sensor].cell] == stamp:
            link.layer = 0
            field.frontier[reached] = sensor
            reached += 1
        else:
            link.layer = NONE
    i = 0
    while i < reached:
        sensor = field.frontier[i]
        layer = field.links[at.links + field.sensors[sensor].member].layer + 1
        for n in range(field.neighbor_start[sensor], field.neighbor_start[sensor + 1]):
            link = field.links[at.links + field.neighbor_member[n]]
            if link.layer == NONE:
                link.layer = layer
                field.frontier[reached] = field.neighbors[n]
                reached += 1
            if link.layer == layer:
                link.relays += 1
        i += 1


@step
def is_drawn(field: Field, session: int, stamp: int) -> bool:
    """Whether the layers are those of the stamped zone already: Z is what it was."""
    at = field.sessions[session]
    group = field.communities[at.community]
    for member in range(group.sensors):
        in_zone = field.stamps[field.sensors[field.members[group.start + member]].cell] == stamp
        if in_zone != (field.links[at.links + member].layer == 0):
            return False
    return True


# ---- 4.1: forwarding


@step
def take_turn(field: Field, rules: Rules, sensor: int) -> None:
    """A sensor's turn: up to `rate` events, in queue order, each towards its subscriber."""
    look_around(field, rules, sensor)
    stored = next_due(field, sensor, field.sensors[sensor].stored)
    for _ in range(field.limits.rate):
        relaying = first_relaying(field, sensor)
        if stored == NONE and relaying == NONE:
            break
        link = NONE if relaying == NONE else link_at(field, relaying, sensor)
        if relaying == NONE or (stored != NONE and goes_first(field, stored, field.links[link].relayed)):
            stored = send_stored(field, rules, sensor, stored)
        else:
            send_relayed(field, rules, sensor, relaying, link)
        stored = next_due(field, sensor, stored)  # which sessions are open may have changed
    if is_left_busy(field, sensor):
        line_up(field, sensor)


@step
def look_around(field: Field, rules: Rules, sensor: int) -> None:
    """Note which sessions the sensor can serve, of those it has something for, and which of these are open now."""
    community = field.sensors[sensor].community
    for word in range(field.communities[community].words):
        bits = (field.owing[sensor, word] | field.carrying[sensor, word]) & field.in_session[community, word]
        within_reach = open_now = 0
        while bits:
            session, bit = session_of_bit(field, community, word, bits), bits & -bits
            if field.sessions[session].stale:
                draw_layers(field, rules, session)
            forwards = field.links[link_at(field, session, sensor)].layer > 0
            subscriber = field.sessions[session].subscriber
            if field.subscribers[subscriber].audible and (forwards or in_touch(field, sensor, subscriber)):
                count_owed(field, sensor, session)
                within_reach |= bit
                if forwards or received_now(field, subscriber) < field.limits.rate:
                    open_now |= bit
            bits ^= bit
        field.within_reach[word], field.open_sessions[word] = within_reach, open_now


@step
def is_left_busy(field: Field, sensor: int) -> bool:
    """Whether the sensor could send more in the next slot without anybody moving."""
    for word in range(field.communities[field.sensors[sensor].community].words):
        if (field.owing[sensor, word] | field.carrying[sensor, word]) & field.within_reach[word]:
            return True
    return False


@step
def next_due(field: Field, sensor: int, c: int) -> int:
    """The sensor's first stored copy from c on that is due to an open session, or NONE."""
    words = field.communities[field.sensors[sensor].community].words
    for word in range(words):
        if field.owing[sensor, word] & field.open_sessions[word]:
            break
    else:
        return NONE
    while c != NONE:
        for word in range(words):
            if field.due[c, word] & field.open_sessions[word]:
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
            if field.copies[c].state == DEAD:
                set_relayed(field, session, sensor, link, c)
                c = field.links[link].relayed
            if c != NONE and (best_copy == NONE or goes_first(field, c, best_copy)):
                best, best_copy = session, c
            bits &= bits - 1
    return int(best)


@step
def send_stored(field: Field, rules: Rules, sensor: int, c: int) -> int:
    """Send a stored copy towards the first open session it is due to; return the copy to look at next.

    4.2 B: each sending by the source counts as a successful delivery. 4.2 C: the copy is kept, in its new place.
    """
    copy = field.copies[c]
    session, count = first_due_session(field, c), count_of(copy.rank, copy.event)
    link = link_at(field, session, sensor)
    unmake_due(field, c, session)
    if field.links[link].layer == 0:
        hand_over(field, session, sensor, copy.event, count, SOURCE)
    else:
        edge = choose_relay(field, session, sensor, link)
        if forward(field, session, sensor, edge, copy.event, SOURCE):
            arrive(field, rules, new_copy(field, copy.event, field.neighbors[edge], count, RELAYED), session)
    following = copy.next
    copy.rank = rank_of(count + 1, copy.event)
    if count + 1 > rules.alpha:
        log_drop(field, copy.event, sensor, SPENT)
        forget_due(field, c)
        remove_stored(field, c)
        discard(field, c)
        return int(following)
    if following == NONE or goes_first(field, c, following):
        return c
    remove_stored(field, c)
    insert_stored(field, c, following)
    return int(following)


@step
def first_due_session(field: Field, c: int) -> int:
    """The open session, of the lowest subscriber, that the copy is due to."""
    word = 0
    while not field.due[c, word] & field.open_sessions[word]:
        word += 1
    community = field.sensors[field.copies[c].holder].community
    return session_of_bit(field, community, word, field.due[c, word] & field.open_sessions[word])


@step
def send_relayed(field: Field, rules: Rules, sensor: int, session: int, link: int) -> None:
    """Send the first relayed copy of the session on."""
    c = take_first(field, session, sensor, link)
    copy = field.copies[c]
    if field.links[link].layer == 0:
        hand_over(field, session, sensor, copy.event, count_of(copy.rank, copy.event), RELAY)
        discard(field, c)
        return
    edge = choose_relay(field, session, sensor, link)
    if forward(field, session, sensor, edge, copy.event, RELAY):
        field.sensors[sensor].queue -= 1
        field.sensors[field.neighbors[edge]].queue += 1
        copy.holder = field.neighbors[edge]
        arrive(field, rules, c, session)
    else:
        discard(field, c)


@step
def hand_over(field: Field, session: int, sensor: int, event: int, count: int, kind: int) -> None:
    """Give an event to the subscriber itself; it closes its door at `rate` events a second."""
    at = field.sessions[session]
    send_to_subscriber(field, sensor, at.subscriber, 1)
    log_transfer(field, event, sensor, len(field.sensors) + at.subscriber, at.subscriber, kind, False)
    receive(field, at.subscriber, event, count)
    if field.subscribers[at.subscriber].received >= field.limits.rate:
        field.open_sessions[at.word] &= ~at.bit


@step
def choose_relay(field: Field, session: int, sensor: int, link: int) -> int:
    """The next of the neighbours one layer closer, taken in turn: "evenly forwarded" (4.1, Fig. 3); as an edge."""
    links, closer, relays = field.sessions[session].links, field.links[link].layer - 1, field.links[link].relays
    nth = field.sensors[sensor].forwards % relays
    field.sensors[sensor].forwards += 1
    edge = field.neighbor_start[sensor]
    while True:
        if field.links[links + field.neighbor_member[edge]].layer == closer:
            if nth == 0:
                return int(edge)
            nth -= 1
        edge += 1


@step
def forward(field: Field, session: int, sensor: int, edge: int, event: int, kind: int) -> bool:
    """Send an event over an edge; a full queue accepts nothing (4.2 C): the event is lost, the sender has paid."""
    receiver = field.neighbors[edge]
    accepted = field.sensors[receiver].queue < field.limits.queue
    send_to_sensor(field, sensor, receiver, field.hop_pj[edge], accepted)
    log_transfer(field, event, sensor, receiver, field.sessions[session].subscriber, kind, not accepted)
    if not accepted:
        log_drop(field, event, receiver, FULL)
    return bool(accepted)


@step
def arrive(field: Field, rules: Rules, c: int, session: int) -> None:
    """A relayed copy has come to its next sensor: it may go on in this slot, or (hops = "one") from the next."""
    if rules.one_hop:
        field.copies[c].subscriber = field.sessions[session].subscriber
        field.arrived[field.tally[0].arrived] = c
        field.tally[0].arrived += 1
    else:
        address(field, c, session)
        line_up(field, field.copies[c].holder)


@step
def settle_arrived(field: Field) -> None:
    """At the end of the slot, copies that arrived in it (hops = "one") stand in line for the next."""
    for i in range(field.tally[0].arrived):
        c = field.arrived[i]
        sensor = field.copies[c].holder
        address(field, c, find_session(field, field.copies[c].subscriber, field.sensors[sensor].community))
        line_up(field, sensor)
    field.tally[0].arrived = 0


# ---- 4.2: queue management


@step
def give_birth(field: Field, rules: Rules) -> None:
    """The next event of the slot enters its sensor's queue, if there is room."""
    event = field.tally[0].born
    field.tally[0].born += 1
    sensor = field.event_sensor[event]
    if field.sensors[sensor].queue >= field.limits.queue:
        log_drop(field, event, sensor, FULL)
    else:
        store(field, rules, new_copy(field, event, sensor, 0, STORED))


@step
def store(field: Field, rules: Rules, c: int) -> None:
    """A copy takes its place among the stored ones, and is due to all whom the community has met."""
    sensor = field.copies[c].holder
    insert_stored(field, c, NONE)
    make_due_to_all_met(field, c)
    if rules.match_at_sensor:
        withhold(field, rules, c)
    if owes_now(field, sensor):
        line_up(field, sensor)


@step
def withhold(field: Field, rules: Rules, c: int) -> None:
    """A copy just stored is not due to those who have no interest in it (match = "sensor")."""
    community = field.sensors[field.copies[c].holder].community
    for word in range(field.communities[community].words):
        bits = field.due[c, word]
        while bits:
            session = session_of_bit(field, community, word, bits)
            if not is_offered(field, rules, c, session):
                unmake_due(field, c, session)
            bits &= bits - 1


@step
def expire(field: Field) -> None:
    """4.2 A: events whose survival time has passed the network's tolerance are dropped."""
    c = field.calendar[field.clock[0].slot]
    while c != NONE:
        following = field.copies[c].later
        log_drop(field, field.copies[c].event, field.copies[c].holder, EXPIRED)
        if field.copies[c].state == STORED:
            forget_due(field, c)
            remove_stored(field, c)
            discard(field, c)
        else:
            bury(field, c)
        c = following
