"""How a run in a field stands in tables, and comes back from them.

The tables hold what was drawn (where the sensors stood, how the subscribers moved), what happened, and what other
programs than serai would have to work out (contacts). Sensors are nodes 0 .. N-1, subscriber p is node N + p.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from serai.field.asking import with_wishes
from serai.field.engine.state import DROPS, TRANSFERS
from serai.field.equipment_tables import (
    EQUIPPED_FIELD_TABLES,
    HARVESTING_FIELD_TABLES,
    columns_of_equipment,
    equipment_from,
    powers_from,
)
from serai.field.log import (
    OUTCOMES,
    Control,
    Drops,
    FieldRun,
    FullLog,
    Heads,
    Ledger,
    Sessions,
    Spent,
    Transfers,
    Watched,
)
from serai.field.losses import logged_contacts
from serai.field.sections import FieldScenario
from serai.field.world import People, World, who_hears_whom
from serai.log.columns import Columns, array, codes, lists, matrix, texts, words
from serai.log.run import TableForm
from serai.log.tables import COUNT, INDEX, METRES, PICOJOULES, SECONDS, TEXT, WORD, column
from serai.recorded.wishes import Wishes
from serai.world.grid import Grid
from serai.world.mobility import Tracks

ROLES: Final = ("sensor", "subscriber")
BITS_PER_BYTE: Final = 8

STEADY: Final = {
    "steady_event_pj_1": "energy it spent on events in the first half of the run's steady part",
    "steady_event_pj_2": "the same in the second half",
    "steady_control_pj_1": "energy that its control messages took in the first half",
    "steady_control_pj_2": "the same in the second half",
}
"""What lifetimes are extrapolated from: see `serai.field.lifetime`."""

SENSORS = pa.schema(
    [
        column("node", INDEX, "number of the sensor"),
        column("cell", INDEX, "cell it stands in: row * columns + column; null: reach is in metres", nullable=True),
        column("community", INDEX, "its community"),
        column("sent", COUNT, "event messages it sent"),
        column("received", COUNT, "event messages it accepted"),
        column("event_pj", PICOJOULES, "energy it spent on events"),
        column(
            "control_pj", PICOJOULES, "energy that its control messages need, whether or not they drain the battery"
        ),
        *(column(name, PICOJOULES, says) for name, says in STEADY.items()),
        column("died_s", SECONDS, "when its battery was empty for good; null: it was alive at the end", nullable=True),
    ]
)

CONTROL = pa.schema(
    [
        column("time_s", SECONDS, "a second in which control messages were sent"),
        column("kind", WORD, "the kind of message, one of those under `counts` in `run.json`"),
        column("messages", COUNT, "how many of them"),
    ]
)

SESSIONS = pa.schema(
    [
        column("subscriber", INDEX, "node of the subscriber"),
        column("member", INDEX, "the sensor with the lowest number in the community"),
        column("start_s", SECONDS, "the second in which their session begins"),
        column("end_s", SECONDS, "the first second without it, or the end of the run"),
    ]
)

HEADS = pa.schema(
    [
        column("time_s", SECONDS, "from when on"),
        column("member", INDEX, "the sensor with the lowest number in the community"),
        column("node", INDEX, "the sensor that is its head"),
    ]
)

CONTROL_ENERGY = pa.schema(
    [
        column("time_s", SECONDS, "the last second of a full minute, or of the run"),
        column("node", INDEX, "number of the sensor"),
        column("control_pj", PICOJOULES, "energy that its control messages took since its previous row"),
    ]
)

GROUPS = pa.schema(
    [
        column("node", INDEX, "node of the subscriber"),
        column("group", TEXT, "the group that it belongs to"),
        column("turning_m", METRES, "how far its path may leave a straight line and still be announced as one leg"),
        column("carries", pa.bool_(), "whether it asks for nothing, and only carries"),
    ]
)

FIELD_TABLES = {"sensors": SENSORS}
GROUPED_FIELD_TABLES = {"groups": GROUPS}
"""Only of a run whose subscribers are in groups."""
FULL_FIELD_TABLES = {"control": CONTROL, "control_energy": CONTROL_ENERGY, "sessions": SESSIONS, "heads": HEADS}


# --- Writing


def columns_of(run: FieldRun) -> dict[str, Columns]:
    """The columns of each table."""
    columns = {
        "nodes": _nodes(run.world),
        "tracks": _tracks(run.world),
        "contacts": _contacts(run),
        "events": _events(run),
        "subscriptions": _subscriptions(run.world),
        "deliveries": _deliveries(run),
        "sensors": _sensors(run),
    }
    if any(run.world.people.groups) or run.world.people.turning_m.any() or run.world.people.carries.any():
        columns["groups"] = _groups(run.world)
    columns |= columns_of_equipment(run)
    if run.full is not None:
        columns |= {"transfers": _transfers(run, run.full.transfers), "drops": _drops(run.full.drops)}
        columns |= _watched(run.full.watched, tuple(run.ledger.control_messages)) if run.full.watched else {}
    return columns


def _nodes(world: World) -> Columns:
    sensors, subscribers = len(world.sensor_x), len(world.low)
    moving = np.full(subscribers, np.nan)
    return {
        "node": np.arange(sensors + subscribers, dtype=np.int32),
        "name": [*world.sensor_names, *world.people.names],
        "role": words(np.repeat(np.arange(2, dtype=np.int8), [sensors, subscribers]), ROLES),
        "x_m": np.concatenate([world.sensor_x, moving]),
        "y_m": np.concatenate([world.sensor_y, moving]),
    }


def _groups(world: World) -> Columns:
    people = world.people
    return {
        "node": _subscriber_nodes(world),
        "group": texts(people.group, people.groups),
        "turning_m": people.turning_m,
        "carries": people.carries.astype(np.bool_),
    }


def _subscriber_nodes(world: World) -> np.ndarray[Any, np.dtype[np.int32]]:
    return len(world.sensor_x) + np.arange(len(world.low), dtype=np.int32)


def _tracks(world: World) -> Columns:
    tracks = world.tracks
    return {
        "node": np.repeat(_subscriber_nodes(world), np.diff(tracks.start)),
        "time_s": tracks.time_s,
        "x_m": tracks.x_m,
        "y_m": tracks.y_m,
    }


def _contacts(run: FieldRun) -> Columns:
    contacts = logged_contacts(run)
    return {
        "a": contacts.sensor,
        "b": contacts.subscriber + np.int32(len(run.world.sensor_x)),
        "start_s": contacts.start_s.astype(np.float64),
        "end_s": contacts.end_s.astype(np.float64),
    }


def _size_bytes(run: FieldRun) -> float:
    return float(run.scenario.events.size_bits) / BITS_PER_BYTE


def _events(run: FieldRun) -> Columns:
    return {
        "event": np.arange(len(run.world.event_sensor), dtype=np.int32),
        "node": run.world.event_sensor,
        "time_s": run.world.event_time_s,
        "channel": "",
        "values": lists(run.world.contents),
        "size_bytes": _size_bytes(run),
        "lifetime_s": float(run.scenario.events.lifetime_s),
        "target": -1,
        "transmissions": run.ledger.transmissions,
    }


def _subscriptions(world: World) -> Columns:
    if world.wishes is not None:
        return _wishes(world, world.wishes)
    asks = np.flatnonzero(world.people.carries == 0)
    return {
        "subscription": np.arange(len(asks), dtype=np.int32),
        "node": _subscriber_nodes(world)[asks],
        "channel": "",
        "where": [world.where[subscriber] for subscriber in asks],
        "low": lists(world.low[asks]),
        "high": lists(world.high[asks]),
        "from_s": -np.inf,
        "to_s": np.inf,
    }


def _wishes(world: World, wishes: Wishes) -> Columns:
    """The subscriptions of a file."""
    return {
        "subscription": np.arange(len(wishes.node), dtype=np.int32),
        "node": _subscriber_nodes(world)[wishes.node],
        "channel": "",
        "where": list(wishes.where),
        "low": lists(wishes.low),
        "high": lists(wishes.high),
        "from_s": wishes.from_s,
        "to_s": wishes.until_s,
    }


def _deliveries(run: FieldRun) -> Columns:
    return {
        "event": run.ledger.reception_event,
        "node": run.ledger.reception_subscriber + np.int32(len(run.world.sensor_x)),
        "time_s": run.ledger.reception_s.astype(np.float64),
        "hops": None,
        "wanted": run.ledger.reception_wanted,
    }


def _sensors(run: FieldRun) -> Columns:
    return {
        "node": np.arange(len(run.world.sensor_x), dtype=np.int32),
        "cell": None if run.world.ranges is not None else run.world.sensor_cell,
        "community": run.world.communities.of_sensor,
        "sent": run.ledger.sent,
        "received": run.ledger.received,
        "event_pj": run.ledger.event_pj,
        "control_pj": run.ledger.control_pj,
        **dict(zip(STEADY, [*run.ledger.steady_event_pj, *run.ledger.steady_control_pj], strict=True)),
        "died_s": np.where(run.ledger.died < 0, np.nan, run.ledger.died),
    }


def _transfers(run: FieldRun, transfers: Transfers) -> Columns:
    time_s = transfers.time_s.astype(np.float64)
    return {
        "start_s": time_s,
        "end_s": time_s,
        "event": transfers.event,
        "sender": transfers.sender,
        "receiver": transfers.receiver,
        "addressee": transfers.addressee,
        "bytes": _size_bytes(run),
        "kind": words(transfers.kind, TRANSFERS),
        "outcome": words(transfers.outcome, OUTCOMES),
        "stored": transfers.stored,
        "moved": transfers.moved,
    }


def _drops(drops: Drops) -> Columns:
    return drops._asdict() | {
        "time_s": drops.time_s.astype(np.float64),
        "reason": words(drops.reason, DROPS),
    }


def _watched(watched: Watched, kinds: tuple[str, ...]) -> dict[str, Columns]:
    control, spent, sessions, heads = (
        {name: values.astype(np.float64) if name.endswith("_s") else values for name, values in rows._asdict().items()}
        for rows in (watched.control, watched.spent, watched.sessions, watched.heads)
    )
    control["kind"] = words(watched.control.kind, kinds)
    return {"control": control, "control_energy": spent, "sessions": sessions, "heads": heads}


# --- Reading


def parts_from(scenario: FieldScenario, said: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """The world, the ledger and the full log that were written as these tables."""
    return {
        "world": _world_from(scenario, said, tables),
        "ledger": _ledger_from(said["counts"], tables),
        "full": _full_log_from(said["counts"], tables) if "transfers" in tables else None,
    }


def _world_from(scenario: FieldScenario, said: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> World:
    """The world of a run: what was drawn comes from the tables, what follows from it is worked out again."""
    nodes, events, attributes = tables["nodes"], tables["events"], tuple(said["attributes"])
    place = scenario.field
    grid = Grid(place.width_m, place.height_m, place.columns, place.rows)
    sensors = slice(0, len(tables["sensors"]))
    people = _people_from(tuple(nodes["name"].to_pylist()[sensors.stop :]), tables.get("groups"))
    tracks = _tracks_from(tables["tracks"], len(tables["sensors"]), len(people.names))
    born_s, values = array(events, "time_s", np.float64), matrix(events, "values", len(attributes))
    asked = tables["subscriptions"]
    if scenario.subscriptions.file is not None:
        wishes = _wishes_from(asked, sensors.stop, len(attributes))
        wanted = with_wishes(wishes, people, values, born_s, float(scenario.events.lifetime_s))._asdict()
    else:
        low, high, where = _interests_from(asked, sensors.stop, len(people.names), len(attributes))
        wanted = {"event_values": values, "low": low, "high": high, "where": where, "people": people}
    x_m, y_m = (array(nodes, name, np.float64)[sensors] for name in ("x_m", "y_m"))
    battery_j, ranges, own = equipment_from(scenario, len(x_m), tables.get("equipment"))
    return World(
        grid=grid,
        sensor_names=tuple(nodes["name"].to_pylist()[sensors]),
        sensor_x=x_m,
        sensor_y=y_m,
        battery_j=battery_j,
        tracks=tracks,
        event_sensor=array(events, "node", np.int32),
        event_time_s=born_s,
        attribute_names=attributes,
        texts=tuple((name, tuple(texts)) for name, texts in said.get("texts", {}).items()),
        **wanted,
        **own,
        **who_hears_whom(grid, (x_m, y_m), ranges, tracks, scenario.duration_s, people.turning_m),
    )


def _people_from(names: tuple[str, ...], table: pa.Table | None) -> People:
    if table is None:
        return People.alike(len(names))._replace(names=names)
    group = table["group"].to_pylist()
    groups = tuple(dict.fromkeys(group))
    return People(
        names,
        groups,
        np.array([groups.index(name) for name in group], np.int32),
        array(table, "turning_m", np.float64),
        array(table, "carries", np.bool_).astype(np.uint8),
    )


def _interests_from(
    table: pa.Table, sensors: int, subscribers: int, attributes: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], tuple[str, ...]]:
    """What each subscriber wants; those without a row ask for nothing."""
    shape, asks = (subscribers, attributes), array(table, "node", np.int32) - sensors
    low, high, where = np.full(shape, np.inf), np.full(shape, -np.inf), [""] * subscribers
    low[asks], high[asks] = matrix(table, "low", attributes), matrix(table, "high", attributes)
    for subscriber, text in zip(asks.tolist(), table["where"].to_pylist(), strict=True):
        where[subscriber] = text
    return low, high, tuple(where)


def _wishes_from(table: pa.Table, sensors: int, attributes: int) -> Wishes:
    """The subscriptions of a file, as they were written."""
    return Wishes(
        array(table, "node", np.int32) - np.int32(sensors),
        tuple(table["where"].to_pylist()),
        matrix(table, "low", attributes),
        matrix(table, "high", attributes),
        array(table, "from_s", np.float64),
        array(table, "to_s", np.float64),
    )


def _tracks_from(table: pa.Table, sensors: int, subscribers: int) -> Tracks:
    points = np.bincount(array(table, "node", np.int32) - sensors, minlength=subscribers)
    start = np.concatenate([[0], np.cumsum(points)]).astype(np.int64)
    return Tracks(start, *(array(table, name, np.float64) for name in ("time_s", "x_m", "y_m")))


def _ledger_from(counts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Ledger:
    deliveries, sensors = tables["deliveries"], tables["sensors"]
    steady = np.array([array(sensors, name, np.int64) for name in STEADY])
    return Ledger(
        reception_event=array(deliveries, "event", np.int32),
        reception_subscriber=array(deliveries, "node", np.int32) - np.int32(len(sensors)),
        reception_s=array(deliveries, "time_s", np.int32),
        reception_wanted=array(deliveries, "wanted", np.bool_),
        transmissions=array(tables["events"], "transmissions", np.int64),
        sent=array(sensors, "sent", np.int64),
        received=array(sensors, "received", np.int64),
        event_pj=array(sensors, "event_pj", np.int64),
        control_pj=array(sensors, "control_pj", np.int64),
        steady_event_pj=steady[:2],
        steady_control_pj=steady[2:],
        died=np.nan_to_num(array(sensors, "died_s", np.float64), nan=-1).astype(np.int32),
        **powers_from(tables),
        **counts,
    )


def _full_log_from(counts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> FullLog:
    transfers, drops = tables["transfers"], tables["drops"]
    return FullLog(
        Transfers(
            time_s=array(transfers, "start_s", np.int32),
            event=array(transfers, "event", np.int32),
            sender=array(transfers, "sender", np.int32),
            receiver=array(transfers, "receiver", np.int32),
            addressee=array(transfers, "addressee", np.int32),
            kind=codes(transfers, "kind", TRANSFERS),
            outcome=codes(transfers, "outcome", OUTCOMES),
            stored=array(transfers, "stored", np.bool_),
            moved=array(transfers, "moved", np.bool_),
        ),
        Drops(
            time_s=array(drops, "time_s", np.int32),
            event=array(drops, "event", np.int32),
            node=array(drops, "node", np.int32),
            addressee=array(drops, "addressee", np.int32),
            reason=codes(drops, "reason", DROPS),
            held=array(drops, "held", np.bool_),
            after=array(drops, "after", np.int64),
        ),
        _watched_from(tables, tuple(counts["control_messages"])) if FULL_FIELD_TABLES.keys() <= tables.keys() else None,
    )


def _watched_from(tables: Mapping[str, pa.Table], kinds: tuple[str, ...]) -> Watched:
    control, spent, sessions, heads = (tables[name] for name in ("control", "control_energy", "sessions", "heads"))
    return Watched(
        Control(
            array(control, "time_s", np.int32),
            codes(control, "kind", kinds),
            array(control, "messages", np.int64),
        ),
        Sessions(*(array(sessions, name, np.int32) for name in Sessions._fields)),
        Heads(*(array(heads, name, np.int32) for name in Heads._fields)),
        Spent(array(spent, "time_s", np.int32), array(spent, "node", np.int32), array(spent, "control_pj", np.int64)),
    )


_OPTIONAL = GROUPED_FIELD_TABLES | EQUIPPED_FIELD_TABLES | HARVESTING_FIELD_TABLES | FULL_FIELD_TABLES
FORM = TableForm(FIELD_TABLES, columns_of, parts_from, _OPTIONAL)
