"""Paths that are used and addresses that are refused, locks, and what Spark says, in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from serai.core.errors import BadInput, CannotRun
from serai.spark.failures import plainly, said_plainly
from serai.spark.places import alone_in, is_address, local_path
from serai.spark.workers import cores_of, versions


@pytest.mark.parametrize("path", ["s3a://bucket/x", "s3:/bucket/x", "abfss://c@a/x", "hdfs://name/x", "gs://b"])
def test_addresses_are_refused_where_a_folder_is_needed(path: str) -> None:
    assert is_address(path)
    with pytest.raises(BadInput, match="only folders of this machine"):
        local_path(path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("a/b", "a/b"), ("/a b", "/a b"), ("file:///a%20b/c", "/a b/c"), ("file:/a", "/a"), ("c:/x", "c:/x")],
)
def test_paths_are_paths(path: str, expected: str) -> None:
    assert local_path(path) == Path(expected)


def test_a_lock_is_held_against_others_and_dies_with_its_process(tmp_path: Path) -> None:
    code = (
        "import os, sys, pathlib; from serai.spark.places import alone_in\n"
        "with alone_in(pathlib.Path(sys.argv[1])):\n print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": "src"}, **pipes) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(CannotRun, match="another serai is at work"), alone_in(tmp_path):
            pass
        other.kill()
        other.wait()
    with alone_in(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_what_a_worker_says_of_a_full_disk_is_one_sentence(spark) -> None:
    def fill(batches):
        for _ in batches:
            raise OSError(28, "No space left on device")
        yield

    with pytest.raises(CannotRun) as caught, said_plainly("out", "what is done is kept: "):
        spark.range(2).mapInArrow(fill, "id long").collect()
    said = "out: no space left; what is done is kept: free some space and give the same command again"
    assert str(caught.value) == said


def test_other_errors_of_workers_are_one_sentence_and_bugs_stay_bugs(spark) -> None:
    def fail(batches):
        raise RuntimeError("a wheel came off")
        yield

    with pytest.raises(CannotRun) as caught, said_plainly("out"):
        spark.range(2).mapInArrow(fail, "id long").collect()
    assert str(caught.value) == "out: Spark gave up: RuntimeError: a wheel came off"
    bug = ZeroDivisionError("by zero")
    assert plainly(bug, "out") is bug


def test_a_killed_worker_is_replaced(spark, tmp_path: Path) -> None:
    def die_once(batches):
        mark = tmp_path / "died"
        for batch in batches:
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), 9)
            yield batch

    assert spark.range(0, 100, 1, 4).mapInArrow(die_once, "id long").count() == 100
    assert (tmp_path / "died").exists()


def test_tasks_as_many_as_cores_and_versions_are_compared(spark, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cores_of(spark) == 2
    monkeypatch.setattr("serai.spark.workers._own_python", lambda: False)  # as on a cluster: the workers are asked
    assert cores_of(spark) == 2
    monkeypatch.setattr("serai.spark.workers._ASKED", {})
    monkeypatch.setattr("serai.spark.workers.versions", lambda: {"numpy": "0.1"})
    with pytest.raises(CannotRun, match=rf"numpy {versions()['numpy']} instead of 0.1"):
        cores_of(spark)
