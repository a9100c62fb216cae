"""How fast is a pipeline? CPU seconds of the whole process tree, beside DuckDB and Polars scripts on the same files.

`python benchmarks/pipeline.py` prints the tables of docs/pipeline-operations.md; `--quick` takes smaller sizes. Events
of 100 nodes lie in 1,000 Parquet files, a quarter of them comes twice; subscriptions are boxes over two attributes,
about one match per event. The scripts read, leave out repeats, join and write, without any promise: no copy of what
came, no journal, no plan, and a crash leaves whatever it leaves. All must give the same number of events and pairs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matching import boxes, measured, row, table

NODES = 100
CONFIG = """
home = "home"
source = [{{kind = "folder", path = "inbox"}}]
subscriptions = "asked.parquet"
spark = {spark}
"""


def write_field(folder: Path, events: int, files: int, subscriptions: int) -> None:
    """An inbox: each file has part of one node's events, and a quarter of the events of the file before it."""
    rng = np.random.default_rng(3)
    (folder / "inbox").mkdir(parents=True)
    pq.write_table(boxes(subscriptions, 2), folder / "asked.parquet")
    begin = np.datetime64("2026-11-01T00:00:00", "us")
    each = events // files
    per_node = max(1, files // NODES)
    before: pa.Table | None = None
    for number in range(files):
        first = number % per_node * each
        columns = {
            "node": pa.array([f"n{number // per_node}"] * each),
            "seq": pa.array(np.arange(first, first + each)),
            "time": pa.array(begin + (np.arange(first, first + each) * 1_000_000).astype("timedelta64[us]")),
            "a0": rng.random(each),
            "a1": rng.random(each),
        }
        rows = pa.table(columns)
        again = [] if before is None else [before.slice(0, each // 4)]
        pq.write_table(pa.concat_tables([rows, *again]), folder / "inbox" / f"{number:05}.parquet")
        before = rows


def with_serai(folder: Path, spark: object | None) -> tuple[int, int]:
    from serai.pipeline.config import load_pipeline
    from serai.pipeline.run import run_once

    shutil.rmtree(folder / "home", ignore_errors=True)
    (folder / "field.toml").write_text(CONFIG.format(spark="false"))
    status = run_once(load_pipeline(folder / "field.toml"), spark=spark)  # type: ignore[arg-type]
    return status.events, status.pairs


def with_duckdb(folder: Path) -> tuple[int, int]:
    import duckdb

    here = duckdb.connect()
    here.sql("set threads = 2")
    out = folder / "duckdb"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    here.sql(f"create table events as select distinct on (node, seq) * from read_parquet('{folder}/inbox/*.parquet')")
    here.sql(f"copy events to '{out}/events.parquet'")
    # As comparisons: with "between" DuckDB 2.0 took 28 times as long (200,000 events, one run).
    on = " and ".join(f"a{k} >= a{k}_low and a{k} <= a{k}_high" for k in range(2))
    here.sql(
        f"copy (select node, seq, subscription from events join read_parquet('{folder}/asked.parquet') on {on})"
        f" to '{out}/pairs.parquet'"
    )
    return rows_in(out / "events.parquet"), rows_in(out / "pairs.parquet")


def with_polars(folder: Path) -> tuple[int, int]:
    import polars as pl

    out = folder / "polars"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    events = pl.scan_parquet(folder / "inbox" / "*.parquet").unique(["node", "seq"], keep="any").collect()
    events.write_parquet(out / "events.parquet")
    asked = pl.read_parquet(folder / "asked.parquet").lazy()
    on = [pl.col(f"a{k}") >= pl.col(f"a{k}_low") for k in range(2)]
    on += [pl.col(f"a{k}") <= pl.col(f"a{k}_high") for k in range(2)]
    pairs = events.lazy().join_where(asked, *on).select("node", "seq", "subscription").collect()
    pairs.write_parquet(out / "pairs.parquet")
    return rows_in(out / "events.parquet"), rows_in(out / "pairs.parquet")


def rows_in(path: Path) -> int:
    return int(pq.ParquetFile(path).metadata.num_rows)


def forget_peak() -> None:
    """From now on the most memory that this process takes is counted anew."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> int:
    """The most memory that this process has taken since."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) >> 10


def beside_others(folder: Path, sizes: list[tuple[int, int, int]], spark: object | None, patient: bool) -> None:
    table("events", "files", "subscriptions", "by", "CPU s", "s", "most MiB", "events kept", "pairs")
    for events, files, subscriptions in sizes:
        place = folder / str(events)
        write_field(place, events, files, subscriptions)
        ways: list[tuple[str, Callable[[Path], tuple[int, int]]]] = [
            ("serai, one process", lambda place: with_serai(place, None))
        ]
        if patient or subscriptions <= 10_000:
            ways += [("DuckDB", with_duckdb), ("Polars", with_polars)]
        if spark is not None:
            ways.insert(1, ("serai, Spark local[2]", lambda place: with_serai(place, spark)))
        answers = set()
        for name, way in ways:
            found: list[tuple[int, int]] = []
            forget_peak()
            cpu, wall, _ = measured(lambda way=way, found=found, place=place: found.append(way(place)) or 0)  # type: ignore[misc]
            row(events, files, subscriptions, name, cpu, wall, peak_mib(), *found[0])
            answers.add(found[0])
        if len(answers) != 1:
            raise SystemExit(f"they do not agree: {sorted(answers)}")
        shutil.rmtree(place)


def small_files(folder: Path, files: int) -> None:
    """A backlog of files with ten events each."""
    place = folder / "small"
    write_field(place, 10 * files, files, 100)
    cpu, wall, _ = measured(lambda: with_serai(place, None)[0])
    print(f"\n{files:,} files of 10 events: {cpu:.1f} CPU s, {wall:.1f} s; {1000 * cpu / files:.2f} CPU ms a file")
    shutil.rmtree(place)


def restart(folder: Path, events: int) -> None:
    """How long it takes to know again what came, with so many events in the bitmaps, nine of ten of them."""
    from pyroaring import BitMap64

    from serai.pipeline.numbers import Numbers

    rng = np.random.default_rng(1)
    numbers = Numbers(folder / "state")
    each = events // NODES
    drawn = {(f"n{node}", "1"): BitMap64(np.flatnonzero(rng.random(each) < 0.9)) for node in range(NODES)}
    numbers.write(0, drawn)
    size = (folder / "state" / "00000000.parquet").stat().st_size
    begun = time.perf_counter()
    read = Numbers.before(folder / "state", 1)
    count = sum(len(each) for each in read.came.values())
    print(f"\n{count:,} events in state, {size / 1e6:.0f} MB: {time.perf_counter() - begun:.1f} s to read it")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--spark", action="store_true", help="also with workers of Spark")
    parser.add_argument("--patient", action="store_true", help="the scripts also with 100,000 subscriptions")
    asked = parser.parse_args()
    scale = 10 if asked.quick else 1
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f} at the start")
    with tempfile.TemporaryDirectory(prefix="serai-bench-") as name:
        folder = Path(name)
        spark = None
        if asked.spark:
            from serai.spark.session import spark_session

            spark = spark_session("local[2]")
        write_field(folder / "warm", 1000, 10, 10)  # kernels and libraries are loaded before anything is measured
        for way in (
            lambda place: with_serai(place, spark),
            lambda place: with_serai(place, None),
            with_duckdb,
            with_polars,
        ):
            way(folder / "warm")
        sizes = [(1_000_000 // scale, 1000 // scale, 10_000), (10_000_000 // scale, 1000 // scale, 100_000)]
        beside_others(folder, sizes, spark, asked.patient)
        small_files(folder, 10_000 // scale)
        restart(folder, 1_000_000_000 // scale)
        print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
