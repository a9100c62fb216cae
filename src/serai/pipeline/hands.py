"""Who does the work of a batch: this process, or the workers of a Spark session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from serai.spark.workers import cores_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Work = Callable[[int], dict[str, Any]]


class Hands(Protocol):
    """Who does the work."""

    def each(self, work: Work, count: int) -> list[dict[str, Any]]:
        """The answers of `work` to the numbers 0 .. count-1."""


class Own:
    """This process, without Spark and Java: enough for a field whose logs fit a machine."""

    def each(self, work: Work, count: int) -> list[dict[str, Any]]:
        """The answers of `work` to the numbers 0 .. count-1."""
        return [work(number) for number in range(count)]


class OnSpark:
    """The workers of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def each(self, work: Work, count: int) -> list[dict[str, Any]]:
        """The answers of `work` to the numbers 0 .. count-1, each by a worker."""
        if not count:
            return []

        def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in (number for batch in batches for number in batch.column(0).to_pylist()):
                yield pa.RecordBatch.from_pylist([{"number": number, "answer": json.dumps(work(number))}])

        tasks = min(count, 2 * cores_of(self.spark))
        rows = self.spark.range(0, count, 1, tasks).mapInArrow(answer, "number long, answer string").collect()
        return [json.loads(row.answer) for row in sorted(rows)]
