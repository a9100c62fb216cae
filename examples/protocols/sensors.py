"""Field protocols, written with serai's API: DG, CED and variations. docs/field/own.md explains them.

Try one: serai run field --protocol examples/protocols/sensors.py:CommunityFlood --seed 1
"""

from serai.field import Sensor, Visitor, setting


class DirectGathering(Sensor):
    """A sensor's own events, to visitors in contact, the youngest first."""

    turns = "visitor"
    resend: str = setting(
        "every-second", choices=("every-second", "each-contact", "once"), doc="When an event goes again."
    )
    match: str = setting("subscriber", choices=("subscriber", "sensor"), doc="Who matches.")

    def created(self, copy, now):
        copy.note = set()  # visitors that have had it

    def contact_down(self, peer, now):
        if self.resend == "each-contact":
            for copy in self.queue.values():
                copy.note.discard(peer.id)

    def offers(self, copy, peer, now):
        again = self.resend == "every-second" or peer.id not in copy.note
        return again and (self.match == "subscriber" or peer.wants(copy))

    def sent(self, copy, peer, attached, accepted, now):
        copy.note.add(peer.id)


class CommunityFlood(Sensor):
    """Every sensor gives what it has to every node in reach, once."""

    def created(self, copy, now):
        copy.note = {self.node}  # who has had it, as far as this sensor knows

    def received(self, copy, sender, attached, now):
        copy.note = {self.node, sender}

    def offers(self, copy, to, now):
        return to.id not in copy.note

    def sent(self, copy, to, attached, accepted, now):
        copy.note.add(to.id)


class Ced(Sensor):
    """Community-based event delivery (N. Liu et al., Sensors 2009)."""

    communities = True
    alpha: int = setting(20, ge=0, doc="A stored copy is dropped once it has been sent more times than this.")
    resend: str = setting(
        "once", choices=("once", "each-contact"), doc="When an event goes towards a subscriber again."
    )
    relays: str = setting("addressed", choices=("addressed", "open"), doc="Whom a relayed copy is for.")
    stranded: str = setting("deleted", choices=("deleted", "kept"), doc="What becomes of copies whose subscriber left.")
    hops: str = setting("many", choices=("many", "one"), doc="Hops of a relayed copy in one second.")
    match: str = setting("subscriber", choices=("subscriber", "sensor"), doc="Who matches.")

    def created(self, copy, now):
        copy.note = Sent()

    def priority(self, copy, now):
        return -copy.note.count, copy.event, copy.addressee is None

    def offers(self, copy, session, now):
        if copy.addressee is not None:
            return copy.addressee == session.id and (self.hops == "many" or copy.arrived_s < now)
        return session.id not in copy.note.to and (self.match == "subscriber" or session.wants(copy))

    def moves(self, copy, session):
        return copy.addressee is not None

    def attach(self, copy, session, now):
        return copy.note.count

    def sent(self, copy, session, attached, accepted, now):
        if copy.addressee is None:
            copy.note.to.add(session.id)
            copy.note.count += 1
            if copy.note.count > self.alpha:
                self.discard(copy, "spent")

    def keeps(self, copy, sender, attached, now):
        return True

    def received(self, copy, sender, attached, now):
        copy.note = Sent(attached)

    def session_up(self, session, now):
        for copy in self.queue.values():
            if self.relays == "open" and copy.addressee is not None and copy.addressee not in self.sessions:
                copy.addressee = session.id

    def session_down(self, session, now):
        for copy in list(self.queue.values()):
            if self.resend == "each-contact":
                copy.note.to.discard(session.id)
            if copy.addressee == session.id:
                if self.relays == "open" and self.sessions:
                    copy.addressee = min(self.sessions)
                elif self.stranded == "deleted":
                    self.discard(copy, "stranded")


class Sent:
    """What CED notes of a copy: how often it was sent, and for whom."""

    def __init__(self, count=0):
        self.count, self.to = count, set()


class Rested(Ced):
    """CED with another choice of relays: the one that this sensor has used least."""

    def start(self):
        self.used = {}

    def relay(self, copy, session, now):
        chosen = min(session.closer, key=lambda sensor: (self.used.get(sensor, 0), sensor))
        self.used[chosen] = self.used.get(chosen, 0) + 1
        return chosen


class Returner(Visitor):
    """Keeps what it wanted from small communities for the next community that it meets."""

    def start(self):
        self.community, self.home = {}, {}

    def hear(self, sensor, content, now):
        self.community[sensor] = content  # its first sensor, and how many there are

    def received(self, copy, sensor, attached, now):
        self.home[copy.event], size = self.community[sensor]
        copy.note = attached
        return self.wants(copy) and size <= 4

    def offers(self, copy, sensor, now):
        community, size = self.community[sensor]
        return community != self.home[copy.event] and size > 1

    def attach(self, copy, sensor, now):
        return copy.note


class Returned(Ced):
    """CED with CET's return of events, which stay with the sensor that takes them (J. Zhu et al. 2010, 3.2.2)."""

    visitor = Returner

    def reply(self, visitor, now):
        return self.community[0], len(self.community)


class Mules(Visitor):
    """Carry what they asked for to other communities."""

    def start(self):
        self.left = {}

    def received(self, copy, sensor, attached, now):
        return self.wants(copy)

    def offers(self, copy, sensor, now):
        return sensor != copy.source and sensor not in self.left.setdefault(copy.event, set())

    def sent(self, copy, sensor, attached, accepted, now):
        self.left[copy.event].add(sensor)


class Carried(CommunityFlood):
    """A community flood whose events visitors carry on."""

    visitor = Mules
