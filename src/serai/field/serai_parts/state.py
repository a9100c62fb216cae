"""Everything that SERAI remembers while it runs, beside the state that all field protocols have.

Sets of subscribers are words of bits, as those of sessions are in CED. Pools (copies, maps, bags, sessions) are grown
between slots. How much one slot may need has no useful bound, so a pool that runs short inside one says so
(`Tally.short`), and the run begins again with larger pools: it is the same run.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import lowest_bit, step
from serai.field.engine.queues import expiry_slot
from serai.field.engine.state import BITS, NONE, Field, Records
from serai.field.serai_parts.settings import Rules

HOME, RELAY_COPY, DEPOSIT, FREE = range(4)
NEVER = 1 << 30  # a second that does not come
FAR = 1 << 60  # a cost beyond all others
MESSAGES = ("hello", "reply", "map", "price", "announce", "subscriptions", "offer", "want_map", "address", "ack")
HELLO, REPLY, MAP, PRICE, ANNOUNCE, SUBSCRIPTIONS, OFFER, WANT_MAP, ADDRESS, ACK = range(len(MESSAGES))

LEG = np.dtype(
    [("first", "i4"), ("last", "i4"), ("rows", "i4"), ("rows_end", "i4")],  # seconds, and reach[rows : rows_end]
    align=True,
)
REACH = np.dtype(  # a contact within a leg
    [
        ("sensor", "i4"),
        ("first", "i4"), ("last", "i4"),  # seconds of all contacts with the sensor within the leg: plans go by these
        ("begins", "i4"), ("ends", "i4"),  # first and last second of this one
    ],
    align=True,
)  # fmt: skip

POST = np.dtype(  # a sensor
    [
        ("far_m", "f8"),  # to its farthest neighbour
        ("price", "i8"),
        ("battery_pj", "i8"),  # at the start
        ("place", "i4"),  # among all sensors, by column of cells, row, number
        ("copies", "i4"), ("last", "i4"),  # first and last of its copies, youngest event first
        ("to_carry", "i4"),  # home copies that a carrier may still take
        ("assigned", "i4"),  # copies assigned to a walker
        ("version", "i4"),  # goes up when there may be something new for somebody
        ("ring", "i4"),  # route costs put into its ring so far
        ("row", "i4"), ("row_epoch", "i4"),  # of its distances, and what prices and map they belong to
        ("reached", "i8"), ("unreached", "i4"), ("key", "i4"),  # in a flood: its stamp, neighbours still to be reached
        ("offered", "i8"), ("told", "i8"),  # for what its link to i0, or to a subscriber, had an offer's header: stamps
        ("node", "i4"), ("tree", "i8"),  # its place in a tree of routes, and the tree's stamp
    ],
    align=True,
)  # fmt: skip

GROUP = np.dtype(  # a community
    [
        ("heard", "i8"), ("known", "i4"),
        ("sessions", "i4"), ("met", "i4"),  # its first session, and how many it has
        ("name", "i4"),  # as subscribers know it: a record that is used again has another one
    ],
    align=True,
)  # fmt: skip

WALKER = np.dtype(  # a subscriber
    [
        ("leg", "i4"), ("next_change", "i4"), ("near", "i4"),  # near: sensors in reach
        ("entered", "u1"), ("new_leg", "u1"), ("ready", "u1"),  # ready: there may be something to deposit
        ("spent_bits", "i8"),  # of this second's budget
        ("least", "f8"), ("least_at", "i4"),  # the least wait of a community that it knows of, and its session
        ("met", "i4"),  # its first session: those of all communities that it has met
        ("bag", "i4"), ("bag_end", "i4"), ("loads", "i4"), ("loads_end", "i4"),
    ],
    align=True,
)  # fmt: skip

NEAR = np.dtype([("sensor", "i4"), ("session", "i4"), ("seen", "i4"), ("full", "u1")], align=True)

SESSION = np.dtype(  # of a subscriber with a community
    [
        ("subscriber", "i4"), ("community", "i4"),
        ("wait", "f8"),  # T_c: what the subscriber was told last of how long its sensors wait; NaN: nothing
        ("leg", "i4"), ("rows", "i4"), ("rows_end", "i4"),  # as announced: the leg, and the sensors it passes
        ("until", "i4"),  # the last second in which one of them is reached
        ("carry", "u1"),
        ("next", "i4"), ("next_met", "i4"),  # of the same community; of the same subscriber
    ],
    align=True,
)  # fmt: skip

COPY = np.dtype(
    [
        ("event", "i4"), ("sensor", "i4"), ("serial", "i4"), ("kind", "i1"), ("exposed", "u1"), ("fresh", "u1"),
        ("given", "i4"),
        ("map", "i4"),  # the want map to hand over, or NONE
        ("walker", "i4"), ("target", "i4"), ("until", "i4"),  # until: the last second in which the walker passes
        ("drop_at", "i4"), ("drop_by", "i4"),  # drop_by: the last second in which it passes drop_at
        ("previous", "i4"), ("next", "i4"),  # at its sensor
        ("clears", "i4"), ("earlier", "i4"), ("later", "i4"),  # in the calendar of clearing
    ],
    align=True,
)  # fmt: skip

CARRIED = np.dtype(  # an event in a carrier's bag
    [("event", "i4"), ("map", "i4"), ("home", "i4"), ("home_wait", "f8"), ("served", "i4"), ("next", "i4")],
    align=True,
)
LOAD = np.dtype(  # an event that a walker takes along to another one's path
    [("event", "i4"), ("target", "i4"), ("drop_at", "i4"), ("drop_by", "i4"), ("next", "i4")], align=True
)
ASSIGNMENT = np.dtype([("place", "i4"), ("serial", "i4")], align=True)

FOUND = np.dtype(  # the best walker for a copy
    [("cost", "i8"), ("walker", "i4"), ("until", "i4"), ("drop_at", "i4"), ("drop_by", "i4")], align=True
)
GOAL = np.dtype([("subscriber", "i4"), ("cost", "i8"), ("root", "i4"), ("node", "i4"), ("session", "i4")], align=True)
NODE = np.dtype(  # in the tree of a multicast
    [
        ("sensor", "i4"), ("parent", "i4"), ("edge", "i4"),
        ("goals", "i4"), ("outgoing", "i4"),  # goals at it and beyond, hops that go out from it
        ("root", "u1"), ("map", "u1"), ("arrived", "u1"),
        ("relay", "i4"),  # the copy that lies at it
    ],
    align=True,
)  # fmt: skip

TALLY = np.dtype(
    [
        ("serial", "i8"), ("stamp", "i8"), ("epoch", "i8"),
        ("copies", "i8"), ("free_copies", "i8"), ("maps", "i8"), ("free_maps", "i8"),  # first free one, and how many
        ("carried", "i8"), ("free_carried", "i8"), ("loads", "i8"), ("free_loads", "i8"),
        ("sessions", "i8"), ("fresh", "i8"), ("assigned", "i8"), ("next_row", "i8"), ("names", "i8"),
        ("room_copies", "i8"), ("room_maps", "i8"), ("room_carried", "i8"), ("room_loads", "i8"),  # to begin with
        ("short", "i8"),  # a pool ran short inside a slot
        ("unplaced", "i8"),  # the table of sessions is new
    ],
    align=True,
)  # fmt: skip


class Serai(NamedTuple):
    """The state of one run."""

    field: Field
    rules: Rules
    tally: Records
    # the place
    posts: Records
    groups: Records
    subscribed: NDArray[np.int64]  # [community, word]: subscriptions known
    price_at: NDArray[np.float64]  # from which r on a price is 1, 2, ..
    prices: NDArray[np.int64]  # what 0, 1, 2, .. mean
    # routes
    distances: NDArray[np.int64]  # [row, member]
    row_owner: NDArray[np.int32]  # [row]: the sensor whose distances they are
    ring: NDArray[np.int64]  # [sensor, RING]
    passing: NDArray[np.int64]  # [sensor, word]: subscribers whose announced path passes it
    # subscribers
    legs: Records
    reach: Records
    walkers: Records
    near: Records  # [subscriber, n], by place
    learned: NDArray[np.int64]  # [subscriber, word]: subscriptions known
    sessions: Records
    session_table: NDArray[np.int32]  # hash table of sessions
    # copies
    copies: Records
    wanted: NDArray[np.int64]  # [copy, word]: W
    settled: NDArray[np.int64]  # [copy, word]: S
    asked: NDArray[np.int64]  # [sensor, word]: for whom some copy there may be wanted
    calendar: NDArray[np.int32]  # [look]: first copy that is cleared then
    maps: NDArray[np.int64]  # [map, word]
    next_map: NDArray[np.int32]
    carried: Records
    served: NDArray[np.int32]  # [carried, n]: communities
    loads: Records
    fresh: NDArray[np.int32]  # copies that are new in this second
    assigned: Records
    # scratch
    cost: NDArray[np.int64]  # [member]
    root: NDArray[np.int32]  # [member]
    line: NDArray[np.int64]  # a heap
    way: NDArray[np.int32]  # edges of a route
    offer_way: NDArray[np.int32]
    found: Records
    goals: Records
    tree: Records


# ---- sets of subscribers


@step
def holds(sets: NDArray[np.int64], i: int, subscriber: int) -> bool:
    """Whether the i-th set holds the subscriber."""
    return bool(sets[i, subscriber // BITS] & (1 << (subscriber % BITS)))


@step
def put(sets: NDArray[np.int64], i: int, subscriber: int) -> None:
    """Put the subscriber into the i-th set."""
    sets[i, subscriber // BITS] |= 1 << (subscriber % BITS)


@step
def take(sets: NDArray[np.int64], i: int, subscriber: int) -> None:
    """Take the subscriber out of the i-th set."""
    sets[i, subscriber // BITS] &= ~(1 << (subscriber % BITS))


@step
def is_empty(net: Serai, sets: NDArray[np.int64], i: int) -> bool:
    """Whether the i-th set is empty."""
    for word in range(net.rules.words):
        if sets[i, word]:
            return False
    return True


@step
def lowest_in(net: Serai, sets: NDArray[np.int64], i: int) -> int:
    """The subscriber of the lowest number in the i-th set, or NONE."""
    for word in range(net.rules.words):
        if sets[i, word]:
            return int(word * BITS + lowest_bit(sets[i, word]))
    return NONE


@step
def count_bits(bits: int) -> int:
    """How many bits are set."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


# ---- communities


@step
def name_anew(net: Serai, community: int) -> None:
    """To subscribers the community is another one than its record stood for before."""
    net.tally[0].names += 1
    net.groups[community].name = net.tally[0].names


# ---- time


@step
def waiting_time(net: Serai, community: int, heard: int) -> float:
    """T_wait: about how long the community's sensors wait for somebody, having heard so many sessions."""
    known = max(net.groups[community].known, 1)
    return float((net.field.clock[0].slot + 300.0) * known / (heard + 1))


@step
def is_too_old(net: Serai, event: int) -> bool:
    """Whether the event is older than its lifetime."""
    return bool(expiry_slot(net.field.event_time[event], net.field.limits.lifetime) <= net.field.clock[0].slot)


@step
def is_cleared(net: Serai, event: int) -> bool:
    """Whether the event was too old at the last look for such (rule 2)."""
    slot = net.field.clock[0].slot
    looked = slot - slot % net.rules.clear_interval
    return bool(expiry_slot(net.field.event_time[event], net.field.limits.lifetime) <= looked)
