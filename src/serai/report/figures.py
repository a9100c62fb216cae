"""Figures as SVG: the same input gives the same bytes. Each is one panel, so that a page can stack them on a phone.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; each protocol also has its own marker
and dashes.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure: the name of its file, the picture, what it shows to who cannot see it, and its caption."""

    name: str
    svg: str
    alt: str
    caption: str
    inline: bool = False
    """Whether it is made for any ground, light or dark, and may stand in a page as it is."""


@dataclass(frozen=True)
class Mark:
    """How the curve of a protocol looks."""

    colour: str
    marker: str
    dashes: tuple[float, ...] = ()


_MARKS: Final = (
    Mark("#0072B2", "o"),
    Mark("#D55E00", "s", (6, 2)),
    Mark("#009E73", "^", (2, 2)),
    Mark("#CC79A7", "D", (6, 2, 2, 2)),
    Mark("#E69F00", "v", (1, 1)),
    Mark("#56B4E9", "P", (4, 1)),
    Mark("#000000", "X"),
)
_KNOWN: Final = {"ced": 0, "cet": 1, "dg": 2}
_CAUSES: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")

_STYLE: Final[dict[str, Any]] = {
    "svg.hashsalt": "serai",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.labelcolor": "#222222",
    "axes.titlesize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.columnspacing": 1.2,
    "legend.handlelength": 1.8,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
}
_SIZE_INCHES: Final = (3.7, 2.8)


def as_svg(figure: Figure) -> str:
    """The figure as the text of an SVG element; the same figure gives the same text."""
    import matplotlib as mpl

    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "serai", "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def mark_of(protocol: str, protocols: Sequence[str]) -> Mark:
    """The look of a protocol: the same on every page for those of the papers, in order of appearance for others."""
    if protocol in _KNOWN:
        return _MARKS[_KNOWN[protocol]]
    others = [name for name in protocols if name not in _KNOWN]
    taken = [name for name in protocols if name in _KNOWN]
    free = [mark for index, mark in enumerate(_MARKS) if index not in [_KNOWN[name] for name in taken]]
    return free[others.index(protocol) % len(free)]


def colour_of(protocol: str, protocols: Sequence[str]) -> str:
    """The colour of a protocol in hand-made pictures, by the name that `serai.log.svg` gives it."""
    return f"p{_MARKS.index(mark_of(protocol, protocols))}"


@dataclass(frozen=True)
class Series:
    """One curve: where, how much, give or take; the values of a few seeds beside it; a printed number, if any."""

    label: str
    mark: Mark
    at: Sequence[float]
    mean: Sequence[float]
    half_width: Sequence[float]
    dots: Sequence[Sequence[float]] = ()
    published: Mapping[float, float] = field(default_factory=dict)


def curves(name: str, series: Sequence[Series], x: str, y: str, caption: str) -> Picture:
    """Means with intervals against a setting, seeds as dots, printed numbers as stars."""
    with _panel() as (figure, axes):
        step = _smallest_step([at for one in series for at in one.at])
        for number, one in enumerate(series):
            shift = 0.05 * step * (number - (len(series) - 1) / 2)  # beside each other, so that none hides another
            _draw_curve(axes, one, shift)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_xticks(sorted({at for one in series for at in one.at}))
        _from_zero(axes)
        _legend(axes)
        return Picture(name, as_svg(figure), _said(caption, series), caption)


def _draw_curve(axes: Axes, one: Series, shift: float) -> None:
    places = [at + shift for at in one.at]
    for place, dots in zip(places, one.dots, strict=False):
        axes.plot([place] * len(dots), dots, ".", color=one.mark.colour, alpha=0.3, markersize=3.5, markeredgewidth=0)
    axes.errorbar(
        places,
        one.mean,
        yerr=[width if math.isfinite(width) else 0 for width in one.half_width],
        label=one.label,
        color=one.mark.colour,
        marker=one.mark.marker,
        dashes=one.mark.dashes or (None, None),
        capsize=2.5,
        elinewidth=1,
    )
    if one.published:
        label = "_" if "published" in axes.get_legend_handles_labels()[1] else "published"  # one star says it for all
        axes.plot(
            list(one.published),
            list(one.published.values()),
            "*",
            color="white",
            markeredgecolor=one.mark.colour,
            markersize=11,
            label=label,
            zorder=5,
        )


