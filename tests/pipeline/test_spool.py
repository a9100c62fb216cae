"""Messages of a broker: what was acknowledged is on the disk, also if the broker or we go down."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from paho.mqtt.client import Client

from serai.core.errors import BadInput, CannotRun
from serai.pipeline.config import load_pipeline
from serai.pipeline.spool import Broker, _File, line_of, spool
from tests.pipeline.brokers import Mosquitto, field_with
from tests.pipeline.field import CONFIG, event, make_field, rows_of
from tests.pipeline.test_pipeline import once
from tests.spark.cluster import free_port, until


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with closing(Mosquitto(tmp_path / "broker")) as running:
        yield running


def messages(first: int, last: int) -> list[bytes]:
    return [json.dumps(event(1, seq)).encode() for seq in range(first, last)]


def test_the_broker_is_restarted_and_nothing_is_lost(tmp_path: Path, broker: Mosquitto) -> None:
    field = field_with(tmp_path / "field", broker)
    source = source_of(field)
    listening: list[str] = []
    stop = threading.Event()
    thread = threading.Thread(target=spool, args=(source, stop), kwargs={"say": listening.append}, daemon=True)
    thread.start()
    until(lambda: bool(listening), "it listens")
    broker.publish([*messages(1, 60), b"no JSON", json.dumps([event(2, 1), event(2, 2)]).encode()])
    broker.close()
    broker.start()
    broker.publish(messages(50, 120))  # some of them again
    until(lambda: seen(source.folder) >= 119 + 3, "all messages came")
    stop.set()
    thread.join(20)
    broker.publish(messages(120, 130))  # nobody listens: the broker keeps them for us
    status = once(field)
    assert rows_of(tmp_path / "field" / "home", "events", "event") == sorted(
        [(f"n1/1/{seq}",) for seq in range(1, 130)] + [("n2/1/1",), ("n2/1/2",)], key=str
    )
    assert (status.quarantined, status.rejected) == ((), 1)  # what was no JSON is not lost
    assert any("no JSON" in row for (row,) in rows_of(tmp_path / "field" / "home", "rejects", "row"))
    assert not list(source.folder.glob("*.jsonl"))  # it is in the tables


def source_of(field: Path) -> Broker:
    return next(iter(load_pipeline(field).brokers.values()))


def seen(folder: Path) -> int:
    lines = [line for path in folder.iterdir() if path.is_file() for line in path.read_text().splitlines()]
    return len(set(lines))


def test_what_was_not_acknowledged_comes_again(
    tmp_path: Path, broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = field_with(tmp_path / "field", broker)
    once(field)  # from now on the broker knows us
    broker.publish(messages(1, 11))
    with monkeypatch.context() as cut:  # the power goes after the sync, before the acknowledgement
        cut.setattr(Client, "ack", lambda *_: (_ for _ in ()).throw(RuntimeError("the power went")))
        with pytest.raises(RuntimeError):
            spool(source_of(field), threading.Event(), once=True)
    synced = seen(source_of(field).folder)  # before the first acknowledgement; how many is a matter of speed
    assert 1 <= synced <= 10
    broker.publish(messages(11, 13))
    status = once(field)
    assert (status.events, status.repeated) == (12, synced)
    broker.close()
    told: list[str] = []
    assert once(field, progress=_Says(told)).events == 12  # without the broker the rest goes on
    assert "cannot be reached" in told[0]
    broker.start()


class _Says:
    def __init__(self, told: list[str]) -> None:
        self.on_trouble: Callable[[str], None] = told.append
        self.on_batch = self.on_delivery = lambda *_: None


def test_what_a_crash_leaves_is_finished_without_the_line_that_was_cut(tmp_path: Path) -> None:
    (tmp_path / ".7.part").write_bytes(b'{"node": "a"}\n{"node": "b')
    (tmp_path / ".8.part").write_bytes(b"")
    file = _File(tmp_path, 1.0, lambda: 9e-6)
    assert [path.name for path in tmp_path.iterdir()] == ["7.jsonl"]
    assert (tmp_path / "7.jsonl").read_bytes() == b'{"node": "a"}\n'
    file.add(["one\n"])
    assert (tmp_path / ".9.part").read_text() == "one\n"
    file.finish()
    assert (tmp_path / "9.jsonl").exists()


def test_lines() -> None:
    assert line_of("t", b'{"node": "\xc3\xa9"}') == '{"topic": "t", "node": "é"}\n'
    assert line_of("t", b'[{"a": 1}, {"a": 2}]').count("\n") == 2
    for odd in (b"\xff", b"[]", b"3", b"[1]"):
        assert list(json.loads(line_of("t", odd))) == ["topic", "payload"]


def test_a_broker_that_is_away_and_bad_sources(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="cannot be reached"):
        spool(Broker(f"mqtt://127.0.0.1:{free_port()}", ("a",), tmp_path / "spool"), threading.Event(), once=True)
    for bad in ('broker = "gw"', 'broker = "mqtt://gw"', 'broker = "mqtt://gw", topics = ["a"], flush = "soon"'):
        text = CONFIG.replace('{kind = "folder", path = "inbox"}', f'{{kind = "mqtt", {bad}}}')
        with pytest.raises(BadInput, match="source"):
            load_pipeline(make_field(tmp_path / bad.replace("/", ""), text))
