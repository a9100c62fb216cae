"""What a router knows of itself and of others: its own subscriptions, and what lists are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from serai.opportunistic.router.messages import Bundle, Channel


class Matching(Protocol):
    """How interests meet bundles, where an interest is more than the name of a channel."""

    def plain(self, bundle: Bundle) -> Channel:
        """The interest in exactly the bundle's channel."""

    def is_plain(self, interest: Channel) -> bool:
        """Whether it is an interest in exactly one channel."""

    def by_channel(self, interest: Channel) -> bool:
        """Whether the channel alone decides, so that an answer holds for all bundles on it."""

    def matches(self, interest: Channel, bundle: Bundle) -> bool:
        """Whether an interest that is not plain wants the bundle."""


@dataclass
class OwnSubscriptions:
    """The node's own open subscriptions, by id, with their beginnings."""

    matching: Matching | None = None
    open: dict[Hashable, tuple[Channel, float]] = field(default_factory=dict)
    interests: Counter[Channel] = field(default_factory=Counter)

    def begin(self, id: Hashable, channel: Channel, now_s: float) -> None:
        """One more."""
        self.end(id)
        self.open[id] = (channel, now_s)
        self.interests[channel] += 1

    def end(self, id: Hashable) -> None:
        """One less."""
        channel, _ = self.open.pop(id, (None, 0.0))
        self.interests[channel] -= 1
        if self.interests[channel] <= 0:
            del self.interests[channel]

    def wants(self, bundle: Bundle) -> bool:
        """Whether the node has subscribed to the bundle now."""
        matching = self.matching
        if matching is None:
            return bundle.channel in self.interests
        return matching.plain(bundle) in self.interests or any(
            matching.matches(interest, bundle) for interest in self.interests if not matching.is_plain(interest)
        )


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
    _sorted: dict[bool, list[Channel]] = field(default_factory=dict)

    def of(self, bundle: Bundle, matching: Matching | None, unknown: float) -> Said:
        """What it says of a bundle; `unknown`: where it says nothing."""
        if matching is None:
            channel = bundle.channel
            theirs, mine = self.theirs.get(channel, unknown), self.mine.get(channel, unknown)
            return Said(theirs, mine, self.popularity.get(channel, 0.0))
        said = self._of_channel.get(bundle.channel)
        if said is None:
            said = self._nearest(Said(unknown, unknown, 0.0), [matching.plain(bundle)])
            fitting = [one for one in self._patterns(matching, True) if matching.matches(one, bundle)]
            said = self._of_channel[bundle.channel] = self._nearest(said, fitting)
        return self._nearest(said, [one for one in self._patterns(matching, False) if matching.matches(one, bundle)])

    def _patterns(self, matching: Matching, by_channel: bool) -> list[Channel]:
        """The interests in more than one channel: those that the channel decides, or the others."""
        if not self._sorted:
            for interest in self.theirs.keys() | self.mine.keys():
                if not matching.is_plain(interest):
                    self._sorted.setdefault(matching.by_channel(interest), []).append(interest)
            self._sorted.setdefault(True, [])
        return self._sorted.get(by_channel, [])

    def _nearest(self, so_far: Said, interests: list[Channel]) -> Said:
        """The best of what these interests say: of hop counts the lowest, of likelihoods the highest."""
        theirs, mine, popularity = so_far
        better = min if self.falls else max
        for interest in interests:
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

    def restore(self, entries: list[Any]) -> None:
        """Know again what was known before the node was started again."""
