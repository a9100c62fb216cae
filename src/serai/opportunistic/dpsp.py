"""DPSP, the DTN Pub/Sub Protocol: routers that meet exchange subscription lists, then filter and sort what they send.

The text (seed text 004) and where it stands here:

    Subscribing: lists with creation, lifetime, hops, id    renewed_s, lapses_s, is_news
    Core operation 1, exchange of lists                     routing.list_bytes; replication.learn_subscriptions
    2, a queue for each neighbour                           replication.choose: one per direction of a contact
    3, filters                                              passes: Duplicate, Known Subscription, Hop Count
    4, priorities                                           prefers: Short Delay, Long Delay, Hop Count, Popularity
    5, send until the queue is empty or the contact breaks  replication
    6, pro-active distribution                              what passes the filters goes to anybody

The rules in words, with all that the text leaves open, are in docs/opportunistic/dpsp.md; each open point is a setting.
"""

import math
from typing import Literal, NamedTuple

from pydantic import Field as setting
from pydantic import field_validator

from serai.core.rules import rule
from serai.core.units import Seconds
from serai.opportunistic.rules import DPSP, RouterSettings, Rules, shared_rules

PAPER = "DPSP, the DTN Pub/Sub Protocol (Greifenberg and Kutscher 2008)"

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


def rules_of(settings: Settings) -> Rules:
    """The settings as the kernels read them."""
    codes = [PRIORITIES.index(name) + 1 for name in settings.priorities]
    first, second, third, fourth = codes + [0] * (len(PRIORITIES) - len(codes))
    return shared_rules(DPSP, settings, lists=True)._replace(
        known_filter="known-subscription" in settings.filters,
        hop_filter="hop-count" in settings.filters,
        duplicate_filter="duplicate" in settings.filters,
        hop_tolerance=settings.hop_tolerance,
        missing_is_far=settings.missing_entry == "far",
        priorities=(first, second, third, fourth),
        vote=settings.combine == "vote",
        entry_lifetime_s=settings.lifetime_s,
        renewal_s=settings.lifetime_s * settings.renewal,
    )


# ---- subscription lists


@rule
def renewals(rules: Rules, subscribed_s: float, now_s: float) -> int:
    """How often a subscriber has renewed an entry by now."""
    return int((now_s - subscribed_s) / rules.renewal_s)


@rule
def lapses_s(rules: Rules, subscribed_s: float, renewed: int) -> float:
    """Until when an entry that was renewed so often lives."""
    return subscribed_s + renewed * rules.renewal_s + rules.entry_lifetime_s


@rule
def is_news(renewed: int, hops: int, known_renewed: int, known_hops: int) -> bool:
    """Whether a neighbour's entry replaces the one known: it is younger, or as young and nearer to the subscriber."""
    return renewed > known_renewed or (renewed == known_renewed and hops + 1 < known_hops)


# ---- filters (A. Selecting Bundles for Forwarding)


@rule
def passes(rules: Rules, theirs: float, mine: float) -> bool:
    """Whether a bundle passes the filters, by the hop counts of its channel in the neighbour's list and in one's own.

    The Duplicate filter works on what the neighbour says it has seen, before this is asked.
    """
    if rules.known_filter and theirs == FAR and mine == FAR:
        return False
    if rules.hop_filter and mine < FAR:
        if theirs == FAR:
            return not rules.missing_is_far
        return theirs <= mine + rules.hop_tolerance
    return True


# ---- priorities


class Standing(NamedTuple):
    """What priorities look at: when a bundle was created, how far its channel's nearest subscriber is from the
    neighbour, and how many subscriptions to the channel are known."""

    created_s: float
    hops: float
    popularity: float


@rule
def prefers(priority: int, one: Standing, other: Standing) -> int:
    """1 if a priority sends `one` before `other`, -1 if after, 0 if it sees no difference."""
    if priority == SHORT_DELAY:
        first, second = one.created_s, other.created_s
    elif priority == LONG_DELAY:
        first, second = other.created_s, one.created_s
    elif priority == HOP_COUNT:
        first, second = other.hops, one.hops
    elif priority == POPULARITY:
        first, second = one.popularity, other.popularity
    else:
        return 0
    if first > second:
        return 1
    return -1 if first < second else 0


@rule
def verdict(rules: Rules, one: Standing, other: Standing) -> int:
    """Above 0 if the priorities together send `one` before `other`, below 0 if after, 0 if they do not care."""
    total = 0
    for priority in rules.priorities:
        says = prefers(priority, one, other)
        if says != 0 and not rules.vote:
            return says
        total += says
    return total
