"""Subscriptions as boxes, and events as points, of float64: every kind of attribute gets places on the number line.

Reals stand for themselves, integers and times too as long as no bound lies where float64 skips integers. Other
integers, and texts, are placed by comparison with the values that subscriptions mention (`marks`, ascending): mark i
is at 2 i + 1, and whatever lies between it and the mark before is at 2 i. Only the order relative to the marks can
decide a condition, so nothing is lost, and the one rule `serai.core.content.matches` serves every kind of attribute. A
text that begins with "no" lies between "no" and the first text after all those that begin so.

Subscriptions that ask the same share a box, and a subscription with `or` has several. An event goes to a subscription
by the first of its boxes that holds it, and by no other: so it goes there once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from serai.core.conditions import ENDS, Kind, Span, exactly
from serai.core.content import matches
from serai.core.jit import kernel
from serai.core.readings import Readings

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]
_MOST = float(np.finfo(np.float64).max)
_DENSE = 2**53 - 1  # up to here float64 tells every integer from the next


class Axis(NamedTuple):
    """An attribute that subscriptions ask about, and how its values are placed."""

    name: str
    kind: Kind
    marks: NDArray[Any] | tuple[bytes, ...] | None = None
    only_whole: bool = False  # texts are only asked for as a whole


class Members(NamedTuple):
    """Which subscriptions each box belongs to, and which boxes each subscription has."""

    start: Whole  # subscriptions of box b: member[start[b]:start[b + 1]]
    member: Whole
    own_start: Whole  # boxes of subscription s: own[own_start[s]:own_start[s + 1]]
    own: Whole


class Asked(NamedTuple):
    """What all subscriptions ask: boxes low[b] .. high[b]; without `members`, box b belongs to subscription b."""

    axes: tuple[Axis, ...]
    low: Numbers
    high: Numbers
    ids: pa.Array  # of the subscriptions
    members: Members | None = None

    @property
    def attributes(self) -> list[str]:
        """Names of the attributes that are asked about."""
        return [axis.name for axis in self.axes]


def kind_of(column: pa.DataType) -> Kind | None:
    """The kind of attribute that a column of this type can be; None if it can be none."""
    if pa.types.is_dictionary(column):
        column = column.value_type
    if column == pa.uint64():
        return "unsigned"
    if pa.types.is_floating(column) or pa.types.is_decimal(column):
        return "real"
    if pa.types.is_integer(column):
        return "integer"
    if pa.types.is_boolean(column):
        return "boolean"
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
    low, high = (np.stack(bounds, axis=1) if bounds else none for bounds in (lows, highs))
    asking, owner = np.unique(readings.owner[kept], return_inverse=True)
    first, members = _shared(low, high, owner)
    return Asked(tuple(axes), low[first], high[first], ids.take(pa.array(asking)), members)


def _shared(low: Numbers, high: Numbers, owner: Whole) -> tuple[Whole | slice, Members | None]:
    """One row of each distinct box, and who asks for it; all rows, if each subscription has one box of its own."""
    _, first, box = np.unique(_fingerprints(low, high), return_index=True, return_inverse=True)
    if not ((low[first][box] == low).all() and (high[first][box] == high).all()):  # two boxes with one fingerprint
        _, first, box = np.unique(np.hstack([low, high]), axis=0, return_index=True, return_inverse=True)
    if len(first) == len(low) and (owner == np.arange(len(low))).all():
        return slice(None), None
    subscriptions = int(owner.max(initial=-1)) + 1
    pairs = np.unique(np.stack([owner, box], axis=1), axis=0)  # a subscription may name a box twice
    by_box = pairs[np.argsort(pairs[:, 1], kind="stable")]
    starts = (
        np.concatenate([[0], np.cumsum(np.bincount(column, minlength=size))])
        for column, size in ((pairs[:, 1], len(first)), (pairs[:, 0], subscriptions))
    )
    start, own_start = starts
    return first, Members(start, by_box[:, 0].copy(), own_start, pairs[:, 1].copy())


def _fingerprints(low: Numbers, high: Numbers) -> NDArray[np.uint64]:
    """A number for each box, the same for equal boxes and nearly always another for others."""
    found = np.zeros(len(low), np.uint64)
    for column in np.hstack([low, high]).T + 0.0:  # -0.0 becomes 0.0
        found = (found ^ np.ascontiguousarray(column).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(29)
    return found


def shared_out(
    asked: Asked, values: Numbers, row: NDArray[np.int32], box: NDArray[np.int32], most: int = 1 << 20
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Events and subscriptions from events `row` and boxes that hold them, some `most` at a time."""
    if asked.members is None:
        yield row, box
        return
    at, skipped = 0, 0
    while at < len(row):
        rows, subscriptions = np.empty(most, np.int32), np.empty(most, np.int32)
        at, skipped, found = _share(
            values, asked.low, asked.high, asked.members, row, box, at, skipped, rows, subscriptions
        )
        yield rows[:found], subscriptions[:found]


