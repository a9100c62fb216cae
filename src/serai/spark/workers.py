"""Who will do the work: how many tasks run at once, and whether the workers have the same versions as this process."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from serai.core.errors import CannotRun
from serai.spark.machine import usable_cores

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_COMPARED: Final = ("serai", "numpy", "pyarrow", "numba")
_OTHER_PYTHON: Final = re.compile(
    r"No module named '?(serai|pyarrow|numpy|numba)|PYTHON_VERSION_MISMATCH|pyarrow.*must be"
)
_ASKED: dict[str, int] = {}  # cores of the clusters that were asked already, by the id of the session


def cores_of(spark: SparkSession) -> int:
    """How many tasks can run at once: as many as the executors that are there have cores.

    The first time a cluster is asked, its workers also say which versions they have: others than ours are refused.
    """
    master = spark.conf.get("spark.master", "") or ""
    named = re.match(r"local\[(\d+)", master)
    if master.startswith("local") and not _is_remote(spark) and _own_python():
        return int(named[1]) if named else usable_cores() if master != "local" else 1
    key = f"{id(spark)}"
    if key not in _ASKED:
        _ASKED[key] = _ask(spark)
    return _ASKED[key]


def _own_python() -> bool:
    return os.environ.get("PYSPARK_PYTHON", sys.executable) == sys.executable


def _is_remote(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def versions() -> dict[str, str]:
    """What answers depend on, in this process."""
    found = {"python": ".".join(map(str, sys.version_info[:2]))}
    for name in _COMPARED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def _ask(spark: SparkSession) -> int:
    """One row from each task that runs at once; without a number of partitions Spark makes one for each core."""
    frame = spark.range(1 << 16).mapInArrow(_tell, "host string, versions map<string, string>")
    try:
        rows = frame.collect()
    except Exception as error:
        if not _OTHER_PYTHON.search(str(error)):
            raise
        raise CannotRun(
            "the workers of this cluster have no serai, or another Python: ship the environment with spark.archives"
            " (docs: Matching on Spark, On a cluster)"
        ) from error
    ours = versions()
    for row in rows:
        theirs = row.versions
        other = [
            f"{name} {theirs.get(name)} instead of {ours[name]}" for name in ours if theirs.get(name) != ours[name]
        ]
        if other:
            raise CannotRun(f"the workers on {row.host} have {', '.join(other)}; install the same versions everywhere")
    return len(rows)


def _tell(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for _ in batches:
        pass
    row: dict[str, Any] = {"host": platform.node(), "versions": list(versions().items())}
    yield pa.RecordBatch.from_pylist(
        [row], schema=pa.schema([("host", pa.string()), ("versions", pa.map_(pa.string(), pa.string()))])
    )
