"""Pictures of other networks than fields: how full stores are, who carries the load, what ways messages take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serai.kinds import protocol_label
from serai.log.svg import AMOUNTS, Drawing, amount, draw_amounts, ink, width_of
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.losses import stays_of
from serai.overlay.log import OverlayRun
from serai.report.figures import Picture
from serai.report.maps import discs, typical_life
from serai.report.panel import open_panel
from serai.report.wording import in_bytes

Numbers = NDArray[Any]

_SIDE: Final = 360.0
_TIMES: Final = 60
_MOST_ROWS: Final = 50
_SCALE: Final = 7 * AMOUNTS + 24
_MOST_LINKS: Final = 6_000
_QUERY, _EVENT, _TOLD = "p4", "ink", "p0"


# --- Opportunistic networks: stores


def store_map(run: OpportunisticRun) -> Picture | None:
    """How full every store is over time, the fullest on top; None without a full log."""
    if not run.full_log:
        return None
    levels = store_levels(run)
    order = np.argsort(-levels.mean(axis=1), kind="stable")
    shown = order[np.unique(np.linspace(0, len(order) - 1, min(len(order), _MOST_ROWS)).astype(np.int64))]
    room = run.scenario.nodes.store_bytes
    top = float(room) if room < 1 << 50 else float(max(levels.max(initial=0), 1))
    high, wide = min(12.0, 300 / max(len(shown), 1)), _SIDE / _TIMES
    drawing = Drawing(_SIDE, 16 + high * len(shown) + 18)
    drawing.text(0, 10, "fullest first")
    most = f"{'full' if room < 1 << 50 else 'the most'}, {in_bytes(top)}"
    draw_amounts(drawing, _SIDE - _SCALE - width_of(most), 10, ("0", most), wide=7)
    for line, node in enumerate(shown.tolist()):
        for place in range(_TIMES):
            share = float(levels[node, place]) / top
            drawing.add(
                "rect",
                x=wide * place,
                y=16 + high * line,
                width=wide + 0.2,
                height=high + 0.2,
                fill=amount(share) if share > 0 else ink("ground"),
            )
    foot, hours = 16 + high * len(shown) + 13, float(run.scenario.duration_s) / 3600
    drawing.text(0, foot, "0 h")
    drawing.text(_SIDE, foot, f"{hours:.3g} h", text_anchor="end")
    fullest, lines = run.names[int(order[0])], "each of" if len(shown) == len(order) else f"{len(shown)} of"
    caption = (
        f"{protocol_label(run.protocol)}: how full stores are, a line for {lines} {len(order)} nodes, by square root;"
        f" the fullest over the run is {fullest}, {in_bytes(float(levels[order[0]].mean()))} on average."
    )
    return Picture(f"stores-{run.protocol}", drawing.svg(caption), caption)


def store_levels(run: OpportunisticRun) -> Numbers:
    """Bytes in each store at the ends of so many equal parts of the run: [node, time]."""
    stays, duration_s = stays_of(run), float(run.scenario.duration_s)
    size = run.world.bundles.size_bytes[stays.bundle]
    ends = duration_s / _TIMES * np.arange(1, _TIMES + 1)
    levels = np.zeros((run.world.nodes, _TIMES + 1))
    for time_s, change in ((stays.begin_s, size), (np.where(stays.end_s < duration_s, stays.end_s, np.inf), -size)):
        np.add.at(levels, (stays.node, np.searchsorted(ends, time_s)), change)
    return np.cumsum(levels[:, :_TIMES], axis=1)


def spread(run: OpportunisticRun, colour: str) -> Picture | None:
    """In how many stores a typical bundle lies from its birth on; None without a full log."""
    life = typical_life(run)
    if not run.full_log or life is None:
        return None
    stays, born_s = stays_of(run), float(run.world.bundles.created_s[life.event])
    mine = stays.bundle == life.event
    end_s = min(born_s + life.lifetime_s, float(run.scenario.duration_s))
    times = np.concatenate([stays.begin_s[mine], stays.end_s[mine]])
    change = np.repeat([1, -1], mine.sum())[times <= end_s]
    minutes, order = (times[times <= end_s] - born_s) / 60, np.argsort(times[times <= end_s], kind="stable")
    holders = np.cumsum(change[order])
    most = int(holders.max(initial=1))
    panel = open_panel([], ((0.0, (end_s - born_s) / 60), (0.0, most * 1.05)), ("min after birth", "stores it lies in"))
    way, height = [panel.point(0.0, 0.0)], 0.0
    for minute, count in zip(minutes[order].tolist(), holders.tolist(), strict=True):
        way += [panel.point(minute, height), panel.point(minute, count)]
        height = count
    way.append(panel.point((end_s - born_s) / 60, height))
    panel.drawing.line(way, stroke=ink(colour), stroke_width=1.6)
    caption = (
        f"How a typical bundle spreads (number {life.event}, the same as in its life below): it lies in up to {most} of"
        f" {run.world.nodes} stores."
    )
    return Picture("spread", panel.drawing.svg(caption), caption)


# --- Overlays: load, and the ways of messages


def most_load(runs: Sequence[OverlayRun]) -> int | None:
    """What the busiest node of all these runs sent and received; None where nobody knows the places."""
    known = [run for run in runs if len(run.network.names) and np.isfinite(run.network.x_m).all()]
    return max((int(_load(run).max(initial=1)) for run in known), default=None)


def _load(run: OverlayRun) -> Numbers:
    load: Numbers = (run.outcome.load.sent + run.outcome.load.received).sum(axis=0)
    return load


def load_map(run: OverlayRun, colour: str, most: int | None) -> Picture | None:
    """What each node sent and received, the busiest ringed; None where nobody knows the places."""
    ground = _network(run)
    if ground is None:
        return None
    drawing, places = ground
    load = _load(run)
    busiest = int(load.argmax())
    titles = [f"{name}: {count:,} messages" for name, count in zip(run.network.names, load.tolist(), strict=True)]
    drawing.text(0, 11, protocol_label(run.protocol), font_weight=650, style=f"fill:{ink(colour)}")
    discs(drawing, places, load / (most or 1), titles, busiest, f"{load[busiest]:,}")
    mean = max(float(load.mean()), 1e-9)
    caption = (
        f"{protocol_label(run.protocol)}: messages that each node sent and received, {mean:,.0f} on average; the"
        f" busiest, {run.network.names[busiest]}, has {load[busiest] / mean:.1f} times that."
    )
    return Picture(f"load-{run.protocol}", drawing.svg(caption), caption)


def query_way(run: OverlayRun) -> Picture | None:
    """The way of a typical query: the one whose number of messages is nearest to the mean."""
    ground, messages = _network(run), run.outcome.queries
    count = np.bincount(messages.query[messages.back >= 0], minlength=len(run.network.low))
    if ground is None or not len(count):
        return None
    chosen = int(np.abs(count - count.mean()).argmin())
    drawing, places = ground
    rows = np.flatnonzero(messages.query == chosen)
    for row in rows[messages.back[rows] >= 0].tolist():
        ends = [places[messages.node[messages.back[row]]], places[messages.node[row]]]
        drawing.line(ends, stroke=ink(_QUERY), stroke_width=1.6)
    stored = np.unique(messages.node[rows[messages.stays[rows]]])
    for node in stored.tolist():
        x, y = places[node]
        drawing.add("rect", x=x - 3, y=y - 3, width=6, height=6, fill=ink(_QUERY))
    _start(drawing, places[run.network.subscriber[chosen]])
    caption = (
        f"{protocol_label(run.protocol)}: a typical query (number {chosen}: {_short(run.network.where[chosen])})."
        f" {count[chosen]:,} messages bring it from its subscriber (ring) to the {len(stored)} nodes that store it"
        " (squares)."
    )
    return Picture(f"query-{run.protocol}", drawing.svg(caption), caption)


def _short(where: str) -> str:
    """A condition whose numbers have four digits at most."""
    return re.sub(r"-?\d+\.\d+(?:e-?\d+)?", lambda found: f"{float(found[0]):.4g}", where)


def event_way(run: OverlayRun) -> Picture | None:
    """The way of a typical event: of those that somebody was told of, the one nearest to the mean number of hops."""
    ground, full = _network(run), run.outcome.full
    if ground is None or full is None or not (full.hops.kind == 1).any():
        return None
    told = np.unique(full.hops.event[full.hops.kind == 1])
    hops = np.bincount(full.hops.event, minlength=len(run.network.publisher))[told]
    chosen = int(told[np.abs(hops - hops.mean()).argmin()])
    drawing, places = ground
    rows = np.flatnonzero(full.hops.event == chosen)
    for row in rows[np.argsort(-full.hops.kind[rows], kind="stable")].tolist():
        ends = [places[full.hops.sender[row]], places[full.hops.receiver[row]]]
        on_its_way = full.hops.kind[row] == 0
        colour, width = (_EVENT, 1.4) if on_its_way else (_TOLD, 2.4)
        drawing.line(ends, stroke=ink(colour), stroke_width=width, stroke_opacity=1.0 if on_its_way else 0.7)
    who = np.unique(full.hops.addressee[rows[full.hops.kind[rows] == 1]])
    for node in who.tolist():
        x, y = places[node]
        drawing.circle(x, y, 3.4, run.network.names[node], fill=ink(_TOLD))
    _start(drawing, places[run.network.publisher[chosen]])
    sent = int((full.hops.kind[rows] == 0).sum())
    caption = (
        f"{protocol_label(run.protocol)}: a typical event (number {chosen}). {sent} hops bring it from its publisher"
        f" (ring) to its rendezvous nodes, thin; {len(rows) - sent} hops of notifications go from there to those who"
        " asked (dots), wide."
    )
    return Picture(f"event-{run.protocol}", drawing.svg(caption), caption)


def _network(run: OverlayRun) -> tuple[Drawing, list[tuple[float, float]]] | None:
    """The nodes' places and the links between them, faint."""
    network = run.network
    if not len(network.names) or not np.isfinite(network.x_m).all():
        return None
    place = run.scenario.field
    scale = _SIDE / max(place.width_m, place.height_m)
    height = place.height_m * scale
    places = [
        (x * scale, 18 + height - y * scale) for x, y in zip(network.x_m.tolist(), network.y_m.tolist(), strict=True)
    ]
    drawing = Drawing(place.width_m * scale, height + 18)
    drawing.add("rect", x=0, y=18, width=drawing.width, height=height, fill=ink("ground"))
    graph = network.graph
    owner = np.repeat(np.arange(graph.nodes), np.diff(graph.start))
    once = np.flatnonzero(owner < graph.neighbors)[:_MOST_LINKS]
    way = "".join(
        "M{:.1f} {:.1f}L{:.1f} {:.1f}".format(*places[a], *places[b])
        for a, b in zip(owner[once].tolist(), graph.neighbors[once].tolist(), strict=True)
    )
    drawing.add("path", d=way, stroke=ink("line"), stroke_width=0.6, fill="none")
    return drawing, places


def _start(drawing: Drawing, place: tuple[float, float]) -> None:
    drawing.circle(*place, 7, fill="none", stroke=ink("ink"), stroke_width=1.8)
