"""What is harvested by the hour of the day: "2 mW", {"6-18" = "2 mW"}, or 24 powers, one for each hour."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from serai.core.units import POWER, format_quantity, parse_quantity

HOURS: Final = 24
MOST_W: Final = 1000.0
_SPAN: Final = re.compile(r"\s*(\d{1,2})\s*-\s*(\d{1,2})\s*")


def parse_power(written: object) -> float:
    """A power, perhaps none; a ValueError says what is wrong with it."""
    number = parse_quantity(written, POWER)
    if not 0 <= number <= MOST_W:
        raise ValueError(f"{json.dumps(written)} is not between 0 and {MOST_W:g} W")
    return number


def parse_harvest(written: Any) -> tuple[float, ...]:
    """The power in each hour of the day; a ValueError says what is wrong.

    A text with a colon is a table in one cell: "6-18: 2 mW; 18-20: 0.5 mW".
    """
    if isinstance(written, str) and ":" in written:
        written = [one.partition(":")[::2] for one in written.split(";")]
        return _by_span(written)
    if isinstance(written, Mapping):
        return _by_span(list(written.items()))
    if isinstance(written, tuple):  # in watts: it has been read before
        return written
    if isinstance(written, list):
        if len(written) != HOURS:
            raise ValueError(f"{HOURS} powers are needed, one for each hour of the day, not {len(written)}")
        return tuple(map(parse_power, written))
    if isinstance(written, str) and (span := _SPAN.match(written)):
        power = written[span.end() :].strip() or "2 mW"
        raise ValueError(f'"{written}" has no colon; write it like "{span.group().strip()}: {power}"')
    return (parse_power(written),) * HOURS


def _by_span(spans: Sequence[tuple[Any, Any]]) -> tuple[float, ...]:
    """Powers between hours; in those that nobody mentions there is none."""
    by_hour: dict[int, float] = {}
    for span, power in spans:
        found = _SPAN.fullmatch(str(span))
        begin, end = map(int, found.groups()) if found else (HOURS, HOURS)
        if begin >= HOURS or end > HOURS or begin == end:
            raise ValueError(f'"{str(span).strip()}" is not a span of hours; write it like "6-18", from 0 to {HOURS}')
        for hour in range(begin, end if end > begin else end + HOURS):
            if hour % HOURS in by_hour:
                raise ValueError(f"the hour from {hour % HOURS} to {hour % HOURS + 1} is there twice")
            by_hour[hour % HOURS] = parse_power(power.strip() if isinstance(power, str) else power)
    return tuple(by_hour.get(hour, 0.0) for hour in range(HOURS))


def format_harvest(by_hour: Sequence[float]) -> str | dict[str, str]:
    """What gives the same powers again."""
    if len(set(by_hour)) == 1:
        return format_quantity(by_hour[0], POWER)
    starts = [hour for hour in range(HOURS) if hour == 0 or by_hour[hour] != by_hour[hour - 1]]
    spans = zip(starts, [*starts[1:], HOURS], strict=True)
    return {f"{a}-{b}": format_quantity(by_hour[a], POWER) for a, b in spans if by_hour[a]}
