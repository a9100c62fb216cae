"""From the network to the answer: what subscribers brought home, without repeats, matched, and a report on each.

This is what a deployment would run every night. Only the tables are read that every kind of network logs, so runs of
all kinds and logs of real nodes may lie side by side. An event counts as collected when any subscriber received it:
whoever comes home brings it to all.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everywhere

from serai.core.errors import BadInput
from serai.core.placing import check_can_hold
from serai.log.folder import RUN_FILE
from serai.matching import tables
from serai.matching.match import match
from serai.spark.failures import said_plainly
from serai.spark.places import local_path
from serai.spark.sources import register_sources, runs_in
from serai.spark.workers import cores_of

_READ = ("events", "subscriptions", "deliveries")
_MARK = "collect.json"


@dataclass(frozen=True)
class Collected:
    """What a collection found, over all runs."""

    runs: int
    deliveries: int
    events: int  # collected, each once
    pairs: int  # of a collected event and a subscription that wants it
    subscriptions: int
    wanted: int  # pairs that there would be had every event been collected
    completeness: float | None  # pairs / wanted
    changed: bool  # False: the same runs had been collected already

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)


def collect(spark: SparkSession, folder: str | Path, out: str | Path) -> Collected:
    """Collect the runs in a folder into the tables events, pairs and report; done again it changes nothing."""
    place, folder = local_path(out).absolute(), local_path(folder)
    signature = _signature(folder)
    if (place / _MARK).is_file():
        before = json.loads((place / _MARK).read_text(encoding="utf-8"))
        if before["signature"] == signature:
            return Collected(**before["collected"] | {"changed": False})
    check_can_hold(place, out)
    if place.exists() and not (place / _MARK).is_file() and any(place.iterdir()):
        raise BadInput(f"{out}: the folder is not empty, and no collection; choose a new name, or remove it first")
    with said_plainly(out), tables.aside(place) as aside:
        cores_of(spark)  # refuses workers with other versions, before anything is done
        made = aside / "made"
        collected = _collect(spark, folder.absolute(), made)
        text = json.dumps({"signature": signature, "collected": asdict(collected)}, indent=2) + "\n"
        (made / _MARK).write_text(text, encoding="utf-8")
        if place.exists():
            place.rename(aside / "old")
        made.rename(place)
    return collected


def _signature(folder: Path) -> str:
    """A name for the runs and all that is in them: their descriptions hold the digests of their tables."""
    runs = runs_in(folder)
    if not runs:
        raise BadInput(f"{folder}: no run in it (no {RUN_FILE} found); name a folder written with --out")
    whole = hashlib.sha256()
    for run in runs:
        whole.update(f"{run.relative_to(folder).as_posix()}\0".encode() + (run / RUN_FILE).read_bytes())
    return whole.hexdigest()


def _collect(spark: SparkSession, folder: Path, made: Path) -> Collected:
    register_sources(spark)
    born, asked, deliveries = (
        spark.read.format("serai-log").option("table", table).load(str(folder)) for table in _READ
    )
    born = with_id(born, "event", "node")
    asked = as_conditions(with_id(asked, "subscription", "node"))
    received = with_id(deliveries, "event", "node").cache()
    first_home = received.groupBy("event").agg(F.min("time_s").alias("collected_s"), F.count("*").alias("copies"))
    events = born.join(first_home, "event").cache()
    wanted = in_time(match(born, asked), born, asked, received).cache()
    pairs = with_times(wanted, events)
    for name, table in (("events", events.orderBy("event")), ("pairs", pairs.orderBy("subscription", "event"))):
        table.write.parquet(str(made / name))
        tables.keep_parts(made / name)
    report = per_subscription(asked, wanted, spark.read.parquet(str(made / "pairs")))
    report.orderBy("subscription").coalesce(1).write.parquet(str(made / "report"))
    tables.keep_parts(made / "report")
    sums = spark.read.parquet(str(made / "report")).agg(F.count("*"), F.sum("wanted"), F.sum("collected")).first()
    assert sums is not None
    collected = Collected(
        runs=len(runs_in(folder)),
        deliveries=received.count(),
        events=events.count(),
        pairs=sums[2] or 0,
        subscriptions=sums[0],
        wanted=sums[1] or 0,
        completeness=sums[2] / sums[1] if sums[1] else None,
        changed=True,
    )
    for frame in (received, events, wanted):
        frame.unpersist()
    return collected


def with_id(rows: DataFrame, *numbers: str) -> DataFrame:
    """The rows with ids that are unique over all runs, `run/number`, in place of these numbers."""
    return rows.withColumns({name: F.concat_ws("/", "run", F.col(name).cast("string")) for name in numbers})


def as_conditions(subscriptions: DataFrame) -> DataFrame:
    """The subscriptions as conditions on events: what they say, their channel, and only events of their own run."""
    return subscriptions.withColumn(
        "where",
        F.concat_ws(
            " and ",
            F.when(F.col("where") != "", F.col("where")),
            F.when(F.col("channel") != "", _equals("channel")),
            _equals("run"),
        ),
    ).select("subscription", "run", "protocol", "seed", "node", "where", "from_s", "to_s")


def _equals(column: str) -> Column:
    return F.concat(F.lit(f"{column} = '"), F.replace(F.col(column), F.lit("'"), F.lit("''")), F.lit("'"))


def in_time(matching: DataFrame, born: DataFrame, asked: DataFrame, received: DataFrame) -> DataFrame:
    """The matching pairs whose event is alive at a time at which it is asked for, and when the node itself had it.

    What a node published itself counts only if the network delivered it: some do, and others need not.
    """
    events = born.select("event", "time_s", "lifetime_s", F.col("node").alias("publisher"))
    pairs = matching.join(events, "event").join(asked.select("subscription", "node", "from_s", "to_s"), "subscription")
    had = received.select("event", "node", F.lit(True).alias("had"), F.col("time_s").alias("received_s"))
    pairs = pairs.join(had, ["event", "node"], "left")
    since_s, until_s = F.greatest("time_s", "from_s"), F.least(F.col("time_s") + F.col("lifetime_s"), "to_s")
    meet = F.col("time_s").isNull() | (since_s < until_s)
    elsewhere = (F.col("publisher") != F.col("node")) | F.col("had").isNotNull()
    return pairs.where(meet & elsewhere).select("event", "subscription", "had", "received_s")


def with_times(wanted: DataFrame, events: DataFrame) -> DataFrame:
    """The pairs of collected events: when somebody brought the event home, and when the subscriber itself had it."""
    pairs = wanted.join(events.select("event", "time_s", "collected_s"), "event")
    return pairs.select(
        "event",
        "subscription",
        "time_s",
        "collected_s",
        F.col("had").isNotNull().alias("received"),
        "received_s",
        (F.col("collected_s") - F.col("time_s")).alias("collected_delay_s"),
        (F.col("received_s") - F.col("time_s")).alias("delay_s"),
    )


def per_subscription(asked: DataFrame, wanted: DataFrame, pairs: DataFrame) -> DataFrame:
    """For each subscription: events it wants, those collected and those it received itself, and the delays."""
    there = wanted.groupBy("subscription").agg(F.count("*").alias("wanted"))
    found = pairs.groupBy("subscription").agg(
        F.count("*").alias("collected"),
        F.sum(F.col("received").cast("long")).alias("received"),
        F.mean("collected_delay_s").alias("mean_collected_delay_s"),
        F.mean("delay_s").alias("mean_delay_s"),
        F.percentile("delay_s", 0.95).alias("p95_delay_s"),
    )
    report = asked.select("subscription", "run", "protocol", "seed")
    report = report.join(there, "subscription", "left").join(found, "subscription", "left")
    report = report.fillna(0, ["wanted", "collected", "received"])
    return report.withColumns(
        {
            "completeness": F.when(F.col("wanted") > 0, F.col("collected") / F.col("wanted")),
            "delivery": F.when(F.col("wanted") > 0, F.col("received") / F.col("wanted")),
        }
    )
