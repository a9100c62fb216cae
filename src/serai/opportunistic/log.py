"""A run of an opportunistic network, and how it stands in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from serai.log.folder import (
    Columns,
    array,
    check_keys,
    codes,
    lists,
    matrix,
    read_tables,
    words,
)
from serai.log.run import SimulatedRun
from serai.opportunistic.engine.setup import records
from serai.opportunistic.engine.state import DROP, DROPS, TRANSFER, TRANSFERS, Outcome, Records
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.world import Bundles, ContactWorld, Published, Subscriptions, Wanted
from serai.world.contacts import Contacts

if TYPE_CHECKING:
    import pyarrow as pa

    from serai.opportunistic.metrics import OpportunisticMetrics

_COUNTED: Final = ("payload_bytes", "control_bytes", "wasted_bytes", "lists", "contacts", "transfers", "drops")
_RUN_KEYS: Final = ("protocol", "seed", "scenario", "versions", "full_log", "attributes", "counted", "tables")


@dataclass(frozen=True, eq=False, repr=False)
class OpportunisticRun(SimulatedRun):
    """One run of an opportunistic network: what was given, and what came of it."""

    scenario: OpportunisticScenario
    world: ContactWorld
    outcome: Outcome
    names: tuple[str, ...]  # of the nodes
    published: Published
    wanted: Wanted
    full_log: bool = False

    @cached_property
    def metrics(self) -> OpportunisticMetrics:
        """Every metric of the run, worked out when first asked for."""
        from serai.opportunistic.metrics import measure_opportunistic

        return measure_opportunistic(self)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the events' attributes; none where subscriptions are to channels only."""
        names = tuple(attribute.name for attribute in self.scenario.events.attributes)
        return names[: self.published.values.shape[1]]

    def in_numbers(self) -> tuple[str, ...]:
        """How much there is of everything, in a few words each."""
        return (
            f"{len(self.names)} nodes",
            f"{self.outcome.contacts} contacts",
            f"{len(self.world.bundles.source)} bundles",
            f"{len(self.outcome.delivery_s)} deliveries",
        )

    def counts(self) -> dict[str, Any]:
        """Sums that need no table."""
        return {"full_log": self.full_log, "counted": {name: getattr(self.outcome, name) for name in _COUNTED}}

    def _tables(self) -> dict[str, pa.Table]:
        return _tables_of(self)


# --- Writing


def _tables_of(run: OpportunisticRun) -> dict[str, pa.Table]:
    """Every table of the run's folder, by name."""
    import pyarrow as pa

    from serai.log import schemas

    columns: dict[str, Columns] = {
        "nodes": _nodes(run),
        "contacts": run.world.contacts._asdict(),
        "channels": {
            "channel": np.arange(len(run.published.channels), dtype=np.int32),
            "name": list(run.published.channels),
        },
        "bundles": _bundles(run),
        "subscriptions": run.world.subscriptions._asdict(),
        "ranges": _ranges(run.wanted),
        "deliveries": {
            "bundle": run.outcome.delivery_bundle,
            "node": run.outcome.delivery_node,
            "time_s": run.outcome.delivery_s,
            "hops": run.outcome.delivery_hops,
        },
        "transfers": _with_words(run.outcome.transfer_log, "outcome", TRANSFERS),
        "drops": _with_words(run.outcome.drop_log, "reason", DROPS),
    }
    wanted = schemas.CONTACTS_TABLES | (schemas.CONTACTS_FULL_LOG_TABLES if run.full_log else {})
    return {name: pa.table(columns[name], schema=schema) for name, schema in wanted.items()}


def _nodes(run: OpportunisticRun) -> Columns:
    numbers = np.arange(run.world.nodes, dtype=np.int32)
    return {
        "node": numbers,
        "name": list(run.names),
        "is_source": np.isin(numbers, run.published.sources),
        "is_sink": np.isin(numbers, run.wanted.sinks),
        "carries": run.world.carries,
        "stored_byte_s": run.outcome.stored_byte_s,
        "peak_bytes": run.outcome.peak_bytes,
    }


def _bundles(run: OpportunisticRun) -> Columns:
    return {
        "bundle": np.arange(len(run.world.bundles.source), dtype=np.int32),
        **run.world.bundles._asdict(),
        "target": run.published.targets,
        "values": lists(run.published.values),
        "relays": run.outcome.relays,
    }


def _ranges(wanted: Wanted) -> Columns:
    return {
        "node": wanted.sinks[: len(wanted.where)],
        "where": list(wanted.where),
        "low": lists(wanted.low),
        "high": lists(wanted.high),
    }


