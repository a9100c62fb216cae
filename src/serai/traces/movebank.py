"""Real animals: tables of positions as Movebank exports them (CSV with a header)."""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from serai.core.errors import BadInput
from serai.traces.columns import are, numbered, numbers_of, seconds_of
from serai.traces.tracks import Fixes, Recorded, TrackTrace, recorded_trace
from serai.traces.warnings import ParseWarnings
from serai.traces.words import CHUNK_BYTES, Flags, Places, whole_lines

_NEEDED = ("timestamp", "location-long", "location-lat")
_WHO = ("individual-local-identifier", "tag-local-identifier", "individual-id", "tag-id")
_IN_QUOTES = "a line inside quotation marks (is one missing?)"
_HIDING = {  # columns in which the owners mark rows that are not to be used, and how
    "visible": "false",
    "import-marked-outlier": "true",
    "manually-marked-outlier": "true",
    "algorithm-marked-outlier": "true",
}


def read_movebank(path: Path, strict: bool = False) -> TrackTrace:
    """The positions of a Movebank table: timestamp (UTC), location-long, location-lat and whose they are."""
    warnings = ParseWarnings(path, strict)
    table, line, lines = _rows(path, warnings)
    who = _column_of_names(path, table)
    time_s, dated = seconds_of(table["timestamp"])
    lon, lat = numbers_of(table["location-long"]), numbers_of(table["location-lat"])
    hidden, nobody = _hidden(table), are(table[who], "")
    blank = nobody & are(table["timestamp"], "")  # an empty line
    empty = (are(table["location-long"], "") | are(table["location-lat"], "")) & ~hidden & ~blank
    reads = dated & (np.abs(lon) <= 180) & (np.abs(lat) <= 90) & ~nobody
    warnings.left_out({"expected timestamp, longitude, latitude and a name": line[~(reads | empty | hidden | blank)]})
    warnings.decided("marked as an outlier, or not visible: left out", line[hidden])
    warnings.decided("no position in this row: left out", line[empty])
    node, book = numbered(table[who])
    fixes = Fixes(node, time_s, lon, lat, line).where(reads & ~hidden)
    return recorded_trace(Recorded("movebank", book, fixes, dates=True, degrees=True), lines, warnings)


def _column_of_names(path: Path, table: Any) -> str:
    """The column that says whose position it is; all that is missing is said at once."""
    who = next((column for column in _WHO if column in table.column_names), None)
    missing = [column for column in _NEEDED if column not in table.column_names] + ([] if who else [_WHO[0]])
    if who is None or missing:
        raise BadInput(f"{path}: missing column {', '.join(missing)}; is this a table of positions from Movebank?")
    return who


def _hidden(table: Any) -> Flags:
    """Which rows their owners have marked as not to be used."""
    hidden = np.zeros(table.num_rows, bool)
    for column, mark in _HIDING.items():
        if column in table.column_names:
            hidden |= are(table[column], mark)
    return hidden


def _rows(path: Path, warnings: ParseWarnings) -> tuple[Any, Places, int]:
    """The table as texts, its columns named as Movebank names them, the line of each row, how many lines there are."""
    file = _InUtf8(path)
    table, skipped, odd = _parsed(path, io.BufferedReader(file, CHUNK_BYTES))
    warnings.decided("not UTF-8: a question mark for each such letter", file.mended)
    warnings.left_out({"not as many values as the header has columns": odd})
    lines = 1 + table.num_rows + len(skipped)
    warnings.counted(f"{_IN_QUOTES}: part of the row in which the quotation begins", max(file.lines - lines, 0))
    has_row = np.ones(lines + 1, bool)
    has_row[[0, 1, *skipped]] = False
    return table, np.flatnonzero(has_row), lines


def _parsed(path: Path, file: io.BufferedReader) -> tuple[Any, list[int], list[int]]:
    """The table as texts, the lines that have no row in it, and those of them that are not empty."""
    skipped: list[int] = []
    odd: list[int] = []

    def skip(row: Any) -> str:
        skipped.append(row.number + 1)
        if row.text.strip():
            odd.append(row.number + 1)
        return "skip"

    parse = csv.ParseOptions(invalid_row_handler=skip, ignore_empty_lines=False)
    header = _header(file.readline())
    read = csv.ReadOptions(use_threads=False, column_names=header)  # with threads, rows have no numbers
    used = [column for column in header if column in (*_NEEDED, *_WHO, *_HIDING)]
    convert = csv.ConvertOptions(column_types=dict.fromkeys(used, pa.string()), include_columns=used)
    try:
        return csv.read_csv(file, read, parse, convert), skipped, odd
    except pa.ArrowInvalid as error:
        raise BadInput(f"{path}: cannot be read as CSV: {str(error).splitlines()[0]}") from None


class _InUtf8(io.RawIOBase):
    """A file in which a question mark stands for whatever is not UTF-8: a reader of CSV stumbles over that."""

    def __init__(self, path: Path) -> None:
        self.mended: list[int] = []  # lines
        self._chunks = whole_lines(path, CHUNK_BYTES)
        self.lines = 0  # so far
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the chunk at hand goes; how far that was."""
        if not self._rest:
            self._rest = memoryview(self._in_utf8(next(self._chunks, b"")))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _in_utf8(self, chunk: bytes) -> bytes:
        before, self.lines = self.lines, self.lines + chunk.count(b"\n") + bool(chunk and not chunk.endswith(b"\n"))
        try:
            if not chunk.isascii():
                chunk.decode()
        except UnicodeDecodeError:
            lines = chunk.split(b"\n")
            mended = [line.decode("utf-8", "replace").encode() for line in lines]
            pairs = enumerate(zip(lines, mended, strict=True), before + 1)
            self.mended += [number for number, (line, whole) in pairs if line != whole]
            return b"\n".join(mended)
        return chunk


def _header(line: bytes) -> list[str]:
    """The names of the columns as Movebank writes them; R has dots for the hyphens, others underscores."""
    cells = line.decode("utf-8-sig", "replace").strip().split(",")
    return [re.sub(r"[_.:\s]+", "-", cell.strip().strip('"').lower()) for cell in cells]
