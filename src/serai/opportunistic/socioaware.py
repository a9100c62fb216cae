"""A socio-aware overlay: each community has a broker, publications climb to it, and brokers hand them to others.

Yoneki, Hui, Chan and Crowcroft, "A socio-aware overlay for publish/subscribe communication in delay tolerant networks"
(2007). Communities are found at contacts, as in Bubble Rap; the most central member of each is its broker. A
publication goes to the broker of its community, from there to members of other communities in which somebody wants it,
and so to their brokers; subscribers take it from whoever has it. The paper measures centrality by closeness; here it is
the local rank, how many members one meets, which is all that contacts tell. Written with the kit for own protocols.
"""

from __future__ import annotations

from typing import Any

from serai.opportunistic.bubble import BubbleRap
from serai.opportunistic.kit.router import Copy, Peer


class SocioAware(BubbleRap):
    """a socio-aware broker overlay."""

    def start(self) -> None:
        """Nobody was met, so everybody is its own broker."""
        super().start()
        self.ranks: dict[int, float] = {}  # local ranks, as their owners last said

    def hear(self, peer: Peer, content: Any, now: float) -> None:
        """Members say how central they are."""
        super().hear(peer, content, now)
        self.ranks[peer.id] = content["local"]

    def is_broker(self, now: float) -> bool:
        """Whether nobody in the community is known to be more central."""
        own = self.rank(now, self.community)
        return all(self.ranks.get(node, 0.0) <= own for node in self.community if node != self.node)

    def offers(self, copy: Copy, peer: Peer, now: float) -> bool:
        """To subscribers; in the community, towards the broker; from the broker, where somebody else wants it."""
        _, local, wanted = peer.note
        if peer.wants(copy):
            return True
        if peer.id in self.community:
            return bool(local > self.rank(now, self.community))
        return copy.channel in wanted and self.is_broker(now)

    def attach(self, copy: Copy, peer: Peer, now: float) -> Any:
        """A publisher's copy moves to the broker; a broker keeps its own."""
        return self.hand_over and not peer.wants(copy) and peer.id in self.community
