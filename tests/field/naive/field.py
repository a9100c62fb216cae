"""What the three protocols have in common.

Steps are those of docs/field/rules.md; "CED 4.1" and "CET 3.2" are sections of the two papers.
"""

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from serai.field.world import World
from serai.scenario.section import Scenario
from tests.field.naive.parts import (
    DEAD,
    EXPIRED,
    FULL,
    RELAY,
    SOURCE,
    Community,
    Copy,
    Drop,
    Point,
    Reception,
    Records,
    Sensor,
    Subscriber,
    Transfer,
    Watched,
    cell_at,
    distance,
    find_communities,
    legs_of,
    place_of,
    receive_pj,
    touches,
    tracks_of,
    transmit_pj,
    visit_at,
)
from tests.field.naive.power import Power


class News(NamedTuple):
    """What is new in a visit: some sensor may be within reach that was not, some may no longer be."""

    came: bool
    went: bool


# --- The network --------------------------------------------------------------------------------------------


class Network(Power):
    """All sensors, subscribers and communities of one world, and the steps that every protocol shares."""

    def __init__(self, world: World, scenario: Scenario, key: int) -> None:
        self.world = world
        self.grid = world.grid
        self.scenario = scenario
        self.settings = scenario.protocol
        self.radio = scenario.radio
        self.rate: int = scenario.radio.rate
        self.key = key
        self.now = -1
        self.serials = 0
        busy_s, lifetime_s = scenario.duration_s - scenario.events.quiet_s, scenario.events.lifetime_s
        begin, end = max(round(min(lifetime_s / 2, busy_s / 4)), 1), math.floor(busy_s)
        self.steady = (begin, (begin + end) // 2, end) if end > begin + 1 else (0, 0, 0)
        self.spent_in_halves = np.zeros((2, 2, len(world.sensor_x)), np.int64)
        self.records = Records(transmissions=[0] * len(world.event_sensor))
        self.watched, self.counted = Watched(), Counter[str]()
        self.since: dict[tuple[int, int], int] = {}  # sessions going on
        self.heads: dict[int, int] = {}
        self.paid: dict[int, int] = {}
        self.sensors = [
            Sensor(number, float(x), float(y), round(battery_j * 1e12), self.capacity_of(number))
            for number, (x, y, battery_j) in enumerate(
                zip(world.sensor_x, world.sensor_y, world.battery_j.tolist(), strict=True)
            )
        ]
        if world.idle_w is not None:
            for sensor in self.sensors:
                sensor.idle_pj = round(float(world.idle_w[sensor.number]) * 1e12)
        if world.ranges is not None:
            for sensor in self.sensors:
                sensor.range_m = float(world.ranges.sensors_m[sensor.number])
        for sensor in self.sensors:
            sensor.neighbors = [other for other in self.in_touch(sensor) if other is not sensor]
        self.communities = self.communities_of(self.sensors)
        self.new: set[int] = set()
        kin = [frozenset(sensor.number for sensor in group.sensors) for group in self.communities]
        self.kin = [next(group for group in kin if sensor.number in group) for sensor in self.sensors]
        self.subscribers = [
            Subscriber(
                number,
                track,
                list(map(float, world.low[number])),
                list(map(float, world.high[number])),
                legs,
                carries=bool(world.people.carries[number]),
            )
            for number, (track, legs) in enumerate(zip(tracks_of(world), legs_of(world), strict=True))
        ]

    def capacity_of(self, number: int) -> int:
        """How many copies a sensor can hold."""
        own = self.world.queue
        return int(self.scenario.sensors.queue if own is None else own[number])

    # What a protocol adds: what it does in a slot after expiry and birth.

    def act(self) -> None:
        raise NotImplementedError

    def run(self, until_death: bool = False) -> Records:
        """The records of the whole run, or of the run until the end of the slot in which a battery is empty."""
        for slot in range(self.scenario.duration_s):
            self.now = slot
            for number in self.world.failing if slot == self.scenario.sensors.fail_at_s else ():
                self.sensors[number].exhausted = self.sensors[number].broken = True
            self.expire()
            self.bear()
            self.act()
            self.listen()
            self.bury()
            self.wake()
            self.watch()
            if until_death and any(sensor.died >= 0 for sensor in self.sensors):
                break
        self.watch_the_end()
        for sensor in self.sensors:
            self.records.died.append(sensor.died)
            self.records.sent.append(sensor.sent)
            self.records.received.append(sensor.received)
            self.records.event_pj.append(sensor.event_pj)
            self.records.control_pj.append(sensor.control_pj)
            self.records.idle_pj.append(sensor.idled_pj)
            self.records.harvested_pj.append(sensor.harvested_pj)
            self.records.wasted_pj.append(sensor.wasted_pj)
            self.records.left_over.append(sensor.queue)
        self.records.steady_pj = self.in_steady_part()
        return self.records

    def note_steady(self, number: int, kind: int, cost: int) -> None:
        """What was spent now belongs to one half of the steady part, or to none: docs/metrics.md."""
        begin, middle, end = self.steady
        if begin <= self.now < end:
            self.spent_in_halves[int(self.now >= middle), kind, number] += cost

    def in_steady_part(self) -> list[list[list[int]]]:
        """Energy by half, kind and sensor; of a run that ended early nothing."""
        if self.steady[2] > self.now + 1:
            self.spent_in_halves[:] = 0
        spent: list[list[list[int]]] = self.spent_in_halves.tolist()
        return spent

    # What is seen of a slot when it is over.

    def watch(self) -> None:
        """Control messages, sessions and heads of this slot, and each minute what control messages took."""
        seen = self.watched
        for kind, count in self.records.control_messages.items():
            if count > self.counted[kind]:
                seen.control.append((self.now, kind, count - self.counted[kind]))
                self.counted[kind] = count
        now_with = {
            (session.subscriber.number, group.sensors[0].number)
            for group in self.communities
            for session in group.sessions
        }
        for pair in set(self.since) - now_with:
            seen.sessions.append((*pair, self.since.pop(pair), self.now))
        for pair in now_with - set(self.since):
            self.since[pair] = self.now
        for group in self.communities:
            first = group.sensors[0].number
            if group.head and self.heads.get(first) != group.head.number:
                self.heads[first] = group.head.number
                seen.heads.append((self.now, first, group.head.number))
        if self.now % 60 == 59:
            self.watch_energy()

    def watch_energy(self) -> None:
        for sensor in self.sensors:
            if more := sensor.control_pj - self.paid.get(sensor.number, 0):
                self.watched.spent.append((self.now, sensor.number, more))
                self.paid[sensor.number] = sensor.control_pj

    def watch_the_end(self) -> None:
        self.watched.sessions += [(*pair, start, self.now + 1) for pair, start in self.since.items()]
        self.watch_energy()
        self.records.watched = self.watched

    def left_pj(self, sensor: Sensor) -> int:
        """What is left of the sensor's battery."""
        spent = sensor.event_pj + (sensor.control_pj if self.radio.control_costs else 0)
        return sensor.battery_pj - spent - sensor.idled_pj + sensor.harvested_pj - sensor.wasted_pj

    # Step 6, deaths.

    def bury(self) -> None:
        """The exhausted sensors die, their copies with them, and nobody is their neighbour any more."""
        dying = [sensor for sensor in self.sensors if sensor.exhausted and sensor.died < 0]
        for sensor in dying:
            sensor.died = self.now
            for copy in list(sensor.queue):
                self.drop(sensor, copy, DEAD)
            for other in sensor.neighbors:
                other.neighbors.remove(sensor)
            sensor.neighbors = []
        self.part(dying)

    def part(self, dead: list[Sensor]) -> None:
        """What the protocol does about its dead."""

    # Batteries.

    def pays(self, sensor: Sensor, cost: int) -> bool:
        """Whether the sensor can pay for an event; it is exhausted if it cannot, or nothing is left."""
        able = not sensor.exhausted and cost <= self.left_pj(sensor)
        if able:
            sensor.event_pj += cost
            self.note_steady(sensor.number, 0, cost)
        if not able or self.left_pj(sensor) == 0:
            sensor.exhausted = True
        return able

    def pay_control(self, sensor: Sensor, cost: int) -> None:
        """A control message takes at most what is left, if the battery feels it."""
        if not self.radio.control_costs:
            sensor.control_pj += cost
            self.note_steady(sensor.number, 1, cost)
            return
        cost = min(cost, self.left_pj(sensor))
        sensor.control_pj += cost
        self.note_steady(sensor.number, 1, cost)
        if self.left_pj(sensor) == 0:
            sensor.exhausted = True

    # Steps 1 and 2.

    def expire(self) -> None:
        """Step 1: every copy that has outlived the events' lifetime is dropped (CED 4.2 A and C)."""
        for sensor in self.sensors:
            for copy in list(sensor.queue):
                if self.is_too_old(copy.event):
                    self.drop(sensor, copy, EXPIRED)

    def bear(self) -> None:
        """Step 2: the slot's events, by number, enter their sensors' queues (CED 4.2 C a)."""
        for event, (birth, number) in enumerate(zip(self.world.event_time_s, self.world.event_sensor, strict=True)):
            if math.ceil(birth) == self.now:
                sensor = self.sensors[int(number)]
                if sensor.died >= 0:
                    continue
                if self.is_full(sensor):
                    self.note_drop(event, sensor, FULL, None)
                else:
                    sensor.queue.append(Copy(event, count=0, serial=self.next_serial()))

    # What can be asked about copies and queues.

    def age(self, event: int) -> float:
        """How long ago the event was born (the papers' survival time)."""
        return float(self.now - self.world.event_time_s[event])

    def is_too_old(self, event: int) -> bool:
        return self.age(event) > float(self.scenario.events.lifetime_s)

    def is_full(self, sensor: Sensor) -> bool:
        return len(sensor.queue) >= sensor.capacity

    def next_serial(self) -> int:
        self.serials += 1
        return self.serials

    def matches(self, event: int, subscriber: Subscriber) -> bool:
        """Whether the event is what the subscriber asked for."""
        values = [float(value) for value in self.world.event_values[event]]
        bounds = zip(values, subscriber.low, subscriber.high, strict=True)
        return all(low <= value <= high for value, low, high in bounds)

    def drop(self, sensor: Sensor, copy: Copy, reason: str) -> None:
        """A copy leaves its queue for good."""
        sensor.queue.remove(copy)
        self.note_drop(copy.event, sensor, reason, copy.addressee, held=True)

    def note_drop(self, event: int, sensor: Sensor, reason: str, addressee: int | None, held: bool = False) -> None:
        self.records.drops.append(Drop(self.now, event, sensor.number, reason))
        whose = -1 if addressee is None else len(self.sensors) + addressee
        self.records.whose.append((whose, held, len(self.records.transfers)))
        self.records.drops_by_reason[reason] += 1

    # Who hears whom, and where everybody is.

    def hear_each_other(self, sensor: Sensor, node: Sensor | Subscriber, at: Point | None = None) -> bool:
        """Whether their cells touch, or each is within the other's range; `at`: the node is somewhere else."""
        x, y = (at.x, at.y) if at else place_of(node)
        if math.isnan(x):  # nowhere
            return False
        ranges = self.world.ranges
        if ranges is None:
            return touches(self.grid, cell_at(self.grid, sensor.x, sensor.y), cell_at(self.grid, x, y))
        least_m = min(sensor.range_m, node.range_m if isinstance(node, Sensor) else ranges.subscribers_m)
        return (sensor.x - x) * (sensor.x - x) + (sensor.y - y) * (sensor.y - y) <= least_m * least_m

    def is_near(self, sensor: Sensor, subscriber: Subscriber) -> bool:
        """Whether the sensor lives, and they hear each other, or are in one cell if `reach` says so."""
        if sensor.died >= 0:
            return False
        if self.settings.reach == "same-cell" and not math.isnan(subscriber.here.x):
            return cell_at(self.grid, *place_of(sensor)) == cell_at(self.grid, *place_of(subscriber))
        return self.hear_each_other(sensor, subscriber)

    def in_touch(self, node: Sensor | Subscriber) -> list[Sensor]:
        """The living sensors that hear this node, by number."""
        return [sensor for sensor in self.sensors if sensor.died < 0 and self.hear_each_other(sensor, node)]

    def place(self, subscriber: Subscriber) -> frozenset[int]:
        """What changes when a subscriber comes to another place: its cell, or the sensors in range, dead or alive."""
        if math.isnan(subscriber.here.x):
            return frozenset()
        if self.world.ranges is None:
            return frozenset([cell_at(self.grid, *place_of(subscriber))])
        return frozenset(sensor.number for sensor in self.sensors if self.hear_each_other(sensor, subscriber))

    def communities_of(self, sensors: list[Sensor]) -> list[Community]:
        """The communities that sensors form, and their sizes."""
        found = find_communities(sensors)
        for community in found:
            by_cell = self.world.ranges is None
            places = {cell_at(self.grid, *place_of(s)) if by_cell else s.number for s in community.sensors}
            community.size = len(places)
        return found

    def community_of(self, sensor: Sensor) -> Community:
        return next(community for community in self.communities if sensor in community.sensors)

    def move(self, subscriber: Subscriber) -> News | None:
        """Take the subscriber to its visit of this slot: what is new in it, if anything."""
        before, was_audible = subscriber.place, subscriber.audible
        last_leg = subscriber.leg if subscriber.visit else None
        subscriber.visit = visit_at(subscriber.track, self.now)
        subscriber.received_in_slot = 0
        subscriber.place = here = self.place(subscriber)
        beside = {sensor.number for sensor in self.in_touch(subscriber)} if self.new else set()
        came, went = bool(here - before) or bool(beside & self.new), bool(before - here)
        if not (came or went or last_leg != subscriber.leg):
            return None
        subscriber.audible = subscriber.here.is_leg or not self.settings.silent_while_pausing
        if subscriber.audible and (came or not was_audible) and here:
            self.say_hello(subscriber)
        return News(came, went)

    # Messages and what they cost.

    def transmit(
        self,
        event: int,
        sender: Sensor,
        receiver: Sensor | Subscriber,
        addressee: Subscriber | None,
        kind: str,
        queued: bool = False,
    ) -> bool:
        """One event transmission that a sensor has paid for: whether it was accepted."""
        sender.sent += 1
        reason = self.receive(receiver, queued) if isinstance(receiver, Sensor) else None
        self.note_transfer(event, sender, receiver, addressee, kind, reason is None)
        if isinstance(receiver, Sensor) and reason:
            self.note_drop(event, receiver, reason, addressee.number if addressee else None)
        return reason is None

    def can_send(self, sender: Sensor, receiver: Sensor | Subscriber) -> bool:
        """Whether the sensor can pay for sending an event there; then it has."""
        return self.pays(sender, transmit_pj(self.radio, self.scenario.events.size_bits, distance(sender, receiver)))

    def receive(self, receiver: Sensor, queued: bool) -> str | None:
        """A sensor takes an event in and pays, or the reason why not; one refused costs it nothing."""
        if receiver.exhausted:
            return DEAD
        if queued and self.is_full(receiver):
            return FULL
        if not self.pays(receiver, receive_pj(self.radio, self.scenario.events.size_bits)):
            return DEAD
        receiver.received += 1
        return None

    def note_transfer(
        self,
        event: int,
        sender: Sensor | Subscriber,
        receiver: Sensor | Subscriber,
        addressee: Subscriber | None,
        kind: str,
        accepted: bool = True,
    ) -> None:
        self.records.transmissions[event] += 1
        nodes = (self.node(sender), self.node(receiver), self.node(addressee) if addressee else -1)
        self.records.transfers.append(Transfer(self.now, event, *nodes, kind, accepted))
        becomes_a_copy = kind in (SOURCE, RELAY) and isinstance(receiver, Sensor) and accepted
        self.records.kept.append((becomes_a_copy, kind == RELAY))

    def node(self, who: Sensor | Subscriber) -> int:
        """The node number of a sensor or subscriber in the records."""
        return who.number if isinstance(who, Sensor) else len(self.sensors) + who.number

    def hand_over(self, event: int, subscriber: Subscriber) -> bool:
        """The subscriber receives the event and matches it (CED 4.1, end): whether it was new and wanted."""
        subscriber.received_in_slot += 1
        if event in subscriber.known:
            return False
        subscriber.known.add(event)
        wanted = self.matches(event, subscriber)
        self.records.receptions.append(Reception(event, subscriber.number, self.now, wanted))
        return wanted

    def say_hello(self, subscriber: Subscriber) -> None:
        """Hello by the subscriber, a reply by every sensor in touch (CED 4.1 a)."""
        hello, reply = self.scenario.control.hello_bits, self.scenario.control.reply_bits
        self.count_control("hello", hello)
        for sensor in self.in_touch(subscriber):
            self.pay_control(sensor, receive_pj(self.radio, hello))
            self.count_control("reply", reply)
            self.pay_control(sensor, transmit_pj(self.radio, reply, self.broadcast_m(sensor)))

    def broadcast(self, sensor: Sensor, kind: str, bits: int) -> None:
        """One control message by a sensor to all that it touches."""
        self.count_control(kind, bits)
        self.pay_control(sensor, transmit_pj(self.radio, bits, self.broadcast_m(sensor)))
        for neighbor in sensor.neighbors:
            self.pay_control(neighbor, receive_pj(self.radio, bits))

    def count_control(self, kind: str, bits: int) -> None:
        self.records.control_messages[kind] += 1
        self.records.control_bits[kind] += bits

    def broadcast_m(self, sensor: Sensor) -> float:
        """How far a control message is sent: the sensor's range, or the longest distance that touches."""
        if self.world.ranges is not None:
            return sensor.range_m
        width, height = self.grid.width_m / self.grid.columns, self.grid.height_m / self.grid.rows
        return 2 * math.sqrt(width * width + height * height)
