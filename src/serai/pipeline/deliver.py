"""Telling subscribers: each pair at least once, under an id that stays the same, by which repeats are known.

A receiver's cursor says up to which batch it has been told; it moves when the receiver has said that it has the batch.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow.compute as pc

from serai.core.errors import CannotRun
from serai.pipeline.readers import OWN
from serai.pipeline.tables import Tables

_PER_REQUEST: Final = 500
_WAIT_S: Final = 20.0


@dataclass(frozen=True)
class Cursor:
    """How far a receiver has been told."""

    receiver: str
    batch: int = -1
    tries: int = 0
    last_error: str | None = None


def cursor_of(home: Path, receiver: str) -> Cursor:
    """Where a receiver stands."""
    path = _place(home, receiver)
    return Cursor(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else Cursor(receiver)


def deliver(home: Path, tables: Tables, receiver: str) -> Cursor:
    """Tell a receiver of all batches that it has not been told of; a failure is noted, and tried again next time."""
    cursor = cursor_of(home, receiver)
    last = tables.last_batch()
    for batch in range(cursor.batch + 1, (-1 if last is None else last) + 1):
        try:
            _send(receiver, batch, list(messages(tables, batch)))
        except Exception as error:
            said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            cursor = Cursor(receiver, cursor.batch, cursor.tries + 1, said)
            _keep(home, cursor)
            return cursor
        cursor = Cursor(receiver, batch)
        _keep(home, cursor)
    return cursor


def messages(tables: Tables, batch: int) -> Iterator[dict[str, Any]]:
    """What subscribers are told of a batch: the event with its attributes, and the subscription that wanted it."""
    pairs = tables.read("pairs", batches=[batch]).sort_by([("subscription", "ascending"), ("event", "ascending")])
    if len(pairs) == 0:
        return
    events_of_batch = tables.read("events", batches=[batch])
    told = events_of_batch.filter(pc.is_in(events_of_batch["event"], pairs["event"].combine_chunks()))
    events = {row["event"]: row for row in told.to_pylist()}
    for pair in pairs.to_pylist():
        event = events[pair["event"]]
        yield {
            "message": f"{pair['event']}>{pair['subscription']}",
            "subscription": pair["subscription"],
            "event": pair["event"],
            "time": None if event["time"] is None else event["time"].isoformat(),
            "attributes": {name: value for name, value in event.items() if name not in OWN and value is not None},
        }


def _send(receiver: str, batch: int, told: list[dict[str, Any]]) -> None:
    if not told:
        return
    if receiver.startswith("folder:"):
        folder = Path(receiver.removeprefix("folder:"))
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(each, ensure_ascii=False, default=str) + "\n" for each in told)
        _replace(folder / f"batch-{batch:08}.jsonl", text)
    elif receiver.startswith("mqtt://"):
        _publish(receiver, told)
    else:
        for first in range(0, len(told), _PER_REQUEST):
            _post(receiver, told[first : first + _PER_REQUEST])


def _post(address: str, told: list[dict[str, Any]]) -> None:
    body = json.dumps(told, ensure_ascii=False, default=str).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=_WAIT_S):  # raises for whatever is not 2xx
        pass


def _publish(address: str, told: list[dict[str, Any]]) -> None:
    """One message a pair, to the topic of the address and the subscription; each waits for its acknowledgement."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    place = urlsplit(address)
    client = Client(CallbackAPIVersion.VERSION2)
    client.connect(place.hostname or "127.0.0.1", place.port or 1883)
    client.loop_start()
    try:
        topic = place.path.strip("/") or "serai"
        for each in told:
            payload = json.dumps(each, ensure_ascii=False, default=str)
            sent = client.publish(f"{topic}/{each['subscription']}", payload, qos=1)
            sent.wait_for_publish(_WAIT_S)
            if not sent.is_published():
                raise CannotRun(f"{address}: no acknowledgement within {_WAIT_S:g} s")
    finally:
        client.disconnect()
        client.loop_stop()


def _place(home: Path, receiver: str) -> Path:
    return home / "cursors" / f"{blake2b(receiver.encode(), digest_size=8).hexdigest()}.json"


def _keep(home: Path, cursor: Cursor) -> None:
    _replace(_place(home, cursor.receiver), json.dumps(asdict(cursor), indent=1) + "\n")


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
