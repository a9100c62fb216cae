"""Matching that goes on: events as they arrive, against subscriptions that come and go.

Spark says which files are new and keeps count of them in its checkpoint; each batch is then matched like a table. A
batch is done when its folder of pairs has been renamed into place. After a crash Spark hands out the same files under
the same number again: a batch that is done is skipped, one that is not is made anew. So nothing is lost or there twice.

    out/pairs/batch=00000007/part-00000.parquet    event, subscription
    out/rejects/batch=00000007.jsonl               events that came too late or cannot be used, with the reason
    out/seen/batch=00000007.parquet                ids of the batch's events, to know repeats by
    out/batches/00000007.json                      what there was in the batch
"""

from __future__ import annotations

import json
import shutil
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from serai.core.conditions import Kind
from serai.core.errors import BadInput, SeraiError, did_you_mean
from serai.matching import tables
from serai.matching.boxes import Axis, boxes_of, kind_of, place_events
from serai.matching.files import ParquetFiles, Piece, Rows, parquet_files, these_files
from serai.matching.job import kinds_taken_for_granted, read_subscriptions, write_pairs
from serai.matching.match import warm_up
from serai.matching.seen import SeenIds, as_ids
from serai.matching.subscriptions import readings_of, rejected_rows
from serai.matching.worker import Matcher

FILES_PER_BATCH = 100
_MICROSECONDS = 1_000_000.0
_FILES = "path string, modificationTime timestamp, length bigint, content binary"


@dataclass(frozen=True)
class BatchReport:
    """What there was in a batch; events = matched + unmatched + repeated + late + rejected."""

    batch: int
    events: int
    matched: int
    unmatched: int
    repeated: int
    late: int
    rejected: int
    pairs: int
    subscriptions: int
    rejected_subscriptions: int
    latest: float | None  # time of the latest event, in microseconds or in the unit of the column
    seconds: float  # that the batch took
    latency_s: float | None  # from the arrival of its oldest file until its pairs could be read


def match_stream(
    spark: SparkSession,
    events: str | Path | DataFrame,
    subscriptions: str | Path,
    out: str | Path,
    *,
    time: str | None = None,
    lateness_s: float | None = None,
    poll_s: float = 1.0,
    once: bool = False,
    files_per_batch: int = FILES_PER_BATCH,
    on_batch: Callable[[BatchReport], None] = lambda report: None,
) -> StreamingQuery:
    """Start to match events as they arrive in a folder (or from any streaming frame), and go on until stopped.

    The table of subscriptions is read again when it has changed. `time` names the column of events that says when;
    an event that is `lateness_s` older than the latest of the batches before comes too late and is rejected, and
    repeats are known that far back. Without it nothing is late, and all ids are remembered. `once`: stop when
    all that is there is matched.
    """
    place = Path(out).absolute()
    tables.check_there(subscriptions)
    source, columns = (
        (events, events.columns) if isinstance(events, DataFrame) else _arriving(spark, events, files_per_batch)
    )
    if "event" not in columns:
        raise BadInput(f"the events have no column event (their id); {did_you_mean('event', columns)}")
    if time is not None and time not in columns:
        raise BadInput(f'the events have no column "{time}"; {did_you_mean(time, columns)}')
    if lateness_s is not None and time is None:
        raise BadInput("how late events may be can only be said with the column that says when they were (time)")
    place.mkdir(parents=True, exist_ok=True)
    only_names = not isinstance(events, DataFrame) and tables.format_of(events) == "parquet"
    matching = _Batches(place, Path(subscriptions).absolute(), time, lateness_s, only_names, on_batch)
    writer = source.writeStream.foreachBatch(matching.match_batch)
    writer = writer.option("checkpointLocation", str(place / "checkpoint")).queryName(f"serai stream {place.name}")
    query = (
        writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{poll_s:g} seconds")
    ).start()
    query.problem_of_ours = lambda: matching.problem  # type: ignore[attr-defined]
    return query


def finish(query: StreamingQuery) -> None:
    """Wait until the stream ends; what went wrong in a batch is raised as it was."""
    try:
        query.awaitTermination()
    except Exception:
        if isinstance(problem := query.problem_of_ours(), SeraiError):  # type: ignore[attr-defined]
            raise problem from None
        raise


def _arriving(spark: SparkSession, path: str | Path, files_per_batch: int) -> tuple[DataFrame, list[str]]:
    """The events of the files in a folder, and of those that will come; of Parquet files only the names."""
    if not Path(path).is_dir():
        raise BadInput(f"{path}: no such folder; events arrive as files in a folder")
    if not any(found.name[0] not in "._" for found in Path(path).iterdir()):
        raise BadInput(f"{path}: no file there yet to learn the columns from; put the first one there, and start again")
    known = tables.read_table(spark, path)
    kind = tables.format_of(path)
    reader = spark.readStream.option("maxFilesPerTrigger", str(files_per_batch))
    if kind == "parquet":
        # The content of the files is not asked for, so Spark does not read them.
        return reader.format("binaryFile").schema(_FILES).load(tables.spark_path(path)).select("path"), known.columns
    reader = reader.schema(known.schema).options(**tables.reading_options(path))
    return reader.format(kind).load(tables.spark_path(path)), known.columns


