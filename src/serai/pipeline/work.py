"""What workers do for a batch: read files into pieces of rows, and keep what is new of a piece. No Spark in here.

work/N/00003-0.ids      a piece of the rows of the files of task 3: nodes, epochs and numbers, which tell what is new
work/N/00003-0.rest     the other columns of the same rows
work/N/00003-0.new      which rows those are: a bit each
work/N/00003.contacts   rows for another table
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.matching.landing import LANDED
from serai.matching.texts import Rejected
from serai.matching.worker import BATCH_ROWS, Matcher, Tally, order_by_number
from serai.pipeline.columns import OWN, TIME
from serai.pipeline.parts import Part, write_part, write_parts_by_day
from serai.pipeline.readers import COLUMNS, How, event_ids, read_log
from serai.pipeline.recorded import row_hashes
from serai.pipeline.summary import added_up, steps_of, summary_of, summary_of_pairs
from serai.spark.stores import Folder, Store

_PIECE_ROWS: Final = 1 << 20
_PIECE_BYTES: Final = 1 << 27
PAIRS_AT_ONCE: Final = 1 << 22
"""Pairs that are sorted and written together: some 150 MB."""
REJECTS: Final = pa.schema([(name, pa.string()) for name in ("file", "sha256", "id", "reason", "row")])


class Copy(NamedTuple):
    """A landed file: the name of its copy, its format, and how people call it."""

    copy: str
    format: str | None
    sha256: str
    name: str


# --- Reading


@dataclass(frozen=True)
class Reading:
    """Reads the files of a task, and writes their rows as pieces."""

    store: Store
    batch: int
    tasks: tuple[tuple[Copy, ...], ...]
    known: pa.Schema
    how: How
    names: tuple[int, ...]  # numbers of the tasks in the batch, of which these may be some

    def __call__(self, number: int) -> dict[str, Any]:
        """What became of each file, and where its rows are."""
        copies, task = self.tasks[number], f"{self.names[number]:05}"
        pieces = _Pieces(self.store, f"{work_of(self.batch)}/{task}", alone=len(copies) == 1)
        files, rejects = [], _Rejects()
        known = self.known
        for number, copy in enumerate(copies):
            mark = pieces.mark(), len(rejects.rows)
            try:
                with self.store.here(f"{LANDED}/{copy.copy}") as path:
                    for read in read_log(path, copy.format, known, self.how):
                        rejects.add(copy, read.rejected)
                        pieces.add(number, read.rows, read.others)
                        known = with_columns(known, read.rows.schema)
                reason = None
            except BadInput as error:
                pieces.forget_since(mark[0])
                del rejects.rows[mark[1] :]
                reason = str(error)
            files.append({"rows": pieces.rows_of(number), "rejected": len(rejects.rows) - mark[1], "reason": reason})
        pieces.flush()
        parts = rejects.write(self.store, self.batch, f"{task}-read")
        return {"files": files, "pieces": pieces.written, "rejects": parts}


def with_columns(known: pa.Schema, more: pa.Schema) -> pa.Schema:
    """The known columns, and those of others that are new."""
    return pa.schema([*known, *(column for column in more if column.name not in known.names)])


def work_of(batch: int) -> str:
    """The folder for what is made on the way to a batch."""
    return f"work/{batch:08}"


@dataclass
class _Rejects:
    """Rows and values that cannot be used."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, copy: Copy, rejected: list[Rejected]) -> None:
        self.rows += [each._asdict() | {"file": copy.name, "sha256": copy.sha256} for each in rejected]

    def write(self, store: Store, batch: int, name: str) -> list[Any]:
        return [write_part(store, "rejects", batch, name, rejects_table(self.rows, batch))] if self.rows else []


def rejects_table(rows: list[dict[str, Any]], batch: int) -> pa.Table:
    """Rejects as their table has them."""
    table = pa.Table.from_pylist(rows, REJECTS)
    return table.append_column("batch", pa.repeat(batch, len(table)))


