"""What the commands on Spark share: a session for as long as it is needed, and how far the work is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from serai.sweeping.run import Progress

_LINE_EVERY_S: Final = 5.0


@contextmanager
def session(master: str | None, remote: str | None, **options: Any) -> Iterator[SparkSession]:
    """A Spark session, stopped at the end unless somebody else had started it; stderr says where it runs."""
    from serai.spark.session import running_session, spark_session

    running = running_session() if not master and not remote else None
    if running is None:
        say("spark", "starting ...")
    spark = spark_session(master, remote, running, **options)
    try:
        say("spark", f"{spark.version} on {remote or spark.conf.get('spark.master')}")
        yield spark
    finally:
        if running is None:
            spark.stop()


def say(step: str, what: str) -> None:
    """One line on stderr about a step of the work."""
    print(f" {step:<10} {what}", file=sys.stderr, flush=True)


def tell_doubts(protocols: Iterable[str]) -> None:
    """Say on stderr what in protocols of the user's own is probably not what was meant."""
    from serai.kinds import doubts_about

    for doubt in [doubt for protocol in protocols for doubt in doubts_about(protocol)]:
        say("notice", doubt)


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """How far a sweep is, on stderr: a bar on a terminal, a line every few seconds elsewhere."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(" simulate  "),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        yield _on_bar(bar)


def _on_bar(bar: Any) -> Progress:
    from serai.sweeping.run import Progress

    task = bar.add_task("simulate", total=None)

    class OnBar(Progress):
        def on_runs(self, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        def on_notice(self, notice: str) -> None:
            bar.console.print(f" {notice}", highlight=False, markup=False)

    return OnBar()


def _lines() -> Progress:
    from serai.sweeping.run import Progress

    class Lines(Progress):
        def __init__(self) -> None:
            self.begun_s: float | None = None
            self.said_s, self.said = 0.0, -1

        def on_runs(self, done: int, total: int) -> None:
            now_s = time.monotonic()
            self.begun_s = self.begun_s or now_s  # compiling and the start of Spark are no runs
            if done == self.said or (done < total and now_s - self.said_s < _LINE_EVERY_S):
                return
            self.said, self.said_s = done, now_s
            say("simulate", f"{done}/{total} runs{rate_and_rest(done, total, now_s - self.begun_s)}")

        def on_notice(self, notice: str) -> None:
            say("notice", notice)

    return Lines()


def rate_and_rest(done: int, total: int, seconds: float) -> str:
    """How many runs a second, and how long it will still take; nothing where nobody can know."""
    if not done or not seconds:
        return ""
    rest = f", {(total - done) * seconds / done:.0f} s left" if done < total else f" in {seconds:.0f} s"
    return f", {done / seconds:.3g} per s{rest}"
