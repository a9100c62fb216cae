"""Rendezvous keys as a join in plain SQL: events and subscriptions meet where their keys are equal.

This is TinyMQ's mapping (section III.C): an attribute's range is cut into 2^l bins, an event has the key of the cell
it lies in, a subscription the keys of all cells its box touches. A text is its own key, or its beginning is. Pairs
with equal keys are then compared exactly, so a key may be coarse, and hashes that collide do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as F  # noqa: N812 - as everywhere

from serai.core.conditions import Kind, Span, beginning, exactly
from serai.core.readings import Readings
from serai.matching.tables import quoted

MOST_GROUPS = 8
MOST_BROADCAST = 1_000_000  # listings: some 100 MB on each executor
_NARROW = 0.5
_SAMPLE = 1000
_MOST_BITS = 20  # per attribute
_MOST_LISTED = 64  # keys of a subscription, on average
COMPARED_NS, LISTED_NS = 100.0, 3000.0  # of Spark's join: a pair compared, a key made; they only steer the choice


class Bins(NamedTuple):
    """An attribute's part of a key: the bin it lies in."""

    attribute: str
    origin: float
    per_unit: float
    bins: int


class Beginning(NamedTuple):
    """A text's part of a key: its first characters, or all of it."""

    attribute: str
    length: int | None


class Group(NamedTuple):
    """Subscriptions that are narrow in the same attributes, and the parts of their keys."""

    narrow: tuple[str, ...]
    parts: tuple[Bins | Beginning, ...]


class KeyPlan(NamedTuple):
    """How keys are made, and what that will cost."""

    groups: tuple[Group, ...]
    reach: dict[str, tuple[float, float]]  # of each attribute with bounds
    compared: float  # subscriptions that an event is compared with
    listed: float  # keys in all

    @property
    def bits(self) -> str:
        """How fine the keys are, in words."""
        return " | ".join(", ".join(map(_in_words, group.parts)) or "none" for group in self.groups)


def _in_words(part: Bins | Beginning) -> str:
    if isinstance(part, Bins):
        return f"{part.attribute} {part.bins.bit_length() - 1} bits"
    return f"{part.attribute} {'whole' if part.length is None else f'{part.length} characters'}"


# --- Planning


class _Bounds(NamedTuple):
    """What possible subscriptions ask: bounds as float64, NaN where nothing is asked."""

    low: dict[str, NDArray[np.float64]]
    high: dict[str, NDArray[np.float64]]
    word: dict[str, NDArray[np.object_]]
    whole: dict[str, NDArray[np.bool_]]
    rows: int


def plan_keys(readings: Readings, total: int, expected_events: float) -> KeyPlan:
    """The keys that let an event meet few subscriptions that do not want it, at a fair number of keys.

    `total` is the number of subscriptions, of which `readings` may be a sample.
    """
    bounds = _bounds_of(readings)
    reach = {name: _reach(bounds.low[name], bounds.high[name]) for name in bounds.low}
    narrow = {name: _is_narrow(bounds, name, reach) for name in readings.named}
    codes = sum((mask * (1 << bit) for bit, mask in enumerate(narrow.values())), np.zeros(bounds.rows, np.int64))
    signatures, signature_of, counts = np.unique(codes, return_inverse=True, return_counts=True)
    names_of = [tuple(name for bit, name in enumerate(narrow) if code >> bit & 1) for code in signatures.tolist()]
    # The most demanding group first, here and in `_with_keys`: the more attributes a key has, the fewer events meet it.
    kept = sorted((names_of[s] for s in np.argsort(-counts, kind="stable")[:MOST_GROUPS]), key=len, reverse=True)
    homes = [next((group for group in kept if set(group) <= set(names)), ()) for names in names_of]
    if () not in kept and (not kept or () in homes or total > bounds.rows):
        kept.append(())  # whoever has no place elsewhere
    groups, compared, listed = [], 0.0, 0.0
    for group in kept:
        members = np.flatnonzero(np.isin(signature_of, [s for s, home in enumerate(homes) if home == group]))
        parts, met, keys = _plan_group(bounds, group, members, reach, total / max(1, bounds.rows), expected_events)
        groups.append(Group(group, parts))
        compared, listed = compared + met, listed + keys
    return KeyPlan(tuple(groups), reach, compared, listed)


