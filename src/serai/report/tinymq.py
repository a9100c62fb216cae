"""TinyMQ's paper: the sweep that reproduces it, the chapter of the report, and the same as text and data."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from serai.core.statistics import Estimate
from serai.kinds import protocol_label
from serai.overlay.paper import (
    ANCHORS,
    CHOSEN_AFTERWARDS,
    CLAIMS,
    EXHIBITS,
    FAILING,
    PAPER,
    RANDOM,
    READINGS,
    TREES,
    Anchor,
    Reading,
    setup,
    setups,
)
from serai.papers.claims import FAILS, HOLDS, OPEN, Claim, Judgement, Measured
from serai.papers.exhibits import Exhibit
from serai.papers.verdicts import HIT, NEAR, Standing, standing
from serai.report.figures import Picture, Series, curves, mark_of
from serai.report.paper import scenario_of
from serai.report.reproduction import Reproduction, counted_verdicts, evidence
from serai.report.results import Case
from serai.report.section import Section
from serai.report.sections import series_of
from serai.report.tables import Cell, Table, estimated, plain, text, to_markdown, to_text
from serai.report.wording import signed_percent, three_digits
from serai.sweeping.plan import Plan, cell_id, join_plans, plan_comparison

_WIDTH: Final = 80
_SIGNS: Final = {HOLDS: "✓", FAILS: "✗", OPEN: "?"}
_SYSTEMS: Final = ("tinymq", "pub2sub")


def tinymq_plan(seeds: int) -> Plan:
    """All runs that the paper takes; both systems under the same settings are one point."""
    points: dict[tuple[tuple[str, str], ...], list[Any]] = {}
    for one in setups():
        points.setdefault(one.settings, []).append(one)
    plans = []
    for settings, together in points.items():
        plan = plan_comparison("paper", [scenario_of(one) for one in together], seeds)
        plans.append(replace(plan, points=(dict(settings),)))
    return join_plans("paper tinymq", plans, base=cell_id(scenario_of(setup("tinymq", TREES.default))))


# --- What was measured


def _estimate(
    found: Reproduction, protocol: str, metric: str, reading: Reading, trees: float, failing: float = 0.0
) -> Estimate:
    return found.estimate(setup(protocol, trees, reading, failing), metric)


def _cases(found: Reproduction, protocol: str, reading: Reading, failing: float = 0.0) -> list[tuple[float, Case]]:
    places = ((trees, found.case_of(setup(protocol, trees, reading, failing))) for trees in TREES.values)
    return [(trees, case) for trees, case in places if case is not None]


def is_there(found: Reproduction) -> bool:
    """Whether the sweep has the paper's set-ups."""
    return all(len(_cases(found, protocol, RANDOM)) > 1 for protocol in _SYSTEMS)


def judge(found: Reproduction, claim: Claim, reading: Reading) -> Judgement:
    """Whether a claim holds under a reading of the set-up; the systems are compared from two trees on."""
    failing = FAILING[0] if claim.exhibit == "fig-6" else 0.0
    first = 2 if len(claim.protocols) > 1 else 1

    def curve(protocol: str, metric: str) -> Sequence[Measured]:
        cases = [(trees, case) for trees, case in _cases(found, protocol, reading, failing) if trees >= first]
        return [Measured(trees, found.results.estimate(case, metric)) for trees, case in cases]

    return claim.judge(curve)


def _readings_of(claim: Claim) -> tuple[Reading, ...]:
    return (RANDOM,) if claim.exhibit == "fig-6" else READINGS


# --- The chapter


def chapter(found: Reproduction) -> Section | None:
    """The chapter on the paper; None where the sweep has nothing of it."""
    if not is_there(found):
        return None
    words = (
        f"{PAPER.cited}, section IV. The text gives four numbers, at ten trees. It leaves open where the sinks stand, "
        "how wide queries are and which hops are counted, so each number is set beside every reading. "
        f"Hit: within {100 * NEAR:.0f} %.",
    )
    parts = [Section("claims", "What the text claims", (_JUDGED,), (claims_table(found),))]
    parts += [_figure_part(found, exhibit) for exhibit in EXHIBITS.values()]
    return Section("papers", "Against the TinyMQ paper", words, (anchor_table(found),), parts=tuple(parts))


