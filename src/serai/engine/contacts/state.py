"""Everything an opportunistic network remembers while it runs.

Which node has which bundle is kept in words of bits, one row per node: what one node could offer another is `store[one] &
~seen[other]`, 62 bundles at a time. Bundles are numbered by creation, so those alive lie in a window of words, and only that
window is looked at. A contact is two links, one each way, next to each other in the pool: the other direction of link `l`
is `l ^ 1`. Pools of links and deliveries have room for the worst case, which is known before the run; the full logs are
grown between instants.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

NONE = -1
LIST = -2  # what a link carries while it sends a list
BITS = 62  # bundles in one word: a signed 64-bit word, two bits to spare
IDLE = np.inf  # when nothing is due on a link

TRANSFERS = ("relayed", "duplicate", "refused", "late", "broken", "unfinished")
RELAYED, DUPLICATE, REFUSED, LATE, BROKEN, UNFINISHED = range(len(TRANSFERS))
DROPS = ("expired", "evicted", "full")
EXPIRED, EVICTED, FULL = range(len(DROPS))

Records = Any  # np.recarray: which fields it has is known below, not to a type checker

LINK = np.dtype(
    [
        ("start_s", "f8"), ("end_s", "f8"),  # of what it carries
        ("due_s", "f8"),  # when the sender's list is to be sent (again)
        ("when_s", "f8"),  # its key in the heap of links: when the transfer ends, or the list is due
        ("bytes", "i8"),  # size of what it carries
        ("sender", "i4"), ("receiver", "i4"),
        ("carries", "i4"),  # bundle, LIST or NONE
        ("heap", "i4"),  # place in the heap, or NONE
        ("previous", "i4"), ("next", "i4"),  # among the links of its sender, in the order in which contacts began
        ("lists", "i4"),  # lists received from the other side in this contact
        ("entries", "i4"),  # subscriptions that the list it carries may tell of (DPSP)
    ],
    align=True,
)  # fmt: skip

NODE = np.dtype(
    [
        ("stored_byte_s", "f8"), ("since_s", "f8"),  # integral of the store, and until when it was worked out
        ("aged_s", "f8"),  # until when predictabilities were aged (PRoPHET)
        ("used_bytes", "i8"), ("peak_bytes", "i8"),
        ("first", "i4"), ("last", "i4"),  # its links
        ("busy", "i4"),  # transfers it takes part in
        ("stirred", "u1"),  # whether it is in line for a turn
        ("carries", "u1"),
    ],
    align=True,
)  # fmt: skip

CLOCK = np.dtype([("now_s", "f8"), ("key", "i8"), ("tick", "i8")], align=True)

TALLY = np.dtype(
    [
        ("payload_bytes", "i8"), ("control_bytes", "i8"), ("wasted_bytes", "i8"),
        ("lists", "i8"),  # lists received
        ("up", "i8"), ("down", "i8"),  # contacts begun and ended
        ("born", "i8"), ("expired", "i8"),  # bundles
        ("began", "i8"), ("ended", "i8"),  # subscriptions
        ("first", "i8"),  # all bundles before this one have expired
        ("stored", "i8"),  # copies in all stores
        ("links", "i8"),  # in the heap
        ("free", "i8"),  # pairs of links not in use
        ("line", "i8"),  # nodes in line for a turn
        ("deliveries", "i8"), ("transfers", "i8"), ("drops", "i8"),
    ],
    align=True,
)  # fmt: skip

DELIVERY = np.dtype([("time_s", "f8"), ("bundle", "i4"), ("node", "i4"), ("hops", "i4")], align=True)
TRANSFER = np.dtype(
    [
        ("start_s", "f8"), ("end_s", "f8"), ("bytes", "i8"),
        ("bundle", "i4"), ("sender", "i4"), ("receiver", "i4"), ("outcome", "i4"),
    ],
    align=True,
)  # fmt: skip
DROP = np.dtype([("time_s", "f8"), ("bundle", "i4"), ("node", "i4"), ("reason", "i4")], align=True)


class Medium(NamedTuple):
    """The radio, the stores, and how long the run is."""

    rate_bps: float
    duration_s: float
    capacity_bytes: int = 1 << 60
    when_full: int = 1  # serai.protocols.routing.WHEN_FULL
    single: bool = False  # a node takes part in one transfer at a time; else each direction of a contact is a link
    step_s: float = 0.0  # above 0: things happen at ticks only
    key: int = 0  # what random orders are drawn from
    full_log: bool = False


class Net(NamedTuple):
    """N nodes, B bundles, W words of bundles, C channels, S subscriptions, L links."""

    medium: Medium
    clock: Records
    tally: Records
    # given
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    up_s: NDArray[np.float64]
    down_s: NDArray[np.float64]
    by_down: NDArray[np.int32]  # contacts in order of their end
    source: NDArray[np.int32]
    channel: NDArray[np.int32]
    created_s: NDArray[np.float64]
    expires_s: NDArray[np.float64]
    size_bytes: NDArray[np.int64]
    by_expiry: NDArray[np.int32]
    subscriber: NDArray[np.int32]
    subscribed: NDArray[np.int32]  # the channel of each subscription
    from_s: NDArray[np.float64]
    to_s: NDArray[np.float64]
    by_end: NDArray[np.int32]  # subscriptions in order of their end
    # who is who
    nodes: Records
    links: Records
    link_of: NDArray[np.int32]  # [contact]: its first link while it lasts
    free: NDArray[np.int32]  # stack of pairs of links
    heap: NDArray[np.int32]  # links by (when, sender, receiver)
    line: NDArray[np.int64]  # nodes in line for a turn, under their keys
    alive: NDArray[np.int64]  # [W]: born and not expired
    # who has what, [N, W]
    store: NDArray[np.int64]
    seen: NDArray[np.int64]
    given: NDArray[np.int64]  # delivered to the node's own subscriber
    wanted: NDArray[np.int64]  # born and on a channel that the node has subscribed to now
    hops: NDArray[np.uint8]  # [N, B]
    copies: NDArray[np.int16]  # [N, B], spray-and-wait only
    # what is known of the other side, [L, ...]
    known: NDArray[np.int64]  # [L, W]: no need to offer these to the receiver
    told: NDArray[np.int64]  # [L, W]: seen bundles in the list that the link carries
    row: NDArray[np.float64]  # [L, ...]: the rest of that list
    theirs: NDArray[np.float64]  # [L, C]: of the receiver: wants it (1), hop count, or predictability
    mine: NDArray[np.float64]  # [L, C]: the sender's own hop count or predictability, when it got that list
    popularity: NDArray[np.float64]  # [L, C]
    # subscriptions, and what nodes know of them
    wants: NDArray[np.int16]  # [C, N]: subscriptions of the node to the channel
    renewed: NDArray[np.int32]  # [N, S]: how often an entry known here was renewed, or NONE (DPSP)
    distance: NDArray[np.int32]  # [N, S]: its hop count (DPSP)
    predictability: NDArray[np.float64]  # [N, N + C] (PRoPHET)
    filter: NDArray[np.uint8]  # scratch: the bits of a Bloom filter
    # what is counted
    deliveries: Records
    transfers: NDArray[np.int64]  # by outcome
    drops: NDArray[np.int64]  # by reason
    relays: NDArray[np.int64]  # [B]
    transfer_log: Records
    drop_log: Records


class Outcome(NamedTuple):
    """What a run gave: see `serai.engine.contacts`."""

    delivery_bundle: NDArray[np.int32]
    delivery_node: NDArray[np.int32]
    delivery_s: NDArray[np.float64]
    delivery_hops: NDArray[np.int32]
    payload_bytes: int
    control_bytes: int
    wasted_bytes: int
    lists: int
    contacts: int  # contacts begun that lasted long enough to count
    transfers: dict[str, int]
    drops: dict[str, int]
    relays: NDArray[np.int64]
    stored_byte_s: NDArray[np.float64]
    peak_bytes: NDArray[np.int64]
    transfer_log: Records
    drop_log: Records
