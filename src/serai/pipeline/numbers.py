"""Which events are new, and which are missing: the sequence numbers of each node and epoch as a bitmap.

Of 9 events in 10 that arrive, a bitmap takes some 0.2 bytes an event. A gap in it is an event that is missing. Events
that their nodes do not count are known by a hash of their id, in sorted arrays that are read where they lie.
What a batch adds is written as a part of its own; parts are merged as they come (`serai.spark.runs`).
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyroaring import BitMap64

from serai.spark.runs import Runs
from serai.spark.stores import Folder, Store

Key = tuple[str, str]  # node and epoch
Whole = NDArray[np.int64]


class Gap(NamedTuple):
    """Events that are missing: first and last."""

    first: int
    last: int


class Numbers:
    """The sequence numbers that came, of each node and epoch."""

    def __init__(self, store: Store, before: int) -> None:
        self.runs = Runs(store, "state/numbers", "parquet")
        self.came: dict[Key, BitMap64] = {}
        self.more: dict[Key, BitMap64] = {}  # of the batch that is being made
        for data in self.runs.read(before):
            _unite(self.came, data)

    def fresh(self, key: Key, seq: Whole) -> NDArray[np.bool_]:
        """Which of a node's events did not come before, nor earlier in this batch; from now on they have come."""
        first = np.ones(len(seq), np.bool_)
        ascending = bool((seq[1:] > seq[:-1]).all())
        if not ascending:
            first[:] = False
            first[np.unique(seq, return_index=True)[1]] = True
        numbers = BitMap64(seq[first])
        for known in (self.came.get(key), self.more.get(key)):
            repeated = None if known is None else numbers & known
            if repeated:
                values = np.array(repeated.to_array(), np.int64)
                if ascending:
                    first[np.searchsorted(seq, values)] = False
                else:
                    first &= ~np.isin(seq, values)
                numbers -= repeated
        if key in self.more:
            self.more[key].update(numbers)
        else:
            self.more[key] = numbers
        return first

    def write(self, batch: int) -> None:
        """Keep what the batch has added; made anew it is the same."""
        if any(self.more.values()):
            self.runs.add(batch, _as_bytes(self.more))

    def done(self, batch: int) -> None:
        """The batch is in the tables: remember what it has added."""
        for key, new in self.more.items():
            if key in self.came:
                self.came[key].update(new)
            else:
                self.came[key] = new
        self.more = {}
        self.runs.merge(batch + 1, _united)


def rows_by_key(
    node: pa.ChunkedArray, epoch: pa.ChunkedArray, counted: NDArray[np.bool_]
) -> Iterator[tuple[Key, Whole]]:
    """The nodes and epochs, which are codes of names, and which of the `counted` rows are theirs, ascending."""
    nodes, epochs = node.combine_chunks(), epoch.combine_chunks()
    width = len(epochs.dictionary)
    codes = nodes.indices.fill_null(0).to_numpy() * np.int64(width) + epochs.indices.fill_null(0).to_numpy()
    codes = np.where(counted, codes, -1)
    order = np.argsort(codes, kind="stable") if (codes[1:] < codes[:-1]).any() else np.arange(len(codes))
    codes = codes[order]
    begin = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]]) if len(codes) else order
    names = nodes.dictionary.to_pylist(), epochs.dictionary.to_pylist()
    for first, beyond in zip(begin.tolist(), [*begin[1:].tolist(), len(codes)], strict=True):
        if codes[first] >= 0:
            yield (names[0][codes[first] // width], names[1][codes[first] % width]), order[first:beyond]


def _unite(came: dict[Key, BitMap64], data: bytes) -> None:
    table = pq.read_table(io.BytesIO(data))
    for node, epoch, numbers in zip(*(table[name].to_pylist() for name in table.column_names), strict=True):
        new = BitMap64.deserialize(numbers)
        if (node, epoch) in came:
            came[node, epoch].update(new)
        else:
            came[node, epoch] = new


def _united(parts: Sequence[bytes]) -> bytes:
    came: dict[Key, BitMap64] = {}
    for part in parts:
        _unite(came, part)
    return _as_bytes(came)


def _as_bytes(numbers: dict[Key, BitMap64]) -> bytes:
    ordered = sorted((key, new) for key, new in numbers.items() if new)
    table = pa.table(
        {
            "node": pa.array([node for (node, _), _ in ordered], pa.string()),
            "epoch": pa.array([epoch for (_, epoch), _ in ordered], pa.string()),
            "numbers": pa.array([new.serialize() for _, new in ordered], pa.binary()),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, use_dictionary=False)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


class Ids:
    """Ids that came, as numbers of 63 bits: sorted arrays, those of a folder read where they lie."""

    def __init__(self, store: Store, folder: str, before: int) -> None:
        self.runs = Runs(store, f"state/{folder}", "npy")
        self.came: list[Whole] = []
        self.more: list[Whole] = []  # of the batch that is being made
        self._open(before)

    def _open(self, before: int) -> None:
        self.came = [_array(self.runs.store, self.runs.name_of(part)) for part in self.runs.parts(before)]

    def fresh(self, ids: Whole) -> NDArray[np.bool_]:
        """Which ids did not come before, nor earlier in this batch; from now on they have come."""
        values, place = np.unique(ids, return_index=True)
        new = np.ones(len(values), np.bool_)
        for known in [*self.came, *self.more]:
            at = np.minimum(np.searchsorted(known, values), len(known) - 1)
            new &= known[at] != values
        first = np.zeros(len(ids), np.bool_)
        first[place[new]] = True
        if new.any():
            self.more.append(values[new])
        if len(self.more) > 16:  # few arrays, so that a look at all of them is short
            self.more = [np.sort(np.concatenate(self.more))]
        return first

    def write(self, batch: int) -> None:
        """Keep what the batch has added; made anew it is the same."""
        if self.more:
            self.runs.add(batch, _as_npy(np.concatenate(self.more)))

    def done(self, batch: int) -> None:
        """The batch is in the tables: remember what it has added."""
        if self.more:
            self.more = []
            self.runs.merge(batch + 1, lambda parts: _as_npy(np.concatenate([np.load(io.BytesIO(p)) for p in parts])))
            self._open(batch + 1)


def _array(store: Store, name: str) -> Any:
    return (
        np.load(store.path / name, mmap_mode="r")
        if isinstance(store, Folder)
        else np.load(io.BytesIO(store.read(name)))
    )


def _as_npy(ids: Whole) -> bytes:
    file = io.BytesIO()
    np.save(file, np.sort(ids))
    return file.getvalue()


def gaps(numbers: BitMap64) -> Iterator[Gap]:
    """The events between the first and the last that came, which are missing; nodes count from 0 or from 1."""
    if not numbers:
        return
    place, last = min(1, numbers.min()), numbers.max()
    while (first := _end_of_run(numbers, place)) < last:
        place = numbers.next_set_bit(first)
        yield Gap(first, place - 1)


def _end_of_run(numbers: BitMap64, place: int) -> int:
    """The first number from `place` on that did not come: by steps that grow, as a bogus number may be far away."""
    step = 1
    while numbers.contains_range(place, place + step):
        place, step = place + step, 2 * step
    while step > 1:
        step //= 2
        if numbers.contains_range(place, place + step):
            place += step
    return place


def missing_count(numbers: BitMap64) -> int:
    """How many events are missing between the first and the last."""
    return int(numbers.max() - min(1, numbers.min()) + 1 - len(numbers)) if numbers else 0
