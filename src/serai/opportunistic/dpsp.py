"""DPSP, the DTN Pub/Sub Protocol: routers that meet exchange subscription lists, then filter and sort what they send.

J. Greifenberg and D. Kutscher, "Efficient publish/subscribe-based multicast for opportunistic networking with
self-organized resource utilization" (2008), and where its parts stand here:

    Subscribing: lists with creation, lifetime, hops, id    Entry; renewals, lapses_s, is_news
    Core operation 1, exchange of lists                     SubscriptionList; writes and learns
    2, a queue for each neighbour                           engine.forwarding.choose: one per direction of a contact
    3, filters                                              offers: Known Subscription, Hop Count; Duplicate is shared
    4, priorities                                           prefers: Short Delay, Long Delay, Hop Count, Popularity
    5, send until the queue is empty or the contact breaks  engine
    6, pro-active distribution                              what passes the filters goes to anybody

The rules in words, with everything the text leaves open, are in docs/dpsp.md; each open point is a setting below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field as setting
from pydantic import field_validator

from serai.core.rules import rule, step
from serai.core.units import Seconds
from serai.opportunistic.router.knowledge import Knowledge, OwnSubscriptions, View
from serai.opportunistic.router.messages import Channel
from serai.opportunistic.routing import Room, RoutingProtocol, Size
from serai.opportunistic.rules import Offer, RouterRules, RouterSettings, is_expired, shared_rules

if TYPE_CHECKING:
    from serai.opportunistic.engine.state import Net

FILTERS = ("known-subscription", "hop-count", "duplicate")
PRIORITIES = ("short-delay", "long-delay", "hop-count", "popularity")
SHORT_DELAY, LONG_DELAY, HOP_COUNT, POPULARITY = range(1, 5)
FAR = math.inf  # the hop count of a channel for which there is no entry

Filter = Literal["known-subscription", "hop-count", "duplicate"]
Priority = Literal["short-delay", "long-delay", "hop-count", "popularity"]


class Settings(RouterSettings):
    """One name for each point that the text leaves open."""

    name: Literal["dpsp"] = "dpsp"
    filters: tuple[Filter, ...] = setting(
        ("duplicate",), description="Filters that remove bundles from a neighbour's queue; any combination."
    )
    priorities: tuple[Priority, ...] = setting(
        ("short-delay",),
        description="Priorities that sort a neighbour's queue; any combination, the first counts most.",
    )
    combine: Literal["vote", "order"] = setting(
        "vote", description="Several priorities decide by majority, or the first that sees a difference decides."
    )
    hop_tolerance: int = setting(
        0, ge=0, description="The Hop Count filter lets pass what is at most this many hops further at the neighbour."
    )
    missing_entry: Literal["pass", "far"] = setting(
        "pass",
        description="A channel without an entry at the neighbour passes the Hop Count filter, or counts as far away.",
    )
    lifetime_s: Seconds = setting(
        86_400.0, gt=0, alias="lifetime", description="How long an entry lives unless its subscriber renews it."
    )
    renewal: float = setting(
        0.9, gt=0, le=1, description="A subscriber renews its entry after this part of the entry's lifetime."
    )

    @field_validator("filters", "priorities", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else (value,) if isinstance(value, str) else value

    @field_validator("filters", "priorities")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError("each may stand here once")
        return value


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


def rules_of(settings: Settings) -> RouterRules:
    """The settings as rules and kernels read them. There are always lists; a hop count of 0 is the subscriber's."""
    codes = [PRIORITIES.index(name) + 1 for name in settings.priorities]
    first, second, third, fourth = codes + [0] * (len(PRIORITIES) - len(codes))
    own = Dpsp(
        known_filter="known-subscription" in settings.filters,
        hop_filter="hop-count" in settings.filters,
        hop_tolerance=settings.hop_tolerance,
        missing_is_far=settings.missing_entry == "far",
        priorities=(first, second, third, fourth),
        vote=settings.combine == "vote",
        lifetime_s=settings.lifetime_s,
        renewal_s=max(round(settings.lifetime_s * settings.renewal * 1e3), 1) / 1e3,  # lists have whole milliseconds
    )
    leaves_out_seen = "duplicate" in settings.filters
    return shared_rules(settings, lists=True)._replace(
        leaves_out_seen=leaves_out_seen, if_wanted=0.0, if_unknown=FAR, own=own
    )


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


