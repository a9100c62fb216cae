"""What a router knows of itself and of others: its own subscriptions, and what lists are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from serai.opportunistic.router.messages import Channel


@dataclass
class OwnSubscriptions:
    """The node's own subscriptions: those open, by id, with their beginnings; and the ids of all there ever were."""

    open: dict[int, tuple[Channel, float]] = field(default_factory=dict)
    ids: set[int] = field(default_factory=set)

    def begin(self, id: int, channel: Channel, now_s: float) -> None:
        """One more."""
        self.open[id] = (channel, now_s)
        self.ids.add(id)

    def wants(self, channel: Channel) -> bool:
        """Whether the node has subscribed to the channel now."""
        return any(wanted == channel for wanted, _ in self.open.values())


@dataclass(frozen=True)
class View:
    """What a neighbour's last list says, channel by channel: see `serai.opportunistic.rules.Offer`."""

    theirs: Mapping[Channel, float] = field(default_factory=dict)
    mine: Mapping[Channel, float] = field(default_factory=dict)
    popularity: Mapping[Channel, float] = field(default_factory=dict)


class Knowledge:
    """What a protocol's lists are made of, and what is learned from those of others. `own`: `RouterRules.own`."""

    def __init__(self, node: int, own: Any, subscriptions: OwnSubscriptions) -> None:
        self.node, self.subscriptions = node, subscriptions

    def write(self, now_s: float) -> tuple[int, Any]:
        """How many entries a list has that is sent now, and what it says."""
        raise NotImplementedError

    def learn(self, peer: int, content: Any, is_first: bool, now_s: float) -> View:
        """A neighbour's list has arrived, the first in this contact or a later one; what it says of each channel."""
        raise NotImplementedError
