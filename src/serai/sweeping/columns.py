"""The columns of a sweep's tables: the metrics of its kind of network, and the delays of each run."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from serai.kinds import KINDS
from serai.log.metrics import arrow_schema
from serai.log.pairs import Count

_DELAYS = [
    pa.field("undelivered_pairs", pa.int64()),
    pa.field("delay_bin", pa.list_(pa.field("element", pa.int16(), nullable=False))),
    pa.field("delay_count", pa.list_(pa.field("element", pa.int32(), nullable=False))),
]


def sweep_schema(network: str, counts: Iterable[Count] = ()) -> pa.Schema:
    """The table of a sweep: the point, the metrics of the run, its delays in bins, and what else is counted."""
    return pa.schema([pa.field("point", pa.int32(), nullable=False), *_of_a_run(network, counts)])


def part_schema(network: str, counts: Iterable[Count] = ()) -> pa.Schema:
    """What the tasks of a sweep write: as its table, but by the name of the cell instead of the point's number."""
    return pa.schema([pa.field("cell", pa.string(), nullable=False), *_of_a_run(network, counts)])


def _of_a_run(network: str, counts: Iterable[Count]) -> list[pa.Field]:
    counted = [pa.field(name, pa.int64(), nullable=False) for count in counts for name in count.columns()]
    return [*arrow_schema(KINDS[network].metrics), *_DELAYS, *counted]
