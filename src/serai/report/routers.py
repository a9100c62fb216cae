"""Routers of one world as a picture: what each delivers against what a delivery puts on the air."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from serai.core.statistics import Estimate
from serai.log.svg import ink, width_of
from serai.report.figures import Picture
from serai.report.panel import Panel, open_panel, whisker
from serai.report.wording import three_digits

_PER_KB: Final = 1000.0
_LETTER_HIGH: Final = 12.0
_ROOM: Final = 0.08  # of what is shown, beyond it on each side
_COLOURS: Final = {"dpsp": "p0", "flooding": "p1", "other": "p2"}


@dataclass(frozen=True)
class Router:
    """A router and what it did: the share of what is wanted in per cent, kilobytes on the air per delivery."""

    name: str
    family: str
    """`dpsp`, `flooding` or `other`."""
    label: str
    """What stands beside its dot; empty: the dot alone."""
    delivered: Estimate
    on_air: Estimate

    @property
    def at(self) -> tuple[float, float]:
        """Its place in numbers: kilobytes, per cent."""
        return self.on_air.mean / _PER_KB, 100 * self.delivered.mean

    def ends(self) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """The ends of its two intervals, along and up."""
        (x, y), wide, high = self.at, _half(self.on_air) / _PER_KB, 100 * _half(self.delivered)
        return [(x - wide, y), (x + wide, y)], [(x, y - high), (x, y + high)]


def _half(measured: Estimate) -> float:
    half = measured.half_width()
    return half if math.isfinite(half) else 0.0


def delivery_against_bytes(name: str, where: str, routers: Sequence[Router]) -> Picture:
    """Every router as a dot; those with a label also with their intervals and their names."""
    known = [router for router in routers if all(map(math.isfinite, router.at))]
    named = [router for router in known if router.label]
    ends = [end for router in named for pair in router.ends() for end in pair] + [router.at for router in known]
    spans = _span([x for x, _ in ends]), _span([y for _, y in ends])
    panel = open_panel([], spans, ("kB on air per delivery", "delivered, %"), height=330)
    for router in sorted(known, key=lambda one: bool(one.label)):
        _mark(panel, router)
    for router, (x, y) in _places(panel, known, named):
        look = {"class_": "halo", "style": f"fill:{ink(_COLOURS[router.family])};font-weight:650"}
        panel.drawing.text(x, y, router.label, text_anchor="middle", **look)
    caption = (
        f"{where}. Every router's delivery against what it costs; better: up and to the left."
        " Blue: DPSP, every combination of filters and priorities; orange: Flooding; green: routers of others."
    )
    told = "; ".join(f"{one.name} {three_digits(one.at[1])} %, {three_digits(one.at[0])} kB" for one in named)
    return Picture(name, panel.drawing.svg(f"{caption} {told}"), caption)


def _span(numbers: Sequence[float]) -> tuple[float, float]:
    room = _ROOM * (max(numbers) - min(numbers)) or 1.0
    return max(0.0, min(numbers) - room), max(numbers) + room


def _mark(panel: Panel, router: Router) -> None:
    colour, said = _COLOURS[router.family], f"{router.name}: {three_digits(router.at[1])} %"
    if router.label:
        for ends in router.ends():
            whisker(panel.drawing, [panel.point(*end) for end in ends], colour)
    strong = {"fill_opacity": 1.0 if router.label else 0.3}
    panel.drawing.circle(*panel.point(*router.at), 4 if router.label else 3, said, fill=ink(colour), **strong)


def _places(
    panel: Panel, known: Sequence[Router], named: Sequence[Router]
) -> Iterator[tuple[Router, tuple[float, float]]]:
    """Where each name stands: near its dot, over no other name, over as few dots as may be; else nowhere."""
    dots = [panel.point(*router.at) for router in known]
    taken: list[tuple[float, float, float]] = []
    for router in named:
        (x, y), wide = panel.point(*router.at), 1.1 * width_of(router.label) / 2  # bold
        beside = [(x + side * (wide + 8), y + 4 + down) for down in (0, -9, 9) for side in (1, -1)]
        free = [
            (u, v)
            for u, v in [*beside, (x, y - 9), (x, y + 17), (x, y - 22), (x, y + 30)]
            if panel.across.begin <= u - wide and u + wide <= panel.drawing.width
            and panel.up.end <= v <= panel.up.begin
            and all(abs(u - s) >= wide + w or abs(v - t) >= _LETTER_HIGH for s, t, w in taken)
        ]  # fmt: skip
        if free:
            u, v = min(free, key=lambda place: _covered(dots, place, wide))
            taken.append((u, v, wide))
            yield router, (u, v)


def _covered(dots: Sequence[tuple[float, float]], place: tuple[float, float], wide: float) -> int:
    """How many dots a name there would lie over."""
    x, y = place
    return sum(abs(u - x) < wide + 3 and abs(v - y + 4) < _LETTER_HIGH / 2 + 3 for u, v in dots)
