"""DG, direct gathering: sensors give their events to subscribers in direct contact, and to nobody else.

The baseline of both papers: CED 5 ("only allow delivery when interested subscribers are in direct proximity"), CET 4
("collects the events of a sensor only while in its communication range; newer events first").

    contact, Hello                            meet
    who goes first                            contact_rank: an order drawn when a contact begins
    newest first, again every second          drain, send
    survival time                             expire (no limit on the delivery count)

The rules in words, with everything the papers leave open, are in docs/field/rules.md; each open point is a setting.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from pydantic import Field as setting

from serai.core.content import matches
from serai.core.jit import engine, shared, step
from serai.core.order import contact_rank
from serai.field.collection.kin import is_renewed, wake_sensors
from serai.field.engine.batteries import exhaust, forget_exhausted, is_dead, listen, mark_dead, pay
from serai.field.engine.ledger import find, log_drop, log_transfer, receive, to_subscriber_pj
from serai.field.engine.place import most_listeners
from serai.field.engine.reach import in_touch
from serai.field.engine.setup import drive, lay_out
from serai.field.engine.slots import begin_visit, births_left, is_over, set_clock, short_of_room, visits_left
from serai.field.engine.state import DEAD, EXPIRED, FULL, NONE, SOURCE, Field, Limits, Records, records
from serai.field.engine.visiting import is_visiting, somebody_is_new
from serai.field.world import World

PAPER = "baseline of CED (Sensors 2009) and CET (Journal of Software 2010)"


class Settings(BaseModel):
    """One name for each point that the papers leave open."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Literal["dg"] = "dg"
    resend: Literal["every-second", "each-contact", "once"] = setting(
        "every-second",
        description="A sensor in contact sends its whole queue again every second, each event once per contact, or"
        " each event only once to a subscriber.",
    )
    match: Literal["subscriber", "sensor"] = setting(
        "subscriber", description="Events are matched by the subscriber on receipt, or before they are sent."
    )
    reach: Literal["touching", "same-cell"] = setting(
        "touching", description="Nodes are in contact if their cells touch, or only if they are in the same cell."
    )
    budget: Literal["subscriber", "link"] = setting(
        "subscriber", description="The limit on events per second applies to the subscriber, or to each link."
    )
    silent_while_pausing: bool = setting(
        True, description="A pausing subscriber sends no Hello and nothing is sent to it (the paper: 'while moving')."
    )


class Rules(NamedTuple):
    """The settings as the kernels read them."""

    every_second: bool
    each_contact: bool
    match_at_sensor: bool
    same_cell: bool
    per_link: bool
    silent_while_pausing: bool


def rules_of(settings: Settings) -> Rules:
    """The settings as the kernels read them."""
    return Rules(
        every_second=settings.resend == "every-second",
        each_contact=settings.resend == "each-contact",
        match_at_sensor=settings.match == "sensor",
        same_cell=settings.reach == "same-cell",
        per_link=settings.budget == "link",
        silent_while_pausing=settings.silent_while_pausing,
    )


CONTACT = np.dtype(
    [
        ("rank", "i8"),
        ("sensor", "i4"),
        ("begun", "i4"),  # slot
        ("oldest", "i4"), ("newest", "i4"),  # a stretch of the queue already looked at in this contact, or none
    ],
    align=True,
)  # fmt: skip


class Queues(NamedTuple):
    """DG's queues: a sensor's events lie in order of birth, so its queue is a window [first, end) over them."""

    start: NDArray[np.int64]  # of each sensor, in `event`
    event: NDArray[np.int32]
    first: NDArray[np.int32]
    end: NDArray[np.int32]
    contacts: Records  # [subscriber, n], by rank
    in_contact: NDArray[np.int32]


def simulate(world: World, limits: Limits, settings: Settings) -> Field:
    """Run DG over a world."""
    rules = rules_of(settings)
    crowd = most_listeners(world)
    received = limits.most_received * (crowd if rules.per_link else 1)
    # Nothing is relayed; and at most all events there are can expire in one slot.
    limits = limits._replace(most_received=received, most_sent=received, most_born=len(world.event_sensor))
    field = lay_out(world, limits, rules.silent_while_pausing, copies=False, last_receptions=rules.each_contact)
    queues = queues_for(field, crowd)
    return drive(field, lambda state, start: advance(state, rules, queues, start))


