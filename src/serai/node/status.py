"""A node in numbers, for people (one page) and for machines (Prometheus): from what `Node.status` and others say. Pure.

`Status` is a mapping with the keys of `Node.status`, and besides, where known: `version`, `uptime_s`, `mqtt` (the MQTT
server in numbers), `before` (neighbours that are gone: name, ago_s, for_s) and `problems` (texts).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

Status = Mapping[str, Any]

STYLE: Final = """
:root { color-scheme: light dark; --ground: #fbfaf7; --ink: #1d2329; --soft: #5b6670; --line: #d9d5cc; --card: #fff;
  --good: #1e7a46; --bad: #b3261e; --bar: #3c6e9c; --rest: #e6e2d9; --shade: rgb(0 0 0 / .3); }
@media screen and (prefers-color-scheme: dark) { :root { --ground: #14181c; --ink: #e6e8ea; --soft: #9aa5af;
  --line: #2f373f; --card: #1b2127; --good: #5fc98c; --bad: #ff8a80; --bar: #6ea8dc; --rest: #2b333b;
  --shade: rgb(255 255 255 / .3); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.2rem 1rem 3rem; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 0 0 .5rem; }
table + h2 { margin-top: 1.1rem; }
.soft, th { color: var(--soft); font-weight: 400; }
.problem { color: var(--bad); font-weight: 600; }
.grid { display: grid; gap: 1rem; margin-top: 1rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .9rem 1rem;
  min-width: 0; }
/* The shade at the side of a table says that there is more to scroll to. */
.wide { overflow-x: auto;
  background: linear-gradient(-90deg, var(--card) 30%, transparent) right / 2.5rem 100% local no-repeat,
    linear-gradient(-90deg, var(--shade), transparent) right / 1rem 100% scroll no-repeat; }
@media print { .wide { overflow: visible; background: none; } .grid { display: block; } section { margin: 1rem 0;
  break-inside: avoid; } td, th { white-space: normal; } }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem 0 .2rem .6rem; border-top: 1px solid var(--line); white-space: nowrap; }
tr:first-child > * { border-top: 0; }
th:first-child, td:first-child { text-align: left; padding-left: 0; white-space: normal; min-width: 3rem;
  overflow-wrap: anywhere; }
.bar { height: .5rem; border-radius: .25rem; background: var(--rest); overflow: hidden; margin: .2rem 0 .6rem; }
.bar i { display: block; height: 100%; background: var(--bar); }
.dot::before { content: "\\25cf"; margin-right: .4rem; color: var(--good); }
.lost .dot::before { color: var(--bad); }
"""

SCRIPT: Final = """
const said = document.getElementById('said');
const events = new EventSource('/events');
events.onmessage = event => { document.getElementById('node').innerHTML = JSON.parse(event.data); };
events.onopen = () => { document.body.className = ''; said.textContent = 'live'; };
events.onerror = () => { document.body.className = 'lost'; said.textContent = 'the node does not answer'; };
"""


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


POLICY: Final = (
    f"default-src 'none'; style-src 'unsafe-inline'; script-src {_digest(SCRIPT)}; connect-src 'self'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""What the page may load: nothing from elsewhere, and no script but its own."""


def page(status: Status) -> str:
    """The whole page; the script then keeps its middle up to date."""
    title = escape(_short(str(status["name"])))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} · serai</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f'<style>{STYLE}</style></head><body><main><div id="node">{middle(status)}</div>'
        '<p class="soft"><span class="dot" id="said">as of now</span> · <a href="/status.json">status.json</a> · '
        f'<a href="/metrics">metrics</a></p></main><script>{SCRIPT}</script></body></html>'
    )


