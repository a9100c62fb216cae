"""What messages cost, and what is written down of them."""

from serai.field.world import World
from serai.scenario.section import Scenario
from tests.field.naive.field import Network
from tests.field.naive.parts import (
    DEAD,
    RETURN,
    SOURCE,
    Reception,
    Transfer,
    Visit,
    distance,
    receive_pj,
    transmit_pj,
)
from tests.field.naive.parts import Sensor as Body
from tests.field.naive.parts import Subscriber as Feet
from tests.field.naive.serai.legs import Place
from tests.field.naive.serai.messages import Parcel
from tests.field.naive.serai.sensor import RELAY as RELAYED
from tests.field.naive.serai.sensor import Copy, Sensor


class Books(Network):
    """The accounts of sensors, the budgets of subscribers, the records."""

    def __init__(self, world: World, scenario: Scenario, key: int) -> None:
        super().__init__(world, scenario, key)
        self.budget_bits = [0] * len(self.subscribers)

    def stand(self, p: int, place: Place) -> None:
        """A subscriber is here in this second, with its budget untouched."""
        self.subscribers[p].visit = Visit(0, True, *place)
        self.budget_bits[p] = self.rate * self.scenario.events.size_bits

    def spend_budget(self, p: int, bits: int) -> None:
        self.budget_bits[p] -= bits

    def node_of(self, p: int) -> int:
        return len(self.sensors) + p

    # Control messages.

    def broadcast(self, sensor: Body, kind: str, bits: int) -> None:
        """One control message to all neighbours, as far as the farthest one."""
        self.count_control(kind, bits)
        farthest_m = max(distance(sensor, neighbor) for neighbor in sensor.neighbors)
        self.pay_control(sensor, transmit_pj(self.radio, bits, farthest_m))
        for neighbor in sensor.neighbors:
            self.hear_control(neighbor, bits)

    def hear_control(self, sensor: Body, bits: int) -> None:
        self.pay_control(sensor, receive_pj(self.radio, bits))

    def tell_sensor(self, sender: Body, receiver: Body, kind: str, bits: int) -> None:
        """One control message from sensor to sensor."""
        self.count_control(kind, bits)
        self.pay_control(sender, transmit_pj(self.radio, bits, distance(sender, receiver)))
        self.hear_control(receiver, bits)

    def tell_subscriber(self, sender: Body, p: int, kind: str, bits: int) -> None:
        """One control message from sensor to subscriber."""
        self.count_control(kind, bits)
        self.pay_control(sender, transmit_pj(self.radio, bits, distance(sender, self.subscribers[p])))
        self.spend_budget(p, bits)

    # Events.

    def pass_on(self, sender: Body, receiver: Body, parcel: Parcel, kind: str, stays: bool) -> bool:
        """One hop between sensors that the sender has paid for: whether the event has come there; it may stay."""
        sender.sent += 1
        self.count_along(parcel)
        if parcel.along_bits:
            self.pay_control(sender, transmit_pj(self.radio, parcel.along_bits, distance(sender, receiver)))
        return self.arrive(sender, receiver, parcel, kind, stays)

    def send_to_sensor(self, p: int, receiver: Body, parcel: Parcel) -> bool:
        """From a subscriber to a sensor, where it stays."""
        self.spend_budget(p, parcel.bits)
        self.count_along(parcel)
        return self.arrive(self.subscribers[p], receiver, parcel, RETURN, stays=True)

    def arrive(self, sender: Body | Feet, receiver: Body, parcel: Parcel, kind: str, stays: bool) -> bool:
        """A sensor takes an event in, if it can pay for that and has room if it is to stay."""
        reason = self.receive(receiver, queued=stays)
        self.note_event(parcel, sender, receiver, addressee_of(parcel), kind, reason is None)
        if reason:
            self.note_drop(parcel.event.number, receiver, reason, addressee_of(parcel))
        elif parcel.along_bits:
            self.hear_control(receiver, parcel.along_bits)
        return reason is None

    def send_to_subscriber(self, sender: Body, p: int, parcel: Parcel) -> bool:
        """From a sensor to a subscriber: whether the sensor could pay for it."""
        feet = self.subscribers[p]
        if not self.can_send(sender, feet):
            return False
        sender.sent += 1
        self.spend_budget(p, parcel.bits)
        self.count_along(parcel)
        if parcel.along_bits:
            self.pay_control(sender, transmit_pj(self.radio, parcel.along_bits, distance(sender, feet)))
        self.note_event(parcel, sender, feet, parcel.errand.target if parcel.errand else p, SOURCE, True)
        return True

    def count_along(self, parcel: Parcel) -> None:
        """What goes along with an event is control, but no message of its own."""
        for kind, bits in (("want_map", parcel.want_map_bits), ("address", parcel.address_bits)):
            if bits:
                self.records.control_bits[kind] += bits

    # The records.

    def note_event(
        self, parcel: Parcel, sender: Body | Feet, receiver: Body | Feet, addressee: int | None, kind: str, ok: bool
    ) -> None:
        event = parcel.event.number
        self.records.transmissions[event] += 1
        whom = -1 if addressee is None else self.node_of(addressee)
        nodes = (self.node(sender), self.node(receiver), whom)
        self.records.transfers.append(Transfer(self.now, event, *nodes, kind, ok))
        self.records.kept.append((ok and isinstance(receiver, Body), False))

    def note_reception(self, p: int, parcel: Parcel, is_first: bool) -> None:
        if is_first:
            event = parcel.event.number
            wanted = self.matches(event, self.subscribers[p])
            self.records.receptions.append(Reception(event, p, self.now, wanted))

    def note_gone(self, body: Body, copy: Copy, reason: str) -> None:
        whom = min(copy.wanted, default=None) if copy.kind == RELAYED else None
        self.note_drop(copy.event.number, body, reason, whom, held=True)

    def lose_queue(self, body: Body, mind: Sensor) -> None:
        """All copies of a sensor are gone with it."""
        for copy in mind.queue:
            self.note_gone(body, copy, DEAD)
        mind.queue = []


def addressee_of(parcel: Parcel) -> int | None:
    """The one subscriber that the event is on its way to."""
    return next(iter(parcel.targets)) if len(parcel.targets) == 1 else None
