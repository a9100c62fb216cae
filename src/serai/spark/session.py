"""The Spark session: in this process by default, a cluster's with `master`, a Spark Connect server's with `remote`."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import serai
from serai.core.errors import BadInput, CannotRun
from serai.core.stopping import heard_by_us, passed_on_stderr, temporary_folder
from serai.spark.java import Java, choose_java
from serai.spark.machine import free_memory_bytes, usable_cores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MIB: Final = 1 << 20
_LEAST_FREE_MIB: Final = 700  # the JVM's 512, and Python workers beside it
_MOST_DRIVER_MIB: Final = 4096
_ANSWER_S: Final = 5.0
_TRIES: Final = 4  # of a task, Spark's own number on a cluster
_MASTER_PORT: Final = 7077
_REMOTE_PORT: Final = 15002


def spark_session(
    master: str | None = None,
    remote: str | None = None,
    existing: SparkSession | None = None,
    *,
    cores: int | None = None,
    memory_mib: int | None = None,
    settings: Mapping[str, str] | None = None,
    only_schedules: bool = False,
) -> SparkSession:
    """A session to work with: the `existing` one, or a new one, local unless a master or a server is named.

    `master` is any master URL of Spark (`local[4]`, `spark://host:7077`), `remote` a Spark Connect server
    (`sc://host:15002`). `settings` are further Spark settings; they win over ours. `only_schedules`: rows never pass
    through the JVM of this process, which hands out tasks and no more, so that compiling itself well would not pay.
    """
    if existing is not None:
        return existing
    if master is not None and remote is not None:
        raise BadInput("--master and --remote: name a cluster or a Spark Connect server, not both")
    if remote is not None:
        return _connected(remote, settings or {})
    cores = cores or usable_cores()
    master = _tried_again(master or f"local[{cores}]")
    if master.startswith("spark://"):  # YARN and Kubernetes have addresses of their own kinds
        _check_answers(master, _MASTER_PORT, f"Spark's master at {master}")
    memory_mib = memory_mib or driver_memory_mib(free_memory_bytes())
    chosen = _settings(cores, memory_mib, only_schedules)
    chosen |= (_LOCAL if master.startswith("local") else {}) | dict(settings or {})
    return _started(master, choose_java(), chosen)


def _tried_again(master: str) -> str:
    """A local master that tries tasks again, as clusters do: a worker may be killed for want of memory."""
    named = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return f"local[{named[1] or 1},{_TRIES}]" if named else master


def running_session() -> SparkSession | None:
    """The session that this process has already, if it has one."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def driver_memory_mib(free_bytes: int | None) -> int:
    """Memory for the JVM in this process: a quarter of what is free, and no more than it can use."""
    if free_bytes is None:
        return 1024
    free_mib = free_bytes // _MIB
    if free_mib < _LEAST_FREE_MIB:
        raise CannotRun(
            f"Spark needs about {_LEAST_FREE_MIB} MiB of free memory, and {free_mib} MiB are free; "
            "close other programs, or use a cluster with --master"
        )
    return max(512, min(_MOST_DRIVER_MIB, free_mib // 4))


_LOCAL: Final = {
    # Nothing leaves the machine, and no name has to be looked up.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def _settings(cores: int, memory_mib: int, only_schedules: bool = False) -> dict[str, str]:
    """What we ask of Spark, everywhere."""
    chosen = {
        "spark.driver.memory": f"{memory_mib}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Summaries are small: as many pieces as cores, not the 200 that suit a large cluster.
        "spark.sql.shuffle.partitions": str(max(2, 2 * cores)),
        # A row of metrics is wider than what Spark compiles by default.
        "spark.sql.codegen.maxFields": "1000",
    }
    # Half of what starting Spark and a first job cost is Java compiling itself (benchmarks/matching.py).
    java = ["-XX:TieredStopAtLevel=1"] if only_schedules else []
    if not os.environ.get("SERAI_DEBUG"):
        quiet = resources.files("serai.spark") / "log4j2.properties"
        java.append(f"-Dlog4j2.configurationFile='file:{quiet}'")
    java.append(f"-Djava.io.tmpdir='{_java_folder()}'")
    chosen["spark.driver.extraJavaOptions"] = " ".join(java)
    return chosen


@cache
def _java_folder() -> Path:
    """Where the JVM keeps what it needs for a while: ended by force, it leaves it there."""
    return temporary_folder("serai-spark-")


def _started(master: str, java: Java, settings: Mapping[str, str]) -> SparkSession:
    """A session whose driver runs in this process, on that Java."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    # Workers must be this Python: "python3", Spark's own choice, may be another one without serai.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("serai").master(master).config(map=dict(settings))
    try:
        environment = _environment(JAVA_HOME=str(java.home()), PYTHONPATH=os.pathsep.join(_sources()))
        # Spark would have Ctrl-C cancel its jobs first, through a connection that may be busy: a traceback.
        with environment, passed_on_stderr(), heard_by_us():
            return builder.getOrCreate()
    except PySparkException as error:
        raise CannotRun(f"Spark did not start on {master} with Java {java.version}: {_first_line(error)}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "py4j":  # the JVM's own complaints come as that
            raise
        raise CannotRun(f"Spark did not start on {master} with Java {java.version}: {_first_line(error)}") from error


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """These variables while the JVM is started, which hands them on to its workers; afterwards the user's again."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ |= variables
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            os.environ |= {name: value} if value is not None else {}


def _sources() -> list[str]:
    """Where workers of this machine find serai: where this process did."""
    return [str(Path(serai.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]


def _connected(remote: str, settings: Mapping[str, str]) -> SparkSession:
    """A session on a Spark Connect server."""
    if not remote.startswith("sc://"):
        raise BadInput(f'--remote "{remote}": a Spark Connect server is written like sc://host:{_REMOTE_PORT}')
    _check_answers(remote, _REMOTE_PORT, f"Spark Connect at {remote}")
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    chosen: dict[str, Any] = {"spark.sql.session.timeZone": "UTC"} | dict(settings)
    try:
        return SparkSession.builder.remote(remote).config(map=chosen).getOrCreate()
    except PySparkException as error:
        raise CannotRun(f"Spark Connect at {remote}: {_first_line(error)}") from error


def _check_answers(url: str, port: int, who: str) -> None:
    """Find out in seconds, not in Spark's minute of retries, that nobody listens where the session shall be."""
    addresses = re.findall(r"([\w.-]+)(?::(\d+))?", re.sub(r"^\w+://", "", url).partition("/")[0].partition(";")[0])
    begun = time.monotonic()
    for host, named in addresses:
        try:
            socket.create_connection((host, int(named or port)), _ANSWER_S).close()
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            return
    waited = f" within {_ANSWER_S:g} s" if time.monotonic() - begun >= _ANSWER_S else f" ({reason})"
    raise CannotRun(f"{who} does not answer{waited}; is it running, and is the address right?")


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
