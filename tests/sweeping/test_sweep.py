"""Sweeps on a local Spark: the same rows as a plain loop, whatever the tasks, and never a run twice."""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import serai
from serai.core.errors import BadInput, CannotRun
from serai.sweeping import run as module
from serai.sweeping.aggregate import summary
from serai.sweeping.plan import Plan, plan_sweep
from serai.sweeping.results import open_sweep
from serai.sweeping.run import Progress, run_sweep
from serai.sweeping.stopping import Until, is_narrow
from serai.sweeping.store import Segment, Store
from serai.sweeping.tasks import Task
from tests.sweeping.tiny import plain_rows, tiny_plan
from tests.test_lab import SMALL


class Heard(Progress):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, int]] = []
        self.notices: list[str] = []

    def on_runs(self, done: int, total: int) -> None:
        self.runs.append((done, total))

    def on_notice(self, notice: str) -> None:
        self.notices.append(notice)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return tiny_plan("sensors.count=8,9", seeds=6)


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the plan's sweep, run in one go."""
    folder = tmp_path_factory.mktemp("sweeps") / "undisturbed"
    run_sweep(plan, folder, spark)
    return folder


@pytest.fixture(scope="module")
def rows(plan: Plan) -> list[dict[str, Any]]:
    """The rows of the plan's runs, by a plain loop."""
    return plain_rows(plan)


def table(folder: Path) -> bytes:
    return Store(folder).table.read_bytes()


def test_rows_are_those_of_a_plain_loop(undisturbed: Path, rows: list[dict[str, Any]]) -> None:
    assert pq.read_table(Store(undisturbed).table).to_pylist() == rows


def test_spark_reads_the_same_rows(
    spark: SparkSession, undisturbed: Path, plan: Plan, rows: list[dict[str, Any]]
) -> None:
    sweep = open_sweep(undisturbed, spark)
    assert sweep.plan == plan
    assert sweep.versions["serai"] == serai.__version__
    found = sweep.rows.orderBy("point", "protocol", "seed").toArrow().to_pylist()
    assert found == rows
    estimates = sweep.estimates
    assert estimates[1, "dg"]["events"].count == 6


