"""Parquet files that the workers read and write by themselves: only names and counts go through Spark.

Handing 10^7 events to Python through the JVM takes several times as long as matching them. The files must be visible
to every worker under the same path, as Spark itself asks of local files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from serai.core.errors import BadInput

Piece = tuple[str, int]  # file and row group
Rows = NDArray[np.int64]
_NO_ROWS: Rows = np.empty(0, np.int64)
ROWS_PER_TASK = 2_500_000  # about a second of work: starting a task takes some 0.07 s


@dataclass(frozen=True)
class ParquetFiles:
    """Some Parquet files with the same columns, and their row groups."""

    paths: tuple[str, ...]
    schema: pa.Schema
    pieces: tuple[Piece, ...]
    piece_rows: tuple[int, ...]

    @property
    def rows(self) -> int:
        """How many rows the files have."""
        return sum(self.piece_rows)

    def tasks(self, at_least: int) -> list[list[Piece]]:
        """The row groups shared out to tasks of about the same size, `at_least` so many if there are enough."""
        wanted = max(1, at_least, -(-self.rows // ROWS_PER_TASK))
        share = self.rows / wanted
        tasks: dict[int, list[Piece]] = {}
        before = 0
        for piece, rows in zip(self.pieces, self.piece_rows, strict=True):
            middle = before + rows / 2
            tasks.setdefault(int(middle / share) if share else 0, []).append(piece)
            before += rows
        return list(tasks.values())


def parquet_files(path: str | Path) -> ParquetFiles | None:
    """The Parquet files at a path, a file or a folder; None if only Spark can say what is there."""
    place = str(path).removeprefix("file://")
    if "://" in place:
        return None
    paths = _files_at(Path(place))
    if any("=" in part for found in paths for part in found.relative_to(place).parts):
        return None  # columns in the names of folders
    if not paths:
        raise BadInput(f"{path}: no Parquet file in this folder")
    return these_files(paths)


def these_files(paths: Sequence[Path]) -> ParquetFiles:
    """Some Parquet files, which must have the same columns."""
    schema: pa.Schema | None = None
    pieces, rows = [], []
    for found in paths:
        footer = _footer(found)
        mine = footer.schema.to_arrow_schema().remove_metadata()
        if schema is not None and not mine.equals(schema):
            raise BadInput(f"{found}: other columns than in {paths[0].name}; {_difference(schema, mine)}")
        schema = mine
        for group in range(footer.num_row_groups):
            pieces.append((str(found.absolute()), group))
            rows.append(footer.row_group(group).num_rows)
    assert schema is not None
    return ParquetFiles(tuple(str(found.absolute()) for found in paths), schema, tuple(pieces), tuple(rows))


def _files_at(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise BadInput(f"{place}: no such file or folder")
    found = []
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        found += [Path(folder) / name for name in sorted(names) if name[0] not in "._"]
    return found


def _footer(path: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"{path}: not a Parquet file that can be read ({str(error).splitlines()[0]})") from error


def _difference(one: pa.Schema, other: pa.Schema) -> str:
    here, there = (
        {f"{column.name} ({column.type})" for column in schema}
        - {f"{column.name} ({column.type})" for column in against}
        for schema, against in ((other, one), (one, other))
    )
    return f"here {', '.join(sorted(here)) or 'nothing more'}, there {', '.join(sorted(there)) or 'nothing more'}"


def read_pieces(
    pieces: Iterable[Piece], columns: Sequence[str], batch_rows: int, without: Mapping[Piece, Rows] | None = None
) -> Iterator[pa.Table]:
    """The rows of some row groups but for those `without`, so many at a time, with these columns in this order."""
    for piece in pieces:
        left_out = (without or {}).get(piece, _NO_ROWS)
        before = 0
        with pq.ParquetFile(piece[0]) as file:
            chosen = list(dict.fromkeys(columns))
            for batch in file.iter_batches(batch_rows, row_groups=[piece[1]], columns=chosen, use_threads=False):
                table = pa.Table.from_batches([batch]).select(list(columns))
                here = left_out[(left_out >= before) & (left_out < before + len(table))] - before
                before += len(table)
                yield table.take(np.delete(np.arange(len(table)), here)) if len(here) else table


def write_part(tables: Iterable[pa.Table], path: Path, schema: pa.Schema) -> int:
    """Write the tables to one file, whole or not at all, and say how many rows there were.

    A task that is tried again writes the same bytes to the same name, so that nothing is there twice.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    rows = 0
    try:
        # Ids in the order of matching hardly repeat near each other: a dictionary of them would only cost time.
        with pq.ParquetWriter(aside, schema, compression="snappy", use_dictionary=False) as writer:
            for table in tables:
                writer.write_table(table)
                rows += len(table)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return rows
