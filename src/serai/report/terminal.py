"""The reproduction of papers as lines of text, 80 columns wide."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Final

from serai.field.paper import CALIBRATED, COMMON, EXHIBITS, PAPERS, SILENT
from serai.papers.claims import FAILS, HOLDS, OPEN, Claim, Judgement
from serai.papers.verdicts import MISSED, UNTOLD
from serai.report.reproduction import (
    RULES_NAMED,
    Reproduction,
    ablation_table,
    evidence,
    published_table,
)
from serai.report.tables import Cell, Table, to_text

_WIDTH: Final = 80
_MARKS: Final[dict[str, str]] = {MISSED: "*", UNTOLD: "?"}
_SIGNS: Final = {HOLDS: "✓", FAILS: "✗", OPEN: "?"}


def as_text(found: Reproduction) -> str:
    """Published numbers beside ours, what is missed and why, every claim judged, the other readings."""
    return "\n".join(_lines(found))


def _lines(found: Reproduction) -> Iterator[str]:
    table = published_table(found)
    yield to_text(_without_source(table))
    yield ""
    for remark in table.remarks:
        yield from textwrap.wrap(f"* {remark}", _WIDTH, initial_indent=" ", subsequent_indent="   ")
    for paper in PAPERS.values():
        claims = [claim for claim in found.claims() if EXHIBITS[claim.exhibit].paper == paper.name]
        if claims:
            yield ""
            yield f" {paper.cited}"
        for claim in claims:
            own = found.judge(claim, CALIBRATED)
            words = f"{EXHIBITS[claim.exhibit].label}: {claim.words}: {evidence(found, claim, own)}"
            words += "".join(_otherwise(found, claim, own, rules) for rules in (COMMON, SILENT))
            yield from textwrap.wrap(
                words, _WIDTH, initial_indent=f"  {_SIGNS[own.verdict]} ", subsequent_indent="      "
            )
    for protocol in ("ced", "cet", "dg"):
        if ablations := ablation_table(found, protocol):
            yield ""
            yield f" {ablations.caption}"
            yield to_text(_without_differences(ablations))
    if found.claims():
        yield ""
        yield f" {_SIGNS[HOLDS]} {HOLDS}   {_SIGNS[FAILS]} {FAILS}   {_SIGNS[OPEN]} {OPEN} with so few seeds"


def _otherwise(found: Reproduction, claim: Claim, own: Judgement, rules: str) -> str:
    """The verdict under another rule set, where it is another one."""
    if not found.has(EXHIBITS[claim.exhibit], rules):
        return ""
    verdict = found.judge(claim, rules).verdict
    return f" [{RULES_NAMED[rules]}: {verdict}]" if verdict != own.verdict else ""


def _without_source(table: Table) -> Table:
    """The table narrow enough for a terminal: a missed number has a star, one that cannot be told a question mark."""
    rows = []
    for name, theirs, own, own_off, common, common_off, verdict, _source in table.rows:
        star = Cell(f"{own_off.text}{_MARKS.get(verdict.text, ' ')}", own_off.value)
        rows.append((name, theirs, _tight(own), star, _tight(common), common_off))
    return Table(table.name, table.caption, table.heads[:6], tuple(rows))


def _without_differences(table: Table) -> Table:
    """The table without the differences in brackets, and with settings in short."""
    rows = [(Cell(_short(row[0].text)), *(_tight(cell) for cell in row[1:])) for row in table.rows]
    return Table(table.name, table.caption, table.heads, tuple(rows))


def _tight(cell: Cell) -> Cell:
    """A number and its interval in few characters: three or four digits, whatever the interval would allow."""
    if cell.value is None or cell.half_width is None:
        return cell
    decimals = 2 if abs(cell.value) < 20 else 1
    return Cell(f"{cell.value:.{decimals}f}±{cell.half_width:.{decimals}f}", cell.value)


def _short(settings: str) -> str:
    """Settings without the tables that they stand in."""
    return re.sub(r"\b[a-z]+\.(?=[a-z_]+=)", "", settings)