def test_one_partition_gives_the_same_table_as_fifty(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tiny_plan(seeds=50)
    monkeypatch.setattr(module, "pilot_tasks", lambda *_: [])
    for tasks in (1, 50):
        monkeypatch.setattr(module, "cut_tasks", partial(dealt_out, tasks=tasks))
        run_sweep(plan, tmp_path / str(tasks), spark)
        assert len(list((tmp_path / str(tasks) / "parts").iterdir())) == tasks
    assert table(tmp_path / "1") == table(tmp_path / "50")


def dealt_out(missing: list[Segment], *_: object, tasks: int) -> list[Task]:
    runs = [Segment(cell, seed, seed + 1) for cell, first, stop in missing for seed in range(first, stop)]
    return [tuple(runs[place::tasks]) for place in range(tasks)]


def test_more_seeds_and_points_run_only_what_is_missing(
    spark: SparkSession, undisturbed: Path, plan: Plan, tmp_path: Path
) -> None:
    heard = Heard()
    run_sweep(tiny_plan("sensors.count=8", seeds=4), tmp_path / "grown", spark, progress=heard)
    run_sweep(plan, tmp_path / "grown", spark, progress=heard)
    assert [heard.runs[place][1] for place in (0, -1)] == [4, 8]
    assert heard.runs[-1] == (8, 8)
    assert table(tmp_path / "grown") == table(undisturbed)
    before = len(heard.runs)
    run_sweep(plan, tmp_path / "grown", spark, progress=heard)
    assert len(heard.runs) == before  # nothing was left to do
    assert Store(tmp_path / "grown").runs_in_parts() == 12


def test_a_damaged_part_is_named_and_its_runs_are_done_again(
    spark: SparkSession, undisturbed: Path, plan: Plan, tmp_path: Path
) -> None:
    run_sweep(plan, tmp_path / "hurt", spark)
    part = sorted((tmp_path / "hurt" / "parts").iterdir())[0]
    part.write_bytes(part.read_bytes()[:-20])
    heard = Heard()
    run_sweep(plan, tmp_path / "hurt", spark, progress=heard)
    assert heard.notices == [f"{part.name} is damaged; its runs are done again"]
    assert table(tmp_path / "hurt") == table(undisturbed)


def test_workers_out_of_reach_of_the_folder_send_their_parts(
    spark: SparkSession, undisturbed: Path, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "open", lambda self, plan: (_open(self, plan), "no mark of any folder")[1])
    monkeypatch.setattr(module, "_WAVE_S", 0.0)  # every task comes back by itself
    run_sweep(plan, tmp_path / "remote", spark)
    assert table(tmp_path / "remote") == table(undisturbed)


_open = Store.open


def test_stopping_early_is_the_same_as_asking_for_so_many_seeds(spark: SparkSession, tmp_path: Path) -> None:
    until = Until("delivery_ratio", 0.25, least=3)
    stopped = run_sweep(tiny_plan("sensors.count=8,20", seeds=40), tmp_path / "until", spark, until=until)
    seeds = {cell.point: cell.seeds for cell in stopped.plan.cells}
    assert 3 <= min(seeds.values()) < 40
    at_once = tiny_plan("sensors.count=8,20", seeds=40).with_seeds(seeds)
    run_sweep(at_once, tmp_path / "at_once", spark)
    assert table(tmp_path / "until") == table(tmp_path / "at_once")
    for row in summary(stopped.rows, ["delivery_ratio"]).toArrow().to_pylist():
        assert is_narrow(row["mean"], row["half_width"], 0.25) or seeds[row["point"]] == 40


@pytest.mark.parametrize(("keep", "name"), [("ledger", "dg"), ("log", "dg"), ("log", "tinymq"), ("log", "dpsp")])
def test_runs_are_kept_on_request(spark: SparkSession, tmp_path: Path, keep: str, name: str) -> None:
    plan = tiny_plan(seeds=2) if name == "dg" else plan_sweep(name, SMALL[name], None, 2)
    run_sweep(plan, tmp_path / "kept", spark)
    before = table(tmp_path / "kept")
    run_sweep(plan, tmp_path / "kept", spark, keep=keep)  # type: ignore[arg-type]
    assert table(tmp_path / "kept") == before
    (cell,) = plan.cells
    for seed in range(2):
        run = serai.read_run(Store(tmp_path / "kept").run_folder(cell.id, seed))
        assert run == serai.simulate(cell.scenario, seed=seed, full_log=keep == "log")


def test_a_run_that_fails_is_told_and_the_others_are_kept(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "places.csv"
    file.write_text("name,x,y\na,1,1\nb,2,2\n")
    scenario = tmp_path / "mine.toml"
    scenario.write_text('[protocol]\nname = "dg"\n[sensors]\nplacement = "file"\nfile = "places.csv"\n')
    plan = plan_sweep(scenario, ["duration=10 min"], None, 2)
    monkeypatch.setattr(module, "warm_kernels", lambda *_: file.unlink())  # gone before the workers look
    with pytest.raises(CannotRun, match=r"^dg: .*places\.csv"):
        run_sweep(plan, tmp_path / "out", spark)
    assert not Store(tmp_path / "out").table.exists()


def test_other_kinds_of_network_are_swept_alike(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_sweep("tinymq", ["nodes.count=40", "field.width=60 m", "field.height=60 m", "events.count=50"], None, 2)
    found = run_sweep(plan, tmp_path / "out", spark).rows.orderBy("seed").toArrow().to_pylist()
    assert [row["delay_bin"] for row in found] == [None, None]
    for row in found:
        expected = serai.measure(serai.simulate(plan.cells[0].scenario, seed=row["seed"])).as_dict()
        assert {name: row[name] for name in expected} == expected


def test_an_unfinished_sweep_is_not_opened(spark: SparkSession, tmp_path: Path, plan: Plan) -> None:
    Store(tmp_path / "begun").open(plan)
    with pytest.raises(BadInput, match="not finished"):
        open_sweep(tmp_path / "begun", spark)


def test_workers_with_other_sources_are_refused(
    spark: SparkSession, tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "source_stamp", lambda: "another")
    with pytest.raises(CannotRun, match="have another serai installed"):
        run_sweep(plan, tmp_path / "out", spark)


def test_a_spark_error_is_one_sentence(spark: SparkSession) -> None:
    def fail(batches: object) -> object:
        raise ZeroDivisionError("by zero")

    frame = spark.range(1).mapInArrow(fail, "id long")  # type: ignore[arg-type]
    with pytest.raises(CannotRun, match=r"Spark gave up: .*finished runs are kept") as caught:
        module._watched(spark, frame, lambda: None)
    assert "\n" not in str(caught.value)
