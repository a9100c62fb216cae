"""A home in an object store: the tables are those of a folder, whoever dies and whoever is away."""

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from serai.cli import execute
from serai.core.errors import BadInput, CannotRun
from serai.pipeline.config import load_pipeline
from serai.pipeline.replay import days_of
from serai.pipeline.run import Progress, _Work, match_again, retry, run
from serai.pipeline.tables import Tables
from serai.spark import leases
from serai.spark.stores import store_at
from tests.effort import THOROUGH
from tests.pipeline.field import CONFIG, NOW, SUBSCRIPTIONS, event, logs, make_field, put, rows_of, tables_of
from tests.pipeline.test_clocks import files_of_a_field
from tests.pipeline.test_pipeline import once, outbox
from tests.spark.cluster import until
from tests.spark.object_store import BUCKET, Stand

HOME = f"s3://{BUCKET}/field"
THERE = CONFIG.replace('"home"', f'"{HOME}"')
LONG = pytest.mark.skipif(not THOROUGH, reason="some seconds: make test-all")
pytestmark = pytest.mark.usefixtures("store")


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    """The same pipeline with its home in a folder, and in a bucket."""
    return make_field(tmp_path / "here"), make_field(tmp_path / "there", THERE)


def put_both(both: tuple[Path, Path], name: str, rows: list) -> None:
    for field in both:
        put(field.parent / "inbox", name, rows)


