"""How far a single run is: a line on a terminal that is gone when the run is over."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from serai.core.progress import share_done
from serai.core.stopping import was_stopped

_AFTER_S: Final = 2.0
_EVERY_S: Final = 0.5
_LEAST_SHARE: Final = 0.01  # before that nobody can say how long it will take
_CLEAR: Final = "\r\x1b[K"


@contextmanager
def shown_share(stream: TextIO | None = None) -> Iterator[None]:
    """Around a run: if it takes longer than a moment, say on a terminal how far it is."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(stream, over), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _show(stream: TextIO, over: threading.Event) -> None:
    begun_s = time.monotonic()
    wait_s = _AFTER_S
    while not over.wait(wait_s) and not was_stopped():
        stream.write(f"{_CLEAR} {told(share_done(), time.monotonic() - begun_s)}\r")
        stream.flush()
        wait_s = _EVERY_S
    if wait_s == _EVERY_S and not was_stopped():
        stream.write(_CLEAR)
        stream.flush()


def told(share: float | None, seconds: float) -> str:
    """How far a run is after so many seconds: its share, and what is left if it goes on as so far."""
    if share is None:
        return f"simulate   {seconds:.0f} s so far"
    if share < _LEAST_SHARE:
        return f"simulate   {100 * share:.1f} %, {seconds:.0f} s so far"
    return f"simulate   {100 * share:.0f} %, about {seconds * (1 - share) / share:.0f} s left"
