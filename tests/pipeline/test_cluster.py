"""The same configuration on a real standalone cluster, while its parts die: the tables are those of one process."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.field import CONFIG, answer_of, event, make_field, put
from tests.pipeline.test_pipeline import THOROUGH, once, outbox
from tests.spark.cluster import Processes, processes, start_cluster, until

FILES, ROWS = 240, 700


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
    return len(list(home.glob("work/00000000/*.parquet")))


def start(group: Processes, name: str, field: Path) -> subprocess.Popen[bytes]:
    return group.start(name, sys.executable, "-m", "serai", "pipeline", "run", str(field), "--once")


@pytest.mark.skipif(not THOROUGH, reason="starts a cluster: make test-all")
def test_executors_python_workers_and_the_driver_may_die(tmp_path: Path) -> None:
    here = make_field(tmp_path / "here")
    fill(tmp_path / "here" / "inbox")
    once(here)
    expected = answer_of(tmp_path / "here" / "home")
    with processes(tmp_path) as group:
        master, workers = start_cluster(group, workers=2)
        field = make_field(tmp_path / "there", CONFIG.replace("spark = false", f'spark = {{master = "{master}"}}'))
        fill(tmp_path / "there" / "inbox")
        home = tmp_path / "there" / "home"

        driver = start(group, "driver", field)
        until(lambda: read_so_far(home) > 5, "files are read", driver)
        group.kill(driver)
        assert not (home / "tables" / "journal").exists()

        run = start(group, "run", field)  # from the beginning of the batch, as it was planned
        until(lambda: 5 < read_so_far(home) < FILES - 40, "files are read", run)
        until(lambda: bool(of_worker(workers[0], "pyspark.daemon")), "there is a Python worker", run)
        os.kill(of_worker(workers[0], "pyspark.daemon")[-1], signal.SIGKILL)
        os.kill(of_worker(workers[1], "CoarseGrainedExecutorBackend")[-1], signal.SIGKILL)
        assert run.poll() is None, "nothing was left to do when they died"
        until(lambda: run.poll() is not None, "the run ends")
        assert run.returncode == 0, group.log("run")
    assert answer_of(home) == expected
    assert sorted(outbox(tmp_path / "there")) == sorted(outbox(tmp_path / "here"))
