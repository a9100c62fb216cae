"""How fast is matching? CPU seconds of the whole process tree, beside DuckDB, Polars and Spark's own join.

`python benchmarks/matching.py` prints the tables of docs/matching.md; `--quick` takes smaller sizes. Events are
uniform, subscriptions are boxes of a size that gives about one match per event. Everything is measured in one session
after a first small query: the start of Spark and of its workers is shown apart. Of two runs the cheaper is shown.
`--only others`, `large` (10^7 events, 10^5 subscriptions: minutes for the others), `skew` and `stream` start Spark as
the commands do, and are therefore asked for by name; the rest as `spark_session()` does.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_SPENT_BY: dict[int, float] = {}


def tree_cpu_s() -> float:
    """CPU time of this process and all its descendants.

    Spark's daemon does not wait for workers that end, so their time is in nobody's account: it is kept here.
    """
    children: dict[int, list[int]] = {}
    spent: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            spent[int(entry.name)] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        _SPENT_BY[process] = spent.get(process, 0.0)
        waiting += children.get(process, [])
    return sum(_SPENT_BY.values())


def measured(run: Callable[[], int]) -> tuple[float, float, int]:
    gc.collect()
    cpu, wall = tree_cpu_s(), time.perf_counter()
    answer = run()
    return tree_cpu_s() - cpu, time.perf_counter() - wall, answer


def best_of_two(run: Callable[[], int]) -> tuple[float, float, int]:
    """The cheaper of two: workers that idled for a minute are started again, which costs a second or two."""
    return min(measured(run), measured(run))


def write_events(path: Path, count: int, width: int, seed: int = 1) -> Path:
    """Uniform events, a million to a row group."""
    rng = np.random.default_rng(seed)
    names = [f"a{k}" for k in range(width)]
    schema = pa.schema([("event", pa.int64()), *((name, pa.float64()) for name in names)])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, count, 1_000_000):
            rows = min(1_000_000, count - start)
            columns = {name: rng.random(rows) for name in names}
            writer.write_table(pa.table({"event": np.arange(start, start + rows)} | columns, schema), 1_000_000)
    return path


def boxes(count: int, width: int, seed: int = 2) -> pa.Table:
    """Boxes of which about one holds each event, as texts and as bounds."""
    rng = np.random.default_rng(seed)
    side = count ** (-1 / width)
    low = rng.random((count, width)) * (1 + side) - side
    high = low + side
    names = [f"a{k}" for k in range(width)]
    texts = [
        " and ".join(f"{a!r} <= {name} <= {b!r}" for name, a, b in zip(names, lows, highs, strict=True))
        for lows, highs in zip(low.tolist(), high.tolist(), strict=True)
    ]
    bounds = {
        f"{name}_{end}": side[:, k] for k, name in enumerate(names) for end, side in (("low", low), ("high", high))
    }
    return pa.table({"subscription": np.arange(count), "where": texts} | bounds)


def worker_peak_mib() -> float:
    """The most memory that any Python worker has taken."""
    peaks = [0.0]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if "pyspark.daemon" in (entry / "cmdline").read_text():
                    status = (entry / "status").read_text()
                    peaks += [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")]
            except OSError:
                continue
    return max(peaks)


def row(*cells: object) -> None:
    shown = (
        f"{cell:,.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell for cell in cells
    )
    print(f"| {' | '.join(map(str, shown))} |", flush=True)


def table(*names: str) -> None:
    print()
    row(*names)
    row(*["---"] * len(names))


class Bench:
    """One session, one folder, and the questions."""

    def __init__(self, folder: Path, only_schedules: bool) -> None:
        from serai.spark.session import spark_session

        self.folder = folder
        cpu, wall, _ = measured(lambda: self._start(spark_session, only_schedules))
        print(f"start of Spark and of its workers: {cpu:.1f} CPU s, {wall:.1f} s")

    def _start(self, spark_session: Callable[..., object], only_schedules: bool) -> int:
        self.spark: object = spark_session("local[2]", only_schedules=only_schedules)
        return self.written(self.events(1000, 2), self.asked(10, 2))

    def events(self, count: int, width: int) -> Path:
        path = self.folder / f"events-{count}-{width}.parquet"
        return path if path.exists() else write_events(path, count, width)

    def asked(self, count: int, width: int, texts: bool = False) -> Path:
        path = self.folder / f"asked-{count}-{width}-{texts}.parquet"
        if not path.exists():
            table = boxes(count, width)
            pq.write_table(table.select(["subscription", "where"]) if texts else table.drop(["where"]), path)
        return path

    def written(self, events: Path, asked: Path) -> int:
        """All pairs, written as Parquet: what `serai match` does."""
        from serai.matching.job import match_files

        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        return match_files(self.spark, events, asked, out).rows  # type: ignore[arg-type]

    def counted(self, events: Path, asked: Path, engine: str) -> int:
        """The pairs of two frames, counted."""
        from serai.matching.match import match

        read = self.spark.read.parquet  # type: ignore[attr-defined]
        return match(read(str(events)), read(str(asked)), engine=engine).count()  # type: ignore[arg-type]

    def sparks_own(self, events: Path, asked: Path, width: int, share: float) -> int:
        """Spark's own join on the ranges, on a part of the events."""
        read = self.spark.read.parquet  # type: ignore[attr-defined]
        on = " and ".join(f"a{k} between a{k}_low and a{k}_high" for k in range(width))
        read(str(events)).sample(share, 1).createOrReplaceTempView("events")
        read(str(asked)).createOrReplaceTempView("asked")
        return int(self.spark.sql(f"select count(*) from events join asked on {on}").first()[0])  # type: ignore[attr-defined]


