"""What each protocol tells in its lists, makes of them, offers, prefers and gives away: one class for each text."""

from __future__ import annotations

from typing import Any

from tests.opportunistic.naive.nouns import Contact, Copy, Distances, Entry


class Flooding:
    """Vahdat and Becker 2000: whatever the neighbour's summary vector lacks is sent."""

    always_lists = False
    copies = 0  # of a new bundle; 0: nobody counts

    def __init__(self, node: Any, settings: dict[str, Any]) -> None:
        self.node, self.settings = node, settings

    def tell(self, now_s: float) -> Any:
        """The entries of a list: the channels the node wants."""
        return {channel for channel, _ in self.node.subscribed.values()}

    def hear(self, peer: int, told: Any, is_first: bool, now_s: float) -> Any:
        """What is noted of a neighbour's list."""
        return told

    def meet_live(self, peer: Any, now_s: float) -> None:
        """A contact begins, with somebody who tells everything for nothing."""

    def is_wanted(self, contact: Contact, copy: Copy) -> bool:
        """Whether the neighbour wants the bundle, as far as the node knows."""
        if self.settings["seen"] == "live":
            return bool(contact.peer.wants(copy.bundle))
        return copy.bundle.channel in contact.view

    def wanted_channels(self, contact: Contact) -> set[int]:
        """What the neighbour wants, by its last list."""
        return set(contact.view)

    def offers(self, contact: Contact, copy: Copy) -> bool:
        return True

    def prefers(self, contact: Contact, one: Copy, other: Copy) -> int:
        """Above 0: one goes first; below: the other."""
        return 0

    def split(self, contact: Contact, copy: Copy) -> tuple[int, int]:
        """Copies that are given, and kept."""
        return 0, copy.copies


class Direct(Flooding):
    """Only to whom it is for."""

    def offers(self, contact: Contact, copy: Copy) -> bool:
        return self.is_wanted(contact, copy)


class FirstContact(Flooding):
    """Jain, Fall and Patra 2004: one copy, to whoever comes; subscribers are served on the way."""

    copies = 1

    def offers(self, contact: Contact, copy: Copy) -> bool:
        return copy.copies == 1 or self.is_wanted(contact, copy)

    def split(self, contact: Contact, copy: Copy) -> tuple[int, int]:
        if self.is_wanted(contact, copy) and self.settings["at_subscriber"] == "goes-on":
            return 0, copy.copies
        return copy.copies, 0


class Spray(Flooding):
    """Spyropoulos et al. 2005: "hands over floor(n/2) and keeps ceil(n/2)"; with one copy left, direct transmission."""

    def __init__(self, node: Any, settings: dict[str, Any]) -> None:
        super().__init__(node, settings)
        self.copies = settings["copies"]

    def offers(self, contact: Contact, copy: Copy) -> bool:
        return copy.copies >= 2 or self.is_wanted(contact, copy)

    def split(self, contact: Contact, copy: Copy) -> tuple[int, int]:
        if copy.copies == 1:  # waiting: a subscriber gets one, and the node goes on waiting for others
            return 1, 1
        kept = (copy.copies + 1) // 2 if self.settings["spray"] == "binary" else copy.copies - 1
        return copy.copies - kept, kept


