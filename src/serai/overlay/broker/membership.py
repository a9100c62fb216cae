"""TinyMQ III.B, one node of it: which trees it stands in, its neighbours' states, and its distances to the roots.

A node without a key asks the first neighbour it hears of that has one; that neighbour gives the key. What was lost with
a dead node is mended in two steps, so that nobody mends it with what is about to be lost as well: a node whose path to
a root, or whose key, hung on the dead forgets it at once and says so, and its neighbours do likewise; only with the
next `tick` does it look for another. Ticks must be far enough apart for that wave to end.
"""

from serai.overlay.broker.configuration import NetworkConfiguration
from serai.overlay.broker.messages import FAR, Assign, Effect, Info, Join, Key, Send
from serai.overlay.tinymq import CHILD, OTHER_TREE, PARENT, SAME_TREE, head_of_child


class Membership:
    """What one node knows of the trees."""

    def __init__(self, node: int, configuration: NetworkConfiguration) -> None:
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
        self.neighbors: dict[int, Info] = {}
        self._parent_keys: list[Key | None] = [None for _ in trees]  # what the node's own key was made from
        self._asked: list[int | None] = [None for _ in self.layers]
        self._without_key: set[int] = set()  # layers in which it waits for the next tick, having lost its key
        self._without_path: set[int] = set()  # trees to which it waits for the next tick, having lost the path

    # ---- what others ask

    def info(self) -> Info:
        """What the node tells its neighbours."""
        return Info(tuple(self.keys), tuple(self.hops))

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

    # ---- what happens

    def found(self, neighbor: int) -> list[Effect]:
        """A neighbour has come into reach."""
        self.neighbors.setdefault(neighbor, Info((None,) * len(self.keys), (FAR,) * len(self.keys)))
        return [Send(neighbor, self.info())]

    def lost(self, neighbor: int) -> list[Effect]:
        """A neighbour has gone, or died."""
        before = self.info()
        self.neighbors.pop(neighbor, None)
        for tree in range(len(self.keys)):
            self.children[tree].pop(neighbor, None)
            if self.parents[tree] == neighbor:
                self._lose_key(tree)
        self._asked = [None if asked == neighbor else asked for asked in self._asked]
        self._measure()
        return self._told_since(before) + self._seek()

    def heard(self, sender: int, info: Info) -> list[Effect]:
        """A neighbour has said what it stands for now."""
        if sender not in self.neighbors:
            return []
        before = self.info()
        self.neighbors[sender] = info
        for tree in range(len(self.keys)):
            if self.parents[tree] == sender and info.keys[tree] != self._parent_keys[tree]:
                self._lose_key(tree)
        self._check_ties(sender, info)
        self._measure()
        return self._told_since(before) + self._seek()

    def asked(self, sender: int, tree: int) -> list[Effect]:
        """A neighbour wants to be a child: it gets the lowest number that is free."""
        if self.keys[tree] is None or sender not in self.neighbors:
            return [Send(sender, self.info())]
        children = self.children[tree]
        if sender not in children:
            children[sender] = next(nth for nth in range(1, len(children) + 2) if nth not in children.values())
        return [Send(sender, Assign(tree, self._key_of_child(tree, children[sender])))]

    def assigned(self, sender: int, tree: int, key: Key) -> list[Effect]:
        """The neighbour that was asked has given a key."""
        layer = self._layer_of[tree]
        if self._asked[layer] != sender:
            return []
        self._asked[layer] = None
        self.keys[tree], self.parents[tree] = key, sender
        self._parent_keys[tree] = self.neighbors[sender].keys[tree]
        return [Send(None, self.info())]

    def tick(self) -> list[Effect]:
        """What was lost may be looked for again."""
        before = self.info()
        self._without_path.clear()
        self._without_key.clear()
        self._measure()
        return self._told_since(before) + self._seek()

    # ---- how

    def _check_ties(self, sender: int, info: Info) -> None:
        """A neighbour without a key cannot give one; a child with another key than its own has joined elsewhere."""
        for layer, trees in enumerate(self.layers):
            has_key = any(info.keys[tree] is not None for tree in trees)
            if self._asked[layer] == sender and not has_key:
                self._asked[layer] = None
            for tree in trees:
                nth = self.children[tree].get(sender)
                if nth is not None and has_key and info.keys[tree] != self._key_of_child(tree, nth):
                    del self.children[tree][sender]

    def _key_of_child(self, tree: int, nth: int) -> Key:
        own = self.keys[tree]
        assert own is not None, "only a node with a key has children"
        return Key(head_of_child(own.head, own.length, nth, self.bits), own.length + nth, own.depth + 1)

    def _lose_key(self, tree: int) -> None:
        self.keys[tree] = self.parents[tree] = self._parent_keys[tree] = None
        self.children[tree].clear()
        self._without_key.add(self._layer_of[tree])

    def _measure(self) -> None:
        """Distances (III.B 1): a shorter one is taken over; one that no neighbour accounts for is forgotten."""
        for tree, hops in enumerate(self.hops):
            if hops == 0 or tree in self._without_path:
                continue
            nearest = min((info.hops[tree] for info in self.neighbors.values()), default=FAR)
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
            offers = ((neighbor, tree) for neighbor in sorted(self.neighbors) for tree in trees)
            offer = next((offer for offer in offers if self.neighbors[offer[0]].keys[offer[1]] is not None), None)
            if offer is not None:
                self._asked[layer] = offer[0]
                asks.append(Send(offer[0], Join(offer[1])))
        return asks

    def _told_since(self, before: Info) -> list[Effect]:
        now = self.info()
        return [] if now == before else [Send(None, now)]
