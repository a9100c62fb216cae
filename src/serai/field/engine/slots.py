"""What begins every slot and ends it, whatever the protocol: visits, Hello, birth; room in the pools; the end."""

from serai.core.jit import step
from serai.core.order import slot_key
from serai.field.engine.batteries import let_fail
from serai.field.engine.control import charge_all_floods, look_at_spending, say_hello
from serai.field.engine.reach import anybody_in_range, come_to, find_listeners
from serai.field.engine.state import Field, Records
from serai.field.engine.watch import is_short, look

BEFORE_ALL = -1  # a place in line before every turn of the slot
AFTER_ALL = (1 << 63) - 1  # and behind every turn


@step
def set_clock(field: Field, slot: int) -> None:
    """A slot begins."""
    field.clock[0].slot, field.clock[0].turn = slot, BEFORE_ALL
    field.clock[0].key = slot_key(field.limits.key, slot)
    look_at_spending(field, slot)
    let_fail(field)


@step
def begin_visit(field: Field, visit: Records, silent_while_pausing: bool) -> int:
    """The subscriber's new visit: Hello where one is said (CED 4.1 a); how many sensors listen (`listeners`)."""
    who = field.subscribers[visit.subscriber]
    was_audible = who.audible
    who.segment, who.leg, who.moving = visit.segment, visit.leg, visit.moving
    who.audible = bool(visit.moving) or not silent_while_pausing
    come_to(field, visit)
    heard = find_listeners(field, visit.subscriber)
    if who.audible and (visit.came or not was_audible) and anybody_in_range(field, visit.subscriber):
        say_hello(field, heard)
    return heard


@step
def visits_left(field: Field) -> bool:
    """Whether another visit begins in this slot."""
    nth = field.tally[0].visited
    return bool(nth < len(field.visits) and field.visits[nth].slot == field.clock[0].slot)


@step
def births_left(field: Field) -> bool:
    """Whether another event is born into this slot."""
    nth = field.tally[0].born
    return bool(nth < len(field.event_slot) and field.event_slot[nth] == field.clock[0].slot)


@step
def short_of_room(field: Field) -> bool:
    """Whether the worst case of one slot could overflow a pool: the caller then grows the pools and goes on."""
    tally, limits = field.tally[0], field.limits
    if len(field.copies) > 0 and tally.free_copies < limits.most_sent + limits.most_received + limits.most_born:
        return True
    rows = tally.receptions + limits.most_received
    if rows > len(field.receptions) or 3 * rows > 2 * len(field.known):
        return True
    if len(field.power.woken) > 0 and waking_is_short(field):
        return True
    return limits.full_log and log_is_short(field)


@step
def waking_is_short(field: Field) -> bool:
    """Whether all sensors could not wake in one slot, each a community of its own."""
    tally, sensors = field.tally[0], len(field.power.woken)
    few = tally.communities + sensors > len(field.communities)
    return bool(
        few or tally.sessions + len(field.links) > len(field.sessions) or tally.naps + sensors > len(field.power.naps)
    )


@step
def log_is_short(field: Field) -> bool:
    """Whether the rows of one more slot may not fit into the full log."""
    tally, limits = field.tally[0], field.limits
    transfers = limits.most_sent + limits.most_received * (2 + tally.longest)
    drops = len(field.copies) + limits.most_sent + limits.most_received + limits.most_born
    few = tally.transfers + transfers > len(field.transfer_log) or tally.drops + drops > len(field.drop_log)
    return bool(few or is_short(field))


@step
def is_over(field: Field) -> bool:
    """Whether the run ends with this slot: the last, or that of the first death; if so, all floods are paid for."""
    last = field.clock[0].slot == field.limits.slots - 1
    over = last or (field.limits.until_death and field.tally[0].died >= 0)
    if over:
        field.tally[0].over = True
        charge_all_floods(field)
        look_at_spending(field, field.clock[0].slot + 1)
    if field.limits.full_log:
        look(field, over)
    return bool(over)
