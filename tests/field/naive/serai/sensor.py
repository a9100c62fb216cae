"""A sensor of SERAI: what it remembers of the messages it heard, and what it decides from that alone."""

import math
from collections import deque
from collections.abc import Iterable
from itertools import pairwise

from tests.field.naive.serai.copies import DEPOSIT, HOME, RELAY, Assignment, Copy, Sending
from tests.field.naive.serai.legs import Leg, Place, in_reach
from tests.field.naive.serai.manual import Manual
from tests.field.naive.serai.messages import (
    Announce,
    Errand,
    Event,
    Map,
    Parcel,
    Prices,
    Reply,
    Reunion,
    Subs,
    Subscription,
)
from tests.field.naive.serai.routes import (
    HOP,
    Branch,
    ByWalker,
    Chart,
    Journey,
    Routes,
    branches,
    by_walker,
    chart_of,
    flood,
    price_step,
    routes_to,
    routes_to_member,
)


class Sensor:
    """State and decisions of one sensor; it has no way to look at anybody else."""

    def __init__(self, number: int, place: Place, battery_j: float, capacity: int, manual: Manual) -> None:
        self.number = number
        self.place = place
        self.battery_j = battery_j
        self.capacity = capacity
        self.manual = manual
        self.dials = manual.dials
        self.members = Map({number: place})
        self.prices = Prices({})
        self.known: dict[int, Subscription] = {}
        self.heard = 0
        self.ring: deque[float] = deque(maxlen=16)
        self.sessions: dict[int, Announce] = {}
        self.queue: list[Copy] = []

    # State.

    @property
    def chart(self) -> Chart:
        return chart_of(self.members, self.prices, self.manual.reach)

    @property
    def is_full(self) -> bool:
        return len(self.queue) >= self.capacity

    def wait_s(self, now: int, before_session: bool = False) -> float:
        """T_wait: how long until the next session, shared by all subscriptions."""
        sessions = self.heard - before_session
        return (now + 300) * max(1, len(self.known)) / (sessions + 1)

    def price_step(self, now: int, spent_j: float) -> int:
        """The price, as it will be sent."""
        size = len(self.members.places)
        lasts_s = self.dials.t0_s * (40 / size) * (10 / max(1, len(self.known)))
        ratio = (spent_j / (now + 300)) / (self.battery_j / lasts_s)
        return price_step(1 + self.dials.kappa * ratio**self.dials.x)

    def legs(self, now: int) -> dict[int, Leg]:
        """The running legs that were announced here."""
        return {p: said.leg for p, said in sorted(self.sessions.items()) if now < said.leg.ends_s}

    def routes(self, subscriber: int, now: int, announced_now: bool = False) -> Routes:
        leg = self.sessions[subscriber].leg
        return routes_to(self.chart, leg, now, announced_now, self.dials.lamt)

    # Rules 1 and 2: copies come and go.

    def store(self, copy: Copy) -> tuple[bool, Copy | None]:
        """Whether the copy found room, and the one that had to go for it: the oldest that is not home."""
        if not self.is_full:
            self.queue.append(copy)
            return True, None
        others = [other for other in self.queue if other.kind != HOME]
        if not others:
            return False, None
        oldest = min(others, key=lambda other: other.event.number)
        self.queue.remove(oldest)
        self.queue.append(copy)
        return True, oldest

    def youngest_first(self) -> list[Copy]:
        """The copies with the youngest event first; of one event the copy that came first."""
        return sorted(self.queue, key=lambda copy: -copy.event.number)

    def has_room(self) -> bool:
        """Whether there is room for a copy, or can be made."""
        return not self.is_full or any(copy.kind != HOME for copy in self.queue)

    def bear(self, event: Event) -> tuple[bool, Copy | None]:
        """Rule 1."""
        matching = {p for p, subscription in self.known.items() if subscription.matches(event)}
        return self.store(Copy(event, HOME, matching, is_new=True))

    def outlived(self, now: int) -> list[Copy]:
        """Rule 2: copies that are too old."""
        gone = [copy for copy in self.queue if now - copy.event.born_s > self.manual.lifetime_s]
        self.queue = [copy for copy in self.queue if copy not in gone]
        return gone

    def served(self) -> list[Copy]:
        """Rule 2: copies that nobody waits for any more."""
        gone = [copy for copy in self.queue if copy.kind != HOME and not copy.wanted]
        self.queue = [copy for copy in self.queue if copy not in gone]
        return gone

    def lapse(self, now: int) -> None:
        """Rule 2: walkers who did not come in time."""
        for copy in self.queue:
            if copy.assigned and now > copy.assigned.until_s:
                copy.assigned = None
                copy.is_new = True

    # Rules 3 to 5: what is told.

    def reply(self, subscriber: int, now: int) -> Reply:
        """Rule 4: the answer to a HELLO."""
        leg = self.sessions[subscriber].leg if subscriber in self.sessions else None
        community, alone = self.members.name, len(self.members.places) == 1
        return Reply(self.number, community, alone, self.wait_s(now), self.is_full, leg)

    def tell_subscriptions(self, known: frozenset[int]) -> Subs:
        """Rule 5: what a subscriber does not know yet."""
        return Subs(tuple(self.known[p] for p in sorted(self.known) if p not in known))

    def speakers(self) -> list[int]:
        """Rule 5: who passes on what this sensor was told."""
        return flood(self.chart, self.number)

    def hear(self, said: Announce, now: int) -> None:
        """Rule 5: everyone."""
        self.heard += 1
        self.learn({subscription.subscriber: subscription for subscription in said.news})
        self.sessions[said.subscriber] = said
        self.ring.append(self.routes(said.subscriber, now, announced_now=True).cost[self.number])

    def learn(self, told: dict[int, Subscription]) -> None:
        """Subscriptions: who is new may want what lies here."""
        new = [subscription for subscription in told.values() if subscription.subscriber not in self.known]
        self.known |= {subscription.subscriber: subscription for subscription in new}
        for copy in self.queue:
            if copy.kind == HOME:
                wanting = {s.subscriber for s in new if s.matches(copy.event)}
                copy.wanted |= wanting - copy.settled

    # Waking.

    def memory(self) -> Reunion:
        """What it can tell its kin; of prices its own."""
        own = {number: step for number, step in self.prices.steps.items() if number == self.number}
        return Reunion(self.known, self.heard, Prices(own))

    def hear_kin(self, told: Reunion) -> None:
        """Some of its kin wake, perhaps itself: what was announced is forgotten."""
        self.learn(told.known)
        self.heard, self.prices, self.sessions = told.heard, told.prices, {}

    def die(self) -> None:
        """Whoever wakes one day knows nothing, as at the start."""
        self.known, self.heard, self.sessions = {}, 0, {}
        self.ring.clear()

    # What rules 6, 7 and 10 ask.

    def may_be_carried(self, copy: Copy) -> bool:
        """Whether a home copy may still be given to a carrier, and is worth it."""
        return copy.kind == HOME and bool(copy.wanted) and copy.carriers < self.dials.carriers

    def may_carry(self, copy: Copy, subscriber: int) -> bool:
        """Whether the copy could be handed to this subscriber for the others."""
        carries = self.sessions[subscriber].carries
        return carries and self.may_be_carried(copy) and subscriber not in copy.settled

    def carry_map(self, copy: Copy, subscriber: int) -> frozenset[int]:
        """CW: for whom the subscriber that gets the copy is to carry it."""
        if copy.kind != HOME:
            return copy.carry
        others = frozenset(copy.wanted - {subscriber})
        offers = self.sessions[subscriber].carries and copy.carriers < self.dials.carriers
        return others if offers else frozenset()

    def waits(self, cost: float, copy: Copy, wait_s: float) -> bool:
        """The wait test: whether later sessions are likely to save more than they take."""
        saved = sum(max(0, cost - past) for past in self.ring)
        return self.dials.lam * saved > wait_s * (self.dials.xi if copy.exposed else 1.0) * (HOP * len(self.ring))

    def by_walker(self, subscriber: int, routes: Routes, now: int) -> ByWalker | None:
        """The walker alternative if it is worth its while."""
        if not self.dials.walkers:
            return None
        option = by_walker(Journey(self.number, subscriber, now, routes, self.legs(now), self.dials.lamt))
        return option if option and option.cost < routes.cost[self.number] - round(HOP * self.dials.mu_w) else None

    def assign(self, copy: Copy, option: ByWalker, subscriber: int) -> None:
        leg, reach = self.sessions[option.walker].leg, self.manual.reach
        here, there = in_reach(leg, self.place, reach), in_reach(leg, self.members.places[option.drop], reach)
        assert here is not None
        assert there is not None
        copy.assigned = Assignment(option.walker, here[1], Errand(subscriber, option.drop, there[1]))

    # Rule 6: push.

    def route_leaves(self, subscriber: int, now: int) -> bool:
        routes = self.routes(subscriber, now, announced_now=True)
        return routes.root(self.number) != self.number

    def push(self, copy: Copy, subscriber: int, now: int) -> tuple[bool, ByWalker | None]:
        """Whether the copy should leave now, and whether with a walker."""
        routes = self.routes(subscriber, now, announced_now=True)
        cost, wait_s, option = routes.cost[self.number], self.wait_s(now, before_session=True), None
        if subscriber in copy.wanted:
            if not copy.assigned or copy.assigned.target == subscriber:
                option = self.by_walker(subscriber, routes, now)
        elif not self.pulls(copy, subscriber, routes, now, wait_s):
            return False, None
        return not self.waits(option.cost if option else cost, copy, wait_s), option

    def pulls(self, copy: Copy, subscriber: int, routes: Routes, now: int, wait_s: float) -> bool:
        """Whether a carrier that does not want the event itself is near enough, and the event young enough."""
        to_live_s = self.manual.lifetime_s - (now - copy.event.born_s)
        near = len(routes.path(self.number)) - 1 <= self.dials.hc
        return self.may_carry(copy, subscriber) and near and to_live_s > wait_s / 4

    def way_to(self, member: int) -> list[int]:
        """The way to another member along prices."""
        return routes_to_member(self.chart, member).path(self.number)

    def send(self, copy: Copy, subscriber: int, now: int) -> Sending:
        """Rule 6: along the route."""
        routes = self.routes(subscriber, now, announced_now=True)
        return self.sending(copy, branches(self.number, [(subscriber, routes)]))

    def sending(self, copy: Copy, tree: list[Branch], gives: bool = True) -> Sending:
        """The copy leaves for the ends of the branches; a want map goes along the last one, or none at all."""
        last, exposed, before = tree[-1].subscriber, copy.exposed, (frozenset(copy.wanted), copy.assigned)
        for branch in tree:
            copy.settle(branch.subscriber)
        carry = self.carry_map(copy, last) if copy.kind == HOME and gives else frozenset()
        self.note_carrier(copy, carry)
        ends: dict[int, list[int]] = {}
        for branch in tree:
            ends.setdefault(branch.path[-1], []).append(branch.subscriber)

        def parcel(targets: list[int], listed: int) -> Parcel:
            along = carry if last in targets else frozenset()
            size, wide = self.manual.event_bits, self.manual.subscribers
            return Parcel(copy.event, size, frozenset(targets), exposed, along, wide, listed)

        hops = [
            (sender, receiver, parcel(targets, len(targets) if len(tree) > 1 else 0))
            for sender, receiver, targets in links_of(tree)
        ]
        return Sending(hops, {root: parcel(targets, 0) for root, targets in ends.items()}, *before)

    def note_carrier(self, copy: Copy, carry: frozenset[int]) -> None:
        """A want map of a home copy has gone along: somebody will carry the event."""
        if carry and copy.kind == HOME:
            copy.exposed = True
            copy.carriers += 1

    def take(self, parcel: Parcel) -> tuple[bool, Copy | None]:
        """A relay copy stays here."""
        return self.store(Copy(parcel.event, RELAY, set(parcel.targets), exposed=parcel.exposed, carry=parcel.carry))

    # Rules 7 to 9: in reach of a subscriber.

    def for_subscriber(self, subscriber: int) -> list[Copy]:
        """Rule 7: what is handed over, in this order."""
        young = self.youngest_first()
        wanted = [copy for copy in young if subscriber in copy.wanted]
        return wanted + [copy for copy in young if copy not in wanted and self.may_carry(copy, subscriber)]

    def parcel_for(self, copy: Copy, subscriber: int) -> Parcel:
        carry = self.carry_map(copy, subscriber)
        manual = self.manual
        return Parcel(copy.event, manual.event_bits, carry=carry, map_bits=manual.subscribers)

    def hand_over(self, copy: Copy, subscriber: int) -> None:
        carry = self.carry_map(copy, subscriber)
        copy.settle(subscriber)
        self.note_carrier(copy, carry)
        copy.carry = frozenset()

    def for_walker(self, walker: int, now: int) -> list[Copy]:
        """Rule 8: what was promised to it, and not for an earlier time."""
        return [
            copy
            for copy in self.youngest_first()
            if copy.assigned and copy.assigned.walker == walker and now <= copy.assigned.until_s
        ]

    def errand_of(self, copy: Copy) -> Parcel:
        assert copy.assigned is not None
        return Parcel(copy.event, self.manual.event_bits, errand=copy.assigned.errand)

    def take_dropped(self, parcel: Parcel) -> tuple[bool, Copy | None]:
        """Rule 8: what a walker leaves."""
        return self.store(Copy(parcel.event, RELAY, set(parcel.targets), is_new=True))

    def take_deposit(self, parcel: Parcel) -> tuple[bool, Copy | None]:
        """Rule 9: what a carrier leaves."""
        return self.store(Copy(parcel.event, DEPOSIT, set(parcel.carry), exposed=True, is_new=True))

    # Rule 10: new copies.

    def new_copies(self) -> list[Copy]:
        new = [copy for copy in self.queue if copy.is_new]
        for copy in new:
            copy.is_new = False
        return new

    def send_new(self, copy: Copy, now: int) -> Iterable[Sending]:
        """What leaves at once of a copy that has just come."""
        destinations = []
        for subscriber in sorted(copy.wanted):
            routes = self.running_route(subscriber, now)
            if routes is None or routes.root(self.number) == self.number:
                continue
            option = None if copy.assigned else self.by_walker(subscriber, routes, now)
            cost = option.cost if option else routes.cost[self.number]
            if self.waits(cost, copy, self.wait_s(now)):
                continue
            if option:
                self.assign(copy, option, subscriber)
            else:
                destinations.append((subscriber, routes))
        if not destinations:
            to_carrier = self.send_to_carrier(copy, now) if self.dials.pull_at_birth else None
            return [to_carrier] if to_carrier else []
        gives = self.dials.map_at_birth
        if self.dials.multicast:
            return [self.sending(copy, branches(self.number, destinations), gives)]
        destinations.sort(key=lambda d: (d[1].cost[self.number], d[0]))
        last = destinations[-1]
        # One after the other: whoever was not heard of the first is among the others of the last one's want map again.
        return (self.sending(copy, branches(self.number, [one]), gives and one is last) for one in destinations)

    def running_route(self, subscriber: int, now: int) -> Routes | None:
        """The route to a subscriber whose running leg was announced here, if it still leads to it."""
        if subscriber not in self.legs(now):
            return None
        routes = self.routes(subscriber, now)
        return routes if routes.cost[self.number] < math.inf else None

    def send_to_carrier(self, copy: Copy, now: int) -> Sending | None:
        """A carrier is on its way through the community, and none will come here."""
        near = []
        for subscriber in self.legs(now):
            routes = self.running_route(subscriber, now)
            if routes is None or not self.may_carry(copy, subscriber):
                continue
            met = in_reach(self.sessions[subscriber].leg, self.place, self.manual.reach)
            if met and met[1] > now:
                return None
            if subscriber not in copy.wanted and len(routes.path(self.number)) - 1 <= self.dials.hc:
                near.append((routes.cost[self.number], subscriber, routes))
        if not near:
            return None
        _, subscriber, routes = min(near, key=lambda found: found[:2])
        return self.sending(copy, branches(self.number, [(subscriber, routes)]))


def links_of(tree: list[Branch]) -> list[tuple[int, int, list[int]]]:
    """Every link of a multicast once, as the branches take them, with all destinations beyond it."""
    before: dict[int, int] = {}
    beyond: dict[int, list[int]] = {}
    for branch in tree:
        for sender, receiver in pairwise(branch.path):
            before[receiver] = sender
            beyond[receiver] = []
        member = branch.path[-1]
        while member in before:
            beyond[member].append(branch.subscriber)
            member = before[member]
    return [(before[receiver], receiver, targets) for receiver, targets in beyond.items()]
