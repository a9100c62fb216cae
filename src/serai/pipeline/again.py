"""Past days matched anew: a subscription that is new, or has changed, over what came before it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from serai.matching.worker import Matcher
from serai.pipeline.parts import Part, write_part
from serai.pipeline.summary import added_up, steps_of, summary_of_pairs
from serai.pipeline.tables import SCHEMAS, Tables
from serai.pipeline.work import as_ipc, found_pairs, pairs_table, read_ipc, work_of
from serai.spark.stores import Store

_ROWS = 1 << 18
_PAIR = SCHEMAS["pairs"].names[:2]


@dataclass(frozen=True)
class Rematching:
    """Matches pieces of events that are in the tables, and writes the pairs that are not."""

    store: Store
    batch: int
    pieces: tuple[str, ...]
    schema: pa.Schema
    matcher: Matcher | None

    def __call__(self, number: int) -> dict[str, Any]:
        """The parts that were written, and how many events there were."""
        name = self.pieces[number]
        rows, known = (read_ipc(self.store, f"{name}.{suffix}") for suffix in ("arrow", "known"))
        steps = steps_of(pc.subtract(rows["arrived"].cast(pa.int64()), rows["time"].cast(pa.int64())))
        places = pa.table({"event": rows["event"], "step": steps})
        parts: list[Part] = []
        counts: list[pa.Table] = []
        for events, subscriptions in found_pairs(self.matcher, rows, self.schema) if self.matcher else ():
            found = pairs_table(self.matcher, rows["event"], events, subscriptions, self.batch)
            found = found.set_column(1, "subscription", found["subscription"].cast(pa.string()))
            new = found.join(known, _PAIR, join_type="left anti").sort_by([(name, "ascending") for name in _PAIR[::-1]])
            if len(new):
                part = f"{name.rpartition('/')[2]}-{len(parts):04}"
                parts.append(write_part(self.store, "pairs", self.batch, part, new))
                counts.append(_counts(new, places))
        self.store.write(f"{name}.counts", as_ipc(added_up(counts)))
        return {"pairs": parts, "rows": len(rows)}


def _counts(new: pa.Table, places: pa.Table) -> pa.Table:
    told = new.join(places, "event")
    coded = told["subscription"].combine_chunks().dictionary_encode()
    return summary_of_pairs(coded.dictionary, coded.indices.to_numpy(), told["step"].to_numpy())


def write_pieces(tables: Tables, batch: int, begin_s: float, end_s: float) -> list[str]:
    """Write the events of these days as pieces, each beside the pairs that its events are in; their names."""
    first, beyond = (f"{datetime.fromtimestamp(time_s, UTC):%Y-%m-%d}" for time_s in (begin_s, end_s))
    scanner = tables.scanner("events", also=(ds.field("day") >= first) & (ds.field("day") < beyond))
    # Pairs stand in the batch of their event, or in one that matched past days: those have no files.
    with_files = set(tables.read("journal", ["batch"])["batch"].to_pylist())
    rematched = {number for number in range(batch) if number not in with_files}
    names: list[str] = []
    for rows in _pieces_of(scanner):
        name = f"{work_of(batch)}/{len(names):05}"
        batches = rematched | set(pc.unique(rows["batch"]).to_pylist())
        known = tables.read("pairs", _PAIR, batches, ds.field("event").isin(rows["event"].unique()))
        tables.store.write(f"{name}.arrow", as_ipc(rows.drop_columns(["batch", "day"])))
        tables.store.write(f"{name}.known", as_ipc(known))
        names.append(name)
    return names


def _pieces_of(scanner: ds.Scanner | None) -> Any:
    held: list[pa.RecordBatch] = []
    count = 0
    for some in scanner.to_batches() if scanner is not None else ():
        held.append(some)
        count += len(some)
        if count >= _ROWS:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if count:
        yield pa.Table.from_batches(held)
