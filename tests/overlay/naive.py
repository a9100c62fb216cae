"""docs/overlay/tinymq.md word for word: all keys are texts of 0 and 1, a query is the set of its rendezvous keys.

Nothing is cut, packed or shared out here, and nothing is sent: the whole network is looked at from above.
"""

from collections import Counter, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

HERE, NO_ROUTE = -1, -2

Links = dict[int, set[int]]  # the neighbours of each node


def common(one: str, other: str) -> int:
    """How many characters the two begin with in common."""
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


def rendezvous_key_of(cells: Iterable[int], bits: int, mapping: str = "split") -> str:
    """The cells' bits one after the other, or in turn."""
    texts = [format(cell, f"0{bits}b") for cell in cells]
    if mapping == "split":
        return "".join(texts)
    return "".join("".join(nth) for nth in zip(*texts, strict=True))


def rendezvous_keys_of(first: Iterable[int], last: Iterable[int], bits: int, mapping: str = "split") -> frozenset[str]:
    """All rendezvous keys of a box of cells."""
    ranges = [range(low, high + 1) for low, high in zip(first, last, strict=True)]
    return frozenset(rendezvous_key_of(cells, bits, mapping) for cells in product(*ranges))


class Message(NamedTuple):
    """One transmission of a part of a query."""

    query: Hashable
    tree: int
    sender: int
    receiver: int
    rendezvous_keys: frozenset[str]


@dataclass(eq=False)
class Subquery:
    """A query message where it arrived, or the query at its subscriber's node."""

    query: Hashable
    tree: int
    node: int
    rendezvous_keys: frozenset[str]
    back: "Subquery | None"
    version: int = 0
    onward: list[int] = field(default_factory=list)  # to whom parts of it were sent


class Walk(NamedTuple):
    """The nodes an event or a notification went through, and why it stopped."""

    path: tuple[int, ...]
    end: str


