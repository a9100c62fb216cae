"""A run of an opportunistic network, as its page gets it. Times are whole milliseconds there, in the log's order."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from serai.log.layout import SIDE_M, lay_out
from serai.log.losses import LOST
from serai.opportunistic.engine.state import DROPS
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.losses import losses_of
from serai.opportunistic.pairs import delivered_pairs, wanted_pairs
from serai.opportunistic.tables import OUTCOMES
from serai.replay.sheet import EVERYTHING, Change, Kept, Numbers, Sheet, Streams, in_bits, links_of, of_losses
from serai.replay.turns import Log, in_turns

STORED, REFUSED, MOVED = 4, 8, 16
_RISING: Final = (
    "rowMs",
    "dropMs",
    "bornMs",
    "gotMs",
    "contactMs",
    "trackMs",
    "strayEvent",
    "dropEvent",
    "gotEvent",
    "lostEvent",
)
_MOST_CHANNELS: Final = 4  # of a node, in words


def contacts_sheet(run: OpportunisticRun, kept: Kept = EVERYTHING) -> Sheet:
    """The head and the columns of a run with a full log, or of what is kept of it."""
    places, head = _places(run)
    columns = places | _contacts(run) | _log(run, kept) | _events(run) | _deliveries(run, kept)
    columns |= of_losses(losses_of(run), kept)
    return Sheet(_head(run) | head, columns, _RISING)


def contacts_streams(run: OpportunisticRun) -> Streams:
    """The whole log of a run, its times as the page has them."""
    rows, drops = run.outcome.transfer_log, run.outcome.drop_log
    return Streams(
        nodes=run.world.nodes,
        events=len(run.world.bundles.source),
        end_s=float(run.scenario.duration_s),
        row_s=_ms(rows.end_s) / 1000,
        link=links_of(rows.sender, rows.receiver, run.world.nodes).of_row,
        event=rows.bundle,
        drop_s=_ms(drops.time_s) / 1000,
        drop_event=drops.bundle,
        changes=lambda: _changes(run),
    )


def _changes(run: OpportunisticRun) -> list[Change]:
    """What changes stores, and how many transfers nodes have begun."""
    rows, drops, bundles = run.outcome.transfer_log, run.outcome.drop_log, run.world.bundles
    born_ms, size = _ms(bundles.created_s), bundles.size_bytes.astype(np.int64)
    refused = ~drops.held & (drops.node == bundles.source[drops.bundle]) & (_ms(drops.time_s) == born_ms[drops.bundle])
    held = born_ms <= _ms(np.array([run.scenario.duration_s]))
    held[drops.bundle[refused]] = False
    end_s = _ms(rows.end_s) / 1000
    return [
        Change(born_ms / 1000, bundles.source, held * size, None),
        Change(_ms(drops.time_s) / 1000, drops.node, -(drops.held * size[drops.bundle]), None),
        Change(end_s, rows.receiver, rows.stored * size[rows.bundle], None),
        Change(end_s, rows.sender, -(rows.moved * size[rows.bundle]), 1),
    ]


def _ms(time_s: Numbers) -> Numbers:
    whole: Numbers = np.rint(time_s * 1000).astype(np.int64)
    return whole


def _head(run: OpportunisticRun) -> dict[str, Any]:
    capacity = run.scenario.nodes.store_bytes
    return {
        "end": float(run.scenario.duration_s),
        "names": list(run.names),
        "asks": _asks(run),
        "capacity": capacity if capacity < 1 << 50 else None,
        "range": run.scenario.radio.range_m if run.tracks is not None else None,
        "channels": list(run.published.channels),
        "outcomes": list(OUTCOMES),
        "reasons": list(DROPS),
        "lost": list(LOST),
    }


def _asks(run: OpportunisticRun) -> list[str]:
    """What each node asks for, in words."""
    given, channels = run.world.subscriptions, run.published.channels
    words = []
    for node in range(run.world.nodes):
        if len(run.wanted.where) and node in run.wanted.sinks:
            words.append(run.wanted.where[int(np.searchsorted(run.wanted.sinks, node))])
            continue
        asked = [channels[channel] for channel in np.unique(given.channel[given.node == node])]
        more = len(asked) - _MOST_CHANNELS
        words.append(", ".join(asked[:_MOST_CHANNELS]) + (f" and {more} more" if more > 0 else ""))
    return words


def _places(run: OpportunisticRun) -> tuple[dict[str, Numbers], dict[str, Any]]:
    """Where nodes are: their tracks, or, of a list of contacts, places that show who meets whom."""
    if run.tracks is None:
        x, y = lay_out(run.world.nodes, run.world.contacts.a, run.world.contacts.b)
        return {"x": x.astype(np.float32), "y": y.astype(np.float32)}, {
            "width": SIDE_M,
            "height": SIDE_M,
            "laidOut": True,
        }
    tracks = run.tracks
    known = np.isfinite(tracks.x_m)
    left, low = float(tracks.x_m[known].min()), float(tracks.y_m[known].min())
    right, high = float(tracks.x_m[known].max()), float(tracks.y_m[known].max())
    if run.scenario.contacts.source == "movement":
        left, low, right, high = 0.0, 0.0, run.scenario.movement.width_m, run.scenario.movement.height_m
    columns = {
        "trackNode": np.repeat(np.arange(run.world.nodes), np.diff(tracks.start)),
        "trackMs": _ms(np.maximum(tracks.time_s, 0.0)),
        "trackX": (tracks.x_m - left).astype(np.float32),
        "trackY": (tracks.y_m - low).astype(np.float32),
    }
    return columns, {"width": max(right - left, 1.0), "height": max(high - low, 1.0), "laidOut": False}


def _contacts(run: OpportunisticRun) -> dict[str, Numbers]:
    contacts = run.world.contacts
    up, down = _ms(contacts.up_s), _ms(np.minimum(contacts.down_s, run.scenario.duration_s))
    return {"contactA": contacts.a, "contactB": contacts.b, "contactMs": up, "contactLength": np.maximum(down - up, 0)}


def _log(run: OpportunisticRun, kept: Kept) -> dict[str, Numbers]:
    rows, drops = run.outcome.transfer_log, run.outcome.drop_log[kept.drops]
    links = links_of(rows.sender, rows.receiver, run.world.nodes)
    rows = rows[kept.rows]
    end, bundles = _ms(rows.end_s), run.world.bundles
    flags = STORED * rows.stored + REFUSED * (rows.outcome > 0) + MOVED * rows.moved
    log = Log(links.of_row[kept.rows], rows.bundle, flags, end, bundles.source, _ms(bundles.created_s))
    return {
        "rowMs": end,
        "rowLength": end - _ms(rows.start_s),
        "linkFrom": links.source,
        "linkTo": links.target,
        **in_turns(links, log),
        "outcome": rows.outcome,
        "dropMs": _ms(drops.time_s),
        "dropNode": drops.node,
        "dropEvent": drops.bundle,
        "dropWhy": drops.reason,
        "dropHeld": drops.held,
    }


def _events(run: OpportunisticRun) -> dict[str, Numbers]:
    bundles, wanted = run.world.bundles, wanted_pairs(run)
    wants = np.zeros((len(bundles.source), run.world.nodes), np.bool_)
    wants[wanted.bundle, wanted.node] = True
    return {
        "bornMs": _ms(bundles.created_s),
        "birthNode": bundles.source,
        "size": bundles.size_bytes,
        "channel": bundles.channel,
        "lifetime": bundles.lifetime_s,
        "wants": in_bits(wants),
    }


def _deliveries(run: OpportunisticRun, kept: Kept) -> dict[str, Numbers]:
    """Every delivery, and the transfer that brought it; one that was carried for others before has none (0)."""
    got, rows = delivered_pairs(run), run.outcome.transfer_log[kept.rows]
    time_s = run.world.bundles.created_s[got.bundle] + got.delay_s
    came = np.flatnonzero(rows.outcome == 0)
    key = rows.bundle[came].astype(np.int64) * run.world.nodes + rows.receiver[came]
    order = np.argsort(key, kind="stable")
    wanted = got.bundle.astype(np.int64) * run.world.nodes + got.node
    place = np.searchsorted(key[order], wanted)
    row = came[order][np.minimum(place, len(order) - 1)] if len(order) else np.zeros(len(wanted), np.int64)
    brought = (
        (place < len(order)) & (_ms(rows.end_s[row]) == _ms(time_s)) if len(order) else np.zeros(len(wanted), bool)
    )
    return {
        "gotMs": _ms(time_s),
        "gotEvent": got.bundle,
        "gotNode": got.node,
        "gotRow": np.where(brought, row + 1, 0),
    }
