"""The tables of a pipeline: Delta tables in which every batch stands once, whatever happens while it is written.

Each table remembers the number of the last batch that was added to it. A batch that is made again after a crash is left
out of the tables that have it. The journal comes last: a batch that is not in the journal does not count, and readers
ask for batches up to the journal's last. So several commits look like one. Of two that add the same batch at the same
time the second is refused by the table itself, on a disk as in an object store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.fs import SubTreeFileSystem

from serai.core.errors import CannotRun
from serai.pipeline.clocks import CLOCKS
from serai.pipeline.parts import TABLES, Part, write_part
from serai.pipeline.recorded import RECORDED
from serai.spark.stores import Store

_APPLICATION: Final = "serai"
_TIME: Final = pa.timestamp("us", "UTC")
SCHEMAS: Final = {
    "journal": pa.schema(
        [
            ("batch", pa.int64()),
            ("sha256", pa.string()),
            ("source", pa.string()),
            ("name", pa.string()),
            ("bytes", pa.int64()),
            ("format", pa.string()),
            ("arrived", _TIME),
            ("rows", pa.int64()),
            ("new", pa.int64()),
            ("repeated", pa.int64()),
            ("rejected", pa.int64()),
            ("state", pa.string()),
            ("reason", pa.string()),
        ]
    ),
    "rejects": pa.schema(
        [(name, pa.string()) for name in ("file", "sha256", "id", "reason", "row")] + [("batch", pa.int64())]
    ),
    **{name: schema.append(pa.field("batch", pa.int64())) for name, schema in RECORDED.items()},
    "pairs": pa.schema([("event", pa.string()), ("subscription", pa.string()), ("batch", pa.int64())]),
    "clocks": CLOCKS,
    "plans": pa.schema([("batch", pa.int64()), ("plan", pa.string())]),
}


def _said(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.drop_columns(["batch"]).to_pylist()))


class Tables:
    """The Delta tables of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._open: dict[str, DeltaTable] = {}

    def table(self, name: str) -> DeltaTable | None:
        """A table as it is now; None if there is none yet."""
        if name in self._open:
            self._open[name].update_incremental()
            return self._open[name]
        try:
            self._open[name] = DeltaTable(f"{self.store.address}/{TABLES}/{name}")
        except TableNotFoundError:
            return None
        return self._open[name]

    def last_batch(self, name: str = "journal") -> int | None:
        """The last batch that a table has; None if it has none."""
        table = self.table(name)
        version = None if table is None else table.transaction_version(_APPLICATION)
        return None if version is None else int(version)

    def has(self, name: str, batch: int) -> bool:
        """Whether a batch is in a table."""
        last = self.last_batch(name)
        return last is not None and last >= batch

    def add(self, name: str, batch: int, parts: Sequence[Part], schema: pa.Schema, by: str | None = None) -> None:
        """Name the files of a batch to a table, unless it has them; new columns join in."""
        if self.has(name, batch):
            return
        table = self.table(name)
        if table is None:
            place = f"{self.store.address}/{TABLES}/{name}"
            table = DeltaTable.create(place, schema, mode="ignore", partition_by=None if by is None else [by])
            self._open[name] = table
        known = pa.schema(table.schema())
        more = [column for column in schema if column.name not in known.names]
        if more:
            table.alter.add_columns(Schema.from_arrow(pa.schema(more)).fields)
            table.update_incremental()
        actions: list[AddAction | RemoveAction] = [
            AddAction(part.path, part.bytes, {} if by is None else {by: part.day}, part.written_ms, True, part.stats)
            for part in parts
        ]
        try:
            table.create_write_transaction(
                actions,
                "append",
                schema,
                None if by is None else [by],
                commit_properties=CommitProperties(app_transactions=[Transaction(_APPLICATION, batch)]),
            )
        except CommitFailedError:
            raise CannotRun(
                f"{self.store}: another serai has added batch {batch} meanwhile; let only one work on a home"
            ) from None

    def append(self, name: str, batch: int, rows: pa.Table, written_by: str = "driver") -> None:
        """Add rows to a table that is not partitioned, unless it has the batch."""
        if not self.has(name, batch):
            parts = [write_part(self.store, name, batch, written_by, rows)] if len(rows) else []
            self.add(name, batch, parts, SCHEMAS[name])

    def replace(self, name: str, rows: pa.Table) -> None:
        """Replace a table by others rows, in one commit, if they say anything else than before but the batch."""
        table = self.table(name)
        if table is not None and _said(self.dataset(name).to_table()) == _said(rows):
            return
        last = int(pc.max(rows["batch"]).as_py())
        told = CommitProperties(app_transactions=[Transaction(_APPLICATION, last)])
        write_deltalake(f"{self.store.address}/{TABLES}/{name}", rows, mode="overwrite", commit_properties=told)

    def read(
        self,
        name: str,
        columns: list[str] | None = None,
        batches: Iterable[int] | None = None,
        also: ds.Expression | None = None,
    ) -> pa.Table:
        """The rows of a table, of the batches that the journal has, or of these, for which `also` holds.

        Columns that nothing ever filled are not in the table, and not in the answer.
        """
        scanner = self.scanner(name, columns, batches, also)
        if scanner is None:
            return SCHEMAS[name].empty_table() if name in SCHEMAS else pa.table({})
        return scanner.to_table()

    def scanner(
        self,
        name: str,
        columns: list[str] | None = None,
        batches: Iterable[int] | None = None,
        also: ds.Expression | None = None,
    ) -> ds.Scanner | None:
        """The same some rows at a time; None if there are none."""
        last = self.last_batch()
        if last is None or self.last_batch(name) is None:
            return None
        wanted = ds.field("batch") <= last
        if batches is not None:
            wanted = wanted & ds.field("batch").isin(list(batches))
        if also is not None:
            wanted = wanted & also
        rows = self.dataset(name)
        if columns is not None:
            columns = [column for column in columns if column in rows.schema.names]
        return rows.scanner(columns=columns, filter=wanted)

    def fragments(self, name: str, batch: int) -> list[ds.Fragment]:
        """The files of a table that may have rows of a batch, always in the same order as long as they are these."""
        if self.last_batch(name) is None:
            return []
        found = self.dataset(name).get_fragments(filter=ds.field("batch") == batch)
        return sorted(found, key=lambda fragment: fragment.path)

    def plan(self, batch: int) -> str | None:
        """The plan of a batch, if it was made."""
        if not self.has("plans", batch):
            return None
        found = self.dataset("plans").to_table(filter=ds.field("batch") == batch)["plan"].to_pylist()
        return str(found[0]) if found else None

    def dataset(self, name: str) -> ds.Dataset:
        """A table as Arrow reads it; with Arrow's own access to the disk, whose threads end with the program."""
        table = self.table(name)
        assert table is not None
        place = SubTreeFileSystem(f"{TABLES}/{name}", self.store.filesystem())
        return table.to_pyarrow_dataset(filesystem=place)

    def known_columns(self) -> pa.Schema:
        """The columns of the table of events."""
        table = self.table("events")
        if table is None or self.last_batch("events") is None:
            return pa.schema([])
        return pa.schema([pa.field(column.name, column.type) for column in pa.schema(table.schema())])
