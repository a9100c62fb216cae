"""Relays: what is written, where they come to stand, and what they cost."""

import numpy as np
import pytest

from serai.core.errors import BadInput
from serai.kinds import FIELD
from serai.lab import pairs_of, parse_scenario, simulate
from serai.log.pairs import Count, count
from serai.planning.deployments import nominal_scenarios, plan_search, with_placed
from serai.planning.goals import parse_goal
from serai.planning.relays import FIRST_SEED, RUNS, Relays, parse_relays, place_relays, said_step

GOAL = "on_time(5 min) >= 90 %"
TWO_APART = """
duration = "1 h"
field = {width = "200 m", height = "40 m"}
sensors = {placement = "grid", count = 2}
events = {lifetime = "10 min", quiet = "0 s", interval = "60 s"}
subscribers = {count = 2}
subscriptions = {where = "A1 <= 10"}
radio = {range = "60 m"}
protocol = {name = "ced"}
[plan]
goal = ["on_time(5 min) >= 90 %"]
cost = {subscribers = 400, relays = 30}
[plan.vary]
subscribers.count = [2, 4]
radio.range = ["55 m", "60 m"]
relays = {candidates = "grid 20 m", at_most = 3}
"""


def simulated(scenarios):
    """The rows of the goal's two columns, here and now."""
    what = Count("on_time", 300.0)
    rows = []
    for scenario in scenarios:
        found = [count(pairs_of(simulate(scenario, seed=seed)), what) for seed in range(FIRST_SEED, FIRST_SEED + RUNS)]
        rows.append(dict(zip(what.columns(), np.array(found, float).T, strict=True)))
    return rows


def test_the_first_relay_joins_the_two_and_deployments_have_none_one_two_of_them() -> None:
    search = plan_search(parse_scenario(TWO_APART))
    assert len(search.deployments) == 4
    assert search.limits.budget == 4 * 4 * 120
    nominal = nominal_scenarios(search)
    assert [settings for settings, _ in nominal] == [{"radio.range": "55 m"}, {"radio.range": "60 m"}]
    said = []
    placed = place_relays(nominal, search.goals, search.relays, simulated, lambda one: said.append(said_step(one)))
    # The sensors stand at (50, 20) and (150, 20): of a grid of 20 m only the middle hears both.
    for placement in placed:
        x, y = placement.places[0]
        assert x == 100.0
        assert abs(y - 20) <= 20
        assert placement.steps[0].gain.mean > 0.02
    assert said[0].startswith("relay at (100 m, ")
    search = with_placed(search, placed)
    points = {(str(one)): one for one in search.deployments}
    assert points["4 subscribers, range 55 m, no relays"].cost == 1600
    assert points["4 subscribers, range 55 m, 1 relay"].cost == 1630
    assert points["4 subscribers, range 55 m, 1 relay"].scenario.sensors.relays == placed[0].places[:1]
    assert points["4 subscribers, range 55 m, no relays"].scenario.sensors.relays is None
    assert len(search.deployments) == 2 * sum(len(placement.places) + 1 for placement in placed)


def test_two_that_help_only_together_are_taken_together() -> None:
    text = TWO_APART.replace('range = "60 m"', 'range = "36 m"').replace('radio.range = ["55 m", "60 m"]', "")
    search = plan_search(parse_scenario(text.replace('"grid 20 m"', "[[84, 20], [116, 20]]")))
    (placement,) = place_relays(nominal_scenarios(search), search.goals, search.relays, simulated)
    assert set(placement.places[:2]) == {(84.0, 20.0), (116.0, 20.0)}


def test_a_grid_stands_in_the_middle_of_the_field() -> None:
    scenario = parse_scenario(TWO_APART)
    assert Relays(1, 80.0).sites(scenario) == [(x, 20.0) for x in (20.0, 100.0, 180.0)]
    assert Relays(1, None, ((3.0, 3.0), (300.0, 3.0))).sites(scenario) == [(3.0, 3.0)]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (3, 'plan.vary.relays: write {candidates = "grid 50 m", at_most = 12}'),
        ({"candidates": "grid 50 m"}, "plan.vary.relays: write"),
        ({"candidates": "grid 50 m", "at_most": 0}, "plan.vary.relays.at_most: 0 is not a number of relays"),
        ({"candidates": "grid 50 m", "at_most": "3"}, "is not a number of relays"),
        ({"candidates": "grid", "at_most": 3}, 'plan.vary.relays.candidates: "grid" is no grid; write "grid 50 m"'),
        ({"candidates": "grid 5 mm/s", "at_most": 3}, "plan.vary.relays.candidates: "),
        ({"candidates": 7, "at_most": 3}, '"7" is no grid'),
        ({"candidates": [], "at_most": 3}, "places in metres: [[120, 80], [40, 15.5]]"),
        ({"candidates": [[1]], "at_most": 3}, "places in metres"),
    ],
)
def test_relays_that_cannot_be_read(written, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_relays(written)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"goal": ["lifetime_days >= 5"]}, "nothing says which place is better; add a goal on readings"),
        ({"vary": {"relays": {"candidates": "grid 1 m", "at_most": 3}}}, "8,241 sites in the field; 1 to 5,000"),
        ({"vary": {"relays": {"candidates": [[900, 1]], "at_most": 3}}}, "0 sites in the field"),
        ({"vary": {"relays": {"candidates": "grid 9 m", "at_most": 1000}}}, "1,001 deployments; at most 1,000"),
        ({"at_most": 100}, "plan.at_most: 16 deployments x 10 = 160 runs"),
    ],
)
def test_relays_that_cannot_be_placed(changes, message: str) -> None:
    with pytest.raises(BadInput) as error:
        plan_search(parse_scenario(TWO_APART), **changes)
    assert message in str(error.value)


def test_other_networks_have_no_relays() -> None:
    relays = {"relays": {"candidates": "grid 9 m", "at_most": 3}}
    with pytest.raises(BadInput, match="networks of kind opportunistic have no relays"):
        plan_search("dpsp", goal=[GOAL], cost={"nodes": 4}, vary=relays | {"nodes.count": [10, 20]})


def test_the_goal_of_a_placement_is_the_one_that_is_farthest_from_being_met() -> None:
    goals = [parse_goal(text, FIELD) for text in ("on_time(5 min) >= 1 %", GOAL)]
    search = plan_search(parse_scenario(TWO_APART))
    (placement,) = place_relays(nominal_scenarios(search)[:1], goals, Relays(1, 20.0), simulated)
    assert placement.steps[0].goal.text == GOAL
