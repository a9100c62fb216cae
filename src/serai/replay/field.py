"""A run in a field, as its page gets it."""

from __future__ import annotations

from typing import Any

import numpy as np

from serai.core.energy import receive_pj
from serai.core.interested import who_wants
from serai.field.engine.state import DROPS
from serai.field.log import Drops, FieldRun, FullLog, Transfers, Watched
from serai.field.losses import expiry_s, losses_of, lost_pairs
from serai.field.metrics import radio_of
from serai.field.naps import dead_times
from serai.log.losses import LOST
from serai.replay.sheet import (
    EVERYTHING,
    Change,
    Kept,
    Links,
    Numbers,
    Sheet,
    Streams,
    in_bits,
    in_steps,
    links_of,
    of_losses,
    per_second,
)
from serai.replay.turns import Log, in_turns
from serai.world.mobility import Tracks

_PJ_PER_J = 1e12
STORED, REFUSED, MOVED, FIRST = 4, 8, 16, 32  # beside the kind of a transfer, in the same byte
_RISING = (
    *("birthMs", "strayEvent", "dropEvent", "linkFrom", "lostEvent"),
    *("controlAt", "controlNode", "sessionFrom", "sessionTo"),
)


def field_sheet(run: FieldRun, kept: Kept = EVERYTHING) -> Sheet:
    """The head and the columns of a run with a full log, or of what is kept of it."""
    full = _full_log(run)
    world, sensors = run.world, len(run.world.sensor_x)
    seconds = run.scenario.duration_s if run.ledger.ended_s is None else int(run.ledger.ended_s) + 1
    links = _links(run)
    values, steps = in_steps(world.contents)
    columns: dict[str, Numbers] = {
        "x": world.sensor_x,
        "y": world.sensor_y,
        "community": world.communities.of_sensor,
        **_equipment(run),
        **({"cell": world.sensor_cell} if world.ranges is None else {"range": world.ranges.sensors_m}),
        "trackNode": np.repeat(np.arange(len(world.low)), np.diff(world.tracks.start)) + sensors,
        "trackT": world.tracks.time_s,
        "trackX": world.tracks.x_m,
        "trackY": world.tracks.y_m,
        "birthMs": _birth_ms(run),
        "lives": expiry_s(run) - np.ceil(world.event_time_s).astype(np.int64),
        "birthNode": world.event_sensor,
        "values": values,
        "wants": in_bits(who_wants(world.event_values, world.low, world.high) & run.born[:, None]),
        "unborn": np.flatnonzero(~run.born),
        "linkFrom": links.source,
        "linkTo": links.target,
        **_log_columns(full, seconds, sensors, kept),
        **_turns(run, links, kept),
        **of_losses(losses_of(run), kept),
        **_watched(full.watched),
    }
    columns["lostNode"] = columns["lostNode"] + sensors
    if kept is not EVERYTHING:
        columns |= _counted(run, seconds)
    return Sheet(_head(run, seconds) | {"steps": steps}, columns, _RISING)


def _equipment(run: FieldRun) -> dict[str, Numbers]:
    """What sensors have of their own, where they differ."""
    world, usual = run.world, run.scenario.sensors
    own: dict[str, Numbers] = {}
    if (world.battery_j != usual.battery_j).any():
        own["battery"] = world.battery_j
    if world.queue is not None:
        own["capacity"] = world.queue
    if run.world.harvest is not None:
        counted = {"harvested": "harvested_pj", "wasted": "wasted_pj", "listened": "idle_pj"}
        own |= {name: getattr(run.ledger, counts) / _PJ_PER_J for name, counts in counted.items()}
        dead = dead_times(run.ledger)
        own |= {"deadNode": dead.node, "deadFrom": dead.since_s, "deadTo": dead.until_s}
    elif run.ledger.idle_pj is not None:
        own |= {"idle": world.idle_pj.astype(np.float64), "idled": run.ledger.idle_pj.astype(np.float64)}
    return own


