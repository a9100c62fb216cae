"""A field as pictures: where it is, who pays, where events are lost, how typical ones live."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.interested import count_interested
from serai.field.log import FieldRun
from serai.field.losses import LOST, losses_of
from serai.log.svg import GROUPS, Drawing, amount, ink
from serai.report.figures import Picture

_SIDE: Final = 360.0
_SMALL: Final = 240.0
_PATHS_S: Final = 900
_PJ_PER_MJ: Final = 1e9
_MOST_LIVES: Final = 8
WORDS: Final = dict(
    zip(
        LOST, ("never met", "met, not sent", "stranded", "too old on the way", "full queue", "dead sensor"), strict=True
    )
)

Numbers = NDArray[Any]


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


def field_map(run: FieldRun, name: str = "field") -> Picture:
    """Communities, sensors, and the ways of the subscribers in the first quarter of an hour."""
    frame, world = _Frame.of(run, _SIDE), run.world
    drawing = Drawing(frame.x(world.grid.width_m), frame.height + 18)
    sizes = np.bincount(world.communities.of_sensor)
    ranks = {int(group): rank for rank, group in enumerate(np.argsort(-sizes, kind="stable"))}
    _cells(drawing, run, frame, sizes, ranks)
    for number in range(len(world.low)):
        points = _way(run, number)
        strong = number == 0
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
            look = {"fill": ink(f"g{ranks[group] % GROUPS}"), "stroke": ink("ground"), "stroke_width": 1}
            drawing.circle(x, y, _radius(run, 4.2), said, **look)
    _scale_bar(drawing, run, frame)
    alone = int((sizes == 1).sum())
    largest = ", ".join(str(size) for size in sorted(sizes[sizes > 1].tolist(), reverse=True)[:9])
    caption = (
        f"Where it happens. {len(world.sensor_x)} sensors; each patch of touching cells is one community"
        f" ({largest or 'none'} sensors{f'; {alone} alone, as diamonds' if alone else ''}). Lines: the ways of the"
        f" {len(world.low)} subscribers in the first 15 minutes, one of them in strong ink. Seed {run.seed}."
    )
    return Picture(name, drawing.svg(caption), caption, caption, inline=True)


def _radius(run: FieldRun, usual: float) -> float:
    return float(usual * min(1.0, (150 / max(len(run.world.sensor_x), 1)) ** 0.5))


def _cells(drawing: Drawing, run: FieldRun, frame: _Frame, sizes: Numbers, ranks: dict[int, int]) -> None:
    """The ground, and each cell that has a sensor in the colour of its community."""
    grid = run.world.grid
    wide, high = frame.x(grid.width_m) / grid.columns, frame.height / grid.rows
    drawing.add("rect", x=0, y=0, width=frame.x(grid.width_m), height=frame.height, fill=ink("ground"))
    cells, first = np.unique(run.world.sensor_cell, return_index=True)
    for cell, sensor in zip(cells.tolist(), first.tolist(), strict=True):
        group = int(run.world.communities.of_sensor[sensor])
        colour = "alone" if sizes[group] == 1 else f"g{ranks[group] % GROUPS}"
        column, row = cell % grid.columns, cell // grid.columns
        place = {"x": column * wide, "y": frame.height - (row + 1) * high, "width": wide, "height": high}
        drawing.add("rect", **place, fill=ink(colour), fill_opacity=0.18)


def _way(run: FieldRun, subscriber: int) -> list[tuple[float, float]]:
    """The turning points of a subscriber in the first quarter of an hour."""
    tracks = run.world.tracks
    rows = slice(tracks.start[subscriber], tracks.start[subscriber + 1])
    time_s, x, y = tracks.time_s[rows], tracks.x_m[rows], tracks.y_m[rows]
    end = min(_PATHS_S, run.scenario.duration_s)
    kept = time_s < end
    points = list(zip(x[kept].tolist(), y[kept].tolist(), strict=True))
    return [*points, (float(np.interp(end, time_s, x)), float(np.interp(end, time_s, y)))]


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
    svg = _amounts(run, spent / max(most_pj, 1), busiest, said, colour, [f"{pj / _PJ_PER_MJ:.1f} mJ" for pj in spent])
    ratio = spent[busiest] / max(spent.mean(), 1e-9)
    caption = (
        f"{run.protocol.upper()}: all sensors {spent.sum() / 1e12:.2f} J, the busiest {said}, {ratio:.1f} times the"
        f" mean; its battery lasts {run.metrics.lifetime_days:.1f} days."
    )
    return Picture(f"energy-{run.protocol}", svg, caption, caption, inline=True)


def loss_map(run: FieldRun, most: int, colour: str) -> Picture | None:
    """How many pairs were lost of the events of each sensor, and why; None without a full log."""
    lost = losses_of(run)
    if lost is None:
        return None
    at = np.bincount(run.world.event_sensor[lost.event], minlength=len(run.world.sensor_x))
    worst = int(at.argmax())
    svg = _amounts(run, at / max(most, 1), worst, f"{at[worst]:,}", colour, [f"{n} lost" for n in at])
    counts = np.bincount(lost.why, minlength=len(LOST))
    reasons = [f"{WORDS[LOST[why]]} {counts[why]:,}" for why in np.argsort(-counts) if counts[why]]
    caption = f"{run.protocol.upper()}: {len(lost.event):,} lost of {run.metrics.wanted_pairs:,}. {'; '.join(reasons)}."
    return Picture(f"lost-{run.protocol}", svg, caption, caption, inline=True)


def most_lost(run: FieldRun) -> int:
    """How many pairs were lost of the events of one sensor, at most."""
    lost = losses_of(run)
    return 0 if lost is None else int(np.bincount(run.world.event_sensor[lost.event], minlength=1).max(initial=0))


def _amounts(run: FieldRun, share: Numbers, ringed: int, said: str, colour: str, titles: list[str]) -> str:
    """Sensors as discs whose size and colour say how much; the one with most has a ring and its number."""
    frame, world = _Frame.of(run, _SMALL), run.world
    drawing = Drawing(frame.x(world.grid.width_m), frame.height + 18)
    drawing.text(0, 11, run.protocol.upper(), font_weight=650, style=f"fill:{ink(colour)}")
    drawing.add("rect", x=0, y=18, width=drawing.width, height=frame.height, fill=ink("ground"))
    for sensor in np.argsort(share, kind="stable").tolist():
        place = frame.x(world.sensor_x[sensor]), 18 + frame.y(world.sensor_y[sensor])
        size = _radius(run, 1.6 + 6.5 * float(share[sensor]) ** 0.5)
        drawing.circle(
            *place, size, f"{world.sensor_names[sensor]}: {titles[sensor]}", fill=amount(float(share[sensor]))
        )
    x, y = frame.x(world.sensor_x[ringed]), 18 + frame.y(world.sensor_y[ringed])
    drawing.circle(x, y, 11, fill="none", stroke=ink("ink"), stroke_width=1.4)
    left = x > drawing.width / 2
    drawing.text(x - 15 if left else x + 15, y + 4, said, text_anchor="end" if left else "start", class_="strong")
    return drawing.svg(f"{run.protocol.upper()}: size and colour of each sensor by amount; the largest is {said}")


# --- Lives


class _Life(NamedTuple):
    """An event: when each of those who want it had it, in seconds after birth; NaN: never."""

    event: int
    waits_s: list[float]


def typical_life(run: FieldRun) -> _Life | None:
    """Of the events that lived their whole life and six to eight wanted, the one nearest to the run's averages."""
    world, ledger, lifetime_s = run.world, run.ledger, float(run.scenario.events.lifetime_s)
    wanted = count_interested(world.event_values, world.low, world.high)
    lived = world.event_time_s + lifetime_s < run.scenario.duration_s
    for least, most in ((6, 8), (2, _MOST_LIVES)):
        events = np.flatnonzero(lived & (wanted >= least) & (wanted <= most))
        if len(events):
            break
    else:
        return None
    rows = np.flatnonzero(ledger.reception_wanted)
    event, waited = (
        ledger.reception_event[rows],
        ledger.reception_s[rows] - world.event_time_s[ledger.reception_event[rows]],
    )
    got = np.bincount(event, minlength=len(wanted))
    delay = np.bincount(event, weights=waited, minlength=len(wanted)) / np.maximum(got, 1)
    far = np.abs(got / np.maximum(wanted, 1) - run.metrics.delivery_ratio)[events]
    far = far + np.abs(delay[events] - run.metrics.mean_delay_s) / max(lifetime_s, 1.0)
    chosen = int(events[np.argmin(far)])
    waits = sorted(waited[event == chosen].tolist())
    return _Life(chosen, waits + [float("nan")] * int(wanted[chosen] - len(waits)))


