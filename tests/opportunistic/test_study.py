"""The study of DPSP: all routers are there, and claims are judged as the numbers demand."""

from pathlib import Path

import pytest

from serai.core.statistics import Estimate
from serai.lab import parse_scenario
from serai.opportunistic.paper import BASELINES, FLOODING, SHORT_DELAY, Variant, scenario_text, variants, worlds
from serai.papers.claims import FAILS, HOLDS, OPEN
from serai.report.dpsp import BESIDE, Study, as_text, claims_table, judge, ranking, side_by_side, write_study

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


@pytest.mark.parametrize("variant", [FLOODING, SHORT_DELAY])
def test_names_say_what_a_router_does(variant: Variant) -> None:
    assert variant.name in ("Flooding", "D / short-delay")
