"""How much of the machine a sweep on Spark uses, beside a plain process pool in the same run; and aggregation at size.

    python benchmarks/sweep.py                 3,000 CED runs, a million rows
    python benchmarks/sweep.py --runs 600      fewer, while other work uses the machine; --scenario dg: another scenario

Efficiency is the CPU time of the runs (simulate and measure, as their workers count it) over cores x wall time. Kernels
are warm, the session is up; driver and JVM are in the wall time. On a machine that others use, too, wall time says
little: the share of all CPU time, driver and JVM included, that went into runs says more. Prints what it ran.
"""

import argparse
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import serai
from serai.lab import measure, pairs_of
from serai.spark.machine import usable_cores
from serai.spark.session import spark_session
from serai.sweeping import run as sweeping
from serai.sweeping.aggregate import delay_quantiles, paired, summary
from serai.sweeping.columns import sweep_schema
from serai.sweeping.delays import count_delays
from serai.sweeping.plan import plan_sweep

SEEDS_A_TIME = 20


def pool_task(name: str, first: int, stop: int) -> float:
    """CPU seconds of these runs in a process of the pool."""
    scenario = serai.load_scenario(name)
    begun = time.process_time()
    for seed in range(first, stop):
        run = serai.simulate(scenario, seed=seed)
        measure(run).as_dict()
        count_delays(pairs_of(run).delay_s)
    return time.process_time() - begun


def tree_cpu_s() -> float:
    """CPU seconds of this process and all below it, those that have ended included; Linux only."""
    times: dict[int, tuple[int, float]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        times[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    ours, before = {os.getpid()}, 0
    while len(ours) > before:
        before = len(ours)
        ours |= {process for process, (parent, _) in times.items() if parent in ours}
    return sum(times[process][1] for process in ours if process in times)


def in_a_pool(name: str, runs: int, cores: int) -> tuple[float, float, float]:
    """CPU seconds of the runs, of everything, and wall seconds, in a plain process pool that is up already."""
    with ProcessPoolExecutor(cores) as pool:
        list(pool.map(partial(pool_task, name), range(cores), range(1, cores + 1)))
        begun, before = time.perf_counter(), tree_cpu_s()
        firsts = range(0, runs, SEEDS_A_TIME)
        spent = pool.map(partial(pool_task, name), firsts, [min(first + SEEDS_A_TIME, runs) for first in firsts])
        return sum(spent), tree_cpu_s() - before, time.perf_counter() - begun


def on_spark(spark: Any, name: str, runs: int, folder: Path) -> tuple[float, float, float]:
    """The same of the same runs as a sweep, its table included."""
    spent: list[float] = []
    hand_in = sweeping._hand_in

    def counted(store: Any, answer: pa.Table) -> None:
        spent.extend(answer["total_s"].to_pylist())
        hand_in(store, answer)

    sweeping._hand_in = counted
    begun, before = time.perf_counter(), tree_cpu_s()
    sweeping.run_sweep(plan_sweep(name, (), None, runs), folder, spark)
    sweeping._hand_in = hand_in
    return sum(spent), tree_cpu_s() - before, time.perf_counter() - begun


def many_rows(rows: int, file: Path) -> None:
    """A table of a sweep with so many rows, as if 20 points had been run under two protocols."""
    rng = np.random.default_rng(0)
    cell = np.arange(rows) // (rows // 40)
    bins = pa.array([list(range(0, 300, 3))] * 1)
    columns: dict[str, Any] = {
        "point": (cell // 2).astype(np.int32),
        "protocol": np.where(cell % 2, "cet", "ced"),
        "seed": np.arange(rows) % (rows // 40),
    }
    for column in sweep_schema("field"):
        if column.name in columns:
            continue
        if pa.types.is_list(column.type):
            columns[column.name] = bins.cast(column.type).take(pa.array(np.zeros(rows, dtype=np.int64)))
        elif pa.types.is_integer(column.type):
            columns[column.name] = rng.integers(0, 1000, rows)
        else:
            columns[column.name] = rng.normal(size=rows)
    pq.write_table(pa.table(columns, schema=sweep_schema("field")), file, row_group_size=8192)


def aggregation(spark: Any, rows: int, folder: Path) -> None:
    file = folder / "rows.parquet"
    many_rows(rows, file)
    frame = spark.read.parquet(str(file))
    summary(frame, ["events"]).toArrow()
    print(f"\naggregation of {rows:,} rows ({file.stat().st_size / 2**20:.0f} MiB), wall s")
    for name, answer in (
        ("summary, all metrics", summary(frame)),
        ("paired, two metrics", paired(frame, "ced", ["delivery_ratio", "mean_delay_s"])),
        ("pooled delay quantiles", delay_quantiles(frame)),
    ):
        begun = time.perf_counter()
        count = answer.toArrow().num_rows
        print(f"  {name:<24}{time.perf_counter() - begun:8.1f}   {count} rows of answer", flush=True)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--scenario", default="ced")
    words.add_argument("--runs", type=int, default=3000)
    words.add_argument("--rows", type=int, default=1_000_000)
    asked = words.parse_args()
    cores = usable_cores()
    print(f"{cores} cores, load {os.getloadavg()[0]:.1f} before; serai {serai.__version__}")
    print(f"{asked.runs} runs of {asked.scenario}")
    serai.measure(serai.simulate(serai.load_scenario(asked.scenario)))
    begun = time.perf_counter()
    spark = spark_session()
    print(f"session up after {time.perf_counter() - begun:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        on_spark(spark, asked.scenario, 2 * cores, Path(folder) / "warm")
        results = {
            "process pool": in_a_pool(asked.scenario, asked.runs, cores),
            "serai sweep": on_spark(spark, asked.scenario, asked.runs, Path(folder) / "sweep"),
        }
        print(f"\n{'':<14}{'CPU s of runs':>15}{'of all':>9}{'share':>8}{'wall s':>9}{'efficiency':>12}")
        used = {}
        for name, (runs_s, all_s, wall_s) in results.items():
            used[name] = runs_s / all_s, runs_s / (cores * wall_s)
            print(f"{name:<14}{runs_s:15.1f}{all_s:9.1f}{used[name][0]:8.2f}{wall_s:9.1f}{used[name][1]:12.2f}")
        share, efficiency = (
            ours / pools for ours, pools in zip(used["serai sweep"], used["process pool"], strict=True)
        )
        print(f"sweep over pool: efficiency {efficiency:.2f} (aim 0.90), share of CPU time {share:.2f}")
        aggregation(spark, asked.rows, Path(folder))
    spark.stop()


if __name__ == "__main__":
    main()
