"""A run in a field, and how it stands in its folder.

The folder holds what was drawn (where the sensors stood, how the subscribers moved), what happened, and what
other programs than serai would have to work out (contacts).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.field.communities import find_communities
from serai.field.engine.state import DROPS, TRANSFERS
from serai.field.sections import FieldScenario
from serai.field.visits import sensor_contacts_by_cell, visits_of
from serai.field.world import World
from serai.log.folder import (
    Codes,
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
from serai.world.grid import Grid
from serai.world.mobility import Tracks

if TYPE_CHECKING:
    import pyarrow as pa

    from serai.field.metrics import FieldMetrics

Times = NDArray[np.int32]  # whole seconds: field protocols run in slots
Numbers = NDArray[np.int32]  # of events, sensors, subscribers, nodes
Counts = NDArray[np.int64]

NODE_KINDS: Final = ("sensor", "subscriber")
OUTCOMES: Final = ("accepted", "refused")
_COUNTS: Final = ("drops", "control_messages", "control_bits", "died_s")
_RUN_KEYS: Final = ("protocol", "seed", "scenario", "attributes", "versions", *_COUNTS, "tables")


# --- A run


class Ledger(NamedTuple):
    """What metrics need of a run: always kept, and equal to the full log added up."""

    reception_event: Numbers  # first reception of each (event, subscriber), in the order of happening
    reception_subscriber: Numbers
    reception_s: Times
    reception_wanted: NDArray[np.bool_]
    transmissions: Counts  # [event]
    sent: Counts  # [sensor] event messages
    received: Counts  # [sensor] event messages, refused ones not counted
    event_pj: Counts  # [sensor] picojoules
    control_pj: Counts  # [sensor] picojoules
    drops: dict[str, int]  # by reason
    control_messages: dict[str, int]  # by kind
    control_bits: dict[str, int]  # by kind
    died_s: float | None = None  # when the first battery was empty, if that was simulated


class Transfers(NamedTuple):
    """Every transmission of an event, in the order of happening; ends are nodes: subscriber p is N + p."""

    time_s: Times
    event: Numbers
    sender: Numbers
    receiver: Numbers
    addressee: Numbers  # the subscriber (as a node) the copy is on its way to, or -1
    kind: Codes  # place in `serai.field.engine.state.TRANSFERS`
    outcome: Codes  # place in `OUTCOMES`


class Drops(NamedTuple):
    """Every copy lost, in the order of happening."""

    time_s: Times
    event: Numbers
    node: Numbers
    reason: Codes  # place in `serai.field.engine.state.DROPS`


class FullLog(NamedTuple):
    """Everything that happened to events, one row each; kept only on request."""

    transfers: Transfers
    drops: Drops


@dataclass(frozen=True, eq=False, repr=False)
class FieldRun(SimulatedRun):
    """One simulated run: what was asked for, the world it happened in, and what happened."""

    scenario: FieldScenario
    world: World
    ledger: Ledger
    full: FullLog | None = None

    @cached_property
    def metrics(self) -> FieldMetrics:
        """Every metric of the run, worked out when first asked for."""
        from serai.field.metrics import measure_field

        return measure_field(self)

    @property
    def full_log(self) -> bool:
        """Whether every transfer and every drop was kept."""
        return self.full is not None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the events' attributes."""
        return self.world.attribute_names

    def in_numbers(self) -> tuple[str, ...]:
        """How much there is of everything, in a few words each."""
        return (
            f"{len(self.world.sensor_x)} sensors",
            f"{len(self.world.low)} subscribers",
            f"{len(self.world.event_sensor)} events",
            f"{len(self.ledger.reception_event)} receptions",
        )

    def counts(self) -> dict[str, Any]:
        """Sums that need no table."""
        return {name: getattr(self.ledger, name) for name in _COUNTS}

    def _tables(self) -> dict[str, pa.Table]:
        return _tables_of(self)


# --- Writing


