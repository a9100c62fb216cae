"""Which events does each subscription want? One function, two engines, the same answer.

`index`: the subscriptions go to every worker, which builds grids of them (`serai.matching.index`) and is handed the
events in Arrow batches, or reads Parquet files by itself. `keys`: rendezvous keys as a join in SQL
(`serai.matching.keys`), for subscriptions too many to be sent around, and for few where it is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, TypedDict, Unpack, get_args

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everywhere
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from serai.core.conditions import Kind
from serai.core.errors import BadInput, did_you_mean
from serai.core.jit import announced_compilation
from serai.core.readings import Readings
from serai.matching.boxes import Asked, boxes_of, kind_of
from serai.matching.files import ParquetFiles, Piece, parquet_files
from serai.matching.index import build_index, expected_work, find_pairs
from serai.matching.keys import (
    COMPARED_NS,
    LISTED_NS,
    MOST_BROADCAST,
    KeyPlan,
    conditions_table,
    join_on_keys,
    plan_keys,
)
from serai.matching.subscriptions import readings_of, rejected_rows
from serai.matching.tables import frame_of, quoted, read_parquet
from serai.matching.worker import Matcher, Mode, in_batches
from serai.spark.workers import cores_of

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Reading = Callable[[pa.Table], Readings]
Later = Callable[[], DataFrame]
Engine = Literal["auto", "index", "keys"]
MOST_ON_DRIVER = 2_000_000
"""Subscriptions that are gathered by the driver and sent to every worker; more are partitioned by key."""
_TRANSFER_NS = {"arrow": 700.0, "files": 60.0, "sql": 250.0}  # an event to where it is compared, and its pairs back
_INDEX_COMPARED_NS, _INDEX_BUILD_NS = 2.0, 2000.0  # per candidate; per subscription and worker
_UNKNOWN_EVENTS = 10_000_000.0
_PLANNED_WITH = 20_000  # subscriptions, when there are too many to look at all
MOST_PER_BATCH = 1 << 16  # pairs in one Arrow batch to the JVM
SHOWN = 5


@dataclass(frozen=True)
class MatchPlan:
    """Which engine answers, and why."""

    engine: str
    why: str
    asked: Asked | None = None
    keys: KeyPlan | None = None
    broadcast: bool = True

    def __str__(self) -> str:
        return f"engine {self.engine}: {self.why}"


@dataclass(frozen=True)
class Matching:
    """A match that is about to be made: its answer, what could not be used, and how it will be done.

    Frames are made when they are asked for: each costs tens of milliseconds, and workers that write files need none.
    """

    make_answer: Later
    make_rejected: Later
    plan: MatchPlan
    count: int  # of the subscriptions
    bad: int  # of them that cannot be used
    matcher: Matcher | None = None
    files: ParquetFiles | None = None

    @cached_property
    def answer(self) -> DataFrame:
        """What was asked for."""
        return self.make_answer()

    @cached_property
    def rejected(self) -> DataFrame:
        """Subscriptions that cannot be used, with the reasons."""
        return self.make_rejected()


class MatchOptions(TypedDict, total=False):
    """What can be asked of a match; defaults are those of `prepare_match`."""

    mode: Mode
    first: int | None
    order_by: str
    time: str | None
    engine: Engine
    strict: bool


def match(
    events: DataFrame | str | Path, subscriptions: DataFrame, *, explain: bool = False, **options: Unpack[MatchOptions]
) -> DataFrame:
    """The events that each subscription wants, as pairs of `event` and `subscription`.

    Events have an id `event` and attributes: numbers, integers, times, texts. They may be given as a path to Parquet
    files, which the workers then read by themselves. Subscriptions have an id `subscription` and either a text `where`
    or range columns. `mode`: "pairs"; "counts" of events per subscription; "any", the events that somebody wants;
    "first", the `first` events of each subscription by the column `order_by`. `time` names the column of events that
    the columns `from` and `until` of subscriptions are about, if there are such. `engine`: "auto", "index" or "keys".
    `strict` refuses subscriptions that cannot be used; `explain` prints which engine was chosen, and why.
    """
    matching = prepare_match(events, subscriptions, **options)
    if explain:
        print(matching.plan)
    return matching.answer


def prepare_match(
    events: DataFrame | str | Path | Events,
    subscriptions: DataFrame | pa.Table,
    *,
    mode: Mode = "pairs",
    first: int | None = None,
    order_by: str = "event",
    time: str | None = None,
    engine: Engine = "auto",
    strict: bool = False,
) -> Matching:
    """Read the subscriptions, choose the engine, and say what will be done; events are not touched yet.

    Subscriptions that are at hand as a table need not be asked of Spark; events are then given as `Events`.
    """
    _check_options(mode, first, engine)
    given = events if isinstance(events, Events) else Events(subscriptions.sparkSession, events)
    spark, kinds = given.spark, given.kinds
    order = _order_columns(given.names, mode, order_by)
    if isinstance(subscriptions, DataFrame):
        gathered = subscriptions.limit(MOST_ON_DRIVER + 1).toArrow()
        if len(gathered) > MOST_ON_DRIVER:
            read = partial(readings_of, kinds=kinds, time=time)
            return _partitioned(given, subscriptions, gathered, read, mode, first, order, strict)
    else:
        gathered = subscriptions
    readings = readings_of(gathered, kinds, time)
    ids = gathered["subscription"].combine_chunks()
    rejected = rejected_rows(gathered, readings)
    if strict:
        refuse_rejected(rejected)
    plan = _choose(engine, readings, kinds, ids, given.files)
    counts = len(gathered), len(rejected)
    known = pa.table({"subscription": ids.filter(_read(readings))})
    matcher = None
    if plan.asked is not None:
        warm_up(plan.asked)
        matcher = Matcher(plan.asked, mode, first or 0, ("event", *plan.asked.attributes, *order))

    def answer() -> DataFrame:
        if matcher is not None:
            found = _by_index(matcher, given)
        else:
            table = conditions_table(readings, kinds, ids).filter(pa.array(readings.possible))
            named = {name: kinds[name] for name in readings.named}
            several = len(readings.owner) > len(readings.reasons)
            found = _by_keys(given.frame, frame_of(spark, table), named, plan, mode, order, several)
        return _finished(found, mode, first, lambda: frame_of(spark, known))

    return Matching(answer, lambda: frame_of(spark, rejected), plan, *counts, matcher, given.files)


class Events:
    """Events as they are given: a frame, or a path to Parquet files, which become a frame only if need be."""

    def __init__(self, spark: SparkSession, given: DataFrame | str | Path) -> None:
        self.spark, self.given = spark, given
        self.files = None if isinstance(given, DataFrame) else parquet_files(given)
        if "event" not in self.names:
            whose = "the events have" if self.files is None else f"{given} has"
            raise BadInput(f"{whose} no column event (the id of each row); {did_you_mean('event', self.names)}")

    @cached_property
    def frame(self) -> DataFrame:
        """The events as Spark has them."""
        return self.given if isinstance(self.given, DataFrame) else read_parquet(self.spark, str(self.given))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns; files know more of them than Spark, which has no unsigned numbers."""
        return to_arrow_schema(self.frame.schema, timezone="UTC") if self.files is None else self.files.schema

    @property
    def names(self) -> list[str]:
        """What the columns are called."""
        return list(self.schema.names)

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """The attributes, and their kinds: all columns that can be compared, but for their id."""
        kinds = {column.name: kind_of(column.type) for column in self.schema}
        return {name: kind for name, kind in kinds.items() if kind is not None and name != "event"}