def _said(caption: str, series: Sequence[Series]) -> str:
    """The picture in words: where each curve begins and ends."""
    ends = [
        f"{one.label}: {one.mean[0]:.3g} at {one.at[0]:g}"
        + (f", {one.mean[-1]:.3g} at {one.at[-1]:g}" if len(one.at) > 1 else "")
        for one in series
        if one.at
    ]
    return f"{caption} {'; '.join(ends)}."


def steps(name: str, series: Sequence[Series], x: str, y: str, caption: str) -> Picture:
    """Curves that rise step by step, such as the fraction delivered within a time."""
    with _panel() as (figure, axes):
        for one in series:
            axes.step(
                one.at,
                one.mean,
                where="post",
                label=one.label,
                color=one.mark.colour,
                dashes=one.mark.dashes or (None, None),
            )
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_ylim(0, 100)
        axes.set_xlim(left=0)
        _legend(axes)
        return Picture(name, as_svg(figure), _said(caption, series), caption)


def levels(name: str, series: Sequence[Series], x: str, caption: str) -> Picture:
    """One mean with its interval per line, seeds as dots: for comparing cases in one metric."""
    with _panel(height=0.8 + 0.32 * len(series)) as (figure, axes):
        for line, one in enumerate(series):
            for dots in one.dots:
                axes.plot(
                    dots, [line] * len(dots), ".", color=one.mark.colour, alpha=0.3, markersize=3.5, markeredgewidth=0
                )
            width = one.half_width[0] if math.isfinite(one.half_width[0]) else 0
            axes.errorbar(
                one.mean, [line], xerr=[width], color=one.mark.colour, marker=one.mark.marker, capsize=2.5, linestyle=""
            )
        axes.set_yticks(range(len(series)), [one.label for one in series])
        axes.set_ylim(len(series) - 0.4, -0.6)
        axes.set_xlabel(x)
        axes.set_xlim(left=0)
        axes.grid(visible=False, axis="y")
        alt = f"{caption} {'; '.join(f'{one.label}: {one.mean[0]:.3g}' for one in series)}."
        return Picture(name, as_svg(figure), alt, caption)


def stacked(name: str, labels: Sequence[str], parts: Mapping[str, Sequence[float]], x: str, caption: str) -> Picture:
    """One bar per line, cut into named parts."""
    with _panel(height=1.0 + 0.32 * len(labels)) as (figure, axes):
        left = [0.0] * len(labels)
        for number, (part, lengths) in enumerate(parts.items()):
            colour = _CAUSES[number % len(_CAUSES)]
            axes.barh(range(len(labels)), lengths, 0.6, left=left, label=part, color=colour, edgecolor="white")
            left = [start + length for start, length in zip(left, lengths, strict=True)]
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.set_xlabel(x)
        axes.locator_params(axis="x", nbins=5)  # five digits need room
        axes.grid(visible=False, axis="y")
        _legend(axes)
        words = "; ".join(
            f"{label}: {', '.join(f'{part} {lengths[line]:,.0f}' for part, lengths in parts.items())}"
            for line, label in enumerate(labels)
        )
        return Picture(name, as_svg(figure), f"{caption} {words}.", caption)


# --- What they share


@contextmanager
def _panel(height: float = _SIZE_INCHES[1]) -> Iterator[tuple[Figure, Axes]]:
    """A figure with one panel, drawn in our style whatever the user's matplotlib is set to."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)  # type: ignore[arg-type]  # its keys are a long list of literals
        figure = Figure(figsize=(_SIZE_INCHES[0], height), layout="constrained")
        yield figure, figure.subplots()


def _legend(axes: Axes) -> None:
    entries = sorted(zip(*axes.get_legend_handles_labels(), strict=True), key=lambda entry: entry[1] == "published")
    handles, labels = zip(*entries, strict=True)
    columns = len(entries) if len(entries) < 5 else math.ceil(len(entries) / 2)
    axes.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, borderaxespad=0.2)


def _from_zero(axes: Axes) -> None:
    """Begin at nothing, so that heights compare."""
    low, high = axes.get_ylim()
    axes.set_ylim(min(0.0, low), max(0.0, high))


def _smallest_step(values: Sequence[float]) -> float:
    places = sorted(set(values))
    return min((after - before for before, after in pairwise(places)), default=1.0)
