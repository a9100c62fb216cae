"""One verdict on each published number, wherever it is read: terminal, report, README and documentation."""

import math
import re
from pathlib import Path

import pytest

from serai.cli.demo import Row, comparison
from serai.core.statistics import Estimate
from serai.field.paper import IF_MISSED, METRICS, PUBLISHED, published
from serai.papers.verdicts import HIT, MISSED, UNTOLD, standing, standing_of
from serai.report.reproduction import published_table
from tests.report.test_reproduction import reproduction

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("mean", "half_width", "verdict"),
    [
        (100, 0, HIT),
        (110, 0, HIT),
        (103, 7, HIT),
        (97, 7, HIT),
        (103, 7.1, UNTOLD),
        (110.1, 0, MISSED),
        (115, 4.9, MISSED),
        (85, 4.9, MISSED),
        (115, 5.1, UNTOLD),
        (300, 10.1, MISSED),
        (100, 10.1, UNTOLD),
        (100, 300, UNTOLD),
        (100, math.nan, UNTOLD),
        (math.nan, math.nan, UNTOLD),
    ],
)
def test_verdict(mean: float, half_width: float, verdict: str) -> None:
    assert standing_of(100, mean, half_width) == verdict


def test_one_run_tells_nothing() -> None:
    assert standing(100, Estimate(100.0, math.nan, 1)) == UNTOLD


# --- The demo's table


def rows(**changed: float) -> list[Row]:
    """All as published, with narrow intervals, but for what is changed: `ced_mean_delay_s=2` is twice as much."""
    found = []
    for protocol in ("ced", "cet", "dg"):
        estimates = {}
        for metric in METRICS:
            printed = published(protocol, metric)
            assert printed is not None
            mean = printed.as_metric * changed.get(f"{protocol}_{metric}", 1)
            wide = changed.get(f"{protocol}_{metric}_wide", 0.001)
            estimates[metric] = Estimate(mean, wide * printed.as_metric, 20)
        found.append(Row(protocol, estimates))
    return found


def test_nothing_is_marked_where_all_is_hit() -> None:
    said = comparison(rows(), 20)
    assert "*" not in said
    assert "?" not in said
    assert "missed" not in said
    assert not any("missed" in cell for row in rows() for cell in row.as_dict().values())


def test_what_is_missed_is_marked_and_explained() -> None:
    said = comparison(rows(dg_lifetime_days=0.5, ced_copies_per_event=0.8, cet_lifetime_days_wide=0.2), 20)
    lines = said.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].endswith("86.5  230.6   4.2*  3.57")
    assert lines[3].endswith("91.0  193.8   5.5   2.57?")
    assert lines[4].endswith("47.0  615.5  75.9   6.04*")
    assert " * missed: CED's copies: no reason is known" in said
    assert " ".join(IF_MISSED["dg", "lifetime_days"].split()) in " ".join(said.split())
    assert " ? cannot be told with so few seeds" in said
    assert IF_MISSED["cet", "lifetime_days"][:30] not in said


def test_terminal_and_report_agree() -> None:
    """The same means and intervals, through the demo's table and through the report's."""
    found = reproduction()
    table = {row[0].text: row[6].text for row in published_table(found).rows}
    for protocol in ("ced", "cet", "dg"):
        mine = {row.metric: row for row in PUBLISHED if row.protocol == protocol}
        row = Row(protocol, {metric: found.at_defaults(mine[metric], "calibrated") for metric in METRICS})
        for metric in METRICS:
            heading = found.results.scale(metric).heading
            assert row.standing(metric) == table[f"{protocol.upper()} {heading}"]
            assert ("missed" in row.as_dict()[metric]) == (row.standing(metric) == MISSED)


# --- What is written down

_COLUMN = {"delivered %": "delivery_ratio", "copies": "copies_per_event"}
_COLUMN |= {"delay s": "mean_delay_s", "lifetime d": "lifetime_days"}


def test_readme_table_has_the_verdicts() -> None:
    lines = [line.strip("| ") for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("|")]
    (head,) = [number for number, line in enumerate(lines) if "lifetime d" in line]
    columns = [_COLUMN[name] for name in map(str.strip, lines[head].split("|")) if name in _COLUMN]
    checked = 0
    for theirs, ours in zip(lines[head + 2 : head + 8 : 2], lines[head + 3 : head + 8 : 2], strict=True):
        protocol, _, *printed = map(str.strip, theirs.split("|"))
        for metric, number, cell in zip(columns, printed, ours.split("|")[-4:], strict=True):
            one = published(protocol.lower(), metric)
            assert one is not None
            assert number == one.printed
            mean, half_width = (float(word) for word in re.findall(r"[\d.]+", cell)[:2])
            verdict = standing_of(float(number), mean, half_width)
            assert ("missed" in cell, "cannot be told" in cell) == (verdict == MISSED, verdict == UNTOLD), cell
            checked += 1
    assert checked == 12


def test_readme_and_the_page_on_protocols_say_what_the_page_of_record_says() -> None:
    """Its numbers, rounded; its verdicts are those of its numbers; what the text calls missed is what is missed."""
    of_record = (ROOT / "docs" / "field" / "papers.md").read_text()
    readme = [line.strip("| ") for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("|")]
    (head,) = [number for number, line in enumerate(readme) if "lifetime d" in line]
    ours = {row.split("|")[0].strip(): readme[head + 3 + 2 * nth].split("|")[-4:]
            for nth, row in enumerate(readme[head + 2 : head + 8 : 2])}  # fmt: skip
    missed = set()
    for row in PUBLISHED:
        place = list(_COLUMN.values()).index(row.metric)
        name = ("delivered", "copies", "delay", "lifetime")[place]
        (line,) = re.findall(rf"^\| {row.protocol.upper()} {name}.*$", of_record, flags=re.M)
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        mean, half_width = map(float, cells[2].split(" ± "))
        verdict = standing_of(row.value, mean, half_width)
        assert cells[6] == verdict
        missed |= {f"{row.protocol.upper()}'s {name}"} if verdict == MISSED else set()
        for number, told in zip(
            (mean, half_width), re.findall(r"[\d.]+", ours[row.protocol.upper()][place])[:2], strict=True
        ):
            assert f"{number:.{len(told.partition('.')[2])}f}" == told, line
    _, _, text = (ROOT / "docs" / "field" / "protocols.md").read_text().partition("What is missed")
    named = re.findall(r"^\* \*\*(.*?)\*\*", text.partition("## ")[0], flags=re.M)
    assert {
        f"{who} {what}" for words in named for *many, what in [words.split()] for who in many if who != "and"
    } == missed


def test_readme_demo_has_the_verdicts() -> None:
    """The block that shows what the demo prints, numbers and marks."""
    text = (ROOT / "README.md").read_text()
    order = ("delivery_ratio", "mean_delay_s", "copies_per_event", "lifetime_days")
    for protocol in ("ced", "cet", "dg"):
        (line,) = re.findall(rf"^     {protocol.upper()} +([\d.]+ ±.*)$", text, flags=re.M)
        ours = re.findall(r"([\d.]+) ±([\d.]+)", line)
        theirs = re.findall(r"([\d.]+)([*?]?)(?= |$|\d)", line[line.rindex("±") :])[1:]
        for metric, (mean, half_width), (number, mark) in zip(order, ours, theirs, strict=True):
            verdict = standing_of(float(number), float(mean), float(half_width))
            assert mark == {HIT: "", MISSED: "*", UNTOLD: "?"}[verdict], (protocol, metric)
