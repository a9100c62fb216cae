"""The calls for notebooks: names, files and scenarios alike; options checked; everything typed and shown."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import serai
from serai.kinds import KINDS

ROOT = Path(__file__).parents[1]
SMALL = {
    "ced": ["duration=10 min", "sensors.count=20", "events.quiet=0 s"],
    "tinymq": [
        "nodes.count=60",
        "field.width=100 m",
        "field.height=40 m",
        "roots.count=3",
        "events.count=400",
        "subscriptions.count=10",
    ],
    "dpsp": ["duration=10 min", "nodes.count=10", "bundles.quiet=0 s", "movement.width=300 m", "movement.height=300 m"],
}
each_kind = pytest.mark.parametrize("name", SMALL)


def small(name: str) -> serai.Scenario:
    return serai.load_scenario(name, SMALL[name])


def test_the_small_ones_are_of_every_kind() -> None:
    assert [small(name).network for name in SMALL] == list(KINDS)


def test_a_name_a_file_and_a_scenario_give_the_same_run(tmp_path: Path) -> None:
    from serai.scenario.write import to_toml

    file = tmp_path / "dg.toml"
    file.write_text(to_toml(serai.load_scenario("dg")))
    expected = serai.simulate(serai.load_scenario("dg"), seed=1)
    assert serai.simulate("dg", seed=1) == expected
    assert serai.simulate(file, seed=1).metrics == expected.metrics
    assert serai.simulate("field", "dg", seed=1).protocol == "dg"


@each_kind
def test_metrics_of_a_run_are_what_measuring_gives(name: str) -> None:
    run = serai.simulate(small(name), seed=2)
    assert run.metrics.as_dict() == serai.measure(run).as_dict()
    assert run.metrics is run.metrics
    assert isinstance(run.metrics, serai.Metrics)


@each_kind
def test_runs_and_metrics_show_themselves(name: str) -> None:
    run = serai.simulate(small(name), seed=2)
    shown = run._repr_html_()
    assert run.protocol in shown
    assert run.metrics._repr_html_() in shown
    assert shown.count("<tr>") == sum(value is not None for value in run.metrics.as_dict().values())


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        (
            "ced",
            {"full_logs": True},
            'simulate, for networks of kind .field.: no option "full_logs"; did you mean "full_log"',
        ),
        ("ced", {"until_death": 3}, "until_death is 3; write True or False"),
        ("dpsp", {"until_death": True}, 'no option "until_death"; one of: full_log'),
    ],
)
def test_unknown_options_are_bad_input(name: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(serai.BadInput, match=problem):
        serai.simulate(small(name), **options)


def test_unknown_options_of_measuring_are_bad_input() -> None:
    run = serai.simulate(small("tinymq"))
    with pytest.raises(serai.BadInput, match=r"kind 'overlay': no option .upper_bound.; it takes none"):
        serai.measure(run, upper_bound=True)


def test_an_unknown_scenario_is_bad_input() -> None:
    with pytest.raises(serai.BadInput, match="no-such"):
        serai.simulate("no-such")


def test_a_network_in_which_nobody_waits_has_no_delay_curve() -> None:
    with pytest.raises(serai.BadInput, match="nobody waits"):
        serai.delay_cdf(serai.simulate(small("tinymq")))


def test_type_checkers_know_which_run_comes_of_which_scenario(tmp_path: Path) -> None:
    code = """
import serai
from serai.field.sections import FieldScenario
from serai.opportunistic.sections import OpportunisticScenario
from serai.overlay.sections import OverlayScenario

def check(field: FieldScenario, overlay: OverlayScenario, contacts: OpportunisticScenario) -> None:
    reveal_type(serai.simulate(field))
    reveal_type(serai.simulate(overlay))
    reveal_type(serai.simulate(contacts, full_log=True))
    reveal_type(serai.simulate("ced", seed=1))
    reveal_type(serai.simulate(field).metrics)
    reveal_type(serai.measure(serai.simulate(contacts)))
    reveal_type(serai.simulate("ced").metrics.delivery_ratio)
    reveal_type(serai.compare("ced", "cet"))
    reveal_type(serai.sweep("ced", out="here"))
"""
    (tmp_path / "notebook.py").write_text(code)
    checked = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run(
        [*checked, str(tmp_path / "notebook.py")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = [line.rpartition('"')[0].rpartition('"')[2] for line in done.stdout.splitlines() if "Revealed" in line]
    assert found == [
        "serai.field.log.FieldRun",
        "serai.overlay.log.OverlayRun",
        "serai.opportunistic.log.OpportunisticRun",
        "serai.log.run.SimulatedRun",
        "serai.field.metrics.FieldMetrics",
        "serai.opportunistic.metrics.OpportunisticMetrics",
        "float",
        "serai.comparison.Comparison",
        "serai.sweeping.results.Sweep",
    ], done.stdout
    assert "error" not in done.stdout
