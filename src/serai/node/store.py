"""A node's memory on disk: SQLite, one writer, all that waits in one commit. The only place that writes it.

    store = Store.open(path, epoch)             or an error that says what is wrong with the file
    node = Node(settings, store.saved(), ...)
    writer = Writer(store, post=loop.call_soon_threadsafe, say=say)
    writer.perform(node.published(...))         commits the rows in a thread of its own, then has the words said

What was performed is said in the same order, and never before its rows are on disk; but effects that are patient
(`serai.node.words`) are said at once, and their rows wait a moment for others that go to the disk anyway.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from serai.core.errors import BadInput, CannotRun
from serai.node.schema import CHANGES, MANY, STATEMENTS, TABLE_OF, TABLES, VERSION
from serai.node.words import Effects, Row, Saved, Word

Durability = Literal["power", "crash"]
_APPLICATION = 0x73657261  # "sera", in the header of the file
_PRUNE_EVERY = 10_000
_RETRY_S = 1.0
_BYTE_S = 1e-8  # that a byte takes on its way to the disk, as long as that was not seen
_PATIENCE_S = 0.05
"""So long patient rows wait for others that go to the disk anyway."""
_TELLING = 64 << 10  # bytes in a commit that tell of it


class Store:
    """The file. Whoever opens it has it alone; reading beside it is allowed to anybody."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: IO[bytes] | None, log_rows: int) -> None:
        self.path, self._connection, self._lock, self._log_rows = path, connection, lock, log_rows
        self._written = 0  # rows since the log was cut
        self._writing = threading.Lock()
        self._reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        """Of its own: whoever reads does not wait for the disk while something is written."""

    @classmethod
    def open(cls, path: Path, epoch: bytes, durability: Durability = "power", log_rows: int = 1_000_000) -> Store:
        """The store at a path; a new one if there is none, which is called by `epoch` from then on."""
        lock = _locked(path)
        try:
            if not path.exists():
                _create(path, epoch)
            if path.stat().st_size == 0:
                raise _damaged(path, "it is empty")
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            _prepare(path, connection, durability)
        except sqlite3.DatabaseError as error:
            lock.close()
            raise _damaged(path, str(error)) from None
        except OSError as error:
            lock.close()
            raise CannotRun(f"{path}: cannot be opened: {error.strerror}") from None
        except (BadInput, CannotRun):
            lock.close()
            raise
        return cls(path, connection, lock, log_rows)

    def saved(self) -> Saved:
        """All rows that a node begins with."""
        try:
            return Saved(
                meta=dict(self._all("SELECT key, value FROM meta")),
                bundle=self._bundles(),
                interest=self._all("SELECT * FROM interest ORDER BY id"),
                entry=self._all("SELECT * FROM entry"),
                session=self._all("SELECT * FROM session"),
                outbox=self._all("SELECT * FROM outbox ORDER BY session, bundle"),
                part=self._all("SELECT * FROM part ORDER BY id"),
                retained=self._all("SELECT * FROM retained"),
            )
        except sqlite3.DatabaseError as error:
            self.close()
            raise _damaged(self.path, str(error)) from None

    def _bundles(self) -> Iterator[tuple[Any, ...]]:
        """One after another: a million rows at once would take as much memory again as what is made of them."""
        query = "SELECT *, EXISTS(SELECT 1 FROM data WHERE data.id = bundle.id) FROM bundle ORDER BY id"
        try:
            yield from self._reader.execute(query)
        except sqlite3.DatabaseError as error:
            self.close()
            raise _damaged(self.path, str(error)) from None

    def inbound(self) -> list[tuple[Any, ...]]:
        """What sessions know of packets that came in."""
        return self._all("SELECT * FROM inbound")

    def data(self, id: int) -> bytes:
        """The bytes of a bundle; b"" if they are gone."""
        row = self._reader.execute("SELECT bytes FROM data WHERE id = ?", (id,)).fetchone()
        return row[0] if row else b""

    def commit(self, batch: Iterable[Effects]) -> None:
        """Write the rows of several effects in one transaction: all of them or none."""
        rows = [row for effects in batch for row in effects.rows]
        if not rows:
            return
        with self._writing:
            self.execute("BEGIN IMMEDIATE")
            try:
                for statement, values in _statements(rows):
                    self.execute(statement, values)
                self._written += len(rows)
                if self._log_rows and self._written > _PRUNE_EVERY:
                    self.execute(STATEMENTS["log.forget"], (self._log_rows,))
                    self._written = 0
                self.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        """Run one statement."""
        self._connection.execute(statement, values)

    def free_bytes(self) -> int:
        """What is left of the disk."""
        return shutil.disk_usage(self.path.parent).free

    def close(self) -> None:
        """Leave the file to others."""
        self._reader.close()
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        with self._writing:
            return self._connection.execute(query).fetchall()


