"""The page of a pipeline: what arrived, from whom, how late, what is missing where and when, who was served.

One file without anything from elsewhere. `report.html` is the last; `reports/DAY.html` keeps that of each day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from serai.log.svg import Drawing, ink
from serai.pipeline.columns import TIME
from serai.pipeline.config import Pipeline
from serai.pipeline.reports import Cells, Hole, NodeReport, Status, cells_of
from serai.pipeline.summary import CELL_S, Summary
from serai.pipeline.tables import Tables

_SHOWN: Final = 100  # rows of a table
_STRIPS: Final = 40  # nodes in the picture of time
_BINS: Final = 56
_WINDOW_S: Final = 31 * 86_400.0
_SIDE: Final = 340.0
_NO_CELLS: Final = Cells(np.empty(0), np.empty(0, np.int64), [])
_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c1f23;--quiet:#5b6470;--paper:#fff;--line:#d9dde2;--bad:#b84700;
--shade:rgb(0 0 0/.3)}
@media screen and (prefers-color-scheme:dark){
:root{--ink:#e6e8eb;--quiet:#a2abb6;--paper:#16191d;--line:#363c44;--bad:#ff9b5c;--shade:rgb(255 255 255/.3)}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:1.2rem;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,sans-serif}
h1{font-size:1.1rem;font-weight:600;color:var(--quiet);margin:0}
h2{font-size:1.2rem;margin:1.6rem 0 .5rem;padding-top:.8rem;border-top:1px solid var(--line)}
.lead{font:500 1.4rem/1.35 ui-serif,Georgia,serif;margin:.4rem 0 1rem;text-wrap:pretty}
.quiet,figcaption{color:var(--quiet);font-size:.9rem}.alerts{padding-left:1.2rem;color:var(--bad)}
.pictures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,22rem),1fr));gap:1.5rem}
figure{margin:0}figure svg{width:100%;height:auto;display:block}
/* The shade at the side says that there is more to scroll to; it goes where the table ends. */
.scroll{overflow-x:auto;
background:linear-gradient(-90deg,var(--paper) 30%,transparent) right/2.5rem 100% local no-repeat,
linear-gradient(-90deg,var(--shade),transparent) right/1rem 100% scroll no-repeat}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.92rem}
td,th{padding:.3rem .9rem .3rem 0;border-bottom:1px solid var(--line);text-align:left;white-space:nowrap}
td.number,th.number{text-align:right}
td.words{white-space:normal;overflow-wrap:anywhere;min-width:min(14rem,42vw)}
@media print{body{max-width:none;padding:0}.pictures{grid-template-columns:1fr 1fr}.scroll
{overflow:visible;background:none}
h2{break-after:avoid}tr,figure{break-inside:avoid}td,th{white-space:normal}td.words{min-width:0}}
"""


REPORT: Final = "report.html"
"""The page of the last run."""


def write_page(status: Status, config: Pipeline, now: float) -> None:
    """Write the page, and keep it as that of the day."""
    page = page_of(status, config, now).encode()
    for name in (f"reports/{datetime.fromtimestamp(now, UTC):%Y-%m-%d}.html", REPORT):
        config.home.write(name, page)


