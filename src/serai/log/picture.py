"""A picture of a run, from the tables that every run has: where nodes stand or go, and where events got through from.

Where nobody knows the places, the nodes stand on a ring, and lines between them show who met whom how often.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_SIZE_INCHES: Final = (6.4, 5.4)
_TRACK: Final = "#D55E00"
_MOST_LINES: Final = 20_000  # more would only blacken the picture


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
    """Nodes with the share of their events that a subscriber got; how they move; links between those that stand."""
    figure = RunPicture(figsize=_SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    x, y, on_a_map = _places(tables)
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
    axes.set_title(f"{title}{where}", fontsize=9)
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
        lines = np.stack([np.stack([x[pair], y[pair]], axis=1) for pair in pairs])
        widths = 0.4 if on_a_map else 0.3 + 2.2 * np.log1p(count) / np.log1p(count.max())
        axes.add_collection(LineCollection(list(lines), linewidths=widths, colors="#c8c8c8", zorder=1))


def _draw_tracks(axes: Axes, tracks: pa.Table) -> None:
    """The way of each node that moves."""
    node, x, y = (_array(tracks, name).astype(np.float64) for name in ("node", "x_m", "y_m"))
    ends = np.flatnonzero(np.diff(node)) + 1
    ways = [np.stack(way, axis=1) for way in zip(np.split(x, ends), np.split(y, ends), strict=True)]
    faint = max(0.08, 0.6 / max(len(ways), 1) ** 0.5)
    axes.add_collection(LineCollection(ways[:_MOST_LINES], linewidths=0.6, colors=_TRACK, alpha=faint, zorder=2))
    axes.autoscale_view()


def _draw_nodes(figure: Figure, axes: Axes, tables: Mapping[str, pa.Table], x: Floats, y: Floats) -> None:
    """Subscribers as triangles, publishers as dots of the colour of what got through, others hollow."""
    share = share_delivered(tables)
    asks = np.zeros(len(x), bool)
    asks[np.unique(_array(tables["subscriptions"], "node").astype(np.int64))] = True
    publishes = np.isfinite(share)
    silent = ~publishes & ~asks
    axes.scatter(x[silent], y[silent], 10, facecolors="none", edgecolors="#999999", linewidths=0.6, zorder=3)
    axes.scatter(x[asks], y[asks], 26, marker="^", facecolors="none", edgecolors=_TRACK, label="subscriber", zorder=5)
    dots = axes.scatter(
        x[publishes],
        y[publishes],
        16,
        100 * share[publishes],
        cmap="cividis",
        vmin=0,
        vmax=100,
        label="publisher",
        zorder=4,
    )
    figure.colorbar(dots, ax=axes, label="events published there that a subscriber got, %", shrink=0.8)
    axes.legend(loc="upper right", fontsize=8, framealpha=0.8)


def share_delivered(tables: Mapping[str, pa.Table]) -> Floats:
    """Of each node the share of its events that somebody who wanted them got; NaN if it published none."""
    events, deliveries = tables["events"], tables["deliveries"]
    got = np.zeros(len(events), bool)
    wanted = _array(deliveries, "wanted").astype(bool)
    got[_array(deliveries, "event").astype(np.int64)[wanted]] = True
    publisher, nodes = _array(events, "node").astype(np.int64), len(tables["nodes"])
    published = np.bincount(publisher, minlength=nodes)
    delivered = np.bincount(publisher[got], minlength=nodes)
    share: Floats = np.divide(delivered, published, out=np.full(nodes, np.nan), where=published > 0)
    return share