class Writer:
    """Commits what is performed in a thread of its own, everything that waits at once.

    `post(call)` runs a call where the node lives, as `loop.call_soon_threadsafe` does; `say(word)` is called there.
    While the disk is full, what waits is tried again; `problem` says so. `failed(error)`: nothing can ever be written.
    """

    def __init__(
        self,
        store: Store,
        post: Callable[[Callable[[], None]], object],
        say: Callable[[Word], object],
        failed: Callable[[CannotRun], None] = lambda error: None,
    ) -> None:
        self.store, self._post, self._say, self._failed = store, post, say, failed
        self.problem = ""
        self._byte_s = _BYTE_S
        self._unsaid = 0
        self._pending: dict[int, bytes] = {}
        self._waiting: deque[Effects] = deque()
        self._changed = threading.Condition()
        self._stopping = self._idle = self._urgent = False
        self._thread = threading.Thread(target=self._run, name="serai-store", daemon=True)
        self._thread.start()

    def perform(self, effects: Effects) -> None:
        """Commit the rows, then say the words; at once if there is nothing to commit before them, or if those rows can
        wait."""
        if not effects.rows and not effects.words:
            return
        if not effects.rows and not self._unsaid:
            self._say_all((effects,), count=False)
            return
        if effects.patient:
            self._perform_later(effects)
            return
        self._unsaid += 1
        for name, values in effects.rows:
            if name == "data":
                id, data = values
                assert isinstance(id, int)
                assert isinstance(data, bytes)
                self._pending[id] = data
        self._waiting.append(effects)
        self._urgent = True
        if self._idle:
            with self._changed:
                self._changed.notify()

    def _perform_later(self, effects: Effects) -> None:
        self._waiting.append(Effects(effects.rows, patient=True))
        if self._idle and len(self._waiting) == 1:
            with self._changed:
                self._changed.notify()  # from now on its time runs
        self._say_all((Effects(words=effects.words),), count=False)

    def data(self, id: int) -> bytes:
        """The bytes of a bundle, also of one that waits for its commit."""
        return self._pending.get(id) or self.store.data(id)

    def disk_s(self, size_bytes: int) -> float:
        """How long so many bytes take on their way to the disk, as was seen lately."""
        return self._byte_s * size_bytes

    def stop(self) -> None:
        """Commit what waits, and end. Words are still posted."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = True  # first, then look: whoever adds something afterwards sees it, and wakes us
                while not self._urgent and not self._stopping:
                    if not self._changed.wait(_PATIENCE_S if self._waiting else None):
                        break
                self._idle = self._urgent = False
            batch = tuple(self._waiting.popleft() for _ in range(len(self._waiting)))
            if not batch and self._stopping:
                return
            if not self._commit(batch):
                return
            unsaid = tuple(effects for effects in batch if not effects.patient)
            if unsaid:
                self._post(lambda unsaid=unsaid: self._say_all(unsaid))  # type: ignore[misc]

    def _commit(self, batch: tuple[Effects, ...]) -> bool:
        """Commit, however long the disk stays full; False if that will never be."""
        while True:
            began_s = time.monotonic()
            try:
                self.store.commit(batch)
            except sqlite3.OperationalError as error:
                self.problem = f"{self.store.path}: {error}"
                with self._changed:
                    if self._stopping:
                        return self._give_up(error)
                    self._changed.wait(_RETRY_S)
            except sqlite3.Error as error:
                return self._give_up(error)
            else:
                self.problem = ""
                self._note_pace(batch, time.monotonic() - began_s)
                return True

    def _note_pace(self, batch: tuple[Effects, ...], took_s: float) -> None:
        """How long bytes take, from a commit of many."""
        data = (values[1] for effects in batch for name, values in effects.rows if name == "data")
        size_bytes = sum(len(one) for one in data if isinstance(one, bytes))
        if size_bytes >= _TELLING:
            self._byte_s += (took_s / size_bytes - self._byte_s) / 4

    def _give_up(self, error: sqlite3.Error) -> bool:
        self.problem = f"{self.store.path}: {error}"
        self._post(lambda: self._failed(CannotRun(f"{self.problem}; what was not acknowledged is not kept")))
        return False

    def _say_all(self, batch: tuple[Effects, ...], count: bool = True) -> None:
        for effects in batch:
            if count:
                self._unsaid -= 1
            for name, values in effects.rows:
                if name == "data":
                    self._pending.pop(values[0], None)  # type: ignore[arg-type]
            for word in effects.words:
                self._say(word)


def _statements(rows: Iterable[Row]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What writes these rows: table by table, as none refers to another; in each in order, several at once."""
    tables: dict[str, list[Row]] = {}
    for row in rows:
        tables.setdefault(TABLE_OF[row[0]], []).append(row)
    for table in tables.values():
        for name, run in groupby(table, key=itemgetter(0)):
            values = [row[1] for row in run]
            start = 0
            for count, statement in MANY.get(name, ((1, STATEMENTS[name]),)):
                while len(values) - start >= count:
                    yield statement, tuple(chain.from_iterable(values[start : start + count]))
                    start += count


