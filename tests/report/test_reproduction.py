"""The comparison with the papers, on results whose every answer is known."""

import re
from dataclasses import replace
from functools import cache

import pytest

from serai.core.statistics import Estimate
from serai.field.paper import (
    CALIBRATED,
    CLAIMS,
    COMMON,
    EXHIBITS,
    IF_MISSED,
    METRICS,
    PUBLISHED,
    SILENT,
    default_setup,
    setups,
)
from serai.kinds import FIELD
from serai.papers.claims import FAILS, HOLDS, OPEN
from serai.report.markdown import as_markdown
from serai.report.page import render
from serai.report.paper import finder, paper_plan
from serai.report.reproduction import (
    Reproduction,
    _counted,
    ablation_table,
    as_dict,
    caveats,
    chapter,
    claims_table,
    figure_table,
    published_table,
    standing,
)
from serai.report.results import Case, Point, Results
from serai.report.sections import sections
from serai.report.terminal import as_text
from tests.report.test_page import Page

MEANS = {(row.protocol, row.metric): row.as_metric for row in PUBLISHED}
MEANS |= {(name, "transmissions_per_event"): 50.0 for name in ("ced", "cet", "dg")}
MEANS |= {("ced", "energy_j"): 4.0, ("cet", "energy_j"): 7.0, ("dg", "energy_j"): 6.0}
MEANS["dg", "lifetime_days"] = 3.39
MEANS["ced", "mean_delay_s"] *= 0.95


def measured(plan, cell, metric):
    """As published (but for two), and in proportion to the number that a setting begins with."""
    mean = MEANS[cell.protocol, metric]
    for value in plan.points[cell.point].values():
        number = re.match(r"[\d.]+", value)
        mean *= 1 + 0.01 * float(number[0]) if number else 1
    return Estimate(mean, mean / 1000, 100)


@cache
def reproduction(papers=("ced", "cet"), ablate=False):
    plan = paper_plan(papers, 100, ablate)
    metrics = (*METRICS, "transmissions_per_event", "energy_j")
    cases = tuple(Case(cell.point, cell.protocol) for cell in plan.cells)
    results = Results(
        title="The papers",
        points=tuple(Point("", point) for point in plan.points),
        cases=cases,
        definitions=FIELD.definitions,
        headlines=METRICS,
        estimates={
            (case, metric): measured(plan, cell, metric)
            for case, cell in zip(cases, plan.cells, strict=True)
            for metric in metrics
        },
        seeds=100,
        provenance={"command": "serai paper all --seeds 100", "runs": "1,000", "seeds": "0 to 99", "serai": "0.1.0"},
    )
    return Reproduction(results, finder(plan))


def test_plan_has_every_set_up_once():
    plan = paper_plan(("ced", "cet"), 5)
    assert len({cell.id for cell in plan.cells}) == len(plan.cells)
    assert {cell.seeds for cell in plan.cells} == {5}
    find = finder(plan)
    assert all(find(found) is not None for found in setups(("ced", "cet")))
    assert find(default_setup("ced", CALIBRATED)) == find(default_setup("ced", COMMON)) == Case(0, "ced")
    assert find(default_setup("cet", CALIBRATED)) != find(default_setup("cet", COMMON))
    assert find(default_setup("ced", SILENT)) is None
    assert finder(paper_plan(("ced",), 5, ablate=True))(default_setup("ced", SILENT)) is not None


def test_plans_of_the_papers_share_a_folder():
    assert paper_plan(("ced",), 5).base == paper_plan(("ced", "cet"), 9, ablate=True).base


