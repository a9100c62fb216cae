"""Random subscriptions that know what they mean: an expression writes itself as a text, and judges events by itself.

Nothing of serai is used here. Values are compared as Python compares them, exactly; a missing value makes a comparison
neither true nor false, as in SQL.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

Verdict = bool | None
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "r": (pa.float64(), [-math.inf, -1e308, -1.0, -5e-324, -0.0, 0.0, 1.0, 2.5, math.inf, math.nan]),
    "n": (pa.int64(), [-(2**63), -(2**53) - 1, -1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1]),
    "u": (pa.uint64(), [0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]),
    "t": (pa.timestamp("us", "UTC"), [NOON + timedelta(microseconds=k) for k in (-1, 0, 1, 86_400_000_000)]),
    "s": (pa.string(), ["", "n", "no", "nor", "North", "ñ", "温度", "\ud7ff", "\ue000", "\U0010ffff", "a'b", "\0"]),
    "b": (pa.bool_(), [True, False]),
    "温度": (pa.float64(), [0.0, 1.0, 2.0]),
    "air temp": (pa.int64(), [0, 1, 2]),
}  # fmt: skip


class Expression(NamedTuple):
    """A text, and what it says of an event: true, false, or neither."""

    text: str
    says: Callable[[dict[str, Any]], Verdict]


def events(draw: random.Random, rows: int) -> pa.Table:
    columns = {
        name: pa.array([draw.choice([*pool, None]) for _ in range(rows)], kind)
        for name, (kind, pool) in COLUMNS.items()
    }
    return pa.table({"event": pa.array(range(rows), pa.int64()), **columns})


def expression(draw: random.Random, depth: int = 3) -> Expression:
    form = draw.choice(["and", "and", "or", "not", "one", "one"]) if depth else "one"
    if form == "one":
        return comparison(draw)
    if form == "not":
        inner = expression(draw, depth - 1)
        return Expression(f"{draw.choice(['not ', '!', '¬'])}({inner.text})", lambda event: denied(inner.says(event)))
    one, other = expression(draw, depth - 1), expression(draw, depth - 1)
    sign = draw.choice({"and": ["and", "AND", "&&"], "or": ["or", "||", "∨"]}[form])
    join = all_of if form == "and" else any_of
    return Expression(f"({one.text}) {sign} ({other.text})", lambda event: join(one.says(event), other.says(event)))


def comparison(draw: random.Random) -> Expression:
    name = draw.choice(sorted(COLUMNS))
    written = f"`{name}`" if " " in name or draw.random() < 0.2 else name
    pool = [value for value in COLUMNS[name][1] if not isinstance(value, float) or math.isfinite(value)]
    if draw.random() < 0.25 and name != "b":
        some = draw.choices(pool, k=draw.randint(1, 4))
        sign = draw.choice(["in", "not in"])
        listed = Expression(
            f"{written} {sign} ({', '.join(literal(value) for value in some)})",
            lambda event: on(event[name], lambda value: any(value == each for each in some)),
        )
        return listed if sign == "in" else Expression(listed.text, lambda event: denied(listed.says(event)))
    bound = draw.choice(pool)
    if name == "s" and draw.random() < 0.5:
        return Expression(
            f"{written} starts with {literal(bound)}",
            lambda event: on(event[name], lambda value: value.startswith(bound)),
        )
    operator = draw.choice(["=", "!="] if name in ("s", "b") else ["=", "!=", "<", "<=", ">", ">="])
    test = _TESTS[operator]
    return Expression(
        f"{written} {operator} {literal(bound)}",
        lambda event: on(event[name], lambda value: test(value, bound)),
    )


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda value, bound: value == bound,
    "!=": lambda value, bound: value != bound,
    "<": lambda value, bound: value < bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    ">=": lambda value, bound: value >= bound,
}


def literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else repr(value)


def on(value: Any, test: Callable[[Any], bool]) -> Verdict:
    return None if value is None or value != value else test(value)


def denied(verdict: Verdict) -> Verdict:
    return None if verdict is None else not verdict


def all_of(one: Verdict, other: Verdict) -> Verdict:
    return False if one is False or other is False else None if one is None or other is None else True


def any_of(one: Verdict, other: Verdict) -> Verdict:
    return denied(all_of(denied(one), denied(other)))


def pairs(table: pa.Table, asked: list[Expression]) -> list[tuple[int, int]]:
    rows = table.to_pylist()
    return [(row["event"], number) for row in rows for number, one in enumerate(asked) if one.says(row) is True]
