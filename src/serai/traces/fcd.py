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
from serai.traces.words import CHUNK_BYTES, Bytes, Flags, Words, blocks
from serai.world.grid import Floats, Numbers

_BEFORE, _IN_ROOT, _IN_STEP, _AFTER, _NOWHERE = range(5)  # where in the file
_WHOLE, _CUT, _ODD = range(3)  # how the scan of a chunk ended: _CUT within something that the next one goes on with
_PLACE, _STATE, _LINE, _ROWS, _STEPS, _COMMENTS = range(6)  # of a scan's counters
_MOST_ATTRIBUTES = 64
_MOST_COMMENTS = 64
_LONGEST_PROLOG = 100  # bytes
_DEGREES = re.compile(rb'fcd-output\.geo\s+value="(true|1|yes|on|x)"')
_PROLOG = re.compile(
    rb'<\?xml version="1\.0"(?: encoding="(?:UTF-8|utf-8|US-ASCII)")?(?: standalone="(?:yes|no)")? *\?>'
)
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
            if len(head) >= _LONGEST_PROLOG:
                break
        prolog = _PROLOG.match(head)
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
    seen, found = np.empty(_MOST_ATTRIBUTES, np.int64), np.empty((4, 2), np.int64)
    counters[_ROWS] = counters[_STEPS] = counters[_COMMENTS] = 0
    place = 0
    while True:
        place, lines = skip_white(text, place)
        counters[_LINE] += lines
        counters[_PLACE] = place
        if place == text.size:
            return _WHOLE
        is_comment = is_at(text, place, _OPEN_COMMENT)
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
            if name_end == place + 1 or not attributes_are_fine(text, name_end, last, seen, found):
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


_OPEN_COMMENT = np.frombuffer(b"<!--", np.uint8)


@rule
def skip_white(text: Bytes, place: int) -> tuple[int, int]:
    """The first place from here on that is no white space, and how many lines end before it."""
    lines = 0
    while place < text.size and (text[place] == 32 or text[place] == 10 or text[place] == 13 or text[place] == 9):
        lines += text[place] == 10
        place += 1
    return place, lines


@rule
def lines_in(text: Bytes, place: int, end: int) -> int:
    """How many lines end between two places."""
    lines = 0
    for at in range(place, end):
        lines += text[at] == 10
    return lines


@rule
def is_at(text: Bytes, place: int, wanted: Bytes) -> bool:
    """Whether this stands here."""
    if place + wanted.size > text.size:
        return False
    same = True
    for offset in range(wanted.size):
        same &= text[place + offset] == wanted[offset]
    return same


@rule
def end_of_comment(text: Bytes, place: int) -> int:
    """Where a comment ends, -1: not in this text; -2: it is none, or not plain."""
    while place + 2 < text.size:
        if text[place] == ord("-") and text[place + 1] == ord("-"):
            return place + 3 if text[place + 2] == ord(">") else -2
        if text[place] >= 128 or (text[place] < 32 and text[place] not in (9, 10, 13)):
            return -2
        place += 1
    return -1


@rule
def end_of_tag(text: Bytes, place: int) -> int:
    """Where a tag ends, -1: not in this text; -2: there is something in it that is not plain."""
    quoted = False
    if text[place] != ord("<"):
        return -2
    at = place + 1
    while at < text.size:
        letter = text[at]
        if letter == ord('"'):
            quoted = not quoted
        elif letter == ord(">") and not quoted:
            return at + 1
        elif letter >= 128 or letter in (ord("<"), ord("&"), ord("'")):
            return -2
        if letter < 32 and (quoted or letter not in (9, 10, 13)):
            return -2
        at += 1
    return -1


@rule
def end_of_name(text: Bytes, place: int, end: int) -> int:
    """The first place from here on that does not belong to a name."""
    first = place
    while place < end and is_in_name(text[place], place == first):
        place += 1
    return place


@rule
def is_in_name(letter: int, first: bool) -> bool:
    """Whether a letter may stand in a name, or begin it."""
    if ord("a") <= letter <= ord("z") or ord("A") <= letter <= ord("Z") or letter == ord("_") or letter == ord(":"):
        return True
    return not first and (ord("0") <= letter <= ord("9") or letter == ord("-") or letter == ord("."))


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


@rule
def attributes_are_fine(text: Bytes, place: int, end: int, seen: NDArray[np.int64], found: NDArray[np.int64]) -> bool:
    """Whether a tag's attributes are as they should be, each once; `found`: where the values of id, x, y, time are."""
    found[:] = 0
    count = 0
    while True:
        begin = place
        place, _ = skip_white(text, place)
        if place == end:
            return True
        name = place
        place = end_of_name(text, place, end)
        if begin == name or place == name or place + 2 > end or text[place] != ord("=") or text[place + 1] != ord('"'):
            return False
        hashed, short = np.int64(0), np.uint64(0)
        for at in range(name, place):
            hashed = np.int64(hashed * 31 + text[at])
            short |= np.uint64(text[at]) << np.uint64(8 * min(at - name, 7))
        for before in range(count):
            if seen[before] == hashed:
                return False  # twice, or so it seems
        if count == seen.size:
            return False
        seen[count] = hashed
        count += 1
        value = place + 2
        place = value
        while place < end and text[place] != ord('"'):
            place += 1
        if place == end:
            return False
        for which in range(4):
            if short == _WORDS[which] and place > value:
                if text[value] == 32 or text[place - 1] == 32:
                    return False
                found[which, 0], found[which, 1] = value, place
        place += 1
