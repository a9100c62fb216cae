"""Sweeps on a real cluster while its parts die, and over Spark Connect: the table is that of an undisturbed one."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from serai.sweeping.plan import Plan, plan_sweep
from serai.sweeping.run import run_sweep
from serai.sweeping.store import Store
from tests.effort import THOROUGH
from tests.spark.cluster import Processes, processes, start_cluster, start_connect_server, until

SEEDS = 1200
SETTINGS = ("sensors.count=60",)


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table that all these sweeps must end with."""
    folder = tmp_path_factory.mktemp("sweeps") / "undisturbed"
    run_sweep(plan(), folder, spark)
    return Store(folder).table.read_bytes()


def plan() -> Plan:
    return plan_sweep("dg", SETTINGS, None, SEEDS)


def start_sweep(group: Processes, name: str, folder: Path, *where: str) -> subprocess.Popen[bytes]:
    """The command that runs the sweep, as a user would give it."""
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    command = ["-m", "serai", "sweep", "dg", *sets, "--seeds", str(SEEDS), "--out", str(folder), "--no-report"]
    return group.start(name, sys.executable, *command, *where)


def large_parts(folder: Path) -> set[str]:
    """The parts that are there, but for the few runs that only find out what a run costs."""
    return {path.name for path in folder.glob("parts/*.parquet") if int(path.name.partition("-")[0]) > 2}


def finish(group: Processes, name: str, sweep: subprocess.Popen[bytes]) -> None:
    until(lambda: sweep.poll() is not None, "the sweep ends")
    assert sweep.returncode == 0, group.log(name)


@pytest.mark.skipif(not THOROUGH, reason="takes long: make test-all")
def test_a_driver_a_worker_and_its_executor_may_die(undisturbed: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    with processes(tmp_path) as group:
        master, workers = start_cluster(group, workers=2)
        first = start_sweep(group, "first", folder, "--master", master)
        until(lambda: bool(large_parts(folder)), "the first parts are written", first)
        group.kill(first)
        saved = large_parts(folder)
        assert not Store(folder).table.exists()

        second = start_sweep(group, "second", folder, "--master", master)
        until(lambda: large_parts(folder) > saved, "more parts are written", second)
        group.kill(workers[0])
        assert second.poll() is None, "nothing was left to do when the worker died"
        finish(group, "second", second)
    assert Store(folder).table.read_bytes() == undisturbed
    assert saved <= large_parts(folder)
    assert f"/{SEEDS} runs" not in group.log("second")  # only what was missing was run again


@pytest.mark.skipif(not THOROUGH, reason="takes long: make test-all")
def test_over_spark_connect(undisturbed: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    with processes(tmp_path) as group:
        server = start_connect_server(group)
        finish(group, "sweep", start_sweep(group, "sweep", folder, "--remote", server))
    assert Store(folder).table.read_bytes() == undisturbed


@pytest.mark.skipif(not THOROUGH, reason="takes long: make test-all")
def test_a_local_sweep_that_is_killed_is_resumed(undisturbed: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    with processes(tmp_path) as group:
        first = start_sweep(group, "first", folder)
        until(lambda: bool(large_parts(folder)), "the first parts are written", first)
        group.kill(first)
        finish(group, "second", start_sweep(group, "second", folder))
    assert Store(folder).table.read_bytes() == undisturbed
    assert f"/{SEEDS} runs" not in group.log("second")
