"""The store: what it refuses to open, what order words are said in, a disk that is full, and quotas of its log."""

import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from serai.core.errors import BadInput, CannotRun
from serai.node.schema import STATEMENTS, VERSION
from serai.node.store import Store, Writer
from serai.node.words import Effects, Row, joined

EPOCH = b"12345678"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node.db"


def logged(number: int) -> Effects:
    return Effects((("log", (float(number), 0, "", None, None, None, None, None)),), (number,))


def test_a_new_store_is_whole_and_keeps_its_epoch(path: Path) -> None:
    Store.open(path, EPOCH).close()
    store = Store.open(path, b"another!")
    assert store.saved().meta == {"epoch": EPOCH}
    assert list(path.parent.glob("*.new*")) == []
    store.close()


def test_one_store_has_one_node(path: Path) -> None:
    store = Store.open(path, EPOCH)
    with pytest.raises(CannotRun, match="another node has this store open"):
        Store.open(path, EPOCH)
    store.close()
    Store.open(path, EPOCH).close()


def test_a_newer_store_is_refused_and_left_as_it_is(path: Path) -> None:
    Store.open(path, EPOCH).close()
    change = sqlite3.connect(path)
    change.execute(f"PRAGMA user_version = {VERSION + 1}")
    change.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    change.close()
    before = path.read_bytes()
    with pytest.raises(BadInput, match=f"version {VERSION + 1}, this serai knows {VERSION}"):
        Store.open(path, EPOCH)
    assert path.read_bytes() == before


@pytest.mark.parametrize("harm", ["empty", "foreign", "header", "pages"])
def test_a_damaged_store_is_never_replaced_by_an_empty_one(path: Path, harm: str) -> None:
    store = Store.open(path, EPOCH)
    store.commit([logged(number) for number in range(2000)])
    store.close()
    whole = path.read_bytes()
    if harm == "foreign":
        path.unlink()
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE mine(x)")
        other.close()
    else:
        damaged = {
            "empty": b"",
            "header": b"x" * 100 + whole[100:],
            "pages": whole[:4096] + b"\xff" * (len(whole) - 4096),
        }
        path.write_bytes(damaged[harm])
    before = path.read_bytes()
    with pytest.raises((CannotRun, BadInput), match=r"damaged|not the store of a node"):
        Store.open(path, EPOCH).saved()
    assert path.read_bytes() == before


def test_all_or_nothing_of_a_batch(path: Path) -> None:
    store = Store.open(path, EPOCH)
    wrong = Effects((("outbox.forget", ("a", 1)), ("data", (1, b"x")), ("data", (1, b"twice"))))
    with pytest.raises(sqlite3.IntegrityError):
        store.commit([logged(1), wrong])
    store.commit([logged(2)])
    assert store._all("SELECT time_s FROM log") == [(2.0,)]
    assert store.data(1) == b""
    store.close()


@pytest.mark.parametrize("seed", range(5))
def test_rows_at_once_leave_what_rows_one_by_one_leave(tmp_path: Path, seed: int) -> None:
    chance, rows = random.Random(seed), list[Row]()
    for id in range(200):
        rows += [("bundle", (id, id, *(15 * (None,)))), ("data", (id, bytes(chance.randrange(99)))), *logged(id).rows]
        old = chance.randrange(id + 1)
        more: list[Row] = [
            ("data.forget", (old,)), ("bundle.held", (1, old)), ("outbox", (str(id % 2), old, 0, 0, 0, id)),
            ("outbox.state", (7, id, "1", old)), ("meta", ("sequence", id)), ("bundle.forget", (old,)),
        ]  # fmt: skip
        rows += [row for row in more if chance.random() < 0.1]
    plain = Store.open(tmp_path / "plain.db", EPOCH)
    for name, values in rows:
        plain.execute(STATEMENTS[name], values)
    store = Store.open(tmp_path / "store.db", EPOCH)
    store.commit([Effects(tuple(rows[:333])), Effects(tuple(rows[333:]))])
    for table in ("bundle", "data", "log", "outbox", "meta"):
        assert store._all(f"SELECT * FROM {table}") == plain._all(f"SELECT * FROM {table}")
    plain.close()
    store.close()


