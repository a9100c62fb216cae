"""The study of SERAI: everything is run once, wins and losses are told as the numbers demand, few seeds go through."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.main import get_command

from serai.cli import app
from serai.core.statistics import Estimate
from serai.field import study as plan_of
from serai.field.study import (
    ABLATIONS,
    AIMS,
    AXES,
    CET,
    CET_PLUS,
    COMPARED,
    DEFAULT,
    METRICS,
    SERAI,
    cases,
    dial,
    on_axis,
    runs_in,
)
from serai.lab import load_scenario
from serai.report.serai import Study, losses, study_plan
from serai.report.serai_pages import (
    ablation_table,
    answer,
    as_dict,
    as_markdown,
    as_text,
    axis_table,
    dial_table,
    losses_table,
    main_table,
    single_losses,
    wins_table,
    write_study,
)
from serai.report.studies import find_study, study_of

NUMBERS = {"delivery_ratio": 0.99, "mean_delay_s": 90.0, "lifetime_with_control_days": 8.0, "sensors_alive": 100.0}
WORSE = {"delivery_ratio": -0.05, "mean_delay_s": 100.0, "lifetime_with_control_days": -6.0}


def made(better: dict[tuple[str, str, str], float] | None = None, lost: int = 0) -> Study:
    """Everybody is worse than SERAI by WORSE, but for differences that are given; `lost` of 20 seeds are not won."""
    estimates, differences, won = {}, {}, {}
    for case in cases():
        place = (case.world.name, case.variant.name)
        won[place] = {"count": 20, "delivery_ratio": 20, "mean_delay_s": 20 - lost}
        won[place] |= {"lifetime_with_control_days": 20, "all_at_once": 20 - lost}
        for metric in METRICS:
            gap = 0.0 if case.variant is SERAI else (better or {}).get((*place, metric), WORSE.get(metric, 0.0))
            estimates[*place, metric] = Estimate(NUMBERS.get(metric, 1.0) + gap, 0.001, 20)
            differences[*place, metric] = Estimate(gap, 0.001, 20)
    delays = {variant.name: ([1.0, 100.0, 1000.0], [0.1, 0.5, 0.9]) for variant in COMPARED}
    bounds = {
        name: (Estimate(0.999, 0.001, 20), Estimate(50.0, 1.0, 20)) for name in ("direct", "community", "epidemic")
    }
    return Study(20, 1234, estimates, differences, won, delays, bounds, "0.0")


def test_everything_is_run_once_and_can_be_run() -> None:
    found = cases()
    assert len({(case.world.name, case.variant.name) for case in found}) == len(found)
    assert {case.variant for case in found if case.world is DEFAULT} == {*COMPARED, *ABLATIONS, *(v for _, v in dial())}
    plan = study_plan(100)
    assert len(plan.cells) == len(found)
    seeds = {cell.seeds for cell, case in zip(plan.cells, found, strict=True) if case.whole}
    assert seeds == {100}
    assert {cell.seeds for cell, case in zip(plan.cells, found, strict=True) if not case.whole} == {20}


def test_each_rule_taken_away_is_another_scenario() -> None:
    default = load_scenario("field", [], "serai").protocol
    for variant in ABLATIONS:
        changes = [f"{key}={value}" for key, value in variant.settings]
        assert load_scenario("field", changes, "serai").protocol != default, variant.name


def test_batteries_that_empty_have_the_prices_of_full_ones() -> None:
    ours = load_scenario("field", [], "serai")
    for world in next(axis for axis in AXES if axis.name == "battery").worlds:
        changes = [f"{key}={value}" for key, value in (*world.settings, *world.own)]
        theirs = load_scenario("field", changes, "serai")
        drain_w = ours.sensors.battery_j / ours.protocol.t_0_s
        assert theirs.sensors.battery_j / theirs.protocol.t_0_s == pytest.approx(drain_w)
        assert theirs.radio.control_costs


def test_who_wins_everywhere_loses_nowhere() -> None:
    found = made()
    assert losses(found) == []
    assert losses_table(found).rows == ()
    assert "none of 20 seeds" in single_losses(found)
    assert "worse 0 times" in " ".join(answer(found))
    assert [cell.text for cell in wins_table(found).rows[0][1:]] == ["100.0"] * 4


def test_what_is_lost_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    world = AXES[0].worlds[0]
    monkeypatch.setitem(plan_of._WHY, (world.name, "lifetime_with_control_days"), "it is so")
    better = {
        (world.name, CET_PLUS.name, "lifetime_with_control_days"): 3.0,
        (world.name, CET.name, "mean_delay_s"): -5.0,
        (world.name, CET.name, "delivery_ratio"): 0.0005,  # within chance
    }
    found = made(better, lost=3)
    assert {(loss.variant.name, loss.metric) for loss in losses(found)} == {
        ("CET++", "lifetime_with_control_days"),
        ("CET", "mean_delay_s"),
    }
    told = {row[1].text: [cell.text for cell in row[2:]] for row in losses_table(found).rows}
    assert told["CET++"][0] == "lifetime, d"
    assert told["CET++"][-1] == "it is so"
    assert told["CET"][-1].startswith("it delivers less")
    assert plan_of.if_worse(world, CET_PLUS, "mean_delay_s") == "no reason is known"
    assert "3 in delay" in single_losses(found)
    assert "worse 2 times" in " ".join(answer(found))
    assert "it is so" in as_markdown(found)
    assert "it is so" in as_text(found)


def test_tables_have_a_row_for_each() -> None:
    found = made()
    assert [row[0].text for row in main_table(found).rows][:5] == [variant.name for variant in COMPARED]
    assert len(dial_table(found).rows) == len(dial()) + 1
    assert len(ablation_table(found).rows) == len(ABLATIONS)
    for axis in AXES:
        rows = axis_table(found, axis).rows
        places = [row[0].value for row in rows]
        assert places == sorted(places, key=places.index if not axis.is_numbered else None)
        assert len(rows) == sum(len(runs_in(world)) for world in on_axis(axis))


def test_the_page_is_written(tmp_path: Path) -> None:
    page = write_study(made(), tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "SERAI delivers 99.0&nbsp;%" in text or "SERAI delivers" in text
    assert (tmp_path / "tables" / "ablation.csv").is_file()
    assert (tmp_path / "figures" / "front.svg").is_file()
    json.dumps(as_dict(made()))


def test_it_is_found_by_name() -> None:
    study, names = find_study("serai")
    assert names == ("serai",)
    assert study_of(study_plan(3)) is study


def test_few_seeds_from_end_to_end(spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few small worlds in place of all of them."""
    from serai.report import serai as module
    from serai.sweeping.run import run_sweep

    tiny = (("duration", "600 s"), ("events.quiet", "100 s"), ("sensors.count", "20"))
    few = [replace(case, world=replace(case.world, settings=tiny)) for case in cases() if case.world is DEFAULT]
    monkeypatch.setattr(module, "cases", lambda: few)
    monkeypatch.setattr(module, "_BOUND_SEEDS", 1)
    found = module.read_study(run_sweep(study_plan(2), tmp_path, spark))
    assert found.won[DEFAULT.name, "DG"]["count"] == 2
    gap = found.differences[DEFAULT.name, "DG", "delivery_ratio"].mean
    apart = found.at(DEFAULT, COMPARED[0], "delivery_ratio").mean - found.at(DEFAULT, SERAI, "delivery_ratio").mean
    assert gap == pytest.approx(apart)
    assert set(found.delays) == {variant.name for variant in COMPARED}
    assert all(found.bounds["epidemic"][0].mean >= found.bounds[name][0].mean for name in ("direct", "community"))
    assert set(AIMS) < set(found.won[DEFAULT.name, "CET"])
    assert "SERAI" in as_text(replace(found, estimates=made().estimates | found.estimates, **_elsewhere(found)))


def _elsewhere(found: Study) -> dict[str, object]:
    """What the small worlds leave out, made up."""
    other = made()
    return {"differences": other.differences | found.differences, "won": other.won | found.won}


def test_the_documentations_page_says_how_it_was_written() -> None:
    """Its command line is one that there is, and its tables are those of the study."""
    page = (Path(__file__).parents[2] / "docs" / "field" / "serai-study.md").read_text(encoding="utf-8")
    found = re.search(r"`serai (paper serai --seeds \d+ --markdown) FILE`", page)
    assert found
    name, *options = found[1].split()
    command = get_command(app).commands[name]  # type: ignore[attr-defined]
    known = {option for one in command.params for option in one.opts}
    assert {option for option in options if option.startswith("--")} <= known
    assert [axis.title for axis in AXES if f"## {axis.title}\n" not in page] == []
