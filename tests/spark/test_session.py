"""Sessions that cannot be: each said in one sentence, in seconds."""

import socket

import pytest
from pyspark.sql import SparkSession

from serai.core.errors import BadInput, CannotRun
from serai.spark.session import driver_memory_mib, spark_session


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_master_that_does_not_answer_is_named() -> None:
    with pytest.raises(CannotRun, match=r"master at spark://127\.0\.0\.1:\d+ does not answer"):
        spark_session(f"spark://127.0.0.1:{closed_port()}")


def test_a_connect_server_that_does_not_answer_is_named() -> None:
    with pytest.raises(CannotRun, match=r"Spark Connect at sc://127\.0\.0\.1:\d+/;token=x does not answer"):
        spark_session(remote=f"sc://127.0.0.1:{closed_port()}/;token=x")


def test_a_master_and_a_server_are_one_too_many() -> None:
    with pytest.raises(BadInput, match="not both"):
        spark_session("local[2]", "sc://127.0.0.1")


def test_a_server_is_written_as_one() -> None:
    with pytest.raises(BadInput, match="sc://host"):
        spark_session(remote="127.0.0.1:15002")


@pytest.mark.parametrize(
    ("free_mib", "taken_mib"), [(None, 1024), (700, 512), (4000, 1000), (8192, 2048), (100_000, 4096)]
)
def test_the_jvm_takes_a_part_of_what_is_free(free_mib: int | None, taken_mib: int) -> None:
    assert driver_memory_mib(free_mib * 2**20 if free_mib else None) == taken_mib


def test_too_little_memory_is_said() -> None:
    with pytest.raises(CannotRun, match="about 700 MiB of free memory, and 300 MiB are free"):
        driver_memory_mib(300 * 2**20)


def test_an_existing_session_is_taken_as_it_is(spark: SparkSession) -> None:
    assert spark_session(existing=spark) is spark


def test_our_settings_hold(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.ui.enabled") == "false"
