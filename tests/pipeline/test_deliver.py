"""Receivers that fail, come back, and are told all: by folder, HTTP and MQTT."""

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from deltalake import DeltaTable
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from tests.pipeline.field import CONFIG, event, make_field, put, rows_of
from tests.pipeline.test_pipeline import once, outbox
from tests.programs import program
from tests.spark.cluster import free_port, listens, until


def test_a_receiver_that_fails_is_told_again_with_the_same_ids(tmp_path: Path) -> None:
    got: list[str] = []
    calls = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            calls.append(1)
            if len(calls) % 3 == 1:
                self.send_error(500)
                return
            got.extend(each["message"] for each in told)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    field = make_field(tmp_path, CONFIG.replace('"folder:outbox"', f'"folder:outbox", "{address}"'))
    for number in range(3):
        put(tmp_path / "inbox", f"{number}.csv", [event(2, seq) for seq in range(5 * number, 5 * number + 5)])
        status = once(field)
        assert status.receivers[1].batch == (number if len(calls) % 3 != 1 else number - 1)
    once(field)
    server.shutdown()
    server.server_close()
    assert sorted(got) == sorted(outbox(tmp_path))


@pytest.mark.parametrize("every", [2, 3])
def test_a_receiver_that_fails_now_and_then_is_told_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Within a batch, too: it goes on after the last messages that the receiver took, and so comes to an end."""
    got: list[str] = []
    calls = [0]

    def tell(self, batch, first, some):
        calls[0] += 1
        if calls[0] % every == 0:
            got.extend(each["message"] for each in some[:1])  # it took some, and said that it did not
            raise OSError("no answer")
        got.extend(each["message"] for each in some)

    monkeypatch.setattr("serai.pipeline.deliver._ToServer.tell", tell)
    monkeypatch.setattr("serai.pipeline.deliver._ToServer.at_once", 2)
    monkeypatch.setattr("serai.pipeline.deliver._TRIES", 1)
    field = make_field(tmp_path, CONFIG.replace('"folder:outbox"', '"folder:outbox", "http://there/"'))
    put(tmp_path / "inbox", "a.csv", [event(2, seq, noise=9.0) for seq in range(20)])
    runs = 1
    while once(field).receivers[1].last_error:
        runs += 1
    assert 1 < runs < 30
    assert set(got) == set(outbox(tmp_path))
    assert len(got) - len(set(got)) == calls[0] // every


def test_messages_are_counted_anew_when_tables_were_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serai.pipeline.deliver._ToServer.at_once", 2)
    monkeypatch.setattr("serai.pipeline.deliver._TRIES", 1)
    told: list[list[str]] = []

    def tell(self, batch, first, some):
        if len(told) == 1:
            raise OSError("no answer")
        told.append([each["message"] for each in some])

    monkeypatch.setattr("serai.pipeline.deliver._ToServer.tell", tell)
    field = make_field(tmp_path, CONFIG.replace('"folder:outbox"', '"http://there/"'))
    for number in range(2):
        put(tmp_path / "inbox", f"{number}.csv", [event(2, 10 * number + seq, noise=9.0) for seq in range(10)])
        once(field)
    DeltaTable(tmp_path / "home" / "tables" / "pairs").optimize.compact()
    told.append([])
    assert once(field).receivers[0].last_error is None
    pairs = rows_of(tmp_path / "home", "pairs", "event", "subscription")
    assert {message for some in told[2:] for message in some} == {f"{one}>{other}" for one, other in pairs}


def test_subscribers_are_told_by_mqtt(tmp_path: Path) -> None:
    port = free_port()
    broker = subprocess.Popen([program("mosquitto"), "-p", str(port)], stderr=subprocess.DEVNULL)
    got: list[tuple[str, str]] = []
    client = Client(CallbackAPIVersion.VERSION2)
    client.on_message = lambda client, data, message: got.append(
        (message.topic, json.loads(message.payload)["message"])
    )
    try:
        until(lambda: listens(port), "the broker listens")
        client.connect("127.0.0.1", port)
        told = threading.Event()
        client.on_subscribe = lambda *_: told.set()
        client.loop_start()
        client.subscribe("field/#", qos=1)
        assert told.wait(20)
        field = make_field(
            tmp_path, CONFIG.replace('"folder:outbox"', f'"folder:outbox", "mqtt://127.0.0.1:{port}/field"')
        )
        put(tmp_path / "inbox", "a.csv", [event(2, seq) for seq in range(4)])
        status = once(field)
        assert (status.receivers[1].batch, status.receivers[1].last_error) == (0, None)
        until(lambda: len(got) >= len(outbox(tmp_path)), "all messages came")
    finally:
        client.loop_stop()
        broker.kill()
        broker.wait()
    assert sorted(message for _, message in got) == sorted(outbox(tmp_path))
    assert {topic for topic, _ in got} <= {"field/cold", "field/loud"}
    put(tmp_path / "inbox", "b.csv", [event(2, 9)])
    assert once(field).receivers[1].last_error is not None  # the broker is gone: it is told later
