"""How fast is matching? CPU seconds of the whole process tree, beside DuckDB, Polars and Spark's own join.

`python benchmarks/matching.py` prints the tables of docs/matching.md; `--quick` takes smaller sizes. Events are
uniform, subscriptions are boxes of a size that gives about one match per event. Everything is measured in one session
after a first small query: the start of Spark and of its workers is shown apart.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def tree_cpu_s() -> float:
    """CPU time of this process and all its descendants, those that have ended included."""
    children: dict[int, list[int]] = {}
    spent: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            spent[int(entry.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        total += spent.get(process, 0.0)
        waiting += children.get(process, [])
    return total


def measured(run: Callable[[], int]) -> tuple[float, float, int]:
    gc.collect()
    cpu, wall = tree_cpu_s(), time.perf_counter()
    answer = run()
    return tree_cpu_s() - cpu, time.perf_counter() - wall, answer


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
