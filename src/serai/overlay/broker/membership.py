"""TinyMQ III.B, one node of it: which trees it stands in, its neighbours' states, and its distances to the roots.

A node without a key asks the first neighbour it hears of that has one; that neighbour gives the key. What was lost with
a dead node is mended in two steps, so that nobody mends it with what is about to be lost as well: a node whose path to
a root, or whose key, hung on the dead forgets it at once and says so, and its neighbours do likewise; only with the
next `tick` does it look for another. Ticks must be far enough apart for that wave to end.

Messages may be late, lost, doubled or out of order. So a node says with every tick what it stands for, and all that it
says of itself is numbered: an older word never overrules a newer one. Two nodes that differ about what they are to each
other find out by that:

*   A link is what both ends count among their neighbours. Who does not find itself in a neighbour's `Info` gives up
    what hung on the link; who is told something by a stranger that counts it among its neighbours answers what it is.
*   A parent whose child says that it has another parent, or another key, lets it go. If the child says that it has a
    key from this node that this node has not given, it is told so (`Disown`), and looks for another.
*   A node that has started again has forgotten everything: with its new incarnation all that hung on the old one
    is gone.
"""

from typing import NamedTuple

from serai.overlay.broker.configuration import NetworkConfiguration
from serai.overlay.broker.messages import (
    FAR,
    LIFE_BITS,
    Assign,
    Disown,
    Effect,
    Info,
    Join,
    Key,
    Send,
    incarnation_of,
)
from serai.overlay.tinymq import CHILD, OTHER_TREE, PARENT, SAME_TREE, head_of_child


class Request(NamedTuple):
    """A `Join` that was not answered yet."""

    neighbor: int
    tree: int
    number: int


