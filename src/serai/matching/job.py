"""`serai match`: events and subscriptions in files, matched, with every row accounted for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everywhere
from pyspark.sql.pandas.types import from_arrow_schema

from serai.core.conditions import Kind, kinds_by_use
from serai.core.errors import BadInput, did_you_mean
from serai.matching import tables
from serai.matching.files import ASIDE, ParquetFiles, Piece, Rows, parquet_files, read_pieces, write_part
from serai.matching.match import (
    MOST_ON_DRIVER,
    SHOWN,
    Engine,
    Events,
    Later,
    Matching,
    MatchOptions,
    Task,
    match,
    prepare_match,
    refuse_rejected,
)
from serai.matching.worker import Matcher, Mode, Tally
from serai.spark.failures import said_plainly
from serai.spark.places import local_path
from serai.spark.workers import cores_of

SORTED_AT_ONCE = 1 << 22  # pairs: some 64 MB of numbers
_TALLIES = pa.schema([(name, pa.int64()) for name in ("events", "matched", "rejected", "pairs")])


@dataclass(frozen=True)
class MatchReport:
    """What a match did; events = matched + unmatched + rejected."""

    events: int
    matched_events: int
    unmatched_events: int
    rejected_events: int
    subscriptions: int
    rejected_subscriptions: int
    rows: int  # of the answer
    engine: str
    why: str
    out: str
    rejects: str | None  # file of the rejected rows, if there are any

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self)


def match_files(
    spark: SparkSession,
    events: str | Path,
    subscriptions: str | Path,
    out: str | Path,
    *,
    mode: Mode = "pairs",
    first: int | None = None,
    order_by: str = "event",
    time: str | None = None,
    engine: Engine = "auto",
    strict: bool = False,
    rejects: str | Path | None = None,
    partition_by: str | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> MatchReport:
    """Match the events of one table with the subscriptions of another, and write the answer to `out`.

    `partition_by`: subscription, or a column of events; the answer then lies in a folder for each of its values.
    """
    place = local_path(out).absolute()
    rejects_place = local_path(rejects).absolute() if rejects else place.with_name(f"{place.name}.rejects.jsonl")
    for new, old in ((place, events), (rejects_place, subscriptions)):
        tables.check_free(new)
        tables.check_there(old)
    options: MatchOptions = {
        "mode": mode,
        "first": first,
        "order_by": order_by,
        "time": time,
        "engine": engine,
        "strict": strict,
    }
    if partition_by and (mode != "pairs" or tables.format_of(place, "parquet") != "parquet"):
        raise BadInput("--partition-by: only pairs, written as Parquet files, can lie in a folder for each value")
    with said_plainly(out), tables.aside(place) as folder:
        cores_of(spark)  # refuses workers with other versions, before anything is done
        on_step("reading")
        asked = cache(partial(read_subscriptions, spark, subscriptions))
        given = read_events(spark, events, asked, folder)
        matching, nameless = _prepared(spark, given, subscriptions, asked, options)
        nameless_count = nameless[0].count() if nameless else 0

        def bad() -> DataFrame:
            return reduce(DataFrame.unionByName, [matching.rejected, *nameless, given.bad()])

        on_step(f"matching by {matching.plan.engine}")
        if strict:  # of Parquet files the ids are looked at, too
            refuse_rejected(bad().limit(SHOWN + 1).toArrow())
        made = _made(spark, matching, given, asked, folder, options)
        on_step("writing")
        rejected_subscriptions = matching.bad + nameless_count
        if rejected_subscriptions or made.rejected:
            tables.write_one_file(bad(), rejects_place, "json", folder)
        answer = made.answer
        if partition_by:
            answer = _partitioned(spark, made.answer, given.path, partition_by, folder)
        tables.put(spark, answer, place, folder)
    return MatchReport(
        events=made.events,
        matched_events=made.matched,
        unmatched_events=made.events - made.matched - made.rejected,
        rejected_events=made.rejected,
        subscriptions=matching.count + nameless_count,
        rejected_subscriptions=rejected_subscriptions,
        rows=made.rows,
        engine=matching.plan.engine,
        why=matching.plan.why,
        out=str(out),
        rejects=str(rejects_place) if rejected_subscriptions or made.rejected else None,
    )


# --- What is given


class Given(NamedTuple):
    """Events that can be matched, as Parquet files; and those that cannot."""

    events: Events
    bad: Later
    rejected: int  # in tables without types; of a Parquet table it is not known yet

    @property
    def path(self) -> str:
        """Where the files are."""
        return str(self.events.given)


def read_subscriptions(spark: SparkSession, path: str | Path) -> DataFrame:
    """The subscriptions, with ids and bounds of their types, and a reason for those that cannot be used."""
    table = _with_ids(tables.read_table(spark, path), "subscription", str(path))
    bounds = [name for name in table.columns if name.endswith(("_low", "_high"))]
    numbers = bounds if tables.is_untyped(table) and "where" not in table.columns else []
    return tables.with_reason(table, "subscription", dict.fromkeys(numbers, "real"))


def _prepared(
    spark: SparkSession, given: Given, path: str | Path, asked: Later, options: MatchOptions
) -> tuple[Matching, list[DataFrame]]:
    """The match, and what it does not know of: subscriptions that are rejected as they are read."""
    at_hand = _at_hand(path)
    if at_hand is not None:
        _check_id("subscription", at_hand.column_names, str(path))
        return prepare_match(given.events, at_hand, **options), []
    nameless = tables.rejects_of(asked(), "subscriptions", "subscription")
    return prepare_match(given.path, tables.usable(asked()), **options), [nameless]


def _at_hand(path: str | Path) -> pa.Table | None:
    """The subscriptions of Parquet files on this machine, if they are not too many; nobody else need be asked."""
    files = parquet_files(path) if tables.format_of(path) == "parquet" else None
    if files is None or files.rows > MOST_ON_DRIVER:
        return None
    return pa.concat_tables([files.schema.empty_table(), *read_pieces(files.pieces, files.schema, MOST_ON_DRIVER)])


def read_events(spark: SparkSession, path: str | Path, asked: Later, folder: Path) -> Given:
    """The events: Parquet as it is, other formats written anew, with types as the subscriptions use them."""
    if tables.format_of(path) == "parquet":

        def without_id() -> DataFrame:
            table = tables.with_reason(tables.read_table(spark, path), "event", {})
            return tables.rejects_of(table, "events", "event")

        return Given(Events(spark, tables.spark_path(path)), without_id, 0)
    table = _with_ids(tables.read_table(spark, path), "event", str(path))
    typed = tables.with_reason(table, "event", kinds_taken_for_granted(asked()))
    good = folder / "events.parquet"
    tables.usable(typed).write.parquet(str(good))
    bad = tables.rejects_of(typed, "events", "event")
    return Given(Events(spark, str(good)), lambda: bad, bad.count())


def kinds_taken_for_granted(asked: DataFrame) -> dict[str, Kind]:
    """The kinds that attributes have for the subscriptions, for events that come without types."""
    as_text = "where" in asked.columns
    texts = asked.select("where").limit(MOST_ON_DRIVER).toArrow()["where"].to_pylist() if as_text else []
    bounds = [f"{name.rpartition('_')[0]} < 0" for name in asked.columns if name.endswith(("_low", "_high"))]
    return kinds_by_use([*texts, *bounds])


def _with_ids(table: DataFrame, name: str, path: str) -> DataFrame:
    """The table, with whole numbers as ids if they all are."""
    _check_id(name, tables.columns_of(table), path)
    if tables.is_untyped(table) and table.agg(tables.whole_number_ids(name)).first()[0]:  # type: ignore[index]
        return table.withColumn(name, F.col(name).cast("bigint"))
    return table


def _check_id(name: str, columns: list[str], path: str) -> None:
    if name not in columns:
        raise BadInput(f"{path}: no column {name} (the id of each row); {did_you_mean(name, columns)}")


# --- What is made


class _Made(NamedTuple):
    """An answer in a folder of Parquet files, and what there was to it."""

    answer: Path
    rows: int
    events: int
    matched: int
    rejected: int


def _made(
    spark: SparkSession, matching: Matching, given: Given, asked: Later, folder: Path, options: MatchOptions
) -> _Made:
    answer = folder / "answer"
    if matching.matcher is not None and matching.files is not None and options["mode"] in ("pairs", "any"):
        answer.mkdir()
        return _made_by_workers(spark, matching.matcher, matching.files, given, answer)
    matching.answer.write.parquet(str(answer))
    tables.keep_parts(answer)
    found = spark.read.parquet(str(answer))
    rows = found.count()
    events = spark.read.parquet(given.path)
    if options["mode"] in ("pairs", "any"):
        ids = found.select("event")
    else:
        ids = match(given.path, tables.usable(asked()), mode="any", time=options["time"], engine=options["engine"])
    total, nameless = events.agg(F.count("*"), F.count_if(F.col("event").isNull())).first()  # type: ignore[misc]
    matched = events.join(ids.distinct(), "event", "left_semi").count()
    return _Made(answer, rows, total + given.rejected, matched, nameless + given.rejected)


def _made_by_workers(spark: SparkSession, matcher: Matcher, files: ParquetFiles, given: Given, answer: Path) -> _Made:
    """Each task reads its row groups, writes one file, and only says how many rows it saw."""
    tally = write_pairs(spark, matcher, files, answer)
    return _Made(answer, tally.pairs, tally.events + given.rejected, tally.matched, tally.rejected + given.rejected)


def _partitioned(spark: SparkSession, answer: Path, events: str, column: str, folder: Path) -> Path:
    """The pairs once more, in folders column=value, as Hive lays them out."""
    pairs = spark.read.parquet(str(answer))
    if column != "subscription":
        known = tables.read_parquet(spark, events)
        if column not in known.columns or column == "event":
            raise BadInput(f'--partition-by: no column "{column}"; {did_you_mean(column, known.columns)}')
        of_event = known.select("event", tables.quoted(column)).dropDuplicates(["event"])
        pairs = pairs.join(of_event, "event", "left")
    made = folder / "partitioned"
    pairs.repartition(tables.quoted(column)).write.partitionBy(column).parquet(str(made))
    for left in [made / "_SUCCESS", *made.rglob(".*.crc")]:
        left.unlink(missing_ok=True)
    return made


def write_pairs(
    spark: SparkSession,
    matcher: Matcher,
    files: ParquetFiles,
    answer: Path,
    *,
    without: Mapping[Piece, Rows] | None = None,
    by_subscription: bool = False,
) -> Tally:
    """Let the workers match the events of some files, but for rows `without`, and write one file per task.

    `by_subscription`: each file is sorted, so that whoever asks for one subscription reads little; a task that finds
    very many pairs writes several files.
    """
    tasks = files.tasks(cores_of(spark))
    schema = matcher.schema(files.schema.field("event").type)
    write = _writing_task(matcher, files.schema, tasks, schema, answer.absolute(), without, by_subscription)
    tallies = spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(write, from_arrow_schema(_TALLIES))
    rows = tallies.collect()
    for left in answer.glob(f"{ASIDE}*"):  # of a worker that was killed while it wrote
        left.unlink()
    return Tally(*(sum(row[name] for row in rows) for name in _TALLIES.names))


def _writing_task(
    matcher: Matcher,
    files: pa.Schema,
    tasks: list[list[Piece]],
    schema: pa.Schema,
    answer: Path,
    without: Mapping[Piece, Rows] | None,
    by_subscription: bool,
) -> Task:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            tally = Tally()
            found = (table.cast(schema) for table in matcher.answer(matcher.read(tasks[number], files, without), tally))
            if by_subscription:
                for run, table in enumerate(_sorted_runs(found, schema)):
                    write_part([table], answer / f"part-{number:05}-{run:04}.parquet", schema)
            else:
                write_part(found, answer / f"part-{number:05}.parquet", schema)
            yield pa.RecordBatch.from_pylist([asdict(tally)], schema=_TALLIES)

    return write


def _sorted_runs(found: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """The pairs by subscription, as many at a time as are sorted in little memory; one run at least."""
    held, rows, runs = [schema.empty_table()], 0, 0
    for table in found:
        held.append(table)
        rows += len(table)
        if rows >= SORTED_AT_ONCE:
            yield pa.concat_tables(held).sort_by("subscription")
            held, rows, runs = [], 0, runs + 1
    if rows or not runs:
        yield pa.concat_tables(held).sort_by("subscription")
