"""What nodes say of themselves: files with the columns of the table `health`, and stores of live nodes."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from serai.matching.texts import Rejected
from serai.node import schema
from serai.node.store import read_log
from serai.pipeline.columns import OWN, TIME, as_known, moments_of

HEALTH: Final = pa.schema(
    [("node", pa.string()), ("time", TIME), ("battery", pa.float64()), ("free_bytes", pa.int64()),
     ("dropped", pa.int64()), ("boots", pa.int64()), ("firmware", pa.string())]
)  # fmt: skip
_TOLD: Final = HEALTH.names[2:]
_2000_S: Final = 946_684_800  # where the times of live nodes begin


def is_health(columns: Collection[str], id: str) -> bool:
    """Whether a table with these columns is one of health: it has not what tells events of a node apart."""
    return {"node", "time"} <= set(columns) and not set(_TOLD).isdisjoint(columns) and id not in columns


def health_of(table: pa.Table, time: str) -> tuple[pa.Table, list[Rejected]]:
    """The rows as the table has them, and what cannot be used; a value that does not fit is left out of its row."""
    there = {name: table[name] for name in _TOLD if name in table.column_names}
    node, when = table["node"].cast(pa.string()), moments_of(table[time])
    own = {"event": node, "node": node, "time": when}  # a value that is rejected is told with the name of its node
    columns = {name: own.get(name, pa.nulls(len(table))) for name in OWN} | there
    rows, rejected = as_known(pa.table(columns), HEALTH)
    whole = pa.table([rows[n] if n in rows.column_names else pa.nulls(len(rows), HEALTH.field(n).type)
                      for n in HEALTH.names], schema=HEALTH)  # fmt: skip
    named = pc.and_(whole["node"].is_valid(), whole["time"].is_valid())
    bad = table.filter(pc.invert(named)).to_pylist()
    rejected += [Rejected(None, f"no node, or no time in {time}", str(row)) for row in bad]
    return whole.filter(named), rejected


def health_of_store(path: Path, node: str) -> pa.Table:
    """What the store of a live node says: as far as its log goes back."""
    found = read_log(path)
    kinds = [row[2] for row in found.log]
    most = [row[5] for row in found.log if row[2] == schema.STARTED]
    rows = {
        "node": node,
        "time": pa.scalar(round(1e6 * (_2000_S + max(row[1] for row in found.log))), pa.int64()).cast(TIME).as_py(),
        "free_bytes": most[-1] - found.held_bytes,
        "dropped": kinds.count(schema.DROPPED),
        "boots": kinds.count(schema.STARTED),
    }
    return pa.Table.from_pylist([rows], HEALTH)
