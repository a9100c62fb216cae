"""What a relay at each of many places would allow: the community bound of `serai.field.upper_bound`, site by site.

A world is built once with a relay at every site. What a choice of sites allows follows from it: the relays that are not
chosen take their contacts with them, and the others join the communities that they hear. Only events of communities
that a choice joins or widens have to be looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.field.contacts import sensor_contacts
from serai.field.sections import FieldScenario
from serai.field.simulation import build_world
from serai.field.upper_bound import Content, possible_by_contacts
from serai.field.world import World
from serai.world.components import connected_components
from serai.world.ranges import SensorContacts

Place = tuple[float, float]
Choice = tuple[int, ...]
Labels = NDArray[np.int64]


class _Known(NamedTuple):
    """All that a seed says of sensors and sites, which are numbered after them."""

    sensors: int
    hears: NDArray[np.bool_]  # [sensors + sites, sensors + sites]
    contacts: SensorContacts
    world: World
    slots: int


class RelaySites:
    """Places where relays may stand, and how much more contacts would then allow."""

    def __init__(self, scenario: FieldScenario, places: Sequence[Place], seeds: Iterable[int]) -> None:
        everywhere = scenario.sensors.model_copy(update={"relays": tuple(places)})
        worlds = [build_world(scenario.model_copy(update={"sensors": everywhere}), seed) for seed in seeds]
        self.sites = range(len(places))
        self._known = [_known(world, len(places), scenario) for world in worlds]

    def touching(self, chosen: Choice) -> list[Choice]:
        """The sites that are not chosen where a relay would hear a sensor, or a chosen one."""
        return [(site,) for site in self.sites if site not in chosen and self._joins(chosen, site)]

    def bridging(self, chosen: Choice) -> list[Choice]:
        """Pairs of sites that hear each other and together join communities that neither joins alone."""
        near, known = [site for (site,) in self.touching(chosen)], list(self._labelled(chosen))
        pairs = combinations(near, 2)
        return [pair for pair in pairs if any(_bridge(one, labels, pair) for one, labels in known)]

    def gains(self, chosen: Choice, choices: Sequence[Choice], within_s: float, anybody: bool) -> list[float]:
        """How many more pairs, on average over the seeds, could be served in time with each of these choices.

        With `anybody`: how many more events could be with somebody in time, whether asked for or not.
        """
        found = np.zeros(len(choices))
        for one, labels in self._labelled(chosen):
            asked = _asked(one, within_s, anybody)
            now = _possible(one, labels, asked, set(labels[labels >= 0].tolist()))
            for place, choice in enumerate(choices):
                joined = _joined(one, labels, choice)
                as_one = np.where(np.isin(labels, list(joined)), 0, -1)
                as_one[one.sensors + np.array(choice, np.int64)] = 0
                found[place] += sum(_possible(one, as_one, asked, {0}).values()) - sum(now[label] for label in joined)
        gains: list[float] = (found / max(len(self._known), 1)).tolist()
        return gains

    def _joins(self, chosen: Choice, site: int) -> bool:
        return any(_joined(one, labels, (site,)) for one, labels in self._labelled(chosen))

    def _labelled(self, chosen: Choice) -> Iterator[tuple[_Known, Labels]]:
        """What each seed says, with the community of every sensor and chosen relay; -1 for the other sites."""
        for one in self._known:
            there = np.concatenate([np.arange(one.sensors), one.sensors + np.array(chosen, np.int64)])
            hears = one.hears[np.ix_(there, there)]
            start = np.concatenate([[0], np.cumsum(hears.sum(axis=1))])
            labels = np.full(len(one.hears), -1, np.int64)
            labels[there] = connected_components(start, np.nonzero(hears)[1].astype(np.int32))
            yield one, labels


class _Asked(NamedTuple):
    """What is counted: events with a chance, and who wants them in what time."""

    content: Content
    home: NDArray[np.int64]  # the sensor of each event
    anybody: bool


def _known(world: World, sites: int, scenario: FieldScenario) -> _Known:
    groups, slots = world.communities, scenario.duration_s
    nodes = len(world.sensor_x)
    hears = np.zeros((nodes, nodes), np.bool_)
    hears[np.repeat(np.arange(nodes), np.diff(groups.neighbor_start)), groups.neighbors] = True
    contacts = sensor_contacts(world, slots, silent_while_pausing=scenario.protocol.silent_while_pausing)
    return _Known(nodes - sites, hears, contacts, world, slots)


def _asked(one: _Known, within_s: float, anybody: bool) -> _Asked:
    """Events born too late to have a chance are left out, as in the counts of goals."""
    world = one.world
    fair = world.event_time_s + within_s <= one.slots
    low, high = np.array(world.low, np.float64), np.array(world.high, np.float64)
    if anybody:
        low[:], high[:] = -np.inf, np.inf
    content = Content(world.event_time_s[fair], within_s, world.event_values[fair], low, high)
    return _Asked(content, world.event_sensor[fair].astype(np.int64), anybody)


def _joined(one: _Known, labels: Labels, choice: Choice) -> set[int]:
    """The communities that relays at these sites hear."""
    heard = one.hears[one.sensors + np.array(choice, np.int64)].any(axis=0)
    return set(labels[heard & (labels >= 0)].tolist())


def _bridge(one: _Known, labels: Labels, pair: Choice) -> bool:
    a, b = pair
    if not one.hears[one.sensors + a, one.sensors + b]:
        return False
    both = _joined(one, labels, pair)
    return all(both > _joined(one, labels, (site,)) for site in pair)


def _possible(one: _Known, labels: Labels, asked: _Asked, communities: set[int]) -> dict[int, int]:
    """How many pairs (or events) of each of these communities contacts allow; -1 is no community."""
    rows = labels[one.contacts.sensor] >= 0
    contacts = SensorContacts._make(column[rows] for column in one.contacts)
    events = np.flatnonzero(labels[asked.home] >= 0)
    content = asked.content._replace(born_s=asked.content.born_s[events], values=asked.content.values[events])
    home = labels[asked.home[events]]
    possible = possible_by_contacts(contacts, labels[contacts.sensor], home, content)
    counted = np.minimum(possible, 1) if asked.anybody else possible
    sums = np.bincount(home, counted, max(communities, default=0) + 1)
    return {label: int(sums[label]) for label in communities}
