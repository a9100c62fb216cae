"""What reports say of the events and pairs of a pipeline, as counts that can be added up: batch by batch.

A report over all that ever came must not read all that ever came. So each batch leaves a small table of counts, and
`serai.spark.runs` adds them up. A row says how many (`rows`) there were of something, and the least and greatest of a
number that goes with it:

    what            of                  at                   low and high
    node            node                delay, in steps      delay in microseconds
    time            node, epoch         0                    time in microseconds
    cell            node, epoch         ten minutes of time  sequence number
    carrier         carrier             delay, in steps      arrival in microseconds
    carried         carrier, node       0                    –
    subscription    subscription        delay, in steps      –
    arrival         –                   0                    arrival in microseconds

Steps of delays are 4 % apart, so a median is within 2 %; an event without a time has none.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from serai.spark.runs import Runs
from serai.spark.stores import Store

Whole = NDArray[np.int64]
CELL_S: Final = 600
_KEPT_CELLS: Final = 40 * 86_400 // CELL_S  # older than this, beside the newest, they are forgotten
_AHEAD_CELLS: Final = 86_400 // CELL_S  # a clock that is more than a day ahead says nothing of when
_STEP: Final = float(np.log(1.04))
_NO_DELAY: Final = -(1 << 20)
_BETWEEN: Final = "\0"
SCHEMA: Final = pa.schema(
    [("what", pa.string()), ("of", pa.string()), ("at", pa.int64()), ("rows", pa.int64()), ("low", pa.int64()),
     ("high", pa.int64())]
)  # fmt: skip


class Told(NamedTuple):
    """Of something, how many events there were, how late half and 95 % of them came at most, and both ends."""

    events: int
    median_s: float | None
    p95_s: float | None
    low: int | None
    high: int | None


# --- One batch, or a part of it


def summary_of(rows: pa.Table, arrived: datetime) -> pa.Table:
    """The counts of new events, which have the columns of `serai.pipeline.columns.OWN`."""
    arrived_us = round(arrived.timestamp() * 1e6)
    time_us = rows["time"].cast(pa.int64())
    delay_us = pc.subtract(arrived_us, time_us)
    events = pa.table(
        {
            **{name: rows[name] for name in ("node", "epoch", "carrier")},
            "step": pa.array(steps_of(delay_us)),
            "delay": delay_us,
            "time": time_us,
            "cell": pc.divide(time_us, CELL_S * 1_000_000),
            "seq": rows["seq"],
            "arrived": pa.repeat(arrived_us, len(rows)),
        }
    )
    named, carried = _with(events, "node"), _with(events, "carrier")
    timed = _with(named, "time")
    found = [
        _counts("node", named, ["node"], "step", "delay"),
        _counts("time", timed, ["node", "epoch"], None, "time"),
        _counts("cell", _with(timed, "seq"), ["node", "epoch"], "cell", "seq"),
        _counts("carrier", carried, ["carrier"], "step", "arrived"),
        _counts("carried", carried, ["carrier", "node"], None, None),
        _counts("arrival", events, [], None, "arrived"),
    ]
    return pa.concat_tables(found)


def _with(events: pa.Table, column: str) -> pa.Table:
    """The events that have a value there."""
    return events.filter(events[column].is_valid()) if events[column].null_count else events


def _counts(what: str, events: pa.Table, keys: list[str], at: str | None, value: str | None) -> pa.Table:
    """How many events there are of each key, and between which values.

    Events of a node lie together in its logs, in the order of their times: first each run of the same key is counted,
    then the runs.
    """
    if not len(events):
        return SCHEMA.empty_table()
    coded = {key: _codes(events[key]) for key in keys}
    columns = {key: code.indices.to_numpy() for key, code in coded.items()}
    columns["at"] = np.zeros(len(events), np.int64) if at is None else events[at].to_numpy()
    changes = np.zeros(len(events), np.bool_)
    changes[0] = True
    for column in columns.values():
        changes[1:] |= column[1:] != column[:-1]
    begin = np.flatnonzero(changes)
    runs = {name: column[begin] for name, column in columns.items()}
    runs["rows"] = np.diff(begin, append=len(events))
    for name, least in (("low", True), ("high", False)):
        runs[name] = _ends_of_runs(None if value is None else events[value], begin, least)
    found = (
        pa.table(runs)
        .group_by([*keys, "at"], use_threads=False)
        .aggregate([("rows", "sum"), ("low", "min"), ("high", "max")])
    )
    names = [code.dictionary.take(found[key].combine_chunks()) for key, code in coded.items()]
    of = pc.binary_join_element_wise(*names, _BETWEEN) if names else pa.repeat("", len(found))
    return pa.table(
        [pa.repeat(what, len(found)), of, found["at"], found["rows_sum"], found["low_min"], found["high_max"]],
        schema=SCHEMA,
    )


def _codes(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column of names as codes; no name is an empty one."""
    whole = column.combine_chunks()
    return (whole.cast(pa.string()).fill_null("") if whole.null_count else whole).dictionary_encode()


def _ends_of_runs(values: pa.ChunkedArray | None, begin: Whole, least: bool) -> pa.Array:
    """The least or greatest value of each run; null where there is none."""
    if values is None:
        return pa.nulls(len(begin), pa.int64())
    ends, which = np.iinfo(np.int64), np.minimum if least else np.maximum
    none = ends.max if least else ends.min
    found = which.reduceat(values.fill_null(int(none)).to_numpy(), begin)
    return pa.array(found, mask=found == none)


