"""Collected events and subscriptions to match, drawn at random; and the pairs that match, one by one."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from serai.core.conditions import Kind, read_conditions, wanted

TYPES: dict[str, pa.DataType] = {
    "real": pa.float64(),
    "integer": pa.int64(),
    "time": pa.timestamp("us", "UTC"),
    "text": pa.string(),
}
# Few distinct values, so that values and bounds often coincide; and the ends of what can be.
REALS = [-math.inf, -1.7976931348623157e308, -1.0, -5e-324, -0.0, 0.0, 1.0, math.nextafter(1, 2), 2.5, 1e308, math.inf]
INTEGERS = [-(2**63), -(2**53) - 1, -1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1]
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
TIMES = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    NOON,
    NOON + timedelta(microseconds=1),
    datetime(9999, 12, 31, tzinfo=UTC),
]
TEXTS = [
    "",
    "n",
    "no",
    "north",
    "northern",
    "North",
    "ñ",
    "\U0010ffff",
    "\U0010ffff\U0010ffff",
    "a'b",
    'a"b',
    "\0",
    "%_",
]
ZONES = [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))]

Row = dict[str, Any]


def values(kind: Kind) -> st.SearchStrategy[Any]:
    known = {"real": [*REALS, math.nan], "integer": INTEGERS, "time": TIMES, "text": TEXTS}[kind]
    free = {
        "real": st.floats(),
        "integer": st.integers(-(2**63), 2**63 - 1),
        "time": st.sampled_from(TIMES),
        "text": st.text(max_size=4).filter(encodable),
    }[kind]
    return st.none() | st.sampled_from(known) | free  # type: ignore[operator]


def encodable(text: str) -> bool:
    return not any(0xD800 <= ord(character) < 0xE000 for character in text)


@st.composite
def conditions(draw: st.DrawFn, name: str, kind: Kind) -> str:
    """One comparison with an attribute."""
    if kind == "text":
        operator = draw(st.sampled_from(["=", "starts with"]))
        word = draw(st.sampled_from(TEXTS) | st.text(max_size=2).filter(encodable))
        return f"{name} {operator} '{word.replace(chr(39), chr(39) * 2)}'"
    operator = draw(st.sampled_from(["<", "<=", ">", ">=", "="]))
    if kind == "real":
        bound = repr(draw(st.sampled_from([bound for bound in REALS if math.isfinite(bound)])))
    elif kind == "integer":
        bound = draw(st.sampled_from([*map(str, INTEGERS), "2.5", "-0.5", "1e300", "-1e300"]))
    else:
        bound = draw(st.sampled_from(TIMES[1:-1])).astimezone(draw(st.sampled_from(ZONES))).isoformat()
    return f"{name} {operator} {bound}"


@st.composite
def worlds(draw: st.DrawFn, most_events: int = 12, most_subscriptions: int = 12) -> tuple[pa.Table, list[str]]:
    """A table of events with 1 to 6 attributes, and subscription texts."""
    kinds: dict[str, Kind] = {
        f"a{number}": draw(st.sampled_from(["real", "real", "integer", "time", "text"]))
        for number in range(draw(st.integers(1, 6)))
    }
    rows = draw(
        st.lists(st.fixed_dictionaries({name: values(kind) for name, kind in kinds.items()}), max_size=most_events)
    )
    texts = st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=4).flatmap(
        lambda names: st.tuples(*(conditions(name, kinds[name]) for name in names)).map(" and ".join)
    )
    schema = pa.schema([("event", pa.int64()), *((name, TYPES[kind]) for name, kind in kinds.items())])
    numbered = [{"event": 100 + number} | row for number, row in enumerate(rows)]
    return pa.Table.from_pylist(numbered, schema), draw(st.lists(texts, max_size=most_subscriptions))


def kinds_of(events: pa.Table) -> dict[str, Kind]:
    kind_of = {kind: name for name, kind in TYPES.items()}
    return {column.name: kind_of[column.type] for column in events.schema if column.name != "event"}  # type: ignore[misc]


def pairs_one_by_one(events: pa.Table, texts: list[str]) -> list[tuple[int, int]]:
    """Every pair of an event and the number of a subscription that wants it."""
    kinds = kinds_of(events)
    asked = [read_conditions(text, kinds) for text in texts]
    rows = events.to_pylist()
    return sorted((row["event"], s) for row in rows for s, conditions in enumerate(asked) if wanted(conditions, row))


def crowd(seed: int, events: int, subscriptions: int) -> tuple[pa.Table, list[str]]:
    """Many events with an attribute of every kind, and many subscriptions, few values among them."""
    draw = random.Random(seed)
    kinds: dict[str, Kind] = {"r1": "real", "r2": "real", "n": "integer", "t": "time", "s": "text", "c": "text"}
    pools: dict[Kind, list[Any]] = {"real": [*REALS, math.nan], "integer": INTEGERS, "time": TIMES, "text": TEXTS}
    rows = [
        {"event": number} | {name: draw.choice([*pools[kind], None]) for name, kind in kinds.items()}
        for number in range(events)
    ]
    schema = pa.schema([("event", pa.int64()), *((name, TYPES[kind]) for name, kind in kinds.items())])
    texts = [
        " and ".join(one_condition(draw, name, kinds[name]) for name in draw.sample(sorted(kinds), draw.randint(1, 4)))
        for _ in range(subscriptions)
    ]
    return pa.Table.from_pylist(rows, schema), texts


def one_condition(draw: random.Random, name: str, kind: Kind) -> str:
    if kind == "text":
        quoted = draw.choice(TEXTS).replace("'", "''")
        return f"{name} {draw.choice(['=', '=', 'starts with'])} '{quoted}'"
    bounds: dict[str, list[str]] = {
        "real": [repr(bound) for bound in REALS if math.isfinite(bound)],
        "integer": [*map(str, INTEGERS), "2.5", "-1e300"],
        "time": [moment.astimezone(draw.choice(ZONES)).isoformat() for moment in TIMES[1:-1]],
    }
    one, other = draw.choice(bounds[kind]), draw.choice(bounds[kind])
    return draw.choice(
        [f"{name} {draw.choice(['<', '<=', '>', '>=', '='])} {one}", f"{one} <= {name} <= {other}", f"{name} = {one}"]
    )
