"""A picture of a run, from the tables that every run has: where nodes stand or go, and where events got through from.

Where nobody knows the places, those who met often stand near each other, and lines show how often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.interested import count_interested
from serai.log.layout import lay_out
from serai.log.svg import Drawing, amount, draw_amounts, ink

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_SIDE: Final = 332.0
_MARGIN: Final = 14.0
_LEGEND: Final = 50.0
_MOST_LINES: Final = 3_000  # more would only blacken the picture
_MOST_POINTS: Final = 20_000  # of all tracks together


class RunPicture(NamedTuple):
    """A picture that notebooks show."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg


class _Frame(NamedTuple):
    """From metres to the drawing."""

    left: float
    top: float
    scale: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        return _MARGIN + float(x - self.left) * self.scale, _MARGIN + float(self.top - y) * self.scale


def draw_run(tables: Mapping[str, pa.Table], title: str) -> RunPicture:
    """Nodes with the share of their events that got through; how they move; links between those that stand."""
    x, y, on_a_map = _places(tables)
    track_x, track_y = (_array(tables["tracks"], name).astype(np.float64) for name in ("x_m", "y_m"))
    wide, high = np.append(x, track_x), np.append(y, track_y)
    wide, high = wide[np.isfinite(wide)], high[np.isfinite(high)]
    span = max(float(np.ptp(wide)), float(np.ptp(high)), 1e-9)
    frame = _Frame(float(wide.min()), float(high.max()), _SIDE / span)
    height = 2 * _MARGIN + float(np.ptp(high)) * frame.scale
    drawing = Drawing(2 * _MARGIN + float(np.ptp(wide)) * frame.scale, height + _LEGEND + (0 if on_a_map else 15))
    drawing.add("rect", x=0, y=0, width=drawing.width, height=height, fill=ink("ground"))
    shown = _standing(tables) if on_a_map else np.ones(len(x), bool)
    _draw_contacts(drawing, frame, tables["contacts"], x, y, shown, on_a_map)
    _draw_tracks(drawing, frame, tables["tracks"])
    _draw_nodes(drawing, frame, tables, x, y)
    _draw_legend(drawing, height, on_a_map)
    return RunPicture(drawing.svg(title))


def _array(table: pa.Table, column: str) -> NDArray[Any]:
    """A column as an array; NaN for what is null."""
    return np.asarray(table[column].to_numpy(zero_copy_only=False))


def _places(tables: Mapping[str, pa.Table]) -> tuple[Floats, Floats, bool]:
    """Where each node stands, or is first seen; if that is known of none, those who met stand near each other."""
    nodes, tracks = tables["nodes"], tables["tracks"]
    x, y = (_array(nodes, name).astype(np.float64) for name in ("x_m", "y_m"))
    seen, first = np.unique(_array(tracks, "node").astype(np.int64), return_index=True)
    for own, name in ((x, "x_m"), (y, "y_m")):
        moving = np.isnan(own[seen])
        own[seen[moving]] = _array(tracks, name).astype(np.float64)[first[moving]]
    if np.isfinite(x).any():
        return x, y, True
    contacts = tables["contacts"]
    return *lay_out(len(x), *(_array(contacts, end).astype(np.int64) for end in ("a", "b"))), False


def _standing(tables: Mapping[str, pa.Table]) -> NDArray[np.bool_]:
    """Which nodes never move."""
    standing = np.ones(len(tables["nodes"]), bool)
    standing[np.unique(_array(tables["tracks"], "node").astype(np.int64))] = False
    return standing


def _draw_contacts(
    drawing: Drawing, frame: _Frame, contacts: pa.Table, x: Floats, y: Floats, shown: NDArray[np.bool_], on_a_map: bool
) -> None:
    """A line between nodes that hear each other; where no places are known the wider, the more often they met."""
    pairs = np.stack([_array(contacts, end).astype(np.int64) for end in ("a", "b")], axis=1)
    pairs, count = np.unique(pairs[shown[pairs].all(axis=1)], axis=0, return_counts=True)
    often = np.argsort(-count, kind="stable")[:_MOST_LINES]
    # Where nearly all have met, lines would hide everything: there they are the fainter, the more there are.
    look = {} if on_a_map else {"stroke_opacity": min(1.0, max(0.1, 4 * len(x) / max(len(often), 1)))}
    for (a, b), times in zip(pairs[often].tolist(), count[often].tolist(), strict=True):
        width = 0.6 if on_a_map else 0.4 + 2.2 * float(np.log1p(times) / np.log1p(count.max()))
        ends = [frame.at(x[a], y[a]), frame.at(x[b], y[b])]
        drawing.line(ends, stroke=ink("line"), stroke_width=width, class_="link", **look)


