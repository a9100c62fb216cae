"""Against the papers: published, ours, the difference, and every stated trend judged, read from a sweep's summary.

Whatever set-ups of the papers a sweep has run are compared, and no others: `serai demo` gets the tables,
`serai paper` all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from serai.core.statistics import Estimate
from serai.field.paper import (
    ABLATIONS,
    CALIBRATED,
    CLAIMS,
    COMMON,
    EXHIBITS,
    IF_MISSED,
    LITTLE,
    METRICS,
    PAPERS,
    PUBLISHED,
    SILENT,
    ablation_setup,
    default_setup,
    published,
    setup,
)
from serai.papers.claims import FAILS, HOLDS, OPEN, Claim, Judgement, Measured, Trend, Verdict
from serai.papers.exhibits import Exhibit, Published, Setup
from serai.papers.verdicts import HIT, MISSED, NEAR, RULE, UNTOLD, Standing
from serai.papers.verdicts import standing as standing_of
from serai.report.figures import Picture, Series, curves
from serai.report.results import UNKNOWN, Case, Results
from serai.report.section import Section
from serai.report.sections import series_of
from serai.report.tables import Cell, Table, estimated, plain, text
from serai.report.wording import in_words, signed_percent, three_digits

RULES_NAMED: Final = {COMMON: "common rules", SILENT: "silent in pauses"}
_CHANGED: Final = (
    "both rule sets give the same runs for CED and DG; for CET they differ in the attributes alone, so that its figures"
    " are not run a second time"
)


@dataclass(frozen=True)
class Reproduction:
    """The part of a sweep that reproduces papers: where each of their set-ups stands in the results."""

    results: Results
    case_of: Callable[[Setup], Case | None]

    def estimate(self, found: Setup, metric: str) -> Estimate:
        """What was measured in a set-up; unknown if the sweep does not have it."""
        case = self.case_of(found)
        return UNKNOWN if case is None else self.results.estimate(case, metric)

    def at_defaults(self, row: Published, rules: str) -> Estimate:
        """Our counterpart of a published number."""
        return self.estimate(default_setup(row.protocol, rules), row.metric)

    def compared(self) -> list[Published]:
        """The published numbers that have a counterpart here."""
        return [row for row in PUBLISHED if math.isfinite(self.at_defaults(row, CALIBRATED).mean)]

    def points(self, exhibit: Exhibit, protocol: str, rules: str) -> Iterator[tuple[float | None, Case]]:
        """The cases of an exhibit that the sweep has, along its axis."""
        for at in exhibit.axis.values if exhibit.axis else (None,):
            case = self.case_of(setup(exhibit, protocol, at, rules))
            if case is not None:
                yield at, case

    def has(self, exhibit: Exhibit, rules: str) -> bool:
        """Whether it can be shown with all its protocols; the default alone, which others have too, is no curve."""
        enough = 1 if exhibit.axis is None else 2
        return all(len(list(self.points(exhibit, protocol, rules))) >= enough for protocol in exhibit.protocols)

    def judge(self, claim: Claim, rules: str) -> Judgement:
        """Whether a claim holds under a rule set."""
        exhibit = EXHIBITS[claim.exhibit]

        def curve(protocol: str, metric: str) -> Sequence[Measured]:
            cases = self.points(exhibit, protocol, rules)
            return [Measured(at, self.results.estimate(case, metric)) for at, case in cases]

        return claim.judge(curve)

    def claims(self) -> list[Claim]:
        """The claims about exhibits that the sweep has."""
        return [claim for claim in CLAIMS if self.has(EXHIBITS[claim.exhibit], CALIBRATED)]


# --- The chapter


def chapter(found: Reproduction) -> Section | None:
    """The chapter on the papers; None where the sweep has nothing of them."""
    if not found.compared():
        return None
    claims = claims_table(found)
    parts = [_claims_part(found, claims)] if claims.rows else []
    parts += [part for exhibit in EXHIBITS.values() if (part := _figure_part(found, exhibit))]
    if ablations := [table for protocol in ("ced", "cet", "dg") if (table := ablation_table(found, protocol))]:
        words = "One open point is read differently in each row; the first row is the default reading."
        parts.append(Section("ablations", "What each open point does", (words,), tuple(ablations)))
    common = f"Common rules: the built-in scenario field; {_CHANGED}."
    return Section("papers", "Against the papers", (RULE, common), (published_table(found),), parts=tuple(parts))


def caveats(found: Reproduction) -> tuple[str, ...]:
    """What the opening of the report has to say about the papers."""
    rows = found.compared()
    if not rows:
        return ()
    hits, missed, unclear = ([row for row in rows if standing(found, row) == kind] for kind in (HIT, MISSED, UNTOLD))
    sentence = f"Of {in_words(len(rows), 'published number')} {len(hits)} are hit within {100 * NEAR:.0f} %"
    if missed:
        sentence += f", {len(missed)} missed ({_named(found, missed)})"
    if unclear:
        sentence += f", {len(unclear)} cannot be told with so few seeds ({_named(found, unclear)})"
    sentence += "."
    claims = found.claims()
    if claims:
        verdicts = [found.judge(claim, CALIBRATED).verdict for claim in claims]
        sentence += f" Of {in_words(len(claims), 'stated claim')} {counted_verdicts(verdicts)}."
    return (sentence,)


def counted_verdicts(verdicts: Sequence[Verdict]) -> str:
    """How many claims hold, do not, or cannot be told; kinds without any are left out."""
    kinds = [kind for kind in (HOLDS, FAILS, OPEN) if kind in verdicts]
    return ", ".join(_counted(kind, verdicts.count(kind)) for kind in kinds)


def _counted(verdict: Verdict, count: int) -> str:
    one = count == 1
    said = {
        HOLDS: "holds" if one else "hold",
        FAILS: "does not" if one else "do not",
        OPEN: "cannot be told with so few seeds",
    }
    return f"{count} {said[verdict]}"


def _named(found: Reproduction, rows: Sequence[Published]) -> str:
    return ", ".join(f"{row.protocol.upper()}'s {found.results.scale(row.metric).name}" for row in rows)


def standing(found: Reproduction, row: Published) -> Standing:
    """Whether a published number is hit or missed in the set-up of its paper."""
    return standing_of(row.as_metric, found.at_defaults(row, CALIBRATED))


def _off(ours: Estimate, theirs: Published) -> float:
    """The relative difference to the published number."""
    return ours.mean / theirs.as_metric - 1


def published_table(found: Reproduction) -> Table:
    """Every published number, ours under both rule sets, the difference, and why one is missed."""
    rows = []
    reasons: dict[str, list[str]] = {}
    for row in found.compared():
        scale = found.results.scale(row.metric)
        cells = [text(f"{row.protocol.upper()} {scale.heading}"), plain(row.value, row.printed)]
        for rules in (CALIBRATED, COMMON):
            ours = found.at_defaults(row, rules)
            cells += [estimated(ours, scale), plain(100 * _off(ours, row), signed_percent(_off(ours, row)))]
        verdict = standing(found, row)
        rows.append((*cells, text(verdict), text(row.source)))
        if verdict == MISSED:
            why = IF_MISSED.get((row.protocol, row.metric), "no reason is known")
            reasons.setdefault(why, []).append(f"{row.protocol.upper()}'s {scale.name}")
    remarks = [f"Missed: {' and '.join(missed)}: {why}." for why, missed in reasons.items()]
    heads = ("", "published", "own set-up", "diff.", "common rules", "diff.", "", "source")
    return Table("published", "Published and ours, mean ± 95 % interval.", heads, tuple(rows), tuple(remarks))


def _claims_part(found: Reproduction, table: Table) -> Section:
    words = (
        "Each claim of the papers' text, judged from the means. A trend holds if the ends differ and no step goes "
        "clearly back by more than a tenth of the whole change. “Slightly” and “little impact” are taken as within "
        f"{100 * LITTLE:.0f} %. Differences are judged as if the two means were independent, 95 %."
    )
    return Section("claims", "What the text claims", (words,), (table,))


def claims_table(found: Reproduction) -> Table:
    """Every claim, whether it holds under each rule set, and the numbers."""
    claims = found.claims()
    others = [rules for rules in (COMMON, SILENT) if any(found.has(EXHIBITS[claim.exhibit], rules) for claim in claims)]
    rows = []
    for claim in claims:
        exhibit, own = EXHIBITS[claim.exhibit], found.judge(claim, CALIBRATED)
        where = text(f"{exhibit.paper.upper()} {claim.section}, {exhibit.label}")
        verdicts = [text(found.judge(claim, rules).verdict if found.has(exhibit, rules) else "–") for rules in others]
        rows.append((where, text(claim.words), text(own.verdict), text(evidence(found, claim, own)), *verdicts))
    heads = ("where", "claim", "own set-up", "numbers", *(RULES_NAMED[rules] for rules in others))
    return Table("claims", "Claims of the text, judged.", heads, tuple(rows), tuple(_remarks(found)))


def _remarks(found: Reproduction) -> Iterator[str]:
    """What is odd about a claim, and why one probably does not hold; the same reason once."""
    for claim in found.claims():
        if claim.note:
            yield f"“{claim.words}”: {claim.note}."
    reasons: dict[str, list[str]] = {}
    for claim in found.claims():
        if claim.if_not and found.judge(claim, CALIBRATED).verdict == FAILS:
            reasons.setdefault(claim.if_not, []).append(f"“{claim.words}”")
    for reason, claims in reasons.items():
        yield f"Likely reason why {', '.join(dict.fromkeys(claims))} does not hold: {reason}."


def evidence(found: Reproduction, claim: Claim, judgement: Judgement) -> str:
    """The numbers behind a verdict, as the sentence runs: a curve from end to end for a trend, two for an order."""
    scale = found.results.scale(claim.metric)
    between = ", " if isinstance(claim, Trend) else " against "
    named = sorted(judgement.curves, key=lambda protocol: _place_in(claim.words, protocol))
    ends = between.join(_ends(judgement.curves[name], scale.factor) for name in named if judgement.curves[name])
    unit = f"\u00a0{scale.unit}" if scale.unit else ""
    return f"{ends}{unit}{f' ({judgement.reason})' if judgement.reason else ''}"


def _place_in(words: str, protocol: str) -> float:
    """Where a sentence names a protocol; who is not named comes last: the sentence compares the others with it."""
    letters = "".join(filter(str.isalnum, words)).lower()
    place = letters.find(protocol)
    return place if place >= 0 else math.inf


def _ends(curve: Sequence[Measured], factor: float) -> str:
    first, last = (three_digits(factor * point.estimate.mean) for point in (curve[0], curve[-1]))
    return first if len(curve) == 1 else f"{first}\u00a0→\u00a0{last}"


# --- Figures


def _figure_part(found: Reproduction, exhibit: Exhibit) -> Section | None:
    """A figure of a paper, drawn from our runs."""
    if exhibit.axis is None or not found.has(exhibit, CALIBRATED):
        return None
    paper = PAPERS[exhibit.paper]
    title = f"{exhibit.paper.upper()} {exhibit.label}: {exhibit.title}"
    words = f"{paper.cited}, section {exhibit.section}, p. {exhibit.page}. Values of the axis: {exhibit.axis.chosen}."
    pictures = tuple(_panel(found, exhibit, metric) for metric in exhibit.metrics)
    return Section(exhibit.name, title, (words,), (figure_table(found, exhibit),), pictures)


def _panel(found: Reproduction, exhibit: Exhibit, metric: str) -> Picture:
    assert exhibit.axis is not None
    scale = found.results.scale(metric)
    series = [_with_published(found, exhibit, metric, protocol) for protocol in exhibit.protocols]
    label = f"{exhibit.axis.label}, {exhibit.axis.unit}" if exhibit.axis.unit else exhibit.axis.label
    caption = f"{scale.name.capitalize()} as in {exhibit.paper.upper()} {exhibit.label}; stars: printed in the tables."
    return curves(f"{exhibit.name}-{metric}", series, label, scale.heading, caption)


def _with_published(found: Reproduction, exhibit: Exhibit, metric: str, protocol: str) -> Series:
    cases = [(at or 0.0, case) for at, case in found.points(exhibit, protocol, CALIBRATED)]
    one = series_of(found.results, metric, protocol, cases)
    printed = published(protocol, metric)
    if printed is None or exhibit.axis is None:
        return one
    return replace(one, published={exhibit.axis.default: printed.value})


def figure_table(found: Reproduction, exhibit: Exhibit) -> Table:
    """The numbers of a figure."""
    assert exhibit.axis is not None
    columns = [(protocol, metric) for protocol in exhibit.protocols for metric in exhibit.metrics]
    rows = []
    for at in exhibit.axis.values:
        cells: list[Cell] = [plain(at, f"{at:g}")]
        for protocol, metric in columns:
            ours = found.estimate(setup(exhibit, protocol, at, CALIBRATED), metric)
            cells.append(estimated(ours, found.results.scale(metric)))
        rows.append(tuple(cells))
    heads = [f"{protocol.upper()} {found.results.scale(metric).heading}" for protocol, metric in columns]
    caption = f"{exhibit.paper.upper()} {exhibit.label}, ours: mean ± 95 % interval."
    return Table(exhibit.name, caption, (exhibit.axis.label, *heads), tuple(rows))


# --- Ablations


def ablation_table(found: Reproduction, protocol: str) -> Table | None:
    """What each other reading of an open point does to the published numbers of a protocol."""
    rows = [("none", default_setup(protocol))]
    rows += [(row.words, ablation_setup(row, protocol)) for row in ABLATIONS if protocol in row.protocols]
    there = [(words, one) for words, one in rows if found.case_of(one) is not None]
    if len(there) < 2:
        return None
    scales = [found.results.scale(metric) for metric in METRICS]
    printed = {row.metric: row for row in PUBLISHED if row.protocol == protocol}
    lines: list[tuple[Cell, ...]] = [
        (text("published"), *(plain(printed[m].value, printed[m].printed) for m in METRICS))
    ]
    for words, one in there:
        cells = [text(words)]
        for metric, scale in zip(METRICS, scales, strict=True):
            ours = found.estimate(one, metric)
            cells.append(estimated(ours, scale, remark=f"({signed_percent(_off(ours, printed[metric]), 0)})"))
        lines.append(tuple(cells))
    heads = ("change", *(scale.heading for scale in scales))
    return Table(f"ablation-{protocol}", f"{protocol.upper()}: other readings, one by one.", heads, tuple(lines))


# --- The same for machines


def as_dict(found: Reproduction) -> dict[str, Any]:
    """Published numbers, claims and ablations, ready for JSON."""
    return {
        "published": [
            {
                "protocol": row.protocol,
                "metric": row.metric,
                "published": row.as_metric,
                "source": row.source,
                **{rules: _as_dict(found.at_defaults(row, rules), row) for rules in (CALIBRATED, COMMON)},
                "verdict": standing(found, row),
            }
            for row in found.compared()
        ],
        "claims": [
            {
                "exhibit": claim.exhibit,
                "section": claim.section,
                "claim": claim.words,
                **{
                    rules: found.judge(claim, rules).verdict
                    for rules in (CALIBRATED, COMMON, SILENT)
                    if found.has(EXHIBITS[claim.exhibit], rules)
                },
                "numbers": evidence(found, claim, found.judge(claim, CALIBRATED)),
            }
            for claim in found.claims()
        ],
    }


def _as_dict(ours: Estimate, row: Published) -> dict[str, Any]:
    return {"mean": ours.mean, "half_width": ours.half_width(), "runs": ours.count, "difference": _off(ours, row)}
