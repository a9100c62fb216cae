"""Against an independent simulator: the contacts and messages of a run of The ONE, and what its report says."""

from pathlib import Path
from typing import Any

import pytest

from serai.lab import load_scenario, simulate
from serai.opportunistic.metrics import as_one_report, message_stats
from serai.opportunistic.simulation import medium_of
from tests.effort import THOROUGH
from tests.opportunistic.naive import run_slowly
from tests.opportunistic.test_twins import assert_same

EXCERPT = Path(__file__).parent / "one-rwp110"  # its first minute
WHOLE = Path(__file__).parents[3] / "shared" / "data" / "one-rwp110"
AS_THE_ONE = """
duration = "{duration}"
[contacts]
source = "trace"
file = "{contacts}"
[bundles]
file = "{messages}"
[nodes]
store = "5 MB"
[radio]
rate = "2 Mbps"         # The ONE's 250k are kilobytes
[protocol]
name = "{protocol}"
"""
ROUTERS = {
    "flooding": "EpidemicRouter",
    "spray": "SprayAndWaitRouter",
    "prophet": "ProphetRouter",
    "prophet2": "ProphetV2Router",
    "direct": "DirectDeliveryRouter",
    "first-contact": "FirstContactRouter",
}
NUMBERS = ("started", "relayed", "aborted", "delivered", "latency_avg", "hopcount_avg", "dropped")


def scenario_of(folder: Path, ending: str, duration: str, into: Path, protocol: str = "flooding") -> Any:
    """The set-up of settings.txt, in our words."""
    file = into / "one.toml"
    files = {name: folder / f"{name}.txt{ending}" for name in ("contacts", "messages")}
    file.write_text(AS_THE_ONE.format(duration=duration, protocol=protocol, **files))
    return load_scenario(str(file), like="the-one")


def reported(router: str) -> dict[str, float]:
    """What The ONE says of a run with the router."""
    lines = (WHOLE / "expected-routers.txt").read_text().splitlines()
    _, _, numbers = next(line for line in lines if line.startswith(router)).split("|")
    return dict(zip(NUMBERS, map(float, numbers.split()), strict=True))


@pytest.mark.skipif(not WHOLE.is_dir(), reason="the whole data is not part of the project")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("protocol", ["flooding", "spray", "prophet", "direct"])
def test_imports_do_what_the_one_does(protocol: str, seed: int, tmp_path: Path) -> None:
    expected = reported(ROUTERS[protocol])
    ours = message_stats(simulate(scenario_of(WHOLE, ".gz", "2 h", tmp_path, protocol), seed=seed, full_log=True))
    for name, within in (("relayed", 0.01), ("started", 0.01), ("delivered", 0.005), ("dropped", 0.002)):
        assert ours[name] == pytest.approx(expected[name], rel=within), name
    assert ours["latency_avg"] == pytest.approx(expected["latency_avg"], rel=0.03)
    assert ours["hopcount_avg"] == pytest.approx(expected["hopcount_avg"], rel=0.035)
    # Broken only where a birth lets nodes act between two ticks: few, so less certain.
    assert ours["aborted"] == pytest.approx(expected["aborted"], rel=0.1)
    if protocol == "flooding":
        assert ours["buffertime_avg"] == pytest.approx(513.4649, rel=0.005)


@pytest.mark.skipif(not WHOLE.is_dir(), reason="the whole data is not part of the project")
def test_first_contact_does_what_the_one_does(tmp_path: Path) -> None:
    """A single copy's way is drawn, in both: deliveries vary by 2 % from run to run, so several of ours count."""
    expected, scenario = reported("FirstContactRouter"), scenario_of(WHOLE, ".gz", "2 h", tmp_path, "first-contact")
    runs = [message_stats(simulate(scenario, seed=seed, full_log=True)) for seed in range(8)]
    relayed, delivered = ([run[name] for run in runs] for name in ("relayed", "delivered"))
    assert sum(relayed) / len(runs) == pytest.approx(expected["relayed"], rel=0.01)
    assert min(delivered) <= expected["delivered"] <= max(delivered)
    assert max(delivered) - min(delivered) < 0.1 * expected["delivered"]


@pytest.mark.skipif(not WHOLE.is_dir(), reason="the whole data is not part of the project")
def test_prophet2_does_what_the_one_does(tmp_path: Path) -> None:
    expected = reported(ROUTERS["prophet2"])
    ours = message_stats(simulate(scenario_of(WHOLE, ".gz", "2 h", tmp_path, "prophet2"), seed=0, full_log=True))
    for name, within in (("relayed", 0.01), ("started", 0.01), ("delivered", 0.01), ("dropped", 0.01)):
        assert ours[name] == pytest.approx(expected[name], rel=within), name
    assert ours["latency_avg"] == pytest.approx(expected["latency_avg"], rel=0.03)
    assert ours["hopcount_avg"] == pytest.approx(expected["hopcount_avg"], rel=0.035)


@pytest.mark.skipif(not WHOLE.is_dir(), reason="the whole data is not part of the project")
@pytest.mark.skipif(not THOROUGH, reason="it takes minutes: make test-all")
def test_maxprop_does_what_the_one_does(tmp_path: Path) -> None:
    expected = reported("MaxPropRouter")
    ours = message_stats(simulate(scenario_of(WHOLE, ".gz", "2 h", tmp_path, "maxprop"), seed=0, full_log=True))
    for name, within in (("relayed", 0.01), ("started", 0.01), ("delivered", 0.005)):
        assert ours[name] == pytest.approx(expected[name], rel=within), name
    assert ours["latency_avg"] == pytest.approx(expected["latency_avg"], rel=0.03)
    assert ours["hopcount_avg"] == pytest.approx(expected["hopcount_avg"], rel=0.035)


def test_the_first_seconds_by_objects_and_by_arrays(tmp_path: Path) -> None:
    scenario = scenario_of(EXCERPT, "", "12 s", tmp_path)
    run = simulate(scenario, seed=3, full_log=True)
    medium = medium_of(scenario, 3, True)
    slow = run_slowly(run.world, medium, scenario.protocol)
    assert run.outcome.transfers["relayed"] > 20
    assert_same(run.outcome, slow, medium, run.world)


def test_report_reads_as_the_ones(tmp_path: Path) -> None:
    run = simulate(scenario_of(EXCERPT, "", "1 min", tmp_path), full_log=True)
    report = as_one_report("excerpt", message_stats(run)).splitlines()
    assert report[:3] == ["Message stats for scenario excerpt", "sim_time: 60.0000", "created: 12"]
    assert "rtt_avg: NaN" in report
    if WHOLE.is_dir():
        theirs = (WHOLE / "expected.txt").read_text().splitlines()
        assert [line.split(":")[0] for line in report[1:]] == [line.split(":")[0] for line in theirs[1:]]