def _watched(watched: Watched | None) -> dict[str, Numbers]:
    """What control messages took of whom, who was in session, and who was head; nothing where nobody knows."""
    if watched is None:
        return {}
    sessions, heads, spent = watched.sessions, watched.heads, watched.spent
    return {
        "controlAt": spent.time_s,
        "controlNode": spent.node,
        "controlMicro": np.rint(spent.control_pj / 1e6).astype(np.int64),
        "sessionNode": sessions.subscriber,
        "sessionWith": sessions.member,
        "sessionFrom": sessions.start_s,
        "sessionTo": sessions.end_s,
        "headAt": heads.time_s,
        "headOf": heads.member,
        "headNode": heads.node,
    }


def _head(run: FieldRun, seconds: int) -> dict[str, Any]:
    place, radio, ranges = run.scenario.field, run.scenario.radio, run.world.ranges
    by_cells = {"cells": [place.columns, place.rows]}
    return {
        **(by_cells if ranges is None else {"range": ranges.subscribers_m}),
        "end": seconds,
        "sensors": len(run.world.sensor_x),
        "names": [*run.world.sensor_names, *(f"p{number}" for number in range(len(run.world.low)))],
        "where": list(run.world.where),
        "width": place.width_m,
        "height": place.height_m,
        "queue": run.scenario.sensors.queue,
        "battery": run.scenario.sensors.battery_j,
        "bits": float(run.scenario.events.size_bits),
        "silent": bool(run.scenario.protocol.silent_while_pausing),
        "radio": [radio.electronics_j_per_bit, radio.free_space_j_per_bit_m2, radio.multipath_j_per_bit_m4],
        "receiveCosts": radio.receive_costs,
        "controlCosts": radio.control_costs,
        "reasons": list(DROPS),
        "lost": list(LOST),
    }


def field_streams(run: FieldRun) -> Streams:
    """The whole log of a run."""
    full, world = _full_log(run), run.world
    return Streams(
        nodes=len(world.sensor_x) + len(world.low),
        events=len(world.event_sensor),
        end_s=run.scenario.duration_s if run.ledger.ended_s is None else int(run.ledger.ended_s) + 1,
        row_s=full.transfers.time_s,
        link=_links(run).of_row,
        event=full.transfers.event,
        drop_s=full.drops.time_s,
        drop_event=full.drops.event,
        changes=lambda: _changes(run),
    )


def _changes(run: FieldRun) -> list[Change]:
    """What changes queues and batteries: births, drops, and both ends of transfers."""
    full, world = _full_log(run), run.world
    transfers, drops = full.transfers, full.drops
    born_s = np.ceil(world.event_time_s)
    at_birth = ~drops.held & (drops.addressee < 0) & (drops.node == world.event_sensor[drops.event])
    refused = drops.event[at_birth & (drops.time_s == born_s[drops.event])]
    held = run.born & (born_s < run.scenario.duration_s)
    held[refused] = False
    heard = (transfers.receiver < len(world.sensor_x)) & (transfers.outcome == 0)
    return [
        Change(born_s, world.event_sensor, held.astype(np.int64), None),
        Change(drops.time_s, drops.node, -drops.held.astype(np.int64), None),
        Change(transfers.time_s, transfers.receiver, transfers.stored, heard * receive_pj(radio_of(run), _bits(run))),
        Change(transfers.time_s, transfers.sender, -transfers.moved.astype(np.int64), _sent_pj(run)),
    ]


def _sent_pj(run: FieldRun) -> Numbers:
    """What each transfer cost its sender, in picojoules: `serai.core.energy` for many at a time."""
    world, rows, radio = run.world, _full_log(run).transfers, radio_of(run)
    sensors = len(world.sensor_x)
    x, y = (np.append(column, np.zeros(len(world.low))) for column in (world.sensor_x, world.sensor_y))
    to_x, to_y = x[rows.receiver], y[rows.receiver]
    walking = np.flatnonzero(rows.receiver >= sensors)
    to_x[walking], to_y[walking] = _places(world.tracks, rows.receiver[walking] - sensors, rows.time_s[walking])
    square = np.sqrt((x[rows.sender] - to_x) ** 2 + (y[rows.sender] - to_y) ** 2) ** 2
    amplifier = np.maximum(radio.free_space * square, radio.multipath * square * square)
    spent: Numbers = np.where(rows.sender < sensors, np.rint(_bits(run) * (radio.electronics + amplifier) * 1e12), 0.0)
    return spent


