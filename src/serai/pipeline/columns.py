"""Values of logs as columns of the few types that the tables have: what does not fit is told, and its row stays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from serai.core.conditions import Kind
from serai.matching.texts import Rejected

TIME: Final = pa.timestamp("us", "UTC")
OWN: Final = ("node", "epoch", "seq", "event", "time", "carrier")
"""Columns of each event that are no attributes."""
_FIRST_US: Final = round(datetime.min.replace(tzinfo=UTC).timestamp()) * 1_000_000
_LAST_US: Final = round(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 1_000_000
_EXACT: Final = 1 << 53  # up to here float64 holds whole numbers
_NUMBER: Final = re.compile(
    r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?|[-+]?(inf|infinity|nan)", re.IGNORECASE
)
_TRUTH: Final = {"true": True, "false": False}
_TYPES: Final[dict[Kind, tuple[pa.DataType, str]]] = {
    "real": (pa.float64(), "a number"),
    "time": (TIME, "a time"),
    "boolean": (pa.bool_(), "true or false"),
}


# --- Columns of texts and of JSON


def typed_column(values: Sequence[Any], kind: Kind | None, only_texts: bool) -> tuple[pa.Array, list[tuple[int, str]]]:
    """A column of this kind, and where a value is none; without a kind, of the kind that all values are.

    `only_texts`: the values come from a format that has no types.
    """
    if kind is None:
        kind = _kind_of_all(values, only_texts)
    if kind not in _TYPES:
        return texts_of(values), []
    arrow, what = _TYPES[kind]
    read, misfits = _each(values, _READ[kind])
    return pa.array(read, arrow), [(place, what) for place in misfits]


def _kind_of_all(values: Sequence[Any], only_texts: bool) -> Kind:
    kinds = {_kind_of_text(value) if only_texts else _kind_of_value(value) for value in values if value is not None}
    return kinds.pop() if len(kinds) == 1 else "text"


def _kind_of_text(value: str) -> Kind:
    if value in _TRUTH:
        return "boolean"
    return "real" if _NUMBER.fullmatch(value) and any(each.isalnum() for each in value) else "text"


def _kind_of_value(value: Any) -> Kind:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) and not -_EXACT <= value <= _EXACT:
        return "text"
    return "real" if isinstance(value, int | float) else "text"


def texts_of(values: Sequence[Any]) -> pa.Array:
    """Values as texts: what is none as JSON writes it."""
    try:
        return pa.array(values, pa.string())
    except (pa.ArrowTypeError, pa.ArrowInvalid, UnicodeEncodeError):
        return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode()  # JSON may escape halves of characters


def _each(values: Sequence[Any], read: Callable[[Any], Any]) -> tuple[list[Any], list[int]]:
    kept: list[Any] = []
    misfits: list[int] = []
    for place, value in enumerate(values):
        try:
            kept.append(None if value is None else read(value))
        except (TypeError, ValueError, OverflowError):
            kept.append(None)
            misfits.append(place)
    return kept, misfits


def _real(value: Any) -> float:
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):  # Python would take both
        raise ValueError(value)
    return float(value)


def _time(value: Any) -> datetime:
    if not isinstance(value, str) or value[4:5] != "-":  # not as Python would have it: 20261101
        raise ValueError(value)
    moment = datetime.fromisoformat(value.strip())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _boolean(value: Any) -> bool:
    return value if isinstance(value, bool) else _TRUTH[value.strip().lower()] if _is_truth(value) else _no(value)


def _is_truth(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() in _TRUTH


def _no(value: Any) -> bool:
    raise ValueError(value)


_READ: Final[dict[Kind, Callable[[Any], Any]]] = {"real": _real, "time": _time, "boolean": _boolean}


# --- Numbers and times of events


def whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as whole numbers from 0 on; what is none becomes null."""
    if pa.types.is_signed_integer(column.type):
        return column.cast(pa.int64())
    try:
        return column.cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.chunked_array([pa.array([_whole(value) for value in column.to_pylist()], pa.int64())])


def _whole(value: Any) -> int | None:
    try:
        number = _number(value) if isinstance(value, str) else value
        return int(number) if number is not None and number == int(number) and 0 <= number < 2**63 else None
    except (TypeError, ValueError, OverflowError):
        return None


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)  # some write 5.0


def moments_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times: as they are, or seconds since 1970, or as texts; null where it is none of these, or no year of ours."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        plain = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        return _of_our_years(plain.cast(TIME) if plain.type.tz else pc.assume_timezone(plain, "UTC"))
    if pa.types.is_string(kind):
        with suppress(pa.ArrowInvalid):
            return _of_our_years(column.cast(TIME))  # with a zone, as most are
    return pa.chunked_array([pa.array([_moment(value) for value in column.to_pylist()], TIME)])


def _of_our_years(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    """Null for what no calendar has: years before 1 and after 9999."""
    if not len(moments) or moments.null_count == len(moments):
        return moments
    ends = pc.min_max(moments.cast(pa.int64())).as_py()
    if ends["min"] >= _FIRST_US and ends["max"] <= _LAST_US:
        return moments
    us = moments.cast(pa.int64())
    inside = pc.and_(pc.greater_equal(us, _FIRST_US), pc.less_equal(us, _LAST_US))
    return pc.if_else(inside, moments, pa.scalar(None, TIME))


def _moment(value: Any) -> datetime | None:
    try:
        if isinstance(value, str) and value[4:5] == "-":
            return _time(value)
        return None if value is None else datetime.fromtimestamp(float(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


# --- Attributes as the table has them


def as_known(rows: pa.Table, known: pa.Schema) -> tuple[pa.Table, list[Rejected]]:
    """The attributes as the table has them; a value that does not fit is rejected, and its row stays without it."""
    rejected: list[Rejected] = []
    columns: dict[str, pa.ChunkedArray] = {}
    for name in rows.column_names:
        if name not in known.names and name not in OWN and rows[name].null_count == len(rows):
            continue  # its type is that of the first value
        column = _simple(rows[name])
        wanted = known.field(name).type if name in known.names else column.type
        try:
            columns[name] = column.cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            columns[name], misfits = _one_by_one(column, wanted)
            rejected += [
                Rejected(_id_of(rows, place), f'{name}: "{value}" is no {wanted}', str(value))
                for place, value in misfits
            ]
    return pa.table(columns), rejected


def _id_of(rows: pa.Table, place: int) -> str:
    row = {name: rows[name][place].as_py() for name in ("event", "node", "epoch", "seq")}
    return row["event"] or f"{row['node']}/{row['epoch']}/{row['seq']}"


def _simple(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of one of the few types that the table has."""
    kind = column.type
    if kind in (pa.string(), pa.bool_(), pa.int64(), pa.float64(), TIME):
        return column
    if pa.types.is_dictionary(kind):
        return _simple(column.cast(kind.value_type))
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return column.cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return moments_of(column)
    if pa.types.is_large_string(kind) or kind == pa.uint64() or pa.types.is_null(kind):
        return column.cast(pa.string())  # Delta has no unsigned numbers
    return pa.chunked_array([texts_of(column.to_pylist())])


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
