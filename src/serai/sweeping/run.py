"""A sweep: all runs of a plan on Spark, each once, into a folder that can be resumed at any time."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from serai.core.errors import BadInput, CannotRun, did_you_mean
from serai.core.stopping import resumable
from serai.scenario.section import Scenario
from serai.scenario.write import to_toml
from serai.spark.failures import telling_line
from serai.spark.places import alone_in
from serai.spark.session import running_session, spark_session
from serai.spark.workers import cores_of
from serai.sweeping.aggregate import summary
from serai.sweeping.cutting import cut_tasks, pilot_tasks
from serai.sweeping.plan import Plan, plan_sweep
from serai.sweeping.results import Sweep, open_sweep
from serai.sweeping.stopping import Until, first_seeds, next_seeds, parse_until
from serai.sweeping.store import Part, Segment, Store, missing_runs, source_stamp, write_aside
from serai.sweeping.tasks import RESULT, Job, Task, run_tasks
from serai.sweeping.warm import warm_kernels

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Keep = Literal["ledger", "log"]

_LOOK_S: Final = 0.5
_MOST_PROBLEMS: Final = 5
_PATIENCE_S: Final = 30.0
_WAVE_S: Final = 30.0
"""Where workers cannot reach the folder, parts come back after so many seconds of work on every core."""


class Progress:
    """What a sweep says while it runs; this one keeps it to itself."""

    def on_runs(self, done: int, total: int) -> None:
        """So many runs are done of those that were missing; said every now and then."""

    def on_notice(self, notice: str) -> None:
        """Something that the user should know: a damaged part, a cluster that lets us wait."""


@dataclass
class _Cluster:
    """What the first job finds out about the workers."""

    cores: int
    sees_folder: bool


@dataclass
class _Work:
    """A sweep under way."""

    spark: SparkSession
    plan: Plan
    store: Store
    mark: str
    keep: Keep | None
    progress: Progress
    cluster: _Cluster
    costs: dict[str, float] = field(default_factory=dict)
    """CPU seconds of a run of each cell, as far as they are known."""


def sweep(
    scenario: str | Path | Scenario,
    settings: Sequence[str] | Mapping[str, Any] = (),
    *,
    out: str | Path,
    protocols: Sequence[str] | None = None,
    seeds: int | None = None,
    until_ci: str | None = None,
    keep: str | None = None,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run a scenario over settings, protocols and seeds, on Spark; a folder with an unfinished sweep is resumed.

    Settings and options are those of `serai sweep`: `{"protocol.alpha": [2, 5, 10]}`, `until_ci="1%"`. Without a
    Spark session the running one is used, or a new one on this machine, which is left running.
    """
    plan = plan_sweep(scenario, settings, protocols, seeds)
    until = parse_until(until_ci, plan.kind) if until_ci else None
    kept = check_keep(keep)
    Store(out).check(plan)
    session = spark or running_session() or spark_session()
    return run_sweep(plan, out, session, keep=kept, until=until, progress=progress)


def check_keep(keep: str | None) -> Keep | None:
    """What to keep of each run, if it is something that can be."""
    if keep not in (None, "ledger", "log"):
        raise BadInput(f'--keep "{keep}": {did_you_mean(str(keep), ("ledger", "log"))}')
    return cast(Keep | None, keep)


