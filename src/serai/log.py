"""A run, and the folder that keeps it: Parquet tables and `run.json`. Engines write it, all else reads it.

The folder holds what was drawn (where the sensors stood, how the subscribers moved), what happened, and what
other programs than serai would have to work out (contacts). `docs/log.md` describes every table and column.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai import __version__
from serai.engine.field.state import DROPS, TRANSFERS
from serai.errors import BadInput
from serai.scenario import FieldScenario, parse_scenario, to_toml
from serai.world import World
from serai.world.contacts import contacts_by_cell, visits_of
from serai.world.field import Grid, find_communities
from serai.world.mobility import Tracks

# pyarrow takes longer to import than a run to simulate: only who reads or writes tables shall wait for it.
if TYPE_CHECKING:
    import pyarrow as pa

Times = NDArray[np.int32]  # whole seconds: field protocols run in slots
Numbers = NDArray[np.int32]  # of events, sensors, subscribers, nodes
Codes = NDArray[np.int8]  # places in one of the lists of words below
Counts = NDArray[np.int64]
Columns = dict[str, Any]

NODE_KINDS: Final = ("sensor", "subscriber")
OUTCOMES: Final = ("accepted", "refused")
_PACKAGES: Final = ("numpy", "numba", "pyarrow", "pydantic")
_RUN_FILE: Final = "run.json"
_RUN_KEYS: Final = (
    "protocol",
    "seed",
    "scenario",
    "attributes",
    "versions",
    "drops",
    "control_messages",
    "control_bits",
    "died_s",
    "tables",
)


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
    kind: Codes  # place in `serai.engine.field.state.TRANSFERS`
    outcome: Codes  # place in `OUTCOMES`


class Drops(NamedTuple):
    """Every copy lost, in the order of happening."""

    time_s: Times
    event: Numbers
    node: Numbers
    reason: Codes  # place in `serai.engine.field.state.DROPS`


class FullLog(NamedTuple):
    """Everything that happened to events, one row each; kept only on request."""

    transfers: Transfers
    drops: Drops


def package_versions() -> dict[str, str]:
    """The versions that a run's numbers may depend on."""
    return {"serai": __version__, "python": platform.python_version()} | _installed()


@cache  # looking into the installed packages takes a good part of the time of a run
def _installed() -> dict[str, str]:
    return {name: metadata.version(name) for name in _PACKAGES}


@dataclass(frozen=True, eq=False)
class Run:
    """One simulated run: what was asked for, the world it happened in, and what happened."""

    scenario: FieldScenario
    protocol: str
    seed: int
    world: World
    ledger: Ledger
    full: FullLog | None = None
    versions: dict[str, str] = field(default_factory=package_versions)

    def __eq__(self, other: object) -> bool:
        """Whether everything in the two runs is the same, to the last bit of the last array."""
        if not isinstance(other, Run):
            return NotImplemented
        return all(_same(getattr(self, part.name), getattr(other, part.name)) for part in fields(self))

    __hash__ = None  # type: ignore[assignment]  # arrays have none either

    def __repr__(self) -> str:
        log = ", full log" if self.full else ""
        return (
            f"Run({self.protocol}, seed {self.seed}: {len(self.world.sensor_x)} sensors,"
            f" {len(self.world.low)} subscribers, {len(self.world.event_sensor)} events,"
            f" {len(self.ledger.reception_event)} receptions{log})"
        )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        alike = isinstance(other, np.ndarray) and one.dtype == other.dtype
        return alike and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


# --- Writing


def check_out(folder: str | Path) -> None:
    """Refuse a place where no run folder can be written; asked before any work is done, it writes nothing."""
    try:
        _check_place(Path(folder).resolve(), folder)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror}; choose another place for the run") from error


def _check_place(place: Path, folder: str | Path) -> None:
    if place.exists():
        _check_empty(place, folder)
    parent = _nearest_folder(place.parent)
    if not parent.is_dir():
        raise BadInput(f"{folder}: {parent} is a file, not a folder; choose another place for the run")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise BadInput(f"{folder}: no permission to write in {parent}; choose another place for the run")


