"""A node: its store, what it has seen, whom it is in contact with, and what it sends next."""

from __future__ import annotations

import math
from typing import Any

from tests.opportunistic.naive.nouns import Bloom, Bundle, BundleMessage, Contact, Copy, ListMessage, Received
from tests.opportunistic.naive.orders import bloom_places, of_link, with_who
from tests.opportunistic.naive.protocols import PROTOCOLS


class Node:
    """Whoever drives it says what happens, and asks what to send."""

    def __init__(self, number: int, settings: dict[str, Any], medium: Any, carries: bool) -> None:
        self.number, self.settings, self.medium, self.carries = number, settings, medium, carries
        self.protocol = PROTOCOLS[settings["name"]](self, settings)
        self.sends_lists = self.protocol.always_lists or settings["seen"] != "live"
        self.leaves_out_seen = "duplicate" in settings.get("filters", ["duplicate"])
        self.store: dict[int, Copy] = {}
        self.seen: dict[int, Bundle] = {}
        self.delivered: set[int] = set()
        self.looked_s = 0.0  # when it last looked for bundles with too little of their lifetime left
        self.contacts: dict[int, Contact] = {}
        self.held_by: dict[int, set[int]] = {}  # own bundles, and the neighbours that took them or had them already
        self.told_wants: list[set[int]] = []  # what neighbours wanted when they first said so, contact by contact
        self.subscribed: dict[int, tuple[int, float]] = {}  # by id: the channel, and since when

    # ---- for whom it works

    def subscribe(self, id: int, channel: int, now_s: float, since_s: float) -> list[Bundle]:
        self.subscribed[id] = (channel, since_s)
        self.announce(now_s)
        carried = [self.store[number].bundle for number in sorted(self.store)]
        return [bundle for bundle in carried if bundle.channel == channel and self.deliver(bundle)]

    def unsubscribe(self, id: int, now_s: float) -> None:
        del self.subscribed[id]
        self.announce(now_s)

    def announce(self, now_s: float) -> None:
        """The next list to everybody is due now."""
        if self.settings["announce"] == "change":
            for contact in self.contacts.values():
                contact.due_s = now_s

    def deliver(self, bundle: Bundle) -> bool:
        """Once, and never to the source."""
        if bundle.source == self.number or bundle.number in self.delivered:
            return False
        self.delivered.add(bundle.number)
        return True

    def publish(self, bundle: Bundle, now_s: float) -> tuple[bool, list[Bundle]]:
        if bundle.expires_s <= now_s:
            return False, []
        fits, evicted = self.make_room(bundle)
        if fits:
            self.seen[bundle.number] = bundle
            self.held_by[bundle.number] = set()
            self.store[bundle.number] = Copy(bundle, 0, self.protocol.copies, now_s)
        return fits, evicted

    def wants(self, bundle: Bundle) -> bool:
        return bundle.channel in [wanted for wanted, _ in self.subscribed.values()]

    # ---- the store

    def make_room(self, bundle: Bundle) -> tuple[bool, list[Bundle]]:
        """Whether the bundle fits, and who had to leave: nobody (0), the oldest (1), who expires soonest (2), who came
        first (3), the youngest (4), the largest (5), who was handed on most often (6), who is least wanted (7)."""
        evicted: list[Bundle] = []
        if bundle.size_bytes > self.medium.capacity_bytes:
            return False, evicted
        keep_own = self.medium.keep_own
        on_their_way = [m.bundle.number for m in self.under_way() if isinstance(m, BundleMessage)]
        while sum(copy.bundle.size_bytes for copy in self.store.values()) + bundle.size_bytes > (
            self.medium.capacity_bytes
        ):
            may_go = [copy.bundle for number, copy in self.store.items() if number not in on_their_way]
            may_go = [b for b in may_go if b.source != self.number or len(self.held_by[b.number]) >= keep_own]
            if self.medium.when_full == 0 or not may_go:
                return False, evicted
            rank = {
                1: lambda b: 0.0,
                2: lambda b: b.expires_s,
                3: lambda b: self.store[b.number].came_s,
                4: lambda b: -b.number,
                5: lambda b: -b.size_bytes,
                6: lambda b: -self.store[b.number].handed_on,
                7: lambda b: sum(b.channel in told for told in self.told_wants),
            }
            victim = min(may_go, key=lambda b: (rank[self.medium.when_full](b), b.number))
            del self.store[victim.number]
            evicted.append(victim)
            if self.medium.when_full == 3 and victim.number not in self.delivered:
                self.forget(victim)
        return True, evicted

    def forget(self, bundle: Bundle) -> None:
        """It may come again; whoever may ask at any moment offers it again, the others in the next contact."""
        del self.seen[bundle.number]
        if self.settings["seen"] == "live":
            for contact in self.contacts.values():
                contact.peer.contacts[self.number].passed.discard(bundle.number)

    def drop_old(self, now_s: float) -> list[Bundle]:
        """Once in a unit of lifetime, but not while sending: what has less than a unit left."""
        unit_s = self.medium.lifetime_unit_s
        if not unit_s or now_s - self.looked_s < unit_s or any(self.under_way()):
            return []
        self.looked_s = now_s
        old = [number for number in sorted(self.store) if self.store[number].bundle.expires_s - now_s < unit_s]
        return [self.store.pop(number).bundle for number in old]

    def under_way(self) -> list[BundleMessage | ListMessage | None]:
        return [contact.sending for contact in self.contacts.values()]

    def expire(self, now_s: float) -> list[Bundle]:
        over = [bundle for bundle in self.seen.values() if bundle.expires_s <= now_s]
        for bundle in over:
            del self.seen[bundle.number]
        return [self.store.pop(bundle.number).bundle for bundle in over if bundle.number in self.store]

    # ---- contacts

    def contact_up(self, peer: int, now_s: float, rate_bps: float, carries: bool, live: Any) -> None:
        self.contacts[peer] = Contact(live, carries, now_s)
        self.protocol.meet_live(live, now_s)
        if not self.sends_lists:
            self.told_wants.append({channel for channel, _ in live.subscribed.values()})

    def contact_down(self, peer: int) -> None:
        del self.contacts[peer]

    def next_message(self, peer: int, now_s: float) -> ListMessage | BundleMessage | None:
        return self.next_list(peer, now_s) or self.next_bundle(peer, now_s)

    def next_list(self, peer: int, now_s: float) -> ListMessage | None:
        contact, chosen = self.contacts[peer], self.settings
        if not self.sends_lists or now_s < contact.due_s:
            return None
        contact.due_s = now_s + chosen["repeat_s"]
        told = self.protocol.tell(now_s)
        size_bytes, seen = chosen["header_bytes"] + len(told) * chosen["entry_bytes"], frozenset[int]()
        if self.leaves_out_seen and chosen["seen"] == "vector":
            size_bytes, seen = size_bytes + len(self.seen) * chosen["id_bytes"], frozenset(self.seen)
        elif self.leaves_out_seen and chosen["seen"] == "bloom":
            filter_bytes = max(math.ceil(len(self.seen) * chosen["bloom_bits"] / 8), 1)
            size_bytes += filter_bytes
            seen = self.bloom(peer, now_s, 8 * filter_bytes)
        contact.sending = ListMessage(now_s, size_bytes, seen, told)
        return contact.sending

    def bloom(self, peer: int, now_s: float, size: int) -> Any:
        """The Bloom filter of what was seen, with the number of hashes that errs least: ln 2 times the bits of each."""
        salt = of_link(self.medium.key, now_s, self.number, peer)
        hashes = max(math.floor(self.settings["bloom_bits"] * math.log(2) + 0.5), 1)

        def places_of(number: int) -> set[int]:
            return bloom_places(salt, number, hashes, size)

        return Bloom({place for number in self.seen for place in places_of(number)}, places_of)

    def receive_control(self, peer: int, message: ListMessage, now_s: float) -> None:
        contact = self.contacts[peer]
        contact.view = self.protocol.hear(peer, message.told, not contact.lists, now_s)
        if not contact.lists:
            self.told_wants.append(self.protocol.wanted_channels(contact))
        contact.lists.append(message)

    # ---- bundles

    def next_bundle(self, peer: int, now_s: float, wanted_only: bool = False) -> BundleMessage | None:
        """Begin to send the best of the queue."""
        best = self.best(peer, now_s, wanted_only)
        if best is None:
            return None
        contact = self.contacts[peer]
        given, kept = self.protocol.split(contact, best)
        contact.sending = BundleMessage(best.bundle, best.hops, given, best.copies - kept)
        best.copies = kept
        return contact.sending

    def best(self, peer: int, now_s: float, wanted_only: bool = False) -> Copy | None:
        """The best of the queue. Votes may go in circles, so: in order of creation, who beats the best so far is it."""
        contact = self.contacts[peer]
        contact.now_s = now_s
        if self.sends_lists and not contact.lists:
            return None
        queue = [self.store[number] for number in sorted(self.store)]
        queue = [copy for copy in queue if self.may_go(contact, copy, now_s)]
        if wanted_only:
            queue = [copy for copy in queue if self.protocol.is_wanted(contact, copy)]
        if not queue:
            return None
        best = queue[0]
        for copy in queue[1:]:
            if self.beats(copy, best, contact, of_link(self.medium.key, now_s, self.number, peer)):
                best = copy
        return best

    def may_go(self, contact: Contact, copy: Copy, now_s: float) -> bool:
        """Whether a bundle is in the queue for a neighbour."""
        bundle, chosen = copy.bundle, self.settings
        if not contact.carries and not self.protocol.is_wanted(contact, copy):
            return False
        if bundle.number in contact.passed:
            return False
        if any(bundle.created_s <= told.made_s and bundle.number in told.seen for told in contact.lists):
            return False
        if self.leaves_out_seen and chosen["seen"] == "live" and bundle.number in contact.peer.seen:
            return False
        left_s = bundle.expires_s - now_s
        if not self.protocol.is_wanted(contact, copy) and left_s < self.medium.lifetime_unit_s:
            return False
        if chosen["skip_late"] and now_s + bundle.size_bytes * 8 / self.medium.rate_bps >= bundle.expires_s:
            return False
        return self.protocol.offers(contact, copy)

    def beats(self, one: Copy, other: Copy, contact: Contact, key: int) -> bool:
        """Whether one goes before another that is older."""
        if self.settings["wanted_first"]:
            wanted, other_wanted = (self.protocol.is_wanted(contact, copy) for copy in (one, other))
            if wanted != other_wanted:
                return wanted
        says = self.protocol.prefers(contact, one, other)
        if says != 0:
            return says > 0
        if self.settings["order"] == "random":
            return with_who(key, one.bundle.number) < with_who(key, other.bundle.number)
        if self.settings["order"] == "smallest":
            return one.bundle.size_bytes < other.bundle.size_bytes
        if self.settings["order"] == "soonest":
            return one.bundle.expires_s < other.bundle.expires_s
        return bool(self.settings["order"] == "newest")

    def sent(self, peer: int, message: Any, accepted: bool, arrived: bool = True, duplicate: bool = False) -> None:
        """The link is free again."""
        contact = self.contacts[peer]
        contact.sending = None
        if not isinstance(message, BundleMessage):
            return
        if arrived:
            contact.passed.add(message.bundle.number)
        if (accepted or duplicate) and message.bundle.source == self.number:
            self.held_by[message.bundle.number].add(peer)
        copy = self.store.get(message.bundle.number)
        if copy is not None and accepted:
            copy.handed_on += 1
        if copy is not None and not accepted:
            copy.copies += message.reserved
        elif copy is not None and message.copies > 0 and copy.copies == 0:
            del self.store[message.bundle.number]

    def receive_data(self, peer: int, message: BundleMessage, now_s: float) -> Received:
        bundle = message.bundle
        self.contacts[peer].passed.add(bundle.number)
        if bundle.expires_s <= now_s:
            return Received("late")
        if bundle.number in self.seen:
            return Received("duplicate")
        wanted = self.wants(bundle)
        stays, evicted = (False, []) if wanted and self.settings["consume"] else self.make_room(bundle)
        if stays:
            self.store[bundle.number] = Copy(bundle, message.hops + 1, message.copies, now_s)
        if not stays and not wanted:
            return Received("refused", evicted=tuple(evicted))
        self.seen[bundle.number] = bundle
        return Received("relayed", wanted and self.deliver(bundle), tuple(evicted))
