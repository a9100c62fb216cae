"""The page of a single run: its metrics, its picture, its delay curve; of every kind of network, without Spark."""

import json
from pathlib import Path

import pytest

import serai
from serai.report import write_run_report
from tests.report.test_page import Page
from tests.test_lab import SMALL, small


def page_of(run: serai.Run, folder: Path) -> Page:
    serai.write_run(run, folder)
    return Page(write_run_report(folder).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", SMALL)
def test_every_metric_that_the_run_has_is_there(name: str, tmp_path: Path) -> None:
    run = serai.simulate(small(name), seed=1)
    page = page_of(run, tmp_path / "run")
    assert page.open == []
    known = {key: value for key, value in run.metrics.as_dict().items() if isinstance(value, int | float)}
    shown = {row[0]: row[1] for row in page.cells["table-metrics"][1:]}
    assert shown.keys() == known.keys()
    assert shown["delivered_pairs"] == f"{run.metrics.delivered_pairs:,}"
    assert float(shown["delivery_ratio"]) == pytest.approx(100 * run.metrics.delivery_ratio, rel=0.01)
    figures = {path.stem for path in (tmp_path / "run" / "figures").iterdir()}
    drawn = {"field", f"energy-{run.protocol}", "delay"} if isinstance(run, serai.FieldRun) else {"run", "delay"}
    drawn = {f"load-{name}", f"query-{name}"} if isinstance(run, serai.OverlayRun) else drawn
    assert figures - {"lives"} == drawn


def test_the_folder_is_still_a_run_and_the_page_the_same(tmp_path: Path) -> None:
    run = serai.simulate(small("ced"), seed=1)
    serai.write_run(run, tmp_path / "run")
    first = write_run_report(tmp_path / "run").read_bytes()
    assert serai.read_run(tmp_path / "run") == run
    assert write_run_report(tmp_path / "run").read_bytes() == first


def test_a_run_in_which_nothing_was_delivered(tmp_path: Path) -> None:
    nobody = serai.load_scenario("ced", [*SMALL["ced"], "subscribers.count=0"])
    page = page_of(serai.simulate(nobody), tmp_path / "run")
    assert "delivery_ratio" not in {row[0] for row in page.cells["table-metrics"]}


def test_what_real_nodes_logged_has_a_page_without_metrics(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    serai.write_run(serai.simulate(small("ced"), seed=1), folder)
    said = json.loads((folder / "run.json").read_text())
    del said["scenario"], said["seed"]
    (folder / "run.json").write_text(json.dumps(said | {"origin": "field"}))
    page = Page(write_run_report(folder).read_text(encoding="utf-8"))
    assert "table-metrics" not in page.cells
    assert dict(page.cells["table-provenance"])["serai"] == serai.__version__
    with pytest.raises(serai.BadInput, match="it was not simulated"):
        serai.measure(serai.read_run(folder))