class _Pieces:
    """Rows of some files, gathered and written in pieces of bounded size."""

    def __init__(self, store: Store, name: str, alone: bool) -> None:
        self.store, self.name, self.alone = store, name, alone
        self.held: list[tuple[int, pa.Table]] = []  # number of the file, rows
        self.others: dict[str, list[pa.Table]] = {}
        self.written: list[dict[str, Any]] = []
        self.counts: dict[int, int] = {}
        self.rows, self.bytes = 0, 0  # about those that are held

    def mark(self) -> tuple[int, dict[str, int]]:
        """Where the next file begins."""
        if self._is_full():
            self._write_piece()
        return len(self.held), {name: len(tables) for name, tables in self.others.items()}

    def forget_since(self, mark: tuple[int, dict[str, int]]) -> None:
        """Forget the rows of a file that turned out to be damaged; what is written of it belongs to it alone."""
        for number, _ in self.held[mark[0] :]:
            self.counts.pop(number, None)
        del self.held[mark[0] :]
        self.others = {name: self.others[name][:size] for name, size in mark[1].items()}
        if self.alone:
            self.written, self.counts = [], {}

    def rows_of(self, number: int) -> int:
        """How many rows a file had."""
        return self.counts.get(number, 0)

    def add(self, number: int, rows: pa.Table, others: Any) -> None:
        """Take more rows of a file; a piece is written inside a file only if the file is alone."""
        self.counts[number] = self.counts.get(number, 0) + len(rows)
        self.rows, self.bytes = self.rows + len(rows), self.bytes + rows.nbytes
        for name, table in others.items():
            self.others.setdefault(name, []).append(table)
        self.held.append((number, rows))
        if self.alone and self._is_full():
            self._write_piece()

    def _is_full(self) -> bool:
        return self.rows >= _PIECE_ROWS or self.bytes >= _PIECE_BYTES

    def flush(self) -> None:
        """Write what is left."""
        if any(len(table) for _, table in self.held):
            self._write_piece()
        for name, tables in self.others.items():
            table = pa.concat_tables(tables)
            table = table.append_column("hash", pa.array(row_hashes(table)))
            write_ipc(self.store, f"{self.name}.{name}", table)

    def _write_piece(self) -> None:
        name = f"{self.name}-{len(self.written)}"
        rows = pa.concat_tables([table for _, table in self.held], promote_options="default")
        _write_rows(self.store, name, rows)
        counts = [[number, len(table)] for number, table in self.held]
        columns = b64encode(rows.schema.serialize()).decode()
        self.written.append({"name": name, "rows": counts, "columns": columns})
        self.held, self.rows, self.bytes = [], 0, 0


def columns_of(piece: dict[str, Any]) -> pa.Schema:
    """The columns that a piece was written with."""
    return pa.ipc.read_schema(pa.py_buffer(b64decode(piece["columns"])))


_TELLING: Final = ("node", "epoch", "seq")


def _write_rows(store: Store, name: str, rows: pa.Table) -> None:
    """Write the rows of a piece, each column once: what tells whether they are new, and the rest.

    Names, which repeat, are written as codes; columns of events that have nothing in them are left out.
    """
    columns = {column: rows[column].combine_chunks() for column in rows.column_names}
    for column in OWN:
        if columns[column].null_count == len(rows):
            del columns[column]
        elif column in ("node", "epoch", "carrier"):
            columns[column] = columns[column].dictionary_encode()
    ids = {column: columns[column] for column in _TELLING if column in columns}
    if "event" in columns:
        # Ids without numbers: that any two of 10^8 share a hash of 63 bits has a chance of 1 in 2,000.
        hashes = [None if event is None else hashed(event) for event in rows["event"].to_pylist()]
        ids["hash"] = pa.array(hashes, pa.int64())
    write_ipc(store, f"{name}.ids", pa.table(ids))
    write_ipc(store, f"{name}.rest", pa.table({each: columns[each] for each in columns if each not in _TELLING}))


def _read_rows(store: Store, name: str, new: NDArray[np.bool_] | None = None) -> pa.Table:
    """The rows of a piece, or those that are new, in the order of the columns of events."""
    ids, rest = (read_ipc(store, f"{name}.{part}") for part in ("ids", "rest"))
    there = {column: table[column] for table in (ids, rest) for column in table.column_names if column != "hash"}
    rows = max(len(ids), len(rest))
    own = {column: there.get(column, pa.nulls(rows, kind)) for column, kind in COLUMNS.items()}
    whole = pa.table(own | there)
    return whole if new is None or new.all() else whole.filter(pa.array(new))


