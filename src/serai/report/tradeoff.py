"""What delivery costs, as a picture: a dot for each seed, the mean with its interval, names beside the clouds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from serai.log.svg import Drawing, ink, ticks
from serai.report.answer import DELIVERY
from serai.report.figures import Picture, colour_of
from serai.report.results import Case, Results

_WIDTH: Final = 360.0
_HEIGHT: Final = 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 12.0, 26.0, 38.0
_MOST_NAMED: Final = 8


class _Axis(NamedTuple):
    """From numbers to places along one side."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def trade_off(results: Results, metric: str) -> Picture | None:
    """Delivered against another metric; where settings were swept, the cases that no other beats in both are filled."""
    cases = [case for case in results.cases if all(_known(results, case, name) for name in (DELIVERY, metric))]
    if not cases:
        return None
    across, up = (
        _axis(results, cases, metric, _LEFT, _WIDTH - _RIGHT),
        _axis(results, cases, DELIVERY, _HEIGHT - _BOTTOM, _TOP),
    )
    drawing, scale = Drawing(_WIDTH, _HEIGHT), results.scale(metric)
    _axes(drawing, across, up, scale.heading, results.definitions[metric].better)
    swept = len(results.numbers) > 1
    front = unbeaten(results, metric, cases)
    if swept:
        ends = sorted(
            (across.at(_mean(results, case, metric)), up.at(_mean(results, case, DELIVERY))) for case in front
        )
        drawing.line(ends, stroke=ink("soft"), stroke_dasharray="3 3")
    for case in cases if not swept else ():
        _dots(drawing, results, case, metric, across, up)
    names = _Names()
    for case in cases:
        _mean_mark(drawing, results, case, metric, (across, up), hollow=swept and case not in front)
        if not swept or (case in front and len(front) <= _MOST_NAMED):
            ys = [
                up.at(v) for v in (_mean(results, case, DELIVERY), *([] if swept else _values(results, case, DELIVERY)))
            ]
            words = f"{results.name(case)} {_mean(results, case, metric):.3g} {scale.unit}".rstrip()
            colour = colour_of(case.protocol, results.protocols)
            names.add(drawing, across.at(_mean(results, case, metric)), max(ys), min(ys), words, colour)
    told = "; ".join(
        f"{results.name(case)} {_mean(results, case, DELIVERY):.1f} %, {_mean(results, case, metric):.3g} {scale.unit}"
        for case in cases[:12]
    )
    what = "A dot for each seed, a cross for the mean with its 95 % interval." if not swept else (
        "Means over all seeds. Filled: no other delivers more and is better in this, too; the dashed line joins them."
    )  # fmt: skip
    caption = f"Delivered against {scale.name}. {what}"
    return Picture(
        f"price-{metric.replace('_', '-')}", drawing.svg(f"{caption} {told}"), f"{caption} {told}", caption, inline=True
    )


def unbeaten(results: Results, metric: str, cases: Sequence[Case]) -> list[Case]:
    """The cases that no other beats: with as much delivered and as good a value, and more or a better one."""
    better = results.definitions[metric].better or -1
    worth = {case: (_mean(results, case, DELIVERY), better * _mean(results, case, metric)) for case in cases}
    return [
        case
        for case in cases
        if not any(
            worth[other][0] >= worth[case][0] and worth[other][1] >= worth[case][1] and worth[other] != worth[case]
            for other in cases
        )
    ]


def _known(results: Results, case: Case, metric: str) -> bool:
    return metric in results.definitions and math.isfinite(results.estimate(case, metric).mean)


def _mean(results: Results, case: Case, metric: str) -> float:
    return results.scale(metric).factor * results.estimate(case, metric).mean


def _half(results: Results, case: Case, metric: str) -> float:
    half = results.scale(metric).factor * results.estimate(case, metric).half_width()
    return half if math.isfinite(half) else 0.0


def _values(results: Results, case: Case, metric: str) -> list[float]:
    factor = results.scale(metric).factor
    return [factor * dot for dot in results.dots.get((case, metric), ()) if math.isfinite(dot)]


