"""A subscriber of SERAI: what it was told, what it carries, and what it decides from that alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tests.field.naive.serai.legs import Leg
from tests.field.naive.serai.manual import Manual
from tests.field.naive.serai.messages import Announce, Errand, Event, Map, Parcel, Reply, Subs, Subscription


@dataclass(eq=False)
class Carried:
    """An event in the bag: {event, W, communities served, count, T_home}, and where its home is."""

    event: Event
    wanted: frozenset[int]
    home: int
    home_wait_s: float
    served: set[int] = field(default_factory=set)


class Task(NamedTuple):
    """An event in the walker's bag."""

    event: Event
    errand: Errand


class Subscriber:
    """State and decisions of one subscriber; it has no way to look at anybody else."""

    def __init__(self, own: Subscription, manual: Manual) -> None:
        self.number = own.subscriber
        self.own = own
        self.manual = manual
        self.leg: Leg | None = None
        self.known = {own.subscriber: own}
        self.received: set[int] = set()
        self.bag: list[Carried] = []
        self.tasks: list[Task] = []
        self.nearby: dict[int, Reply] = {}  # by sensor: what was answered to the last HELLO
        self.waits_s: dict[int, float] = {}  # T_c of every community met
        self.announced: set[int] = set()  # communities, in this leg

    # Rules 2, 4 and 5.

    def set_out(self, leg: Leg) -> None:
        """A new leg begins: it has been announced nowhere."""
        self.leg = leg
        self.announced = set()

    def outlive(self, now: int) -> None:
        """Rule 2: what is too old to be carried on."""
        life_s = self.manual.lifetime_s
        self.bag = [carried for carried in self.bag if now - carried.event.born_s <= life_s]
        self.tasks = [task for task in self.tasks if now - task.event.born_s <= life_s]

    def hear_replies(self, replies: Sequence[Reply]) -> None:
        """Rule 4: who is here now."""
        self.nearby = {reply.sensor: reply for reply in replies}
        for reply in replies:
            self.waits_s[reply.community] = reply.wait_s
            if reply.leg != self.leg:  # it has forgotten
                self.announced.discard(reply.community)

    def hear_map(self, sensor: int, members: Map) -> None:
        """A community has changed: how long it waits now is not known yet, unless it has kept its name."""
        if sensor in self.nearby:
            community, alone = members.name, len(members.places) == 1
            if self.nearby[sensor].community in self.announced:
                self.announced.add(community)
            self.nearby[sensor] = replace(self.nearby[sensor], community=community, alone=alone)

    def forget(self, communities: set[int]) -> None:
        """These are no more."""
        self.waits_s = {name: wait_s for name, wait_s in self.waits_s.items() if name not in communities}

    def is_first_contact(self, sensor: int) -> bool:
        """Rule 5: whether its community has not heard of this leg."""
        if sensor not in self.nearby or self.nearby[sensor].community in self.announced:
            return False
        return self.nearby[sensor].leg != self.leg

    def announce(self, sensor: int, known: frozenset[int]) -> Announce:
        """Rule 5: to the community of this sensor, which knows these subscriptions."""
        community = self.nearby[sensor].community
        self.announced.add(community)
        assert self.leg is not None
        carries = self.wait_of(community) > self.manual.dials.phi * min(self.waits_s.values())
        news = tuple(self.known[p] for p in sorted(self.known) if p not in known)
        return Announce(self.number, carries, self.leg, news)

    def wait_of(self, community: int) -> float:
        """T_c, if there is any."""
        return self.waits_s.get(community, math.nan)

    def learn(self, told: Subs) -> None:
        self.known |= {subscription.subscriber: subscription for subscription in told.news}

    # Rules 6 to 8: events.

    def has(self, event: int) -> bool:
        """The answer to an OFFER."""
        return event in self.received

    def receive(self, parcel: Parcel, sensor: int) -> bool:
        """An event has come from a sensor: whether it is the first time."""
        event, is_first = parcel.event, parcel.event.number not in self.received
        self.received.add(event.number)
        if parcel.errand:
            self.tasks.append(Task(event, parcel.errand))
        if parcel.carry and all(carried.event != event for carried in self.bag):
            home = self.nearby[sensor].community
            self.bag.append(Carried(event, parcel.carry, home, self.wait_of(home)))
        return is_first

    def due_at(self, task: Task, in_reach: Sequence[int], now: int) -> int | None:
        """Rule 8: the sensor at which the event is to be dropped now."""
        if task.errand.drop in in_reach:
            return task.errand.drop
        return in_reach[0] if in_reach and now > task.errand.until_s else None

    def drop(self, task: Task) -> Parcel:
        manual = self.manual
        return Parcel(task.event, manual.event_bits, frozenset({task.errand.target}), address=True)

    # Rule 9: deposits.

    def depot(self, carried: Carried, in_reach: Sequence[int]) -> int | None:
        """The sensor at which a carried event is deposited now."""
        if len(carried.served) >= self.manual.dials.deposits:
            return None
        for sensor in in_reach:
            if sensor in self.nearby and self.takes(self.nearby[sensor], carried):
                return sensor
        return None

    def takes(self, reply: Reply, carried: Carried) -> bool:
        """Whether a sensor's community should get the event."""
        if reply.alone or reply.full or reply.community == carried.home or reply.community in carried.served:
            return False
        return self.wait_of(reply.community) * self.manual.dials.phi_d <= carried.home_wait_s

    @property
    def deposit_bits(self) -> int:
        """What leaving an event takes of the budget."""
        return self.manual.event_bits + self.manual.subscribers

    def note_left(self, carried: Carried, sensor: int) -> None:
        """It has been told to a sensor, whether that had room or not."""
        carried.served.add(self.nearby[sensor].community)

    def deposit(self, carried: Carried) -> Parcel:
        manual = self.manual
        return Parcel(carried.event, manual.event_bits, carry=carried.wanted, map_bits=manual.subscribers)
