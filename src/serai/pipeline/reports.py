"""What a pipeline can say about its field: what is missing of each node, who is silent, how late events come."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from serai.pipeline.config import Alerts, Pipeline
from serai.pipeline.deliver import Cursor, cursor_of
from serai.pipeline.numbers import Numbers, gaps, missing_count
from serai.pipeline.tables import Tables

_SHOWN_GAPS = 5
_SHOWN_SERVED = 100
_STYLE = """:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;display:block;overflow-x:auto}
td,th{padding:.2rem .8rem;border-bottom:1px solid #8886;text-align:left}"""


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

    @property
    def completeness(self) -> float | None:
        """The part of the events that has come."""
        return None if self.missing is None else self.arrived / max(1, self.arrived + self.missing)


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
    subscriptions: tuple[tuple[str, int], ...]  # and how many events each was served
    receivers: tuple[Cursor, ...]
    alerts: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        nodes = [asdict(node) | {"completeness": node.completeness} for node in self.nodes]
        return asdict(self) | {"nodes": nodes, "subscriptions": dict(self.subscriptions)}


def status_of(config: Pipeline, now: float) -> Status:
    """How the pipeline stands at that time; nothing is changed."""
    tables = Tables(config.home)
    journal = tables.read("journal").to_pylist()
    last = tables.last_batch()
    pairs = tables.read("pairs", ["subscription"])
    served = pairs.group_by("subscription").aggregate([([], "count_all")]).sort_by("subscription").to_pylist()
    nodes = tuple(_nodes(config, tables, 0 if last is None else last + 1, now))
    resolved = {row["sha256"] for row in journal if row["state"] == "done"}
    quarantined = tuple(
        {"name": row["name"], "reason": row["reason"], "batch": row["batch"]}
        for row in journal
        if row["state"] == "quarantined" and row["sha256"] not in resolved
    )
    return Status(
        batches=0 if last is None else last + 1,
        files=len(journal),
        waiting=sum(1 for path in config.home.glob("landed-*/landed/*") if not path.name.startswith(".")),
        events=sum(row["new"] for row in journal),
        repeated=sum(row["repeated"] for row in journal),
        rejected=sum(row["rejected"] for row in journal),
        pairs=len(pairs),
        quarantined=quarantined,
        nodes=nodes,
        subscriptions=tuple((row["subscription"], row["count_all"]) for row in served),
        receivers=tuple(cursor_of(config.home, receiver) for receiver in config.receivers),
        alerts=tuple(_alerts(config.alerts, nodes, len(quarantined))),
    )


def _nodes(config: Pipeline, tables: Tables, batches: int, now: float) -> list[NodeReport]:
    if not config.numbered or tables.last_batch("events") is None:
        return []
    numbers = Numbers.before(config.home / "state", batches).came
    rows = tables.read("events", ["node", "time", "arrived"])
    delay = pc.divide(pc.subtract(rows["arrived"], rows["time"]).cast(pa.int64()).cast(pa.float64()), 1e6)
    sums = rows.append_column("delay_s", delay).group_by("node")
    seen = {
        row["node"]: row for row in sums.aggregate([("time", "max"), ("delay_s", "approximate_median")]).to_pylist()
    }
    reports = []
    for node in sorted({node for node, _ in numbers}):
        epochs = {epoch: came for (other, epoch), came in numbers.items() if other == node}
        latest = seen.get(node, {}).get("time_max")
        holes = [
            f"{epoch or 'all'}:{gap.first}-{gap.last}" for epoch, came in sorted(epochs.items()) for gap in gaps(came)
        ]
        reports.append(
            NodeReport(
                node=node,
                arrived=sum(len(came) for came in epochs.values()),
                missing=sum(missing_count(came) for came in epochs.values()),
                gaps=tuple(holes[:_SHOWN_GAPS]),
                last_event=None if latest is None else latest.isoformat(),
                silent_s=None if latest is None else now - latest.timestamp(),
                median_delay_s=seen.get(node, {}).get("delay_s_approximate_median"),
            )
        )
    return reports


def _alerts(limits: Alerts, nodes: tuple[NodeReport, ...], quarantined: int) -> list[str]:
    found = []
    for node in nodes:
        if limits.silent_s is not None and node.silent_s is not None and node.silent_s > limits.silent_s:
            found.append(f"{node.node} is silent for {node.silent_s / 86_400:.1f} d")
        share = 1 - (node.completeness or 0) if node.completeness is not None else 0
        if limits.missing is not None and share > limits.missing:
            found.append(f"{node.node} lacks {share:.0%} of its events: {', '.join(node.gaps)}")
    if limits.quarantined is not None and quarantined >= limits.quarantined:
        found.append(f"{quarantined} file{'s' if quarantined > 1 else ''} in quarantine")
    return found


def write_page(status: Status, config: Pipeline, now: float) -> Path:
    """The report as one page without anything from elsewhere."""
    from html import escape

    def table(heads: list[str], rows: list[list[Any]]) -> str:
        head = "".join(f"<th>{escape(each)}" for each in heads)
        body = "".join(
            "<tr>" + "".join(f"<td>{'–' if cell is None else escape(str(cell))}" for cell in row) for row in rows
        )
        return f"<table><thead><tr>{head}<tbody>{body}</table>"

    nodes = [
        [
            node.node,
            node.arrived,
            node.missing,
            None if node.completeness is None else f"{node.completeness:.1%}",
            ", ".join(node.gaps),
            node.last_event,
            None if node.median_delay_s is None else f"{node.median_delay_s / 3600:.1f} h",
        ]
        for node in status.nodes
    ]
    alerts = "".join(f"<li>{escape(alert)}" for alert in status.alerts) or "<li>none"
    heads = ["node", "arrived", "missing", "complete", "gaps", "last event", "median delay"]
    served = [list(each) for each in sorted(status.subscriptions, key=lambda each: -each[1])[:_SHOWN_SERVED]]
    most = f"; the {len(served)} with most events" if len(served) < len(status.subscriptions) else ""
    files = f"{status.rejected:,} rejected) of {status.files:,} files in {status.batches:,} batches"
    page = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Field report</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style>
<h1>Field report</h1><p>{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M} UTC · {status.events:,} events
({status.repeated:,} repeats left out, {files}; {status.pairs:,} pairs.</p>
<h2>Alerts</h2><ul>{alerts}</ul>
<h2>Nodes</h2>{table(heads, nodes)}
<h2>Subscriptions</h2><p>{len(status.subscriptions):,} were served{most}.</p>{table(["subscription", "events"], served)}
<h2>Quarantine</h2>{table(["file", "reason"], [[each["name"], each["reason"]] for each in status.quarantined])}
"""
    place = config.home / "report.html"
    place.with_name(".report.html").write_text(page, encoding="utf-8")
    place.with_name(".report.html").replace(place)
    return place