def _axis(results: Results, cases: Sequence[Case], metric: str, begin: float, end: float) -> _Axis:
    """An axis with room for all seeds; it begins at 0 where that is not far off."""
    swept = len(results.numbers) > 1
    values = [_mean(results, case, metric) + sign * _half(results, case, metric) for case in cases for sign in (-1, 1)]
    if not swept:
        values += [dot for case in cases for dot in _values(results, case, metric)]
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or max(abs(high) * 0.1, 0.5)
    least = 0.0 if 0 <= low < 0.5 * high and metric != DELIVERY else low - room
    most = high + room if metric != DELIVERY else min(high + room, 100.0 + room / 4)
    return _Axis(least, most, begin, end)


def _axes(drawing: Drawing, across: _Axis, up: _Axis, heading: str, better: int) -> None:
    drawing.text(_LEFT, 12, "delivered, % of what subscribers want")
    drawing.text(_WIDTH - _RIGHT, 12, f"better: {'↗' if better > 0 else '↖'}", text_anchor="end")
    for value in ticks(up.low, up.high):
        drawing.line([(_LEFT, up.at(value)), (_WIDTH - _RIGHT, up.at(value))], stroke=ink("line"), stroke_width=0.8)
        drawing.text(_LEFT - 6, up.at(value) + 4, f"{value:g}", text_anchor="end")
    for value in ticks(across.low, across.high):
        drawing.text(across.at(value), _HEIGHT - _BOTTOM + 16, f"{value:,g}", text_anchor="middle")
    drawing.text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 4, heading, text_anchor="middle")


def _dots(drawing: Drawing, results: Results, case: Case, metric: str, across: _Axis, up: _Axis) -> None:
    pairs = zip(_values(results, case, metric), _values(results, case, DELIVERY), strict=False)
    for value, delivered in pairs:
        drawing.circle(
            across.at(value),
            up.at(delivered),
            3.4,
            fill=ink(colour_of(case.protocol, results.protocols)),
            fill_opacity=0.28,
        )


def _mean_mark(
    drawing: Drawing, results: Results, case: Case, metric: str, axes: tuple[_Axis, _Axis], hollow: bool
) -> None:
    across, up = axes
    x, y, colour = (
        across.at(_mean(results, case, metric)),
        up.at(_mean(results, case, DELIVERY)),
        ink(colour_of(case.protocol, results.protocols)),
    )
    wide = _half(results, case, metric) / (across.high - across.low) * (across.end - across.begin)
    high = _half(results, case, DELIVERY) / (up.high - up.low) * (up.begin - up.end)
    drawing.line([(x - wide, y), (x + wide, y)], stroke=colour, stroke_width=2.4)
    drawing.line([(x, y - high), (x, y + high)], stroke=colour, stroke_width=2.4)
    drawing.circle(
        x, y, 4, results.name(case), fill=ink("ground") if hollow else colour, stroke=colour, stroke_width=1.4
    )


class _Names:
    """Names beside the clouds, none over another: below its cloud, or lower, or above it."""

    def __init__(self) -> None:
        self._taken: list[tuple[float, float, float]] = []

    def add(self, drawing: Drawing, x: float, lowest: float, highest: float, words: str, colour: str) -> None:
        wide = 6.4 * len(words) / 2
        x = min(max(x, _LEFT + wide), _WIDTH - _RIGHT - wide)
        lines = [lowest + 14, lowest + 27, highest - 8, highest - 21, lowest + 40]
        inside = [y for y in lines if _TOP < y < _HEIGHT - _BOTTOM] or [lowest + 14]
        free = [y for y in inside if all(abs(y - v) >= 12 or abs(x - u) >= wide + w for u, v, w in self._taken)]
        y = (free or inside)[0]
        self._taken.append((x, y, wide))
        drawing.text(x, y, words, text_anchor="middle", style=f"fill:{ink(colour)};font-weight:650")
