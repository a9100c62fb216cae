"""Tags of XML in plain text, for the compiled loops that read GPX and SUMO's floating car data.

What they know is a part of XML: attributes in double quotes, names and attributes in plain ASCII, no entities. All is
checked; whatever is not so is left to a parser.
"""

import re

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import rule
from serai.traces.words import Bytes

MOST_ATTRIBUTES = 64
OPEN_COMMENT = np.frombuffer(b"<!--", np.uint8)
PROLOG = re.compile(
    rb'<\?xml version="1\.0"(?: encoding="(?:UTF-8|utf-8|US-ASCII)")?(?: standalone="(?:yes|no)")? *\?>'
)

# what a letter is in a tag: one look at a table is quicker than to ask after each
_PLAIN, _QUOTE, _END, _END_OF_LINE, _NOT_PLAIN = range(5)
_IN_TAGS = np.full(256, _NOT_PLAIN, np.uint8)
_IN_TAGS[32:128] = _PLAIN
_IN_TAGS[list(b"\t\r\n")] = _END_OF_LINE
_IN_TAGS[list(b"<&'")] = _NOT_PLAIN
_IN_TAGS[ord('"')], _IN_TAGS[ord(">")] = _QUOTE, _END
_IN_NAMES = np.zeros(256, np.uint8)  # 1: not as the first letter
_IN_NAMES[list(b"0123456789-.")] = 1
_IN_NAMES[list(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:")] = 2


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
        kind = _IN_TAGS[text[at]]
        if kind != _PLAIN:
            if kind == _QUOTE:
                quoted = not quoted
            elif kind == _END and not quoted:
                return at + 1
            elif kind == _NOT_PLAIN or (kind == _END_OF_LINE and quoted):
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
    return bool(_IN_NAMES[letter] > first)


@rule
def attributes_are_fine(
    text: Bytes, place: int, end: int, words: NDArray[np.uint64], seen: NDArray[np.int64], found: NDArray[np.int64]
) -> bool:
    """Whether a tag's attributes are as they should be, each once; `found`: where the values of those in `words` are.

    `words` are names of at most eight letters, each in one number; `seen` is room for `MOST_ATTRIBUTES`.
    """
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
        for which in range(words.size):
            if short == words[which] and place > value:
                if text[value] == 32 or text[place - 1] == 32:
                    return False
                found[which, 0], found[which, 1] = value, place
        place += 1
