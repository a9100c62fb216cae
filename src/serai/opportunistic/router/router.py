"""A router of an opportunistic network as a pure object: what happens goes in, what to do comes out.

It reads no clock and does no I/O: whoever drives it (a live node, or a test that joins several in memory) says what has
happened and when, and asks for the next message whenever a link is idle. The compiled twin for simulations is
`serai.opportunistic.engine.loop`; both ask the same rules, and random tests hold them equal.

    router.subscribe(7, "news", now_s=0.0)
    router.contact_up("peer", now_s=5.0, rate_bps=1e6)
    router.next("peer", now_s=5.0)                       -> Letter (a list) to send, or Parcel (a bundle), or None
    router.sent("peer", accepted=True, now_s=5.1)        the link is idle again
    router.receive("peer", parcel, now_s=5.2)            -> Received: what became of it, and whom it is delivered to
    router.contact_down("peer", now_s=6.0)
    router.expire(now_s=7.0)                             -> bundles dropped
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from serai.opportunistic import direct, spray
from serai.opportunistic.dpsp import FAR, Standing, is_news, lapses_s, passes, renewals, verdict
from serai.opportunistic.prophet import HERE, after_encounter, aging_factor, by_way_of
from serai.opportunistic.prophet import offers as prophet_offers
from serai.opportunistic.rules import (
    BLOOM,
    DIRECT,
    DPSP,
    LIVE,
    PROPHET,
    REFUSE,
    SPRAY,
    Rules,
    bloom_bit,
    bloom_hashes,
    bloom_size,
    instant_key,
    is_expired,
    leaves_before,
    link_key,
    list_bytes,
    tells_seen,
    tie_rank,
    transfer_s,
)

Channel = Hashable
Fate = Literal["relayed", "duplicate", "refused", "late"]


# ---- what is sent


@dataclass(frozen=True)
class Bundle:
    """A piece of content on a channel. Numbers follow the order of creation."""

    number: int
    source: int
    channel: Channel
    created_s: float
    size_bytes: int
    lifetime_s: float

    @property
    def expires_s(self) -> float:
        """When its lifetime is over."""
        return self.created_s + self.lifetime_s


@dataclass(frozen=True)
class Entry:
    """One subscription as it stands in a list: id, channel, creation, how often renewed, hops from the subscriber."""

    id: int
    channel: Channel
    subscribed_s: float
    renewed: int
    hops: int


@dataclass(frozen=True)
class Filter:
    """A Bloom filter over the numbers of seen bundles."""

    bits: frozenset[int]
    size: int
    hashes: int
    salt: int

    def __contains__(self, number: object) -> bool:
        assert isinstance(number, int)
        return all(bloom_bit(self.salt, number, which, self.size) in self.bits for which in range(self.hashes))


@dataclass(frozen=True)
class Letter:
    """What a node tells a neighbour about itself."""

    made_s: float
    size_bytes: int
    seen: frozenset[int] | Filter
    content: Any
    """Of the protocol: the channels it wants, the entries of its subscription list, or its predictabilities."""


@dataclass(frozen=True)
class Parcel:
    """A bundle on its way to a neighbour."""

    bundle: Bundle
    hops: int  # so far
    copies: int  # that go with it (spray-and-wait)

    @property
    def size_bytes(self) -> int:
        """What the bundle takes on the link."""
        return self.bundle.size_bytes


# ---- what is known


@dataclass
class Copy:
    """A bundle in the store."""

    bundle: Bundle
    hops: int
    copies: int


class Neighbour(Protocol):
    """What a neighbour answers at any moment, for nothing, with `seen = "live"`: no real one does."""

    def has_seen(self, number: int) -> bool:
        """Whether it ever had the bundle."""

    def wants(self, channel: Channel) -> bool:
        """Whether it has subscribed to the channel now."""


@dataclass
class Contact:
    """What a router knows of a neighbour while they are in contact."""

    rate_bps: float
    carries: bool
    due_s: float
    live: Neighbour | None
    known: set[int] = field(default_factory=set)
    filters: list[tuple[Filter, float]] = field(default_factory=list)
    lists: int = 0
    theirs: dict[Channel, float] = field(default_factory=dict)
    mine: dict[Channel, float] = field(default_factory=dict)
    popularity: dict[Channel, float] = field(default_factory=dict)
    sending: Letter | Parcel | None = None
    reserved: int = 0

    def knows(self, bundle: Bundle) -> bool:
        """Whether there is no need to offer the bundle; no list tells of bundles younger than itself."""
        return bundle.number in self.known or any(
            bundle.created_s <= made_s and bundle.number in seen for seen, made_s in self.filters
        )


@dataclass(frozen=True)
class Received:
    """What became of a parcel, whether it is delivered to the node's own subscriber, and who had to leave the store."""

    fate: Fate
    delivered: bool = False
    evicted: tuple[Bundle, ...] = ()


