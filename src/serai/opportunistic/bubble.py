"""Bubble Rap: a bundle climbs to nodes that meet more and more others, until it is in the community of a subscriber.

Hui, Crowcroft and Yoneki, "Bubble Rap: social-based forwarding in delay-tolerant networks" (2008; 2011). Communities
are found as in Hui, Yoneki, Chan and Crowcroft, "Distributed community detection in delay tolerant networks" (2007),
with k-cliques; ranks are the cumulative window of the first paper. All of it is learned at contacts. A destination is a
channel here: a community is that of a destination if a member of it is known to want the channel. Written with the kit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serai.opportunistic.kit.router import Copy, Peer, Router
from serai.own.declaring import setting


class BubbleRap(Router):
    """Bubble Rap."""

    lists = True
    cliques: int = setting(
        3, ge=2, le=100, doc="k: a node that shares k - 1 familiar nodes with a community belongs to it."
    )
    familiar: float = setting("10 min", time=True, doc="A node met for longer than this in total is familiar.")
    window: float = setting("1 h", time=True, doc="A rank is the mean number of different nodes met in a window.")
    hand_over: bool = setting(True, doc="A node that hands a bundle into a subscriber's community keeps no copy.")

    def start(self) -> None:
        """Nobody was met."""
        self.since: dict[int, float] = {}  # contacts that last
        self.met_s: dict[int, float] = {}  # how long each was met in contacts that are over
        self.windows: list[set[int]] = [set()]  # whom it met in each
        self.familiars: dict[int, frozenset[int]] = {}  # of members of its community, as last heard
        self.members_want: dict[int, frozenset[int]] = {}  # what members want
        self.community: set[int] = {self.node}

    # ---- rank: cumulative window

    def contact_up(self, peer: Peer, now: float) -> None:
        """One more that was met in this window."""
        self.since[peer.id] = now
        while len(self.windows) <= now // self.window:
            self.windows.append(set(self.since))  # contacts that last reach into the next window
        self.windows[-1].add(peer.id)

    def contact_down(self, peer: Peer, now: float) -> None:
        """It lasted so long."""
        self.met_s[peer.id] = self.met_s.get(peer.id, 0.0) + now - self.since.pop(peer.id)

    def rank(self, now: float, among: set[int] | None = None) -> float:
        """The mean number of different nodes met in a window up to now, among all or in the community."""
        windows = [met if among is None else met & among for met in self.windows]
        return sum(map(len, windows)) / max(len(windows), int(now // self.window) + 1)

    # ---- communities: k-cliques

    def familiar_set(self, now: float) -> frozenset[int]:
        """Who was met for long enough."""
        lasted = {node: now - since for node, since in self.since.items()}
        nodes = self.met_s.keys() | lasted.keys()
        return frozenset(n for n in nodes if self.met_s.get(n, 0.0) + lasted.get(n, 0.0) > self.familiar)

    def tell(self, peer: Peer, now: float) -> Any:
        """Its ranks, whom it knows well, and who belongs to its community."""
        own = {self.node: frozenset(channel for channel, _ in self.subscriptions.values())}
        return {
            "rank": self.rank(now),
            "local": self.rank(now, self.community),
            "familiar": self.familiar_set(now),
            "familiars": {node: self.familiars[node] for node in sorted(self.familiars)},
            "wants": {node: self.members_want[node] for node in sorted(self.members_want)} | own,
            "community": frozenset(self.community),
        }

    def entries(self, content: Any) -> int:
        """A rank, a familiar or wanted thing, a member is an entry each."""
        lists = [*content["familiars"].values(), *content["wants"].values(), content["familiar"], content["community"]]
        return 2 + sum(1 + len(entries) for entries in lists)

    def hear(self, peer: Peer, content: Any, now: float) -> None:
        """The peer may belong to the community, and with it others of its own."""
        familiar = self.familiar_set(now)
        told = dict(content["familiars"]) | {peer.id: content["familiar"]}
        if peer.id in familiar or self.shares(content["familiar"]):
            self.admit(peer.id, told, content["wants"])
            for node in sorted(content["community"]):
                if node in told and self.shares(told[node]):
                    self.admit(node, told, content["wants"])
        elif peer.id in self.community:
            self.admit(peer.id, told, content["wants"])
        peer.channels = content["wants"][peer.id]
        wanted = (content["wants"].get(node, frozenset()) for node in content["community"])
        peer.note = content["rank"], content["local"], frozenset().union(*wanted)

    def shares(self, familiar: frozenset[int]) -> bool:
        """Whether somebody with these familiar nodes shares enough of them with the community."""
        return len(familiar & self.community) >= self.cliques - 1

    def admit(self, node: int, familiars: Mapping[int, frozenset[int]], wants: Mapping[int, frozenset[int]]) -> None:
        """It belongs to the community; what is told of it is kept."""
        if node != self.node:
            self.community.add(node)
            self.familiars[node] = familiars[node]
            self.members_want[node] = wants.get(node, self.members_want.get(node, frozenset()))

    # ---- bubbles

    def is_here(self, copy: Copy) -> bool:
        """Whether somebody in the community wants it."""
        return any(copy.channel in wanted for wanted in self.members_want.values())

    def offers(self, copy: Copy, peer: Peer, now: float) -> bool:
        """Into the community of a subscriber; there, up by local rank; elsewhere up by global rank."""
        rank, local, wanted = peer.note
        if peer.wants(copy):
            return True
        here, there = self.is_here(copy), copy.channel in wanted
        if here != there:
            return there
        return bool(local > self.rank(now, self.community) if here else rank > self.rank(now))

    def attach(self, copy: Copy, peer: Peer, now: float) -> Any:
        """Whether it is handed into the community of a subscriber."""
        return self.hand_over and not self.is_here(copy) and copy.channel in peer.note[2]

    def sent(self, copy: Copy, peer: Peer, attached: Any, accepted: bool, now: float) -> None:
        """Who has handed it over keeps none, so that it spreads in the community alone."""
        if accepted and attached:
            self.discard(copy.id)
