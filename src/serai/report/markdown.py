"""The page of the documentation on the papers, made from a run of `serai paper`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from serai.field.paper import CALIBRATED, EXHIBITS, LITTLE, PAPERS
from serai.papers.claims import FAILS, HOLDS, OPEN
from serai.papers.exhibits import Exhibit
from serai.papers.verdicts import NEAR
from serai.report.reproduction import (
    Reproduction,
    ablation_table,
    caveats,
    claims_table,
    figure_table,
    published_table,
)
from serai.report.tables import Cell, Table, to_markdown

_WIDTH: Final = 118


def as_markdown(found: Reproduction) -> str:
    """The whole page: hits and misses, claims, figures as tables, other readings."""
    return "\n".join(_lines(found))


def _lines(found: Reproduction) -> Iterator[str]:
    provenance = found.results.provenance
    yield "# The papers, reproduced"
    yield ""
    yield from _paragraph(
        f"This page is written by `{provenance['command']} --markdown FILE`: {provenance['runs']} runs, seeds"
        f" {provenance['seeds']}, serai {provenance.get('serai', '')}. Nothing on it is edited by hand."
    )
    yield from _paragraph(" ".join(caveats(found)))
    yield from _published(found)
    yield from _claims(found)
    yield "## Figures\n"
    yield from _paragraph(
        "The papers' figures as numbers of ours. No value is read off a printed curve, so there is nothing to stand"
        " beside them but what the text says, above. At the default value stand the runs of the tables."
    )
    for exhibit in EXHIBITS.values():
        if exhibit.axis is not None and found.has(exhibit, CALIBRATED):
            yield from _figure(found, exhibit)
    tables = [table for protocol in ("ced", "cet", "dg") if (table := ablation_table(found, protocol))]
    if tables:
        yield "## Other readings\n"
        yield from _paragraph(
            "Each row reads one open point differently and leaves the others as they are; in brackets the difference"
            " to the published number. What each setting means: [protocols](protocols.md#open-points)."
        )
    for table in tables:
        yield f"### {table.caption.partition(':')[0]}\n"
        yield to_markdown(_with_code(table))


def _published(found: Reproduction) -> Iterator[str]:
    table = published_table(found)
    yield "## Numbers\n"
    yield from _paragraph(
        f"Mean ± 95 % confidence interval. *Hit*: the whole interval lies within {100 * NEAR:.0f} % of the published"
        " number; *missed*: the whole lies beyond. *Own set-up*: each protocol in the built-in scenario of its name."
        " *Common rules*: all three in the scenario `field`. The two differ for CET alone, and only in the attributes:"
        " integers in its paper, reals in `field`, so its figures are not run a second time. In both CED and CET hear a"
        " pausing subscriber, and DG does not: seven readings of CED and seven of CET were looked at before that was"
        " [chosen](protocols.md#pauses)."
    )
    yield to_markdown(table)
    yield from (f"* {remark}" for remark in table.remarks)
    yield ""


def _claims(found: Reproduction) -> Iterator[str]:
    table = claims_table(found)
    yield "## Claims\n"
    yield from _paragraph(
        f"What the text says, judged from the means: it *{HOLDS}*, it *{FAILS}*, or it *{OPEN}* with so few seeds."
        " A trend holds if the ends of the curve differ (95 %) and no step goes clearly back by more than a tenth of"
        f" the whole change; “slightly” and “little” are read as within {100 * LITTLE:.0f} %. Numbers are the ends of"
        " the curves."
    )
    yield to_markdown(table)
    yield from (f"* {remark}" for remark in table.remarks)
    yield ""


def _figure(found: Reproduction, exhibit: Exhibit) -> Iterator[str]:
    assert exhibit.axis is not None
    yield f"### {exhibit.paper.upper()} {exhibit.label}: {exhibit.title}\n"
    yield from _paragraph(
        f"{PAPERS[exhibit.paper].cited}, section {exhibit.section}, p. {exhibit.page}; `{exhibit.axis.key}`,"
        f" values: {exhibit.axis.chosen}."
    )
    yield to_markdown(figure_table(found, exhibit))


def _with_code(table: Table) -> Table:
    """The settings in the first column set as code."""
    rows = [
        (row[0] if "=" not in row[0].text else Cell(f"`{row[0].text}`"), *row[1:])  # "published" and "none" are words
        for row in table.rows
    ]
    return Table(table.name, table.caption, table.heads, tuple(rows), table.remarks)


def _paragraph(words: str) -> list[str]:
    return [*textwrap.wrap(words, _WIDTH, break_long_words=False, break_on_hyphens=False), ""]
