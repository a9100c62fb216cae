"""Tables of subscriptions: as texts (`where`), or as columns of bounds; and those rows that cannot be used."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from serai.core.conditions import ENDS, Kind, Span, beginning, both, exactly
from serai.core.errors import BadInput, did_you_mean
from serai.core.readings import Readings, read_many
from serai.matching.boxes import kind_of

REJECTED = pa.schema(
    [
        pa.field("table", pa.string(), nullable=False),
        pa.field("id", pa.string()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("row", pa.string()),
    ]
)
"""Rows that could not be used: of which table, their id, why, and what was in them."""


def readings_of(table: pa.Table, kinds: Mapping[str, Kind], time: str | None = None) -> Readings:
    """What the subscriptions of a table ask of events with these attributes.

    With `time`, the column of events that says when, subscriptions hold `from` a time on and `until` another, if the
    table has such columns.
    """
    if "subscription" not in table.column_names:
        raise BadInput(
            "the subscriptions have no column subscription (their id);"
            f" their columns are: {', '.join(table.column_names)}"
        )
    effective = [name for name in ("from", "until") if name in table.column_names]
    if effective and (time not in kinds or "where" not in table.column_names):
        raise BadInput(
            f"the subscriptions have a column {effective[0]}: name the column of events that it is about"
            f" ({did_you_mean(time, kinds) if time else 'time'}), and give subscriptions as texts (where)"
        )
    if "where" not in table.column_names:
        readings = _from_bounds(table, kinds)
    else:
        texts = _texts(table["where"])
        for name in effective:
            texts = _with_end(texts, table[name], f"{time} {'>=' if name == 'from' else '<'}")
        readings = read_many(texts, kinds)
    for row in np.flatnonzero(table["subscription"].is_null().to_numpy()).tolist():
        readings.reject(row, "no id in the column subscription")
    return readings


def _with_end(texts: list[str | None], ends: pa.ChunkedArray, comparison: str) -> list[str | None]:
    """The texts, with another condition where the subscription begins or ends."""

    def written(end: Any) -> str:
        return end.isoformat() if isinstance(end, date) else end if isinstance(end, str) else repr(end)

    return [
        text if text is None or end is None else f"{_in_one(text)} and {comparison} {written(end)}"
        for text, end in zip(texts, ends.to_pylist(), strict=True)
    ]


def _in_one(text: str) -> str:
    """The text, in parentheses if something that binds less than `and` might stand in it."""
    return f"({text})" if re.search(r"or|[|∨]", text, re.IGNORECASE) else text


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    if kind_of(column.type) != "text" and not pa.types.is_null(column.type):
        raise BadInput(f"the column where holds {column.type}; it should hold texts such as temperature < 5")
    return column.to_pylist()  # type: ignore[no-any-return]


def rejected_rows(table: pa.Table, readings: Readings, of: str = "subscriptions") -> pa.Table:
    """The rows that could not be read, with the reasons."""
    rows = [row for row, reason in enumerate(readings.reasons) if reason is not None]
    some = table.take(pa.array(rows, pa.int64()))
    return pa.table(
        {
            "table": pa.array([of] * len(rows), pa.string()),
            "id": some["subscription"].cast(pa.string()),
            "reason": pa.array([readings.reasons[row] for row in rows], pa.string()),
            "row": some["where"].cast(pa.string())
            if "where" in table.column_names
            else pa.nulls(len(rows), pa.string()),
        },
        schema=REJECTED,
    )


# --- Bounds as columns


def _from_bounds(table: pa.Table, kinds: Mapping[str, Kind]) -> Readings:
    """Subscriptions with columns <attribute>_low and _high, or for texts <attribute> and <attribute>_prefix."""
    readings = Readings([None] * len(table), np.ones(len(table), np.bool_))
    for column in table.column_names:
        if column == "subscription":
            continue
        name, _, end = column.rpartition("_") if column not in kinds else (column, "", "")
        if name not in kinds or end not in ("", "low", "high", "prefix"):
            allowed = [f"{each}_low" for each in kinds] + ["where"]
            raise BadInput(
                f'the subscriptions have a column "{column}", which is neither where nor a bound of an attribute;'
                f" {did_you_mean(column, allowed)}"
            )
        readings.open(name, kinds[name])
        if kinds[name] == "text":
            _add_words(readings, name, table[column], whole=end == "")
        elif end in ("", "prefix"):
            raise BadInput(f"the subscriptions have a column {column}; bounds of {name} are {name}_low and {name}_high")
        else:
            _add_bounds(readings, name, kinds[name], table[column], end)
    for name in readings.low:
        readings.possible &= ~readings.named[name] | (readings.low[name] <= readings.high[name])
    return readings


def _add_words(readings: Readings, name: str, column: pa.ChunkedArray, whole: bool) -> None:
    for row, text in enumerate(_texts_of(name, column)):
        if text is None:
            continue
        span: Span | None = exactly(text) if whole else beginning(text)
        assert span is not None
        if (before := readings.spans[name][row]) is not None:
            span = both(before, span)  # type: ignore[assignment]  # of two spans
        readings.named[name][row] = True
        if span is None:
            readings.possible[row] = False
        else:
            readings.spans[name][row] = span


def _texts_of(name: str, column: pa.ChunkedArray) -> list[str | None]:
    if kind_of(column.type) != "text" and not pa.types.is_null(column.type):
        raise BadInput(f"{name} holds text in the events, and {column.type} in the subscriptions")
    return column.to_pylist()  # type: ignore[no-any-return]


def _add_bounds(readings: Readings, name: str, kind: Kind, column: pa.ChunkedArray, end: str) -> None:
    held = kind_of(column.type)
    if pa.types.is_null(column.type):
        return
    if (held == "time") != (kind == "time") or held in (None, "text") or (held == "boolean") != (kind == "boolean"):
        raise BadInput(f"{name}_{end} holds {column.type}, and {name} of the events is {_A[kind]}")
    bounds = column.combine_chunks()
    given = bounds.is_valid().to_numpy(zero_copy_only=False)
    values = _numbers(bounds, kind)
    for row in np.flatnonzero(given & np.isnan(values)).tolist() if values.dtype == np.float64 else ():
        readings.reject(row, f"{name}_{end} is NaN")
    if values.dtype == np.float64:
        given &= ~np.isnan(values) & (values != (-np.inf if end == "low" else np.inf))
    side = readings.low[name] if end == "low" else readings.high[name]
    readings.named[name] |= given
    if values.dtype == side.dtype:
        side[given] = values[given]
        return
    for row in np.flatnonzero(given).tolist():  # exactly, however far out the bound may lie
        least, most = ENDS[kind]
        value = values[row].item()
        if np.isinf(value):
            inside = most + 1 if value > 0 else least - 1
        else:
            inside = math.ceil(value) if end == "low" else math.floor(value)
        if inside > most if end == "low" else inside < least:
            readings.possible[row] = False
        else:
            side[row] = max(least, inside) if end == "low" else min(most, inside)


_A = {
    "real": "a number",
    "integer": "a whole number",
    "unsigned": "a whole number",
    "time": "a time",
    "text": "a text",
    "boolean": "true or false",
}


def _numbers(bounds: pa.Array, kind: Kind) -> Any:
    if kind == "time":
        bounds = bounds.cast(pa.timestamp("us", getattr(bounds.type, "tz", None)), safe=False).cast(pa.int64())
    elif kind == "real" or kind_of(bounds.type) == "real":
        return bounds.cast(pa.float64()).to_numpy(zero_copy_only=False)
    elif kind_of(bounds.type) == "boolean":
        bounds = bounds.cast(pa.int8())
    return bounds.fill_null(0).to_numpy(zero_copy_only=False)