class Router:
    """One node's part in the protocol."""

    def __init__(
        self,
        node: int,
        rules: Rules,
        *,
        capacity_bytes: int = 1 << 60,
        when_full: int = 1,
        carries: bool = True,
        key: int = 0,
    ) -> None:
        self.node, self.rules, self.carries, self.key = node, rules, carries, key
        self.capacity_bytes, self.when_full = capacity_bytes, when_full
        self.store: dict[int, Copy] = {}
        self.seen: dict[int, Bundle] = {}
        self.given: set[int] = set()
        self.contacts: dict[int, Contact] = {}
        self.subscriptions: dict[int, tuple[Channel, float]] = {}
        self.own_ids: set[int] = set()
        self.knowledge = _KNOWLEDGE.get(rules.protocol, Wishes)(self)

    # -- the application above

    def subscribe(self, id: int, channel: Channel, now_s: float) -> list[Bundle]:
        """Subscribe to a channel; returns what was carried for others so far and is now delivered."""
        self.subscriptions[id] = (channel, now_s)
        self.own_ids.add(id)
        carried = [copy.bundle for copy in self.store.values() if copy.bundle.channel == channel]
        return [bundle for bundle in sorted(carried, key=_by_number) if self._deliver(bundle)]

    def unsubscribe(self, id: int) -> None:
        """End a subscription. Others forget it when its entry lapses."""
        self.subscriptions.pop(id, None)

    def publish(self, bundle: Bundle, now_s: float) -> tuple[bool, list[Bundle]]:
        """Store a new bundle; returns whether there was room, and what left the store for it."""
        if is_expired(now_s, bundle.expires_s):
            return False, []
        self.seen[bundle.number] = bundle
        fits, evicted = self._make_room(bundle.size_bytes)
        if fits:
            self.store[bundle.number] = Copy(bundle, 0, self.rules.copies)
        return fits, evicted

    def wants(self, channel: Channel) -> bool:
        """Whether the node has subscribed to the channel now."""
        return any(wanted == channel for wanted, _ in self.subscriptions.values())

    def has_seen(self, number: int) -> bool:
        """Whether the node ever had the bundle."""
        return number in self.seen

    # -- the links below

    def contact_up(
        self, peer: int, now_s: float, rate_bps: float, carries: bool = True, live: Neighbour | None = None
    ) -> None:
        """A contact begins; `carries`: whether the neighbour carries for others."""
        self.contacts[peer] = Contact(rate_bps, carries, now_s, live)

    def contact_down(self, peer: int) -> None:
        """A contact is over; what was being sent has not arrived."""
        if self.contacts[peer].sending is not None:
            self.sent(peer, accepted=False, arrived=False)
        del self.contacts[peer]

    def next(self, peer: int, now_s: float) -> Letter | Parcel | None:
        """What to send to a neighbour whose link is idle: the list if it is due, or the next bundle of its queue."""
        return self.next_list(peer, now_s) or self.next_bundle(peer, now_s)

    def next_list(self, peer: int, now_s: float) -> Letter | None:
        """The list for a neighbour, if one is due."""
        contact = self.contacts[peer]
        if not self.rules.lists or contact.due_s > now_s:
            return None
        contact.due_s = now_s + self.rules.repeat_s
        entries, content = self.knowledge.write(now_s)
        seen = self._seen_in_list(peer, now_s)
        count = len(self.seen) if tells_seen(self.rules) else 0
        contact.sending = Letter(now_s, list_bytes(self.rules, entries, count), seen, content)
        return contact.sending

    def next_bundle(self, peer: int, now_s: float, wanted_only: bool = False) -> Parcel | None:
        """The next bundle for a neighbour, if there is one to offer."""
        contact = self.contacts[peer]
        if self.rules.lists and contact.lists == 0:
            return None
        best = self._first(peer, contact, now_s, wanted_only)
        if best is None:
            return None
        gives = 0
        contact.reserved = 0
        if self.rules.protocol == SPRAY:
            gives = spray.given(self.rules, best.copies)
            contact.reserved = best.copies - spray.left(best.copies, gives)
            best.copies -= contact.reserved
        contact.sending = Parcel(best.bundle, best.hops, gives)
        return contact.sending

    def sent(self, peer: int, accepted: bool, arrived: bool = True) -> None:
        """The link to a neighbour is idle again; whether what was sent arrived, and was new to the neighbour."""
        contact = self.contacts[peer]
        message, contact.sending = contact.sending, None
        if not isinstance(message, Parcel):
            return
        if arrived:
            contact.known.add(message.bundle.number)
        copy = self.store.get(message.bundle.number)
        if not accepted and copy is not None:
            copy.copies += contact.reserved

    def hear(self, peer: int, letter: Letter, now_s: float) -> None:
        """A neighbour's list has arrived."""
        contact = self.contacts[peer]
        if isinstance(letter.seen, Filter):
            contact.filters.append((letter.seen, letter.made_s))
        else:
            contact.known |= letter.seen
        self.knowledge.learn(peer, contact, letter.content, now_s)
        contact.lists += 1

    def receive(self, peer: int, parcel: Parcel, now_s: float) -> Received:
        """A bundle has arrived from a neighbour."""
        bundle = parcel.bundle
        self.contacts[peer].known.add(bundle.number)
        if is_expired(now_s, bundle.expires_s):
            return Received("late")
        if bundle.number in self.seen:
            return Received("duplicate")
        wanted = self.wants(bundle.channel)
        stays, evicted = False, list[Bundle]()
        if not (wanted and self.rules.consume):
            stays, evicted = self._make_room(bundle.size_bytes)
        if not wanted and not stays:
            return Received("refused", evicted=tuple(evicted))
        self.seen[bundle.number] = bundle
        if stays:
            self.store[bundle.number] = Copy(bundle, parcel.hops + 1, parcel.copies)
        return Received("relayed", wanted and self._deliver(bundle), tuple(evicted))

    def expire(self, now_s: float) -> list[Bundle]:
        """Forget bundles whose lifetime is over; returns those that were in the store."""
        over = [bundle for bundle in self.seen.values() if is_expired(now_s, bundle.expires_s)]
        for bundle in over:
            del self.seen[bundle.number]
        return [self.store.pop(bundle.number).bundle for bundle in over if bundle.number in self.store]

    # -- inside

    def _deliver(self, bundle: Bundle) -> bool:
        """Whether the bundle is handed to the application: once, and not to its source."""
        if bundle.number in self.given or bundle.source == self.node:
            return False
        self.given.add(bundle.number)
        return True

    def _make_room(self, size_bytes: int) -> tuple[bool, list[Bundle]]:
        """Whether a bundle of this size fits, and what had to leave the store; what is being sent stays."""
        evicted: list[Bundle] = []
        if size_bytes > self.capacity_bytes:
            return False, evicted
        while sum(copy.bundle.size_bytes for copy in self.store.values()) + size_bytes > self.capacity_bytes:
            sending = {c.sending.bundle.number for c in self.contacts.values() if isinstance(c.sending, Parcel)}
            may_go = [copy.bundle for number, copy in sorted(self.store.items()) if number not in sending]
            if not may_go or self.when_full == REFUSE:
                return False, evicted
            victim = may_go[0]
            for bundle in may_go[1:]:
                if leaves_before(self.when_full, bundle.expires_s, victim.expires_s):
                    victim = bundle
            evicted.append(self.store.pop(victim.number).bundle)
        return True, evicted

    def _seen_in_list(self, peer: int, now_s: float) -> frozenset[int] | Filter:
        """What a list says about bundles seen."""
        if not tells_seen(self.rules):
            return frozenset()
        if self.rules.seen != BLOOM:
            return frozenset(self.seen)
        size, hashes = bloom_size(self.rules.bloom_bits, len(self.seen)), bloom_hashes(self.rules.bloom_bits)
        salt = self._link_key(peer, now_s)
        bits = {bloom_bit(salt, number, which, size) for number in self.seen for which in range(hashes)}
        return Filter(frozenset(bits), size, hashes, salt)

    def _link_key(self, peer: int, now_s: float) -> int:
        return link_key(instant_key(self.key, now_s), self.node, peer)

    def _first(self, peer: int, contact: Contact, now_s: float, wanted_only: bool) -> Copy | None:
        """The best of what may be offered. A vote may go round in a circle, so the way to it is part of the rule:
        bundles are looked at in order of creation, and each that beats the best so far takes its place."""
        best: Copy | None = None
        best_wanted, key = False, self._link_key(peer, now_s)
        for _, copy in sorted(self.store.items()):
            wanted = self._is_wanted(contact, copy.bundle.channel)
            if (wanted_only and not wanted) or not self._is_offered(contact, copy, wanted, now_s):
                continue
            if best is None or self._goes_before(contact, copy, wanted, best, best_wanted, key):
                best, best_wanted = copy, wanted
        return best

    def _goes_before(self, contact: Contact, copy: Copy, wanted: bool, best: Copy, best_wanted: bool, key: int) -> bool:
        if self.rules.wanted_first and wanted != best_wanted:
            return wanted
        says = 0
        if self.rules.protocol == DPSP:
            says = verdict(self.rules, _standing(contact, copy.bundle), _standing(contact, best.bundle))
        ranks = [tie_rank(self.rules.order, key, one.bundle.number) for one in (copy, best)]
        return says > 0 or (says == 0 and ranks[0] < ranks[1])

    def _is_wanted(self, contact: Contact, channel: Channel) -> bool:
        """Whether the neighbour wants the channel, as far as is known here."""
        if not self.rules.lists:
            assert contact.live is not None
            return contact.live.wants(channel)
        return contact.theirs.get(channel) == (0.0 if self.rules.protocol == DPSP else HERE)

    def _is_offered(self, contact: Contact, copy: Copy, wanted: bool, now_s: float) -> bool:
        """Whether a bundle is in the neighbour's queue."""
        bundle, rules = copy.bundle, self.rules
        if contact.knows(bundle) or not (wanted or contact.carries):
            return False
        if rules.seen == LIVE and rules.duplicate_filter and contact.live and contact.live.has_seen(bundle.number):
            return False
        if rules.skip_late and is_expired(now_s + transfer_s(bundle.size_bytes, contact.rate_bps), bundle.expires_s):
            return False
        unheard = FAR if rules.protocol == DPSP else 0.0
        theirs, mine = contact.theirs.get(bundle.channel, unheard), contact.mine.get(bundle.channel, unheard)
        if rules.protocol == DIRECT:
            return direct.offers(wanted)
        if rules.protocol == SPRAY:
            return spray.offers(copy.copies, wanted)
        if rules.protocol == PROPHET:
            return prophet_offers(wanted, theirs, mine)
        return rules.protocol != DPSP or passes(rules, theirs, mine)


