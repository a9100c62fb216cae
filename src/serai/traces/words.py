"""Large text files as words: chunks of a file cut at white space, words as numbers or as names, by the million.

A chunk ends at the end of a line, so memory follows the size of a chunk and not that of the file. Numbers are
those that Python would read, to the last bit: the few that need more than 53 bits on the way go through Python.
"""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.core.jit import kernel, rule
from serai.world.grid import Floats, Numbers

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]

CHUNK_BYTES = 1 << 23
_LONGEST_LINE = 1 << 28  # bytes
_GZIP = b"\x1f\x8b"
_ORDINARY, _SEPARATOR, _NEWLINE, _COMMENT = range(4)
_RARE = 0.05  # of the lines at most: else their number of columns is nothing odd
OTHER_COLUMNS = "more or fewer columns than nearly all lines: read all the same, as far as is needed"
_NO_NUMBER, _NUMBER, _LONG_NUMBER = range(3)  # the last: only Python reads it right
_POWERS = np.array([10.0**exponent for exponent in range(23)])  # those that a float holds exactly


class Words(NamedTuple):
    """A chunk of a file cut into words; those of line i are first[i] : first[i + 1]."""

    text: Bytes
    first_line: int  # its number in the file, from 1
    first: Numbers
    start: Numbers  # of each word, in the text
    end: Numbers

    @property
    def counts(self) -> Numbers:
        """How many words each line has."""
        return self.first[1:] - self.first[:-1]

    def line(self, place: int) -> str:
        """The words of a line, for a message."""
        begin, end = int(self.first[place]), int(self.first[place + 1])
        return " ".join(self.word(word) for word in range(begin, min(end, begin + 12)))

    def word(self, place: int) -> str:
        """One word as text; what is not UTF-8 becomes a question mark."""
        return bytes(self.text[self.start[place] : self.end[place]]).decode("utf-8", "replace")

    def numbers(self, places: Places) -> tuple[Floats, Flags]:
        """The words at these places as numbers, and which of them are numbers at all."""
        values, kinds = _read_numbers(self.text, self.start[places], self.end[places], _POWERS)
        for place in np.flatnonzero(kinds == _LONG_NUMBER).tolist():
            values[place] = float(self.word(int(places[place])))
        return values, (kinds != _NO_NUMBER) & np.isfinite(values)

    def are(self, places: Places, word: bytes) -> Flags:
        """Which of the words at these places are `word`."""
        return _are(self.text, self.start[places], self.end[places], np.frombuffer(word, np.uint8))

    def names(self, places: Places, book: dict[str, int]) -> Numbers:
        """The words at these places as numbers in `book`, which new names enter as they appear."""
        numbers, firsts = _number_names(self.text, self.start[places], self.end[places])
        entries = [book.setdefault(self.word(int(places[first])), len(book)) for first in firsts]
        return np.array(entries, np.int32)[numbers]


def lines_of(words: Words, fitting: Flags) -> tuple[Places, Places, Places]:
    """First word and number of each line that fits, and the numbers of the others that are not empty."""
    number = words.first_line + np.arange(fitting.size)
    return words.first[:-1][fitting].astype(np.int64), number[fitting], number[~fitting & (words.counts > 0)]


def unlike_most(words: Words, fitting: Flags) -> Flags:
    """Which of the lines that fit have more or fewer words than nearly all of them."""
    counts = words.counts[fitting]
    if counts.size <= 2:
        return np.zeros(counts.size, bool)
    odd: Flags = counts != np.bincount(counts).argmax()
    return odd if odd.sum() <= max(1, _RARE * counts.size) else np.zeros(counts.size, bool)


def chunks(path: Path, separators: bytes = b" \t\r", size: int = CHUNK_BYTES) -> Iterator[Words]:
    """A text file (plain or gzip), chunk by chunk, each cut into words; what follows a # is left out."""
    kinds = np.zeros(256, np.uint8)
    kinds[list(separators)] = _SEPARATOR
    kinds[ord("\n")], kinds[ord("#")] = _NEWLINE, _COMMENT
    line = 1
    for text in whole_lines(path, size):
        first, start, end = _cut(np.frombuffer(text, np.uint8).copy(), kinds)
        yield Words(np.frombuffer(text, np.uint8), line, first, start, end)
        line += first.size - 1


def whole_lines(path: Path, size: int) -> Iterator[bytes]:
    """The file in chunks of about `size` bytes, each of them whole lines."""
    rest = b""
    for block in blocks(path, size):
        if b"\0" in block:
            raise BadInput(f"{path}: not a text file")
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest += block
            if len(rest) > _LONGEST_LINE:
                raise BadInput(f"{path}: no end of a line in {_LONGEST_LINE >> 20} MiB; this is no text of lines")
            continue
        yield rest + block[:cut]
        rest = block[cut:]
    if rest:
        yield rest