# ---- lists, in the compiled loop. A list, and the memory of a node: one number for each subscription of the world, in
# which renewals and hops are packed. Those of a node's own subscriptions are worked out when a list is written.

UNKNOWN = -1.0
_ONE_RENEWAL = 65536


@rule
def packed(renewed: int, hops: int) -> float:
    """An entry as one number."""
    return float(renewed * _ONE_RENEWAL + hops)


@rule
def renewed_in(entry: float) -> int:
    """How often an entry was renewed; below 0 if it is unknown."""
    return int(entry) // _ONE_RENEWAL


@rule
def hops_in(entry: float) -> int:
    """How far an entry is from its subscriber."""
    return int(entry) % _ONE_RENEWAL


def room_for(size: Size) -> Room:
    """How many numbers there are."""
    return Room(in_list=max(size.subscriptions, 1), in_memory=size.subscriptions, at_first=UNKNOWN)


@step
def is_alive(own: Dpsp, net: Net, s: int, entry: float) -> bool:
    """Whether an entry on subscription `s` is known and has not lapsed."""
    return entry != UNKNOWN and not is_expired(
        net.run[0].now_s,
        lapses_s(net.subscriptions[s].from_s, renewed_in(entry), own.renewal_s, own.lifetime_s),
    )


@step
def writes(own: Dpsp, net: Net, link: int) -> int:
    """Put the subscriptions that the sender knows of, its own among them, into its list; how many there are."""
    sender, now_s, count = net.links[link].sender, net.run[0].now_s, 0
    net.links[link].listed = net.run[0].began
    for s in range(net.run[0].began):
        entry = UNKNOWN
        if net.subscriptions[s].node == sender:
            if now_s < net.subscriptions[s].to_s:
                entry = packed(renewals(own, net.subscriptions[s].from_s, now_s), 0)
        elif is_alive(own, net, s, net.memory[sender, s]):
            entry = net.memory[sender, s]
        net.row[link, s] = entry
        count += entry != UNKNOWN
    return count


@step
def learns(own: Dpsp, net: Net, link: int) -> None:
    """Merge the list's entries into the receiver's own; note each channel's hop counts, there and here.

    The receiver's own subscriptions do not count: whatever it has, it has already got.
    """
    node, back = net.links[link].receiver, link ^ 1
    for channel in range(len(net.wants)):
        net.views[back, channel].theirs = net.views[back, channel].mine = FAR
        net.views[back, channel].popularity = 0.0
    for s in range(net.run[0].began):
        if net.subscriptions[s].node == node:
            continue
        view = net.views[back, net.subscriptions[s].channel]
        if s < net.links[link].listed and is_alive(own, net, s, net.row[link, s]):
            renewed, hops = renewed_in(net.row[link, s]), hops_in(net.row[link, s])
            view.theirs = min(view.theirs, hops)
            if is_news(renewed, hops, renewed_in(net.memory[node, s]), hops_in(net.memory[node, s])):
                net.memory[node, s] = packed(renewed, hops + 1)
        if is_alive(own, net, s, net.memory[node, s]):
            view.mine = min(view.mine, hops_in(net.memory[node, s]))
            view.popularity += 1.0


PROTOCOL = RoutingProtocol(
    title="publish/subscribe for bundle routers",
    paper="DPSP, the DTN Pub/Sub Protocol (Greifenberg and Kutscher 2008)",
    settings=Settings,
    rules_of=rules_of,
    offers=offers,
    prefers=prefers,
    worth_of=worth_of,
    knowledge=SubscriptionList,
    room_for=room_for,
    writes=writes,
    learns=learns,
)
