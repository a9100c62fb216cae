"""Means, intervals, tests and pooled delays in Spark, against closed forms, SciPy and plain Python."""

import math
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from scipy import stats

from serai.core.statistics import estimate
from serai.sweeping.aggregate import (
    delay_quantiles,
    delays,
    metrics_of,
    paired,
    summary,
    t_quantile_column,
    t_test_column,
    wins,
)
from serai.sweeping.delays import ENDS_S, count_delays

SCHEMA = "point int, protocol string, seed long, ratio double, copies long"


def collected(frame: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows


def by_key(frame: DataFrame) -> dict[tuple[int, str, str], dict[str, Any]]:
    return {(row["point"], row["protocol"], row["metric"]): row for row in collected(frame)}


def test_means_and_intervals_are_those_of_plain_python(spark: SparkSession) -> None:
    rng = np.random.default_rng(1)
    rows = [
        (point, protocol, seed, None if seed == 3 else float(rng.normal(5, point + 1)), int(rng.integers(100)))
        for point in range(3)
        for protocol in ("ced", "dg")
        for seed in range(7)
    ]
    found = by_key(summary(spark.createDataFrame(rows, SCHEMA)))
    assert len(found) == 12
    for (point, protocol, metric), row in found.items():
        column = {"ratio": 3, "copies": 4}[metric]
        expected = estimate(r[column] for r in rows if r[:2] == (point, protocol))
        assert row["count"] == expected.count
        assert row["mean"] == pytest.approx(expected.mean, rel=1e-12)
        assert row["standard_error"] == pytest.approx(expected.standard_error, rel=1e-12)
        assert row["half_width"] == pytest.approx(expected.half_width(), rel=1e-12)


def test_too_few_runs_have_no_interval(spark: SparkSession) -> None:
    rows = [(0, "dg", 0, 2.5, 1), (1, "dg", 0, None, 2)]
    found = by_key(summary(spark.createDataFrame(rows, SCHEMA), ["ratio"]))
    one, none = found[0, "dg", "ratio"], found[1, "dg", "ratio"]
    assert (one["count"], one["mean"], one["standard_error"], one["half_width"]) == (1, 2.5, None, None)
    assert (none["count"], none["mean"], none["half_width"]) == (0, None, None)


def test_metrics_are_the_numbers_of_a_run(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], f"{SCHEMA}, undelivered_pairs long, delay_bin array<smallint>")
    assert metrics_of(frame) == ["ratio", "copies"]


def test_differences_are_those_of_scipys_paired_test(spark: SparkSession) -> None:
    rng = np.random.default_rng(2)
    world = rng.normal(0, 3, 25)  # what both protocols see under a seed
    values = {"ced": world + rng.normal(1, 0.5, 25), "dg": world, "cet": world + rng.normal(0, 0.5, 25)}
    rows = [(0, name, seed, float(v), 1) for name, column in values.items() for seed, v in enumerate(column)]
    rows.remove((0, "cet", 24, float(values["cet"][24]), 1))  # a seed that only the others have is left out
    found = by_key(paired(spark.createDataFrame(rows, SCHEMA), "dg"))
    assert {protocol for _, protocol, _ in found} == {"ced", "cet"}
    for name, count in (("ced", 25), ("cet", 24)):
        row = found[0, name, "ratio"]
        test = stats.ttest_rel(values[name][:count], values["dg"][:count])
        low, high = test.confidence_interval(0.95)
        assert row["count"] == count
        assert row["p_value"] == pytest.approx(test.pvalue, rel=1e-8, abs=1e-14)
        assert row["mean"] - row["half_width"] == pytest.approx(low)
        assert row["mean"] + row["half_width"] == pytest.approx(high)
        assert row["different"] == (test.pvalue < 0.05)
    same = found[0, "ced", "copies"]
    assert (same["mean"], same["p_value"], same["different"]) == (0, 1, False)


def test_wins_are_counted_seed_by_seed(spark: SparkSession) -> None:
    """Seed 0 is won in both, 1 in copies alone, 2 is a draw in delay, in 3 the other has no delay, 4 only one has."""
    ours = [(9.0, 1.0), (9.0, 7.0), (9.0, 5.0), (9.0, 5.0), (9.0, 5.0)]
    theirs = [(8.0, 5.0), (8.0, 5.0), (8.0, 5.0), (8.0, None)]
    rows = [
        (0, name, seed, *values) for name, many in (("ced", ours), ("dg", theirs)) for seed, values in enumerate(many)
    ]
    frame = spark.createDataFrame(rows, "point int, protocol string, seed int, copies double, delay double")
    assert collected(wins(frame, "ced", {"copies": +1, "delay": -1})) == [
        {"point": 0, "protocol": "dg", "count": 4, "copies": 4, "delay": 2, "all_at_once": 2}
    ]
    assert collected(wins(frame, "dg", {"copies": +1}))[0]["copies"] == 0