def blocks(path: Path, size: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of a file, unpacked if it is gzip, without the mark that some programs begin a text with."""
    with failing_as_bad_input(path), opened(path) as file:
        block = file.read(size)
        if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise BadInput(f"{path}: a text in UTF-16; save it as UTF-8")
        block = block.removeprefix(codecs.BOM_UTF8) or file.read(size)
        while block:
            yield block
            block = file.read(size)


@contextmanager
def failing_as_bad_input(path: Path) -> Iterator[None]:
    """Around reading a file: every way to fail in one sentence."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path}: the gzip file is damaged or not whole: {error}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None


def opened(path: Path) -> BinaryIO:
    """The file, to be read in bytes; unpacked if it begins as gzip does, whatever it is called."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return gzip.open(path, "rb") if packed else path.open("rb")  # type: ignore[return-value]


@kernel
def _cut(text: Bytes, kinds: Bytes) -> tuple[Numbers, Numbers, Numbers]:
    """First word of each line (and one past the last), start and end of each word."""
    lines, words = 0, 0
    inside = False
    for byte in text:
        ordinary = kinds[byte] == _ORDINARY
        words += ordinary and not inside
        inside = ordinary
        lines += kinds[byte] == _NEWLINE
    if text.size > 0 and kinds[text[-1]] != _NEWLINE:
        lines += 1
    first = np.empty(lines + 1, np.int32)
    start, end = np.empty(words, np.int32), np.empty(words, np.int32)
    line, word, place = 0, 0, 0
    while line < lines:
        first[line] = word
        line += 1
        while place < text.size and kinds[text[place]] != _NEWLINE:
            if kinds[text[place]] == _COMMENT:
                while place < text.size and kinds[text[place]] != _NEWLINE:
                    place += 1
            elif kinds[text[place]] == _SEPARATOR:
                place += 1
            else:
                start[word] = place
                while place < text.size and kinds[text[place]] == _ORDINARY:
                    place += 1
                end[word] = place
                word += 1
        place += 1
    first[lines] = word
    return first, start[:word], end[:word]


@kernel
def _are(text: Bytes, start: Numbers, end: Numbers, wanted: Bytes) -> Flags:
    """Which of the words are the wanted one."""
    same = np.empty(start.size, np.bool_)
    for word in range(start.size):
        same[word] = end[word] - start[word] == wanted.size
        for offset in range(wanted.size if same[word] else 0):
            if text[start[word] + offset] != wanted[offset]:
                same[word] = False
                break
    return same


@kernel
def _read_numbers(text: Bytes, start: Numbers, end: Numbers, powers: Floats) -> tuple[Floats, Bytes]:
    """The words as numbers, and which are none or too long to be read here."""
    values, kinds = np.empty(start.size), np.empty(start.size, np.uint8)
    for word in range(start.size):
        values[word], kinds[word] = _number(text, start[word], end[word], powers)
    return values, kinds


@rule
def _number(text: Bytes, place: int, end: int, powers: Floats) -> tuple[float, int]:
    """A word as a number: digits, perhaps with sign, point and exponent; and whether it is one."""
    negative = place < end and text[place] == ord("-")
    if place < end and (negative or text[place] == ord("+")):
        place += 1
    place, digits, value = _digits(text, place, end, 0)
    decimals = 0
    if place < end and text[place] == ord("."):
        place, decimals, value = _digits(text, place + 1, end, value)
    if digits + decimals == 0:
        return 0.0, _NO_NUMBER
    exponent = 0
    if place < end and (text[place] == ord("e") or text[place] == ord("E")):
        place += 1
        below = place < end and text[place] == ord("-")
        if place < end and (below or text[place] == ord("+")):
            place += 1
        place, written, exponent = _digits(text, place, end, 0)
        if written == 0:
            return 0.0, _NO_NUMBER
        exponent = -exponent if below else exponent
    if place < end:
        return 0.0, _NO_NUMBER
    shift = exponent - decimals
    # A whole number below 2^53 and a power up to 10^22 are exact floats, so one operation rounds once.
    if value >= 9_007_199_254_740_992 or abs(shift) > 22:
        return 0.0, _LONG_NUMBER
    scaled = value * powers[shift] if shift >= 0 else value / powers[-shift]
    return -scaled if negative else scaled, _NUMBER


@rule
def _digits(text: Bytes, place: int, end: int, value: int) -> tuple[int, int, int]:
    """Read on at digits: where they end, how many there are, and `value` continued by them, as far as 18 or so."""
    count = 0
    while place < end and ord("0") <= text[place] <= ord("9"):
        if value < 900_000_000_000_000_000:
            value = value * 10 + (int(text[place]) - ord("0"))
        place += 1
        count += 1
    return place, count, value


@kernel
def _number_names(text: Bytes, start: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """Number the words by first appearance: the number of each, and where each number first stands.

    A hash table of words, compared letter by letter, so that two names never become one.
    """
    numbers = np.empty(start.size, np.int32)
    firsts = np.empty(256, np.int32)
    slots = np.full(512, -1, np.int32)
    count = 0
    for word in range(start.size):
        slot = _slot_of(text, start, end, word, slots, firsts)
        if slots[slot] < 0:
            if count == firsts.size:
                firsts = np.concatenate((firsts, firsts))
                slots = np.full(4 * firsts.size, -1, np.int32)
                for known in range(count):
                    slots[_slot_of(text, start, end, firsts[known], slots, firsts)] = known
                slot = _slot_of(text, start, end, word, slots, firsts)
            slots[slot] = count
            firsts[count] = word
            count += 1
        numbers[word] = slots[slot]
    return numbers, firsts[:count]


@rule
def _slot_of(text: Bytes, start: Numbers, end: Numbers, word: int, slots: Numbers, firsts: Numbers) -> int:
    """The slot of the table that a word is in, or is to be put in."""
    mixed = 0
    for place in range(start[word], end[word]):
        mixed = (mixed * 1_000_003 ^ int(text[place])) & 0xFFFFFFFF
    slot = (mixed ^ (mixed >> 15)) & (slots.size - 1)
    while slots[slot] >= 0 and not _same_word(text, start, end, word, firsts[slots[slot]]):
        slot = (slot + 1) & (slots.size - 1)
    return slot


@rule
def _same_word(text: Bytes, start: Numbers, end: Numbers, one: int, other: int) -> bool:
    """Whether two words have the same letters."""
    length = end[one] - start[one]
    same = end[other] - start[other] == length
    offset = 0
    while same and offset < length:
        same = text[start[one] + offset] == text[start[other] + offset]
        offset += 1
    return bool(same)
