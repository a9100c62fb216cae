"""Run folders as a source of Spark: `spark.read.format("serai-log").load(folder)`, in batches and as a stream.

    register_sources(spark)
    events = spark.read.format("serai-log").option("table", "events").load("runs")

A folder may be a run, or hold runs at any depth. Each table has its own columns, and before them `run` (where the run
lies), `protocol` and `seed`. Attributes of events are columns of their names. Filters on `run`, `protocol` and `seed`
decide which folders are opened at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    In,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from serai.errors import BadInput, did_you_mean
from serai.log.folder import RUN_FILE, read_description

_OF_RUN: Final = {"run": pa.string(), "protocol": pa.string(), "seed": pa.int64()}


def register_sources(spark: SparkSession) -> None:
    """Make the formats of serai known to a session, and let it hand filters to them."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(LogSource)


@dataclass
class _RunPart(InputPartition):
    """The table of one run."""

    folder: str
    run: str

    def __init__(self, folder: str, run: str) -> None:
        super().__init__(run)
        self.folder, self.run = folder, run


class LogSource(DataSource):
    """Tables of run folders; options: `path`, and `table` (events)."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "serai-log"

    def schema(self) -> StructType:
        """The columns of the table, as the first run has them."""
        folder, table = _asked(self.options)
        runs = runs_in(folder)
        if not runs:
            raise BadInput(f"{folder}: no run in it (no {RUN_FILE} found); name a folder written with --out")
        return from_arrow_schema(_read(runs[0], runs[0].name, table).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of all runs that are there."""
        return _LogReader(*_asked(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A reader of the runs that are there, and of those that will come."""
        return _LogStream(*_asked(self.options))


def _asked(options: Any) -> tuple[Path, str]:
    if "path" not in options:
        raise BadInput('serai-log: name a folder of runs: spark.read.format("serai-log").load("runs")')
    return Path(options["path"]), options.get("table", "events")


def runs_in(folder: Path) -> list[Path]:
    """The run folders at or below a folder, by name; those being written have hidden names."""
    if (folder / RUN_FILE).is_file():
        return [folder]
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder")
    found = [path.parent for path in folder.rglob(RUN_FILE)]
    return sorted(run for run in found if not any(part[0] == "." for part in run.relative_to(folder).parts))


def _read(folder: Path, run: str, table: str) -> pa.Table:
    """A table of one run, with the columns of the run itself before its own."""
    said = read_description(folder)
    if table not in said["tables"]:
        raise BadInput(f'{folder}: no table "{table}" in this run; {did_you_mean(table, said["tables"])}')
    rows = pq.ParquetFile(folder / f"{table}.parquet").read()
    columns: dict[str, Any] = {"run": run, "protocol": said["protocol"], "seed": said["seed"]}
    result = {name: pa.array([columns[name]] * len(rows), kind) for name, kind in _OF_RUN.items()}
    for name in rows.column_names:
        column = rows[name]
        if name == "values":
            result |= _attributes(column, said["attributes"])
        else:
            plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            result[name] = plain
    return pa.table(result)


def _attributes(values: pa.ChunkedArray, names: Sequence[str]) -> dict[str, Any]:
    numbers = values.combine_chunks().flatten().to_numpy().reshape(len(values), len(names))
    return {name: np.ascontiguousarray(numbers[:, k]) for k, name in enumerate(names)}


class _LogReader(DataSourceReader):
    def __init__(self, folder: Path, table: str) -> None:
        self.folder, self.table = folder, table
        self.wanted: dict[str, set[Any]] = {}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take filters on the run itself, and give the others back."""
        for each in filters:
            if isinstance(each, EqualTo | In) and len(each.attribute) == 1 and each.attribute[0] in _OF_RUN:
                allowed = set(each.value if isinstance(each, In) else [each.value])
                name = each.attribute[0]
                self.wanted[name] = self.wanted.get(name, allowed) & allowed
            else:
                yield each

    def partitions(self) -> Sequence[InputPartition]:
        """A partition for each run that is asked for."""
        return [part for part in _parts(self.folder, runs_in(self.folder)) if self._is_wanted(part)]

    def _is_wanted(self, part: _RunPart) -> bool:
        if not self.wanted:
            return True
        said = json.loads((Path(part.folder) / RUN_FILE).read_text(encoding="utf-8")) | {"run": part.run}
        return all(said.get(name) in allowed for name, allowed in self.wanted.items())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one run."""
        assert isinstance(partition, _RunPart)
        yield from _read(Path(partition.folder), partition.run, self.table).to_batches()


def _parts(folder: Path, runs: Iterable[Path]) -> list[_RunPart]:
    return [
        _RunPart(str(run.absolute()), run.relative_to(folder).as_posix() if run != folder else run.name) for run in runs
    ]


class _LogStream(DataSourceStreamReader):
    """An offset is the list of the runs that were there."""

    def __init__(self, folder: Path, table: str) -> None:
        self.folder, self.table = folder, table

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Before the first run."""
        return {"runs": []}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """All runs that are there now."""
        return {"runs": [part.run for part in _parts(self.folder, runs_in(self.folder))]}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """A partition for each run that came between."""
        new = set(end["runs"]) - set(start["runs"])
        return [part for part in _parts(self.folder, runs_in(self.folder)) if part.run in new]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one run."""
        assert isinstance(partition, _RunPart)
        yield from _read(Path(partition.folder), partition.run, self.table).to_batches()
