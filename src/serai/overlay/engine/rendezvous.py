"""TinyMQ III.D, for many queries and events at once: which way they take, and where they meet.

The fast twin of the brokers (serai.overlay.broker); both ask the rules of serai.overlay.tinymq for every decision.

A query stands for a set of rendezvous keys, far too many to list (up to 2^63). A node splits the set by next hop and
sends each neighbour its part: a *subquery*. The set is kept as prefixes, which are cut in half only where a node key
that the node knows tells the halves apart, and merged again where they go the same way after all. So a subquery is
about as large as there are node keys around, however long rendezvous keys are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import engine, kernel, rule, step
from serai.overlay.engine.graph import Numbers
from serai.overlay.engine.keys import Cells, RendezvousKeys
from serai.overlay.engine.state import NONE, Layer
from serai.overlay.engine.subqueries import Subqueries, add_subquery, new_subqueries, trimmed, with_room
from serai.overlay.tinymq import (
    AS_PRINTED,
    CHILD,
    HERE,
    MOST_BITS,
    NEVER,
    NO_ROUTE,
    is_split,
    preference,
    to_beat,
    touches,
)

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

BEGINS_NOTHING = MOST_BITS + 1
"""The length of a prefix that begins no rendezvous key."""

LOST = -1
"""The rendezvous of an event that did not reach one."""


class RoutingParameters(NamedTuple):
    """A protocol's settings as the kernels read them."""

    routing: int
    mapping: int
    attribute_bits: int
    bits: int


# ---- one message


@step
def next_hop(layer: Layer, parameters: RoutingParameters, node: int, rendezvous_key: int) -> int:
    """Where a message goes from a node of the tree that it is for; `HERE` if the node is its rendezvous."""
    own = layer.nodes[node]
    parent_length = own.length - own.nth
    beat = to_beat(parameters.routing, own.head, own.length, own.depth, parent_length, rendezvous_key, parameters.bits)
    most, hop = NEVER, HERE
    for place in range(layer.link_start[node], layer.link_start[node + 1]):
        link = layer.links[place]
        preferred = preference(
            parameters.routing, link.relation, beat, link.head, link.length, link.depth, rendezvous_key, parameters.bits
        )
        if preferred > most:
            most, hop = preferred, link.node
    return hop


# ---- events (Algorithm 3.2)


def route_events(
    layer: Layer, parameters: RoutingParameters, publisher: Numbers, rendezvous_key: RendezvousKeys, tree: Numbers,
    alive: Flags, sent: Counts, received: Counts,
) -> tuple[Numbers, Numbers]:  # fmt: skip
    """The rendezvous of each event in a tree of the layer (`LOST`: a dead node or a loop was on the way), and the hops.

    Adds to the messages that each node sent and received. What is printed may loop: an event that comes back to a
    node where it has been is dropped there.
    """
    rendezvous, hops = np.empty(len(rendezvous_key), np.int32), np.zeros(len(rendezvous_key), np.int32)
    visited = np.full(len(layer.nodes), NONE, np.int64)
    _route(layer, parameters, publisher, rendezvous_key, tree, alive, visited, rendezvous, hops, sent, received)
    return rendezvous, hops


@engine
def _route(
    layer: Layer, parameters: RoutingParameters, publisher: Numbers, rendezvous_key: RendezvousKeys, tree: Numbers,
    alive: Flags, visited: Counts, rendezvous: Numbers, hops: Numbers, sent: Counts, received: Counts,
) -> None:  # fmt: skip
    for event in range(len(rendezvous_key)):
        node = publisher[event]
        rendezvous[event] = LOST
        while True:
            hop = next_hop_from_anywhere(layer, parameters, node, rendezvous_key[event], tree[event])
            if hop == HERE:
                rendezvous[event] = node
            if hop < 0:
                break
            if parameters.routing == AS_PRINTED:  # the other routings never loop, and need not remember
                visited[node] = event
            hops[event] += 1
            sent[node] += 1
            if not alive[hop]:
                break
            received[hop] += 1
            if parameters.routing == AS_PRINTED and visited[hop] == event:
                break
            node = hop


@step
def next_hop_from_anywhere(
    layer: Layer, parameters: RoutingParameters, node: int, rendezvous_key: int, tree: int
) -> int:
    """Where a message for a tree of the layer goes from a node of that tree or of another."""
    if layer.nodes[node].tree != layer.trees[tree]:
        return _next_hop_to_tree(layer, node, tree)
    return next_hop(layer, parameters, node, rendezvous_key)


@step
def _next_hop_to_tree(layer: Layer, node: int, tree: int) -> int:
    """The neighbour on the shortest path to the root of a tree of the layer."""
    hop: int = layer.toward[tree, node]
    return NO_ROUTE if hop == NONE else hop


# ---- queries (Algorithm 3.1)


