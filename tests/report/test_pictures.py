"""The pictures that open a report: their numbers are those of the results and runs, their words those of the tests."""

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serai
from serai.core.statistics import Estimate
from serai.log.svg import Drawing, ticks
from serai.report import write_run_report
from serai.report.answer import headline
from serai.report.gather import typical_seed
from serai.report.maps import energy_map, field_map, lives, loss_map, typical_life
from serai.report.results import Case
from serai.report.tradeoff import trade_off, unbeaten
from tests.report.hand_made import ALPHAS, results

SVG = "{http://www.w3.org/2000/svg}"


@cache
def run_of(protocol: str) -> serai.FieldRun:
    changes = {"duration": "20 min", "events.lifetime": "5 min", "sensors.count": 40}
    run = serai.simulate(serai.load_scenario("field", changes, protocol=protocol), seed=4, full_log=True)
    assert isinstance(run, serai.FieldRun)
    return run


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in parsed(svg).iter(f"{SVG}text")]


# --- The answer in one sentence


def test_the_sentence_is_worded_by_the_tests() -> None:
    """88.0 ± 1.8 and 85.0 ± 1.8 overlap, and no paired test parts them; the lifetimes are apart."""
    assert headline(results()) == (
        "CET (88 %) and CED (85 %) deliver most, and no difference between them is certain, ahead of DG (48 %)."
        " CET's first battery is empty after 2.5 days; with CED that takes 3.4."
    )
    found = results()
    sure = {key: Estimate(one.mean, one.mean / 1000, one.count) for key, one in found.estimates.items()}
    assert headline(replace(found, estimates=sure)).startswith(
        "CET delivers most, 88 % of what subscribers want, ahead of CED (85 %) and DG (48 %)."
    )
    assert headline(results(ALPHAS)) == ""


# --- What it costs


def test_every_seed_and_every_mean_has_its_place() -> None:
    found = results()
    picture = trade_off(found, "mean_delay_s")
    assert picture is not None
    circles = list(parsed(picture.svg).iter(f"{SVG}circle"))
    dots, means = [c for c in circles if c.get("r") == "3.4"], [c for c in circles if c.get("r") == "4"]
    assert (len(dots), len(means)) == (30, 3)
    x = {mean[0].text: float(mean.get("cx", "nan")) for mean in means}
    per_second = (x["DG"] - x["CET"]) / (611.1 - 216.3)
    assert x["CED"] - x["CET"] == pytest.approx(per_second * (232.6 - 216.3), abs=0.02)
    assert {"CED 233 s", "CET 216 s", "DG 611 s"} <= set(texts(picture.svg))
    assert "better: ↖" in texts(picture.svg)
    longer = trade_off(found, "lifetime_days")
    assert longer is not None
    assert "better: ↗" in texts(longer.svg)


def test_who_is_beaten_in_both_is_hollow() -> None:
    """Points rise by a tenth in everything: more is delivered, and later. CET beats CED at each point, DG anywhere."""
    found = results(ALPHAS)
    front = unbeaten(found, "mean_delay_s", list(found.cases))
    assert [case for case in front if case.protocol == "dg"] == []
    assert Case(0, "cet") in front  # the quickest
    assert Case(3, "cet") in front  # delivers most
    assert Case(0, "ced") not in front  # less than CET at the same point, and later
    picture = trade_off(found, "mean_delay_s")
    assert picture is not None
    fills = [c.get("fill") for c in parsed(picture.svg).iter(f"{SVG}circle")]
    assert fills.count("var(--s-ground)") == len(found.cases) - len(front)


def test_the_seed_nearest_to_the_means() -> None:
    one, two = (Case(0, "ced"), "delivery_ratio"), (Case(0, "ced"), "mean_delay_s")
    dots = {one: (0.1, 0.52, 0.9), two: (10.0, 21.0, 30.0)}
    means = {one: Estimate(0.5, 0.1, 3), two: Estimate(20.0, 1.0, 3)}
    assert typical_seed(means, dots) == 1
    assert typical_seed({}, {}) == 0


# --- Fields