def _check_empty(place: Path, folder: str | Path) -> None:
    if not place.is_dir():
        raise BadInput(f"{folder}: this is a file; a run is written to a folder: choose another name")
    if any(place.iterdir()):
        raise BadInput(f"{folder}: the folder is not empty; choose a new name, or remove the folder first")
    # The finished folder is renamed into place; neither of these can be replaced by it.
    if place.is_mount() or place == Path.cwd():
        raise BadInput(f"{folder}: this folder cannot be replaced; choose a new folder inside it")


def _nearest_folder(place: Path) -> Path:
    """The closest of the folder and those above it that exists."""
    return next(above for above in (place, *place.parents) if above.exists())


def write_run(run: Run, folder: str | Path) -> Path:
    """Write the run to a new or empty folder, whole or not at all, and say where it is."""
    check_out(folder)
    place = Path(folder).resolve()
    beside = _nearest_folder(place.parent)
    try:
        with tempfile.TemporaryDirectory(prefix=".serai-", dir=beside) as aside:
            # A temporary folder is closed to everybody else; one made inside it has the usual permissions.
            made = Path(aside) / "run"
            made.mkdir()
            _write_files(run, made)
            place.parent.mkdir(parents=True, exist_ok=True)
            made.rename(place)
    except PermissionError as error:
        raise BadInput(f"{folder}: no permission to write there; choose another place for the run") from error
    return place


def _write_files(run: Run, folder: Path) -> None:
    tables = _tables_of(run)
    listing = {name: _write_table(table, _file(folder, name)) for name, table in tables.items()}
    text = json.dumps(_description(run) | {"tables": listing}, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / _RUN_FILE).write_text(text + "\n", encoding="utf-8")


def _file(folder: Path, table: str) -> Path:
    return folder / f"{table}.parquet"


def _write_table(table: pa.Table, path: Path) -> dict[str, Any]:
    """Write one table, the same bytes for the same table, and say what `run.json` tells about it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Floats hardly ever repeat: a dictionary of them would only be tried and thrown away.
    repeating = [column.name for column in table.schema if not pa.types.is_floating(_element(column.type))]
    pq.write_table(table, path, compression="zstd", use_dictionary=repeating)
    return {"rows": table.num_rows, "sha256": _digest(path)}


def _element(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return kind.value_type if pa.types.is_list(kind) else kind


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _description(run: Run) -> dict[str, Any]:
    """What `run.json` says, but for its list of tables."""
    from serai.schemas import LOG_VERSION

    ledger = run.ledger
    return {
        "log_version": LOG_VERSION,
        "protocol": run.protocol,
        "seed": run.seed,
        "scenario": to_toml(run.scenario),
        "attributes": list(run.world.attribute_names),
        "versions": run.versions,
        "drops": ledger.drops,
        "control_messages": ledger.control_messages,
        "control_bits": ledger.control_bits,
        "died_s": ledger.died_s,
    }


def _tables_of(run: Run) -> dict[str, pa.Table]:
    """Every table of the run's folder, by name."""
    import pyarrow as pa

    from serai import schemas

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
        "kind": _words(np.repeat(np.arange(2, dtype=np.int8), [sensors, subscribers]), NODE_KINDS),
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


def _contacts(run: Run) -> Columns:
    """Who could hear whom under the run's protocol."""
    rules, world = run.scenario.protocol, run.world
    contacts = contacts_by_cell(
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


def _events(run: Run) -> Columns:
    return {
        "event": np.arange(len(run.world.event_sensor), dtype=np.int32),
        "sensor": run.world.event_sensor,
        "time_s": run.world.event_time_s,
        "values": _lists(run.world.event_values),
        "transmissions": run.ledger.transmissions,
    }


def _subscriptions(world: World) -> Columns:
    return {
        "subscriber": np.arange(len(world.low), dtype=np.int32),
        "where": list(world.where),
        "low": _lists(world.low),
        "high": _lists(world.high),
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
        "kind": _words(transfers.kind, TRANSFERS),
        "outcome": _words(transfers.outcome, OUTCOMES),
    }


def _drops(drops: Drops) -> Columns:
    return drops._asdict() | {
        "time_s": drops.time_s.astype(np.float64),
        "reason": _words(drops.reason, DROPS),
    }


def _words(codes: Codes, words: tuple[str, ...]) -> pa.DictionaryArray:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(words))


