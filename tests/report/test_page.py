"""The report as a reader meets it: one file that stands alone, whose numbers are those of the summary."""

import base64
import csv
import io
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pytest

from serai.core.errors import CannotRun
from serai.core.statistics import Estimate, t_quantile
from serai.kinds import OVERLAY
from serai.log.svg import width_of
from serai.report.answer import headline, opening
from serai.report.figures import Picture
from serai.report.gather import headlines_of
from serai.report.page import all_pictures, all_tables, render, write_page
from serai.report.results import Case, Point, Results
from serai.report.section import Section
from serai.report.sections import _main_table, sections
from serai.report.tables import Table, text, to_csv, to_latex, to_markdown
from tests.report.hand_made import ALPHAS, COUNT, HEADLINES, LEVEL, results

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Every element with its attributes, and whether all are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.cells: dict[str, list[list[str]]] = {}
        self.table = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.table = dict(attrs)["id"]
            self.cells[self.table] = []
        if tag == "tr":
            self.cells[self.table].append([])
        if tag in ("td", "th"):
            self.cells[self.table][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[self.table][-1][-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@cache
def swept():
    """The chapters on four values of alpha."""
    return sections(results(ALPHAS))


@cache
def bare():
    """The chapters on one point."""
    return sections(results())


def page(chapters=None):
    return render("A comparison made by hand", "20 seeds", chapters or bare())


def test_page_is_well_formed_and_stands_alone():
    text = page(swept())
    parsed = Page(text)
    assert parsed.open == []
    links = [value for _, attributes in parsed.elements for key in ("src", "href") if (value := attributes.get(key))]
    assert links
    for link in links:
        assert link.startswith(("data:", "#")), link[:60]
    assert parsed.all("script") == []
    assert parsed.all("link") == []
    assert "@import" not in text
    assert "url(" not in text


def test_every_figure_says_what_it_shows():
    pictures = Page(page(swept())).all("svg")
    assert len(pictures) == 10  # two prices, four metrics against alpha, four curves of delay
    assert all(len(picture["aria-label"]) > 20 for picture in pictures)
    assert all(picture["role"] == "img" for picture in pictures)


def test_long_names_of_points_leave_room_for_the_figures():
    settings = {"subscribers.speed_max": "2 m/s", "sensors.count": "60", "events.attributes.A1.high": "1000"}
    far = tuple(Point("field", settings | {"protocol.alpha": str(alpha)}) for alpha in (2, 5))
    for picture in all_pictures(sections(results(far))):
        drawing = ET.fromstring(picture.svg)
        wide = float(drawing.get("viewBox", "").split()[2])
        for words in drawing.iter(f"{SVG}text"):
            x, half = float(words.get("x", "nan")), width_of(words.text or "") / 2
            begin = x - {"middle": half, "end": 2 * half}.get(words.get("text-anchor", ""), 0.0)
            assert -1 <= begin <= begin + 2 * half <= wide + 8, (picture.name, words.text)


def test_every_inner_link_leads_somewhere():
    parsed = Page(page())
    names = {attributes.get("id") for _, attributes in parsed.elements}
    assert {link["href"][1:] for link in parsed.all("a") if link["href"].startswith("#")} <= names


def test_ten_chapters_or_a_word_on_why_not():
    found = swept()
    assert len(found) == 10
    assert [section.name for section in found if section.absent] == ["papers"]
    assert [section.name for section in bare() if section.absent] == ["swept", "papers"]
    assert "against the swept setting (no setting with numbers was swept)" in page()


def test_numbers_of_the_main_table_are_those_of_the_summary():
    head, *rows = Page(page()).cells["table-main"]
    assert head == ["protocol", "delivered, %", "delay, s", "copies", "lifetime, d"]
    for row in rows:
        for metric, cell in zip(HEADLINES, row[1:], strict=True):
            factor = 100 if metric == "delivery_ratio" else 1
            mean, width = re.findall(r"[\d.,]+", cell)
            expected = factor * LEVEL[metric][row[0].lower()]
            assert float(mean) == pytest.approx(expected, abs=0.5 * 10 ** -len(mean.partition(".")[2]) + 1e-9)
            half = t_quantile(0.95, COUNT - 1) * expected / 100
            assert float(width) == pytest.approx(half, rel=0.06)


def test_best_is_bold_and_who_is_not_worse_is_said():
    main = next(table for table in all_tables(bare()) if table.name == "main")
    strong = {row[0].text: [cell.strong for cell in row[1:]] for row in main.rows}
    assert strong == {
        "CED": [False, False, False, True],  # copies are not counted alike: nobody is best
        "CET": [True, True, False, False],
        "DG": [False, False, False, False],
    }
    remarks = {row[0].text: [cell.remark for cell in row[1:]] for row in main.rows}
    assert remarks["DG"] == [""] * 4  # it delivers half as much: how long its battery lasts is not compared
    assert remarks["CET"] == [""] * 4  # its lifetime differs from CED's
    assert remarks["CED"] == ["≈", "", "", ""]  # no paired test: 85.0 ± 1.8 and 88.0 ± 1.8 overlap
    assert any("paired test" in remark for remark in main.remarks)
    assert (
        "Copies are not counted alike in all protocols; to compare them, use transmissions per event." in main.remarks
    )


def test_who_is_served_by_the_size_of_the_community():
    rows = Page(page()).cells["table-communities"]
    assert rows[0] == ["community of", "events", "CED", "CET", "DG"]
    assert rows[1:] == [["1 sensor", "10", "25.0", "25.0", "25.0"], ["more", "90", "–", "–", "–"]]


def test_only_brief_rows_that_end_in_a_sentence_are_turned_on_a_phone():
    long = 50 * "x"
    for cells, turned in ((("name", "1", long), True), ((long, "holds", long), False), (("name", "1"), False)):
        row = tuple(text(words) for words in cells)
        assert Table("t", "", ("a",) * len(row), (row,)).explains == turned


def test_why_nothing_is_drawn_is_said():
    said = [sections(replace(results(), outdated=outdated))[0].paragraphs for outdated in (True, False)]
    assert ["serai has changed since these runs were made" in " ".join(words) for words in said] == [True, False]


def test_the_answer_names_the_best():
    (opening, seeds, *_) = bare()[0].paragraphs
    assert opening.startswith("Delivered: CET (88.0 ± 1.8 %), CED (85.0 ± 1.8 %), DG (48.0 ± 1.0 %).")
    assert bare()[0].lead.startswith("CET (88 %) and CED (85 %) deliver most, with no certain difference between them")
    assert opening.endswith(
        " Of CET and CED, which deliver at least nine tenths of the highest share,"
        " CET (216.3 ± 4.5 s, delivers 88.0 %) is best in delay;"
        " CED (31.00 ± 0.65, delivers 85.0 %) is best in transmissions per event;"
        " CED (3.390 ± 0.071 d, delivers 85.0 %) is best in lifetime."
    )
    assert "20 seeds" in seeds


def with_errors(part: float):
    """The same means on one point, all with standard errors of that part of them, and no paired tests."""
    found = results()
    estimates = {key: Estimate(one.mean, part * one.mean, one.count) for key, one in found.estimates.items()}
    return replace(found, estimates=estimates, differences={})


def test_nobody_is_called_the_best_where_that_is_not_certain():
    """`headline` and `opening` stand one below the other: CET is not "best" below "no difference is certain"."""
    sure, unsure = with_errors(1e-4), with_errors(0.2)
    assert headline(sure).startswith("CET delivers most, 88 % of what subscribers want")
    assert " is best in delay; " in opening(sure)
    assert opening(sure).count("is best") == 3
    assert "no certain difference between them" in headline(unsure)
    assert "is best" not in opening(unsure)
    assert "in lifetime there is no certain best: CED (3.4" in opening(unsure)


def test_nobody_is_praised_for_a_battery_that_delivers_little():
    """DG's would last a hundred days, with half of the deliveries."""
    found = with_errors(1e-4)
    lasting = {(case, "lifetime_days"): Estimate(100.0, 0.1, 20) for case in found.cases if case.protocol == "dg"}
    said = replace(found, estimates=dict(found.estimates) | lasting)
    assert headline(said).endswith("CET's first battery is empty after 2.5 days; with CED that takes 3.4.")
    assert "100" not in opening(said)


def test_the_table_calls_nobody_the_best_whom_the_answer_does_not() -> None:
    """DG lives longest and is quickest, with half of the deliveries; without deliveries nobody is the best."""
    found = with_errors(1e-4)
    told = {(case, metric): Estimate(mean, mean / 1e4, 20) for case in found.cases if case.protocol == "dg"
            for metric, mean in (("lifetime_days", 100.0), ("mean_delay_s", 1.0))}  # fmt: skip
    estimates = dict(found.estimates) | told

    def bold(estimates: dict[tuple[Case, str], Estimate]) -> dict[str, list[bool]]:
        table = _main_table(replace(found, estimates=estimates)).tables[0]
        assert any("nine tenths" in remark for remark in table.remarks) == any(
            cell.strong for row in table.rows for cell in row
        )
        return {row[0].text: [cell.strong for cell in row[1:]] for row in table.rows}

    assert bold(estimates) == {
        "CED": [False, False, False, True],
        "CET": [True, True, False, False],
        "DG": [False] * 4,
    }
    unknown = {key: one for key, one in estimates.items() if key[1] != "delivery_ratio"}
    assert not any(any(row) for row in bold(unknown).values())


def test_the_answer_to_a_sweep_names_the_best_and_the_worst_point():
    assert swept()[0].lead == (
        "Between 48 % (DG · alpha 2) and 114 % (CET · alpha 20) of what subscribers want is delivered."
        " CED and CET deliver most at every point, with no certain difference between them."
    )
    opening = swept()[0].paragraphs[0]
    assert opening.startswith(
        "Delivered: from DG · alpha 2 (48.0 ± 1.0 %) to CET · alpha 20 (114.4 ± 2.4 %). "
        "Of those that deliver at least nine tenths as much as CET · alpha 20: Delay: from CED · alpha 20 ("
    )


def test_who_delivers_little_is_never_the_best():
    """The quickest of all, the longest living, and the one with the fewest copies deliver 27.7 %."""
    found = results(ALPHAS[:2], ("ced",))
    little, much = found.cases
    told = {
        (little, "delivery_ratio"): 0.277,
        (much, "delivery_ratio"): 0.85,
        (little, "mean_delay_s"): 20.0,
        (little, "copies_per_event"): 1.0,
        (little, "lifetime_days"): 90.0,
    }
    estimates = dict(found.estimates) | {key: Estimate(mean, mean / 100, 20) for key, mean in told.items()}
    said = opening(replace(found, estimates=estimates))
    assert said == (
        "Delivered: from CED · alpha 2 (27.70 ± 0.58 %) to CED · alpha 5 (85.0 ± 1.8 %). No other delivers nine"
        " tenths as much as CED · alpha 5; delay, copies and lifetime of such different services are not compared."
    )


def test_copies_of_one_protocol_may_be_compared():
    said = opening(results(ALPHAS[:1], ("ced",)))
    assert "transmissions" not in said
    assert "Copies: from CED" in opening(results(ALPHAS[:2], ("ced",)))


def test_nothing_is_praised_where_delivery_is_not_known():
    found = results()
    estimates = {key: one for key, one in found.estimates.items() if key[1] != "delivery_ratio"}
    assert opening(replace(found, estimates=estimates)).startswith("What was delivered is not known")


def test_tables_in_other_forms():
    tables = list(all_tables(swept()))
    assert len(tables) == 7
    for table in tables:
        check_forms(table)


def check_forms(table):
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert len({len(row) for row in rows}) == 1
    assert len(rows) == len(table.rows) + 1
    latex = to_latex(table)
    plain = latex.replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")
    lines = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(table.heads) - 1}
    markdown = to_markdown(table).splitlines()
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in markdown} == {len(table.heads) + 1}


