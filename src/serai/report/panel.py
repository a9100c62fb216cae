"""One panel of a figure: its axes, the names of its curves above, and the marks that stand on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from serai.log.svg import Drawing, ink, ticks, width_of

WIDTH: Final = 360.0
HEIGHT: Final = 270.0
_LINE: Final = 15.0
_FOOT: Final = 36.0
_GAP: Final = 10.0  # between names of curves


@dataclass(frozen=True)
class Mark:
    """How the curve of a protocol looks: the name of its colour, the shape of its points (if any), and its dashes."""

    colour: str
    shape: str
    dashes: tuple[float, ...] = ()


class Axis(NamedTuple):
    """From numbers to places along one side of a panel."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """The place of a number."""
        return self.begin + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.begin)


@dataclass(frozen=True)
class Panel:
    """A drawing with two axes on it."""

    drawing: Drawing
    across: Axis
    up: Axis

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A pair of numbers as a place."""
        return self.across.at(x), self.up.at(y)


def open_panel(
    names: Sequence[tuple[str, Mark]],
    spans: tuple[tuple[float, float], tuple[float, float]],
    headings: tuple[str, str],
    places: Iterable[float] | None = None,
    height: float = HEIGHT,
) -> Panel:
    """Names of curves, then the axes with round numbers; `places`: numbers that the axis below has instead."""
    drawing = Drawing(WIDTH, height)
    top = (name_curves(drawing, names) if len(names) > 1 else 0.0) + 34
    low, high = spans[1]
    left = 12 + max((width_of(number(value)) for value in ticks(low, high)), default=0.0)
    up = Axis(low, high, height - _FOOT, top)
    across = Axis(*spans[0], left + 8, WIDTH - 14)
    drawing.text(0, top - 18, headings[1])
    for value in ticks(low, high):
        y = up.at(value)
        drawing.line([(left, y), (WIDTH, y)], stroke=ink("line"), stroke_width=0.8)
        drawing.text(left - 6, y + 4, number(value), text_anchor="end")
    label_below(drawing, across, ticks(*spans[0]) if places is None else sorted(set(places)), height - _FOOT + 16)
    drawing.text((left + WIDTH) / 2, height - 4, headings[0], text_anchor="middle")
    return Panel(drawing, across, up)


def label_below(drawing: Drawing, across: Axis, values: Iterable[float], y: float) -> None:
    """Numbers along the axis below; one that would touch the one before is left out."""
    free = -math.inf
    for value in values:
        words, x = number(value), across.at(value)
        wide = width_of(words)
        x = min(x, drawing.width - wide / 2)
        if x - wide / 2 >= free:
            drawing.text(x, y, words, text_anchor="middle")
            free = x + wide / 2 + 4


def number(value: float) -> str:
    """A round number as an axis shows it."""
    return f"{value:,.10g}".replace("-", "−")


def name_curves(drawing: Drawing, names: Sequence[tuple[str, Mark]], line: bool = True) -> float:
    """What each curve is called, in as many lines as that takes; where they end."""
    x, y = 0.0, _LINE - 4
    for name, mark in names:
        wide = 24 + width_of(name)
        if x and x + wide > drawing.width:
            x, y = 0.0, y + _LINE
        if line:
            drawing.line([(x, y - 4), (x + 18, y - 4)], **look_of_line(mark))
        put_mark(drawing, mark, x + 9, y - 4)
        drawing.text(x + 23, y, name, style=f"fill:{ink('ink')}")
        x += wide + _GAP
    return y


def look_of_line(mark: Mark) -> dict[str, object]:
    """The attributes of a curve."""
    dashes = {"stroke_dasharray": " ".join(f"{dash:g}" for dash in mark.dashes)} if mark.dashes else {}
    return {"stroke": ink(mark.colour), "stroke_width": 1.7, **dashes}


_SHAPES: Final = {
    "square": "M-3.4 -3.4h6.8v6.8h-6.8Z",
    "triangle": "M0 -4.2L4.2 3.2H-4.2Z",
    "diamond": "M0 -4.8L4.4 0L0 4.8L-4.4 0Z",
    "wedge": "M0 4.2L4.2 -3.2H-4.2Z",
    "plus": "M-1.5 -4.2h3v2.7h2.7v3h-2.7v2.7h-3v-2.7h-2.7v-3h2.7Z",
    "cross": "M-3.8 -2.2L-2.2 -3.8L0 -1.6L2.2 -3.8L3.8 -2.2L1.6 0L3.8 2.2L2.2 3.8L0 1.6L-2.2 3.8L-3.8 2.2L-1.6 0Z",
}
_STAR: Final = "".join(
    f"{'L' if k else 'M'}{radius * math.sin(k * math.pi / 5):.2f} {-radius * math.cos(k * math.pi / 5):.2f}"
    for k in range(10)
    for radius in ((7.0, 2.9)[k % 2],)
)


def put_mark(drawing: Drawing, mark: Mark, x: float, y: float, title: str = "") -> None:
    """The point of a curve, which says its title to a pointer that rests on it."""
    if mark.shape == "disc":
        drawing.circle(x, y, 3.6, title, fill=ink(mark.colour))
    elif mark.shape:
        drawing.shape(_SHAPES[mark.shape], x, y, title, fill=ink(mark.colour))


def put_star(drawing: Drawing, colour: str, x: float, y: float, title: str = "") -> None:
    """A number that somebody has printed."""
    drawing.shape(_STAR, x, y, title, fill=ink("ground"), stroke=ink(colour), stroke_width=1.2)


def whisker(drawing: Drawing, ends: Sequence[tuple[float, float]], colour: str) -> None:
    """An interval: a thin line with a bar at each end."""
    (x0, y0), (x1, y1) = ends
    look = {"stroke": ink(colour), "stroke_width": 1.1}
    drawing.line(ends, **look)
    across, up = (0.0, 2.6) if y0 == y1 else (2.6, 0.0)
    for x, y in ((x0, y0), (x1, y1)):
        drawing.line([(x - across, y - up), (x + across, y + up)], **look)
