"""PRoPHET: bundles go to neighbours that are more likely to meet a subscriber.

Lindgren, Doria, Davies, Grasic, RFC 6693, section 2.1: delivery predictabilities, raised by encounters, aged with time,
passed on by transitivity. The RFC has nodes as destinations. Here a channel is a destination, too: at its subscribers
its predictability is 1, and a node that meets one of them has met the channel. With one subscriber a channel, as for
unicast messages, both are the same. The ONE's ProphetRouter, which is older than the RFC, is a variant. PRoPHETv2
(`serai.opportunistic.prophet2`) is the same with encounters that count for less the sooner they come again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field as setting
from pydantic import model_validator

from serai.core.rules import rule, step
from serai.core.units import Seconds
from serai.opportunistic.router.knowledge import Knowledge, OwnSubscriptions, View
from serai.opportunistic.routing import Room, RoutingProtocol, Size
from serai.opportunistic.rules import Offer, RouterRules, shared_rules
from serai.opportunistic.settings import RouterSettings

if TYPE_CHECKING:
    from serai.opportunistic.engine.state import Net

SUBSCRIBED = 1.0  # the predictability of a channel at its subscriber
AT_THE_END = 3  # numbers of a node's memory after its predictabilities
IDLE = math.inf  # not met before
EQUAL = 1e-9  # two that age alike and are as close as that differ by rounding only, now this way and now that


class Parameters(RouterSettings):
    """Those of the RFC, section 3.3, that both versions have."""

    transitivity: float = setting(0.9, ge=0, le=1, description="Beta: how much of a neighbour's predictability counts.")
    aging: float = setting(0.999, gt=0, le=1, description="Gamma: what is left of a predictability after `aging_unit`.")
    aging_unit_s: Seconds = setting(30.0, gt=0, alias="aging_unit", description="The time unit of `aging`.")
    variant: Literal["rfc", "the-one"] = setting(
        "rfc",
        description='As in the RFC; or as in The ONE (which needs seen = "live"): what neighbours know is available at'
        " any moment at no cost, in the first version it is also added up, and the likeliest of all is served first.",
    )

    @model_validator(mode="after")
    def _all_for_nothing(self) -> Parameters:
        if self.variant == "the-one" and self.seen != "live":
            raise ValueError('variant = "the-one" has no lists at all, so it needs seen = "live"')
        return self


class Settings(Parameters):
    """The first version: all encounters count alike."""

    name: Literal["prophet"] = "prophet"
    encounter: float = setting(0.7, gt=0, lt=1, description="P_encounter: how much a contact raises predictability.")


class Prophet(NamedTuple):
    """The settings as the rules below read them."""

    encounter: float
    transitivity: float
    aging: float
    aging_unit_s: float
    as_the_one: bool
    adds_up: bool = False  # what neighbours know is added up
    interval_s: float = 0.0  # an encounter so long after the last one counts in full; 0: all do
    first: float = 0.0  # the predictability after an encounter
    first_below: float = 0.0  # if it was below this
    at_least: bool = False  # a neighbour who is as likely to meet a subscriber is offered the bundle, too


def rules_of(settings: Settings) -> RouterRules:
    """The settings as rules and kernels read them. In the RFC predictabilities are exchanged, so there are lists."""
    as_the_one = settings.variant == "the-one"
    aging = (settings.aging, settings.aging_unit_s)
    own = Prophet(settings.encounter, settings.transitivity, *aging, as_the_one, adds_up=as_the_one)
    return with_own(settings, own)


def with_own(settings: Parameters, own: Prophet) -> RouterRules:
    """The rules of either version."""
    as_the_one = own.as_the_one
    rules = shared_rules(settings, lists=not as_the_one)
    return rules._replace(if_wanted=SUBSCRIBED, best_of_links=as_the_one, own=own)


@rule
def aging_factor(own: Prophet, elapsed_s: float) -> float:
    """What is left of every predictability after a time (RFC 6693 2.1.2, equation 2)."""
    factor: float = own.aging ** (elapsed_s / own.aging_unit_s)
    return factor


@rule
def after_encounter(own: Prophet, predictability: float, since_s: float) -> float:
    """The predictability of who was just met, `since_s` after the last time (equation 1, without its delta)."""
    if predictability < own.first_below:
        return own.first
    counts = since_s / own.interval_s if since_s < own.interval_s else 1.0
    return predictability + (1.0 - predictability) * own.encounter * counts


@rule
def by_way_of(own: Prophet, predictability: float, of_neighbour: float, neighbours: float) -> float:
    """The predictability of somebody whom a neighbour meets: `of_neighbour` to get there, then `neighbours` (3)."""
    return max(predictability, of_neighbour * neighbours * own.transitivity)


@rule
def in_addition(own: Prophet, predictability: float, of_neighbour: float, neighbours: float) -> float:
    """The same as The ONE has it, and the first papers on PRoPHET: each neighbour adds to what others gave."""
    return predictability + (1.0 - predictability) * of_neighbour * neighbours * own.transitivity


@rule
def offers(own: Prophet, offer: Offer) -> bool:
    """Whether a bundle is offered: the neighbour wants it, or is more likely to meet who does (GRTR, 3.6)."""
    if own.at_least:
        return offer.wanted or offer.theirs >= offer.mine * (1.0 - EQUAL)
    theirs = offer.theirs * (1.0 - EQUAL) if own.as_the_one else offer.theirs
    return offer.wanted or theirs > offer.mine


@rule
def prefers(own: Prophet, one: Offer, other: Offer) -> int:
    """In The ONE the bundle goes first that the neighbour is likeliest to deliver (GRTRMax); the RFC leaves it open."""
    if not own.as_the_one:
        return 0
    return int(one.theirs > other.theirs) - int(one.theirs < other.theirs)


def worth_of(own: Prophet) -> Callable[[Offer], tuple[float, ...]] | None:
    """What sorts bundles in a router as an object, which knows the RFC's variant only: nothing."""
    return lambda offer: ()


