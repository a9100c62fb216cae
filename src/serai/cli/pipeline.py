"""The commands of the data pipeline: match, stream and collect."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import typer

from serai.cli.options import AsJson, Master, Remote, print_json
from serai.core.errors import BadInput
from serai.core.placing import check_can_hold

SubscriptionsPath = Annotated[
    str,
    typer.Option("--subscriptions", metavar="PATH", help="Table with the columns subscription and where."),
]

Time = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the events that holds their time.")]


def match(
    events: Annotated[
        str, typer.Option(metavar="PATH", help="Table with the column event, and one for each attribute.")
    ],
    subscriptions: SubscriptionsPath,
    out: Annotated[str, typer.Option(metavar="PATH", help="The result: event and subscription of every match.")],
    mode: Annotated[str, typer.Option(metavar="M", help="pairs, counts, any or first.")] = "pairs",
    first: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="With --mode first: events per subscription.")
    ] = None,
    order_by: Annotated[
        str, typer.Option(metavar="COLUMN", help="With --mode first: the column that orders events.")
    ] = "event",
    time: Time = None,
    engine: Annotated[str, typer.Option(metavar="E", help="auto, index or keys.")] = "auto",
    strict: Annotated[bool, typer.Option("--strict", help="Stop if any row cannot be used.")] = False,
    rejects: Annotated[
        str | None, typer.Option(metavar="FILE", help="Rows that cannot be used go here.", show_default=False)
    ] = None,
    partition_by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="One folder per value: subscription, or a column of events.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Explain why this engine was chosen.")] = False,
    master: Master = None,
    remote: Remote = None,
    as_json: AsJson = False,
) -> None:
    """Find the events that each subscription wants."""
    from serai.matching.job import match_files
    from serai.matching.tables import check_free, check_there, format_of
    from serai.spark.session import spark_session

    check_there(events)
    check_there(subscriptions)
    check_free(out)
    with _steps() as on_step:
        on_step("starting Spark")
        report = match_files(
            spark_session(master, remote, only_schedules=format_of(events) == "parquet"),
            events,
            subscriptions,
            out,
            mode=mode,  # type: ignore[arg-type]  # checked there
            first=first,
            order_by=order_by,
            time=time,
            engine=engine,  # type: ignore[arg-type]
            strict=strict,
            rejects=rejects,
            partition_by=partition_by,
            on_step=on_step,
        )
    if as_json:
        print_json(report.as_dict())
    else:
        print(_as_text(report, explain))


def stream(
    events: Annotated[str, typer.Option(metavar="DIR", help="Folder in which files of events arrive.")],
    subscriptions: SubscriptionsPath,
    out: Annotated[str, typer.Option(metavar="DIR", help="Pairs, batch by batch; continues what is there.")],
    time: Time = None,
    lateness: Annotated[
        str | None, typer.Option(metavar="T", help='How late events may come, such as "10 min"; needs --time.')
    ] = None,
    poll: Annotated[str, typer.Option(metavar="T", help="How often to look for new files.")] = "1 s",
    once: Annotated[bool, typer.Option("--once", help="Stop once everything that has arrived is matched.")] = False,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Match events as they arrive, until stopped."""
    from serai.core.stopping import resumable
    from serai.matching.landing import nothing_new
    from serai.matching.stream import BatchReport, finish, match_stream
    from serai.matching.tables import check_there
    from serai.spark.places import local_path
    from serai.spark.session import spark_session

    check_there(subscriptions)
    for path in (events, subscriptions, out):
        local_path(path)
    check_can_hold(local_path(out), out)
    lateness_s = None if lateness is None else seconds_of("--lateness", lateness)
    poll_s = seconds_of("--poll", poll)
    batches: list[BatchReport] = []

    def on_batch(report: BatchReport) -> None:
        batches.append(report)
        print(_batch_as_text(report), file=sys.stderr if as_json else sys.stdout, flush=True)

    if once and nothing_new(events, out):  # known without Spark, whose start takes longest
        if as_json:
            print_json(_sums([]) | {"out": str(out)})
        else:
            print(f"{out}: nothing new")
        return
    print("starting Spark ...", file=sys.stderr, flush=True)
    with resumable("give the same command again to go on"):
        spark = spark_session(master, only_schedules=True)
        begin = partial(match_stream, spark, events, subscriptions, out, time=time, lateness_s=lateness_s)
        query = begin(poll_s=poll_s, once=once, on_batch=on_batch)
        try:
            finish(query)
        finally:
            query.stop()
            if as_json:
                print_json(_sums(batches) | {"out": str(out)})