def steps_of(delay_us: pa.ChunkedArray) -> Whole:
    """The step of each delay."""
    delay_s = delay_us.cast(pa.float64(), safe=False).to_numpy() / 1e6
    steps = np.sign(delay_s) * np.rint(np.log1p(np.abs(delay_s)) / _STEP)
    return np.where(np.isnan(steps), _NO_DELAY, steps).astype(np.int64)


def summary_of_pairs(ids: pa.Array, subscriptions: NDArray[np.int32], steps: Whole) -> pa.Table:
    """The counts of pairs, by the number of the subscription and the step of the delay of the event."""
    least = int(steps.min(initial=0))
    width = int(steps.max(initial=0)) - least + 1
    keys = subscriptions.astype(np.int64) * width + (steps - least)
    if len(ids) * width <= 4 * len(keys):
        counts = np.bincount(keys)
        some = np.flatnonzero(counts)
        counts = counts[some]
    else:
        some, counts = np.unique(keys, return_counts=True)
    none = pa.nulls(len(some), pa.int64())
    of = ids.cast(pa.string()).take(pa.array(some // width))
    columns = [pa.repeat("subscription", len(some)), of, pa.array(some % width + least), pa.array(counts), none, none]
    return pa.table(columns, schema=SCHEMA)


def added_up(tables: Iterable[pa.Table]) -> pa.Table:
    """The counts of all these together; cells of long ago are forgotten."""
    table = pa.concat_tables([SCHEMA.empty_table(), *tables])
    found = table.group_by(["what", "of", "at"], use_threads=False).aggregate(
        [("rows", "sum"), ("low", "min"), ("high", "max")]
    )
    found = found.rename_columns(SCHEMA.names).cast(SCHEMA)
    is_cell = pc.equal(found["what"], "cell")
    arrival = pc.max(found.filter(pc.equal(found["what"], "arrival"))["high"]).as_py()
    if arrival is None or not pc.any(is_cell).as_py():
        return found
    latest = arrival // (CELL_S * 1_000_000) + _AHEAD_CELLS
    cells = found.filter(is_cell)["at"]
    newest = pc.max(cells.filter(pc.less_equal(cells, latest))).as_py()
    oldest = (latest if newest is None else newest) - _KEPT_CELLS
    kept = pc.and_(pc.greater_equal(found["at"], oldest), pc.less_equal(found["at"], latest))
    return found.filter(pc.or_(pc.invert(is_cell), kept))


# --- All that came


class Summary:
    """The counts of all batches."""

    def __init__(self, store: Store, before: int) -> None:
        self.rows = added_up(map(_read, _runs(store).read(before)))

    @staticmethod
    def write(store: Store, batch: int, rows: pa.Table) -> None:
        """Keep the counts of a batch; made anew they are the same."""
        if len(rows):
            _runs(store).add(batch, _as_bytes(rows))

    @staticmethod
    def merge(store: Store, batch: int) -> None:
        """Add up parts about batches that are in the tables."""
        _runs(store).merge(batch + 1, lambda parts: _as_bytes(added_up(map(_read, parts))))

    def of(self, what: str) -> pa.Table:
        """The rows about something."""
        return self.rows.filter(pc.equal(self.rows["what"], what))

    def told(self, what: str) -> dict[str, Told]:
        """What there is to say of each node, carrier or subscription."""
        rows = self.of(what).sort_by([("of", "ascending"), ("at", "ascending")])
        if not len(rows):
            return {}
        names = rows["of"].combine_chunks().dictionary_encode()
        codes, at, count = names.indices.to_numpy(), rows["at"].to_numpy(), rows["rows"].to_numpy()
        begin = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
        events = np.add.reduceat(count, begin)
        unknown = np.add.reduceat(np.where(at == _NO_DELAY, count, 0), begin)
        reached = np.cumsum(count)
        before = reached[begin] - count[begin] + unknown
        quantiles = [
            _seconds(at[np.searchsorted(reached, before + np.maximum(1, np.ceil(part * (events - unknown))))
                        .clip(max=len(at) - 1)])
            for part in (0.5, 0.95)
        ]  # fmt: skip
        ends = [_ends(rows[name], begin, which) for name, which in (("low", np.minimum), ("high", np.maximum))]
        found: dict[str, Told] = {}
        for name, count_of, none, half, most, low, high in zip(
            names.dictionary.to_pylist(), events.tolist(), unknown.tolist(), *map(list, quantiles), *ends, strict=True
        ):
            known = count_of > none
            found[name] = Told(count_of, float(half) if known else None, float(most) if known else None, low, high)
        return found


def _ends(column: pa.ChunkedArray, begin: Whole, which: Any) -> list[int | None]:
    worst = np.iinfo(np.int64).max if which is np.minimum else np.iinfo(np.int64).min
    found = which.reduceat(column.fill_null(int(worst)).to_numpy(), begin)
    return [None if value == worst else int(value) for value in found]


def _seconds(steps: Whole) -> NDArray[np.float64]:
    return np.sign(steps) * np.expm1(np.abs(steps) * _STEP)


def _runs(store: Store) -> Runs:
    return Runs(store, "state/summary", "parquet")


def _as_bytes(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _read(data: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(data))
