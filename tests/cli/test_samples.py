"""The samples that ship: small, made by their scripts, and run as their README says."""

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from serai.lab import load_scenario, simulate
from serai.planning.deployments import plan_search
from tests.cli.conftest import Answer

EXAMPLES = Path(__file__).parents[2] / "examples"
BIRDS = Path(__file__).parents[3] / "shared" / "data" / "oystercatcher" / "O_ASSEN-gps-2018.csv.gz"


def test_samples_are_small() -> None:
    sizes = [path.stat().st_size for name in ("park", "birds") for path in (EXAMPLES / name).rglob("*")]
    assert sum(sizes) < 1_000_000


def test_the_park_is_what_its_script_makes(tmp_path: Path) -> None:
    runpy.run_path(str(EXAMPLES / "park" / "make.py"))["main"](tmp_path)
    for name in ("sensors.geojson", "vehicles.gpx", "readings.csv"):
        assert (tmp_path / name).read_bytes() == (EXAMPLES / "park" / name).read_bytes()


@pytest.mark.skipif(not BIRDS.exists(), reason="the data set is not there")
def test_the_birds_are_what_their_script_makes(tmp_path: Path) -> None:
    runpy.run_path(str(EXAMPLES / "birds" / "make.py"))["main"](BIRDS, tmp_path)
    for name in ("birds.csv", "sensors.csv"):
        assert (tmp_path / name).read_bytes() == (EXAMPLES / "birds" / name).read_bytes()


@pytest.mark.parametrize(("name", "scenario"), [("park", "park"), ("park", "season"), ("birds", "birds")])
def test_a_sample_is_copied_and_runs(serai: Callable[..., Answer], name: str, scenario: str) -> None:
    assert serai("examples", "copy", name).code == 0
    assert serai("scenario", "check", f"{name}/{scenario}.toml").code == 0
    answer = serai("run", f"{name}/{scenario}.toml", "--protocol", "ced", "--seed", "1", "--json")
    assert (answer.code, answer.err) == (0, "")


def test_the_table_of_the_birds_is_what_comes_out() -> None:
    table = (EXAMPLES / "birds" / "README.md").read_text()
    said = dict(re.findall(r"^\| (\w+) \| ([\d.]+) % \|$", table, flags=re.M))
    for label, percent in said.items():
        scenario = load_scenario(EXAMPLES / "birds" / "birds.toml", protocol=label.lower())
        ratio = simulate(scenario, seed=1).metrics.delivery_ratio
        assert f"{100 * ratio:.1f}" == percent


def test_the_plan_of_the_park_can_be_made() -> None:
    search = plan_search(EXAMPLES / "park" / "plan.toml")
    assert len(search.deployments) == 63
    dearest = max(search.deployments, key=lambda one: one.cost)
    assert dearest.cost == 8 * 400 + 600