def _sums(batches: list[Any]) -> dict[str, Any]:
    """What there was in all batches together."""
    counts = ("events", "matched", "unmatched", "repeated", "late", "rejected", "pairs", "quarantined")
    return {"batches": len(batches)} | {name: sum(getattr(report, name) for report in batches) for name in counts}


def seconds_of(option: str, written: str) -> float:
    """How many seconds an option says."""
    from serai.core.units import TIME, parse_quantity

    try:
        found = parse_quantity(written, TIME)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from None
    if found < 0:
        raise BadInput(f'{option} "{written}": a time that is not negative, such as "5 s"')
    return found


def _batch_as_text(report: Any) -> str:
    late = "" if report.latency_s is None else f", {report.latency_s:.1f} s after the oldest arrived"
    late += f"; {report.quarantined:,} files in quarantine" if report.quarantined else ""
    return (
        f"batch {report.batch}: {report.events:,} events ({report.repeated:,} repeated, {report.late:,} late,"
        f" {report.rejected:,} rejected), {report.pairs:,} pairs, {report.events / max(report.seconds, 1e-9):,.0f}"
        f" events/s{late}"
    )


def collect(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A folder of runs.", show_default=False)],
    out: Annotated[str, typer.Option(metavar="DIR", help="Events, pairs and the report, as Parquet tables.")],
    master: Master = None,
    remote: Remote = None,
    as_json: AsJson = False,
) -> None:
    """Collect what subscribers received in runs, with a report."""
    from serai.matching.collect import collect as collect_runs
    from serai.spark.places import local_path
    from serai.spark.session import spark_session

    check_can_hold(local_path(out), out)
    with _steps() as on_step:
        on_step("collecting")
        collected = collect_runs(spark_session(master, remote), folder, out)
    if as_json:
        print_json(collected.as_dict())
        return
    share = "" if collected.completeness is None else f", {collected.completeness:.1%} of what was wanted"
    print(f"runs           {collected.runs:>14,}   {collected.deliveries:,} deliveries")
    print(f"events         {collected.events:>14,}   collected, each once")
    print(f"subscriptions  {collected.subscriptions:>14,}   {collected.pairs:,} pairs{share}")
    print(f"written to {out}" if collected.changed else f"{out}: nothing new")


def _as_text(report: Any, explain: bool) -> str:
    lines = [
        f"events         {report.events:>14,}   matched {report.matched_events:,},"
        f" unmatched {report.unmatched_events:,}, rejected {report.rejected_events:,}",
        f"subscriptions  {report.subscriptions:>14,}   rejected {report.rejected_subscriptions:,}",
        f"written        {report.rows:>14,}   rows to {report.out}",
    ]
    if report.rejects:
        lines.append(f"rejected rows, with reasons: {report.rejects}")
    if explain:
        lines.append(f"engine {report.engine}: {report.why}")
    return "\n".join(lines)


@contextmanager
def _steps() -> Iterator[Callable[[str], None]]:
    """A function to call when a step begins: a spinner on a terminal, a line each elsewhere; on stderr."""
    if not sys.stderr.isatty():
        yield lambda step: print(f"{step} ...", file=sys.stderr, flush=True)
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda step: status.update(f" {step} ...")