class QueryBoxes(NamedTuple):
    """The queries as boxes of cells [query, attribute], and the nodes that ask."""

    first: Cells
    last: Cells
    subscriber: Numbers


class _Parts(NamedTuple):
    """The rendezvous keys of one subquery by where they go next; and a stack of prefixes still to be cut."""

    prefix: RendezvousKeys
    length: RendezvousKeys  # as wide as what it shifts
    hop: Numbers


@kernel
def place_queries(
    layer: Layer, parameters: RoutingParameters, boxes: QueryBoxes, query: Numbers, tree: Numbers
) -> Subqueries:
    """Send each query to a tree (by its place in the layer): all subqueries that nodes receive, row after row.

    The table of subqueries is also the queue of messages on their way: `at` is the one that arrives now, and what its
    node sends on is added behind the last. All messages take the same time, so this is the order of their arrival.
    """
    subqueries = new_subqueries(1024)
    parts = _new_parts(1024)
    stack = _new_parts(2 * parameters.bits + 2)  # a depth-first search leaves one half a level waiting
    seen = np.full(len(layer.nodes), NONE, np.int64)  # [node] the last row it received
    count = 0
    for row in range(len(query)):
        first, last = boxes.first[query[row]], boxes.last[query[row]]
        at = count
        subqueries = with_room(subqueries, count + 1, subqueries.region_start[count] + 1)
        count = _begin(subqueries, count, query[row], layer.trees[tree[row]], boxes.subscriber[query[row]])
        while at < count:
            node = subqueries.node[at]
            links = layer.link_start[node + 1] - layer.link_start[node]
            # Each node key known here (the own one and those of the links) cuts at most once for each of its bits.
            most = subqueries.region_start[at + 1] - subqueries.region_start[at] + (links + 1) * (parameters.bits + 1)
            if most > len(parts.prefix):
                parts = _new_parts(2 * most)
            used = _divide(layer, parameters, first, last, subqueries, at, tree[row], parts, stack)
            if parameters.routing == AS_PRINTED:
                used = _follow_printed_algorithm(layer, subqueries, at, parts, used, seen[node] == row)
                seen[node] = row
            subqueries = with_room(subqueries, count + links + 1, subqueries.region_start[count] + used)
            count = _send_on(subqueries, count, at, parts, used)
            at += 1
    return trimmed(subqueries, count)


@step
def _begin(subqueries: Subqueries, count: int, query: int, tree: int, node: int) -> int:
    """The subscriber's own subquery: all rendezvous keys, by the empty prefix; how many subqueries there are then."""
    add_subquery(subqueries, count, query, tree, node, NONE, 0)
    place = subqueries.region_start[count]
    subqueries.regions.prefix[place], subqueries.regions.length[place] = 0, 0
    subqueries.region_start[count + 1] = place + 1
    return count + 1


@step
def _divide(
    layer: Layer, parameters: RoutingParameters, first: Cells, last: Cells, subqueries: Subqueries, at: int, tree: int,
    parts: _Parts, stack: _Parts,
) -> int:  # fmt: skip
    """Fill `parts` with the rendezvous keys of a subquery, each with where it goes from the node; how many parts.

    On the way to a tree all of them go to the same neighbour, whatever they are: nothing has to be cut until a node of
    the tree is reached.
    """
    node, count = subqueries.node[at], 0
    outside = layer.nodes[node].tree != layer.trees[tree]
    for place in range(subqueries.region_start[at], subqueries.region_start[at + 1]):
        prefix, length = subqueries.regions.prefix[place], subqueries.regions.length[place]
        if outside:
            parts.prefix[count], parts.length[count] = prefix, length
            parts.hop[count] = _next_hop_to_tree(layer, node, tree)
            count += 1
        else:
            count = _divide_prefix(layer, parameters, first, last, node, prefix, length, parts, count, stack)
    return count


@step
def _divide_prefix(
    layer: Layer, parameters: RoutingParameters, first: Cells, last: Cells, node: int, prefix: int, length: int,
    parts: _Parts, count: int, stack: _Parts,
) -> int:  # fmt: skip
    """Cut a prefix in half wherever a node key known here tells its halves apart; how many parts there are then.

    A search through the binary tree of prefixes, the lower half first: so parts come in ascending order, and two halves
    that turn out to go the same way stand next to each other when `_merge_halves` looks at them. A prefix that
    the query's box does not touch holds nothing that anybody asked for, and is left out.
    """
    bits = parameters.bits
    stack.prefix[0], stack.length[0] = prefix, length
    height = 1
    while height > 0:
        height -= 1
        here, long = stack.prefix[height], stack.length[height]
        if not touches(first, last, here, long, parameters.mapping, parameters.attribute_bits):
            continue
        if long < bits and _tells_apart(layer, node, here, long, bits):
            stack.prefix[height], stack.length[height] = here | 1 << (bits - 1 - long), long + 1
            stack.prefix[height + 1], stack.length[height + 1] = here, long + 1
            height += 2
            continue
        parts.prefix[count], parts.length[count] = here, long
        parts.hop[count] = next_hop(layer, parameters, node, here)  # the same for every rendezvous key under it
        count = _merge_halves(parameters, first, last, parts, count + 1, length)
    return count