def _with_words(log: Records, name: str, all_words: tuple[str, ...]) -> Columns:
    """The columns of a log, one of them as words."""
    columns: Columns = {column: np.ascontiguousarray(log[column]) for column in log.dtype.names}
    columns[name] = words(log[name].astype(np.int8), all_words)
    return columns


# --- Reading


def read_opportunistic_run(place: Path, said: Mapping[str, Any], scenario: OpportunisticScenario) -> OpportunisticRun:
    """The run that a folder keeps, given what its `run.json` says."""
    from serai.log import schemas

    check_keys(place, said, _RUN_KEYS)
    described = schemas.CONTACTS_TABLES | (schemas.CONTACTS_FULL_LOG_TABLES if said["full_log"] else {})
    tables = read_tables(place, said["tables"], described)
    world = _world_from(tables)
    return OpportunisticRun(
        scenario=scenario,
        protocol=said["protocol"],
        seed=said["seed"],
        world=world,
        outcome=_outcome_from(said["counted"], tables),
        names=tuple(tables["nodes"]["name"].to_pylist()),
        published=Published(
            world.bundles,
            tuple(tables["channels"]["name"].to_pylist()),
            _where(tables["nodes"], "is_source"),
            matrix(tables["bundles"], "values", len(said["attributes"])),
            array(tables["bundles"], "target", np.int32),
        ),
        wanted=_wanted_from(tables, world.subscriptions, len(said["attributes"])),
        full_log=said["full_log"],
        versions=said["versions"],
    )


def _where(table: pa.Table, column: str) -> Any:
    """The numbers of the rows that have it."""
    return np.flatnonzero(array(table, column, np.bool_)).astype(np.int32)


def _world_from(tables: Mapping[str, pa.Table]) -> ContactWorld:
    bundles, subscriptions, contacts = tables["bundles"], tables["subscriptions"], tables["contacts"]
    return ContactWorld(
        nodes=len(tables["nodes"]),
        channels=len(tables["channels"]),
        contacts=Contacts(
            *(array(contacts, end, np.int32) for end in ("a", "b")),
            *(array(contacts, time, np.float64) for time in ("up_s", "down_s")),
        ),
        bundles=Bundles(
            source=array(bundles, "source", np.int32),
            channel=array(bundles, "channel", np.int32),
            created_s=array(bundles, "created_s", np.float64),
            size_bytes=array(bundles, "size_bytes", np.int64),
            lifetime_s=array(bundles, "lifetime_s", np.float64),
        ),
        subscriptions=Subscriptions(
            *(array(subscriptions, who, np.int32) for who in ("node", "channel")),
            *(array(subscriptions, time, np.float64) for time in ("from_s", "to_s")),
        ),
        carries=array(tables["nodes"], "carries", np.bool_),
    )


def _wanted_from(tables: Mapping[str, pa.Table], subscriptions: Subscriptions, attributes: int) -> Wanted:
    ranges, sinks = tables["ranges"], _where(tables["nodes"], "is_sink")
    if not len(ranges):
        return Wanted(subscriptions, sinks)
    low, high = (matrix(ranges, bound, attributes) for bound in ("low", "high"))
    return Wanted(subscriptions, sinks, tuple(ranges["where"].to_pylist()), low, high)


def _outcome_from(counted: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Outcome:
    deliveries, nodes = tables["deliveries"], tables["nodes"]
    return Outcome(
        delivery_bundle=array(deliveries, "bundle", np.int32),
        delivery_node=array(deliveries, "node", np.int32),
        delivery_s=array(deliveries, "time_s", np.float64),
        delivery_hops=array(deliveries, "hops", np.int32),
        relays=array(tables["bundles"], "relays", np.int64),
        stored_byte_s=array(nodes, "stored_byte_s", np.float64),
        peak_bytes=array(nodes, "peak_bytes", np.int64),
        transfer_log=_log_from(tables.get("transfers"), TRANSFER, "outcome", TRANSFERS),
        drop_log=_log_from(tables.get("drops"), DROP, "reason", DROPS),
        **counted,
    )


def _log_from(table: pa.Table | None, dtype: np.dtype[np.void], name: str, all_words: tuple[str, ...]) -> Records:
    """The rows of a full log; none if the run has none."""
    if table is None:
        return records(0, dtype)
    rows = records(len(table), dtype)
    for column in table.column_names:
        rows[column] = codes(table, column, all_words) if column == name else array(table, column, dtype[column].type)
    return rows
