"""Routes inside a community ("Routes"): the same for every member that knows map, prices and legs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from tests.field.naive.serai.legs import Leg, Reach, in_reach
from tests.field.naive.serai.messages import Map, Prices

PRICE_BASE, PRICE_STEPS = 1.35, 15
HOP = 2000  # costs are whole numbers of so many parts of a hop


def price_step(weight: float) -> int:
    """A price as it is sent: the nearest step of the logarithmic scale."""
    return min(max(round(math.log(weight) / math.log(PRICE_BASE)), 0), PRICE_STEPS)


class Chart:
    """A community as a member sees it: who hears whom, and what each link costs."""

    def __init__(self, members: Map, prices: Prices, reach: Reach) -> None:
        self.places = members.places
        self.reach = reach
        self.neighbors = {
            one: [other for other in self.places if other != one and reach.hears(place, self.places[other])]
            for one, place in self.places.items()
        }
        self.half_price = {member: round(HOP / 2 * PRICE_BASE ** prices.steps.get(member, 0)) for member in self.places}

    def link(self, one: int, other: int) -> int:
        """Half of both prices."""
        return self.half_price[one] + self.half_price[other]


@lru_cache(maxsize=1000)
def chart_of(members: Map, prices: Prices, reach: Reach) -> Chart:
    """What map and prices say; asked by every member, worked out once."""
    return Chart(members, prices, reach)


class Routes:
    """The cheapest way of every member to a set of goals, each of which may cost something by itself."""

    def __init__(self, chart: Chart, goals: Mapping[int, float]) -> None:
        self.chart = chart
        self.goals = goals
        self.cost = {member: goals.get(member, math.inf) for member in chart.places}
        changed = bool(goals)
        while changed:
            changed = False
            for member in self.cost:
                for neighbor in chart.neighbors[member]:
                    through = self.cost[neighbor] + chart.link(neighbor, member)
                    if through < self.cost[member]:
                        self.cost[member] = through
                        changed = True

    def root(self, member: int) -> int:
        """The goal to which its way leads; ties: the lowest."""
        costs = ((start + routes_to_member(self.chart, goal).cost[member], goal) for goal, start in self.goals.items())
        return min(costs)[1]

    def path(self, member: int) -> list[int]:
        """From a member to its root, both included; ties: the lowest next."""
        root, path = self.root(member), [member]
        cost, link = routes_to_member(self.chart, root).cost, self.chart.link
        while (here := path[-1]) != root:
            path.append(min(n for n in self.chart.neighbors[here] if cost[n] + link(n, here) == cost[here]))
        return path


@lru_cache(maxsize=20_000)
def routes_to(chart: Chart, leg: Leg, now: int, announced_now: bool, hop_s: float) -> Routes:
    """The ways to a subscriber: to the members that it still reaches in this leg, sooner or later."""
    goals = {}
    for member, place in chart.places.items():
        reached = in_reach(leg, place, chart.reach)
        if reached and (reached[1] > now or (announced_now and reached[1] == now)):
            goals[member] = delay_cost(reached[0] - now, hop_s)
    return Routes(chart, goals)


def delay_cost(delay_s: float, hop_s: float) -> float:
    """What a delay costs, if it is one."""
    return max(0, delay_s) * round(HOP / hop_s)


@lru_cache(maxsize=20_000)
def routes_to_member(chart: Chart, member: int) -> Routes:
    """The ways to a member, along prices."""
    return Routes(chart, {member: 0})


class ByWalker(NamedTuple):
    """The walker alternative: what it costs, who walks, where to drop; the cheapest comes first."""

    cost: float
    walker: int
    drop: int


@dataclass(frozen=True)
class Journey:
    """A member with something for a subscriber, now."""

    member: int
    subscriber: int
    now: int
    routes: Routes
    legs: Mapping[int, Leg]  # the running ones of all subscribers that the community knows of
    hop_s: float


def by_walker(journey: Journey) -> ByWalker | None:
    """The cheapest way with the help of another subscriber."""
    here = journey.routes.chart.places[journey.member]
    options = []
    for walker in journey.legs:
        met = in_reach(journey.legs[walker], here, journey.routes.chart.reach)
        if walker == journey.subscriber or met is None or journey.now > met[1]:
            continue
        options += drops(journey, walker, max(journey.now, met[0]))
    return min(options, default=None)


def drops(journey: Journey, walker: int, taken_s: float) -> list[ByWalker]:
    """Where the walker could leave what it takes at that time, and what that would cost."""
    routes, reach, options = journey.routes, journey.routes.chart.reach, []
    for member, place in routes.chart.places.items():
        met = in_reach(journey.legs[walker], place, reach)
        if met is None or taken_s > met[1] or routes.cost[member] == math.inf:
            continue
        dropped_s = max(taken_s, met[0])
        found = in_reach(journey.legs[journey.subscriber], routes.chart.places[routes.root(member)], reach)
        assert found is not None
        if found[1] <= dropped_s:
            continue
        later, taken = (delay_cost(until_s - journey.now, journey.hop_s) for until_s in (found[0], dropped_s))
        cost = HOP + (routes.cost[member] - later) + max(taken, later)
        options.append(ByWalker(cost, walker, member))
    return options


def flood(chart: Chart, first: int) -> list[int]:
    """Who speaks, in which order, until every member has heard a message that one of them got."""
    reached, speakers = {first}, []
    while len(reached) < len(chart.places):
        speaker = max(reached, key=lambda m: (Fraction(unreached(chart, m, reached), chart.half_price[m]), -m))
        speakers.append(speaker)
        reached.update(chart.neighbors[speaker])
    return speakers


def unreached(chart: Chart, member: int, reached: set[int]) -> int:
    return sum(neighbor not in reached for neighbor in chart.neighbors[member])


class Branch(NamedTuple):
    """A destination of a multicast, and the way there from where it leaves the branches before it."""

    subscriber: int
    path: list[int]


def branches(start: int, destinations: list[tuple[int, Routes]]) -> list[Branch]:
    """By rising cost, each destination branches off where an earlier branch is nearest to it."""
    tree, found = {start}, []
    for subscriber, routes in sorted(destinations, key=lambda d: (d[1].cost[start], d[0])):
        leaves = min(tree, key=lambda member: (routes.cost[member], member))
        path = routes.path(leaves)
        tree.update(path)
        found.append(Branch(subscriber, path))
    return found
