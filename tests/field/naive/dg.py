"""DG, the obvious way: direct gathering, the yardstick of both papers (CED 5, CET 4)."""

from serai.core.order import contact_rank
from serai.field.world import World
from serai.scenario.section import Scenario
from tests.field.naive.field import Network
from tests.field.naive.parts import SOURCE, Sensor, Subscriber


class Dg(Network):
    """Sensors hand their own events to subscribers in contact, the youngest first."""

    def __init__(self, world: World, scenario: Scenario, key: int) -> None:
        super().__init__(world, scenario, key)
        self.rank: dict[tuple[Subscriber, Sensor], int] = {}
        self.sent_for: set[tuple[Subscriber, int]] = set()

    def act(self) -> None:
        for subscriber in self.subscribers:
            if self.move(subscriber):
                self.renew_contacts(subscriber)
        for subscriber in self.subscribers:
            if subscriber.audible:
                self.gather(subscriber)

    def renew_contacts(self, subscriber: Subscriber) -> None:
        """End the contacts that are out of reach, begin the new ones with their rank; a pause ends none."""
        for sensor in self.sensors:
            pair = (subscriber, sensor)
            in_reach = self.is_near(sensor, subscriber)
            if pair in self.rank and not in_reach:
                del self.rank[pair]
                if self.settings.resend == "each-contact":
                    own = {(subscriber, copy.event) for copy in sensor.queue}
                    self.sent_for -= own
            elif pair not in self.rank and in_reach:
                self.rank[pair] = contact_rank(self.key, self.now, subscriber.number, sensor.number)

    def part(self, dead: list[Sensor]) -> None:
        """Their contacts end."""
        self.rank = {pair: rank for pair, rank in self.rank.items() if pair[1] not in dead}

    def gather(self, subscriber: Subscriber) -> None:
        """The sensors in contact, by rank, send their queues."""
        in_contact = [sensor for sensor in self.sensors if (subscriber, sensor) in self.rank]
        for sensor in sorted(in_contact, key=lambda s: (self.rank[subscriber, s], s.number)):
            sent = 0
            for copy in sorted(sensor.queue, key=lambda copy: -copy.event):
                used = sent if self.settings.budget == "link" else subscriber.received_in_slot
                if used < self.rate and self.is_due(copy.event, subscriber):
                    if not self.can_send(sensor, subscriber):
                        break
                    self.transmit(copy.event, sensor, subscriber, subscriber, SOURCE)
                    self.hand_over(copy.event, subscriber)
                    self.sent_for.add((subscriber, copy.event))
                    sent += 1

    def is_due(self, event: int, subscriber: Subscriber) -> bool:
        if self.settings.resend != "every-second" and (subscriber, event) in self.sent_for:
            return False
        return self.settings.match == "subscriber" or self.matches(event, subscriber)
