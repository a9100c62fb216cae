"""TinyMQ III.D, for many queries and events at once: where they go, where they meet, and how the answer returns.

The fast twin of the brokers (serai.overlay.broker); both ask the rules of serai.overlay.tinymq for every decision.
A piece is a query message as a node has received it; its strings are kept as prefixes, cut in half only where the keys
that the node knows tell them apart: so they stay few, however long strings are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import engine, kernel, rule, step
from serai.overlay.engine.graph import Numbers
from serai.overlay.engine.state import NONE, Layer, Pieces, Regions, longer
from serai.overlay.tinymq import (
    AS_PRINTED,
    CHILD,
    MOST_BITS,
    NEVER,
    Cells,
    Strings,
    is_split,
    preference,
    to_beat,
    touches,
)

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

HERE = -1
"""The next hop of a string that has arrived: the node is its rendezvous."""

NO_ROUTE = -2
"""The next hop of a string that cannot go on: no way leads to its tree."""

NO_STRING = MOST_BITS + 1
"""The length of a prefix that begins no string."""

LOST = -1
"""The rendezvous of an event that did not reach one."""


class Rules(NamedTuple):
    """The numbers that the protocol's settings come to."""

    routing: int
    mapping: int
    attribute_bits: int
    bits: int


# ---- one string


@step
def next_hop(layer: Layer, rules: Rules, node: int, string: int) -> int:
    """Where a string goes from a node of the tree that it is for; `HERE` if the node is its rendezvous."""
    own = layer.nodes[node]
    parent_length = own.length - own.nth
    beat = to_beat(rules.routing, own.head, own.length, own.depth, parent_length, string, rules.bits)
    most, hop = NEVER, HERE
    for place in range(layer.link_start[node], layer.link_start[node + 1]):
        link = layer.links[place]
        liking = preference(rules.routing, link.relation, beat, link.head, link.length, link.depth, string, rules.bits)
        if liking > most:
            most, hop = liking, link.node
    return hop


# ---- events (Algorithm 3.2)


def route_events(
    layer: Layer, rules: Rules, publisher: Numbers, string: Strings, tree: Numbers, alive: Flags, sent: Counts,
    received: Counts,
) -> tuple[Numbers, Numbers]:  # fmt: skip
    """The rendezvous of each event in a tree of the layer (`LOST`: a dead node or a loop was on the way), and the hops.

    Adds to the messages that each node sent and received. What is printed may loop: an event that comes back to a
    node where it has been is dropped there.
    """
    rendezvous, hops = np.empty(len(string), np.int32), np.zeros(len(string), np.int32)
    visited = np.full(len(layer.nodes), NONE, np.int64)
    _route(layer, rules, publisher, string, tree, alive, visited, rendezvous, hops, sent, received)
    return rendezvous, hops


@engine
def _route(
    layer: Layer, rules: Rules, publisher: Numbers, string: Strings, tree: Numbers, alive: Flags, visited: Counts,
    rendezvous: Numbers, hops: Numbers, sent: Counts, received: Counts,
) -> None:  # fmt: skip
    for event in range(len(string)):
        node = publisher[event]
        rendezvous[event] = LOST
        while True:
            hop = _way_of(layer, rules, node, string[event], tree[event])
            if hop == HERE:
                rendezvous[event] = node
            if hop < 0:
                break
            if rules.routing == AS_PRINTED:
                visited[node] = event
            hops[event] += 1
            sent[node] += 1
            if not alive[hop]:
                break
            received[hop] += 1
            if rules.routing == AS_PRINTED and visited[hop] == event:
                break
            node = hop


@step
def _way_of(layer: Layer, rules: Rules, node: int, string: int, tree: int) -> int:
    """Where a string for a tree of the layer goes from any node."""
    if layer.nodes[node].tree != layer.trees[tree]:
        return _way_to(layer, node, tree)
    return next_hop(layer, rules, node, string)


@step
def _way_to(layer: Layer, node: int, tree: int) -> int:
    """The neighbour on the way to a tree of the layer."""
    hop: int = layer.toward[tree, node]
    return NO_ROUTE if hop == NONE else hop


# ---- queries (Algorithm 3.1)


class QueryBoxes(NamedTuple):
    """The queries as boxes of cells [query, attribute], and the nodes that ask."""

    first: Cells
    last: Cells
    subscriber: Numbers


class _Parts(NamedTuple):
    """The strings of one piece by where they go next."""

    prefix: Strings
    length: Strings  # as wide as what it shifts
    hop: Numbers