def run_sweep(
    plan: Plan,
    folder: str | Path,
    spark: SparkSession,
    *,
    keep: Keep | None = None,
    until: Until | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run what is missing of the plan in the folder, and return the finished sweep.

    With `until` the plan's seeds are the most that a point gets: it stops as soon as its interval is narrow enough.
    """
    with _at_work(plan, folder) as store:
        work = _begin(plan, store, spark, keep, progress or Progress())
        if until is None:
            _finish(work, plan)
        else:
            _finish_when_narrow(work, plan, until)
    return open_sweep(work.store.folder, spark)


@contextmanager
def in_rounds(
    first: Plan, folder: str | Path, spark: SparkSession, progress: Progress | None = None
) -> Iterator[Callable[[Plan], pa.Table]]:
    """A function that runs whatever is missing of a plan, and returns its whole table.

    It may be called again and again, with more seeds or other cells of the same sweep as the first plan's.
    """
    import pyarrow.parquet as pq

    with _at_work(first, folder) as store:
        work = _begin(first, store, spark, None, progress or Progress())

        def run(plan: Plan) -> pa.Table:
            work.plan = plan
            _finish(work, plan)
            return pq.read_table(store.table)

        yield run


@contextmanager
def _at_work(plan: Plan, folder: str | Path) -> Iterator[Store]:
    """The folder of a plan, while nobody else is at work in it."""
    store = Store(folder)
    store.check(plan)
    store.make_folder()
    with alone_in(store.folder), resumable("give the same command again to go on"):
        yield store


def _begin(plan: Plan, store: Store, spark: SparkSession, keep: Keep | None, progress: Progress) -> _Work:
    """Make folder, kernels and workers ready for a plan."""
    cores_of(spark)  # refuses workers with other versions, before anything is done
    mark = store.open(plan)
    warm_kernels(plan.scenarios().values(), progress.on_notice)
    cluster = _look_at(spark, store, mark, progress)
    return _Work(spark, plan, store, mark, keep, progress, cluster)


def _finish_when_narrow(work: _Work, plan: Plan, until: Until) -> None:
    """Run every point with more and more seeds until its interval is narrow enough."""
    most = plan.seeds
    wanted, seeds = first_seeds(len(plan.points), until, most), None
    while wanted != seeds:
        seeds = wanted
        _finish(work, plan.with_seeds(seeds))
        rows = open_sweep(work.store.folder, work.spark).rows
        looked_at = summary(rows, [until.metric]).toArrow().to_pylist()
        wanted = next_seeds(seeds, looked_at, until, most)


def _finish(work: _Work, plan: Plan) -> None:
    """Run what is missing of a plan, and write its table."""
    parts = _sound_parts(work)
    missing = [*missing_runs(plan.runs(), parts)] if work.keep is None else [*_not_kept(plan, work.store, parts)]
    if missing:
        _run_missing(work, missing)
        parts = _sound_parts(work)
    if any(missing_runs(plan.runs(), parts)):
        raise CannotRun(f"{work.store.folder}: some finished runs have disappeared; give the same command again")
    work.mark = work.store.write_plan(plan)
    work.store.write_table(plan, parts)


def _sound_parts(work: _Work) -> list[Part]:
    parts, damaged = work.store.parts()
    for name in damaged:
        work.progress.on_notice(f"{name} is damaged; its runs are done again")
    return parts


def _not_kept(plan: Plan, store: Store, parts: Sequence[Part]) -> Iterator[Segment]:
    """The runs that are missing or have no folder of their own."""
    unfinished = {(s.cell, seed) for s in missing_runs(plan.runs(), parts) for seed in range(s.first, s.stop)}
    for cell, seeds in plan.runs().items():
        for seed in seeds:
            if (cell, seed) in unfinished or not store.run_folder(cell, seed).exists():
                yield Segment(cell, seed, seed + 1)


# --- Jobs


def _run_missing(work: _Work, missing: Sequence[Segment]) -> None:
    """Run these runs: first a few of each cell to learn what it costs, then the rest in tasks to measure."""
    done = _Done(work, sum(stop - first for _, first, stop in missing))
    pilots = pilot_tasks(missing, work.costs, work.cluster.cores)
    _run_tasks(work, pilots, done)
    tried = {segment.cell: segment for task in pilots for segment in task}
    rest = [_without(segment, tried.get(segment.cell)) for segment in missing]
    tasks = cut_tasks([segment for segment in rest if segment.first < segment.stop], work.costs, work.cluster.cores)
    for wave in _waves(tasks, work):
        _run_tasks(work, wave, done)


def _without(segment: Segment, tried: Segment | None) -> Segment:
    return segment._replace(first=tried.stop) if tried and tried.first == segment.first else segment


def _waves(tasks: Sequence[Task], work: _Work) -> Iterator[Sequence[Task]]:
    """All tasks at once where the workers write their parts themselves; else as many as may be lost at a time."""
    if work.cluster.sees_folder:
        yield tasks
        return
    wave: list[Task] = []
    wave_s = 0.0
    for task in tasks:
        wave.append(task)
        wave_s += sum(work.costs[segment.cell] * (segment.stop - segment.first) for segment in task)
        if wave_s >= _WAVE_S * work.cluster.cores:
            yield wave
            wave, wave_s = [], 0.0
    yield wave


class _Done:
    """Counts finished runs: by the parts in the folder while workers write them, by what came back otherwise."""

    def __init__(self, work: _Work, total: int) -> None:
        self.work, self.total = work, total
        self.before = work.store.runs_in_parts()

    def tell(self) -> None:
        done = min(self.total, self.work.store.runs_in_parts() - self.before)
        self.work.progress.on_runs(done, self.total)


def _run_tasks(work: _Work, tasks: Sequence[Task], done: _Done) -> None:
    """Run tasks to their end; learn what they cost; keep the parts that the workers could not."""
    if not tasks:
        return
    cells = {segment.cell for task in tasks for segment in task}
    scenarios = {name: to_toml(scenario) for name, scenario in work.plan.scenarios().items() if name in cells}
    plan, folder = work.plan, str(work.store.folder)
    own = _own_protocols(plan)
    job = Job(tuple(tasks), scenarios, plan.network, folder, work.mark, work.keep, plan.counts, own)
    # As many rows as partitions: one row, one task.
    numbers = work.spark.range(0, len(tasks), 1, len(tasks))
    answer = _watched(work.spark, numbers.mapInArrow(partial(run_tasks, job=job), RESULT), done.tell)
    _hand_in(work.store, answer)
    done.tell()
    for cell, seconds in zip(answer["cell"].to_pylist(), answer["least_s"].to_pylist(), strict=True):
        work.costs[cell] = max(1e-4, min(seconds, work.costs.get(cell, seconds)))
    problems = {
        cell: f"{_label(work.plan, cell)}: {problem}"
        for cell, problem in zip(answer["cell"].to_pylist(), answer["problem"].to_pylist(), strict=True)
        if problem
    }
    if problems:
        shown, more = list(problems.values())[:_MOST_PROBLEMS], len(problems) - _MOST_PROBLEMS
        raise CannotRun("\n".join([*shown, *([f"and {more} more"] if more > 0 else [])]))


def _own_protocols(plan: Plan) -> dict[str, str]:
    """What the authors of protocols of the user's wrote, by file: workers may not see the files."""
    protocols = {cell.protocol: type(cell.scenario).PROTOCOLS[cell.protocol] for cell in plan.cells}
    texts = (protocol.own.texts() for protocol in protocols.values() if protocol.own)
    return {file: said for some in texts for file, said in some.items()}


def _label(plan: Plan, cell_id: str) -> str:
    """How a cell is called when something is wrong with it."""
    cell = next(cell for cell in plan.cells if cell.id == cell_id)
    return ", ".join([cell.protocol, *(f"{key}={value}" for key, value in plan.points[cell.point].items())])


def _hand_in(store: Store, answer: pa.Table) -> None:
    """Write the parts that came back because their workers do not see the folder."""
    for name, content in zip(answer["part"].to_pylist(), answer["content"].to_pylist(), strict=True):
        if content is not None:
            write_aside(store.parts_folder / name, content)


def _watched(spark: SparkSession, frame: DataFrame, look: Callable[[], None]) -> pa.Table:
    """The frame's rows; meanwhile `look` is called every now and then. Ctrl-C stops the job, too."""
    tag = f"serai-{uuid.uuid4().hex}"
    answer: dict[str, Any] = {}

    def collect() -> None:
        spark.addTag(tag)
        try:
            answer["rows"] = frame.toArrow()
        except BaseException as error:  # told to the caller below, in the caller's thread
            answer["error"] = error

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_LOOK_S)
            look()
    except BaseException:
        spark.interruptTag(tag)
        raise
    if "error" in answer:
        said = telling_line(str(answer["error"]))
        raise CannotRun(f"Spark gave up: {said}; finished runs are kept") from answer["error"]
    return answer["rows"]


