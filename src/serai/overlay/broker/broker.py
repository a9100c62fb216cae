"""One node of TinyMQ or PUB-2-SUB+ as a pure object: it is told what happened, and says what to send.

A `Broker` has no clock, draws nothing at random and does no I/O. Whoever drives it (a simulation, a test, a live node)
calls one of its methods when something happens, with the time where time matters, and carries out the effects it
returns: messages to send, events to hand to a local subscriber, messages that were lost here and why. The driver knows
which neighbours can be heard, and says so (`found`, `lost`).

    start                                  a root begins to advertise
    found, lost                            a neighbour comes or goes
    receive                                a message has come
    subscribe, unsubscribe, publish        what the local application wants
    tick                                   time has passed: repair, renewal, leases

The rules are in docs/overlay/tinymq.md; every decision is a function of serai.overlay.tinymq.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from serai.core.content import matches
from serai.core.errors import BadInput
from serai.overlay.broker.configuration import Terms
from serai.overlay.broker.membership import Membership
from serai.overlay.broker.messages import (
    EVERYTHING,
    Assign,
    Deliver,
    Drop,
    Effect,
    Event,
    Info,
    Join,
    Key,
    Message,
    Notify,
    Prefix,
    Publish,
    Query,
    Region,
    Send,
    Subscribe,
    Unsubscribe,
)
from serai.overlay.tinymq import (
    AS_PRINTED,
    NEVER,
    OTHER_TREE,
    is_nearer,
    is_prefix,
    is_split,
    preference,
    to_beat,
    touches,
)

HERE = -1
"""The next hop of a string that has arrived."""

NO_ROUTE = -2
"""The next hop of a string that cannot go on."""


@dataclass
class Piece:
    """A query message as it was received here, or begun here (`sender` is then the node itself)."""

    query: Query
    version: int
    tree: int
    region: Region  # the strings that this node answers for, or has sent on
    sender: int
    label: int  # the sender's
    ends_s: float
    onward: list[tuple[int, int]] = field(default_factory=list)  # to whom parts of it were sent, and our labels


@dataclass
class Subscription:
    """A query of the local application."""

    query: Query
    version: int
    renewal_s: float  # when it will be sent anew


class Link(NamedTuple):
    """A neighbour that a string may go to by its key."""

    neighbor: int
    relation: int
    key: Key


class Broker:
    """One node of the overlay."""

    def __init__(self, node: int, terms: Terms) -> None:
        self.node = node
        self.terms = terms
        self.membership = Membership(node, terms.roots, spanning=terms.spanning, bits=terms.bits)
        self.pieces: dict[tuple[int, int], Piece] = {}  # by sender and label, in the order in which they came
        self.subscriptions: dict[Hashable, Subscription] = {}
        self._labels = 0
        self._labelled: dict[int, Piece] = {}  # the piece that was sent on under a label of ours
        self._delivered: dict[tuple[Hashable, Hashable], float] = {}  # (query, event), and when
        self._links: dict[int, list[Link]] = {}  # by tree, worked out when needed

    # ---- what happens to the node

    def start(self) -> list[Effect]:
        """A root tells its neighbours who it is; all others have nothing to say yet."""
        return [Send(None, self.membership.info())] if 0 in self.membership.hops else []

    def found(self, neighbor: int) -> list[Effect]:
        """A neighbour can be heard."""
        self._links.clear()
        return self.membership.found(neighbor)

    def lost(self, neighbor: int) -> list[Effect]:
        """A neighbour cannot be heard any more."""
        self._links.clear()
        return self.membership.lost(neighbor)

    def receive(self, sender: int, message: Message, now_s: float) -> list[Effect]:
        """A message from a neighbour."""
        match message:
            case Info() | Join() | Assign():
                return self._receive_state(sender, message, now_s)
            case Subscribe():
                return self._accept(sender, message, now_s)
            case Unsubscribe(label):
                return self._forget(sender, label)
            case Publish():
                return self._forward(message, now_s)
            case Notify(event, label):
                return self._pass_back(event, label, now_s)

    def tick(self, now_s: float) -> list[Effect]:
        """Time has passed: look for what was lost, renew the node's own queries, forget what nobody has renewed."""
        self._links.clear()
        effects = self.membership.tick()
        for key in [key for key, piece in self.pieces.items() if piece.ends_s <= now_s]:
            self._remove(key)
        oldest_s = now_s - self.terms.lease_s
        self._delivered = {pair: when_s for pair, when_s in self._delivered.items() if when_s > oldest_s}
        for subscription in self.subscriptions.values():
            if subscription.renewal_s <= now_s:
                subscription.version += 1
                effects += self._send_out(subscription, now_s)
        return effects

    # ---- what the local application wants

    def subscribe(self, query: Query, now_s: float) -> list[Effect]:
        """Ask for the events that the query matches, until `unsubscribe`."""
        if query.name in self.subscriptions:
            raise BadInput(f"query {query.name!r}: node {self.node} has asked it already; unsubscribe it first")
        self.subscriptions[query.name] = subscription = Subscription(query, 0, now_s)
        return self._send_out(subscription, now_s)

    def unsubscribe(self, name: Hashable) -> list[Effect]:
        """Ask for the query's events no more."""
        if self.subscriptions.pop(name, None) is None:
            raise BadInput(f"query {name!r}: node {self.node} has not asked it")
        own = [key for key, piece in self.pieces.items() if key[0] == self.node and piece.query.name == name]
        return [effect for key in own for effect in self._forget(*key)]

    def publish(self, event: Event, now_s: float) -> list[Effect]:
        """Tell the event to all who asked for it."""
        trees = self._trees(self.terms.settings.event_trees)
        if not trees:  # the node has lost its key
            return [Drop(Publish(event, NO_ROUTE, ()), "no-route")]
        return [effect for tree in trees for effect in self._forward(Publish(event, tree, ()), now_s)]

    def _trees(self, which: str) -> list[int]:
        own = self.membership.own_tree()
        if which == "own":
            return [] if own is None else [own]
        return list(range(len(self.terms.roots)))

    # ---- III.B: trees

    def _receive_state(self, sender: int, message: Info | Join | Assign, now_s: float) -> list[Effect]:
        self._links.clear()
        match message:
            case Info():
                return self.membership.heard(sender, message)
            case Assign(tree, key):
                return self.membership.assigned(sender, tree, key)
            case Join(tree):
                is_new = sender not in self.membership.children[tree]
                effects = self.membership.asked(sender, tree)
                return effects + self._hand_off(sender, tree, now_s) if is_new else effects

    def _hand_off(self, child: int, tree: int, now_s: float) -> list[Effect]:
        """Send a new child the strings that are its from now on. (The paper forgets them, and prints nothing.)"""
        if child not in self.membership.children[tree] or self.terms.routing == AS_PRINTED:
            return []
        key = self.membership.key_of(child, tree)
        effects: list[Effect] = []
        for piece in self.pieces.values():
            if piece.tree == tree and key is not None and (region := self._under(piece, key)):
                effects.append(self._send_on(piece, child, region, now_s))
        return effects

    def _under(self, piece: Piece, key: Key) -> Region:
        """The strings of the piece that the key begins."""
        if key.length > self.terms.bits:
            return ()
        prefix, bits = Prefix(key.head, key.length), self.terms.bits
        inner = [part for part in piece.region if key.length <= part.length and is_prefix(*prefix, part.head, bits)]
        outer = [prefix for part in piece.region if part.length < key.length and is_prefix(*part, key.head, bits)]
        return tuple(part for part in outer + inner if self._touches(piece.query, part))

    # ---- III.D: queries

    def _send_out(self, subscription: Subscription, now_s: float) -> list[Effect]:
        subscription.renewal_s = now_s + self.terms.renewal_s
        effects: list[Effect] = []
        for tree in self._trees(self.terms.settings.query_trees):
            self._labels += 1
            query, version = subscription.query, subscription.version
            message = Subscribe(query, version, tree, EVERYTHING, self._labels, self.terms.lease_s)
            effects += self._accept(self.node, message, now_s)
        return effects

    def _accept(self, sender: int, message: Subscribe, now_s: float) -> list[Effect]:
        """Take in a piece, and send its strings on to where they belong."""
        if self.terms.routing == AS_PRINTED:
            return self._accept_as_printed(sender, message, now_s)
        piece = self._keep(sender, message, now_s)
        hops = self.next_hops(piece.query, piece.tree, piece.region)
        lost: list[Effect] = [Drop(message, "no-route")] if NO_ROUTE in hops else []
        return lost + [self._send_on(piece, hop, tuple(hops[hop]), now_s) for hop in sorted(hops) if hop >= 0]

    def _accept_as_printed(self, sender: int, message: Subscribe, now_s: float) -> list[Effect]:
        """Algorithm 3.1 to the letter: the query is never cut, and stored only where nothing of it goes elsewhere."""
        key = message.query.name, message.version, message.tree
        if any((piece.query.name, piece.version, piece.tree) == key for piece in self.pieces.values()):
            return []  # line 3
        piece = self._keep(sender, message, now_s)
        hops = self.next_hops(piece.query, piece.tree, EVERYTHING)
        children = set(self.membership.children[piece.tree])
        elsewhere = hops.keys() - children - {HERE}  # lines 8-16: some string does not begin with the node's key
        if elsewhere or HERE not in hops:
            piece.region = ()
        receivers = elsewhere or children
        lost: list[Effect] = [Drop(message, "no-route")] if NO_ROUTE in receivers else []
        return lost + [self._send_on(piece, hop, EVERYTHING, now_s) for hop in sorted(receivers) if hop >= 0]

    def _keep(self, sender: int, message: Subscribe, now_s: float) -> Piece:
        query, version, tree, region = message.query, message.version, message.tree, message.region
        piece = Piece(query, version, tree, region, sender, message.label, now_s + message.lease_s)
        self.pieces[sender, message.label] = piece
        return piece

    def _send_on(self, piece: Piece, to: int, region: Region, now_s: float) -> Send:
        self._labels += 1
        self._labelled[self._labels] = piece
        piece.onward.append((to, self._labels))
        lease_s = piece.ends_s - now_s
        return Send(to, Subscribe(piece.query, piece.version, piece.tree, region, self._labels, lease_s))

    def _forget(self, sender: int, label: int) -> list[Effect]:
        """Remove a piece here and wherever it was sent on to."""
        piece = self._remove((sender, label))
        if piece is None:
            return []
        return [Send(to, Unsubscribe(label)) for to, label in piece.onward if to in self.membership.neighbors]

    def _remove(self, key: tuple[int, int]) -> Piece | None:
        piece = self.pieces.pop(key, None)
        if piece is not None:
            for _, label in piece.onward:
                del self._labelled[label]
        return piece

    # ---- III.D: events

    def _forward(self, message: Publish, now_s: float) -> list[Effect]:
        """Algorithm 3.2: send the event on, or match it here."""
        if self.node in message.path:
            return [Drop(message, "loop")]
        hop = self.next_hop(message.tree, message.event.string)
        if hop == HERE:
            return self._match(message.event, message.tree, now_s)
        if hop == NO_ROUTE:
            return [Drop(message, "no-route")]
        return [Send(hop, Publish(message.event, message.tree, (*message.path, self.node)))]

    def _match(self, event: Event, tree: int, now_s: float) -> list[Effect]:
        """Notify each query that matches, along the piece of it that came last."""
        found: dict[Hashable, Piece] = {}
        for piece in self.pieces.values():
            if piece.tree == tree and self._holds(piece.region, event.string):
                found[piece.query.name] = piece
        wanted = [piece for piece in found.values() if matches(event.values, piece.query.low, piece.query.high)]
        return [effect for piece in wanted for effect in self._notify(piece, event, now_s)]

    def _notify(self, piece: Piece, event: Event, now_s: float) -> list[Effect]:
        """One step back along a piece; at its beginning the event is delivered."""
        message = Notify(event, piece.label)
        if piece.sender != self.node:
            is_there = piece.sender in self.membership.neighbors
            return [Send(piece.sender, message) if is_there else Drop(message, "broken-path")]
        pair = piece.query.name, event.name
        if pair in self._delivered:
            return [Drop(message, "duplicate")]
        self._delivered[pair] = now_s
        return [Deliver(event, piece.query)]

    def _pass_back(self, event: Event, label: int, now_s: float) -> list[Effect]:
        piece = self._labelled.get(label)
        return [Drop(Notify(event, label), "broken-path")] if piece is None else self._notify(piece, event, now_s)

    # ---- III.D: where strings go

    def next_hop(self, tree: int, string: int) -> int:
        """Where a string for a tree goes from here: to a neighbour, `HERE`, or (`NO_ROUTE`) nowhere."""
        own, bits, routing = self.membership.keys[tree], self.terms.bits, self.terms.routing
        if own is None:
            return self._nearest(tree)
        beat = to_beat(routing, *own, self.membership.parent_length(tree), string, bits)
        most, hop = NEVER, HERE
        for neighbor, relation, key in self._links_in(tree):
            liking = preference(routing, relation, beat, *key, string, bits)
            if liking > most:
                most, hop = liking, neighbor
        return hop

    def _nearest(self, tree: int) -> int:
        """The neighbour on the way to a tree that the node does not stand in."""
        best, hop = self.membership.hops[tree], NO_ROUTE
        for neighbor, info in sorted(self.membership.neighbors.items()):
            if is_nearer(info.hops[tree], best):
                best, hop = info.hops[tree], neighbor
        return hop

    def _links_in(self, tree: int) -> list[Link]:
        """The neighbours whose keys count in a tree, by number; as printed those of other trees, too."""
        if tree not in self._links:
            self._links[tree] = [
                link for neighbor in sorted(self.membership.neighbors) for link in self._link(neighbor, tree)
            ]
        return self._links[tree]

    def _link(self, neighbor: int, tree: int) -> Iterator[Link]:
        relation = self.membership.relation(neighbor, tree)
        if relation != OTHER_TREE:
            keys: Sequence[Key | None] = [self.membership.key_of(neighbor, tree)]
        elif self.terms.routing == AS_PRINTED:
            keys = self.membership.neighbors[neighbor].keys
        else:
            keys = []
        yield from (Link(neighbor, relation, key) for key in keys if key is not None)

    def next_hops(self, query: Query, tree: int, region: Region) -> dict[int, list[Prefix]]:
        """The strings of the query in the region, by where they go."""
        if self.membership.keys[tree] is None:
            return {self._nearest(tree): list(region)}
        hops: dict[int, list[Prefix]] = defaultdict(list)
        for prefix in region:
            for hop, part in self._parted(query, tree, prefix):
                hops[hop].append(part)
        return hops

    def _parted(self, query: Query, tree: int, prefix: Prefix) -> Iterator[tuple[int, Prefix]]:
        """The strings of the query under a prefix, parted until each part goes one way."""
        if not self._touches(query, prefix):
            return
        if self._goes_two_ways(tree, prefix):
            length = prefix.length + 1
            yield from self._parted(query, tree, Prefix(prefix.head, length))
            yield from self._parted(query, tree, Prefix(prefix.head | 1 << (self.terms.bits - length), length))
        else:
            yield self.next_hop(tree, prefix.head), prefix

    def _goes_two_ways(self, tree: int, prefix: Prefix) -> bool:
        own, bits = self.membership.keys[tree], self.terms.bits
        keys = [own, *(link.key for link in self._links_in(tree))]
        return any(key is not None and is_split(key.head, key.length, *prefix, bits) for key in keys)

    def _touches(self, query: Query, prefix: Prefix) -> bool:
        each = self.terms.settings.attribute_bits
        return touches(query.first, query.last, *prefix, self.terms.mapping, each)

    def _holds(self, region: Region, string: int) -> bool:
        return any(is_prefix(*prefix, string, self.terms.bits) for prefix in region)