@dataclass
class Overlay:
    """A network, its trees, and the queries in it."""

    links: Links
    roots: tuple[int, ...]
    routing: str = "strict"
    layers: tuple[tuple[int, ...], ...] = ()  # of trees; none given: one of all, as in TinyMQ
    query_trees: str = "all"
    event_trees: str = "own"
    zones: str = "arrival"
    kept: dict[tuple[int, int], str] = field(default_factory=dict)  # (tree, node): what keys of new children begin with
    keys: list[dict[int, str]] = field(default_factory=list)  # [tree][node]
    parents: list[dict[int, int]] = field(default_factory=list)
    astray: list[set[int]] = field(default_factory=list)  # [tree] who has lost the path to its root
    subqueries: list[Subquery] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    delivered: set[tuple[Hashable, Hashable]] = field(default_factory=set)  # (event, query)

    def __post_init__(self) -> None:
        self.keys = [{root: ""} for root in self.roots]
        self.parents = [{} for _ in self.roots]
        self.astray = [set() for _ in self.roots]
        self.layers = self.layers or (tuple(range(len(self.roots))),)
        for trees in self.layers:
            self.grow(trees, [self.roots[tree] for tree in trees])
        if self.zones == "subtree":
            for tree, root in enumerate(self.roots):
                self.share_out(tree, root)

    # --- Trees ----------------------------------------------------------------------------------------------

    def tree_of(self, node: int, trees: tuple[int, ...]) -> int | None:
        return next((tree for tree in trees if node in self.keys[tree]), None)

    def own_tree(self, node: int) -> int | None:
        return self.tree_of(node, self.layers[node % len(self.layers)])

    def children(self, tree: int, node: int) -> list[int]:
        return [child for child, parent in self.parents[tree].items() if parent == node]

    def grow(self, trees: tuple[int, ...], first: list[int]) -> None:
        queue = deque(first)
        while queue:
            parent = queue.popleft()
            for other in sorted(self.links[parent]):
                if self.tree_of(other, trees) is None:
                    self.join(other, parent, trees)
                    queue.append(other)

    def join(self, child: int, parent: int, trees: tuple[int, ...]) -> None:
        tree = self.tree_of(parent, trees)
        assert tree is not None
        taken = {self.keys[tree][sibling] for sibling in self.children(tree, parent)}
        zeros = ""
        kept = self.kept.get((tree, parent), self.keys[tree][parent])
        while (key := kept + zeros + "1") in taken:
            zeros += "0"
        self.keys[tree][child] = key
        self.parents[tree][child] = parent
        self.hand_off(tree, parent, child)

    def share_out(self, tree: int, node: int) -> None:
        """Put the two lightest of the node and its children's subtrees together, again and again, until all are one."""
        words = {node: "", **dict.fromkeys(self.children(tree, node), "")}
        groups = [[member] for member in words]
        while len(groups) > 1:
            weights = [sum(self.weight(tree, node, member) for member in group) for group in groups]
            first = weights.index(min(weights))
            lighter, weights[first] = groups[first], 10**9
            heavier = groups[weights.index(min(weights))]
            for member in lighter:
                words[member] = "1" + words[member]
            for member in heavier:
                words[member] = "0" + words[member]
            groups = [group for group in groups if group not in (lighter, heavier)] + [lighter + heavier]
        self.kept[tree, node] = self.keys[tree][node] + words.pop(node)
        for child, word in words.items():
            self.keys[tree][child] = self.keys[tree][node] + word
            self.share_out(tree, child)

    def weight(self, tree: int, node: int, member: int) -> int:
        """One for the node itself, and for a child as many as stand in its subtree."""
        if member == node:
            return 1
        return 1 + sum(self.weight(tree, member, child) for child in self.children(tree, member))

    def hops(self, tree: int) -> dict[int, int]:
        """How far each node that knows it is from the tree's root."""
        return {node: hops for node, hops in self.true_hops(tree).items() if node not in self.astray[tree]}

    def true_hops(self, tree: int) -> dict[int, int]:
        found = {self.roots[tree]: 0}
        queue = deque(found)
        while queue:
            node = queue.popleft()
            for other in self.links[node] - found.keys():
                found[other] = found[node] + 1
                queue.append(other)
        return found

    def rendezvous(self, tree: int, rendezvous_key: str) -> int:
        """The node with the longest key that begins the rendezvous key."""
        found = [node for node, key in self.keys[tree].items() if rendezvous_key.startswith(key)]
        return max(found, key=lambda node: len(self.keys[tree][node]))

    # --- Where a rendezvous key goes --------------------------------------------------------------------------------

    def next_hop(self, tree: int, node: int, rendezvous_key: str) -> int:
        if node not in self.keys[tree]:
            hops = self.hops(tree)
            near = [(hops[other], other) for other in self.links[node] if other in hops]
            return min(near)[1] if near else NO_ROUTE
        if self.routing == "greedy":
            return self.nearest_in_tree(tree, node, rendezvous_key)
        key, children = self.keys[tree][node], self.children(tree, node)
        if rendezvous_key.startswith(key):
            return next((child for child in children if rendezvous_key.startswith(self.keys[tree][child])), HERE)
        parent = self.parents[tree][node]
        if self.routing == "as-printed":
            known = {other: self.some_key(other) for other in self.links[node] - set(children)}
            limit = common(self.keys[tree][parent], rendezvous_key)
        else:
            known = {other: self.keys[tree].get(other) for other in self.links[node] - set(children)}
            limit = common(key, rendezvous_key)
        found = {
            other: common(other_key, rendezvous_key) for other, other_key in known.items() if other_key is not None
        }
        longest = max(found.values())
        if self.routing == "tree-edges" or longest <= limit:
            return parent
        return min(other for other in found if found[other] == longest)

    def some_key(self, node: int) -> str | None:
        """The node's key in whatever tree it stands in (TinyMQ)."""
        return next((keys[node] for keys in self.keys if node in keys), None)

    def nearest_in_tree(self, tree: int, node: int, rendezvous_key: str) -> int:
        goal = self.rendezvous(tree, rendezvous_key)
        distance = {
            other: self.hops_in_tree(tree, other, goal)
            for other in self.links[node] | {node}
            if other in self.keys[tree]
        }
        least = min(distance.values())
        return HERE if distance[node] == least else min(other for other in distance if distance[other] == least)

    def hops_in_tree(self, tree: int, one: int, other: int) -> int:
        """The number of tree edges between two nodes."""
        up, down = self.path_to_root(tree, one), self.path_to_root(tree, other)
        return len(set(up) ^ set(down))

    def path_to_root(self, tree: int, node: int) -> list[int]:
        path = [node]
        while path[-1] in self.parents[tree]:
            path.append(self.parents[tree][path[-1]])
        return path

    # --- Queries --------------------------------------------------------------------------------------------

    def subscribe(self, query: Hashable, node: int, rendezvous_keys: frozenset[str], version: int = 0) -> None:
        own = self.own_tree(node)
        trees = range(len(self.roots)) if self.query_trees == "all" else [] if own is None else [own]
        for tree in trees:
            self.spread(deque([Subquery(query, tree, node, rendezvous_keys, None, version)]))

    def forget(self, version: int) -> None:
        """The lease of all subqueries of queries before this version has ended."""
        self.subqueries = [subquery for subquery in self.subqueries if subquery.version >= version]

    def spread(self, queue: deque[Subquery]) -> None:
        """Subqueries arrive, and their rendezvous keys go on, in the order in which they were sent."""
        while queue:
            subquery = queue.popleft()
            if self.routing == "as-printed":
                self.spread_as_printed(subquery, queue)
                continue
            self.subqueries.append(subquery)
            hops = {
                rendezvous_key: self.next_hop(subquery.tree, subquery.node, rendezvous_key)
                for rendezvous_key in subquery.rendezvous_keys
            }
            for hop in sorted({hop for hop in hops.values() if hop >= 0}):
                self.send(
                    subquery,
                    hop,
                    frozenset(rendezvous_key for rendezvous_key in hops if hops[rendezvous_key] == hop),
                    queue,
                )

    def spread_as_printed(self, subquery: Subquery, queue: deque[Subquery]) -> None:
        """Algorithm 3.1, line by line."""
        tree, node, rendezvous_keys = subquery.tree, subquery.node, subquery.rendezvous_keys
        if any(self.is_same(subquery, seen) for seen in self.subqueries):
            return
        self.subqueries.append(subquery)
        if node not in self.keys[tree]:
            hop = self.next_hop(tree, node, "")
            receivers = {hop} if hop >= 0 else set()
            subquery.rendezvous_keys = frozenset()
        else:
            elsewhere = {
                rendezvous_key
                for rendezvous_key in rendezvous_keys
                if not rendezvous_key.startswith(self.keys[tree][node])
            }
            receivers = {self.next_hop(tree, node, rendezvous_key) for rendezvous_key in elsewhere} or set(
                self.children(tree, node)
            )
            if elsewhere or all(
                self.next_hop(tree, node, rendezvous_key) != HERE for rendezvous_key in rendezvous_keys
            ):
                subquery.rendezvous_keys = frozenset()
        for receiver in sorted(receivers):
            self.send(subquery, receiver, rendezvous_keys, queue)

    def is_same(self, subquery: Subquery, seen: Subquery) -> bool:
        same = subquery.query == seen.query and subquery.version == seen.version
        return same and subquery.tree == seen.tree and subquery.node == seen.node

    def send(self, subquery: Subquery, receiver: int, rendezvous_keys: frozenset[str], queue: deque[Subquery]) -> None:
        self.messages.append(Message(subquery.query, subquery.tree, subquery.node, receiver, rendezvous_keys))
        subquery.onward.append(receiver)
        queue.append(Subquery(subquery.query, subquery.tree, receiver, rendezvous_keys, subquery, subquery.version))

    def stored(self) -> set[tuple[Hashable, int, int]]:
        """(query, tree, node) wherever the query is stored."""
        return {
            (subquery.query, subquery.tree, subquery.node)
            for subquery in self.subqueries
            if any(
                self.next_hop(subquery.tree, subquery.node, rendezvous_key) == HERE
                for rendezvous_key in subquery.rendezvous_keys
            )
        }

    def unsubscribe(self, query: Hashable) -> Counter[tuple[int, int]]:
        """Remove the query wherever its subscriber can reach; the messages (sender, receiver) that this takes."""
        gone = [subquery for subquery in self.subqueries if subquery.query == query and self.is_reached(subquery)]
        self.subqueries = [subquery for subquery in self.subqueries if subquery not in gone]
        return Counter(
            (subquery.node, to) for subquery in gone for to in subquery.onward if to in self.links[subquery.node]
        )

    def is_reached(self, subquery: Subquery) -> bool:
        """Whether the subquery has come over links that are still there."""
        if subquery.back is None:
            return True
        return subquery.node in self.links.get(subquery.back.node, set()) and self.is_reached(subquery.back)

    # --- Events ---------------------------------------------------------------------------------------------

    def publish(
        self, event: Hashable, node: int, rendezvous_key: str, wanted: set[Hashable]
    ) -> tuple[list[Walk], list[Walk]]:
        """The paths of the event and of its notifications; `wanted`: the queries whose boxes its values lie in."""
        own = self.own_tree(node)
        trees = range(len(self.roots)) if self.event_trees == "all" else [] if own is None else [own]
        events, notifications = [], []
        for tree in trees:
            walk = self.walk(tree, node, rendezvous_key)
            events.append(walk)
            if walk.end == "here":
                found = {
                    subquery.query: subquery
                    for subquery in self.subqueries
                    if self.answers(subquery, tree, walk.path[-1], rendezvous_key)
                }
                notifications += [self.notify(event, subquery) for query, subquery in found.items() if query in wanted]
        return events, notifications

    def walk(self, tree: int, node: int, rendezvous_key: str) -> Walk:
        path = [node]
        while True:
            hop = self.next_hop(tree, path[-1], rendezvous_key)
            if hop < 0:
                return Walk(tuple(path), "here" if hop == HERE else "no-route")
            path.append(hop)
            if hop in path[:-1]:
                return Walk(tuple(path), "loop")

    def answers(self, subquery: Subquery, tree: int, node: int, rendezvous_key: str) -> bool:
        return subquery.tree == tree and subquery.node == node and rendezvous_key in subquery.rendezvous_keys

    def notify(self, event: Hashable, subquery: Subquery) -> Walk:
        path = [subquery.node]
        while subquery.back is not None:
            if subquery.back.node not in self.links[subquery.node]:
                return Walk(tuple(path), "broken-path")
            subquery = subquery.back
            path.append(subquery.node)
        if (event, subquery.query) in self.delivered:
            return Walk(tuple(path), "duplicate")
        self.delivered.add((event, subquery.query))
        return Walk(tuple(path), "delivered")

    # --- Joins and failures ---------------------------------------------------------------------------------

    def hand_off(self, tree: int, parent: int, child: int) -> None:
        if self.routing == "as-printed":
            return
        for subquery in list(self.subqueries):
            rendezvous_keys = frozenset(
                rendezvous_key
                for rendezvous_key in subquery.rendezvous_keys
                if rendezvous_key.startswith(self.keys[tree][child])
            )
            if subquery.tree == tree and subquery.node == parent and rendezvous_keys:
                self.messages.append(Message(subquery.query, tree, parent, child, rendezvous_keys))
                subquery.onward.append(child)
                self.subqueries.append(
                    Subquery(subquery.query, tree, child, rendezvous_keys, subquery, subquery.version)
                )

    def fail(self, dead: set[int]) -> list[set[int]]:
        """The loss: who has lost the key, in each tree."""
        before = [self.hops(tree) for tree in range(len(self.roots))]
        self.links = {node: others - dead for node, others in self.links.items() if node not in dead}
        self.subqueries = [subquery for subquery in self.subqueries if subquery.node not in dead]
        lost = []
        for tree in range(len(self.roots)):
            hit = {node for node in self.keys[tree] if dead & set(self.path_to_root(tree, node))}
            for node in hit:
                del self.keys[tree][node], self.parents[tree][node]
                self.kept.pop((tree, node), None)
            lost.append(hit - dead)
            now = self.true_hops(tree)
            self.astray[tree] = {node for node in self.links if node not in now or now[node] != before[tree].get(node)}
        return lost

    def add(self, node: int, neighbors: set[int]) -> None:
        """A node comes into reach of these, and joins with all who had no key for want of a path."""
        self.links[node] = set(neighbors)
        for other in neighbors:
            self.links[other].add(node)
        self.rejoin()

    def rejoin(self) -> None:
        self.astray = [set() for _ in self.roots]
        for trees in self.layers:
            keyed = {node for tree in trees for node in self.keys[tree]}
            joined = []
            for node in sorted(self.links.keys() - keyed):
                if self.links[node] & keyed:
                    self.join(node, min(self.links[node] & keyed), trees)
                    joined.append(node)
            self.grow(trees, joined)