# ---- lists, of the router object


Destination = tuple[Literal["node", "channel"], Hashable]


class Predictabilities(Knowledge):
    """How likely the node is to meet each node and each channel."""

    def __init__(self, node: Hashable, own: Prophet, subscriptions: OwnSubscriptions) -> None:
        super().__init__(node, own, subscriptions)
        if own.as_the_one:
            raise ValueError(
                'prophet, variant = "the-one": no router knows a neighbour\'s predictabilities for nothing'
            )
        self.own = own
        self.of: dict[Destination, float] = {}
        self.met_s: dict[Destination, float] = {}
        self.aged_s = 0.0

    def write(self, now_s: float) -> tuple[int, dict[Destination, float]]:
        """All that are above 0; channels that the node wants are certain."""
        self._age(now_s)
        certain: dict[Destination, float] = {
            ("channel", channel): SUBSCRIBED for channel, _ in self.subscriptions.open.values()
        }
        told = {who: value for who, value in (self.of | certain).items() if value > 0.0}
        return len(told), told

    def learn(self, peer: Hashable, content: dict[Destination, float], is_first: bool, now_s: float) -> View:
        """The neighbour was met, and tells whom it meets (RFC 6693 2.1)."""
        self._age(now_s)
        other: Destination = ("node", peer)
        if is_first:
            self._meet(other, now_s)
        for who, told in content.items():
            if who in (other, ("node", self.node)):
                continue
            if who[0] == "node" or told < SUBSCRIBED:
                self.of[who] = by_way_of(self.own, self.of.get(who, 0.0), self.of[other], told)
            elif is_first:
                self._meet(who, now_s)
        theirs = {who[1]: told for who, told in content.items() if who[0] == "channel"}
        return View(theirs, mine={who[1]: value for who, value in self.of.items() if who[0] == "channel"})

    def _meet(self, who: Destination, now_s: float) -> None:
        before_s = self.met_s.get(who, 0.0)
        self.of[who] = after_encounter(self.own, self.of.get(who, 0.0), now_s - before_s if before_s else math.inf)
        if self.own.interval_s:
            self.met_s[who] = now_s

    def _age(self, now_s: float) -> None:
        if now_s > self.aged_s:
            factor = aging_factor(self.own, now_s - self.aged_s)
            self.of = {who: value * factor for who, value in self.of.items()}
            self.aged_s = now_s


# ---- lists, in the compiled loop. A list, and the memory of a node: predictabilities of all nodes, then of all
# channels; at the end of memory, until when it was aged; and for another time what would be left of it then. In the
# second version, after that, when each was last met.


def room_for(size: Size) -> Room:
    """How many numbers there are."""
    return Room(in_list=size.nodes + size.channels, in_memory=size.nodes + size.channels + AT_THE_END)


