"""Tables that people bring, CSV or Parquet: columns of one kind each, and all that is wrong with them at once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from serai.core.conditions import Kind, microseconds
from serai.core.errors import BadInput
from serai.world.files import bad_file, csv_rows, read_text
from serai.world.grid import Floats

_FILES_KEPT = 4  # in memory, for the next seed
US_PER_S = 1e6
LARGEST_INTEGER = 2**53  # beyond it float64 skips integers
_A_DATE = re.compile(r"\s*\d{4}-\d{2}-\d{2}")
_A = {"real": "a number", "time": "a date", "boolean": "true or false", "text": "a text"}


class Column(NamedTuple):
    """The values of a column: numbers, times in seconds since 1970, 0 and 1 for false and true, or texts."""

    kind: Kind
    numbers: Floats  # NaN: missing; of texts empty
    texts: tuple[str | None, ...] = ()  # None: missing


class Table(NamedTuple):
    """A table and where its rows stand: "line" of a CSV file, or "row" of a Parquet file, from 1."""

    path: Path
    columns: dict[str, Column]
    rows: tuple[int, ...]
    called: str  # "line" or "row"
    problems: tuple[str, ...] = ()  # what is wrong in it, whatever it is about

    def place(self, row: int) -> str:
        """Where a row stands: "line 7"."""
        return f"{self.called} {self.rows[row]}"


def read_table(path: Path) -> Table:
    """The table of a file; read once for many seeds."""
    try:
        status = path.stat()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    return _read_once(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=_FILES_KEPT)
def _read_once(path: Path, changed_ns: int, size: int) -> Table:
    if path.suffix.lower() not in (".parquet", ".pq"):
        return _read_csv(path)
    from serai.recorded.parquet import read_parquet  # most scenarios name no file, and measuring them needs no Arrow

    return read_parquet(path)


def refuse(table: Table, problems: Sequence[str]) -> None:
    """Complain about a table, if there is something to complain about, from its first line to its last."""
    if problems:
        raise bad_file(table.path, sorted(problems, key=lambda one: int((re.findall(r"\d+", one) or ["0"])[0])))


def find_column(table: Table, names: Sequence[str], needed: bool = True) -> str | None:
    """Which of these columns the table has, the first that fits."""
    for name in names:
        for own in table.columns:
            if own.lower() == name:
                return own
    if not needed:
        return None
    others = f" (or {', '.join(names[1:])})" if names[1:] else ""
    raise BadInput(f"{table.path}: missing column {names[0]}{others}; it has: {', '.join(table.columns)}")


# ---- CSV


def _read_csv(path: Path) -> Table:
    lines = csv_rows(path, read_text(path))
    if len(lines) < 2:
        raise BadInput(f"{path}: {'no rows below the header' if lines else 'the file is empty'}")
    header = [cell.strip() for cell in lines[0][1]]
    if bad := sorted({name or "(no name)" for name in header if not name or header.count(name) > 1}):
        raise BadInput(f"{path}: column {', '.join(bad)} stands twice in the header, or has no name")
    problems = [
        f"line {line}: {len(cells)} values, but the header has {len(header)} columns"
        for line, cells in lines[1:]
        if len(cells) != len(header)
    ]
    rows = [(line, cells) for line, cells in lines[1:] if len(cells) == len(header)]
    places = tuple(line for line, _ in rows)
    columns = {
        name: _typed(name, [cells[at].strip() for _, cells in rows], places, problems) for at, name in enumerate(header)
    }
    return Table(path, columns, places, "line", tuple(problems))


def _typed(name: str, cells: list[str], lines: Sequence[int], problems: list[str]) -> Column:
    """A column of texts as what most of its cells are; cells that are something else are problems."""
    for kind, read in _READERS.items():
        found = [read(cell) if cell else math.nan for cell in cells]
        good = sum(bool(cell) and value is not None for cell, value in zip(cells, found, strict=True))
        if not good or 2 * good <= sum(map(bool, cells)):
            continue
        problems += [
            f'line {line}: {name}: "{cell}" is not {_A[kind]}, as most values of the column are'
            for line, cell, value in zip(lines, cells, found, strict=True)
            if value is None
        ]
        numbers = np.array([math.nan if value is None else value for value in found], np.float64)
        return Column(_whole_or_real(numbers) if kind == "real" else kind, numbers)
    return Column("text", np.empty(0), tuple(cell or None for cell in cells))


def _whole_or_real(numbers: Floats) -> Kind:
    """Whole numbers, if all of them are and float64 holds each."""
    given = numbers[~np.isnan(numbers)]
    return "integer" if bool(np.all(given == np.floor(given)) and np.all(np.abs(given) <= 2**53)) else "real"


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _moment(cell: str) -> float | None:
    if not _A_DATE.match(cell):
        return None
    try:
        return microseconds(datetime.fromisoformat(cell)) / US_PER_S
    except ValueError:
        return None


def _boolean(cell: str) -> float | None:
    return {"true": 1.0, "false": 0.0}.get(cell.lower())


_READERS: dict[Kind, Callable[[str], float | None]] = {"real": _number, "time": _moment, "boolean": _boolean}
