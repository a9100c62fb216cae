"""What all routers of opportunistic networks share: the rules that are not one protocol's own.

A rule is a pure function of numbers. The compiled loop (`serai.opportunistic.engine`) and the router that a live node
drives (`serai.opportunistic.router`) ask the same rules; docs/dpsp.md has them in words.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from serai.core.order import key_in_slot, mix, slot_key
from serai.core.rules import rule

if TYPE_CHECKING:
    from serai.opportunistic.settings import RouterSettings

LIVE, VECTOR, BLOOM = range(3)  # how a node knows what its neighbour has seen
RANDOM, OLDEST, NEWEST, SMALLEST, SOONEST = range(5)  # who goes first among equals
ORDERS = ("random", "oldest", "newest", "smallest", "soonest")
MICROSECONDS = 1e6


class RouterRules(NamedTuple):
    """The settings as rules and kernels read them."""

    seen: int
    lists: bool  # whether lists are exchanged at all
    order: int
    wanted_first: bool
    consume: bool
    skip_late: bool
    repeat_s: float
    header_bytes: int
    entry_bytes: int
    id_bytes: int
    bloom_bits: int
    announce: bool  # lists are due when the node's own subscriptions change
    leaves_out_seen: bool = True  # a neighbour is not offered what it is known to have seen
    copies: int = 0  # that a bundle starts with; 0: copies are not counted
    if_wanted: float = 1.0  # what `Offer.theirs` is for a channel that the neighbour has subscribed to
    if_unknown: float = 0.0  # what `Offer.theirs` and `Offer.mine` are for a channel of which nothing is known
    best_of_links: bool = False  # one thing at a time: the best for all neighbours goes first, not that for the first
    own: Any = None  # the protocol's own numbers; in the compiled loop, those of all protocols in a tuple
    protocol: int = 0  # for the compiled loop: its place in the registry


def shared_rules(settings: "RouterSettings", *, lists: bool | None = None) -> RouterRules:
    """The settings that all routers have, as rules; `lists`: whether there are lists, whatever `seen` is."""
    seen = ("live", "vector", "bloom").index(settings.seen)
    return RouterRules(
        seen=seen,
        lists=seen != LIVE if lists is None else lists,
        order=ORDERS.index(settings.order),
        wanted_first=settings.wanted_first,
        consume=settings.consume,
        skip_late=settings.skip_late,
        repeat_s=settings.repeat_s,
        header_bytes=settings.header_bytes,
        entry_bytes=settings.entry_bytes,
        id_bytes=settings.id_bytes,
        bloom_bits=settings.bloom_bits,
        announce=settings.announce == "change",
    )


class Offer(NamedTuple):
    """A bundle that might go to a neighbour, as protocols look at it."""

    wanted: bool  # whether the neighbour has subscribed to it, as far as is known
    copies: int  # that the sender has of it; 0 where copies are not counted
    theirs: float  # what the neighbour's last list says of its channel
    mine: float  # and what the sender itself knew of the channel when it got that list
    popularity: float  # how many subscriptions to the channel the sender knew then (DPSP)
    created_s: float


# ---- time


@rule
def is_expired(now_s: float, expires_s: float) -> bool:
    """Whether a bundle's lifetime is over: it is gone at that very instant."""
    return now_s >= expires_s


@rule
def has_unit_left(now_s: float, expires_s: float, unit_s: float) -> bool:
    """Whether a whole unit of a bundle's lifetime is left: with lifetimes in whole units, nothing less counts."""
    return expires_s - now_s >= unit_s


@rule
def transfer_s(size_bytes: int, rate_bps: float) -> float:
    """How long so many bytes take on a link."""
    return size_bytes * 8.0 / rate_bps


@rule
def sent_bytes(size_bytes: int, rate_bps: float, took_s: float) -> int:
    """How many of the bytes of a transfer were on the air when it broke after `took_s`."""
    return min(size_bytes, int(took_s * rate_bps / 8.0))


# ---- who goes first


@rule
def instant_key(key: int, now_s: float) -> int:
    """What the random orders of one instant are drawn from."""
    return slot_key(key, int(now_s * MICROSECONDS))


@rule
def link_key(key_of_instant: int, sender: int, receiver: int) -> int:
    """What the random orders on one link at one instant are drawn from."""
    return key_in_slot(key_in_slot(key_of_instant, sender), receiver)


@rule
def tie_rank(order: int, key_of_link: int, bundle: int, size_bytes: int, expires_s: float) -> tuple[float, int]:
    """The place of a bundle among its equals: the lowest goes first."""
    if order == RANDOM:
        return 0.0, key_in_slot(key_of_link, bundle)
    if order == NEWEST:
        return 0.0, -bundle
    if order == SMALLEST:
        return float(size_bytes), bundle
    return expires_s if order == SOONEST else 0.0, bundle


# ---- lists


@rule
def list_bytes(rules: RouterRules, entries: int, seen: int) -> int:
    """The size of a list with so many entries, that tells of so many seen bundles."""
    size = rules.header_bytes + entries * rules.entry_bytes
    if tells_seen(rules):
        if rules.seen == VECTOR:
            size += seen * rules.id_bytes
        elif rules.seen == BLOOM:
            size += bloom_size(rules.bloom_bits, seen) // 8
    return size


@rule
def tells_seen(rules: RouterRules) -> bool:
    """Whether lists say which bundles were seen."""
    return rules.seen != LIVE and rules.leaves_out_seen


@rule
def bloom_size(bits_each: int, seen: int) -> int:
    """The bits of a Bloom filter for so many bundles: whole bytes, at least one."""
    return max((bits_each * seen + 7) // 8, 1) * 8


@rule
def bloom_hashes(bits_each: int) -> int:
    """How many bits a Bloom filter sets for each bundle: ln 2 times the bits it has for it."""
    return max(int(bits_each * 0.6931471805599453 + 0.5), 1)


@rule
def bloom_bit(salt: int, bundle: int, which: int, size: int) -> int:
    """The place of one of a bundle's bits. Each list has another salt, so what one mistakes the next does not."""
    first = key_in_slot(salt, bundle)
    return (first + which * (mix(first + 1) | 1)) % size


# ---- stores

REFUSE, EVICT_OLDEST, EVICT_SOONEST, EVICT_FIRST_IN, EVICT_YOUNGEST, EVICT_LARGEST, EVICT_MOST_COPIED = range(7)
EVICT_LEAST_WANTED = 7
WHEN_FULL = ("refuse", "oldest", "soonest", "first-in", "youngest", "largest", "most-copied", "least-wanted")


class Kept(NamedTuple):
    """A bundle in a full store."""

    expires_s: float
    size_bytes: int
    came_s: float  # when it came here
    sent: int  # how often it was handed on from here
    asked: int  # contacts of this node whose neighbour wanted its channel


@rule
def leaves_before(when_full: int, one: Kept, other: Kept) -> bool:
    """Whether, to make room, a bundle leaves before another one that is older."""
    if when_full == EVICT_SOONEST:
        return one.expires_s < other.expires_s
    if when_full == EVICT_FIRST_IN:
        return one.came_s < other.came_s
    if when_full == EVICT_LARGEST:
        return one.size_bytes > other.size_bytes
    if when_full == EVICT_MOST_COPIED:
        return one.sent > other.sent
    if when_full == EVICT_LEAST_WANTED:
        return one.asked < other.asked
    return when_full == EVICT_YOUNGEST