def test_a_constant_difference_leaves_no_doubt(spark: SparkSession) -> None:
    rows = [(0, name, seed, float(seed), 3 + (name == "ced")) for name in ("ced", "dg") for seed in range(4)]
    row = by_key(paired(spark.createDataFrame(rows, SCHEMA), "dg"))[0, "ced", "copies"]
    assert (row["mean"], row["standard_error"], row["p_value"], row["different"]) == (1, 0, 0, True)


def test_students_t_is_that_of_scipy(spark: SparkSession) -> None:
    degrees = [1, 2, 3, 4, 5, 29, 30, 299, 300, 301, 1000, 9999, 10_000, 10_001, 200_000]
    cases = [(t, d) for t in (0.0, 0.3, -1.96, 2.5, 6.0) for d in degrees]
    frame = spark.createDataFrame(cases, "t double, d long").coalesce(1)
    found = collected(
        frame.select(
            "t", "d", t_test_column(F.col("t"), F.col("d")).alias("p"), t_quantile_column(F.col("d")).alias("q")
        )
    )
    for row in found:
        assert row["p"] == pytest.approx(2 * stats.t.sf(abs(row["t"]), row["d"]), abs=1e-9)
        assert row["q"] == pytest.approx(stats.t.ppf(0.975, row["d"]), rel=1e-11)


def test_no_degrees_no_t(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1.0, 0)], "t double, d long")
    (row,) = collected(frame.select(t_test_column(F.col("t"), F.col("d")).alias("p"), t_quantile_column(F.col("d"))))
    assert list(row.values()) == [None, None]


def test_intervals_cover_the_truth_as_often_as_they_say(spark: SparkSession) -> None:
    experiments, seeds = 4000, 6
    rng = np.random.default_rng(3)
    values = rng.normal(10, 2, experiments * seeds)
    rows = spark.range(experiments * seeds).select(
        (F.col("id") / seeds).cast("int").alias("point"), F.lit("dg").alias("protocol"), F.col("id").alias("seed")
    )
    drawn = spark.createDataFrame(list(enumerate(values.tolist())), "seed long, ratio double")
    found = summary(rows.join(drawn, "seed").select("point", "protocol", "seed", "ratio"))
    covered = found.where(F.abs(F.col("mean") - 10) <= F.col("half_width")).count()
    # Binomial: 4000 tries at 95 % are within four standard deviations of 3800.
    assert abs(covered - 0.95 * experiments) < 4 * math.sqrt(experiments * 0.95 * 0.05)


# --- delays


def delay_rows(runs: list[tuple[int, str, list[float], int]]) -> list[tuple[Any, ...]]:
    rows = []
    for seed, (point, protocol, delays_s, undelivered) in enumerate(runs):
        bins, counts = count_delays(np.array(delays_s, dtype=np.float64))
        rows.append((point, protocol, seed, undelivered, bins.tolist(), counts.tolist()))
    return rows


DELAYS = (
    "point int, protocol string, seed long, undelivered_pairs long, delay_bin array<smallint>, delay_count array<int>"
)


def test_pooled_delays_count_every_pair_of_every_run(spark: SparkSession) -> None:
    rng = np.random.default_rng(4)
    runs = [
        (point, "dg", rng.exponential(300, 10 + 90 * seed).tolist(), 5 * seed) for point in (0, 1) for seed in (0, 1, 2)
    ]
    found = collected(delays(spark.createDataFrame(delay_rows(runs), DELAYS)))
    for point in (0, 1):
        pooled = np.concatenate([run[2] for run in runs if run[0] == point])
        wanted = len(pooled) + 15
        curve = sorted((row for row in found if row["point"] == point), key=lambda row: row["bin"])
        assert sum(row["pairs"] for row in curve) == len(pooled)
        for row in curve:
            assert row["delay_s"] == ENDS_S[row["bin"]]
            assert row["fraction"] == pytest.approx((pooled <= row["delay_s"]).sum() / wanted, rel=1e-12)
        assert curve[-1]["fraction"] == pytest.approx(len(pooled) / wanted)


def test_pooled_quantiles_are_within_one_percent(spark: SparkSession) -> None:
    rng = np.random.default_rng(5)
    # One run with many short delays, one with few long ones: a mean of medians would be far off.
    runs = [(0, "dg", rng.uniform(5, 50, 900).tolist(), 0), (0, "dg", rng.uniform(500, 900, 100).tolist(), 700)]
    found = collected(delay_quantiles(spark.createDataFrame(delay_rows(runs), DELAYS), (0.25, 0.5, 0.95)))
    pooled = np.concatenate([run[2] for run in runs])
    for row in found:
        exact = np.quantile(pooled, row["probability"], method="inverted_cdf")
        assert row["delay_s"] == pytest.approx(exact, rel=0.0101)
    assert len(found) == 3


def test_runs_without_delays_have_no_curve(spark: SparkSession) -> None:
    rows = [(0, "dg", 0, None, None, None)]
    assert collected(delays(spark.createDataFrame(rows, DELAYS))) == []