def test_all_is_as_in_a_folder(both: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    for number, (name, rows) in enumerate(logs(random.Random(4), 8)):
        put_both(both, name, rows)
        if number % 3 == 0:
            for field in both:
                once(field)
    for name, rows in files_of_a_field():  # with clocks that are off
        put_both(both, name, rows)
    for field in both:
        (field.parent / "inbox" / "torn.parquet").write_bytes(b"PAR1 torn")
    here, there = (once(field) for field in both)
    assert here.as_dict() | {"receivers": ()} == there.as_dict() | {"receivers": ()}
    assert tables_of(both[0].parent / "home") == tables_of(HOME)
    clocks = [rows_of(home, "clocks", "node", "epoch", "clock", "offset_s") for home in (both[0].parent / "home", HOME)]
    assert clocks[0] == clocks[1]
    assert ("n1", "1", "corrected", -3600.0) in clocks[1]
    assert outbox(both[0].parent) == outbox(both[1].parent)
    assert not (both[1].parent / "home").exists()
    place = store_at(HOME)
    assert place.names("landed") == place.names("work") == []
    assert place.names("quarantine")[0].endswith("torn.parquet")
    assert b"Field report" in place.read("report.html")
    assert retry(load_pipeline(both[1])) == 1
    assert len(once(both[1]).quarantined) == 1
    assert execute(["pipeline", "status", str(both[1]), "--json"]) == 1  # an alert is on
    assert json.loads(capsys.readouterr().out)["events"] == here.events


def test_past_days_are_matched_anew_and_others_read_the_tables(both: tuple[Path, Path]) -> None:
    put_both(both, "a.csv", [event(1, seq) for seq in range(48)])
    for field in both:
        once(field)
        (field.parent / "subscriptions.csv").write_text(SUBSCRIPTIONS + "warm,temperature > 6\n")
        match_again(load_pipeline(field), days_of("2026-11-01..02"), now=lambda: NOW)
    assert tables_of(both[0].parent / "home") == tables_of(HOME)
    assert len(pl.read_delta(f"{HOME}/tables/events")) == 48


@LONG
def test_on_spark(both: tuple[Path, Path]) -> None:
    for name, rows in logs(random.Random(9), 5):
        put_both(both, name, rows)
    once(both[0])
    both[1].write_text(THERE.replace("spark = false", 'spark = {master = "local[2]"}'))
    command = [sys.executable, "-m", "serai", "pipeline", "run", str(both[1]), "--once"]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert tables_of(both[0].parent / "home") == tables_of(HOME)


@pytest.mark.parametrize("moment", ["before it writes its own", "before it commits its own"])
def test_of_two_that_plan_the_same_batch_one_goes_on(
    both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Should both be at work in spite of the lease: while the second plans, the first does all its work."""
    config = load_pipeline(both[1])
    put_both(both, "a.csv", [event(1, 1)])
    first, second = (_Work(config, None, Progress(), lambda: NOW) for _ in range(2))
    first.land()
    second.land()
    where, name = (Tables, "append") if "writes" in moment else (DeltaTable, "create_write_transaction")
    original = getattr(where, name)

    def meanwhile(self, *rest, **more):
        monkeypatch.setattr(where, name, original)
        put_both(both, "b.csv", [event(1, 2)])
        first.land()
        first.do_pending()
        return original(self, *rest, **more)

    monkeypatch.setattr(where, name, meanwhile)
    with pytest.raises(CannotRun, match=r"another serai has (begun|added) batch 0"):
        second.do_pending()
    for each in both:
        once(each)
    assert tables_of(both[0].parent / "home") == tables_of(HOME)


@LONG
def test_a_store_that_is_away_is_waited_for(
    both: tuple[Path, Path],
    store: Stand,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("serai.pipeline.run._AGAIN_S", 0.2)
    monkeypatch.setattr(leases, "_BEAT_S", 0.5)
    said: list[str] = []

    class Says(Progress):
        def on_trouble(self, words: str) -> None:
            said.append(words)

    config, stop = load_pipeline(both[1]), threading.Event()
    put_both(both, "a.csv", [event(1, seq) for seq in range(5)])
    running = threading.Thread(target=run, args=(config, None, Says(), 0.1, stop))
    running.start()
    try:
        until(lambda: Tables(config.home).last_batch() == 0, "what came is there")
        store.stop()
        put_both(both, "b.csv", [event(1, seq) for seq in range(3, 9)])
        until(lambda: bool(said), "the store is missed")
        store.start()
        until(lambda: Tables(config.home).last_batch() == 1, "it goes on")
    finally:
        stop.set()
        running.join()
    once(both[0])
    assert tables_of(both[0].parent / "home") == tables_of(HOME)
    assert [words for words in said if not words.startswith(f"{HOME}: cannot be reached")] == []


@LONG
def test_once_a_store_that_is_away_is_one_sentence(
    both: tuple[Path, Path],
    store: Stand,
    capsys: pytest.CaptureFixture[str],
) -> None:
    put_both(both, "a.csv", [event(1, 1)])
    once(both[1])
    store.stop()
    assert execute(["pipeline", "run", str(both[1]), "--once"]) == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"{HOME}: cannot be reached")
    store.start()


def test_sources_in_a_store(both: tuple[Path, Path], store: Stand, tmp_path: Path) -> None:
    """What lies in a bucket is landed as from a folder: hidden files, old names again, torn files, open databases."""
    here, there = both
    there.write_text(CONFIG.replace('path = "inbox"', f'path = "s3://{BUCKET}/inbox"'))
    bucket = store.bucket()
    put_both(both, "a.csv", [event(1, 1), event(1, 2)])
    put_both(both, "deeper.sqlite", [event(2, 1)])
    (here.parent / "inbox" / "torn.parquet").write_bytes(b"PAR1 torn")

    def upload() -> None:
        for path in sorted((here.parent / "inbox").iterdir()):
            bucket.put_object(Key=f"inbox/{'sub/' if 'deeper' in path.name else ''}{path.name}", Body=path.read_bytes())

    upload()
    for hidden in (".a.csv", "_tmp/b.csv", "c.csv/", "torn.db-wal"):
        bucket.put_object(Key=f"inbox/{hidden}", Body=b"" if hidden.endswith("/") else b"node,epoch,seq\nn9,1,1\n")
    assert (once(here).events, once(there).events) == (3, 3)
    assert [each["name"] for each in once(there).quarantined] == ["torn.parquet"]
    assert once(there).batches == 1  # nothing new
    put_both(both, "a.csv", [event(1, 1), event(1, 2), event(1, 3)])  # again under its name, with a row more
    upload()
    bucket.put_object(Key="inbox/open.sqlite", Body=(here.parent / "inbox" / "deeper.sqlite").read_bytes() + b" ")
    bucket.put_object(Key="inbox/open.sqlite-wal", Body=b"rows that are not in the file")
    once(here)
    status = once(there)
    assert (status.events, status.files) == (4, 5)
    assert any("copied while it was written" in each["reason"] for each in status.quarantined)
    of_tables = [tables_of(each.parent / "home")[:2] for each in both]
    assert of_tables[0] == of_tables[1]


def test_a_source_that_is_away_does_not_keep_the_others_waiting(both: tuple[Path, Path], store: Stand) -> None:
    there = both[1]
    away = '[{kind = "folder", path = "s3://no-such-bucket/x"}, {kind = "folder", path = "inbox"}]'
    there.write_text(CONFIG.replace('[{kind = "folder", path = "inbox"}]', away))
    put_both(both, "a.csv", [event(1, 1)])
    said: list[str] = []

    class Says(Progress):
        def on_trouble(self, words: str) -> None:
            said.append(words)

    assert once(there, progress=Says()).events == 1
    assert len(said) == 1
    assert said[0].startswith("s3://no-such-bucket/x: cannot be read (")
    assert said[0].endswith("left out until it can")
    there.write_text(CONFIG.replace('path = "inbox"', 'path = "ftp://x/y"'))
    with pytest.raises(BadInput, match=r"source.path: ftp://x/y: neither a folder nor one of"):
        load_pipeline(there)
