"""What sensors of a positions file may have of their own: a column or property each, with its units and limits.

Other columns are nobody's business here. An empty cell, or null, leaves the sensor what the scenario gives to all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from serai.core.harvest import parse_harvest, parse_power
from serai.core.units import ENERGY, LENGTH, TIME, Dimension, parse_quantity

_MOST_COPIES = 1_000_000


class Own(NamedTuple):
    """What each sensor has of its own, in base units; None: nothing, it has what all have."""

    battery_j: tuple[float | None, ...]
    interval_s: tuple[float | None, ...]
    queue: tuple[int | None, ...]
    range_m: tuple[float | None, ...]
    idle_w: tuple[float | None, ...]
    harvest_w: tuple[tuple[float, ...] | None, ...]  # by hour of the day
    places: tuple[str, ...]  # where the file says it: "line 3"

    @classmethod
    def nothing(cls, places: Sequence[str]) -> Own:
        """Sensors that are all alike."""
        nothing = (None,) * len(places)
        return cls._make([*[nothing] * len(_COLUMNS), tuple(places)])

    def with_more(self, count: int) -> Own:
        """The same and so many sensors that have nothing of their own."""
        more = Own.nothing(("",) * count)
        return Own._make(mine + theirs for mine, theirs in zip(self, more, strict=True))


def own_of(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[Own, list[str]]:
    """What the sensors of a file have of their own, and what is wrong with it; a row is its place and what it says."""
    problems: list[str] = []
    columns = [tuple(_read(place, said, name, problems) for place, said in rows) for name in _COLUMNS]
    return Own._make([*columns, tuple(place for place, _ in rows)]), problems


def _read(place: str, said: Mapping[str, Any], name: str, problems: list[str]) -> Any:
    """One value; None, and what is wrong with it, if it cannot be used."""
    written = said.get(name)
    if isinstance(written, str):
        written = written.strip()
    if written is None or written == "":
        return None
    try:
        return _COLUMNS[name](written)
    except ValueError as error:
        problems.append(f"{place}: {name}: {error}")
        return None


def _above_0(dimension: Dimension, most: float, in_words: str) -> Callable[[Any], float]:
    """A reader of quantities above 0."""

    def read(written: Any) -> float:
        number = parse_quantity(written, dimension)
        if not 0 < number <= most:
            raise ValueError(f"{json.dumps(written)} is not above 0 and at most {in_words}")
        return number

    return read


def _copies(written: Any) -> int:
    """A whole number of copies."""
    text = str(written)
    if isinstance(written, bool) or not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MOST_COPIES):
        raise ValueError(f"{json.dumps(written)[:40]} is not a whole number from 1 to {_MOST_COPIES:,}")
    return int(text)


_COLUMNS: Mapping[str, Callable[[Any], Any]] = {
    "battery": _above_0(ENERGY, 9e6, "9 MJ"),
    "interval": _above_0(TIME, 1e12, "1e12 s"),
    "queue": _copies,
    "range": _above_0(LENGTH, 1e7, "10,000 km"),
    "idle": parse_power,
    "harvest": parse_harvest,
}