def page_of(status: Status, config: Pipeline, now: float) -> str:
    """The page as text."""
    tables = Tables(config.home)
    last = tables.last_batch()
    cells = cells_of(Summary(config.home, 0 if last is None else last + 1), status.clocks)
    moment = datetime.fromtimestamp(now, UTC)
    alerts = "".join(f"<li>{escape(alert)}" for alert in status.alerts)
    pictures = [
        _figure(
            map_of(status.nodes),
            "Where events are missing: the amber part of a disc is missing; a ring marks a node that was never heard.",
        ),
        _figure(strips_of(status.nodes, cells), "When events are missing: blue arrived, amber is missing."),
    ]
    parts = [
        f'<h1>Field report · {moment:%Y-%m-%d %H:%M} UTC</h1><p class="lead">{escape(in_one_sentence(status))}</p>',
        f"<p>{escape(today(tables, now))}</p>",
        f'<ul class="alerts" aria-label="Alerts">{alerts}</ul>' if alerts else '<p class="quiet">No alerts.</p>',
        f'<div class="pictures">{"".join(pictures)}</div>',
        *_tables(status),
        f'<p class="quiet">{_count(status.files, "file")} in {_count(status.batches, "batch", "batches")},'
        f" {status.waiting:,} waiting; {_count(status.repeated, 'repeat')} left out,"
        f" {status.rejected:,} rows or values rejected.</p>",
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Field report</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style><body><main>{''.join(parts)}</main></body></html>\n"
    )


# --- In words


def in_one_sentence(status: Status) -> str:
    """What there is and what is missing."""
    known = [node for node in status.nodes if node.missing is not None]
    missing = sum(node.missing or 0 for node in known)
    counted = sum(node.arrived for node in known)
    pairs = f"{_count(status.pairs, 'pair')} with {_count(len(status.served), 'subscription')}"
    if not known:
        return f"{_count(status.events, 'event')} came home and made {pairs}."
    lacking = sorted((node for node in known if node.missing), key=lambda node: (-(node.missing or 0), node.node))
    where = f", most at {lacking[0].node}" if len(lacking) > 1 else f", all at {lacking[0].node}" if lacking else ""
    absent = f"{missing:,} are missing{where}" if missing != 1 else f"1 is missing, at {lacking[0].node}"
    said = f"Of {counted + missing:,} events that {_count(len(known), 'node')} made, {counted:,} came home"
    return f"{said} and {absent if missing else 'none is missing'}. They made {pairs}."


def today(tables: Tables, now: float) -> str:
    """What arrived on the day of the report."""
    day = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since, until = (pa.scalar(each, TIME) for each in (day, day + timedelta(days=1)))
    of_today = (ds.field("arrived") >= since) & (ds.field("arrived") < until)
    rows = tables.read("journal", ["new", "state"], also=of_today)
    new, bad = pc.sum(rows["new"]).as_py() or 0, pc.sum(pc.equal(rows["state"], "quarantined")).as_py() or 0
    return f"Today {_count(len(rows), 'file')} arrived with {_count(new, 'new event')}" + (
        f"; {bad} could not be read." if bad else "."
    )


def _at(moment: str | None) -> str:
    """A moment to the minute, in UTC as all on the page."""
    return "–" if moment is None else moment[:16].replace("T", " ")


def _number(number: float | None) -> str:
    return "–" if number is None else f"{number:,}" if isinstance(number, int) else f"{number:g}"


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def in_time(seconds: float | None) -> str:
    """A time span with the unit that fits."""
    if seconds is None:
        return "–"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


# --- Pictures


def _figure(svg: str | None, caption: str) -> str:
    return "" if svg is None else f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def map_of(nodes: Sequence[NodeReport]) -> str | None:
    """Where nodes stand; of each disc the part that is missing, as a slice."""
    ordered = sorted(nodes, key=lambda node: (-(node.missing or 0), node.node))
    placed = [(node, node.x_m, node.y_m) for node in ordered if node.x_m is not None and node.y_m is not None]
    if not placed:
        return None
    x = np.array([each[1] for each in placed], np.float64)
    y = np.array([each[2] for each in placed], np.float64)
    span = max(float(np.ptp(x)), float(np.ptp(y)), 1.0)
    edge, scale = 34.0, (_SIDE - 68.0) / span
    height = float(np.ptp(y)) * scale + 2 * edge
    drawing = Drawing(_SIDE, height)
    drawing.add("rect", x=0, y=0, width=_SIDE, height=height, rx=4, fill=ink("ground"))
    r = 9.0 if len(placed) <= 60 else 5.0
    labels: list[tuple[float, float]] = []
    left = (_SIDE - float(np.ptp(x)) * scale) / 2
    for node, x_m, y_m in placed:
        cx, cy = left + (x_m - float(x.min())) * scale, height - edge - (y_m - float(y.min())) * scale
        share = 0.0 if node.completeness is None else 1 - node.completeness
        title = f"{node.node}: {node.arrived:,} arrived, {'?' if node.missing is None else f'{node.missing:,}'} missing"
        heard = node.last_event is not None
        drawing.circle(cx, cy, r, title, fill=ink("p0") if heard else ink("ground"), stroke=ink("p0"), stroke_width=1.5)
        if share > 0:
            _slice(drawing, cx, cy, r, share)
        if all(abs(cx - other_x) > 58 or abs(cy - other_y) > 12 for other_x, other_y in labels):
            drawing.text(cx, cy + r + 12, _short(node.node), text_anchor="middle")
            labels.append((cx, cy))  # a name that would lie over another is left to the pointer
    return drawing.svg("a map of the nodes, and which part of their events is missing")


