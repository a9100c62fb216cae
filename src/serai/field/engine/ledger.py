"""What is counted: transfers, receptions, drops, energy. Every protocol reports here, and only here."""

import numpy as np

from serai.core.content import matches
from serai.core.energy import distance, transmit_pj
from serai.core.jit import rule, step
from serai.core.order import mix
from serai.field.engine.batteries import pay
from serai.field.engine.reach import locate
from serai.field.engine.state import DEAD, FULL, LOST, NONE, RELAY, Field

FEW = 16  # places in two cache lines


@step
def log_transfer(
    field: Field, event: int, sender: int, receiver: int, addressee: int, kind: int, refused: bool
) -> None:
    """An event went from one node to another; `refused`: the receiver's queue was full, or its battery empty."""
    field.transmissions[event] += 1
    if not field.limits.full_log:
        return
    row = field.transfer_log[field.tally[0].transfers]
    field.tally[0].transfers += 1
    row.time_s, row.event, row.sender, row.receiver = field.clock[0].slot, event, sender, receiver
    row.addressee = NONE if addressee == NONE else len(field.sensors) + addressee
    row.kind, row.outcome, row.moved = kind, refused, kind == RELAY
    row.stored = kind <= RELAY and receiver < len(field.sensors) and not refused  # of a return `log_stored` tells


@step
def log_lost(field: Field, event: int, sender: int, receiver: int, addressee: int, kind: int) -> None:
    """An event was sent, and lost on the air."""
    log_transfer(field, event, sender, receiver, addressee, kind, True)
    if field.limits.full_log:
        row = field.transfer_log[field.tally[0].transfers - 1]
        row.outcome, row.moved = LOST, False


@step
def log_stored(field: Field) -> None:
    """What was sent last stays where it came to: a returned event is in its place."""
    if field.limits.full_log:
        field.transfer_log[field.tally[0].transfers - 1].stored = True


@step
def log_drop(field: Field, event: int, node: int, reason: int, addressee: int) -> None:
    """A copy of the event was dropped at a sensor, on its way to a subscriber or (NONE) stored there."""
    field.drops[reason] += 1
    if not field.limits.full_log:
        return
    row = field.drop_log[field.tally[0].drops]
    field.tally[0].drops += 1
    row.time_s, row.event, row.node, row.reason = field.clock[0].slot, event, node, reason
    row.addressee = NONE if addressee == NONE else len(field.sensors) + addressee
    row.held, row.after = reason != FULL, field.tally[0].transfers


@step
def log_refused(field: Field, event: int, node: int, reason: int, addressee: int) -> None:
    """A copy of the event was lost before it had a place in the sensor's queue."""
    log_drop(field, event, node, reason, addressee)
    if field.limits.full_log:
        field.drop_log[field.tally[0].drops - 1].held = False


@step
def to_subscriber_pj(field: Field, sensor: int, subscriber: int) -> int:
    """What it costs the sensor to send an event to the subscriber in this slot."""
    locate(field, subscriber)
    here, who, limits = field.sensors[sensor], field.subscribers[subscriber], field.limits
    return transmit_pj(limits.radio, limits.bits, distance(here.x, here.y, who.x, who.y))


@step
def can_send(field: Field, sensor: int, cost: int) -> bool:
    """Whether the sensor can pay for sending an event; if so, it has."""
    if not pay(field, sensor, cost):
        return False
    field.sensors[sensor].sent += 1
    return True


@step
def accept(field: Field, receiver: int, queued: bool) -> int:
    """The sensor pays for receiving an event; or the reason why it cannot, else NONE. `queued`: it needs a place."""
    here = field.sensors[receiver]
    if queued and here.queue >= here.capacity and not here.exhausted:
        return FULL
    if not pay(field, receiver, field.limits.receive_pj):
        return DEAD
    here.received += 1
    return NONE


@step
def received_now(field: Field, subscriber: int) -> int:
    """How many events the subscriber has received in this slot so far."""
    who = field.subscribers[subscriber]
    return int(who.received) if who.received_in == field.clock[0].slot else 0


@step
def receive(field: Field, subscriber: int, event: int, count: int) -> None:
    """The subscriber receives the event; the ledger keeps the first time (and the last, for who asks)."""
    who, t = field.subscribers[subscriber], field.clock[0].slot
    who.received = received_now(field, subscriber) + 1
    who.received_in = t
    place = find(field, event, subscriber)
    if len(field.known_last) > 0:
        field.known_last[place] = t
    if field.known[place] != NONE:
        return
    field.known[place] = pair(field, event, subscriber)
    row = field.receptions[field.tally[0].receptions]
    field.tally[0].receptions += 1
    row.event, row.subscriber, row.slot, row.count, row.next = event, subscriber, t, count, NONE
    row.wanted = matches(field.event_values[event], field.low[subscriber], field.high[subscriber])


@step
def pair(field: Field, event: int, subscriber: int) -> int:
    """The number of the pair of an event and a subscriber."""
    return int(event * np.int64(len(field.subscribers)) + subscriber)  # more than 32 bits hold, in large fields


@step
def find(field: Field, event: int, subscriber: int) -> int:
    """Where the pair is, or would be, in the hash table (open addressing, at most two thirds full)."""
    last, wanted = len(field.known) - 1, pair(field, event, subscriber)
    place = first_place(event, subscriber, len(field.subscribers), len(field.known))
    while field.known[place] != NONE and field.known[place] != wanted:  # there are always free places
        place = (place + 1) & last
    return place


@rule
def first_place(event: int, subscriber: int, subscribers: int, size: int) -> int:
    """Where a pair is looked for first in a table of that size, a power of two.

    The pairs of one event stand together: its receivers come one after the other. If they all fit into two cache lines,
    so do events of one time: what is looked for next is near what was looked for last. If not, events stand anywhere,
    or the table would be crowded at one time's events and empty elsewhere.
    """
    if subscribers <= FEW:
        return (event * FEW + subscriber) & (size - 1)
    return (mix(event) * 8 + (mix(subscriber) & 7)) & (size - 1)