@kernel
def place_queries(layer: Layer, rules: Rules, boxes: QueryBoxes, query: Numbers, tree: Numbers) -> Pieces:
    """Send each query to a tree (by its place in the layer): all pieces that nodes receive, row after row."""
    pieces = _new_pieces(1024)
    parts, stack = _new_parts(1024), _new_parts(2 * rules.bits + 2)
    seen = np.full(len(layer.nodes), NONE, np.int64)  # [node] the last row it received
    count = 0
    for row in range(len(query)):
        first, last = boxes.first[query[row]], boxes.last[query[row]]
        at = count
        pieces = with_room(pieces, count + 1, pieces.region_start[count] + 1)
        count = _begin(pieces, count, query[row], layer.trees[tree[row]], boxes.subscriber[query[row]])
        while at < count:
            node = pieces.node[at]
            links = layer.link_start[node + 1] - layer.link_start[node]
            most = pieces.region_start[at + 1] - pieces.region_start[at] + (links + 1) * (rules.bits + 1)
            if most > len(parts.prefix):
                parts = _new_parts(2 * most)
            leave = _divide(layer, rules, first, last, pieces, at, tree[row], parts, stack)
            if rules.routing == AS_PRINTED:
                leave = _print(layer, pieces, at, parts, leave, seen[node] == row)
                seen[node] = row
            pieces = with_room(pieces, count + links + 1, pieces.region_start[count] + leave)
            count = _send(pieces, count, at, parts, leave)
            at += 1
    return cut(pieces, count)


@step
def _begin(pieces: Pieces, count: int, query: int, tree: int, node: int) -> int:
    """The subscriber's own piece: all strings of the query, by the empty prefix; how many pieces there are then."""
    enter(pieces, count, query, tree, node, NONE, 0)
    place = pieces.region_start[count]
    pieces.regions.prefix[place], pieces.regions.length[place] = 0, 0
    pieces.region_start[count + 1] = place + 1
    return count + 1


@step
def enter(pieces: Pieces, count: int, query: int, tree: int, node: int, back: int, hops: int) -> None:
    """Make a node the holder of a new piece, the strings of which are still to be said."""
    pieces.query[count], pieces.tree[count], pieces.node[count] = query, tree, node
    pieces.back[count], pieces.hops[count], pieces.stays[count] = back, hops, False


@step
def _divide(
    layer: Layer, rules: Rules, first: Cells, last: Cells, pieces: Pieces, at: int, tree: int, parts: _Parts,
    stack: _Parts,
) -> int:  # fmt: skip
    """Fill `parts` with the strings of a piece, each with where it goes from the node; how many parts."""
    node, count = pieces.node[at], 0
    foreign = layer.nodes[node].tree != layer.trees[tree]
    for place in range(pieces.region_start[at], pieces.region_start[at + 1]):
        prefix, length = pieces.regions.prefix[place], pieces.regions.length[place]
        if foreign:
            parts.prefix[count], parts.length[count], parts.hop[count] = prefix, length, _way_to(layer, node, tree)
            count += 1
        else:
            count = _divide_prefix(layer, rules, first, last, node, prefix, length, parts, count, stack)
    return count


@step
def _divide_prefix(
    layer: Layer, rules: Rules, first: Cells, last: Cells, node: int, prefix: int, length: int, parts: _Parts,
    count: int, stack: _Parts,
) -> int:  # fmt: skip
    """Cut a prefix in half wherever a key that the node knows tells its strings apart; how many parts there are."""
    bits = rules.bits
    stack.prefix[0], stack.length[0] = prefix, length
    height = 1
    while height > 0:
        height -= 1
        here, long = stack.prefix[height], stack.length[height]
        if not touches(first, last, here, long, rules.mapping, rules.attribute_bits):
            continue
        if long < bits and _tells_apart(layer, node, here, long, bits):
            stack.prefix[height], stack.length[height] = here | 1 << (bits - 1 - long), long + 1
            stack.prefix[height + 1], stack.length[height + 1] = here, long + 1
            height += 2
            continue
        parts.prefix[count], parts.length[count] = here, long
        parts.hop[count] = next_hop(layer, rules, node, here)
        count = _joined(rules, first, last, parts, count + 1, length)
    return count


@step
def _print(layer: Layer, pieces: Pieces, at: int, parts: _Parts, leave: int, seen: bool) -> int:
    """Algorithm 3.1 to the letter: where the whole query goes from here, given where its strings would go.

    If some string belongs elsewhere (lines 8-16) the query goes there, and is not stored; else it goes to all children.
    """
    node, stays, elsewhere = pieces.node[at], False, 0
    foreign = layer.nodes[node].tree != pieces.tree[at]
    for part in range(leave):
        hop = parts.hop[part]
        stays |= hop == HERE
        if not seen and hop != HERE and (foreign or layer.nodes[hop].parent != node):
            elsewhere = _whole_query_to(parts, elsewhere, hop)
    if seen or elsewhere or not stays:
        for place in range(pieces.region_start[at], pieces.region_start[at + 1]):
            pieces.regions.length[place] = NO_STRING
    if seen or elsewhere:
        return elsewhere
    count = 0
    for place in range(layer.link_start[node], layer.link_start[node + 1]):
        if layer.links[place].relation == CHILD:
            count = _whole_query_to(parts, count, layer.links[place].node)
    return _whole_query_to(parts, count, HERE) if stays else count


