"""The same configuration on a real standalone cluster, also while its parts die: the tables are those of one process.

`python -m tests.pipeline.test_cluster ...` is `serai ...` with a task for each file, so that there is time to die.
"""

import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from serai.cli import execute
from serai.pipeline import batch
from tests.effort import THOROUGH
from tests.pipeline.field import CONFIG, event, make_field, put, tables_of
from tests.pipeline.test_pipeline import once, outbox
from tests.spark.cluster import Processes, processes, start_cluster, until

FILES, ROWS = 240, 700
IN_SMALL_TASKS = "tests.pipeline.test_cluster"
LONG = pytest.mark.skipif(not THOROUGH, reason="starts a cluster: make test-all")


def fill(inbox: Path) -> None:
    """Logs that overlap: half of the events come in two files."""
    draw = random.Random(5)
    for number in range(FILES):
        first = number * ROWS // 2
        suffix = draw.choice([".csv", ".jsonl"])
        put(inbox, f"{number:03}{suffix}", [event(number % 4, seq) for seq in range(first, first + ROWS)])
    (inbox / "torn.parquet").write_bytes(b"PAR1 torn")


def of_worker(worker: subprocess.Popen[bytes], words: str) -> list[int]:
    """The processes that a worker has started, however deep, whose command has these words in it."""
    parents, found = {worker.pid}, []
    for path in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):
            continue
        if parent in parents:
            parents.add(int(path.name))
            found += [int(path.name)] if words in command else []
    return found


def read_so_far(home: Path) -> int:
    return len(list(home.glob("work/00000000/*.ids")))


def start(group: Processes, name: str, field: Path, module: str = "serai") -> subprocess.Popen[bytes]:
    sources = os.pathsep.join(sys.path)
    return group.start(name, sys.executable, "-m", module, "pipeline", "run", str(field), "--once", PYTHONPATH=sources)


class Cluster(NamedTuple):
    group: Processes
    master: str
    workers: list[subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers of one core each."""
    with processes(tmp_path_factory.mktemp("cluster")) as group:
        yield Cluster(group, *start_cluster(group, workers=2))


@LONG
def test_the_example_on_a_cluster(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, spark in (("here", "false"), ("there", f'{{master = "{cluster.master}"}}')):
        assert execute(["examples", "copy", "pipeline"]) == 0
        Path("pipeline").rename(name)
        field = tmp_path / name / "field.toml"
        field.write_text(re.sub(r"(?m)^spark = false", f"spark = {spark}", field.read_text()))
        run = start(cluster.group, f"example-{name}", field)
        until(lambda run=run: run.poll() is not None, "the run ends")
        assert run.returncode == 0, cluster.group.log(f"example-{name}")
    assert "batch 0: 5 files, 1 in quarantine, 23 new events" in cluster.group.log("example-there")
    assert tables_of(tmp_path / "there" / "home") == tables_of(tmp_path / "here" / "home")
    assert sorted(outbox(tmp_path / "there")) == sorted(outbox(tmp_path / "here"))
    assert "Field report" in (tmp_path / "there" / "home" / "report.html").read_text()


@LONG
def test_executors_python_workers_and_the_driver_may_die(cluster: Cluster, tmp_path: Path) -> None:
    here = make_field(tmp_path / "here")
    fill(tmp_path / "here" / "inbox")
    once(here)
    group, master, workers = cluster
    field = make_field(tmp_path / "there", CONFIG.replace("spark = false", f'spark = {{master = "{master}"}}'))
    fill(tmp_path / "there" / "inbox")
    home = tmp_path / "there" / "home"

    driver = start(group, "driver", field, IN_SMALL_TASKS)
    until(lambda: read_so_far(home) > 5, "files are read", driver)
    group.kill(driver)
    assert not (home / "tables" / "journal").exists()

    run = start(group, "run", field, IN_SMALL_TASKS)  # from the beginning of the batch, as it was planned
    until(lambda: read_so_far(home) < 5, "what was begun is cleared away", run)
    until(lambda: 5 < read_so_far(home) < FILES - 40, "files are read", run)
    until(lambda: bool(of_worker(workers[0], "pyspark.daemon")), "there is a Python worker", run)
    os.kill(of_worker(workers[0], "pyspark.daemon")[-1], signal.SIGKILL)
    os.kill(of_worker(workers[1], "CoarseGrainedExecutorBackend")[-1], signal.SIGKILL)
    assert run.poll() is None, "nothing was left to do when they died"
    until(lambda: run.poll() is not None, "the run ends")
    assert run.returncode == 0, group.log("run")
    assert tables_of(home) == tables_of(tmp_path / "here" / "home")
    assert sorted(outbox(tmp_path / "there")) == sorted(outbox(tmp_path / "here"))


if __name__ == "__main__":
    batch._FILES_OF_TASK = 1  # type: ignore[misc]
    sys.exit(execute(sys.argv[1:]))