@kernel
def _share(
    values: Numbers,
    low: Numbers,
    high: Numbers,
    members: Members,
    row: NDArray[np.int32],
    box: NDArray[np.int32],
    at: int,
    skipped: int,
    rows: NDArray[np.int32],
    subscriptions: NDArray[np.int32],
) -> tuple[int, int, int]:
    """Write down who gets the events from pair `at` on, but for `skipped` members of its box, while there is room."""
    found = 0
    while at < len(row):
        event, held_by = row[at], box[at]
        for place in range(members.start[held_by] + skipped, members.start[held_by + 1]):
            if found == len(rows):
                return at, place - members.start[held_by], found
            subscription = members.member[place]
            earlier = members.own_start[subscription]
            while members.own[earlier] != held_by and not matches(
                values[event], low[members.own[earlier]], high[members.own[earlier]]
            ):
                earlier += 1
            if members.own[earlier] == held_by:
                rows[found], subscriptions[found] = event, subscription
                found += 1
        at, skipped = at + 1, 0
    return at, 0, found


def _number_axis(readings: Readings, name: str, kinds: Mapping[str, Kind]) -> tuple[Axis, Numbers, Numbers]:
    low, high = readings.low[name], readings.high[name]
    if kinds[name] == "real":
        return Axis(name, "real"), low, high
    least, most = ENDS[kinds[name]]
    named = readings.named[name]
    bounds = np.unique(np.concatenate([low[named], high[named]]))
    inner = bounds[(bounds != least) & (bounds != most)].tolist()
    if not inner or (inner[0] >= -_DENSE and inner[-1] <= _DENSE):
        # Not infinity: an attribute without any bound would accept a missing value.
        below = np.where(low == least, -_MOST, low.astype(np.float64))
        return Axis(name, kinds[name]), below, np.where(high == most, _MOST, high.astype(np.float64))
    return Axis(name, kinds[name], bounds), _places(bounds, low), _places(bounds, high)


def _places(marks: NDArray[Any], values: NDArray[Any]) -> Numbers:
    """Where whole numbers lie among the marks: odd at a mark, even between two."""
    place = np.searchsorted(marks, values, "left")
    at_mark = marks[np.minimum(place, len(marks) - 1)] == values
    return np.asarray(2 * place + at_mark, np.float64)


def _text_axis(readings: Readings, name: str) -> tuple[Axis, Numbers, Numbers]:
    """Marks where spans begin, and where those end that are more than one text."""
    spans = [Span("", None) if span is None else span for span in readings.spans[name]]
    whole = np.array([span == exactly(span.low) for span in spans], np.bool_)
    ends = {span.high for span, one in zip(spans, whole.tolist(), strict=True) if not one and span.high is not None}
    texts = {span.low for span in spans} | ends
    marks = tuple(sorted(text.encode() for text in texts))
    place = {mark.decode(): 2.0 * number + 1 for number, mark in enumerate(marks)}
    low = np.array([place[span.low] for span in spans])
    # Just before the mark that no such text reaches.
    high = np.array([np.inf if span.high is None else place.get(span.high, 0.0) - 1 for span in spans])
    only_whole = bool(whole[readings.named[name] & readings.possible].all())
    return Axis(name, "text", marks, only_whole), low, np.where(whole, low, high)


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
    whole = whole.cast(pa.uint64() if axis.kind == "unsigned" else pa.int64())
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