@step
def _whole_query_to(parts: _Parts, count: int, hop: int) -> int:
    """Send the whole query to a next hop, once; how many parts there are then. Earlier parts may be overwritten."""
    for part in range(count):
        if parts.hop[part] == hop:
            return count
    parts.prefix[count], parts.length[count], parts.hop[count] = 0, 0, hop
    return count + 1


@step
def _tells_apart(layer: Layer, node: int, prefix: int, length: int, bits: int) -> bool:
    """Whether the next hops of strings with this prefix may differ."""
    own = layer.nodes[node]
    if is_split(own.head, own.length, prefix, length, bits):
        return True
    for place in range(layer.link_start[node], layer.link_start[node + 1]):
        if is_split(layer.links[place].head, layer.links[place].length, prefix, length, bits):
            return True
    return False


@step
def _joined(rules: Rules, first: Cells, last: Cells, parts: _Parts, count: int, least: int) -> int:
    """Shorten the last part while its other half is not asked for, or goes the same way; how many parts are left."""
    while parts.length[count - 1] > least:
        prefix, length = parts.prefix[count - 1], parts.length[count - 1]
        half = 1 << (rules.bits - length)
        if touches(first, last, prefix ^ half, length, rules.mapping, rules.attribute_bits):
            joins = (
                prefix & half != 0
                and count > 1
                and parts.prefix[count - 2] == prefix ^ half
                and parts.length[count - 2] == length
                and parts.hop[count - 2] == parts.hop[count - 1]
            )
            if not joins:
                break
            count -= 1
        parts.prefix[count - 1], parts.length[count - 1] = prefix & ~half, length - 1
    return count


@step
def _send(pieces: Pieces, count: int, at: int, parts: _Parts, leave: int) -> int:
    """Send the parts on, one message to each next hop in order of number; how many pieces there are then."""
    hop = _next_above(parts, leave, HERE)
    while hop != HERE:
        enter(pieces, count, pieces.query[at], pieces.tree[at], hop, at, pieces.hops[at] + 1)
        end = pieces.region_start[count]
        for part in range(leave):
            if parts.hop[part] == hop:
                pieces.regions.prefix[end], pieces.regions.length[end] = parts.prefix[part], parts.length[part]
                end += 1
        count += 1
        pieces.region_start[count] = end
        hop = _next_above(parts, leave, hop)
    for part in range(leave):
        if parts.hop[part] == HERE:
            pieces.stays[at] = True
    return count


@step
def _next_above(parts: _Parts, leave: int, hop: int) -> int:
    """The lowest next hop above this one; `HERE` if there is none."""
    lowest = HERE
    for part in range(leave):
        other = parts.hop[part]
        if other > hop and (lowest == HERE or other < lowest):
            lowest = other
    return lowest


# ---- room


@rule
def _new_parts(room: int) -> _Parts:
    return _Parts(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32))


@rule
def _new_pieces(room: int) -> Pieces:
    return Pieces(
        np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int64),
        np.empty(room, np.int32), np.empty(room, np.bool_), np.zeros(room + 1, np.int64),
        Regions(np.empty(room, np.int64), np.empty(room, np.int32)),
    )  # fmt: skip


@rule
def with_room(pieces: Pieces, count: int, prefixes: int) -> Pieces:
    """The same pieces, with room for so many of them and of the prefixes of their regions."""
    if count > len(pieces.node):
        more = 2 * count
        pieces = Pieces(
            longer(pieces.query, more), longer(pieces.tree, more), longer(pieces.node, more),
            longer(pieces.back, more), longer(pieces.hops, more), longer(pieces.stays, more),
            longer(pieces.region_start, more + 1), pieces.regions,
        )  # fmt: skip
    if prefixes > len(pieces.regions.prefix):
        more = 2 * prefixes
        regions = Regions(longer(pieces.regions.prefix, more), longer(pieces.regions.length, more))
        pieces = Pieces(
            pieces.query, pieces.tree, pieces.node, pieces.back, pieces.hops, pieces.stays, pieces.region_start, regions
        )
    return pieces


@rule
def cut(pieces: Pieces, count: int) -> Pieces:
    """The pieces without the room that is left."""
    prefixes = pieces.region_start[count]
    return Pieces(
        pieces.query[:count].copy(), pieces.tree[:count].copy(), pieces.node[:count].copy(), pieces.back[:count].copy(),
        pieces.hops[:count].copy(), pieces.stays[:count].copy(), pieces.region_start[: count + 1].copy(),
        Regions(pieces.regions.prefix[:prefixes].copy(), pieces.regions.length[:prefixes].copy()),
    )  # fmt: skip
