"""GPX as devices write it, scanned by a compiled loop: four times as fast as a parser of XML.

What is read here is a part of XML: elements in each other, attributes in double quotes, texts without entities, in
UTF-8. All is checked; a file with anything else is left to the parser.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
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
    skip_white,
)
from serai.traces.words import Bytes, Places, Words, blocks, failing_as_bad_input
from serai.world.grid import Floats, Numbers

_MOST_BYTES = 1 << 30
_DEEPEST = 64  # elements in each other
_NO_LETTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")  # UTF-8 has them, XML has not
_LON, _LAT, _TIME = range(3)
_WORDS = np.frombuffer(b"lon\0\0\0\0\0lat\0\0\0\0\0", np.uint64)
_TRACK, _POINT, _TIMES, _NAME, _OTHER = range(5)  # elements
_ELEMENTS = np.frombuffer(b"trk\0\0trkpttime\0name\0", np.uint8).reshape(4, 5)
_ODD = -1
_IN_TEXTS = np.ones(256, np.uint8)  # 0: white; 1: only within an element; 2: not plain
_IN_TEXTS[:32], _IN_TEXTS[list(b"&]")] = 2, 2
_IN_TEXTS[list(b" \t\r\n")] = 0


class Gpx(NamedTuple):
    """What a GPX file says: a row for each point of a track, and the tracks' names."""

    track: Numbers  # by number, from 0; -1: the point stands in none
    times: Any  # texts
    lon: Floats
    lat: Floats
    line: Places
    names: list[str]
    lines: int


