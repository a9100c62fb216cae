"""The readings of a file, as events: which sensor measured what, and when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from serai.core.content import Attribute
from serai.core.errors import BadInput, did_you_mean
from serai.core.language import is_name
from serai.recorded.columns import Column, Table, find_column, read_table, refuse
from serai.recorded.content import Content
from serai.recorded.sections import RecordedEvents
from serai.recorded.thinning import thinned
from serai.world.grid import Floats, Numbers

TIMES = ("time", "timestamp", "at")
SENSORS = ("sensor", "node", "source")
_IDS = ("event", "id")


class Readings(NamedTuple):
    """What sensors measured in the time of the run, in order of time; of one time by sensor."""

    sensor: Numbers  # numbers of those given
    time_s: Floats  # since the beginning of the run
    values: Floats  # [E, K]
    content: Content
    lines: tuple[str, ...]  # where each stands in the file
    begin_s: float  # the run's time 0, in the file's time
    dated: bool  # whether times of the file are dates


def read_readings(
    asked: RecordedEvents,
    sensors: Sequence[str],
    begin_s: float | None,
    duration_s: float,
    named: set[str],
) -> Readings:
    """The readings of a scenario's file, thinned, in the time of the run.

    `begin_s` is the date of time 0; `named` are the attributes that conditions name.
    """
    assert asked.file is not None
    table = read_table(asked.file)
    time_name, sensor_name = find_column(table, TIMES), find_column(table, SENSORS)
    assert time_name is not None
    assert sensor_name is not None
    problems = list(table.problems)
    number = _sensor_numbers(table, sensor_name, sensors, problems)
    time_s = _times(table, time_name, problems)
    refuse(table, problems)
    dated = table.columns[time_name].kind == "time"
    zero_s = 0.0 if not dated else float(time_s.min()) if begin_s is None else begin_s
    rows = _rows_in_order(table.path, number, time_s - zero_s, duration_s, dated)
    content, values = _content_of(table, {time_name, sensor_name}, named, rows)
    number, since_s = number[rows], (time_s - zero_s)[rows]
    kept = thinned(number, since_s, asked.every_s, *_watched(asked, table, content, values))
    places = tuple(table.place(row) for row in rows[kept].tolist())
    return Readings(number[kept], since_s[kept], values[kept], content, places, zero_s, dated)


def _sensor_numbers(table: Table, name: str, sensors: Sequence[str], problems: list[str]) -> Numbers:
    """The number of each row's sensor: by its name, or, where none is called so, by its number."""
    called = _in_words(table.columns[name])
    number = {sensor: place for place, sensor in enumerate(sensors)}
    by_number = {str(place): place for place in range(len(sensors))} if not number.keys() & set(called) else {}
    unknown: set[str] = set()
    found = np.empty(len(called), np.int32)
    for row, word in enumerate(called):
        place = number.get(word or "", by_number.get(word or ""))
        if place is None and word not in unknown:
            unknown.add(word or "")
            what = f'no sensor is called "{word}"; {did_you_mean(word, sensors[:10])}' if word else f"no {name}"
            problems.append(f"{table.place(row)}: {what}")
        found[row] = -1 if place is None else place
    return found


def _in_words(column: Column) -> list[str | None]:
    if column.kind == "text":
        return list(column.texts)
    return [None if math.isnan(number) else f"{number:.15g}" for number in column.numbers.tolist()]


def _times(table: Table, name: str, problems: list[str]) -> Floats:
    """When each row was measured, in seconds or in seconds since 1970."""
    column = table.columns[name]
    if column.kind not in ("real", "integer", "time"):
        raise BadInput(f"{table.path}: {table.place(0)}: {name} holds neither seconds nor dates (2026-05-01T06:00)")
    if not table.problems:  # else what could not be read would seem to be missing
        problems += [f"{table.place(row)}: no {name}" for row in np.flatnonzero(np.isnan(column.numbers)).tolist()]
    return column.numbers


def _rows_in_order(path: Path, number: Numbers, since_s: Floats, duration_s: float, dated: bool) -> Numbers:
    """The rows in the time of the run, by time and sensor; those outside are not of this run."""
    inside = np.flatnonzero((since_s >= 0) & (since_s < duration_s))
    if not len(inside):
        remedy = "; does `begin` say the date of the run's time 0?" if dated else "; times are seconds since its begin"
        raise BadInput(
            f"{path}: no reading in the time of the run, 0 to {duration_s:g} s; they are from {since_s.min():g} to"
            f" {since_s.max():g} s{remedy}"
        )
    order = inside[np.lexsort((inside, number[inside], since_s[inside]))]
    return order.astype(np.int32)


def _content_of(table: Table, places: set[str], named: set[str], rows: Numbers) -> tuple[Content, Floats]:
    """The attributes of the rows: all columns, but for ids, and for time and sensor where nobody asks for them."""
    ids = {name for name in table.columns if name.lower() in _IDS}
    names = [name for name in table.columns if (name not in places and name not in ids) or name in named]
    if not names:
        raise BadInput(f"{table.path}: no column with an attribute; it has: {', '.join(table.columns)}")
    values, texts, domains = np.empty((len(rows), len(names))), {}, []
    for k, name in enumerate(names):
        column = table.columns[name]
        if column.kind == "text":
            texts[name] = sorted({text for text in column.texts if text is not None})
            code = {text: place for place, text in enumerate(texts[name])}
            values[:, k] = [code.get(column.texts[row] or "", math.nan) for row in rows.tolist()]
        else:
            values[:, k] = column.numbers[rows]
        domains += [_domain(name, column, values[:, k])] if is_name(name) else []
    kinds = {name: table.columns[name].kind for name in names}
    return Content(tuple(names), kinds, texts, tuple(domains)), values


def _domain(name: str, column: Column, values: Floats) -> Attribute:
    """From the least to the greatest value; numbers for ? are drawn from it."""
    given = values[~np.isnan(values)]
    low, high = (float(given.min()), float(given.max())) if len(given) else (0.0, 1.0)
    kind: Literal["real", "integer"] = "real" if column.kind == "real" else "integer"
    if column.kind == "time":
        low, high = math.floor(low), math.ceil(high)
    if low == high:  # a domain is never a single value
        low, high = (low - 1, high) if high > 0 else (low, high + 1)
        low, high = (low, high) if low < high else (min(low, 0.0), max(high, 0.0))
    return Attribute(name, kind, low, high)


def _watched(asked: RecordedEvents, table: Table, content: Content, values: Floats) -> tuple[Floats, Floats]:
    """The columns in which a change counts, and how large it has to be."""
    change = asked.on_change or {}
    for name, least in change.items():
        if name not in content.names:
            meant = did_you_mean(name, content.names)
            raise BadInput(f"events.on_change: {table.path} has no attribute {name}; {meant}")
        if content.kinds[name] == "text" and least:
            raise BadInput(f"events.on_change: {name} holds texts, which differ or do not; write {name} = 0")
    return values[:, [content.names.index(name) for name in change]], np.array(list(change.values()), np.float64)
