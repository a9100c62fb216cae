"""Built-in routers, written with the API for protocols of your own; the tests hold them equal to the compiled ones."""

from serai.opportunistic import Router, setting

FAR = 1e9  # hops to somebody that nobody has heard of


class Flooding(Router):
    """Epidemic routing (Vahdat and Becker 2000): whatever the neighbour has not seen."""


class Direct(Router):
    """Direct delivery: a bundle goes only to those that it is for."""

    stable = True

    def offers(self, copy, peer, now):
        return self.wanted(copy, peer)


class SprayAndWait(Router):
    """Spray and wait (Spyropoulos, Psounis, Raghavendra 2005)."""

    stable = True
    copies: int = setting(8, ge=1, doc="Copies of a bundle that its source may give away.")
    spray: str = setting("binary", choices=("binary", "source"), doc="Gives away half of them at a time, or one.")

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

    stable = True

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
    """PRoPHET (RFC 6693); each subscriber of a channel counts as the channel."""

    lists = stable = True
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

    def meet(self, destination, now):
        before = self.chance.get(destination, 0.0)
        self.chance[destination] = before + (1.0 - before) * self.encounter

    def tell(self, peer, now):
        self.age(now)
        told = self.chance | {("channel", channel): 1.0 for channel, _ in self.subscriptions.values()}
        return {destination: chance for destination, chance in told.items() if chance > 0.0}

    def hear(self, peer, content, now):
        self.age(now)
        if peer.lists == 1:
            self.meet(("node", peer.id), now)
        for destination, chance in content.items():
            if destination == ("node", self.node):
                continue
            if destination[0] == "channel" and chance == 1.0:
                if peer.lists == 1:
                    self.meet(destination, now)
                continue
            by_way_of_peer = self.chance["node", peer.id] * chance * self.transitivity
            self.chance[destination] = max(self.chance.get(destination, 0.0), by_way_of_peer)
        peer.channels = {who[1] for who, chance in content.items() if who[0] == "channel" and chance == 1.0}
        peer.note = (content, dict(self.chance))

    def offers(self, copy, peer, now):
        theirs, mine = (known.get(("channel", copy.channel), 0.0) for known in peer.note)
        return theirs == 1.0 or theirs > mine


class Prophet2(Prophet):
    """PRoPHETv2 (Grasic and others 2011; RFC 6693): a node that is met again soon was hardly away."""

    encounter_max: float = setting(0.7, ge=0, le=1, doc="P_encounter_max, in place of `encounter`.")
    interval: float = setting(
        "30 min", time=True, doc="I_typ: an encounter counts in full if the last one was this long ago."
    )
    encounter_first: float = setting(0.5, ge=0, le=1, doc="P_encounter_first: the predictability after the first one.")
    first_threshold: float = setting(0.1, ge=0, le=1, doc="Below this, an encounter counts as a first one again.")
    forward: str = setting("greater", choices=("greater", "at-least"), doc="Offered to the likelier, or the as likely.")

    def start(self):
        super().start()
        self.met_s = {}

    def meet(self, destination, now):
        before, last_s = self.chance.get(destination, 0.0), self.met_s.get(destination, 0.0)
        share = min((now - last_s) / self.interval, 1.0) if last_s else 1.0
        self.met_s[destination] = now
        raised = before + (1.0 - before) * self.encounter_max * share
        self.chance[destination] = self.encounter_first if before < self.first_threshold else raised

    def offers(self, copy, peer, now):
        if self.forward == "greater":
            return super().offers(copy, peer, now)
        theirs, mine = (known.get(("channel", copy.channel), 0.0) for known in peer.note)
        return theirs >= mine * (1.0 - 1e-9)


class Dpsp(Router):
    """DPSP (Greifenberg and Kutscher 2008): subscriptions spread with their hop counts."""

    lists = stable = True
    filters: tuple = setting(
        ("duplicate",), choices=("known-subscription", "hop-count", "duplicate"), doc="What may be offered at all."
    )
    priorities: tuple = setting(
        ("short-delay",), choices=("short-delay", "long-delay", "hop-count", "popularity"), doc="What goes first."
    )
    combine: str = setting("vote", choices=("vote", "order"), doc="All priorities vote, or the first decides.")
    hop_tolerance: int = setting(0, ge=0, doc="How many hops further away the neighbour may be.")
    missing_entry: str = setting("pass", choices=("pass", "far"), doc="What a channel without an entry counts as.")
    lifetime: float = setting("1 d", time=True, doc="How long an entry lives unless it is renewed.")
    renewal: float = setting(
        0.9, ge=0.01, le=1, doc="A subscriber renews its entry after this fraction of its lifetime."
    )

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
            if hops < theirs.get(channel, FAR):
                theirs[channel] = hops
            before = self.known.get(id)
            if before is None or (created, -hops - 1) > (before[2], -before[3]):
                self.known[id] = subscriber, channel, created, hops + 1
        for _, channel, created, hops in self.known.values():
            if now < created + self.lifetime:
                if hops < mine.get(channel, FAR):
                    mine[channel] = hops
                popularity[channel] = popularity.get(channel, 0) + 1
        peer.channels = {channel for channel, hops in theirs.items() if hops == 0}
        peer.note = theirs, mine, popularity

    def offers(self, copy, peer, now):
        theirs, mine, _ = peer.note
        if "known-subscription" in self.filters and copy.channel not in theirs and copy.channel not in mine:
            return False
        if "hop-count" not in self.filters or copy.channel not in mine:
            return True
        if copy.channel not in theirs:
            return self.missing_entry == "pass"
        return theirs[copy.channel] <= mine[copy.channel] + self.hop_tolerance

    def priority(self, copy, peer, now):
        if self.combine == "vote" and len(self.priorities) > 1:
            return 0  # no single number says how a vote ends
        return tuple(self.worth(priority, copy, peer) for priority in self.priorities)

    def before(self, one, other, peer):
        votes = 0
        for priority in self.priorities:
            first, second = self.worth(priority, one, peer), self.worth(priority, other, peer)
            votes += (first > second) - (first < second)
        return votes

    def worth(self, priority, copy, peer):
        theirs, _, popularity = peer.note
        if priority == "short-delay":
            return copy.created_s
        if priority == "long-delay":
            return -copy.created_s
        return -theirs.get(copy.channel, FAR) if priority == "hop-count" else popularity.get(copy.channel, 0)