class Prophet(Flooding):
    """RFC 6693, 2.1.2. Destinations are nodes and channels; a subscriber of a channel is the channel.

    As The ONE has it: no lists, everybody sees what the neighbour knows at any moment; P_AC = P_AC_old + (1 - P_AC_old)
    * P_AB * P_BC * beta when a contact begins, first at one end, then at the other.
    """

    def __init__(self, node: Any, settings: dict[str, Any]) -> None:
        super().__init__(node, settings)
        self.always_lists = settings["variant"] == "rfc"
        self.chance: dict[tuple[str, int], float] = {}
        self.aged_s = 0.0
        self.met_s: dict[tuple[str, int], float] = {}

    def age(self, now_s: float) -> None:
        """Equation 2: P = P_old * gamma^K, K the time units since it was last aged."""
        units = (now_s - self.aged_s) / self.settings["aging_unit_s"]
        for destination in self.chance:
            self.chance[destination] *= self.settings["aging"] ** units
        self.aged_s = now_s

    def meet(self, destination: tuple[str, int], now_s: float) -> None:
        """Equation 1: P = P_old + (1 - P_old) * P_encounter."""
        before = self.chance.get(destination, 0.0)
        self.chance[destination] = before + (1.0 - before) * self.settings["encounter"]

    def tell(self, now_s: float) -> Any:
        self.age(now_s)
        wanted = {("channel", channel): 1.0 for channel, _ in self.node.subscribed.values()}
        return {destination: chance for destination, chance in (self.chance | wanted).items() if chance > 0.0}

    def hear(self, peer: int, told: Any, is_first: bool, now_s: float) -> Any:
        """Equation 3 for all whom the neighbour meets: P_AC = max(P_AC_old, P_AB * P_BC * beta)."""
        self.age(now_s)
        if is_first:
            self.meet(("node", peer), now_s)
        for destination, chance in told.items():
            if destination == ("node", self.node.number):
                continue
            if destination[0] == "channel" and chance == 1.0:
                if is_first:
                    self.meet(destination, now_s)
                continue
            by_way_of_peer = self.chance["node", peer] * chance * self.settings["transitivity"]
            self.chance[destination] = max(self.chance.get(destination, 0.0), by_way_of_peer)
        return told, dict(self.chance)

    def meet_live(self, peer: Any, now_s: float) -> None:
        if self.always_lists:
            return
        self.age(now_s)
        peer.protocol.age(now_s)
        self.meet(("node", peer.number), now_s)
        met = {("channel", channel) for channel, _ in peer.subscribed.values()}
        for destination in met:
            self.meet(destination, now_s)
        for destination, chance in peer.protocol.chance.items():
            if destination not in met and destination != ("node", self.node.number):
                by_way_of_peer = self.chance["node", peer.number] * chance * self.settings["transitivity"]
                self.chance[destination] = self.passed_on(self.chance.get(destination, 0.0), by_way_of_peer)

    def passed_on(self, before: float, by_way_of_peer: float) -> float:
        """In The ONE, each neighbour adds to what others gave."""
        return before + (1.0 - before) * by_way_of_peer

    def chances(self, contact: Contact, copy: Copy) -> tuple[float, float]:
        """The neighbour's, and one's own, of meeting the channel."""
        channel = ("channel", copy.bundle.channel)
        if self.always_lists:
            theirs, mine = contact.view
            return theirs.get(channel, 0.0), mine.get(channel, 0.0)
        both = (contact.peer.protocol, self)
        return both[0].chance_at(channel, contact.now_s), both[1].chance_at(channel, contact.now_s)

    def chance_at(self, destination: tuple[str, int], now_s: float) -> float:
        """What is left of a chance by now."""
        units = (now_s - self.aged_s) / self.settings["aging_unit_s"]
        return float(self.chance.get(destination, 0.0) * self.settings["aging"] ** units)

    def is_wanted(self, contact: Contact, copy: Copy) -> bool:
        if not self.always_lists:
            return bool(contact.peer.wants(copy.bundle))
        return bool(self.chances(contact, copy)[0] == 1.0)

    def wanted_channels(self, contact: Contact) -> set[int]:
        return {number for (kind, number), chance in contact.view[0].items() if kind == "channel" and chance == 1.0}

    def offers(self, contact: Contact, copy: Copy) -> bool:
        """GRTR: to whom has the better chance, and to subscribers."""
        theirs, mine = self.chances(contact, copy)
        least = mine if self.always_lists else mine / (1.0 - 1e-9)
        return self.is_wanted(contact, copy) or theirs > least

    def prefers(self, contact: Contact, one: Copy, other: Copy) -> int:
        """GRTRMax, in The ONE: who is likeliest goes first."""
        if self.always_lists:
            return 0
        chance, other_chance = (self.chances(contact, copy)[0] for copy in (one, other))
        return (chance > other_chance) - (chance < other_chance)