def _lists(rows: NDArray[np.float64]) -> pa.ListArray:
    """A matrix as one list per row."""
    import pyarrow as pa

    from serai.schemas import NUMBERS

    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(offsets, rows.ravel(), type=NUMBERS)


# --- Reading


def read_run(folder: str | Path) -> Run:
    """The run that a folder keeps, equal to the one that was written there."""
    place = Path(folder)
    said = _read_description(place)
    tables = _read_tables(place, said["tables"])
    scenario = parse_scenario(said["scenario"], source=str(place / _RUN_FILE))
    if not isinstance(scenario, FieldScenario):
        raise BadInput(f"{place}: holds a run of {scenario.protocol.name}, which is no field protocol")
    return Run(
        scenario=scenario,
        protocol=said["protocol"],
        seed=said["seed"],
        world=_world_from(scenario, tuple(said["attributes"]), tables),
        ledger=_ledger_from(said, tables),
        full=_full_log_from(tables) if "transfers" in tables else None,
        versions=said["versions"],
    )


def _read_description(folder: Path) -> dict[str, Any]:
    """What `run.json` says, if it is one that this version can read."""
    path = folder / _RUN_FILE
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        problem = f"no run here ({_RUN_FILE} not found); name a folder written with --out"
        raise BadInput(f"{folder}: {problem}") from error
    except ValueError as error:
        raise BadInput(f"{path}: damaged, this is not JSON ({error}); run the simulation again") from error
    if not isinstance(said, dict) or "log_version" not in said:
        raise BadInput(f"{path}: not a run of serai (no log_version in it)")
    _check_version(folder, said)
    if missing := [key for key in _RUN_KEYS if key not in said]:
        raise BadInput(f"{path}: damaged, it lacks {', '.join(missing)}; run the simulation again")
    return said


def _check_version(folder: Path, said: Mapping[str, Any]) -> None:
    from serai.schemas import LOG_VERSION

    if said["log_version"] != LOG_VERSION:
        raise BadInput(
            f"{folder}: log version {said['log_version']}; this serai ({__version__}) reads log version"
            f" {LOG_VERSION}: use the serai that wrote it ({said.get('versions')}), or simulate again"
        )


def _read_tables(folder: Path, listing: Mapping[str, Any]) -> dict[str, pa.Table]:
    """Every table of the run, or one complaint about all that cannot be used."""
    from serai import schemas

    described = dict(schemas.RUN_TABLES)
    if listing.keys() & schemas.FULL_LOG_TABLES.keys():
        described |= schemas.FULL_LOG_TABLES
    found = [_problem_of(_file(folder, name), listing.get(name)) for name in described]
    if problems := [problem for problem in found if problem]:
        raise BadInput(f"{folder}: {'; '.join(problems)}; restore the folder, or run the simulation again")
    return {name: _read_table(_file(folder, name), schema) for name, schema in described.items()}


def _problem_of(path: Path, listed: Mapping[str, Any] | None) -> str | None:
    """Why a table cannot be read, if so."""
    if listed is None:
        return f"{path.name} is not listed in {_RUN_FILE}"
    if not path.is_file():
        return f"{path.name} is missing"
    if _digest(path) != listed["sha256"]:
        return f"{path.name} is damaged or was changed (its SHA-256 is not the one in {_RUN_FILE})"
    return None


def _read_table(path: Path, schema: pa.Schema) -> pa.Table:
    import pyarrow.parquet as pq

    table = pq.ParquetFile(path).read()
    if not table.schema.equals(schema):
        raise BadInput(f"{path}: columns {_signature(table.schema)}; expected {_signature(schema)}")
    return table


def _signature(schema: pa.Schema) -> str:
    kinds = (f"{column.type} or null" if column.nullable else str(column.type) for column in schema)
    return ", ".join(f"{name} ({kind})" for name, kind in zip(schema.names, kinds, strict=True))


