"""TinyMQ's paper on results with known answers: what is hit, which claims hold, and what has to be run for it."""

import json

import pytest

from serai.core.statistics import Estimate
from serai.kinds import OVERLAY
from serai.overlay.paper import ANCHORS, CLAIMS, EXHIBITS, FAILING, RANDOM, READINGS, TREES, setup, setups
from serai.papers.claims import FAILS, HOLDS
from serai.report.reproduction import Reproduction
from serai.report.results import Case, Point, Results
from serai.report.tinymq import (
    anchor_table,
    as_dict,
    as_markdown,
    as_text,
    caveats,
    chapter,
    judge,
    tinymq_plan,
)

SETTINGS = list(dict.fromkeys(one.settings for one in setups()))


def case_of(one):
    return Case(SETTINGS.index(one.settings), one.protocol) if one.settings in SETTINGS else None


def reproduction(value):
    """A sweep in which `value(setup, metric)` was measured, twenty times and with little spread."""
    estimates = {
        (case_of(one), metric): Estimate(value(one, metric), 0.01, 20)
        for one in setups()
        for metric in OVERLAY.definitions
    }
    results = Results(
        title="TinyMQ",
        points=tuple(Point("tinymq", dict(settings)) for settings in SETTINGS),
        cases=tuple(dict.fromkeys(case_of(one) for one in setups())),
        definitions=OVERLAY.definitions,
        headlines=("delivery_ratio",),
        estimates=estimates,
        seeds=20,
        provenance={"command": "serai paper tinymq", "runs": "1", "seeds": "0"},
    )
    return Reproduction(results, case_of)


def trees_of(one):
    return float(dict(one.settings).get("roots.count", TREES.default))


def as_published(one, metric):
    """The paper's numbers at ten trees wherever they may be meant; else TinyMQ better, and better with more trees."""
    for anchor in ANCHORS:
        if anchor.protocol == one.protocol and metric in anchor.metrics:
            return anchor.value + (1 if one.protocol == "tinymq" else 0.1) * (TREES.default - trees_of(one)) / 10
    return 100.0 - trees_of(one) - (50 if one.protocol == "tinymq" else 0)


def test_what_has_to_be_run():
    plan = tinymq_plan(5)
    assert plan.points[0] == {}  # the built-in scenario as it is: the main tables are about it
    assert {cell.protocol for cell in plan.cells if cell.point == 0} == {"tinymq", "pub2sub"}
    assert len(plan.cells) == len(READINGS) * len(TREES.values) * 2 + len(FAILING) * len(TREES.values)
    assert len({cell.id for cell in plan.cells}) == len(plan.cells)
    assert {cell.seeds for cell in plan.cells} == {5}


def test_the_published_numbers_are_hit_and_every_claim_holds():
    found = reproduction(as_published)
    said = as_dict(found)
    json.dumps(said)
    assert {row["verdict"] for row in said["published"]} == {"hit"}
    assert {judge(found, claim, reading).verdict for claim in CLAIMS for reading in READINGS[:1]} == {HOLDS}
    assert "4 are hit" in caveats(found)[0]
    assert "23 → 18 are both hit as: nodes per query with sinks at random" in "\n".join(anchor_table(found).remarks)


def test_what_is_missed_is_said():
    found = reproduction(lambda one, metric: 200.0 - as_published(one, metric))
    assert {row["verdict"] for row in as_dict(found)["published"]} == {"missed"}
    assert judge(found, CLAIMS[0], RANDOM).verdict == FAILS
    assert "18 → 10: no reading hits both." in anchor_table(found).remarks


def test_one_tree_does_not_count_against_an_order():
    def same_at_one_tree(one, metric):
        return 5.0 if trees_of(one) == 1 else as_published(one, metric)

    assert judge(reproduction(same_at_one_tree), CLAIMS[0], RANDOM).verdict == HOLDS


def test_the_chapter_has_every_figure():
    section = chapter(reproduction(as_published))
    assert section is not None
    assert [part.name for part in section.parts] == ["claims", *EXHIBITS]
    for part in section.parts[1:]:
        assert part.pictures
        assert len(part.tables[0].rows) == len(TREES.values)
    assert max(map(len, as_text(reproduction(as_published)).splitlines()[-30:])) <= 100


def test_the_page_has_every_table():
    page = as_markdown(reproduction(as_published))
    assert page.count("\n## ") == 2 + len(EXHIBITS)
    assert "| PUB-2-SUB+ nodes per query | 23 | **" in page


def test_another_sweep_has_no_such_chapter():
    empty = Reproduction(reproduction(as_published).results, lambda one: None)
    assert chapter(empty) is None
    assert caveats(empty) == ()


def test_settings_are_said_only_where_they_differ():
    assert setup("tinymq", 10).settings == ()
    assert setup("tinymq", 3, failing=0.1).settings == (("roots.count", "3"), ("failures.fraction", "0.1"))


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_names_an_exhibit_and_a_metric_of_it(claim):
    assert claim.metric in EXHIBITS[claim.exhibit].metrics
    assert claim.metric in OVERLAY.definitions
