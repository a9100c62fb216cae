"""Two swept settings at once: a table of coloured cells for each protocol and metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from serai.kinds import protocol_label
from serai.log.svg import AMOUNTS, Drawing, ink
from serai.report.figures import Picture, colour_of
from serai.report.results import Results
from serai.report.wording import three_digits

_WIDTH: Final = 360.0
_TOP, _HIGH, _BOTTOM = 18.0, 24.0, 34.0
_MOST_VALUES: Final = 12  # of a setting: more do not fit beside each other

Cells = Mapping[tuple[str, str], float]


def heat_maps(results: Results, metrics: Sequence[str]) -> Iterator[Picture]:
    """A picture for each metric and protocol, where just two settings were swept; one metric has one scale."""
    axes = two_axes(results)
    if axes is None:
        return
    for metric in metrics:
        scale = results.scale(metric)
        found = {protocol: _cells(results, metric, protocol, axes) for protocol in results.protocols}
        known = [value for cells in found.values() for value in cells.values() if math.isfinite(value)]
        if not known:
            continue
        for protocol, cells in found.items():
            name = f"heat-{metric.replace('_', '-')}-{protocol}"
            caption = f"{protocol_label(protocol)}: {scale.heading}, {axes[1]} against {axes[0]}."
            drawing = _draw(results, axes, cells, (min(known), max(known)), protocol)
            told = "; ".join(f"{a} and {b}: {three_digits(value)}" for (a, b), value in list(cells.items())[:12])
            yield Picture(name, drawing.svg(f"{caption} {told}"), caption)


def two_axes(results: Results) -> tuple[str, str] | None:
    """The two settings that were swept, if it was two, and each of a few values."""
    values: dict[str, set[str]] = {}
    for number in results.numbers:
        for key, value in results.points[number].settings.items():
            values.setdefault(key, set()).add(value)
    swept = [key for key, found in values.items() if len(found) > 1]
    if len(swept) != 2 or any(len(values[key]) > _MOST_VALUES for key in swept):
        return None
    return swept[0], swept[1]


def _cells(results: Results, metric: str, protocol: str, axes: tuple[str, str]) -> dict[tuple[str, str], float]:
    factor = results.scale(metric).factor
    cells = {}
    for case in results.cases:
        settings = results.points[case.point].settings
        if case.protocol == protocol and all(axis in settings for axis in axes):
            cells[settings[axes[0]], settings[axes[1]]] = factor * results.estimate(case, metric).mean
    return cells


def _draw(results: Results, axes: tuple[str, str], cells: Cells, span: tuple[float, float], protocol: str) -> Drawing:
    columns = _in_order(list(dict.fromkeys(a for a, _ in cells)))
    rows = _in_order(list(dict.fromkeys(b for _, b in cells)))[::-1]
    left = 12.0 + 6.2 * max((len(row) for row in rows), default=0)
    wide = (_WIDTH - left) / max(len(columns), 1)
    drawing = Drawing(_WIDTH, _TOP + _HIGH * len(rows) + _BOTTOM)
    name = protocol_label(protocol)
    drawing.text(0, 11, name, font_weight=650, style=f"fill:{ink(colour_of(protocol, results.protocols))}")
    drawing.text(_WIDTH, 11, f"up: {axes[1]}", text_anchor="end")
    for line, row in enumerate(rows):
        y = _TOP + _HIGH * line
        drawing.text(left - 6, y + 16, row, text_anchor="end")
        for place, column in enumerate(columns):
            value = cells.get((column, row), math.nan)
            _cell(drawing, left + wide * place, y, wide, value, span)
    foot = _TOP + _HIGH * len(rows)
    for place, column in enumerate(columns):
        drawing.text(left + wide * (place + 0.5), foot + 14, column, text_anchor="middle")
    drawing.text((left + _WIDTH) / 2, foot + 29, axes[0], text_anchor="middle")
    return drawing


def _cell(drawing: Drawing, x: float, y: float, wide: float, value: float, span: tuple[float, float]) -> None:
    """A cell: the colour says where its value stands between the least and the most, and the words say the value."""
    if not math.isfinite(value):
        drawing.text(x + wide / 2, y + 16, "–", text_anchor="middle")
        return
    share = (value - span[0]) / ((span[1] - span[0]) or 1.0)
    shade = min(AMOUNTS - 1, int(share * AMOUNTS))
    drawing.add("rect", x=x + 0.5, y=y + 0.5, width=wide - 1, height=_HIGH - 1, fill=ink(f"a{shade}"), class_="cell")
    words = {"class_": "on-colour", "style": f"fill:{ink(f't{shade}')}"}
    drawing.text(x + wide / 2, y + 16, three_digits(value), text_anchor="middle", **words)


def _in_order(values: Sequence[str]) -> list[str]:
    """From the least to the most where all of them begin with numbers, else as they come."""
    try:
        return sorted(values, key=lambda value: float(value.split()[0]))
    except (ValueError, IndexError):
        return list(values)
