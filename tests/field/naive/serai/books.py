"""What messages cost, and what is written down of them."""

from serai.core.order import is_lost, slot_key
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
from tests.field.naive.serai.copies import RELAY as RELAYED
from tests.field.naive.serai.copies import Copy
from tests.field.naive.serai.legs import Place
from tests.field.naive.serai.messages import Parcel
from tests.field.naive.serai.sensor import Sensor

UNPAID, REFUSED, UNHEARD, ARRIVED = "unpaid", "refused", "unheard", "arrived"
ACK_BITS = 16


class Books(Network):
    """The accounts of sensors, the budgets of subscribers, the records."""

    def __init__(self, world: World, scenario: Scenario, key: int) -> None:
        super().__init__(world, scenario, key)
        self.budget_bits = [0] * len(self.subscribers)
        self.may_get_lost = self.radio.loss > 0
        self.tries = 4 if self.may_get_lost else 1

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

    def pass_on(self, sender: Body, receiver: Body, parcel: Parcel, kind: str, stays: bool) -> str:
        """One hop between sensors, where it may stay: what became of the event."""
        for nth in range(self.tries):
            if not self.can_send(sender, receiver):
                return UNPAID
            sender.sent += 1
            self.count_along(parcel)
            if parcel.along_bits:
                self.pay_control(sender, transmit_pj(self.radio, parcel.along_bits, distance(sender, receiver)))
            if self.is_heard(sender, receiver, parcel, addressee_of(parcel), kind, nth):
                if not self.arrive(sender, receiver, parcel, kind, stays):
                    return REFUSED
                if self.may_get_lost:
                    self.tell_sensor(receiver, sender, "ack", ACK_BITS)
                return ARRIVED
        return UNHEARD

    def send_to_sensor(self, p: int, receiver: Body, parcel: Parcel) -> str:
        """From a subscriber to a sensor, where it stays."""
        for nth in range(self.tries):
            self.spend_budget(p, parcel.bits)
            self.count_along(parcel)
            if self.is_heard(self.subscribers[p], receiver, parcel, addressee_of(parcel), RETURN, nth):
                if not self.arrive(self.subscribers[p], receiver, parcel, RETURN, stays=True):
                    return REFUSED
                if self.may_get_lost:
                    self.tell_subscriber(receiver, p, "ack", ACK_BITS)
                return ARRIVED
        return UNHEARD

    def is_heard(
        self, sender: Body | Feet, receiver: Body | Feet, parcel: Parcel, whom: int | None, kind: str, nth: int
    ) -> bool:
        """Whether the nth sending of an event is heard; if not, that is written down."""
        loss, event = self.radio.loss, parcel.event.number
        key, link = slot_key(self.key, self.now), (self.node(sender), self.node(receiver))
        if not loss or not is_lost(key, *link, event, nth, loss):
            return True
        self.note_event(parcel, sender, receiver, whom, kind, False)
        return False

    def arrive(self, sender: Body | Feet, receiver: Body, parcel: Parcel, kind: str, stays: bool) -> bool:
        """A sensor takes an event in, if it can pay for that and has room if it is to stay."""
        reason = self.receive(receiver, queued=stays)
        self.note_event(parcel, sender, receiver, addressee_of(parcel), kind, reason is None)
        if reason:
            self.note_drop(parcel.event.number, receiver, reason, addressee_of(parcel))
        elif parcel.along_bits:
            self.hear_control(receiver, parcel.along_bits)
        return reason is None

    def send_to_subscriber(self, sender: Body, p: int, parcel: Parcel) -> str:
        """From a sensor to a subscriber: what became of the event."""
        feet, whom = self.subscribers[p], parcel.errand.target if parcel.errand else p
        for nth in range(self.tries):
            if not self.can_send(sender, feet):
                return UNPAID
            sender.sent += 1
            self.spend_budget(p, parcel.bits)
            self.count_along(parcel)
            if parcel.along_bits:
                self.pay_control(sender, transmit_pj(self.radio, parcel.along_bits, distance(sender, feet)))
            if self.is_heard(sender, feet, parcel, whom, SOURCE, nth):
                self.note_event(parcel, sender, feet, whom, SOURCE, True)
                if self.may_get_lost:
                    self.count_control("ack", ACK_BITS)
                    self.hear_control(sender, ACK_BITS)
                    self.spend_budget(p, ACK_BITS)
                return ARRIVED
        return UNHEARD

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
