"""Events on their way: over one hop, along a route, to a subscriber.

An event's own bits are paid as events are everywhere in a field. What goes along with it (a want map, for whom it is)
is control, and paid as that.
"""

from serai.core.energy import distance, transmit_pj
from serai.core.jit import rule, step
from serai.field.engine.batteries import charge
from serai.field.engine.ledger import accept, can_send, log_drop, log_refused, log_transfer, receive, to_subscriber_pj
from serai.field.engine.state import DEAD, NONE, RELAY, SOURCE
from serai.field.serai_parts.control import hear, tell_subscriber
from serai.field.serai_parts.copies import is_full, make_room, new_copy, victim_at, want
from serai.field.serai_parts.state import ADDRESS, RELAY_COPY, WANT_MAP, Serai

UNPAID, LOST, ARRIVED = range(3)  # the sender cannot pay; it was sent in vain; it is there


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
    receiver = field.neighbors[edge]
    if not can_send(field, sender, field.hop_pj[edge]):
        return UNPAID
    bits = along[0] + along[1]
    if bits > 0:
        a, b = field.sensors[sender], field.sensors[receiver]
        charge(field, sender, transmit_pj(field.limits.radio, float(bits), distance(a.x, a.y, b.x, b.y)))
        count_along(net, along[0], along[1])
    no_room = stays and is_full(net, receiver) and victim_at(net, receiver) == NONE
    reason = accept(field, receiver, no_room)
    log_transfer(field, event, sender, receiver, addressee, kind, reason != NONE)
    if reason != NONE:
        log_refused(field, event, receiver, reason, addressee)
        return LOST
    if bits > 0:
        hear(net, receiver, bits)
    return ARRIVED


@rule
def send_along(net: Serai, event: int, sensor: int, hops: int, addressee: int, map_bits: int) -> int:
    """An event goes from a sensor along the first so many edges of `way`."""
    sender = sensor
    for i in range(hops):
        kind = SOURCE if i == 0 else RELAY
        fate = hop(net, event, sender, net.way[i], addressee, kind, i == hops - 1, (map_bits, 0))
        if fate == UNPAID and i > 0:
            log_drop(net.field, event, sender, DEAD, addressee)
            return LOST
        if fate != ARRIVED:
            return fate
        sender = net.field.neighbors[net.way[i]]
    return ARRIVED


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
def hand_event(net: Serai, event: int, sensor: int, subscriber: int, addressee: int, along: tuple[int, int]) -> bool:
    """A sensor gives a subscriber an event, with a map or an address; whether it could pay for it."""
    field = net.field
    if not can_send(field, sensor, to_subscriber_pj(field, sensor, subscriber)):
        return False
    net.walkers[subscriber].spent_bits += int(field.limits.bits)
    if along[0] + along[1] > 0:
        tell_subscriber(net, sensor, subscriber, along[0] + along[1])
        count_along(net, along[0], along[1])
    log_transfer(field, event, sensor, len(field.sensors) + subscriber, addressee, SOURCE, False)
    receive(field, subscriber, event, 0)
    return True
