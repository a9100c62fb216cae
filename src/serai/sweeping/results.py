"""A finished sweep, opened for reading: its plan, and its rows as a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from serai.core.errors import BadInput
from serai.sweeping.plan import Plan
from serai.sweeping.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Sweep:
    """A finished sweep.

    `rows` has one row for each run: `point` (a place in `plan.points`), `protocol`, `seed`, then the metrics of that
    kind of network, then `undelivered_pairs`, `delay_bin` and `delay_count` (see `serai.sweeping.delays`).
    """

    folder: Path
    plan: Plan
    rows: DataFrame
    versions: dict[str, str]


def open_sweep(folder: str | Path, spark: SparkSession) -> Sweep:
    """The sweep that a folder keeps."""
    store = Store(folder)
    plan = store.plan()
    if not store.table.exists():
        raise BadInput(f"{store.folder}: the sweep is not finished; give its `serai sweep` command again")
    return Sweep(store.folder, plan, _rows(store.table, spark), store.versions())


def _rows(table: Path, spark: SparkSession) -> DataFrame:
    """The table as a frame: read by Spark where it sees the file, sent there where it does not."""
    from pyspark.errors import AnalysisException

    try:
        return spark.read.parquet(f"file://{table}")
    except AnalysisException:
        import pyarrow.parquet as pq

        return spark.createDataFrame(pq.read_table(table))