class Membership:
    """What one node knows of the trees."""

    def __init__(self, node: int, configuration: NetworkConfiguration, incarnation: int) -> None:
        roots, settings = configuration.roots, configuration.settings
        self.node = node
        self.bits = configuration.bits
        trees = range(len(roots))
        self.layers = settings.layers(len(roots))  # a node has one key in each layer
        self._own_layer = self.layers[settings.own_layer(node, len(self.layers))]
        self._layer_of = {tree: layer for layer, members in enumerate(self.layers) for tree in members}
        self.keys: list[Key | None] = [Key(0, 0, 0) if roots[tree] == node else None for tree in trees]
        self.parents: list[int | None] = [None for _ in trees]
        self.children: list[dict[int, int]] = [{} for _ in trees]  # which child each is: 1, 2, ..
        self.hops = [0 if roots[tree] == node else FAR for tree in trees]
        self.neighbors: dict[int, Info] = {}  # who can be heard, and what each has said last
        self._parent_keys: list[Key | None] = [None for _ in trees]  # what the node's own key was made from
        self._keyed_at = [0 for _ in trees]  # the number of the last word before the node had its key
        self._asked: list[Request | None] = [None for _ in self.layers]
        self._without_key: set[int] = set()  # layers in which it waits for the next tick, having lost its key
        self._without_path: set[int] = set()  # trees to which it waits for the next tick, having lost the path
        self._number = incarnation << LIFE_BITS
        self._latest: dict[int, int] = {}  # the highest number heard from each node, neighbour or not

    # ---- what others ask

    def info(self) -> Info:
        """What the node tells its neighbours."""
        asked = {request.tree: request.neighbor for request in self._asked if request is not None}
        parents = tuple(asked.get(tree, parent) for tree, parent in enumerate(self.parents))
        return Info(tuple(self.keys), tuple(self.hops), parents, frozenset(self.neighbors), self.next_number())

    def next_number(self) -> int:
        """The number of the next thing that the node says of itself."""
        self._number += 1
        return self._number

    def links(self) -> dict[int, Info]:
        """The neighbours that count this node among theirs, by number."""
        return {each: info for each, info in sorted(self.neighbors.items()) if self.node in info.neighbors}

    def relation(self, neighbor: int, tree: int) -> int:
        """What a neighbour is to this node in a tree."""
        if neighbor == self.parents[tree]:
            return PARENT
        if neighbor in self.children[tree]:
            return CHILD
        return OTHER_TREE if self.neighbors[neighbor].keys[tree] is None else SAME_TREE

    def key_of(self, neighbor: int, tree: int) -> Key | None:
        """The neighbour's key in a tree. A child's is known before it says so."""
        if (nth := self.children[tree].get(neighbor)) is not None:
            return self._key_of_child(tree, nth)
        return self.neighbors[neighbor].keys[tree]

    def parent_length(self, tree: int) -> int:
        """How long the parent's key is; a root has none."""
        key = self._parent_keys[tree]
        return 0 if key is None else key.length

    def own_tree(self) -> int | None:
        """The tree that is its own, if it has a key there."""
        return next((tree for tree in self._own_layer if self.keys[tree] is not None), None)

    def trees(self, which: str) -> list[int]:
        """The trees that a query or an event of this node goes to: all, or its `own` if it has a key there."""
        own = self.own_tree()
        if which == "own":
            return [] if own is None else [own]
        return list(range(len(self.keys)))

    # ---- what happens

    def found(self, neighbor: int) -> list[Effect]:
        """A neighbour has come into reach."""
        self.neighbors.setdefault(neighbor, self._silence())
        return [Send(neighbor, self.info())]

    def lost(self, neighbor: int) -> list[Effect]:
        """A neighbour has gone, or died."""
        before = self._state()
        self.neighbors.pop(neighbor, None)
        self._part_from(neighbor)
        return self._told_since(before) + self._seek()

    def left(self, neighbor: int, number: int) -> list[Effect]:
        """A neighbour says that it is about to go. It may come back before anybody has noticed that it was away."""
        if neighbor not in self.neighbors or number <= self._latest.get(neighbor, -1):
            return []
        before = self._state()
        self.neighbors[neighbor], self._latest[neighbor] = self._silence(), number
        self._part_from(neighbor)
        return self._told_since(before) + self._seek()

    def heard(self, sender: int, info: Info) -> list[Effect]:
        """A neighbour has said what it stands for now."""
        if sender not in self.neighbors:
            return [Send(sender, self.info())] if self.node in info.neighbors else []
        latest = self._latest.get(sender)
        if latest is not None and info.number <= latest:
            return []
        before = self._state()
        reborn = latest is not None and incarnation_of(info.number) != incarnation_of(latest)
        if reborn or self.node not in info.neighbors:
            self._part_from(sender)
        self.neighbors[sender], self._latest[sender] = info, info.number
        for tree in range(len(self.keys)):
            if self.parents[tree] == sender and info.keys[tree] != self._parent_keys[tree]:
                self._lose_key(tree)
        disowned = self._check_ties(sender, info)
        answer: list[Effect] = [Send(sender, self.info())] if reborn else []
        return answer + disowned + self._told_since(before) + self._seek()

    def asked(self, sender: int, join: Join) -> list[Effect]:
        """A neighbour wants to be a child: it gets the lowest number that is free."""
        effects, tree = self.heard(sender, join.info), join.tree
        own, last = self.keys[tree], self.neighbors.get(sender)
        if last is None or last.parents[tree] != self.node or last.keys[tree] is not None:
            return effects  # a stranger, or it has changed its mind since
        if own is None:
            return [*effects, Send(sender, self.info())]
        children = self.children[tree]
        if sender not in children:
            children[sender] = next(nth for nth in range(1, len(children) + 2) if nth not in children.values())
        return [*effects, Send(sender, Assign(tree, children[sender], own, join.info.number))]

    def assigned(self, sender: int, answer: Assign) -> list[Effect]:
        """The neighbour that was asked has given a key; one that it has lost since is of no use."""
        tree, layer = answer.tree, self._layer_of[answer.tree]
        if self._asked[layer] != (sender, tree, answer.number) or self.neighbors[sender].keys[tree] != answer.parent:
            return []
        self._asked[layer] = None
        self._keyed_at[tree] = self._number
        self.keys[tree], self.parents[tree] = child_key(answer.parent, answer.nth, self.bits), sender
        self._parent_keys[tree] = answer.parent
        return [Send(None, self.info())]

    def disowned(self, sender: int, tree: int, number: int) -> list[Effect]:
        """The parent does not know of this child, which said so after it had got its key."""
        if self.parents[tree] != sender or number <= self._keyed_at[tree]:
            return []
        before = self._state()
        self._lose_key(tree)
        return self._told_since(before) + self._seek()

    def tick(self) -> list[Effect]:
        """What was lost may be looked for again, and what was not answered is asked again."""
        self._without_path.clear()
        self._without_key.clear()
        self._asked = [None for _ in self.layers]
        self._measure()
        return [Send(None, self.info()), *self._seek()]

    # ---- how

    def _check_ties(self, sender: int, info: Info) -> list[Effect]:
        """What a neighbour says of its parents, beside what this node knows of it."""
        self._asked = [
            None if asked is not None and asked.neighbor == sender and info.keys[asked.tree] is None else asked
            for asked in self._asked
        ]
        disowned: list[Effect] = []
        for tree, children in enumerate(self.children):
            is_child, said = info.parents[tree] == self.node, info.keys[tree]
            if sender in children and not (is_child and said in (None, self._key_of_child(tree, children[sender]))):
                del children[sender]
            if is_child and said is not None and sender not in children:
                disowned.append(Send(sender, Disown(tree, info.number)))
        return disowned

    def _silence(self) -> Info:
        """What is known of a neighbour that has said nothing."""
        nothing = (None,) * len(self.keys)
        return Info(nothing, (FAR,) * len(self.keys), nothing, frozenset(), -1)

    def _key_of_child(self, tree: int, nth: int) -> Key:
        own = self.keys[tree]
        assert own is not None, "only a node with a key has children"
        return child_key(own, nth, self.bits)

    def _part_from(self, neighbor: int) -> None:
        """Nothing hangs on this neighbour any more."""
        for tree in range(len(self.keys)):
            self.children[tree].pop(neighbor, None)
            if self.parents[tree] == neighbor:
                self._lose_key(tree)
        self._asked = [None if asked is not None and asked.neighbor == neighbor else asked for asked in self._asked]

    def _lose_key(self, tree: int) -> None:
        self.keys[tree] = self.parents[tree] = self._parent_keys[tree] = None
        self.children[tree].clear()
        self._without_key.add(self._layer_of[tree])

    def _measure(self) -> None:
        """Distances (III.B 1): a shorter one is taken over; one that no neighbour accounts for is forgotten."""
        links = self.links().values()
        for tree, hops in enumerate(self.hops):
            if hops == 0 or tree in self._without_path:
                continue
            nearest = min((info.hops[tree] for info in links), default=FAR)
            if nearest + 1 < hops:
                self.hops[tree] = nearest + 1
            elif hops != FAR and nearest + 1 > hops:
                self.hops[tree] = FAR
                self._without_path.add(tree)

    def _seek(self) -> list[Effect]:
        """Ask to be the child of the neighbour with the lowest number that has a key."""
        asks: list[Effect] = []
        for layer, trees in enumerate(self.layers):
            has_key = any(self.keys[tree] is not None for tree in trees)
            if has_key or layer in self._without_key or self._asked[layer] is not None:
                continue
            offers = ((neighbor, info, tree) for neighbor, info in self.links().items() for tree in trees)
            for neighbor, info, tree in offers:
                if info.keys[tree] is not None:
                    self._asked[layer] = Request(neighbor, tree, self._number + 1)  # the number of the next info
                    asks.append(Send(neighbor, Join(tree, self.info())))
                    break
        return asks

    def _state(self) -> tuple[list[Key | None], list[int]]:
        return self.keys.copy(), self.hops.copy()

    def _told_since(self, before: tuple[list[Key | None], list[int]]) -> list[Effect]:
        """Measure anew, and tell all neighbours if the node stands for something else than before."""
        self._measure()
        return [] if self._state() == before else [Send(None, self.info())]


def child_key(parent: Key, nth: int, bits: int) -> Key:
    """The key of the nth child (1, 2, ..) of the node with this key."""
    return Key(head_of_child(parent.head, parent.length, nth, bits), parent.length + nth, parent.depth + 1)
