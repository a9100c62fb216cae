"""Answers as lines of text for people, 80 columns wide. `--json` carries the same answers whole."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args, get_origin

from serai.core.statistics import Estimate
from serai.field.paper import KNOWN_MISSES, published

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from serai.cli.demo import Row
    from serai.cli.doctor import Check
    from serai.opportunistic.imported import FoundMessages, FoundTrace
    from serai.scenario.protocol import Protocol
    from serai.sweep.plan import Plan
    from serai.sweep.summaries import Estimates

_WIDTH: Final = 80


def seeds_of(count: int) -> str:
    """The number of seeds in words: 20 seeds, 1 seed."""
    return f"{count} seed{'s' if count > 1 else ''}"


# One run

_FIELD_LINES: Final = (
    ("delivered", "{delivery_ratio}", "{delivered_pairs} of {wanted_pairs} wanted"),
    ("delay", "{mean_delay_s} s", "median {median_delay_s} s, 95 % within {p95_delay_s} s"),
    (
        "copies",
        "{copies_per_event}",
        "as the paper counts; {transmissions_per_event} transmissions per event",
    ),
    ("lifetime", "{lifetime_days} d", "{how}"),
    ("", "{lifetime_with_control_days} d", "if control messages cost energy, too"),
    ("energy", "{energy_j} J", "the busiest sensor {load_imbalance} times the mean"),
    ("fairness", "{fairness_communities}", "over communities (Jain)"),
    ("dropped", "{dropped}", "{causes}"),
)
_CONTACTS_LINES: Final = (
    ("delivered", "{delivery_ratio}", "{delivered_pairs} of {wanted_pairs} wanted"),
    ("delay", "{mean_delay_s} s", "median {median_delay_s} s, 95 % within {p95_delay_s} s"),
    ("hops", "{mean_hops}", "from the source to a subscriber"),
    ("copies", "{copies_per_bundle}", "per bundle; {transfers_relayed} transfers over {contacts} contacts"),
    ("wasted", "{transfers_wasted}", "transfers: {fates}"),
    ("on air", "{bytes_per_delivery} B", "per delivery; lists are {control_share} of all bytes"),
    ("store", "{store_mean_bytes} B", "on average, {store_peak_bytes} at most"),
    ("fairness", "{fairness_subscribers}", "over subscribers, {fairness_channels} over channels (Jain)"),
    ("", "{worst_tenth_ratio}", "delivered to the worst served tenth of subscribers"),
    ("dropped", "{dropped}", "{causes}"),
)
_OVERLAY_LINES: Final = (
    ("delivered", "{delivery_ratio}", "{delivered_pairs} of {wanted_pairs} wanted, {duplicates} more than once"),
    ("stored", "{nodes_per_query}", "nodes per query, over all {trees} trees"),
    ("query", "{query_path_hops}", "hops to where it is stored"),
    ("", "{query_hops_own_tree}", "transmissions in its own tree; {query_hops_all_trees} in all"),
    (
        "delay",
        "{notification_delay_ratio}",
        "times the shortest path; {notification_delay_ratio_of_means} as a ratio of means",
    ),
    ("event", "{transmissions_per_event}", "transmissions to where it meets queries"),
    ("load", "{busiest_share}", "of all messages at the busiest node; Gini {load_gini}"),
    ("state", "{state_per_node}", "keys and queries at a node, {state_per_node_max} at most"),
    ("energy", "{energy_j} J", "and {control_energy_j} J to build the trees"),
)
_FAILURE_LINES: Final = (
    ("failed", "{failed_nodes}", "nodes; {rekeyed_nodes} others lost their key, {cut_off_nodes} any path to a root"),
    ("repair", "{repair_messages}", "messages; {changed_nodes} nodes changed state"),
    ("delivered", "{delivery_ratio_unrepaired}", "before anybody knows"),
    ("", "{delivery_ratio_repaired}", "when the trees are mended"),
    ("", "{delivery_ratio_renewed}", "when all have subscribed again"),
)
_LINES_OF: Final = {"field": _FIELD_LINES, "overlay": _OVERLAY_LINES, "opportunistic": _CONTACTS_LINES}
"""What is shown of a run, for each kind of network: name, value, remark, with metrics in braces."""
_CEILING_LINES: Final = (
    ("ceiling", "{ceiling_direct}", "if every contact with an event's sensor delivered it"),
    ("", "{ceiling_community}", "if every contact with its community did"),
    ("", "{ceiling_epidemic}", "if subscribers carried everything everywhere"),
)
_RATIOS: Final = (
    "delivery_ratio",
    "ceiling_direct",
    "ceiling_community",
    "ceiling_epidemic",
    "control_share",
    "worst_tenth_ratio",
    "delivery_ratio_unrepaired",
    "delivery_ratio_repaired",
    "delivery_ratio_renewed",
    "busiest_share",
)
_WASTED: Final = ("duplicate", "refused", "late", "broken")


def measured(network: str, metrics: dict[str, Any], until_death: bool, ceiling: bool) -> str:
    """The metrics that most people look for first."""
    shown = {name: _percent(value) if name in _RATIOS else _number(value) for name, value in metrics.items()}
    drops = {name.removeprefix("drops_"): value for name, value in metrics.items() if name.startswith("drops_")}
    shown["dropped"] = _number(sum(drops.values()))
    shown["causes"] = " · ".join(f"{cause} {count:,}" for cause, count in drops.items())
    fates = {fate: metrics[f"transfers_{fate}"] for fate in _WASTED if f"transfers_{fate}" in metrics}
    shown["transfers_wasted"] = _number(sum(fates.values()))
    shown["fates"] = " · ".join(f"{fate} {count:,}" for fate, count in fates.items())
    shown["how"] = "simulated" if until_death else "extrapolated to the first death"
    failures = _FAILURE_LINES if metrics.get("failed_nodes") else ()
    lines = _LINES_OF[network] + (_CEILING_LINES if ceiling else ()) + failures
    return "\n".join(f" {name:<10}{value:>10}   {remark}" for name, value, remark in _filled(lines, shown))


def _filled(lines: Iterable[tuple[str, str, str]], words: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, value, remark in lines:
        yield name, value.format_map(words), remark.format_map(words)


def _number(value: float | str | None) -> str:
    """A number with the digits that matter; "-" where there is none."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else value or "-"


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:.1f} %"


