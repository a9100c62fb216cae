"""A finished sweep, opened for reading: its plan, and its rows as a DataFrame."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from serai.core.errors import BadInput
from serai.sweeping.plan import Plan
from serai.sweeping.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from serai.sweeping.summaries import Estimates


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

    @cached_property
    def estimates(self) -> Estimates:
        """The mean of every metric over the seeds, by point and protocol."""
        from serai.sweeping.summaries import estimates_of

        return estimates_of(self)

    def __repr__(self) -> str:
        runs = sum(map(len, self.plan.runs().values()))
        return f"Sweep({self.plan.name}: {len(self.plan.cells)} cells, {runs:,} runs, in {self.folder})"

    def _repr_html_(self) -> str:
        """A row for each point and protocol, with the metrics that are looked for first."""
        metrics = [self.plan.kind.definitions[name] for name in self.plan.kind.headlines]
        units = {one.name: f", {one.unit}" if one.unit else "" for one in metrics}
        heads = "".join(f'<th title="{html.escape(m.meaning)}">{m.name}{units[m.name]}</th>' for m in metrics)
        rows = []
        for cell in self.plan.cells:
            point = ", ".join(f"{key} = {value}" for key, value in self.plan.points[cell.point].items())
            found = self.estimates[cell.point, cell.protocol]
            cells = "".join(f"<td>{found[one.name]}</td>" for one in metrics)
            rows.append(f"<tr><th>{html.escape(point)}</th><th>{cell.protocol}</th>{cells}</tr>")
        return f"<table><tr><th></th><th></th>{heads}</tr>{''.join(rows)}</table>"


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