def _slice(drawing: Drawing, cx: float, cy: float, r: float, share: float) -> None:
    """The first part of a disc, clockwise from the top."""
    if share > 0.999:
        drawing.circle(cx, cy, r, fill=ink("lost"))
        return
    angle = 2 * np.pi * share
    x, y = cx + r * float(np.sin(angle)), cy - r * float(np.cos(angle))
    way = f"M{cx:.2f},{cy:.2f}V{cy - r:.2f}A{r:g},{r:g} 0 {int(share > 0.5)} 1 {x:.2f},{y:.2f}Z"
    drawing.add("path", d=way, fill=ink("lost"))


def strips_of(nodes: Sequence[NodeReport], cells: Mapping[str, Cells]) -> str | None:
    """For each node what came and what is missing over time; those that lack most come first."""
    if not cells:
        return None
    begins_s = np.concatenate([each.begin_s for each in cells.values()])
    end_s = float(begins_s.max()) + CELL_S
    begin_s = max(float(begins_s.min()), end_s - _WINDOW_S)
    edges = np.linspace(begin_s, end_s, _BINS + 1)
    shown = sorted(nodes, key=lambda node: (-(node.missing or 0), node.node))[:_STRIPS]
    row_height, label, width = 22.0, 84.0, 460.0
    drawing = Drawing(width, row_height * len(shown) + 20)
    for row, node in enumerate(shown):
        known = cells.get(node.node, _NO_CELLS)
        told = zip(known.came.tolist(), known.begin_s.tolist(), strict=True)
        came = spread((Hole(count, start_s, start_s + CELL_S) for count, start_s in told), edges)
        lost = spread(known.holes, edges)
        foot, most = row_height * (row + 1) - 4, float((came + lost).max()) or 1.0
        drawing.text(label - 8, foot - 3, _short(node.node), text_anchor="end")
        drawing.line([(label, foot), (width, foot)], stroke=ink("line"))
        step, reach = (width - label) / _BINS, row_height - 6
        for place in np.flatnonzero(came + lost).tolist():
            below, above = reach * came[place] / most, reach * lost[place] / most
            for bottom, size, colour in ((foot, below, "p0"), (foot - below, above, "lost")):
                if size > 0:
                    drawing.add("rect", x=label + place * step, y=float(bottom - size), width=step - 0.6,
                                height=float(size), fill=ink(colour))  # fmt: skip
    for x, at_s, anchor in ((label, begin_s, "start"), (width, end_s, "end")):
        moment = datetime.fromtimestamp(at_s, UTC)
        drawing.text(x, drawing.height - 4, f"{moment:%Y-%m-%d %H:%M}", text_anchor=anchor)
    return drawing.svg("events of each node over time, and those that are missing")


