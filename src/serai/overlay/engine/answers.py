"""Events meet queries at their rendezvous, and notifications go back the way the query came: many at once.

The fast twin of what the brokers (serai.overlay.broker.broker) do with an event that has arrived.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.content import matches
from serai.core.jit import kernel, step
from serai.overlay.engine.graph import Numbers, Places
from serai.overlay.engine.state import NONE, Pieces, longer
from serai.overlay.tinymq import Floats, Strings, is_prefix

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Held(NamedTuple):
    """The pieces that each node looks at when an event arrives: of[start[x] : start[x + 1]], in order of arrival."""

    start: Places
    of: Places


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


def held_by_nodes(pieces: Pieces, held: Flags, nodes: int) -> Held:
    """Which of the `held` pieces lie at which node."""
    which = np.flatnonzero(held)
    start = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(pieces.node[which], minlength=nodes), out=start[1:])
    return Held(start, which[np.argsort(pieces.node[which], kind="stable")])


@kernel
def match_arrivals(
    arrivals: Arrivals, string: Strings, values: Floats, boxes: Boxes, pieces: Pieces, held: Held, bits: int
) -> tuple[Places, Places]:  # fmt: skip
    """All pairs of an arrival and the piece along which its event is sent back, in the order of the arrivals.

    Of several pieces of a query that hold the event's string the one that came last is used.
    """
    found_arrival, found_piece = np.empty(1024, np.int64), np.empty(1024, np.int64)
    chosen = np.full(len(boxes.low), NONE, np.int64)  # [query] the last pair found for it
    count = 0
    for arrival in range(len(arrivals.event)):
        node, event = arrivals.node[arrival], arrivals.event[arrival]
        if node == NONE:
            continue
        for place in range(held.start[node], held.start[node + 1]):
            piece = held.of[place]
            query = pieces.query[piece]
            if pieces.tree[piece] != arrivals.tree[arrival]:
                continue
            if not matches(values[event], boxes.low[query], boxes.high[query]):
                continue
            if not holds(pieces, piece, string[event], bits):
                continue
            before = chosen[query]
            if before != NONE and found_arrival[before] == arrival:
                found_piece[before] = piece
                continue
            if count == len(found_arrival):
                found_arrival, found_piece = longer(found_arrival, 2 * count), longer(found_piece, 2 * count)
            found_arrival[count], found_piece[count] = arrival, piece
            chosen[query] = count
            count += 1
    return found_arrival[:count].copy(), found_piece[:count].copy()


@step
def holds(pieces: Pieces, piece: int, string: int, bits: int) -> bool:
    """Whether the string is one of those that the piece stands for."""
    for place in range(pieces.region_start[piece], pieces.region_start[piece + 1]):
        if is_prefix(pieces.regions.prefix[place], pieces.regions.length[place], string, bits):
            return True
    return False


@kernel
def unbroken(pieces: Pieces, alive: Flags) -> Flags:
    """Whether a notification along each piece reaches the subscriber: all nodes on its way are alive."""
    whole = np.empty(len(pieces.node), np.bool_)
    for piece in range(len(pieces.node)):
        back = pieces.back[piece]
        whole[piece] = alive[pieces.node[piece]] and (back == NONE or whole[back])
    return whole


@kernel
def send_back(pieces: Pieces, notifications: Counts, alive: Flags, aware: bool, sent: Counts, received: Counts) -> int:
    """Send so many notifications back along each piece, hop by hop; how many transmissions that takes.

    Adds to the messages that each node sent and received. A dead node ends the way; whoever is `aware` that its
    next hop is dead does not send.
    """
    passing, transmissions = notifications.copy(), 0
    for piece in range(len(passing) - 1, -1, -1):  # a piece comes after the one it was part of
        back = pieces.back[piece]
        if passing[piece] == 0 or back == NONE or not alive[pieces.node[piece]]:
            continue
        reaches = alive[pieces.node[back]]
        if reaches:
            received[pieces.node[back]] += passing[piece]
            passing[back] += passing[piece]
        if reaches or not aware:
            sent[pieces.node[piece]] += passing[piece]
            transmissions += passing[piece]
    return transmissions
