"""A field as pictures: where it is, who pays, where events are lost, how typical ones live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.field.log import FieldRun
from serai.field.losses import losses_of
from serai.kinds import protocol_label
from serai.lab import pairs_of
from serai.log.run import SimulatedRun
from serai.log.svg import GROUPS, Drawing, amount, ink, width_of
from serai.report.figures import Picture
from serai.report.wording import in_time, in_words

_SIDE: Final = 360.0
_SMALL: Final = 240.0
_EDGE: Final = 9.0  # room for the discs of sensors at the edge
_PATHS_S: Final = 900.0
_PJ_PER_MJ: Final = 1e9
_MOST_LIVES: Final = 8
Numbers = NDArray[Any]
Place = tuple[float, float]


class _Frame(NamedTuple):
    """Metres to places in a drawing."""

    scale: float
    height: float

    @classmethod
    def of(cls, run: FieldRun, side: float) -> _Frame:
        grid = run.world.grid
        scale = side / max(grid.width_m, grid.height_m)
        return cls(scale, grid.height_m * scale)

    def x(self, metres: float) -> float:
        return float(metres * self.scale)

    def y(self, metres: float) -> float:
        return float(self.height - metres * self.scale)


def field_map(run: FieldRun, name: str = "field", ringed: Sequence[int] = ()) -> Picture:
    """Communities, sensors, and the ways of the subscribers in the first part of the run.

    Sensors that are `ringed` carry a number, from 1 on.
    """
    frame, world = _Frame.of(run, _SIDE), run.world
    drawing = Drawing(frame.x(world.grid.width_m), frame.height + 18)
    sizes = np.bincount(world.communities.of_sensor)
    ranks = {int(group): rank for rank, group in enumerate(np.argsort(-sizes, kind="stable"))}
    colours = ["alone" if sizes[group] == 1 else f"g{ranks[group] % GROUPS}" for group in world.communities.of_sensor]
    drawing.add("rect", x=0, y=0, width=frame.x(world.grid.width_m), height=frame.height, fill=ink("ground"))
    if world.ranges is None:
        _cells(drawing, run, frame, colours)
    else:
        _circles(drawing, run, frame, colours)
    shown_s = _shown_s(run)
    ways = {number: _ways(run, number, shown_s) for number in range(len(world.low))}
    first = next((number for number, way in ways.items() if way), 0)
    for number, way in ways.items():
        strong = number == first
        for points in way:
            drawing.line(
                [(frame.x(x), frame.y(y)) for x, y in points],
                stroke=ink("ink" if strong else "soft"),
                stroke_width=1.8 if strong else 0.8,
                stroke_opacity=0.85 if strong else 0.45,
            )
    for sensor in range(len(world.sensor_x)):
        group = int(world.communities.of_sensor[sensor])
        x, y = frame.x(world.sensor_x[sensor]), frame.y(world.sensor_y[sensor])
        if sizes[group] == 1:
            drawing.add("path", d=f"M{x:.1f} {y - 4.5:.1f}l4.5 4.5l-4.5 4.5l-4.5 -4.5Z", fill=ink("alone"))
        else:
            said = f"{world.sensor_names[sensor]}, community of {sizes[group]}"
            look = {"fill": ink(colours[sensor]), "stroke": ink("ground"), "stroke_width": 1}
            drawing.circle(x, y, _radius(run, 4.2), said, **look)
    _relays(drawing, run, frame)
    places = [(frame.x(x), frame.y(y)) for x, y in zip(world.sensor_x.tolist(), world.sensor_y.tolist(), strict=True)]
    for number, sensor in enumerate(ringed, start=1):
        _ring(drawing, places, sensor, 9, str(number))
    _scale_bar(drawing, run, frame)
    alone = int((sizes == 1).sum())
    largest = ", ".join(str(size) for size in sorted(sizes[sizes > 1].tolist(), reverse=True)[:9])
    caption = (
        f"Where it happens. {len(world.sensor_x)} sensors; each patch of touching"
        f" {'cells' if world.ranges is None else 'circles (half the radio range)'} is one community"
        f" ({largest or 'none'} sensors{f'; {alone} alone, as diamonds' if alone else ''}). Lines: where the"
        f" {in_words(len(world.low), 'subscriber')} went in the first {in_time(shown_s)}, one of them in strong ink."
        f" Seed {run.seed}."
    )
    return Picture(name, drawing.svg(caption), caption)


def _relays(drawing: Drawing, run: FieldRun, frame: _Frame) -> None:
    """Relays as squares over their dots: they are no sensors to those who look for readings."""
    for number, (x_m, y_m) in enumerate(run.scenario.sensors.relays or (), start=1):
        x, y = frame.x(x_m) - 5, frame.y(y_m) - 5
        drawing.bar(x, y, 10, 10, f"relay {number}", fill=ink("ground"), stroke=ink("ink"), stroke_width=1.6)


def _ring(drawing: Drawing, places: Sequence[Place], node: int, radius: float, said: str) -> None:
    """A ring around a node, and a word beside it: on the side where it covers fewest other nodes."""
    x, y = places[node]
    drawing.circle(x, y, radius, fill="none", stroke=ink("ink"), stroke_width=1.4)
    wide, beside = width_of(said), radius + 4
    sides = [
        (x + beside, y + 4, "start", x + beside),
        (x - beside, y + 4, "end", x - beside - wide),
        (x, y - beside, "middle", x - wide / 2),
        (x, y + beside + 8, "middle", x - wide / 2),
    ]

    def covered(side: tuple[float, float, str, float]) -> int:
        _, base, _, left = side
        within = left >= 0 and left + wide <= drawing.width and base - 9 >= 0 and base <= drawing.height
        near = sum(left - 5 < u < left + wide + 5 and base - 14 < v < base + 5 for u, v in places)
        return near if within else len(places) + 1

    u, v, anchor, _ = min(sides, key=covered)
    drawing.text(u, v, said, text_anchor=anchor, class_="strong")


def _radius(run: FieldRun, usual: float) -> float:
    return float(usual * min(1.0, (150 / max(len(run.world.sensor_x), 1)) ** 0.5))


def _cells(drawing: Drawing, run: FieldRun, frame: _Frame, colours: Sequence[str]) -> None:
    """Each cell that has a sensor in the colour of its community."""
    grid = run.world.grid
    wide, high = frame.x(grid.width_m) / grid.columns, frame.height / grid.rows
    cells, first = np.unique(run.world.sensor_cell, return_index=True)
    for cell, sensor in zip(cells.tolist(), first.tolist(), strict=True):
        column, row = cell % grid.columns, cell // grid.columns
        place = {"x": column * wide, "y": frame.height - (row + 1) * high, "width": wide, "height": high}
        drawing.add("rect", **place, fill=ink(colours[sensor]), fill_opacity=0.18)


def _circles(drawing: Drawing, run: FieldRun, frame: _Frame, colours: Sequence[str]) -> None:
    """Half the range of each sensor in the colour of its community."""
    world = run.world
    assert world.ranges is not None
    places = zip(world.sensor_x.tolist(), world.sensor_y.tolist(), world.ranges.sensors_m.tolist(), strict=True)
    ways: dict[str, str] = {}
    for (x, y, range_m), colour in zip(places, colours, strict=True):
        radius = frame.x(range_m / 2)
        ways[colour] = ways.get(colour, "") + (
            f"M{frame.x(x) - radius:.1f} {frame.y(y):.1f}"
            f"a{radius:.1f} {radius:.1f} 0 1 0 {2 * radius:.1f} 0a{radius:.1f} {radius:.1f} 0 1 0 {-2 * radius:.1f} 0"
        )
    for colour, way in ways.items():
        drawing.add("path", d=way, fill=ink(colour), fill_opacity=0.18)


def _shown_s(run: FieldRun) -> float:
    """How much of the ways a map shows: a quarter of an hour, doubled until they are as long as the field's outline."""
    shown_s, run_s, grid = _PATHS_S, run.scenario.duration_s, run.world.grid
    while shown_s < run_s:
        ways = [way for number in range(len(run.world.low)) for way in _ways(run, number, shown_s)]
        if sum(np.hypot(*np.diff(way, axis=0).T).sum() for way in ways) >= 2 * (grid.width_m + grid.height_m):
            break
        shown_s *= 2
    return min(shown_s, run_s)


