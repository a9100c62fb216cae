"""Who is at work with a store: one at a time, and nobody who died keeps others out."""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from uuid import uuid4

from serai.core.errors import CannotRun
from serai.spark.places import alone_in
from serai.spark.stores import Folder, Store

_LEASE: Final = "lease.json"
_BEAT_S: Final = 4.0
_SILENT_S: Final = 15.0


@contextmanager
def alone_at(store: Store) -> Iterator[None]:
    """While nobody else is at work with the store.

    A folder is locked. An object store has no locks: there a note is renewed every few seconds, and one that is not
    renewed any more counts for nothing, which takes a moment to find out. It is a courtesy: two that work at once in
    spite of it are told apart by the tables, whose commits only one of them can make.
    """
    if isinstance(store, Folder):
        store.path.mkdir(parents=True, exist_ok=True)
        with alone_in(store.path):
            store.clear_asides()
            try:
                yield
            finally:
                store.clear_asides()
        return
    _wait_for_silence(store)
    stop = threading.Event()
    own = {"who": uuid4().hex, "host": platform.node(), "process": os.getpid()}
    _renew(store, own)
    renewing = threading.Thread(target=_keep, args=(store, own, stop), name="lease", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        stop.set()
        renewing.join()
        with suppress(OSError):
            if (held := _held(store)) is not None and held["who"] == own["who"]:
                store.remove([_LEASE])
        store.clear_asides()


def _keep(store: Store, own: dict[str, Any], stop: threading.Event) -> None:
    while not stop.wait(_BEAT_S):
        with suppress(OSError):  # a store that is away for a while
            held = _held(store)
            if held is not None and held["who"] != own["who"]:
                return  # somebody took us for dead; what the tables have, they have once
            _renew(store, own)


def _renew(store: Store, own: dict[str, Any]) -> None:
    store.write(_LEASE, json.dumps(own | {"beat": uuid4().hex}).encode())


def _held(store: Store) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(store.read(_LEASE))
    except FileNotFoundError:
        return None
    return found


def _wait_for_silence(store: Store) -> None:
    """Come back when whoever held the lease is gone; refuse if somebody is at work."""
    before = _held(store)
    end = time.monotonic() + _SILENT_S
    while before is not None and not _is_dead(before) and time.monotonic() < end:
        time.sleep(1.0)
        now = _held(store)
        if now is None:
            return
        if now["beat"] != before["beat"]:
            raise CannotRun(
                f"{store}: another serai is at work with it, on {now['host']} (process {now['process']});"
                " wait for its end, or name another place"
            )


def _is_dead(held: dict[str, Any]) -> bool:
    """Whether it was a process of this machine, and is no more."""
    if held["host"] != platform.node():
        return False
    try:
        os.kill(held["process"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
