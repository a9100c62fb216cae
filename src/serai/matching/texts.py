"""Files of texts, CSV and JSON lines, as tables: one file at a time, with kinds that others take for granted."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from serai.core.conditions import Kind
from serai.core.errors import BadInput

_TYPES: dict[str, pa.DataType] = {
    "real": pa.float64(),
    "time": pa.timestamp("us", "UTC"),
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "text": pa.string(),
}
_A = {"real": "a number", "integer": "a whole number", "time": "a time", "boolean": "true or false"}


class Rejected(NamedTuple):
    """A row that cannot be used."""

    id: str | None
    reason: str
    row: str


def read_texts(
    path: Path, form: str, kinds: Mapping[str, Kind], ids: Sequence[str] = ("event",)
) -> tuple[pa.Table, list[Rejected]]:
    """The rows of a file that have `ids` and values of these kinds; other attributes are texts; and the other rows."""
    rows: list[dict[str, str | None]] = []
    broken: list[str] = []
    for found in rows_of(path, form):
        if isinstance(found, dict):
            rows.append({name: _as_text(value) for name, value in found.items()})
        else:
            broken.append(found)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in ids:
        if rows and name not in names:
            raise BadInput(f"{path}: no column {name}; its columns are: {', '.join(names)}")
    if not rows and not broken:
        raise BadInput(f"{path}: no rows in it")
    rejected = [Rejected(None, "this line is no row of the table", line) for line in broken]
    good: list[dict[str, Any]] = []
    for row in rows:
        typed, reason = _typed(row, kinds, ids)
        if reason is None:
            good.append(typed)
        else:
            known = "/".join(filter(None, (row.get(name) for name in ids))) or None
            rejected.append(Rejected(known, reason, json.dumps(row, ensure_ascii=False)))
    schema = pa.schema([(name, _TYPES[kinds.get(name, "text")]) for name in names or ids])
    return pa.Table.from_pylist(good, schema), rejected


def rows_of(path: Path, form: str, *, typed: bool = False) -> Iterator[dict[str, Any] | str]:
    """The rows of a file of texts, in order; a line that is no row as it is.

    Of JSON a row has what stands there: numbers as they are written, or `typed` as numbers.
    """
    try:
        yield from _csv_rows(path) if form == "csv" else _json_rows(path, typed)
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: not a file of texts ({error})") from error


def _csv_rows(path: Path) -> Iterator[dict[str, Any] | str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        header = next(lines, [])
        for values in lines:
            if len(values) == len(header):
                yield {name: value or None for name, value in zip(header, values, strict=True)}
            elif values:
                yield ",".join(values)


def _json_rows(path: Path, typed: bool) -> Iterator[dict[str, Any] | str]:
    as_written: dict[str, Any] = {} if typed else {"parse_int": str, "parse_float": str, "parse_constant": str}
    with path.open(encoding="utf-8-sig") as file:
        for line in file:
            if not line.strip():
                continue
            try:
                row = json.loads(line, **as_written)
            except ValueError:
                row = None
            yield row if isinstance(row, dict) else line.rstrip("\r\n")


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _typed(
    row: dict[str, str | None], kinds: Mapping[str, Kind], ids: Sequence[str]
) -> tuple[dict[str, Any], str | None]:
    for name in ids:
        if row.get(name) is None:
            return {}, f"no id in the column {name}"
    typed: dict[str, Any] = dict(row)
    for name, kind in kinds.items():
        value = row.get(name)
        if kind == "text" or value is None:
            continue
        try:
            if "_" in value:  # Python would take 1_000 for a number
                raise ValueError(value)
            typed[name] = _READ[kind](value)
        except ValueError:
            return {}, f'{name}: "{value}" is not {_A[kind]}'
    return typed, None


def _time(text: str) -> datetime:
    if text[4:5] != "-":  # not as Python would have it: 20261101
        raise ValueError(text)
    moment = datetime.fromisoformat(text.strip())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _boolean(text: str) -> bool:
    said = text.strip().lower()
    if said not in ("true", "false"):
        raise ValueError(text)
    return said == "true"


_READ: dict[str, Any] = {"real": float, "integer": int, "time": _time, "boolean": _boolean}