@step
def writes(own: Prophet, net: Net, link: int) -> int:
    """Put the sender's predictabilities into its list; how many are above 0."""
    sender, nodes, count = net.links[link].sender, len(net.nodes), 0
    age(own, net, sender)
    for e in range(nodes + len(net.wants)):
        certain = e >= nodes and net.wants[e - nodes, sender] > 0
        net.row[link, e] = SUBSCRIBED if certain else net.memory[sender, e]
        count += net.row[link, e] > 0.0
    return count


@step
def learns(own: Prophet, net: Net, link: int) -> None:
    """The receiver has met the sender, and hears whom that one meets (RFC 6693 2.1)."""
    node, other, back, nodes = net.links[link].receiver, net.links[link].sender, link ^ 1, len(net.nodes)
    age(own, net, node)
    mine, is_first = net.memory[node], net.links[back].lists == 0
    if is_first:
        meet(own, net, node, other)
    for e in range(nodes + len(net.wants)):
        told = net.row[link, e]
        if e in (node, other) or told == 0.0:
            continue
        if e < nodes or told < SUBSCRIBED:
            mine[e] = by_way_of(own, mine[e], mine[other], told)
        elif is_first:
            meet(own, net, node, e)
    for channel in range(len(net.wants)):
        net.views[back, channel].theirs = net.row[link, nodes + channel]
        net.views[back, channel].mine = mine[nodes + channel]


@step
def meet(own: Prophet, net: Net, node: int, who: int) -> None:
    """The node has met somebody. As in The ONE, a meeting at time 0 is none that another could come too soon after."""
    known, since_s = net.memory[node], IDLE
    if own.interval_s > 0.0:
        last = len(net.nodes) + len(net.wants) + AT_THE_END + who
        if known[last] > 0.0:
            since_s = net.run[0].now_s - known[last]
        known[last] = net.run[0].now_s
    known[who] = after_encounter(own, known[who], since_s)


@step
def age(own: Prophet, net: Net, node: int) -> None:
    """Age the node's predictabilities up to now."""
    known, now_s, last = net.memory[node], net.run[0].now_s, len(net.nodes) + len(net.wants)
    if now_s > known[last]:
        factor = aging_factor(own, now_s - known[last])
        for e in range(last):
            known[e] *= factor
        known[last] = now_s


# ---- the same for nothing, as in The ONE: no lists, everybody knows at any moment what all around know


@step
def meets(own: Prophet, net: Net, link: int) -> bool:
    """The sender has met the receiver, and learns what that one knows."""
    if not own.as_the_one:
        return False
    node, other, nodes = net.links[link].sender, net.links[link].receiver, len(net.nodes)
    age(own, net, node)
    age(own, net, other)
    mine, theirs = net.memory[node], net.memory[other]
    meet(own, net, node, other)
    for e in range(nodes + len(net.wants)):
        if e >= nodes and net.wants[e - nodes, other] > 0:
            meet(own, net, node, e)
        elif e != node and e != other:
            add = in_addition(own, mine[e], mine[other], theirs[e])
            mine[e] = add if own.adds_up else by_way_of(own, mine[e], mine[other], theirs[e])
    return True


@step
def looks(own: Prophet, net: Net, link: int, channel: int) -> tuple[float, float]:
    """How likely the receiver and the sender are at this moment to meet the channel."""
    if not own.as_the_one:
        return 0.0, 0.0
    place = len(net.nodes) + channel
    node, other = net.links[link].sender, net.links[link].receiver
    return net.memory[other, place] * left_by_now(own, net, other), net.memory[node, place] * left_by_now(
        own, net, node
    )


@step
def left_by_now(own: Prophet, net: Net, node: int) -> float:
    """What is left by now of the predictabilities that the node remembers; worked out once for each instant."""
    known, now_s, last = net.memory[node], net.run[0].now_s, len(net.nodes) + len(net.wants)
    if known[last] == now_s:
        return 1.0
    if known[last + 1] != now_s:
        known[last + 1], known[last + 2] = now_s, aging_factor(own, now_s - known[last])
    return float(known[last + 2])


PROTOCOL = RoutingProtocol(
    title="PRoPHET",
    paper="Lindgren et al., RFC 6693",
    settings=Settings,
    rules_of=rules_of,
    offers=offers,
    prefers=prefers,
    worth_of=worth_of,
    knowledge=Predictabilities,
    room_for=room_for,
    writes=writes,
    learns=learns,
    meets=meets,
    looks=looks,
)