# Several protocols


class _Column(NamedTuple):
    """How a metric is shown: ours with factor and decimals, and the printed number beside it."""

    heading: str
    factor: float
    decimals: int
    printed_heading: str
    printed_decimals: int
    printed_width: int


_COLUMNS: Final = {
    "delivery_ratio": _Column("delivered %", 100, 1, "%", 1, 8),
    "mean_delay_s": _Column("delay s", 1, 1, "s", 1, 7),
    "copies_per_event": _Column("copies", 1, 2, "copies", 1, 7),
    "lifetime_days": _Column("lifetime d", 1, 2, "d", 2, 5),
}
_WIDTH_OF_OURS: Final = 12


def comparison(rows: Iterable[Row], seeds: int) -> str:
    """The table of `serai demo`: ours with intervals, the papers' beside them, what is missed below."""
    ours = "".join(f"{column.heading:>{_WIDTH_OF_OURS}}" for column in _COLUMNS.values())
    theirs = "".join(f"{column.printed_heading:>{column.printed_width}}" for column in _COLUMNS.values())
    title = f" mean ± 95 % CI over {seeds_of(seeds)}" if seeds > 1 else f" {seeds_of(seeds)}"
    missed = [f" * missed: {reason}" for reason in KNOWN_MISSES.values()]
    return "\n".join(
        [
            f"{title:<{4 + len(ours)}}{'published':>{len(theirs)}}",
            f"{'':4}{ours}{theirs}",
            *map(_comparison_row, rows),
            "",
            *(line for reason in missed for line in textwrap.wrap(reason, _WIDTH, subsequent_indent="   ")),
        ]
    )


def _comparison_row(row: Row) -> str:
    ours = [_with_interval(row.estimates[metric], column) for metric, column in _COLUMNS.items()]
    theirs = [_printed(row.protocol, metric, column) for metric, column in _COLUMNS.items()]
    beside = "".join(theirs).replace("* ", "*")  # a mark stands in the gap before the next column
    return f" {row.protocol.upper():<3}{''.join(f' {cell:>{_WIDTH_OF_OURS - 1}}' for cell in ours)}{beside}"


def _with_interval(estimate: Estimate, column: _Column) -> str:
    if not math.isfinite(estimate.mean):
        return "-"
    mean, half_width = column.factor * estimate.mean, column.factor * estimate.half_width()
    interval = "" if math.isnan(half_width) else f" ±{half_width:.{column.decimals}f}"
    return f"{mean:.{column.decimals}f}{interval}"


def _printed(protocol: str, metric: str, column: _Column) -> str:
    """The paper's number, and a mark behind it if ours misses it."""
    number = published(protocol, metric)
    text = f"{number.value:.{column.printed_decimals}f}" if number else "-"
    mark = "*" if (protocol, metric) in KNOWN_MISSES else ""
    return f"{text:>{column.printed_width}}{mark}"


# Traces


def found_in_trace(found: FoundTrace) -> str:
    """What `serai scenario import` found: format, nodes, contacts, span, gaps, and what it had to decide."""
    lines = [f"{found.file}: {found.format} ({found.title})", f" lines      {found.lines:>10,}"]
    lines.append(f" nodes      {found.nodes:>10,}")
    if found.range_m is not None:
        lines.append(f" positions  {found.positions:>10,}")
    at = f"   within {found.range_m:g} m of each other" if found.range_m is not None else ""
    lines.append(f" contacts   {found.contacts:>10,}{at}")
    span = f"{found.last_s - found.first_s:,.0f} s"
    lines.append(f" span       {span:>10}   from {found.first_s:,.0f} s to {found.last_s:,.0f} s of the file")
    if found.gap_s:
        lines.append(f" gaps       {found.gaps:>10,}   longer than {found.gap_s:,.0f} s between two positions")
    if found.messages is not None:
        lines += _found_messages(found.messages)
    lines += [f" {found.origin}"] if found.origin else []
    noticed = [*found.noticed, *(f"messages: {what}" for what in (found.messages.noticed if found.messages else ()))]
    for what in noticed:
        lines += textwrap.wrap(what, _WIDTH, initial_indent=" ! ", subsequent_indent="   ")
    return "\n".join(lines)