_JUDGED: Final = (
    "Each claim, judged from means over seeds as if the two means were independent, 95 %. The two systems are "
    "compared from two trees on: with one tree they store the same. What the paper claims of load balance it did not "
    "measure."
)


def caveats(found: Reproduction) -> tuple[str, ...]:
    """What the opening of the report has to say about the paper."""
    if not is_there(found):
        return ()
    hits = sum(any(_verdict(ours, anchor) == HIT for ours in _all_readings(found, anchor)) for anchor in ANCHORS)
    verdicts = [judge(found, claim, RANDOM).verdict for claim in CLAIMS]
    return (
        f"Of the four numbers that the TinyMQ paper prints, {hits} {'is' if hits == 1 else 'are'} hit within"
        f" {100 * NEAR:.0f} % under at least one reading of its set-up. Of {len(CLAIMS)} claims"
        f" {counted_verdicts(verdicts)} (sinks at random).",
    )


def _all_readings(found: Reproduction, anchor: Anchor) -> list[Estimate]:
    return [
        _estimate(found, anchor.protocol, metric, reading, TREES.default)
        for metric in anchor.metrics
        for reading in READINGS
    ]


def _verdict(ours: Estimate, anchor: Anchor) -> Standing:
    return standing(anchor.value, ours)


def anchor_table(found: Reproduction) -> Table:
    """The four numbers of the text, each beside every reading."""
    rows = []
    for anchor in ANCHORS:
        for metric in anchor.metrics:
            scale = found.results.scale(metric)
            cells = [text(f"{protocol_label(anchor.protocol)} {scale.name}"), plain(anchor.value, f"{anchor.value:g}")]
            for reading in READINGS:
                ours = _estimate(found, anchor.protocol, metric, reading, TREES.default)
                off = signed_percent(ours.mean / anchor.value - 1, 0)
                cells.append(estimated(ours, scale, _verdict(ours, anchor) == HIT, f"({off})"))
            rows.append(tuple(cells))
    heads = ("at ten trees", "published", *(reading.name for reading in READINGS))
    remarks = (
        *(f"{reading.name}: {reading.words}." for reading in READINGS),
        "Bold: hit.",
        *_together(found),
        CHOSEN_AFTERWARDS,
    )
    return Table("anchors", "The numbers of the text and ours, mean ± 95 % interval.", heads, tuple(rows), remarks)


def _together(found: Reproduction) -> Iterator[str]:
    """Under which readings both numbers of a figure are hit."""
    for exhibit in dict.fromkeys(anchor.exhibit for anchor in ANCHORS):
        above, below = (anchor for anchor in ANCHORS if anchor.exhibit == exhibit)
        hit = [
            f"{found.results.scale(metric).name} with {reading.words}"
            for metric in above.metrics
            for reading in READINGS
            if all(_hits(found, anchor, metric, reading) for anchor in (above, below))
        ]
        pair = f"{above.value:g} → {below.value:g}"
        yield f"{pair} are both hit as: {'; '.join(hit)}." if hit else f"{pair}: no reading hits both."


def _hits(found: Reproduction, anchor: Anchor, metric: str, reading: Reading) -> bool:
    return _verdict(_estimate(found, anchor.protocol, metric, reading, TREES.default), anchor) == HIT


def claims_table(found: Reproduction) -> Table:
    """Every claim, whether it holds under each reading, and the numbers."""
    rows = []
    for claim in CLAIMS:
        own = judge(found, claim, RANDOM)
        verdicts = {reading.name: judge(found, claim, reading).verdict for reading in _readings_of(claim)}
        where = text(f"{claim.section}, {EXHIBITS[claim.exhibit].label}")
        cells = [text(verdicts.get(reading.name, "–")) for reading in READINGS]
        rows.append((where, text(claim.words), *cells, text(evidence(found, claim, own))))
    heads = ("where", "claim", *(reading.name for reading in READINGS), "numbers (random)")
    notes = tuple(f"“{claim.words}”: {claim.note}." for claim in CLAIMS if claim.note)
    return Table("claims", "Claims of the text, judged.", heads, tuple(rows), notes)