def refuse_rejected(rejected: pa.Table) -> None:
    """Complain about rows that cannot be used, if there are any."""
    if len(rejected) == 0:
        return
    shown = [f"  {row['table']} {row['id']}: {row['reason']}" for row in rejected.slice(0, SHOWN).to_pylist()]
    more = [f"  and {len(rejected) - SHOWN} more"] if len(rejected) > SHOWN else []
    rows = "1 row" if len(rejected) == 1 else f"{len(rejected)} rows"
    raise BadInput("\n".join([f"{rows} cannot be used, and strict was asked for:", *shown, *more]))


def _check_options(mode: str, first: int | None, engine: str) -> None:
    if mode not in get_args(Mode):
        raise BadInput(f'no mode "{mode}"; {did_you_mean(mode, get_args(Mode))}')
    if engine not in get_args(Engine):
        raise BadInput(f'no engine "{engine}"; {did_you_mean(engine, get_args(Engine))}')
    if (mode == "first") != (first is not None) or (first is not None and first < 1):
        raise BadInput(
            'mode "first" needs a number of events per subscription (first), 1 or more; other modes have none'
        )


def _order_columns(names: list[str], mode: Mode, order_by: str) -> list[str]:
    if mode != "first":
        return []
    if order_by not in names:
        raise BadInput(f'no column "{order_by}" to order the events by; {did_you_mean(order_by, names)}')
    return [order_by]


def _read(readings: Readings) -> pa.Array:
    return pa.array([reason is None for reason in readings.reasons], pa.bool_())


