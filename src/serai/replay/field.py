"""A run in a field, as its page gets it."""

from __future__ import annotations

from typing import Any

import numpy as np

from serai.core.interested import who_wants
from serai.field.engine.state import DROPS
from serai.field.log import FieldRun, FullLog
from serai.field.losses import LOST, losses_of
from serai.replay.sheet import Numbers, Sheet, in_bits, links_of, per_second

STORED, REFUSED, MOVED = 4, 8, 16  # beside the kind of a transfer, in the same byte


def field_sheet(run: FieldRun) -> Sheet:
    """The head and the columns of a run with a full log."""
    full = run.full
    assert full is not None  # the caller sees to it
    world, sensors = run.world, len(run.world.sensor_x)
    seconds = run.scenario.duration_s if run.ledger.ended_s is None else int(run.ledger.ended_s) + 1
    links = links_of(full.transfers.sender, full.transfers.receiver, sensors + len(world.low))
    lost = losses_of(run)
    assert lost is not None
    columns: dict[str, Numbers] = {
        "x": world.sensor_x,
        "y": world.sensor_y,
        "community": world.communities.of_sensor,
        "cell": world.sensor_cell,
        "trackNode": np.repeat(np.arange(len(world.low)), np.diff(world.tracks.start)) + sensors,
        "trackT": world.tracks.time_s,
        "trackX": world.tracks.x_m,
        "trackY": world.tracks.y_m,
        "birth": world.event_time_s,
        "birthNode": world.event_sensor,
        "values": world.event_values.astype(np.float32).ravel(),
        "wants": in_bits(who_wants(world.event_values, world.low, world.high) & run.born[:, None]),
        "unborn": np.flatnonzero(~run.born),
        "linkFrom": links.source,
        "linkTo": links.target,
        "link": links.of_row,
        **_log_columns(full, seconds, sensors),
        "lostEvent": lost.event,
        "lostNode": lost.subscriber + sensors,
        "lostWhy": lost.why,
        "lostAt": lost.node,
        "lostTime": lost.time_s,
    }
    return Sheet(_head(run, seconds), columns, ("event", "dropEvent", "linkFrom", "link", "lostEvent"))


def _head(run: FieldRun, seconds: int) -> dict[str, Any]:
    place, radio = run.scenario.field, run.scenario.radio
    return {
        "end": seconds,
        "sensors": len(run.world.sensor_x),
        "names": [*run.world.sensor_names, *(f"p{number}" for number in range(len(run.world.low)))],
        "where": list(run.world.where),
        "width": place.width_m,
        "height": place.height_m,
        "cells": [place.columns, place.rows],
        "queue": run.scenario.sensors.queue,
        "battery": run.scenario.sensors.battery_j,
        "lifetime": float(run.scenario.events.lifetime_s),
        "bits": float(run.scenario.events.size_bits),
        "silent": bool(run.scenario.protocol.silent_while_pausing),
        "radio": [radio.electronics_j_per_bit, radio.free_space_j_per_bit_m2, radio.multipath_j_per_bit_m4],
        "receiveCosts": radio.receive_costs,
        "reasons": list(DROPS),
        "lost": list(LOST),
    }


def _log_columns(full: FullLog, seconds: int, sensors: int) -> dict[str, Numbers]:
    """Transfers and drops; times are counts of rows in each second."""
    transfers, drops = full.transfers, full.drops
    flags = STORED * transfers.stored + REFUSED * transfers.outcome + MOVED * transfers.moved
    return {
        "rows": per_second(transfers.time_s, seconds),
        "event": transfers.event,
        "flags": transfers.kind + flags,
        "dropRows": per_second(drops.time_s, seconds),
        "dropNode": drops.node,
        "dropEvent": drops.event,
        "dropFor": np.where(drops.addressee < 0, 0, drops.addressee - sensors + 1),
        "dropWhy": drops.reason,
        "dropHeld": drops.held,
    }
