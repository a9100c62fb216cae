"""SERAI's control messages: what each is for, how large it is, who pays. Every one is paid by who sends and who hears.

A subscriber pays nothing, but all that it sends or hears counts against its budget of the second.
"""

import math

from serai.core.energy import distance, receive_pj, transmit_pj
from serai.core.jit import step
from serai.field.engine.batteries import charge
from serai.field.engine.reach import locate
from serai.field.serai_parts.settings import PRICES
from serai.field.serai_parts.state import HELLO, MAP, PRICE, REPLY, Serai, waiting_time

HELLO_BITS = 32
REPLY_BITS = 32  # id, community, T_wait, queue full
MAP_BITS = 16  # for each member: id, cell
PRICE_BITS, PRICE_MEMBER_BITS = 16, 4
ANNOUNCE_BITS = 64  # id 8, carry bit 1, hash of known list 7, position 16, destination 16, speed 8, end of pause 8
SUBSCRIPTION_BITS = 40
OFFER_BITS, OFFER_HEADER_BITS = 16, 32
GOAL_BITS = 8  # each destination of a multicast, and whom a walker's load is for when it drops it
LOAD_BITS = 24  # to a walker: for whom, where to drop it, until when

STANDARD_SIZE, STANDARD_CROWD = 40, 10  # the community and the subscribers that T_0 speaks of


@step
def count_message(net: Serai, kind: int, bits: int) -> None:
    """Count one control message."""
    net.field.messages[kind] += 1
    net.field.message_bits[kind] += bits


@step
def broadcast(net: Serai, sensor: int, kind: int, bits: int) -> None:
    """A sensor speaks to all of its neighbours: loud enough for the farthest, and all of them hear it."""
    field, here = net.field, net.field.sensors[sensor]
    count_message(net, kind, bits)
    charge(field, sensor, transmit_pj(field.limits.radio, float(bits), net.posts[sensor].far_m))
    for n in range(here.first_edge, here.end_edge):
        hear(net, field.neighbors[n], bits)


@step
def hear(net: Serai, sensor: int, bits: int) -> None:
    """A sensor hears bits of control."""
    charge(net.field, sensor, receive_pj(net.field.limits.radio, float(bits)))


@step
def tell(net: Serai, sender: int, receiver: int, bits: int) -> None:
    """Bits of control go from one sensor to a neighbour."""
    a, b = net.field.sensors[sender], net.field.sensors[receiver]
    away = distance(a.x, a.y, b.x, b.y)
    charge(net.field, sender, transmit_pj(net.field.limits.radio, float(bits), away))
    hear(net, receiver, bits)


@step
def tell_subscriber(net: Serai, sensor: int, subscriber: int, bits: int) -> None:
    """Bits of control go from a sensor to a subscriber."""
    locate(net.field, subscriber)
    here, there = net.field.sensors[sensor], net.field.subscribers[subscriber]
    away = distance(here.x, here.y, there.x, there.y)
    charge(net.field, sensor, transmit_pj(net.field.limits.radio, float(bits), away))
    net.walkers[subscriber].spent_bits += bits


# ---- HELLO


@step
def say_hello(net: Serai, subscriber: int) -> None:
    """A subscriber in a new cell says HELLO; each sensor in reach says how long it waits, and if its queue is full."""
    who, mine = net.walkers[subscriber], net.near[subscriber]
    count_message(net, HELLO, HELLO_BITS)
    who.spent_bits += HELLO_BITS
    for i in range(who.near):
        near = mine[i]
        hear(net, near.sensor, HELLO_BITS)
        count_message(net, REPLY, REPLY_BITS)
        tell_subscriber(net, near.sensor, subscriber, REPLY_BITS)
        post = net.field.sensors[near.sensor]
        near.full = post.queue >= post.capacity
        community = net.sessions[near.session].community
        note_wait(net, subscriber, near.session, waiting_time(net, community, net.groups[community].heard))
    who.ready = True


@step
def note_wait(net: Serai, subscriber: int, session: int, wait: float) -> None:
    """The subscriber knows now how long a community waits; of all that it knows of it keeps the least."""
    who = net.walkers[subscriber]
    net.sessions[session].wait = wait
    if wait < who.least:
        who.least, who.least_at = wait, session
    elif who.least_at == session:  # the least has grown: another one may be the least now
        other = who.met
        who.least = math.inf
        while other >= 0:
            if net.sessions[other].wait < who.least:
                who.least, who.least_at = net.sessions[other].wait, other
            other = net.sessions[other].next_met


# ---- MAP and PRICE


@step
def flood_map(net: Serai, community: int) -> None:
    """MAP: every member passes on who stands where; a loner has nobody to tell."""
    group = net.field.communities[community]
    if group.sensors > 1:
        for i in range(group.start, group.start + group.sensors):
            broadcast(net, net.field.members[i], MAP, MAP_BITS * group.sensors)


@step
def renew_prices(net: Serai) -> None:
    """PRICE: every sensor looks how fast it spends its battery, and every member passes on the prices of all."""
    net.tally[0].epoch += 1
    for sensor in range(len(net.field.sensors)):
        if net.field.sensors[sensor].community >= 0:
            net.posts[sensor].price = price_now(net, sensor)
    for community in range(net.field.tally[0].communities):
        group = net.field.communities[community]
        if group.sensors > 1:
            bits = PRICE_BITS + PRICE_MEMBER_BITS * group.sensors
            for i in range(group.start, group.start + group.sensors):
                broadcast(net, net.field.members[i], PRICE, bits)


@step
def price_now(net: Serai, sensor: int) -> int:
    """The sensor's price, as it is sent: 1 + kappa r^x, rounded to a power of 1.35."""
    here, post = net.field.sensors[sensor], net.posts[sensor]
    size, known = net.field.communities[here.community].sensors, max(net.groups[here.community].known, 1)
    lifetime_s = net.rules.t_0 * (STANDARD_SIZE / size) * (STANDARD_CROWD / known)
    spent_per_s = (here.event_pj + here.control_pj) / (net.field.clock[0].slot + 300.0)
    r = spent_per_s / (post.battery_pj / lifetime_s)
    nth = 0
    while nth < PRICES - 1 and r >= net.price_at[nth]:
        nth += 1
    return int(net.prices[nth])
