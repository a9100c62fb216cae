"""Mistakes of an author, told with file, line and the rule that was broken."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from serai.core.errors import BadInput


class Mistake(Exception):  # noqa: N818 - what happened, in the words of the author
    """A method gave an answer that it may not give."""

    def __init__(self, method: str, message: str) -> None:
        super().__init__(message)
        self.method, self.message = method, message


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