# --- Choosing


def _choose(
    engine: Engine, readings: Readings, kinds: Mapping[str, Kind], ids: pa.Array, files: ParquetFiles | None
) -> MatchPlan:
    """The engine that is asked for, or the one that is expected to be done first."""
    events = float(files.rows) if files else _UNKNOWN_EVENTS
    subscriptions = int(readings.possible.sum())
    asked, compared, grids = _index_compared(readings, kinds, ids)
    by_index = _TRANSFER_NS["files" if files else "arrow"] + _INDEX_COMPARED_NS * compared
    by_index += _INDEX_BUILD_NS * subscriptions / max(events, 1.0)
    if engine == "index" or (engine == "auto" and by_index <= _TRANSFER_NS["sql"]):  # whatever the keys would be
        why = f"{_why(engine, subscriptions, events, files)}: index {by_index:,.0f} ns an event"
        why += f" ({compared:.1f} compared, grids of {grids}), keys {_TRANSFER_NS['sql']:,.0f} ns at least"
        return MatchPlan("index", why, asked=asked)
    keys = plan_keys(readings, subscriptions, max(events, 1.0))
    by_keys = _TRANSFER_NS["sql"] + COMPARED_NS * keys.compared + LISTED_NS * keys.listed / max(events, 1.0)
    chosen = engine if engine != "auto" else "index" if by_index <= by_keys else "keys"
    why = (
        f"{_why(engine, subscriptions, events, files)}:"
        f" index {by_index:,.0f} ns an event ({compared:.1f} compared, grids of {grids}),"
        f" keys {by_keys:,.0f} ns ({keys.compared:.1f} compared, {keys.listed:,.0f} keys: {keys.bits})"
    )
    if chosen == "index":
        return MatchPlan("index", why, asked=asked)
    return MatchPlan("keys", why, keys=keys, broadcast=keys.listed <= MOST_BROADCAST)


def _why(engine: str, subscriptions: int, events: float, files: ParquetFiles | None) -> str:
    return (
        f"{'asked for' if engine != 'auto' else 'expected to be faster'}; estimates for {subscriptions:,} subscriptions"
        f" and {'' if files else 'perhaps '}{events:,.0f} events{' in Parquet files' if files else ''}"
    )


def _index_compared(readings: Readings, kinds: Mapping[str, Kind], ids: pa.Array) -> tuple[Asked, float, str]:
    asked = boxes_of(readings, kinds, ids)
    compared, bins = expected_work(asked.low, asked.high)
    grids = [" x ".join(map(str, each)) or "1" for each in bins]
    return asked, compared, ", ".join(grids) or "no boxes"


# --- The two engines


def _by_index(matcher: Matcher, events: Events) -> DataFrame:
    """The worker's answers, as they come from each task."""
    types = {column.name: column.type for column in to_arrow_schema(events.frame.schema, timezone="UTC")}
    schema = matcher.schema(types["event"], types[matcher.columns[-1]])
    if events.files is not None:
        tasks = events.files.tasks(cores_of(events.spark))
        numbers = events.spark.range(0, len(tasks), 1, max(1, len(tasks)))
        return numbers.mapInArrow(_file_task(matcher, events.files.schema, tasks, schema), from_arrow_schema(schema))
    names = matcher.column_names()
    chosen = [F.col(quoted(column)).alias(name) for column, name in zip(matcher.columns, names, strict=True)]
    return events.frame.select(*chosen).mapInArrow(_batch_task(matcher, schema), from_arrow_schema(schema))


def _batch_task(matcher: Matcher, schema: pa.Schema) -> Task:
    def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in matcher.answer(in_batches(batches)):
            yield from table.cast(schema).to_batches(MOST_PER_BATCH)

    return answer


def _file_task(matcher: Matcher, files: pa.Schema, tasks: list[list[Piece]], schema: pa.Schema) -> Task:
    def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for table in matcher.answer(matcher.read(tasks[number], files)):
                    yield from table.cast(schema).to_batches(MOST_PER_BATCH)

    return answer


def warm_up(asked: Asked) -> None:
    """Compile the kernels here, once, so that the workers find them on the disk."""
    with announced_compilation("matching"):
        few = slice(0, 1)
        index = build_index(asked.low[few], asked.high[few])
        for _ in find_pairs(index, np.zeros((1, index.width)), np.zeros(1, np.bool_)):
            pass


