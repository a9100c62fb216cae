"""A pipeline at work: what arrives is landed, made into batches, delivered and reported; until stopped, or once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from serai.core.errors import BadInput
from serai.matching.landing import Landing
from serai.pipeline.batch import Batches, Done, read_subscriptions
from serai.pipeline.config import Pipeline
from serai.pipeline.deliver import Cursor, deliver
from serai.pipeline.hands import OnSpark, Own
from serai.pipeline.reports import Status, status_of, write_page
from serai.pipeline.tables import Tables
from serai.spark.failures import said_plainly
from serai.spark.places import alone_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES = "path string, modificationTime timestamp, length bigint, content binary"


class Progress:
    """What a pipeline says while it works; this one keeps it to itself."""

    def on_batch(self, done: Done) -> None:
        """A batch is in the tables."""

    def on_delivery(self, cursor: Cursor) -> None:
        """A receiver has been told, or could not be."""


def run_once(
    config: Pipeline,
    progress: Progress | None = None,
    spark: SparkSession | None = None,
    now: Callable[[], float] = time.time,
) -> Status:
    """Do all that there is to do, and say how the pipeline stands; with a session its workers do the work."""
    with said_plainly(config.home, "what is done is kept: "), _at_work(config):
        batches = _batches(config, spark)
        for landing in batches.landings:
            landing.land()
        _work(config, batches, progress or Progress(), now)
        return _finish(config, now)


def run(config: Pipeline, spark: SparkSession, progress: Progress | None = None, poll_s: float = 1.0) -> None:
    """Go on until stopped: Structured Streaming looks for what has landed, and calls us for every batch."""
    with said_plainly(config.home, "what is done is kept: "), _at_work(config):
        batches = _batches(config, spark)
        told = progress or Progress()

        def on_files(batch: DataFrame, number: int) -> None:
            # Which files are done is said by our own plans and journal: what Spark hands out again is done once.
            _work(config, batches, told, time.time)
            _finish(config, time.time)

        queries = []
        for landing in batches.landings:
            landing.land()
            reader = spark.readStream.format("binaryFile").schema(_FILES).option("maxFileAge", "36500d")
            frame = reader.load(str(landing.folder)).select("path")
            writer = frame.writeStream.foreachBatch(on_files).trigger(processingTime=f"{poll_s:g} seconds")
            queries.append(writer.option("checkpointLocation", str(landing.folder.parent / "checkpoint")).start())
        try:
            while all(query.isActive for query in queries):
                for landing in batches.landings:
                    landing.land()
                time.sleep(poll_s)
            for query in queries:
                query.awaitTermination()
        finally:
            for query in queries:
                query.stop()


def retry(config: Pipeline) -> int:
    """Put files that are in quarantine in the way again, for the next run; how many."""
    again = 0
    with _at_work(config):
        for landing in _landings(config):
            for copy in sorted(landing.folder.with_name("quarantine").glob("*")):
                digest = next(digest for digest in landing.by_content if copy.name.startswith(digest[:12]))
                # Under a name that Spark has not seen: it reads a name only once.
                number = sum(1 for _ in (config.home / "plans").glob("*.json"))
                copy.rename(landing.folder / f"{digest}.{number}")
                again += 1
    return again


def _at_work(config: Pipeline) -> Any:
    for source in config.sources:
        if not source.is_dir():
            raise BadInput(f"{source}: no such folder; logs arrive there as files")
    read_subscriptions(config.subscriptions)  # says what is wrong with them before anything is done
    config.home.mkdir(parents=True, exist_ok=True)
    return alone_in(config.home)


def _landings(config: Pipeline) -> list[Landing]:
    return [Landing(source, config.home / f"landed-{number}") for number, source in enumerate(config.sources)]


def _batches(config: Pipeline, spark: SparkSession | None) -> Batches:
    hands = Own() if spark is None else OnSpark(spark)
    return Batches(config, _landings(config), Tables(config.home), hands)


def _work(config: Pipeline, batches: Batches, progress: Progress, now: Callable[[], float]) -> None:
    for done in batches.run_pending(now):
        progress.on_batch(done)
    for receiver in config.receivers:
        progress.on_delivery(deliver(config.home, batches.tables, receiver))


def _finish(config: Pipeline, now: Callable[[], float]) -> Status:
    status = status_of(config, now())
    write_page(status, config, now())
    return status
