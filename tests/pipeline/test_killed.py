"""A runner that is killed again and again, with all kinds of sources: its tables are those of an undisturbed one."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from serai.lab import load_scenario, simulate, write_run
from serai.pipeline import work as work_module
from serai.pipeline.hands import OnSpark, Work
from serai.pipeline.spool import line_of
from tests.effort import THOROUGH
from tests.pipeline.brokers import Mosquitto, field_with
from tests.pipeline.field import CONFIG, event, logs, make_field, put, rows_of, tables_of
from tests.pipeline.test_pipeline import once, outbox
from tests.spark.object_store import BUCKET

KILLS = 50 if THOROUGH else 3


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with closing(Mosquitto(tmp_path / "broker")) as running:
        yield running


class Field:
    """A field whose runner is killed, and one to which the same comes undisturbed."""

    def __init__(self, folder: Path, broker: Mosquitto, home: str) -> None:
        self.broker, self.home = broker, home
        self.killed = field_with(folder / "killed", broker, CONFIG.replace('"home"', f'"{home}"'))
        self.quiet = make_field(folder / "quiet")
        self.messages = 0

    def put(self, name: str, rows: list) -> None:
        for field in (self.killed, self.quiet):
            put(field.parent / "inbox", name, rows)

    def put_run(self) -> None:
        """A run folder: events, contacts, deliveries and subscriptions of a whole network."""
        small = ['duration="2 h"', "nodes.count=8", 'movement.width="300 m"', 'movement.height="300 m"']
        run = simulate(load_scenario("dpsp", small), seed=1)
        for field in (self.killed, self.quiet):
            write_run(run, field.parent / "inbox" / "run")

    def publish(self, draw: random.Random) -> None:
        """Messages, some of them once more; to the quiet field they come as a file."""
        seqs = [max(0, self.messages + draw.randint(-3, 1)) for _ in range(4)] + [self.messages]
        self.messages += 1
        rows = [event(4, seq, noise=9.0) for seq in seqs]
        self.broker.publish([json.dumps(row).encode() for row in rows])
        lines = "".join(line_of("field/a/events", json.dumps(row).encode()) for row in rows)
        (self.quiet.parent / "inbox" / f"message-{self.messages}.jsonl").write_text(lines)

    def run_until_killed(self, operations: int, seconds: float) -> bool:
        command = [sys.executable, "-m", "tests.pipeline.killed", str(self.killed), str(operations), str(seconds)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
        return done.returncode != 0

    def tables(self, home: Path | str) -> list:
        files = rows_of(home, "journal", "source", "name", "sha256", "rows", "state")
        return [
            rows_of(home, "events", "event", "node", "temperature", "time", "topic", "channel"),
            rows_of(home, "pairs", "event", "subscription"),
            rows_of(home, "contacts", "a", "b", "start_s", "end_s"),
            rows_of(home, "deliveries", "event", "node", "time_s"),
            [row for row in files if row[0] == "inbox" and not row[1].startswith("message")],
        ]

    def check(self) -> None:
        for field in (self.killed, self.quiet):
            assert once(field).waiting == 0
        home = self.home if "://" in self.home else self.killed.parent / self.home
        assert self.tables(home) == self.tables(self.quiet.parent / "home")
        assert set(outbox(self.killed.parent)) == set(outbox(self.quiet.parent))


LONG = pytest.mark.skipif(not THOROUGH, reason="long: make test-all")


@pytest.mark.parametrize("home", ["home", pytest.param(f"s3://{BUCKET}/field", marks=LONG)])
def test_killed_at_random_the_tables_are_those_of_an_undisturbed_run(
    tmp_path: Path, broker: Mosquitto, home: str, request: pytest.FixtureRequest
) -> None:
    if "://" in home:
        request.getfixturevalue("store")
    draw = random.Random(7)
    files = logs(draw, 3 * KILLS)
    field = Field(tmp_path, broker, home)
    once(field.killed)  # from now on the broker knows it
    died = restarted = 0
    for number in range(KILLS):
        for name, rows in files[3 * number : 3 * number + 3]:
            field.put(name, rows)
        field.publish(draw)
        if THOROUGH and number == KILLS // 2:  # its simulation is compiled first
            field.put_run()
        if draw.random() < 0.3 or number == 1:
            broker.close()
            broker.start()
            restarted += 1
        by_time = draw.random() < 0.3
        died += field.run_until_killed(
            10**9 if by_time else draw.randint(1, 700), draw.uniform(0.5, 6) if by_time else 600
        )
    print(f"{KILLS} rounds, {died} killed, {restarted} restarts of the broker")
    assert died >= KILLS // 3
    field.check()


def test_a_worker_killed_while_it_writes_leaves_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that it had begun is read by nobody, and gone when the run ends."""
    killed, quiet = make_field(tmp_path / "killed"), make_field(tmp_path / "quiet")
    for name, rows in logs(random.Random(2), 5):
        for field in (killed, quiet):
            put(field.parent / "inbox", name, rows)
    died, home = tmp_path / "died", tmp_path / "killed" / "home"
    each = OnSpark.each

    def dying(self: OnSpark, work: Work, count: int) -> list[dict[str, Any]]:
        def half(rows: Any, sink: Any) -> None:
            sink.write(b"half of it")
            sink.flush()
            died.write_text("".join(path.name for path in home.glob(".aside-*")))
            os.kill(os.getpid(), signal.SIGKILL)

        def work_until_killed(number: int) -> dict[str, Any]:
            if not died.exists():
                work_module._as_ipc = half  # of the worker's process, which does not live to use it twice
            return work(number)

        return each(self, work_until_killed, count)

    monkeypatch.setattr(OnSpark, "each", dying)
    once(killed, spark=spark)
    once(quiet)
    assert died.read_text().startswith(".aside-")
    assert tables_of(home) == tables_of(tmp_path / "quiet" / "home")
    assert not list(home.rglob(".aside-*"))
