"""Ctrl-C ends the program soon, whatever it is doing: one line, exit code 130, nothing half-written.

Python raises KeyboardInterrupt only between two of its own instructions. Inside a kernel that may be minutes away, a
compiler may swallow it, and a Spark session takes its time to stop. Therefore a thread waits for the signal itself. It
lets the program leave by itself for a moment, which is the usual case, and ends it then. Kernels know nothing of this,
so that they are as fast as before.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

STOPPED: Final = 130
"""The exit code of a program that Ctrl-C has ended."""
_GRACE_S: Final = 1.2
_SHOW_CURSOR: Final = "\x1b[?25h\x1b[K"  # and clear what a line of progress has left

_unfinished: set[Path] = set()
_watching = threading.Event()
_asked = threading.Event()
_said = threading.Event()
_saying = threading.RLock()


def watch_for_ctrl_c() -> None:
    """From now on Ctrl-C ends this process within two seconds; to be called once, by the main thread."""
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL, None):
        return  # whoever started us wants it so: a shell does, of programs in the background
    _watching.set()
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.signal(signal.SIGINT, _interrupt)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_wait_for_ctrl_c, args=(heard,), name="ctrl-c", daemon=True).start()


def was_stopped() -> bool:
    """Whether Ctrl-C was pressed: whatever goes wrong afterwards is its doing."""
    return _asked.is_set()


def say_stopped() -> None:
    """Say so, once; what others have to say about it goes nowhere, and those that we have started are ended."""
    with _saying:  # who comes second waits: the process must not end before all this is done
        if _said.is_set():
            return
        _said.set()
        with suppress(OSError, ValueError):
            print(f"{_SHOW_CURSOR if sys.stderr.isatty() else ''}serai: stopped", file=sys.stderr, flush=True)
        if not _watching.is_set():
            return
        _asked.set()
        if not os.environ.get("SERAI_DEBUG"):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        # A JVM that is only just starting would complain of our going, and stay. One that runs has put its own handler
        # in place of ours: it ends its jobs, and goes when we do.
        for child in _children() if signal.getsignal(signal.SIGINT) is _interrupt else ():
            with suppress(OSError):
                os.kill(child, signal.SIGTERM)


@contextmanager
def removed_if_stopped(folder: Path) -> Iterator[None]:
    """While a folder is being written: if the program is ended, it goes too."""
    _unfinished.add(folder)
    try:
        yield
    finally:
        _unfinished.discard(folder)


def _children() -> list[int]:
    """The processes that this one has started; none where the system does not tell."""
    found = []
    for process in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = process.read_text(errors="replace").rpartition(")")[2].split()[1]
            found += [int(process.parent.name)] if int(parent) == os.getpid() else []
    return found


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """What Python does at Ctrl-C; but first those that we have started go, who might complain of what is cleaned up."""
    say_stopped()
    raise KeyboardInterrupt


def _wait_for_ctrl_c(heard: int) -> None:
    while os.read(heard, 1)[0] != signal.SIGINT:
        pass  # another signal, which ends nothing
    _asked.set()
    say_stopped()
    time.sleep(_GRACE_S)
    for folder in list(_unfinished):
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(STOPPED)
