"""One node's part in a routing protocol: see `serai.opportunistic.router`."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from serai.core.order import key_in_slot
from serai.opportunistic.router.contact import LIST, Contact, Neighbour
from serai.opportunistic.router.knowledge import Matching, OwnSubscriptions
from serai.opportunistic.router.messages import (
    BloomFilter,
    Bundle,
    Channel,
    ControlMessage,
    DataMessage,
    bloom_filter,
)
from serai.opportunistic.router.owed import Owed
from serai.opportunistic.router.queues import AMONG_EQUALS, place_of
from serai.opportunistic.router.store import Copy, Store
from serai.opportunistic.rules import (
    BLOOM,
    EVICT_LEAST_WANTED,
    EVICT_OLDEST,
    LIVE,
    RANDOM,
    VECTOR,
    Offer,
    RouterRules,
    instant_key,
    is_expired,
    link_key,
    list_bytes,
    tells_seen,
    transfer_s,
)

if TYPE_CHECKING:
    from serai.opportunistic.routing import Decisions

Fate = Literal["relayed", "duplicate", "refused", "late", "no contact"]
Name = Hashable


@dataclass(frozen=True)
class Received:
    """What became of a bundle, whether it is delivered to the node's own subscriber or kept, and what left for it."""

    fate: Fate
    delivered: bool = False
    evicted: tuple[Bundle, ...] = ()
    stays: bool = False


