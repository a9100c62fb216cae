"""Communities in the plain engine: sessions begin and end, paths are announced, layers are drawn up (CED 4.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from serai.field.engine.state import PATH, ROUTE
from serai.field.kit.books import Books
from serai.field.kit.parts import Announced, Community, Guest, Layers, Site, find_communities
from serai.field.kit.reach import Reach, Visit
from serai.field.kit.sensor import Session


class Surroundings(Protocol):
    """What sessions need of the engine."""

    books: Books
    sites: list[Site]
    reach: Reach

    def stir(self, site: Site) -> None:
        """Something has changed for the sensor: it has to be asked again."""

    def call(self, site: Site) -> Any:
        """The author's object, which is about to be called."""


class Sessions:
    """All communities of a field, and their sessions."""

    def __init__(self, around: Surroundings, zone: str) -> None:
        self.around, self.zone = around, zone
        self.communities = find_communities(around.sites)

    # ---- movement

    def meet(self, guest: Guest, visit: Visit) -> None:
        """End, begin and renew the visitor's sessions at its new visit."""
        in_reach = {id(site.community) for site in self.around.reach.listeners(guest)}
        for community in self.communities:
            announced = community.sessions.get(guest.number)
            if announced:
                for site in community.members:
                    self.around.stir(site)
                if id(community) not in in_reach:
                    self.end(community, announced)
        if guest.audible:
            for community in self.communities:
                if id(community) in in_reach:
                    self.renew(community, guest, visit)

    def renew(self, community: Community, guest: Guest, visit: Visit) -> None:
        """The visitor is in reach of the community."""
        announced = community.sessions.get(guest.number)
        if announced is None:
            announced = self.begin(community, guest)
            self.announce(community, announced)
            for site in community.members:
                self.around.call(site).session_up(site.sessions[guest.node], self.around.books.now)
        elif guest.moving and guest.leg != announced.leg:
            self.announce(community, announced)
        elif (visit.went and self.zone in ("path", "in-range")) or (visit.came and self.zone == "in-range"):
            self.draw_layers(community, announced)
        elif visit.went and self.zone == "pruned":
            self.prune_layers(community, announced)

    def begin(self, community: Community, guest: Guest) -> Announced:
        """A new session."""
        announced = Announced(guest, Layers(self.around.sites))
        self.join(community, announced)
        for site in community.members:
            self.around.stir(site)
        return announced

    def join(self, community: Community, announced: Announced) -> None:
        """The community's sensors know of the session from now on."""
        guest = announced.guest
        community.sessions[guest.number] = announced
        for site in community.members:
            seen = Session(guest.node, self.around.books.now, guest.wanted, site.number, announced.layers)
            site.sessions[guest.node] = seen
            ordered = dict(sorted(site.sessions.items()))
            site.sessions.clear()
            site.sessions.update(ordered)

    def end(self, community: Community, announced: Announced) -> None:
        """The visitor is gone."""
        del community.sessions[announced.guest.number]
        self.part_from(community, [announced.guest])

    def part_from(self, community: Community, guests: Iterable[Guest]) -> None:
        """The community's sensors see no more of the visitors; those of one moment end together."""
        gone = [(site, site.sessions.pop(guest.node, None)) for guest in guests for site in community.members]
        for site, session in gone:
            if session is not None:
                self.around.call(site).session_down(session, self.around.books.now)
                self.around.stir(site)

    # ---- layers

    def announce(self, community: Community, announced: Announced) -> None:
        """The path goes through the community, and the layers are drawn up from it."""
        announced.leg = announced.guest.leg
        self.flood(community, PATH, self.around.books.limits.path_bits)
        self.draw_layers(community, announced)

    def draw_layers(self, community: Community, announced: Announced) -> None:
        """Layer 0 are the sensors on the visitor's way, layer k + 1 those beside layer k."""
        layers = dict.fromkeys(self.on_the_way(community, announced.guest), 0)
        order = list(layers)
        for number in order:
            for other in self.around.sites[number].neighbors:
                if other.number not in layers:
                    layers[other.number] = layers[number] + 1
                    order.append(other.number)
        announced.layers.set(layers)
        self.flood(community, ROUTE, self.around.books.limits.route_bits)

    def prune_layers(self, community: Community, announced: Announced) -> None:
        """Sensors of layer 0 that the visitor has left go, and who has nobody left one layer closer."""
        zone, kept = set(self.on_the_way(community, announced.guest)), dict[int, int]()
        for number, layer in sorted(announced.layers.of.items(), key=lambda item: item[1]):
            near = self.around.sites[number].neighbors
            if number in zone if layer == 0 else any(kept.get(one.number) == layer - 1 for one in near):
                kept[number] = layer
        announced.layers.set(kept)
        self.flood(community, ROUTE, self.around.books.limits.route_bits)

    def on_the_way(self, community: Community, guest: Guest) -> list[int]:
        """The set Z: the community's sensors that hear the visitor on the rest of its leg."""
        found: Iterable[Site] = self.around.reach.listeners(guest)
        if guest.moving and self.zone != "in-range":
            self.around.books.locate(guest)
            found = self.around.reach.ahead(guest, guest.x, guest.y)
        return sorted({site.number for site in found if site.community is community})

    def flood(self, community: Community, kind: int, bits: float) -> None:
        """One message by every sensor of the community; a loner has nobody to tell."""
        if len(community.members) > 1:
            for site in community.members:
                self.around.books.broadcast(site, kind, bits)

    # ---- waking

    def end_all(self, kin: set[int]) -> None:
        """All sessions of these sensors end."""
        for community in self.communities:
            if community.members[0].number in kin:
                for announced in sorted(community.sessions.values(), key=lambda one: one.guest.number):
                    self.end(community, announced)

    def form_anew(self, living: list[Site]) -> None:
        """These sensors are in communities as they touch."""
        numbers = {site.number for site in living}
        self.communities = [one for one in self.communities if one.members[0].number not in numbers]
        self.communities += find_communities(living)
        self.communities.sort(key=lambda community: community.members[0].number)

    # ---- deaths

    def part(self, dead: set[int]) -> None:
        """Communities that lost sensors become those that the living ones form; sessions go on where in reach."""
        for old in [one for one in self.communities if any(site.number in dead for site in one.members)]:
            self.communities.remove(old)
            for fresh in find_communities([site for site in old.members if site.number not in dead]):
                self.communities.append(fresh)
                self.inherit(old, fresh)
        self.communities.sort(key=lambda community: community.members[0].number)

    def inherit(self, old: Community, fresh: Community) -> None:
        """The sessions of a community that has lost sensors, seen from a part of it."""
        going_on = []
        for announced in sorted(old.sessions.values(), key=lambda one: one.guest.number):
            in_reach = any(site.community is fresh for site in self.around.reach.listeners(announced.guest))
            if in_reach:
                heir = Announced(announced.guest, Layers(self.around.sites), announced.leg)
                self.join(fresh, heir)
                self.draw_layers(fresh, heir)
                going_on.append(announced.guest.number)
        guests = [announced.guest for announced in old.sessions.values()]
        self.part_from(fresh, [guest for guest in guests if guest.number not in going_on])
        for site in fresh.members:
            self.around.stir(site)