def test_the_map_has_every_sensor_and_every_subscriber() -> None:
    run = run_of("cet")
    picture = parsed(field_map(run).svg)
    sensors = len(list(picture.iter(f"{SVG}circle"))) + len(list(picture.iter(f"{SVG}path")))
    assert sensors == len(run.world.sensor_x)
    assert len(list(picture.iter(f"{SVG}polyline"))) == len(run.world.low) + 1  # and the bar of the scale


def test_the_busiest_sensor_is_ringed_with_its_energy() -> None:
    run = run_of("cet")
    spent = run.ledger.event_pj
    picture = energy_map(run, int(spent.max()), "p1")
    assert f"{spent.max() / 1e9:,.0f} mJ" in texts(picture.svg)
    ring = [c for c in parsed(picture.svg).iter(f"{SVG}circle") if c.get("fill") == "none"]
    busiest = int(spent.argmax())
    assert float(ring[0].get("cx", "nan")) == pytest.approx(run.world.sensor_x[busiest] * 240 / 200, abs=0.01)


def test_losses_are_those_of_the_metrics() -> None:
    run = run_of("cet")
    picture = loss_map(run, 10, "p1")
    assert picture is not None
    said = {name: getattr(run.metrics, f"lost_{name}") for name in ("stranded", "never_met", "not_sent")}
    lost = sum(getattr(run.metrics, name) for name in run.metrics.as_dict() if name.startswith("lost_"))
    assert f"{lost:,} lost of {run.metrics.wanted_pairs:,}" in picture.caption
    assert f"stranded {said['stranded']:,}" in picture.caption
    assert loss_map(replace(run, full=None), 10, "p1") is None


def test_a_life_is_that_of_the_tables() -> None:
    run = run_of("ced")
    life = typical_life(run)
    assert life is not None
    born = run.tables["events"]["time_s"][life.event].as_py()
    rows = [row for row in run.tables["deliveries"].to_pylist() if row["event"] == life.event and row["wanted"]]
    assert [wait for wait in life.waits_s if not math.isnan(wait)] == sorted(row["time_s"] - born for row in rows)
    assert 2 <= len(life.waits_s) <= 8
    picture = lives([(run, "p0")])
    assert picture is not None
    assert f"{len(rows)} of {len(life.waits_s)}" in texts(picture.svg)


# --- Drawing


def test_round_numbers_along_an_axis() -> None:
    assert ticks(0, 100) == [0, 20, 40, 60, 80, 100]
    assert ticks(44.3, 51) == [45, 46, 47, 48, 49, 50, 51] or ticks(44.3, 51) == [46, 48, 50]
    for low, high in ((0.001, 0.0042), (3, 3.2), (-5, 1e6)):
        found = ticks(low, high)
        assert 2 <= len(found) <= 7
        assert all(low - 1e-9 <= value <= high + 1e-9 for value in found)


def test_text_is_escaped_and_colours_are_named() -> None:
    drawing = Drawing(10, 10)
    drawing.text(1, 2.345, "<&>", fill="red")
    svg = drawing.svg('a "label"')
    assert '<text x="1" y="2.35" fill="red">&lt;&amp;&gt;</text>' in svg or 'y="2.34"' in svg
    assert parsed(svg).get("aria-label") == 'a "label"'
    assert "prefers-color-scheme:dark" in svg


# --- In a browser


@pytest.fixture(scope="module")
def browser() -> Any:
    from tests.replay.browser import start_chromium

    chromium = start_chromium()
    yield chromium
    chromium.quit()


def test_a_page_fits_a_phone_and_a_sheet_of_paper(browser: Any, tmp_path: Path) -> None:
    from tests.replay.test_pages import CONTRAST

    serai.write_run(run_of("cet"), tmp_path / "run")
    page = write_run_report(tmp_path / "run")
    for scheme in ("light", "dark"):
        emulated = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
        shape = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
        browser.get(page.as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert browser.execute_script(CONTRAST) == []
        assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shape = {"width": 703, "height": 1000, "deviceScaleFactor": 1, "mobile": False}  # A4 less its margins
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    cut = """
        const ends = (t) => t.getBoundingClientRect().right;
        return [...document.querySelectorAll("table")].filter((t) => ends(t) > innerWidth + 1).map((t) => t.id);
    """
    assert browser.execute_script(cut) == []
    assert re.search("<svg[^>]*class=.serai", page.read_text())
    assert np.isfinite(run_of("cet").metrics.lost_stranded)
