"""From the rows of a sweep to what is said about it: means with intervals, paired differences, pooled delays.

Every function takes the frame of runs (`Sweep.rows`) and returns a small frame; none of them collects anything.
A metric that a run does not have is null, and left out of the mean.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everywhere
from pyspark.sql.types import NumericType

from serai.core.statistics import t_quantile
from serai.sweeping.delays import ENDS_S

CONFIDENCE: Final = 0.95
_KEYS: Final = ("point", "protocol")
_NO_METRICS: Final = ("point", "protocol", "seed", "undelivered_pairs")
_TABLED_DEGREES: Final = 300
_MOST_TERMS: Final = 10_000


def metrics_of(rows: DataFrame) -> list[str]:
    """The metrics that a frame of runs has: its columns of numbers, but for those that name a run."""
    return [
        column.name
        for column in rows.schema
        if isinstance(column.dataType, NumericType) and column.name not in _NO_METRICS
    ]


# --- Means


def summary(rows: DataFrame, metrics: Sequence[str] | None = None, confidence: float = CONFIDENCE) -> DataFrame:
    """For each point, protocol and metric: count, mean, standard_error, half_width of the t interval.

    Where no run has the metric, count is 0 and the rest null; one run has a mean but no interval.
    """
    return _moments(_stacked(rows, {name: name for name in metrics or metrics_of(rows)}), confidence)


def _stacked(rows: DataFrame, values: Mapping[str, str], *keys: str) -> DataFrame:
    """A row for each run and metric, whose values are told in SQL.

    Spark compiles a plan of a few columns in no time, but takes a second for one with some hundred aggregates.
    """
    each = ", ".join(f"'{metric}', CAST({value} AS DOUBLE)" for metric, value in values.items())
    return rows.selectExpr(*_KEYS, *keys, f"stack({len(values)}, {each}) AS (metric, value)")


def _moments(values: DataFrame, confidence: float, *keys: str) -> DataFrame:
    return (
        values.groupBy(*_KEYS, *keys, "metric")
        .agg(F.count("value").alias("count"), F.avg("value").alias("mean"), F.stddev_samp("value").alias("deviation"))
        .transform(_with_interval, confidence)
    )


def _with_interval(moments: DataFrame, confidence: float) -> DataFrame:
    error = F.when(F.col("count") > 1, F.col("deviation") / F.sqrt(F.col("count")))
    return (
        moments.withColumn("standard_error", error)
        .withColumn("half_width", F.col("standard_error") * t_quantile_column(F.col("count") - 1, confidence))
        .drop("deviation")
    )


# --- Differences between protocols


def paired(
    rows: DataFrame, baseline: str, metrics: Sequence[str] | None = None, confidence: float = CONFIDENCE
) -> DataFrame:
    """How each protocol differs from the baseline under common seeds, at each point and in each metric.

    Columns: point, protocol, metric, count (seeds that both have), mean (protocol minus baseline), standard_error,
    half_width, p_value of the paired t test, and `different`: whether the interval leaves out 0.
    """
    return paired_with_each(rows, [baseline], metrics, confidence).drop("baseline")


def paired_with_each(
    rows: DataFrame, baselines: Sequence[str], metrics: Sequence[str] | None = None, confidence: float = CONFIDENCE
) -> DataFrame:
    """The same for several baselines; one column more, `baseline`, says which one."""
    names = list(metrics or metrics_of(rows))
    theirs = rows.where(F.col("protocol").isin(list(baselines))).selectExpr(
        "point", "seed", "protocol AS baseline", *(f"{name} AS {name}_of_baseline" for name in names)
    )
    both = rows.join(theirs, ["point", "seed"]).where("protocol != baseline")
    differences = _stacked(both, {name: f"{name} - {name}_of_baseline" for name in names}, "baseline")
    return _moments(differences, confidence, "baseline").transform(_with_test)


def wins(rows: DataFrame, champion: str, signs: Mapping[str, int]) -> DataFrame:
    """In how many common seeds the champion is at least as good as each other protocol at its point.

    `signs` names the metrics: 1 if more is better, -1 if less is. Columns: point, protocol (the other one), count
    (seeds that both have), one for each metric, and `all_at_once`. A number that is missing is no win.
    """
    mine = rows.where(F.col("protocol") == champion).select(
        "point", "seed", *(F.col(n).alias(f"own_{n}") for n in signs)
    )
    both = rows.where(F.col("protocol") != champion).select(*_KEYS, "seed", *signs).join(mine, ["point", "seed"])
    won = {
        name: F.coalesce(sign * (F.col(f"own_{name}") - F.col(name)) >= 0, F.lit(False)) for name, sign in signs.items()
    }
    asked = won | {"all_at_once": reduce(operator.and_, won.values())}
    counted = [F.sum(one.cast("int")).alias(name) for name, one in asked.items()]
    return both.groupBy(*_KEYS).agg(F.count(F.lit(1)).alias("count"), *counted)


def _with_test(differences: DataFrame) -> DataFrame:
    mean, error = F.col("mean"), F.col("standard_error")
    # Runs that differ by the same amount throughout leave no doubt, and no t either.
    p_value = F.when(error > 0, t_test_column(mean / error, F.col("count") - 1)).when(
        error == 0, F.when(mean == 0, 1.0).otherwise(0.0)
    )
    return differences.withColumn("p_value", p_value).withColumn("different", F.abs(mean) > F.col("half_width"))


# --- Delays


def delays(rows: DataFrame) -> DataFrame:
    """The pooled delay curve: for each point and protocol, and each bin that ends at `delay_s`, the delivered
    `pairs` in it and the `fraction` of all wanted pairs that were served by then. The undelivered count."""
    runs = rows.where(F.col("delay_bin").isNotNull())
    counted = (
        runs.select(*_KEYS, F.explode(F.arrays_zip("delay_bin", "delay_count")).alias("in"))
        .groupBy(*_KEYS, F.col("in.delay_bin").alias("bin"))
        .agg(F.sum("in.delay_count").alias("pairs"))
    )
    served = Window.partitionBy(*_KEYS).orderBy("bin")
    whole = Window.partitionBy(*_KEYS)
    undelivered = runs.groupBy(*_KEYS).agg(F.sum("undelivered_pairs").alias("undelivered"))
    return (
        counted.join(undelivered, list(_KEYS))
        .withColumn("wanted", F.sum("pairs").over(whole) + F.col("undelivered"))
        .withColumn("fraction", F.sum("pairs").over(served) / F.col("wanted"))
        .withColumn("delay_s", _end_of(F.col("bin")))
        .select(*_KEYS, "bin", "delay_s", "pairs", "fraction")
    )


def delay_quantiles(rows: DataFrame, probabilities: Sequence[float] = (0.5, 0.95)) -> DataFrame:
    """The pooled delay (to within 1 %) that a fraction of the *delivered* pairs stays within.

    Columns: point, protocol, probability, delay_s. The pairs of all runs count alike, whatever run they are of.
    """
    curve = delays(rows)
    last = Window.partitionBy(*_KEYS)
    of_delivered = F.col("fraction") / F.max("fraction").over(last)
    middle = F.when(F.col("bin") == 0, 0.5).otherwise(F.col("delay_s") / math.sqrt(ENDS_S[1]))
    curve = curve.withColumn("share", of_delivered).withColumn("middle_s", middle)
    # Sums of counts divided twice: what should be equal may differ in the last bits.
    found = [
        curve.where(F.col("share") >= probability * (1 - 1e-12))
        .groupBy(*_KEYS)
        .agg(F.min("middle_s").alias("delay_s"))
        .withColumn("probability", F.lit(probability))
        for probability in probabilities
    ]
    return reduce(DataFrame.unionByName, found).select(*_KEYS, "probability", "delay_s")


def _end_of(number: Column) -> Column:
    return F.element_at(_numbers(ENDS_S.tolist()), number + 1)


def _numbers(values: Sequence[float]) -> Column:
    """An array of numbers, told at once: `lit` asks the JVM for each of them."""
    return F.expr(f"array({', '.join(f'{value!r}D' for value in values)})")


# --- Student's t, as columns


def t_quantile_column(degrees: Column, confidence: float = CONFIDENCE) -> Column:
    """The t with P(|T| < t) = confidence, for each number of degrees of freedom; null below 1.

    Small numbers are looked up; beyond the table the expansion around the normal quantile is as exact.
    """
    tabled = F.element_at(_numbers(_tabled(confidence)), degrees.cast("int"))
    return F.when(degrees.between(1, _TABLED_DEGREES), tabled).when(
        degrees > _TABLED_DEGREES, _expanded(degrees, confidence)
    )


@cache
def _tabled(confidence: float) -> list[float]:
    return [t_quantile(confidence, degrees) for degrees in range(1, _TABLED_DEGREES + 1)]


def _expanded(degrees: Column, confidence: float) -> Column:
    """Abramowitz and Stegun 26.7.5: the t quantile as a series in 1/degrees."""
    from statistics import NormalDist

    z = NormalDist().inv_cdf((1 + confidence) / 2)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return reduce(lambda total, term: total / degrees + term, reversed(terms[:-1]), F.lit(terms[-1]))


def t_test_column(t: Column, degrees: Column) -> Column:
    """The probability that Student's T is as far from 0 as t, or farther: the p-value of a two-sided test.

    The finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4. Beyond ten thousand degrees t is first moved to ten
    thousand by Wallace's transformation (1959), which leaves the probability as it is to nine digits.
    """
    few = F.least(degrees, F.lit(_MOST_TERMS)).cast("int")
    angle = F.atan(F.abs(_moved(t, degrees)) / F.sqrt(few))
    cosine2 = F.cos(angle) * F.cos(angle)
    odd = few % 2 == 1
    # Both sums have terms that follow from the one before; a pair (term, sum) is carried along.
    first = F.when(odd, F.cos(angle)).otherwise(F.lit(1.0))
    start = F.struct(first.alias("term"), F.when(few > 1, first).otherwise(F.lit(0.0)).alias("sum"))
    steps = F.floor((few - F.when(odd, 3).otherwise(2)) / 2)
    places = F.when(steps > 0, F.sequence(F.lit(1), F.greatest(steps, F.lit(1)))).otherwise(
        F.array().cast("array<int>")
    )

    def add(carried: Column, place: Column) -> Column:
        k = F.when(odd, 2 * place).otherwise(2 * place - 1)
        term = carried["term"] * cosine2 * k / (k + 1)
        return F.struct(term.alias("term"), (carried["sum"] + term).alias("sum"))

    total = F.aggregate(places, start, add)["sum"] * F.sin(angle)
    central = F.when(odd, (angle + total) * 2 / math.pi).otherwise(total)
    return F.when(degrees >= 1, F.greatest(F.lit(0.0), 1 - central))


def _moved(t: Column, degrees: Column) -> Column:
    """The t with `_MOST_TERMS` degrees of freedom that is as unlikely as this one with more."""
    z = (8 * degrees + 1) / (8 * degrees + 3) * F.sqrt(degrees * F.log1p(t * t / degrees))
    scaled = z * (8 * _MOST_TERMS + 3) / (8 * _MOST_TERMS + 1)
    far = F.sqrt(_MOST_TERMS * F.expm1(scaled * scaled / _MOST_TERMS))
    return F.when(degrees > _MOST_TERMS, far).otherwise(t)


def relabelled(rows: DataFrame, names: Sequence[tuple[int, str, str]]) -> DataFrame:
    """The rows with other names for their points and protocols: for each point, what both are called."""
    labels = rows.sparkSession.createDataFrame(names, "number int, name string, runs string")
    named = rows.join(F.broadcast(labels), rows["point"] == labels["number"])
    return named.drop("point", "protocol", "number").withColumnsRenamed({"name": "point", "runs": "protocol"})
