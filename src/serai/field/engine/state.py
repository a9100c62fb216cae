"""Everything a field protocol remembers while it runs: one record array per noun.

A copy is touched at many fields at once (event, count, links), and the copies of a queue lie all over the pool: one
record is one cache line, where one array per field would be eight. Records also keep the code readable:
`copies[c].holder = sensor`. See docs/adr/0003.

Links between records are indices; `NONE` ends a list. Pools (copies, receptions, transfers, drops) are
grown between slots, never inside one: `short_of_room` asks at the start of a slot whether the worst case still fits.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.energy import Radio
from serai.world.grid import Grid
from serai.world.mobility import Tracks

NONE = -1
UNCOUNTED = -1
BITS = 62  # sessions in one word of bits: a signed 64-bit word, two bits to spare
REACHABLE = 4  # at most so many communities are in reach of one cell: no two of them touch each other
IN_RANGE = 5  # and of one point, if all ranges are alike: any two are further apart than each of them is from it

# What a copy is. One that expires inside a heap or list stays linked there, as EXPIRED_COPY, until that is next read.
FREE, STORED, RELAYED, WAITING, EXPIRED_COPY = range(5)
DROPS = ("expired", "spent", "full", "stranded", "dead")
EXPIRED, SPENT, FULL, STRANDED, DEAD = range(len(DROPS))
TRANSFERS = ("source", "relay", "return", "placement")
SOURCE, RELAY, RETURN, PLACEMENT = range(len(TRANSFERS))
LOST = 2  # how a transfer ended: `serai.field.log.OUTCOMES`
MESSAGES = ("path", "route", "election", "hello", "reply", "notice")  # of control; the first three are floods
PATH, ROUTE, ELECTION, HELLO, REPLY, NOTICE = range(len(MESSAGES))
FLOODS = 3
LOOKS = 3  # at what sensors have spent: at the begin, middle and end of the steady part

Records = Any  # np.recarray: which fields it has is known below, not to a type checker

SENSOR = np.dtype(
    [
        ("x", "f8"), ("y", "f8"),
        ("forwards", "i8"),  # counter of round-robin forwarding
        ("place", "i8"),  # in the line of turns of slot `scheduled`
        ("sent", "i8"), ("received", "i8"),
        ("left_pj", "i8"),  # in its battery
        ("event_pj", "i8"),
        ("control_pj", "i8"),  # without floods not yet charged: see serai.field.engine.control
        ("cell", "i4"), ("column", "i4"), ("row", "i4"),  # cell: in metres each sensor is one of its own
        ("community", "i4"), ("member", "i4"),  # member: its place among the community's sensors
        ("first_edge", "i4"), ("end_edge", "i4"),  # neighbors[first_edge : end_edge], living ones, by number
        ("queue", "i4"), ("capacity", "i4"),  # copies in its queue, and how many it can hold
        ("stored", "i4"),  # first stored copy, in queue order
        ("waiting", "i4"),  # first relayed copy that waits for a subscriber
        ("scheduled", "i4"),  # the last slot for which it was put in line for a turn
        ("parent", "i4"), ("depth", "i4"),  # in the tree of the community's head (CET)
        ("died", "i4"), ("exhausted", "u1"),  # the slot it died in, or NONE; exhausted: it dies with this slot
    ],
    align=True,
)  # fmt: skip

COMMUNITY = np.dtype(
    [
        ("start", "i4"), ("sensors", "i4"),  # members[start : start + sensors]
        ("places", "i4"),  # its size: cells that it occupies
        ("sessions", "i4"), ("meets", "i4"), ("words", "i4"),  # its first session, how many, and words of bits for them
        ("origin", "i4"),  # the community at the start of the run that it is a part of
        ("head", "i4"),
        ("tree", "i4"),  # the head whose tree is built, or NONE
        ("place", "i4"),  # next place in preorder
        ("spare", "u1"),  # a record of nobody: sensors have woken, and their kin formed anew without it
    ],
    align=True,
)  # fmt: skip

SUBSCRIBER = np.dtype(
    [
        ("x", "f8"), ("y", "f8"), ("located", "i4"),  # position, and the slot it belongs to
        ("cell", "i4"), ("column", "i4"), ("row", "i4"),  # by cells
        ("in_range", "i4"), ("next_pass", "i4"),  # in metres: how many passes go on, and the first one to come
        ("segment", "i4"), ("leg", "i4"), ("moving", "u1"), ("audible", "u1"),
        ("received", "i4"), ("received_in", "i4"),  # events received in slot received_in
        ("sessions", "i4"), ("carries", "u1"),  # whether it asks for nothing, and only carries
        ("bag", "i4"), ("bag_end", "i4"),  # receptions it may return (CET)
    ],
    align=True,
)  # fmt: skip

SESSION = np.dtype(
    [
        ("zone_x", "f8"), ("zone_y", "f8"), ("zone_segment", "i4"), ("zone_cell", "i4"),  # by cells: where Z was noted
        ("zone", "i8"),  # in metres: the stamp of its links
        ("community", "i4"), ("subscriber", "i4"),
        ("word", "i4"), ("bit", "i8"),  # its bit among the sessions of the community
        ("links", "i4"),  # links[links + member]: this session at each sensor of the community
        ("met", "u1"),  # whether they have met before
        ("announced", "i4"),  # the leg last announced
        ("stale", "u1"),  # layers not yet worked out for the last Z: done when somebody has something to send
    ],
    align=True,
)  # fmt: skip

LINK = np.dtype(
    [
        ("layer", "i4"), ("relays", "i4"),  # in the routing graph: layer, and neighbours one layer closer
        ("relayed", "i4"),  # heap of copies on their way to it
        ("pending", "i4"),  # stored copies still to be sent to it; UNCOUNTED until somebody asks during the session
    ],
    align=True,
)  # fmt: skip

COPY = np.dtype(
    [
        ("rank", "i8"),  # queue order but for ties, and with it the delivery count: see serai.field.engine.queues
        ("serial", "i4"), ("event", "i4"), ("holder", "i4"),
        ("subscriber", "i4"),  # whom a relayed copy is for
        ("state", "i4"),
        ("previous", "i4"), ("next", "i4"),  # in its list; of a relayed copy: child and next sibling in the heap
        ("expires", "i4"), ("earlier", "i4"), ("later", "i4"),  # in the calendar of expiry
    ],
    align=True,
)  # fmt: skip

VISIT = np.dtype(
    [
        ("slot", "i4"), ("subscriber", "i4"), ("cell", "i4"), ("segment", "i4"), ("leg", "i4"),
        ("moving", "u1"), ("came", "u1"), ("went", "u1"),
    ],
    align=True,
)  # fmt: skip
PASS = np.dtype([("sensor", "i4"), ("first", "i4"), ("last", "i4")], align=True)
RECEPTION = np.dtype(
    [
        ("event", "i4"), ("subscriber", "i4"),
        ("slot", "i4"),
        ("count", "i4"),  # what the copy carried
        ("next", "i4"),  # in the subscriber's bag (CET)
        ("wanted", "u1"),
    ],
    align=True,
)  # fmt: skip
TRANSFER = np.dtype(
    [
        ("time_s", "i4"), ("event", "i4"), ("sender", "i4"), ("receiver", "i4"), ("addressee", "i4"),
        ("kind", "i1"), ("outcome", "i1"), ("stored", "?"), ("moved", "?"),
    ],
    align=True,
)  # fmt: skip
DROP = np.dtype(
    [
        ("after", "i8"),  # so many transfers
        ("time_s", "i4"), ("event", "i4"), ("node", "i4"), ("addressee", "i4"), ("reason", "i1"), ("held", "?"),
    ],
    align=True,
)  # fmt: skip

NAP = np.dtype([("node", "i4"), ("since_s", "i4"), ("until_s", "i4")], align=True)  # until it woke

CLOCK = np.dtype(
    [
        ("slot", "i8"),
        ("key", "i8"),  # what the orders of the slot are drawn from
        ("turn", "i8"),  # the place in line whose turn it is; before and after all turns see serai.field.engine.turns
    ],
    align=True,
)  # fmt: skip

TALLY = np.dtype(
    [
        ("serial", "i8"),
        ("born", "i8"), ("aged", "i8"), ("visited", "i8"),  # events born and grown too old, visits dealt with
        ("free_copy", "i8"), ("free_copies", "i8"),
        ("receptions", "i8"), ("looked_at", "i8"),  # looked_at: receptions that went through the bag's door (CET)
        ("transfers", "i8"), ("drops", "i8"),
        ("stamp", "i8"),
        ("in_line", "i8"), ("next_in_line", "i8"), ("arrived", "i8"),
        ("died", "i8"),  # the slot in which the first battery was empty, or NONE
        ("exhausted", "i8"), ("unburied", "i8"),  # unburied: the slot's deaths wait for room in the pools
        ("communities", "i8"), ("sessions", "i8"),  # records in use
        ("naps", "i8"), ("renewed", "i8"),  # of those who woke; the slot in which some community is new again
        ("over", "i8"),
        ("looks", "i8"),  # how often it was noted what each sensor has spent
        ("longest", "i8"),  # hops of the longest placement so far possible
    ],
    align=True,
)  # fmt: skip


class Limits(NamedTuple):
    """Numbers of the scenario that every field protocol heeds."""

    grid: Grid
    slots: int
    rate: int
    most_born: int  # events born in one slot, at most
    most_sent: int  # events sent by sensors in one slot, at most
    most_received: int  # events received by subscribers in one slot, at most
    queue: int  # copies that a sensor can hold, unless the world says otherwise
    lifetime: float
    bits: float
    receive_pj: int
    radio: Radio
    key: int
    full_log: bool
    until_death: bool
    steady_begin: int  # the slots at which it is noted what each sensor has spent so far
    steady_middle: int
    steady_end: int
    control_costs: bool
    loss: float  # the part of event transmissions that is lost
    fail_slot: int  # the slot in which `failing` fail, or NONE
    pruned_floods: bool  # CET++: see serai.field.engine.flooding
    hello_bits: float
    reply_bits: float
    path_bits: float
    route_bits: float
    election_bits: float
    notice_bits: float
    since_midnight: int  # at slot 0, in seconds
    in_metres: bool  # who hears whom; else by cells: see serai.field.engine.reach


class Watch(NamedTuple):
    """What a full log has seen of every slot: `serai.field.engine.watch`."""

    seen: Records  # [1]: rows in the logs below
    messages: NDArray[np.int64]  # [kind], so far
    member: NDArray[np.int32]  # [subscriber, REACHABLE]: the communities that it is in session with
    head: NDArray[np.int32]  # [sensor]: the head of the community whose lowest sensor this is
    control_pj: NDArray[np.int64]  # [sensor], so far
    control_log: Records
    session_log: Records
    head_log: Records
    spent_log: Records


class Power(NamedTuple):
    """What sensors harvest, and who wakes: `serai.field.collection.kin`. Empty where nobody harvests."""

    harvest_pj: NDArray[np.int64]  # [sensor, hour] in a slot
    capacity_pj: NDArray[np.int64]  # of each battery
    wake_pj: NDArray[np.int64]  # with so much a dead sensor wakes
    harvested_pj: NDArray[np.int64]  # so far
    wasted_pj: NDArray[np.int64]  # of it, what batteries could not hold
    woken: NDArray[np.int32]  # sensors that wake with this slot
    naps: Records  # of those who woke
    visit: Records  # [1]: of somebody beside sensors that have formed anew
    kin: NDArray[np.int32]  # of each sensor: its community at the start
    renewed: NDArray[np.int64]  # of each community at the start: the slot in which it is new again
    members: NDArray[np.int32]  # at the start: members[start[kin] : start[kin + 1]]
    start: NDArray[np.int32]
    neighbors: NDArray[np.int32]  # at the start, of sensor s from edges[s] on
    edges: NDArray[np.int32]
    hop_pj: NDArray[np.int64]


class Field(NamedTuple):
    """The state of one run: what stands still, what moves, what is counted."""

    limits: Limits
    clock: Records
    # the place
    sensors: Records
    neighbors: NDArray[np.int32]
    neighbor_member: NDArray[np.int32]  # their places in the community
    hop_pj: NDArray[np.int64]  # what sending one event to neighbors[i] costs
    communities: Records
    members: NDArray[np.int32]
    cell_start: NDArray[np.int32]  # by cells
    cell_sensors: NDArray[np.int32]
    passing_m: NDArray[np.float64]  # in metres: how far from each sensor a subscriber may be
    broadcast_m: NDArray[np.float64]  # how far each sensor sends control messages
    hello_pj: NDArray[np.int64]  # what it costs each sensor to hear a Hello and to reply
    # the plan
    visits: Records
    passes: Records  # in metres, by subscriber and first slot
    pass_start: NDArray[np.int64]
    tracks: Tracks
    legs: NDArray[np.int32]  # the leg of each segment
    event_sensor: NDArray[np.int32]
    event_time: NDArray[np.float64]
    event_slot: NDArray[np.int32]
    event_values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    # what moves
    subscribers: Records
    sessions: Records  # one for each community and subscriber that will ever meet, by community and subscriber
    meets_start: NDArray[np.int32]
    meets: NDArray[np.int32]  # the sessions of each subscriber, by community
    now_with: NDArray[np.int32]  # [subscriber, n]: its sessions that are going on, by community
    in_range: NDArray[np.int32]  # [subscriber, n]: its passes that are going on
    in_session: NDArray[np.int64]  # [community, word]: sessions going on
    met: NDArray[np.int64]  # [community, word]: subscribers met so far
    links: Records
    zones: NDArray[np.int64]  # [link]: in metres, the last set Z that its sensor was in
    has_pending: NDArray[np.int64]  # [sensor, word]: sessions for which a copy stored here may be pending
    carrying: NDArray[np.int64]  # [sensor, word]: sessions for which it has relayed copies
    copies: Records
    pending: NDArray[np.int64]  # [copy, word]: sessions to whose subscriber a stored copy is still to be sent
    calendar: NDArray[np.int32]  # [slot]: first copy that expires in it
    # who is next
    line: NDArray[np.int64]  # heap of places
    next_line: NDArray[np.int32]  # sensors in line for the next slot
    exhausted: NDArray[np.int32]  # sensors that die with this slot
    failing: NDArray[np.int32]  # sensors that fail in `limits.fail_slot`
    idle_pj: NDArray[np.int64]  # what listening costs each sensor in a slot; empty: nobody anything, nor harvests
    idled_pj: NDArray[np.int64]  # what it has cost so far
    power: Power
    arrived: NDArray[np.int32]  # relayed copies that may go on from the next slot
    tree_order: NDArray[np.int32]  # sensors of each community in preorder of its head's tree
    # scratch
    floods_now: Records  # of pruned floods, for each sensor
    speakers: NDArray[np.int32]
    stamps: NDArray[np.int64]  # [cell]
    path: NDArray[np.int32]
    near: NDArray[np.int32]  # communities in reach of a subscriber
    listeners: NDArray[np.int32]  # living sensors in reach of a subscriber
    frontier: NDArray[np.int32]
    spare_links: Records
    within_reach: NDArray[np.int64]  # [word]: sessions that the sensor whose turn it is can serve
    open_sessions: NDArray[np.int64]  # [word]: those of them whose subscriber can take more in this slot
    # what is counted
    tally: Records
    receptions: Records
    known: NDArray[np.int64]  # hash table of pairs (event, subscriber) received; see serai.field.engine.ledger
    known_last: NDArray[np.int32]  # the slot in which each was received last, if somebody wants to know
    transmissions: NDArray[np.int64]
    drops: NDArray[np.int64]
    messages: NDArray[np.int64]  # of control, by kind
    message_bits: NDArray[np.int64]  # likewise; empty if all of a kind are of one size, as `Limits` says
    floods: NDArray[np.int64]  # [community, kind]: not yet charged to the sensors
    spent_pj: NDArray[np.int64]  # [look, 0: on events, 1: on control, sensor]: until the begin, middle and end of the
    # steady part
    transfer_log: Records
    drop_log: Records
    watch: Watch


def records(count: int, dtype: np.dtype[Any], **fields: int | NDArray[np.int_]) -> Records:
    """So many blank records, with the given fields set in all of them."""
    made: Records = np.zeros(count, dtype).view(np.recarray)
    for name, value in fields.items():
        made[name] = value
    return made