def _ways(run: FieldRun, subscriber: int, end: float) -> list[Numbers]:
    """The turning points of a subscriber up to that second, and where it is then; in pieces, if it was away."""
    tracks = run.world.tracks
    rows = slice(tracks.start[subscriber], tracks.start[subscriber + 1])
    time_s, places = tracks.time_s[rows], np.column_stack((tracks.x_m[rows], tracks.y_m[rows]))
    last = [np.interp(end, time_s, along) for along in places.T]
    points = np.vstack((places[time_s < end], last))
    known = np.isfinite(points).all(axis=1)
    pieces = np.split(points, np.flatnonzero(np.diff(known)) + 1)
    return [piece for piece in pieces if np.isfinite(piece).all()]


def _scale_bar(drawing: Drawing, run: FieldRun, frame: _Frame) -> None:
    steps = (5000, 2000, 1000, 500, 200, 100, 50, 20, 10, 5, 2)
    metres = next((step for step in steps if step <= run.world.grid.width_m / 3), 1)
    end, y = drawing.width - 2, frame.height + 6
    drawing.line([(end - frame.x(metres), y), (end, y)], stroke=ink("soft"), stroke_width=1.5)
    drawing.text(end - frame.x(metres) / 2, y + 11, f"{metres} m", text_anchor="middle")


