"""Matching that goes on: events as they arrive, against subscriptions that come and go.

Files that arrive are first made safe (`serai.matching.landing`); Spark says which of them are new and keeps count of
them in its checkpoint; each batch is then matched like a table. A batch is done when its folder of pairs has been
renamed into place. After a crash Spark hands out the same files under the same number again: a batch that is done is
skipped, one that is not is made anew. So nothing is lost or there twice.

    out/pairs/batch=00000007/part-00000-0000.parquet   event, subscription
    out/rejects/batch=00000007.jsonl                   events and files that cannot be used, with the reason
    out/quarantine/                                    those files
    out/seen/batch=00000007.parquet                    ids of the batch's events, to know repeats by
    out/batches/00000007.json                          what there was in the batch
    out/columns.parquet                                the columns that any file had so far
"""

from __future__ import annotations

import json
import shutil
import threading
import time as clock
from collections.abc import Callable, Mapping
from contextlib import ExitStack
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
from serai.core.errors import BadInput, did_you_mean
from serai.core.placing import check_can_hold
from serai.matching import tables
from serai.matching.arrived import Arrived, read_arrived
from serai.matching.boxes import Axis, boxes_of, kind_of, place_events
from serai.matching.files import ParquetFiles, Piece, Rows, parquet_files, read_pieces
from serai.matching.job import kinds_taken_for_granted, read_subscriptions, write_pairs
from serai.matching.landing import LANDED, Landing
from serai.matching.match import warm_up
from serai.matching.seen import SeenIds, as_ids
from serai.matching.subscriptions import readings_of, rejected_rows
from serai.matching.worker import Matcher
from serai.spark.failures import plainly
from serai.spark.places import alone_in, local_path
from serai.spark.stores import Folder
from serai.spark.workers import cores_of

FILES_PER_BATCH = 100
_MICROSECONDS = 1_000_000.0
_FILES = "path string, modificationTime timestamp, length bigint, content binary"
_KEPT = "what is done is kept: "


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
    quarantined: int  # files that could not be read; their rows are not counted
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
    place, asked = local_path(out).absolute(), local_path(subscriptions).absolute()
    tables.check_there(subscriptions)
    check_can_hold(place, out)
    inbox = None if isinstance(events, DataFrame) else local_path(events).absolute()
    if inbox is not None and not inbox.is_dir():
        raise BadInput(f"{events}: no such folder; events arrive as files in a folder")
    if lateness_s is not None and time is None:
        raise BadInput("how late events may be can only be said with the column that says when they were (time)")
    if isinstance(events, DataFrame):
        _check_columns(events.columns, time)
    cores_of(spark)  # refuses workers with other versions, before anything is done
    place.mkdir(parents=True, exist_ok=True)
    with ExitStack() as until_begun:
        until_begun.enter_context(alone_in(place))
        (place / LANDED).mkdir(exist_ok=True)
        landing = None if inbox is None else Landing({"": inbox}, Folder(place))
        matching = _Batches(place, asked, time, lateness_s, landing, on_batch)
        if landing is not None:
            landing.land()
            _check_columns([*matching.columns.names, *_columns_of(place / LANDED)], time)
        source = events if isinstance(events, DataFrame) else _landed(spark, place / LANDED, files_per_batch)
        writer = source.writeStream.foreachBatch(matching.match_batch)
        writer = writer.option("checkpointLocation", str(place / "checkpoint")).queryName(f"serai stream {place.name}")
        query = (
            writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{poll_s:g} seconds")
        ).start()
        matching.held = until_begun.pop_all()
    if landing is not None and not once:
        threading.Thread(target=matching.keep_landing, args=(query, poll_s), name="landing", daemon=True).start()
    query.matching_of_ours = matching  # type: ignore[attr-defined]
    return query


def finish(query: StreamingQuery) -> None:
    """Wait until the stream ends; what went wrong in a batch is raised as it was, in one sentence."""
    matching: _Batches = query.matching_of_ours  # type: ignore[attr-defined]
    problem: BaseException | None = None
    try:
        query.awaitTermination()
    except Exception as error:
        problem = error
    finally:
        matching.held.close()
    problem = matching.problem or problem
    if problem is not None:
        raise plainly(problem, matching.out, _KEPT) from None


def _landed(spark: SparkSession, folder: Path, files_per_batch: int) -> DataFrame:
    """The names of the files that have landed and will; their content is not asked for, so Spark does not read them."""
    options = {"maxFilesPerTrigger": str(files_per_batch), "maxFileAge": "36500d"}  # nothing is ever too old
    reader = spark.readStream.options(**options).format("binaryFile").schema(_FILES)
    return reader.load(str(folder)).select("path")


