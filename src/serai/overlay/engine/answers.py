"""Events meet queries at their rendezvous, and notifications go back along the query's path: many at once.

The fast twin of what the brokers (serai.overlay.broker.broker) do with an event that has arrived.

A notification has no address. It follows the subquery that brought the query to the rendezvous back to the node that
sent it, from there the subquery that this one is part of, and so on to the subscriber. Many notifications share these
steps, so they are counted for each subquery, not walked one by one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.content import matches
from serai.core.jit import kernel, step
from serai.overlay.engine.graph import Floats, Numbers, Places
from serai.overlay.engine.keys import RendezvousKeys
from serai.overlay.engine.rendezvous import QueryBoxes, RoutingParameters
from serai.overlay.engine.state import NONE, longer
from serai.overlay.engine.subqueries import Subqueries
from serai.overlay.tinymq import is_prefix, lowest_cell

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Held(NamedTuple):
    """The subqueries at node x: of[start[x] : start[x + 1]], in order of arrival."""

    start: Places
    of: Places


class Shelves(NamedTuple):
    """The subqueries that may match an arriving event, in order of arrival: shelf s has of[start[s] : start[s + 1]].

    Each node has `BANDS` shelves for each tree of which it holds subqueries: one for each band of cells of one
    attribute, with the subqueries whose boxes touch the band.
    """

    first: Places  # [node, tree] its first shelf; NONE: the node holds nothing of this tree
    attribute: int
    start: Places
    of: Places


BAND_BITS = 6
BANDS = 1 << BAND_BITS


class Arrivals(NamedTuple):
    """Events on their way through one tree: how far each came, and to which rendezvous (`LOST`: none)."""

    event: Numbers
    tree: Numbers
    node: Numbers
    hops: Numbers


class Boxes(NamedTuple):
    """The queries as closed boxes of values [query, attribute]."""

    low: Floats
    high: Floats


def held_by_nodes(subqueries: Subqueries, held: Flags, nodes: int) -> Held:
    """Which of the `held` subqueries lie at which node."""
    which = np.flatnonzero(held)
    start = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(subqueries.node[which], minlength=nodes), out=start[1:])
    return Held(start, which[np.argsort(subqueries.node[which], kind="stable")])


def shelved(
    subqueries: Subqueries, held: Flags, nodes: int, trees: int, cells: QueryBoxes, attribute_bits: int
) -> Shelves:
    """The `held` subqueries, sorted by node, tree and what they ask of the attribute that tells them apart best."""
    which = np.flatnonzero(held)
    width = (cells.last - cells.first).mean(axis=0) if len(cells.first) else np.zeros(cells.first.shape[1])
    attribute = int(width.argmin())
    place = subqueries.node[which].astype(np.int64) * trees + subqueries.tree[which]
    used, shelf = np.unique(place, return_inverse=True)
    first = np.full(nodes * trees, NONE, np.int64)
    first[used] = np.arange(len(used)) * BANDS
    shift = max(0, attribute_bits - BAND_BITS)
    query = subqueries.query[which]
    low, high = cells.first[query, attribute] >> shift, cells.last[query, attribute] >> shift
    copies = high - low + 1
    band = np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies - low, copies)
    shelf = np.repeat(shelf * BANDS, copies) + band
    start = np.zeros(len(used) * BANDS + 1, np.int64)
    np.cumsum(np.bincount(shelf, minlength=len(used) * BANDS), out=start[1:])
    of = np.repeat(which, copies)[np.argsort(shelf, kind="stable")]
    return Shelves(first.reshape(nodes, trees), attribute, start, of)


@kernel
def match_arrivals(
    arrivals: Arrivals, rendezvous_key: RendezvousKeys, values: Floats, boxes: Boxes, subqueries: Subqueries,
    shelves: Shelves, parameters: RoutingParameters,
) -> tuple[Places, Places]:  # fmt: skip
    """All pairs of an arrival and the subquery along which its event is sent back, in the order of the arrivals.

    An event's cell of the shelves' attribute is in its rendezvous key, and in the box of every query that it matches.

    Of several subqueries of a query that hold the event's rendezvous key the one that came last is used: after a repair
    or a renewal the older ones may lead over nodes that are gone. `chosen` finds the pair to overwrite without a
    search; it is never cleared, so a pair of an earlier arrival has to be told from one of this arrival.
    """
    found_arrival, found_subquery = np.empty(1024, np.int64), np.empty(1024, np.int64)
    chosen = np.full(len(boxes.low), NONE, np.int64)  # [query] the last pair found for it
    count = 0
    for arrival in range(len(arrivals.event)):
        node, event = arrivals.node[arrival], arrivals.event[arrival]
        if node == NONE or shelves.first[node, arrivals.tree[arrival]] == NONE:
            continue
        key = rendezvous_key[event]
        cell = lowest_cell(key, shelves.attribute, values.shape[1], parameters.mapping, parameters.attribute_bits)
        shelf = shelves.first[node, arrivals.tree[arrival]] + (cell >> max(0, parameters.attribute_bits - BAND_BITS))
        for place in range(shelves.start[shelf], shelves.start[shelf + 1]):
            subquery = shelves.of[place]
            query = subqueries.query[subquery]
            if not matches(values[event], boxes.low[query], boxes.high[query]):
                continue
            if not holds(subqueries, subquery, key, parameters.bits):
                continue
            before = chosen[query]
            if before != NONE and found_arrival[before] == arrival:
                found_subquery[before] = subquery
                continue
            if count == len(found_arrival):
                found_arrival, found_subquery = longer(found_arrival, 2 * count), longer(found_subquery, 2 * count)
            found_arrival[count], found_subquery[count] = arrival, subquery
            chosen[query] = count
            count += 1
    return found_arrival[:count].copy(), found_subquery[:count].copy()


@step
def holds(subqueries: Subqueries, subquery: int, rendezvous_key: int, bits: int) -> bool:
    """Whether the rendezvous key is one of those that the subquery stands for."""
    for place in range(subqueries.region_start[subquery], subqueries.region_start[subquery + 1]):
        if is_prefix(subqueries.regions.prefix[place], subqueries.regions.length[place], rendezvous_key, bits):
            return True
    return False


@kernel
def unbroken(subqueries: Subqueries, alive: Flags) -> Flags:
    """Whether a notification along each subquery reaches the subscriber: all nodes on its path are alive.

    From the first to the last: what a subquery is part of stands before it, and has been decided.
    """
    whole = np.empty(len(subqueries.node), np.bool_)
    for subquery in range(len(subqueries.node)):
        back = subqueries.back[subquery]
        whole[subquery] = alive[subqueries.node[subquery]] and (back == NONE or whole[back])
    return whole


@kernel
def send_back(
    subqueries: Subqueries, notifications: Counts, alive: Flags, aware: bool, sent: Counts, received: Counts
) -> int:
    """Send so many notifications back along each subquery, hop by hop; how many transmissions that takes.

    Adds to the messages that each node sent and received. A dead node ends the path; whoever is `aware` that its next
    hop is dead does not send. From the last to the first: when a subquery is looked at, all notifications that pass
    through it have been added up, because what is part of it stands behind it.
    """
    passing, transmissions = notifications.copy(), 0
    for subquery in range(len(passing) - 1, -1, -1):
        back = subqueries.back[subquery]
        if passing[subquery] == 0 or back == NONE or not alive[subqueries.node[subquery]]:
            continue
        reaches = alive[subqueries.node[back]]
        if reaches:
            received[subqueries.node[back]] += passing[subquery]
            passing[back] += passing[subquery]
        if reaches or not aware:
            sent[subqueries.node[subquery]] += passing[subquery]
            transmissions += passing[subquery]
    return transmissions