def test_csv_has_the_numbers_in_full():
    main = next(table for table in all_tables(bare()) if table.name == "main")
    rows = list(csv.DictReader(io.StringIO(to_csv(main))))
    assert float(rows[0]["delivered, %"]) == pytest.approx(85.0, rel=1e-9)
    assert float(rows[0]["delivered, %: ±"]) == pytest.approx(t_quantile(0.95, COUNT - 1) * 0.85, rel=1e-9)


def test_same_input_same_bytes(tmp_path):
    found = results(ALPHAS)
    for name in ("one", "two"):
        write_page(tmp_path / name, found.title, "", sections(found))
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(files) == 1 + 2 * 7 + 8 + 2
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


def test_what_is_linked_is_written(tmp_path):
    found = results(ALPHAS)
    path = write_page(tmp_path / "report", found.title, "", sections(found))
    inside = {}
    for link in Page(path.read_text()).all("a"):
        if not link["href"].startswith("#"):
            inside[link["download"]] = base64.b64decode(link["href"].partition("base64,")[2])
    beside = {file.name: file.read_bytes() for file in path.parent.glob("*/*")}
    assert inside == beside
    assert {p.name for p in path.parent.iterdir()} == {"report.html", "tables", "figures"}


def test_written_again_it_leaves_nothing_old(tmp_path):
    write_page(tmp_path, "first", "", swept())
    write_page(tmp_path, "second", "", bare())
    assert not list((tmp_path / "figures").glob("swept-*"))
    assert "<title>second</title>" in (tmp_path / "report.html").read_text()


