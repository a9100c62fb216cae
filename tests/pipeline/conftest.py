"""One local Spark session for all tests of a process: starting it takes longer than most of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import serai as serai_package
from serai.pipeline.session import spark_session
from tests.cli.conftest import serai

__all__ = ["serai"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(serai_package.__file__).parents[1]))  # where the workers find us
        session = spark_session("local[2]")
        yield session
        session.stop()