class Dpsp(Flooding):
    """Greifenberg and Kutscher 2008."""

    always_lists = True

    def __init__(self, node: Any, settings: dict[str, Any]) -> None:
        super().__init__(node, settings)
        self.known: dict[int, Entry] = {}  # others' subscriptions

    def lives(self, entry: Entry, now_s: float) -> bool:
        return bool(now_s < entry.created_s + self.settings["lifetime_s"])

    def tell(self, now_s: float) -> Any:
        """Own subscriptions at hop count 0, as if created when last renewed; and what is known of others'."""
        every_s = self.settings["lifetime_s"] * self.settings["renewal"]
        own = []
        for id, (channel, since_s) in self.node.subscribed.items():
            renewed_s = since_s + int((now_s - since_s) / every_s) * every_s
            own.append(Entry(id, self.node.number, channel, renewed_s, 0))
        return own + [entry for entry in self.known.values() if self.lives(entry, now_s)]

    def hear(self, peer: int, told: Any, is_first: bool, now_s: float) -> Any:
        """A neighbour's entry is one hop further from here; of several the youngest counts, then the nearest."""
        theirs: dict[int, int] = {}
        for entry in told:
            if entry.subscriber == self.node.number or not self.lives(entry, now_s):
                continue
            theirs[entry.channel] = min(theirs.get(entry.channel, entry.hops), entry.hops)
            here = Entry(entry.id, entry.subscriber, entry.channel, entry.created_s, entry.hops + 1)
            self.known[entry.id] = max(self.known.get(entry.id, here), here, key=lambda e: (e.created_s, -e.hops))
        mine: dict[int, int] = {}
        popularity: dict[int, int] = {}
        for entry in self.known.values():
            if self.lives(entry, now_s):
                mine[entry.channel] = min(mine.get(entry.channel, entry.hops), entry.hops)
                popularity[entry.channel] = popularity.get(entry.channel, 0) + 1
        return Distances(theirs, mine, popularity)

    def wanted_channels(self, contact: Contact) -> set[int]:
        return {channel for channel, hops in contact.view.theirs.items() if hops == 0}

    def is_wanted(self, contact: Contact, copy: Copy) -> bool:
        return bool(contact.view.their_hops(copy.bundle.channel) == 0)

    def offers(self, contact: Contact, copy: Copy) -> bool:
        filters, channel, view = self.settings["filters"], copy.bundle.channel, contact.view
        if "known-subscription" in filters and channel not in view.theirs and channel not in view.mine:
            return False
        if "hop-count" not in filters or channel not in view.mine:
            return True
        if channel not in view.theirs:
            return bool(self.settings["missing_entry"] == "pass")
        return bool(view.theirs[channel] <= view.mine[channel] + self.settings["hop_tolerance"])

    def prefers(self, contact: Contact, one: Copy, other: Copy) -> int:
        """All priorities vote, or the first that sees a difference decides."""
        votes = [self.vote(priority, contact, one, other) for priority in self.settings["priorities"]]
        if self.settings["combine"] == "vote":
            return sum(votes)
        return next((vote for vote in votes if vote), 0)

    def vote(self, priority: str, contact: Contact, one: Copy, other: Copy) -> int:
        """1 for one, -1 for the other, 0 if they are equal."""
        value, other_value = (self.worth(priority, contact, copy) for copy in (one, other))
        return (value > other_value) - (value < other_value)

    def worth(self, priority: str, contact: Contact, copy: Copy) -> float:
        """What a priority prefers more of."""
        if priority == "short-delay":
            return copy.bundle.created_s
        if priority == "long-delay":
            return -copy.bundle.created_s
        if priority == "hop-count":
            return -float(contact.view.their_hops(copy.bundle.channel))
        return float(contact.view.popularity.get(copy.bundle.channel, 0))


class Prophet2(Prophet):
    """Grasic et al. 2011: P_enc = P_max * intvl / I_typ, and P_max from I_typ on. RFC 6693: an encounter while P is
    below a threshold counts as the first, and gives P_encounter_first."""

    def meet(self, destination: tuple[str, int], now_s: float) -> None:
        before, settings = self.chance.get(destination, 0.0), self.settings
        interval_s = now_s - self.met_s[destination] if self.met_s.get(destination, 0.0) > 0 else settings["interval_s"]
        self.met_s[destination] = now_s
        if before < settings["first_threshold"]:
            self.chance[destination] = settings["encounter_first"]
            return
        share = min(interval_s / settings["interval_s"], 1.0)
        self.chance[destination] = before + (1.0 - before) * settings["encounter_max"] * share

    def passed_on(self, before: float, by_way_of_peer: float) -> float:
        return max(before, by_way_of_peer)

    def offers(self, contact: Contact, copy: Copy) -> bool:
        if self.settings["forward"] == "greater":
            return super().offers(contact, copy)
        theirs, mine = self.chances(contact, copy)
        return self.is_wanted(contact, copy) or theirs >= mine * (1.0 - 1e-9)


PROTOCOLS = {
    "flooding": Flooding,
    "direct": Direct,
    "first-contact": FirstContact,
    "spray": Spray,
    "prophet": Prophet,
    "prophet2": Prophet2,
    "dpsp": Dpsp,
}