def test_unwritable_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotRun, match="the report cannot be written there"):
        write_page(tmp_path / "file" / "report", "title", "", bare())


def test_another_kind_of_network():
    """What is measured there is shown; what is not is left out, and said."""
    cases = (Case(0, "tinymq"), Case(0, "pub2sub"))
    definitions = {name: OVERLAY.definitions[name] for name in ("delivery_ratio", "nodes_per_query", "trees")}
    estimates = {(case, name): Estimate(0.5 + 0.1 * case[0], 0.01, 9) for case in cases for name in definitions}
    headlines = headlines_of(OVERLAY, estimates)
    assert headlines == ("delivery_ratio", "nodes_per_query")
    found = Results("Trees", (Point("grid", {}),), cases, definitions, headlines, estimates, 9)
    chapters = sections(found)
    assert [one.name for one in chapters if not one.absent] == ["answer", "main", "cost", "reproduce"]
    assert Page(page(chapters)).cells["table-main"][0] == ["protocol", "delivered, %", "nodes per query"]


def test_nothing_in_a_scenario_is_taken_for_html():
    assert "<ced & others>" not in page()
    assert "&lt;ced &amp; others&gt;" in page()


def test_pictures_are_svg_without_dates():
    for picture in all_pictures(swept()):
        assert picture.svg.startswith("<svg")
        assert "<dc:date>" not in picture.svg
        assert "http" not in re.sub(r"http://(www\.w3\.org|purl\.org|creativecommons\.org)", "", picture.svg)


def test_what_is_0_in_every_run_is_named_and_takes_no_column() -> None:
    found = results()
    zero = {key: Estimate(0.0, 0.0, COUNT) if key[1] == "drops_full" else one for key, one in found.estimates.items()}
    drops = next(one for one in sections(replace(found, estimates=zero)) if one.name == "drops").tables[0]
    assert not any("full" in head for head in drops.heads)
    assert drops.remarks[-1] == "0 in every run: drops full."
    assert any("spent" in head for head in drops.heads)  # CET has some


def test_a_caption_is_not_cut_after_the_number_of_a_figure() -> None:
    captions = ["Delay as in CED Fig. 7; stars: printed. More", "Where it happens. 100 sensors", "CED: many. More"]
    pictures = tuple(Picture(f"p{n}", "<svg></svg>", caption) for n, caption in enumerate(captions))
    page = render("t", "s", [Section("one", "One", pictures=pictures)])
    assert "<figcaption>Delay as in CED Fig. 7; stars: printed. More" in page
    assert "<figcaption><b>Where it happens.</b> 100 sensors" in page
    assert "<figcaption>CED: many. More" in page
