"""Brokers on the air: messages come late, out of order, twice or never, nodes crash, restart, leave and come back.

Everything is drawn from one generator. Until `calm` is called whatever can go wrong does; from then on messages are
still late and out of order, but they come, once.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

from serai.overlay.broker import Broker, NetworkConfiguration
from serai.overlay.broker.messages import Deliver, Effect, Event, Query, Send
from tests.overlay.naive import Links

TICK_S = 200.0
SOON_S = 0.5
LATE_S = 1.5 * TICK_S  # what is this late comes after newer words, and after restarts
MOST_MESSAGES = 200_000


@dataclass
class Air:
    """A network of nodes with links that may be heard in both directions, and all that is on its way."""

    configuration: NetworkConfiguration
    links: Links
    chance: random.Random
    is_calm: bool = False
    now_s: float = 0.0
    brokers: dict[int, Broker] = field(default_factory=dict)
    lives: Counter[int] = field(default_factory=Counter)
    asked: dict[int, dict[str, Query]] = field(default_factory=dict)  # [node] what its application wants now
    delivered: Counter[tuple[int, int, str, str]] = field(default_factory=Counter)  # node, life, query, event
    wrong: list[str] = field(default_factory=list)
    sent: int = 0
    _waiting: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _places: "count[int]" = field(default_factory=count)

    def __post_init__(self) -> None:
        for node in sorted(self.links):
            self.start(node)

    # --- Time -----------------------------------------------------------------------------------------------

    def after(self, delay_s: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._waiting, (self.now_s + delay_s, next(self._places), act))

    def run(self, until_s: float) -> None:
        while self._waiting and self._waiting[0][0] <= until_s:
            self.now_s, _, act = heapq.heappop(self._waiting)
            act()
        self.now_s = until_s

    def calm(self) -> None:
        """The last fault: all drivers know again who is there, and what is on its way comes soon."""
        self.is_calm = True
        for node, broker in self.brokers.items():
            there = self.links[node] & self.brokers.keys()
            for other in sorted(broker.membership.neighbors.keys() - there):
                self.carry_out(node, broker.lost(other))
            for other in sorted(there - broker.membership.neighbors.keys()):
                self.carry_out(node, broker.found(other))
        waiting, self._waiting = self._waiting, []
        for time_s, place, act in waiting:
            heapq.heappush(self._waiting, (min(time_s, self.now_s + self.chance.uniform(0, SOON_S)), place, act))

    # --- Messages -------------------------------------------------------------------------------------------

    def carry_out(self, node: int, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                to = sorted(self.brokers[node].membership.neighbors) if effect.to is None else [effect.to]
                for receiver in to:
                    self.send(node, receiver, effect)
            elif isinstance(effect, Deliver):
                self.deliver(node, effect.event, effect.query)

    def send(self, sender: int, receiver: int, effect: Send) -> None:
        assert self.sent < MOST_MESSAGES, "they never come to an end"
        self.sent += 1
        copies = 1 if self.is_calm else self.chance.choices([0, 1, 2], [0.15, 0.75, 0.1])[0]
        for _ in range(copies):
            is_late = not self.is_calm and self.chance.random() < 0.05
            delay_s = self.chance.uniform(0, LATE_S if is_late else SOON_S)
            self.after(delay_s, lambda: self.arrive(sender, receiver, effect))

    def arrive(self, sender: int, receiver: int, effect: Send) -> None:
        if (broker := self.brokers.get(receiver)) is not None and receiver in self.links[sender]:
            self.carry_out(receiver, broker.receive(sender, effect.message, self.now_s))

    def deliver(self, node: int, event: Event, query: Query) -> None:
        place = node, self.lives[node], str(query.name), str(event.name)
        self.delivered[place] += 1
        if self.delivered[place] > 1:
            self.wrong.append(f"twice: {place}")
        asked = self.asked[node].get(str(query.name))
        if asked is None or not all(
            low <= value <= high for low, value, high in zip(asked.low, event.values, asked.high, strict=True)
        ):
            self.wrong.append(f"not asked for: {place}")

    # --- What happens to nodes ------------------------------------------------------------------------------

    def start(self, node: int) -> None:
        """A node starts, again perhaps; its neighbours' drivers may never have noticed that it was away."""
        self.lives[node] += 1
        self.asked[node] = {}
        self.brokers[node] = broker = Broker(node, self.configuration, self.lives[node])
        for other in sorted(self.links[node] & self.brokers.keys()):
            self.carry_out(node, broker.found(other))
            self.after(self.chance.uniform(0, SOON_S), lambda other=other: self.find(other, node))  # type: ignore[misc]
        self.carry_out(node, broker.start())

    def find(self, node: int, other: int) -> None:
        if node in self.brokers and other in self.brokers:
            self.carry_out(node, self.brokers[node].found(other))

    def lose(self, node: int, other: int) -> None:
        """One side takes the link for lost."""
        if node in self.brokers:
            self.carry_out(node, self.brokers[node].lost(other))

    def crash(self, node: int) -> None:
        """Whether and when a neighbour notices is a matter of luck."""
        del self.brokers[node]
        self.asked[node] = {}
        for other in sorted(self.links[node]):
            if self.chance.random() < 0.5:
                self.after(self.chance.uniform(0, TICK_S), lambda other=other: self.miss(other, node))  # type: ignore[misc]

    def miss(self, node: int, other: int) -> None:
        if other not in self.brokers:
            self.lose(node, other)

    def leave(self, node: int) -> None:
        self.carry_out(node, self.brokers[node].leave())
        self.crash(node)

    def tick_all(self) -> None:
        """The ticks of all nodes within a quarter of the time between two of one node."""
        for node in sorted(self.links):
            self.after(self.chance.uniform(0, TICK_S / 4), lambda node=node: self.tick(node))  # type: ignore[misc]

    def tick(self, node: int) -> None:
        if node in self.brokers:
            self.carry_out(node, self.brokers[node].tick(self.now_s))

    # --- What applications want -----------------------------------------------------------------------------

    def subscribe(self, node: int, query: Query) -> None:
        self.asked[node][str(query.name)] = query
        self.carry_out(node, self.brokers[node].subscribe(query, self.now_s))

    def unsubscribe(self, node: int, name: str) -> None:
        del self.asked[node][name]
        self.carry_out(node, self.brokers[node].unsubscribe(name))

    def publish(self, node: int, event: Event) -> None:
        self.carry_out(node, self.brokers[node].publish(event, self.now_s))

    def wanted(self, event: Event) -> set[tuple[int, int, str, str]]:
        """Who wants an event."""
        return {
            (node, self.lives[node], name, str(event.name))
            for node, asked in self.asked.items()
            for name, query in asked.items()
            if all(low <= value <= high for low, value, high in zip(query.low, event.values, query.high, strict=True))
        }
