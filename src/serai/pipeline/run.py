"""A pipeline at work: what arrives is landed, made into batches, delivered and reported; until stopped, or once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from serai.core.errors import BadInput, CannotRun
from serai.matching.landing import LANDED, QUARANTINE, Landing
from serai.pipeline.asked import read_subscriptions
from serai.pipeline.batch import Batches, Done
from serai.pipeline.clocks import clocks_table
from serai.pipeline.config import Pipeline
from serai.pipeline.deliver import Cursor, deliver
from serai.pipeline.hands import OnSpark, Own
from serai.pipeline.page import write_page
from serai.pipeline.reports import Status, status_of
from serai.pipeline.spool import Broker, spool
from serai.pipeline.tables import Tables
from serai.spark.failures import may_pass, plainly, said_plainly
from serai.spark.leases import alone_at
from serai.spark.stores import Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AGAIN_S: Final = 10.0  # after a store or a receiver could not be reached
_PAGE_S: Final = 60.0  # the page of one that goes on is written so often at most
_FILES: Final = "path string, modificationTime timestamp, length bigint, content binary"
_KEPT: Final = "what is done is kept: "


class Progress:
    """What a pipeline says while it works; this one keeps it to itself."""

    def on_batch(self, done: Done) -> None:
        """A batch is in the tables."""

    def on_delivery(self, cursor: Cursor) -> None:
        """A receiver has been told, or could not be."""

    def on_trouble(self, words: str) -> None:
        """What there is to say of a broker, a file that cannot be read, or a store that is away."""


def run_once(
    config: Pipeline,
    progress: Progress | None = None,
    spark: SparkSession | None = None,
    now: Callable[[], float] = time.time,
) -> Status:
    """Do all that there is to do, and say how the pipeline stands; with a session its workers do the work."""
    told = progress or Progress()
    with _at_work(config):
        for broker in config.brokers.values():
            try:
                spool(broker, threading.Event(), once=True, now=now)
            except CannotRun as error:  # what came before is there all the same
                told.on_trouble(str(error))
        work = _Work(config, spark, told, now)
        work.land()
        work.do_pending()
        return work.report()


def run(
    config: Pipeline,
    spark: SparkSession | None,
    progress: Progress | None = None,
    poll_s: float = 1.0,
    stop: threading.Event | None = None,
) -> None:
    """Go on until stopped; a store that is away, or a full disk, is waited for."""
    told, stop = progress or Progress(), stop or threading.Event()
    with _at_work(config), _listening(config, told):
        work = _Work(config, spark, told, time.time, stop)
        with _stream_of(config, spark, work, poll_s) as query:
            while not stop.is_set() and (query is None or query.isActive):
                work.in_turn(query is None)
                stop.wait(max(poll_s, 9 * work.looking_s))  # looking at very many files is a tenth of the time at most
            if query is not None and not query.isActive:
                query.awaitTermination()  # says what was wrong


@contextmanager
def _stream_of(config: Pipeline, spark: SparkSession | None, work: _Work, poll_s: float) -> Iterator[Any]:
    """Structured Streaming, which calls for work when something has landed; of object stores it knows nothing.

    Which files are done is said by our own plans and journal: what Spark hands out again is done once.
    """
    if spark is None or not isinstance(config.home, Folder):
        yield None
        return

    def on_files(batch: DataFrame, number: int) -> None:
        work.patiently(work.do_pending)

    home = config.home.path
    (home / LANDED).mkdir(exist_ok=True)
    reader = spark.readStream.format("binaryFile").schema(_FILES).option("maxFileAge", "36500d")
    writer = reader.load(str(home / LANDED)).select("path").writeStream.foreachBatch(on_files)
    writer = writer.option("checkpointLocation", str(home / "checkpoint")).queryName(f"serai pipeline {home.name}")
    query = writer.trigger(processingTime=f"{poll_s:g} seconds").start()
    try:
        yield query
    finally:
        query.stop()


class _Work:
    """What a runner does again and again; what it knows is made anew after something went wrong."""

    def __init__(
        self,
        config: Pipeline,
        spark: SparkSession | None,
        progress: Progress,
        now: Callable[[], float],
        stop: threading.Event | None = None,
    ) -> None:
        self.config, self.progress, self.now, self.stop = config, progress, now, stop or threading.Event()
        self.hands = Own() if spark is None else OnSpark(spark)
        self.tables = Tables(config.home)
        self.days: tuple[float, float] | None = None  # to be matched anew
        self._turn = threading.Lock()  # Spark calls from a thread of its own
        self._batches: Batches | None = None
        self._due, self._stale = True, False  # whether there may be work, and whether the page is behind
        self.looking_s = 0.0  # that it took to see that there is nothing new
        self._untold_since_s: float | None = None
        self._reported_s = -_PAGE_S
        self._said: set[str] = set()
        if isinstance(config.home, Folder):
            self._inode = config.home.path.stat().st_ino

    @property
    def batches(self) -> Batches:
        """Makes batches of what has landed."""
        if self._batches is None:
            landing = Landing(self.config.sources, self.config.home, runs=True, passing=self.config.brokers.keys())
            self._batches = Batches(self.config, landing, self.tables, self.hands)
            self._batches.days = self.days
        return self._batches

    def land(self) -> int:
        """Copy what has arrived; how many files were new."""
        self._check_home()
        landing = self.batches.landing
        begun = time.monotonic()
        new = landing.land()
        self.looking_s = 0.0 if new else time.monotonic() - begun
        for path, reason in landing.unreadable.items():
            if path not in self._said:
                self.progress.on_trouble(f"{path}: cannot be read ({reason}); left out until it can")
        self._said = set(landing.unreadable)
        return new

    def do_pending(self) -> None:
        """Make batches of what has landed, and tell the receivers."""
        with self._turn:
            self._check_home()
            for done in self.batches.run_pending(self.now):
                self.progress.on_batch(done)
                self._stale = True
            self.batches.landing.forget_done()
            self._tell()

    def _tell(self) -> None:
        cursors = [deliver(self.config.home, self.tables, receiver) for receiver in self.config.receivers]
        for cursor in cursors:
            self.progress.on_delivery(cursor)
        self._untold_since_s = time.monotonic() if any(cursor.last_error for cursor in cursors) else None
        self._stale = self._stale or bool(cursors)

    def report(self) -> Status:
        """Write the page of the day, and say how the pipeline stands."""
        status = status_of(self.config, self.now())
        write_page(status, self.config, self.now())
        if status.clocks:
            self.tables.replace("clocks", clocks_table(status.clocks, status.batches - 1))
        self._stale, self._reported_s = False, time.monotonic()
        return status

    # --- Going on

    def in_turn(self, alone: bool) -> None:
        """What is to be done now; `alone`: nobody else calls for the work."""
        self.patiently(self._in_turn, alone)

    def _in_turn(self, alone: bool) -> None:
        new = self.land()
        if (alone and new) or self._due or self._overdue(self._untold_since_s):
            self._due = False
            self.do_pending()
        if self._stale and time.monotonic() - self._reported_s >= _PAGE_S:
            with self._turn:
                self.report()

    def _overdue(self, since_s: float | None) -> bool:
        return since_s is not None and time.monotonic() - since_s >= _AGAIN_S

    def patiently(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do something; if a disk or a store is to blame that it cannot be done, it is done in a later turn."""
        try:
            work(*arguments)
        except Exception as error:
            if not may_pass(error):
                raise
            self._batches, self._due = None, True  # what was begun is begun anew
            self.tables = Tables(self.config.home)
            said = str(plainly(error, self.config.home.address)).splitlines()[0]
            self.progress.on_trouble(f"{said}; trying again in {_AGAIN_S:g} s")
            self.stop.wait(_AGAIN_S)

    def _check_home(self) -> None:
        """A disk that was taken away must not be mistaken for an empty home."""
        home = self.config.home
        if isinstance(home, Folder) and home.path.stat().st_ino != self._inode:
            raise CannotRun(f"{home}: is not the folder that was here before; is its disk mounted?")


