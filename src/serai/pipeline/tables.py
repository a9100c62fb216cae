"""The tables of a pipeline: Delta tables in which every batch stands once, whatever happens while it is written.

Each table remembers the number of the last batch that was added to it. A batch that is made again after a crash is left
out of the tables that have it. The journal comes last: a batch that is not in the journal does not count, and readers
ask for batches up to the journal's last. So several commits look like one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

_APPLICATION: Final = "serai"
SCHEMAS: Final = {
    "journal": pa.schema(
        [
            ("batch", pa.int64()),
            ("sha256", pa.string()),
            ("name", pa.string()),
            ("bytes", pa.int64()),
            ("format", pa.string()),
            ("arrived", pa.timestamp("us", "UTC")),
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
    "pairs": pa.schema([("event", pa.string()), ("subscription", pa.string()), ("batch", pa.int64())]),
}


class Tables:
    """The Delta tables below a folder."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "tables"

    def last_batch(self, name: str = "journal") -> int | None:
        """The last batch that a table has; None if it has none."""
        try:
            version = DeltaTable(str(self.folder / name)).transaction_version(_APPLICATION)
        except TableNotFoundError:
            return None
        return None if version is None else int(version)

    def append(self, name: str, batch: int, rows: pa.Table | pa.RecordBatchReader, by: list[str] | None = None) -> None:
        """Add a batch to a table, unless it is there; new columns join in."""
        if (last := self.last_batch(name)) is not None and last >= batch:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        write_deltalake(
            str(self.folder / name),
            rows,
            mode="append",
            partition_by=by,
            schema_mode="merge",
            commit_properties=CommitProperties(app_transactions=[Transaction(_APPLICATION, batch)]),
        )

    def read(self, name: str, columns: list[str] | None = None, batches: Iterable[int] | None = None) -> pa.Table:
        """The rows of a table, of the batches that the journal has, or of these."""
        last = self.last_batch()
        if last is None or self.last_batch(name) is None:
            return SCHEMAS[name].empty_table() if name in SCHEMAS else pa.table({})
        wanted = ds.field("batch") <= last
        if batches is not None:
            wanted = wanted & ds.field("batch").isin(list(batches))
        return self.dataset(name).to_table(columns=columns, filter=wanted)

    def dataset(self, name: str) -> ds.Dataset:
        """A table as Arrow reads it; with Arrow's own access to the disk, whose threads end with the program."""
        place = str(self.folder / name)
        return DeltaTable(place).to_pyarrow_dataset(filesystem=SubTreeFileSystem(place, LocalFileSystem()))

    def known_columns(self) -> pa.Schema:
        """The columns of the table of events."""
        if self.last_batch("events") is None:
            return pa.schema([])
        return pa.schema([pa.field(column.name, column.type) for column in self.dataset("events").schema])
