"""What a pipeline can say about its field: what is missing of each node, who is silent, how late events come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
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
from serai.pipeline.config import Alerts, Pipeline
from serai.pipeline.deliver import Cursor, cursor_of
from serai.pipeline.nodes import read_places
from serai.pipeline.numbers import Numbers, gaps, missing_count
from serai.pipeline.summary import CELL_S, Summary, Told
from serai.pipeline.tables import Tables

_SHOWN_GAPS = 5
_RECENT = 1000  # batches whose contacts tell of clocks
_CLOCKS_APART_S = 60.0  # less is not told from the way of a message
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
    nodes = tuple(_nodes(config, tables, summary, batches, now))
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
        alerts=tuple(_alerts(config.alerts, nodes, len(quarantined), receivers)),
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


def _nodes(config: Pipeline, tables: Tables, summary: Summary, batches: int, now: float) -> list[NodeReport]:
    if not config.numbered:
        return []
    came: dict[str, dict[str, BitMap64]] = {}
    for (node, epoch), numbers in sorted(Numbers(config.home, batches).came.items()):
        came.setdefault(node, {})[epoch] = numbers
    seen, times, places = summary.told("node"), summary.told("time"), places_of(config, tables)
    simulated = {
        name
        for row in tables.read("recordings", ["origin", "nodes"]).to_pylist()
        if row["origin"] == "simulation"  # there clocks begin in 1970, and are right
        for name in row["nodes"]
    }
    recent = tables.read("contacts", ["a", "b", "heard_by", "start_s"], also=ds.field("batch") >= batches - _RECENT)
    clocks = clocks_of(seen, times, recent)
    reports = []
    for node in sorted(came.keys() | seen.keys() | places.keys()):
        told, epochs = seen.get(node), came.get(node, {})
        latest_us = times[node].high if node in times else None
        latest = None if latest_us is None else datetime.fromtimestamp(latest_us / 1e6, UTC)
        gaps_shown = islice(((epoch, gap) for epoch in epochs for gap in gaps(epochs[epoch])), _SHOWN_GAPS)
        reports.append(
            NodeReport(
                node=node,
                arrived=told.events if told else sum(len(numbers) for numbers in epochs.values()),
                missing=sum(missing_count(numbers) for numbers in epochs.values()) if epochs else None,
                gaps=tuple(f"{epoch or 'all'}:{gap.first}-{gap.last}" for epoch, gap in gaps_shown),
                last_event=_iso(latest),
                silent_s=None if latest is None else now - latest.timestamp(),
                median_delay_s=told.median_s if told else None,
                p95_delay_s=told.p95_s if told else None,
                clock="good" if node in simulated else clocks.get(node, "good"),
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


def clocks_of(seen: Mapping[str, Told], times: Mapping[str, Told], contacts: pa.Table) -> dict[str, str]:
    """Nodes whose clock is wrong: never set, ahead of the arrival, or apart from those of the nodes they met."""
    found: dict[str, str] = {}
    for node, apart in _contact_offsets(contacts).items():
        if abs(apart_s := float(np.median(apart))) > _CLOCKS_APART_S:
            found[node] = f"{abs(apart_s):,.0f} s {'ahead of' if apart_s > 0 else 'behind'} the nodes it met"
    for node, told in seen.items():
        if told.low is not None and told.low / 1e6 < -_CLOCKS_APART_S:
            found[node] = f"{-told.low / 1e6:,.0f} s ahead"
    for node, told in times.items():
        if told.low is not None and 0 < told.low / 1e6 < _UNSET_S:
            found[node] = "never set"
    return found


def _contact_offsets(contacts: pa.Table) -> dict[str, list[float]]:
    """How far a node's beginnings of contacts are from those that the other one tells of, where both tell."""
    told: dict[tuple[str, str], dict[str, list[float]]] = {}
    columns = (contacts[name].to_pylist() for name in ("a", "b", "heard_by", "start_s"))
    for a, b, heard_by, start_s in zip(*columns, strict=True):
        if heard_by in (a, b):
            told.setdefault((min(a, b), max(a, b)), {}).setdefault(heard_by, []).append(start_s)
    offsets: dict[str, list[float]] = {}
    for views in told.values():
        if len(views) == 2 and len({len(starts) for starts in views.values()}) == 1:
            (one, mine), (other, theirs) = views.items()
            apart = [here - there for here, there in zip(sorted(mine), sorted(theirs), strict=True)]
            offsets.setdefault(one, []).extend(apart)
            offsets.setdefault(other, []).extend(-value for value in apart)
    return offsets


class Cells(NamedTuple):
    """The events of a node in ten minutes each, ascending: when they begin, how many came, how many are missing."""

    begin_s: NDArray[np.float64]
    came: NDArray[np.int64]
    holes: list[Hole]


def cells_of(summary: Summary) -> dict[str, Cells]:
    """When events of each node came from, and when those are missing whose numbers lie between others."""
    rows = summary.of("cell").sort_by([("of", "ascending"), ("at", "ascending")])
    at, came, low, high = (rows[name].to_numpy() for name in ("at", "rows", "low", "high"))
    inside = np.maximum(high - low + 1 - came, 0)
    key = rows["of"].combine_chunks().dictionary_encode()
    begin = np.searchsorted(key.indices.to_numpy(), np.arange(len(key.dictionary) + 1))
    found: dict[str, Cells] = {}
    for code, of in enumerate(key.dictionary.to_pylist()):
        mine = slice(begin[code], begin[code + 1])
        start_s = at[mine] * float(CELL_S)
        holes = [
            Hole(int(absent), float(start), float(start) + CELL_S)
            for absent, start in zip(inside[mine], start_s, strict=True)
            if absent
        ]
        between = np.maximum(low[mine][1:] - high[mine][:-1] - 1, 0)
        for place in np.flatnonzero(between).tolist():
            holes.append(Hole(int(between[place]), float(start_s[place]) + CELL_S, float(start_s[place + 1])))
        node = of.partition("\0")[0]
        more = found.get(node, Cells(np.empty(0), np.empty(0, np.int64), []))
        found[node] = Cells(np.r_[more.begin_s, start_s], np.r_[more.came, came[mine]], more.holes + holes)
    return found


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _alerts(
    limits: Alerts, nodes: tuple[NodeReport, ...], quarantined: int, receivers: tuple[Cursor, ...]
) -> list[str]:
    found = []
    for node in nodes:
        if limits.silent_s is not None and node.silent_s is None:
            found.append(f"{node.node} has never been heard")
        if limits.silent_s is not None and node.silent_s is not None and node.silent_s > limits.silent_s:
            found.append(f"{node.node} is silent for {node.silent_s / 86_400:.1f} d")
        share = 1 - (node.completeness or 0) if node.completeness is not None else 0
        if limits.missing is not None and share > limits.missing:
            found.append(f"{node.node} lacks {share:.0%} of its events: {', '.join(node.gaps)}")
        if limits.clocks and node.clock != "good":
            found.append(f"the clock of {node.node}: {node.clock}")
    if limits.quarantined is not None and quarantined >= limits.quarantined:
        found.append(f"{quarantined} file{'s' if quarantined > 1 else ''} in quarantine")
    found += [f"{each.receiver} could not be told: {each.last_error}" for each in receivers if each.last_error]
    return found