# --- Amounts at sensors


def energy_map(run: FieldRun, most_pj: int, colour: str) -> Picture:
    """What each sensor spent on events, on the scale of the busiest of all protocols; the busiest is ringed."""
    spent = run.ledger.event_pj
    busiest = int(spent.argmax())
    said = f"{spent[busiest] / _PJ_PER_MJ:,.0f} mJ"
    titles = [f"{pj / _PJ_PER_MJ:.1f} mJ" for pj in spent]
    svg = _amounts(run, spent / max(most_pj, 1), busiest, (said, "energy spent"), colour, titles)
    ratio = spent[busiest] / max(spent.mean(), 1e-9)
    caption = (
        f"{protocol_label(run.protocol)}: all sensors spent {spent.sum() / 1e12:.2f} J on events, the busiest {said},"
        f" {ratio:.1f} times the mean; its battery lasts {run.metrics.lifetime_days:.1f} days."
    )
    return Picture(f"energy-{run.protocol}", svg, caption)


def loss_map(run: FieldRun, most: int, colour: str) -> Picture | None:
    """How many pairs were lost of the events of each sensor; None without a full log."""
    lost = losses_of(run)
    if lost is None:
        return None
    world = run.world
    at = np.bincount(world.event_sensor[lost.event], minlength=len(world.sensor_x))
    worst = int(at.argmax())
    svg = _amounts(run, at / max(most, 1), worst, (f"{at[worst]:,}", "lost"), colour, [f"{n} lost" for n in at])
    worse = f"; {world.sensor_names[worst]} is worst off ({at[worst]:,})"
    caption = (
        f"{protocol_label(run.protocol)}: {len(lost.event):,} of {run.metrics.wanted_pairs:,} pairs lost"
        f"{worse if at[worst] else ''}."
    )
    return Picture(f"lost-{run.protocol}", svg, caption)


def most_lost(run: FieldRun) -> int:
    """How many pairs were lost of the events of one sensor, at most."""
    lost = losses_of(run)
    return 0 if lost is None else int(np.bincount(run.world.event_sensor[lost.event], minlength=1).max(initial=0))


def _amounts(run: FieldRun, share: Numbers, ringed: int, said: tuple[str, str], colour: str, titles: list[str]) -> str:
    """Sensors as discs whose size and colour say how much; `said`: how much the ringed one has, and of what."""
    frame, world = _Frame.of(run, _SMALL), run.world
    places = [
        (_EDGE + frame.x(x), 18 + _EDGE + frame.y(y))
        for x, y in zip(world.sensor_x.tolist(), world.sensor_y.tolist(), strict=True)
    ]
    drawing = Drawing(frame.x(world.grid.width_m) + 2 * _EDGE, frame.height + 2 * _EDGE + 18)
    name = protocol_label(run.protocol)
    drawing.text(0, 11, name, font_weight=650, style=f"fill:{ink(colour)}")
    drawing.add("rect", x=0, y=18, width=drawing.width, height=drawing.height - 18, fill=ink("ground"))
    named = [f"{name}: {title}" for name, title in zip(world.sensor_names, titles, strict=True)]
    drawing.text(drawing.width, 11, said[1], text_anchor="end")
    discs(drawing, places, share, named, ringed, said[0])
    return drawing.svg(f"{name}: size and colour of each sensor by amount ({said[1]}); the largest is {said[0]}")


def discs(
    drawing: Drawing,
    places: Sequence[Place],
    share: Numbers,
    titles: Sequence[str],
    ringed: int,
    said: str,
) -> None:
    """Nodes as discs whose size and colour say how much; a ring and a number for the one with most."""
    small = min(1.0, (150 / max(len(places), 1)) ** 0.5)
    for node in np.argsort(share, kind="stable").tolist():
        x, y = places[node]
        drawing.circle(
            x, y, small * (1.6 + 6.5 * float(share[node]) ** 0.5), titles[node], fill=amount(float(share[node]))
        )
    if share[ringed] <= 0:
        return
    _ring(drawing, places, ringed, 11, said)