def _places(tracks: Tracks, subscriber: Numbers, time_s: Numbers) -> tuple[Numbers, Numbers]:
    """Where subscribers are: `serai.world.mobility.position_at` for many at a time."""
    late = max(float(tracks.time_s.max(initial=0)), float(time_s.max(initial=0))) + 1
    walker = np.repeat(np.arange(len(tracks.start) - 1), np.diff(tracks.start))
    last = np.searchsorted(walker * late + tracks.time_s, subscriber * late + time_s, side="right") - 1
    following = np.minimum(last + 1, tracks.start[subscriber + 1] - 1)
    span = tracks.time_s[following] - tracks.time_s[last]
    share = np.clip((time_s - tracks.time_s[last]) / np.where(span > 0, span, 1), 0, 1) * (span > 0)

    def between(at: Numbers) -> Numbers:
        low, high = np.minimum(at[last], at[following]), np.maximum(at[last], at[following])
        inside: Numbers = np.clip(at[last] + (at[following] - at[last]) * share, low, high)
        return inside

    return between(tracks.x_m), between(tracks.y_m)


def _bits(run: FieldRun) -> float:
    return run.scenario.events.size_bits


def _full_log(run: FieldRun) -> FullLog:
    assert run.full is not None  # the caller sees to it
    return run.full


def _links(run: FieldRun) -> Links:
    rows = _full_log(run).transfers
    return links_of(rows.sender, rows.receiver, len(run.world.sensor_x) + len(run.world.low))


def _counted(run: FieldRun, seconds: int) -> dict[str, Numbers]:
    """How many pairs were delivered and lost in each second: what the page cannot work out of a part of the log."""
    ledger = run.ledger
    return {
        "deliveredRows": per_second(ledger.reception_s[ledger.reception_wanted], seconds),
        "lostRows": per_second(expiry_s(run)[lost_pairs(run)[0]], seconds),
    }


def _first_receptions(run: FieldRun) -> Numbers:
    """Which transfers were the first to bring an event to a subscriber."""
    rows, sensors = _full_log(run).transfers, len(run.world.sensor_x)
    handed = np.flatnonzero(rows.receiver >= sensors)
    pair = rows.event[handed].astype(np.int64) * len(run.world.low) + rows.receiver[handed] - sensors
    first = np.zeros(len(rows.event), np.bool_)
    first[handed[np.unique(pair, return_index=True)[1]]] = True
    return first


def _birth_ms(run: FieldRun) -> Numbers:
    whole: Numbers = np.ceil(run.world.event_time_s * 1000).astype(np.int64)
    return whole


def _turns(run: FieldRun, links: Links, kept: Kept) -> dict[str, Numbers]:
    """Transfers, as their senders take turns."""
    rows = Transfers._make(column[kept.rows] for column in _full_log(run).transfers)
    flags = rows.kind + STORED * rows.stored + REFUSED * rows.outcome + MOVED * rows.moved
    if kept is not EVERYTHING:
        flags = flags + FIRST * _first_receptions(run)[kept.rows]
    born_s = -(-_birth_ms(run) // 1000)
    log = Log(links.of_row[kept.rows], rows.event, flags, rows.time_s, run.world.event_sensor, born_s)
    return in_turns(links, log)


def _log_columns(full: FullLog, seconds: int, sensors: int, kept: Kept) -> dict[str, Numbers]:
    """When transfers were, and drops; times are counts of rows in each second."""
    drops = Drops._make(column[kept.drops] for column in full.drops)
    return {
        "rows": per_second(full.transfers.time_s[kept.rows], seconds),
        "dropRows": per_second(drops.time_s, seconds),
        "dropNode": drops.node,
        "dropEvent": drops.event,
        "dropFor": np.where(drops.addressee < 0, 0, drops.addressee - sensors + 1),
        "dropWhy": drops.reason,
        "dropHeld": drops.held,
    }
