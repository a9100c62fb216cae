"""TinyMQ III.D, one node of it: the next hop of an event, and how a query is split among next hops."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from serai.overlay.broker.configuration import NetworkConfiguration
from serai.overlay.broker.membership import Membership
from serai.overlay.broker.messages import Key, Prefix, Query, Region
from serai.overlay.tinymq import (
    AS_PRINTED,
    HERE,
    NEVER,
    NO_ROUTE,
    OTHER_TREE,
    is_nearer,
    is_prefix,
    is_split,
    preference,
    to_beat,
    touches,
)


class Link(NamedTuple):
    """A neighbour that a message may go to because of the neighbour's key."""

    neighbor: int
    relation: int
    key: Key


class Routes:
    """Where one node sends messages, given what it knows of the trees."""

    def __init__(self, configuration: NetworkConfiguration, membership: Membership) -> None:
        self.configuration = configuration
        self.membership = membership
        self.routing = configuration.settings.routing_code()
        self._links: dict[int, list[Link]] = {}  # by tree, worked out when needed

    def forget(self) -> None:
        """Keys or neighbours may have changed."""
        self._links.clear()

    def next_hop(self, tree: int, rendezvous_key: int) -> int:
        """Where a message for a tree goes from here: to a neighbour, `HERE`, or (`NO_ROUTE`) nowhere."""
        own, bits = self.membership.keys[tree], self.configuration.bits
        if own is None:
            return self._nearest(tree)
        beat = to_beat(self.routing, *own, self.membership.parent_length(tree), rendezvous_key, bits)
        most, hop = NEVER, HERE
        for neighbor, relation, key in self._links_in(tree):
            preferred = preference(self.routing, relation, beat, *key, rendezvous_key, bits)
            if preferred > most:
                most, hop = preferred, neighbor
        return hop

    def next_hops(self, query: Query, tree: int, region: Region) -> dict[int, list[Prefix]]:
        """The rendezvous keys of the query in the region, by where they go."""
        if self.membership.keys[tree] is None:
            return {self._nearest(tree): list(region)}
        hops: dict[int, list[Prefix]] = defaultdict(list)
        for prefix in region:
            for hop, part in self._split(query, tree, prefix):
                hops[hop].append(part)
        return hops

    def under(self, query: Query, region: Region, key: Key) -> Region:
        """The rendezvous keys of the query in the region that a node key begins."""
        bits = self.configuration.bits
        if key.length > bits:
            return ()
        prefix = Prefix(key.head, key.length)
        inner = [part for part in region if key.length <= part.length and is_prefix(*prefix, part.head, bits)]
        outer = [prefix for part in region if part.length < key.length and is_prefix(*part, key.head, bits)]
        return tuple(part for part in outer + inner if self._touches(query, part))

    def _nearest(self, tree: int) -> int:
        """The neighbour on the shortest path to a tree that the node does not stand in."""
        best, hop = self.membership.hops[tree], NO_ROUTE
        for neighbor, info in self.membership.links().items():
            if is_nearer(info.hops[tree], best):
                best, hop = info.hops[tree], neighbor
        return hop

    def _links_in(self, tree: int) -> list[Link]:
        """The neighbours whose keys count in a tree, by number."""
        if tree not in self._links:
            self._links[tree] = [link for neighbor in self.membership.links() for link in self._link(neighbor, tree)]
        return self._links[tree]

    def _link(self, neighbor: int, tree: int) -> Iterator[Link]:
        relation = self.membership.relation(neighbor, tree)
        if relation != OTHER_TREE:
            keys: Sequence[Key | None] = [self.membership.key_of(neighbor, tree)]
        elif self.routing == AS_PRINTED:  # the paper compares with keys of whatever tree
            keys = self.membership.neighbors[neighbor].keys
        else:
            keys = []
        yield from (Link(neighbor, relation, key) for key in keys if key is not None)

    def _split(self, query: Query, tree: int, prefix: Prefix) -> Iterator[tuple[int, Prefix]]:
        """The rendezvous keys of the query under a prefix, cut in half until all of each part have one next hop."""
        if not self._touches(query, prefix):
            return
        if self._may_part(tree, prefix):
            length = prefix.length + 1
            yield from self._split(query, tree, Prefix(prefix.head, length))
            yield from self._split(query, tree, Prefix(prefix.head | 1 << (self.configuration.bits - length), length))
        else:
            yield self.next_hop(tree, prefix.head), prefix

    def _may_part(self, tree: int, prefix: Prefix) -> bool:
        """Whether rendezvous keys under the prefix may have different next hops."""
        own, bits = self.membership.keys[tree], self.configuration.bits
        keys = [own, *(link.key for link in self._links_in(tree))]
        return any(key is not None and is_split(key.head, key.length, *prefix, bits) for key in keys)

    def _touches(self, query: Query, prefix: Prefix) -> bool:
        each = self.configuration.settings.attribute_bits
        return touches(query.first, query.last, *prefix, self.configuration.mapping, each)
