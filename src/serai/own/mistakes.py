"""Mistakes of an author, told with file, line and the rule that was broken."""

from __future__ import annotations

import faulthandler
import inspect
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, Protocol

from serai.core.errors import BadInput
from serai.own.origins import Origin

_IN_C_S: Final = 30.0
"""CPU seconds after which a call that is in C, where no line of Python is reached, ends with its process."""


class Place(Protocol):
    """Something that knows where a run has come to."""

    def at(self) -> str:
        """The node whose turn it is, and the time."""


class Mistake(Exception):  # noqa: N818 - what happened, in the words of the author
    """A method gave an answer that it may not give."""

    def __init__(self, method: str, message: str, of: type | None = None) -> None:
        super().__init__(message)
        self.method, self.message, self.of = method, message, of


class Endless(BaseException):
    """A call takes too long; no `except Exception` of its author's catches this."""


@contextmanager
def no_endless_calls(origin: Origin) -> Iterator[None]:
    """Stop a call of the author's that takes more than two seconds of CPU."""
    if threading.current_thread() is not threading.main_thread():  # signals reach no other one
        yield
        return
    last: FrameType | None = None

    def beat(number: int, frame: FrameType | None) -> None:
        nonlocal last
        signal.setitimer(signal.ITIMER_PROF, _IN_C_S)
        call = _first_call(frame, origin)
        if call is not None and call is last:  # the very same call as a second ago
            raise Endless("this call takes more than two seconds; does it ever end?")
        last = call

    before = signal.signal(signal.SIGVTALRM, beat)
    # In C no beat is heard: then lines are written at once, by another signal's handler, which is in C itself.
    faulthandler.register(signal.SIGPROF, file=2, all_threads=False, chain=True)
    signal.setitimer(signal.ITIMER_PROF, _IN_C_S)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1.0, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.unregister(signal.SIGPROF)
        signal.signal(signal.SIGVTALRM, before)


def _first_call(frame: FrameType | None, origin: Origin) -> FrameType | None:
    """The call of the author's that the engine has made and that is not over yet."""
    found = None
    while frame is not None:
        if origin.wrote(frame.f_code.co_filename):
            found = frame
        frame = frame.f_back
    return found


@contextmanager
def told_with_place(cls: type, origin: Origin, state: Place) -> Iterator[None]:
    """Turn whatever goes wrong in what the author wrote into one sentence that says where.

    `state` knows whose turn it is, and the time.
    """
    try:
        yield
    except Mistake as mistake:
        whose = mistake.of or cls
        code = inspect.unwrap(getattr(whose, mistake.method)).__code__  # of visitors it may be the recorder's
        place = f"{code.co_filename}:{code.co_firstlineno}: {whose.__name__}.{mistake.method}"
        raise BadInput(f"{place}: {mistake.message} ({state.at()})") from None
    except (BadInput, Endless) as error:
        place = _place(error, cls, origin)
        raise BadInput(f"{place}: {error} ({state.at()})" if place else str(error)) from None
    except Exception as error:
        place = _place(error, cls, origin)
        if not place:
            raise  # not the author's doing
        raise BadInput(f"{place}: {type(error).__name__}: {error} ({state.at()})") from error


def _place(error: BaseException, cls: type, origin: Origin) -> str:
    """The last line of the author's that was being run, and in which method; empty: none was."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if origin.wrote(frame.filename)]
    return f"{frames[-1].filename}:{frames[-1].lineno}: {cls.__name__}.{frames[-1].name}" if frames else ""
