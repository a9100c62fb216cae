"""DPSP as a node in the field runs it: entries of subscription lists, filters, priorities; lists of the router object.

Its settings, and the compiled loop's part, are in `serai.opportunistic.dpsp`, which also says where each part stands in
the paper. Nothing heavy is loaded here, not even what reads settings: a node gets the numbers (`Dpsp`) ready-made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from serai.core.rules import rule
from serai.opportunistic.router.knowledge import Knowledge, OwnSubscriptions, View
from serai.opportunistic.router.messages import Channel
from serai.opportunistic.routing import Decisions
from serai.opportunistic.rules import Offer, is_expired

SHORT_DELAY, LONG_DELAY, HOP_COUNT, POPULARITY = range(1, 5)
FAR = math.inf  # the hop count of a channel for which there is no entry


class Dpsp(NamedTuple):
    """The settings as the rules below read them."""

    known_filter: bool
    hop_filter: bool
    hop_tolerance: int
    missing_is_far: bool
    priorities: tuple[int, int, int, int]  # the first counts most; 0: none
    vote: bool
    lifetime_s: float
    renewal_s: float


# ---- entries of subscription lists


@rule
def renewals(own: Dpsp, subscribed_s: float, now_s: float) -> int:
    """How often a subscriber has renewed an entry by now."""
    return int((now_s - subscribed_s) / own.renewal_s)


@rule
def lapses_s(subscribed_s: float, renewed: int, renewal_s: float, lifetime_s: float) -> float:
    """Until when an entry that was renewed so often lives."""
    return subscribed_s + renewed * renewal_s + lifetime_s


@rule
def is_news(renewed: int, hops: int, known_renewed: int, known_hops: int) -> bool:
    """Whether a neighbour's entry replaces the one known: it is younger, or as young and nearer to the subscriber."""
    return renewed > known_renewed or (renewed == known_renewed and hops + 1 < known_hops)


# ---- filters (A. Selecting Bundles for Forwarding)


@rule
def offers(own: Dpsp, offer: Offer) -> bool:
    """Whether a bundle passes the filters, by the hop counts of its channel in the neighbour's list and in one's own.

    The Duplicate filter works on what the neighbour says it has seen, before this is asked.
    """
    if own.known_filter and offer.theirs == FAR and offer.mine == FAR:
        return False
    if own.hop_filter and offer.mine < FAR:
        if offer.theirs == FAR:
            return not own.missing_is_far
        return offer.theirs <= offer.mine + own.hop_tolerance
    return True


# ---- priorities


@rule
def one_prefers(priority: int, one: Offer, other: Offer) -> int:
    """1 if a priority sends `one` before `other`, -1 if after, 0 if it sees no difference."""
    if priority == SHORT_DELAY:
        first, second = one.created_s, other.created_s
    elif priority == LONG_DELAY:
        first, second = other.created_s, one.created_s
    elif priority == HOP_COUNT:
        first, second = other.theirs, one.theirs
    elif priority == POPULARITY:
        first, second = one.popularity, other.popularity
    else:
        return 0
    if first > second:
        return 1
    return -1 if first < second else 0


@rule
def prefers(own: Dpsp, one: Offer, other: Offer) -> int:
    """Above 0 if the priorities together send `one` before `other`, below 0 if after, 0 if they do not care."""
    total = 0
    for priority in own.priorities:
        says = one_prefers(priority, one, other)
        if says != 0 and not own.vote:
            return says
        total += says
    return total


def worth_of(own: Dpsp) -> Callable[[Offer], tuple[float, ...]] | None:
    """What sorts bundles as `prefers` does, the lowest first; None: a vote is no order."""
    asked = [priority for priority in own.priorities if priority]
    if own.vote and len(asked) > 1:
        return None

    def worth(offer: Offer) -> tuple[float, ...]:
        values = (0.0, -offer.created_s, offer.created_s, offer.theirs, -offer.popularity)
        return tuple(values[priority] for priority in asked)

    return worth


# ---- lists, of the router object


@dataclass(frozen=True, slots=True)
class Entry:
    """One subscription as it stands in a list; its subscriber says how long it lives and how often it is renewed."""

    id: Hashable  # of the subscriber's subscriptions
    subscriber: Hashable
    channel: Channel
    subscribed_s: float
    lifetime_s: float
    renewal_s: float
    renewed: int
    hops: int  # from the subscriber

    @property
    def lapses_s(self) -> float:
        """Until when it lives."""
        return lapses_s(self.subscribed_s, self.renewed, self.renewal_s, self.lifetime_s)


class SubscriptionList(Knowledge):
    """Entries of all known subscriptions."""

    def __init__(self, node: Hashable, own: Dpsp, subscriptions: OwnSubscriptions) -> None:
        super().__init__(node, own, subscriptions)
        self.own = own
        self.known: dict[tuple[Hashable, Hashable], Entry] = {}

    def write(self, now_s: float) -> tuple[int, tuple[Entry, ...]]:
        """Own subscriptions, renewed as often as is due, and others' that have not lapsed."""
        lifetime_s, renewal_s = self.own.lifetime_s, self.own.renewal_s
        own = [
            Entry(id, self.node, channel, since_s, lifetime_s, renewal_s, renewals(self.own, since_s, now_s), 0)
            for id, (channel, since_s) in self.subscriptions.open.items()
        ]
        entries = own + self._alive(self.known.values(), now_s)
        return len(entries), tuple(entries)

    def learn(self, peer: Hashable, content: tuple[Entry, ...], is_first: bool, now_s: float) -> View:
        """Merge entries; note hop counts there and here, for each channel. Own subscriptions do not count."""
        theirs: dict[Channel, float] = {}
        news = []
        for entry in self._alive(content, now_s):
            if entry.subscriber == self.node:
                continue
            theirs[entry.channel] = min(theirs.get(entry.channel, FAR), entry.hops)
            old = self.known.get((entry.subscriber, entry.id))
            if old is None or is_news(entry.renewed, entry.hops, old.renewed, old.hops):
                here = replace(entry, hops=entry.hops + 1)
                self.known[entry.subscriber, entry.id] = here
                news.append(here)
        mine: dict[Channel, float] = {}
        popularity: dict[Channel, float] = {}
        for entry in self._alive(self.known.values(), now_s):
            mine[entry.channel] = min(mine.get(entry.channel, FAR), entry.hops)
            popularity[entry.channel] = popularity.get(entry.channel, 0.0) + 1.0
        return View(theirs, mine, popularity, falls=True, news=news)

    def forget(self, now_s: float) -> list[Entry]:
        """Forget entries that have lapsed; returns them."""
        lapsed = [entry for entry in self.known.values() if is_expired(now_s, entry.lapses_s)]
        for entry in lapsed:
            del self.known[entry.subscriber, entry.id]
        return lapsed

    def restore(self, entries: list[Entry]) -> None:
        """Know again what was known before the node was started again."""
        self.known = {(entry.subscriber, entry.id): entry for entry in entries}

    def _alive(self, entries: Iterable[Entry], now_s: float) -> list[Entry]:
        return [entry for entry in entries if not is_expired(now_s, entry.lapses_s)]


DECISIONS = Decisions(offers=offers, prefers=prefers, worth_of=worth_of, knowledge=SubscriptionList)
