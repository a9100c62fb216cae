"""What a pipeline can say about its field: what is missing of each node, who is silent, how late events come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray
from pyroaring import BitMap64

from serai.matching.landing import LANDED
from serai.pipeline.clocks import APART_S, Clock, Key, Views, clocks_of
from serai.pipeline.config import Alerts, Pipeline
from serai.pipeline.deliver import Cursor, cursor_of
from serai.pipeline.health import HEALTH
from serai.pipeline.nodes import read_places
from serai.pipeline.numbers import Numbers, gaps, missing_count
from serai.pipeline.summary import CELL_S, Summary, Told
from serai.pipeline.tables import Tables

_SHOWN_GAPS = 5
_UNSET_S = 946_684_800.0  # a clock that says a time before 2000 was never set


class Hole(NamedTuple):
    """Events of a node that are missing, and between which times; as seconds since 1970."""

    missing: int
    after_s: float
    before_s: float


@dataclass(frozen=True)
class NodeReport:
    """What has come of a node; `missing` is None if its events are not counted."""

    node: str
    arrived: int
    missing: int | None
    gaps: tuple[str, ...]  # the first of them, as epoch:first-last
    last_event: str | None
    silent_s: float | None
    median_delay_s: float | None
    p95_delay_s: float | None
    clock: str  # good, or what is wrong with it
    x_m: float | None
    y_m: float | None

    @property
    def completeness(self) -> float | None:
        """The part of the events that has come."""
        return None if self.missing is None else self.arrived / max(1, self.arrived + self.missing)


@dataclass(frozen=True)
class HealthReport:
    """What a node said of itself last."""

    node: str
    time: str
    battery: float | None
    free_bytes: int | None
    dropped: int | None
    boots: int | None
    firmware: str | None


@dataclass(frozen=True)
class CarrierReport:
    """What somebody brought home."""

    carrier: str
    events: int
    nodes: int
    median_delay_s: float | None
    last_arrival: str | None


@dataclass(frozen=True)
class SubscriptionReport:
    """What a subscription was served."""

    subscription: str
    events: int
    median_delay_s: float | None
    p95_delay_s: float | None


@dataclass(frozen=True)
class Status:
    """How a pipeline stands."""

    batches: int
    files: int
    waiting: int
    events: int
    repeated: int
    rejected: int
    pairs: int
    quarantined: tuple[dict[str, Any], ...]
    nodes: tuple[NodeReport, ...]
    carriers: tuple[CarrierReport, ...]
    served: tuple[SubscriptionReport, ...]
    receivers: tuple[Cursor, ...]
    health: tuple[HealthReport, ...]
    clocks: tuple[Clock, ...]
    alerts: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        nodes = [asdict(node) | {"completeness": node.completeness} for node in self.nodes]
        return asdict(self) | {"nodes": nodes, "subscriptions": dict(self.subscriptions)}

    @property
    def subscriptions(self) -> tuple[tuple[str, int], ...]:
        """Each subscription that was served, and how many events it was."""
        return tuple((each.subscription, each.events) for each in self.served)


def status_of(config: Pipeline, now: float) -> Status:
    """How the pipeline stands at that time; nothing is changed."""
    tables = Tables(config.home)
    journal = tables.read("journal")
    last = tables.last_batch()
    batches = 0 if last is None else last + 1
    summary = Summary(config.home, batches)
    clocks, wrong = _clocks(config, tables, summary)
    nodes = tuple(_nodes(config, tables, summary, batches, now, clocks, wrong))
    health = tuple(_health(tables))
    served = summary.told("subscription")
    quarantined = tuple(_quarantined(journal))
    receivers = tuple(cursor_of(config.home, receiver) for receiver in config.receivers)
    return Status(
        batches=batches,
        files=len(journal),
        waiting=len(config.home.names(LANDED)),
        events=_sum(journal, "new"),
        repeated=_sum(journal, "repeated"),
        rejected=_sum(journal, "rejected"),
        pairs=sum(told.events for told in served.values()),
        quarantined=quarantined,
        nodes=nodes,
        carriers=tuple(_carriers(summary)),
        served=tuple(SubscriptionReport(name, told.events, told.median_s, told.p95_s) for name, told in served.items()),
        receivers=receivers,
        health=health,
        clocks=tuple(clocks),
        alerts=tuple(_alerts(config.alerts, nodes, health, len(quarantined), receivers)),
    )


def _sum(journal: pa.Table, column: str) -> int:
    return pc.sum(journal[column]).as_py() or 0


def _quarantined(journal: pa.Table) -> Iterator[dict[str, Any]]:
    """Files that could not be read, and were not read later."""
    bad = journal.filter(pc.equal(journal["state"], "quarantined"))
    resolved = journal.filter(pc.equal(journal["state"], "done"))["sha256"]
    left = bad.filter(pc.invert(pc.is_in(bad["sha256"], resolved.combine_chunks())))
    last = {row["sha256"]: row for row in left.select(["sha256", "name", "reason", "batch"]).to_pylist()}
    for row in last.values():  # once, however often it was tried
        yield {name: row[name] for name in ("name", "reason", "batch")}


def _carriers(summary: Summary) -> Iterator[CarrierReport]:
    nodes = Counter(of.partition("\0")[0] for of in summary.of("carried")["of"].to_pylist())
    for name, told in summary.told("carrier").items():
        latest = None if told.high is None else datetime.fromtimestamp(told.high / 1e6, UTC)
        yield CarrierReport(name, told.events, nodes[name], told.median_s, _iso(latest))


def _health(tables: Tables) -> Iterator[HealthReport]:
    rows = tables.read("health", HEALTH.names)
    if not len(rows):
        return
    last = rows.group_by("node").aggregate([("time", "max")])
    latest = rows.join(last.rename_columns(["node", "time"]), ["node", "time"], join_type="inner")
    of_node = {row["node"]: row for row in latest.sort_by([(name, "ascending") for name in HEALTH.names]).to_pylist()}
    for row in of_node.values():
        yield HealthReport(**row | {"time": row["time"].isoformat()})


def _clocks(config: Pipeline, tables: Tables, summary: Summary) -> tuple[list[Clock], dict[str, str]]:
    """The clock of each node and epoch, as far as contacts tell; and nodes whose clock is wrong, with how."""
    seen, times = summary.told("node"), _times(summary)
    wrong = wrong_clocks(seen, times)
    told = tables.read("contacts", ["a", "b", "heard_by", "start_s", "epoch"], also=ds.field("heard_by").is_valid())
    views = Views(told)
    carriers = [name for name in summary.told("carrier") if name not in wrong]
    clocks = clocks_of(views, times.keys(), carriers, config.good_clocks) if len(told) else []
    good = {clock.node for clock in clocks if clock.clock == "good"}
    for node in views.peers:
        apart_s = views.apart(node, views.peers[node]) or 0.0
        if abs(apart_s) > APART_S and node not in wrong and node not in good:
            wrong[node] = f"{abs(apart_s):,.0f} s {'ahead of' if apart_s > 0 else 'behind'} the nodes it met"
    for clock in clocks:
        if clock.clock == "corrected" and clock.offset_s is not None:
            way = "ahead" if clock.offset_s > 0 else "behind"
            said = wrong.get(clock.node, "").partition(";")[0]
            wrong[clock.node] = f"{said if said == 'never set' else f'{abs(clock.offset_s):,.0f} s {way}'}; corrected"
    return clocks, wrong


def _times(summary: Summary) -> dict[Key, Told]:
    """The first and the last time of each node and epoch."""
    return {(key.partition("\0")[0], key.partition("\0")[2]): told for key, told in summary.told("time").items()}


def _nodes(
    config: Pipeline,
    tables: Tables,
    summary: Summary,
    batches: int,
    now: float,
    clocks: list[Clock],
    wrong: Mapping[str, str],
) -> list[NodeReport]:
    if not config.numbered:
        return []
    came: dict[str, dict[str, BitMap64]] = {}
    for (node, epoch), numbers in sorted(Numbers(config.home, batches).came.items()):
        came.setdefault(node, {})[epoch] = numbers
    seen, latest_us, places = summary.told("node"), _latest_us(summary, clocks), places_of(config, tables)
    ahead = _same_offset(clocks)
    simulated = {
        name
        for row in tables.read("recordings", ["origin", "nodes"]).to_pylist()
        if row["origin"] == "simulation"  # there clocks begin in 1970, and are right
        for name in row["nodes"]
    }
    reports = []
    for node in sorted(came.keys() | seen.keys() | places.keys()):
        told, epochs = seen.get(node), came.get(node, {})
        latest = datetime.fromtimestamp(latest_us[node] / 1e6, UTC) if node in latest_us else None
        gaps_shown = islice(((epoch, gap) for epoch in epochs for gap in gaps(epochs[epoch])), _SHOWN_GAPS)
        reports.append(
            NodeReport(
                node=node,
                arrived=told.events if told else sum(len(numbers) for numbers in epochs.values()),
                missing=sum(missing_count(numbers) for numbers in epochs.values()) if epochs else None,
                gaps=tuple(f"{epoch or 'all'}:{gap.first}-{gap.last}" for epoch, gap in gaps_shown),
                last_event=_iso(latest),
                silent_s=None if latest is None else now - latest.timestamp(),
                median_delay_s=_without(ahead.get(node, 0.0), told.median_s if told else None),
                p95_delay_s=_without(ahead.get(node, 0.0), told.p95_s if told else None),
                clock="good" if node in simulated else wrong.get(node, "good"),
                x_m=places.get(node, (None, None))[0],
                y_m=places.get(node, (None, None))[1],
            )
        )
    return reports


def places_of(config: Pipeline, tables: Tables) -> dict[str, tuple[float, float]]:
    """Where nodes stand: by the table of nodes, or as recordings say."""
    found: dict[str, tuple[float, float]] = {}
    for row in tables.read("recordings", ["nodes", "x_m", "y_m"]).to_pylist():
        for node, x_m, y_m in zip(row["nodes"], row["x_m"], row["y_m"], strict=True):
            if x_m is not None:
                found[node] = (x_m, y_m)
    return found | (read_places(config.nodes) if config.nodes is not None else {})


def wrong_clocks(seen: Mapping[str, Told], times: Mapping[Key, Told]) -> dict[str, str]:
    """Nodes whose own events say that their clock is wrong: ahead of the arrival, or never set."""
    found: dict[str, str] = {}
    for node, told in seen.items():
        if told.low is not None and told.low / 1e6 < -APART_S:
            found[node] = f"{-told.low / 1e6:,.0f} s ahead"
    for (node, _), told in times.items():
        if told.low is not None and 0 < told.low / 1e6 < _UNSET_S:
            found[node] = "never set"
    return found


def _latest_us(summary: Summary, clocks: Iterable[Clock]) -> dict[str, float]:
    """When a node made the last event that came, without what its clock was off as far as that is known."""
    offset_s = _corrections(clocks)
    found: dict[str, float] = {}
    for key, told in _times(summary).items():
        if told.high is not None:
            here = told.high - 1e6 * offset_s.get(key, 0.0)
            found[key[0]] = max(here, found.get(key[0], here))
    return found


def _corrections(clocks: Iterable[Clock]) -> dict[Key, float]:
    return {(clock.node, clock.epoch): clock.offset_s or 0.0 for clock in clocks if clock.clock == "corrected"}


def _same_offset(clocks: Iterable[Clock]) -> dict[str, float]:
    """How far ahead the clock of a node was, where it was the same in all epochs: so much later than it seems were
    its events."""
    offsets: dict[str, set[float | None]] = {}
    for clock in clocks:
        offsets.setdefault(clock.node, set()).add(clock.offset_s if clock.clock != "good" else 0.0)
    return {node: each for node, (each, *more) in offsets.items() if each is not None and not more}


def _without(ahead_s: float, delay_s: float | None) -> float | None:
    """A delay without what the clock was ahead; None where the 2 % to which it is known are more than a tenth of it."""
    right_s = None if delay_s is None else delay_s + ahead_s
    return right_s if not ahead_s or right_s is None or abs(delay_s or 0.0) <= 5 * abs(right_s) else None


class Cells(NamedTuple):
    """The events of a node in ten minutes each, ascending: when they begin, how many came, how many are missing."""

    begin_s: NDArray[np.float64]
    came: NDArray[np.int64]
    holes: list[Hole]


def cells_of(summary: Summary, clocks: Iterable[Clock] = ()) -> dict[str, Cells]:
    """When events of each node were made, and when those are missing whose numbers lie between others."""
    offset_s = _corrections(clocks)
    rows = summary.of("cell").sort_by([("of", "ascending"), ("at", "ascending")])
    at, came, low, high = (rows[name].to_numpy() for name in ("at", "rows", "low", "high"))
    inside = np.maximum(high - low + 1 - came, 0)
    key = rows["of"].combine_chunks().dictionary_encode()
    begin = np.searchsorted(key.indices.to_numpy(), np.arange(len(key.dictionary) + 1))
    found: dict[str, Cells] = {}
    for code, of in enumerate(key.dictionary.to_pylist()):
        mine = slice(begin[code], begin[code + 1])
        node, _, epoch = of.partition("\0")
        start_s = at[mine] * float(CELL_S) - offset_s.get((node, epoch), 0.0)
        holes = [
            Hole(int(absent), float(start), float(start) + CELL_S)
            for absent, start in zip(inside[mine], start_s, strict=True)
            if absent
        ]
        between = np.maximum(low[mine][1:] - high[mine][:-1] - 1, 0)
        for place in np.flatnonzero(between).tolist():
            holes.append(Hole(int(between[place]), float(start_s[place]) + CELL_S, float(start_s[place + 1])))
        more = found.get(node, Cells(np.empty(0), np.empty(0, np.int64), []))
        found[node] = Cells(np.r_[more.begin_s, start_s], np.r_[more.came, came[mine]], more.holes + holes)
    return found


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _alerts(
    limits: Alerts,
    nodes: tuple[NodeReport, ...],
    health: tuple[HealthReport, ...],
    quarantined: int,
    receivers: tuple[Cursor, ...],
) -> list[str]:
    found = []
    for node in nodes:
        if limits.silent_s is not None and node.silent_s is None:
            found.append(f"{node.node} has never been heard")
        if limits.silent_s is not None and node.silent_s is not None and node.silent_s > limits.silent_s:
            found.append(f"{node.node} has been silent for {node.silent_s / 86_400:.1f} d")
        share = 1 - (node.completeness or 0) if node.completeness is not None else 0
        if limits.missing is not None and share > limits.missing:
            found.append(f"{node.node} lacks {share:.0%} of its events: {', '.join(node.gaps)}")
        if limits.clocks and node.clock != "good":
            found.append(f"the clock of {node.node}: {node.clock}")
    for each in health:
        if limits.battery is not None and each.battery is not None and each.battery < limits.battery:
            found.append(f"the battery of {each.node}: {each.battery:g}")
    if limits.quarantined is not None and quarantined >= limits.quarantined:
        found.append(f"{quarantined} file{'s' if quarantined > 1 else ''} in quarantine")
    found += [f"{each.receiver} could not be told: {each.last_error}" for each in receivers if each.last_error]
    return found
