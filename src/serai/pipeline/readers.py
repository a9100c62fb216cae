"""Logs of nodes, in any of the formats, as rows of the table of events: one file at a time, none stops the others.

A file is read some rows at a time, so that its size does not matter. Whoever asks for the rows gets `BadInput` where a
file turns out to be damaged, and has to forget what came of it before.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from serai.core.conditions import Kind
from serai.core.errors import BadInput
from serai.matching.landing import OPEN_DATABASE, RUN_FOLDER
from serai.matching.texts import Rejected, rows_of
from serai.pipeline.columns import OWN, TIME, as_known, moments_of, texts_of, typed_column, whole_numbers
from serai.pipeline.health import health_of, is_health
from serai.pipeline.recorded import contacts_of, is_contacts, read_run_folder, read_store

_ROWS: Final = 1 << 17  # at a time


@dataclass(frozen=True)
class How:
    """How logs are read: what identifies an event, when it was, what columns are called, what texts stand for."""

    id: Sequence[str] = ("node", "epoch", "seq")
    time: str = "time"
    rename: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)  # of attributes, as subscriptions use them

    def called(self, name: str) -> str:
        """What a column of logs is called here."""
        return self.rename.get(name, name)

    def is_health(self, columns: Collection[str]) -> bool:
        """Whether a table with these columns is one of the health of nodes."""
        there = {"time" if name == self.time else self.called(name) for name in columns}
        return is_health(there, self.called(self.id[-1]))

    @property
    def own(self) -> frozenset[str]:
        """Columns that are no attributes, as they are called here."""
        return frozenset([*(self.rename.get(name, name) for name in (*self.id, self.time)), *OWN])


class Read(NamedTuple):
    """Some rows of a file, those that cannot be used, and what it has for other tables."""

    rows: pa.Table
    rejected: list[Rejected]
    others: Mapping[str, pa.Table] = {}


def read_log(path: Path, form: str | None, known: pa.Schema, how: How) -> Iterator[Read]:
    """The events of a log, some at a time; `known`: columns of the table so far, whose types these get."""
    if form == RUN_FOLDER or (form == "sqlite" and _is_store(path)):
        rows, others = (read_run_folder if form == RUN_FOLDER else read_store)(path)
        missing = {name: pa.nulls(len(rows), kind) for name, kind in COLUMNS.items() if name not in rows.column_names}
        for name, nothing in missing.items():
            rows = rows.append_column(name, nothing)
        rows, misfits = as_known(rows, known)
        yield Read(rows, misfits, others)
        return
    for table, rejected in _tables_in(path, form, how):
        if is_contacts(table.column_names):
            yield Read(_NO_EVENTS, rejected, {"contacts": contacts_of(table, moments_of)})
            continue
        renamed = table.rename_columns([how.rename.get(name, name) for name in table.column_names])
        if how.is_health(table.column_names):
            health, misfits = health_of(renamed, how.called(how.time) if how.time in table.column_names else "time")
            yield Read(_NO_EVENTS, [*rejected, *misfits], {"health": health})
            continue
        rows, nameless = _with_ids(renamed, how)
        rows, misfits = as_known(rows, known)
        yield Read(rows, [*rejected, *nameless, *misfits])
        known = pa.unify_schemas([known, pa.schema([c for c in rows.schema if c.name not in known.names])])


def _tables_in(path: Path, form: str | None, how: How) -> Iterator[tuple[pa.Table, list[Rejected]]]:
    if form in ("csv", "json"):
        yield from _text_tables(path, form, how)
    elif form == "sqlite":
        yield from ((table, []) for table in _sqlite_tables(path))
    elif form == "parquet":
        yield from ((table, []) for table in _parquet_tables(path))
    elif form == OPEN_DATABASE:
        raise BadInput(
            "a SQLite file with a journal beside it, copied while it was written; close it, and copy it again"
        )
    else:
        empty = path.stat().st_size <= 1  # a copy of nothing has a line end in it
        raise BadInput("an empty file" if empty else "of no format that is known by content or by name")


# --- Formats


def _text_tables(path: Path, form: str, how: How) -> Iterator[tuple[pa.Table, list[Rejected]]]:
    """Rows of texts, with columns as subscriptions use them or as all their values are; a file needs one row."""
    found = rows_of(path, form, typed=True)
    there = False
    while some := list(islice(found, _ROWS)):
        there = True
        rows = [row for row in some if isinstance(row, dict)]
        rejected = [
            Rejected(None, "this line is no row of the table", row) for row in some if not isinstance(row, dict)
        ]
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns: dict[str, pa.Array] = {}
        for name in names:
            values, called = [row.get(name) for row in rows], how.rename.get(name, name)
            if called in how.own or is_contacts(names) or how.is_health(names):
                columns[name] = texts_of(values)
                continue
            columns[name], misfits = typed_column(values, how.kinds.get(called), form == "csv")
            rejected += [
                Rejected(_id_in(rows[place], how), f'{name}: "{values[place]}" is not {what}', str(values[place]))
                for place, what in misfits
            ]
        yield pa.table(columns), rejected
    if not there:
        raise BadInput("no rows in it")


def _id_in(row: Mapping[str, Any], how: How) -> str:
    return "/".join("" if row.get(name) is None else str(row[name]) for name in how.id)


def _parquet_tables(path: Path) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows <= _ROWS:
                yield file.read(use_threads=False)
                return
            for batch in file.iter_batches(_ROWS, use_threads=False):
                yield pa.Table.from_batches([batch])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the system's: the disk is to blame, not the file
            raise
        raise BadInput(f"not a Parquet file that can be read ({str(error).splitlines()[0]})") from error


def _is_store(path: Path) -> bool:
    """Whether a SQLite file is the store of a live node."""
    try:
        with closing(_database(path)) as database:
            return {"log", "bundle", "meta"} <= set(_names_of_tables(database))
    except sqlite3.DatabaseError:  # said in words by whoever reads it
        return False


def _sqlite_tables(path: Path) -> Iterator[pa.Table]:
    """The table `events` of a database, or its only one; nothing is written, not even a journal."""
    try:
        with closing(_database(path)) as database:
            (sound,) = database.execute("pragma integrity_check").fetchone()
            if sound != "ok":
                raise BadInput(f"a damaged SQLite file ({sound})")
            names = _names_of_tables(database)
            if "events" not in names and len(names) != 1:
                raise BadInput(f"a SQLite file without a table events; its tables are: {', '.join(names)}")
            name = _quoted("events" if "events" in names else names[0])
            cursor = database.execute(f"select * from {name}")
            columns = [column[0] for column in cursor.description]
            kinds = [_sqlite_kind(database, name, column) for column in columns]
            there = False
            while rows := cursor.fetchmany(_ROWS):
                there = True
                values = zip(columns, kinds, zip(*rows, strict=True), strict=True)
                yield pa.table({column: _sqlite_column(each, kind) for column, kind, each in values})
            if not there:
                yield pa.table({column: pa.nulls(0) for column in columns})
    except sqlite3.DatabaseError as error:
        raise BadInput(f"a SQLite file that cannot be read ({error})") from error


def _database(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)


def _names_of_tables(database: sqlite3.Connection) -> list[str]:
    return [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sqlite_kind(database: sqlite3.Connection, table: str, column: str) -> pa.DataType:
    """The type that holds all values of a column, whose types SQLite leaves to each of them."""
    found = {kind for (kind,) in database.execute(f"select distinct typeof({_quoted(column)}) from {table}")} - {"null"}
    if found <= {"integer"}:
        return pa.int64() if found else pa.null()
    return pa.float64() if found <= {"integer", "real"} else pa.string()


def _sqlite_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.string():
        return texts_of(values)
    return pa.array(values, kind)


# --- What identifies an event, and when it was


COLUMNS: Final = dict(zip(OWN, (pa.string(), pa.string(), pa.int64(), pa.string(), TIME, pa.string()), strict=True))
"""Columns of every event, and their types."""
_NO_EVENTS: Final = pa.table({name: pa.array([], kind) for name, kind in COLUMNS.items()})
_NOT_TAKEN: Final = ("arrived", "day", "batch")
"""Columns that the table of events has from us."""


def _with_ids(table: pa.Table, how: How) -> tuple[pa.Table, list[Rejected]]:
    """The rows with what identifies them and when they were; without an id a row is rejected.

    Of events that their nodes count the id as a text is left to `event_ids`: repeats do not need it.
    """
    id, time = [how.rename.get(name, name) for name in how.id], how.rename.get(how.time, how.time)
    there = {name: table[name] for name in table.column_names}
    if missing := [name for name in id if name not in there and name != "epoch"]:
        raise BadInput(f"no column {missing[0]}; its columns are: {', '.join(table.column_names)}")
    own: dict[str, pa.ChunkedArray] = {}
    if len(id) == 3:
        own["node"], own["seq"] = there[id[0]].cast(pa.string()), whole_numbers(there[id[2]])
        epochs = (
            there[id[1]].cast(pa.string()) if id[1] in there else pa.chunked_array([pa.nulls(len(table), pa.string())])
        )
        own["epoch"] = epochs.fill_null("")
        named = pc.and_(own["node"].is_valid(), pc.fill_null(pc.greater_equal(own["seq"], 0), False))
    else:
        own["event"] = there[id[0]].cast(pa.string())
        named = own["event"].is_valid()
    if time in there:
        own["time"] = moments_of(there[time])
    if "carrier" in there:
        own["carrier"] = there["carrier"].cast(pa.string())
    columns = {name: own.get(name, pa.nulls(len(table), kind)) for name, kind in COLUMNS.items()}
    columns |= {name: there[name] for name in there if name not in (*id, time, *OWN, *_NOT_TAKEN)}
    whole = pa.table(columns)
    if pc.all(named, min_count=0).as_py():
        return whole, []
    reason = f"no id in the columns {', '.join(id)}"
    bad = table.filter(pc.invert(named)).to_pylist()
    rejected = [Rejected(None, reason, json.dumps(row, ensure_ascii=False, default=str)) for row in bad]
    return whole.filter(named), rejected


def event_ids(rows: pa.Table) -> pa.ChunkedArray:
    """The ids of events as texts: their own, or node/epoch/number; names may be codes."""
    node, epoch = (column.cast(pa.string()) for column in (rows["node"], rows["epoch"]))
    counted = pc.binary_join_element_wise(node, epoch, rows["seq"].cast(pa.string()), "/")
    return counted if rows["event"].null_count == len(rows) else pc.coalesce(rows["event"], counted)