def _tables_of(run: FieldRun) -> dict[str, pa.Table]:
    """Every table of the run's folder, by name."""
    import pyarrow as pa

    from serai.log import schemas

    columns = {
        "nodes": _nodes(run.world),
        "tracks": _tracks(run.world.tracks),
        "contacts": _contacts(run),
        "events": _events(run),
        "subscriptions": _subscriptions(run.world),
        "receptions": _receptions(run.ledger),
        "energy": _energy(run.ledger),
    }
    described = dict(schemas.RUN_TABLES)
    if run.full is not None:
        columns |= {"transfers": _transfers(run.full.transfers), "drops": _drops(run.full.drops)}
        described |= schemas.FULL_LOG_TABLES
    attributes = {"attributes": json.dumps(list(run.world.attribute_names))}
    return {
        name: pa.table(columns[name], schema=schema).replace_schema_metadata(attributes)
        for name, schema in described.items()
    }


def _nodes(world: World) -> Columns:
    sensors, subscribers = len(world.sensor_x), len(world.low)
    first = world.tracks.start[:-1]
    start_x, start_y = world.tracks.x_m[first], world.tracks.y_m[first]
    return {
        "node": np.arange(sensors + subscribers, dtype=np.int32),
        "name": [*world.sensor_names, *(f"subscriber-{number}" for number in range(subscribers))],
        "kind": words(np.repeat(np.arange(2, dtype=np.int8), [sensors, subscribers]), NODE_KINDS),
        "x_m": np.concatenate([world.sensor_x, start_x]),
        "y_m": np.concatenate([world.sensor_y, start_y]),
        "cell": np.concatenate([world.sensor_cell, world.grid.cell_of(start_x, start_y)]),
        "community": np.concatenate([world.communities.of_sensor, np.full(subscribers, -1, np.int32)]),
    }


def _tracks(tracks: Tracks) -> Columns:
    subscribers = np.arange(len(tracks.start) - 1, dtype=np.int32)
    return {
        "subscriber": np.repeat(subscribers, np.diff(tracks.start)),
        "time_s": tracks.time_s,
        "x_m": tracks.x_m,
        "y_m": tracks.y_m,
    }


def _contacts(run: FieldRun) -> Columns:
    """Who could hear whom under the run's protocol."""
    rules, world = run.scenario.protocol, run.world
    contacts = sensor_contacts_by_cell(
        world.visits,
        world.grid,
        world.sensor_cell,
        run.scenario.duration_s,
        reach=getattr(rules, "reach", "touching"),
        silent_while_pausing=rules.silent_while_pausing,
    )
    return {
        "subscriber": contacts.subscriber,
        "sensor": contacts.sensor,
        "start_s": contacts.start_s.astype(np.float64),
        "end_s": contacts.end_s.astype(np.float64),
    }


def _events(run: FieldRun) -> Columns:
    return {
        "event": np.arange(len(run.world.event_sensor), dtype=np.int32),
        "sensor": run.world.event_sensor,
        "time_s": run.world.event_time_s,
        "values": lists(run.world.event_values),
        "transmissions": run.ledger.transmissions,
    }


def _subscriptions(world: World) -> Columns:
    return {
        "subscriber": np.arange(len(world.low), dtype=np.int32),
        "where": list(world.where),
        "low": lists(world.low),
        "high": lists(world.high),
    }


def _receptions(ledger: Ledger) -> Columns:
    return {
        "event": ledger.reception_event,
        "subscriber": ledger.reception_subscriber,
        "time_s": ledger.reception_s.astype(np.float64),
        "wanted": ledger.reception_wanted,
    }


def _energy(ledger: Ledger) -> Columns:
    return {
        "sensor": np.arange(len(ledger.sent), dtype=np.int32),
        "sent": ledger.sent,
        "received": ledger.received,
        "event_pj": ledger.event_pj,
        "control_pj": ledger.control_pj,
    }


def _transfers(transfers: Transfers) -> Columns:
    return transfers._asdict() | {
        "time_s": transfers.time_s.astype(np.float64),
        "kind": words(transfers.kind, TRANSFERS),
        "outcome": words(transfers.outcome, OUTCOMES),
    }


def _drops(drops: Drops) -> Columns:
    return drops._asdict() | {
        "time_s": drops.time_s.astype(np.float64),
        "reason": words(drops.reason, DROPS),
    }


# --- Reading


