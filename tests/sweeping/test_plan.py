"""Points, cells and their names; all that is wrong with a sweep said before it starts."""

import json
from pathlib import Path

import pytest

from serai.core.errors import BadInput, BadScenario
from serai.lab import load_scenario
from serai.sweeping.plan import cell_id, join_plans, plan_comparison, plan_from_json, plan_sweep


def test_a_grid_has_every_combination_the_last_axis_fastest() -> None:
    plan = plan_sweep("field", ["protocol.alpha=2,5", "sensors.count=10..12"], ["ced", "cet"], 7)
    assert [tuple(point.values()) for point in plan.points] == [(2, 10), (2, 11), (2, 12), (5, 10), (5, 11), (5, 12)]
    assert [(cell.point, cell.protocol, cell.seeds) for cell in plan.cells] == [
        (point, protocol, 7) for point in range(6) for protocol in ("ced", "cet")
    ]
    cell = plan.cells[-1]
    assert (cell.scenario.protocol.name, cell.scenario.protocol.alpha, cell.scenario.sensors.count) == ("cet", 5, 12)


def test_a_setting_of_some_protocols_leaves_the_others_as_they_are() -> None:
    plan = plan_sweep("field", ["protocol.alpha=2,5,10"], ["ced", "dg"], 3)
    assert len({cell.id for cell in plan.cells if cell.protocol == "dg"}) == 1
    assert len({cell.id for cell in plan.cells if cell.protocol == "ced"}) == 3
    assert sum(map(len, plan.runs().values())) == 4 * 3  # what is the same is run once


def test_the_same_scenario_has_the_same_name_wherever_it_comes_from(tmp_path: Path) -> None:
    from serai.scenario.write import to_toml

    scenario = load_scenario("dg")
    (tmp_path / "other.toml").write_text(to_toml(scenario).replace(scenario.title, "Another title"))
    assert cell_id(load_scenario(tmp_path / "other.toml")) == cell_id(scenario)
    assert cell_id(load_scenario("dg", ["sensors.count=101"])) != cell_id(scenario)


def test_the_content_of_a_file_counts(tmp_path: Path) -> None:
    places = tmp_path / "places.csv"
    places.write_text("name,x,y\na,1,1\nb,2,2\n")
    (tmp_path / "mine.toml").write_text('[protocol]\nname = "dg"\n[sensors]\nplacement = "file"\nfile = "places.csv"\n')
    scenario = load_scenario(tmp_path / "mine.toml")
    name = cell_id(scenario)
    places.write_text("name,x,y\na,1,1\nb,2,3\n")
    assert cell_id(scenario) != name


def test_the_sweep_table_says_what_options_leave_open(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[protocol]\nname = "ced"\n[sweep]\nseeds = 5\nprotocols = ["ced", "dg"]\n'
        '[sweep.set]\nprotocol.alpha = [2, 5]\n"sensors.count" = "10..12"\nduration = "1 h"\n'
    )
    plan = plan_sweep(file)
    assert (plan.seeds, plan.protocols, len(plan.points)) == (5, ("ced", "dg"), 6)
    assert plan.cells[0].scenario.duration_s == 3600
    assert plan.cells[0].scenario.sweep is None
    other = plan_sweep(file, ["protocol.alpha=7"], ["ced"], 9)
    assert (other.seeds, other.protocols, len(other.points)) == (9, ("ced",), 3)
    assert other.cells[0].scenario.protocol.alpha == 7


def test_without_anything_a_sweep_is_one_point_of_the_scenarios_protocol() -> None:
    plan = plan_sweep("cet")
    assert (plan.points, plan.protocols, plan.seeds) == (({},), ("cet",), 20)


def test_everything_wrong_is_said_at_once_and_once() -> None:
    with pytest.raises(BadScenario) as caught:
        plan_sweep("field", ["protocol.alpha=-1,5,-2", "sensors.cuont=3", "field.width=20 m,3 feet"], ["ced", "cet"])
    said = [problem.where for problem in caught.value.problems]
    assert sorted(said) == ["field.width", "protocol.alpha", "sensors.cuont"]


@pytest.mark.parametrize(
    ("settings", "protocols", "said"),
    [
        ((), ["ced", "gd"], 'unknown protocol "gd"; did you mean "dg"'),
        (("sensors.count=1..2000", "protocol.alpha=1..100"), ["ced"], "at most 100,000"),
    ],
)
def test_what_is_no_sweep_is_refused(settings: tuple[str, ...], protocols: list[str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        plan_sweep("field", settings, protocols)


def test_a_bad_value_of_the_sweep_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[protocol]\nname = "ced"\n[sweep.set]\nprotocol.alpha = "9..2"\n')
    with pytest.raises(BadInput, match=r"sweep\.set\.protocol\.alpha: the range 9\.\.2 is the wrong way round"):
        plan_sweep(tmp_path / "mine.toml")


def test_a_plan_comes_back_from_json() -> None:
    plan = plan_sweep("field", ["protocol.alpha=2,5", "subscribers.speed_max=2..4"], ["ced", "dg"], 4)
    assert plan_from_json(json.loads(json.dumps(plan.as_json()))) == plan


def test_seeds_may_differ_from_point_to_point() -> None:
    plan = plan_sweep("field", ["protocol.alpha=2,5"], ["ced", "dg"], 4).with_seeds({0: 3, 1: 8})
    assert [cell.seeds for cell in plan.cells] == [3, 3, 8, 8]
    assert plan.seeds == 8
    assert sorted(map(len, plan.runs().values())) == [3, 8, 8]  # dg is the same at both points


def test_joined_plans_share_what_they_have_in_common() -> None:
    one = plan_sweep("field", ["protocol.alpha=2,5"], ["ced"], 4)
    two = plan_sweep("field", ["protocol.alpha=5,9"], ["ced"], 6)
    both = join_plans("both", [one, two])
    assert [point["protocol.alpha"] for point in both.points] == [2, 5, 5, 9]
    assert [cell.point for cell in both.cells] == [0, 1, 2, 3]
    assert sorted(map(len, both.runs().values())) == [4, 6, 6]


def test_a_comparison_is_one_point_with_a_scenario_for_each_protocol() -> None:
    plan = plan_comparison("demo", [load_scenario(name) for name in ("ced", "cet", "dg")], 2)
    assert (plan.protocols, plan.points, sum(map(len, plan.runs().values()))) == (("ced", "cet", "dg"), ({},), 6)