def test_published_numbers_beside_ours():
    table = published_table(reproduction())
    rows = {row[0].text: row for row in table.rows}
    assert len(rows) == 12
    name, theirs, own, own_off, common, common_off, verdict, source = rows["CED delivered, %"]
    assert (theirs.text, own.value, own_off.text, verdict.text) == ("86.5", pytest.approx(86.5), "+0.0 %", "hit")
    assert (common.value, common_off.text) == (own.value, own_off.text)
    assert source.text == "Liu et al., Sensors 2009, Table 2"
    assert rows["CED delay, s"][3].text == "−5.0 %"
    assert rows["CED delay, s"][6].text == "hit"
    assert rows["DG lifetime, d"][6].text == "missed"
    assert rows["DG lifetime, d"][3].value == pytest.approx(100 * (3.39 / 6.04 - 1))
    assert [remark for remark in table.remarks if IF_MISSED["dg", "lifetime_days"] in remark]
    assert name.text == "CED delivered, %"


@pytest.mark.parametrize(
    ("part", "error", "verdict"),
    [(1.05, 0.01, "hit"), (1.05, 0.1, OPEN), (1.11, 0.01, OPEN), (0.87, 0.01, "missed"), (0.5, 0.1, "missed")],
)
def test_a_number_is_hit_or_missed_unless_the_interval_is_on_both_sides(part, error, verdict):
    row = PUBLISHED[0]
    ours = Estimate(part * row.as_metric, error * row.as_metric, 100)
    found = reproduction()
    case = found.case_of(default_setup(row.protocol))
    changed = replace(found.results, estimates={(case, row.metric): ours})
    assert standing(Reproduction(changed, found.case_of), row) == verdict


def test_claims_are_judged_from_the_right_curves():
    found = reproduction()
    table = claims_table(found)
    assert len(table.rows) == len(CLAIMS)
    verdicts = {(row[0].text, row[1].text): row[2].text for row in table.rows}
    assert verdicts["CED 5.2, Fig. 6", "the ratio of CED rises with α"] == FAILS  # the default, at the end, is lower
    assert verdicts["CED 5.3, Fig. 7", "CED delivers more than DG at every speed"] == HOLDS
    assert verdicts["CED 5.5, Table 3", "more events are transmitted in CED than in DG"] == OPEN
    assert verdicts["CED 5.5, Table 3", "DG lives longer than CED"] == FAILS
    assert verdicts["CET 4.6, Table 3", "sensors spend more energy under CET than under DG"] == HOLDS


def test_claims_under_silent_pauses_are_there_if_they_were_run():
    assert "silent in pauses" not in claims_table(reproduction()).heads
    table = claims_table(reproduction(ablate=True))
    assert table.heads[4:] == ("common rules", "silent in pauses")
    verdicts = {row[0].text: tuple(cell.text for cell in row[4:]) for row in table.rows}
    assert "–" not in verdicts["CET 4.2, Table 2"]
    assert verdicts["CET 4.3, Fig. 8"][0] == "–"  # figures of CET are run in its own set-up,
    assert verdicts["CET 4.3, Fig. 8"][1] != "–"  # and against speed with silent pauses
    assert verdicts["CET 4.4, Fig. 9"] == ("–", "–")


def test_numbers_run_as_the_sentence_does():
    """Arrows from the shorter range to the longer one (more cells to fewer); whom it names first comes first."""
    rows = {(row[0].text, row[1].text): row[3].text.replace("\u00a0", " ") for row in claims_table(reproduction()).rows}
    ratio = rows["CET 4.5, Fig. 10", "with longer range (fewer cells) the ratio of CET rises"]
    first, last = (float(number) for number in re.findall(r"[\d.]+", ratio)[:2])
    assert first > last  # measured here: more with more cells
    assert "(the other way round)" in ratio
    assert rows["CED 5.2, Table 2", "CED makes far fewer copies than DG"] == "4.20 against 75.9"
    assert rows["CED 5.2, Table 2", "DG's delay is longer than that of CED"] == "616 against 219 s"


def test_reasons_stand_below_the_claims_that_fail():
    remarks = " ".join(claims_table(reproduction()).remarks)
    assert "as printed; “in contrast”" in remarks.replace('"in contrast"', "“in contrast”")
    assert "Likely reason why" in remarks


