"""From what the validator says to what the user reads: every problem at once, in words, with its place."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import takewhile
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from serai.core.errors import BadScenario, Problem
from serai.scenario.catalogue import Catalogue
from serai.scenario.locate import KeyPath, Place, Span, locate
from serai.scenario.section import Scenario, known_keys
from serai.scenario.wording import bad_protocol, dotted, in_words, unknown_key, value_at


class Sources:
    """Where the values of a scenario were written: in a file, or as changes on the command line."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.changes: dict[KeyPath, str] = {}  # how each changed key was written

    @cached_property
    def places(self) -> dict[KeyPath, Place]:
        """Where everything stands in the file; only worked out when there is a problem."""
        return locate(self.text)

    def has(self, path: KeyPath) -> bool:
        """Whether the user wrote a value for exactly this key."""
        return path in self.changes or path in self.places

    def problem(
        self, path: KeyPath, message: str, at_key: bool = False, part: tuple[int, int] | None = None
    ) -> Problem:
        """The problem of the value at `path` (or of its key, or of a part of its text), with its place."""
        written = self._change_of(path)
        if written is not None:
            return Problem(dotted(path), message, written)
        span = self._span(path, at_key, part)
        if span is None:
            return Problem(dotted(path), message, self.file)
        return self.problem_at(span.start, message, dotted(path), span.end - span.start)

    def problem_at(self, position: int, message: str, where: str = "", width: int = 1) -> Problem:
        """A problem at a position (from 0) of the file's text."""
        start = self.text.rfind("\n", 0, position) + 1
        line_text = self.text[start:].split("\n", 1)[0].rstrip("\r")
        source = "".join(char if char.isprintable() or char == "\t" else "�" for char in line_text)
        line = self.text.count("\n", 0, start) + 1
        width = max(1, min(width, len(source) - (position - start)))
        return Problem(where, message, self.file, line, position - start + 1, source, width)

    def _change_of(self, path: KeyPath) -> str | None:
        """How the value at `path` was changed, if it was, or brought into being by a change below it."""
        for changed, written in self.changes.items():
            if path[: len(changed)] == changed or (path not in self.places and changed[: len(path)] == path):
                return written
        return None

    def _span(self, path: KeyPath, at_key: bool, part: tuple[int, int] | None) -> Span | None:
        """The piece of the file to point at: what stands there, or else the table that it should stand in."""
        while path and path not in self.places:
            path = path[:-1]
        if not path:
            return None
        place = self.places[path]
        if at_key or place.value is None:
            return place.key
        written = self.text[slice(*place.value)]
        # Inside a text only if it is written as it reads: an escape would shift what follows.
        if part is None or "\\" in written or "\n" in written:
            return place.value
        quotes = 3 if written.startswith(('"""', "'''")) else 1
        start = place.value.start + quotes + part[0]
        return Span(start, start + part[1])


def validated(
    raw: Mapping[str, Any], sources: Sources, catalogue: Catalogue, found: Iterable[Problem] = ()
) -> Scenario:
    """The scenario that the TOML data says, or else a BadScenario with its problems and those already found.

    What is wrong in one value hides what is wrong between others. So what was found wrong is taken out and
    the rest is looked at again, until no more comes up.
    """
    problems = list(found)
    rest = copy.deepcopy(dict(raw))
    removed: set[KeyPath] = set()
    scenario = None
    while scenario is None:
        try:
            scenario = catalogue.described_by(rest).model_validate(rest, strict=True)
        except ValidationError as error:
            complaints = [_Complaint(details, rest, catalogue) for details in error.errors(include_url=False)]
            problems += [c.problem(sources) for c in complaints if not c.depends_on(removed)]
            taken_out = [_take_out(rest, c, removed) for c in complaints]
            if not any(taken_out):
                break
    if problems or scenario is None:
        raise BadScenario(sorted(dict.fromkeys(problems), key=_reading_order))
    return scenario


def _reading_order(problem: Problem) -> tuple[bool, int, int]:
    return problem.line is None, problem.line or 0, problem.column or 0


def _take_out(rest: dict[str, Any], complaint: _Complaint, removed: set[KeyPath]) -> bool:
    """Remove from the data what the complaint is about; whether there was anything to remove."""
    before = len(removed)
    for path in complaint.involved:
        path = tuple(takewhile(lambda part: isinstance(part, str), path))  # an array goes as a whole
        while complaint.kind != "violation" and path and not _is_in(rest, path):
            removed.add(path)  # a missing value: the table goes that it is missing from
            path = path[:-1]
        if path and _is_in(rest, path):
            removed.add(path)
            del value_at(rest, path[:-1])[path[-1]]
    return len(removed) > before


def _is_in(data: Mapping[str, Any], path: KeyPath) -> bool:
    table = value_at(data, path[:-1])
    return isinstance(table, dict) and path[-1] in table


class _Complaint:
    """One error of the validator, in terms of the TOML data it was about."""

    def __init__(self, details: ErrorDetails, data: Mapping[str, Any], catalogue: Catalogue) -> None:
        self.kind = details["type"]
        self.said = details["msg"]
        self.context: dict[str, Any] = details.get("ctx") or {}
        self.data = data
        self.catalogue = catalogue
        location = details["loc"]
        if location[0] == "protocol" and location[1:2] and location[1] in list(catalogue.protocols):
            location = (*location[:1], *location[2:])  # inside the settings the validator names their protocol, too
        self.path = self._written(location)
        conflicting = [tuple(key.split(".")) for key in self.context.get("keys", ())]
        table = location[: len(location) - len(conflicting[0])] if conflicting else ()
        self.involved = [self.path] + [self._written((*table, *keys)) for keys in conflicting[1:]]

    def _written(self, location: tuple[int | str, ...]) -> KeyPath:
        """The location as it is in the data, where a single value may stand for a list."""
        path: KeyPath = ()
        for part in location:
            inside = value_at(self.data, path)
            if isinstance(inside, list):
                path = (*path, int(part))
            elif inside is None or (isinstance(inside, dict) and isinstance(part, str)):
                path = (*path, part)
        return path

    def depends_on(self, removed: set[KeyPath]) -> bool:
        """Whether it may be only the consequence of a value that was taken out."""
        return any(path[: len(gone)] == gone or gone[: len(path)] == path for path in self.involved for gone in removed)

    def problem(self, sources: Sources) -> Problem:
        """What the user reads."""
        if self.kind == "violation":
            return self._violation(sources)
        if self.kind == "extra_forbidden":
            return sources.problem(self.path, unknown_key(self.path, self.data, self.catalogue), at_key=True)
        if self.path == ("protocol",):
            table = self.data["protocol"]
            path = ("protocol", "name") if isinstance(table, dict) else self.path
            return sources.problem(path, bad_protocol(table, self.catalogue))
        known = known_keys(self.catalogue.described_by(self.data))
        return sources.problem(self.path, in_words(self.kind, self.said, self.context, self.path, self.data, known))

    def _violation(self, sources: Sources) -> Problem:
        """Points at the first of the conflicting keys that the user wrote, rather than at a default."""
        shown = next((path for path in self.involved if sources.has(path)), self.path)
        offset, width = self.context["offset"], self.context["width"]
        part = (offset, width) if offset is not None and shown == self.path else None
        return sources.problem(shown, self.said, part=part)