# --- Workers


def _look_at(spark: SparkSession, store: Store, mark: str, progress: Progress) -> _Cluster:
    """How many cores there are, whether they see the folder, and whether they run the same serai."""
    stamp = source_stamp()
    probe = partial(_probe, folder=str(store.folder), mark=mark)
    # Without a number of partitions Spark makes one for each core.
    frame = spark.range(1 << 16).mapInArrow(probe, "host string, stamp string, sees boolean")
    found = _watched(spark, frame, _Patience(progress, waiting_notice(spark.conf.get("spark.master", ""))))
    hosts, stamps, sees = (found[name].to_pylist() for name in ("host", "stamp", "sees"))
    other = sorted({host for host, theirs in zip(hosts, stamps, strict=True) if theirs != stamp})
    if other:
        raise CannotRun(f"the workers on {', '.join(other)} have another serai installed than this machine")
    return _Cluster(cores=len(hosts), sees_folder=all(sees))


def waiting_notice(master: str | None) -> str:
    """What to say if no worker answers for long: a cluster may have none that is free, this machine may be busy."""
    if (master or "").startswith("local"):
        return "Spark has not begun yet; is this machine busy, or short of memory?"
    return "no worker has answered yet; has the cluster any that are free?"


class _Patience:
    """Called every now and then while nothing happens: says something about it, once, after a while."""

    def __init__(self, progress: Progress, notice: str) -> None:
        self.progress, self.notice = progress, notice
        self.end_s: float | None = time.monotonic() + _PATIENCE_S

    def __call__(self) -> None:
        if self.end_s is not None and time.monotonic() > self.end_s:
            self.progress.on_notice(self.notice)
            self.end_s = None


def _probe(batches: Iterable[pa.RecordBatch], folder: str, mark: str) -> Iterator[pa.RecordBatch]:
    """One row from each worker: where it is, the sources it has, whether it sees the sweep's folder."""
    import platform

    import pyarrow as pa

    for _ in batches:
        pass
    row: Mapping[str, Any] = {"host": platform.node(), "stamp": source_stamp(), "sees": Store(folder).is_marked(mark)}
    yield pa.RecordBatch.from_pylist([dict(row)])
