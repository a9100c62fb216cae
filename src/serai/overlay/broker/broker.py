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
    leave                                  the node is about to go

Messages may be late, lost, doubled or out of order, and nodes may start again with nothing but a higher incarnation:
nothing is ever delivered that was not asked for, and nothing twice; and two ticks after the last such fault everything
is delivered again. How is told in serai.overlay.broker.membership (trees) and .queries.

The rules are in docs/overlay/tinymq.md; every decision is a function of serai.overlay.tinymq.
"""

from collections.abc import Callable, Hashable

from serai.core.content import matches
from serai.core.errors import BadInput
from serai.overlay.broker.configuration import NetworkConfiguration
from serai.overlay.broker.membership import Membership
from serai.overlay.broker.messages import (
    Accept,
    Assign,
    Broken,
    Deliver,
    Disown,
    Drop,
    Effect,
    Event,
    Info,
    Join,
    Leave,
    Message,
    Notify,
    Publish,
    Query,
    Region,
    Send,
    Subscribe,
    Unsubscribe,
    incarnation_of,
)
from serai.overlay.broker.queries import Queries, Subquery
from serai.overlay.broker.routes import Routes
from serai.overlay.tinymq import HERE, NO_ROUTE, is_prefix


class Broker:
    """One node of the overlay; its `incarnation` must be higher whenever it starts again without its memory."""

    def __init__(self, node: int, configuration: NetworkConfiguration, incarnation: int = 0) -> None:
        if (zones := configuration.settings.zones) != "arrival":
            raise BadInput(
                f'zones = "{zones}": a broker gives keys as children come, and cannot know how many nodes will stand'
                ' below each; use zones = "arrival"'
            )
        self.node = node
        self.configuration = configuration
        self.membership = Membership(node, configuration, incarnation)
        self.routes = Routes(configuration, self.membership)
        self.queries = Queries(node, configuration, self.membership, self.routes, incarnation)
        self._delivered: dict[tuple[Hashable, Hashable], float] = {}  # (query, event), and when

    # ---- what happens to the node

    def start(self) -> list[Effect]:
        """A root tells its neighbours who it is; all others have nothing to say yet."""
        return [Send(None, self.membership.info())] if 0 in self.membership.hops else []

    def found(self, neighbor: int) -> list[Effect]:
        """A neighbour can be heard."""
        return self.membership.found(neighbor)

    def lost(self, neighbor: int) -> list[Effect]:
        """A neighbour cannot be heard any more."""
        return self._change(lambda: self.membership.lost(neighbor))

    def leave(self) -> list[Effect]:
        """Withdraw all queries and say good-bye; after that nothing more may be asked of this object."""
        effects = [effect for name in list(self.queries.subscriptions) for effect in self.unsubscribe(name)]
        return [*effects, Send(None, Leave(self.membership.next_number()))]

    def receive(self, sender: int, message: Message, now_s: float) -> list[Effect]:
        """A message from a neighbour."""
        match message:
            case Info() | Join() | Assign() | Disown() | Leave():
                return self._receive_state(sender, message, now_s)
            case Publish():
                return self._forward(message, now_s)
            case Notify(event, label):
                return self._pass_back(event, label, now_s)
        if sender not in self.membership.neighbors:  # it does not know that the link is lost
            return [Send(sender, self.membership.info())]
        match message:
            case Subscribe():
                return [Send(sender, Accept(message.label)), *self.queries.accept(sender, message, now_s)]
            case Accept(label):
                self.queries.accepted(label)
                return []
            case Broken(label):
                return self.queries.hear_of_break(sender, label)
            case Unsubscribe(label):
                return self.queries.forget(sender, label)

    def tick(self, now_s: float) -> list[Effect]:
        """Time has passed: look for what was lost, renew the node's own queries, forget what nobody has renewed."""
        oldest_s = now_s - self.configuration.lease_s
        self._delivered = {pair: when_s for pair, when_s in self._delivered.items() if when_s > oldest_s}
        return self._change(self.membership.tick) + self.queries.tick(now_s) + self.queries.send_stuck(now_s)

    # ---- what the local application wants

    def subscribe(self, query: Query, now_s: float) -> list[Effect]:
        """Ask for the events that the query matches, until `unsubscribe`."""
        return self.queries.subscribe(query, now_s)

    def unsubscribe(self, name: Hashable) -> list[Effect]:
        """Ask for the query's events no more."""
        return self.queries.unsubscribe(name)

    def publish(self, event: Event, now_s: float) -> list[Effect]:
        """Tell the event to all who asked for it."""
        trees = self.membership.trees(self.configuration.settings.event_trees)
        if not trees:  # the node has lost its key
            return [Drop(Publish(event, NO_ROUTE, ()), "no-route")]
        return [effect for tree in trees for effect in self._forward(Publish(event, tree, ()), now_s)]

    # ---- III.B: trees

    def _receive_state(self, sender: int, message: Info | Join | Assign | Disown | Leave, now_s: float) -> list[Effect]:
        known = self.membership.neighbors.get(sender)
        children = [set(each) for each in self.membership.children]
        effects = self._change(lambda: self._hear(sender, message))
        for tree, before in enumerate(children):
            for child in self.membership.children[tree].keys() - before:
                effects += self.queries.hand_off(child, tree, now_s)
        now = self.membership.neighbors.get(sender)
        if now is not known and now is not None:
            effects += self.queries.forget_life(sender, incarnation_of(now.number))
        is_news = isinstance(message, Assign) or now is None or known is None or now.differs_from(known)
        return effects + self.queries.send_stuck(now_s) if is_news else effects

    def _hear(self, sender: int, message: Info | Join | Assign | Disown | Leave) -> list[Effect]:
        match message:
            case Info():
                return self.membership.heard(sender, message)
            case Join():
                return self.membership.asked(sender, message)
            case Assign():
                return self.membership.assigned(sender, message)
            case Disown(tree, number):
                return self.membership.disowned(sender, tree, number)
            case Leave(number):
                return self.membership.left(sender, number)

    def _change(self, happens: Callable[[], list[Effect]]) -> list[Effect]:
        """Let something happen to the trees, and see which subqueries it has broken."""
        keys, before = self.membership.keys.copy(), self._lives()
        effects = happens()
        self.routes.forget()
        now = self._lives()
        parted = {neighbor for neighbor, life in before.items() if now.get(neighbor) != life}
        rekeyed = {tree for tree, key in enumerate(keys) if key is not None and key != self.membership.keys[tree]}
        if not (parted or rekeyed):
            return effects
        return effects + self.queries.break_up(parted, rekeyed)

    def _lives(self) -> dict[int, int]:
        """The neighbours at the other ends of links, and their incarnations."""
        return {neighbor: incarnation_of(info.number) for neighbor, info in self.membership.links().items()}

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
        """Notify each query that matches, along the newest subquery of it, of several the one that came last."""
        found: dict[Hashable, Subquery] = {}
        for subquery in self.queries.subqueries.values():
            if subquery.tree == tree and self._holds(subquery.region, event.rendezvous_key):
                known = found.get(subquery.query.name)
                if known is None or subquery.version >= known.version:
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
            is_there = subquery.sender in self.membership.links()
            return [Send(subquery.sender, message) if is_there else Drop(message, "broken-path")]
        if not matches(event.values, subquery.query.low, subquery.query.high):
            return [Drop(message, "unwanted")]
        pair = subquery.query.name, event.name
        if pair in self._delivered:
            return [Drop(message, "duplicate")]
        self._delivered[pair] = now_s
        return [Deliver(event, subquery.query)]

    def _pass_back(self, event: Event, label: int, now_s: float) -> list[Effect]:
        subquery = self.queries.labelled.get(label)
        return [Drop(Notify(event, label), "broken-path")] if subquery is None else self._notify(subquery, event, now_s)
