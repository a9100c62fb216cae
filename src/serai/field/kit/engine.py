"""The plain engine of fields: it drives one `Sensor` object per sensor through a world (docs/field/rules.md).

Same worlds, same rules and same ledger as the compiled protocols, in Python. A sensor whose turn found nothing to send
is not asked again before something has changed for it.
"""

from __future__ import annotations

import heapq
from bisect import insort
from functools import partial
from typing import Any

import numpy as np

from serai.core.energy import receive_pj, transmit_pj
from serai.core.order import contact_rank, key_in_slot, slot_key
from serai.field.engine.batteries import NEVER_PJ
from serai.field.engine.state import DEAD, DROPS, EXPIRED, FULL, HELLO, NOTICE, REPLY, Limits
from serai.field.kit.exchange import Exchange
from serai.field.kit.parts import ALIVE, Guest, Site
from serai.field.kit.reach import Visit, reach_of
from serai.field.kit.sensor import Peer, Sensor
from serai.field.kit.sessions import Sessions
from serai.field.kit.settings import OwnSettings
from serai.field.log import FullLog, Ledger
from serai.field.world import World
from serai.own.content import encoded_bytes, frozen


class Network(Exchange):
    """A run: what happens, second by second."""

    def __init__(
        self, sensor: type[Sensor], chosen: dict[str, Any], world: World, limits: Limits, settings: OwnSettings
    ) -> None:
        super().__init__(sensor, chosen, world, limits, settings)
        self.reach = reach_of(world, self.sites)
        for site in self.sites:
            site.neighbors = self.reach.neighbors(site)
            site.peers.update((other.number, Peer(other.number, 0, None)) for other in site.neighbors)
            site.introduce(limits.key, partial(self.discard, site), partial(self.left_j, site))
        for guest in self.guests:
            guest.introduce(limits.key)
        self.sessions = Sessions(self, settings.zone) if sensor.communities else None
        self.visits = [Visit(*row) for row in zip(*(column.tolist() for column in world.visits), strict=True)]
        self.born_in = np.ceil(world.event_time_s).astype(np.int64).tolist()
        self.visited = self.born = self.aged = 0
        self.new: set[int] = set()  # sensors that are new to who is beside them
        groups = world.communities
        for site in self.sites:
            kin = groups.of_sensor[site.number]
            site.kin = frozenset(groups.members[groups.member_start[kin] : groups.member_start[kin + 1]].tolist())

    def run(self) -> tuple[Ledger, FullLog | None]:
        """From the first second to the last, or to the first death."""
        for guest in self.guests:
            self.at_node = guest.node
            guest.author.start()
        for site in self.sites:
            self.call(site).start()
        for slot in range(self.limits.slots):
            self.now = self.books.now = slot
            self.books.look_at_spending(self.sites, slot)
            self.let_fail()
            self.expire()
            self.give_births()
            self.move()
            self.talk()
            if self.sensor.turns == "visitor":
                self.gather()
            else:
                self.take_turns()
            if self.visitors_carry:
                self.leave_behind()
            self.books.listen(self.sites)
            died = self.bury()
            self.wake()
            if died and self.limits.until_death:
                self.books.ended_s = float(slot)
                break
        self.books.look_at_spending(self.sites, self.now + 1)
        return self.books.close(self.sites)

    def let_fail(self) -> None:
        """Sensors that are to fail in this second are as if their batteries were empty."""
        if self.now == self.limits.fail_slot:
            for number in self.books.world.failing.tolist():
                self.sites[number].exhausted = True
                if len(self.books.wake_pj):
                    self.books.wake_pj[number] = NEVER_PJ

    # ---- queues

    def expire(self) -> None:
        """Copies of events that are too old are dropped, wherever they are."""
        times, lifetime = self.event_time, self.limits.lifetime
        while self.aged < self.born and self.now - times[self.aged] > lifetime:
            for site, copy in list(self.where.pop(self.aged, {}).values()):
                self.let_go(site, copy, EXPIRED)
                self.call(site).dropped(copy, DROPS[EXPIRED], self.now)
            for guest in self.guests if self.visitors_carry else ():
                for copy in [copy for copy in guest.bag.values() if copy.event == self.aged]:
                    del guest.bag[copy.id]
            self.aged += 1

    def give_births(self) -> None:
        """The events of this second enter their sensors' queues."""
        while self.born < len(self.born_in) and self.born_in[self.born] == self.now:
            event = self.born
            self.born += 1
            site = self.sites[self.event_sensor[event]]
            if site.died != ALIVE:
                continue
            if not self.has_room(site):
                self.books.drop(event, site.number, None, FULL, held=False)
                continue
            copy = self.new_copy(event, site)
            self.call(site).created(copy, self.now)
            self.put(site, copy)

    # ---- movement

    def move(self) -> None:
        """Those who pass come to the cells and legs of this second."""
        for guest in self.guests:
            guest.received = 0
        for visit in self.visits_of_slot():
            self.visit(self.guests[visit.subscriber], visit)

    def visits_of_slot(self) -> list[Visit]:
        """The new visits, also of those who stay beside sensors that are new."""
        first = self.visited
        while self.visited < len(self.visits) and self.visits[self.visited].slot == self.now:
            self.visited += 1
        visits = self.visits[first : self.visited]
        if not self.new:
            return visits
        moved = {visit.subscriber: visit for visit in visits}
        found = []
        for guest in self.guests:
            visit = moved.get(guest.number) or Visit(
                self.now, guest.number, guest.cell, guest.segment, guest.leg, guest.moving, False, False
            )
            self.reach.come_to(guest, visit)
            beside = any(site.number in self.new for site in self.reach.listeners(guest))
            if beside or guest.number in moved:
                found.append(visit._replace(came=bool(visit.came or beside)))
        return found

    def visit(self, guest: Guest, visit: Visit) -> None:
        """A visitor's new visit: Hello where one is said, contacts and sessions."""
        was_audible = guest.audible
        guest.segment, guest.leg, guest.moving = visit.segment, visit.leg, bool(visit.moving)
        guest.audible = guest.moving or not self.settings.silent_while_pausing
        guest.at_s = ALIVE
        self.reach.come_to(guest, visit)
        if guest.audible and (visit.came or not was_audible) and self.reach.answers(guest):
            self.say_hello(guest)
        if visit.came or visit.went:
            self.renew_contacts(guest)
        for number in guest.peers:
            self.stir(self.sites[number])
        if self.sessions:
            self.sessions.meet(guest, visit)

    def say_hello(self, guest: Guest) -> None:
        """A Hello, and a reply by every sensor in touch."""
        limits, books = self.limits, self.books
        content = frozen(guest.author.tell(self.now), "tell", type(guest.author))
        hello = limits.hello_bits + 8 * encoded_bytes(content)
        books.say(HELLO, hello)
        for site in self.reach.listeners(guest):
            answer = frozen(self.call(site).reply(guest.node, self.now), "reply")
            bits = limits.reply_bits + 8 * encoded_bytes(answer)
            books.say(REPLY, bits)
            cost = receive_pj(limits.radio, hello) + transmit_pj(limits.radio, bits, books.broadcast_m[site.number])
            books.charge(site, cost)
            if content is not None:
                self.call(site).hear(guest.node, content, self.now)
                self.stir(site)
            if answer is not None:
                self.at_node = guest.node
                guest.author.hear(site.number, answer, self.now)

    def renew_contacts(self, guest: Guest) -> None:
        """Contacts end where the sensor is out of reach, and begin where it is new."""
        touching = self.settings.reach == "touching"
        near = self.reach.listeners(guest) if touching else self.reach.in_same_cell(guest)
        here = {site.number for site in near}
        for number in sorted(guest.peers):
            if number not in here:
                self.end_contact(guest, number)
        for site in near:
            if site.number not in guest.peers:
                peer = guest.peers[site.number] = Peer(guest.node, self.now, guest.wanted)
                rank = contact_rank(self.limits.key, self.now, guest.number, site.number)
                insort(guest.contacts, (rank, site.number))
                self.call(site).contact_up(peer, self.now)

    def end_contact(self, guest: Guest, number: int) -> None:
        """The sensor and the visitor are no longer in contact."""
        guest.contacts = [contact for contact in guest.contacts if contact[1] != number]
        peer = guest.peers.pop(number)
        self.call(self.sites[number]).contact_down(peer, self.now)
        self.stir(self.sites[number])

    # ---- what sensors tell each other

    def talk(self) -> None:
        """At multiples of `every_s` sensors tell their neighbours something; what was told is heard after all spoke."""
        if not self.sensor.every_s or self.now % self.sensor.every_s:
            return
        told = []
        for site in self.sites:
            content = frozen(self.call(site).tell(self.now), "tell") if site.died == ALIVE else None
            if content is not None:
                self.books.broadcast(site, NOTICE, self.limits.notice_bits + 8 * encoded_bytes(content))
                told.append((site, content))
        for site, content in told:
            for other in site.neighbors:
                self.call(other).hear(site.number, content, self.now)
                self.stir(other)

    # ---- turns

    def gather(self) -> None:
        """Each visitor is sent to by the sensors in contact, one after the other."""
        for guest in self.guests:
            if not guest.audible:
                continue
            for _, number in guest.contacts:
                left = self.limits.rate
                if self.settings.budget == "subscriber":
                    left -= guest.received
                if left > 0:
                    self.hand_over(self.sites[number], guest, left)

    def take_turns(self) -> None:
        """Each sensor that may have something to send has its turn, in an order drawn for this second."""
        key = slot_key(self.limits.key, self.now)
        self.order = {number: key_in_slot(key, number) for number in self.stirred}
        self.agenda = [(place, number) for number, place in self.order.items()]
        heapq.heapify(self.agenda)
        self.stirred, self.key_of_slot = set(), key
        while self.agenda:
            self.turn = heapq.heappop(self.agenda)
            self.take_turn(self.sites[self.turn[1]])
        self.turn = None

    def leave_behind(self) -> None:
        """Visitors leave copies of their bags with sensors in contact, as far as their budget goes."""
        for guest in self.guests:
            if guest.audible and guest.bag:
                for copy in list(guest.bag.values()):
                    if guest.received >= self.limits.rate:
                        break
                    if self.now - self.event_time[copy.event] <= self.limits.lifetime:  # else it was born too old
                        self.leave(guest, copy)

    # ---- deaths

    def bury(self) -> bool:
        """The exhausted sensors die, their copies with them, and nobody is their neighbour any more."""
        dying = [site for site in self.sites if site.exhausted and site.died == ALIVE]
        for site in dying:
            site.died = self.now
            for copy in list(site.queue.values()):
                self.forget(site, copy)
                self.let_go(site, copy, DEAD)
            for other in site.neighbors:
                other.neighbors.remove(site)
                del other.peers[site.number]
                self.stir(other)
            site.neighbors = []
            site.peers.clear()
            site.sessions.clear()
            for guest in self.guests:
                if site.number in guest.peers:
                    guest.contacts = [contact for contact in guest.contacts if contact[1] != site.number]
                    del guest.peers[site.number]
        if dying:
            self.reach.bury()
            if self.sessions:
                self.sessions.part({site.number for site in dying})
        return bool(dying)

    def wake(self) -> None:
        """Sensors that have harvested enough live again, and all that were their community at the start form anew."""
        woken = [site for site in self.sites if self.books.wakes(site)]
        self.new = {number for site in woken for number in site.kin}
        if not woken:
            return
        if self.sessions:
            self.sessions.end_all(self.new)
        for site in woken:
            site.died, site.exhausted = ALIVE, False
            self.call(site).start()
        self.reach.bury()
        living = [site for site in self.sites if site.number in self.new and site.died == ALIVE]
        for site in living:
            site.neighbors = [other for other in self.reach.neighbors(site) if other.died == ALIVE]
            peers = {o.number: site.peers.get(o.number) or Peer(o.number, 0, None) for o in site.neighbors}
            site.peers.clear()
            site.peers.update(peers)
        if self.sessions:
            self.sessions.form_anew(living)
        for site in living:
            self.stir(site)

    def left_j(self, site: Site) -> float:
        """What is left of a sensor's battery."""
        return self.books.left_pj(site) / 1e12
