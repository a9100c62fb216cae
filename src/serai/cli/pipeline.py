"""The commands of the data pipeline: match."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from serai.cli.options import AsJson, print_json

Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark's master, such as spark://host:7077; else this machine."),
]
Remote = Annotated[str | None, typer.Option(metavar="URL", help="A Spark Connect server, such as sc://host:15002.")]
SubscriptionsPath = Annotated[
    str,
    typer.Option("--subscriptions", metavar="PATH", help="Table with the columns subscription and where."),
]


def match(
    events: Annotated[str, typer.Option(metavar="PATH", help="Table with the column event, and attributes.")],
    subscriptions: SubscriptionsPath,
    out: Annotated[Path, typer.Option(metavar="PATH", help="The answer: event and subscription of every match.")],
    mode: Annotated[str, typer.Option(metavar="M", help="pairs, counts, any or first.")] = "pairs",
    first: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="With --mode first: events per subscription.")
    ] = None,
    order_by: Annotated[str, typer.Option(metavar="COLUMN", help="With --mode first: what orders events.")] = "event",
    engine: Annotated[str, typer.Option(metavar="E", help="auto, index or keys.")] = "auto",
    strict: Annotated[bool, typer.Option("--strict", help="Stop if any row cannot be used.")] = False,
    rejects: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Rows that cannot be used go here.", show_default=False)
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why this engine was chosen.")] = False,
    master: Master = None,
    remote: Remote = None,
    as_json: AsJson = False,
) -> None:
    """Say which events each subscription wants, in tables of any size."""
    from serai.pipeline.match_job import match_files
    from serai.pipeline.session import spark_session
    from serai.pipeline.tables import check_free, check_there

    check_there(events)
    check_there(subscriptions)
    check_free(out)
    with _steps() as on_step:
        on_step("starting Spark")
        report = match_files(
            spark_session(master, remote),
            events,
            subscriptions,
            out,
            mode=mode,  # type: ignore[arg-type]  # checked there
            first=first,
            order_by=order_by,
            engine=engine,  # type: ignore[arg-type]
            strict=strict,
            rejects=rejects,
            on_step=on_step,
        )
    if as_json:
        print_json(report.as_dict())
    else:
        print(_as_text(report, explain))


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