def _by_number(bundle: Bundle) -> int:
    return bundle.number


def _standing(contact: Contact, bundle: Bundle) -> Standing:
    """What priorities look at."""
    hops = contact.theirs.get(bundle.channel, FAR)
    return Standing(bundle.created_s, hops, contact.popularity.get(bundle.channel, 0.0))


# ---- what lists are about


class Wishes:
    """Flooding, direct delivery, spray-and-wait: a list says which channels the node wants."""

    def __init__(self, router: Router) -> None:
        self.router = router

    def write(self, now_s: float) -> tuple[int, Any]:
        """How many entries a list has, and what it says."""
        wanted = frozenset(channel for channel, _ in self.router.subscriptions.values())
        return len(wanted), wanted

    def learn(self, peer: int, contact: Contact, content: Any, now_s: float) -> None:
        """A neighbour's list has arrived."""
        contact.theirs = dict.fromkeys(content, HERE)


class SubscriptionList(Wishes):
    """DPSP: entries of all known subscriptions, with hops from the subscriber."""

    def __init__(self, router: Router) -> None:
        super().__init__(router)
        self.known: dict[int, Entry] = {}

    def write(self, now_s: float) -> tuple[int, Any]:
        """Own subscriptions, renewed as often as is due, and others' that have not lapsed."""
        rules = self.router.rules
        own = [
            Entry(id, channel, since_s, renewals(rules, since_s, now_s), 0)
            for id, (channel, since_s) in self.router.subscriptions.items()
        ]
        entries = own + list(self._alive(self.known.values(), now_s))
        return len(entries), tuple(entries)

    def learn(self, peer: int, contact: Contact, content: Any, now_s: float) -> None:
        """Merge entries; note hop counts there and here, for each channel. Own subscriptions do not count."""
        theirs: dict[Channel, float] = {}
        for entry in self._alive(content, now_s):
            if entry.id in self.router.own_ids:
                continue
            theirs[entry.channel] = min(theirs.get(entry.channel, FAR), entry.hops)
            old = self.known.get(entry.id)
            if old is None or is_news(entry.renewed, entry.hops, old.renewed, old.hops):
                self.known[entry.id] = Entry(entry.id, entry.channel, entry.subscribed_s, entry.renewed, entry.hops + 1)
        mine: dict[Channel, float] = {}
        popularity: dict[Channel, float] = {}
        for entry in self._alive(self.known.values(), now_s):
            mine[entry.channel] = min(mine.get(entry.channel, FAR), entry.hops)
            popularity[entry.channel] = popularity.get(entry.channel, 0.0) + 1.0
        contact.theirs, contact.mine, contact.popularity = theirs, mine, popularity

    def _alive(self, entries: Iterable[Entry], now_s: float) -> list[Entry]:
        rules = self.router.rules
        return [e for e in entries if not is_expired(now_s, lapses_s(rules, e.subscribed_s, e.renewed))]


