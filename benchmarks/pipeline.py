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
    """A backlog of files with ten events each; and one file more for a pipeline that has had them all."""
    place = folder / "small"
    write_field(place, 10 * files, files, 100)
    table("files of 10 events", "what", "CPU s", "s", "CPU ms a file")
    cpu, wall, _ = measured(lambda: with_serai(place, None)[0])
    row(files, "all at once", cpu, wall, 1000 * cpu / files)
    one_more(place)
    cpu, wall, _ = measured(lambda: again(place))
    row(files, "started again, one file more", cpu, wall, "")
    shutil.rmtree(place)


def restart(folder: Path, events: int) -> None:
    """A start with one new file, with so many events in the bitmaps, nine of ten of them, and 40 days in the counts."""
    from pyroaring import BitMap64

    from serai.pipeline.numbers import Numbers
    from serai.pipeline.summary import Summary
    from serai.spark.stores import Folder

    place = folder / "restart"
    write_field(place, 10_000, 100, 100)
    with_serai(place, None)
    home, rng = Folder(place / "home"), np.random.default_rng(1)
    numbers = Numbers(home, 0)
    each = events // NODES
    numbers.more = {(f"n{node}", ""): BitMap64(np.flatnonzero(rng.random(each) < 0.9)) for node in range(NODES)}
    count = sum(map(len, numbers.more.values()))
    numbers.write(0)  # in the place of those that came
    Summary.write(home, 0, _cells_of_forty_days(each))
    size = sum(path.stat().st_size for path in (place / "home" / "state" / "numbers").iterdir())
    del numbers
    one_more(place)
    table("events in the bitmaps", "MB", "what", "CPU s", "s", "most MiB", "aim, s")
    forget_peak()
    cpu, wall, _ = measured(lambda: again(place))
    row(count, size / 1e6, "started again, one file more", cpu, wall, peak_mib(), 10)
    shutil.rmtree(place)


def _cells_of_forty_days(events: int) -> pa.Table:
    """Counts such as events of 40 days leave behind, for each node and ten minutes."""
    from serai.pipeline.summary import CELL_S, SCHEMA

    cells = 40 * 86_400 // CELL_S
    newest = 1_793_491_200 // CELL_S  # the first of November 2026
    at = np.tile(np.arange(newest - cells, newest), NODES)
    low = np.tile(np.arange(cells) * (events // cells), NODES)
    names = np.repeat([f"n{node}\0" for node in range(NODES)], cells)
    rows = np.full(len(at), int(0.9 * events / cells))
    columns = ["cell" for _ in at], names, at, rows, low, low + events // cells - 1
    return pa.table([pa.array(each) for each in columns], schema=SCHEMA)


def one_more(folder: Path) -> None:
    """Another file in the inbox, with ten events."""
    time_us = pa.array([np.datetime64("2026-11-02T00:00:00", "us")] * 10)
    columns = {"node": ["n0"] * 10, "seq": range(10**9, 10**9 + 10), "time": time_us, "a0": [0.5] * 10}
    pq.write_table(pa.table(columns | {"a1": [0.5] * 10}), folder / "inbox" / "more.parquet")


def again(folder: Path) -> int:
    """Start once more in a home that is there."""
    from serai.pipeline.config import load_pipeline
    from serai.pipeline.run import run_once

    return run_once(load_pipeline(folder / "field.toml")).events


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--spark", action="store_true", help="also with workers of Spark")
    parser.add_argument("--patient", action="store_true", help="the scripts also with 100,000 subscriptions")
    parser.add_argument("--only", choices=["others", "small", "restart"], help="one of the tables")
    parser.add_argument("--files", type=int, default=10_000, help="small files of the backlog")
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
        if asked.only in (None, "others"):
            beside_others(folder, sizes, spark, asked.patient)
        if asked.only in (None, "small"):
            small_files(folder, asked.files // scale)
        if asked.only in (None, "restart"):
            restart(folder, 1_000_000_000 // scale)
        print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
