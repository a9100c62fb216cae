"""What relays at sites would allow, against the bound of a world in which only they stand."""

import numpy as np
import pytest

from serai.core.content import matches
from serai.field.relay_sites import RelaySites
from serai.field.simulation import build_world
from serai.field.upper_bound import upper_bounds
from serai.lab import load_scenario
from tests.effort import THOROUGH

WORLDS = 40 if THOROUGH else 4
SPARSE = ["duration=40 min", "events.quiet=10 min", "events.lifetime=10 min", "sensors.count=15", "field.cells=12"]


def possible(scenario, relays, seeds):
    """Pairs that contacts with communities allow, over seeds: every event has time to live out its life."""
    sensors = scenario.sensors.model_copy(update={"relays": tuple(relays)})
    total = 0
    for seed in seeds:
        world = build_world(scenario.model_copy(update={"sensors": sensors}), seed)
        pairs = sum(matches(v, a, b) for v in world.event_values for a, b in zip(world.low, world.high, strict=True))
        total += round(upper_bounds(world, 600.0, scenario.duration_s)["community"].ratio * pairs)
    return total


@pytest.mark.parametrize("reach", [(), ("radio.range=25 m",)])
@pytest.mark.parametrize("number", range(WORLDS))
def test_gains_are_those_of_worlds_with_these_relays_alone(number: int, reach: tuple[str, ...]) -> None:
    rng = np.random.default_rng(number)
    scenario = load_scenario("ced", [*SPARSE, *reach])
    places = [tuple(place) for place in rng.uniform(0, 200, (12, 2)).tolist()]
    seeds = (3 * number, 3 * number + 1)
    sites = RelaySites(scenario, places, seeds)
    chosen = tuple(int(site) for site in rng.permutation(12)[: number % 3])
    before = possible(scenario, [places[site] for site in chosen], seeds)
    choices = [*sites.touching(chosen)[:3], *sites.bridging(chosen)[:2]]
    assert choices
    found = sites.gains(chosen, choices, 600.0, anybody=False)
    for choice, gain in zip(choices, found, strict=True):
        after = possible(scenario, [places[site] for site in (*chosen, *choice)], seeds)
        assert gain * len(seeds) == after - before


def test_touching_and_bridging_by_hand() -> None:
    """Two sensors 100 m apart and a range of 40 m: it takes two relays, 35 m from either, to join them."""
    settings = ["field.width=200 m", "field.height=10 m", "sensors.placement=grid", "sensors.count=2"]
    scenario = load_scenario("ced", [*settings, "radio.range=40 m", "duration=10 min", "subscribers.count=1"])
    sites = RelaySites(scenario, [(85.0, 5.0), (115.0, 5.0), (100.0, 5.0), (50.0, 9.0), (185.0, 1.0)], [0])
    assert [build_world(scenario, 0).sensor_x.tolist()] == [[50.0, 150.0]]
    assert sites.touching(()) == [(0,), (1,), (3,), (4,)]
    assert sites.bridging(()) == [(0, 1)]
    assert (2,) in sites.touching((0,))
    assert sites.bridging((0,)) == []  # alone, either of the others joins what is there


def test_anybody_counts_events_and_not_those_who_want_them() -> None:
    scenario = load_scenario("ced", [*SPARSE, "sensors.count=1", "subscriptions.where=A1 > 10", "subscribers.count=3"])
    x, y = (float(column[0]) for column in (build_world(scenario, 1).sensor_x, build_world(scenario, 1).sensor_y))
    sites = RelaySites(scenario, [(x, min(y + 20, 200.0)), (x, max(y - 20, 0.0))], [1])
    choices = sites.touching(())
    assert choices
    assert sites.gains((), choices, 600.0, anybody=False) == [0.0] * len(choices)  # nobody wants anything
    assert max(sites.gains((), choices, 600.0, anybody=True)) > 0