def duckdb_join(events: Path, asked: Path, width: int) -> int:
    import duckdb

    on = " and ".join(f"a{k} >= a{k}_low and a{k} <= a{k}_high" for k in range(width))
    query = f"select count(*) from read_parquet('{events}') join read_parquet('{asked}') on {on}"
    return int(duckdb.sql("set threads = 2; " + query).fetchall()[0][0])


def polars_join(events: Path, asked: Path, width: int) -> int:
    import polars

    on = [polars.col(f"a{k}") >= polars.col(f"a{k}_low") for k in range(width)]
    on += [polars.col(f"a{k}") <= polars.col(f"a{k}_high") for k in range(width)]
    joined = polars.scan_parquet(events).join_where(polars.scan_parquet(asked), *on)
    return int(joined.select(polars.len()).collect().item())


def main_table(bench: Bench, events: int) -> None:
    table("events", "subscriptions", "attributes", "how", "CPU s", "s", "pairs")
    for subscriptions, width in ((10_000, 2), (100_000, 2), (100_000, 4)):
        size = events, subscriptions, width
        source, asked = bench.events(events, width), bench.asked(subscriptions, width)
        row(*size, "files, pairs written", *best_of_two(lambda: bench.written(source, asked)))  # noqa: B023
        texts = bench.asked(subscriptions, width, texts=True)
        row(*size, "same, subscriptions as texts", *best_of_two(lambda: bench.written(source, texts)))  # noqa: B023
        for engine in ("index", "keys"):
            if (engine, width) != ("keys", 4):
                row(*size, f"frame, {engine}, counted", *best_of_two(lambda: bench.counted(source, asked, engine)))  # noqa: B023


def beside_others(bench: Bench, sizes: list[tuple[int, int, int]], measure: Callable[..., Any] = best_of_two) -> None:
    table("events", "subscriptions", "attributes", "who", "CPU s", "s", "pairs", "times ours")
    for events, subscriptions, width in sizes:
        source, asked = bench.events(events, width), bench.asked(subscriptions, width)
        bench.written(source, asked)  # frames, which the command has none of, would leave Java with work of their own
        ours, wall, pairs = best_of_two(lambda: bench.written(source, asked))  # noqa: B023
        row(events, subscriptions, width, "serai match", ours, wall, pairs, 1.0)
        others = {"DuckDB": duckdb_join, "Polars": polars_join} if width == 2 else {"DuckDB": duckdb_join}
        for name, join in others.items():
            cpu, wall, found = measure(lambda: join(source, asked, width))  # noqa: B023
            assert found == pairs, (name, found, pairs)
            row(events, subscriptions, width, name, cpu, wall, found, cpu / ours)


def sparks_own(bench: Bench, events: int, subscriptions: int) -> None:
    source, asked = bench.events(events, 2), bench.asked(subscriptions, 2)
    share = 2e8 / events / subscriptions
    cpu, _, _ = best_of_two(lambda: bench.sparks_own(source, asked, 2, share))
    print(f"\nSpark's own join of {events:,} x {subscriptions:,}: {cpu / share:.0f} CPU s,", end=" ")
    print(f"{cpu:.1f} for {share:.1%} of the events")


def growth(bench: Bench, events: list[int], subscriptions: list[int]) -> None:
    table("events", "subscriptions", "CPU s", "exponent")
    for sizes, name in (
        ([(count, 10_000) for count in events], "events"),
        ([(events[0], s) for s in subscriptions], "s"),
    ):
        before: tuple[int, float] | None = None
        for count, asked in sizes:
            source, boxes_path = bench.events(count, 2), bench.asked(asked, 2)
            cpu, _, _ = best_of_two(lambda: bench.written(source, boxes_path))  # noqa: B023
            size = count if name == "events" else asked
            row(count, asked, cpu, "" if before is None else math.log(cpu / before[1]) / math.log(size / before[0]))
            before = size, cpu


