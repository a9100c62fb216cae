"""The page on the papers is as the program writes it, and speaks of everything that it knows."""

from pathlib import Path

from serai.field.paper import CLAIMS, EXHIBITS, PUBLISHED

PAGE = (Path(__file__).parents[2] / "docs" / "field" / "papers.md").read_text()


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
    assert "This page is written by `serai paper all" in PAGE
