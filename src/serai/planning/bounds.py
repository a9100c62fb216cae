"""What no protocol could beat in a deployment, whatever it does: the share of a goal that contacts allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from serai.core.interested import count_interested
from serai.field.contacts import contacts_with_communities
from serai.field.sections import FieldScenario
from serai.field.simulation import build_world
from serai.field.upper_bound import Content, possible_by_contacts, upper_bounds
from serai.field.world import World
from serai.log.pairs import Count
from serai.planning.goals import Goal
from serai.scenario.section import Scenario
from serai.world.ranges import SensorContacts

BOUND_SEEDS: Final = 3


def bounds_of(goals: Sequence[Goal], scenario: Scenario) -> tuple[float | None, ...]:
    """The most that each goal's share could be, over a few seeds; None where nobody knows, or it is no share."""
    if not isinstance(scenario, FieldScenario):
        return (None,) * len(goals)
    worlds = [build_world(scenario, seed) for seed in range(BOUND_SEEDS)]
    return tuple(_bound(goal, scenario, worlds) for goal in goals)


def _bound(goal: Goal, scenario: FieldScenario, worlds: Sequence[World]) -> float | None:
    if not isinstance(goal.measure, Count) or goal.share is not None:
        return None
    within_s = goal.measure.within_s or float(scenario.events.lifetime_s)
    count = _reached if goal.measure.what == "reached" else _served
    counted = np.array([count(_fair(world, within_s, scenario), within_s, scenario.duration_s) for world in worlds])
    possible, of = counted.sum(axis=0)
    return float(possible / of) if of else None


def _fair(world: World, within_s: float, scenario: FieldScenario) -> World:
    """The world without events that are born too late to have a chance, as goals count."""
    fair = world.event_time_s + within_s <= scenario.duration_s
    return world._replace(
        event_sensor=world.event_sensor[fair],
        event_time_s=world.event_time_s[fair],
        event_values=world.event_values[fair],
    )


def _served(world: World, within_s: float, slots: int) -> tuple[float, float]:
    """How many wanted pairs could be served in time if everybody carried everything, and of how many."""
    wanted = float(count_interested(world.event_values, world.low, world.high).sum())
    ratio = upper_bounds(world, within_s, slots)["epidemic"].ratio
    return (0.0 if math.isnan(ratio) else ratio * wanted), wanted


def _reached(world: World, within_s: float, slots: int) -> tuple[float, float]:
    """How many events could be with somebody in time, if all was known at once in a community, and of how many."""
    found = contacts_with_communities(world, slots)
    everything = np.full_like(np.asarray(world.low, np.float64), np.inf)
    content = Content(world.event_time_s, within_s, world.event_values, -everything, everything)
    contacts = SensorContacts(found.subscriber, found.community, found.start_s, found.end_s)
    community = world.communities.of_sensor
    home = community[world.event_sensor].astype(np.int64)
    possible = possible_by_contacts(contacts, contacts.sensor.astype(np.int64), home, content)
    return float(np.count_nonzero(possible)), float(len(home))