def middle(status: Status) -> str:
    """What changes from moment to moment, as HTML."""
    about = " · ".join(
        part
        for part in (
            escape(str(status["name"])),
            f"serai {escape(str(status['version']))}" if "version" in status else "",
            f"up for {span(status['uptime_s'])}" if "uptime_s" in status else "",
        )
        if part
    )
    problems = "".join(f'<p class="problem">{escape(str(one))}</p>' for one in status.get("problems", ()))
    sections = (_neighbours(status), _store(status), _sessions(status), _messages(status), _transfers(status))
    return (
        f'<h1>{escape(_short(str(status["name"])))}</h1><div class="soft">{about}</div>{problems}'
        f'<div class="grid">{"".join(sections)}</div>'
    )


def summary(status: Status) -> str:
    """The same in a few lines of text, for a terminal."""
    store, waiting = status["store"], sum(one["queued"] for one in status["sessions"])
    sums = {"drops": status["drops"], "transfers": status["transfers"]}
    told = {
        name: ", ".join(f"{count(number)} {what}" for what, number in numbers.items() if number) or "none"
        for name, numbers in sums.items()
    }
    now = ", ".join(f"{_short(one['name'])} for {span(one['for_s'])}" for one in status["neighbours"]) or "nobody"
    lines = [
        f"{_short(str(status['name']))}, up for {span(status.get('uptime_s', 0))}",
        *(f"problem: {one}" for one in status.get("problems", ())),
        f"neighbours    {now}",
        f"store         {count(store['bundles'])} bundles, {size(store['bytes'])} of {size(store['capacity_bytes'])}",
        f"applications  {len(status['sessions'])}, for which {count(waiting)} messages wait",
        f"transfers     {told['transfers']}",
        f"dropped       {told['drops']}",
    ]
    return "\n".join(lines)


def _short(name: str) -> str:
    return name.removeprefix("dtn://").rstrip("/")


def _neighbours(status: Status) -> str:
    now = [
        (_short(one["name"]), span(one["for_s"]), str(one["under_way"]), f"{size(one['rate_bps'] / 8)}/s")
        for one in status["neighbours"]
    ]
    before = [
        (_short(one["name"]), f"{span(one['ago_s'])} ago", span(one["for_s"])) for one in status.get("before", ())
    ]
    return _section(
        f"Neighbours now: {len(now)}",
        _table(("", "for", "under way", "rate"), now) if now else '<p class="soft">nobody in reach</p>',
        f"<h2>Before</h2>{_table(('', 'last', 'for'), before)}" if before else "",
    )


def _store(status: Status) -> str:
    store = status["store"]
    part = min(1.0, store["bytes"] / max(1, store["capacity_bytes"]))
    rows = [
        ("bundles carried", count(store["bundles"])),
        ("their bytes", f"{size(store['bytes'])} of {size(store['capacity_bytes'])}"),
        ("own, that no neighbour has yet", count(store["own"])),
        ("waiting for applications", size(store["waiting_bytes"])),
        ("seen, and remembered", count(store["remembered"])),
        ("subscriptions of others", count(status["entries"])),
    ]
    bar = f'<div class="bar" role="img" aria-label="{part:.0%} full"><i style="width:{part:.1%}"></i></div>'
    return _section(f"Store: {part:.0%} full", bar, _table((), rows))


def _sessions(status: Status) -> str:
    sessions = sorted(status["sessions"], key=lambda one: -int(one["queued"]))
    rows = [(one["client"], count(one["queued"]), count(one["subscriptions"])) for one in sessions[:50]]
    more = f'<p class="soft">and {len(sessions) - 50} more</p>' if len(sessions) > 50 else ""
    table = _table(("", "waiting", "filters"), rows) if rows else '<p class="soft">none so far</p>'
    return _section(f"Applications: {len(sessions)}", table, more)


def _messages(status: Status) -> str:
    mqtt = status.get("mqtt", {})
    said = {
        "connected": "clients connected",
        "in_flight": "in flight to clients",
        "published": "published here",
        "refused": "refused: store full",
        "waiting_for_room": "waiting for room",
        "dropped": "QoS 0, dropped",
        "errors": "mistakes of clients",
        "wills": "wills published",
    }
    return _section("MQTT", _table((), [(text, count(mqtt[key])) for key, text in said.items() if key in mqtt]))


