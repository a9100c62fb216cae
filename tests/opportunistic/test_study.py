"""The study of DPSP: all routers are there, and claims are judged as the numbers demand."""

import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import pytest

from serai.core.statistics import Estimate
from serai.lab import parse_scenario
from serai.log.svg import width_of
from serai.opportunistic.paper import BASELINES, FLOODING, SHORT_DELAY, Variant, scenario_text, variants, worlds
from serai.papers.claims import FAILS, HOLDS, OPEN
from serai.report.dpsp import BESIDE, Study, as_text, claims_table, judge, lead_of, ranking, side_by_side, write_study
from serai.report.routers import Router, delivery_against_bytes

SVG = "{http://www.w3.org/2000/svg}"
OTHER = Variant("dpsp", ("duplicate",), ("hop-count",))
NAMES = (FLOODING.name, SHORT_DELAY.name, OTHER.name, *(variant.name for variant in BASELINES))


def study(gains: dict[str, tuple[float, float]], delays: dict[str, float], count: int = 20) -> Study:
    """Routers that differ from Short Delay by (mean, standard error) in every share, with these delays."""
    estimates, differences = {}, {}
    for world in worlds():
        for name in NAMES:
            mean, error = gains.get(name, (0.0, 0.01))
            estimates[world.name, name] = {metric: Estimate(0.5 + mean, error, count) for metric in BESIDE}
            estimates[world.name, name]["mean_delay_s"] = Estimate(delays.get(name, 1.0), 1.0, count)
            for metric in BESIDE:
                differences[world.name, name, metric] = Estimate(mean, error, count)
    return Study(count, estimates, differences)


DELAYS = {FLOODING.name: 100.0, SHORT_DELAY.name: 200.0, OTHER.name: 300.0}


def verdicts(found: Study) -> list[str]:
    return [judged.verdict for judged in judge(found, "community")]


def test_every_combination_once() -> None:
    names = [variant.name for variant in variants()]
    assert len(set(names)) == len(names) == 1 + 8 * 16
    for world in worlds():
        trace = world.settings.get("contacts.file")
        assert trace is None or Path(str(trace)).is_file()
        for variant in (FLOODING, SHORT_DELAY, OTHER, Variant("dpsp"), *BASELINES):
            scenario = parse_scenario(scenario_text(world, variant))
            assert scenario.protocol.name == variant.protocol
            if variant.protocol == "dpsp":
                assert (scenario.protocol.filters, scenario.protocol.priorities) == (
                    variant.filters,
                    variant.priorities,
                )


def test_the_text_is_right_where_it_is() -> None:
    worse = study(
        {FLOODING.name: (-0.2, 0.01), OTHER.name: (-0.1, 0.01)}, DELAYS | {SHORT_DELAY.name: 150.0, OTHER.name: 900.0}
    )
    assert verdicts(worse) == [HOLDS, OPEN, HOLDS, HOLDS, HOLDS]  # Short Delay is the median itself


def test_the_text_is_wrong_where_it_is() -> None:
    better = study(
        {FLOODING.name: (0.2, 0.01), OTHER.name: (0.1, 0.01)},
        {FLOODING.name: 300.0, SHORT_DELAY.name: 250.0, OTHER.name: 100.0},
    )
    assert verdicts(better) == [FAILS, OPEN, FAILS, FAILS, FAILS]


def test_too_few_seeds_cannot_tell() -> None:
    unsure = study({FLOODING.name: (-0.2, 0.3), OTHER.name: (0.2, 0.3)}, DELAYS, count=2)
    assert verdicts(unsure)[0] == verdicts(unsure)[3] == verdicts(unsure)[4] == OPEN


def test_ranked_by_delivery() -> None:
    found = study({FLOODING.name: (-0.2, 0.01), OTHER.name: (0.1, 0.01)}, DELAYS)
    assert [row[1].text for row in ranking(found, worlds()[0]).rows] == [OTHER.name, SHORT_DELAY.name, FLOODING.name]
    assert [row[1].text for row in ranking(found, worlds()[0], most=1).rows] == [
        OTHER.name,
        SHORT_DELAY.name,
        FLOODING.name,
    ]
    assert len(claims_table(found).rows) == 5 * 4
    assert "cannot be told" in as_text(found) or "does not hold" in as_text(found)


