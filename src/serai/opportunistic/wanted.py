"""Lists of wanted channels, which most protocols exchange: for the router object, and for the compiled loop."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from serai.core.rules import step
from serai.opportunistic.router.knowledge import Knowledge, View
from serai.opportunistic.router.messages import Channel

if TYPE_CHECKING:
    from serai.opportunistic.engine.state import Net

SUBSCRIBED = 1.0


class WantedChannels(Knowledge):
    """A list says which channels the node wants."""

    def write(self, now_s: float) -> tuple[int, frozenset[Channel]]:
        """How many channels there are in the list, and which."""
        wanted = frozenset(channel for channel, _ in self.subscriptions.open.values())
        return len(wanted), wanted

    def learn(self, peer: Hashable, content: frozenset[Channel], is_first: bool, now_s: float) -> View:
        """A neighbour's list has arrived."""
        return View(theirs=dict.fromkeys(content, SUBSCRIBED))


@step
def write_wanted(own: Any, net: Net, link: int) -> int:
    """Put the channels that the sender wants into its list; how many there are."""
    sender, count = net.links[link].sender, 0
    for channel in range(len(net.wants)):
        wanted = net.wants[channel, sender] > 0
        net.row[link, channel] = SUBSCRIBED if wanted else 0.0
        count += wanted
    return count


@step
def learn_wanted(own: Any, net: Net, link: int) -> None:
    """The list has arrived; what its receiver knows of its sender is kept with the link back."""
    for channel in range(len(net.wants)):
        net.views[link ^ 1, channel].theirs = net.row[link, channel]
