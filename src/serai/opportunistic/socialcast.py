"""SocialCast: a bundle is carried by nodes that will soon be with subscribers, as their past says.

Costa, Mascolo, Musolesi and Picco, "Socially-aware routing for publish-subscribe in delay-tolerant mobile ad hoc
networks" (2008). Section III: each node works out a utility for each interest from two measures, how much its
neighbourhood changes and whether it is with subscribers, both smoothed by a Kalman filter; it tells its interests and
utilities to its neighbours; who finds a neighbour that is better by some hysteresis hands its bundles of that
interest on. A publisher puts several copies on their way; subscribers get one without taking it from a carrier. Written
with the kit for own protocols.
"""

from __future__ import annotations

from typing import Any

from serai.opportunistic.kit.router import Copy, Peer, Router
from serai.own.declaring import setting


class Level:
    """A Kalman filter of a level that wanders: what it predicts is what it last believed."""

    __slots__ = ("spread", "value")

    def __init__(self) -> None:
        self.value, self.spread = 0.0, 1.0

    def observe(self, seen: float, wander: float) -> None:
        """One more observation, whose variance is 1; `wander`: that of the level from one to the next."""
        gain = (self.spread + wander) / (self.spread + wander + 1.0)
        self.value += gain * (seen - self.value)
        self.spread = (1.0 - gain) * (self.spread + wander)


class SocialCast(Router):
    """SocialCast."""

    lists = True
    replicas: int = setting(1, ge=1, le=1000, doc="Gamma: how many copies of a bundle its publisher sends out.")
    period: float = setting("1 min", time=True, doc="How often a node recomputes its utilities.")
    change_weight: float = setting(0.25, ge=0, le=1, doc="The weight of how much the neighbourhood changes.")
    company_weight: float = setting(0.75, ge=0, le=1, doc="The weight of being with subscribers.")
    hysteresis: float = setting(
        0.05, ge=0, le=1, doc="How much a new carrier's utility must exceed that of the present one."
    )
    wander: float = setting(
        0.1, ge=0, le=100, doc="The Kalman filter: variance of the level; that of the observations is 1."
    )

    def start(self) -> None:
        """Nobody was met."""
        self.every_s = self.period
        self.around: dict[int, frozenset[int]] = {}  # neighbours now, and what they want
        self.with_since: dict[int, frozenset[int]] = {}  # those of the last period, gone or not
        self.earlier: frozenset[int] = frozenset()  # neighbours a period ago
        self.change = Level()
        self.company: dict[int, Level] = {}

    # ---- utilities

    def contact_up(self, peer: Peer, now: float) -> None:
        """It is a neighbour, whatever it wants."""
        self.around[peer.id] = self.with_since[peer.id] = frozenset()

    def contact_down(self, peer: Peer, now: float) -> None:
        """It is none any more."""
        del self.around[peer.id]

    def periodic(self, now: float) -> None:
        """Observe: the share of neighbours that came or went, and for each interest whether a subscriber was near."""
        neighbours = frozenset(self.around)
        either = neighbours | self.earlier
        self.change.observe(len(neighbours ^ self.earlier) / len(either) if either else 0.0, self.wander)
        wanted = frozenset[int]().union(*self.with_since.values())
        for channel in sorted(wanted | self.company.keys()):
            self.company.setdefault(channel, Level()).observe(float(channel in wanted), self.wander)
        self.earlier, self.with_since = neighbours, dict(self.around)

    def utility(self, channel: int) -> float:
        """How good a carrier the node is for an interest."""
        company = self.company[channel].value if channel in self.company else 0.0
        return self.change_weight * self.change.value + self.company_weight * company

    # ---- interests are told to neighbours only

    def tell(self, peer: Peer, now: float) -> Any:
        """What the node wants, what it is worth as a carrier, and for which interest it is worth more."""
        return {
            "wants": frozenset(channel for channel, _ in self.subscriptions.values()),
            "worth": self.change_weight * self.change.value,
            "more": {channel: self.utility(channel) for channel in sorted(self.company)},
        }

    def entries(self, content: Any) -> int:
        """An interest or a utility is an entry each."""
        return 1 + len(content["wants"]) + len(content["more"])

    def hear(self, peer: Peer, content: Any, now: float) -> None:
        """The neighbour's interests and utilities."""
        peer.channels, peer.note = content["wants"], content
        self.around[peer.id] = content["wants"]
        self.with_since[peer.id] = self.with_since.get(peer.id, frozenset()) | content["wants"]

    # ---- carriers

    def created(self, copy: Copy, now: float) -> None:
        """So many copies may travel."""
        copy.note = self.replicas

    def offers(self, copy: Copy, peer: Peer, now: float) -> bool:
        """To subscribers always; a copy that travels to a better carrier."""
        if peer.wants(copy):
            return True
        theirs = peer.note["more"].get(copy.channel, peer.note["worth"])
        return bool(copy.note > 0 and theirs > self.utility(copy.channel) + self.hysteresis)

    def attach(self, copy: Copy, peer: Peer, now: float) -> Any:
        """Whether one of the copies travels on."""
        travels = copy.note > 0 and not peer.wants(copy)
        copy.note -= travels
        return travels

    def sent(self, copy: Copy, peer: Peer, attached: Any, accepted: bool, now: float) -> None:
        """Who has given its last copy away keeps none."""
        if attached and not accepted:
            copy.note += 1
        elif attached and copy.note == 0:
            self.discard(copy.id)

    def received(self, copy: Copy, peer: Peer, attached: Any, now: float) -> None:
        """A carrier has one that travels; a subscriber has none, and serves other subscribers."""
        copy.note = int(attached)
