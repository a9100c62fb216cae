"""Visits in a slot in which sensors are new: also whoever stays beside them has one. docs/field/rules.md, "Waking"."""

from serai.core.jit import step
from serai.field.engine.reach import come_to, find_listeners
from serai.field.engine.slots import visits_left
from serai.field.engine.state import Field


@step
def somebody_is_new(field: Field) -> bool:
    """Whether sensors have formed communities anew with the last slot."""
    return bool(field.tally[0].renewed == field.clock[0].slot and len(field.power.woken) > 0)


@step
def is_visiting(field: Field, subscriber: int) -> bool:
    """Whether the subscriber has a new visit in this slot, of its own or beside sensors that are new; it is `visit`."""
    visit, who, tally = field.power.visit[0], field.subscribers[subscriber], field.tally[0]
    moved = visits_left(field) and field.visits[tally.visited].subscriber == subscriber
    if moved:
        field.power.visit[0] = field.visits[tally.visited]
        tally.visited += 1
    else:
        visit.slot, visit.subscriber, visit.cell = field.clock[0].slot, subscriber, who.cell
        visit.segment, visit.leg, visit.moving, visit.came, visit.went = who.segment, who.leg, who.moving, False, False
    come_to(field, visit)
    for i in range(find_listeners(field, subscriber)):
        if field.power.renewed[field.power.kin[field.listeners[i]]] == visit.slot:
            visit.came = True
    return bool(moved or visit.came)
