"""Every exception serai raises on purpose.

`str(error)` is the message for the user. A `BadInput` is the user's to mend: the command line prints it and
exits 2, without a traceback. Refusals inside a network (full, expired, duplicate) are values in the log,
never exceptions.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class SeraiError(Exception):
    """The base of all: catch this to catch whatever serai raises on purpose."""


class BadInput(SeraiError):  # noqa: N818 - what happened, in the words of the user
    """Something given by the user cannot be used; the message says what, where and what is allowed."""


class CannotRun(SeraiError):  # noqa: N818 - what happened, in the words of the user
    """This machine or cluster cannot do the work now; the message says why, and what to do about it."""


class PeerError(SeraiError):
    """A neighbour or a client of a live node sent what a standard or a limit forbids; `reason` is the code for it."""

    def __init__(self, message: str, reason: int = 0) -> None:
        self.reason = reason
        super().__init__(message)

    def __reduce__(self) -> tuple[type[PeerError], tuple[str, int]]:
        return type(self), (str(self), self.reason)


def bug_message(error: Exception) -> str:
    """What to tell whoever meets an error that was not raised on purpose."""
    return (
        f"serai: this is a bug in serai, not in your input: {type(error).__name__}: {error}\n"
        "Please report it with the command and the output of `serai doctor`; SERAI_DEBUG=1 shows more."
    )


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a scenario: the dotted key, what is wrong with it, and where that was written."""

    where: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    source: str | None = None
    width: int = 1

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        if self.file is None:
            return text
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        text += f"  --> {place}"
        if self.source is None or self.column is None:
            return text
        return f"{text}\n{caret_under(self.source, self.column - 1, self.width, margin='    ')}"


class BadScenario(BadInput):
    """A scenario that cannot be run, with all of its problems at once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[BadScenario], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


class BadSubscription(BadInput):
    """A subscription text that cannot be read: where (`position`, from 0) and what was `expected` there."""

    def __init__(self, text: str, position: int, message: str, expected: str, width: int = 1) -> None:
        self.text = text
        self.position = position
        self.message = message  # on one line, without the text and its caret
        self.expected = expected
        self.width = width
        super().__init__(f"{message}\n{caret_under(text, position, width, margin='    ')}")

    def __reduce__(self) -> tuple[type[BadSubscription], tuple[str, int, str, str, int]]:
        return type(self), (self.text, self.position, self.message, self.expected, self.width)


def caret_under(source: str, position: int, width: int = 1, margin: str = "") -> str:
    """The line of `source` that holds `position` (from 0), and below it carets under `width` characters."""
    start = source.rfind("\n", 0, position) + 1
    end = source.find("\n", position)
    line = source[start : len(source) if end < 0 else end]
    offset = position - start
    # Tabs are kept in the lead so that the caret stands right however wide the terminal draws them.
    lead = "".join("\t" if character == "\t" else " " for character in line[:offset])
    carets = "^" * max(1, min(width, len(line) - offset))
    return f"{margin}{line}\n{margin}{lead}{carets}"


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed name that `word` was probably meant to be; None if none is near."""
    likeness = {name: _likeness(word.lower(), name.lower()) for name in allowed}
    best = max(likeness, key=lambda name: likeness[name], default=None)
    return best if best is not None and likeness[best] >= 0.6 else None


def _likeness(word: str, name: str) -> float:
    ratio = difflib.SequenceMatcher(None, word, name).ratio()
    # Letters that have only changed places are the commonest slip: "cde" is "ced" rather than "cet".
    return max(ratio, 0.9) if sorted(word) == sorted(name) else ratio


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """The end of a message about an unknown `word`: the nearest allowed name, or else all of them."""
    names = list(allowed)
    found = nearest(word, names)
    return f'did you mean "{found}"?' if found else f"one of: {', '.join(names)}"
