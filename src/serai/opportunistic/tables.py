"""How a run of an opportunistic network stands in tables, and comes back from them.

Its bundles are the log's events; beside the tables that every run has stand stores, channels and how far events spread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from serai.log.columns import Columns, array, codes, lists, matrix, numbers, texts, words
from serai.log.run import TableForm
from serai.log.tables import BYTES, COUNT, INDEX, SECONDS, TEXT, WORD, column
from serai.opportunistic.engine.setup import records
from serai.opportunistic.engine.state import DROP, DROPS, LISTING, TRANSFER, TRANSFERS, Outcome, Records
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.world import Bundles, ContactWorld, Published, Subscriptions, Wanted, within_ranges
from serai.world.contacts import Contacts
from serai.world.grid import Numbers
from serai.world.mobility import Tracks

OUTCOMES: Final = ("accepted", *TRANSFERS[1:])
"""What the log calls the outcomes of a transfer: `relayed` is "accepted" in all kinds of network."""

STORES = pa.schema(
    [
        column("node", INDEX, "number of the node"),
        column("is_source", pa.bool_(), "whether it may publish"),
        column("is_sink", pa.bool_(), "whether it may subscribe"),
        column("carries", pa.bool_(), "whether it takes events that it has not subscribed to"),
        column("stored_byte_s", pa.float64(), "integral of what its store held over the run"),
        column("peak_bytes", COUNT, "the most that its store held"),
    ]
)

CHANNELS = pa.schema(
    [
        column("channel", INDEX, "number of the channel"),
        column("name", TEXT, "its name (URI), by which other tables call it"),
    ]
)

RELAYS = pa.schema(
    [
        column("event", INDEX, "number of the event"),
        column("relays", COUNT, "copies of it that arrived somewhere"),
    ]
)

LISTS = pa.schema(
    [
        column("start_s", SECONDS, "when it began to be sent"),
        column("end_s", SECONDS, "when it had come, or broke"),
        column("sender", INDEX, "node whose list it is"),
        column("receiver", INDEX, "node it was sent to"),
        column("bytes", BYTES, "bytes sent"),
        column("entries", INDEX, "entries in it, without the bundles that it tells as seen"),
        column("outcome", WORD, "`accepted`, `broken` or `unfinished`"),
    ]
)

OPPORTUNISTIC_TABLES = {"stores": STORES, "channels": CHANNELS, "relays": RELAYS}
FULL_OPPORTUNISTIC_TABLES = {"lists": LISTS}


# --- Writing


def columns_of(run: OpportunisticRun) -> dict[str, Columns]:
    """The columns of each table."""
    world, outcome = run.world, run.outcome
    columns: dict[str, Columns] = {
        "nodes": {
            "node": np.arange(world.nodes, dtype=np.int32),
            "name": list(run.names),
            "role": "node",
            "x_m": None,
            "y_m": None,
        },
        "tracks": _tracks(run.tracks),
        "contacts": dict(zip(("a", "b", "start_s", "end_s"), world.contacts, strict=True)),
        "events": _events(run),
        "subscriptions": _subscriptions(run),
        "deliveries": {
            "event": outcome.delivery_bundle,
            "node": outcome.delivery_node,
            "time_s": outcome.delivery_s,
            "hops": outcome.delivery_hops,
            "wanted": within_ranges(run.published, run.wanted, outcome.delivery_bundle, outcome.delivery_node),
        },
        "stores": _stores(run),
        "channels": {"channel": np.arange(world.channels, dtype=np.int32), "name": list(run.published.channels)},
        "relays": {"event": np.arange(len(outcome.relays), dtype=np.int32), "relays": outcome.relays},
    }
    if run.full_log:
        columns |= {"transfers": _transfers(run), "drops": _drops(run, outcome.drop_log)}
    if outcome.list_log is not None:
        columns["lists"] = _lists(outcome.list_log)
    return columns


def _tracks(tracks: Tracks | None) -> Columns:
    if tracks is None:
        return {"node": np.empty(0, np.int32), "time_s": 0.0, "x_m": None, "y_m": None}
    nodes = np.arange(len(tracks.start) - 1, dtype=np.int32)
    return {"node": np.repeat(nodes, np.diff(tracks.start)), **tracks._asdict()}


def _events(run: OpportunisticRun) -> Columns:
    bundles = run.world.bundles
    return {
        "event": np.arange(len(bundles.source), dtype=np.int32),
        "node": bundles.source,
        "time_s": bundles.created_s,
        "channel": texts(bundles.channel, run.published.channels),
        "values": lists(run.published.values),
        "size_bytes": bundles.size_bytes.astype(np.float64),
        "lifetime_s": bundles.lifetime_s,
        "target": run.published.targets,
        "transmissions": None,
    }


def _subscriptions(run: OpportunisticRun) -> Columns:
    """Every subscription to a channel; then, on no channel, those whose ranges no channel touches."""
    given, wanted, channels = run.world.subscriptions, run.wanted, run.published.channels
    idle = np.setdiff1d(wanted.sinks[: len(wanted.where)], given.node).astype(np.int32)
    node = np.append(given.node, idle)
    channel = np.append(given.channel, np.full(len(idle), len(channels), np.int32))
    columns: Columns = {
        "subscription": np.arange(len(node), dtype=np.int32),
        "node": node,
        "channel": texts(channel, (*channels, "")),
        "from_s": np.append(given.from_s, np.full(len(idle), -np.inf)),
        "to_s": np.append(given.to_s, np.full(len(idle), np.inf)),
    }
    if not len(wanted.where):
        nothing = lists(np.empty((len(node), len(run.attributes))))
        return columns | {"where": "", "low": nothing, "high": nothing}
    sink = np.searchsorted(wanted.sinks, node).astype(np.int32)
    low, high = (lists(bound[sink]) for bound in (wanted.low, wanted.high))
    return columns | {"where": texts(sink, wanted.where), "low": low, "high": high}


def _stores(run: OpportunisticRun) -> Columns:
    node = np.arange(run.world.nodes, dtype=np.int32)
    return {
        "node": node,
        "is_source": np.isin(node, run.published.sources),
        "is_sink": np.isin(node, run.wanted.sinks),
        "carries": run.world.carries,
        "stored_byte_s": run.outcome.stored_byte_s,
        "peak_bytes": run.outcome.peak_bytes,
    }


def _transfers(run: OpportunisticRun) -> Columns:
    log = run.outcome.transfer_log
    plain = {name: np.ascontiguousarray(log[name]) for name in ("start_s", "end_s", "sender", "receiver")}
    return plain | {
        "event": np.ascontiguousarray(log.bundle),
        "addressee": run.published.targets[log.bundle],
        "bytes": log.bytes.astype(np.float64),
        "kind": "copy",
        "outcome": words(log.outcome.astype(np.int8), OUTCOMES),
        "stored": np.ascontiguousarray(log.stored),
        "moved": np.ascontiguousarray(log.moved),
    }


def _drops(run: OpportunisticRun, log: Records) -> Columns:
    return {name: np.ascontiguousarray(log[name]) for name in ("time_s", "node", "held", "after")} | {
        "event": np.ascontiguousarray(log.bundle),
        "addressee": run.published.targets[log.bundle],
        "reason": words(log.reason.astype(np.int8), DROPS),
    }


def _lists(log: Records) -> Columns:
    plain = {name: np.ascontiguousarray(log[name]) for name in ("start_s", "end_s", "sender", "receiver", "entries")}
    return plain | {"bytes": log.bytes.astype(np.float64), "outcome": words(log.outcome.astype(np.int8), OUTCOMES)}


# --- Reading


def parts_from(
    scenario: OpportunisticScenario, said: Mapping[str, Any], tables: Mapping[str, pa.Table]
) -> dict[str, Any]:
    """What was given and what came of it, as these tables tell."""
    attributes = len(said["attributes"])
    channels = tuple(tables["channels"]["name"].to_pylist())
    world = _world_from(tables, channels)
    return {
        "world": world,
        "outcome": _outcome_from(said["counts"], tables),
        "names": tuple(tables["nodes"]["name"].to_pylist()),
        "published": Published(
            world.bundles,
            channels,
            _where(tables["stores"], "is_source"),
            matrix(tables["events"], "values", attributes),
            array(tables["events"], "target", np.int32),
        ),
        "wanted": _wanted_from(tables, world.subscriptions, attributes),
        "full_log": "transfers" in tables,
        "tracks": _tracks_from(tables["tracks"], world.nodes),
    }


def _where(table: pa.Table, column: str) -> Numbers:
    """The numbers of the rows that have it."""
    return np.flatnonzero(array(table, column, np.bool_)).astype(np.int32)


def _world_from(tables: Mapping[str, pa.Table], channels: tuple[str, ...]) -> ContactWorld:
    events, contacts = tables["events"], tables["contacts"]
    return ContactWorld(
        nodes=len(tables["nodes"]),
        channels=len(channels),
        contacts=Contacts(
            *(array(contacts, end, np.int32) for end in ("a", "b")),
            *(array(contacts, time, np.float64) for time in ("start_s", "end_s")),
        ),
        bundles=Bundles(
            source=array(events, "node", np.int32),
            channel=numbers(events, "channel", channels),
            created_s=array(events, "time_s", np.float64),
            size_bytes=array(events, "size_bytes", np.int64),
            lifetime_s=array(events, "lifetime_s", np.float64),
        ),
        subscriptions=_subscriptions_from(tables["subscriptions"], channels),
        carries=array(tables["stores"], "carries", np.bool_),
    )


def _subscriptions_from(table: pa.Table, channels: tuple[str, ...]) -> Subscriptions:
    channel = numbers(table, "channel", channels)
    on = channel >= 0
    from_s, to_s = (array(table, time, np.float64)[on] for time in ("from_s", "to_s"))
    return Subscriptions(array(table, "node", np.int32)[on], channel[on], from_s, to_s)


def _wanted_from(tables: Mapping[str, pa.Table], given: Subscriptions, attributes: int) -> Wanted:
    table, sinks = tables["subscriptions"], _where(tables["stores"], "is_sink")
    if not attributes:
        return Wanted(given, sinks)
    # A sink has one range, which stands in each of its rows: any of them will do.
    asking, row = np.unique(array(table, "node", np.int32), return_index=True)
    row = row[np.searchsorted(asking, sinks)]
    low, high = (matrix(table, bound, attributes)[row] for bound in ("low", "high"))
    return Wanted(given, sinks, tuple(table["where"].take(pa.array(row)).to_pylist()), low, high)


def _tracks_from(table: pa.Table, nodes: int) -> Tracks | None:
    if not len(table):
        return None
    points = np.bincount(array(table, "node", np.int32), minlength=nodes)
    start = np.concatenate([[0], np.cumsum(points)]).astype(np.int64)
    return Tracks(start, *(array(table, name, np.float64) for name in ("time_s", "x_m", "y_m")))


def _outcome_from(counts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Outcome:
    deliveries, stores = tables["deliveries"], tables["stores"]
    return Outcome(
        delivery_bundle=array(deliveries, "event", np.int32),
        delivery_node=array(deliveries, "node", np.int32),
        delivery_s=array(deliveries, "time_s", np.float64),
        delivery_hops=array(deliveries, "hops", np.int32),
        relays=array(tables["relays"], "relays", np.int64),
        stored_byte_s=array(stores, "stored_byte_s", np.float64),
        peak_bytes=array(stores, "peak_bytes", np.int64),
        transfer_log=_log_from(tables.get("transfers"), TRANSFER, "outcome", OUTCOMES),
        drop_log=_log_from(tables.get("drops"), DROP, "reason", DROPS),
        list_log=_log_from(tables["lists"], LISTING, "outcome", OUTCOMES) if "lists" in tables else None,
        **counts,
    )


def _log_from(table: pa.Table | None, dtype: np.dtype[np.void], word: str, all_words: tuple[str, ...]) -> Records:
    """The rows of a full log; none if the run has none."""
    if table is None:
        return records(0, dtype)
    rows = records(len(table), dtype)
    for name in dtype.names or ():
        column = "event" if name == "bundle" else name
        rows[name] = codes(table, name, all_words) if name == word else array(table, column, dtype[name].type)
    return rows


FORM = TableForm(OPPORTUNISTIC_TABLES, columns_of, parts_from, FULL_OPPORTUNISTIC_TABLES)