def _transfers(status: Status) -> str:
    transfers = [(name, count(number)) for name, number in status["transfers"].items()]
    drops = [(name, count(number)) for name, number in status["drops"].items()]
    return _section("Transfers to neighbours", _table((), transfers), f"<h2>Dropped</h2>{_table((), drops)}")


def _section(title: str, *parts: str) -> str:
    return f'<section><h2>{escape(title)}</h2><div class="wide">{"".join(parts)}</div></section>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>" if head else ""
    return f"<table>{top}{''.join(f'<tr>{_cells(row)}</tr>' for row in rows)}</table>"


def _cells(row: Sequence[str]) -> str:
    return "".join(f"<td>{escape(str(cell))}</td>" for cell in row)


def count(number: int) -> str:
    """12,345."""
    return f"{number:,}"


def size(number: float) -> str:
    """12 kB: three digits are enough for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "B" or number >= 99.5 else f"{number:.3g} {unit}"
        number /= 1000
    raise AssertionError


def span(seconds: float) -> str:
    """3 min 20 s: the two largest units."""
    whole = max(0, int(seconds))
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next((place for place, (number, _) in enumerate(parts) if number), 3)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number or first == 3)


_HELP: Final = {
    "serai_uptime_seconds": ("gauge", "how long the node has been running"),
    "serai_neighbours": ("gauge", "neighbours in reach"),
    "serai_store_bundles": ("gauge", "bundles carried"),
    "serai_store_bytes": ("gauge", "bytes of bundles carried"),
    "serai_store_capacity_bytes": ("gauge", "bytes that the store takes"),
    "serai_store_waiting_bytes": ("gauge", "bytes that wait for applications"),
    "serai_store_own": ("gauge", "own bundles that no neighbour has yet"),
    "serai_entries": ("gauge", "subscriptions of others that are known"),
    "serai_session_queued": ("gauge", "messages that wait for an application"),
    "serai_drops_total": ("counter", "bundles dropped, by cause"),
    "serai_transfers_total": ("counter", "transfers to neighbours, by outcome"),
    "serai_mqtt_connected": ("gauge", "clients connected"),
    "serai_mqtt_in_flight": ("gauge", "messages on their way to clients"),
    "serai_mqtt_total": ("counter", "messages of clients, by what became of them"),
}


def metrics(status: Status) -> str:
    """The numbers as Prometheus reads them (text format 0.0.4)."""
    store, mqtt = status["store"], status.get("mqtt", {})
    found: list[tuple[str, dict[str, str], float]] = [
        ("serai_uptime_seconds", {}, status.get("uptime_s", 0)),
        ("serai_neighbours", {}, len(status["neighbours"])),
        *(
            (f"serai_store_{name}", {}, store[name])
            for name in ("bundles", "bytes", "capacity_bytes", "waiting_bytes", "own")
        ),
        ("serai_entries", {}, status["entries"]),
        *(("serai_session_queued", {"client": one["client"]}, one["queued"]) for one in status["sessions"]),
        *(("serai_drops_total", {"cause": name}, number) for name, number in status["drops"].items()),
        *(("serai_transfers_total", {"outcome": name}, number) for name, number in status["transfers"].items()),
        *((f"serai_mqtt_{name}", {}, mqtt[name]) for name in ("connected", "in_flight") if name in mqtt),
        *(
            ("serai_mqtt_total", {"what": name}, mqtt[name])
            for name in ("published", "refused", "dropped", "errors", "wills")
            if name in mqtt
        ),
    ]
    lines, last = [], ""
    for name, labels, value in found:
        if name != last:
            kind, text = _HELP[name]
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            last = name
        said = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{said}}} {value:.15g}" if said else f"{name} {value:.15g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
