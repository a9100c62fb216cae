"""Telling subscribers: each pair at least once, under an id that stays the same, by which repeats are known.

A receiver's cursor says how far it has been told, batch and message; it moves when the receiver has said that it has
them. So a receiver that fails now and then is told more each time, and after a crash only the last few come twice.
"""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from serai.pipeline.brokers import publisher
from serai.pipeline.columns import OWN
from serai.pipeline.tables import Tables
from serai.spark.stores import Folder, Store

_PER_REQUEST: Final = 500
_WAIT_S: Final = 20.0
_TRIES: Final = 3
_PAUSE_S: Final = 0.2
_PAIRS: Final = 200_000  # that are looked up together
_NOT_TOLD: Final = (*OWN, "arrived", "day", "batch")


@dataclass(frozen=True)
class Cursor:
    """How far a receiver has been told: all batches up to `batch`, and so many messages of the next."""

    receiver: str
    batch: int = -1
    messages: int = 0
    order: str | None = None  # of the files that the messages are counted in
    tries: int = 0
    last_error: str | None = None


def cursor_of(home: Store, receiver: str) -> Cursor:
    """Where a receiver stands."""
    try:
        return Cursor(**json.loads(home.read(_place(receiver))))
    except FileNotFoundError:
        return Cursor(receiver)


def deliver(home: Store, tables: Tables, receiver: str) -> Cursor:
    """Tell a receiver of all that it has not been told of; a failure is noted, and tried again next time."""
    cursor = cursor_of(home, receiver)
    last = tables.last_batch()
    if last is None or cursor.batch >= last:
        return cursor
    try:
        with _way_to(receiver) as way:
            for batch in range(cursor.batch + 1, last + 1):
                for cursor in _tell(way, tables, batch, cursor):  # noqa: B020 - how far we are
                    _keep(home, cursor)
    except Exception as error:
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        cursor = replace(cursor, tries=cursor.tries + 1, last_error=said)
        _keep(home, cursor)
    return cursor


def _tell(way: Way, tables: Tables, batch: int, cursor: Cursor) -> Iterator[Cursor]:
    """Tell a receiver of a batch; where it stands after each part that it has."""
    order = _digest([fragment.path for fragment in tables.fragments("pairs", batch)])
    told = cursor.messages if cursor.order == order else 0  # the files were compacted meanwhile: from the beginning
    waiting = islice(messages(tables, batch), told, None)
    while some := list(islice(waiting, way.at_once)):
        _try(way, batch, told, some)
        told += len(some)
        yield Cursor(cursor.receiver, batch - 1, told, order)
    yield Cursor(cursor.receiver, batch)


def _try(way: Way, batch: int, first: int, some: list[dict[str, Any]]) -> None:
    """Tell of some messages, and try again after a moment if that fails."""
    for left in reversed(range(_TRIES)):
        try:
            way.tell(batch, first, some)
            return
        except Exception:
            if not left:
                raise
            time.sleep(_PAUSE_S)


def messages(tables: Tables, batch: int) -> Iterator[dict[str, Any]]:
    """What subscribers are told of a batch: the event with its attributes, and the subscription that wanted it.

    In the order of the files of the pairs; so many at once in memory as are looked up together.
    """
    for some in _gathered(tables.fragments("pairs", batch), batch):
        events = tables.read("events", batches=[batch], also=ds.field("event").isin(some["event"].unique()))
        if len(events) < pc.count_distinct(some["event"]).as_py():  # past days that were matched anew
            events = tables.read("events", also=ds.field("event").isin(some["event"].unique()))
        places = pc.index_in(some["event"], events["event"].combine_chunks())
        told = [name for name in events.column_names if name not in _NOT_TOLD]
        for begin in range(0, len(some), 10_000):
            rows = events.take(places.slice(begin, 10_000)).to_pylist()
            for row, subscription in zip(rows, some["subscription"].slice(begin, 10_000).to_pylist(), strict=True):
                yield {
                    "message": f"{row['event']}>{subscription}",
                    "subscription": subscription,
                    "event": row["event"],
                    "time": None if row["time"] is None else row["time"].isoformat(),
                    "attributes": {name: row[name] for name in told if row[name] is not None},
                }


def _gathered(fragments: Sequence[ds.Fragment], batch: int) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    count = 0
    for fragment in fragments:
        for found in fragment.to_batches(columns=["event", "subscription"], filter=ds.field("batch") == batch):
            for begin in range(0, len(found), _PAIRS):
                held.append(found.slice(begin, _PAIRS))
                count += len(held[-1])
                if count >= _PAIRS:
                    yield pa.Table.from_batches(held)
                    held, count = [], 0
    if count:
        yield pa.Table.from_batches(held)


# --- Ways to receivers


class Way(Protocol):
    """How a receiver is told."""

    at_once: int  # messages

    def tell(self, batch: int, first: int, some: list[dict[str, Any]]) -> None:
        """Tell of messages of a batch, from number `first` on; comes back when the receiver has them."""


@contextmanager
def _way_to(receiver: str) -> Iterator[Way]:
    if receiver.startswith("folder:"):
        yield _ToFolder(Folder(Path(receiver.removeprefix("folder:"))))
    elif receiver.startswith(("mqtt://", "mqtts://")):
        with publisher(receiver, _WAIT_S) as publish:
            yield _ToBroker(receiver, publish)
    else:
        yield _ToServer(receiver)


class _ToFolder:
    """A file of JSON lines for so many messages of a batch."""

    at_once = 10_000

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def tell(self, batch: int, first: int, some: list[dict[str, Any]]) -> None:
        """Write the file, whole; told again it is written again."""
        lines = "".join(_as_json(each) + "\n" for each in some)
        self.folder.write(f"batch-{batch:08}{f'-{first}' if first else ''}.jsonl", lines.encode())
        self.folder.sync()


class _ToServer:
    """A request for so many messages."""

    at_once = 500

    def __init__(self, address: str) -> None:
        self.address = address

    def tell(self, batch: int, first: int, some: list[dict[str, Any]]) -> None:
        """Send the request; whatever is not 2xx is no yes."""
        request = urllib.request.Request(self.address, _as_json(some).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=_WAIT_S):
            pass


class _ToBroker:
    """A message for each, to the topic of the address and the subscription."""

    at_once = 500

    def __init__(self, address: str, publish: Callable[[list[tuple[str, str]]], None]) -> None:
        self.topic, self.publish = urlsplit(address).path.strip("/") or "serai", publish

    def tell(self, batch: int, first: int, some: list[dict[str, Any]]) -> None:
        """Publish them; comes back when the broker has acknowledged all."""
        self.publish([(f"{self.topic}/{_level(each['subscription'])}", _as_json(each)) for each in some])


def _level(name: str) -> str:
    """A name as part of a topic, without the signs that stand for any."""
    return re.sub(r"[+#\0]", "_", name)


def _as_json(said: Any) -> str:
    return json.dumps(said, ensure_ascii=False, default=str)


# --- Cursors


def _digest(texts: Sequence[str]) -> str:
    return blake2b("\n".join(texts).encode(), digest_size=8).hexdigest()


def _place(receiver: str) -> str:
    return f"cursors/{_digest([receiver])}.json"


def _keep(home: Store, cursor: Cursor) -> None:
    home.write(_place(cursor.receiver), (json.dumps(asdict(cursor), indent=1) + "\n").encode())
