"""The field in which SERAI runs: the clock, the walks, the ether and the books.

The rules are taken in their order; what a node knows and decides is in `Sensor` and `Subscriber`, and what passes
between two of them is a message from `messages.py`, heard by whom physics says, and paid by who sends and who hears.
"""

import math
from itertools import pairwise

from serai.field.world import World
from serai.scenario.section import Scenario
from tests.field.naive.parts import (
    DEAD,
    EXPIRED,
    FULL,
    RELAY,
    SOURCE,
    SPENT,
    Community,
    Records,
    find_communities,
)
from tests.field.naive.parts import Sensor as Body
from tests.field.naive.serai.books import ARRIVED, REFUSED, UNHEARD, UNPAID, Books, addressee_of
from tests.field.naive.serai.copies import Copy, Sending
from tests.field.naive.serai.legs import Leg, Place, Reach, legs_of
from tests.field.naive.serai.manual import Dials, Manual, dials_of
from tests.field.naive.serai.messages import Event, Hello, Map, Offer, Parcel, Prices, Reunion, Subscription
from tests.field.naive.serai.sensor import Sensor
from tests.field.naive.serai.subscriber import Subscriber


class Serai(Books):
    """One world under SERAI: a body for each node, and a mind in it."""

    def __init__(self, world: World, scenario: Scenario, key: int, dials: Dials | None = None) -> None:
        super().__init__(world, scenario, key)
        self.reach = Reach(world.grid, world.ranges.subscribers_m if world.ranges is not None else None)
        people, events = len(self.subscribers), scenario.events
        self.dials = dials or dials_of(scenario.protocol)
        lifetime_s = float(events.lifetime_s)
        manual = Manual(self.dials, self.reach, people, events.size_bits, lifetime_s)
        self.minds = [
            Sensor(body.number, spot_of(body), body.battery_pj / 1e12, body.capacity, manual) for body in self.sensors
        ]
        self.walkers = [
            Subscriber(Subscription(feet.number, tuple(zip(feet.low, feet.high, strict=True))), manual)
            for feet in self.subscribers
        ]
        self.walks = [list(legs_of(feet.track, feet.legs)) for feet in self.subscribers]
        self.places: list[frozenset[int]] = [frozenset()] * people
        self.told: set[tuple[int, int]] = set()  # sensor and subscriber of this second's offers
        self.births: dict[int, list[Event]] = {}
        for number, (born_s, source) in enumerate(zip(world.event_time_s, world.event_sensor, strict=True)):
            values = tuple(float(value) for value in world.event_values[number])
            event = Event(number, int(source), float(born_s), values)
            self.births.setdefault(math.ceil(born_s), []).append(event)
        self.names = 0
        self.tell_maps(self.communities)
        self.old_names = {kin: self.name_of(min(kin)) for kin in self.kin}

    def run(self, until_death: bool = False) -> Records:
        """The records; what is left lies in the minds' queues."""
        records = super().run(until_death)
        records.left_over = [mind.queue for mind in self.minds]
        return records

    def expire(self) -> None:
        """Not the first rule here, but the second."""

    def bear(self) -> None:
        """Rule 1."""
        for event in self.births.get(self.now, []):
            body = self.sensors[event.source]
            if body.died < 0:
                if self.is_full(body):
                    self.note_drop(event.number, body, FULL, None)
                else:
                    self.keep(body, self.minds[body.number].bear(event))

    def is_full(self, sensor: Body) -> bool:
        """Whether a sensor refuses a copy: it has no room and can make none."""
        return not self.minds[sensor.number].has_room()

    def keep(self, body: Body, stored: tuple[bool, Copy | None]) -> Copy:
        """A copy has come to lie in a queue, where it may have taken another one's place."""
        _, displaced = stored
        if displaced:
            self.note_gone(body, displaced, FULL)
        copy = self.minds[body.number].queue[-1]
        copy.serial = self.next_serial()
        return copy

    def act(self) -> None:
        """Rules 2 to 10."""
        self.told = set()
        if self.now % self.dials.clear_s == 0:
            self.tidy()
        if self.now % self.dials.price_s == 1 % self.dials.price_s:
            for community in self.communities:
                self.tell_prices(community)
        people = len(self.walkers)
        for turn in range(people):
            self.serve((self.now + turn) % people)
        self.send_new_copies()

    def tidy(self) -> None:
        """Rule 2."""
        for body in self.sensors:
            mind = self.minds[body.number]
            for reason, gone in ((EXPIRED, mind.outlived(self.now)), (SPENT, mind.served())):
                for copy in gone:
                    self.note_gone(body, copy, reason)
            mind.lapse(self.now)
        for walker in self.walkers:
            walker.outlive(self.now)

    # MAP and PRICE: each member says the list once, and all hear it; a loner has nobody to tell.

    def tell_maps(self, communities: list[Community], first: int | None = None) -> None:
        """The first of these communities has that name, if it has one already."""
        for community in communities:
            name = self.new_name() if first is None or community is not communities[0] else first
            members = Map({body.number: spot_of(body) for body in community.sensors}, name)
            for body in community.sensors:
                if not community.is_loner:
                    self.broadcast(body, "map", members.bits)
                self.minds[body.number].members = members
                for p in self.in_hearing(body):
                    self.walkers[p].hear_map(body.number, members)

    def new_name(self) -> int:
        """What no community was called before."""
        self.names += 1
        return self.names

    def in_hearing(self, body: Body) -> list[int]:
        """The subscribers that hear a sensor now."""
        if self.now < 0:
            return []
        places = [self.leg_of(p).place_at(self.now) for p in range(len(self.walkers))]
        return [p for p, place in enumerate(places) if self.reach.hears(spot_of(body), place)]

    def tell_prices(self, community: Community) -> None:
        """Rule 3; a loner has nobody to tell."""
        spent_j = {body.number: (body.event_pj + body.control_pj) / 1e12 for body in community.sensors}
        steps = {number: self.minds[number].price_step(self.now, spent) for number, spent in spent_j.items()}
        prices = Prices(steps)
        for body in community.sensors:
            if not community.is_loner:
                self.broadcast(body, "price", prices.bits)
            self.minds[body.number].prices = prices

    # One subscriber's part of the second.

    def serve(self, p: int) -> None:
        """Rules 4 to 9 for a subscriber."""
        walker = self.walkers[p]
        leg = self.leg_of(p)
        if leg != walker.leg:
            walker.set_out(leg)
        place = leg.place_at(self.now)
        self.stand(p, place)
        in_reach = [body for body in self.sensors if body.died < 0 and self.reach.hears(spot_of(body), place)]
        in_reach.sort(key=lambda body: (self.reach.spot(spot_of(body)), body.number))
        before, self.places[p] = self.places[p], self.place(self.subscribers[p])
        if self.places[p] - before or any(body.number in self.new for body in in_reach):
            self.say_hello_to(p, in_reach)
        for body in in_reach:
            if walker.is_first_contact(body.number):
                self.begin_session(p, body)
                self.push(p, body)
        for body in in_reach:
            self.hand_over_to(p, body)
        for body in in_reach:
            self.give_errands(p, body)
        self.drop_errands(p, in_reach)
        self.deposit(p, in_reach)

    def leg_of(self, p: int) -> Leg:
        return [leg for leg in self.walks[p] if leg.sets_out_s <= self.now][-1]

    def say_hello_to(self, p: int, in_reach: list[Body]) -> None:
        """Rule 4: every sensor in range answers."""
        hello, replies = Hello(p), []
        self.count_control("hello", hello.bits)
        self.spend_budget(p, hello.bits)
        for body in in_reach:
            self.hear_control(body, hello.bits)
            reply = self.minds[body.number].reply(p, self.now)
            self.tell_subscriber(body, p, "reply", reply.bits)
            replies.append(reply)
        self.walkers[p].hear_replies(replies)

    def begin_session(self, p: int, contact: Body) -> None:
        """Rule 5: ANNOUNCE, SUBS back, flood."""
        walker, mind = self.walkers[p], self.minds[contact.number]
        lists = frozenset(mind.known), frozenset(walker.known)  # the hashes tell in what the two differ
        said = walker.announce(contact.number, lists[0])
        self.count_control("announce", said.bits)
        self.spend_budget(p, said.bits)
        self.hear_control(contact, said.bits)
        told = mind.tell_subscriptions(lists[1])
        if told.news:
            self.tell_subscriber(contact, p, "subscriptions", told.bits)
            walker.learn(told)
        hearers = {contact.number}
        for number in mind.speakers():
            self.broadcast(self.sensors[number], "announce", said.bits)
            hearers |= {neighbor.number for neighbor in self.sensors[number].neighbors}
        for number in sorted(hearers):
            self.minds[number].hear(said, self.now)

    def push(self, p: int, contact: Body) -> None:
        """Rule 6, in the contact's community."""
        with_header: set[tuple[int, int]] = set()
        for number in sorted(self.minds[contact.number].members.places):
            mind = self.minds[number]
            if self.sensors[number].exhausted or not mind.route_leaves(p, self.now):
                continue
            for copy in mind.youngest_first():
                leaves, option = mind.push(copy, p, self.now)
                if not leaves:
                    continue
                if copy.exposed and self.dials.offers:
                    self.pass_offer_on(copy, mind.way_to(contact.number), with_header)
                    if not self.accepts(copy, contact.number, p):
                        copy.settle(p)
                        continue
                if option:
                    mind.assign(copy, option, p)
                elif not self.carry_out(self.sensors[number], copy, mind.send(copy, p, self.now)):
                    break

    # Offers.

    def pass_offer_on(self, copy: Copy, line: list[int], with_header: set[tuple[int, int]]) -> None:
        """The offer goes along the line; over each link the first one of a session has a header."""
        for link in pairwise(line):
            offer = Offer(copy.event.number, link not in with_header)
            with_header.add(link)
            self.tell_sensor(self.sensors[link[0]], self.sensors[link[1]], "offer", offer.bits)

    def offer_to(self, copy: Copy, number: int, p: int) -> Offer:
        """What a sensor asks a subscriber; its first offer to it in a second has a header."""
        return Offer(copy.event.number, (number, p) not in self.told)

    def accepts(self, copy: Copy, number: int, p: int) -> bool:
        """A sensor makes an offer to a subscriber: its answer."""
        self.tell_subscriber(self.sensors[number], p, "offer", self.offer_to(copy, number, p).bits)
        self.told.add((number, p))
        return not self.walkers[p].has(copy.event.number)

    # Events between sensors.

    def carry_out(self, start: Body, copy: Copy, sending: Sending) -> bool:
        """What a sensor sends goes from hop to hop, and a copy stays at each end: whether it could pay at all."""
        has_it, lies_at = {start.number}, dict[int, Copy]()
        for i, (sender, receiver, parcel) in enumerate(sending.hops):
            here, there = self.sensors[sender], self.sensors[receiver]
            if sender not in has_it:
                continue
            kind = SOURCE if here is start else RELAY
            fate = self.pass_on(here, there, parcel, kind, receiver in sending.left)
            is_last = all(later[0] != sender for later in sending.hops[i + 1 :])
            stays = sender in sending.left or sender in lies_at
            if fate == UNPAID and here is start and not parcel.listed:
                copy.take_back(parcel, sending.wanted, sending.assigned)
                return False
            if fate == UNPAID and here is not start and is_last and not stays:
                self.note_drop(parcel.event.number, here, DEAD, whom_alone(parcel), held=True)
            if fate == UNHEARD and here is start:
                copy.take_back(parcel, sending.wanted, sending.assigned)
            elif fate == UNHEARD:
                self.keep_on_the_way(here, parcel, lies_at, is_last)
            if fate in (ARRIVED, REFUSED):
                self.records.kept[-1] = fate == ARRIVED, kind == RELAY and is_last and not stays
            if fate == ARRIVED:
                has_it.add(receiver)
                if receiver in sending.left:
                    lies_at[receiver] = self.keep(there, self.minds[receiver].take(sending.left[receiver]))
        return True

    def keep_on_the_way(self, here: Body, parcel: Parcel, lies_at: dict[int, Copy], is_last: bool) -> None:
        """A sensor on the way was not heard by the next one: it keeps the event for all beyond, if it has room."""
        if here.number in lies_at:
            lies_at[here.number].wanted |= parcel.targets
            lies_at[here.number].carry = parcel.carry or lies_at[here.number].carry
        elif self.is_full(here):
            self.note_drop(parcel.event.number, here, FULL, whom_alone(parcel), held=is_last)
        else:
            lies_at[here.number] = self.keep(here, self.minds[here.number].take(parcel))

    def send_new_copies(self) -> None:
        """Rule 10, in the order in which copies came into being."""
        new = [(copy.serial, body, copy) for body in self.sensors for copy in self.minds[body.number].new_copies()]
        for _, body, copy in sorted(new, key=lambda found: found[0]):
            mind = self.minds[body.number]
            if copy in mind.queue and not body.exhausted:
                for sending in mind.send_new(copy, self.now):
                    if not self.carry_out(body, copy, sending):
                        break

    # Events between a sensor and a subscriber.

    def hand_over_to(self, p: int, body: Body) -> None:
        """Rule 7."""
        mind, walker = self.minds[body.number], self.walkers[p]
        for copy in mind.for_subscriber(p) if not body.exhausted else ():
            parcel, offered = mind.parcel_for(copy, p), copy.exposed and self.dials.offers
            offer = self.offer_to(copy, body.number, p).bits if offered else 0
            if offer + parcel.bits > self.budget_bits[p]:
                continue
            if offered and not self.accepts(copy, body.number, p):
                copy.settle(p)
                continue
            fate = self.send_to_subscriber(body, p, parcel)
            if fate == ARRIVED:
                mind.hand_over(copy, p)
                self.note_reception(p, parcel, walker.receive(parcel, body.number))
            elif fate == UNPAID:
                break

    def give_errands(self, p: int, body: Body) -> None:
        """Rule 8: what was promised to a walker."""
        mind, walker = self.minds[body.number], self.walkers[p]
        for copy in mind.for_walker(p, self.now) if not body.exhausted else ():
            parcel = mind.errand_of(copy)
            if parcel.bits > self.budget_bits[p]:
                continue
            fate = self.send_to_subscriber(body, p, parcel)
            if fate == UNPAID:
                break
            if fate == ARRIVED:
                assert parcel.errand is not None
                copy.settle(parcel.errand.target)
                self.note_reception(p, parcel, walker.receive(parcel, body.number))

    def drop_errands(self, p: int, in_reach: list[Body]) -> None:
        """Rule 8: what a walker leaves."""
        walker = self.walkers[p]
        for task in list(walker.tasks):
            number = walker.due_at(task, [body.number for body in in_reach], self.now)
            if number is None or walker.drop(task).bits > self.budget_bits[p]:
                continue
            if self.leave(p, self.sensors[number], walker.drop(task)):
                walker.tasks.remove(task)

    def deposit(self, p: int, in_reach: list[Body]) -> None:
        """Rule 9."""
        walker = self.walkers[p]
        for carried in list(walker.bag):
            number = walker.depot(carried, [body.number for body in in_reach])
            if number is None or walker.deposit_bits > self.budget_bits[p]:
                continue
            if self.leave(p, self.sensors[number], walker.deposit(carried)):
                walker.note_left(carried, number)

    def leave(self, p: int, body: Body, parcel: Parcel) -> bool:
        """A subscriber gives an event to a sensor: whether that has heard it."""
        fate = self.send_to_sensor(p, body, parcel)
        if fate == ARRIVED:
            mind = self.minds[body.number]
            self.keep(body, mind.take_deposit(parcel) if parcel.carry else mind.take_dropped(parcel))
        return fate != UNHEARD

    # Deaths.

    def bury(self) -> None:
        """The exhausted die with their copies; who is left in their communities tells who that is."""
        dying = [body for body in self.sensors if body.exhausted and body.died < 0]
        for body in dying:
            body.died = self.now
            self.lose_queue(body, self.minds[body.number])
            self.minds[body.number].die()
            for other in body.neighbors:
                other.neighbors.remove(body)
            body.neighbors = []
        changed = [community for community in self.communities if set(community.sensors) & set(dying)]
        for old in changed:
            self.communities.remove(old)
            parts = find_communities([body for body in old.sensors if body.died < 0])
            self.communities += parts
            self.tell_maps(parts, self.name_of(old.sensors[0].number))
        self.communities.sort(key=lambda community: community.sensors[0].number)

    # Waking.

    def form_anew(self, kin: frozenset[int]) -> None:
        """Some have woken: all kin know what some of them knew, and are communities as they hear each other."""
        told, name = Reunion.of([self.minds[number].memory() for number in sorted(kin)]), self.old_names[kin]
        others = {self.name_of(number) for number in kin} - {name}
        for walker in self.walkers:
            walker.forget(others)
        living = [body for body in self.sensors if body.number in kin and body.died < 0]
        for body in living:
            self.minds[body.number].hear_kin(told)
        self.communities = [group for group in self.communities if group.sensors[0].number not in kin]
        self.communities += find_communities(living)
        self.communities.sort(key=lambda community: community.sensors[0].number)
        self.tell_maps([group for group in self.communities if group.sensors[0].number in kin], name)

    def name_of(self, number: int) -> int:
        return self.minds[number].members.name


def whom_alone(parcel: Parcel) -> int | None:
    """The one whom an event is for that was sent to nobody else."""
    return None if parcel.listed else addressee_of(parcel)


def spot_of(body: Body) -> Place:
    """Where a sensor stands, and how far it hears."""
    return body.x, body.y, body.range_m