def test_the_log_keeps_its_last_rows(path: Path) -> None:
    store = Store.open(path, EPOCH, "crash", log_rows=500)
    for first in range(0, 30_000, 1000):
        store.commit([logged(number) for number in range(first, first + 1000)])
    ((count, last),) = store._all("SELECT count(*), max(time_s) FROM log")
    assert count <= 500 + 11_000
    assert last == 29_999.0
    store.close()


class Loop:
    """What an event loop does for a writer: calls posted from its thread run here, one after the other."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.arrived = threading.Condition()

    def post(self, call: Callable[[], None]) -> None:
        with self.arrived:
            self.calls.append(call)
            self.arrived.notify()

    def run_until(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not done():
            with self.arrived:
                if not self.calls:
                    self.arrived.wait(1.0)
                calls, self.calls = self.calls, []
            for call in calls:
                call()
            assert time.monotonic() < end


class Full(Store):
    """A disk without room for a while."""

    full = False
    committed: list[int]

    def commit(self, batch: Any) -> None:
        if self.full:
            raise sqlite3.OperationalError("database or disk is full")
        batch = list(batch)
        super().commit(batch)
        self.committed = [*getattr(self, "committed", []), len(batch)]


@pytest.fixture
def served(path: Path) -> Iterator[tuple[Full, Writer, Loop, list[Any]]]:
    said: list[Any] = []
    loop = Loop()
    store = Full.open(path, EPOCH, "crash")
    assert isinstance(store, Full)
    writer = Writer(store, loop.post, said.append)
    yield store, writer, loop, said
    store.full = False
    writer.stop()
    store.close()


def test_words_are_said_in_order_and_after_their_commit(served: tuple[Full, Writer, Loop, list[Any]]) -> None:
    store, writer, loop, said = served
    store.full = True
    for number in range(5):
        writer.perform(logged(number))
    writer.perform(Effects(words=("last",)))
    writer.perform(Effects((("data", (7, b"bytes")),), ("data",)))
    assert writer.data(7) == b"bytes"  # though it is not on disk yet
    loop.run_until(lambda: "full" in writer.problem)
    assert said == []
    store.full = False
    loop.run_until(lambda: len(said) == 7)
    assert said == [0, 1, 2, 3, 4, "last", "data"]
    assert writer.problem == ""
    assert sum(store.committed) == 7
    assert writer.data(7) == b"bytes"
    writer.perform(Effects(words=("at once",)))
    assert said[-1] == "at once"


def test_what_waits_is_committed_together(served: tuple[Full, Writer, Loop, list[Any]]) -> None:
    store, writer, loop, said = served
    for number in range(500):
        writer.perform(logged(number))
    loop.run_until(lambda: len(said) == 500)
    assert said == list(range(500))
    assert len(store.committed) < 250


def test_patient_effects_are_said_at_once_and_go_to_the_disk_with_others(
    served: tuple[Full, Writer, Loop, list[Any]],
) -> None:
    store, writer, loop, said = served
    for number in range(20):
        writer.perform(Effects(logged(number).rows, (number,), patient=True))
    assert said == list(range(20))
    writer.perform(logged(20))
    loop.run_until(lambda: 20 in said)
    assert [time_s for (time_s,) in store._all("SELECT time_s FROM log ORDER BY id")] == list(range(21))
    assert len(store.committed) <= 3
    writer.perform(Effects(logged(21).rows, ("alone",), patient=True))  # nothing else comes
    assert said[-1] == "alone"
    loop.run_until(lambda: store._all("SELECT max(time_s) FROM log") == [(21.0,)])


def test_patient_effects_do_not_wait_for_a_full_disk(served: tuple[Full, Writer, Loop, list[Any]]) -> None:
    store, writer, loop, said = served
    store.full = True
    writer.perform(logged(0))
    writer.perform(Effects(logged(1).rows, ("at once",), patient=True))
    writer.perform(logged(2))
    assert said == ["at once"]
    loop.run_until(lambda: "full" in writer.problem)
    store.full = False
    loop.run_until(lambda: len(said) == 3)
    assert said == ["at once", 0, 2]
    assert store._all("SELECT time_s FROM log ORDER BY id") == [(0.0,), (1.0,), (2.0,)]


def test_only_patient_parts_make_a_patient_whole() -> None:
    patient, other = Effects(patient=True), Effects(words=("told",))
    assert joined((patient, patient)).patient
    assert not joined((patient, other)).patient
    assert not patient.then("told").patient
    assert not patient.also(("log", ())).patient
    assert not joined(()).patient
