"""The report of a real sweep, from its rows in Spark to the page."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from scipy import stats

from serai.core.statistics import estimate
from serai.report import write_report
from serai.report.gather import command_of, gather
from serai.report.results import Case, Results
from serai.sweeping.plan import plan_sweep
from serai.sweeping.results import open_sweep
from serai.sweeping.run import run_sweep
from tests.report.test_page import Page
from tests.sweeping.tiny import plain_rows, tiny_plan

PLAN = tiny_plan("sensors.count=8,12", seeds=5, protocols=("ced", "dg"))


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report") / "sweep"
    run_sweep(PLAN, place, spark)
    return place


@pytest.fixture(scope="module")
def results(folder: Path, spark: SparkSession) -> Results:
    return gather(open_sweep(folder, spark))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return plain_rows(PLAN)


def test_summary_is_that_of_a_plain_loop(results: Results, rows: list[dict[str, Any]]) -> None:
    assert results.cases == tuple(Case(point, name) for point in (0, 1) for name in ("ced", "dg"))
    for case in results.cases:
        mine = [row for row in rows if (row["point"], row["protocol"]) == case]
        for metric in ("delivery_ratio", "transmissions", "mean_delay_s", "lifetime_days"):
            expected, found = estimate(row[metric] for row in mine), results.estimate(case, metric)
            assert found.mean == pytest.approx(expected.mean, rel=1e-12)
            assert found.half_width() == pytest.approx(expected.half_width(), rel=1e-9)
        assert results.dots[case, "delivery_ratio"] == tuple(row["delivery_ratio"] for row in mine)
        wanted, delivered = (sum(row[name] for row in mine) for name in ("wanted_pairs", "delivered_pairs"))
        assert results.delays[case].fraction[-1] == pytest.approx(delivered / wanted)


def test_communities_have_the_pairs_of_the_runs(results: Results, rows: list[dict[str, Any]]) -> None:
    assert results.served_seeds == 5
    for case in results.cases:
        mine = [row for row in rows if (row["point"], row["protocol"]) == case]
        for column in ("events", "wanted_pairs", "delivered_pairs"):
            total = sum(getattr(served, column) for served in results.served[case].values())
            assert total == sum(row[column] for row in mine)


def test_protocols_are_compared_by_a_paired_test(results: Results, rows: list[dict[str, Any]]) -> None:
    def values(protocol: str) -> list[float]:
        return [row["delivery_ratio"] for row in rows if (row["point"], row["protocol"]) == (1, protocol)]

    found = results.differences[Case(1, "ced"), Case(1, "dg"), "delivery_ratio"]
    assert found.p == pytest.approx(stats.ttest_rel(values("ced"), values("dg")).pvalue, rel=1e-6)


def test_report_of_a_sweep(folder: Path, spark: SparkSession) -> None:
    page = write_report(open_sweep(folder, spark))
    first = page.read_bytes()
    parsed = Page(first.decode())
    assert parsed.open == []
    assert len(parsed.cells["table-main"]) == 5
    assert (folder / "figures" / "swept-sensors-count-delivery_ratio.svg").is_file()
    command = dict(parsed.cells["table-provenance"])["command"]
    # The sweep's other settings stand in its scenario alone, so that the built-in one would not do.
    assert command.startswith('serai sweep scenario.toml --set "sensors.count=8,12" --protocols ced,dg --seeds 5 (')
    assert write_report(open_sweep(folder, spark)).read_bytes() == first


def test_command_of_a_sweep_of_a_built_in_scenario() -> None:
    plan = plan_sweep("dg", ["protocol.alpha=2,5", "subscribers.speed_max=3 m/s,5 m/s"], ("dg", "ced"), 3)
    axes = '--set "protocol.alpha=2,5" --set "subscribers.speed_max=3 m/s,5 m/s"'
    assert command_of(plan) == f"serai sweep dg {axes} --protocols dg,ced --seeds 3"
