"""From the stores of nodes to a run folder, and what the laboratory makes of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from serai.cli import execute
from serai.core.errors import BadInput
from serai.lab import measure, read_run, simulate_again
from serai.node.log import write_recorded
from serai.opportunistic.log import OpportunisticRun
from tests.effort import THOROUGH
from tests.node.joined import Machine, Net


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A sensor, a ferry and a reader, for a while from second 1000 on; `room/1` crosses, `hall` is wanted by nobody."""
    folder = tmp_path_factory.mktemp("field")
    net = Net()
    sensor, ferry, reader = machines = [Machine(name, folder, net) for name in ("sensor", "ferry", "reader")]
    for machine in machines:
        machine.perform(machine.node.started(1000.0))
    reader.subscribe("room/+", now_s=1000.0)
    sensor.publish("room/1", b"warm", 1001.0, lifetime_s=100.0)
    sensor.publish("hall", b"cold", 1002.0, lifetime_s=20.0)
    net.up(sensor, ferry, 1010.0)
    net.down(sensor, ferry, 1015.0)
    net.tick(1022.0)
    net.up(ferry, reader, 1030.0)
    net.tick(1035.0)
    net.down(ferry, reader, 1040.5)
    for machine in machines:
        machine.perform(machine.node.stop(1041.0))
    net.close()
    return [machine.path for machine in machines]


def test_a_run_of_the_field(stores: list[Path], tmp_path: Path) -> None:
    write_recorded(stores, tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert isinstance(run, OpportunisticRun)
    said = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (said["origin"], said["begin"], said["nodes_without_log"]) == ("field", "2000-01-01T00:16:40+00:00", [])
    assert run.names == ("ferry", "reader", "sensor")
    assert run.published.channels == ("hall", "room/1")
    assert [list(column) for column in run.world.contacts] == [[0, 0], [2, 1], [10.0, 30.0], [15.0, 40.5]]
    outcome = run.outcome
    assert (outcome.delivery_node.tolist(), outcome.delivery_s.tolist(), outcome.delivery_hops.tolist()) == (
        [1],
        [30.0],
        [2],
    )
    assert outcome.transfers == dict.fromkeys(outcome.transfers, 0) | {"relayed": 3}
    assert outcome.drops == {"expired": 2, "evicted": 0, "full": 0}  # "hall", at the sensor and on the ferry
    metrics = measure(run)
    assert (metrics.delivery_ratio, metrics.mean_delay_s) == (1.0, 29.0)
    size = run.world.bundles.size_bytes
    assert outcome.stored_byte_s[2] == pytest.approx(size[0] * 39.5 + size[1] * 20, rel=1e-12)
    assert outcome.peak_bytes.tolist() == [size.sum(), size[0], size.sum()]


def test_a_node_without_a_log_is_known_by_what_others_tell(stores: list[Path], tmp_path: Path) -> None:
    write_recorded(stores[1:], tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert isinstance(run, OpportunisticRun)
    said = json.loads((tmp_path / "run" / "run.json").read_text())
    assert said["nodes_without_log"] == ["sensor"]
    assert len(run.world.contacts.a) == 2
    assert run.outcome.transfers["relayed"] == 3
    assert len(run.outcome.delivery_s) == 1


def test_what_would_have_happened(stores: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    field = tmp_path / "run"
    assert execute(["node", "log", *map(str, stores), "--out", str(field)]) == 0
    again = simulate_again(field, "direct", full_log=True)
    assert measure(again).delivery_ratio == 0.0  # the sensor never meets the reader
    capsys.readouterr()
    assert execute(["run", str(field), "--protocol", "flooding", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["delivery_ratio"] == 1.0
    assert execute(["report", str(field)]) == 0


def test_what_is_no_log_is_refused_in_one_line(stores: list[Path], tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.db"
    nothing.write_bytes(b"no database at all, but long enough to have a header" * 10)
    for given, why in (
        ([*stores, stores[0]], "a second log of dtn://sensor/"),
        ([tmp_path / "none.db"], "there is no such store"),
        ([nothing], "file is not a database"),
    ):
        with pytest.raises(BadInput, match=why):
            write_recorded(given, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not THOROUGH, reason="starts Spark: make test-all")
def test_what_subscribers_brought_home(stores: list[Path], tmp_path: Path, spark: Any) -> None:
    from serai.matching.collect import collect

    write_recorded(stores, tmp_path / "runs" / "field")
    found = collect(spark, tmp_path / "runs", tmp_path / "collected")
    assert (found.deliveries, found.events, found.pairs, found.wanted, found.completeness) == (1, 1, 1, 1, 1.0)
