"""Events on their way: over one hop, along a route, to a subscriber.

An event's own bits are paid as events are everywhere in a field. What goes along with it (a want map, for whom it is)
is control, and paid as that.
"""

from serai.core.energy import distance, transmit_pj
from serai.core.jit import rule, step
from serai.field.engine.batteries import charge
from serai.field.engine.ledger import accept, can_send, log_drop, log_refused, log_transfer, receive, to_subscriber_pj
from serai.field.engine.state import DEAD, FULL, NONE, RELAY, SOURCE
from serai.field.serai_parts.air import acknowledge, gets_lost, tries
from serai.field.serai_parts.control import hear, tell_subscriber
from serai.field.serai_parts.copies import has_room, make_room, new_copy, want
from serai.field.serai_parts.state import ADDRESS, RELAY_COPY, WANT_MAP, Serai

UNPAID, LOST, STUCK, ARRIVED = range(4)
"""The sender cannot pay; it was sent in vain; nothing was heard of it, and the sender keeps it; it is there."""


@step
def map_size(net: Serai) -> int:
    """The bits of a want map: one for each subscriber."""
    return int(net.rules.subscribers)


@step
def count_along(net: Serai, map_bits: int, address_bits: int) -> None:
    """Count what goes along with an event."""
    net.field.message_bits[WANT_MAP] += map_bits
    net.field.message_bits[ADDRESS] += address_bits


@rule
def hop(
    net: Serai, event: int, sender: int, edge: int, addressee: int, kind: int, stays: bool, along: tuple[int, int]
) -> int:
    """An event goes over an edge, with a map and an address of so many bits; if it stays there, it needs room."""
    field = net.field
    receiver, bits = field.neighbors[edge], along[0] + along[1]
    for nth in range(tries(net)):
        if not can_send(field, sender, field.hop_pj[edge]):
            return UNPAID
        if bits > 0:
            a, b = field.sensors[sender], field.sensors[receiver]
            charge(field, sender, transmit_pj(field.limits.radio, float(bits), distance(a.x, a.y, b.x, b.y)))
            count_along(net, along[0], along[1])
        if gets_lost(net, event, sender, receiver, addressee, kind, nth):
            continue
        reason = accept(field, receiver, stays and not has_room(net, receiver))
        log_transfer(field, event, sender, receiver, addressee, kind, reason != NONE)
        if reason != NONE:
            log_refused(field, event, receiver, reason, addressee)
            return LOST
        if bits > 0:
            hear(net, receiver, bits)
        acknowledge(net, sender, receiver)
        return ARRIVED
    return STUCK


@rule
def send_along(net: Serai, event: int, sensor: int, hops: int, addressee: int, map_bits: int) -> tuple[int, int]:
    """An event goes from a sensor along the first so many edges of `way`: what became of it, and where it is now."""
    sender = sensor
    for i in range(hops):
        kind = SOURCE if i == 0 else RELAY
        fate = hop(net, event, sender, net.way[i], addressee, kind, i == hops - 1, (map_bits, 0))
        if fate == UNPAID and i > 0:
            log_drop(net.field, event, sender, DEAD, addressee)
            return LOST, sender
        if fate != ARRIVED:
            return fate, sender
        sender = net.field.neighbors[net.way[i]]
    return ARRIVED, sender


@step
def can_keep(net: Serai, sensor: int, event: int, addressee: int, held: bool) -> bool:
    """Whether a sensor on the way has room for an event that it cannot get rid of; if not, it is dropped."""
    if has_room(net, sensor):
        return True
    log_drop(net.field, event, sensor, FULL, addressee)
    if net.field.limits.full_log:
        net.field.drop_log[net.field.tally[0].drops - 1].held = held
    return False


@step
def lay_down(net: Serai, sensor: int, event: int, subscriber: int, exposed: bool) -> int:
    """A relay copy for one subscriber comes to lie at a sensor that has or makes room; NONE: the pool is short."""
    make_room(net, sensor)
    c = new_copy(net, sensor, event, RELAY_COPY, exposed)
    if c != NONE:
        want(net, c, subscriber)
    return c


@step
def left_bits(net: Serai, subscriber: int) -> int:
    """What is left of the subscriber's budget of this second."""
    return int(net.rules.budget_bits - net.walkers[subscriber].spent_bits)


@step
def hand_event(net: Serai, event: int, sensor: int, subscriber: int, addressee: int, along: tuple[int, int]) -> int:
    """A sensor gives a subscriber an event, with a map or an address: UNPAID, STUCK or ARRIVED."""
    field, receiver = net.field, len(net.field.sensors) + subscriber
    for nth in range(tries(net)):
        if not can_send(field, sensor, to_subscriber_pj(field, sensor, subscriber)):
            return UNPAID
        net.walkers[subscriber].spent_bits += int(field.limits.bits)
        if along[0] + along[1] > 0:
            tell_subscriber(net, sensor, subscriber, along[0] + along[1])
            count_along(net, along[0], along[1])
        if gets_lost(net, event, sensor, receiver, addressee, SOURCE, nth):
            continue
        log_transfer(field, event, sensor, receiver, addressee, SOURCE, False)
        receive(field, subscriber, event, 0)
        acknowledge(net, sensor, receiver)
        return ARRIVED
    return STUCK