def spread(some: Iterable[Hole], edges: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How many events there are in each bin, as if they had been made evenly between their two times."""
    table = np.array([*some], np.float64).reshape(-1, 3)
    count, after_s, before_s = table.T
    # What lies before each edge: all of those that end before it, and a part of those that it cuts.
    part = (edges[:, None] - after_s) / np.maximum(before_s - after_s, 1e-9)
    return np.diff(np.clip(part, 0.0, 1.0) @ count)


def _short(name: str) -> str:
    return name if len(name) <= 12 else f"{name[:11]}…"


# --- Tables


def _tables(status: Status) -> list[str]:
    nodes = (
        [
            node.node,
            f"{node.arrived:,}",
            "–" if node.missing is None else f"{node.missing:,}",
            "–" if node.completeness is None else f"{node.completeness:.1%}",
            in_time(node.median_delay_s),
            in_time(node.p95_delay_s),
            "never" if node.silent_s is None else f"{in_time(node.silent_s)} ago",
            node.clock,
            ", ".join(node.gaps),
        ]
        for node in sorted(status.nodes, key=lambda node: (-(node.missing or 0), node.node))
    )
    heads = ["node", "came", "missing", "complete", "delay, median", "95 %", "last event", "clock", "gaps"]
    served = sorted(status.served, key=lambda each: (-each.events, each.subscription))
    return [
        _table("Nodes", heads, len(status.nodes), nodes, numbers=range(1, 6), words=(8,)),
        _table(
            "Health",
            ["node", "said", "battery", "free", "dropped", "boots", "firmware"],
            len(status.health),
            ([e.node, _at(e.time), _number(e.battery), _number(e.free_bytes), _number(e.dropped), _number(e.boots),
              e.firmware or "–"] for e in status.health),
            numbers=range(2, 6),
        ),
        _table(
            "Subscriptions",
            ["subscription", "events", "delay, median", "95 %"],
            len(served),
            ([e.subscription, f"{e.events:,}", in_time(e.median_delay_s), in_time(e.p95_delay_s)] for e in served),
            numbers=range(1, 4),
        ),
        _table(
            "Carriers",
            ["carrier", "events", "of nodes", "delay, median", "last arrival"],
            len(status.carriers),
            ([e.carrier, f"{e.events:,}", str(e.nodes), in_time(e.median_delay_s), _at(e.last_arrival)]
             for e in status.carriers),
            numbers=range(1, 4),
        ),
        _table(
            "Receivers",
            ["receiver", "told up to batch", "last error"],
            len(status.receivers),
            ([e.receiver, "–" if e.batch < 0 else str(e.batch), e.last_error or "–"] for e in status.receivers),
            numbers=range(1, 2),
            words=(0, 2),
        ),
        _table(
            "Quarantine",
            ["file", "reason"],
            len(status.quarantined),
            ([each["name"], each["reason"]] for each in status.quarantined),
            words=(0, 1),
        ),
    ]  # fmt: skip


def _table(
    title: str,
    heads: list[str],
    count: int,
    rows: Iterable[list[Any]],
    numbers: Sequence[int] = (),
    words: Sequence[int] = (),
) -> str:
    """A table of the first of `count` rows; columns of numbers stand to the right, those of words are broken."""
    if not count:
        return ""

    style = dict.fromkeys(numbers, " class=number") | dict.fromkeys(words, " class=words")

    def row_of(tag: str, cells: Sequence[Any]) -> str:
        return "".join(f"<{tag}{style.get(place, '')}>{escape(str(cell))}" for place, cell in enumerate(cells))

    body = "".join(f"<tr>{row_of('td', row)}" for row in islice(rows, _SHOWN))
    more = f'<p class="quiet">and {count - _SHOWN:,} more</p>' if count > _SHOWN else ""
    name = title.lower()
    return (
        f'<h2 id="{name}">{title}</h2><div class="scroll" tabindex="0" role="region" aria-labelledby="{name}">'
        f"<table><thead><tr>{row_of('th', heads)}<tbody>{body}</table></div>{more}"
    )
