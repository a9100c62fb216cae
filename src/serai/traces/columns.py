"""Columns of texts as numbers, dates or yes and no, whole columns at a time."""

import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from serai.traces.words import Flags
from serai.world.grid import Floats, Numbers

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_SHORTEST_DATE = len("2026-05-01 08:00:00")
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:?[0-9]{2})?$"


def texts(values: list[str]) -> Any:
    """A column of these texts."""
    return pa.chunked_array([pa.array(values, pa.string())])


def numbers_of(column: Any) -> Floats:
    """A column of texts as numbers; NaN where one is none."""
    bare = pc.utf8_trim_whitespace(column)
    try:  # nearly always all of them are numbers, or empty
        return np.array(pc.cast(pc.if_else(pc.equal(bare, ""), "nan", bare), pa.float64()).to_numpy())
    except pa.ArrowInvalid:
        fine = pc.match_substring_regex(bare, _NUMBER)
        plain = pc.replace_substring_regex(pc.if_else(fine, bare, "nan"), r"^\+", "")
        return np.array(pc.cast(plain, pa.float64()).to_numpy())


def seconds_of(column: Any) -> tuple[Floats, Flags]:
    """A column of dates (without a zone: UTC) as seconds since 1970, and which of them are dates."""
    plain = pc.utf8_rtrim(column, "Z")
    try:  # nearly always all of them are dates; a date alone, without the time of the day, is too short to be one
        if len(column) and pc.min(pc.utf8_length(plain)).as_py() >= _SHORTEST_DATE:
            return _microseconds(plain) / 1e6, np.ones(len(column), bool)
    except pa.ArrowInvalid:
        pass
    read = [_second(text) for text in column.to_pylist()]
    return np.array([second or 0.0 for second in read]), np.array([second is not None for second in read], bool)


def _microseconds(column: Any) -> Floats:
    return np.array(pc.cast(pc.cast(column, pa.timestamp("us")), pa.int64()).to_numpy(), np.float64)


def _second(text: str) -> float | None:
    """A date as seconds since 1970; None if it is none."""
    if not re.match(_DATE, text):
        return None
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def are(column: Any, text: str) -> Flags:
    """Which texts of a column are this one, whatever their case."""
    bare = pc.utf8_trim_whitespace(column)
    return np.array(pc.equal(pc.utf8_lower(bare) if text else bare, text).to_numpy(), bool)


def numbered(column: Any) -> tuple[Numbers, dict[str, int]]:
    """A column of names as numbers, and the names with their numbers."""
    names = pc.utf8_trim_whitespace(column).combine_chunks().dictionary_encode()
    book = {str(name): number for number, name in enumerate(names.dictionary.to_pylist())}
    return names.indices.to_numpy().astype(np.int32), book
