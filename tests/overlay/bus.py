"""Brokers on a wire: every message takes the same time, and none overtakes another.

With an `order` to draw from, only messages over the same link keep their order.
"""

import random
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from serai.overlay.broker import Broker, NetworkConfiguration
from serai.overlay.broker.messages import Deliver, Drop, Effect, Event, Message, Query, Send
from serai.overlay.tinymq import HERE
from tests.overlay.naive import Links

MOST_MESSAGES = 2_000_000  # more than any network here needs: an endless exchange must end as a failure


@dataclass
class Bus:
    """All brokers of a network, what they have sent, and what came of it."""

    configuration: NetworkConfiguration
    links: Links
    order: random.Random | None = None
    now_s: float = 0.0
    brokers: dict[int, Broker] = field(default_factory=dict)
    waiting: deque[tuple[int, int, Message]] = field(default_factory=deque)
    sent: list[tuple[int, int, Message]] = field(default_factory=list)  # sender, receiver, message
    delivered: list[tuple[int, Event, Query]] = field(default_factory=list)
    dropped: list[tuple[int, Drop]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.brokers = {node: Broker(node, self.configuration) for node in sorted(self.links)}
        for node, broker in self.brokers.items():
            for other in sorted(self.links[node]):
                broker.found(other)  # all wake up at once, and none has anything to say yet
        for root in self.configuration.roots:
            self.carry_out(root, self.brokers[root].start())
        self.settle()

    # --- What the wire does ---------------------------------------------------------------------------------

    def carry_out(self, node: int, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(to, message):
                    receivers = sorted(self.brokers[node].membership.neighbors) if to is None else [to]
                    self.waiting.extend((node, receiver, message) for receiver in receivers)
                case Deliver(event, query):
                    self.delivered.append((node, event, query))
                case Drop():
                    self.dropped.append((node, effect))

    def settle(self) -> None:
        """Let them talk until nobody has anything left to say."""
        while self.waiting:
            sender, receiver, message = self.next_message()
            self.sent.append((sender, receiver, message))
            assert len(self.sent) < MOST_MESSAGES, "they never come to an end"
            if receiver in self.brokers:
                self.carry_out(receiver, self.brokers[receiver].receive(sender, message, self.now_s))

    def next_message(self) -> tuple[int, int, Message]:
        if self.order is None:
            return self.waiting.popleft()
        link = self.order.choice(self.waiting)[:2]
        found = next(number for number, waiting in enumerate(self.waiting) if waiting[:2] == link)
        chosen = self.waiting[found]
        del self.waiting[found]
        return chosen

    # --- What happens ---------------------------------------------------------------------------------------

    def subscribe(self, node: int, query: Query) -> None:
        self.carry_out(node, self.brokers[node].subscribe(query, self.now_s))
        self.settle()

    def unsubscribe(self, node: int, name: Hashable) -> None:
        self.carry_out(node, self.brokers[node].unsubscribe(name))
        self.settle()

    def publish(self, node: int, event: Event) -> None:
        self.carry_out(node, self.brokers[node].publish(event, self.now_s))
        self.settle()

    def fail(self, dead: set[int]) -> None:
        self.kill(dead)
        self.notice(dead)

    def kill(self, dead: set[int]) -> None:
        """Nobody knows yet: what is sent to the dead is lost."""
        for node in dead:
            del self.brokers[node]
        self.links = {node: others - dead for node, others in self.links.items() if node not in dead}

    def notice(self, dead: set[int]) -> None:
        for node, broker in self.brokers.items():
            for other in sorted(broker.membership.neighbors.keys() & dead):
                self.carry_out(node, broker.lost(other))
        self.settle()

    def add(self, node: int, neighbors: set[int]) -> None:
        self.brokers[node] = Broker(node, self.configuration)
        self.links[node] = set(neighbors)
        for other in sorted(neighbors):
            self.links[other].add(node)
            self.carry_out(node, self.brokers[node].found(other))
            self.carry_out(other, self.brokers[other].found(node))
        self.settle()

    def tick(self, after_s: float = 0.0) -> None:
        self.now_s += after_s
        for node in sorted(self.brokers):
            self.carry_out(node, self.brokers[node].tick(self.now_s))
        self.settle()

    # --- What can be seen -----------------------------------------------------------------------------------

    def stored(self) -> set[tuple[Hashable, int, int]]:
        """(query, tree, node) wherever the query is stored."""
        return {
            (subquery.query.name, subquery.tree, node)
            for node, broker in self.brokers.items()
            for subquery in broker.queries.subqueries.values()
            if HERE in broker.routes.next_hops(subquery.query, subquery.tree, subquery.region)
        }
