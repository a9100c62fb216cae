"""One node's part in a routing protocol: see `serai.opportunistic.router`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from serai.opportunistic.router.contact import Contact, Neighbour
from serai.opportunistic.router.knowledge import OwnSubscriptions
from serai.opportunistic.router.messages import (
    BloomFilter,
    Bundle,
    Channel,
    ControlMessage,
    DataMessage,
    bloom_filter,
)
from serai.opportunistic.router.store import Copy, Store
from serai.opportunistic.rules import (
    BLOOM,
    EVICT_OLDEST,
    LIVE,
    Offer,
    RouterSettings,
    instant_key,
    is_expired,
    link_key,
    list_bytes,
    tells_seen,
    tie_rank,
    transfer_s,
)

if TYPE_CHECKING:
    from serai.opportunistic.routing import RoutingProtocol

Fate = Literal["relayed", "duplicate", "refused", "late"]


@dataclass(frozen=True)
class Received:
    """What became of a bundle, whether it is delivered to the node's own subscriber, and what left the store for it."""

    fate: Fate
    delivered: bool = False
    evicted: tuple[Bundle, ...] = ()


class Router:
    """One node's part in the protocol."""

    def __init__(
        self,
        node: int,
        protocol: RoutingProtocol,
        settings: RouterSettings,
        *,
        capacity_bytes: int = 1 << 60,
        when_full: int = EVICT_OLDEST,
        carries: bool = True,
        key: int = 0,
    ) -> None:
        self.node, self.protocol, self.carries, self.key = node, protocol, carries, key
        self.rules = protocol.rules_of(settings)
        self.store = Store(capacity_bytes, when_full)
        self.seen: dict[int, Bundle] = {}
        self.delivered: set[int] = set()
        self.contacts: dict[int, Contact] = {}
        self.subscriptions = OwnSubscriptions()
        self.knowledge = protocol.knowledge(node, self.rules.own, self.subscriptions)

    # -- the application above

    def subscribe(self, id: int, channel: Channel, now_s: float) -> list[Bundle]:
        """Subscribe to a channel; returns what was carried for others so far and is now delivered."""
        self.subscriptions.begin(id, channel, now_s)
        carried = [copy.bundle for copy in self.store.by_creation() if copy.bundle.channel == channel]
        return [bundle for bundle in carried if self._deliver(bundle)]

    def unsubscribe(self, id: int) -> None:
        """End a subscription. Others forget it when its entry lapses."""
        self.subscriptions.open.pop(id, None)

    def publish(self, bundle: Bundle, now_s: float) -> tuple[bool, list[Bundle]]:
        """Store a new bundle; returns whether there was room, and what left the store for it."""
        if is_expired(now_s, bundle.expires_s):
            return False, []
        self.seen[bundle.number] = bundle
        fits, evicted = self.store.make_room(bundle.size_bytes, self._being_sent())
        if fits:
            self.store[bundle.number] = Copy(bundle, 0, self.rules.copies)
        return fits, evicted

    def wants(self, channel: Channel) -> bool:
        """Whether the node has subscribed to the channel now."""
        return self.subscriptions.wants(channel)

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

    def next_message(self, peer: int, now_s: float) -> ControlMessage | DataMessage | None:
        """What to send to a neighbour whose link is idle: the list if it is due, or the next bundle of its queue."""
        return self.next_list(peer, now_s) or self.next_bundle(peer, now_s)

    def next_list(self, peer: int, now_s: float) -> ControlMessage | None:
        """The list for a neighbour, if one is due."""
        contact = self.contacts[peer]
        if not self.rules.lists or contact.due_s > now_s:
            return None
        contact.due_s = now_s + self.rules.repeat_s
        entries, content = self.knowledge.write(now_s)
        size_bytes = list_bytes(self.rules, entries, len(self.seen))
        contact.sending = ControlMessage(now_s, size_bytes, self._seen_in_list(peer, now_s), content)
        return contact.sending

    def next_bundle(self, peer: int, now_s: float, wanted_only: bool = False) -> DataMessage | None:
        """The next bundle for a neighbour, if there is one to offer."""
        contact = self.contacts[peer]
        if self.rules.lists and contact.lists == 0:
            return None
        best = self._first(peer, contact, now_s, wanted_only)
        if best is None:
            return None
        given, left = 0, best.copies
        if self.rules.copies > 0:
            given, left = self.protocol.splits(self.rules.own, self._offer(contact, best))
        contact.reserved, best.copies = best.copies - left, left
        contact.sending = DataMessage(best.bundle, best.hops, given)
        return contact.sending

    def sent(self, peer: int, accepted: bool, arrived: bool = True) -> None:
        """The link to a neighbour is idle again; whether what was sent arrived, and was new to the neighbour."""
        contact = self.contacts[peer]
        message, contact.sending = contact.sending, None
        if not isinstance(message, DataMessage):
            return
        number = message.bundle.number
        if arrived:
            contact.known.add(number)
        copy = self.store.get(number)
        if copy is None:
            return
        if not accepted:
            copy.copies += contact.reserved
        elif message.copies > 0 and copy.copies == 0:
            del self.store[number]  # its last copy was given away

    def receive_control(self, peer: int, message: ControlMessage, now_s: float) -> None:
        """A neighbour's list has arrived."""
        contact = self.contacts[peer]
        contact.note(message, self.knowledge.learn(peer, message.content, contact.lists == 0, now_s))

    def receive_data(self, peer: int, message: DataMessage, now_s: float) -> Received:
        """A bundle has arrived from a neighbour."""
        bundle = message.bundle
        self.contacts[peer].known.add(bundle.number)
        if is_expired(now_s, bundle.expires_s):
            return Received("late")
        if bundle.number in self.seen:
            return Received("duplicate")
        wanted = self.wants(bundle.channel)
        stays, evicted = False, list[Bundle]()
        if not (wanted and self.rules.consume):
            stays, evicted = self.store.make_room(bundle.size_bytes, self._being_sent())
        if not wanted and not stays:
            return Received("refused", evicted=tuple(evicted))
        self.seen[bundle.number] = bundle
        if stays:
            self.store[bundle.number] = Copy(bundle, message.hops + 1, message.copies)
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
        if bundle.number in self.delivered or bundle.source == self.node:
            return False
        self.delivered.add(bundle.number)
        return True

    def _being_sent(self) -> set[int]:
        sending = [contact.sending for contact in self.contacts.values()]
        return {message.bundle.number for message in sending if isinstance(message, DataMessage)}

    def _seen_in_list(self, peer: int, now_s: float) -> frozenset[int] | BloomFilter:
        """What a list says about bundles seen."""
        if not tells_seen(self.rules):
            return frozenset()
        if self.rules.seen != BLOOM:
            return frozenset(self.seen)
        return bloom_filter(self.seen, self.rules.bloom_bits, self._link_key(peer, now_s))

    def _link_key(self, peer: int, now_s: float) -> int:
        return link_key(instant_key(self.key, now_s), self.node, peer)

    def _first(self, peer: int, contact: Contact, now_s: float, wanted_only: bool) -> Copy | None:
        """The best of what may be offered. A vote may go round in a circle, so the way to it is part of the rule:
        bundles are looked at in order of creation, and each that beats the best so far takes its place."""
        best: Copy | None = None
        key = self._link_key(peer, now_s)
        for copy in self.store.by_creation():
            offer = self._offer(contact, copy)
            if (wanted_only and not offer.wanted) or not self._is_offered(contact, copy.bundle, offer, now_s):
                continue
            if best is None or self._goes_before(copy, offer, best, self._offer(contact, best), key):
                best = copy
        return best

    def _goes_before(self, copy: Copy, offer: Offer, best: Copy, best_offer: Offer, key: int) -> bool:
        if self.rules.wanted_first and offer.wanted != best_offer.wanted:
            return offer.wanted
        says = self.protocol.prefers(self.rules.own, offer, best_offer)
        ranks = [tie_rank(self.rules.order, key, one.bundle.number) for one in (copy, best)]
        return says > 0 or (says == 0 and ranks[0] < ranks[1])

    def _offer(self, contact: Contact, copy: Copy) -> Offer:
        """What rules look at."""
        channel, view, rules = copy.bundle.channel, contact.view, self.rules
        theirs = view.theirs.get(channel, rules.if_unknown)
        if rules.lists:
            wanted = theirs == rules.if_wanted
        else:
            assert contact.live is not None
            wanted = contact.live.wants(channel)
        mine, popularity = view.mine.get(channel, rules.if_unknown), view.popularity.get(channel, 0.0)
        return Offer(wanted, copy.copies, theirs, mine, popularity, copy.bundle.created_s)

    def _is_offered(self, contact: Contact, bundle: Bundle, offer: Offer, now_s: float) -> bool:
        """Whether a bundle is in the neighbour's queue."""
        rules = self.rules
        if contact.knows(bundle) or not (offer.wanted or contact.carries):
            return False
        if rules.seen == LIVE and rules.leaves_out_seen and contact.live and contact.live.has_seen(bundle.number):
            return False
        if rules.skip_late and is_expired(now_s + transfer_s(bundle.size_bytes, contact.rate_bps), bundle.expires_s):
            return False
        return self.protocol.offers(rules.own, offer)