def read_field_run(place: Path, said: Mapping[str, Any], scenario: FieldScenario) -> FieldRun:
    """The run that a folder keeps, given what its `run.json` says."""
    from serai.log import schemas

    check_keys(place, said, _RUN_KEYS)
    described = dict(schemas.RUN_TABLES)
    if said["tables"].keys() & schemas.FULL_LOG_TABLES.keys():
        described |= schemas.FULL_LOG_TABLES
    tables = read_tables(place, said["tables"], described)
    return FieldRun(
        scenario=scenario,
        protocol=said["protocol"],
        seed=said["seed"],
        world=_world_from(scenario, tuple(said["attributes"]), tables),
        ledger=_ledger_from(said, tables),
        full=_full_log_from(tables) if "transfers" in tables else None,
        versions=said["versions"],
    )


def _world_from(scenario: FieldScenario, attributes: tuple[str, ...], tables: Mapping[str, pa.Table]) -> World:
    """The world of a run: what was drawn comes from the tables, what follows from it is worked out again."""
    nodes, events, subscriptions = tables["nodes"], tables["events"], tables["subscriptions"]
    place = scenario.field
    grid = Grid(place.width_m, place.height_m, place.columns, place.rows)
    sensors = slice(0, int((codes(nodes, "kind", NODE_KINDS) == 0).sum()))
    tracks = _tracks_from(tables["tracks"], len(subscriptions))
    cells = array(nodes, "cell", np.int32)[sensors]
    return World(
        grid=grid,
        sensor_names=tuple(nodes["name"].to_pylist()[sensors]),
        sensor_x=array(nodes, "x_m", np.float64)[sensors],
        sensor_y=array(nodes, "y_m", np.float64)[sensors],
        sensor_cell=cells,
        communities=find_communities(grid, cells),
        tracks=tracks,
        visits=visits_of(tracks, grid, scenario.duration_s),
        event_sensor=array(events, "sensor", np.int32),
        event_time_s=array(events, "time_s", np.float64),
        event_values=matrix(events, "values", len(attributes)),
        attribute_names=attributes,
        low=matrix(subscriptions, "low", len(attributes)),
        high=matrix(subscriptions, "high", len(attributes)),
        where=tuple(subscriptions["where"].to_pylist()),
    )


def _tracks_from(table: pa.Table, subscribers: int) -> Tracks:
    points = np.bincount(array(table, "subscriber", np.int32), minlength=subscribers)
    start = np.concatenate([[0], np.cumsum(points)]).astype(np.int64)
    return Tracks(start, *(array(table, name, np.float64) for name in ("time_s", "x_m", "y_m")))


def _ledger_from(said: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Ledger:
    receptions, energy = tables["receptions"], tables["energy"]
    return Ledger(
        reception_event=array(receptions, "event", np.int32),
        reception_subscriber=array(receptions, "subscriber", np.int32),
        reception_s=array(receptions, "time_s", np.int32),
        reception_wanted=array(receptions, "wanted", np.bool_),
        transmissions=array(tables["events"], "transmissions", np.int64),
        sent=array(energy, "sent", np.int64),
        received=array(energy, "received", np.int64),
        event_pj=array(energy, "event_pj", np.int64),
        control_pj=array(energy, "control_pj", np.int64),
        drops=said["drops"],
        control_messages=said["control_messages"],
        control_bits=said["control_bits"],
        died_s=said["died_s"],
    )


def _full_log_from(tables: Mapping[str, pa.Table]) -> FullLog:
    transfers, drops = tables["transfers"], tables["drops"]
    return FullLog(
        Transfers(
            time_s=array(transfers, "time_s", np.int32),
            event=array(transfers, "event", np.int32),
            sender=array(transfers, "sender", np.int32),
            receiver=array(transfers, "receiver", np.int32),
            addressee=array(transfers, "addressee", np.int32),
            kind=codes(transfers, "kind", TRANSFERS),
            outcome=codes(transfers, "outcome", OUTCOMES),
        ),
        Drops(
            time_s=array(drops, "time_s", np.int32),
            event=array(drops, "event", np.int32),
            node=array(drops, "node", np.int32),
            reason=codes(drops, "reason", DROPS),
        ),
    )
