"""The page on the papers is as the program writes it, and speaks of everything that it knows."""

from pathlib import Path

from serai.field.paper import CLAIMS, EXHIBITS, PUBLISHED
from serai.report.markdown import as_markdown
from serai.report.paper import paper_plan
from tests.report.test_reproduction import reproduction

DOCS = Path(__file__).parents[2] / "docs" / "field"
PAGE = (DOCS / "papers.md").read_text()


def test_every_published_number_stands_there():
    for row in PUBLISHED:
        lines = [line for line in PAGE.splitlines() if line.startswith(f"| {row.protocol.upper()} ")]
        assert any(f"| {row.printed} |" in line and line.endswith(f"| {row.source} |") for line in lines), row


def test_every_claim_stands_there():
    said = {
        tuple(cell.strip() for cell in line.split("|")[1:3]) for line in PAGE.splitlines() if line.startswith("| C")
    }
    for claim in CLAIMS:
        exhibit = EXHIBITS[claim.exhibit]
        assert (f"{exhibit.paper.upper()} {claim.section}, {exhibit.label}", claim.words) in said


def test_every_figure_has_its_table():
    for exhibit in EXHIBITS.values():
        if exhibit.axis is not None:
            assert f"### {exhibit.paper.upper()} {exhibit.label}: {exhibit.title}" in PAGE


def test_it_says_how_it_was_made():
    runs = 1000 * len(paper_plan(("ced", "cet"), 1000, ablate=True).cells)
    assert f"written by `serai paper all --ablate --seeds 1000 --markdown FILE`: {runs:,} runs, seeds 0 to 999," in PAGE


def test_what_it_explains_is_what_the_program_writes_now():
    written = as_markdown(reproduction(ablate=True))
    for chapter in ("## Numbers", "## Claims", "## Figures", "## Other readings"):
        first, second = (text.partition(f"{chapter}\n\n")[2].partition("\n\n")[0] for text in (written, PAGE))
        assert first == second


def test_it_counts_the_readings_that_were_looked_at_before_the_choice():
    looked_at = (DOCS / "protocols.md").read_text().partition("Seven readings of each protocol were looked at")[2]
    table = looked_at.partition("\n\n")[2].partition("\n\n")[0].splitlines()
    for protocol in ("CED", "CET"):
        rows = [line for line in table if line.startswith(f"| {protocol}, ")]
        assert len(rows) == 7
        assert sum("**chosen**" in row for row in rows) == 1
    assert "seven readings of CED and seven of CET were looked at" in PAGE.replace("\n", " ")
