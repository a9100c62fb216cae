"""Where in a TOML text each key and value stands: the parser of the standard library does not say.

The text has been read by `tomllib` before, so it is known to be valid; only its outline is followed here.
"""

from __future__ import annotations

import re
import tomllib
from typing import NamedTuple

KeyPath = tuple[str | int, ...]  # keys and, in arrays, positions: ("events", "attributes", "A1", "low")

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'''"""(?:[^\\]|\\.)*?""""{0,2} | \'\'\'.*?\'\'\''{0,2} | "(?:[^"\\]|\\.)*" | '[^']*' ''',
    re.VERBOSE | re.DOTALL,
)
_BARE_VALUE = re.compile(r"[^,\]}#\n]*")


class Span(NamedTuple):
    """A piece of the text, from `start` up to but without `end`."""

    start: int
    end: int


class Place(NamedTuple):
    """Where a key stands, and its value; a table has no value of its own."""

    key: Span
    value: Span | None


def locate(text: str) -> dict[KeyPath, Place]:
    """The place of every key, table and array element of a valid TOML text."""
    return _Outline(text).places


class _Outline:
    """Walks through the text once, statement by statement."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places: dict[KeyPath, Place] = {}
        self.lengths: dict[KeyPath, int] = {}  # of arrays of tables
        table: KeyPath = ()
        while self.skip(_BLANK) < len(text):
            if text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)

    def header(self) -> KeyPath:
        """`[table]` or `[[array of tables]]`: the path of what follows."""
        start, brackets = self.at, 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        path: KeyPath = ()
        for part, _ in self.key():
            path = (*self.last_element(path), part)
        self.at = self.text.index("]" * brackets, self.at) + brackets
        self.places.setdefault(path, Place(Span(start, self.at), None))
        if brackets == 2:
            self.lengths[path] = self.lengths.get(path, 0) + 1
        path = self.last_element(path)
        self.places.setdefault(path, Place(Span(start, self.at), None))
        return path

    def last_element(self, path: KeyPath) -> KeyPath:
        """The path itself, or its newest element if it is an array of tables."""
        return (*path, self.lengths[path] - 1) if path in self.lengths else path

    def pair(self, table: KeyPath) -> None:
        """`key = value`, where the key may be dotted."""
        path = table
        for part, span in self.key():
            path = (*path, part)
            self.places.setdefault(path, Place(span, None))
        self.at = self.text.index("=", self.at) + 1
        self.skip(_SPACE)
        self.places[path] = Place(self.places[path].key, self.value(path))

    def key(self) -> list[tuple[str, Span]]:
        """The parts of a dotted key."""
        parts = []
        while True:
            start = self.skip(_SPACE)
            quoted = self.text[start] in "\"'"
            self.skip(_STRING if quoted else _BARE_KEY)
            written = self.text[start : self.at]
            parts.append((_unquoted(written) if quoted else written, Span(start, self.at)))
            if self.text[self.skip(_SPACE)] != ".":
                return parts
            self.at += 1

    def value(self, path: KeyPath) -> Span:
        """Any value; what stands inside an array or an inline table is noted under its own path."""
        start = self.at
        opening = self.text[start]
        if opening == "[":
            self.array(path)
        elif opening == "{":
            self.inline_table(path)
        elif opening in "\"'":
            self.skip(_STRING)
        else:
            self.skip(_BARE_VALUE)
            self.at -= len(self.text[start : self.at]) - len(self.text[start : self.at].rstrip())
        return Span(start, self.at)

    def array(self, path: KeyPath) -> None:
        self.at += 1
        count = 0
        while self.text[self.skip(_BLANK)] != "]":
            span = self.value((*path, count))
            self.places[(*path, count)] = Place(span, span)
            count += 1
            self.skip_comma()
        self.at += 1

    def inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while self.text[self.skip(_BLANK)] != "}":
            self.pair(path)
            self.skip_comma()
        self.at += 1

    def skip_comma(self) -> None:
        if self.text[self.skip(_BLANK)] == ",":
            self.at += 1

    def skip(self, pattern: re.Pattern[str]) -> int:
        """Pass over what the pattern matches here; the position behind it."""
        found = pattern.match(self.text, self.at)
        assert found is not None, "the text is valid TOML"
        self.at = found.end()
        return self.at


def _unquoted(key: str) -> str:
    (name,) = tomllib.loads(f"{key} = 0")
    return name