class _New(NamedTuple):
    """Which events of a batch are to be matched."""

    without: dict[Piece, Rows]
    ids: NDArray[Any]
    latest: float | None
    repeated: int
    late: int
    rejects: list[dict[str, Any]]


@dataclass
class _Batches:
    """Matches one batch after the other; what it knows between them can be read again from the folder."""

    out: Path
    subscriptions: Path
    time: str | None
    lateness_s: float | None
    only_names: bool  # of Parquet files, which the workers read by themselves
    on_batch: Callable[[BatchReport], None]
    problem: Exception | None = None
    seen: SeenIds | None = None
    latest: float = -np.inf
    asked: tuple[Any, Matcher, int, int] | None = None  # signature, matcher, subscriptions, rejected
    kinds: dict[str, Kind] = field(default_factory=dict)

    def match_batch(self, batch: DataFrame, number: int) -> None:
        """Match the events of one batch, unless that was done before a crash."""
        try:
            self._match(batch, number)
        except Exception as error:
            self.problem = error
            raise

    def _match(self, batch: DataFrame, number: int) -> None:
        done = self.out / "pairs" / f"batch={number:08}"
        if done.exists():
            return
        begun = clock.time()
        aside = self.out / f".batch-{number:08}"
        shutil.rmtree(aside, ignore_errors=True)
        (aside / "pairs").mkdir(parents=True)
        spark = batch.sparkSession
        files, arrived, rejects = self._files(batch, aside)
        self._remember(number)
        new = self._new(files, number)
        matcher, known, unknown = self._matcher(spark, files.schema)
        tally = write_pairs(spark, matcher, files, aside / "pairs", without=new.without, by_subscription=True)
        rejects += new.rejects
        nameless = sum(row["reason"].startswith("no id") for row in new.rejects)
        report = BatchReport(
            batch=number,
            events=files.rows + len(rejects) - len(new.rejects),
            matched=tally.matched,
            unmatched=tally.events - tally.matched,
            repeated=new.repeated,
            late=new.late,
            rejected=len(rejects) - len(new.rejects) + nameless,
            pairs=tally.pairs,
            subscriptions=known,
            rejected_subscriptions=unknown,
            latest=new.latest,
            seconds=clock.time() - begun,
            latency_s=None if arrived is None else clock.time() - arrived,
        )
        self._write_notes(number, new.ids, rejects, report)
        done.parent.mkdir(exist_ok=True)
        (aside / "pairs").rename(done)  # from here on the batch is done
        shutil.rmtree(aside)
        assert self.seen is not None
        self.seen.add(new.ids, np.inf if new.latest is None else new.latest)
        self.latest = max(self.latest, -np.inf if new.latest is None else new.latest)
        self.on_batch(report)

    # --- Events

    def _files(self, batch: DataFrame, aside: Path) -> tuple[ParquetFiles, float | None, list[dict[str, Any]]]:
        """The batch's events as Parquet files, when the oldest arrived, and rows that cannot be used."""
        if self.only_names:
            paths = sorted(Path(row.path.removeprefix("file:")) for row in batch.collect())
            return these_files(paths), min(path.stat().st_mtime for path in paths), []
        rejects: list[dict[str, Any]] = []
        if tables.is_untyped(batch):
            asked = read_subscriptions(batch.sparkSession, self.subscriptions)
            kinds = kinds_taken_for_granted(asked) | ({self.time: "time"} if self.time else {})
            batch = tables.with_reason(batch, "event", kinds)
            rejects = tables.rejects_of(batch, "events", "event").toArrow().to_pylist()
            batch = tables.usable(batch)
        batch.write.parquet(str(aside / "events"))
        files = parquet_files(aside / "events")
        assert files is not None
        return files, None, rejects

    def _new(self, files: ParquetFiles, number: int) -> _New:
        """Sort out events without an id, repeats, and those that come too late."""
        assert self.seen is not None
        watermark = self._watermark(files.schema)
        columns = ["event"] + ([self.time] if self.time else [])
        parts = [pq.ParquetFile(path).read_row_group(group, columns=columns) for path, group in files.pieces]
        table = pa.concat_tables(parts) if parts else files.schema.empty_table().select(columns)
        named = table["event"].is_valid().to_numpy()
        times = self._times(table, files.schema)
        ids = as_ids(table["event"].filter(pa.array(named)))
        first = np.zeros(len(table), np.bool_)
        first[named] = self.seen.fresh(ids)
        late = first & (times < watermark)
        fresh = first & ~late
        dropped = np.flatnonzero(~fresh)
        ends = np.cumsum([0, *files.piece_rows])
        without = {
            piece: dropped[(dropped >= begin) & (dropped < end)] - begin
            for piece, begin, end in zip(files.pieces, ends[:-1], ends[1:], strict=True)
        }
        rejects = _rejected(table, ~named, "no id in the column event")
        rejects += _rejected(table, late, f"more than {self.lateness_s} s behind the events of earlier batches")
        known = times[fresh & ~np.isnan(times)]
        latest = float(known.max()) if len(known) else None
        repeated = int((named & ~first).sum())
        return _New(without, ids[fresh[named]], latest, repeated, int(late.sum()), rejects)

    def _times(self, table: pa.Table, schema: pa.Schema) -> NDArray[np.float64]:
        if self.time is None:
            return np.full(len(table), np.nan)
        axis = Axis(self.time, self._kind_of_time(schema))
        return place_events([axis], [table[self.time]], len(table))[:, 0]

    def _kind_of_time(self, schema: pa.Schema) -> Kind:
        kind = kind_of(schema.field(self.time).type)
        if kind is None or kind == "text":
            raise BadInput(f'the column "{self.time}" of the events holds {schema.field(self.time).type}, not times')
        return kind

    def _watermark(self, schema: pa.Schema) -> float:
        """The time before which events come too late."""
        if self.lateness_s is None:
            return -np.inf
        unit = _MICROSECONDS if self._kind_of_time(schema) == "time" else 1.0
        watermark = self.latest - self.lateness_s * unit
        assert self.seen is not None
        self.seen.forget_before(watermark)
        return watermark

    def _remember(self, number: int) -> None:
        """After a start, read which events came in the batches that are done."""
        if self.seen is not None:
            return
        self.seen = SeenIds()
        for done in sorted((self.out / "pairs").glob("batch=*")):
            notes = json.loads((self.out / "batches" / f"{done.name.removeprefix('batch=')}.json").read_text())
            latest = -np.inf if notes["latest"] is None else notes["latest"]
            self.latest = max(self.latest, latest)
            ids = pq.ParquetFile(self.out / "seen" / f"{done.name}.parquet").read()["event"]
            self.seen.add(as_ids(ids), np.inf if notes["latest"] is None else latest)

    # --- Subscriptions

    def _matcher(self, spark: SparkSession, schema: pa.Schema) -> tuple[Matcher, int, int]:
        """What the subscriptions ask now; their table is read again only if it has changed."""
        kinds: dict[str, Kind | None] = {
            column.name: kind_of(column.type) for column in schema if column.name != "event"
        }
        signature = _signature(self.subscriptions), kinds
        if self.asked is None or self.asked[0] != signature:
            table = tables.usable(read_subscriptions(spark, self.subscriptions)).toArrow()
            usable_kinds = {name: kind for name, kind in kinds.items() if kind is not None}
            readings = readings_of(table, usable_kinds, self.time)
            boxes = boxes_of(readings, usable_kinds, table["subscription"].combine_chunks())
            warm_up(boxes)
            rejected = rejected_rows(table, readings)
            _replace(self.out / "rejects" / "subscriptions.jsonl", _lines(rejected.to_pylist()))
            self.asked = signature, Matcher(boxes, columns=("event", *boxes.attributes)), len(table), len(rejected)
        return self.asked[1:]

    # --- Notes

    def _write_notes(self, number: int, ids: NDArray[Any], rejects: list[dict[str, Any]], report: BatchReport) -> None:
        """Write what goes with the pairs; a batch that is made anew writes it again."""
        name = f"batch={number:08}"
        (self.out / "seen").mkdir(exist_ok=True)
        kept = pa.table({"event": pa.array(ids)})
        pq.write_table(kept, self.out / "seen" / f"{name}.parquet")
        if rejects:
            _replace(self.out / "rejects" / f"{name}.jsonl", _lines(rejects))
        _replace(self.out / "batches" / f"{number:08}.json", json.dumps(asdict(report)) + "\n")


def _rejected(table: pa.Table, rows: NDArray[np.bool_], reason: str) -> list[dict[str, Any]]:
    return [
        {
            "table": "events",
            "id": None if row["event"] is None else str(row["event"]),
            "reason": reason,
            "row": str(row),
        }
        for row in table.filter(pa.array(rows)).to_pylist()
    ]


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    aside = path.with_name(f".{path.name}")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def _signature(path: Path) -> Mapping[str, tuple[int, int]]:
    """The files of a table, as they are now: changed when a file comes, goes or is written."""
    files = sorted(found for found in path.rglob("*") if found.is_file()) if path.is_dir() else [path]
    return {
        str(found): (found.stat().st_mtime_ns, found.stat().st_size) for found in files if found.name[0] not in "._"
    }