def test_one_paper_alone_says_nothing_of_the_other():
    found = reproduction(("ced",))
    assert {row.protocol for row in found.compared()} == {"ced", "dg"}
    assert {EXHIBITS[claim.exhibit].paper for claim in found.claims()} == {"ced"}


def test_a_sweep_without_the_papers_set_ups_has_no_such_chapter():
    found = reproduction()
    assert chapter(Reproduction(found.results, lambda setup: None)) is None
    assert caveats(Reproduction(found.results, lambda setup: None)) == ()


def test_a_comparison_at_defaults_has_tables_and_claims_of_tables_only():
    """As `serai demo` has them."""
    found = reproduction()
    find = found.case_of
    demo = Reproduction(found.results, lambda setup: None if setup.settings else find(setup))
    part = chapter(demo)
    assert part is not None
    assert [inner.name for inner in part.parts] == ["claims"]
    assert {EXHIBITS[claim.exhibit].axis for claim in demo.claims()} == {None}


def test_figures_have_numbers_of_every_point():
    found = reproduction()
    table = figure_table(found, EXHIBITS["cet-fig-9"])
    assert table.heads == (
        "N",
        *("CET delivered, %", "CET copies", "CET delay, s"),
        *("DG delivered, %", "DG copies", "DG delay, s"),
    )
    assert [row[0].value for row in table.rows] == [40, 60, 80, 100, 120, 140]
    default = next(row for row in table.rows if row[0].value == 100)
    assert default[1].value == pytest.approx(91.0)


def test_ablations_are_shown_if_they_were_run():
    assert ablation_table(reproduction(), "ced") is None
    table = ablation_table(reproduction(ablate=True), "cet")
    assert table is not None
    assert [row[0].text for row in table.rows][:3] == ["published", "none", "protocol.silent_while_pausing=true"]
    assert len(table.rows) == 2 + 16
    assert table.rows[1][1].remark == "(+0 %)"


def test_the_opening_counts_hits_and_claims():
    (sentence,) = caveats(reproduction())
    assert sentence.startswith(
        "Of 12 published numbers 11 are hit within 10 %, 1 missed (DG's lifetime). Of 48 stated claims "
    )
    assert (_counted(FAILS, 1), _counted(FAILS, 2), _counted(HOLDS, 1)) == ("1 does not", "2 do not", "1 holds")


def test_text_fits_a_terminal():
    text = as_text(reproduction(ablate=True))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "✓ Fig. 7: CED delivers more than DG at every speed" in text


def test_page_with_the_papers_is_well_formed():
    found = reproduction(ablate=True)
    part = chapter(found)
    drawn = replace(part, parts=tuple(replace(inner, pictures=inner.pictures[:1]) for inner in part.parts))
    parsed = Page(render("The papers", "", sections(found.results.main(), caveats(found), drawn)))
    assert parsed.open == []
    assert len(parsed.cells["table-published"]) == 13
    stars = [picture for picture in parsed.all("svg") if "as in CED Fig. 6" in picture["aria-label"]]
    assert len(stars) == 1


def test_markdown_is_a_page_of_the_docs():
    text = as_markdown(reproduction(ablate=True))
    assert text.startswith("# The papers, reproduced\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Numbers",
        "## Claims",
        "## Figures",
        "## Other readings",
    ]
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.M)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_json_has_the_same_numbers():
    said = as_dict(reproduction())
    row = next(row for row in said["published"] if (row["protocol"], row["metric"]) == ("dg", "lifetime_days"))
    assert row["verdict"] == "missed"
    assert row["calibrated"]["mean"] == 3.39
    assert row["calibrated"]["runs"] == 100
    assert len(said["claims"]) == len(CLAIMS)
    assert {claim["calibrated"] for claim in said["claims"]} <= {HOLDS, FAILS, OPEN}
