"""Subqueries: the query messages that nodes have received, as one table that grows while queries are placed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import rule, step
from serai.overlay.engine.graph import Numbers, Places
from serai.overlay.engine.state import NONE, longer


class Regions(NamedTuple):
    """Sets of rendezvous keys: prefixes (with zeros behind them) and their lengths."""

    prefix: NDArray[np.int64]
    length: Numbers


class Subqueries(NamedTuple):
    """Query messages as nodes have received them, and for a start as subscribers have begun them, in that order.

    The region of subquery s is regions[region_start[s] : region_start[s + 1]]: the rendezvous keys of its query that
    begin so. A subquery always stands behind the one that it is part of (`back`): a loop from the first to the last
    sees every parent before its children, and one from the last to the first every child before its parent.
    """

    query: Numbers
    tree: Numbers
    node: Numbers  # where it arrived
    back: Places  # the subquery it is part of, at the node that sent it; NONE: the subscriber's own
    hops: Numbers  # from the subscriber
    stays: NDArray[np.bool_]  # whether the node is the rendezvous of some of its rendezvous keys
    region_start: Places
    regions: Regions


@step
def add_subquery(subqueries: Subqueries, count: int, query: int, tree: int, node: int, back: int, hops: int) -> None:
    """Fill in row `count`, all but its region: that is written, and `region_start` set, by whoever calls this."""
    subqueries.query[count], subqueries.tree[count], subqueries.node[count] = query, tree, node
    subqueries.back[count], subqueries.hops[count], subqueries.stays[count] = back, hops, False


@rule
def new_subqueries(room: int) -> Subqueries:
    """An empty table with room for so many."""
    return Subqueries(
        np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int64),
        np.empty(room, np.int32), np.empty(room, np.bool_), np.zeros(room + 1, np.int64),
        Regions(np.empty(room, np.int64), np.empty(room, np.int32)),
    )  # fmt: skip


@rule
def with_room(subqueries: Subqueries, count: int, prefixes: int) -> Subqueries:
    """The same subqueries, with room for so many of them and of the prefixes of their regions."""
    if count > len(subqueries.node):
        more = 2 * count
        subqueries = Subqueries(
            longer(subqueries.query, more), longer(subqueries.tree, more), longer(subqueries.node, more),
            longer(subqueries.back, more), longer(subqueries.hops, more), longer(subqueries.stays, more),
            longer(subqueries.region_start, more + 1), subqueries.regions,
        )  # fmt: skip
    if prefixes > len(subqueries.regions.prefix):
        more = 2 * prefixes
        regions = Regions(longer(subqueries.regions.prefix, more), longer(subqueries.regions.length, more))
        subqueries = Subqueries(
            subqueries.query, subqueries.tree, subqueries.node, subqueries.back, subqueries.hops, subqueries.stays,
            subqueries.region_start, regions,
        )  # fmt: skip
    return subqueries


@rule
def trimmed(subqueries: Subqueries, count: int) -> Subqueries:
    """The first `count` subqueries, without the room behind them."""
    prefixes = subqueries.region_start[count]
    return Subqueries(
        subqueries.query[:count].copy(), subqueries.tree[:count].copy(), subqueries.node[:count].copy(),
        subqueries.back[:count].copy(), subqueries.hops[:count].copy(), subqueries.stays[:count].copy(),
        subqueries.region_start[: count + 1].copy(),
        Regions(subqueries.regions.prefix[:prefixes].copy(), subqueries.regions.length[:prefixes].copy()),
    )  # fmt: skip


def joined_subqueries(parts: Sequence[Subqueries]) -> Subqueries:
    """All subqueries one after the other, with what they refer to."""
    counts = np.cumsum([0, *(len(part.node) for part in parts)])
    prefixes = np.cumsum([0, *(len(part.regions.prefix) for part in parts)])
    back = [np.where(part.back == NONE, NONE, part.back + count) for part, count in zip(parts, counts, strict=False)]
    starts = [part.region_start[:-1] + before for part, before in zip(parts, prefixes, strict=False)]
    plain = ("query", "tree", "node", "hops", "stays")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in plain}
    regions = Regions(
        np.concatenate([part.regions.prefix for part in parts]), np.concatenate([part.regions.length for part in parts])
    )
    return Subqueries(
        back=np.concatenate(back), region_start=np.concatenate([*starts, prefixes[-1:]]), regions=regions, **columns
    )