@step
def _follow_printed_algorithm(
    layer: Layer, subqueries: Subqueries, at: int, parts: _Parts, used: int, seen: bool
) -> int:
    """Algorithm 3.1 to the letter: where the whole query goes from here, given where its rendezvous keys would go.

    If some rendezvous key belongs elsewhere (lines 8-16) the query goes there, and is not stored, even if others belong
    here: that is how the printed algorithm loses queries. Else it goes to all children. `parts` is overwritten: by then
    the parts up to the one that is read have been looked at, and no more are written than were read.
    """
    node, stays, elsewhere = subqueries.node[at], False, 0
    outside = layer.nodes[node].tree != subqueries.tree[at]
    for part in range(used):
        hop = parts.hop[part]
        stays |= hop == HERE
        if not seen and hop != HERE and (outside or layer.nodes[hop].parent != node):
            elsewhere = _whole_query_to(parts, elsewhere, hop)
    if seen or elsewhere or not stays:  # not stored: the subquery is kept for the way back, but matches no event
        for place in range(subqueries.region_start[at], subqueries.region_start[at + 1]):
            subqueries.regions.length[place] = BEGINS_NOTHING
    if seen or elsewhere:
        return elsewhere
    count = 0
    for place in range(layer.link_start[node], layer.link_start[node + 1]):
        if layer.links[place].relation == CHILD:
            count = _whole_query_to(parts, count, layer.links[place].node)
    return _whole_query_to(parts, count, HERE) if stays else count


@step
def _whole_query_to(parts: _Parts, count: int, hop: int) -> int:
    """Send the whole query to a next hop, once; how many parts there are then."""
    for part in range(count):
        if parts.hop[part] == hop:
            return count
    parts.prefix[count], parts.length[count], parts.hop[count] = 0, 0, hop
    return count + 1


@step
def _tells_apart(layer: Layer, node: int, prefix: int, length: int, bits: int) -> bool:
    """Whether the next hops of rendezvous keys with this prefix may differ: a node key known here goes on behind it."""
    own = layer.nodes[node]
    if is_split(own.head, own.length, prefix, length, bits):
        return True
    for place in range(layer.link_start[node], layer.link_start[node + 1]):
        if is_split(layer.links[place].head, layer.links[place].length, prefix, length, bits):
            return True
    return False


@step
def _merge_halves(
    parameters: RoutingParameters, first: Cells, last: Cells, parts: _Parts, count: int, least: int
) -> int:
    """Shorten the last part while its other half is not asked for, or goes the same way; how many parts are left.

    A prefix is cut where next hops *may* differ; often they do not, and regions would grow from hop to hop without
    this. The other half is the prefix with its last bit flipped. If the query's box does not touch it, the shorter
    prefix stands for the same part of the query. If it does, and the last part is the upper half, the lower one has
    been divided already: it can be merged only if it stands right before, whole, with the same next hop. If the last
    part is the lower half, the upper one is still to come. Never shorter than `least`: the rest is not in the region.
    """
    while parts.length[count - 1] > least:
        prefix, length = parts.prefix[count - 1], parts.length[count - 1]
        half = 1 << (parameters.bits - length)
        if touches(first, last, prefix ^ half, length, parameters.mapping, parameters.attribute_bits):
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
def _send_on(subqueries: Subqueries, count: int, at: int, parts: _Parts, used: int) -> int:
    """Send the parts on, one message to each next hop in order of number; how many subqueries there are then."""
    hop = _next_above(parts, used, HERE)
    while hop != HERE:
        add_subquery(subqueries, count, subqueries.query[at], subqueries.tree[at], hop, at, subqueries.hops[at] + 1)
        end = subqueries.region_start[count]
        for part in range(used):
            if parts.hop[part] == hop:
                subqueries.regions.prefix[end], subqueries.regions.length[end] = parts.prefix[part], parts.length[part]
                end += 1
        count += 1
        subqueries.region_start[count] = end
        hop = _next_above(parts, used, hop)
    for part in range(used):
        if parts.hop[part] == HERE:
            subqueries.stays[at] = True
    return count


@step
def _next_above(parts: _Parts, used: int, hop: int) -> int:
    """The lowest next hop above this one; `HERE` if there is none."""
    lowest = HERE
    for part in range(used):
        other = parts.hop[part]
        if other > hop and (lowest == HERE or other < lowest):
            lowest = other
    return lowest


@rule
def _new_parts(room: int) -> _Parts:
    return _Parts(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32))
