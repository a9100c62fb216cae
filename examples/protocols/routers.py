"""The built-in routers, written with the API for own protocols: the tests hold them equal to the compiled ones."""

from serai.opportunistic import Router, setting


class Flooding(Router):
    """Epidemic routing (Vahdat and Becker 2000): whatever the neighbour has not seen."""


class Direct(Router):
    """Direct delivery: only to whom it is for."""

    def offers(self, copy, peer, now):
        return self.wanted(copy, peer)


class SprayAndWait(Router):
    """Spray and wait (Spyropoulos, Psounis, Raghavendra 2005)."""

    copies: int = setting(8, ge=1, doc="Copies of a bundle that its source may give away.")
    spray: str = setting("binary", choices=("binary", "source"), doc="Half of them, or single ones.")

    def created(self, copy, now):
        copy.note = self.copies

    def offers(self, copy, peer, now):
        return copy.note > 1 or peer.wants(copy)

    def attach(self, copy, peer, now):
        had = copy.note
        gives = had // 2 if self.spray == "binary" and had > 1 else 1
        copy.note = max(had - gives, 1)
        return gives, had - copy.note  # what goes along; what is missing here until it has arrived

    def sent(self, copy, peer, attached, accepted, now):
        if not accepted:
            copy.note += attached[1]

    def received(self, copy, peer, attached, now):
        copy.note = attached[0]


class FirstContact(Router):
    """First contact (Jain, Fall, Patra 2004): one copy, to whoever comes; subscribers are served on the way."""

    def created(self, copy, now):
        copy.note = True  # whether the copy that travels is here

    def offers(self, copy, peer, now):
        return copy.note or peer.wants(copy)

    def attach(self, copy, peer, now):
        travels = copy.note and not peer.wants(copy)
        copy.note = copy.note and not travels
        return travels

    def sent(self, copy, peer, attached, accepted, now):
        if attached and accepted:
            self.discard(copy.id)
        elif attached:
            copy.note = True

    def received(self, copy, peer, attached, now):
        copy.note = attached


class Prophet(Router):
    """PRoPHET (RFC 6693); a subscriber of a channel is the channel."""

    lists = True
    encounter: float = setting(0.7, ge=0, le=1, doc="P_encounter: how much a contact raises a predictability.")
    transitivity: float = setting(0.9, ge=0, le=1, doc="Beta: how much of a neighbour's predictability counts.")
    aging: float = setting(0.999, ge=0, le=1, doc="Gamma: what is left of a predictability after `aging_unit`.")
    aging_unit: float = setting("30 s", time=True, doc="The time unit of `aging`.")

    def start(self):
        self.chance, self.aged_s = {}, 0.0

    def age(self, now):
        left = self.aging ** ((now - self.aged_s) / self.aging_unit)
        self.chance = {destination: chance * left for destination, chance in self.chance.items()}
        self.aged_s = now

    def meet(self, destination):
        before = self.chance.get(destination, 0.0)
        self.chance[destination] = before + (1.0 - before) * self.encounter

    def tell(self, peer, now):
        self.age(now)
        told = self.chance | {("channel", channel): 1.0 for channel, _ in self.subscriptions.values()}
        return {destination: chance for destination, chance in told.items() if chance > 0.0}

    def hear(self, peer, content, now):
        self.age(now)
        if peer.lists == 1:
            self.meet(("node", peer.id))
        for destination, chance in content.items():
            if destination == ("node", self.node):
                continue
            if destination[0] == "channel" and chance == 1.0:
                if peer.lists == 1:
                    self.meet(destination)
                continue
            by_way_of_peer = self.chance["node", peer.id] * chance * self.transitivity
            self.chance[destination] = max(self.chance.get(destination, 0.0), by_way_of_peer)
        peer.note = (content, dict(self.chance))

    def wanted(self, copy, peer):
        return peer.note[0].get(("channel", copy.channel)) == 1.0

    def offers(self, copy, peer, now):
        theirs, mine = (known.get(("channel", copy.channel), 0.0) for known in peer.note)
        return theirs == 1.0 or theirs > mine


class Dpsp(Router):
    """DPSP (Greifenberg and Kutscher 2008): subscriptions spread with their hop counts."""

    lists = True
    filters: tuple = setting(
        ("duplicate",), choices=("known-subscription", "hop-count", "duplicate"), doc="What may be offered at all."
    )
    priorities: tuple = setting(
        ("short-delay",), choices=("short-delay", "long-delay", "hop-count", "popularity"), doc="What goes first."
    )
    combine: str = setting("vote", choices=("vote", "order"), doc="All priorities vote, or the first decides.")
    hop_tolerance: int = setting(0, ge=0, doc="So many hops further may the neighbour be.")
    missing_entry: str = setting("pass", choices=("pass", "far"), doc="What a channel without an entry counts as.")
    lifetime: float = setting("1 d", time=True, doc="How long an entry lives unless it is renewed.")
    renewal: float = setting(0.9, ge=0.01, le=1, doc="A subscriber renews its entry after this part of its lifetime.")

    def start(self):
        self.known = {}  # others' subscriptions by id: subscriber, channel, creation, hops
        self.leaves_out_seen = "duplicate" in self.filters

    def tell(self, peer, now):
        every_s = self.lifetime * self.renewal
        told = {
            id: (self.node, channel, since + int((now - since) / every_s) * every_s, 0)
            for id, (channel, since) in self.subscriptions.items()
        }
        return told | {id: entry for id, entry in self.known.items() if now < entry[2] + self.lifetime}

    def hear(self, peer, content, now):
        theirs, mine, popularity = {}, {}, {}
        for id, (subscriber, channel, created, hops) in content.items():
            if subscriber == self.node or now >= created + self.lifetime:
                continue
            theirs[channel] = min(theirs.get(channel, hops), hops)
            here = (subscriber, channel, created, hops + 1)
            self.known[id] = max(self.known.get(id, here), here, key=lambda entry: (entry[2], -entry[3]))
        for _, channel, created, hops in self.known.values():
            if now < created + self.lifetime:
                mine[channel] = min(mine.get(channel, hops), hops)
                popularity[channel] = popularity.get(channel, 0) + 1
        peer.note = theirs, mine, popularity

    def wanted(self, copy, peer):
        return peer.note[0].get(copy.channel) == 0

    def offers(self, copy, peer, now):
        theirs, mine, _ = peer.note
        if "known-subscription" in self.filters and copy.channel not in theirs and copy.channel not in mine:
            return False
        if "hop-count" not in self.filters or copy.channel not in mine:
            return True
        if copy.channel not in theirs:
            return self.missing_entry == "pass"
        return theirs[copy.channel] <= mine[copy.channel] + self.hop_tolerance

    def before(self, one, other, peer):
        votes = [self.vote(priority, one, other, peer) for priority in self.priorities]
        return sum(votes) if self.combine == "vote" else next((vote for vote in votes if vote), 0)

    def vote(self, priority, one, other, peer):
        first, second = (self.worth(priority, copy, peer) for copy in (one, other))
        return (first > second) - (first < second)

    def worth(self, priority, copy, peer):
        theirs, _, popularity = peer.note
        if priority == "short-delay":
            return copy.created_s
        if priority == "long-delay":
            return -copy.created_s
        return -theirs.get(copy.channel, 1e9) if priority == "hop-count" else popularity.get(copy.channel, 0)
