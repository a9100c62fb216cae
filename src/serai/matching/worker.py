"""What a Spark worker does with events: place them, ask the index, answer in Arrow. No Spark in here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from serai.core.jit import kernel
from serai.matching.boxes import Asked, place_events, shared_out
from serai.matching.files import Piece, Rows, read_pieces
from serai.matching.index import BoxIndex, build_index, find_pairs

Mode = Literal["pairs", "counts", "any", "first"]
BATCH_ROWS = 1 << 18  # events sorted by cell at a time: the more, the better the index stays in the cache
_BUILT: dict[str, BoxIndex] = {}  # of this process: a worker serves many tasks of the same query


@dataclass
class Tally:
    """How many events a task saw, and how many of them something wanted."""

    events: int = 0
    matched: int = 0
    rejected: int = 0
    pairs: int = 0


@dataclass(frozen=True)
class Matcher:
    """Answers which subscriptions want which events; sent to the workers, which build the index when first asked."""

    asked: Asked
    mode: Mode = "pairs"
    most: int = 0  # events per subscription, in mode "first"
    columns: tuple[str, ...] = field(default=())  # event, the attributes, and in mode "first" what orders events

    @cached_property
    def token(self) -> str:
        """A name for the boxes: equal boxes, equal name."""
        digest = hashlib.blake2b(self.asked.low.tobytes(), digest_size=16)
        digest.update(self.asked.high.tobytes())
        return f"{digest.hexdigest()}-{self.asked.low.shape}"

    def index(self) -> BoxIndex:
        """The index of the boxes, built once per process."""
        if self.token not in _BUILT:
            while len(_BUILT) > 1:
                _BUILT.pop(next(iter(_BUILT)))
            _BUILT[self.token] = build_index(self.asked.low, self.asked.high)
        return _BUILT[self.token]

    def schema(self, event: pa.DataType, order: pa.DataType | None = None) -> pa.Schema:
        """The columns of the answer."""
        subscription = pa.field("subscription", self.asked.ids.type)
        found = pa.field("event", event)
        if self.mode == "counts":
            return pa.schema([subscription, pa.field("events", pa.int64())])
        if self.mode == "any":
            return pa.schema([found])
        return pa.schema([found, subscription] + ([pa.field("order", order)] if self.mode == "first" else []))

    def column_names(self) -> list[str]:
        """What the columns are called on their way: an attribute may also be the order."""
        values = [f"value{k}" for k in range(len(self.asked.axes))]
        return ["event", *values, *(["order"] if self.mode == "first" else [])]

    def read(
        self, pieces: Iterable[Piece], files: pa.Schema, without: Mapping[Piece, Rows] | None = None
    ) -> Iterator[pa.Table]:
        """The events of some row groups but for the rows `without`, with the columns that this question needs."""
        schema = pa.schema([files.field(name) for name in self.columns])
        for table in read_pieces(pieces, schema, BATCH_ROWS, without):
            yield table.rename_columns(self.column_names())

    def answer(self, tables: Iterable[pa.Table], tally: Tally | None = None) -> Iterator[pa.Table]:
        """The answers to some events, which have the columns `columns` in this order."""
        tally = tally or Tally()
        if self.mode == "counts":
            yield from self._counts(tables, tally)
            return
        for table in tables:
            for row, box in self.pairs(table, tally):
                yield self._as_table(table, row, box)

    def _counts(self, tables: Iterable[pa.Table], tally: Tally) -> Iterator[pa.Table]:
        counts = np.zeros(len(self.asked.ids), np.int64)
        for table in tables:
            for _, box in self.pairs(table, tally):
                counts += np.bincount(box, minlength=len(counts))
        some = np.flatnonzero(counts)
        yield pa.table({"subscription": self.asked.ids.take(pa.array(some)), "events": counts[some]})

    def pairs(self, table: pa.Table, tally: Tally) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Rows of events, and the numbers of subscriptions that want them; in mode "any" only rows."""
        tally.events += len(table)
        nameless = table["event"].null_count
        if nameless:
            tally.rejected += nameless
        values = place_events(self.asked.axes, table.columns[1 : 1 + len(self.asked.axes)], len(table))
        matched = np.zeros(len(table), np.bool_)
        named = table["event"].is_valid().to_numpy() if nameless else None
        for row, box in find_pairs(self.index(), values, matched, one_each=self.mode == "any"):
            keep = slice(None) if named is None else named[row]
            whose = (
                [(row[keep], box[keep])] if self.mode == "any" else shared_out(self.asked, values, row[keep], box[keep])
            )
            for rows, subscriptions in whose:
                tally.pairs += len(rows)
                yield rows, subscriptions
        tally.matched += int((matched if named is None else matched & named).sum())

    def _as_table(self, table: pa.Table, row: NDArray[np.int32], box: NDArray[np.int32]) -> pa.Table:
        events = {"event": _take(table["event"], row)}
        if self.mode == "any":
            return pa.table(events)
        found = events | {"subscription": _take(self.asked.ids, box)}
        if self.mode == "first":
            return self._first(found | {"order": _take(table["order"], row)})
        return pa.table(found)

    def _first(self, found: dict[str, pa.Array]) -> pa.Table:
        """Of one batch's pairs those that can be among the first of their subscription."""
        table = pa.table(found)
        keys = [("subscription", "ascending"), ("order", "ascending"), ("event", "ascending")]
        table = table.sort_by(keys)
        codes = table["subscription"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
        starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]]) if len(codes) else np.empty(0, np.int64)
        rank = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
        return table.filter(pa.array(rank < self.most))


@kernel
def order_by_number(numbers: NDArray[np.int32], beyond: int) -> NDArray[np.int32]:
    """The places of numbers from 0 on, those of the least number first: a counting sort, stable."""
    end = np.zeros(beyond + 1, np.int64)
    for number in numbers:
        end[number + 1] += 1
    for number in range(beyond):
        end[number + 1] += end[number]
    order = np.empty(len(numbers), np.int32)
    for place in range(len(numbers)):
        number = numbers[place]
        order[end[number]] = place
        end[number] += 1
    return order


def _take(column: pa.Array | pa.ChunkedArray, places: NDArray[np.int32]) -> pa.Array:
    """Elements of a column; plain numbers without nulls by numpy, which is faster."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_integer(column.type) and column.null_count == 0:
        return pa.array(column.to_numpy()[places], column.type)
    return column.take(pa.array(places))


def in_batches(parts: Iterable[pa.RecordBatch], rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
    """The same rows in larger tables."""
    held: list[pa.RecordBatch] = []
    count = 0
    for part in parts:
        held.append(part)
        count += len(part)
        if count >= rows:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held)
