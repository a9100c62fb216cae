"""Transfers as small numbers: whose turn it is to send, over which of its links, which of the copies that came to it.

The event and the link of a row are large numbers that change from row to row as if they were drawn. But one sender's
rows stand together, its links are few, and nobody sends what has not come to it:

    turns    rows of one sender that follow each other: who, and how many; the columns below stand by sender instead,
             each one's rows in order of time, where neighbours resemble each other more
    links    the place of a row's link among those of its sender
    copies   births at a node and rows to it, counted as they come. A row mostly sends on the one behind what its
             sender sent last; else it goes back to where the sender's last jump began, or jumps. What never came (the
             page, or a real node's log, has a part of the rows) is told by its number.

`page/turns.js` is the other end.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.replay.pack import zigzag
from serai.replay.sheet import Links, Numbers

ON, BACK, STRAY, JUMP = range(4)  # how a row says which copy it sends; what it jumps, in zigzag, is added to JUMP - 1
_MOST_BITS: Final = 63  # of numbers that are sorted


class Log(NamedTuple):
    """Rows in order of time, and births by their events' numbers, at times of the same unit."""

    link: Numbers
    event: Numbers
    flags: Numbers
    at: Numbers
    birth_node: Numbers
    born_at: Numbers


def in_turns(links: Links, log: Log) -> dict[str, Numbers]:
    """The columns of a page that stand for the link, the event and the flags of each row."""
    sender, receiver = links.source[log.link], links.target[log.link]
    begins = _new(sender)
    copies = _copies(sender, receiver, log)
    own = in_order(sender)
    return {
        "turnOf": sender[begins],
        "turnRows": np.diff(np.flatnonzero(begins), append=len(sender)),
        "ownLink": (log.link - _first(links.source)[sender])[own],
        "ownFlags": log.flags[own],
        "ownCopy": _steps(sender[own], copies[own]),
        "strayEvent": log.event[copies < 0],
    }


def in_order(keys: Numbers) -> Numbers:
    """Places of whole numbers from the least to the greatest, equal ones as they stand."""
    order = _with_places(keys, len(keys).bit_length())
    order &= (1 << len(keys).bit_length()) - 1
    return order


def _with_places(keys: Numbers, bits: int) -> NDArray[np.int64]:
    """Numbers in order, each with its place in the lowest bits: a tenth of the time of a stable sort."""
    told: NDArray[np.int64] = np.left_shift(keys, bits, dtype=np.int64)
    told |= np.arange(len(keys), dtype=np.int32)
    told.sort()
    return told


def _first(ascending: Numbers) -> Numbers:
    """Where each whole number from 0 on first stands."""
    most = ascending[-1] + 1 if len(ascending) else 0
    return np.searchsorted(ascending, np.arange(most, dtype=ascending.dtype))


def _new(values: Numbers) -> Numbers:
    """Which numbers are others than those before them."""
    new: Numbers = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return new


def _copies(sender: Numbers, receiver: Numbers, log: Log) -> Numbers:
    """Which of the copies that came to its sender each row sends, the latest of its event; -1: none of them."""
    births, rows = len(log.birth_node), len(sender)
    nodes = int(max(column.max(initial=0) for column in (log.birth_node, sender, receiver))) + 1
    bits, events = (births + rows).bit_length(), int(log.event.max(initial=births)) + 1
    found: Numbers = np.full(rows, -1, np.int32)
    if (events * nodes).bit_length() + bits > _MOST_BITS:
        return found  # too many to be sorted like this: then each row tells its event by its number
    before = np.maximum.accumulate(np.searchsorted(log.at, log.born_at))  # rows before each birth
    born = before + np.arange(births)
    sent = np.cumsum(np.bincount(before, minlength=rows + 1))[:rows]  # births before each row,
    sent += np.arange(rows, dtype=np.int32)  # and rows: the copies that have come anywhere by then
    node, pair = np.empty(births + rows, np.int32), np.empty(births + rows, np.int64)
    node[born], node[sent] = log.birth_node, receiver
    pair[born], pair[sent] = np.arange(births), log.event
    pair *= nodes
    pair += node
    come = _with_places(pair, bits)
    wanted = np.multiply(log.event, nodes, dtype=np.int64)
    wanted += sender
    wanted <<= bits
    wanted |= sent
    wanted.sort()
    latest = come[np.searchsorted(come, wanted) - 1]  # before the first: the last, of another event or node
    known = latest >> bits == wanted >> bits
    row = np.empty(births + rows, np.int32)
    row[sent] = np.arange(rows)
    last = (1 << bits) - 1
    found[row[wanted[known] & last]] = _nth(node)[latest[known] & last]
    return found


def _nth(keys: Numbers) -> Numbers:
    """How many equal numbers stand before each."""
    order = in_order(keys)
    ordered = keys[order]
    nth: Numbers = np.empty(len(keys), np.int32)
    nth[order] = np.arange(len(keys)) - _first(ordered)[ordered]
    return nth


def _steps(sender: Numbers, copies: Numbers) -> Numbers:
    """How each row says which copy it sends, sender by sender."""
    known = np.flatnonzero(copies >= 0)
    place, first = copies[known], _new(sender[known])
    behind = np.where(first, 0, np.roll(place, 1) + 1)
    jumps = place != behind
    rows = np.arange(len(place), dtype=np.int32)
    jumped = np.roll(np.maximum.accumulate(np.where(jumps | first, rows, 0)), 1)  # the row of the last jump before
    back = place == np.where(first, 0, behind[jumped])
    told: Numbers = np.full(len(sender), STRAY, np.int32)
    told[known] = np.where(~jumps, ON, np.where(back, BACK, JUMP - 1 + zigzag(place - behind)))
    return told