def _bounds_of(readings: Readings) -> _Bounds:
    kept = np.flatnonzero(readings.possible)

    def numbers(columns: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
        return {
            name: np.where(readings.named[name], _signed(column).astype(np.float64), np.nan)[kept]
            for name, column in columns.items()
        }

    words = {name: [_word(span) for span in spans] for name, spans in readings.spans.items()}
    texts = {name: np.array([*(word for word, _ in column), None], object)[:-1][kept] for name, column in words.items()}
    whole = {name: np.array([whole for _, whole in column], np.bool_)[kept] for name, column in words.items()}
    return _Bounds(numbers(readings.low), numbers(readings.high), texts, whole, len(kept))


def _signed(column: NDArray[Any]) -> NDArray[Any]:
    """Numbers as Spark has them: unsigned ones are moved down by 2^63, which keeps their order."""
    return (column ^ np.uint64(1 << 63)).view(np.int64) if column.dtype == np.uint64 else column


def _word(span: Span | None) -> tuple[str | None, bool]:
    """The one text that is asked for, or what all of them begin with; None if there is no such thing."""
    if span is None or span not in (exactly(span.low), beginning(span.low)):
        return None, False
    return span.low, span == exactly(span.low)


def _reach(low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[float, float]:
    """Between which values nearly all bounds lie: half a per cent at each end may be far out."""
    bounds = np.concatenate([low, high])
    bounds = np.sort(bounds[np.abs(bounds) < 2.0**62])
    if len(bounds) == 0:
        return 0.0, 0.0
    return float(bounds[len(bounds) // 200]), float(bounds[-1 - len(bounds) // 200])


def _is_narrow(bounds: _Bounds, name: str, reach: Mapping[str, tuple[float, float]]) -> NDArray[np.bool_]:
    if name in bounds.word:
        return np.array([bool(word) for word in bounds.word[name]], np.bool_)
    first, last = reach[name]
    span = np.minimum(bounds.high[name], last) - np.maximum(bounds.low[name], first)
    return span < _NARROW * (last - first)  # False where nothing is asked


def _plan_group(
    bounds: _Bounds,
    narrow: Sequence[str],
    members: NDArray[np.int64],
    reach: Mapping[str, tuple[float, float]],
    each: float,
    expected_events: float,
) -> tuple[tuple[Bins | Beginning, ...], float, float]:
    """The parts of a group's keys, how many subscriptions an event meets in it, and how many keys it has."""
    beginnings = [_beginning(bounds, name, members) for name in narrow if name in bounds.word]
    numbers = [name for name in narrow if name not in bounds.word]
    # A sample, since each is compared with each: how many others would an event meet that lies in the middle of one?
    rows = members[np.linspace(0, len(members) - 1, min(_SAMPLE, len(members))).astype(np.int64)]
    each *= len(members) / max(1, len(rows))
    together = np.ones((len(rows), len(rows)), np.bool_)  # whether two subscriptions meet on their texts
    for part in beginnings:
        words = np.array([*(word[: part.length] for word in bounds.word[part.attribute][rows]), None], object)[:-1]
        together &= words[:, None] == words[None, :]

    def cost(bits: Sequence[int]) -> tuple[float, float, float]:
        meets, touched = together, np.ones(len(rows))
        for name, count in zip(numbers, bits, strict=True):
            bins = _bins(name, reach[name], count)
            first, last = _bin_of(bounds.low[name][rows], bins), _bin_of(bounds.high[name][rows], bins)
            middle = (first + last) // 2  # events are taken to be where subscriptions are
            touched = touched * (last - first + 1)
            meets = meets & (first[None, :] <= middle[:, None]) & (middle[:, None] <= last[None, :])
        met = float(meets.sum(axis=1).mean()) * each if len(rows) else 0.0
        listed = float(touched.sum()) * each
        if len(rows) and listed > _MOST_LISTED * each * len(rows):
            return np.inf, met, listed
        return COMPARED_NS * met + LISTED_NS * listed / expected_events, met, listed

    bits = [0] * len(numbers)
    best = cost(bits)
    # One bit more where it saves most, until it saves nothing; a bit doubles the bins of its attribute.
    while finer := [[*bits[:k], bits[k] + 1, *bits[k + 1 :]] for k in range(len(bits)) if bits[k] < _MOST_BITS]:
        costs = [cost(tried) for tried in finer]
        cheapest = min(range(len(costs)), key=lambda tried: costs[tried][0])
        if costs[cheapest][0] >= best[0]:
            break
        bits, best = finer[cheapest], costs[cheapest]
    parts = [_bins(name, reach[name], count) for name, count in zip(numbers, bits, strict=True) if count]
    return (*beginnings, *parts), best[1], best[2]


def _beginning(bounds: _Bounds, name: str, members: NDArray[np.int64]) -> Beginning:
    # As long as the shortest beginning that is asked for: an event has one key, so all must agree on its length.
    beginnings = bounds.word[name][members][~bounds.whole[name][members]]
    return Beginning(name, min((len(word) for word in beginnings), default=None))


def _bins(name: str, reach: tuple[float, float], bits: int) -> Bins:
    first, last = reach
    width = last - first
    return Bins(name, first, (1 << bits) / width if width > 0 and (1 << bits) / width < np.inf else 0.0, 1 << bits)


def _bin_of(values: NDArray[np.float64], bins: Bins) -> NDArray[np.int64]:
    with np.errstate(over="ignore", invalid="ignore"):
        place = np.nan_to_num((values - bins.origin) * bins.per_unit, nan=0.0, posinf=1e18, neginf=-1e18)
    return np.clip(np.floor(place), 0, bins.bins - 1).astype(np.int64)


# --- The join


def conditions_table(readings: Readings, kinds: Mapping[str, Kind], ids: pa.Array) -> pa.Table:
    """The conditions as columns: of attribute number k low<k> and high<k>, or nulls.

    Of texts also word<k>, which they are (whole<k>) or begin with, if the condition is of that kind.
    """
    columns: dict[str, Any] = {"subscription": ids.take(pa.array(readings.owner))}
    for k, name in enumerate(readings.named):
        free = ~readings.named[name]
        if kinds[name] == "text":
            words = [_word(span) for span in readings.spans[name]]
            columns[f"word{k}"] = pa.array([word for word, _ in words], pa.string())
            columns[f"whole{k}"] = pa.array([whole for _, whole in words], pa.bool_())
            spans = [span or Span("", None) for span in readings.spans[name]]
            columns[f"low{k}"] = pa.array([span.low for span in spans], pa.string(), mask=free)
            columns[f"high{k}"] = pa.array([span.high for span in spans], pa.string())
        else:
            columns[f"low{k}"] = pa.array(_signed(readings.low[name]), mask=free)
            columns[f"high{k}"] = pa.array(_signed(readings.high[name]), mask=free)
    return pa.table(columns)


def join_on_keys(
    events: DataFrame,
    conditions: DataFrame,
    names: Mapping[str, Kind],
    plan: KeyPlan,
    *,
    broadcast: bool,
    several: bool = False,
    order_by: str | None = None,
) -> DataFrame:
    """The pairs of `event` and `subscription` that match, with the column `order` if events are ordered.

    `several`: a subscription may stand in more than one row, any of which will do.
    """
    numbers = {name: k for k, name in enumerate(names)}
    values = [_comparable(events, name, kind).alias(f"value{k}") for k, (name, kind) in enumerate(names.items())]
    if several:  # ids of events may repeat, too: rows are told apart by their places
        values.append(F.monotonically_increasing_id().alias("row"))
    order = [F.col(quoted(order_by)).alias("order")] if order_by else []
    keyed = events.select("event", *values, *order)
    keys = [_event_key(number, group, numbers) for number, group in enumerate(plan.groups)]
    keyed = keyed.withColumn("key", F.explode(F.array(*keys)) if len(keys) > 1 else keys[0])
    listed = _with_keys(conditions, plan, numbers)
    listed = F.broadcast(listed) if broadcast else listed
    meets = F.col("e.key") == F.col("s.key")
    for k in numbers.values():
        meets = meets & _fits(k, conditions.columns)
    joined = keyed.where("event is not null and key is not null").alias("e").join(listed.alias("s"), meets)
    wanted = ["e.event", "s.subscription", *(["e.order"] if order_by else [])]
    if several:
        return joined.select(*wanted, "e.row").dropDuplicates(["row", "subscription"]).drop("row")
    return joined.select(*wanted)


def _comparable(events: DataFrame, name: str, asked: Kind) -> Column:
    """An attribute as it is compared: double, bigint or string; null where it is missing."""
    kind, value = events.schema[name].dataType, F.col(quoted(name))
    if asked == "unsigned":  # Spark has no such type, and reads it as decimal(20, 0)
        return (value.cast("decimal(20, 0)") - F.lit(Decimal(1 << 63))).cast("bigint")
    if isinstance(kind, types.BooleanType):
        return value.cast("bigint")
    if isinstance(kind, types.StringType):
        return value
    if isinstance(kind, types.DateType):
        return F.unix_date(value).cast("bigint") * F.lit(86_400_000_000)
    if isinstance(kind, types.TimestampNTZType):
        return F.expr(f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {quoted(name)})")
    if isinstance(kind, types.TimestampType):
        return F.unix_micros(value)
    if isinstance(kind, types.ByteType | types.ShortType | types.IntegerType | types.LongType):
        return value.cast("bigint")
    return F.nullif(value.cast("double"), F.lit(float("nan")))


def _bin(value: Column, bins: Bins) -> Column:
    """The bin of a value, the same for events and subscriptions; it never falls as the value rises."""
    place = (value.cast("double") - F.lit(bins.origin)) * F.lit(bins.per_unit)
    return F.floor(F.least(F.greatest(place, F.lit(0.0)), F.lit(float(bins.bins - 1)))).cast("bigint")


def _event_key(number: int, group: Group, numbers: Mapping[str, int]) -> Column:
    """An event's key in a group; null, which joins with nothing, if it lacks a value that the whole group asks for."""
    parts, there = [], F.lit(True)
    for part in group.parts:
        value = F.col(f"value{numbers[part.attribute]}")
        there = there & value.isNotNull()
        if isinstance(part, Bins):
            parts.append(_bin(value, part))
        else:
            parts.append(value if part.length is None else F.substring(value, 1, part.length))
    return F.when(there, F.xxhash64(F.lit(number), *parts))


def _with_keys(conditions: DataFrame, plan: KeyPlan, numbers: Mapping[str, int]) -> DataFrame:
    """The subscriptions, once for each of their keys."""
    group = F.raise_error(F.lit("a subscription without a key: this is a bug in serai")).cast("int")
    for number, each in reversed(list(enumerate(plan.groups))):
        group = F.when(_belongs(each, plan.reach, numbers), F.lit(number)).otherwise(group)
    grouped = conditions.withColumn("group", group)
    parts = []
    for number, each in enumerate(plan.groups):
        own = grouped.where(F.col("group") == number)
        columns = []
        for place, part in enumerate(each.parts):
            k = numbers[part.attribute]
            if isinstance(part, Beginning):
                own = own.withColumn(
                    f"part{place}",
                    F.col(f"word{k}") if part.length is None else F.substring(f"word{k}", 1, part.length),
                )
            else:
                cells = F.sequence(_bin(F.col(f"low{k}"), part), _bin(F.col(f"high{k}"), part))
                own = own.withColumn(f"part{place}", F.explode(cells))
            columns.append(F.col(f"part{place}"))
        parts.append(
            own.select("subscription", *conditions.columns[1:], F.xxhash64(F.lit(number), *columns).alias("key"))
        )
    together = parts[0]
    for part_frame in parts[1:]:
        together = together.unionAll(part_frame)
    return together


def _belongs(group: Group, reach: Mapping[str, tuple[float, float]], numbers: Mapping[str, int]) -> Column:
    """Whether a subscription is narrow in all attributes of the group, and can have a key in it."""
    belongs = F.lit(True)
    for name in group.narrow:
        k = numbers[name]
        if name not in reach:
            belongs = belongs & F.coalesce(F.length(f"word{k}") > 0, F.lit(False))
            continue
        first, last = reach[name]
        low, high = F.col(f"low{k}").cast("double"), F.col(f"high{k}").cast("double")
        span = F.least(high, F.lit(last)) - F.greatest(low, F.lit(first))
        belongs = belongs & F.coalesce(span < F.lit(_NARROW * (last - first)), F.lit(False))
    for part in group.parts:
        if isinstance(part, Beginning):
            k = numbers[part.attribute]
            # A beginning shorter than the key's would need a key for every text that goes on from it.
            long_enough = F.lit(False) if part.length is None else F.length(f"word{k}") >= part.length
            belongs = belongs & (F.col(f"whole{k}") | long_enough)
    return belongs


def _fits(k: int, columns: Sequence[str]) -> Column:
    """Whether an event has what a subscription asks of attribute number k; whoever asks nothing has nulls there."""
    value, low, high = F.col(f"e.value{k}"), F.col(f"s.low{k}"), F.col(f"s.high{k}")
    if f"word{k}" in columns:
        return low.isNull() | ((value >= low) & (high.isNull() | (value < high)))
    return low.isNull() | ((value >= low) & (value <= high))
