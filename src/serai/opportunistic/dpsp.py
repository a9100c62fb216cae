"""DPSP, the DTN Pub/Sub Protocol: routers that meet exchange subscription lists, then filter and sort what they send.

J. Greifenberg and D. Kutscher, "Efficient publish/subscribe-based multicast for opportunistic networking with
self-organized resource utilization" (2008), and where its parts stand here:

    Subscribing: lists with creation, lifetime, hops, id    entries: Entry; renewals, lapses_s, is_news
    Core operation 1, exchange of lists                     entries: SubscriptionList; writes and learns
    2, a queue for each neighbour                           engine.forwarding.choose: one per direction of a contact
    3, filters (in entries)                                 offers: Known Subscription, Hop Count; Duplicate is shared
    4, priorities (in entries)                              prefers: Short Delay, Long Delay, Hop Count, Popularity
    5, send until the queue is empty or the contact breaks  engine
    6, pro-active distribution                              what passes the filters goes to anybody

What a node in the field needs stands apart, in `serai.opportunistic.entries`. The rules in words, with everything the
text leaves open, are in docs/dpsp.md; each open point is a setting below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field as setting
from pydantic import field_validator

from serai.core.rules import rule, step
from serai.core.units import Seconds
from serai.opportunistic.entries import (
    FAR,
    Dpsp,
    SubscriptionList,
    is_news,
    lapses_s,
    offers,
    prefers,
    renewals,
    worth_of,
)
from serai.opportunistic.routing import Room, RoutingProtocol, Size
from serai.opportunistic.rules import RouterRules, is_expired, shared_rules
from serai.opportunistic.settings import RouterSettings

if TYPE_CHECKING:
    from serai.opportunistic.engine.state import Net

FILTERS = ("known-subscription", "hop-count", "duplicate")
PRIORITIES = ("short-delay", "long-delay", "hop-count", "popularity")

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
        0,
        ge=0,
        description="The Hop Count filter passes a bundle if the neighbour is at most this many hops further from a"
        " subscriber.",
    )
    missing_entry: Literal["pass", "far"] = setting(
        "pass",
        description="A channel without an entry at the neighbour passes the Hop Count filter, or counts as far away.",
    )
    lifetime_s: Seconds = setting(
        86_400.0, gt=0, alias="lifetime", description="How long an entry lives unless its subscriber renews it."
    )
    renewal: float = setting(
        0.9, gt=0, le=1, description="A subscriber renews its entry after this fraction of the entry's lifetime."
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