def _create(path: Path, epoch: bytes) -> None:
    """Make an empty store: aside, and then rename it, so that there never is half a store."""
    aside = path.with_name(f"{path.name}.new")
    aside.unlink(missing_ok=True)
    connection = sqlite3.connect(aside, isolation_level=None)
    try:
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.executescript(
            f"BEGIN; {TABLES} PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
        )
        connection.execute(STATEMENTS["meta"], ("epoch", epoch))
    finally:
        connection.close()
    aside.rename(path)


def _check(path: Path, connection: sqlite3.Connection) -> int:
    """The version of a store; an error if it is none, or of a version that is not known yet."""
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if kind != _APPLICATION:
        raise BadInput(f"{path}: a database, but not the store of a node")
    if version > VERSION:
        raise BadInput(f"{path}: a store of version {version}, this serai knows {VERSION}: use a newer one")
    return int(version)


def _prepare(path: Path, connection: sqlite3.Connection, durability: str) -> None:
    for version in range(_check(path, connection), VERSION):
        connection.executescript(f"BEGIN; {CHANGES[version]} PRAGMA user_version = {version + 1}; COMMIT;")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")


def _locked(path: Path) -> IO[bytes]:
    """The lock of a store, which ends with whoever has it."""
    try:
        lock = Path(f"{path}.lock").open("wb")  # noqa: SIM115 - it stays open as long as the store
    except OSError as error:
        raise CannotRun(f"{path}: cannot be opened: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise CannotRun(f"{path}: another node has this store open") from None
    lock.write(str(os.getpid()).encode())
    lock.flush()
    return lock


def _damaged(path: Path, why: str) -> CannotRun:
    return CannotRun(
        f"{path}: damaged ({why}); put a backup in its place, or move it away to begin anew,"
        " which a node never does by itself"
    )


class ReadLog(NamedTuple):
    """What a store tells of the past: rows of `log` and of `bundle`, in their order; and how much it holds."""

    log: list[tuple[Any, ...]]
    bundles: list[tuple[Any, ...]]
    held_bytes: int  # of the bundles that it still has


def read_log(path: Path) -> ReadLog:
    """The log of a store, also of one that a node has open."""
    if not path.is_file():
        raise BadInput(f"{path}: there is no such store")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            _check(path, connection)
            log = connection.execute("SELECT * FROM log ORDER BY id").fetchall()
            bundles = connection.execute("SELECT * FROM bundle ORDER BY id").fetchall()
            (held_bytes,) = connection.execute("SELECT coalesce(sum(length(bytes)), 0) FROM data").fetchone()
            return ReadLog(log, bundles, held_bytes)
    except sqlite3.DatabaseError as error:
        raise BadInput(f"{path}: cannot be read as the store of a node: {error}") from None