@contextmanager
def _listening(config: Pipeline, progress: Progress) -> Iterator[list[threading.Thread]]:
    """While threads keep what brokers send."""
    stop = threading.Event()
    threads = [threading.Thread(target=_listen, args=(broker, stop, progress)) for broker in config.brokers.values()]
    for each in threads:
        each.start()
    try:
        yield threads
    finally:
        stop.set()
        for each in threads:
            each.join()


def listen(config: Pipeline, progress: Progress) -> None:
    """Only keep what brokers send, until stopped: on a gateway, say, whose folder is fetched now and then."""
    if not config.brokers:
        raise BadInput('source: no broker in the file; write {kind = "mqtt", ...}')
    with _listening(config, progress) as threads:
        for each in threads:
            while each.is_alive():
                each.join(0.5)


def _listen(broker: Broker, stop: threading.Event, progress: Progress) -> None:
    """Listen to a broker until told to stop; one that cannot be reached, or a full disk, is tried again."""
    while not stop.is_set():
        try:
            spool(broker, stop, say=progress.on_trouble)
        except (CannotRun, OSError) as error:
            progress.on_trouble(f"{plainly(error, str(broker.folder))}")
            stop.wait(_AGAIN_S)


def retry(config: Pipeline) -> int:
    """Put files that are in quarantine in the way again, for the next run; how many."""
    home = config.home
    with _at_work(config):
        last = Tables(home).last_batch()
        landing = Landing(config.sources, home)
        copies = home.names(QUARANTINE)
        for copy in copies:
            digest = next(digest for digest in landing.by_content if copy.startswith(digest[:12]))
            # Under a name that Spark has not seen: it reads a name only once.
            home.write(f"{LANDED}/{digest}.{0 if last is None else last + 1}", home.read(f"{QUARANTINE}/{copy}"))
        home.remove(f"{QUARANTINE}/{copy}" for copy in copies)
    return len(copies)


def match_again(
    config: Pipeline,
    days: tuple[float, float],
    progress: Progress | None = None,
    spark: SparkSession | None = None,
    now: Callable[[], float] = time.time,
) -> Status:
    """Match events of past days with the subscriptions of now; subscribers are told of pairs that are new."""
    with _at_work(config):
        work = _Work(config, spark, progress or Progress(), now)
        work.days = days
        work.do_pending()
        return work.report()


@contextmanager
def _at_work(config: Pipeline) -> Iterator[None]:
    """While nobody else is at work; what goes wrong is said in one sentence."""
    for broker in config.brokers.values():
        broker.folder.mkdir(parents=True, exist_ok=True)
    for source in config.sources.values():
        if isinstance(source, Path) and not source.is_dir():
            raise BadInput(f"{source}: no such folder; logs arrive there as files")
    read_subscriptions(config.subscriptions)  # says what is wrong with them before anything is done
    with said_plainly(config.home.address, _KEPT), alone_at(config.home):
        yield
