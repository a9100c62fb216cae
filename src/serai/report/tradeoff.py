"""What delivery costs, as a picture: a dot for each seed, the mean with its interval, names beside the clouds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from serai.log.svg import Drawing, ink, ticks, width_of
from serai.report.answer import DELIVERY, LIFETIME
from serai.report.figures import Picture, colour_of
from serai.report.panel import Axis, number
from serai.report.results import Case, Results
from serai.report.wording import Scale, three_digits

_WIDTH: Final = 360.0
_HEIGHT: Final = 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 12.0, 26.0, 38.0
_MOST_NAMED: Final = 8
_MOST_TOLD: Final = 12
_IN_FULL: Final = {
    "mean_delay_s": "mean delay of what arrives, s",
    LIFETIME: "days until the first battery is empty",
}
"""What an axis says where the name of the metric alone would leave a stranger guessing."""
_EXTRAPOLATED: Final = " Extrapolated, where no battery was empty before the run was over."


def trade_off(results: Results, metric: str, upwards: str = DELIVERY) -> Picture | None:
    """One metric, usually what is delivered, against another; of swept settings the unbeaten cases are filled."""
    cases = [case for case in results.distinct if all(_known(results, case, name) for name in (upwards, metric))]
    return _TradeOff(results, cases, metric, upwards).picture() if cases else None


def unbeaten(results: Results, metric: str, cases: Sequence[Case], upwards: str = DELIVERY) -> list[Case]:
    """The cases that no other beats: as good in both metrics, and better in one."""
    signs = [results.definitions[name].better or -1 for name in (upwards, metric)]
    worth = {
        case: [sign * results.estimate(case, name).mean for sign, name in zip(signs, (upwards, metric), strict=True)]
        for case in cases
    }
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


@dataclass(frozen=True)
class _Side:
    """One of the two metrics, in the unit that is printed."""

    results: Results
    metric: str

    @property
    def scale(self) -> Scale:
        return self.results.scale(self.metric)

    def mean(self, case: Case) -> float:
        return self.scale.factor * self.results.estimate(case, self.metric).mean

    def half(self, case: Case) -> float:
        half = self.scale.factor * self.results.estimate(case, self.metric).half_width()
        return half if math.isfinite(half) else 0.0

    def dots(self, case: Case) -> list[float]:
        dots = self.results.dots.get((case, self.metric), ())
        return [self.scale.factor * dot for dot in dots if math.isfinite(dot)]

    def axis(self, cases: Sequence[Case], with_dots: bool, begin: float, end: float) -> Axis:
        """An axis with room for all seeds; it begins at 0 where that is not far off."""
        values = [self.mean(case) + sign * self.half(case) for case in cases for sign in (-1, 1)]
        values += [dot for case in cases if with_dots for dot in self.dots(case)]
        low, high = min(values), max(values)
        room = 0.06 * (high - low) or max(abs(high) * 0.1, 0.5)
        shares = self.scale.unit == "%"
        least = 0.0 if 0 <= low < 0.5 * high and not shares else low - room
        return Axis(least, min(high + room, 100.0 + room / 4) if shares else high + room, begin, end)


class _TradeOff:
    """The picture while it is drawn."""

    def __init__(self, results: Results, cases: list[Case], metric: str, upwards: str) -> None:
        self.results, self.cases = results, cases
        self.x, self.y = _Side(results, metric), _Side(results, upwards)
        self.swept = len(results.numbers) > 1
        self.front = unbeaten(results, metric, cases, upwards)
        self.across = self.x.axis(cases, not self.swept, _LEFT, _WIDTH - _RIGHT)
        self.up = self.y.axis(cases, not self.swept, _HEIGHT - _BOTTOM, _TOP)
        self.seeds = [] if self.swept else [seed for case in cases for seed in self._seeds_of(case)]
        self.drawing = Drawing(_WIDTH, _HEIGHT)

    def _seeds_of(self, case: Case) -> Iterator[tuple[Case, float, float]]:
        for value, height in zip(self.x.dots(case), self.y.dots(case), strict=False):
            yield case, self.across.at(value), self.up.at(height)

    def picture(self) -> Picture:
        self._axes()
        for case, x, y in self.seeds:
            self.drawing.circle(x, y, 3.4, fill=self._ink(case), fill_opacity=0.28)
        for line in self._lines():
            self.drawing.line([self._place(case) for case in line], stroke=self._ink(line[0]), stroke_opacity=0.5)
        for case in self.cases:
            self._mark(case)
        self._name_them()
        first = self.y.scale.name.capitalize()
        what = (
            "Means over all seeds. Filled: no other is as good in both and better in one."
            if self.swept
            else "A faint dot for each seed; the mean has bars, its 95 % intervals."
        )
        told = "; ".join(
            f"{self.results.name(case)} {three_digits(self.y.mean(case))} {self.y.scale.unit},"
            f" {three_digits(self.x.mean(case))} {self.x.scale.unit}"
            for case in self.cases[:_MOST_TOLD]
        )
        further = _EXTRAPOLATED if self.x.metric == LIFETIME else ""
        caption = f"{first} against {self.x.scale.name}. {what}{further}"
        name = f"price-{self.x.metric.replace('_', '-')}"
        return Picture(name, self.drawing.svg(f"{caption} {told}"), caption)

    def _ink(self, case: Case) -> str:
        return ink(colour_of(case.protocol, self.results.protocols))

    def _place(self, case: Case) -> tuple[float, float]:
        return self.across.at(self.x.mean(case)), self.up.at(self.y.mean(case))

    def _axes(self) -> None:
        drawing, better = self.drawing, [self.results.definitions[side.metric].better for side in (self.y, self.x)]
        up, right = better[0] or 1, better[1] or -1
        towards = f"{'up' if up > 0 else 'down'} and {'right' if right > 0 else 'left'}"
        heading = self.y.scale.heading
        drawing.text(0, 12, f"{heading} of what subscribers want" if self.y.metric == DELIVERY else heading)
        drawing.text(_WIDTH - _RIGHT, 12, f"better: {towards}", text_anchor="end")
        for value in ticks(self.up.low, self.up.high):
            y = self.up.at(value)
            drawing.line([(_LEFT, y), (_WIDTH - _RIGHT, y)], stroke=ink("line"), stroke_width=0.8)
            drawing.text(_LEFT - 6, y + 4, number(value), text_anchor="end")
        for value in ticks(self.across.low, self.across.high):
            drawing.text(self.across.at(value), _HEIGHT - _BOTTOM + 16, number(value), text_anchor="middle")
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        heading = _IN_FULL.get(self.x.metric, self.x.scale.heading)
        drawing.text(middle, _HEIGHT - 4, heading, text_anchor="middle")

    def _lines(self) -> Iterator[list[Case]]:
        """The cases of each protocol in the order in which its settings were swept, where it was a single one."""
        keys = {key for point in self.results.points for key in point.settings}
        if not self.swept or len(keys) != 1:
            return
        for protocol in self.results.protocols:
            line = [case for case in self.cases if case.protocol == protocol]
            if len(line) > 1:
                yield line

    def _mark(self, case: Case) -> None:
        x, y = self._place(case)
        wide = abs(self.across.at(self.x.mean(case) + self.x.half(case)) - x)
        high = abs(self.up.at(self.y.mean(case) + self.y.half(case)) - y)
        look = {"stroke": self._ink(case), "stroke_width": 1.1 if self.swept else 2.4}
        self.drawing.line([(x - wide, y), (x + wide, y)], **look)
        self.drawing.line([(x, y - high), (x, y + high)], **look)
        fill = ink("ground") if self.swept and case not in self.front else self._ink(case)
        self.drawing.circle(x, y, 4, self.results.name(case), fill=fill, stroke=self._ink(case), stroke_width=1.4)

    def _covered(self, x: float, wide: float, y: float) -> int:
        """How many seeds a name there would lie over."""
        return sum(abs(u - x) < wide + 3 and abs(v - y + 4) < 9 for _, u, v in self.seeds)

    def _name_them(self) -> None:
        """Names beside the clouds, none over another; of swept settings only those that no other beats."""
        taken = [(*self._place(case), 5.0) for case in self.cases] if self.swept else []
        front = self.front if len(self.front) <= _MOST_NAMED else []
        for case in front if self.swept else self.cases:
            x = self.across.at(self.x.mean(case))
            half = self.y.half(case)
            heights = [self.y.mean(case) - half, self.y.mean(case) + half, *([] if self.swept else self.y.dots(case))]
            lowest, highest = self.up.at(min(heights)), self.up.at(max(heights))
            value = f"{three_digits(self.x.mean(case))} {self.x.scale.unit}".rstrip()
            words = f"{self.results.name(case)} {value}"
            wide = 1.1 * width_of(words) / 2  # bold
            if 2 * wide > _WIDTH - _LEFT - _RIGHT:
                continue  # its disc says it to a pointer that rests there
            x = min(max(x, _LEFT + wide), _WIDTH - _RIGHT - wide)
            lines = [lowest + 14, highest - 8, lowest + 27, highest - 21, lowest + 40, highest - 34]
            inside = [y for y in lines if _TOP < y < _HEIGHT - _BOTTOM] or [lowest + 14]
            free = [y for y in inside if all(abs(y - 4 - v) >= 12 or abs(x - u) >= wide + w for u, v, w in taken)]
            if self.swept and not free:
                continue
            y = min(free or inside, key=partial(self._covered, x, wide))
            taken.append((x, y - 4, wide))
            look = {"class_": "halo", "style": f"fill:{self._ink(case)};font-weight:650"}
            self.drawing.text(x, y, words, text_anchor="middle", **look)
