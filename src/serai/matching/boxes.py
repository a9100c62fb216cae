"""Subscriptions as boxes, and events as points, of float64: every kind of attribute gets places on the number line.

Reals stand for themselves, integers and times too as long as no bound lies where float64 skips integers. Other
integers, and texts, are placed by comparison with the values that subscriptions mention (`marks`, ascending): mark i
is at 2 i + 1, and whatever lies between it and the mark before is at 2 i. Only the order relative to the marks can
decide a condition, so nothing is lost, and the one rule `serai.core.content.matches` serves every kind of attribute. A
text that begins with "no" lies between "no" and the first text after all those that begin so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from serai.core.conditions import LARGEST, SMALLEST, Kind
from serai.core.readings import Readings

Numbers = NDArray[np.float64]
_MOST = float(np.finfo(np.float64).max)
_DENSE = 2**53 - 1  # up to here float64 tells every integer from the next


class Axis(NamedTuple):
    """An attribute that subscriptions ask about, and how its values are placed."""

    name: str
    kind: Kind
    marks: NDArray[np.int64] | tuple[bytes, ...] | None = None
    only_whole: bool = False  # no text is compared by its beginning


class Asked(NamedTuple):
    """What all subscriptions ask: the box low[s] .. high[s] belongs to the subscription ids[s]."""

    axes: tuple[Axis, ...]
    low: Numbers
    high: Numbers
    ids: pa.Array

    @property
    def attributes(self) -> list[str]:
        """Names of the attributes that are asked about."""
        return [axis.name for axis in self.axes]


def kind_of(column: pa.DataType) -> Kind | None:
    """The kind of attribute that a column of this type can be; None if it can be none."""
    if pa.types.is_dictionary(column):
        column = column.value_type
    if pa.types.is_floating(column) or pa.types.is_decimal(column) or column == pa.uint64():
        return "real"
    if pa.types.is_integer(column):
        return "integer"
    if pa.types.is_timestamp(column) or pa.types.is_date(column):
        return "time"
    if pa.types.is_string(column) or pa.types.is_large_string(column):
        return "text"
    return None


# --- Subscriptions


def boxes_of(readings: Readings, kinds: Mapping[str, Kind], ids: pa.Array) -> Asked:
    """The boxes of the subscriptions that were read and that something can match."""
    kept = np.flatnonzero(readings.possible)
    axes, lows, highs = [], [], []
    for name in readings.named:
        axis, low, high = _text_axis(readings, name) if kinds[name] == "text" else _number_axis(readings, name, kinds)
        named = readings.named[name]
        axes.append(axis)
        lows.append(np.where(named, low, -np.inf)[kept])
        highs.append(np.where(named, high, np.inf)[kept])
    none = np.empty((len(kept), 0))
    return Asked(
        tuple(axes),
        np.stack(lows, axis=1) if lows else none,
        np.stack(highs, axis=1) if highs else none,
        ids.take(pa.array(kept)),
    )


def _number_axis(readings: Readings, name: str, kinds: Mapping[str, Kind]) -> tuple[Axis, Numbers, Numbers]:
    low, high = readings.low[name], readings.high[name]
    if kinds[name] == "real":
        return Axis(name, "real"), low, high
    named = readings.named[name]
    bounds = np.unique(np.concatenate([low[named], high[named]]))
    inner = bounds[(bounds != SMALLEST) & (bounds != LARGEST)]
    if len(inner) == 0 or (inner[0] >= -_DENSE and inner[-1] <= _DENSE):
        # Not infinity: an attribute without any bound would accept a missing value.
        below = np.where(low == SMALLEST, -_MOST, low.astype(np.float64))
        return Axis(name, kinds[name]), below, np.where(high == LARGEST, _MOST, high.astype(np.float64))
    return Axis(name, kinds[name], bounds), _places(bounds, low), _places(bounds, high)


def _places(marks: NDArray[np.int64], values: NDArray[np.int64]) -> Numbers:
    """Where whole numbers lie among the marks: odd at a mark, even between two."""
    place = np.searchsorted(marks, values, "left")
    at_mark = marks[np.minimum(place, len(marks) - 1)] == values
    return np.asarray(2 * place + at_mark, np.float64)


def _text_axis(readings: Readings, name: str) -> tuple[Axis, Numbers, Numbers]:
    words = [None if word is None else word.encode() for word in readings.word[name]]
    whole = readings.whole[name]
    after = {
        word: _after(word) for word, all_of_it in zip(words, whole, strict=True) if word is not None and not all_of_it
    }
    marks = tuple(sorted({word for word in words if word is not None} | {end for end in after.values() if end}))
    place = {mark: 2.0 * number + 1 for number, mark in enumerate(marks)}
    low = np.array([0.0 if word is None else place[word] for word in words])
    # Just before the mark that no such text reaches; there is none after those that begin with "".
    end = {word: place[mark] - 1 if mark else np.inf for word, mark in after.items()}
    high = np.array([0.0 if word is None else end.get(word, 0.0) for word in words])
    return Axis(name, "text", marks, bool(whole[readings.named[name]].all())), low, np.where(whole, low, high)


def _after(beginning: bytes) -> bytes:
    """The first bytes after all those that begin so; nothing comes after all that begin with nothing."""
    return beginning[:-1] + bytes([beginning[-1] + 1]) if beginning else b""  # UTF-8 has no byte 255


# --- Events


def place_events(axes: Sequence[Axis], columns: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> Numbers:
    """The points values[E, K] of events with these columns, one per axis; NaN where a value is missing."""
    values = np.empty((rows, len(axes)))
    for k, (axis, column) in enumerate(zip(axes, columns, strict=True)):
        values[:, k] = _place(axis, column)
    return values


def _place(axis: Axis, column: pa.Array | pa.ChunkedArray) -> Numbers:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if axis.kind == "text":
        return _place_texts(axis, column)
    if axis.kind == "real":
        return _as_floats(column.cast(pa.float64()))
    whole = (
        column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False) if axis.kind == "time" else column
    )
    whole = whole.cast(pa.int64())
    if axis.marks is None:
        return _as_floats(whole.cast(pa.float64(), safe=False))
    missing = whole.is_null().to_numpy(zero_copy_only=False)
    return np.where(missing, np.nan, _places(axis.marks, whole.fill_null(0).to_numpy()))  # type: ignore[arg-type]


def _as_floats(column: pa.Array) -> Numbers:
    return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]  # null becomes NaN


def _place_texts(axis: Axis, column: pa.Array) -> Numbers:
    marks: Any = axis.marks
    # Whole texts are looked up by hash. A text that is no mark gets -1, where no box is, without being sorted in.
    if axis.only_whole and not pa.types.is_dictionary(column.type):
        found = pc.index_in(column, value_set=pa.array([mark.decode() for mark in marks], column.type))
        missing = column.is_null().to_numpy(zero_copy_only=False)
        number = found.fill_null(-1).to_numpy()
        return np.where(missing, np.nan, 2.0 * number + 1)
    # Each distinct text is placed once, however many events carry it.
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    places: Numbers = np.array([*(_place_of_text(marks, text) for text in coded.dictionary.to_pylist()), np.nan])
    indices: NDArray[np.int32] = coded.indices.cast(pa.int32()).fill_null(len(coded.dictionary)).to_numpy()
    return places.take(indices)


def _place_of_text(marks: Sequence[bytes], text: str | None) -> float:
    if text is None:
        return np.nan
    value = text.encode()
    place = bisect_left(marks, value)
    return 2.0 * place + (place < len(marks) and marks[place] == value)
