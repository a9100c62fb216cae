"""A picture of a run, from the tables that every run has: where nodes stand or go, and where events got through from.

Where nobody knows the places, the nodes stand on a ring, and lines between them show who met whom how often.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from serai.core.interested import count_interested

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_WIDTH_INCHES: Final = 6.4
_SUBSCRIBER: Final = "#D55E00"
_MOST_LINES: Final = 20_000  # more would only blacken the picture
_MOST_DRAWN: Final = 2_000  # as vectors: a file with more is slow to open, so they become an image in it


class RunPicture(Figure):
    """A figure that notebooks show as SVG, whatever backend they use."""

    def _repr_svg_(self) -> str:
        return as_svg(self)


def as_svg(figure: Figure) -> str:
    """The figure as the text of an SVG element; the same figure gives the same text."""
    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "serai", "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def draw_run(tables: Mapping[str, pa.Table], title: str) -> RunPicture:
    """Nodes with the share of their events that got through; how they move; links between those that stand."""
    x, y, on_a_map = _places(tables)
    shape = np.ptp(y[np.isfinite(y)]) / max(np.ptp(x[np.isfinite(x)]), 1e-9)
    figure = RunPicture(figsize=(_WIDTH_INCHES, 1.6 + _WIDTH_INCHES * min(max(shape, 0.3), 1.0)), layout="constrained")
    axes = figure.subplots()
    _draw_contacts(axes, tables["contacts"], x, y, _standing(tables) if on_a_map else np.ones(len(x), bool), on_a_map)
    _draw_tracks(axes, tables["tracks"])
    _draw_nodes(figure, axes, tables, x, y)
    axes.set_aspect("equal")
    if on_a_map:
        axes.set_xlabel("m")
        axes.set_ylabel("m")
    else:
        axes.set_axis_off()
    where = "" if on_a_map else "\nno places known: nodes on a ring, lines where they met"
    axes.set_title(f"{textwrap.fill(title, 70)}{where}", fontsize=9)
    return figure


def _array(table: pa.Table, column: str) -> NDArray[Any]:
    """A column as an array; NaN for what is null."""
    return np.asarray(table[column].to_numpy(zero_copy_only=False))


def _places(tables: Mapping[str, pa.Table]) -> tuple[Floats, Floats, bool]:
    """Where each node stands, or is first seen; on a ring if that is known of none."""
    nodes, tracks = tables["nodes"], tables["tracks"]
    x, y = (_array(nodes, name).astype(np.float64) for name in ("x_m", "y_m"))
    seen, first = np.unique(_array(tracks, "node").astype(np.int64), return_index=True)
    for own, name in ((x, "x_m"), (y, "y_m")):
        moving = np.isnan(own[seen])
        own[seen[moving]] = _array(tracks, name).astype(np.float64)[first[moving]]
    if np.isfinite(x).any():
        return x, y, True
    angle = np.linspace(0, 2 * np.pi, len(x), endpoint=False)
    return np.cos(angle), np.sin(angle), False


def _standing(tables: Mapping[str, pa.Table]) -> NDArray[np.bool_]:
    """Which nodes never move."""
    standing = np.ones(len(tables["nodes"]), bool)
    standing[np.unique(_array(tables["tracks"], "node").astype(np.int64))] = False
    return standing


def _draw_contacts(
    axes: Axes, contacts: pa.Table, x: Floats, y: Floats, shown: NDArray[np.bool_], on_a_map: bool
) -> None:
    """A line between nodes that hear each other; on a ring the wider, the more often they met."""
    pairs = np.stack([_array(contacts, end).astype(np.int64) for end in ("a", "b")], axis=1)
    pairs, count = np.unique(pairs[shown[pairs].all(axis=1)], axis=0, return_counts=True)
    pairs, count = pairs[:_MOST_LINES], count[:_MOST_LINES]
    if len(pairs):
        lines = list(np.stack([x[pairs], y[pairs]], axis=2))
        widths = 0.4 if on_a_map else 0.3 + 2.2 * np.log1p(count) / np.log1p(count.max())
        _add_lines(axes, lines, linewidths=widths, colors="#c8c8c8", zorder=1)


def _draw_tracks(axes: Axes, tracks: pa.Table) -> None:
    """The track of each node that moves; the more there are, the fainter."""
    node, x, y = (_array(tracks, name).astype(np.float64) for name in ("node", "x_m", "y_m"))
    ends = np.flatnonzero(np.diff(node)) + 1
    lines = [np.stack(line, axis=1) for line in zip(np.split(x, ends), np.split(y, ends), strict=True)]
    faint = max(0.08, 0.6 / max(len(lines), 1) ** 0.5)
    _add_lines(axes, lines[:_MOST_LINES], linewidths=0.6, colors=_SUBSCRIBER, alpha=faint, zorder=2)


def _add_lines(axes: Axes, lines: list[Floats], **look: Any) -> None:
    points = sum(map(len, lines))
    axes.add_collection(LineCollection(lines, rasterized=points > _MOST_DRAWN, **look))
    axes.autoscale_view()


def _draw_nodes(figure: Figure, axes: Axes, tables: Mapping[str, pa.Table], x: Floats, y: Floats) -> None:
    """Subscribers as triangles, publishers as dots of the colour of what got through, others hollow."""
    share = share_delivered(tables)
    asks = np.zeros(len(x), bool)
    asks[np.unique(_array(tables["subscriptions"], "node").astype(np.int64))] = True
    known = np.isfinite(share)
    silent = ~known & ~asks
    size = min(max(4000 / max(len(x), 1), 4), 24)
    axes.scatter(x[silent], y[silent], size, facecolors="none", edgecolors="#999999", linewidths=0.6, zorder=3)
    look: dict[str, Any] = {"cmap": "cividis", "vmin": 0, "vmax": 100, "label": "publisher", "zorder": 4}
    dots = axes.scatter(x[known], y[known], size, 100 * share[known], **look)
    edge: dict[str, Any] = {"facecolors": "none", "edgecolors": _SUBSCRIBER, "label": "subscriber", "zorder": 5}
    axes.scatter(x[asks], y[asks], 1.6 * size, marker="^", linewidths=0.8, **edge)
    said = "events from there that a subscriber got, % of those that match a subscription"
    figure.colorbar(dots, ax=axes, label=said, location="bottom", aspect=50, shrink=0.8)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)


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