def queues_for(field: Field, crowd: int) -> Queues:
    """Empty queues and contacts for a run."""
    sensors, subscribers = len(field.sensors), len(field.subscribers)
    per_sensor = np.bincount(field.event_sensor, minlength=sensors)
    return Queues(
        start=np.concatenate(([0], np.cumsum(per_sensor))).astype(np.int64),
        event=np.empty(len(field.event_sensor), np.int32),
        first=np.zeros(sensors, np.int32),
        end=np.zeros(sensors, np.int32),
        contacts=records(subscribers * crowd, CONTACT).reshape(subscribers, crowd),
        in_contact=np.zeros(subscribers, np.int32),
    )


@engine
def advance(field: Field, rules: Rules, queues: Queues, start: int) -> int:
    """Run slots from `start` on; return the first slot not run (earlier than the last one if a pool must grow)."""
    field = shared(field)
    queues = shared(queues)
    for slot in range(start, field.limits.slots):
        if short_of_room(field):
            return slot
        set_clock(field, slot)
        expire(field, queues)
        while births_left(field):
            publish_next_event(field, queues)
        if somebody_is_new(field):
            meet_all(field, rules, queues)
        while visits_left(field):
            meet(field, rules, queues)
        for subscriber in range(len(field.subscribers)):
            if field.subscribers[subscriber].audible:
                drain(field, rules, queues, subscriber)
        listen(field)
        if field.tally[0].exhausted > 0:
            bury(field, queues)
        wake(field)
        if is_over(field):
            return slot + 1
    return field.limits.slots


# ---- queues


@step
def expire(field: Field, queues: Queues) -> None:
    """Events older than the network's tolerance are dropped: events are numbered by birth, so the oldest come first."""
    tally, slot = field.tally[0], field.clock[0].slot
    while tally.aged < tally.born and slot - field.event_time[tally.aged] > field.limits.lifetime:
        event, sensor = tally.aged, field.event_sensor[tally.aged]
        tally.aged += 1
        first = queues.first[sensor]
        # An event that met a full queue at birth was never in it.
        if first < queues.end[sensor] and queues.event[queues.start[sensor] + first] == event:
            queues.first[sensor] += 1
            log_drop(field, event, sensor, EXPIRED, NONE)


@step
def publish_next_event(field: Field, queues: Queues) -> None:
    """The next event of the slot enters its sensor's queue, if there is room."""
    event = field.tally[0].born
    field.tally[0].born += 1
    sensor = field.event_sensor[event]
    if is_dead(field, sensor):
        return
    if queues.end[sensor] - queues.first[sensor] >= field.sensors[sensor].capacity:
        log_drop(field, event, sensor, FULL, NONE)
        return
    queues.event[queues.start[sensor] + queues.end[sensor]] = event
    queues.end[sensor] += 1


@step
def bury(field: Field, queues: Queues) -> None:
    """The end of the slot for exhausted sensors: their queues are lost and their contacts end."""
    count = field.tally[0].exhausted
    for i in range(count):
        sensor = field.exhausted[i]
        mark_dead(field, sensor)
        for n in range(queues.first[sensor], queues.end[sensor]):
            log_drop(field, queues.event[queues.start[sensor] + n], sensor, DEAD, NONE)
        queues.first[sensor] = queues.end[sensor]
    for subscriber in range(len(field.subscribers)):
        mine, kept = queues.contacts[subscriber], 0
        for i in range(queues.in_contact[subscriber]):
            if not is_dead(field, mine[i].sensor):
                mine[kept] = mine[i]
                kept += 1
        queues.in_contact[subscriber] = kept
    forget_exhausted(field, count)


@step
def wake(field: Field) -> None:
    """The end of the slot for sensors that have harvested enough: their kin are new to whoever is beside them."""
    for i in range(wake_sensors(field)):
        is_renewed(field, field.power.kin[field.power.woken[i]])


# ---- contacts


@step
def meet(field: Field, rules: Rules, queues: Queues) -> None:
    """The next visit of the slot."""
    nth = field.tally[0].visited
    field.tally[0].visited += 1
    meet_in(field, rules, queues, field.visits[nth])


@step
def meet_all(field: Field, rules: Rules, queues: Queues) -> None:
    """All visits of a slot in which sensors are new: also of those who stay where they are beside them."""
    for subscriber in range(len(field.subscribers)):
        if is_visiting(field, subscriber):
            meet_in(field, rules, queues, field.power.visit[0])