class Router:
    """One node's part in the protocol."""

    def __init__(
        self,
        node: Name,
        protocol: Decisions,
        rules: RouterRules,
        *,
        capacity_bytes: int = 1 << 60,
        most_bundles: int = 1 << 60,
        when_full: int = EVICT_OLDEST,
        keep_own: int = 0,
        carries: bool = True,
        key: int = 0,
        mark: int | None = None,
        matching: Matching | None = None,
        longest_s: float = math.inf,
    ) -> None:
        """`mark`: the node's number in random orders, if its name is none; `longest_s`: no bundle lives longer."""
        self.node, self.protocol, self.carries, self.key = node, protocol, carries, key
        self.mark = _mark_of(node, mark)
        self.rules = rules
        self.store = Store(capacity_bytes, when_full, most_bundles)
        self.store.asked = self._asked
        self.asked: Counter[Channel] = Counter()  # in how many contacts a neighbour had each of these interests
        self.matching, self.longest_s = matching, longest_s
        self.seen: dict[int, Bundle] = {}
        self.delivered: set[int] = set()
        self.owed = Owed(keep_own)
        self.contacts: dict[Name, Contact] = {}
        self.subscriptions = OwnSubscriptions(matching)
        self.knowledge = protocol.knowledge(node, self.rules.own, self.subscriptions)
        self.place_of = place_of(protocol, self.rules)
        """Where a bundle stands in a neighbour's queue, if that is a total order; else all are compared each time."""
        self._expiring: list[tuple[float, Any, int]] = []  # heap of (expiry, key, mark) of what was seen

    # -- the application above

    def subscribe(self, id: Hashable, channel: Channel, now_s: float, since_s: float | None = None) -> list[Bundle]:
        """Subscribe to a channel; returns what was carried for others so far and is now delivered.

        `since_s`: when the subscription began, if that is noticed only now.
        """
        self.subscriptions.begin(id, channel, now_s if since_s is None else since_s)
        self._announce(now_s)
        fitting = [copy.bundle for copy in self.store.values() if self._meets(channel, copy.bundle)]
        return [bundle for bundle in sorted(fitting, key=lambda bundle: bundle.key) if self._deliver(bundle)]

    def unsubscribe(self, id: Hashable, now_s: float) -> None:
        """End a subscription. Others forget it when its entry lapses."""
        self.subscriptions.end(id)
        self._announce(now_s)

    def publish(self, bundle: Bundle, now_s: float) -> tuple[bool, list[Bundle]]:
        """Store a new bundle; returns whether there was room, and what left the store for it."""
        return self.publish_all((bundle,), now_s)

    def publish_all(self, bundles: Sequence[Bundle], now_s: float) -> tuple[bool, list[Bundle]]:
        """The same with several that live equally long: all of them, or none."""
        if is_expired(now_s, bundles[0].expires_s):
            return False, []
        fits, evicted = self.store.make_room(sum(bundle.size_bytes for bundle in bundles), len(bundles))
        if fits:
            for bundle in bundles:
                self.keep(bundle, 0, self.rules.copies, self.owed.neighbours)
        return fits, evicted

    def keep(self, bundle: Bundle, hops: int, copies: int, pins: int = 0) -> None:
        """Take a bundle into the store for which there is room, as at the start of a node that had it before."""
        self.note_seen(bundle)
        self.store.put(Copy(bundle, hops, copies), pins)
        if pins > 0:
            self.owed.begin(bundle.mark, pins)
        for contact in self.contacts.values():
            self._enqueue(contact, self.store[bundle.mark])

    def note_seen(self, bundle: Bundle) -> None:
        """The node has, or had, the bundle."""
        self.seen[bundle.mark] = bundle
        heapq.heappush(self._expiring, (bundle.expires_s, bundle.key, bundle.mark))

    def wants(self, bundle: Bundle) -> bool:
        """Whether the node has subscribed to the bundle now."""
        return self.subscriptions.wants(bundle)

    def interests(self) -> Iterable[Channel]:
        """What the node has subscribed to now."""
        return self.subscriptions.interests.keys()

    def has_seen(self, mark: int) -> bool:
        """Whether the node ever had the bundle."""
        return mark in self.seen

    # -- the links below

    def contact_up(
        self,
        peer: Name,
        now_s: float,
        rate_bps: float,
        carries: bool = True,
        live: Neighbour | None = None,
        mark: int | None = None,
    ) -> None:
        """A contact begins, and an older one with the same neighbour is over; `carries`: whether it does for others."""
        self.contact_down(peer)
        self.contacts[peer] = Contact(_mark_of(peer, mark), rate_bps, carries, now_s, live)
        if live is not None and not self.rules.lists:
            self._count(live.interests())

    def contact_down(self, peer: Name) -> None:
        """A contact is over, if there was one; what was being sent has not arrived."""
        contact = self.contacts.get(peer)
        if contact is not None:
            for message, _ in list(contact.sending.values()):
                self.sent(peer, message, accepted=False, arrived=False)
            del self.contacts[peer]

    def next_message(self, peer: Name, now_s: float) -> ControlMessage | DataMessage | None:
        """What to send to a neighbour whose link has room: the list if it is due, or the next bundle of its queue."""
        return self.next_list(peer, now_s) or self.next_bundle(peer, now_s)

    def next_list(self, peer: Name, now_s: float) -> ControlMessage | None:
        """The list for a neighbour, if one is due and none is under way."""
        contact = self.contacts.get(peer)
        if contact is None or not self.rules.lists or contact.due_s > now_s or LIST in contact.sending:
            return None
        contact.due_s = now_s + self.rules.repeat_s
        entries, content = self.knowledge.write(now_s)
        size_bytes = list_bytes(self.rules, entries, len(self.seen))
        message = ControlMessage(now_s, size_bytes, self._seen_in_list(contact, now_s), content)
        contact.sending[LIST] = (message, 0)
        return message

    def next_bundle(self, peer: Name, now_s: float, wanted_only: bool = False) -> DataMessage | None:
        """The next bundle for a neighbour, if there is one to offer that is not on its way already."""
        contact = self.contacts.get(peer)
        if contact is None or (self.rules.lists and contact.lists == 0):
            return None
        if self.place_of is None or wanted_only:
            best = self._first(contact, now_s, wanted_only)
        else:
            best = self._next_in_queue(contact, now_s)
        if best is None:
            return None
        given, left = 0, best.copies
        if self.rules.copies > 0:
            given, left = self.protocol.splits(self.rules.own, self._offer(contact, best))
        message, mark = DataMessage(best.bundle, best.hops, given), best.bundle.mark
        contact.sending[mark] = (message, best.copies - left)
        best.copies = left
        self.store.sending[mark] += 1
        return message

    def sent(
        self,
        peer: Name,
        message: ControlMessage | DataMessage,
        accepted: bool,
        arrived: bool = True,
        duplicate: bool = False,
    ) -> bool:
        """A message is not on its way any more: whether it arrived, and was new, or the neighbour had it already.

        False: no such contact or message.
        """
        contact = self.contacts.get(peer)
        mark = message.bundle.mark if isinstance(message, DataMessage) else LIST
        if contact is None or mark not in contact.sending:
            return False
        _, reserved = contact.sending.pop(mark)
        if not isinstance(message, DataMessage):
            return True
        self.store.sending[mark] -= 1
        if not self.store.sending[mark]:
            del self.store.sending[mark]
        if arrived:
            contact.known.add(mark)
        copy = self.store.get(mark)
        if copy is None:
            return True
        copy.sent += accepted
        if (accepted or duplicate) and mark in self.owed and self.owed.held_by(peer, mark, accepted):
            self.store.unpin(mark)
        if not accepted:
            copy.copies += reserved
        elif message.copies > 0 and copy.copies == 0:
            self.store.take(mark)  # its last copy was given away
        if not arrived:
            self._enqueue(contact, copy)
        return True

    def receive_control(self, peer: Name, message: ControlMessage, now_s: float) -> Sequence[Any]:
        """A neighbour's list has arrived; returns its entries that were news."""
        contact = self.contacts.get(peer)
        if contact is None:
            return ()
        if self.rules.seen == VECTOR and tells_seen(self.rules) and not message.is_delta:
            # what the neighbour had seen before and tells no more has expired
            contact.known = {mark for mark in contact.known if mark in self.seen}
        contact.filters = [told for told in contact.filters if told[1] + self.longest_s > now_s]
        is_first = contact.lists == 0
        contact.note(message, self.knowledge.learn(peer, message.content, is_first, now_s))
        if is_first:
            self._count(one for one, theirs in contact.view.theirs.items() if theirs == self.rules.if_wanted)
        return contact.view.news

    def receive_data(self, peer: Name, message: DataMessage, now_s: float) -> Received:
        """A bundle has arrived from a neighbour."""
        bundle = message.bundle
        contact = self.contacts.get(peer)
        if contact is None:
            return Received("no contact")
        contact.known.add(bundle.mark)
        if is_expired(now_s, bundle.expires_s):
            return Received("late")
        if bundle.mark in self.seen:
            return Received("duplicate")
        wanted = self.wants(bundle)
        stays, evicted = False, list[Bundle]()
        if not (wanted and self.rules.consume):
            stays, evicted = self.store.make_room(bundle.size_bytes)
        if not wanted and not stays:
            return Received("refused", evicted=tuple(evicted))
        if stays:
            self.keep(bundle, message.hops + 1, message.copies)
        else:
            self.note_seen(bundle)
        return Received("relayed", wanted and self._deliver(bundle), tuple(evicted), stays)

    def expire(self, now_s: float, note: Callable[[Bundle], object] = id) -> list[Bundle]:
        """Forget bundles whose lifetime is over, and what was known of them; returns those that were in the store.

        `note` is told of all of them, the first to expire first.
        """
        dropped = []
        while self._expiring and is_expired(now_s, self._expiring[0][0]):
            mark = heapq.heappop(self._expiring)[2]
            note(self.seen.pop(mark))
            self.delivered.discard(mark)
            self.owed.forget(mark)
            for contact in self.contacts.values():
                contact.known.discard(mark)
            if mark in self.store:
                dropped.append(self.store.take(mark))
        return dropped

    def next_expiry_s(self) -> float:
        """When `expire` has something to do."""
        return self._expiring[0][0] if self._expiring else math.inf

    # -- inside

    def _count(self, interests: Iterable[Channel]) -> None:
        """A neighbour wants these, if that will decide who leaves a full store."""
        if self.store.when_full == EVICT_LEAST_WANTED:
            self.asked.update(interests)

    def _asked(self, bundle: Bundle) -> int:
        return sum(count for interest, count in self.asked.items() if self._meets(interest, bundle))

    def _announce(self, now_s: float) -> None:
        """With `announce = "change"` neighbours are told at once what the node wants."""
        if self.rules.announce:
            for contact in self.contacts.values():
                contact.due_s = min(contact.due_s, now_s)

    def _meets(self, interest: Channel, bundle: Bundle) -> bool:
        if self.matching is None:
            return interest == bundle.channel
        if self.matching.is_plain(interest):
            return interest == self.matching.plain(bundle)
        return self.matching.matches(interest, bundle)

    def _deliver(self, bundle: Bundle) -> bool:
        """Whether the bundle is handed to the application: once, and not to its source."""
        if bundle.mark in self.delivered or bundle.source == self.node:
            return False
        self.delivered.add(bundle.mark)
        return True

    def _seen_in_list(self, contact: Contact, now_s: float) -> frozenset[int] | BloomFilter:
        """What a list says about bundles seen."""
        if not tells_seen(self.rules):
            return frozenset()
        if self.rules.seen != BLOOM:
            return frozenset(self.seen)
        return bloom_filter(self.seen, self.rules.bloom_bits, self._link_key(contact, now_s))

    def _link_key(self, contact: Contact, now_s: float) -> int:
        return link_key(instant_key(self.key, now_s), self.mark, contact.mark)

    def _enqueue(self, contact: Contact, copy: Copy) -> None:
        """Put a bundle into a neighbour's queue, if there is one and it may be offered."""
        if contact.queue is not None and self.place_of is not None:
            offer = self._offer(contact, copy)
            if self._is_offered(contact, copy.bundle, offer):
                heapq.heappush(contact.queue, (self.place_of(offer, copy.bundle), copy.bundle.mark))

    def _next_in_queue(self, contact: Contact, now_s: float) -> Copy | None:
        """The first of a queue that is still to be offered; what may not go now may not later in this contact.

        What the neighbour's list says was looked at when the bundle was put into the queue; a new list makes a new one.
        """
        if contact.queue is None:
            contact.queue = []
            for copy in self.store.values():
                if copy.bundle.mark not in contact.known:  # mostly it is, and then there is nothing to weigh
                    self._enqueue(contact, copy)
        while contact.queue:
            found = self.store.get(heapq.heappop(contact.queue)[1])
            if found is not None and self._may_go(contact, found.bundle, now_s):
                return found
        return None

    def _first(self, contact: Contact, now_s: float, wanted_only: bool) -> Copy | None:
        """The best of what may be offered. A vote may go round in a circle, so the way to it is part of the rule:
        bundles are looked at in order of creation, and each that beats the best so far takes its place."""
        best: Copy | None = None
        best_offer: Offer | None = None
        key = self._link_key(contact, now_s)
        for copy in self.store.by_creation():
            offer = self._offer(contact, copy)
            if (wanted_only and not offer.wanted) or not self._is_offered(contact, copy.bundle, offer, now_s):
                continue
            if best is None or best_offer is None or self._goes_before(copy, offer, best, best_offer, key):
                best, best_offer = copy, offer
        return best

    def _goes_before(self, copy: Copy, offer: Offer, best: Copy, best_offer: Offer, key: int) -> bool:
        """Whether a bundle goes before an older one."""
        if self.rules.wanted_first and offer.wanted != best_offer.wanted:
            return offer.wanted
        says = self.protocol.prefers(self.rules.own, offer, best_offer)
        if says != 0:
            return says > 0
        if self.rules.order == RANDOM:
            return key_in_slot(key, copy.bundle.mark) < key_in_slot(key, best.bundle.mark)
        among_equals = AMONG_EQUALS[self.rules.order]
        return bool(among_equals(copy.bundle) < among_equals(best.bundle))

    def _offer(self, contact: Contact, copy: Copy) -> Offer:
        """What rules look at."""
        rules, bundle = self.rules, copy.bundle
        theirs, mine, popularity = contact.view.of(bundle, self.matching, rules.if_unknown)
        if rules.lists:
            wanted = theirs == rules.if_wanted
        else:
            assert contact.live is not None
            wanted = contact.live.wants(bundle)
        return Offer(wanted, copy.copies, theirs, mine, popularity, bundle.created_s)

    def _is_offered(self, contact: Contact, bundle: Bundle, offer: Offer, now_s: float = -math.inf) -> bool:
        """Whether a bundle is in the neighbour's queue; without a time: or would be if there were time enough."""
        if not self._may_go(contact, bundle, now_s) or not (offer.wanted or contact.carries):
            return False
        return self.protocol.offers(self.rules.own, offer)

    def _may_go(self, contact: Contact, bundle: Bundle, now_s: float) -> bool:
        """Whether the neighbour may not have the bundle yet, and there is time for it."""
        rules, mark = self.rules, bundle.mark
        if mark in contact.sending or contact.knows(bundle):
            return False
        if rules.seen == LIVE and rules.leaves_out_seen and contact.live and contact.live.has_seen(mark):
            return False
        lasts_s = transfer_s(bundle.size_bytes, contact.rate_bps) if rules.skip_late else 0.0
        return not (rules.skip_late and is_expired(now_s + lasts_s, bundle.expires_s))


def _mark_of(name: Name, mark: int | None) -> int:
    """The number of a node in random orders."""
    if mark is None:
        if not isinstance(name, int):
            raise TypeError(f"{name!r} is not a number: give its mark")
        return name
    return mark