def _check_columns(columns: list[str], time: str | None) -> None:
    """Refuse events without an id or without that time, as far as their columns are known."""
    if columns and "event" not in columns:
        raise BadInput(f"the events have no column event (their id); {did_you_mean('event', columns)}")
    if columns and time is not None and time not in columns:
        raise BadInput(f'the events have no column "{time}"; {did_you_mean(time, columns)}')


def _columns_of(landed: Path) -> list[str]:
    """The columns of the first file that waits, if it says what they are."""
    for copy in sorted(landed.glob("*.parquet")):
        try:
            return list(pq.read_schema(copy).names)
        except (pa.ArrowInvalid, OSError):
            continue
    return []


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
    landing: Landing | None  # None: events come from a frame
    on_batch: Callable[[BatchReport], None]
    problem: Exception | None = None
    held: ExitStack = field(default_factory=ExitStack)  # the lock on the folder
    seen: SeenIds | None = None
    latest: float = -np.inf
    asked: tuple[Any, Matcher, int, int] | None = None  # signature, matcher, subscriptions, rejected

    def __post_init__(self) -> None:
        known = self.out / "columns.parquet"
        self.columns: pa.Schema = pq.read_schema(known) if known.exists() else pa.schema([])

    def keep_landing(self, query: StreamingQuery, poll_s: float) -> None:
        """Land what arrives, as long as the stream runs."""
        assert self.landing is not None
        try:
            while query.isActive:
                self.landing.land()
                clock.sleep(poll_s)
        except Exception as error:
            self.problem = error
            query.stop()

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
        arrived = self._files(batch, aside)
        files, rejects = arrived.files, arrived.rejects
        self._remember()
        new = self._new(files)
        matcher, known, unknown = self._matcher(spark, files.schema)
        tally = write_pairs(spark, matcher, files, aside / "pairs", without=new.without, by_subscription=True)
        rejects += new.rejects
        nameless = sum(row["reason"].startswith("no id") for row in new.rejects)
        bad_rows = sum(row["table"] == "events" for row in rejects) - len(new.rejects)
        report = BatchReport(
            batch=number,
            events=files.rows + bad_rows,
            matched=tally.matched,
            unmatched=tally.events - tally.matched,
            repeated=new.repeated,
            late=new.late,
            rejected=bad_rows + nameless,
            pairs=tally.pairs,
            quarantined=arrived.quarantined,
            subscriptions=known,
            rejected_subscriptions=unknown,
            latest=new.latest,
            seconds=clock.time() - begun,
            latency_s=None if arrived.since is None else clock.time() - arrived.since,
        )
        self._write_notes(number, new.ids, rejects, report)
        done.parent.mkdir(exist_ok=True)
        (aside / "pairs").rename(done)  # from here on the batch is done
        shutil.rmtree(aside)
        if self.landing is not None:
            self.landing.done(copy.name for copy in arrived.copies)
        assert self.seen is not None
        self.seen.add(new.ids, np.inf if new.latest is None else new.latest)
        self.latest = max(self.latest, -np.inf if new.latest is None else new.latest)
        self.on_batch(report)

    # --- Events

    def _files(self, batch: DataFrame, aside: Path) -> Arrived:
        """The batch's events as Parquet files, and what cannot be used."""
        if self.landing is None:
            batch.write.parquet(str(aside / "events"))
            files = parquet_files(aside / "events")
            assert files is not None
            return Arrived(files, [], [], 0, None)
        copies = [self.out / LANDED / Path(row.path).name for row in batch.collect()]

        def kinds() -> dict[str, Kind]:
            asked = read_subscriptions(batch.sparkSession, self.subscriptions)
            return kinds_taken_for_granted(asked) | ({self.time: "time"} if self.time else {})

        arrived = read_arrived(self.landing, copies, self.columns, kinds, aside)
        if arrived.files.schema != self.columns:
            self.columns = arrived.files.schema
            pq.write_table(self.columns.empty_table(), aside / "columns.parquet")
            (aside / "columns.parquet").replace(self.out / "columns.parquet")
        return arrived

    def _new(self, files: ParquetFiles) -> _New:
        """Sort out events without an id, repeats, and those that come too late."""
        assert self.seen is not None
        watermark = self._watermark(files.schema)
        asked = [name for name in ("event", self.time) if name in files.schema.names]
        columns = pa.schema([files.schema.field(name) for name in asked])
        parts = list(read_pieces(files.pieces, columns, 1 << 20))
        table = pa.concat_tables([columns.empty_table(), *parts])
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
        if self.time is None or self.time not in schema.names:
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
        if self.lateness_s is None or self.time not in schema.names:
            return -np.inf
        unit = _MICROSECONDS if self._kind_of_time(schema) == "time" else 1.0
        watermark = self.latest - self.lateness_s * unit
        assert self.seen is not None
        self.seen.forget_before(watermark)
        return watermark

    def _remember(self) -> None:
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
