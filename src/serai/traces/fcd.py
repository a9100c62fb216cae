"""SUMO's floating car data as SUMO writes it, scanned by a compiled loop: five times as fast as a parser of XML.

What is read here is a part of XML: `<fcd-export>`, `<timestep time="...">` in it, and in these elements without
content; attributes in double quotes, plain ASCII. All is checked; a file with anything else is left to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel, rule
from serai.traces.tags import (
    MOST_ATTRIBUTES,
    OPEN_COMMENT,
    PROLOG,
    attributes_are_fine,
    end_of_comment,
    end_of_name,
    end_of_tag,
    is_at,
    lines_in,
    skip_white,
)
from serai.traces.words import CHUNK_BYTES, Bytes, Flags, Words, blocks
from serai.world.grid import Floats, Numbers

_BEFORE, _IN_ROOT, _IN_STEP, _AFTER, _NOWHERE = range(5)  # where in the file
_WHOLE, _CUT, _ODD = range(3)  # how the scan of a chunk ended: _CUT within something that the next one goes on with
_PLACE, _STATE, _LINE, _ROWS, _STEPS, _COMMENTS = range(6)  # of a scan's counters
_MOST_COMMENTS = 64
_LONGESTPROLOG = 100  # bytes
_DEGREES = re.compile(rb'fcd-output\.geo\s+value="(true|1|yes|on|x)"')
_ID, _X, _Y, _TIME = range(4)
_WORDS = np.frombuffer(b"id\0\0\0\0\0\0x\0\0\0\0\0\0\0y\0\0\0\0\0\0\0time\0\0\0\0", np.uint64)
_EXPORT, _TIMESTEP, _VEHICLE, _PERSON, _OTHER = range(5)
_ELEMENTS = np.zeros((4, 10), np.uint8)  # their names
_ELEMENTS[_EXPORT] = np.frombuffer(b"fcd-export", np.uint8)
_ELEMENTS[_TIMESTEP, :8] = np.frombuffer(b"timestep", np.uint8)
_ELEMENTS[_VEHICLE, :7] = np.frombuffer(b"vehicle", np.uint8)
_ELEMENTS[_PERSON, :6] = np.frombuffer(b"person", np.uint8)


class Recording(NamedTuple):
    """What a file of floating car data says: a row for each vehicle or person at each time."""

    node: Numbers
    named: Flags
    time_s: Floats
    x: Floats
    y: Floats
    line: NDArray[np.int64]


class Fcd(NamedTuple):
    """A whole file."""

    rows: Recording
    book: dict[str, int]
    degrees: bool
    lines: int


class _Odd(Exception):  # noqa: N818 - what happened
    """The file has something in it that is left to the parser."""


def scan_fcd(path: Path, chunk: int = CHUNK_BYTES) -> Fcd | None:
    """What a file says; None: it is not written as SUMO writes, or no well-formed XML."""
    scan = _Scan()
    try:
        parts = list(scan.parts(path, chunk))
    except _Odd:
        return None
    if not parts or scan.counters[_STATE] != _AFTER:
        return None
    rows = Recording(*map(np.concatenate, zip(*parts, strict=True)))
    return Fcd(rows, scan.book, scan.degrees, int(scan.counters[_LINE]))


class _Scan:
    """A scan from chunk to chunk."""

    def __init__(self) -> None:
        self.book: dict[str, int] = {}
        self.degrees = False
        self.counters = np.zeros(6, np.int64)
        self.counters[_LINE] = 1
        self.now_s = np.nan

    def parts(self, path: Path, chunk: int) -> Iterator[Recording]:
        """The rows of each chunk."""
        rest, more = b"", blocks(path, chunk)
        head = b""
        for block in more:
            head += block
            if len(head) >= _LONGESTPROLOG:
                break
        prolog = PROLOG.match(head)
        if prolog:
            self.counters[_LINE] += prolog[0].count(b"\n")
            head = head[prolog.end() :]
        for block in chain([head], more):
            data = rest + block
            if data.count(b"\r") != data.count(b"\r\n"):
                raise _Odd  # a line that ends so is one for the parser alone
            yield self.chunk(data)
            rest = data[self.counters[_PLACE] :]
            if len(rest) > CHUNK_BYTES:
                raise _Odd
        if rest.strip(b" \t\r\n"):
            raise _Odd  # the file ends within something
        self.counters[_LINE] += rest.count(b"\n")

    def chunk(self, data: bytes) -> Recording:
        """The rows of a chunk, as far as it is whole."""
        text = np.frombuffer(data, np.uint8)
        most = int(np.count_nonzero(text == ord("<")))
        spans, step, line = np.empty((4, 2, most), np.int32), np.empty(most, np.int32), np.empty(most, np.int64)
        comments = np.empty((_MOST_COMMENTS, 2), np.int32)
        if _scan(text, self.counters, spans, step, line, comments) == _ODD:
            raise _Odd
        rows, steps = int(self.counters[_ROWS]), int(self.counters[_STEPS])
        for begin, end in comments[: self.counters[_COMMENTS]].tolist():
            self.degrees |= _DEGREES.search(data, begin, end) is not None
        times, timed = _words(text, spans[_TIME], steps).numbers(np.arange(steps))
        times = np.append(np.where(timed, times, np.nan), self.now_s)  # the last one: that of the chunk before
        self.now_s = float(times[steps - 1])
        ids = _words(text, spans[_ID], rows)
        x, has_x = _words(text, spans[_X], rows).numbers(np.arange(rows))
        y, has_y = _words(text, spans[_Y], rows).numbers(np.arange(rows))
        return Recording(
            ids.names(np.arange(rows), self.book),
            ids.end > ids.start,
            times[step[:rows]],
            np.where(has_x, x, np.nan),
            np.where(has_y, y, np.nan),
            line[:rows].copy(),
        )


def _words(text: Bytes, spans: Numbers, count: int) -> Words:
    """Spans of a text as words."""
    return Words(text, 1, np.zeros(1, np.int32), spans[0, :count], spans[1, :count])


# ---- the compiled loop


@kernel
def _scan(
    text: Bytes,
    counters: NDArray[np.int64],
    spans: Numbers,
    step: Numbers,
    line: NDArray[np.int64],
    comments: Numbers,
) -> int:
    """Go through a chunk: `counters` say where it begins and ends, `spans` where ids, x, y and times stand.

    A row has the number of its timestep, -1 for that of the chunk before.
    """
    seen, found = np.empty(MOST_ATTRIBUTES, np.int64), np.empty((4, 2), np.int64)
    counters[_ROWS] = counters[_STEPS] = counters[_COMMENTS] = 0
    place = 0
    while True:
        place, lines = skip_white(text, place)
        counters[_LINE] += lines
        counters[_PLACE] = place
        if place == text.size:
            return _WHOLE
        is_comment = is_at(text, place, OPEN_COMMENT)
        end = end_of_comment(text, place + 4) if is_comment else end_of_tag(text, place)
        if end < 0:
            return _CUT if end == -1 else _ODD
        if is_comment:
            if counters[_COMMENTS] == comments.shape[0]:
                return _ODD
            comments[counters[_COMMENTS], 0], comments[counters[_COMMENTS], 1] = place, end
            counters[_COMMENTS] += 1
        elif text[place + 1] == ord("/"):
            counters[_STATE] = after_end_tag(text, place + 2, end - 1, counters[_STATE])
        else:
            is_closed = text[end - 2] == ord("/")
            last = end - 2 if is_closed else end - 1
            name_end = end_of_name(text, place + 1, last)
            if name_end == place + 1 or not attributes_are_fine(text, name_end, last, _WORDS, seen, found):
                return _ODD
            kind = element_of(text, place + 1, name_end)
            counters[_STATE] = after_begin_tag(kind, is_closed, counters[_STATE])
            if counters[_STATE] != _NOWHERE:
                note(kind, found, counters, spans, step, line)
        if counters[_STATE] == _NOWHERE:
            return _ODD
        counters[_LINE] += lines_in(text, place, end)
        place = end


@rule
def note(
    kind: int,
    found: NDArray[np.int64],
    counters: NDArray[np.int64],
    spans: Numbers,
    step: Numbers,
    line: NDArray[np.int64],
) -> None:
    """A row for a vehicle or a person, a time for a timestep."""
    rows, steps = counters[_ROWS], counters[_STEPS]
    if kind == _TIMESTEP:
        spans[_TIME, 0, steps], spans[_TIME, 1, steps] = found[_TIME, 0], found[_TIME, 1]
        counters[_STEPS] += 1
    elif kind in (_VEHICLE, _PERSON):
        for which in range(3):
            spans[which, 0, rows], spans[which, 1, rows] = found[which, 0], found[which, 1]
        step[rows], line[rows] = steps - 1, counters[_LINE]
        counters[_ROWS] += 1


@rule
def element_of(text: Bytes, place: int, end: int) -> int:
    """Which element has this name."""
    for kind in (_VEHICLE, _PERSON, _TIMESTEP, _EXPORT):
        name = _ELEMENTS[kind]
        same = end - place <= name.size and (end - place == name.size or name[end - place] == 0)
        for offset in range(end - place if same else 0):
            same &= text[place + offset] == name[offset]
        if same:
            return kind
    return _OTHER


@rule
def after_begin_tag(kind: int, is_closed: bool, state: int) -> int:
    """Where in the file a tag leads; _NOWHERE: it is not written so."""
    if kind == _EXPORT:
        return _IN_ROOT if state == _BEFORE and not is_closed else _NOWHERE
    if kind == _TIMESTEP:
        return _NOWHERE if state != _IN_ROOT else _IN_ROOT if is_closed else _IN_STEP
    return state if state == _IN_STEP and is_closed else _NOWHERE


@rule
def after_end_tag(text: Bytes, place: int, end: int, state: int) -> int:
    """Where in the file an end tag leads; _NOWHERE: it does not belong there."""
    kind = element_of(text, place, end)
    if kind == _TIMESTEP and state == _IN_STEP:
        return _IN_ROOT
    return _AFTER if kind == _EXPORT and state == _IN_ROOT else _NOWHERE
