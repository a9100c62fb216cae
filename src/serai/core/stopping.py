"""Ctrl-C ends the program soon, whatever it is doing: one line, exit code 130, nothing half-written.

Python raises KeyboardInterrupt only between two of its own instructions. Inside a kernel that may be minutes away, a
compiler may swallow it, and a Spark session takes its time to stop. Therefore a thread waits for the signal itself. It
lets the program leave by itself for a moment, which is the usual case, and ends it then. Kernels know nothing of this,
so that they are as fast as before.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

STOPPED: Final = 130
"""The exit code of a program that Ctrl-C has ended."""
_GRACE_S: Final = 1.0
_SHOW_CURSOR: Final = "\x1b[?25h\x1b[K"  # and clear what a line of progress has left

_unfinished: set[Path] = set()
_hints: list[str] = []
_own_stderr: list[int] = []  # where ours goes while that of others is passed on
_watching = threading.Event()
_asked = threading.Event()
_said = threading.Event()
_saying = threading.RLock()


def watch_for_ctrl_c() -> None:
    """From now on Ctrl-C ends this process within two seconds; to be called once, by the main thread."""
    if _watching.is_set() or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL, None):
        return  # whoever started us wants it so: a shell does, of programs in the background
    atexit.register(_leave_as_stopped)  # registered before all others, so that it comes last
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
            if _own_stderr:
                os.dup2(_own_stderr[-1], 2)
            last = "; ".join(["serai: stopped", *_hints[-1:]])
            print(f"{_SHOW_CURSOR if sys.stderr.isatty() else ''}{last}", file=sys.stderr, flush=True)
        if not _watching.is_set():
            return
        _asked.set()
        if not os.environ.get("SERAI_DEBUG"):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        # A JVM that is only just starting would stay, and one that runs would go on with its jobs for a while.
        _send(signal.SIGTERM)


def _leave_as_stopped() -> None:
    """Leave with our exit code: Python puts its own in its place if Ctrl-C came while it ran a text as a program."""
    if _asked.is_set():
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(STOPPED)


@contextmanager
def heard_by_us() -> Iterator[None]:
    """While something is started that wants to hear Ctrl-C itself: afterwards we do, as before."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if _watching.is_set() and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def temporary_folder(prefix: str) -> Path:
    """A new folder for as long as this process runs; it goes with it, however Ctrl-C ends it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    _unfinished.add(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def removed_if_stopped(folder: Path) -> Iterator[None]:
    """While a folder is being written: if the program is ended, it goes too."""
    _unfinished.add(folder)
    try:
        yield
    finally:
        _unfinished.discard(folder)


@contextmanager
def resumable(hint: str) -> Iterator[None]:
    """While something is done that can be gone on with: the last line of a program that is stopped says how."""
    _hints.append(hint)
    try:
        yield
    finally:
        _hints.remove(hint)


@contextmanager
def passed_on_stderr() -> Iterator[None]:
    """What is started now writes its complaints to us; we pass them on, but for those about our being stopped."""
    if os.environ.get("SERAI_DEBUG") or not _watching.is_set():  # in a notebook they go where they went
        yield
        return
    sys.stderr.flush()
    heard, told = os.pipe()
    ours = os.dup(2)
    _own_stderr.append(ours)
    os.dup2(told, 2)
    os.close(told)
    threading.Thread(target=_pass_on, args=(heard, ours), name="stderr", daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        _own_stderr.remove(ours)
        if not _said.is_set():
            os.dup2(ours, 2)


def _pass_on(heard: int, ours: int) -> None:
    while said := os.read(heard, 1 << 16):
        if not _said.is_set():
            os.write(ours, said)


def _children(process: int) -> list[int]:
    """The processes that any thread of this one has started."""
    found: list[int] = []
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, listed.read_text().split())
    return found


def _send(number: int) -> None:
    """Send a signal to all that this process has started, and what they have started, where the system tells."""
    waiting = _children(os.getpid())
    while waiting:
        child = waiting.pop()
        waiting += _children(child)
        with suppress(OSError):
            os.kill(child, number)


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
    _send(signal.SIGKILL)
    for folder in list(_unfinished):
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(STOPPED)
