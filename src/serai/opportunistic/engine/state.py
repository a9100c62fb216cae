"""Everything an opportunistic network remembers while it runs.

Which node has which bundle is kept in words of bits, one row per node: what one node could offer another is what the
one has and the other has not seen, 62 bundles at a time. Bundles are numbered by creation, so those alive lie in a
window of words, and only that window is looked at. A contact is two links, one each way, side by side in the pool:
the other direction of link `l` is `l ^ 1`. Pools of links and deliveries have room for the worst case, which is known
before the run; the full logs are grown between instants.
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
        ("gives", "i4"), ("reserved", "i4"),  # copies that go with a bundle, and what of them the sender misses
        ("nothing", "i4"),  # what the sender had gained when there was nothing to offer; nothing has changed since
        ("entries", "i4"),  # in the list that it carries
        ("listed", "i4"),  # how many numbers of its row were written, if a protocol does not write all
    ],
    align=True,
)  # fmt: skip

NODE = np.dtype(
    [
        ("stored_byte_s", "f8"), ("since_s", "f8"),  # integral of the store, and until when it was worked out
        ("looked_s", "f8"),  # when it last looked for bundles that have too little of their lifetime left
        ("used_bytes", "i8"), ("peak_bytes", "i8"),
        ("gained", "i4"),  # how often there came to be more that it might offer
        ("first", "i4"), ("last", "i4"),  # its links
        ("busy", "i4"), ("sending", "i4"),  # transfers it takes part in, and those of them that are its own
        ("mixed", "u4"),  # the half of its place in random orders that never changes: mix(node + 1)
        ("missing", "i4"),  # bundles alive that it wants and has not seen
        ("stirred", "u1"),  # whether it is in line for a turn
        ("carries", "u1"),
    ],
    align=True,
)  # fmt: skip

CONTACT = np.dtype(
    [
        ("up_s", "f8"), ("down_s", "f8"),
        ("a", "i4"), ("b", "i4"),
        ("link", "i4"),  # its first link while it lasts
        ("by_down", "i4"),  # in row i: the contact that ends as the i-th
    ],
    align=True,
)  # fmt: skip

BUNDLE = np.dtype(
    [
        ("created_s", "f8"), ("expires_s", "f8"),
        ("size_bytes", "i8"), ("relays", "i8"),  # relays: copies that arrived somewhere
        ("source", "i4"), ("channel", "i4"),
        ("handed", "i4"),  # neighbours of its source that have it, as far as they must
        ("mixed", "u4"),  # as of a node
        ("by_expiry", "i4"),  # in row i: the bundle that expires as the i-th
    ],
    align=True,
)  # fmt: skip

SUBSCRIPTION = np.dtype(
    [
        ("from_s", "f8"), ("to_s", "f8"),
        ("node", "i4"), ("channel", "i4"),
        ("by_end", "i4"),  # in row i: the subscription that ends as the i-th
        ("noticed", "u1"),  # whether there was an instant at which it was open
    ],
    align=True,
)  # fmt: skip

WORD = np.dtype(
    [
        ("store", "i8"),
        ("seen", "i8"),  # ever had, or was the source of
        ("given", "i8"),  # delivered to the node's own subscriber
        ("wanted", "i8"),  # born, and on a channel that the node has subscribed to now
    ],
    align=True,
)  # fmt: skip

LINK_WORD = np.dtype(
    [
        ("known", "i8"),  # no need to offer these to the receiver
        ("told", "i8"),  # seen bundles in the list that the link carries
    ],
    align=True,
)  # fmt: skip

VIEW = np.dtype(  # see `serai.opportunistic.rules.Offer`
    [("theirs", "f8"), ("mine", "f8"), ("popularity", "f8")],
    align=True,
)

RUN = np.dtype(
    [
        ("now_s", "f8"), ("key", "i8"), ("tick", "i8"),
        ("up", "i8"), ("down", "i8"),  # contacts begun and ended
        ("born", "i8"), ("expired", "i8"),  # bundles
        ("began", "i8"), ("ended", "i8"),  # subscriptions
        ("first", "i8"),  # all bundles before this one have expired
        ("stored", "i8"),  # copies in all stores
        ("links", "i8"),  # in the heap
        ("free", "i8"),  # pairs of links not in use
        ("line", "i8"),  # nodes in line for a turn
        ("payload_bytes", "i8"), ("control_bytes", "i8"), ("wasted_bytes", "i8"),
        ("lists", "i8"),  # lists received
        ("deliveries", "i8"), ("transfers", "i8"), ("drops", "i8"), ("listings", "i8"),  # rows written
    ],
    align=True,
)  # fmt: skip

DELIVERY = np.dtype([("time_s", "f8"), ("bundle", "i4"), ("node", "i4"), ("hops", "i4")], align=True)
TRANSFER = np.dtype(
    [
        ("start_s", "f8"), ("end_s", "f8"), ("bytes", "i8"),
        ("bundle", "i4"), ("sender", "i4"), ("receiver", "i4"), ("outcome", "i4"), ("stored", "?"), ("moved", "?"),
    ],
    align=True,
)  # fmt: skip
DROP = np.dtype(
    [("time_s", "f8"), ("after", "i8"), ("bundle", "i4"), ("node", "i4"), ("reason", "i4"), ("held", "?")], align=True
)
LISTING = np.dtype(
    [
        ("start_s", "f8"), ("end_s", "f8"), ("bytes", "i8"),
        ("sender", "i4"), ("receiver", "i4"), ("entries", "i4"), ("outcome", "i4"),
    ],
    align=True,
)  # fmt: skip


class Medium(NamedTuple):
    """The radio, the stores, and how long the run is."""

    rate_bps: float
    duration_s: float
    capacity_bytes: int = 1 << 60
    when_full: int = 1  # serai.opportunistic.rules.WHEN_FULL
    single: bool = False  # a node takes part in one transfer at a time; else each direction of a contact is a link
    step_s: float = 0.0  # above 0: things happen at ticks only
    lifetime_unit_s: float = 0.0  # above 0, with ticks: lifetimes count in whole units of this
    key: int = 0  # what random orders are drawn from
    full_log: bool = False
    keep_own: int = 0  # a source does not drop its bundle for others before so many neighbours have it


class Net(NamedTuple):
    """N nodes, B bundles, W words of bundles, C channels, S subscriptions, L links."""

    medium: Medium
    run: Records  # [1]: where the run is, and what it has counted
    contacts: Records
    bundles: Records
    subscriptions: Records
    nodes: Records
    links: Records
    free: NDArray[np.int32]  # stack of pairs of links
    heap: NDArray[np.int32]  # links by (when, sender, receiver)
    line: NDArray[np.int64]  # nodes in line for a turn, under their keys
    sorting: NDArray[np.int64]  # scratch: the line, while it is sorted
    places: NDArray[np.int32]  # scratch: where the entries of each bucket go
    worth_trying: NDArray[np.int32]  # scratch: links of the node whose turn it is
    alive: NDArray[np.int64]  # [W]: born and not expired
    words: Records  # [N, W]: which bundles a node has
    hops: NDArray[np.uint8]  # [N, B]
    holders: NDArray[np.int64]  # [N, W]: bundles that their source knows to be here, if more than one must
    came_s: NDArray[np.float64]  # [N, B], when a copy came into the store, where that decides who leaves it
    handed_on: NDArray[np.int32]  # [N, B], how often a copy in the store was handed on, likewise
    asked: NDArray[np.int32]  # [N, C], contacts whose neighbour wanted the channel, likewise
    copies: NDArray[np.int16]  # [N, B], where copies are counted
    link_words: Records  # [L, W]
    row: NDArray[np.float64]  # [L, ...]: the list that a link carries, as its protocol lays it out
    views: Records  # [L, C]: what the sender of a link knows of its receiver
    wants: NDArray[np.int16]  # [C, N]: subscriptions of the node to the channel
    memory: NDArray[np.float64]  # [N, ...]: what a node remembers of lists, as its protocol lays it out
    filter: NDArray[np.uint8]  # scratch: the bits of a Bloom filter
    deliveries: Records
    transfers: NDArray[np.int64]  # by outcome
    drops: NDArray[np.int64]  # by reason
    transfer_log: Records
    drop_log: Records
    list_log: Records


class Outcome(NamedTuple):
    """What a run gave: see `serai.opportunistic.engine`."""

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
    list_log: Records | None = None  # None: nobody knows
