"""Run folders and traces as sources of Spark, in batches and as streams.

    register_sources(spark)
    events = spark.read.format("serai-log").option("table", "events").load("runs")
    contacts = spark.read.format("serai-trace").load("contacts.txt.gz")

`serai-log`: a run folder, or a folder that holds some at any depth, of any kind of network. Before the columns of the
table stand `run` (where the run lies), `protocol` and `seed` (null: real nodes wrote it); attributes of events are
columns of their names, numbers or texts, null in runs that have no such attribute. `serai-trace`: a file in any of
the formats of `serai.traces`, or a folder of files in the same one; before its columns stands `trace`, the file.
Filters on the columns that stand before decide which folders or files are opened at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

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

from serai.core.errors import BadInput, did_you_mean
from serai.log.folder import RUN_FILE, read_description
from serai.traces import ContactTrace, TrackTrace, read_trace


def register_sources(spark: SparkSession) -> None:
    """Make the formats of serai known to a session, and let it hand filters to them."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    for source in (LogSource, TraceSource):
        spark.dataSource.register(source)


class Part(InputPartition):
    """One run, or one file of a trace: where it is, and its name among the others."""

    def __init__(self, place: Path, name: str) -> None:
        super().__init__(name)
        self.place, self.name = place, name


class _Table(ABC):
    """What a source reads: parts, each with a few columns of one value that tell it from the others."""

    told_by: ClassVar[dict[str, pa.DataType]]
    nothing_there: ClassVar[str]
    folder: Path

    @abstractmethod
    def parts(self) -> list[Part]:
        """The parts that are there now."""

    @abstractmethod
    def told(self, part: Part) -> dict[str, Any]:
        """The values of the columns that tell a part from the others."""

    @abstractmethod
    def own_columns(self, part: Part) -> dict[str, Any]:
        """The other columns of a part."""

    def read(self, part: Part) -> pa.Table:
        """All rows of a part."""
        own = self.own_columns(part)
        rows = len(next(iter(own.values())))
        told = self.told(part)
        return pa.table({name: pa.array([told[name]] * rows, kind) for name, kind in self.told_by.items()} | own)

    def schema(self) -> StructType:
        """The columns, as the first part has them."""
        parts = self.parts()
        if not parts:
            raise BadInput(f"{self.folder}: {self.nothing_there}")
        return from_arrow_schema(self.read(parts[0]).schema)


# --- Run folders


def runs_in(folder: Path) -> list[Path]:
    """The run folders at or below a folder, by name; those being written have hidden names."""
    if (folder / RUN_FILE).is_file():
        return [folder]
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder")
    found = [path.parent for path in folder.rglob(RUN_FILE)]
    return sorted(run for run in found if not any(part[0] == "." for part in run.relative_to(folder).parts))


@dataclass(frozen=True)
class _LogTable(_Table):
    folder: Path
    table: str
    attributes: Mapping[str, pa.DataType]  # of events, in any of the runs
    told_by = {"run": pa.string(), "protocol": pa.string(), "seed": pa.int64()}  # noqa: RUF012
    nothing_there = f"no run in it (no {RUN_FILE} found); name a folder written with --out"

    def parts(self) -> list[Part]:
        return [
            Part(run, run.name if run == self.folder else run.relative_to(self.folder).as_posix())
            for run in runs_in(self.folder)
        ]

    def told(self, part: Part) -> dict[str, Any]:
        said = read_description(part.place)
        return {"run": part.name, "protocol": said["protocol"], "seed": said.get("seed")}

    def own_columns(self, part: Part) -> dict[str, Any]:
        said = read_description(part.place)
        if self.table not in said["tables"]:
            raise BadInput(f'{part.place}: no table "{self.table}"; {did_you_mean(self.table, said["tables"])}')
        if unknown := [name for name in said["attributes"] if name not in self.attributes]:
            raise BadInput(f"{part.place}: attribute {unknown[0]} came after the stream began; start it anew")
        rows = pq.ParquetFile(part.place / f"{self.table}.parquet").read()
        columns: dict[str, Any] = {}
        for name in rows.column_names:
            column = rows[name]
            if name == "values":
                columns |= {name: pa.nulls(len(rows), kind) for name, kind in self.attributes.items()}
                columns |= _attributes(column, said["attributes"], said.get("texts", {}))
            else:
                columns[name] = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        return columns