def hashed(text: str) -> int:
    """A number of 63 bits for a text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1


# --- Keeping what is new


@dataclass(frozen=True)
class Keeping:
    """Writes what is new of a piece to the tables: events, and pairs with the subscriptions that want them."""

    store: Store
    batch: int
    pieces: tuple[str, ...]
    rows: tuple[int, ...]  # of each
    schema: pa.Schema  # all columns of the batch
    matcher: Matcher | None
    arrived_s: float
    events: bool = True  # False: they are there

    def __call__(self, number: int) -> dict[str, Any]:
        """The parts that were written, by table."""
        name = self.pieces[number]
        task = name.rpartition("/")[2]
        bits = np.frombuffer(self.store.read(f"{name}.new"), np.uint8)
        rows = _read_rows(self.store, name, np.unpackbits(bits, count=self.rows[number]).view(np.bool_))
        rows = rows.set_column(rows.column_names.index("event"), "event", event_ids(rows))
        arrived = datetime.fromtimestamp(self.arrived_s, UTC)
        counts = [summary_of(rows, arrived)]
        steps = steps_of(pc.subtract(round(self.arrived_s * 1e6), rows["time"].cast(pa.int64())))
        pairs: list[Part] = []
        for events, subscriptions in self._pairs(rows):
            counts.append(summary_of_pairs(self.matcher.asked.ids, subscriptions, steps[events]))  # type: ignore[union-attr]
            table = pairs_table(self.matcher, rows["event"], events, subscriptions, self.batch)
            pairs.append(write_part(self.store, "pairs", self.batch, f"{task}-{len(pairs):04}", table))
        write_ipc(self.store, f"{name}.counts", pa.concat_tables(counts) if len(counts) <= 2 else added_up(counts))
        return {
            "events": self._events(rows, arrived, task) if self.events and len(rows) else [],
            "pairs": pairs,
        }

    def _events(self, rows: pa.Table, arrived: datetime, task: str) -> list[Any]:
        rows = rows.append_column("arrived", pa.repeat(pa.scalar(arrived, TIME), len(rows)))
        rows = rows.append_column("batch", pa.repeat(self.batch, len(rows)))
        return write_parts_by_day(self.store, "events", self.batch, task, rows)

    def _pairs(self, rows: pa.Table) -> Iterator[Pairs]:
        if self.matcher is not None:
            yield from found_pairs(self.matcher, rows, self.schema)


Pairs = tuple[NDArray[np.int32], NDArray[np.int32]]  # rows, and numbers of subscriptions


def found_pairs(matcher: Matcher, rows: pa.Table, schema: pa.Schema) -> Iterator[Pairs]:
    """Rows and numbers of subscriptions that want them, by subscription, so many at a time as are sorted at once."""
    there = {name: rows[name] for name in rows.column_names}
    missing = {name: pa.nulls(len(rows), schema.field(name).type) for name in matcher.asked.attributes}
    values = [(missing | there)[name] for name in matcher.asked.attributes]
    asked = pa.table([there["event"], *values], names=matcher.column_names())
    held: list[Pairs] = []
    count, tally = 0, Tally()
    for begin in range(0, len(rows), BATCH_ROWS):
        for some, subscriptions in matcher.pairs(asked.slice(begin, BATCH_ROWS), tally):
            held.append((some + np.int32(begin), subscriptions))
            count += len(some)
            if count >= PAIRS_AT_ONCE:
                yield _by_subscription(held, len(matcher.asked.ids))
                held, count = [], 0
    if count:
        yield _by_subscription(held, len(matcher.asked.ids))


def _by_subscription(held: list[Pairs], beyond: int) -> Pairs:
    rows, subscriptions = (np.concatenate(each) for each in zip(*held, strict=True))
    order = order_by_number(subscriptions, beyond)
    return rows[order], subscriptions[order]


def pairs_table(
    matcher: Matcher | None, ids: pa.ChunkedArray, rows: NDArray[np.int32], subscriptions: NDArray[np.int32], batch: int
) -> pa.Table:
    """Pairs as their table has them."""
    assert matcher is not None
    names = matcher.asked.ids.cast(pa.string())
    return pa.table(
        {
            "event": ids.combine_chunks().take(pa.array(rows)),
            "subscription": pa.DictionaryArray.from_arrays(pa.array(subscriptions), names),
            "batch": pa.repeat(batch, len(rows)),
        }
    )


# --- Files on the way


def as_ipc(rows: pa.Table) -> pa.Buffer:
    """Rows as Arrow keeps them, which costs next to nothing."""
    sink = pa.BufferOutputStream()
    _as_ipc(rows, sink)
    return sink.getvalue()


def write_ipc(store: Store, name: str, rows: pa.Table) -> None:
    """Write rows so; into a folder without a copy of them in memory."""
    if not isinstance(store, Folder):
        store.write(name, as_ipc(rows))
        return
    with store.writing(name) as path, pa.OSFile(str(path), "wb") as sink:
        _as_ipc(rows, sink)


def _as_ipc(rows: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)


def read_ipc(store: Store, name: str) -> pa.Table:
    """Such rows again; those of a folder are not copied."""
    source = pa.memory_map(str(store.path / name)) if isinstance(store, Folder) else pa.BufferReader(store.read(name))
    return pa.ipc.open_file(source).read_all()
