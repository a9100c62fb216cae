"""MaxProp: bundles that have come far wait for those that have not; the others go by the cheapest way to a subscriber.

Burgess, Gallagher, Jensen and Levine, "MaxProp: routing for vehicle-based disruption-tolerant networks" (INFOCOM 2006).
Section III, in its order: the likelihood of meeting each node next, and the cost of a way as the sum of what its
meetings lack to certainty (A); acknowledgements, the list of nodes that had the bundle, and what goes first and leaves
first (B). The text has one destination; here a bundle is for all subscribers of its channel: the nearest that has
not acknowledged it counts, and it is done with when all who are known have. Written with the kit for own protocols.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from serai.opportunistic.kit.router import Copy, Peer, Router
from serai.own.declaring import setting


class MaxProp(Router):
    """MaxProp."""

    lists = True
    alpha: float = setting(1.0, ge=0.01, le=100, doc="What a meeting adds to a likelihood before all are normalised.")
    head_start: bool = setting(
        True, doc="Bundles with few hops go first, as far as a mean contact reaches into the store."
    )
    contacts: int = setting(10, ge=1, le=1000, doc="How many of the last contacts that mean is taken over.")
    acks: bool = setting(True, doc="Acknowledgements spread, and bundles that all known subscribers have are dropped.")
    follows: str = setting(
        "paper",
        choices=("paper", "the-one"),
        doc="As in the paper; or as in The ONE: lists cost nothing and arrive at once, the best bundle over all"
        " neighbours goes first, and a bundle dropped once acknowledged may come again.",
    )

    def start(self) -> None:
        """Nobody was met."""
        self.free_lists = self.best_of_links = self.follows == "the-one"
        self.likelihood: dict[int, float] = {}
        self.known: dict[int, Mapping[str, Any]] = {}  # of each node: when, whom it meets, how likely, what it wants
        self.subscribers: dict[int, set[int]] = {}
        self.acked: dict[tuple[int, int], float] = {}  # bundle and subscriber, and when it expires
        self.reported: set[int] = set()  # bundles that somebody has acknowledged
        self.handed: dict[int, set[int]] = {}  # to each neighbour
        self.bytes: list[int] = []  # that the last contacts transferred
        self.costs: dict[int, Sequence[float]] = {}  # from each node to all others
        self.ways: dict[tuple[int, int], float] = {}  # from each node for each bundle
        self.table: Any = None
        self.least: int | None = None

    # ---- likelihoods (III.A)

    def contact_up(self, peer: Peer, now: float) -> None:
        """The peer was met: it is likelier to be the next again."""
        if not self.likelihood:
            self.likelihood[peer.id] = 1.0
        else:
            self.likelihood[peer.id] = self.likelihood.get(peer.id, 0.0) + self.alpha
            self.likelihood = {node: value / (1.0 + self.alpha) for node, value in self.likelihood.items()}
        self.note_self(now)

    def note_self(self, now: float) -> None:
        """What this node tells of itself."""
        self.note(
            self.node,
            {
                "at": now,
                "meets": array("i", self.likelihood).tobytes(),
                "likely": array("d", self.likelihood.values()).tobytes(),
                "wants": frozenset(channel for channel, _ in self.subscriptions.values()),
            },
        )

    def note(self, node: int, entry: Mapping[str, Any]) -> None:
        """The newest that is known of a node."""
        before = self.known.get(node)
        if before is None or before["wants"] != entry["wants"]:
            for channel in before["wants"] if before else ():
                self.subscribers[channel].discard(node)
            for channel in entry["wants"]:
                self.subscribers.setdefault(channel, set()).add(node)
        self.known[node] = entry
        self.costs, self.ways, self.table = {}, {}, None

    def tell(self, peer: Peer, now: float) -> Any:
        """All that is known of anybody, and what was acknowledged."""
        self.note_self(now)
        self.acked = {which: until for which, until in self.acked.items() if until > now}
        self.reported = {id for id, _ in self.acked}
        return {"nodes": self.known, "acks": self.acked if self.acks else {}}

    def entries(self, content: Any) -> int:
        """A likelihood, a subscription, an acknowledgement is an entry each."""
        nodes = content["nodes"].values()
        return sum(1 + len(entry["meets"]) // 4 + len(entry["wants"]) for entry in nodes) + len(content["acks"])

    def hear(self, peer: Peer, content: Any, now: float) -> None:
        """What the neighbour knows better is taken over."""
        for node, entry in content["nodes"].items():
            if node != self.node and (node not in self.known or entry["at"] > self.known[node]["at"]):
                self.note(node, entry)
        peer.channels = content["nodes"][peer.id]["wants"]
        self.acked |= content["acks"]
        self.ways = {}
        self.reported.update(id for id, _ in content["acks"])
        for id in sorted(
            self.store.keys() & self.reported
        ):  # not those alone that are news: one may have been under way
            self.let_go(id)

    # ---- acknowledgements (III.B)

    def let_go(self, id: int) -> None:
        """A bundle that all known subscribers have is dropped."""
        copy = self.store.get(id)
        if copy is not None and not self.missing(copy) and self.subscribers.get(copy.channel):
            self.discard(id, may_return=self.follows == "the-one")
            self.least = None

    def acknowledge(self, copy: Copy, subscriber: int) -> None:
        """A subscriber has it, and all will hear of it."""
        self.acked[copy.id, subscriber] = copy.expires_s
        self.reported.add(copy.id)
        self.ways = {}

    def missing(self, copy: Copy) -> list[int]:
        """The known subscribers that have not acknowledged it."""
        known = self.subscribers.get(copy.channel, ())
        return [node for node in known if (copy.id, node) not in self.acked and node != copy.source]

    def created(self, copy: Copy, now: float) -> None:
        """The way of a bundle begins here."""
        copy.note = (self.node,)
        self.least = None

    def attach(self, copy: Copy, peer: Peer, now: float) -> Any:
        """The nodes that had it travel along."""
        return copy.note

    def received(self, copy: Copy, peer: Peer, attached: Any, now: float) -> None:
        """It is acknowledged where it was wanted."""
        copy.note = (*attached, self.node)
        self.least = None
        if self.acks and any(channel == copy.channel for channel, _ in self.subscriptions.values()):
            self.acknowledge(copy, self.node)

    def sent(self, copy: Copy, peer: Peer, attached: Any, accepted: bool, now: float) -> None:
        """Nobody gets it from here twice; who hands it to a subscriber knows that it was delivered."""
        if accepted:
            self.handed.setdefault(peer.id, set()).add(copy.id)
            if self.acks and self.wanted(copy, peer):
                self.acknowledge(copy, peer.id)
                self.let_go(copy.id)

    def dropped(self, copy: Copy, reason: str, now: float) -> None:
        """One less in the store."""
        self.least = None

    def contact_down(self, peer: Peer, now: float) -> None:
        """A contact that transferred something counts in the mean."""
        self.bytes = [*self.bytes, peer.bytes_in + peer.bytes_out][-self.contacts :]
        self.least = None

    # ---- what goes first, and what leaves first (III.B)

    def offers(self, copy: Copy, peer: Peer, now: float) -> bool:
        """Whether the peer neither had it nor got it from here."""
        return peer.id not in copy.note and copy.id not in self.handed.get(peer.id, ())

    def priority(self, copy: Copy, peer: Peer, now: float) -> tuple[float, ...]:
        """For the peer itself; of few hops; by the cheapest way from the peer."""
        return (self.wanted(copy, peer), *self.place(copy, peer.id))

    def place(self, copy: Copy, at: int) -> tuple[float, ...]:
        """Where a bundle stands, at this node or at a neighbour: the highest goes first, the lowest leaves first."""
        if copy.hops < self.threshold():
            return 1.0, -copy.hops, 0.0
        cost = self.ways.get((at, copy.id))
        if cost is None:
            cost = min((self.cost(at, node) for node in self.missing(copy)), default=math.inf)
            self.ways[at, copy.id] = cost
        return 0.0, -cost, -copy.hops

    def evict(self, copies: Sequence[Copy], now: float) -> Copy | None:
        """The one with the worst way leaves; of equals, the youngest."""
        return min(copies, key=lambda copy: (*self.place(copy, self.node), -copy.id))

    def threshold(self) -> int:
        """Bundles of fewer hops than this go first: so many as a mean contact can transfer."""
        if self.least is None:
            self.least = self._threshold() if self.head_start else 0
        return self.least

    def _threshold(self) -> int:
        counted = [count for count in self.bytes if count > 0]
        mean = sum(counted) // len(counted) if counted else 0
        room = mean if mean < self.capacity_bytes / 2 else min(mean, self.capacity_bytes - mean)
        threshold = 0
        for hops, size in sorted((copy.hops, copy.size_bytes) for copy in self.store.values()):
            if room <= 0:
                break
            room -= size
            threshold = hops + 1
        return threshold

    def cost(self, start: int, end: int) -> float:
        """The cheapest way from one node to another."""
        if start not in self.costs:
            self.costs[start] = self.costs_from(start)
        costs = self.costs[start]
        return costs[end] if end < len(costs) else math.inf

    def costs_from(self, start: int) -> Sequence[float]:
        """The cost of the cheapest ways from a node, by all that is known."""
        from serai.opportunistic.engine.ways import cheapest, table_of  # numba, which loads when it is needed

        if self.table is None:
            self.table = table_of({node: (entry["meets"], entry["likely"]) for node, entry in self.known.items()})
        costs: list[float] = cheapest(self.table, start).tolist()
        return costs
