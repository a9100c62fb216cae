"""Logs of nodes, in any of the formats, as rows of the table of events: one file at a time, none stops the others."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from serai.core.conditions import Kind
from serai.core.errors import BadInput
from serai.matching.landing import OPEN_DATABASE
from serai.matching.texts import Rejected, read_texts

OWN: Final = ("node", "epoch", "seq", "event", "time", "arrived", "carrier", "day", "batch")
"""Columns of the table of events that are not attributes."""
_TIME = pa.timestamp("us", "UTC")
_OF_TABLE: Final = {"node": pa.string(), "epoch": pa.string(), "seq": pa.int64(), "event": pa.string(), "time": _TIME}


class Read(NamedTuple):
    """The rows of a file, and those that cannot be used."""

    rows: pa.Table
    rejected: list[Rejected]


def read_log(
    path: Path,
    form: str | None,
    kinds: Mapping[str, Kind],
    known: pa.Schema,
    id: Sequence[str],
    time: str,
    rename: Mapping[str, str],
) -> Read:
    """The events of a log; `kinds`: of attributes in files without types, `known`: columns of the table so far."""
    if form in ("csv", "json"):
        names = {new: old for old, new in rename.items()}
        text_kinds: dict[str, Kind] = {names.get(name, name): kind for name, kind in kinds.items()}
        text_kinds |= dict.fromkeys(id, "text")
        text_kinds[time] = "text"
        table, rejected = read_texts(path, form, text_kinds, [name for name in id if name != "epoch"])
    elif form == "sqlite":
        table, rejected = _sqlite_table(path), []
    elif form == "parquet":
        table, rejected = _parquet_table(path), []
    elif form == OPEN_DATABASE:
        raise BadInput(
            "a SQLite file with a journal beside it, copied while it was written; close it, and copy it again"
        )
    else:
        empty = path.stat().st_size <= 1  # a copy of nothing has a line end in it
        raise BadInput("an empty file" if empty else "of no format that is known by content or by name")
    table = table.rename_columns([rename.get(name, name) for name in table.column_names])
    rows, more = _with_ids(table, [rename.get(name, name) for name in id], rename.get(time, time))
    rows, misfits = _as_known(rows, known)
    return Read(rows, [*rejected, *more, *misfits])


def _parquet_table(path: Path) -> pa.Table:
    try:
        return pq.ParquetFile(path).read()
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"not a Parquet file that can be read ({str(error).splitlines()[0]})") from error


def _sqlite_table(path: Path) -> pa.Table:
    """The table `events` of a database, or its only one; nothing is written, not even a journal."""
    try:
        with sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True) as database:
            (sound,) = database.execute("pragma integrity_check").fetchone()
            if sound != "ok":
                raise BadInput(f"a damaged SQLite file ({sound})")
            names = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
            if "events" not in names and len(names) != 1:
                raise BadInput(f"a SQLite file without a table events; its tables are: {', '.join(names)}")
            name = "events" if "events" in names else names[0]
            cursor = database.execute(f'select * from "{name}"')
            columns = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
    except sqlite3.DatabaseError as error:
        raise BadInput(f"a SQLite file that cannot be read ({error})") from error
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    return pa.table({column: _column(each) for column, each in zip(columns, values, strict=True)})


def _column(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])


# --- What identifies an event, and when it was


def _with_ids(table: pa.Table, id: Sequence[str], time: str) -> tuple[pa.Table, list[Rejected]]:
    """The rows with node, epoch, seq, event and time; without an id a row is rejected."""
    missing = [name for name in id if name not in table.column_names and name != "epoch"]
    if missing:
        raise BadInput(f"no column {missing[0]}; its columns are: {', '.join(table.column_names)}")
    columns = {name: table[name] for name in table.column_names if name not in (*id, time, *OWN)}
    named = pa.chunked_array([pa.array([True] * len(table), pa.bool_())])
    for name in id:
        if name in table.column_names:
            named = pc.and_(named, table[name].is_valid())
    own: dict[str, Any] = {name: pa.nulls(len(table), _OF_TABLE[name]) for name in ("node", "epoch", "seq")}
    if len(id) == 3:
        node, epoch, seq = id
        own["node"] = table[node].cast(pa.string())
        epochs = table[epoch].cast(pa.string()).fill_null("") if epoch in table.column_names else None
        own["epoch"] = epochs if epochs is not None else pa.array([""] * len(table), pa.string())
        own["seq"] = _whole_numbers(table[seq])
        named = pc.and_(named, pc.fill_null(pc.greater_equal(own["seq"], 0), False))
        own["event"] = pc.binary_join_element_wise(own["node"], own["epoch"], own["seq"].cast(pa.string()), "/")
    else:
        own["event"] = table[id[0]].cast(pa.string())
    own["time"] = _moments(table[time]) if time in table.column_names else pa.nulls(len(table), _TIME)
    own["carrier"] = (
        table["carrier"].cast(pa.string()) if "carrier" in table.column_names else pa.nulls(len(table), pa.string())
    )
    whole = pa.table(own | columns)
    reason = f"no id in the columns {', '.join(id)}"
    bad = table.filter(pc.invert(named)).to_pylist()
    rejected = [Rejected(None, reason, json.dumps(row, ensure_ascii=False, default=str)) for row in bad]
    return whole.filter(named), rejected


def _whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as whole numbers; what is none becomes null."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64(), safe=False)
    return pa.chunked_array([pa.array([_whole(value) for value in column.to_pylist()], pa.int64())])


def _whole(value: Any) -> int | None:
    try:
        number = int(value) if isinstance(value, str) else value
        return int(number) if number is not None and number == int(number) and 0 <= number < 2**63 else None
    except (TypeError, ValueError, OverflowError):
        return None


def _moments(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times: as they are, or seconds since 1970, or as texts; null where it is none of these."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        plain = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        return plain.cast(_TIME) if plain.type.tz else pc.assume_timezone(plain, "UTC")
    return pa.chunked_array([pa.array([_moment(value) for value in column.to_pylist()], _TIME)])


def _moment(value: Any) -> datetime | None:
    try:
        if isinstance(value, str) and value[4:5] == "-":
            moment = datetime.fromisoformat(value.strip())
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return None if value is None else datetime.fromtimestamp(float(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


# --- Attributes


def _as_known(rows: pa.Table, known: pa.Schema) -> tuple[pa.Table, list[Rejected]]:
    """The attributes as the table has them; a value that does not fit is rejected, and its row stays without it."""
    rejected: list[Rejected] = []
    columns: dict[str, pa.ChunkedArray] = {}
    for name in rows.column_names:
        column = _simple(rows[name])
        wanted = known.field(name).type if name in known.names else column.type
        try:
            columns[name] = column.cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            columns[name], misfits = _one_by_one(column, wanted)
            rejected += [
                Rejected(rows["event"][place].as_py(), f'{name}: "{value}" is no {wanted}', str(value))
                for place, value in misfits
            ]
    return pa.table(columns), rejected


def _simple(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of one of the few types that the table has."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _simple(column.cast(kind.value_type))
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return column.cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _moments(column)
    if kind in (pa.string(), pa.bool_()):
        return column
    if pa.types.is_large_string(kind) or kind == pa.uint64() or pa.types.is_null(kind):
        return column.cast(pa.string())  # Delta has no unsigned numbers
    return pa.chunked_array(
        [pa.array([None if v is None else json.dumps(v, default=str) for v in column.to_pylist()], pa.string())]
    )


def _one_by_one(column: pa.ChunkedArray, wanted: pa.DataType) -> tuple[pa.ChunkedArray, list[tuple[int, Any]]]:
    kept: list[Any] = []
    misfits: list[tuple[int, Any]] = []
    for place, value in enumerate(column.to_pylist()):
        try:
            kept.append(None if value is None else pa.scalar(value).cast(wanted).as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            kept.append(None)
            misfits.append((place, value))
    return pa.chunked_array([pa.array(kept, wanted)]), misfits
