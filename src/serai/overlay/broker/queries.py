"""TinyMQ III.D, one node of it: its own queries, and the subqueries of others that it has received and sent on.

A subquery is sent again with every tick until its receiver has it (`Accept`). Where a part of one may be lost, with the
receiver, with the link to it or with the key by which it lay there, the subscriber is told, hop by hop (`Broken`), and
again with every tick until a newer version is there; it sends its query anew. What has nowhere to go waits here until
it has.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from serai.core.errors import BadInput
from serai.overlay.broker.configuration import NetworkConfiguration
from serai.overlay.broker.membership import Membership
from serai.overlay.broker.messages import (
    EVERYTHING,
    LIFE_BITS,
    Broken,
    Drop,
    Effect,
    Query,
    Region,
    Send,
    Subscribe,
    Unsubscribe,
    incarnation_of,
)
from serai.overlay.broker.routes import Routes
from serai.overlay.tinymq import AS_PRINTED, HERE, NO_ROUTE

MOST_VISITS = 2
"""How often rendezvous keys of a query may come to one node: before it stood in the tree, and when it does."""


class Part(NamedTuple):
    """Rendezvous keys of a subquery that were sent on."""

    to: int
    region: Region
    path: tuple[int, ...]


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
    path: tuple[int, ...]  # the nodes where it has been, with this one
    onward: dict[int, Part] = field(default_factory=dict)  # by our labels
    stuck: Region = ()  # rendezvous keys that had nowhere to go
    broken: bool = False  # whether some of its rendezvous keys may not be where they belong


@dataclass
class Subscription:
    """A query of the local application."""

    query: Query
    version: int = 0
    renewal_s: float = 0.0  # when it will be sent anew
    waits: bool = False  # nothing of it could be sent: the node stands in no tree


class Queries:
    """The queries that one node knows of."""

    def __init__(
        self,
        node: int,
        configuration: NetworkConfiguration,
        membership: Membership,
        routes: Routes,
        incarnation: int,
    ) -> None:
        self.node = node
        self.configuration = configuration
        self.membership = membership
        self.routes = routes
        self.subqueries: dict[tuple[int, int], Subquery] = {}  # by sender and label, in the order in which they came
        self.subscriptions: dict[Hashable, Subscription] = {}
        self.labelled: dict[int, Subquery] = {}  # the subquery that was sent on under a label of ours
        self._labels = incarnation << LIFE_BITS
        self._unanswered: set[int] = set()  # labels of ours that the receiver has not accepted yet

    # ---- the node's own

    def subscribe(self, query: Query, now_s: float) -> list[Effect]:
        """Ask for the events that the query matches, until `unsubscribe`."""
        if query.name in self.subscriptions:
            raise BadInput(f"query {query.name!r}: node {self.node} has asked it already; unsubscribe it first")
        self.subscriptions[query.name] = subscription = Subscription(query)
        return self._send_out(subscription, now_s)

    def unsubscribe(self, name: Hashable) -> list[Effect]:
        """Ask for the query's events no more."""
        if self.subscriptions.pop(name, None) is None:
            raise BadInput(f"query {name!r}: node {self.node} has not asked it")
        own = [key for key, subquery in self.subqueries.items() if key[0] == self.node and subquery.query.name == name]
        return [effect for key in own for effect in self.forget(*key)]

    def tick(self, now_s: float) -> list[Effect]:
        """Forget what nobody has renewed, say again what was not answered, renew what is due."""
        for key in [key for key, subquery in self.subqueries.items() if subquery.ends_s <= now_s]:
            self._remove(key)
        effects: list[Effect] = [self._sending(label, now_s) for label in sorted(self._unanswered)]
        for subquery in self.subqueries.values():
            if subquery.broken and not self._is_outdated(subquery):
                effects += self._tell_of_break(subquery)
        for subscription in self.subscriptions.values():
            if subscription.renewal_s <= now_s:
                effects += self._send_out(subscription, now_s)
        return effects

    def _send_out(self, subscription: Subscription, now_s: float) -> list[Effect]:
        self._labels += 1  # a version is one of them: so it is higher than all before, in this life and any earlier one
        query, subscription.version = subscription.query, self._labels
        subscription.renewal_s = now_s + self.configuration.renewal_s
        trees = self.membership.trees(self.configuration.settings.query_trees)
        subscription.waits = not trees
        effects: list[Effect] = []
        for tree in trees:
            self._labels += 1
            lease_s, label = self.configuration.lease_s, self._labels
            message = Subscribe(query, subscription.version, tree, EVERYTHING, label, lease_s, ())
            effects += self.accept(self.node, message, now_s)
        return effects

    # ---- those that came

    def accept(self, sender: int, message: Subscribe, now_s: float) -> list[Effect]:
        """Take in a subquery, and send its rendezvous keys on to where they belong."""
        if (sender, message.label) in self.subqueries:
            return []  # it was sent again
        if self.routes.routing == AS_PRINTED:
            return self._accept_as_printed(sender, message, now_s)
        subquery = self._keep(sender, message, now_s)
        effects = self._split(subquery, subquery.region, subquery.path, now_s)
        return [Drop(message, "no-route"), *effects] if subquery.stuck else effects

    def accepted(self, label: int) -> None:
        """The receiver has the subquery that was sent on under this label."""
        self._unanswered.discard(label)

    def hand_off(self, child: int, tree: int, now_s: float) -> list[Effect]:
        """Send a new child the rendezvous keys that are its own from now on. (The paper forgets them.)"""
        if self.routes.routing == AS_PRINTED:
            return []
        key = self.membership.key_of(child, tree)
        assert key is not None, "a child has a key"
        effects: list[Effect] = []
        for subquery in self.subqueries.values():
            if subquery.tree == tree and (region := self.routes.under(subquery.query, subquery.region, key)):
                effects.append(self._send_on(subquery, child, region, now_s, (self.node,)))
        return effects

    def send_stuck(self, now_s: float) -> list[Effect]:
        """Send on what had nowhere to go; only where something has changed since, so that this comes to an end."""
        if not self.configuration.mends:
            return []
        effects: list[Effect] = []
        for subquery in list(self.subqueries.values()):
            if subquery.stuck:
                effects += self._split(subquery, subquery.stuck, (self.node,), now_s)
        for subscription in self.subscriptions.values():
            if subscription.waits and self.membership.own_tree() is not None:
                effects += self._send_out(subscription, now_s)
        return effects

    def _split(self, subquery: Subquery, region: Region, path: tuple[int, ...], now_s: float) -> list[Effect]:
        """Send a region on, part by part; what has nowhere to go, or has been round in circles, is stuck here."""
        hops = self.routes.next_hops(subquery.query, subquery.tree, region)
        goes = [hop for hop in sorted(hops) if hop >= 0 and path.count(hop) < MOST_VISITS]
        subquery.stuck = tuple(
            prefix for hop, prefixes in hops.items() if hop != HERE and hop not in goes for prefix in prefixes
        )
        return [self._send_on(subquery, hop, tuple(hops[hop]), now_s, path) for hop in goes]

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
        path = subquery.path
        return lost + [self._send_on(subquery, hop, EVERYTHING, now_s, path) for hop in sorted(receivers) if hop >= 0]

    def _keep(self, sender: int, message: Subscribe, now_s: float) -> Subquery:
        query, version, tree, region = message.query, message.version, message.tree, message.region
        path, ends_s = (*message.path, self.node), now_s + message.lease_s
        subquery = Subquery(query, version, tree, region, sender, message.label, ends_s, path)
        self.subqueries[sender, message.label] = subquery
        return subquery

    def _send_on(self, subquery: Subquery, to: int, region: Region, now_s: float, path: tuple[int, ...]) -> Send:
        self._labels += 1
        self.labelled[self._labels] = subquery
        self._unanswered.add(self._labels)
        subquery.onward[self._labels] = Part(to, region, path)
        return self._sending(self._labels, now_s)

    def _sending(self, label: int, now_s: float) -> Send:
        """The message by which the subquery with a label of ours goes on."""
        of, (to, region, path) = self.labelled[label], self._part(label)
        return Send(to, Subscribe(of.query, of.version, of.tree, region, label, of.ends_s - now_s, path))

    def _part(self, label: int) -> Part:
        return self.labelled[label].onward[label]

    def forget(self, sender: int, label: int) -> list[Effect]:
        """Remove a subquery here and wherever it was sent on to."""
        subquery = self._remove((sender, label))
        if subquery is None:
            return []
        links = self.membership.links()
        return [Send(part.to, Unsubscribe(label)) for label, part in subquery.onward.items() if part.to in links]

    def _remove(self, key: tuple[int, int]) -> Subquery | None:
        subquery = self.subqueries.pop(key, None)
        if subquery is not None:
            for label in subquery.onward:
                self._unlabel(label)
        return subquery

    def _unlabel(self, label: int) -> None:
        del self.labelled[label]
        self._unanswered.discard(label)

    # ---- repair of queries

    def break_up(self, parted: set[int], rekeyed: set[int]) -> list[Effect]:
        """The links to these neighbours are gone, or the node has lost its keys in these trees."""
        self._unanswered -= {label for label in self._unanswered if self._part(label).to in parted}
        effects: list[Effect] = []
        for subquery in self.subqueries.values():
            if subquery.tree in rekeyed or any(part.to in parted for part in subquery.onward.values()):
                subquery.broken = True
                effects += self._tell_of_break(subquery)
        return effects

    def forget_life(self, sender: int, incarnation: int) -> list[Effect]:
        """A neighbour has started again, for the how-manieth time: what it sent before leads nowhere."""
        stale = [key for key in self.subqueries if key[0] == sender and incarnation_of(key[1]) < incarnation]
        return [effect for key in stale for effect in self.forget(*key)]

    def _tell_of_break(self, subquery: Subquery) -> list[Effect]:
        """One step of the news that a part of a query was lost; at the subscriber's, it will be renewed."""
        if not self.configuration.mends:
            return []
        if subquery.sender != self.node:
            is_there = subquery.sender in self.membership.links()
            return [Send(subquery.sender, Broken(subquery.label))] if is_there else []
        if not self._is_outdated(subquery):
            self.subscriptions[subquery.query.name].renewal_s = -math.inf
        return []

    def hear_of_break(self, sender: int, label: int) -> list[Effect]:
        """What is newer here than the broken subquery will do instead of it, so that one can be forgotten."""
        subquery = self.labelled.get(label)
        if subquery is not None and not self._is_outdated(subquery):
            return self._tell_of_break(subquery)
        if subquery is not None:
            del subquery.onward[label]
            self._unlabel(label)
        return [Send(sender, Unsubscribe(label))]

    def _is_outdated(self, subquery: Subquery) -> bool:
        """Whether a newer version of the query is known here for the same tree."""
        if subquery.sender == self.node:
            subscription = self.subscriptions.get(subquery.query.name)
            return subscription is None or subscription.version != subquery.version
        return any(
            other.query.name == subquery.query.name and other.tree == subquery.tree and other.version > subquery.version
            for other in self.subqueries.values()
        )
