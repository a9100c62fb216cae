"""From the network to the answer: what subscribers brought home, without repeats, matched, and a report on each.

This is what a deployment would run every night. Runs come from `serai run --out`; a field's own logs will do as well.
An event counts as collected when any subscriber received it: whoever comes home brings it to all.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everywhere

from serai.core.errors import BadInput
from serai.log.folder import RUN_FILE, read_description
from serai.matching import tables
from serai.matching.match import match
from serai.spark.sources import register_sources, runs_in

_NEEDED = ("events", "subscriptions", "receptions")
_MARK = "collect.json"


@dataclass(frozen=True)
class Collected:
    """What a collection found, over all runs."""

    runs: int
    receptions: int
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
    place = Path(out).absolute()
    signature = _signature(Path(folder))
    if (place / _MARK).is_file():
        before = json.loads((place / _MARK).read_text(encoding="utf-8"))
        if before["signature"] == signature:
            return Collected(**before["collected"] | {"changed": False})
    elif place.exists() and any(place.iterdir()):
        raise BadInput(f"{out}: the folder is not empty, and no collection; choose a new name, or remove it first")
    with tables.aside(place) as aside:
        made = aside / "made"
        collected = _collect(spark, Path(folder).absolute(), made)
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
    for run in runs:
        if lacking := [name for name in _NEEDED if name not in read_description(run)["tables"]]:
            raise BadInput(f"{run}: a run without the table {lacking[0]} cannot be collected")
    whole = hashlib.sha256()
    for run in runs:
        whole.update(f"{run.relative_to(folder).as_posix()}\0".encode() + (run / RUN_FILE).read_bytes())
    return whole.hexdigest()


def _collect(spark: SparkSession, folder: Path, made: Path) -> Collected:
    register_sources(spark)
    born, asked, receptions = (
        spark.read.format("serai-log").option("table", table).load(str(folder)) for table in _NEEDED
    )
    born = with_id(born, "event")
    asked = only_of_its_run(with_id(asked, "subscriber", "subscription"))
    received = with_id(with_id(receptions, "event"), "subscriber", "subscription").cache()
    first_home = received.groupBy("event").agg(F.min("time_s").alias("collected_s"), F.count("*").alias("copies"))
    events = born.join(first_home, "event").cache()
    wanted = match(born, asked).cache()
    pairs = with_times(wanted, events, received)
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
        receptions=received.count(),
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


def with_id(rows: DataFrame, number: str, name: str | None = None) -> DataFrame:
    """The rows with an id that is unique over all runs, `run/number`, in place of the number."""
    unique = F.concat_ws("/", "run", F.col(number).cast("string"))
    return (
        rows.withColumn(name or number, unique)
        if name in (None, number)
        else rows.withColumn(name, unique).drop(number)
    )


def only_of_its_run(subscriptions: DataFrame) -> DataFrame:
    """The subscriptions, which want events of their own run only."""
    run = F.replace("run", F.lit("'"), F.lit("''"))
    return subscriptions.select(
        "subscription",
        "run",
        "protocol",
        "seed",
        F.concat("where", F.lit(" and run = '"), run, F.lit("'")).alias("where"),
    )


def with_times(wanted: DataFrame, events: DataFrame, received: DataFrame) -> DataFrame:
    """The pairs of collected events: when somebody brought the event home, and when the subscriber itself had it."""
    own = received.select("event", "subscription", F.col("time_s").alias("received_s"))
    home = events.select("event", "time_s", "collected_s")
    pairs = wanted.join(home, "event").join(own, ["event", "subscription"], "left")
    return pairs.select(
        "event",
        "subscription",
        "time_s",
        "collected_s",
        "received_s",
        (F.col("collected_s") - F.col("time_s")).alias("collected_delay_s"),
        (F.col("received_s") - F.col("time_s")).alias("delay_s"),
    )


def per_subscription(asked: DataFrame, wanted: DataFrame, pairs: DataFrame) -> DataFrame:
    """For each subscription: events it wants, those collected and those it received itself, and the delays."""
    there = wanted.groupBy("subscription").agg(F.count("*").alias("wanted"))
    found = pairs.groupBy("subscription").agg(
        F.count("*").alias("collected"),
        F.count("received_s").alias("received"),
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
