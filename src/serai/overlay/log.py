"""A run of an overlay, and how it stands in its folder: the network as it was drawn, and all that happened in it."""

from __future__ import annotations

import json
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
from serai.overlay.engine.answers import Arrivals
from serai.overlay.engine.graph import Graph, graph_of_links
from serai.overlay.engine.network import Network
from serai.overlay.engine.run import KINDS, Damage, Load, Notifications, Outcome, QueryMessages, Stage, TreePlaces
from serai.overlay.engine.state import NONE
from serai.overlay.sections import OverlayScenario

if TYPE_CHECKING:
    import pyarrow as pa

    from serai.overlay.metrics import OverlayMetrics

_RUN_KEYS: Final = ("protocol", "seed", "scenario", "attributes", "versions", "damage", "tables")


@dataclass(frozen=True, eq=False, repr=False)
class OverlayRun(SimulatedRun):
    """One simulated run: what was asked for, the network it happened in, and what happened."""

    scenario: OverlayScenario
    network: Network
    outcome: Outcome

    @cached_property
    def metrics(self) -> OverlayMetrics:
        """Every metric of the run, worked out when first asked for."""
        from serai.overlay.metrics import measure_overlay

        return measure_overlay(self)

    @property
    def full_log(self) -> bool:
        """Whether every transfer and every drop was kept."""
        return False

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the events' attributes."""
        return tuple(attribute.name for attribute in self.network.attributes)

    def in_numbers(self) -> tuple[str, ...]:
        """How much there is of everything, in a few words each."""
        return (
            f"{len(self.network.names)} nodes",
            f"{len(self.network.roots)} trees",
            f"{len(self.network.low)} subscriptions",
            f"{len(self.network.publisher)} events",
            f"{len(self.outcome.notifications.event)} notifications",
        )

    def counts(self) -> dict[str, Any]:
        """Sums that need no table."""
        damage = self.outcome.damage
        return {"damage": None if damage is None else _damage_as_dict(damage)}

    def _tables(self) -> dict[str, pa.Table]:
        return _tables_of(self)


# --- Writing


def _damage_as_dict(damage: Damage) -> dict[str, Any]:
    return {name: value._asdict() if isinstance(value, Stage) else value for name, value in damage._asdict().items()}


def _tables_of(run: OverlayRun) -> dict[str, pa.Table]:
    """Every table of the run's folder, by name."""
    import pyarrow as pa

    from serai.log import schemas

    network, outcome = run.network, run.outcome
    columns: dict[str, Columns] = {
        "nodes": _nodes(network),
        "links": _links(network.graph),
        "memberships": outcome.tree_places._asdict(),
        "events": {
            "event": np.arange(len(network.publisher), dtype=np.int32),
            "node": network.publisher,
            "values": lists(network.values),
        },
        "subscriptions": {
            "query": np.arange(len(network.subscriber), dtype=np.int32),
            "node": network.subscriber,
            "where": list(network.where),
            "low": lists(network.low),
            "high": lists(network.high),
        },
        "query_messages": outcome.queries._asdict(),
        "arrivals": outcome.arrivals._asdict(),
        "notifications": outcome.notifications._asdict(),
        "load": _load(outcome.load),
    }
    attributes = {"attributes": json.dumps([attribute.name for attribute in network.attributes])}
    return {
        name: pa.table(columns[name], schema=schema).replace_schema_metadata(attributes)
        for name, schema in schemas.OVERLAY_TABLES.items()
    }


def _nodes(network: Network) -> Columns:
    nodes = len(network.names)
    root_of = np.full(nodes, NONE, np.int32)
    root_of[network.roots] = np.arange(len(network.roots))
    return {
        "node": np.arange(nodes, dtype=np.int32),
        "name": list(network.names),
        "x_m": network.x_m,
        "y_m": network.y_m,
        "root_of": root_of,
        "fails": network.fails,
    }


def _links(graph: Graph) -> Columns:
    owner = np.repeat(np.arange(graph.nodes, dtype=np.int32), np.diff(graph.start))
    once = owner < graph.neighbors
    return {"node": owner[once], "neighbor": graph.neighbors[once]}


def _load(load: Load) -> Columns:
    kinds, nodes = load.sent.shape
    return {
        "node": np.tile(np.arange(nodes, dtype=np.int32), kinds),
        "kind": words(np.repeat(np.arange(kinds, dtype=np.int8), nodes), KINDS),
        "sent": load.sent.ravel(),
        "received": load.received.ravel(),
    }


# --- Reading


def read_overlay_run(place: Path, said: Mapping[str, Any], scenario: OverlayScenario) -> OverlayRun:
    """The run that a folder keeps, given what its `run.json` says."""
    from serai.log import schemas

    check_keys(place, said, _RUN_KEYS)
    tables = read_tables(place, said["tables"], schemas.OVERLAY_TABLES)
    return OverlayRun(
        scenario=scenario,
        protocol=said["protocol"],
        seed=said["seed"],
        network=_network_from(scenario, tables),
        outcome=_outcome_from(said["damage"], tables),
        versions=said["versions"],
    )


def _network_from(scenario: OverlayScenario, tables: Mapping[str, pa.Table]) -> Network:
    nodes, events, subscriptions = tables["nodes"], tables["events"], tables["subscriptions"]
    attributes = scenario.events.attributes
    root_of = array(nodes, "root_of", np.int32)
    roots = np.flatnonzero(root_of != NONE)
    one, other = (array(tables["links"], end, np.int32) for end in ("node", "neighbor"))
    return Network(
        names=tuple(nodes["name"].to_pylist()),
        x_m=array(nodes, "x_m", np.float64),
        y_m=array(nodes, "y_m", np.float64),
        graph=graph_of_links(len(nodes), one, other),
        roots=roots[np.argsort(root_of[roots])].astype(np.int32),
        attributes=attributes,
        publisher=array(events, "node", np.int32),
        values=matrix(events, "values", len(attributes)),
        subscriber=array(subscriptions, "node", np.int32),
        low=matrix(subscriptions, "low", len(attributes)),
        high=matrix(subscriptions, "high", len(attributes)),
        where=tuple(subscriptions["where"].to_pylist()),
        fails=array(nodes, "fails", np.bool_),
    )


def _outcome_from(damage: Mapping[str, Any] | None, tables: Mapping[str, pa.Table]) -> Outcome:
    load = tables["load"]
    shape = (len(KINDS), len(tables["nodes"]))
    order = np.argsort(codes(load, "kind", KINDS), kind="stable")
    sent, received = (array(load, name, np.int64)[order].reshape(shape) for name in ("sent", "received"))
    return Outcome(
        tree_places=TreePlaces(*_columns(tables["memberships"], TreePlaces)),
        queries=QueryMessages(*_columns(tables["query_messages"], QueryMessages)),
        arrivals=Arrivals(*_columns(tables["arrivals"], Arrivals)),
        notifications=Notifications(*_columns(tables["notifications"], Notifications)),
        load=Load(sent, received),
        damage=None if damage is None else _damage_from(damage),
    )


def _columns(table: pa.Table, rows: Any) -> list[Any]:
    """The columns of a table as arrays, in the order of the fields of what they make up."""
    kinds = {name: table.schema.field(name).type.to_pandas_dtype() for name in rows._fields}
    return [array(table, name, kind) for name, kind in kinds.items()]


def _damage_from(said: Mapping[str, Any]) -> Damage:
    values: dict[str, Any] = {
        name: Stage(**value) if isinstance(value, dict) else value for name, value in said.items()
    }
    return Damage(**values)
