"""What another protocol would have done: recorded contacts, events and subscriptions as a scenario, simulated again.

Where nodes told what they asked for (`asked`), channels are theirs. Elsewhere the subscriptions of the pipeline count,
if their table has a column `subscriber`, the node that waits: a channel is then a set of subscriptions that want the
same events, so that who wants what is exactly what the matching says.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from serai.core.errors import BadInput
from serai.core.jit import announced_compilation
from serai.lab import parse_scenario
from serai.opportunistic.engine.setup import records
from serai.opportunistic.engine.state import DROP, DROPS, TRANSFER, TRANSFERS, Outcome
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import Given, simulate_given
from serai.opportunistic.world import Bundles, Published, Subscriptions, Wanted
from serai.pipeline.asked import read_subscriptions
from serai.pipeline.config import Pipeline
from serai.pipeline.recorded import moment_of
from serai.pipeline.tables import Tables
from serai.world.contacts import Contacts, in_order

_DAY_S = 86_400.0
_SIZE_BYTES, _LIFETIME_S = 1_000, 7 * _DAY_S  # of events whose logs do not say it
_SCENARIO = """
title = "recorded in the field"
duration = "1 d"
[contacts]
source = "trace"
file = "contacts.parquet"
[protocol]
name = "dpsp"
"""


class Interval(NamedTuple):
    """A time that was recorded, in seconds since 1970."""

    begin_s: float
    end_s: float


@dataclass(frozen=True)
class Replayed:
    """What was recorded, and what was simulated for the same contacts, events and subscriptions."""

    recorded: OpportunisticRun | None  # None: nobody told of deliveries
    simulated: OpportunisticRun
    interval: Interval


def replay(
    config: Pipeline,
    protocol: str | None = None,
    days: str | None = None,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    full_log: bool = False,
) -> Replayed:
    """Simulate what the tables of a pipeline hold of these days, under a protocol."""
    field = _Field(config, None if days is None else days_of(days))
    scenario = field.scenario(overrides, protocol)
    given = field.given(scenario)
    known = [row["seed"] for row in field.recordings]
    if seed is None:
        seed = known[0] if len(known) == 1 else 0
    recorded = field.outcome(given)
    before = None
    if recorded is not None:
        before = OpportunisticRun(
            scenario, "recorded", seed, given.world, recorded, given.names, given.published, given.wanted
        )
    with announced_compilation(scenario.protocol.name):
        return Replayed(before, simulate_given(scenario, given, seed, full_log), field.interval)


def days_of(text: str, option: str = "--days") -> Interval:
    """The days FROM..TO, both included; TO may leave out what it shares with FROM."""
    first, dots, last = text.partition("..")
    try:
        begin = datetime.fromisoformat(first).replace(tzinfo=UTC)
        end = datetime.fromisoformat(first[: len(first) - len(last)] + last).replace(tzinfo=UTC) if dots else begin
        if len(first) != 10 or end < begin:
            raise ValueError(text)
    except ValueError:
        raise BadInput(f"{option} {text}: write 2026-11-01..2026-11-07, or 2026-11-01..07, or one day") from None
    return Interval(begin.timestamp(), (end + timedelta(days=1)).timestamp())


class _Field:
    """What the tables of a pipeline hold of some days."""

    def __init__(self, config: Pipeline, interval: Interval | None) -> None:
        self.config, self.tables = config, Tables(config.home)
        events = self.tables.read("events")
        if not len(events):
            raise BadInput(f"{config.home}: no events in its tables; run the pipeline first")
        self.recordings = sorted(
            self.tables.read("recordings").to_pylist(), key=lambda row: (row["begin_s"], *row["nodes"])
        )
        self.contacts = self.tables.read("contacts")
        if not len(self.contacts):
            raise BadInput(
                f"{config.home}: no contacts in its tables; put run folders, stores of nodes, or files with the columns"
                " a, b, start and end into the inbox"
            )
        self.events = _with_times(events)
        self.interval = interval or self._all_time()
        begin_s, end_s = self.interval
        self.recordings = [
            row for row in self.recordings if (row["end_s"] or end_s) > begin_s and row["begin_s"] < end_s
        ]
        inside = [row for row in self.events.to_pylist() if begin_s <= row["time_s"] < end_s]
        self.asked = self.tables.read("asked").to_pylist()
        self.deliveries = self.tables.read("deliveries").to_pylist()
        self.names = self._names(inside)
        self.number = {name: place for place, name in enumerate(self.names)}
        inside.sort(key=lambda row: (row["time_s"], self.number[row["node"]], row["seq"] or 0, row["event"]))
        self.born = inside

    def _all_time(self) -> Interval:
        """From midnight before the first event or contact to the end of the last."""
        first_s = min(self.events["time_s"].to_numpy().min(), self.contacts["start_s"].to_numpy().min())
        told = [row["end_s"] for row in self.recordings if row["end_s"] is not None]
        ends = self.contacts["end_s"].to_numpy()
        last_s = max(self.events["time_s"].to_numpy().max(), ends[np.isfinite(ends)].max(initial=0.0))
        return Interval(math.floor(first_s / _DAY_S) * _DAY_S, max(told) if told else math.ceil(last_s))

    def _names(self, inside: list[dict[str, Any]]) -> tuple[str, ...]:
        """The nodes as recordings number them, then the others by name."""
        found: dict[str, None] = dict.fromkeys(name for row in self.recordings for name in row["nodes"])
        more = {row["node"] for row in inside} | {row["node"] for row in self.asked}
        for end in ("a", "b"):
            more |= set(self.contacts[end].to_pylist())
        if not self.asked:
            more |= {node for node in self._subscribers().values() if node}
        return (*found, *sorted(more - set(found)))

    # --- As a scenario

    def scenario(self, overrides: Sequence[str], protocol: str | None) -> OpportunisticScenario:
        """What the recordings say of radio and stores, or what is usual; it lasts as long as was recorded."""
        told = [row["scenario"] for row in self.recordings if row["scenario"]]
        duration = f'duration="{self.interval.end_s - self.interval.begin_s!r} s"'
        where = str(self.config.home)
        scenario = parse_scenario(told[-1] if told else _SCENARIO, where, [duration, *overrides], protocol)
        if not isinstance(scenario, OpportunisticScenario):
            raise BadInput(
                f"{where}: recorded in a network of another kind than nodes that meet; it cannot be replayed"
            )
        return scenario

    def given(self, scenario: OpportunisticScenario) -> Given:
        """Everything that a run begins with."""
        without: dict[str, set[str]] = defaultdict(set)
        for row in self.recordings:
            for role, names in row["without"] or ():
                without[role] |= set(names)
        roles = {
            role: np.array([name not in without[role] for name in self.names], np.bool_)
            for role in ("carries", "is_source", "is_sink")
        }
        attributes = tuple(dict.fromkeys(name for row in self.recordings for name in row["attributes"] or ()))
        channels, channel, wanted = self._wanted(attributes, roles["is_sink"])
        bundles = Bundles(
            np.array([self.number[row["node"]] for row in self.born], np.int32),
            np.array(channel, np.int32),
            np.array([row["time_s"] for row in self.born], np.float64) - self.interval.begin_s,
            np.array([_or(row.get("size_bytes"), _SIZE_BYTES) for row in self.born], np.int64),
            np.array([_or(row.get("lifetime_s"), _LIFETIME_S) for row in self.born], np.float64),
        )
        sources = np.flatnonzero(roles["is_source"]).astype(np.int32) if self.recordings else np.unique(bundles.source)
        values = np.array([[row.get(name) for name in attributes] for row in self.born], np.float64)
        targets = [self.number.get(row.get("target") or "", -1) for row in self.born]
        published = Published(
            bundles, channels, sources, values.reshape(len(self.born), len(attributes)), np.array(targets, np.int32)
        )
        return Given(self.names, self._contacts(scenario.duration_s), published, wanted, roles["carries"])

    def _contacts(self, duration_s: float) -> Contacts:
        """Contacts of the days: of two nodes that both tell of it, while both saw it; of one, by its word."""
        views: dict[tuple[int, int], dict[str | None, list[tuple[float, float]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        columns = (self.contacts[name].to_pylist() for name in ("a", "b", "start_s", "end_s", "heard_by"))
        for a, b, start_s, end_s, heard_by in zip(*columns, strict=True):
            one, other = sorted((self.number[a], self.number[b]))
            times = (max(start_s - self.interval.begin_s, 0.0), end_s - self.interval.begin_s)
            if times[0] <= times[1] and times[0] < duration_s:
                views[one, other][heard_by].append(times)
        rows = [
            (one, other, up, down)
            for (one, other), told in views.items()
            for up, down in _apart(_agreed([seen for teller, seen in told.items() if teller]) + told.get(None, []))
        ]
        a, b, up, down = np.array(rows, np.float64).reshape(-1, 4).T
        return in_order(Contacts(a.astype(np.int32), b.astype(np.int32), up, np.minimum(down, duration_s)))

    # --- Who wants what

    def _wanted(
        self, attributes: tuple[str, ...], may_ask: np.ndarray[Any, Any]
    ) -> tuple[tuple[str, ...], list[int], Wanted]:
        """The channels, that of each event, and who wants them."""
        if not self.asked:
            return self._by_matching()
        named = dict.fromkeys(name for row in self.recordings for name in row["channels"] or ())
        more = {row["channel"] for row in (*self.asked, *self.born)} - set(named) - {"", None}
        channels = (*named, *sorted(more))
        place = {name: number for number, name in enumerate(channels)}
        if any(row.get("channel") not in place for row in self.born):
            raise BadInput(f"{self.config.home}: nodes asked for channels, but some events are on none")
        begin_s = self.interval.begin_s
        rows = sorted(
            (row["from_s"] - begin_s, self.number[row["node"]], place[row["channel"]], row["to_s"] - begin_s)
            for row in self.asked
            if row["channel"]
        )
        subscriptions = _subscriptions(rows)
        sinks = np.flatnonzero(may_ask).astype(np.int32) if self.recordings else np.unique(subscriptions.node)
        channel = [place[row["channel"]] for row in self.born]
        if not attributes:
            return channels, channel, Wanted(subscriptions, sinks)
        one_of = {self.number[row["node"]]: row for row in self.asked}
        low, high = (
            np.array([one_of[sink][bound] for sink in sinks.tolist()], np.float64).reshape(len(sinks), len(attributes))
            for bound in ("low", "high")
        )
        where = tuple(one_of[sink]["where"] for sink in sinks.tolist())
        return channels, channel, Wanted(subscriptions, sinks, where, low, high)

    def _by_matching(self) -> tuple[tuple[str, ...], list[int], Wanted]:
        subscriber = self._subscribers()
        pairs = self.tables.read("pairs", ["event", "subscription"])
        wanting: dict[str, set[str]] = defaultdict(set)
        for event, subscription in zip(*(pairs[name].to_pylist() for name in ("event", "subscription")), strict=True):
            if subscriber.get(subscription):
                wanting[event].add(subscription)
        sets = [frozenset(wanting[row["event"]]) for row in self.born]
        ordered = sorted({*sets}, key=sorted)
        place = {each: number for number, each in enumerate(ordered)}
        rows = {(self.number[subscriber[name]], number) for each, number in place.items() for name in each}
        subscriptions = _subscriptions([(-math.inf, node, channel, math.inf) for node, channel in sorted(rows)])
        sinks = np.unique([self.number[node] for node in subscriber.values() if node]).astype(np.int32)
        channels = tuple(" ".join(sorted(each)) or "nobody's" for each in ordered)
        return channels, [place[each] for each in sets], Wanted(subscriptions, sinks)

    def _subscribers(self) -> dict[str, str]:
        table = read_subscriptions(self.config.subscriptions)
        if "subscriber" not in table.column_names:
            raise BadInput(
                f"{self.config.subscriptions}: no column subscriber, the node that waits for the events, and no node"
                " has told what it asked for: nobody knows who should receive what"
            )
        return dict(
            zip(table["subscription"].to_pylist(), table["subscriber"].cast(pa.string()).to_pylist(), strict=True)
        )

    # --- What came of it

    def outcome(self, given: Given) -> Outcome | None:
        """The deliveries that were recorded; all that was not is 0."""
        if not self.deliveries:
            return None
        row_of = {row["event"]: place for place, row in enumerate(self.born)}
        begin_s, duration_s = self.interval.begin_s, self.interval.end_s - self.interval.begin_s
        first: dict[tuple[int, int], tuple[float, int]] = {}
        for row in self.deliveries:
            if row["event"] in row_of and row["time_s"] is not None and row["time_s"] - begin_s <= duration_s:
                pair = (row_of[row["event"]], self.number[row["node"]])
                first[pair] = min(first.get(pair, (math.inf, 0)), (row["time_s"] - begin_s, row["hops"] or 0))
        rows = sorted((time_s, bundle, node, hops) for (bundle, node), (time_s, hops) in first.items())
        time_s, bundle, node, hops = np.array(rows, np.float64).reshape(-1, 4).T
        nodes = len(given.names)
        return Outcome(
            delivery_bundle=bundle.astype(np.int32), delivery_node=node.astype(np.int32), delivery_s=time_s,
            delivery_hops=hops.astype(np.int32), payload_bytes=0, control_bytes=0, wasted_bytes=0, lists=0,
            contacts=len(given.contacts.a), transfers=dict.fromkeys(TRANSFERS, 0), drops=dict.fromkeys(DROPS, 0),
            relays=np.zeros(len(self.born), np.int64), stored_byte_s=np.zeros(nodes),
            peak_bytes=np.zeros(nodes, np.int64), transfer_log=records(0, TRANSFER), drop_log=records(0, DROP),
        )  # fmt: skip


def _or(value: float | None, usual: float) -> float:
    return usual if value is None else value


def _with_times(events: pa.Table) -> pa.Table:
    """The events that have a time, with it in seconds: exact where the log has it so."""
    rough = pa.array([None if time is None else time.timestamp() for time in events["time"].to_pylist()], pa.float64())
    if "time_s" in events.column_names:
        exact = events["time_s"].to_pylist()
        rough = pa.array([_or(one, other) for one, other in zip(exact, rough.to_pylist(), strict=True)], pa.float64())
        events = events.drop_columns(["time_s"])
    events = events.append_column("time_s", rough)
    return events.filter(events["time_s"].is_valid())


def _subscriptions(rows: Sequence[tuple[float, int, int, float]]) -> Subscriptions:
    since, node, channel, to = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Subscriptions(
        np.array(node, np.int32), np.array(channel, np.int32), np.array(since, np.float64), np.array(to, np.float64)
    )


def _agreed(told: list[list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """When all who tell of a contact saw it."""
    if not told:
        return []
    agreed = sorted(told[0])
    for other in told[1:]:
        agreed = [
            (max(up, also_up), min(down, also_down))
            for up, down in agreed
            for also_up, also_down in other
            if max(up, also_up) < min(down, also_down)
        ]
    return agreed


def _apart(times: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same times, those that overlap made one; those that only touch stay two contacts."""
    found: list[tuple[float, float]] = []
    for up, down in sorted(times):
        if found and up < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], down))
        else:
            found.append((up, down))
    return found


def in_words(interval: Interval) -> str:
    """From when to when."""
    begin, end = (moment_of(time_s) for time_s in interval)
    return f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC"
