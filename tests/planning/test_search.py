"""A plan from the scenario to the answer: deployments, costs, rounds on Spark, the page."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import serai
from serai.core.errors import BadInput, CannotRun
from serai.lab import parse_scenario
from serai.planning.answer import explanation, headline
from serai.planning.deployments import plan_search
from serai.planning.search import find_deployment, neighbours
from serai.report.plan import terminal_table, write_plan_report
from serai.report.tables import to_text
from serai.spark.places import alone_in
from serai.sweeping.run import Progress
from tests.effort import THOROUGH

FIXED = {
    "duration": ["10 min"],
    "events.quiet": ["0 s"],
    "events.lifetime": ["3 min"],
    "field.width": ["60 m"],
    "field.height": ["60 m"],
    "field.cells": [4],
}
CHOICE = FIXED | {"sensors.count": [6, 12], "subscribers.count": [1, 4, 8]}
PRICES = {"subscribers": 400, "sensors": 35}


def search_for(*goals: str, **changes):
    return plan_search("dg", goal=goals, **{"cost": PRICES, "vary": CHOICE} | changes)


def test_every_choice_is_a_deployment_with_its_cost() -> None:
    search = search_for("delivery_ratio >= 30 %")
    assert [one.cost for one in search.deployments] == [610, 1810, 3410, 820, 2020, 3620]
    assert str(search.deployments[1]) == "6 sensors, 4 subscribers"
    assert search.limits.budget == 720  # 30 % of 6 x 400
    assert neighbours(search, 1) == {0: "subscribers.count", 2: "subscribers.count", 4: "sensors.count"}


def test_the_plan_may_stand_in_the_scenario_and_a_price_may_depend_on_the_value() -> None:
    text = """
    [protocol]
    name = "ced"
    [plan]
    goal = ["delivery_ratio >= 50 %"]
    cost = {protocol = {ced = 5, dg = 1}, "field.width" = {"100 m" = 10, "0.2 km" = 20}}
    [plan.vary]
    protocol = ["ced", "dg"]
    field.width = ["100 m", "200 m"]
    """
    search = plan_search(parse_scenario(text))
    assert [(str(one), one.cost) for one in search.deployments] == [
        ("CED, width 100 m", 15),
        ("DG, width 100 m", 11),
        ("CED, width 200 m", 25),
        ("DG, width 200 m", 21),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cost": {"vehicles": 4}}, 'plan.cost: nothing is called "vehicles"'),
        ({"cost": {"subscribers": "four"}}, "plan.cost.subscribers: 'four' is not a price"),
        ({"cost": {"subscribers": float("nan")}}, "plan.cost.subscribers: nan is not a price"),
        ({"cost": {"subscribers": float("inf")}}, "plan.cost.subscribers: inf is not a price"),
        ({"cost": {"subscribers": -1}}, "plan.cost.subscribers: -1 is not a price"),
        ({"cost": {"field.width": 4}}, "plan.cost.field.width: not a number of things"),
        ({"vary": {"subscribers.coun": [1, 2]}}, "subscribers.coun: unknown key"),
        ({"vary": {"sensors.count": "1..2000"}}, "2,000 deployments; at most 1,000 can be raced"),
        ({"vary": {"protocol": ["dg", "tinymq"]}}, "tinymq"),
        ({"at_most": 59}, "plan.at_most: 6 deployments x 10 = 60 runs are the least that tell anything"),
        ({"cost": {"sensors.count": {"6": 1}}}, "no price for 12; priced are 6"),
    ],
)
def test_plans_that_cannot_be(changes, message: str) -> None:
    with pytest.raises(BadInput) as error:
        search_for("delivery_ratio >= 30 %", **changes)
    assert message in str(error.value)


def test_candidates_that_cannot_be_simulated_are_refused_before_anything_is_run(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("x,y\n10,10\n90,10\n")
    (tmp_path / "mine.toml").write_text('sensors = {placement = "file", file = "posts.csv"}')
    with pytest.raises(
        BadInput, match=r"posts.csv: line 3: x = 90 m is outside the field, which reaches from 0 to 80 m"
    ):
        plan_search(
            tmp_path / "mine.toml", goal=["delivery_ratio >= 5 %"], cost=PRICES, vary={"field.width": ["200 m", "80 m"]}
        )
    with pytest.raises(BadInput, match=r"radio.range: must be more than 0 m"):
        search_for("delivery_ratio >= 5 %", vary={"radio.range": ["0 m", "40 m"]})


def test_a_scenario_without_a_plan_is_told_what_to_add() -> None:
    with pytest.raises(BadInput, match=r"\[plan\] says too little; add for example") as error:
        plan_search("field")
    assert all(word in str(error.value) for word in ("goal =", "cost =", "[plan.vary]"))


def test_from_a_goal_to_a_page_and_again_from_the_same_folder(spark, tmp_path: Path) -> None:
    search = search_for("delivery_ratio >= 30 %", "mean(energy_j) <= 5")
    found = find_deployment(search, tmp_path / "plan", spark)
    assert found.result.ending in ("found", "found, cheaper ones open")
    named = search.deployments[found.result.named]
    assert headline(found).startswith(str(named))
    page = write_plan_report(found)
    answer = (tmp_path / "plan" / "answer.json").read_bytes()
    assert json.loads(answer)["cost"] == named.cost
    assert all(sentence in page.read_text() for sentence in (headline(found), str(named)))
    for table in ("best", "deployments", "goals", "front", "rounds", "sensitivity"):
        assert (tmp_path / "plan" / "tables" / f"{table}.csv").exists()

    rows = pq.read_table(tmp_path / "plan" / "metrics.parquet")
    some = next(iter((tmp_path / "plan" / "parts").glob("*.parquet")))
    some.unlink()  # as if the first attempt had been stopped
    again = find_deployment(search, tmp_path / "plan", spark)
    write_plan_report(again)
    assert again.result == found.result
    assert again.changes == found.changes
    assert pq.read_table(tmp_path / "plan" / "metrics.parquet").equals(rows)
    assert (tmp_path / "plan" / "answer.json").read_bytes() == answer


def test_a_goal_of_lifetime_knows_what_listening_costs(spark, tmp_path: Path) -> None:
    """At 1 mW a battery of 1 J lasts 17 minutes, longer than the run, and one of 100 J 28 hours."""
    vary = FIXED | {"sensors.count": [6], "sensors.idle": ["1 mW"], "sensors.battery": ["1 J", "100 J"]}
    prices = {"sensors.battery": {"1 J": 0, "100 J": 5}}
    found = find_deployment(search_for("lifetime_days >= 1", vary=vary, cost=prices), tmp_path / "plan", spark)
    assert found.search.deployments[found.result.named].cost == 5
    assert found.result.ending == "found"


class StoppedError(Exception):
    """As if somebody had pulled the plug."""


class Told(Progress):
    """Counts what a plan tells, and stops it when that is enough."""

    def __init__(self, enough: int) -> None:
        self.left = enough

    def on_notice(self, notice: str) -> None:
        self.on_round(notice)

    def on_round(self, _: object) -> None:
        self.left -= 1
        if not self.left:
            raise StoppedError


def test_killed_at_every_round_and_resumed_it_gives_the_same_bytes(spark, tmp_path: Path) -> None:
    vary = {"radio.range": ["25 m"], "sensors.placement": ["grid"], "sensors.count": [4], "subscribers.count": [1, 3]}
    relays = {"relays": {"candidates": "grid 20 m", "at_most": 2}}
    search = search_for("on_time(2 min) >= 55 %", vary=FIXED | vary | relays, cost=PRICES | {"relays": 100})

    def go_on(folder: Path, enough: int) -> int:
        """How much was told."""
        told = Told(enough)
        found = find_deployment(search, folder, spark, told, told.on_round)
        write_plan_report(found)
        return enough - told.left

    steps = go_on(tmp_path / "whole", 1000)
    assert steps >= 4  # relays and rounds
    for enough in range(1, steps + 1, 1 if THOROUGH else 2):
        with pytest.raises(StoppedError):
            go_on(tmp_path / "killed", enough)
    go_on(tmp_path / "killed", 1000)
    whole, killed = (
        {
            path.relative_to(tmp_path / folder).as_posix(): path.read_bytes()
            for path in (tmp_path / folder).rglob("*")
            if path.is_file() and path.parent.name != "parts"
        }
        for folder in ("whole", "killed")
    )
    assert whole.keys() == killed.keys()
    assert [name for name in whole if whole[name] != killed[name]] == []


def test_two_plans_do_not_work_in_one_folder(spark, tmp_path: Path) -> None:
    with alone_in(tmp_path), pytest.raises(CannotRun, match="another serai is at work in this folder"):
        find_deployment(search_for("delivery_ratio >= 30 %"), tmp_path, spark)


def test_the_answer_fits_a_terminal(spark, tmp_path: Path) -> None:
    goals = ("delivery_ratio >= 30 %", "on_time(2 min) >= 20 %", "lifetime_days >= 1 in 90 % of runs")
    found = find_deployment(search_for(*goals), tmp_path / "plan", spark)
    shown = to_text(terminal_table(found))
    assert max(map(len, shown.splitlines())) <= 80
    assert "(3)" in shown


def test_goals_that_nobody_meets_name_the_nearest(spark, tmp_path: Path) -> None:
    found = find_deployment(search_for("delivery_ratio >= 99.9 %"), tmp_path / "plan", spark)
    assert found.result.ending == "none"
    assert headline(found) == "No deployment you allow meets all goals."
    assert explanation(found)[0] == "delivery_ratio >= 99.9 % fails everywhere."
    assert explanation(found)[1].startswith("Nearest: ")


@pytest.mark.parametrize("protocol", ["dg", "ced", "cet"])
def test_runs_differ_though_everything_is_from_files(protocol: str, tmp_path: Path) -> None:
    """So a plan of such a world needs a race: docs/plan.md says so."""
    shutil.copytree(Path(__file__).parents[2] / "examples" / "park", tmp_path / "park")
    text = (tmp_path / "park" / "season.toml").read_text()
    before, _, after = text.partition('[[subscribers]]\nname = "rangers"')  # who walk at random
    (tmp_path / "park" / "season.toml").write_text(before + "[protocol]" + after.partition("[protocol]")[2])
    wishes = (tmp_path / "park" / "wishes.csv").read_text().splitlines()
    kept = [line for line in wishes if not line.startswith("rangers")]
    (tmp_path / "park" / "wishes.csv").write_text("\n".join(kept) + "\n")
    scenario = serai.load_scenario(tmp_path / "park" / "season.toml", {"duration": "2 d"}, protocol=protocol)
    one, *others = (serai.simulate(scenario, seed=seed).tables for seed in range(4))
    for other in others:
        assert all(one[name].equals(other[name]) for name in ("nodes", "tracks", "contacts", "subscriptions"))
        assert one["events"].drop_columns("transmissions").equals(other["events"].drop_columns("transmissions"))
    assert any(not one["deliveries"].equals(other["deliveries"]) for other in others)
