"""What a router knows of itself and of others: its own subscriptions, and what lists are made of."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from serai.opportunistic.router.messages import Bundle, Channel


class Matching(Protocol):
    """How interests meet bundles, where an interest is more than the name of a channel."""

    def matches(self, interest: Channel, bundle: Bundle) -> bool:
        """Whether the interest wants the bundle."""

    def by_channel(self, interest: Channel) -> bool:
        """Whether the channel alone decides that, so that the answer holds for all bundles on it."""


@dataclass
class OwnSubscriptions:
    """The node's own open subscriptions, by id, with their beginnings."""

    matching: Matching | None = None
    open: dict[Hashable, tuple[Channel, float]] = field(default_factory=dict)
    _wanted: dict[Channel, bool] = field(default_factory=dict)  # channels asked about since the last change

    def begin(self, id: Hashable, channel: Channel, now_s: float) -> None:
        """One more."""
        self.open[id] = (channel, now_s)
        self._wanted.clear()

    def end(self, id: Hashable) -> None:
        """One less."""
        self.open.pop(id, None)
        self._wanted.clear()

    def wants(self, bundle: Bundle) -> bool:
        """Whether the node has subscribed to the bundle now."""
        if bundle.channel not in self._wanted:
            self._wanted[bundle.channel] = any(self._answers(bundle, by_channel=True))
        return self._wanted[bundle.channel] or any(self._answers(bundle, by_channel=False))

    def _answers(self, bundle: Bundle, by_channel: bool) -> Iterator[bool]:
        for interest, _ in self.open.values():
            if self.matching is None:
                if by_channel:
                    yield interest == bundle.channel
            elif self.matching.by_channel(interest) == by_channel:
                yield self.matching.matches(interest, bundle)


class Said(NamedTuple):
    """What a view says of a bundle: see `serai.opportunistic.rules.Offer`."""

    theirs: float
    mine: float
    popularity: float


@dataclass(frozen=True)
class View:
    """What a neighbour's last list says, interest by interest: see `serai.opportunistic.rules.Offer`."""

    theirs: Mapping[Channel, float] = field(default_factory=dict)
    mine: Mapping[Channel, float] = field(default_factory=dict)
    popularity: Mapping[Channel, float] = field(default_factory=dict)
    falls: bool = False  # whether less is nearer, as with hop counts
    news: Sequence[Any] = ()  # entries that the node did not know, or not so well
    _of_channel: dict[Channel, Said] = field(default_factory=dict)

    def of(self, bundle: Bundle, matching: Matching | None, unknown: float) -> Said:
        """What it says of a bundle; `unknown`: where it says nothing."""
        if matching is None:
            channel = bundle.channel
            theirs, mine = self.theirs.get(channel, unknown), self.mine.get(channel, unknown)
            return Said(theirs, mine, self.popularity.get(channel, 0.0))
        said = self._of_channel.get(bundle.channel)
        if said is None:
            said = self._nearest(Said(unknown, unknown, 0.0), bundle, matching, by_channel=True)
            self._of_channel[bundle.channel] = said
        return self._nearest(said, bundle, matching, by_channel=False)

    def _nearest(self, so_far: Said, bundle: Bundle, matching: Matching, by_channel: bool) -> Said:
        """The best of what all fitting interests say: of hop counts the lowest, of likelihoods the highest."""
        theirs, mine, popularity = so_far
        better = min if self.falls else max
        for interest in self.theirs.keys() | self.mine.keys():
            if matching.by_channel(interest) == by_channel and matching.matches(interest, bundle):
                theirs = better(theirs, self.theirs.get(interest, theirs))
                mine = better(mine, self.mine.get(interest, mine))
                popularity += self.popularity.get(interest, 0.0)
        return Said(theirs, mine, popularity)


class Knowledge:
    """What a protocol's lists are made of, and what is learned from those of others. `own`: `RouterRules.own`."""

    def __init__(self, node: Hashable, own: Any, subscriptions: OwnSubscriptions) -> None:
        self.node, self.subscriptions = node, subscriptions

    def write(self, now_s: float) -> tuple[int, Any]:
        """How many entries a list has that is sent now, and what it says."""
        raise NotImplementedError

    def learn(self, peer: Hashable, content: Any, is_first: bool, now_s: float) -> View:
        """A neighbour's list has arrived, the first in this contact or a later one; what it says of each channel."""
        raise NotImplementedError

    def forget(self, now_s: float) -> list[Any]:
        """Forget what has lapsed; returns it."""
        return []