class Predictabilities(Wishes):
    """PRoPHET: how likely the node is to meet each node and each channel."""

    def __init__(self, router: Router) -> None:
        super().__init__(router)
        self.of: dict[tuple[str, Hashable], float] = {}
        self.aged_s = 0.0

    def write(self, now_s: float) -> tuple[int, Any]:
        """All that are above 0; channels that the node wants are here."""
        self._age(now_s)
        here = {("channel", channel): HERE for channel, _ in self.router.subscriptions.values()}
        told = {who: value for who, value in (self.of | here).items() if value > 0.0}
        return len(told), told

    def learn(self, peer: int, contact: Contact, content: Any, now_s: float) -> None:
        """The neighbour was met, and tells whom it meets (RFC 6693 2.1)."""
        self._age(now_s)
        rules, other, first = self.router.rules, ("node", peer), contact.lists == 0
        if first:
            self.of[other] = after_encounter(rules, self.of.get(other, 0.0))
        for who, told in content.items():
            if who in (other, ("node", self.router.node)):
                continue
            if who[0] == "node" or told < HERE:
                self.of[who] = by_way_of(rules, self.of.get(who, 0.0), self.of[other], told)
            elif first:
                self.of[who] = after_encounter(rules, self.of.get(who, 0.0))
        contact.theirs = {who[1]: told for who, told in content.items() if who[0] == "channel"}
        contact.mine = {who[1]: value for who, value in self.of.items() if who[0] == "channel"}

    def _age(self, now_s: float) -> None:
        if now_s > self.aged_s:
            factor = aging_factor(self.router.rules, now_s - self.aged_s)
            self.of = {who: value * factor for who, value in self.of.items()}
            self.aged_s = now_s


_KNOWLEDGE: dict[int, type[Wishes]] = {DPSP: SubscriptionList, PROPHET: Predictabilities}
