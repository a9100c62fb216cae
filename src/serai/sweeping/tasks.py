"""What a worker does in a sweep: simulate the runs of a task, measure them, and hand them in as one part."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from serai.core.errors import CannotRun, SeraiError
from serai.sweeping.columns import part_schema
from serai.sweeping.store import Segment, Store, disk_message, part_content, part_name, write_aside

if TYPE_CHECKING:
    import pyarrow as pa

    from serai.log.pairs import Count
    from serai.scenario.section import Scenario

RESULT: Final = (
    "task long, cell string, runs long, least_s double, total_s double, part string, content binary, problem string"
)
"""What a task answers, a row for each of its segments: CPU seconds, and the part where the folder is out of reach."""

Task = tuple[Segment, ...]


@dataclass(frozen=True)
class Job:
    """What the tasks of a sweep need to know."""

    tasks: tuple[Task, ...]
    scenarios: dict[str, str]
    """The scenarios of the cells, as TOML."""
    network: str
    folder: str
    mark: str
    keep: str | None = None
    counts: tuple[Count, ...] = ()
    own_protocols: dict[str, str] = field(default_factory=dict)
    """What the authors of protocols of the user's wrote, by file."""


def run_tasks(batches: Iterable[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """Run the tasks whose numbers come in; for `mapInArrow`."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield _answer(number, job)


def _answer(number: int, job: Job) -> pa.RecordBatch:
    import pyarrow as pa

    task, store = job.tasks[number], Store(job.folder)
    spent: list[tuple[float, float]] = []
    part, content, problem = None, None, None
    try:
        rows = _rows_of(task, job, spent)
        content = part_content(rows, task)
        part = part_name(content, rows.num_rows)
        if store.is_marked(job.mark):
            write_aside(store.parts_folder / part, content)
            content = None
    except SeraiError as error:
        problem, content, part = str(error), None, None
    except OSError as error:
        problem, content, part = disk_message(error, store.folder), None, None
    failed = min(len(spent), len(task) - 1)
    spent += [(0.0, 0.0)] * (len(task) - len(spent))
    least, total = zip(*spent, strict=True)
    return pa.record_batch(
        {
            "task": pa.array([number] * len(task), pa.int64()),
            "cell": pa.array([segment.cell for segment in task], pa.string()),
            "runs": pa.array([segment.stop - segment.first for segment in task], pa.int64()),
            "least_s": pa.array(least, pa.float64()),
            "total_s": pa.array(total, pa.float64()),
            "part": pa.array([part] * len(task), pa.string()),
            "content": pa.array([content] + [None] * (len(task) - 1), pa.binary()),
            "problem": pa.array([problem if place == failed else None for place in range(len(task))], pa.string()),
        }
    )


def _rows_of(task: Sequence[Segment], job: Job, spent: list[tuple[float, float]]) -> pa.Table:
    """The rows of all runs of a task; what each segment took is added to `spent`."""
    import pyarrow as pa

    from serai.lab import parse_scenario
    from serai.own.texts import remember_texts

    remember_texts(job.own_protocols, pinned=True)
    rows: list[dict[str, Any]] = []
    for segment in task:
        scenario = parse_scenario(job.scenarios[segment.cell], source=f"cell {segment.cell}")
        _check_version(scenario, job)
        seconds = []
        for seed in range(segment.first, segment.stop):
            begun = time.process_time()
            rows.append({"cell": segment.cell} | _measured(scenario, seed, segment.cell, job))
            seconds.append(time.process_time() - begun)
        spent.append((min(seconds), sum(seconds)))
    return pa.Table.from_pylist(rows, schema=part_schema(job.network, job.counts))


def _check_version(scenario: Scenario, job: Job) -> None:
    """A protocol of an installed package has to be the same here."""
    own = type(scenario).PROTOCOLS[scenario.protocol.name].own
    for what, text in own.texts().items() if own else ():
        if job.own_protocols.get(what) != text:
            raise CannotRun(
                f"{platform.node()}: the protocol {scenario.protocol.name} is another version here ({what})"
            )


def _measured(scenario: Scenario, seed: int, cell: str, job: Job) -> dict[str, Any]:
    """The row of one run."""
    from serai.kinds import kind_of
    from serai.lab import measure, simulate
    from serai.log.pairs import count
    from serai.sweeping.delays import count_delays

    kind = kind_of(scenario)
    options: dict[str, Any] = {"full_log": True} if job.keep == "log" else {}
    try:
        run = simulate(scenario, seed=seed, **options)
        row: dict[str, Any] = measure(run).as_dict()
        pairs = kind.pairs(run) if kind.pairs else None
    except SeraiError:
        raise
    except Exception as error:
        raise CannotRun(f"seed {seed}: this is a bug in serai: {type(error).__name__}: {error}") from error
    # What only a full log tells is left out: the row of a run is the same whether its log is kept or not.
    row |= {one.name: None for one in kind.definitions.values() if one.full_log}
    if pairs is not None:
        bins, counts = count_delays(pairs.delay_s)
        undelivered = int(pairs.wanted.sum()) - len(pairs.delay_s)
        row |= {"undelivered_pairs": undelivered, "delay_bin": bins, "delay_count": counts}
        for one in job.counts:
            row |= dict(zip(one.columns(), count(pairs, one), strict=True))
    if job.keep is not None:
        _keep(run, Store(job.folder), cell, seed, job)
    return row


def _keep(run: Any, store: Store, cell: str, seed: int, job: Job) -> None:
    """Write the run to its folder, unless it is there already."""
    from serai.lab import write_run

    if not store.is_marked(job.mark):
        raise CannotRun(f"{store.folder}: the workers do not see this folder, so they cannot keep runs there")
    place = store.run_folder(cell, seed)
    if not place.exists():
        with suppress(FileExistsError):  # a second task with the same run was quicker
            write_run(run, place)
