"""What nodes say of themselves: battery, room, losses, boots."""

from pathlib import Path

import pytest

from serai.node import schema
from serai.node.store import read_log
from tests.node.joined import Machine, Net
from tests.pipeline.field import CONFIG, event, make_field, put, rows_of
from tests.pipeline.test_pipeline import once

COLUMNS = "node", "battery", "free_bytes", "dropped", "boots", "firmware"
EARLY, LATE = "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"


def test_health_in_every_format_once_and_what_does_not_fit(tmp_path: Path) -> None:
    field = make_field(tmp_path, CONFIG.replace("quarantined = 1", "quarantined = 1, battery = 0.3"))
    inbox = tmp_path / "inbox"
    put(inbox, "a.csv", [{"node": "n1", "seen": EARLY, "battery": "0.9", "firmware": "1.10", "boots": "2"}])
    put(inbox, "b.jsonl", [
        {"node": "n1", "time": LATE, "battery": 0.2, "free_bytes": 1000, "boots": 3},
        {"node": "n2", "time": EARLY, "battery": "flat", "dropped": 7},
        {"node": "n3", "battery": 0.5},
    ])  # fmt: skip
    put(inbox, "c.parquet", [{"node": "n4", "seen": EARLY, "free_bytes": 5}])
    put(inbox, "d.sqlite", [{"node": "n5", "seen": EARLY, "dropped": 1}])
    put(inbox, "events.csv", [event(1, 1, battery=0.7)])  # an attribute like any other
    expected = [
        ("n1", 0.2, 1000, None, 3, None),
        ("n1", 0.9, None, None, 2, "1.10"),
        ("n2", None, None, 7, None, None),
        ("n4", None, 5, None, None, None),
        ("n5", None, None, 1, None, None),
    ]
    for _ in range(2):
        status = once(field)
        assert status.quarantined == ()
        assert status.events == 1
        assert rows_of(tmp_path / "home", "health", *COLUMNS) == expected
        put(inbox, "again.csv", [{"node": "n1", "seen": EARLY, "battery": "0.9", "firmware": "1.10", "boots": "2"}])
    assert rows_of(tmp_path / "home", "events", "battery") == [(0.7,)]
    assert rows_of(tmp_path / "home", "rejects", "file", "id", "reason")[:2] == [
        ("b.jsonl", "n2", 'battery: "flat" is no double'),
        ("b.jsonl", None, "no node, or no time in time"),
    ]
    assert [(each.node, each.battery, each.boots) for each in status.health][:2] == [("n1", 0.2, 3), ("n2", None, None)]
    assert "the battery of n1: 0.2" in status.alerts
    page = (tmp_path / "home" / "report.html").read_text()
    assert "<td>n1<td>2026-11-02 00:00<td class=number>0.2<td class=number>1,000" in page


def test_stores_of_live_nodes_tell_their_health(tmp_path: Path) -> None:
    field, net = make_field(tmp_path), Net()
    (tmp_path / "nodes").mkdir()
    sensor = Machine("sensor", tmp_path / "nodes", net)
    sensor.perform(sensor.node.started(1000.0))
    sensor.publish("room/1", b"warm", 1001.0, lifetime_s=100.0)
    net.close()
    (tmp_path / "inbox" / "sensor.db").write_bytes(sensor.path.read_bytes())
    (said,) = once(field).health
    most = next(row[5] for row in read_log(sensor.path).log if row[2] == schema.STARTED)
    assert (said.node, said.boots, said.dropped, said.battery) == ("sensor", 1, 0, None)
    assert most - 1000 < (said.free_bytes or 0) < most
    assert said.time == "2000-01-01T00:16:41+00:00"


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_log_without_numbers_that_is_none_of_health_is_quarantined(tmp_path: Path, name: str) -> None:
    field = make_field(tmp_path)
    put(tmp_path / "inbox", name, [{"node": "n1", "seen": EARLY, "temp": 1.0}])
    assert "no column seq" in once(field).quarantined[0]["reason"]