def _attributes(values: pa.ChunkedArray, names: Sequence[str], texts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    numbers = values.combine_chunks().flatten().to_numpy().reshape(len(values), len(names))
    columns = {name: np.ascontiguousarray(numbers[:, k]) for k, name in enumerate(names)}
    return columns | {name: _in_words(columns[name], known) for name, known in texts.items()}


def _in_words(places: np.ndarray[Any, Any], texts: Sequence[str]) -> pa.Array:
    """The texts at these places; NaN: none."""
    return pa.array(texts, pa.string()).take(pa.array(places, from_pandas=True).cast(pa.int32()))


def _attributes_in(folder: Path) -> dict[str, pa.DataType]:
    """The attributes of the events of all runs, in the order in which they are found: numbers, or texts."""
    found: dict[str, pa.DataType] = {}
    for run in runs_in(folder):
        said = read_description(run)
        for name in said["attributes"]:
            kind = pa.string() if name in said.get("texts", {}) else pa.float64()
            if found.setdefault(name, kind) != kind:
                raise BadInput(f"{run}: {name} is a text in some runs and a number in others; load them apart")
    return found


# --- Traces


@dataclass(frozen=True)
class _TraceTable(_Table):
    folder: Path
    form: str
    told_by = {"trace": pa.string()}  # noqa: RUF012
    nothing_there = "no file in it"

    def parts(self) -> list[Part]:
        if self.folder.is_file():
            return [Part(self.folder, self.folder.name)]
        if not self.folder.is_dir():
            raise BadInput(f"{self.folder}: no such file or folder")
        files = sorted(path for path in self.folder.iterdir() if path.is_file() and path.name[0] not in "._")
        return [Part(path, path.name) for path in files]

    def told(self, part: Part) -> dict[str, Any]:
        return {"trace": part.name}

    def own_columns(self, part: Part) -> dict[str, Any]:
        trace = read_trace(part.place, self.form)
        return _contacts(trace) if isinstance(trace, ContactTrace) else _points(trace)


def _contacts(trace: ContactTrace) -> dict[str, Any]:
    names = pa.array(trace.names, pa.string())
    contacts = trace.contacts
    a, b = names.take(pa.array(contacts.a)), names.take(pa.array(contacts.b))
    return {"a": a, "b": b, "start_s": contacts.up_s, "end_s": contacts.down_s}


def _points(trace: TrackTrace) -> dict[str, Any]:
    tracks = trace.tracks
    node = np.repeat(np.arange(len(trace.names)), np.diff(tracks.start))
    names = pa.array(trace.names, pa.string()).take(pa.array(node))
    return {"node": names, "time_s": tracks.time_s, "x_m": tracks.x_m, "y_m": tracks.y_m}


# --- What Spark asks


class _Source(DataSource):
    def table(self) -> _Table:
        raise NotImplementedError

    def folder(self) -> Path:
        if "path" not in self.options:
            raise BadInput(f'{self.name()}: name a path: spark.read.format("{self.name()}").load("...")')
        return Path(self.options["path"]).absolute()

    def schema(self) -> StructType:
        return self.table().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self.table())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return _StreamReader(self.table())


class LogSource(_Source):
    """Tables of run folders; options: the path, and `table` (events)."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "serai-log"

    def table(self) -> _Table:
        """The table that is asked for."""
        folder = self.folder()
        return _LogTable(folder, self.options.get("table", "events"), _attributes_in(folder))


class TraceSource(_Source):
    """Contacts or positions in other people's files; options: the path, and `form` (auto)."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "serai-trace"

    def table(self) -> _Table:
        """The trace that is asked for."""
        return _TraceTable(self.folder(), self.options.get("form", "auto"))


class _Reader(DataSourceReader):
    def __init__(self, table: _Table) -> None:
        self.table = table
        self.wanted: dict[str, set[Any]] = {}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take filters on what tells parts from each other, and give the others back."""
        for each in filters:
            if isinstance(each, EqualTo | In) and len(each.attribute) == 1 and each.attribute[0] in self.table.told_by:
                allowed = set(each.value if isinstance(each, In) else [each.value])
                name = each.attribute[0]
                self.wanted[name] = self.wanted.get(name, allowed) & allowed
            else:
                yield each

    def partitions(self) -> Sequence[InputPartition]:
        """The parts that are asked for."""
        return [part for part in self.table.parts() if self._is_wanted(part)]

    def _is_wanted(self, part: Part) -> bool:
        told = self.table.told(part) if self.wanted else {}
        return all(told[name] in allowed for name, allowed in self.wanted.items())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part."""
        assert isinstance(partition, Part)
        yield from self.table.read(partition).to_batches()


class _StreamReader(DataSourceStreamReader):
    """An offset is the list of the parts that were there."""

    def __init__(self, table: _Table) -> None:
        self.table = table

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Before the first part."""
        return {"parts": []}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """All parts that are there now."""
        return {"parts": [part.name for part in self.table.parts()]}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The parts that came between."""
        new = set(end["parts"]) - set(start["parts"])
        return [part for part in self.table.parts() if part.name in new]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part."""
        assert isinstance(partition, Part)
        yield from self.table.read(partition).to_batches()