def skew(bench: Bench, events: int, subscriptions: int) -> None:
    """Per pair written, beside uniform events and subscriptions: all in one place, one that wants all, all alike."""
    uniform, asked = bench.events(events, 2), bench.asked(subscriptions, 2)
    rows = pq.read_table(uniform)
    table = pq.read_table(asked)
    crowded = rows.select(["event"])
    for name in ("a0", "a1"):  # a millionth of the field, which one cell holds
        crowded = crowded.append_column(name, pa.array(0.5 + 1e-3 * rows[name].to_numpy()))
    all_of_it = {name: [0.0 if name.endswith("low") else 1.0] for name in table.column_names[1:]}
    everything = pa.table({"subscription": [subscriptions]} | all_of_it)
    one = table.slice(subscriptions // 2, 1)
    alike = pa.table(
        {"subscription": np.arange(subscriptions)}
        | {name: np.full(subscriptions, one[name][0].as_py()) for name in one.column_names[1:]}
    )
    kinds = {
        "uniform": (rows, table),
        "all events in one place": (crowded, table),
        "one subscription wants all": (rows, pa.concat_tables([table, everything])),
        "all subscriptions alike": (rows, alike),
    }
    print()
    row("events", "subscriptions", "pairs", "CPU s", "CPU ns a pair")
    row(*["---"] * 5)
    for name, (given, wanted) in kinds.items():
        source, boxes_path = (bench.folder / f"{part}-{name.replace(' ', '-')}.parquet" for part in ("e", "s"))
        pq.write_table(given, source, row_group_size=1_000_000)
        pq.write_table(wanted, boxes_path)
        cpu, _, pairs = best_of_two(lambda: bench.written(source, boxes_path))  # noqa: B023
        row(len(given), name, pairs, cpu, 1e9 * cpu / max(1, pairs))


def streaming(bench: Bench, files: int, rows: int) -> None:
    from serai.matching.stream import BatchReport, finish, match_stream

    source = bench.folder / "arriving"
    source.mkdir(exist_ok=True)
    for number in range(files):
        path = write_events(source / f".{number:04}", rows, 2, seed=number)
        ids = pq.ParquetFile(path).read()
        shifted = ids.set_column(0, "event", pa.array(ids["event"].to_numpy() + number * rows))
        pq.write_table(shifted, path)
        path.rename(source / f"{number:04}.parquet")
    reports: list[BatchReport] = []
    out = bench.folder / "streamed"
    options = {"once": True, "files_per_batch": 4, "on_batch": reports.append}
    asked = bench.asked(10_000, 2)

    def run() -> int:
        finish(match_stream(bench.spark, source, asked, out, **options))  # type: ignore[arg-type]
        return sum(report.pairs for report in reports)

    cpu, wall, pairs = measured(run)
    later = reports[1:]
    rate = sum(report.events for report in later) / sum(report.seconds for report in later)
    print(
        f"\nstream: {files * rows:,} events in {len(reports)} batches, {pairs:,} pairs: {cpu:.1f} CPU s, {wall:.1f} s;"
    )
    print(f"after the first batch {rate:,.0f} events/s, {1e6 * cpu / files / rows:.2f} CPU µs an event;")
    slowest = max(report.seconds for report in later)
    print(f"a batch of {4 * rows:,} takes {slowest:.2f} s at most, which is the latency of its events")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--only", choices=["main", "others", "growth", "stream", "spark", "skew", "large"])
    asked = parser.parse_args()
    scale = 10 if asked.quick else 1
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f} at the start")
    # Their sessions are those that the commands start: rows do not pass through Java.
    alone = ("others", "large", "skew", "stream")
    with tempfile.TemporaryDirectory(prefix="serai-bench-") as folder:
        bench = Bench(Path(folder), asked.only in alone)
        if asked.only in (None, "main"):
            main_table(bench, 10_000_000 // scale)
        if asked.only in (None, "spark"):
            sparks_own(bench, 1_000_000 // scale, 10_000)
        if asked.only == "others":
            beside_others(bench, [(1_000_000 // scale, 10_000, width) for width in (2, 4)])
        if asked.only == "large":
            beside_others(bench, [(10_000_000 // scale, 100_000 // scale, 2)], measured)
        if asked.only in (None, "growth"):
            growth(bench, [1_000_000 // scale, 10_000_000 // scale, 100_000_000 // scale], [10**3, 10**4, 10**5, 10**6])
        if asked.only == "skew":
            skew(bench, 1_000_000 // scale, 10_000)
        if asked.only == "stream":
            streaming(bench, 24, 500_000 // scale)
        print(f"\nmost memory of a worker: {worker_peak_mib():.0f} MiB; load {os.getloadavg()[0]:.1f} at the end")
    for part in alone if asked.only is None else ():
        subprocess.run([sys.executable, __file__, "--only", part, *["--quick"] * asked.quick], check=True)


if __name__ == "__main__":
    main()
