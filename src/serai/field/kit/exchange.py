"""Copies in the plain engine: who is sent what, and what becomes of it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np

from serai.core.errors import BadInput
from serai.core.order import key_in_slot
from serai.field.engine.state import DROPS, FULL, NONE, RELAY, RETURN, SOURCE, Limits
from serai.field.kit.books import Books
from serai.field.kit.parts import ALIVE, Guest, Site
from serai.field.kit.sensor import Copy, Peer, Sensor, Session, Visitor
from serai.field.kit.settings import OwnSettings
from serai.field.world import World
from serai.own.content import FREE_BYTES, encoded_bytes, frozen
from serai.own.declaring import put
from serai.own.mistakes import Mistake


class Exchange:
    """The part of a run that moves copies."""

    def __init__(
        self, sensor: type[Sensor], chosen: dict[str, Any], world: World, limits: Limits, settings: OwnSettings
    ) -> None:
        self.sensor, self.limits, self.settings = sensor, limits, settings
        self.books = Books(world, limits)
        self.now = self.at_node = self.copies = 0
        self.event_sensor, self.event_time = world.event_sensor.tolist(), world.event_time_s.tolist()
        self.event_values, self.attributes = world.contents, world.attribute_names
        places = zip(world.sensor_x.tolist(), world.sensor_y.tolist(), world.sensor_cell.tolist(), strict=True)
        capacities = [limits.queue] * len(world.sensor_x) if world.queue is None else world.queue.tolist()
        self.sites = [
            Site(number, _made(sensor, chosen), *place, battery_j, capacity)
            for number, (place, battery_j, capacity) in enumerate(
                zip(places, world.battery_j.tolist(), capacities, strict=True)
            )
        ]
        for site, idle_pj in zip(self.sites, world.idle_pj.tolist(), strict=True):
            site.idle_pj = idle_pj
        self.guests: list[Guest] = _guests(world, sensor.visitor)
        self.visitors_carry = sensor.visitor.received is not Visitor.received
        self.relays_in_turn = sensor.relay is Sensor.relay
        self.attaches = sensor.attach is not Sensor.attach
        self.some_move = sensor.moves is not Sensor.moves
        self.reorders = sensor.priority is not Sensor.priority
        self.just_given = not (self.attaches or self.some_move or self.visitors_carry or self.reorders)
        self.where: dict[int, dict[int, tuple[Site, Copy]]] = {}  # of each event: its copies in queues, by id
        self.stirred: set[int] = set()
        self.agenda: list[tuple[int, int]] = []
        self.turn: tuple[int, int] | None = None
        self.key_of_slot = 0

    def at(self) -> str:
        """The node whose turn it is, and the time."""
        sensors = len(self.sites)
        who = f"sensor {self.at_node}" if self.at_node < sensors else f"subscriber {self.at_node - sensors}"
        return f"{who}, t = {self.now} s"

    def call(self, site: Site) -> Sensor:
        """The author's object, which is about to be called."""
        self.at_node = site.number
        return site.author

    def stir(self, site: Site) -> None:
        """Something has changed for the sensor: it has a turn again, in this second if its place is still to come."""
        number = site.number
        if site.died != ALIVE or number in self.stirred:
            return
        self.stirred.add(number)
        if self.turn is not None:
            place = key_in_slot(self.key_of_slot, number), number
            if place > self.turn and place not in self.agenda:
                heapq.heappush(self.agenda, place)

    # ---- queues

    def new_copy(self, event: int, site: Site) -> Copy:
        """The first copy of an event."""
        values = dict(zip(self.attributes, self.event_values[event].tolist(), strict=True))
        copy = Copy(self.next_id(), event, site.number, self.event_time[event], values)
        put(copy, arrived_s=self.now)
        return copy

    def next_id(self) -> int:
        """The number of the next copy."""
        self.copies += 1
        return self.copies - 1

    def has_room(self, site: Site) -> bool:
        """Whether one more copy fits into the queue; its author may make room."""
        if len(site.queue) < site.capacity:
            return True
        copies = list(site.queue.values())
        victim = self.call(site).evict(copies, self.now)
        if victim is None:
            return False
        if not any(victim is copy for copy in copies):
            raise Mistake("evict", "answers none of the copies it was given, and not None")
        self.forget(site, victim)
        self.let_go(site, victim, FULL)
        site.author.dropped(victim, DROPS[FULL], self.now)
        return True

    def put(self, site: Site, copy: Copy) -> None:
        """A copy for which there is room joins the queue."""
        site.put(copy, self.now)
        self.where.setdefault(copy.event, {})[copy.id] = site, copy
        self.stir(site)

    def forget(self, site: Site, copy: Copy) -> None:
        """The copy is no longer where it was."""
        del self.where[copy.event][copy.id]

    def let_go(self, site: Site, copy: Copy, reason: int) -> None:
        """A copy leaves its queue for good."""
        site.remove(copy)
        self.books.drop(copy.event, site.number, copy.addressee, reason, held=True)

    def discard(self, site: Site, copy: Copy, reason: str) -> None:
        """The author lets go of a copy."""
        if site.queue.get(copy.id) is not copy:
            raise BadInput("discard: this copy is not in the queue")
        if reason not in DROPS:
            raise BadInput(f'discard: the reason "{reason}" is none of {", ".join(DROPS)}')
        self.forget(site, copy)
        self.let_go(site, copy, DROPS.index(reason))

    # ---- choosing

    def take_turn(self, site: Site) -> None:
        """Up to `rate` times the first copy in line that can go, to the first who is offered it."""
        left = self.limits.rate
        targets, waits = self.open_to(site)
        line = list(site.line)  # sorted, so a heap
        while line and left and targets and not site.exhausted:
            copy = heapq.heappop(line)[2]
            to = self.first_offered(site, copy, targets)
            if to is None:
                continue
            left -= 1
            goal = self.goal(site, copy, to)
            if not self.send(site, copy, to, goal, None):
                break
            if copy.id in site.queue:
                heapq.heappush(line, (copy.rank, copy.id, copy))
            if isinstance(goal, Guest) and goal.received >= self.limits.rate:
                targets, waits = self.open_to(site)
        if waits or not left:
            self.stirred.add(site.number)

    def open_to(self, site: Site) -> tuple[list[Peer], bool]:
        """Whom the sensor can send towards now; and whether it has to wait for one who has had enough this second."""
        targets, waits = [], False
        for to in self.targets(site):
            if to.is_visitor:
                guest = self.guests[to.id - len(self.sites)]
                layer = to.layer if isinstance(to, Session) else 0
                if not guest.audible or layer is None or (layer == 0 and site.number not in guest.peers):
                    continue
                if layer == 0 and guest.received >= self.limits.rate:
                    waits = True
                    continue
            targets.append(to)
        return targets, waits

    def targets(self, site: Site) -> Iterator[Peer]:
        """Whom a sensor may send to: sessions; or visitors in contact, then sensors that it touches."""
        if self.sensor.communities:
            yield from site.sessions.values()
            return
        for guest in self.guests:
            if site.number in guest.peers:
                yield guest.peers[site.number]
        yield from site.peers.values()

    def first_offered(self, site: Site, copy: Copy, targets: list[Peer]) -> Peer | None:
        """Whom the copy goes to."""
        self.at_node = site.number
        offers, now = site.author.offers, self.now
        for to in targets:
            answer = offers(copy, to, now)
            if answer is True:
                return to
            if answer is not False:
                raise Mistake("offers", f"answers {answer!r}, not True or False")
        return None

    # ---- sending

    def hand_over(self, site: Site, guest: Guest, left: int) -> None:
        """A sensor in contact sends a visitor what is for it, in the order of its queue."""
        if not site.line or site.exhausted:
            return
        self.at_node = site.number
        to, offers, sent, queue = guest.peers[site.number], site.author.offers, site.author.sent, site.queue
        cost, give = self.books.send_pj(site, guest, self.limits.bits), self.books.give
        for _, id, copy in list(site.line):
            if id not in queue:
                continue
            answer = offers(copy, to, self.now)
            if answer is True:
                if not self.just_given:
                    if not self.give(site, copy, to, guest, None if self.attaches else cost):
                        return
                else:  # the same without what nobody wrote: a tenth faster
                    kind = SOURCE if copy.source == site.number else RELAY
                    if give(site, guest, copy.event, cost, kind, False) is None:
                        return
                    sent(copy, to, None, True, self.now)
                left -= 1
                if not left or site.exhausted:
                    return
            elif answer is not False:
                raise Mistake("offers", f"answers {answer!r}, not True or False")

    def send(self, site: Site, copy: Copy, to: Peer, goal: Site | Guest, cost: int | None) -> bool:
        """One copy goes to a visitor or to another sensor; False: the battery does not hold what that costs."""
        if isinstance(goal, Guest):
            return self.give(site, copy, to, goal, cost)
        self.at_node = site.number
        author, books = site.author, self.books
        attached, bits = self.attached(author, copy, to) if self.attaches else (None, self.limits.bits)
        if not books.pays(site, books.send_pj(site, goal, bits)):
            return False
        site.sent += 1
        moves = self.some_move and bool(author.moves(copy, to))
        if moves:
            self.take_out(site, copy)
        kind = RELAY if moves or copy.source != site.number else SOURCE
        addressee = to.id if to.is_visitor else None
        fresh = copy.passed_on(copy.id if moves else self.next_id(), self.now, addressee)
        accepted = self.pass_to(goal, fresh, site.number, attached, kind, bits, moves)
        self.at_node = site.number
        author.sent(copy, to, attached, accepted, self.now)
        if self.reorders:
            self.line_up_again(site, copy)
        return True

    def give(self, site: Site, copy: Copy, to: Peer, guest: Guest, cost: int | None) -> bool:
        """One copy goes to a visitor; False: the battery does not hold what that costs."""
        author, books, attached = site.author, self.books, None
        if self.attaches:
            attached, bits = self.attached(author, copy, to)
            cost = books.send_pj(site, guest, bits)
        elif cost is None:
            cost = books.send_pj(site, guest, self.limits.bits)
        moves = self.some_move and bool(author.moves(copy, to))
        kind = RELAY if moves or copy.source != site.number else SOURCE
        first = books.give(site, guest, copy.event, cost, kind, moves)
        if first is None:
            return False
        if moves:
            self.take_out(site, copy)
        if first and self.visitors_carry:
            self.take_along(guest, copy, site.number, attached)
            self.at_node = site.number
        author.sent(copy, to, attached, True, self.now)
        if self.reorders:
            self.line_up_again(site, copy)
        return True

    def take_out(self, site: Site, copy: Copy) -> None:
        """The copy leaves the queue."""
        self.forget(site, copy)
        site.remove(copy)

    def line_up_again(self, site: Site, copy: Copy) -> None:
        """The copy may have another priority now."""
        if copy.id in site.queue:
            site.step_out(copy)
            site.line_up(copy, self.now)

    def goal(self, site: Site, copy: Copy, to: Peer) -> Site | Guest:
        """Where a copy goes that was offered to a peer, or towards the visitor of a session."""
        if not to.is_visitor:
            return self.sites[to.id]
        if not isinstance(to, Session) or to.layer == 0:
            return self.guests[to.id - len(self.sites)]
        closer = to.closer
        if self.relays_in_turn:
            site.forwards += 1
            return self.sites[closer[(site.forwards - 1) % len(closer)]]
        chosen = self.call(site).relay(copy, to, self.now)
        if chosen not in closer:
            raise Mistake("relay", f"answers {chosen!r}, none of session.closer: {', '.join(map(str, closer))}")
        return self.sites[chosen]

    def attached(self, author: Sensor, copy: Copy, to: Peer) -> tuple[Any, float]:
        """What travels with a copy, and how many bits it takes with it."""
        content = frozen(author.attach(copy, to, self.now), "attach")
        return content, self.limits.bits + _charged_bits(content)

    def pass_to(self, goal: Site, fresh: Copy, sender: int, attached: Any, kind: int, bits: float, moves: bool) -> bool:
        """A copy comes to a sensor: whether it is accepted."""
        reason = self.books.take_in(goal, bits, self.has_room(goal))
        self.books.transferred_to(fresh.event, sender, goal.number, fresh.addressee, kind, reason != NONE, moves)
        if reason != NONE:
            self.books.drop(fresh.event, goal.number, fresh.addressee, reason, held=False)
            return False
        author = self.call(goal)
        if author.keeps(fresh, sender, attached, self.now):
            author.received(fresh, sender, attached, self.now)
            self.put(goal, fresh)
            self.books.stored()
        return True

    def take_along(self, guest: Guest, copy: Copy, sensor: int, attached: Any) -> None:
        """A visitor that received an event for the first time may keep it to leave it elsewhere."""
        self.at_node = guest.node
        fresh = copy.passed_on(self.next_id(), self.now, None)
        if guest.author.received(fresh, sensor, attached, self.now):
            guest.bag[fresh.id] = fresh

    def leave(self, guest: Guest, copy: Copy) -> None:
        """A visitor leaves a copy with the first sensor in contact that it is offered to."""
        author = guest.author
        for number in sorted(guest.peers):
            self.at_node = guest.node
            if self.sites[number].exhausted or not author.offers(copy, number, self.now):
                continue
            guest.received += 1
            attached = frozen(author.attach(copy, number, self.now), "attach", type(author))
            bits = self.limits.bits + _charged_bits(attached)
            if author.moves(copy, number):
                del guest.bag[copy.id]
            fresh = copy.passed_on(self.next_id(), self.now, None)
            accepted = self.pass_to(self.sites[number], fresh, guest.node, attached, RETURN, bits, False)
            self.at_node = guest.node
            author.sent(copy, number, attached, accepted, self.now)
            return


def _charged_bits(attached: Any) -> int:
    """What travels with a copy beyond what its header has room for."""
    if attached is None or type(attached) in (bool, int):
        return 0  # never more than 9 bytes on the wire
    extra = encoded_bytes(attached)
    return 8 * extra if extra > FREE_BYTES else 0


def _made(sensor: type[Sensor], chosen: dict[str, Any]) -> Sensor:
    """One object of the author's class, with the settings of the scenario."""
    made = sensor()
    for name, value in chosen.items():
        setattr(made, name, value)
    return made


def _guests(world: World, visitor: type[Visitor]) -> list[Guest]:
    """Those who pass, and which events they want."""
    guests = []
    for number, (low, high) in enumerate(zip(world.low, world.high, strict=True)):
        free = np.isneginf(low) & np.isposinf(high)
        wanted = ((world.event_values >= low) & (world.event_values <= high) | free).all(axis=1)
        guests.append(Guest(number, len(world.sensor_x) + number, visitor(), wanted.tolist()))
    return guests
