"""One node of a key-based overlay as a pure object: it is told what happened, and says what to send.

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

from collections.abc import Hashable
from dataclasses import dataclass, field

from serai.core.content import matches
from serai.core.errors import BadInput
from serai.overlay.broker.configuration import NetworkConfiguration
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
    Message,
    Notify,
    Publish,
    Query,
    Region,
    Send,
    Subscribe,
    Unsubscribe,
)
from serai.overlay.broker.routes import Routes
from serai.overlay.tinymq import AS_PRINTED, HERE, NO_ROUTE, is_prefix


@dataclass
class Subquery:
    """A query message as it was received here, or begun here (`sender` is then the node itself)."""

    query: Query
    version: int
    tree: int
    region: Region  # the rendezvous keys that this node answers for, or has sent on
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


class Broker:
    """One node of the overlay."""

    def __init__(self, node: int, configuration: NetworkConfiguration) -> None:
        self.node = node
        self.configuration = configuration
        self.membership = Membership(node, configuration)
        self.routes = Routes(configuration, self.membership)
        self.subqueries: dict[tuple[int, int], Subquery] = {}  # by sender and label, in the order in which they came
        self.subscriptions: dict[Hashable, Subscription] = {}
        self._labels = 0
        self._labelled: dict[int, Subquery] = {}  # the subquery that was sent on under a label of ours
        self._delivered: dict[tuple[Hashable, Hashable], float] = {}  # (query, event), and when

    # ---- what happens to the node

    def start(self) -> list[Effect]:
        """A root tells its neighbours who it is; all others have nothing to say yet."""
        return [Send(None, self.membership.info())] if 0 in self.membership.hops else []

    def found(self, neighbor: int) -> list[Effect]:
        """A neighbour can be heard."""
        self.routes.forget()
        return self.membership.found(neighbor)

    def lost(self, neighbor: int) -> list[Effect]:
        """A neighbour cannot be heard any more."""
        self.routes.forget()
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
        self.routes.forget()
        effects = self.membership.tick()
        for key in [key for key, subquery in self.subqueries.items() if subquery.ends_s <= now_s]:
            self._remove(key)
        oldest_s = now_s - self.configuration.lease_s
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
        own = [key for key, subquery in self.subqueries.items() if key[0] == self.node and subquery.query.name == name]
        return [effect for key in own for effect in self._forget(*key)]

    def publish(self, event: Event, now_s: float) -> list[Effect]:
        """Tell the event to all who asked for it."""
        trees = self._trees(self.configuration.settings.event_trees)
        if not trees:  # the node has lost its key
            return [Drop(Publish(event, NO_ROUTE, ()), "no-route")]
        return [effect for tree in trees for effect in self._forward(Publish(event, tree, ()), now_s)]

    def _trees(self, which: str) -> list[int]:
        own = self.membership.own_tree()
        if which == "own":
            return [] if own is None else [own]
        return list(range(len(self.configuration.roots)))

    # ---- III.B: trees

    def _receive_state(self, sender: int, message: Info | Join | Assign, now_s: float) -> list[Effect]:
        self.routes.forget()
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
        """Send a new child the rendezvous keys that are its own from now on. (The paper forgets them.)"""
        if child not in self.membership.children[tree] or self.routes.routing == AS_PRINTED:
            return []
        key = self.membership.key_of(child, tree)
        assert key is not None, "a child has a key"
        effects: list[Effect] = []
        for subquery in self.subqueries.values():
            if subquery.tree == tree and (region := self.routes.under(subquery.query, subquery.region, key)):
                effects.append(self._send_on(subquery, child, region, now_s))
        return effects

    # ---- III.D: queries

    def _send_out(self, subscription: Subscription, now_s: float) -> list[Effect]:
        subscription.renewal_s = now_s + self.configuration.renewal_s
        effects: list[Effect] = []
        for tree in self._trees(self.configuration.settings.query_trees):
            self._labels += 1
            query, version = subscription.query, subscription.version
            message = Subscribe(query, version, tree, EVERYTHING, self._labels, self.configuration.lease_s)
            effects += self._accept(self.node, message, now_s)
        return effects

    def _accept(self, sender: int, message: Subscribe, now_s: float) -> list[Effect]:
        """Take in a subquery, and send its rendezvous keys on to where they belong."""
        if self.routes.routing == AS_PRINTED:
            return self._accept_as_printed(sender, message, now_s)
        subquery = self._keep(sender, message, now_s)
        hops = self.routes.next_hops(subquery.query, subquery.tree, subquery.region)
        lost: list[Effect] = [Drop(message, "no-route")] if NO_ROUTE in hops else []
        return lost + [self._send_on(subquery, hop, tuple(hops[hop]), now_s) for hop in sorted(hops) if hop >= 0]

    def _accept_as_printed(self, sender: int, message: Subscribe, now_s: float) -> list[Effect]:
        """Algorithm 3.1 to the letter: the query is never cut, and stored only where nothing of it goes elsewhere."""
        key = message.query.name, message.version, message.tree
        if any((subquery.query.name, subquery.version, subquery.tree) == key for subquery in self.subqueries.values()):
            return []  # line 3
        subquery = self._keep(sender, message, now_s)
        hops = self.routes.next_hops(subquery.query, subquery.tree, EVERYTHING)
        children = set(self.membership.children[subquery.tree])
        elsewhere = hops.keys() - children - {HERE}  # lines 8-16: a rendezvous key that the node's does not begin
        if elsewhere or HERE not in hops:
            subquery.region = ()
        receivers = elsewhere or children
        lost: list[Effect] = [Drop(message, "no-route")] if NO_ROUTE in receivers else []
        return lost + [self._send_on(subquery, hop, EVERYTHING, now_s) for hop in sorted(receivers) if hop >= 0]

    def _keep(self, sender: int, message: Subscribe, now_s: float) -> Subquery:
        query, version, tree, region = message.query, message.version, message.tree, message.region
        subquery = Subquery(query, version, tree, region, sender, message.label, now_s + message.lease_s)
        self.subqueries[sender, message.label] = subquery
        return subquery

    def _send_on(self, subquery: Subquery, to: int, region: Region, now_s: float) -> Send:
        self._labels += 1
        self._labelled[self._labels] = subquery
        subquery.onward.append((to, self._labels))
        lease_s = subquery.ends_s - now_s
        return Send(to, Subscribe(subquery.query, subquery.version, subquery.tree, region, self._labels, lease_s))

    def _forget(self, sender: int, label: int) -> list[Effect]:
        """Remove a subquery here and wherever it was sent on to."""
        subquery = self._remove((sender, label))
        if subquery is None:
            return []
        return [Send(to, Unsubscribe(label)) for to, label in subquery.onward if to in self.membership.neighbors]

    def _remove(self, key: tuple[int, int]) -> Subquery | None:
        subquery = self.subqueries.pop(key, None)
        if subquery is not None:
            for _, label in subquery.onward:
                del self._labelled[label]
        return subquery

    # ---- III.D: events

    def _forward(self, message: Publish, now_s: float) -> list[Effect]:
        """Algorithm 3.2: send the event on, or match it here."""
        if self.node in message.path:
            return [Drop(message, "loop")]
        hop = self.routes.next_hop(message.tree, message.event.rendezvous_key)
        if hop == HERE:
            return self._match(message.event, message.tree, now_s)
        if hop == NO_ROUTE:
            return [Drop(message, "no-route")]
        return [Send(hop, Publish(message.event, message.tree, (*message.path, self.node)))]

    def _match(self, event: Event, tree: int, now_s: float) -> list[Effect]:
        """Notify each query that matches, along the subquery of it that came last."""
        found: dict[Hashable, Subquery] = {}
        for subquery in self.subqueries.values():
            if subquery.tree == tree and self._holds(subquery.region, event.rendezvous_key):
                found[subquery.query.name] = subquery
        effects: list[Effect] = []
        for subquery in found.values():
            if matches(event.values, subquery.query.low, subquery.query.high):
                effects += self._notify(subquery, event, now_s)
        return effects

    def _holds(self, region: Region, rendezvous_key: int) -> bool:
        return any(is_prefix(*prefix, rendezvous_key, self.configuration.bits) for prefix in region)

    def _notify(self, subquery: Subquery, event: Event, now_s: float) -> list[Effect]:
        """One step back along a subquery; at its beginning the event is delivered."""
        message = Notify(event, subquery.label)
        if subquery.sender != self.node:
            is_there = subquery.sender in self.membership.neighbors
            return [Send(subquery.sender, message) if is_there else Drop(message, "broken-path")]
        pair = subquery.query.name, event.name
        if pair in self._delivered:
            return [Drop(message, "duplicate")]
        self._delivered[pair] = now_s
        return [Deliver(event, subquery.query)]

    def _pass_back(self, event: Event, label: int, now_s: float) -> list[Effect]:
        subquery = self._labelled.get(label)
        return [Drop(Notify(event, label), "broken-path")] if subquery is None else self._notify(subquery, event, now_s)
