"""A small field: logs of nodes in every format, some of them twice, in any order."""

from __future__ import annotations

import csv
import json
import random
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from serai.pipeline.tables import Tables
from serai.spark.stores import store_at

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
NOW = BEGIN.timestamp() + 10 * 86_400
CONFIG = """
home = "home"
source = [{kind = "folder", path = "inbox"}]
subscriptions = "subscriptions.csv"
deliver = ["folder:outbox"]
alerts = {silent = "5 d", missing = "20 %", quarantined = 1}
spark = false
[events]
id = ["node", "epoch", "seq"]
time = "seen"
rename = {temp = "temperature"}
"""
SUBSCRIPTIONS = "subscription,where\ncold,temperature < 5\nloud,noise > 8 or node = 'n2'\n"


def make_field(folder: Path, config: str = CONFIG) -> Path:
    """The file of a pipeline, an empty inbox, and two subscriptions."""
    (folder / "inbox").mkdir(parents=True)
    (folder / "subscriptions.csv").write_text(SUBSCRIPTIONS)
    (folder / "field.toml").write_text(config)
    return folder / "field.toml"


def event(node: int, seq: int, **more: Any) -> dict[str, Any]:
    draw = random.Random(f"{node}/{seq}")
    seen = BEGIN + timedelta(hours=seq, minutes=node)
    return {
        "node": f"n{node}",
        "epoch": 1,
        "seq": seq,
        "seen": seen.isoformat(),
        "temp": float(draw.randint(0, 10)),
        **more,
    }


def put(inbox: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """Write a log, in the format that its name says, whole."""
    aside = inbox / f".{name}"
    names = list(dict.fromkeys(key for row in rows for key in row))
    if name.endswith(".csv"):
        with aside.open("w", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)
    elif name.endswith(".jsonl"):
        aside.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), aside)
    else:
        aside.unlink(missing_ok=True)
        with sqlite3.connect(aside) as database:
            database.execute(f"create table events ({', '.join(names)})")
            marks = ", ".join("?" * len(names))
            database.executemany(
                f"insert into events values ({marks})", [[row.get(key) for key in names] for row in rows]
            )
    aside.rename(inbox / name)


def logs(draw: random.Random, files: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """Logs of three nodes: each has some of the events so far, so that many events come in several files."""
    suffixes = [".csv", ".jsonl", ".parquet", ".sqlite"]
    found = []
    for number in range(files):
        node = draw.randint(1, 3)
        rows = [event(node, seq) for seq in range(1, 20) if draw.random() < 0.5]
        found.append((f"{number:03}{draw.choice(suffixes)}", rows))
    return found


def answer_of(home: Path) -> list[Any]:
    """All that must be the same, however the files came."""
    events = rows_of(home, "events", "event", "temperature", "time")
    return [events, rows_of(home, "pairs", "event", "subscription")]


def tables_of(home: Path | str) -> list[Any]:
    """All tables, but for when and in which batches it came."""
    return [
        rows_of(home, "events", "event", "node", "seq", "temperature", "time", "day"),
        rows_of(home, "pairs", "event", "subscription"),
        rows_of(home, "rejects", "file", "id", "reason", "row"),
        rows_of(home, "journal", "sha256", "name", "rows", "new", "repeated", "state", "reason"),
    ]


def rows_of(home: Path | str, table: str, *columns: str) -> list[tuple[Any, ...]]:
    found = Tables(store_at(home)).read(table, list(columns))
    nothing = [None] * len(found)  # a column that nothing ever filled is not there
    told = (found[name].to_pylist() if name in found.column_names else nothing for name in columns)
    return sorted(zip(*told, strict=True), key=str)
