"""Rows as files of a table: written by whoever has them, and named to the table afterwards, in one commit of a batch.

A file's name says which batch and which task wrote it. After a crash it is written again, the same, over what is there;
what no commit ever named is not part of the table.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from serai.spark.stores import Store

TABLES: Final = "tables"
_DAY_US: Final = 86_400e6
_NOWHEN: Final = "__HIVE_DEFAULT_PARTITION__"
_NO_DAY: Final = float(1 << 40)
_LONGEST: Final = 32  # of a text that the commit tells as least or greatest
_REPEATING: Final = ("node", "epoch", "carrier", "arrived", "batch", "subscription")


class Part(NamedTuple):
    """A file of a table, as its commit names it."""

    path: str  # below the table
    bytes: int
    rows: int
    day: str | None
    stats: str
    written_ms: int


def write_part(store: Store, table: str, batch: int, name: str, rows: pa.Table) -> Part:
    """Write rows as a file of a table."""
    return _written(store, table, f"part-{batch:08}-{name}.parquet", rows, None)


def write_parts_by_day(store: Store, table: str, batch: int, name: str, rows: pa.Table) -> list[Part]:
    """Write events as files of a table, a folder for each day of their time."""
    days = pc.floor(pc.divide(rows["time"].cast(pa.int64()).cast(pa.float64(), safe=False), _DAY_US))
    number = days.fill_null(_NO_DAY).to_numpy().astype(np.int64)
    order = None
    if len(number) and (number != number[0]).any():
        order = np.argsort(number, kind="stable")
        number, rows = number[order], rows.take(pa.array(order))
    begin = np.flatnonzero(np.r_[True, number[1:] != number[:-1]])
    parts = []
    for first, beyond in zip(begin.tolist(), [*begin[1:].tolist(), len(number)], strict=True):
        day = _day_of(int(number[first]))
        path = f"day={_NOWHEN if day is None else day}/part-{batch:08}-{name}.parquet"
        parts.append(_written(store, table, path, rows.slice(first, beyond - first), day))
    return parts


def _day_of(number: int) -> str | None:
    return None if number == _NO_DAY else (date(1970, 1, 1) + timedelta(days=number)).isoformat()


def _written(store: Store, table: str, path: str, rows: pa.Table, day: str | None) -> Part:
    sink = pa.BufferOutputStream()
    # A dictionary of ids and measurements, which hardly repeat, would only cost time; numbers and times hardly differ
    # from those before them.
    coded = [
        column.name
        for column in rows.schema
        if column.name in _REPEATING or (pa.types.is_string(column.type) and column.name != "event")
    ]
    ascending = {
        column.name: "DELTA_BINARY_PACKED"
        for column in rows.schema
        if column.name not in coded and (pa.types.is_int64(column.type) or pa.types.is_timestamp(column.type))
    }
    with pq.ParquetWriter(
        sink, rows.schema, use_dictionary=coded, column_encoding=ascending, compression="snappy", store_schema=False
    ) as writer:
        writer.write_table(rows, row_group_size=1 << 20)
    data = sink.getvalue()
    stats = _stats_of(pq.read_metadata(pa.BufferReader(data)))
    store.write(f"{TABLES}/{table}/{path}", data)
    return Part(path, len(data), len(rows), day, stats, round(1000 * time.time()))


def _stats_of(footer: pq.FileMetaData) -> str:
    """What readers need in order to pass over a file: how many rows, and between which values."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    for place in range(footer.num_columns):
        told = [footer.row_group(group).column(place) for group in range(footer.num_row_groups)]
        name, known = footer.schema.column(place).name, [each.statistics for each in told]
        if not known or not all(each is not None and each.has_min_max for each in known):
            continue
        low, high = _least(min(each.min for each in known)), _most(max(each.max for each in known))
        if low is not None and high is not None:
            least[name], most[name] = low, high
    return json.dumps({"numRecords": footer.num_rows, "minValues": least, "maxValues": most})


def _least(value: Any) -> Any:
    return _milliseconds(value) if isinstance(value, datetime) else _told(value)


def _most(value: Any) -> Any:
    # Commits tell times in milliseconds: rounded up, so that nothing is passed over.
    return _milliseconds(value + timedelta(microseconds=999)) if isinstance(value, datetime) else _told(value)


def _told(value: Any) -> Any:
    if isinstance(value, bool):
        return None
    return value if isinstance(value, int) or (isinstance(value, str) and len(value) <= _LONGEST) else None


def _milliseconds(moment: datetime) -> str | None:
    try:
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    except (OverflowError, ValueError):
        return None


def parts_of(said: list[Any]) -> list[Part]:
    """Parts that came as JSON."""
    return [Part(*each) for each in said]
