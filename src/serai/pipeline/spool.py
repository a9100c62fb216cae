"""Messages of a broker, made safe: written to a file, synced to the disk, and only then acknowledged.

MQTT cannot send again what was acknowledged. So a message waits for its acknowledgement until the disk has it. Files
grow under a hidden name, and get one that the pipeline sees when they are old or long enough; what a crash leaves
behind is finished by the next start. The broker keeps what comes meanwhile (QoS 1, a session that stays), and sends
again what was not acknowledged: repeats are left out like all others.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Final

from serai.core.errors import CannotRun
from serai.pipeline.brokers import client_for, connect
from serai.spark.places import alone_in

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

_LONGEST: Final = 10_000  # messages of a file
_TOGETHER_S: Final = 0.02  # messages that come within this time share a sync
_QUIET_S: Final = 1.0  # without a message for so long, a broker has told all that it kept
_CONNECT_S: Final = 20.0
_PART: Final = ".part"


@dataclass(frozen=True)
class Broker:
    """A broker as a source: what to listen to, and the folder for its messages."""

    address: str
    topics: tuple[str, ...]
    folder: Path
    flush_s: float = 5.0
    client: str | None = None

    @property
    def client_id(self) -> str:
        """The name by which the broker knows us again."""
        own = json.dumps([str(self.folder), self.address, self.topics])
        return self.client or f"serai-{blake2b(own.encode(), digest_size=6).hexdigest()}"


def spool(
    source: Broker,
    stop: threading.Event,
    once: bool = False,
    say: Callable[[str], None] = lambda words: None,
    now: Callable[[], float] = time.time,
) -> int:
    """Keep what a broker sends until told to stop, or with `once` until it has told all; how many messages."""
    source.folder.mkdir(parents=True, exist_ok=True)
    with alone_in(source.folder):
        file = _File(source.folder, source.flush_s, now)
        came: SimpleQueue[tuple[int, MQTTMessage]] = SimpleQueue()
        connections = _Connections(came, source)
        client = connections.client
        try:
            connections.connect(say)
            return _keep(source, client, connections, file, stop, once)
        finally:
            client.disconnect()
            client.loop_stop()
            file.finish()


def _keep(
    source: Broker, client: Client, connections: _Connections, file: _File, stop: threading.Event, once: bool
) -> int:
    count, heard_s = 0, time.monotonic()
    while not stop.is_set():
        messages = _together(connections.came)
        if messages:
            file.add([line_of(message.topic, bytes(message.payload)) for _, message in messages])
            for connection, message in messages:
                if connection == connections.number:  # what an earlier one sent comes again by itself
                    client.ack(message.mid, message.qos)
            count, heard_s = count + len(messages), time.monotonic()
        elif once and time.monotonic() - heard_s > _QUIET_S:
            break
        file.finish_if_old()
    return count


class _Connections:
    """The client; each time that it connects it counts one more, and says again what it wants."""

    def __init__(self, came: SimpleQueue[tuple[int, MQTTMessage]], source: Broker) -> None:
        self.came, self.number, self.source = came, 0, source
        self.ready = threading.Event()
        self.client = client_for(source.address, client_id=source.client_id, clean_session=False, manual_ack=True)
        self.client.reconnect_delay_set(1, 30)
        self.client.on_connect = self._connected
        self.client.on_message = lambda client, data, message: came.put((self.number, message))

    def connect(self, say: Callable[[str], None]) -> None:
        connect(self.client, self.source.address)
        self.client.loop_start()
        if not self.ready.wait(_CONNECT_S):
            raise CannotRun(f"{self.source.address}: the broker does not let us in; check its users and the address")
        say(f"{self.source.address}: listening to {', '.join(self.source.topics)}")

    def _connected(self, client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.number += 1
        if not reason.is_failure:
            client.subscribe([(topic, 1) for topic in self.source.topics])
            self.ready.set()


def _together(came: SimpleQueue[tuple[int, MQTTMessage]]) -> list[tuple[int, MQTTMessage]]:
    """Messages that come at about the same time; none if nothing comes."""
    found: list[tuple[int, MQTTMessage]] = []
    wait_s = 0.2
    while len(found) < _LONGEST:
        try:
            found.append(came.get(timeout=wait_s))
        except Empty:
            break
        wait_s = _TOGETHER_S
    return found


def line_of(topic: str, payload: bytes) -> str:
    """A message as lines of JSON: an object or several, each with its topic; what is none is kept as a text."""
    try:
        said = json.loads(payload)
    except ValueError:
        said = None
    rows = said if isinstance(said, list) else [said]
    if not rows or not all(isinstance(row, dict) for row in rows):
        rows = [{"payload": payload.decode("utf-8", "backslashreplace")}]
    return "".join(json.dumps({"topic": topic} | row, ensure_ascii=False) + "\n" for row in rows)


class _File:
    """The file that grows; finished, it has a name that the pipeline sees."""

    def __init__(self, folder: Path, flush_s: float, now: Callable[[], float]) -> None:
        self.folder, self.flush_s, self.now = folder, flush_s, now
        self.handle: IO[bytes] | None = None
        self.lines, self.since_s = 0, 0.0
        for left in sorted(folder.glob(f".*{_PART}")):  # of a crash
            whole = left.read_bytes()
            whole = whole[: whole.rfind(b"\n") + 1]  # a line that was cut short was not acknowledged
            left.write_bytes(whole)
            self._show(left)

    def add(self, lines: list[str]) -> None:
        """Write lines; afterwards the disk has them."""
        if self.handle is None:
            number = round(self.now() * 1e6)
            while (self.folder / f"{number}.jsonl").exists():  # a clock that was set back
                number += 1
            path = self.folder / f".{number}{_PART}"
            self.handle, self.lines, self.since_s = path.open("xb"), 0, time.monotonic()
            _sync_folder(self.folder)
        self.handle.write("".join(lines).encode())
        self.handle.flush()
        os.fsync(self.handle.fileno())
        self.lines += len(lines)

    def finish_if_old(self) -> None:
        """Show the file to the pipeline, if it is old or long enough."""
        if self.handle and (self.lines >= _LONGEST or time.monotonic() - self.since_s >= self.flush_s):
            self.finish()

    def finish(self) -> None:
        """Show the file to the pipeline."""
        if self.handle is not None:
            self.handle.close()
            self._show(Path(self.handle.name))
            self.handle = None

    def _show(self, part: Path) -> None:
        if part.stat().st_size:
            part.rename(part.with_name(f"{part.name[1 : -len(_PART)]}.jsonl"))
        else:
            part.unlink()
        _sync_folder(self.folder)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
