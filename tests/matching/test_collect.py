"""Run folders as a source of Spark, and what subscribers brought home."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from serai import load_scenario, measure, simulate, write_run
from serai.core.errors import BadInput
from serai.matching.collect import collect
from serai.spark.sources import register_sources

SMALL = ["sensors.count=12", "subscribers.count=3", 'field.width="60 m"', 'field.height="60 m"', 'duration="10 min"']


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    folder = tmp_path_factory.mktemp("runs")
    made = [simulate(load_scenario("dg", overrides=SMALL), seed=seed) for seed in (1, 2)]
    for run in made:
        write_run(run, folder / "dg" / f"seed-{run.seed}")
    return folder, made


@pytest.fixture
def log(spark: SparkSession) -> Any:
    register_sources(spark)
    return spark.read.format("serai-log")


def test_tables_of_all_runs(log: Any, runs: tuple[Path, list[Any]]) -> None:
    folder, made = runs
    events = log.load(str(folder))
    assert events.columns == [
        *("run", "protocol", "seed", "event", "node", "time_s", "channel", "A1", "A2"),
        *("size_bytes", "lifetime_s", "target", "transmissions"),
    ]
    rows = events.where("seed = 2").orderBy("event").collect()
    assert [row.A1 for row in rows] == made[1].world.event_values[:, 0].tolist()
    assert {(row.run, row.protocol) for row in rows} == {("dg/seed-2", "dg")}
    roles = log.option("table", "nodes").load(str(folder / "dg" / "seed-1")).groupBy("role").count().collect()
    assert sorted(map(tuple, roles)) == [("sensor", 12), ("subscriber", 3)]


def test_attributes_that_are_texts_are_texts(log: Any, runs: tuple[Path, list[Any]], tmp_path: Path) -> None:
    readings = [(10 * n, n, site, n) for n, site in enumerate(["north", "", "São", "north"])]
    lines = ["time,sensor,site,level", *(",".join(map(str, row)) for row in readings)]
    (tmp_path / "readings.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "mine.toml").write_text('[events]\nfile = "readings.csv"\n[subscriptions]\nwhere = ["level > ?"]\n')
    write_run(simulate(load_scenario(tmp_path / "mine.toml", protocol="dg"), seed=1), tmp_path / "kept" / "texts")
    rows = log.load(str(tmp_path / "kept")).orderBy("event").collect()
    assert [row.site for row in rows] == ["north", None, "São", "north"]
    write_run(runs[1][0], tmp_path / "kept" / "numbers")
    rows = log.load(str(tmp_path / "kept")).orderBy("run", "event").collect()
    assert {(row.run, row.site is None, row.A1 is None) for row in rows} == {
        *(("numbers", True, False), ("texts", False, True), ("texts", True, True)),
    }


def test_filters_decide_which_folders_are_opened(log: Any, runs: tuple[Path, list[Any]], tmp_path: Path) -> None:
    folder, made = runs
    broken = tmp_path / "runs"
    for seed in (1, 2):
        (broken / f"{seed}").mkdir(parents=True)
        for file in (folder / "dg" / f"seed-{seed}").iterdir():
            (broken / f"{seed}" / file.name).write_bytes(file.read_bytes())
    (broken / "2" / "events.parquet").write_bytes(b"broken")
    assert log.load(str(broken)).where("seed = 1 and protocol in ('dg', 'ced')").count() == len(
        made[0].world.event_sensor
    )


def test_a_stream_of_runs(spark: SparkSession, log: Any, runs: tuple[Path, list[Any]], tmp_path: Path) -> None:
    folder, made = runs
    stream = spark.readStream.format("serai-log").load(str(folder))
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    for _ in range(2):  # the second time nothing is new
        query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
        query.awaitTermination()
    assert spark.read.parquet(str(tmp_path / "out")).count() == sum(len(run.world.event_sensor) for run in made)


@pytest.mark.parametrize(
    ("table", "place", "words"),
    [
        ("event", "", 'did you mean "events"'),
        ("events", "nowhere", "no such folder"),
        ("events", "empty", "no run in it"),
    ],
)
def test_bad_sources_are_refused(log: Any, runs: tuple[Path, list[Any]], table: str, place: str, words: str) -> None:
    folder, _ = runs
    (folder.parent / "empty").mkdir(exist_ok=True)
    with pytest.raises(Exception, match=words):
        log.option("table", table).load(str(folder.parent / place if place else folder)).count()


def test_what_was_collected_is_what_the_metrics_say(
    spark: SparkSession, runs: tuple[Path, list[Any]], tmp_path: Path
) -> None:
    folder, made = runs
    out = tmp_path / "home"
    collected = collect(spark, folder, out)
    metrics = [measure(run) for run in made]
    report = pq.read_table(out / "report").to_pylist()
    for run, measured in zip(made, metrics, strict=True):
        mine = [row for row in report if row["seed"] == run.seed]
        assert sum(row["wanted"] for row in mine) == measured.wanted_pairs
        assert sum(row["received"] for row in mine) == measured.delivered_pairs
        delays = sum(row["mean_delay_s"] * row["received"] for row in mine if row["received"])
        assert delays / measured.delivered_pairs == pytest.approx(measured.mean_delay_s)
    assert collected.deliveries == sum(measured.receptions for measured in metrics)
    assert collected.events == sum(len(set(run.ledger.reception_event.tolist())) for run in made)
    assert collected.wanted == sum(measured.wanted_pairs for measured in metrics)
    assert collected.pairs == len(pq.read_table(out / "pairs")) >= sum(row["received"] for row in report)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    again = collect(spark, folder, out)
    assert not again.changed
    assert again.pairs == collected.pairs
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


KINDS = {
    "field": ("ced", SMALL),
    "overlay": ("tinymq", ["nodes.count=40", "field.width=80 m", "field.height=40 m", "roots.count=2",
                           "events.count=100", "subscriptions.count=20", "subscriptions.widest=1.0"]),
    "channels": ("dpsp", ["duration=20 min", "nodes.count=12", "movement.width=120 m", "movement.height=120 m",
                          "bundles.quiet=0 s", "subscriptions.spread=10 min", "subscriptions.length=5 min"]),
    "ranges": ("flooding", ["duration=20 min", "nodes.count=12", "movement.width=120 m", "movement.height=120 m",
                            "bundles.quiet=0 s", "subscriptions.where=A1 < ? and A2 < ?"]),
}  # fmt: skip


def test_runs_of_all_kinds_side_by_side(spark: SparkSession, tmp_path: Path) -> None:
    """Of each kind the pairs that its own metrics count, from the tables that all of them have."""
    made = {name: simulate(load_scenario(which, changes), seed=1) for name, (which, changes) in KINDS.items()}
    for name, run in made.items():
        write_run(run, tmp_path / "runs" / f"{name}'s")
    collected = collect(spark, tmp_path / "runs", tmp_path / "home")
    report = pq.read_table(tmp_path / "home" / "report").to_pylist()
    for name, run in made.items():
        measured = measure(run)
        mine = [row for row in report if row["run"] == f"{name}'s"]
        assert len(mine) == len(run.tables["subscriptions"])
        assert sum(row["wanted"] for row in mine) == measured.wanted_pairs > 0, name
        assert sum(row["received"] for row in mine) == measured.delivered_pairs > 0, name
        if name != "overlay":
            delays = sum(row["mean_delay_s"] * row["received"] for row in mine if row["received"])
            assert delays / measured.delivered_pairs == pytest.approx(measured.mean_delay_s), name
        else:
            assert {row["mean_delay_s"] for row in mine} == {None}
    assert collected.runs == 4
    assert collected.deliveries == sum(len(run.tables["deliveries"]) for run in made.values())


def test_a_folder_with_something_else_in_it_is_left_alone(
    spark: SparkSession, runs: tuple[Path, list[Any]], tmp_path: Path
) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(BadInput, match="not empty"):
        collect(spark, runs[0], tmp_path)


def test_traces_of_contacts_and_of_positions(spark: SparkSession, tmp_path: Path) -> None:
    register_sources(spark)
    read = spark.read.format("serai-trace")
    for name in ("monday", "tuesday"):
        (tmp_path / "met").mkdir(exist_ok=True)
        (tmp_path / "met" / name).write_text("0 CONN 1 2 up\n5 CONN 1 2 down\n3 CONN 2 3 up\n9 CONN 2 3 down\n")
    met = read.load(str(tmp_path / "met"))
    assert met.columns == ["trace", "a", "b", "start_s", "end_s"]
    tuesday = sorted(map(tuple, met.where("trace = 'tuesday'").collect()))
    assert tuesday == [("tuesday", "1", "2", 0.0, 5.0), ("tuesday", "2", "3", 3.0, 9.0)]
    (tmp_path / "moved").write_text("0 10 0 100 0 100 0 0\n0 a 1 2\n5 a 3 4\n")
    moved = read.option("form", "one-movement").load(str(tmp_path / "moved"))
    assert sorted(map(tuple, moved.collect())) == [("moved", "a", 0.0, 1.0, 2.0), ("moved", "a", 5.0, 3.0, 4.0)]