def _found_messages(messages: FoundMessages) -> list[str]:
    to_whom = f"{messages.directed:,} of them to one node each, the others on channels"
    if messages.directed in (0, messages.count):
        to_whom = "to one node each" if messages.directed else "on channels"
    lines = [f" messages   {messages.count:>10,}   {to_whom}"]
    if messages.strangers:
        lines.append(f"            {messages.strangers:>10,}   nodes of theirs are not in the trace and meet nobody")
    return lines


# Sweeps

_MOST_ROWS: Final = 60
_MOST_METRICS: Final = 4


def sweep_line(plan: Plan) -> str:
    """A sweep in one line: how many points, which protocols, how many seeds."""
    points = f"{len(plan.points)} points" if len(plan.points) > 1 else "1 point"
    protocols = " ".join(name.upper() for name in plan.protocols)
    return f"{plan.name} · {points} · {protocols} · {seeds_of(plan.seeds)}"


def swept(plan: Plan, estimates: Estimates) -> str:
    """The table of a sweep: a line for each point and protocol, with the metrics that are looked for first."""
    metrics = _shown_metrics(estimates)
    labels = [", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in point.items()) for point in plan.points]
    wide = max([len(label) for label in labels] + [0]) + 2
    head = f" mean ± 95 % CI\n {'':<{wide}}{'':<9}" + "".join(
        f"{column.heading:>{_WIDTH_OF_OURS}}" for column in metrics.values()
    )
    rows = [
        f" {labels[cell.point]:<{wide}}{cell.protocol.upper():<9}"
        + "".join(
            f" {_with_interval(estimates[cell.point, cell.protocol][metric], column):>{_WIDTH_OF_OURS - 1}}"
            for metric, column in metrics.items()
        )
        for cell in plan.cells[:_MOST_ROWS]
    ]
    more = [f" and {len(plan.cells) - _MOST_ROWS} more: see the report"] if len(plan.cells) > _MOST_ROWS else []
    return "\n".join([head, *rows, *more])


def _shown_metrics(estimates: Estimates) -> dict[str, _Column]:
    """The metrics to show: the field papers' first, then others that are known and can be better or worse."""
    from serai.report.wording import better

    known = [name for name, found in next(iter(estimates.values())).items() if math.isfinite(found.mean)]
    usual = {name: column for name, column in _COLUMNS.items() if name in known}
    others = {name: _Column(_short(name), 1, 2, "", 0, 0) for name in known if better(name)}
    return dict(list((usual | others | usual).items())[:_MOST_METRICS])


def _short(metric: str) -> str:
    """A name that fits over its column."""
    return metric if len(metric) < _WIDTH_OF_OURS else f"{metric[: _WIDTH_OF_OURS - 2]}."


# Protocols and machine


def protocol_as_dict(protocol: Protocol) -> dict[str, Any]:
    """A protocol and its settings, ready for JSON."""
    fields = protocol.settings.model_fields
    return {
        "name": protocol.name,
        "title": protocol.title,
        "paper": protocol.paper,
        "settings": [_setting(key, field) for key, field in fields.items() if key != "name"],
    }


def _setting(key: str, field: FieldInfo) -> dict[str, Any]:
    """One setting as a scenario file writes it: key, default with its unit, choices, meaning."""
    from serai.core.units import Quantity

    unit = next((mark for mark in field.metadata if isinstance(mark, Quantity)), None)
    several = get_origin(field.annotation) is tuple
    kind = get_args(field.annotation)[0] if several else field.annotation
    choices = [False, True] if kind is bool else list(get_args(kind))
    return {
        "name": field.alias or key,
        "default": unit.format(field.default) if unit else field.default,
        "choices": choices,
        "meaning": field.description,
    }


def protocol_as_text(protocol: Protocol) -> str:
    """A protocol with its paper, and each setting with default, choices and meaning."""
    lines = [f"{protocol.name}: {protocol.title}", f"    {protocol.paper}"]
    for setting in protocol_as_dict(protocol)["settings"]:
        default_is = setting["default"]
        others = [
            json.dumps(choice)
            for choice in setting["choices"]
            if choice != default_is and not (isinstance(default_is, tuple) and choice in default_is)
        ]
        default = f"  {setting['name']} = {json.dumps(setting['default'])}"
        lines.append(default + (f"  (or {', '.join(others)})" if others else ""))
        lines += textwrap.wrap(setting["meaning"], _WIDTH - 2, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def checked(checks: Iterable[Check]) -> str:
    """What `serai doctor` found, with what to do where something is missing."""
    lines = []
    for check in checks:
        lines.append(f" {'ok' if check.ok else '!!'}  {check.name:<9} {check.found}")
        lines += [] if check.ok else [f"     {check.advice}"]
    return "\n".join(lines)