def scan_gpx(path: Path) -> Gpx | None:
    """What a file says; None: it is not written as plainly as this reader needs, or no well-formed XML."""
    data = _plain_text(path)
    if data is None:
        return None
    prolog = PROLOG.match(data)
    begin = prolog.end() if prolog else 0
    text = np.frombuffer(data, np.uint8)
    most = len(data) // len("<trkpt>") + 1  # memory that is not written to is not taken
    spans, track, place = np.zeros((3, 2, most), np.int32), np.empty(most, np.int32), np.empty(most, np.int64)
    names = np.zeros((len(data) // len("<trk>") + 1, 2), np.int32)
    rows, tracks = _scan(text, begin, spans, track, place, names)
    if rows == _ODD:
        return None
    ends = np.flatnonzero(text == ord("\n"))
    lon, lat = (_numbers(text, spans[which, :, :rows]) for which in (_LON, _LAT))
    called = [
        data[start:end].decode().replace("\r\n", "\n").strip() or str(number)  # as XML has ends of lines
        for number, (start, end) in enumerate(names[:tracks].tolist())
    ]
    times = _texts(text, spans[_TIME, :, :rows])
    return Gpx(track[:rows], times, lon, lat, 1 + np.searchsorted(ends, place[:rows]), called, 1 + len(ends))


def _plain_text(path: Path) -> bytes | None:
    """The whole file, if it is UTF-8 without letters that XML does not have."""
    with failing_as_bad_input(path):
        at_once = path.stat().st_size + 1
    parts, size = [], 0
    for block in blocks(path, min(at_once, _MOST_BYTES)):
        parts.append(block)
        size += len(block)
        if size > _MOST_BYTES:
            return None
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return None  # a line that ends so is one for the parser alone
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    return None if b"US-ASCII" in data[:100] or any(letter in data for letter in _NO_LETTERS) else data


def _numbers(text: Bytes, spans: Numbers) -> Floats:
    """Spans of a text as numbers; NaN where one is none."""
    words = Words(text, 1, np.zeros(1, np.int32), spans[0], spans[1])
    values, reads = words.numbers(np.arange(spans.shape[1]))
    return np.where(reads, values, np.nan)


def _texts(text: Bytes, spans: Numbers) -> Any:
    """Spans of a text as a column of texts."""
    begins, letters = _side_by_side(text, spans)
    array = pa.StringArray.from_buffers(spans.shape[1], pa.py_buffer(begins), pa.py_buffer(letters))
    return pa.chunked_array([array])


@kernel
def _side_by_side(text: Bytes, spans: Numbers) -> tuple[Numbers, Bytes]:
    """Spans of a text without what is between them: where each begins, and the letters."""
    begins = np.zeros(spans.shape[1] + 1, np.int32)
    for row in range(spans.shape[1]):
        begins[row + 1] = begins[row] + spans[1, row] - spans[0, row]
    letters = np.empty(begins[-1], np.uint8)
    for row in range(spans.shape[1]):
        for offset in range(spans[1, row] - spans[0, row]):
            letters[begins[row] + offset] = text[spans[0, row] + offset]
    return begins, letters


# ---- the compiled loop


@kernel
def _scan(
    text: Bytes, place: int, spans: Numbers, track: Numbers, point: NDArray[np.int64], names: Numbers
) -> tuple[int, int]:
    """Go through a file: how many points (`_ODD`: it is left to the parser) and tracks there are, and where."""
    seen, found = np.empty(MOST_ATTRIBUTES, np.int64), np.empty((2, 2), np.int64)
    stack = np.empty((_DEEPEST, 3), np.int64)  # of each open element: what it is, and where its name stands
    rows, tracks, depth, inside = 0, 0, 0, 0
    bare, is_over = False, False  # bare: there was nothing but text since an element began
    while True:
        begin = place
        place = end_of_text(text, place, depth > 0)
        if place < 0 or (place == text.size and not is_over):
            return _ODD, 0
        if place == text.size:
            return rows, tracks
        is_comment = is_at(text, place, OPEN_COMMENT)
        end = end_of_comment(text, place + 4) if is_comment else end_of_tag(text, place)
        if end < 0:
            return _ODD, 0
        is_end = not is_comment and text[place + 1] == ord("/")
        if is_end:
            if depth == 0 or not is_named_so(text, place + 2, end - 1, stack[depth - 1]):
                return _ODD, 0
        elif not is_comment:
            is_end = text[end - 2] == ord("/")
            last = end - 2 if is_end else end - 1
            name_end = end_of_name(text, place + 1, last)
            is_fine = name_end > place + 1 and attributes_are_fine(text, name_end, last, _WORDS, seen, found)
            if is_over or depth == _DEEPEST or not is_fine:
                return _ODD, 0
            stack[depth, 0] = element_of(text, place + 1, name_end)
            stack[depth, 1], stack[depth, 2] = place + 1, name_end
            if stack[depth, 0] == _TRACK:
                tracks, inside = tracks + 1, inside + 1
            elif stack[depth, 0] == _POINT:
                track[rows], point[rows] = tracks - 1 if inside > 0 else -1, place
                for which in range(2):
                    spans[which, 0, rows], spans[which, 1, rows] = found[which, 0], found[which, 1]
                rows += 1
            depth += 1
            begin, bare = end, True
        if is_end:
            depth -= 1
            kind, parent = stack[depth, 0], stack[depth - 1, 0] if depth > 0 else _OTHER
            inside -= kind == _TRACK
            is_over = depth == 0
            if kind == _TIMES and parent == _POINT:
                if not bare or not keep_time(text, begin, max(begin, place), spans[_TIME], rows - 1):
                    return _ODD, 0
            elif kind == _NAME and parent == _TRACK:
                if not bare or names[tracks - 1, 1] > 0:
                    return _ODD, 0
                names[tracks - 1, 0], names[tracks - 1, 1] = begin, max(begin, place)
        bare = bare and not is_end and not is_comment
        place = end


@rule
def end_of_text(text: Bytes, place: int, inside: bool) -> int:
    """Where a text ends; -1: there is something in it that is not plain, or is not white outside of all elements."""
    while place < text.size and text[place] != ord("<"):
        if _IN_TEXTS[text[place]] > inside:
            return -1
        place += 1
    return place


@rule
def is_named_so(text: Bytes, place: int, end: int, element: NDArray[np.int64]) -> bool:
    """Whether the name between two places, perhaps with white space behind it, is that of the element."""
    size = element[2] - element[1]
    if place + size > end:
        return False
    same = True
    for offset in range(size):
        same &= text[place + offset] == text[element[1] + offset]
    return same and skip_white(text, place + size)[0] == end


@rule
def element_of(text: Bytes, place: int, end: int) -> int:
    """Which element has this name, whatever stands before its colon."""
    for at in range(place, end):
        if text[at] == ord(":"):
            place = at + 1
    for kind in range(4):
        name = _ELEMENTS[kind]
        same = 0 < end - place <= name.size and (end - place == name.size or name[end - place] == 0)
        for offset in range(end - place if same else 0):
            same &= text[place + offset] == name[offset]
        if same:
            return kind
    return _OTHER


@rule
def keep_time(text: Bytes, begin: int, end: int, spans: Numbers, row: int) -> bool:
    """Note where a point's time stands, without white space around it; whether it is plain ASCII."""
    begin = min(skip_white(text, begin)[0], end)
    while end > begin and (text[end - 1] == 32 or text[end - 1] == 10 or text[end - 1] == 13 or text[end - 1] == 9):
        end -= 1
    is_plain = True
    for at in range(begin, end):
        is_plain &= (text[at] < 128) & (text[at] != 13)  # XML makes one line feed of CR LF
    spans[0, row], spans[1, row] = begin, end
    return is_plain
