"""From a scenario to who meets whom, and a whole run on the smallest networks."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from serai.core.errors import BadInput
from serai.lab import load_scenario, parse_scenario, simulate
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import OpportunisticRun, find_contacts

FILES = Path(__file__).parents[1] / "traces" / "files"
SMALL = ["duration=20 min", "nodes.count=12", "movement.width=200 m", "movement.height=200 m", "bundles.quiet=0 s"]


def traced(name: str, more: str = "", **settings: str) -> OpportunisticScenario:
    lines = "\n".join(f'{key} = "{value}"' for key, value in settings.items())
    text = f'{more}\n[contacts]\nsource = "trace"\nfile = "{FILES / name}"\n{lines}\n[protocol]\nname = "flooding"\n'
    made = parse_scenario(text)
    assert isinstance(made, OpportunisticScenario)
    return made


def met(scenario: OpportunisticScenario) -> list[tuple[str, str, float, float]]:
    nodes, contacts, _ = find_contacts(scenario, 0)
    rows = zip(*(column.tolist() for column in contacts), strict=True)
    return [(nodes.names[a], nodes.names[b], up, down) for a, b, up, down in rows]


def test_a_trace_is_cut_to_the_run() -> None:
    assert met(traced("one-contacts.txt", 'duration = "9 s"')) == [
        ("2", "10", 1.0, 4.0),
        ("1", "10", 3.5, 9.0),
        ("2", "10", 6.0, 6.0),
    ]
    assert met(traced("one-contacts.txt", 'duration = "4 s"', begin="3 s")) == [
        ("2", "10", 0.0, 1.0),
        ("1", "10", 0.5, 4.0),
        ("2", "10", 3.0, 3.0),
    ]


def test_a_trace_that_ends_before_the_run_is_refused() -> None:
    with pytest.raises(BadInput, match=r'the trace ends at 9 s, before the run does.*set duration to "9 s" or less'):
        met(traced("one-contacts.txt", 'duration = "20 s"'))
    with pytest.raises(BadInput, match='set duration to "0 s" or less, or begin earlier'):
        met(traced("one-contacts.txt", 'duration = "1 s"', begin="50 s"))


def test_positions_become_contacts_by_the_radio_range() -> None:
    # At time t < 10 a is at (5t, 0) and b at (100, 5t): 80 m apart when 50 t^2 - 1000 t + 3600 = 0. Then both stay.
    more = 'duration = "20 s"\n{}[radio]\nrange = "80 m"'
    ((a, b, up_s, down_s),) = met(traced("one-movement.txt", more.format("")))
    assert (a, b, down_s) == ("a", "b", 20.0)
    assert up_s == pytest.approx(10 - np.sqrt(28))
    assert met(traced("one-movement.txt", more.format('step = "1 s"\n'))) == [("a", "b", 5.0, 20.0)]


@pytest.mark.parametrize("model", ["random-waypoint", "random-walk", "levy-walk", "community"])
def test_every_model_of_movement_runs(model: str) -> None:
    scenario = load_scenario("dpsp", [*SMALL, f"movement.model={model}", "movement.pause_min=1 s"])
    run = simulate(scenario, "flooding", seed=3)
    assert isinstance(run, OpportunisticRun)
    assert run.world.contacts.a.size > 0
    assert run.names[:2] == ("n0", "n1")
    again = simulate(scenario, "flooding", seed=3)
    assert all(np.array_equal(x, y) for x, y in zip(run.world.contacts, again.world.contacts, strict=True))
    assert np.array_equal(run.outcome.delivery_s, again.outcome.delivery_s)


def test_two_protocols_under_one_seed_see_the_same_network() -> None:
    scenario = load_scenario("dpsp", SMALL)
    one, other = (simulate(scenario, protocol, seed=5).world for protocol in ("flooding", "direct"))
    for part in ("contacts", "bundles", "subscriptions"):
        columns = zip(getattr(one, part), getattr(other, part), strict=True)
        assert all(np.array_equal(x, y) for x, y in columns)


def test_who_carries_for_others() -> None:
    roles = ["nodes.sources=3", "nodes.sinks=4"]
    everybody = simulate(load_scenario("dpsp", [*SMALL, *roles]), "flooding")
    assert everybody.world.carries.all()
    others = simulate(load_scenario("dpsp", [*SMALL, *roles, "nodes.carriers=others"]), "flooding")
    assert int(others.world.carries.sum()) == 12 - 3 - 4


def test_a_trace_that_changes_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    shutil.copy(FILES / "one-contacts.txt", path)
    scenario = traced("one-contacts.txt", 'duration = "9 s"')
    scenario = scenario.model_copy(update={"contacts": scenario.contacts.model_copy(update={"file": path})})
    before = met(scenario)
    path.write_text("1.00 CONN 7 8 up\n9.00 CONN 7 8 down\n")
    assert met(scenario) == [("7", "8", 1.0, 9.0)] != before
    path.unlink()
    with pytest.raises(BadInput, match="cannot be read"):
        met(scenario)
