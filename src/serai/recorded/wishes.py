"""The subscriptions of a file: who asks for what, from when until when."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from serai.core.errors import BadSubscription, did_you_mean
from serai.recorded.columns import Column, Table, find_column, read_table, refuse
from serai.recorded.content import Content
from serai.world.grid import Floats, Numbers

SUBSCRIBERS = ("subscriber", "node")
_ENDS = (("from", -math.inf), ("until", math.inf))


class Wishes(NamedTuple):
    """Subscriptions, each a box and a time, R of them: `from_s` <= time < `until_s`.

    A line of the file is several of them if several subscribers ask for it, or if it asks for one of several boxes.
    """

    node: Numbers  # [R] which subscriber asks
    where: tuple[str, ...]  # [R]
    low: Floats  # [R, K]
    high: Floats
    from_s: Floats  # [R] -inf: since ever
    until_s: Floats  # [R] inf: for ever


def texts_of(path: Path) -> list[str]:
    """The conditions of a file of subscriptions, unread: what they name has to be known before events are."""
    table = read_table(path)
    return [text for text in table.columns[_where(table)].texts if text]


def _where(table: Table) -> str:
    name = find_column(table, ("where",))
    assert name is not None
    return name


def read_wishes(path: Path, who: Mapping[str, Sequence[int]], content: Content, begin_s: float | None) -> Wishes:
    """The subscriptions of a file.

    `who` are the subscribers by their names and by those of their groups; `begin_s` is the date of time 0.
    """
    table = read_table(path)
    problems = list(table.problems)
    name, where = find_column(table, SUBSCRIBERS), table.columns[_where(table)]
    assert name is not None
    ends = [_times(table, key, default, begin_s, problems) for key, default in _ENDS]
    rows = []
    for row in range(len(table.rows)):
        nodes = _nodes(table, name, row, who, problems)
        text = where.texts[row] if where.kind == "text" else None
        boxes = _boxes(table, row, text, content, problems)
        if not ends[0][row] < ends[1][row]:
            problems.append(f"{table.place(row)}: until is not after from")
        rows += [(node, text or "", low, high, *(end[row] for end in ends)) for node in nodes for low, high in boxes]
    refuse(table, problems)
    shape = len(rows), len(content.names)
    node, texts, low, high, from_s, until_s = zip(*rows, strict=True) if rows else ((),) * 6
    return Wishes(
        np.array(node, np.int32),
        tuple(texts),
        np.array(low, np.float64).reshape(shape),
        np.array(high, np.float64).reshape(shape),
        np.array(from_s, np.float64),
        np.array(until_s, np.float64),
    )


def _nodes(table: Table, name: str, row: int, who: Mapping[str, Sequence[int]], problems: list[str]) -> Sequence[int]:
    column = table.columns[name]
    called = column.texts[row] if column.kind == "text" else f"{column.numbers[row]:.15g}"
    if called is not None and called in who:
        return who[called]
    what = f'nobody is called "{called}"; {did_you_mean(called, list(who)[:20])}' if called else f"no {name}"
    problems.append(f"{table.place(row)}: {what}")
    return ()


def _boxes(
    table: Table, row: int, text: str | None, content: Content, problems: list[str]
) -> list[tuple[list[float], list[float]]]:
    """What a row asks for; what nothing can match stays, as an empty box."""
    if text is None:
        problems.append(f"{table.place(row)}: no condition in where")
        return []
    try:
        nothing = [math.inf] * len(content.names), [-math.inf] * len(content.names)
        return content.boxes(text) or [nothing]
    except BadSubscription as error:
        problems.append(f"{table.place(row)}: where: {error.message}, at character {error.position + 1}")
        return []


def _times(table: Table, key: str, default: float, begin_s: float | None, problems: list[str]) -> Floats:
    """One end of each row's time, in seconds since the beginning of the run."""
    name = find_column(table, (key,), needed=False)
    if name is None:
        return np.full(len(table.rows), default)
    column: Column = table.columns[name]
    if column.kind == "text" and not any(column.texts):
        return np.full(len(table.rows), default)
    if column.kind not in ("real", "integer", "time"):
        problems.append(f"{table.place(0)}: {key} holds neither seconds nor dates (2026-05-01T06:00)")
        return np.full(len(table.rows), default)
    if column.kind == "time" and begin_s is None:
        problems.append(f"{table.place(0)}: {key} holds dates, but nothing says when the run begins; write begin")
    zero_s = (begin_s or 0.0) if column.kind == "time" else 0.0
    return np.where(np.isnan(column.numbers), default, column.numbers - zero_s)
