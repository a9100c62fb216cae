"""How hard Hypothesis looks, quickly by default, at ten times as much with SERAI_THOROUGH=1; who runs beside whom."""

import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.effort import THOROUGH

# Half of what Spark takes for rows as few as those of tests is Java compiling itself well.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT") == "1"  # kernels are then slow
QUICK_EXAMPLES = 20 if UNCOMPILED else 40 if os.environ.get("NUMBA_BOUNDSCHECK") == "1" else 100

settings.register_profile(  # the same worlds each time: what fails has been changed; to look for new ones is thorough
    "quick", max_examples=QUICK_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile(
    "thorough", settings.get_profile("quick"), max_examples=10 * QUICK_EXAMPLES, derandomize=False
)
settings.load_profile("thorough" if THOROUGH else "quick")


@pytest.hookimpl(wrapper=True)  # before xdist, which looks for groups, too
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Tests of a file stay in one process, and all tests on Spark in one: they share a session."""
    for item in items:
        on_spark = "spark" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("spark" if on_spark else item.nodeid.partition("::")[0]))
    yield
    if getattr(config.option, "loadgroup", False) and items and "@" not in items[0].nodeid:
        raise pytest.UsageError("this pytest-xdist does not group tests: with pytest 9.2 its 3.8 cannot")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One local Spark session for all tests of a process: starting it takes longer than most of them."""
    from serai.spark.session import spark_session

    session = spark_session("local[2]")
    yield session
    session.stop()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A stand-in for an object store, with an empty bucket."""
    from tests.spark.object_store import Stand

    stand = Stand()
    for name, value in stand.environment.items():
        monkeypatch.setenv(name, value)
    stand.bucket().create()
    yield stand
    stand.stop()
    stand.start()  # what a test leaves away must be there to be emptied
    stand.bucket().objects.all().delete()
    stand.bucket().delete()
    stand.stop()