def lives(runs: list[tuple[FieldRun, str]]) -> Picture | None:
    """A typical event's life under each protocol: a line for each who wants it, until it has it."""
    found = [(run, colour, life) for run, colour in runs if (life := typical_life(run))]
    if not found:
        return None
    end_s = max(float(run.scenario.events.lifetime_s) for run, _, _ in found)
    left, right, height = 44.0, 44.0, 22.0 + sum(14 * len(life.waits_s) + 14 for _, _, life in found)
    drawing = Drawing(_SIDE, height)

    def across(wait_s: float) -> float:
        return left + wait_s / end_s * (_SIDE - left - right)

    for minutes in range(0, int(end_s // 60) + 1, 10 if end_s > 1200 else 5):
        x = across(60 * minutes)
        drawing.line([(x, 14), (x, height)], stroke=ink("line"))
        drawing.text(x, 10, f"{minutes} min" if minutes else "birth", text_anchor="middle")
    y = 26.0
    for run, colour, life in found:
        middle = y + 7 * (len(life.waits_s) - 1) + 4
        drawing.text(0, middle, run.protocol.upper(), font_weight=650, style=f"fill:{ink(colour)}")
        served = sum(wait == wait for wait in life.waits_s)
        drawing.text(_SIDE, middle, f"{served} of {len(life.waits_s)}", text_anchor="end")
        for wait in life.waits_s:
            _lifeline(drawing, across, y, wait, end_s, ink(colour))
            y += 14
        y += 14
    chosen = ", ".join(f"{run.protocol.upper()} event {life.event}" for run, _, life in found)
    caption = (
        "A typical event's life. A line for each subscriber that wants it, until it has it; a cross: never, the event"
        f" grew too old. Of the events wanted by six to eight, the one nearest to its protocol's averages ({chosen})."
    )
    return Picture("lives", drawing.svg(caption), caption, caption, inline=True)


def _lifeline(drawing: Drawing, across: Any, y: float, wait: float, end_s: float, colour: str) -> None:
    never = wait != wait
    end = across(end_s if never else wait)
    look = {"stroke": ink("soft"), "stroke_dasharray": "2 3"} if never else {"stroke": colour, "stroke_width": 1.6}
    drawing.line([(across(0), y), (end, y)], **look)
    if never:
        drawing.add("path", d=f"M{end - 3:.1f} {y - 3}l6 6m0 -6l-6 6", stroke=ink("soft"), stroke_width=1.4)
    else:
        drawing.circle(end, y, 3, fill=colour)
