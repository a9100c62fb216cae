"""A real standalone cluster, and a real Spark Connect server, on 127.0.0.1, from the installed pyspark."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from serai.spark.java import choose_java

SPARK = Path(pyspark.__file__).parent
SOURCES = Path(__file__).parents[2] / "src"
PATIENCE_S = 300.0


class Processes:
    """Processes of a test, each with all its children in a group of its own, killed at the end whatever happens."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.running: list[subprocess.Popen[bytes]] = []
        self.environment = os.environ | {
            "PYTHONPATH": str(SOURCES),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
        }

    def start(self, name: str, *command: str | Path, **variables: str) -> subprocess.Popen[bytes]:
        with (self.logs / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                list(map(str, command)),
                env=self.environment | variables,
                cwd=self.logs,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def spark(self, name: str, *command: str | Path) -> subprocess.Popen[bytes]:
        """A program of Spark's, on the Java that serai would choose."""
        return self.start(name, *command, JAVA_HOME=str(choose_java().home()))

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """SIGKILL, to the process and to all that it has started in its group."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def log(self, name: str) -> str:
        return (self.logs / f"{name}.log").read_text(errors="replace")


@contextmanager
def processes(logs: Path) -> Iterator[Processes]:
    group = Processes(logs)
    try:
        yield group
    finally:
        for process in group.running:
            group.kill(process)


def until(true: Callable[[], bool], what: str, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait for something to become true, while a process is alive."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, f"waited in vain: {what}"
        assert process is None or process.poll() is None, f"the process has ended before: {what}"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def start_cluster(group: Processes, workers: int) -> tuple[str, list[subprocess.Popen[bytes]]]:
    """A master and workers of one core each: the master's address, and the workers' processes."""
    port = free_port()
    start, here = SPARK / "bin" / "spark-class", ("--host", "127.0.0.1", "--webui-port", "0")
    group.spark("master", start, "org.apache.spark.deploy.master.Master", *here, "--port", str(port))
    until(lambda: listens(port), "the master listens")
    address = f"spark://127.0.0.1:{port}"
    started = [
        group.spark(
            f"worker-{number}", start, "org.apache.spark.deploy.worker.Worker", *here,
            "--cores", "1", "--memory", "1200m", "--work-dir", group.logs / f"work-{number}", address,
        )
        for number in range(workers)
    ]  # fmt: skip
    until(lambda: all("registered with master" in group.log(f"worker-{n}") for n in range(workers)), "workers register")
    return address, started


def start_connect_server(group: Processes) -> str:
    """A Spark Connect server with two cores: its address."""
    port = free_port()
    group.spark(
        "connect", SPARK / "bin" / "spark-submit",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]",
        "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.connect.grpc.binding.address=127.0.0.1",
        "--conf", "spark.ui.enabled=false", "--driver-memory", "1g",
    )  # fmt: skip
    until(lambda: listens(port), "the server listens")
    return f"sc://127.0.0.1:{port}"