def _by_keys(
    events: DataFrame,
    conditions: DataFrame,
    names: Mapping[str, Kind],
    plan: MatchPlan,
    mode: Mode,
    order: list[str],
    several: bool,
) -> DataFrame:
    assert plan.keys is not None
    by = order[0] if order else None
    keys, broadcast = plan.keys, plan.broadcast
    pairs = join_on_keys(events, conditions, names, keys, broadcast=broadcast, several=several, order_by=by)
    if mode == "any":
        return pairs.select("event")
    return pairs.groupBy("subscription").agg(F.count("*").alias("events")) if mode == "counts" else pairs


def _finished(found: DataFrame, mode: Mode, first: int | None, known: Callable[[], DataFrame]) -> DataFrame:
    """The answer from what the tasks found."""
    if mode == "any":
        return found.distinct()
    if mode == "counts":
        none = known().select("subscription", F.lit(0).cast("bigint").alias("events"))
        return found.unionAll(none).groupBy("subscription").agg(F.sum("events").alias("events"))
    if mode == "first":
        earliest = Window.partitionBy("subscription").orderBy("order", "event")
        ranked = found.withColumn("rank", F.row_number().over(earliest))
        return ranked.where(F.col("rank") <= (first or 0)).select("event", "subscription")
    return found


# --- More subscriptions than the driver should hold


def _partitioned(
    events: Events,
    subscriptions: DataFrame,
    gathered: pa.Table,
    reading: Reading,
    mode: Mode,
    first: int | None,
    order: list[str],
    strict: bool,
) -> Matching:
    """Subscriptions read by the workers and partitioned by key; nothing of their size comes to the driver."""
    some = gathered.take(pa.array(np.linspace(0, len(gathered) - 1, _PLANNED_WITH).astype(np.int64)))
    sample, kinds = reading(some), events.kinds
    for name, kind in kinds.items():
        sample.open(name, kind)
    total = subscriptions.count()
    keys = plan_keys(sample, total, _UNKNOWN_EVENTS)
    read = _read_by_workers(subscriptions, reading, kinds, list(sample.named))
    rejects = read.where("reason is not null and first").select(
        F.lit("subscriptions").alias("table"), F.col("subscription").cast("string").alias("id"), "reason", "row"
    )
    if strict:
        refuse_rejected(rejects.limit(SHOWN + 1).toArrow())
    usable = read.where("reason is null and possible").drop("reason", "row", "possible", "first")
    why = (
        f"{total:,} subscriptions are more than the {MOST_ON_DRIVER:,} that are sent to every worker;"
        f" partitioned by key, {keys.compared:.1f} compared an event, {keys.listed:,.0f} keys: {keys.bits}"
    )
    plan = MatchPlan("keys", why, keys=keys, broadcast=False)
    named = {name: kinds[name] for name in sample.named}
    found = _by_keys(events.frame, usable, named, plan, mode, order, _may_have_alternatives(subscriptions))
    known = read.where("reason is null").select("subscription").distinct()
    answer = partial(_finished, found, mode, first, lambda: known)
    return Matching(answer, lambda: rejects, plan, total, rejects.count())


def _may_have_alternatives(subscriptions: DataFrame) -> bool:
    """Whether there is a text that may ask for more than one box."""
    if "where" not in subscriptions.columns:
        return False
    signs = r"(?i)\b(or|not|in)\b|[|!∨¬≠∈]|<>"
    return bool(subscriptions.where(F.col("where").rlike(signs)).limit(1).count())


def _read_by_workers(
    subscriptions: DataFrame, reading: Reading, kinds: Mapping[str, Kind], names: list[str]
) -> DataFrame:
    """The conditions of the subscriptions, and the reasons of those that cannot be used."""

    def read(table: pa.Table) -> pa.Table:
        readings = reading(table)
        for name in names:
            readings.open(name, kinds[name])
        readings.named = {name: readings.named[name] for name in names}
        texts = table["where"].cast(pa.string()) if "where" in table.column_names else pa.nulls(len(table), pa.string())
        more = {
            "reason": pa.array(readings.reasons, pa.string()).take(pa.array(readings.owner)),
            "row": texts.take(pa.array(readings.owner)),
            "possible": pa.array(readings.possible),
            "first": pa.array(np.arange(len(readings.owner)) < len(readings.reasons)),  # of its alternatives
        }
        conditions = conditions_table(readings, kinds, table["subscription"])
        for name, column in more.items():
            conditions = conditions.append_column(name, column)
        return conditions

    def read_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in in_batches(batches):
            yield from read(table).to_batches()

    empty = to_arrow_schema(subscriptions.schema, timezone="UTC").empty_table()
    return subscriptions.mapInArrow(read_batches, from_arrow_schema(read(empty).schema))
