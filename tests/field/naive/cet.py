"""CET, the obvious way: CED and the return of events. J. Zhu et al., Journal of Software 21 (2010), 3."""

from itertools import pairwise

from serai.field.world import World
from serai.scenario.section import Scenario
from tests.field.naive.ced import Ced
from tests.field.naive.parts import (
    DEAD,
    FULL,
    PLACEMENT,
    RETURN,
    Community,
    Copy,
    Sensor,
    Subscriber,
    distance,
    receive_pj,
    transmit_pj,
)


class Tree:
    """The community's tree, breadth first from its head (CET 3.2.2 (4), Fig. 4 a)."""

    def __init__(self, head: Sensor) -> None:
        self.parent: dict[Sensor, Sensor | None] = {head: None}
        self.children: dict[Sensor, list[Sensor]] = {}
        joined = [head]
        for node in joined:
            self.children[node] = [neighbor for neighbor in node.neighbors if neighbor not in self.parent]
            for child in self.children[node]:
                self.parent[child] = node
                joined.append(child)
        self.head = head

    def preorder(self, node: Sensor | None = None) -> list[Sensor]:
        """A node, then its children's subtrees (CET 3.2.2 (5), Fig. 4 b)."""
        node = node or self.head
        order = [node]
        for child in self.children[node]:
            order += self.preorder(child)
        return order

    def ancestors(self, node: Sensor) -> list[Sensor]:
        """The node itself, its parent, and so on up to the head."""
        line = [node]
        while (parent := self.parent[line[-1]]) is not None:
            line.append(parent)
        return line

    def path(self, start: Sensor, end: Sensor) -> list[Sensor]:
        """The nodes from start to end along the tree, both included."""
        up, down = self.ancestors(start), self.ancestors(end)
        meeting = next(node for node in up if node in down)
        return up[: up.index(meeting) + 1] + down[: down.index(meeting)][::-1]


class Cet(Ced):
    """CED, and step 5 of the slot."""

    def __init__(self, world: World, scenario: Scenario, key: int) -> None:
        super().__init__(world, scenario, key)
        for community in self.communities:
            self.form(community)

    def act(self) -> None:
        super().act()
        for subscriber in self.subscribers:
            self.return_events(subscriber)

    def deliver(self, copy: Copy, subscriber: Subscriber) -> None:
        """As in CED; what is wanted and comes from a small community goes into the bag (3.2.2 (2))."""
        is_new = copy.event not in subscriber.known
        takes = self.hand_over(copy.event, subscriber) or (is_new and subscriber.carries)
        origin = self.origin(copy.event)
        if takes and (origin is None or origin.size <= self.settings.gamma):
            subscriber.bag.append((copy.event, copy.count))

    def is_due(self, copy: Copy, subscriber: Subscriber) -> bool:
        """As in CED; to those who only carry everything is sent."""
        return super().is_due(copy, subscriber) or (subscriber.carries and subscriber.number not in copy.memory)

    def origin(self, event: int) -> Community | None:
        sensor = self.sensors[int(self.world.event_sensor[event])]
        return self.community_of(sensor) if sensor.died < 0 else None

    # Step 5, return.

    def return_events(self, subscriber: Subscriber) -> None:
        """With what receiving left of the rate, give the bag's events to communities other than theirs."""
        if not subscriber.audible:
            return
        spare = self.rate - subscriber.received_in_slot
        for event, count in list(subscriber.bag):
            if spare <= 0:
                return
            if self.is_too_old(event):
                subscriber.bag.remove((event, count))
                continue
            community = self.taker(event, subscriber)
            if community is not None:
                subscriber.bag.remove((event, count))
                self.give_back(event, count, subscriber, community)
                spare -= 1

    def taker(self, event: int, subscriber: Subscriber) -> Community | None:
        """The first community in session that may take the event."""
        for community in self.communities:
            in_session = community.session_of(subscriber.number) is not None
            allowed = self.settings.return_to_origin or community is not self.origin(event)
            if in_session and not community.is_loner and allowed:
                return community
        return None

    def give_back(self, event: int, count: int, subscriber: Subscriber, community: Community) -> None:
        """One return: receiver, notice to the head, placement along the tree (3.2.2 (3) to (5))."""
        tree = self.tree_of(community)
        receiver = self.receiver(subscriber, community)
        refused = self.receive(receiver, queued=False)
        self.note_transfer(event, subscriber, receiver, None, RETURN, not refused)
        if refused:
            self.note_drop(event, receiver, refused, None)
            return
        self.give_notice(tree, receiver)
        order = tree.preorder()
        place = order[community.placed % len(order)]
        community.placed += 1
        path = tree.path(receiver, place)
        for sender, following in pairwise(path):
            if not self.can_send(sender, following):
                self.note_drop(event, sender, DEAD, None)
                return
            if not self.transmit(event, sender, following, None, PLACEMENT):
                return
        self.store(event, count, subscriber, place)

    def receiver(self, subscriber: Subscriber, community: Community) -> Sensor:
        """The nearest of the community's sensors in touch with the subscriber."""
        near = [s for s in community.sensors if self.hear_each_other(s, subscriber)]
        return min(near, key=lambda s: (distance(s, subscriber), s.number))

    def give_notice(self, tree: Tree, receiver: Sensor) -> None:
        """The receiver's notice goes up to the head, the answer comes down again."""
        line = tree.ancestors(receiver)
        bits = self.scenario.control.notice_bits
        for way in (line, line[::-1]):
            for sender, following in pairwise(way):
                self.count_control("notice", bits)
                self.pay_control(sender, transmit_pj(self.radio, bits, distance(sender, following)))
                self.pay_control(following, receive_pj(self.radio, bits))

    def store(self, event: int, count: int, subscriber: Subscriber, place: Sensor) -> None:
        """The returned event becomes the node's own (3.3 (2), end)."""
        if self.is_full(place):
            self.note_drop(event, place, FULL, None)
            return
        kept = count if self.settings.return_count == "kept" else 0
        memory = {subscriber.number} if self.settings.return_memory == "returner" else set()
        place.queue.append(Copy(event, kept, self.next_serial(), memory=memory))
        self.records.kept[-1] = (True, False)  # by the last hop of its way, or the return itself

    # The head (CET 3.1).

    def tree_of(self, community: Community) -> Tree:
        """The tree of the community's head, after a new election if the head is low on energy."""
        assert community.head is not None
        if self.left_pj(community.head) < round(self.settings.theta_j * 1e12):
            self.elect(community)
        return Tree(community.head)

    def form(self, community: Community) -> None:
        """A community that has just formed elects its first head."""
        self.elect(community)

    def elect(self, community: Community) -> None:
        """The sensor with most energy left becomes head; everybody tells everybody, twice."""
        head = max(community.sensors, key=lambda s: (self.left_pj(s), -s.number))
        if head is not community.head:
            community.head = head
            community.placed = 0
        self.flood(community, "election", self.scenario.control.election_bits)
        self.flood(community, "election", self.scenario.control.election_bits)
