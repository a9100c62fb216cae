"""CED, the obvious way. N. Liu, M. Liu, J. Zhu, H. Gong, Sensors 9 (2009), sections 3 and 4."""

import math
from itertools import pairwise

import numpy as np

from serai.core.order import service_key
from serai.field.visits import path_cells
from tests.field.naive.field import Network, News
from tests.field.naive.parts import (
    RELAY,
    SOURCE,
    SPENT,
    STRANDED,
    Community,
    Copy,
    Point,
    Sensor,
    Session,
    Subscriber,
    cell_at,
    distance,
    layers_from,
    place_of,
    queue_order,
    receive_pj,
    touches,
    transmit_pj,
    visit_at,
)


class Ced(Network):
    """Communities, sessions, layers and queues: "A slot of CED and CET", steps 3 and 4."""

    def act(self) -> None:
        if self.now == 0:
            for community in self.communities:
                self.draw_map(community)
        for subscriber in self.subscribers:
            news = self.move(subscriber)
            if news:
                self.meet_communities(subscriber, news)
        for sensor in sorted(self.sensors, key=lambda s: (service_key(self.key, self.now, s.number), s.number)):
            self.take_turn(sensor)

    # Step 3, movement (CED 4.1 a to d).

    def meet_communities(self, subscriber: Subscriber, news: News) -> None:
        """End, start and renew the subscriber's sessions at its new visit."""
        in_reach = self.in_reach(subscriber)
        for community in self.communities:
            session = community.session_of(subscriber.number)
            if session and community not in in_reach:
                self.end_session(community, session)
        if not subscriber.audible:
            return
        for community in in_reach:
            session = community.session_of(subscriber.number)
            if session is None:
                session = self.start_session(community, subscriber)
                self.announce(community, session)
            elif subscriber.here.is_leg and subscriber.leg != session.announced:
                self.announce(community, session)
            elif self.zone_has_changed(news):
                self.draw_layers(community, session)
            elif news.went and self.settings.zone == "pruned":
                self.prune_layers(community, session)

    def zone_has_changed(self, news: News) -> bool:
        """Whether Z is drawn anew on the way: some sensor is left behind, or (in range only) some is new."""
        if self.settings.zone == "in-range":
            return news.came or news.went
        return news.went and self.settings.zone == "path"

    def in_reach(self, subscriber: Subscriber) -> list[Community]:
        """The communities with a sensor in touch with the subscriber."""
        near = self.in_touch(subscriber)
        return [c for c in self.communities if any(sensor in near for sensor in c.sensors)]

    def announce(self, community: Community, session: Session) -> None:
        """The path goes through the community (4.1 b and c), and the layers are drawn up from it."""
        session.announced = session.subscriber.leg
        if self.settings.floods == "whole":
            self.flood(community, "path", self.scenario.control.path_bits)
        else:
            self.prune_flood(community, session.subscriber)
        self.draw_layers(community, session)

    def draw_layers(self, community: Community, session: Session) -> None:
        """The set Z and the layers (4.1 d, Fig. 2)."""
        session.layers = layers_from(self.zone(community, session.subscriber))
        self.tell_layers(community)

    def prune_layers(self, community: Community, session: Session) -> None:
        """Sensors of layer 0 that the subscriber has left go, and who has nobody left one layer closer (CET 3.2.1)."""
        zone = self.zone(community, session.subscriber)
        kept: dict[Sensor, int] = {}
        for sensor, layer in sorted(session.layers.items(), key=lambda item: item[1]):
            closer = any(kept.get(neighbor) == layer - 1 for neighbor in sensor.neighbors)
            if sensor in zone if layer == 0 else closer:
                kept[sensor] = layer
        session.layers = kept
        self.tell_layers(community)

    def flood(self, community: Community, kind: str, bits: int) -> None:
        """One message by every sensor of the community; a loner has nobody to tell."""
        if not community.is_loner:
            for sensor in community.sensors:
                self.broadcast(sensor, kind, bits)

    def tell_layers(self, community: Community) -> None:
        """Every sensor tells its layer, unless all know the map."""
        if self.settings.floods == "whole":
            self.flood(community, "route", self.scenario.control.route_bits)

    # Pruned floods.

    def prune_flood(self, community: Community, subscriber: Subscriber) -> None:
        """Of the sensors that it has reached the one with most unreached neighbours speaks next."""
        reached = {min(set(self.in_touch(subscriber)) & set(community.sensors), key=lambda s: s.number)}
        while len(reached) < len(community.sensors):
            speaker = max(reached, key=lambda sensor: (len(set(sensor.neighbors) - reached), -sensor.number))
            self.speak(speaker, "path", self.scenario.control.path_bits)
            reached |= set(speaker.neighbors)

    def draw_map(self, community: Community) -> None:
        """For pruned floods: 16 bits for each member, passed on by all, in messages of the size of ROUTE."""
        bits = self.scenario.control.route_bits
        if self.settings.floods == "pruned" and not community.is_loner:
            for sensor in community.sensors:
                for _ in range(math.ceil(16 * len(community.sensors) / max(bits, 1))):
                    self.speak(sensor, "route", bits)

    def speak(self, sensor: Sensor, kind: str, bits: int) -> None:
        """One control message to all neighbours, no louder than it must be."""
        self.count_control(kind, bits)
        farthest_m = max(distance(sensor, neighbor) for neighbor in sensor.neighbors)
        self.pay_control(sensor, transmit_pj(self.radio, bits, farthest_m))
        for neighbor in sensor.neighbors:
            self.pay_control(neighbor, receive_pj(self.radio, bits))

    def zone(self, community: Community, subscriber: Subscriber) -> list[Sensor]:
        """The set Z: the sensors of the community that can talk to the subscriber on its way."""
        if not subscriber.here.is_leg or self.settings.zone == "in-range":
            return [s for s in community.sensors if self.hear_each_other(s, subscriber)]
        here, end = subscriber.here, subscriber.here.segment + 1
        while end < len(subscriber.track) - 1 and subscriber.legs[end] == subscriber.leg:
            end += 1
        if self.world.ranges is None:
            points = [Point(self.now, here.x, here.y), *subscriber.track[here.segment + 1 : end + 1]]
            cells = {cell for one, other in pairwise(points) for cell in self.cells_between(one, other)}
            own = {s: cell_at(self.grid, *place_of(s)) for s in community.sensors}
            return [s for s in community.sensors if any(touches(self.grid, own[s], cell) for cell in cells)]
        last_s = min(math.ceil(subscriber.track[end].time_s), self.scenario.duration_s - 1)
        stops = [visit_at(subscriber.track, t) for t in range(self.now, last_s + 1)]
        places = [Point(self.now, stop.x, stop.y) for stop in stops]
        return [s for s in community.sensors if any(self.hear_each_other(s, subscriber, at) for at in places)]

    def cells_between(self, one: Point, other: Point) -> list[int]:
        """The cells under the line between two points."""
        room = np.empty(self.grid.columns + self.grid.rows, np.int32)
        return list(room[: path_cells(one.x, one.y, other.x, other.y, self.grid, room)])

    def start_session(self, community: Community, subscriber: Subscriber) -> Session:
        """A new session; waiting relayed copies join it."""
        waiting = [copy for copy in self.relayed_copies(community) if not community.session_of(copy.addressee)]
        if self.settings.relays == "open":
            for copy in waiting:
                copy.addressee = subscriber.number
        session = Session(subscriber)
        community.sessions.append(session)
        community.sessions.sort(key=lambda session: session.subscriber.number)
        return session

    def end_session(self, community: Community, session: Session) -> None:
        """The subscriber is gone."""
        community.sessions.remove(session)
        self.strand(community, session.subscriber.number)

    def strand(self, community: Community, subscriber: int) -> None:
        """Its relayed copies change hands, are deleted or wait (CET 3.2.1, end)."""
        for sensor in community.sensors:
            for copy in [copy for copy in sensor.queue if copy.addressee == subscriber]:
                if self.settings.relays == "open" and community.sessions:
                    copy.addressee = community.sessions[0].subscriber.number
                elif self.settings.stranded == "deleted":
                    self.drop(sensor, copy, STRANDED)
            if self.settings.resend == "each-contact":
                for copy in sensor.queue:
                    copy.memory.discard(subscriber)

    # Step 6, deaths.

    def part(self, dead: list[Sensor]) -> None:
        """Communities that lost sensors become those that the living ones form; sessions go on where in reach."""
        for old in [community for community in self.communities if set(community.sensors) & set(dead)]:
            self.communities.remove(old)
            for new in self.communities_of([sensor for sensor in old.sensors if sensor.died < 0]):
                self.communities.append(new)
                self.draw_map(new)
                self.form(new)
                in_reach = [s for s in old.sessions if new in self.in_reach(s.subscriber)]
                for session in in_reach:
                    new.sessions.append(Session(session.subscriber, session.announced))
                    self.draw_layers(new, new.sessions[-1])
                for session in old.sessions:
                    if session not in in_reach:
                        self.strand(new, session.subscriber.number)
        self.communities.sort(key=lambda community: community.sensors[0].number)

    def form_anew(self, kin: frozenset[int]) -> None:
        """The living kin are in communities as they touch."""
        self.communities = [group for group in self.communities if group.sensors[0].number not in kin]
        living = [sensor for sensor in self.sensors if sensor.number in kin and sensor.died < 0]
        for community in self.communities_of(living):
            self.communities.append(community)
            self.draw_map(community)
            self.form(community)
        self.communities.sort(key=lambda community: community.sensors[0].number)

    def form(self, community: Community) -> None:
        """A community has formed."""

    def relayed_copies(self, community: Community) -> list[Copy]:
        return [copy for sensor in community.sensors for copy in sensor.queue if not copy.stored]

    # Step 4, turns (CED 4.1, forwarding, and 4.2, queue management).

    def take_turn(self, sensor: Sensor) -> None:
        """Up to `rate` times the first copy in queue order that can go."""
        for _ in range(self.rate):
            choice = None if sensor.exhausted else self.first_that_can_go(sensor)
            if choice is None:
                return
            self.send(sensor, *choice)

    def first_that_can_go(self, sensor: Sensor) -> tuple[Copy, Session] | None:
        sessions = [session for session in self.community_of(sensor).sessions if self.is_open(sensor, session)]
        for copy in sorted(sensor.queue, key=queue_order):
            for session in sessions:
                if self.can_go(copy, session.subscriber):
                    return copy, session
        return None

    def is_open(self, sensor: Sensor, session: Session) -> bool:
        """Whether the sensor can forward towards the subscriber, or hand over to it."""
        subscriber = session.subscriber
        if not subscriber.audible or sensor not in session.layers:
            return False
        if session.layers[sensor] >= 1:
            return True
        return self.hear_each_other(sensor, subscriber) and subscriber.received_in_slot < self.rate

    def can_go(self, copy: Copy, subscriber: Subscriber) -> bool:
        if copy.stored:
            return self.is_due(copy, subscriber)
        if self.settings.hops == "one" and copy.arrived == self.now:
            return False
        return copy.addressee == subscriber.number

    def is_due(self, copy: Copy, subscriber: Subscriber) -> bool:
        """Whether a stored copy still has to be sent for the subscriber."""
        if subscriber.number in copy.memory:
            return False
        return self.settings.match == "subscriber" or self.matches(copy.event, subscriber)

    def send(self, sensor: Sensor, copy: Copy, session: Session) -> None:
        """A stored copy sends a relayed one out and stays, counted (4.2 B); a relayed copy goes itself."""
        goal = self.next_hop(sensor, session)
        if not self.can_send(sensor, goal):
            return
        if not copy.stored:
            sensor.queue.remove(copy)
            self.pass_on(sensor, goal, copy, session, RELAY)
            return
        addressee = session.subscriber.number
        copy.memory.add(addressee)
        self.pass_on(sensor, goal, Copy(copy.event, copy.count, self.next_serial(), addressee), session, SOURCE)
        copy.count += 1
        if copy.count > self.settings.alpha:
            self.drop(sensor, copy, SPENT)

    def next_hop(self, sensor: Sensor, session: Session) -> Sensor | Subscriber:
        """The subscriber, or the next of the neighbours one layer closer."""
        if session.layers[sensor] == 0:
            return session.subscriber
        closer = [n for n in sensor.neighbors if session.layers.get(n) == session.layers[sensor] - 1]
        sensor.forwards += 1
        return closer[(sensor.forwards - 1) % len(closer)]

    def pass_on(self, sensor: Sensor, goal: Sensor | Subscriber, copy: Copy, session: Session, kind: str) -> None:
        """One hop of a relayed copy."""
        accepted = self.transmit(copy.event, sensor, goal, session.subscriber, kind, queued=True)
        if isinstance(goal, Subscriber):
            self.deliver(copy, goal)
        elif accepted:
            copy.arrived = self.now
            goal.queue.append(copy)

    def deliver(self, copy: Copy, subscriber: Subscriber) -> None:
        """The subscriber receives what the copy carries."""
        self.hand_over(copy.event, subscriber)