def _world_from(scenario: FieldScenario, attributes: tuple[str, ...], tables: Mapping[str, pa.Table]) -> World:
    """The world of a run: what was drawn comes from the tables, what follows from it is worked out again."""
    nodes, events, subscriptions = tables["nodes"], tables["events"], tables["subscriptions"]
    place = scenario.field
    grid = Grid(place.width_m, place.height_m, place.columns, place.rows)
    sensors = slice(0, int((_codes(nodes, "kind", NODE_KINDS) == 0).sum()))
    tracks = _tracks_from(tables["tracks"], len(subscriptions))
    cells = _array(nodes, "cell", np.int32)[sensors]
    return World(
        grid=grid,
        sensor_names=tuple(nodes["name"].to_pylist()[sensors]),
        sensor_x=_array(nodes, "x_m", np.float64)[sensors],
        sensor_y=_array(nodes, "y_m", np.float64)[sensors],
        sensor_cell=cells,
        communities=find_communities(grid, cells),
        tracks=tracks,
        visits=visits_of(tracks, grid, scenario.duration_s),
        event_sensor=_array(events, "sensor", np.int32),
        event_time_s=_array(events, "time_s", np.float64),
        event_values=_matrix(events, "values", len(attributes)),
        attribute_names=attributes,
        low=_matrix(subscriptions, "low", len(attributes)),
        high=_matrix(subscriptions, "high", len(attributes)),
        where=tuple(subscriptions["where"].to_pylist()),
    )


def _tracks_from(table: pa.Table, subscribers: int) -> Tracks:
    points = np.bincount(_array(table, "subscriber", np.int32), minlength=subscribers)
    start = np.concatenate([[0], np.cumsum(points)]).astype(np.int64)
    return Tracks(start, *(_array(table, name, np.float64) for name in ("time_s", "x_m", "y_m")))


def _ledger_from(said: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Ledger:
    receptions, energy = tables["receptions"], tables["energy"]
    return Ledger(
        reception_event=_array(receptions, "event", np.int32),
        reception_subscriber=_array(receptions, "subscriber", np.int32),
        reception_s=_array(receptions, "time_s", np.int32),
        reception_wanted=_array(receptions, "wanted", np.bool_),
        transmissions=_array(tables["events"], "transmissions", np.int64),
        sent=_array(energy, "sent", np.int64),
        received=_array(energy, "received", np.int64),
        event_pj=_array(energy, "event_pj", np.int64),
        control_pj=_array(energy, "control_pj", np.int64),
        drops=said["drops"],
        control_messages=said["control_messages"],
        control_bits=said["control_bits"],
        died_s=said["died_s"],
    )


def _full_log_from(tables: Mapping[str, pa.Table]) -> FullLog:
    transfers, drops = tables["transfers"], tables["drops"]
    return FullLog(
        Transfers(
            time_s=_array(transfers, "time_s", np.int32),
            event=_array(transfers, "event", np.int32),
            sender=_array(transfers, "sender", np.int32),
            receiver=_array(transfers, "receiver", np.int32),
            addressee=_array(transfers, "addressee", np.int32),
            kind=_codes(transfers, "kind", TRANSFERS),
            outcome=_codes(transfers, "outcome", OUTCOMES),
        ),
        Drops(
            time_s=_array(drops, "time_s", np.int32),
            event=_array(drops, "event", np.int32),
            node=_array(drops, "node", np.int32),
            reason=_codes(drops, "reason", DROPS),
        ),
    )


def _array(table: pa.Table, column: str, kind: type[np.generic]) -> NDArray[Any]:
    """A column as an array of its own: pyarrow's may not be written to, and kernels compile anew for such."""
    return np.array(table[column].to_numpy(), dtype=kind)


def _matrix(table: pa.Table, column: str, width: int) -> NDArray[np.float64]:
    numbers = table[column].combine_chunks().flatten().to_numpy()
    return np.array(numbers, dtype=np.float64).reshape(len(table), width)


def _codes(table: pa.Table, column: str, words: tuple[str, ...]) -> Codes:
    """The place of each word of a column in the list of words."""
    import pyarrow as pa
    import pyarrow.compute as pc

    places = pc.index_in(table[column].cast(pa.string()), value_set=pa.array(words))
    return np.array(places.to_numpy(), dtype=np.int8)