def _draw_tracks(drawing: Drawing, frame: _Frame, tracks: pa.Table) -> None:
    """The track of each node that moves; the more there are, the fainter."""
    node, x, y = (_array(tracks, name).astype(np.float64) for name in ("node", "x_m", "y_m"))
    ends = np.flatnonzero(np.diff(node)) + 1
    lines = [np.stack(line, axis=1) for line in zip(np.split(x, ends), np.split(y, ends), strict=True)]
    each = max(2, _MOST_POINTS // max(len(lines), 1))
    faint = max(0.08, 0.7 / max(len(lines), 1) ** 0.5)
    for line in lines[:_MOST_LINES]:
        known = [frame.at(*point) for point in line[:each].tolist() if np.isfinite(point).all()]
        if len(known) > 1:
            drawing.line(known, stroke=ink("p1"), stroke_width=0.8, stroke_opacity=faint, class_="track")


def _draw_nodes(drawing: Drawing, frame: _Frame, tables: Mapping[str, pa.Table], x: Floats, y: Floats) -> None:
    """Subscribers as triangles, publishers as dots of the colour of what got through, others hollow."""
    share = share_delivered(tables)
    asks = np.zeros(len(x), bool)
    asks[np.unique(_array(tables["subscriptions"], "node").astype(np.int64))] = True
    r = min(max((1600 / max(len(x), 1)) ** 0.5, 1.4), 4.5)
    for node in np.flatnonzero(np.isfinite(x)).tolist():
        across, up = frame.at(x[node], y[node])
        if np.isfinite(share[node]):
            said = f"{100 * share[node]:.0f} % of its events got through"
            drawing.circle(across, up, r, said, fill=amount(float(share[node]) ** 2), class_="publisher")
        elif not asks[node]:
            drawing.circle(across, up, r * 0.8, fill="none", stroke=ink("soft"), stroke_width=0.7, class_="other")
        if asks[node]:
            d = f"M{across:.1f} {up - 1.7 * r:.1f}l{1.6 * r:.1f} {2.7 * r:.1f}h{-3.2 * r:.1f}Z"
            drawing.add("path", d=d, fill="none", stroke=ink("p1"), stroke_width=1.2, class_="subscriber")


def _draw_legend(drawing: Drawing, height: float, on_a_map: bool) -> None:
    drawing.text(0, height + 14, "dots: publishers; triangles: subscribers")
    drawing.text(0, height + 29, "events from there that a subscriber got:")
    draw_amounts(drawing, 0, height + 44, ("0 %", "100 %"))
    if not on_a_map:
        drawing.text(0, height + 59, "positions are not known: nodes that met stand near each other")


def share_delivered(tables: Mapping[str, pa.Table]) -> Floats:
    """Of each node the share of its events that a subscriber got, of those that match any; NaN if none does."""
    events, deliveries, nodes = tables["events"], tables["deliveries"], len(tables["nodes"])
    got = np.zeros(len(events), bool)
    got[_array(deliveries, "event").astype(np.int64)[_array(deliveries, "wanted").astype(bool)]] = True
    publisher, matched = _array(events, "node").astype(np.int64), _matched(events, tables["subscriptions"]) | got
    asked = np.bincount(publisher[matched], minlength=nodes)
    delivered = np.bincount(publisher[got], minlength=nodes)
    share: Floats = np.divide(delivered, asked, out=np.full(nodes, np.nan), where=asked > 0)
    return share


def _matched(events: pa.Table, subscriptions: pa.Table) -> NDArray[np.bool_]:
    """Whether each event matches any subscription, by channel and content, whenever that was made."""
    values, low, high = _matrix(events, "values"), _matrix(subscriptions, "low"), _matrix(subscriptions, "high")
    on, asked = (_array(table, "channel").astype(str) for table in (events, subscriptions))
    found = np.zeros(len(events), bool)
    for channel in np.unique(asked):
        those, own = on == channel if channel else np.ones(len(on), bool), asked == channel
        found[those] |= count_interested(values[those], low[own], high[own]) > 0
    return found


def _matrix(table: pa.Table, column: str) -> Floats:
    """A column of lists of the same length as a matrix."""
    numbers = table[column].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.array(numbers, np.float64).reshape(len(table), -1 if len(table) else 0)
