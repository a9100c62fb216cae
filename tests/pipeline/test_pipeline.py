"""From an inbox to tables, an outbox and a page: nothing lost, nothing twice, whatever comes and in whatever order."""

import json
import random
import sqlite3
import threading
from pathlib import Path

import pytest

from serai.core.errors import BadInput, CannotRun
from serai.matching.landing import Landing
from serai.pipeline.config import load_pipeline
from serai.pipeline.replay import days_of
from serai.pipeline.reports import status_of
from serai.pipeline.run import Progress, match_again, retry, run, run_once
from serai.pipeline.tables import Tables
from serai.spark.places import alone_in
from serai.spark.stores import Folder
from tests.effort import THOROUGH
from tests.pipeline.field import CONFIG, NOW, SUBSCRIPTIONS, event, logs, make_field, put, rows_of
from tests.spark.cluster import until


def once(field: Path, **options):
    return run_once(load_pipeline(field), now=lambda: NOW, **options)


def outbox(folder: Path) -> list[str]:
    lines = [line for path in sorted((folder / "outbox").glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [json.loads(line)["message"] for line in lines]


def test_every_format_repeats_gaps_and_bad_files(tmp_path: Path) -> None:
    field = make_field(tmp_path)
    inbox = tmp_path / "inbox"
    put(inbox, "a.csv", [event(1, 1), event(1, 2), event(1, 2)])
    put(inbox, "b.jsonl", [event(1, 2), event(1, 5, noise=9.0), {"node": "n1", "temp": 3.0}])
    put(inbox, "c.parquet", [event(2, 1), event(2, 2)])
    put(inbox, "d.sqlite", [event(3, 1), event(3, 2)])
    (inbox / "broken.parquet").write_bytes(b"PAR1 and no more")
    (inbox / "empty.csv").touch()
    status = once(field)
    assert (status.files, status.events, status.repeated, status.rejected) == (6, 7, 2, 1)
    assert sorted(each["name"] for each in status.quarantined) == ["broken.parquet", "empty.csv"]
    nodes = {node.node: node for node in status.nodes}
    assert (nodes["n1"].arrived, nodes["n1"].missing, nodes["n1"].gaps) == (3, 2, ("1:3-4",))
    assert (nodes["n2"].missing, nodes["n2"].gaps) == (0, ())
    events = rows_of(tmp_path / "home", "events", "event", "temperature")
    assert [name for name, _ in events] == ["n1/1/1", "n1/1/2", "n1/1/5", "n2/1/1", "n2/1/2", "n3/1/1", "n3/1/2"]
    cold = [(name, "cold") for name, temperature in events if temperature < 5]
    loud = [("n1/1/5", "loud"), ("n2/1/1", "loud"), ("n2/1/2", "loud")]
    assert rows_of(tmp_path / "home", "pairs", "event", "subscription") == sorted(cold + loud)
    assert sorted(outbox(tmp_path)) == sorted(f"{one}>{other}" for one, other in cold + loud)
    assert any("n1 lacks 40% of its events: 1:3-4" in alert for alert in status.alerts)
    assert "2 files in quarantine" in status.alerts
    assert "n1 lacks 40%" in (tmp_path / "home" / "report.html").read_text()
    assert once(field).batches == 1  # nothing new, nothing done

    put(inbox, "a.csv", [event(1, 1), event(1, 3), event(1, 4, wind=2.5)])  # again under its name, with a new column
    put(inbox, "odd.parquet", [event(2, 3) | {"temp": "warm"}])
    again = once(field)
    assert (again.batches, again.events, again.repeated) == (2, 10, 3)
    assert {node.node: node.missing for node in again.nodes} == {"n1": 0, "n2": 0, "n3": 0}
    assert ("n2/1/3", 'temperature: "warm" is no double') in rows_of(tmp_path / "home", "rejects", "id", "reason")
    assert "wind" in Tables(Folder(tmp_path / "home")).known_columns().names

    (tmp_path / "subscriptions.csv").write_text(SUBSCRIPTIONS + "odd,temprature < 5\n")
    for number in range(2):
        put(inbox, f"later-{number}.csv", [event(3, 10 + number)])
        once(field)
    of_table = [row for row in rows_of(tmp_path / "home", "rejects", "id", "reason", "batch") if row[0] == "odd"]
    reason = 'unknown attribute "temprature"; did you mean "temperature"?, at character 1'
    assert of_table == [("odd", reason, 2)]  # once, not with every batch


def test_quarantined_files_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    field = make_field(tmp_path)
    (tmp_path / "inbox" / "log.bin").write_text("node,epoch,seq,seen,temp\nn1,1,1,2026-11-01,3\n")
    assert len(once(field).quarantined) == 1
    monkeypatch.setattr(Landing, "of", _as_csv)  # a later version knows the format
    assert retry(load_pipeline(field)) == 1
    status = once(field)
    assert (status.events, status.quarantined) == (1, ())


def test_a_new_subscription_over_old_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    field = make_field(tmp_path)
    for number in range(3):  # a batch each, events 0 to 71 h after BEGIN, that is on three days
        put(tmp_path / "inbox", f"{number}.csv", [event(1, 24 * number + hour) for hour in range(24)])
        once(field)
    before = rows_of(tmp_path / "home", "pairs", "event", "subscription")
    (tmp_path / "subscriptions.csv").write_text(SUBSCRIPTIONS + "warm,temperature > 6\n")
    days = days_of("2026-11-01..02")
    append = Tables.append

    def crash(self, name, *rest):  # once, after the pairs
        if name == "journal":
            raise RuntimeError("the power went")
        append(self, name, *rest)

    with monkeypatch.context() as broken:
        broken.setattr(Tables, "append", crash)
        with pytest.raises(RuntimeError):
            match_again(load_pipeline(field), days, now=lambda: NOW)
    assert rows_of(tmp_path / "home", "pairs", "event", "subscription") == before
    (tmp_path / "subscriptions.csv").write_text(SUBSCRIPTIONS)  # too late for what was planned
    status = once(field)
    # n1 makes its events a minute after the hour: the first 48 are of these two days.
    warm = {(f"n1/1/{seq}", "warm") for seq in range(48) if event(1, seq)["temp"] > 6}
    after = rows_of(tmp_path / "home", "pairs", "event", "subscription")
    assert len(warm) > 3
    assert set(after) - set(before) == warm
    assert len(after) == len(set(after)) == status.pairs
    assert sorted(outbox(tmp_path)) == sorted(f"{one}>{other}" for one, other in after)
    match_again(load_pipeline(field), days, now=lambda: NOW)
    assert len(rows_of(tmp_path / "home", "pairs", "event", "subscription")) == len(after)
    assert status.files == 3


def _as_csv(self, copy):
    return next(iter(self.by_content.values()))._replace(format="csv")


@pytest.mark.parametrize("seed", range(10 if THOROUGH else 1))
def test_any_order_and_repetition_gives_the_same_tables(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    files = logs(draw, 8)
    answers = []
    for turn in range(2):
        field = make_field(tmp_path / str(turn))
        shuffled = files + draw.sample(files, 3)
        draw.shuffle(shuffled)
        for number, (name, rows) in enumerate(shuffled):
            put(tmp_path / str(turn) / "inbox", f"{number}-{name}", draw.sample(rows, len(rows)))
            if draw.random() < 0.3:
                once(field)
        once(field)
        home = tmp_path / str(turn) / "home"
        answers.append(
            [rows_of(home, "events", "event", "temperature", "time"), rows_of(home, "pairs", "event", "subscription")]
        )
        assert len(outbox(tmp_path / str(turn))) == len(answers[-1][1])
    assert answers[0] == answers[1]
    assert {name for name, *_ in answers[0][0]} == {
        f"{row['node']}/1/{row['seq']}" for _, rows in files for row in rows
    }


def test_a_crash_between_the_tables_is_made_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    field = make_field(tmp_path)
    put(tmp_path / "inbox", "a.jsonl", [event(1, 1, noise=9.0), event(2, 1)])
    add = Tables.add
    for crash in ("plans", "events", "pairs", "journal"):

        def fail(self, name, *rest, crash=crash):
            if name == crash:
                raise RuntimeError("the power went")
            add(self, name, *rest)

        monkeypatch.setattr(Tables, "add", fail)
        with pytest.raises(RuntimeError):
            once(field)
        assert Tables(Folder(tmp_path / "home")).read("pairs").num_rows == 0  # nothing is shown before the journal
        if crash != "plans":
            (tmp_path / "subscriptions.csv").write_text("subscription,where\nother,temperature > -1\n")  # too late
    monkeypatch.setattr(Tables, "add", add)
    status = once(field)
    assert (status.batches, status.events) == (1, 2)
    assert {name for name, _ in status.subscriptions} <= {"cold", "loud"}
    assert len(rows_of(tmp_path / "home", "events", "event")) == 2


def test_a_runner_that_goes_on_takes_what_arrives_and_waits_for_its_store(
    tmp_path: Path, spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under Structured Streaming, with two sources, while the store is away for a moment."""
    config = CONFIG.replace(
        '{kind = "folder", path = "inbox"}', '{kind = "folder", path = "inbox"}, {kind = "folder", path = "more"}'
    )
    field = make_field(tmp_path, config)
    (tmp_path / "more").mkdir()
    monkeypatch.setattr("serai.pipeline.run._AGAIN_S", 0.2)
    monkeypatch.setattr("serai.pipeline.run._PAGE_S", 0.0)
    away = threading.Event()
    write = Folder.write

    def refuse(self, name, data):
        if away.is_set():
            raise OSError(5, "Input/output error", name)
        write(self, name, data)

    monkeypatch.setattr(Folder, "write", refuse)
    said: list[str] = []

    class Says(Progress):
        def on_trouble(self, words):
            said.append(words)

    def kept() -> int:
        return status_of(load_pipeline(field), NOW).events

    stop = threading.Event()
    running = threading.Thread(target=run, args=(load_pipeline(field), spark, Says(), 0.1, stop))
    running.start()
    try:
        put(tmp_path / "inbox", "a.csv", [event(1, 1, noise=9.0)])
        put(tmp_path / "more", "a.csv", [event(2, 1), event(1, 1)])
        until(lambda: kept() == 2, "what came is there")
        away.set()
        put(tmp_path / "more", "b.csv", [event(2, 2)])
        until(lambda: bool(said), "the store is missed")
        away.clear()
        until(lambda: kept() == 3 and len(outbox(tmp_path)) == 3, "it goes on")
    finally:
        stop.set()
        running.join()
    assert rows_of(tmp_path / "home", "events", "event") == [("n1/1/1",), ("n2/1/1",), ("n2/1/2",)]
    assert all("Input/output error" in words for words in said)
    assert "n2" in (tmp_path / "home" / "report.html").read_text()


def test_a_database_that_was_being_written_is_set_aside(tmp_path: Path) -> None:
    field = make_field(tmp_path)
    inbox = tmp_path / "inbox"
    put(inbox, "closed.sqlite", [event(1, 1)])
    with sqlite3.connect(inbox / "open.sqlite", isolation_level=None) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("create table events (node, epoch, seq, seen, temp)")
        database.execute("insert into events values ('n2', 1, 1, '2026-11-01', 3.0)")
        status = once(field)
    assert [(each["name"], "journal beside it" in each["reason"]) for each in status.quarantined] == [
        ("open.sqlite", True)
    ]
    assert (status.files, status.events) == (2, 1)  # what belongs to a database is no file of its own
    database.close()  # puts the journal into the file
    assert once(field).events == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("home = ", "hom = "), ["hom: unknown key; did you mean", "home: missing"]),
        (('kind = "folder"', 'kind = "ftp"'), ["source: write {kind ="]),
        (('"folder:outbox"', '"outbox"'), ["deliver:"]),
        (('"5 d"', '"5 parsecs"'), ["alerts:"]),
        (('["node", "epoch", "seq"]', '["node"]*2'), ["field.toml"]),
        (("spark = false", 'spark = "yes"'), ["spark: write spark ="]),
        (('"home"', '"hdfs://name/field"'), ["hdfs://name/field: neither a folder nor one of: s3://"]),
    ],
)
def test_a_bad_file_is_refused_with_all_that_is_wrong(
    tmp_path: Path, change: tuple[str, str], words: list[str]
) -> None:
    field = make_field(tmp_path, CONFIG.replace(*change))
    with pytest.raises(BadInput) as caught:
        load_pipeline(field)
    assert all(word in str(caught.value) for word in words)
    assert not (tmp_path / "home").exists()


def test_two_runners_are_kept_apart(tmp_path: Path) -> None:
    field = make_field(tmp_path)
    (tmp_path / "home").mkdir()
    with alone_in(tmp_path / "home"), pytest.raises(CannotRun, match="another serai is at work"):
        once(field)


def test_ids_without_numbers(tmp_path: Path) -> None:
    field = make_field(tmp_path, CONFIG.replace('["node", "epoch", "seq"]', '"key"'))
    rows = [{"key": f"k{number}", "seen": "2026-11-01T00:00:00Z", "temp": 1.0} for number in range(3)]
    put(tmp_path / "inbox", "a.jsonl", rows)
    put(tmp_path / "inbox", "b.parquet", [*rows[1:], {"key": "k9", "seen": "2026-11-01T00:00:00Z", "temp": 1.0}])
    status = once(field)
    assert (status.events, status.repeated, status.nodes) == (4, 2, ())


def test_on_spark_the_tables_are_the_same(spark, tmp_path: Path) -> None:
    files = logs(random.Random(2), 5)
    answers = []
    for name, options in (("here", {}), ("there", {"spark": spark})):
        field = make_field(tmp_path / name)
        for each, rows in files:
            put(tmp_path / name / "inbox", each, rows)
        once(field, **options)
        home = tmp_path / name / "home"
        answers.append(
            [rows_of(home, "events", "event", "temperature", "time"), rows_of(home, "pairs", "event", "subscription")]
        )
    assert answers[0] == answers[1]
    assert len(answers[0][1]) > 5
