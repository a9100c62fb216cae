"""Mistakes of an author, told with file, line and the rule that was broken."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from serai.core.errors import BadInput


class Mistake(Exception):  # noqa: N818 - what happened, in the words of the author
    """A method gave an answer that it may not give."""

    def __init__(self, method: str, message: str) -> None:
        super().__init__(message)
        self.method, self.message = method, message


@contextmanager
def no_endless_calls(steps: Callable[[], int]) -> Iterator[None]:
    """Stop a call of the author's that takes more than two seconds of CPU; `steps` counts what the engine has done."""
    if threading.current_thread() is not threading.main_thread():  # signals reach no other one
        yield
        return
    seen = [-1, -1]

    def beat(number: int, frame: FrameType | None) -> None:
        if seen[0] == seen[1] == steps():
            raise TimeoutError("this call takes more than two seconds; does it ever end?")
        seen[:] = [seen[1], steps()]

    before = signal.signal(signal.SIGVTALRM, beat)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1.0, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def told_with_place(router: type, file: str, state: Any) -> Iterator[None]:
    """Turn whatever goes wrong in the author's file into one sentence that says where.

    `state` knows the node whose turn it is and the time (`at()`).
    """
    try:
        yield
    except Mistake as mistake:
        line = getattr(router, mistake.method).__code__.co_firstlineno
        place = f"{file}:{line}: {router.__name__}.{mistake.method}"
        raise BadInput(f"{place}: {mistake.message} ({state.at()})") from None
    except BadInput as error:
        raise BadInput(f"{_place(error, router, file)}: {error} ({state.at()})") from None
    except Exception as error:
        place = _place(error, router, file)
        if not place:
            raise  # not the author's doing
        raise BadInput(f"{place}: {type(error).__name__}: {error} ({state.at()})") from error


def _place(error: BaseException, router: type, file: str) -> str:
    """The last line of the author's file that was being run, and in which method; empty: none was."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{file}:{frames[-1].lineno}: {router.__name__}.{frames[-1].name}" if frames else ""
