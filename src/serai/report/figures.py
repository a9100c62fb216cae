"""Figures as SVG: the same input gives the same bytes. Each is one panel, so that a page can stack them on a phone.

Colours are chosen so that colour-blind readers can tell them apart; each protocol also has its own mark and dashes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from serai.log.svg import CAUSES, Drawing, ink, ticks, width_of
from serai.report.panel import (
    WIDTH,
    Axis,
    Mark,
    label_below,
    look_of_line,
    name_curves,
    open_panel,
    put_mark,
    put_star,
    whisker,
)
from serai.report.wording import three_digits


@dataclass(frozen=True)
class Picture:
    """A figure: the name of its file, the drawing, which says what it shows to who cannot see it, and its caption."""

    name: str
    svg: str
    caption: str


_MARKS: Final = (
    Mark("p0", "disc"),
    Mark("p1", "square", (6, 2)),
    Mark("p2", "triangle", (2, 2)),
    Mark("p3", "diamond", (6, 2, 2, 2)),
    Mark("p4", "wedge", (1, 1)),
    Mark("p5", "plus", (4, 1)),
    Mark("p6", "cross"),
)
_KNOWN: Final = {"ced": 0, "cet": 1, "dg": 2}
_MOST_STEPS: Final = 500  # of a curve: more cannot be seen
_WIDEST_LABEL: Final = 110.0  # of a line; a longer one stands above its line


def mark_of(protocol: str, protocols: Sequence[str]) -> Mark:
    """The look of a protocol: the same on every page for those of the papers, in order of appearance for others."""
    if protocol in _KNOWN:
        return _MARKS[_KNOWN[protocol]]
    others = [name for name in protocols if name not in _KNOWN]
    taken = [name for name in protocols if name in _KNOWN]
    free = [mark for index, mark in enumerate(_MARKS) if index not in [_KNOWN[name] for name in taken]]
    return free[others.index(protocol) % len(free)]


def colour_of(protocol: str, protocols: Sequence[str]) -> str:
    """The colour of a protocol, by the name that `serai.log.svg` gives it."""
    return mark_of(protocol, protocols).colour


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


# --- Means against a setting


def curves(name: str, series: Sequence[Series], x: str, y: str, caption: str) -> Picture:
    """Means with intervals against a setting, seeds as dots, printed numbers as stars."""
    places = sorted({at for one in series for at in one.at})
    step = min((after - before for before, after in pairwise(places)), default=1.0)
    values = [0.0, *_heights(series)]
    span = (places[0] - 0.1 * step, places[-1] + 0.1 * step), (min(values), max(values) * 1.03 or 1.0)
    panel = open_panel([(one.label, one.mark) for one in series], span, (x, y), places)
    for place, one in enumerate(series):
        shift = 0.05 * step * (place - (len(series) - 1) / 2)  # beside each other, so that none hides another
        at = [panel.across.at(place + shift) for place in one.at]
        drawing, colour = panel.drawing, one.mark.colour
        for where, dots in zip(at, one.dots, strict=False):
            for dot in dots:
                drawing.circle(where, panel.up.at(dot), 1.7, fill=ink(colour), fill_opacity=0.3)
        known = [(where, panel.up.at(mean)) for where, mean in zip(at, one.mean, strict=True)]
        drawing.line(known, **look_of_line(one.mark))
        for where, mean, half in zip(at, one.mean, one.half_width, strict=True):
            if math.isfinite(half):
                whisker(drawing, [(where, panel.up.at(mean - half)), (where, panel.up.at(mean + half))], colour)
        for where, mean, value in zip(at, one.mean, one.at, strict=True):
            put_mark(drawing, one.mark, where, panel.up.at(mean), f"{one.label}: {mean:.3g} at {value:g}")
        for value, printed in one.published.items():
            put_star(drawing, colour, *panel.point(value, printed), f"{one.label}, published: {printed:g}")
    return Picture(name, panel.drawing.svg(_said(caption, series)), caption)


def front(name: str, series: Sequence[Series], x: str, y: str, caption: str) -> Picture:
    """Two metrics against each other: settings of one protocol as a curve, in the order given, others as points."""
    highest, widest = max(_heights(series), default=1.0), max((at for one in series for at in one.at), default=1.0)
    spans = (0.0, 1.05 * widest or 1.0), (0.0, 1.03 * highest or 1.0)
    panel = open_panel([(one.label, one.mark) for one in series], spans, (x, y))
    for one in series:
        places = [panel.point(at, mean) for at, mean in zip(one.at, one.mean, strict=True)]
        panel.drawing.line(places, **look_of_line(one.mark))
        for (across, up), at, mean, half in zip(places, one.at, one.mean, one.half_width, strict=True):
            if math.isfinite(half):
                whisker(
                    panel.drawing,
                    [(across, panel.up.at(mean - half)), (across, panel.up.at(mean + half))],
                    one.mark.colour,
                )
            put_mark(panel.drawing, one.mark, across, up, f"{one.label}: {mean:.3g} at {at:.3g}")
    return Picture(name, panel.drawing.svg(_said(caption, series)), caption)


def _heights(series: Sequence[Series]) -> Iterator[float]:
    """Every number that a figure has to have room for."""
    for one in series:
        yield from one.published.values()
        for dots in one.dots:
            yield from dots
        for mean, half in zip(one.mean, one.half_width, strict=True):
            yield mean + (half if math.isfinite(half) else 0.0)
            yield mean - (half if math.isfinite(half) else 0.0)


def _said(caption: str, series: Sequence[Series]) -> str:
    """The picture in words: where each curve begins and ends."""
    ends = [
        f"{one.label}: {one.mean[0]:.3g} at {one.at[0]:g}"
        + (f", {one.mean[-1]:.3g} at {one.at[-1]:g}" if len(one.at) > 1 else "")
        for one in series
        if one.at
    ]
    return f"{caption} {'; '.join(ends)}."


# --- Shares within a time


def steps(name: str, series: Sequence[Series], x: str, y: str, caption: str) -> Picture:
    """Curves that rise step by step, such as the percentage delivered within a time."""
    longest = max((one.at[-1] for one in series if len(one.at)), default=1.0)
    panel = open_panel([(one.label, Mark(one.mark.colour, "", one.mark.dashes)) for one in series],
                       ((0.0, longest), (0.0, 100.0)), (x, y))  # fmt: skip
    for one in series:
        every = max(1, len(one.at) // _MOST_STEPS)
        kept = [*range(0, len(one.at) - 1, every), len(one.at) - 1] if len(one.at) else []
        way, height = [], 0.0
        for index in kept:
            way += [panel.point(one.at[index], height), panel.point(one.at[index], one.mean[index])]
            height = one.mean[index]
        way.append(panel.point(longest, height))
        panel.drawing.line(way, **look_of_line(one.mark))
    return Picture(name, panel.drawing.svg(_said(caption, series)), caption)


# --- Cases compared


def levels(name: str, series: Sequence[Series], x: str, caption: str) -> Picture:
    """One mean with its interval per line, seeds as dots: for comparing cases in one metric."""
    most = max(_heights(series), default=1.0) * 1.03 or 1.0
    lines = _Lines([one.label for one in series], most, x)
    drawing, across = lines.drawing, lines.across
    for y, one in zip(lines.places, series, strict=True):
        for dots in one.dots:
            for dot in dots:
                drawing.circle(across.at(dot), y, 1.9, fill=ink(one.mark.colour), fill_opacity=0.3)
        mean, half = one.mean[0], one.half_width[0]
        if math.isfinite(half):
            whisker(drawing, [(across.at(mean - half), y), (across.at(mean + half), y)], one.mark.colour)
        put_mark(drawing, one.mark, across.at(mean), y, f"{one.label}: {mean:.3g}")
    told = f"{caption} {'; '.join(f'{one.label}: {one.mean[0]:.3g}' for one in series)}."
    return Picture(name, drawing.svg(told), caption)


def stacked(
    name: str,
    labels: Sequence[str],
    parts: Mapping[str, Sequence[float]],
    x: str,
    caption: str,
    colours: Sequence[str] = CAUSES,
) -> Picture:
    """One bar per line, cut into named parts; those that are nothing anywhere are left out."""
    whole = [sum(lengths) for lengths in zip(*parts.values(), strict=True)]
    looks = {part: colours[place % len(colours)] for place, part in enumerate(parts) if any(parts[part])}
    marks = [(part, Mark(colour, "square")) for part, colour in looks.items()]
    lines = _Lines(labels, max(whole, default=1.0) or 1.0, x, marks)
    drawing, across = lines.drawing, lines.across
    for line, y in enumerate(lines.places):
        left = 0.0
        for part, colour in looks.items():
            length = parts[part][line]
            begin, end = across.at(left), across.at(left + length)
            said = f"{labels[line]}, {part}: {three_digits(length)}"
            drawing.bar(begin, y - 8, max(0.0, end - begin - 0.6), 16, said, fill=ink(colour))
            left += length
    words = "; ".join(
        f"{label}: {', '.join(f'{part} {three_digits(lengths[line])}' for part, lengths in parts.items())}"
        for line, label in enumerate(labels)
    )
    return Picture(name, drawing.svg(f"{caption} {words}."), caption)


class _Lines:
    """A panel with a named line for each case, and an axis below."""

    def __init__(
        self, labels: Sequence[str], high: float, heading: str, parts: Sequence[tuple[str, Mark]] = ()
    ) -> None:
        widest = max(map(width_of, labels), default=0.0)
        above = 14.0 if widest > _WIDEST_LABEL else 0.0
        left, each = 4.0 if above else widest + 10, 26.0 + above
        self.drawing = drawing = Drawing(WIDTH, 0.0)
        top = name_curves(drawing, parts, line=False) + 10 if parts else 4.0
        foot = top + each * len(labels)
        drawing.height = foot + 36
        self.across = Axis(0.0, high, left, WIDTH - 8)
        for value in ticks(0.0, high):
            x = self.across.at(value)
            drawing.line([(x, top), (x, foot)], stroke=ink("line"), stroke_width=0.8)
        label_below(drawing, self.across, ticks(0.0, high), foot + 14)
        drawing.text((left + WIDTH) / 2, foot + 30, heading, text_anchor="middle")
        self.places = [top + each * (line + 0.5) + above / 2 for line in range(len(labels))]
        for label, y in zip(labels, self.places, strict=True):
            place = {"x": 0.0, "y": y - 14} if above else {"x": left - 8, "y": y + 4, "text_anchor": "end"}
            drawing.text(words=label, **place, style=f"fill:{ink('ink')}")