@step
def meet_in(field: Field, rules: Rules, queues: Queues, visit: Records) -> None:
    """A visit: contacts end where the sensor is out of reach, and begin where it is new."""
    heard = begin_visit(field, visit, rules.silent_while_pausing)
    if not (visit.came or visit.went):
        return
    mine, kept = queues.contacts[visit.subscriber], 0
    for i in range(queues.in_contact[visit.subscriber]):
        if reaches(field, rules, mine[i].sensor, visit.subscriber):
            mine[kept] = mine[i]
            kept += 1
    queues.in_contact[visit.subscriber] = kept
    greet(field, rules, queues, visit.subscriber, heard)


@step
def reaches(field: Field, rules: Rules, sensor: int, subscriber: int) -> bool:
    """Whether the sensor and the subscriber are in touch (or in the same cell)."""
    if rules.same_cell:
        return bool(field.sensors[sensor].cell == field.subscribers[subscriber].cell)
    return in_touch(field, sensor, subscriber)


@step
def greet(field: Field, rules: Rules, queues: Queues, subscriber: int, heard: int) -> None:
    """Begin a contact with every sensor in reach that has none; so many listen."""
    for i in range(heard):
        if reaches(field, rules, field.listeners[i], subscriber):
            begin_contact(field, queues, subscriber, field.listeners[i])


@step
def begin_contact(field: Field, queues: Queues, subscriber: int, sensor: int) -> None:
    """Add a contact in its rank's place, unless it is there."""
    mine = queues.contacts[subscriber]
    i = queues.in_contact[subscriber]
    for n in range(i):
        if mine[n].sensor == sensor:
            return
    slot = field.clock[0].slot
    rank = contact_rank(field.limits.key, slot, subscriber, sensor)
    while i > 0 and (mine[i - 1].rank, mine[i - 1].sensor) > (rank, sensor):
        mine[i] = mine[i - 1]
        i -= 1
    fresh = mine[i]
    fresh.rank, fresh.sensor, fresh.begun, fresh.oldest, fresh.newest = rank, sensor, slot, 0, NONE
    queues.in_contact[subscriber] += 1


# ---- sending


@step
def drain(field: Field, rules: Rules, queues: Queues, subscriber: int) -> None:
    """The sensors in contact send one after the other, until the subscriber has had enough for this slot."""
    mine = queues.contacts[subscriber]
    left = field.limits.rate
    for i in range(queues.in_contact[subscriber]):
        if rules.per_link:
            left = field.limits.rate
        elif left == 0:
            break
        left = send(field, rules, queues, subscriber, mine[i], left)


@step
def send(field: Field, rules: Rules, queues: Queues, subscriber: int, contact: Records, left: int) -> int:
    """One sensor sends its queue, newest first; return what is left of the budget."""
    sensor = contact.sensor
    start, n, first = queues.start[sensor], queues.end[sensor] - 1, queues.first[sensor]
    if n < first or field.sensors[sensor].exhausted:
        return left
    cost = to_subscriber_pj(field, sensor, subscriber)
    affordable = left if cost == 0 else field.sensors[sensor].left_pj // cost
    sent, youngest, short = 0, n, False
    while n >= first and sent < left:
        event = queues.event[start + n]
        if is_offered(field, rules, contact, subscriber, event):
            if sent == affordable:
                short = True
                break
            log_transfer(field, event, sensor, len(field.sensors) + subscriber, subscriber, SOURCE, False)
            # What was sent in this contact before is known to be known: no need to look it up each second.
            if not (rules.every_second and contact.oldest <= n <= contact.newest):
                receive(field, subscriber, event, 0)
            sent += 1
        n -= 1
    if n + 1 > contact.newest + 1:  # a gap: of the two stretches keep the younger
        contact.oldest = n + 1
    else:
        contact.oldest = min(contact.oldest, n + 1)
    contact.newest = youngest
    field.sensors[sensor].sent += sent
    pay(field, sensor, sent * cost)
    if short:
        exhaust(field, sensor)
    return left - sent


@step
def is_offered(field: Field, rules: Rules, contact: Records, subscriber: int, event: int) -> bool:
    """Whether the sensor sends the event to the subscriber at all."""
    values = field.event_values[event]
    if rules.match_at_sensor and not matches(values, field.low[subscriber], field.high[subscriber]):
        return False
    if rules.every_second:
        return True
    place = find(field, event, subscriber)
    if field.known[place] == NONE:
        return True
    return rules.each_contact and bool(field.known_last[place] < contact.begun)
