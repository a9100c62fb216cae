"""Who does the work of a batch: this process, or the workers of a Spark session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from serai.matching.files import ParquetFiles, Piece, Rows
from serai.matching.job import write_pairs, write_pairs_here
from serai.matching.match import warm_up
from serai.matching.worker import Matcher
from serai.spark.workers import cores_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Own:
    """This process, without Spark and Java: enough for a field whose logs fit a machine."""

    def each(self, work: Callable[[int], dict[str, Any]], count: int) -> list[dict[str, Any]]:
        """The answers of `work` to the numbers 0 .. count-1."""
        return [work(number) for number in range(count)]

    def pairs(self, matcher: Matcher, files: ParquetFiles, answer: Path, without: Mapping[Piece, Rows]) -> None:
        """Write the pairs of the events in the files but for rows `without`."""
        write_pairs_here(matcher, files, answer, without=without, by_subscription=True)


class OnSpark:
    """The workers of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def each(self, work: Callable[[int], dict[str, Any]], count: int) -> list[dict[str, Any]]:
        """The answers of `work` to the numbers 0 .. count-1, each by a worker."""

        def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in (number for batch in batches for number in batch.column(0).to_pylist()):
                yield pa.RecordBatch.from_pylist([{"number": number, "answer": json.dumps(work(number))}])

        tasks = max(1, min(count, 2 * cores_of(self.spark)))
        rows = self.spark.range(0, count, 1, tasks).mapInArrow(answer, "number long, answer string").collect()
        return [json.loads(row.answer) for row in sorted(rows)]

    def pairs(self, matcher: Matcher, files: ParquetFiles, answer: Path, without: Mapping[Piece, Rows]) -> None:
        """Write the pairs of the events in the files but for rows `without`."""
        warm_up(matcher.asked)
        write_pairs(self.spark, matcher, files, answer, without=without, by_subscription=True)
