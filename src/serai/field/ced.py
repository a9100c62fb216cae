"""CED: sensors form communities; when a subscriber comes by, a community sends it its events.

N. Liu, M. Liu, J. Zhu, H. Gong: A Community-Based Event Delivery Protocol in Publish/Subscribe Systems for Delay
Tolerant Sensor Networks. Sensors 2009, 9(10), 7580-7594.

Where to find what, in the paper's order; `collection` is `serai.field.collection`, which CET uses, too:

    3    network model: cells, communities, loners      serai.field.communities
    4.1  (a) Hello                                      serai.field.engine.slots: begin_visit
         (b) first contact, PATH                        collection.sessions: meet, begin_session, announce
         (c) changed path                               collection.sessions: meet
         (d) the set Z                                  collection.layers: mark_zone
         the routing graph (Fig. 2)                     collection.layers: build_layers
         forwarding, evenly over the relays (Fig. 3)    collection.forwarding: take_turn, choose_relay, forward
         loner nodes                                    a community of one: its sensor is always in Z
         matching at the subscriber                     serai.field.engine.ledger: receive
    4.2  A survival time                                collection.storing: expire
         B successful delivery time                     collection.forwarding: send_stored
         C queue order, drops, full queue (Fig. 5)      serai.field.engine.queues: goes_first; send_stored, forward

The rules in words, with everything the paper leaves open, are in docs/field/rules.md; each open point is a setting.
"""

from typing import Literal

from serai.core.jit import engine, shared, step
from serai.field.collection.deaths import bury, deaths_need_room
from serai.field.collection.forwarding import line_up_arrived, take_turn
from serai.field.collection.sessions import meet, meet_all
from serai.field.collection.settings import CollectionRules, CommunitySettings, collection_rules
from serai.field.collection.storing import expire, publish_next_event
from serai.field.collection.waking import wake
from serai.field.engine.batteries import listen
from serai.field.engine.control import draw_all_maps
from serai.field.engine.setup import drive, lay_out
from serai.field.engine.slots import AFTER_ALL, births_left, is_over, set_clock, short_of_room, visits_left
from serai.field.engine.state import Field, Limits
from serai.field.engine.turns import call_next_line, pop_place, sensor_at
from serai.field.engine.visiting import somebody_is_new
from serai.field.world import World

PAPER = "N. Liu et al., Sensors 2009, 9(10), 7580-7594"


class Settings(CommunitySettings):
    """The settings of CED."""

    name: Literal["ced"] = "ced"


def simulate(world: World, limits: Limits, settings: Settings) -> Field:
    """Run CED over a world."""
    rules = collection_rules(settings)
    field = lay_out(world, limits, rules.silent_while_pausing, copies=True)
    return drive(field, lambda state, start: advance(state, rules, start))


@engine
def advance(field: Field, rules: CollectionRules, start: int) -> int:
    """Run slots from `start` on; return the first slot not run (earlier than the last one if a pool must grow)."""
    field = shared(field)
    for slot in range(start, field.limits.slots):
        if short_of_room(field):
            return slot
        if not field.tally[0].unburied:
            run_slot(field, rules, slot)
            listen(field)
        if deaths_need_room(field):
            return slot
        bury(field, rules)
        wake(field, rules)
        if is_over(field):
            return slot + 1
    return field.limits.slots


@step
def run_slot(field: Field, rules: CollectionRules, slot: int) -> None:
    """One second of the field: docs/field/rules.md, "A slot of CED and CET", steps 1 to 4."""
    set_clock(field, slot)
    draw_all_maps(field)
    call_next_line(field)
    expire(field)
    while births_left(field):
        publish_next_event(field, rules)
    if somebody_is_new(field):
        meet_all(field, rules)
    while visits_left(field):
        meet(field, rules)
    while field.tally[0].in_line > 0:
        field.clock[0].turn = pop_place(field)
        take_turn(field, rules, sensor_at(field.clock[0].turn))
    field.clock[0].turn = AFTER_ALL
    line_up_arrived(field)
