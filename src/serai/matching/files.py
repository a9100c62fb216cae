"""Parquet files that the workers read and write by themselves: only names and counts go through Spark.

Handing 10^7 events to Python through the JVM takes several times as long as matching them. The files must be visible
to every worker under the same path, as Spark itself asks of local files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.spark.places import is_address, local_path

Given = tuple[tuple[str, str | None], ...]  # columns that stand in the names of folders: day=2026-11-01
Rows = NDArray[np.int64]
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_NO_ROWS: Rows = np.empty(0, np.int64)
ASIDE = ".aside-"  # how names of files begin that are not whole yet
ROWS_PER_TASK = 2_500_000  # about a second of work: starting a task takes some 0.07 s


class Piece(NamedTuple):
    """A row group of a file."""

    path: str
    group: int
    given: Given = ()


@dataclass(frozen=True)
class ParquetFiles:
    """Some Parquet files, the columns that any of them has, and their row groups."""

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
    if is_address(path):
        return None
    place = local_path(path)
    paths = _files_at(place)
    if not paths:
        raise BadInput(f"{path}: no Parquet file in this folder")
    return these_files(paths, {found: given_by(found.relative_to(place)) for found in paths if found != place})


def given_by(path: PurePath) -> Given:
    """The columns that the names of a file's folders give: day=2026-11-01/site=north/x.parquet."""
    parts = [unquote(part).partition("=") for part in path.parts[:-1] if "=" in part]
    return tuple((name, None if value == _NO_VALUE else value) for name, _, value in parts)


def these_files(paths: Sequence[Path], given: Mapping[Path, Given] | None = None) -> ParquetFiles:
    """Some Parquet files as one table: a column that a file lacks is null there, and numbers may be of other width."""
    schema = pa.schema([])
    pieces, rows = [], []
    given = given or {}
    for found in paths:
        footer = footer_of(found)
        schema = united(schema, footer.schema.to_arrow_schema(), found)
        for group in range(footer.num_row_groups):
            pieces.append(Piece(str(found.absolute()), group, given.get(found, ())))
            rows.append(footer.row_group(group).num_rows)
    for column in given_columns(given.values()):
        if column.name not in schema.names:  # what stands in the file itself wins
            schema = schema.append(column)
    return ParquetFiles(tuple(str(found.absolute()) for found in paths), schema, tuple(pieces), tuple(rows))


def united(schema: pa.Schema, more: pa.Schema, found: Path) -> pa.Schema:
    """The columns of both; a column whose types nothing holds is refused, with the file that has it."""
    plain = pa.schema([pa.field(column.name, _plain(column.type)) for column in more])
    try:
        return pa.unify_schemas([schema, plain], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        other = next(
            (c for c in plain if c.name in schema.names and not _fits(c.type, schema.field(c.name).type)), None
        )
        if other is None:
            raise BadInput(f"{found}: its columns do not go with those of the other files ({error})") from error
        held = schema.field(other.name).type
        raise BadInput(f"{found}: the column {other.name} is {other.type} here, and {held} in other files") from error


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _fits(one: pa.DataType, other: pa.DataType) -> bool:
    try:
        pa.unify_schemas([pa.schema([("x", one)]), pa.schema([("x", other)])], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return False
    return True


def given_columns(given: Iterable[Given]) -> list[pa.Field]:
    """The columns in the names of folders, as whole numbers or days if all of them are, or else as texts."""
    values: dict[str, list[str | None]] = {}
    for columns in given:
        for name, value in columns:
            values.setdefault(name, []).append(value)
    return [pa.field(name, _type_of(texts)) for name, texts in values.items()]


def _type_of(texts: list[str | None]) -> pa.DataType:
    known = [text for text in texts if text is not None]
    if known and all(re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text) for text in known):
        return pa.int64()
    if known and all(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) for text in known):
        return pa.date32()
    return pa.string()


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


def footer_of(path: Path) -> pq.FileMetaData:
    """What a Parquet file says about itself."""
    try:
        return pq.read_metadata(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"{path}: not a Parquet file that can be read ({str(error).splitlines()[0]})") from error


def read_pieces(
    pieces: Iterable[Piece], schema: pa.Schema, batch_rows: int, without: Mapping[Piece, Rows] | None = None
) -> Iterator[pa.Table]:
    """The rows of some row groups but for those `without`, so many at a time, with these columns in this order."""
    for piece in pieces:
        left_out = (without or {}).get(piece, _NO_ROWS)
        before = 0
        with pq.ParquetFile(piece.path) as file:
            there = [name for name in dict.fromkeys(schema.names) if name in file.schema_arrow.names]
            rows = file.metadata.row_group(piece.group).num_rows
            batches = file.iter_batches(batch_rows, row_groups=[piece.group], columns=there, use_threads=False)
            for batch in batches if there else _empty_batches(rows, batch_rows):
                table = _as_asked(pa.Table.from_batches([batch]), schema, piece)
                here = left_out[(left_out >= before) & (left_out < before + len(table))] - before
                before += len(table)
                yield table.take(np.delete(np.arange(len(table)), here)) if len(here) else table


def _empty_batches(rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Rows of which no column is asked for that the file has."""
    for first in range(0, rows, batch_rows):
        some = pa.nulls(min(batch_rows, rows - first))
        yield pa.RecordBatch.from_arrays([some], names=[""])


def _as_asked(table: pa.Table, schema: pa.Schema, piece: Piece) -> pa.Table:
    """The columns that are asked for: from the file, from the names of its folders, or null."""
    given = dict(piece.given)
    columns = []
    for column in schema:
        if column.name in table.column_names:
            try:
                columns.append(table[column.name].cast(column.type))
            except pa.ArrowInvalid as error:
                raise BadInput(f"{piece.path}: {column.name} cannot be read as {column.type} ({error})") from error
        elif given.get(column.name) is not None:
            value = pa.scalar(given[column.name]).cast(column.type)
            columns.append(pa.repeat(value, len(table)))
        else:
            columns.append(pa.nulls(len(table), column.type))
    return pa.table(columns, schema=schema)


def write_part(tables: Iterable[pa.Table], path: Path, schema: pa.Schema) -> int:
    """Write the tables to one file, whole or not at all, and say how many rows there were.

    A task that is tried again writes the same bytes to the same name, so that nothing is there twice.
    """
    aside = path.with_name(f"{ASIDE}{path.name}.{os.getpid()}")
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
