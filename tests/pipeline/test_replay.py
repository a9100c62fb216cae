"""The closed loop: what networks recorded comes home, and is simulated again."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from serai.cli import execute
from serai.core.errors import BadInput
from serai.lab import load_scenario, measure, simulate, write_run
from serai.node.log import write_recorded
from serai.pipeline.config import load_pipeline
from serai.pipeline.replay import _apart, days_of, replay
from serai.pipeline.tables import Tables
from serai.spark.stores import Folder
from tests.node.joined import Machine, Net
from tests.pipeline.field import CONFIG, make_field, put
from tests.pipeline.test_pipeline import once

SMALL = ['duration="2 h"', "nodes.count=12", 'movement.width="500 m"', 'movement.height="500 m"']
TOLD = ("wanted_pairs", "delivered_pairs", "delivery_ratio", "mean_delay_s", "median_delay_s", "mean_hops")


@pytest.mark.parametrize(
    "more", [["nodes.sinks=5", 'nodes.carriers="others"'], ["subscriptions.where=A1 < 0.4", "events.cells=3"]]
)
def test_a_simulated_run_comes_back_with_its_metrics(tmp_path: Path, more: list[str]) -> None:
    """Its log through the pipeline: recorded deliveries give its metrics, and simulated again they are all the same."""
    run = simulate(load_scenario("dpsp", [*SMALL, *more]), seed=3)
    field = make_field(tmp_path)
    write_run(run, tmp_path / "inbox" / "week" / "run")
    status = once(field)
    assert (status.files, status.events, status.quarantined) == (1, len(run.world.bundles.source), ())
    assert once(field).batches == 1
    found = replay(load_pipeline(field))
    before, again, metrics = found.recorded.metrics, measure(found.simulated), measure(run)
    assert metrics.delivered_pairs > 5
    assert [getattr(before, name) for name in TOLD] == [getattr(metrics, name) for name in TOLD]
    assert again.as_dict() == metrics.as_dict()
    assert found.simulated.outcome.delivery_s.tolist() == run.outcome.delivery_s.tolist()


def test_the_command_says_what_another_protocol_would_have_delivered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = simulate(load_scenario("dpsp", SMALL), seed=1)
    field = make_field(tmp_path)
    write_run(run, tmp_path / "inbox" / "run")
    once(field)
    assert execute(["pipeline", "replay", str(field), "--protocol", "direct", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    expected = measure(simulate(load_scenario("dpsp", SMALL, "direct"), seed=1))
    assert said["simulated"]["delivered_pairs"] == expected.delivered_pairs < said["recorded"]["delivered_pairs"]
    assert said["recorded"]["delivered_pairs"] == measure(run).delivered_pairs
    assert execute(["pipeline", "replay", str(field), "--out", str(tmp_path / "again")]) == 0
    assert "recorded:" in capsys.readouterr().out
    assert execute(["pipeline", "replay", str(field), "--days", "yesterday"]) == 2
    assert "--days yesterday: write 2026-11-01..2026-11-07" in capsys.readouterr().err


def test_stores_of_live_nodes_are_logs_like_any_other(tmp_path: Path) -> None:
    """A sensor's event reaches a reader by a ferry; each store tells its part, some of it as others do, and again."""
    field, net = make_field(tmp_path), Net()
    (tmp_path / "nodes").mkdir()
    sensor, ferry, reader = machines = [
        Machine(name, tmp_path / "nodes", net) for name in ("sensor", "ferry", "reader")
    ]
    for machine in machines:
        machine.perform(machine.node.started(1000.0))
    reader.subscribe("room/+", now_s=1000.0)
    sensor.publish("room/1", b"warm", 1001.0, lifetime_s=100.0)
    net.up(sensor, ferry, 1010.0)
    net.down(sensor, ferry, 1015.0)
    net.up(ferry, reader, 1030.0)
    net.tick(1035.0)
    net.down(ferry, reader, 1040.5)
    net.close()
    for path in (ferry.path, reader.path):  # the sensor never comes home: others tell of its event
        shutil.copy(path, tmp_path / "inbox" / path.name)
        once(field)
    write_recorded([ferry.path, reader.path], tmp_path / "inbox" / "run")
    status = once(field)
    assert (status.quarantined, status.events, status.repeated) == ((), 1, 2)
    events = Tables(Folder(tmp_path / "home")).read("events").to_pylist()
    assert [(row["node"], row["channel"], row["carrier"]) for row in events] == [("sensor", "room/1", "ferry")]
    found = replay(load_pipeline(field), "flooding")
    told = found.recorded.metrics
    assert (told.wanted_pairs, told.delivered_pairs, told.mean_delay_s) == (1, 1, 29.0)
    assert measure(found.simulated).delivered_pairs == 1


