"""SERAI: our own. Subscribers say where they go and carry events; sensors push, wait, and share the load by price.

It is of no paper. Where to find what, in the order of docs/field/serai.md; `parts` is `serai.field.serai_parts`:

    messages, who pays                        parts.control; parts.sending: what goes along with an event
    state                                     parts.state, parts.layout, parts.pools
    routes, walkers, waiting                  parts.routes
    1, 2   birth, clearing                    parts.copies: publish_next_event, clear
    3      prices                             parts.control: renew_prices
    4, 5   HELLO, sessions, floods            parts.sessions
    6      push, offers, carriers' pull       parts.pushing
    7 to 9 handover, walkers, deposits        parts.contact
    10     new copies                         parts.spreading
           deaths, waking                     parts.deaths, parts.waking
"""

import numpy as np

from serai.core.jit import engine, shared, step
from serai.field.engine.batteries import listen
from serai.field.engine.place import most_communities
from serai.field.engine.reach import come_to
from serai.field.engine.setup import drive, grown, lay_out
from serai.field.engine.slots import births_left, is_over, set_clock, short_of_room, visits_left
from serai.field.engine.state import Field, Limits, Records
from serai.field.engine.visiting import is_visiting, somebody_is_new
from serai.field.serai_parts.contact import deposit, hand_over, load, unload
from serai.field.serai_parts.control import flood_map, renew_prices, say_hello
from serai.field.serai_parts.copies import clear, publish_next_event
from serai.field.serai_parts.deaths import bury, need_room
from serai.field.serai_parts.layout import lay_out_serai
from serai.field.serai_parts.pools import Room, TooLittleRoomError, is_short, place_sessions, usual_room, with_room
from serai.field.serai_parts.pushing import push
from serai.field.serai_parts.sessions import begin_session, look_around
from serai.field.serai_parts.settings import Settings, rules_of
from serai.field.serai_parts.spreading import spread_new_copies
from serai.field.serai_parts.state import MESSAGES, Serai
from serai.field.serai_parts.waking import wake
from serai.field.world import World

PAPER = "serai's own (docs/field/serai.md)"

__all__ = ["MESSAGES", "PAPER", "Settings", "simulate"]


def simulate(world: World, limits: Limits, settings: Settings) -> Field:
    """Run SERAI over a world.

    How many rows a second adds to a full log has no useful bound: they are counted in a run without one.
    """
    if not limits.full_log:
        return run(world, limits, settings, 0)
    counted = run(world, limits._replace(full_log=False), settings, 0)
    return run(world, limits, settings, int(max(counted.transmissions.sum(), counted.drops.sum())))


def run(world: World, limits: Limits, settings: Settings, rows: int) -> Field:
    """One run, with so many rows of a full log; begun again with larger pools for as long as a slot needs more."""
    room = usual_room(limits)
    while True:
        try:
            return run_with_room(world, limits, settings, rows, room)
        except TooLittleRoomError:
            room = room.doubled()


def run_with_room(world: World, limits: Limits, settings: Settings, rows: int, room: Room) -> Field:
    """One run whose pools have that much room at the start of each slot."""
    rules = rules_of(settings, len(world.low), most_communities(world), limits.rate, limits.bits)
    field = lay_out(world, limits, silent_while_pausing=False, copies=False)
    field = field._replace(messages=np.zeros(len(MESSAGES), np.int64), message_bits=np.zeros(len(MESSAGES), np.int64))
    if limits.full_log:
        worst = limits.most_sent + limits.most_received * 2 + limits.most_born
        logs = {name: grown(getattr(field, name), rows + worst) for name in ("transfer_log", "drop_log")}
        field = field._replace(**logs)
    net = lay_out_serai(world, field, settings, rules)

    def on(field: Field, start: int) -> int:
        nonlocal net
        net = with_room(net, field, room)
        reached = advance(net, start)
        if net.tally[0].short:
            raise TooLittleRoomError
        return reached

    return drive(field, on)


@engine
def advance(net: Serai, start: int) -> int:
    """Run slots from `start` on; return the first slot not run (earlier than the last one if a pool must grow)."""
    net = shared(net)
    field = net.field
    place_sessions(net)
    for slot in range(start, field.limits.slots):
        if short_of_room(field) or is_short(net):
            return slot
        if not field.tally[0].unburied:
            run_slot(net, slot)
            listen(field)
        if need_room(net) or net.tally[0].short:
            return slot
        if field.tally[0].exhausted > 0:
            bury(net)
        wake(net)
        if is_over(field):
            return slot + 1
    return field.limits.slots


@step
def run_slot(net: Serai, slot: int) -> None:
    """One second: docs/field/serai.md, rules 1 to 10."""
    field, subscribers = net.field, net.rules.subscribers
    set_clock(field, slot)
    if slot == 0:
        for community in range(field.tally[0].communities):
            flood_map(net, community)
    while births_left(field):
        publish_next_event(net)
    if slot % net.rules.clear_interval == 0:
        clear(net)
    if slot % net.rules.price_interval == 1 % net.rules.price_interval:
        renew_prices(net)
    if somebody_is_new(field):
        move_all(net)
    while visits_left(field):
        move(net)
    for i in range(subscribers):
        attend_to(net, (slot + i) % subscribers)
    spread_new_copies(net)


@step
def move(net: Serai) -> None:
    """The next visit of the slot."""
    nth = net.field.tally[0].visited
    net.field.tally[0].visited += 1
    move_in(net, net.field.visits[nth])


@step
def move_all(net: Serai) -> None:
    """All visits of a slot in which sensors are new: also of those who stay where they are beside them."""
    for subscriber in range(net.rules.subscribers):
        if is_visiting(net.field, subscriber):
            move_in(net, net.field.power.visit[0])


@step
def move_in(net: Serai, visit: Records) -> None:
    """A visit: a subscriber is in another place, or on another leg of its track, or beside sensors that are new."""
    field = net.field
    who = field.subscribers[visit.subscriber]
    net.walkers[visit.subscriber].entered = visit.came
    who.segment, who.leg, who.moving, who.audible = visit.segment, visit.leg, visit.moving, True
    come_to(field, visit)


@step
def attend_to(net: Serai, subscriber: int) -> None:
    """Rules 4 to 9 for one subscriber."""
    who = net.walkers[subscriber]
    if who.next_change <= net.field.clock[0].slot:
        look_around(net, subscriber)
    who.spent_bits = 0
    if who.entered:
        say_hello(net, subscriber)
        who.entered = False
    if who.near == 0:
        return
    if who.new_leg:
        open_sessions(net, subscriber)
    hand_over(net, subscriber)
    load(net, subscriber)
    if who.loads >= 0:
        unload(net, subscriber)
    if who.ready and who.bag >= 0:
        deposit(net, subscriber)


@step
def open_sessions(net: Serai, subscriber: int) -> None:
    """Rules 5 and 6 with every community in reach that the subscriber meets for the first time on this leg."""
    who, mine = net.walkers[subscriber], net.near[subscriber]
    for i in range(who.near):
        session = mine[i].session
        if net.sessions[session].leg != who.leg:
            heard = net.groups[net.sessions[session].community].heard
            begin_session(net, session, mine[i].sensor)
            push(net, session, mine[i].sensor, heard)
    who.new_leg = False
