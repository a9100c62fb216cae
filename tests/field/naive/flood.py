"""A community flood, and one whose events visitors carry on, the obvious way: everybody is asked about everything."""

from serai.core.order import service_key
from serai.field.world import World
from serai.scenario.section import Scenario
from tests.field.naive.field import Network
from tests.field.naive.parts import RELAY, RETURN, SOURCE, Copy, Sensor, Subscriber


class Flood(Network):
    """Every sensor gives what it has to every node in reach, once, the youngest event first."""

    def __init__(self, world: World, scenario: Scenario, key: int) -> None:
        super().__init__(world, scenario, key)
        self.had: dict[tuple[Sensor, int], set[int]] = {}  # of each copy: which nodes had it, as its sensor knows

    def act(self) -> None:
        for subscriber in self.subscribers:
            self.move(subscriber)
        for sensor in sorted(self.sensors, key=lambda s: (service_key(self.key, self.now, s.number), s.number)):
            self.take_turn(sensor)

    def take_turn(self, sensor: Sensor) -> None:
        """As often as the rate allows: the first copy that somebody in reach has not had, to the first of those."""
        for _ in range(self.rate):
            found = self.next_send(sensor)
            if sensor.died >= 0 or sensor.exhausted or found is None:
                return
            copy, goal = found
            if not self.can_send(sensor, goal):
                return
            own = int(self.world.event_sensor[copy.event]) == sensor.number
            whom = goal if isinstance(goal, Subscriber) else None
            accepted = self.transmit(copy.event, sensor, goal, whom, SOURCE if own else RELAY, queued=True)
            if isinstance(goal, Subscriber):
                self.records.kept[-1] = (False, False)
                self.reach(copy.event, goal)
            else:
                self.take_in(copy.event, goal, sensor.number, accepted)
            self.knows(sensor, copy.event).add(self.node(goal))

    def next_send(self, sensor: Sensor) -> tuple[Copy, Sensor | Subscriber] | None:
        open_now = [s for s in self.subscribers if s.received_in_slot < self.rate and self.in_contact(s, sensor)]
        for copy in sorted(sensor.queue, key=lambda copy: -copy.event):
            for goal in (*open_now, *sensor.neighbors):
                if self.node(goal) not in self.knows(sensor, copy.event):
                    return copy, goal
        return None

    def in_contact(self, subscriber: Subscriber, sensor: Sensor) -> bool:
        return subscriber.audible and self.is_near(sensor, subscriber)

    def knows(self, sensor: Sensor, event: int) -> set[int]:
        return self.had.setdefault((sensor, event), {sensor.number})

    def reach(self, event: int, subscriber: Subscriber) -> bool:
        """The subscriber receives it: whether for the first time, and wanted."""
        return self.hand_over(event, subscriber)

    def take_in(self, event: int, sensor: Sensor, sender: int, accepted: bool) -> None:
        """The sensor keeps it, unless it has it."""
        fresh = accepted and event not in [copy.event for copy in sensor.queue]
        self.records.kept[-1] = (fresh, False)
        if fresh:
            sensor.queue.append(Copy(event, 0, self.next_serial()))
            self.had[sensor, event] = {sensor.number, sender}


class Carried(Flood):
    """And visitors carry what they wanted to sensors that did not measure it, each copy to one."""

    def __init__(self, world: World, scenario: Scenario, key: int) -> None:
        super().__init__(world, scenario, key)
        self.left: set[tuple[Subscriber, int, Sensor]] = set()

    def act(self) -> None:
        super().act()
        for subscriber in self.subscribers:
            subscriber.bag = [(event, _) for event, _ in subscriber.bag if not self.is_too_old(event)]
            for event, _ in list(subscriber.bag):
                if subscriber.audible and subscriber.received_in_slot < self.rate:
                    self.leave(event, subscriber)

    def reach(self, event: int, subscriber: Subscriber) -> bool:
        wanted = super().reach(event, subscriber)
        if wanted:
            subscriber.bag.append((event, 0))
        return wanted

    def leave(self, event: int, subscriber: Subscriber) -> None:
        source = int(self.world.event_sensor[event])
        near = [s for s in self.sensors if self.in_contact(subscriber, s) and not s.exhausted]
        for sensor in near:
            if sensor.number == source or (subscriber, event, sensor) in self.left:
                continue
            self.left.add((subscriber, event, sensor))
            subscriber.bag.remove((event, 0))
            subscriber.received_in_slot += 1
            refused = self.receive(sensor, queued=True)
            self.note_transfer(event, subscriber, sensor, None, RETURN, not refused)
            self.take_in(event, sensor, self.node(subscriber), not refused)
            if refused:
                self.note_drop(event, sensor, refused, None)
            return