def test_contacts_and_events_of_others_are_replayed(tmp_path: Path) -> None:
    """a meets b at 1 h, b meets c at 3 h: what a saw before 1 h reaches c by flooding, and not directly."""
    field = make_field(tmp_path, CONFIG)
    inbox = tmp_path / "inbox"
    (tmp_path / "subscriptions.csv").write_text(
        "subscription,subscriber,where\ncold,c,temperature < 5\nhot,c,temperature > 90\n"
    )
    seen = [("2026-11-01T00:30:00Z", 3.0), ("2026-11-01T00:40:00Z", 8.0), ("2026-11-01T02:00:00Z", 1.0)]
    put(inbox, "a.csv", [
        {"node": "a", "epoch": 1, "seq": number, "seen": time, "temp": warm} for number, (time, warm) in enumerate(seen)
    ])  # fmt: skip
    contacts = [
        ("a", "b", "2026-11-01T01:00:00Z", "2026-11-01T01:10:00Z"),
        ("c", "b", "2026-11-01T03:00:00Z", "2026-11-01T03:10:00Z"),
    ]
    put(inbox, "met.csv", [dict(zip(("a", "b", "start", "end"), row, strict=True)) for row in contacts])
    put(inbox, "met-again.jsonl", [dict(zip(("a", "b", "start", "end"), contacts[1], strict=True))])
    once(field)
    assert Tables(Folder(tmp_path / "home")).read("contacts").num_rows == 2  # told twice, there once
    flooded = replay(load_pipeline(field), "flooding")
    assert (measure(flooded.simulated).wanted_pairs, measure(flooded.simulated).delivered_pairs) == (2, 1)
    assert flooded.simulated.outcome.delivery_s.tolist() == pytest.approx([3 * 3600], abs=1)
    assert flooded.recorded is None
    assert measure(replay(load_pipeline(field), "direct").simulated).delivered_pairs == 0
    later = replay(load_pipeline(field), "flooding", "2026-11-02")
    assert measure(later.simulated).bundles == 0


def test_a_damaged_run_folder_is_quarantined_and_read_when_it_is_whole(tmp_path: Path) -> None:
    run = simulate(load_scenario("dpsp", SMALL), seed=1)
    field = make_field(tmp_path)
    place = tmp_path / "inbox" / "run"
    write_run(run, place)
    whole = (place / "events.parquet").read_bytes()
    (place / "events.parquet").write_bytes(whole[:-10])
    assert "events.parquet is damaged" in once(field).quarantined[0]["reason"]
    (place / "events.parquet").write_bytes(whole)
    assert once(field).events == pq.read_table(place / "events.parquet").num_rows


def test_without_contacts_or_subscribers_it_says_what_is_missing(tmp_path: Path) -> None:
    field = make_field(tmp_path)
    with pytest.raises(BadInput, match="run the pipeline first"):
        replay(load_pipeline(field))
    put(tmp_path / "inbox", "a.csv", [{"node": "a", "seq": 1, "seen": "2026-11-01"}])
    once(field)
    with pytest.raises(BadInput, match="no contacts in its tables"):
        replay(load_pipeline(field))
    put(tmp_path / "inbox", "m.csv", [{"a": "a", "b": "b", "start": "2026-11-01", "end": "2026-11-02"}])
    once(field)
    with pytest.raises(BadInput, match="no column subscriber"):
        replay(load_pipeline(field))


def test_days() -> None:
    assert days_of("2026-11-01..07") == days_of("2026-11-01..2026-11-07") != days_of("2026-11-01")
    assert days_of("2026-11-01").end_s - days_of("2026-11-01").begin_s == 86_400
    for wrong in ("2026-11-07..01", "..", "2026-11", "2026-11-01..x"):
        with pytest.raises(BadInput):
            days_of(wrong)


def test_contacts_that_touch_stay_two() -> None:
    assert _apart([(5, 6), (0, 2), (1, 3), (3, 4), (3.5, 3.7)]) == [(0, 3), (3, 4), (5, 6)]