# --- Figures


def _figure_part(found: Reproduction, exhibit: Exhibit) -> Section:
    title = f"{exhibit.label}: {exhibit.title}"
    if exhibit.name == "fig-6":
        words = "Nodes fail at random (roots excepted), here 5, 10 and 30 % of them; sinks at random."
        pictures = tuple(_repair_picture(found, metric) for metric in exhibit.metrics)
        return Section(exhibit.name, title, (words,), (_repair_table(found, exhibit),), pictures)
    words = f"Section {exhibit.section}, p. {exhibit.page}. Stars: the numbers of the text."
    pictures = tuple(
        _picture(found, exhibit, metric, reading) for reading in READINGS[:2] for metric in exhibit.metrics
    )
    return Section(exhibit.name, title, (words,), (figure_table(found, exhibit),), pictures)


def _picture(found: Reproduction, exhibit: Exhibit, metric: str, reading: Reading) -> Picture:
    scale = found.results.scale(metric)
    series = [_with_anchor(found, exhibit, metric, protocol, reading) for protocol in exhibit.protocols]
    caption = f"{scale.name.capitalize()}; {reading.words}."
    return curves(f"{exhibit.name}-{metric}-{reading.name}", series, TREES.label, scale.heading, caption)


def _with_anchor(found: Reproduction, exhibit: Exhibit, metric: str, protocol: str, reading: Reading) -> Series:
    one = series_of(found.results, metric, protocol, _cases(found, protocol, reading))
    printed = [a.value for a in ANCHORS if (a.exhibit, a.protocol) == (exhibit.name, protocol) and metric in a.metrics]
    return replace(one, label=protocol_label(protocol), published={TREES.default: printed[0]} if printed else {})


def _repair_picture(found: Reproduction, metric: str) -> Picture:
    scale = found.results.scale(metric)
    labels = [f"p = {failing:g}" for failing in FAILING]
    series = []
    for failing, label in zip(FAILING, labels, strict=True):
        one = series_of(found.results, metric, "tinymq", _cases(found, "tinymq", RANDOM, failing))
        series.append(replace(one, label=label, mark=mark_of(label, labels)))
    caption = f"{scale.name.capitalize()} after a fraction p of the nodes has failed."
    return curves(f"fig-6-{metric}", series, TREES.label, scale.heading, caption)


def figure_table(found: Reproduction, exhibit: Exhibit) -> Table:
    """The numbers of a figure, sinks at random."""
    columns = [(protocol, metric) for metric in exhibit.metrics for protocol in exhibit.protocols]
    scales = {metric: found.results.scale(metric) for metric in exhibit.metrics}
    rows = []
    for trees in TREES.values:
        cells: list[Cell] = [plain(trees, f"{trees:g}")]
        for protocol, metric in columns:
            cells.append(estimated(_estimate(found, protocol, metric, RANDOM, trees), scales[metric]))
        rows.append(tuple(cells))
    heads = tuple(f"{protocol_label(protocol)} {scales[metric].heading}" for protocol, metric in columns)
    return Table(exhibit.name, f"{exhibit.label}, ours: mean ± 95 % interval.", (TREES.label, *heads), tuple(rows))


def _repair_table(found: Reproduction, exhibit: Exhibit) -> Table:
    columns = [(failing, metric) for failing in FAILING for metric in exhibit.metrics]
    rows = []
    for trees in TREES.values:
        cells: list[Cell] = [plain(trees, f"{trees:g}")]
        for failing, metric in columns:
            ours = _estimate(found, "tinymq", metric, RANDOM, trees, failing)
            cells.append(estimated(ours, found.results.scale(metric)))
        rows.append(tuple(cells))
    heads = tuple(f"p = {failing:g} {metric.replace('_', ' ')}" for failing, metric in columns)
    return Table("fig-6", "Fig. 6, ours: mean ± 95 % interval.", (TREES.label, *heads), tuple(rows))


