"""What the protocols really write: the full log adds up to the ledger, and folders give the runs back."""

from dataclasses import replace

import numpy as np
import pytest

from serai.field.engine.state import DROPS, TRANSFERS
from serai.field.log import OUTCOMES, FieldRun, Ledger
from serai.field.metrics import aggregate_full_log
from serai.lab import load_scenario, measure, read_run, simulate, write_run

SMALL = (
    "duration=20 min",
    "events.quiet=0 s",
    "sensors.count=40",
    "subscribers.count=6",
    "events.interval=30 s",
)
TIGHT = ("sensors.queue=3", "radio.rate=2", "events.lifetime=4 min")
CASES = {
    "dg": ("dg", ()),
    "dg tight": ("dg", TIGHT),
    "ced": ("ced", ()),
    "ced tight": ("ced", (*TIGHT, "protocol.alpha=1")),
    "cet": ("cet", ("protocol.gamma=30",)),
    "cet tight": ("cet", (*TIGHT, "protocol.gamma=30", "protocol.theta=9.999 J")),
    "dying": ("ced", ("sensors.battery=1 mJ",)),
    "receiving is free": ("cet", ("radio.receive_costs=false",)),
    "in metres": ("cet", ("radio.range=30 m", "protocol.gamma=20", "sensors.battery=20 mJ")),
    "in metres dg": ("dg", ("radio.range=30 m", "protocol.silent_while_pausing=true")),
    "long distances": ("ced", ("field.width=4 km", "field.height=4 km", "subscribers.speed_max=200 m/s")),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES.keys())
def run(request: pytest.FixtureRequest) -> FieldRun:
    name, changes = request.param
    return simulate(load_scenario(name, overrides=[*SMALL, *changes]), seed=3, full_log=True)


def test_full_log_adds_up_to_the_ledger(run):
    assert run.full is not None
    added_up = aggregate_full_log(run.full, run)
    assert len(run.full.transfers.event) > 100
    for name in Ledger._fields:
        one, other = getattr(run.ledger, name), getattr(added_up, name)
        np.testing.assert_array_equal(one, other, err_msg=name)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None), name


def test_folder_gives_the_run_back(run, tmp_path):
    again = read_run(write_run(run, tmp_path / "run"))
    assert again == run
    assert measure(again).as_dict() == measure(run).as_dict()


def test_ledger_alone_gives_the_same_metrics(run, tmp_path):
    """All but why pairs were lost, which only the full log tells."""
    ledger_only = measure(read_run(write_run(replace(run, full=None), tmp_path / "run"))).as_dict()
    for name, value in measure(run).as_dict().items():
        assert ledger_only[name] == (None if name.startswith("lost_") else value), name


def test_nodes_in_the_full_log_are_nodes(run):
    assert run.full is not None
    sensors, nodes = len(run.world.sensor_x), len(run.world.sensor_x) + len(run.world.low)
    transfers, drops, _ = run.full
    assert set(transfers.addressee) <= {-1, *range(sensors, nodes)}
    assert set(transfers.sender) | set(transfers.receiver) <= set(range(nodes))
    assert set(drops.node) <= set(range(sensors))
    to_subscriber = transfers.receiver >= sensors
    assert (transfers.receiver[to_subscriber] == transfers.addressee[to_subscriber]).all()


def test_what_was_watched_adds_up(run):
    """Control messages by kind, their energy by sensor, and sessions only while they could hear each other."""
    watched, ledger = run.full.watched, run.ledger
    kinds = np.array(list(ledger.control_messages))[watched.control.kind]
    for kind, count in ledger.control_messages.items():
        assert watched.control.messages[kinds == kind].sum() == count
    spent = np.zeros(len(ledger.sent), np.int64)
    np.add.at(spent, watched.spent.node, watched.spent.control_pj)
    assert spent.tolist() == ledger.control_pj.tolist()
    tables = run.tables
    assert tables["sessions"].num_rows == 0 or run.protocol != "dg"
    assert (tables["heads"].num_rows > 0) == (run.protocol == "cet")
    met = {(row["b"], row["a"]) for row in tables["contacts"].to_pylist()}
    community = dict(zip(*(tables["sensors"][name].to_pylist() for name in ("node", "community")), strict=True))
    groups = {(subscriber, community[sensor]) for subscriber, sensor in met}
    rows = tables["sessions"].to_pylist()
    assert {(row["subscriber"], community[row["member"]]) for row in rows} <= groups
    assert all(row["start_s"] < row["end_s"] <= run.scenario.duration_s for row in rows)


def test_every_kind_of_row_occurs():
    lossy = ("field", ("protocol.name=serai", "radio.loss=0.2"))  # there a receiver may carry for the addressee
    logs = [
        simulate(load_scenario(name, overrides=[*SMALL, *changes]), seed=3, full_log=True).full
        for name, changes in (*CASES.values(), lossy)
    ]
    assert {int(code) for log in logs if log for code in log.transfers.kind} == set(range(len(TRANSFERS)))
    assert {int(code) for log in logs if log for code in log.transfers.outcome} == set(range(len(OUTCOMES)))
    assert {int(code) for log in logs if log for code in log.drops.reason} == set(range(len(DROPS)))


def test_a_run_until_death(tmp_path):
    scenario = load_scenario("ced", overrides=[*SMALL, "sensors.battery=0.02 J"])
    run = simulate(scenario, seed=3, full_log=True, until_death=True)
    assert run.ledger.ended_s is not None
    metrics = measure(run, upper_bound=True)
    assert metrics.lifetime_days == run.ledger.ended_s / 86_400
    # The busiest battery was empty in that slot, give or take what a slot can take: the two agree.
    assert metrics.lifetime_events_only_days == pytest.approx(metrics.lifetime_days, rel=0.05)
    assert metrics.events < len(run.world.event_sensor)
    assert metrics.delivery_ratio <= metrics.upper_bound_community
    assert read_run(write_run(run, tmp_path / "run")) == run
