"""The tables that every run folder has, whatever the kind of network: declared once, as Arrow schemas.

What a kind has beyond them is declared beside it (`serai.field.tables` and so on), with the same words. Units are in
the names: `time_s`, `event_pj`. A column is nullable only where a run may have no such value. Each carries its meaning
as metadata, so that a Parquet file explains itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sized
from typing import Any

import numpy as np
import pyarrow as pa

from serai.log.columns import NUMBERS, Columns, words

INDEX = pa.int32()
SECONDS = METRES = BYTES = pa.float64()
COUNT = PICOJOULES = pa.int64()
TEXT = pa.string()
WORD = pa.dictionary(pa.int8(), pa.string())


def column(name: str, kind: pa.DataType, meaning: str, nullable: bool = False) -> pa.Field:
    """A column with its meaning."""
    return pa.field(name, kind, nullable=nullable, metadata={"meaning": meaning})


NODES = pa.schema(
    [
        column("node", INDEX, "number of the node; in a field sensors come first"),
        column("name", TEXT, "name of the node; nodes read from a file keep theirs"),
        column("role", WORD, "`sensor` or `subscriber` in a field, else `node`"),
        column(
            "x_m",
            METRES,
            "where it stands, from the left edge; null: it moves, or its place is not known",
            nullable=True,
        ),
        column("y_m", METRES, "where it stands, from the lower edge; null likewise", nullable=True),
    ]
)

TRACKS = pa.schema(
    [
        column("node", INDEX, "a node that moves"),
        column("time_s", SECONDS, "when it is at this turning point"),
        column("x_m", METRES, "where the turning point is; null: from here on its place is not known", nullable=True),
        column("y_m", METRES, "where the turning point is; null likewise", nullable=True),
    ]
)

CONTACTS = pa.schema(
    [
        column("a", INDEX, "one of the two nodes, the lower number"),
        column("b", INDEX, "the other one"),
        column("start_s", SECONDS, "when the contact begins"),
        column("end_s", SECONDS, "when it ends (exclusive); inf: never"),
    ]
)

EVENTS = pa.schema(
    [
        column("event", INDEX, "number of the event, in order of birth"),
        column("node", INDEX, "where it was published"),
        column("time_s", SECONDS, "when it was published; null: the run has no clock", nullable=True),
        column("channel", TEXT, "the channel it was published on; empty: none"),
        column("values", NUMBERS, "value of each attribute, in the order of `attributes` in `run.json`"),
        column("size_bytes", BYTES, "how large it is; 250 bits are 31.25 bytes"),
        column("lifetime_s", SECONDS, "how long after its birth it expires; inf: never"),
        column("target", INDEX, "the one node it is for; -1: for all subscribers"),
        column("transmissions", COUNT, "how often it was sent, refused or not; null: not counted", nullable=True),
    ]
)

SUBSCRIPTIONS = pa.schema(
    [
        column("subscription", INDEX, "number of the subscription"),
        column("node", INDEX, "the node that asks"),
        column("channel", TEXT, "the channel it asks for; empty: any"),
        column("where", TEXT, "the condition as text; empty: none"),
        column("low", NUMBERS, "smallest value that matches, of each attribute; -inf: no bound"),
        column("high", NUMBERS, "largest value that matches, of each attribute; inf: no bound"),
        column("from_s", SECONDS, "from when; -inf: before the run"),
        column("to_s", SECONDS, "until when (exclusive); inf: beyond the run"),
    ]
)

DELIVERIES = pa.schema(
    [
        column("event", INDEX, "which event; each pair of event and node occurs once"),
        column("node", INDEX, "the node that received it"),
        column("time_s", SECONDS, "when; null: the run has no clock", nullable=True),
        column("hops", INDEX, "transmissions on its way from the publisher; null: not counted", nullable=True),
        column("wanted", pa.bool_(), "whether the event matches a subscription of the node"),
    ]
)

TRANSFERS = pa.schema(
    [
        column("start_s", SECONDS, "when it began; null: the run has no clock", nullable=True),
        column("end_s", SECONDS, "when it ended, or broke; null likewise", nullable=True),
        column("event", INDEX, "which event was sent"),
        column("sender", INDEX, "node that sent it"),
        column("receiver", INDEX, "node it was sent to"),
        column("addressee", INDEX, "node for which the copy is on its way; -1: none"),
        column("bytes", BYTES, "bytes sent"),
        column("kind", WORD, "`source`, `relay`, `return`, `placement`, `copy`, `event` or `notification`: see below"),
        column(
            "outcome", WORD, "`accepted`, `duplicate`, `refused`, `late`, `broken`, `unfinished` or `lost`: see below"
        ),
        column("stored", pa.bool_(), "whether one more copy lies in the receiver's queue or store"),
        column("moved", pa.bool_(), "whether one copy less lies in the sender's: it went itself"),
    ]
)

DROPS = pa.schema(
    [
        column("time_s", SECONDS, "when; null: the run has no clock", nullable=True),
        column("event", INDEX, "of which event a copy was lost"),
        column("node", INDEX, "node at which it was lost"),
        column("addressee", INDEX, "node for which the copy was on its way; -1: none"),
        column("held", pa.bool_(), "whether it lay in the node's queue or store; false: it was never taken in"),
        column("after", COUNT, "how many rows of `transfers` came before it; null: no order is known", nullable=True),
        column("reason", WORD, "`expired`, `spent`, `full`, `stranded`, `dead`, `evicted` or `lost`: see below"),
    ]
)

CORE_TABLES = {
    "nodes": NODES,
    "tracks": TRACKS,
    "contacts": CONTACTS,
    "events": EVENTS,
    "subscriptions": SUBSCRIPTIONS,
    "deliveries": DELIVERIES,
}
"""The tables of every run folder, by the name of their file."""

FULL_LOG_TABLES = {"transfers": TRANSFERS, "drops": DROPS}
"""The tables that only a full log has."""


def make_tables(
    columns: Mapping[str, Columns],
    own: Mapping[str, pa.Schema],
    attributes: tuple[str, ...],
    texts: Mapping[str, tuple[str, ...]],
) -> dict[str, pa.Table]:
    """The tables of a run with these columns; `own` are those that only its kind has.

    One value in place of a column stands in every row, None for null. In a nullable column NaN is null.
    """
    told = {"attributes": json.dumps(list(attributes))}
    if texts:
        told["texts"] = json.dumps(dict(texts), ensure_ascii=False)
    described = {**CORE_TABLES, **own, **FULL_LOG_TABLES}
    return {
        name: pa.table(_filled(columns[name], schema), schema=schema.with_metadata(told))
        for name, schema in described.items()
        if name in columns
    }


def _filled(columns: Columns, schema: pa.Schema) -> list[Any]:
    rows = next(len(values) for values in columns.values() if isinstance(values, Sized) and not isinstance(values, str))
    return [_column(columns[field.name], field, rows) for field in schema]


def _column(values: Any, field: pa.Field, rows: int) -> Any:
    if values is None:
        return pa.nulls(rows, field.type)
    if isinstance(values, str) and field.type == WORD:
        return words(np.zeros(rows, np.int8), (values,))
    if isinstance(values, str | int | float):
        return pa.repeat(pa.scalar(values, field.type), rows)
    if field.nullable and isinstance(values, np.ndarray):
        return pa.array(values, field.type, from_pandas=True)
    return values