# --- The same for terminals and machines


def as_text(found: Reproduction) -> str:
    """The four numbers beside ours, and every claim judged."""
    return "\n".join(_lines(found))


def _lines(found: Reproduction) -> Iterator[str]:
    table = anchor_table(found)
    yield to_text(replace(table, rows=tuple(tuple(_tight(cell) for cell in row) for row in table.rows)))
    yield ""
    for remark in table.remarks:
        yield from textwrap.wrap(remark.replace("Bold", "*"), _WIDTH, initial_indent=" ", subsequent_indent="   ")
    yield ""
    for claim in CLAIMS:
        own = judge(found, claim, RANDOM)
        words = f"{EXHIBITS[claim.exhibit].label}: {claim.words}: {evidence(found, claim, own)}"
        others = {reading.name: judge(found, claim, reading).verdict for reading in _readings_of(claim)}
        words += "".join(f" [{name}: {verdict}]" for name, verdict in others.items() if verdict != own.verdict)
        yield from textwrap.wrap(words, _WIDTH, initial_indent=f"  {_SIGNS[own.verdict]} ", subsequent_indent="      ")
    yield ""
    yield f" {_SIGNS[HOLDS]} {HOLDS}   {_SIGNS[FAILS]} {FAILS}   {_SIGNS[OPEN]} {OPEN} with so few seeds"


def _tight(cell: Cell) -> Cell:
    if cell.half_width is None or cell.value is None:
        return cell
    return Cell(
        f"{three_digits(cell.value)} ± {three_digits(cell.half_width)}{'*' if cell.strong else ' '}", right=True
    )


def as_markdown(found: Reproduction) -> str:
    """The page of the documentation on the paper."""
    provenance = found.results.provenance
    opening = (
        f"This page is written by `{provenance['command']} --markdown FILE`: {provenance['runs']} runs, seeds"
        f" {provenance['seeds']}, serai {provenance.get('serai', '')}. Nothing on it is edited by hand."
    )
    parts = ["# TinyMQ's paper, reproduced", *(_wrapped(words) for words in (opening, *caveats(found)))]
    parts += ["## The numbers of the text", *_table_as_markdown(anchor_table(found))]
    parts += ["## What the text claims", _wrapped(_JUDGED), *_table_as_markdown(claims_table(found))]
    for exhibit in EXHIBITS.values():
        table = _repair_table(found, exhibit) if exhibit.name == "fig-6" else figure_table(found, exhibit)
        parts += [f"## {exhibit.label}: {exhibit.title}".replace("no figure", "No figure"), *_table_as_markdown(table)]
    return "\n\n".join(parts) + "\n"


def _table_as_markdown(table: Table) -> Iterator[str]:
    yield to_markdown(table).rstrip()
    yield from (_wrapped(remark) for remark in table.remarks)


def _wrapped(words: str) -> str:
    return textwrap.fill(words, 118)


def as_dict(found: Reproduction) -> dict[str, Any]:
    """Numbers and claims, ready for JSON."""
    return {
        "published": [
            {
                "protocol": anchor.protocol,
                "metric": metric,
                "published": anchor.value,
                "reading": reading.name,
                **_as_dict(ours, anchor),
            }
            for anchor in ANCHORS
            for metric in anchor.metrics
            for reading in READINGS
            if math.isfinite((ours := _estimate(found, anchor.protocol, metric, reading, TREES.default)).mean)
        ],
        "claims": [
            {
                "exhibit": claim.exhibit,
                "section": claim.section,
                "claim": claim.words,
                **{reading.name: judge(found, claim, reading).verdict for reading in _readings_of(claim)},
                "numbers": evidence(found, claim, judge(found, claim, RANDOM)),
            }
            for claim in CLAIMS
        ],
    }


def _as_dict(ours: Estimate, anchor: Anchor) -> dict[str, Any]:
    return {
        "mean": ours.mean,
        "half_width": ours.half_width(),
        "runs": ours.count,
        "difference": ours.mean / anchor.value - 1,
        "verdict": _verdict(ours, anchor),
    }