# --- Lives


class _Life(NamedTuple):
    """An event: when each of those who want it had it, in seconds after birth; NaN: never."""

    event: int
    waits_s: list[float]
    lifetime_s: float


def typical_life(run: SimulatedRun) -> _Life | None:
    """Of the events that lived their whole life and six to eight wanted, the one nearest to the run's averages."""
    pairs = pairs_of(run)
    lived = pairs.born_s + pairs.lifetime_s < pairs.duration_s
    for least, most in ((6, 8), (2, _MOST_LIVES)):
        events = np.flatnonzero(lived & (pairs.wanted >= least) & (pairs.wanted <= most))
        if len(events):
            break
    else:
        return None
    got = np.bincount(pairs.delivered, minlength=len(lived))
    delay = np.bincount(pairs.delivered, weights=pairs.delay_s, minlength=len(lived)) / np.maximum(got, 1)
    far = np.abs(got / np.maximum(pairs.wanted, 1) - len(pairs.delivered) / max(int(pairs.wanted.sum()), 1))[events]
    mean_s = float(pairs.delay_s.mean()) if len(pairs.delay_s) else 0.0
    far = far + np.abs(delay[events] - mean_s) / np.maximum(pairs.lifetime_s[events], 1.0)
    chosen = int(events[np.argmin(far)])
    waits = sorted(pairs.delay_s[pairs.delivered == chosen].tolist())
    missed = [float("nan")] * int(pairs.wanted[chosen] - len(waits))
    return _Life(chosen, waits + missed, float(pairs.lifetime_s[chosen]))


def lives(runs: Sequence[tuple[SimulatedRun, str]], noun: str = "event") -> Picture | None:
    """A typical event's life under each protocol: a line for each who wants it, until it has it."""
    found = [(run, colour, life) for run, colour in runs if (life := typical_life(run))]
    if not found:
        return None
    end_s = max(life.lifetime_s for _, _, life in found)
    left = 12 + max(width_of(protocol_label(run.protocol)) for run, _, _ in found)
    right, height = 44.0, 22.0 + sum(14 * len(life.waits_s) + 14 for _, _, life in found)
    drawing = Drawing(_SIDE, height)

    def across(wait_s: float) -> float:
        return left + wait_s / end_s * (_SIDE - left - right)

    for minutes in range(0, int(end_s // 60) + 1, _minutes_apart(end_s)):
        x = across(60 * minutes)
        drawing.line([(x, 14), (x, height)], stroke=ink("line"))
        drawing.text(x, 10, f"{minutes} min" if minutes else "birth", text_anchor="middle")
    y = 26.0
    for run, colour, life in found:
        middle = y + 7 * (len(life.waits_s) - 1) + 4
        drawing.text(0, middle, protocol_label(run.protocol), font_weight=650, style=f"fill:{ink(colour)}")
        served = sum(wait == wait for wait in life.waits_s)
        drawing.text(_SIDE, middle, f"{served} of {len(life.waits_s)}", text_anchor="end")
        for wait in life.waits_s:
            _lifeline(drawing, across, y, wait, end_s, ink(colour))
            y += 14
        y += 14
    chosen = ", ".join(f"{protocol_label(run.protocol)} {noun} {life.event}" for run, _, life in found)
    caption = (
        f"A typical {noun}'s life. Each line is a subscriber that wants it, and ends when it receives it; a cross:"
        f" never, the {noun} grew too old. Of the {noun}s wanted by six to eight, the one nearest to its protocol's"
        f" averages ({chosen})."
    )
    return Picture("lives", drawing.svg(caption), caption)


def _minutes_apart(end_s: float) -> int:
    return next((step for step in (5, 10, 30, 60, 240, 1440) if end_s <= 300 * step), 10080)


def _lifeline(drawing: Drawing, across: Any, y: float, wait: float, end_s: float, colour: str) -> None:
    never = wait != wait
    end = across(end_s if never else wait)
    look = {"stroke": ink("soft"), "stroke_dasharray": "2 3"} if never else {"stroke": colour, "stroke_width": 1.6}
    drawing.line([(across(0), y), (end, y)], **look)
    if never:
        drawing.add("path", d=f"M{end - 3:.1f} {y - 3}l6 6m0 -6l-6 6", stroke=ink("soft"), stroke_width=1.4)
    else:
        drawing.circle(end, y, 3, fill=colour)