def test_routers_of_others_stand_beside_and_decide_no_claim() -> None:
    gains = {OTHER.name: (0.1, 0.01), "MaxProp": (0.2, 0.01), "Bubble Rap": (-0.3, 0.01)}
    found = study(gains, DELAYS)
    table = side_by_side(found, worlds()[0])
    names = [row[0].text for row in table.rows]
    assert names[:2] == ["MaxProp", f"{OTHER.name} (DPSP)"]
    assert names[-1] == "Bubble Rap"
    assert len(names) == len(BASELINES) + 3
    assert [row[-1].text for row in table.rows if row[0].text == "MaxProp"] == ["20.0 ± 2.1"]
    assert "best: D / hop-count" in judge(found, "community")[0].evidence
    assert "MaxProp" not in [row[1].text for row in ranking(found, worlds()[0]).rows]


def test_the_page_is_written(tmp_path: Path) -> None:
    page = write_study(study({}, DELAYS), tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "Flooding" in text
    assert (tmp_path / "tables" / "ranking-community.csv").is_file()


def test_the_page_opens_with_who_delivers_most_and_what_that_puts_on_the_air(tmp_path: Path) -> None:
    better = study({FLOODING.name: (0.2, 0.01), OTHER.name: (0.1, 0.01)}, DELAYS)
    assert lead_of(better) == "In 4 of 4 worlds others deliver more than Short Delay, the text's winner."
    worse = study({FLOODING.name: (-0.2, 0.01), OTHER.name: (-0.1, 0.01)}, DELAYS)
    assert (
        lead_of(worse) == "In none of 4 worlds others deliver more than Short Delay, the text's winner; in 4 none does."
    )
    unsure = study({FLOODING.name: (-0.2, 0.3), OTHER.name: (0.2, 0.3)}, DELAYS, count=2)
    assert lead_of(unsure).endswith("winner; in 4 that cannot be told.")
    text = write_study(better, tmp_path).read_text(encoding="utf-8")
    assert (
        text.index("In 4 of 4 worlds others deliver more than Short Delay")
        < text.index('id="figure-routers-community"')
        < text.index("<table")
    )


def test_every_router_is_a_dot_at_its_numbers_and_no_name_lies_over_another() -> None:
    rows = [("a", 10, 40_000), ("b", 10, 41_000), ("c", 90, 80_000), ("d", 50, 60_000)]
    routers = [
        Router(name, "other", name * 8 if name != "d" else "", Estimate(share / 100, 0.0, 9), Estimate(size, 0.0, 9))
        for name, share, size in rows
    ]
    drawn = ET.fromstring(delivery_against_bytes("routers", "here", routers).svg)
    dots = {(c[0].text or "")[0]: (float(c.get("cx", "")), float(c.get("cy", ""))) for c in drawn.iter(f"{SVG}circle")}
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = (dots[name] for name in "abcd")
    assert (bx - ax) / (cx - ax) == pytest.approx(1 / 40, abs=2e-3)
    assert (dx - ax) / (cx - ax) == pytest.approx(20 / 40, abs=2e-3)
    assert (ay - dy) / (ay - cy) == pytest.approx(40 / 80, abs=2e-3)
    assert ay == by
    names = [(float(t.get("x", "")), float(t.get("y", ""))) for t in drawn.iter(f"{SVG}text") if len(t.text or "") == 8]
    assert len(names) == 3
    wide = width_of("a" * 8)
    assert all(abs(x - u) >= wide or abs(y - v) >= 12 for (x, y), (u, v) in combinations(names, 2))


@pytest.mark.parametrize("variant", [FLOODING, SHORT_DELAY])
def test_names_say_what_a_router_does(variant: Variant) -> None:
    assert variant.name in ("Flooding", "D / short-delay")
