"""The commands of field data: serai pipeline run, status, retry and replay; and serai examples copy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from serai.cli.options import PLAIN, AsJson, ProtocolName, Settings, print_json
from serai.core.errors import BadInput, did_you_mean
from serai.scenario.examples import example_folders

pipelines = typer.Typer(help="Store, match, deliver and report what comes home.", **PLAIN)
examples = typer.Typer(help="Examples to copy and change.", **PLAIN)

_RECORDED_METRICS = (
    "wanted_pairs", "delivered_pairs", "delivery_ratio", "mean_delay_s", "median_delay_s", "p95_delay_s", "mean_hops",
    "fairness_channels", "fairness_subscribers", "worst_tenth_ratio", "starved_subscribers",
)  # fmt: skip
"""Metrics that need nothing but deliveries, the rest of a run is not recorded in tables."""

Configuration = Annotated[str, typer.Argument(metavar="FILE", help="The TOML file of a pipeline.", show_default=False)]


@pipelines.command()
def run(
    file: Configuration,
    once: Annotated[bool, typer.Option("--once", help="Stop once everything that has arrived is done.")] = False,
    poll: Annotated[str, typer.Option(metavar="T", help="How often to look for new files.")] = "5 s",
    only: Annotated[
        str | None, typer.Option(metavar="spool", help="Only keep what brokers send.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Land, read, match, store and deliver what arrives, until stopped."""
    from serai.cli.pipeline import seconds_of
    from serai.core.stopping import resumable
    from serai.pipeline.config import load_pipeline
    from serai.pipeline.run import listen, run_once
    from serai.pipeline.run import run as go_on

    config, poll_s = load_pipeline(file), seconds_of("--poll", poll)
    progress = _shown(sys.stderr if as_json else sys.stdout)
    if only not in (None, "spool"):
        raise BadInput(f"--only {only}: write --only spool")
    with resumable("give the same command again to go on"):
        if only == "spool":
            listen(config, progress)
            return
        spark = _session(config)
        if not once:
            go_on(config, spark, progress, poll_s)
            return
        status = run_once(config, progress, spark)
    if as_json:
        print_json(status.as_dict())
    else:
        print(_as_text(status, config.home))


@pipelines.command()
def status(file: Configuration, as_json: AsJson = False) -> None:
    """Show how a pipeline is doing; exit code 1 if there is an alert."""
    import time

    from serai.pipeline.config import load_pipeline
    from serai.pipeline.reports import status_of

    config = load_pipeline(file)
    found = status_of(config, time.time())
    if as_json:
        print_json(found.as_dict())
    else:
        print(_as_text(found, config.home))
    if found.alerts:
        raise typer.Exit(1)


@pipelines.command()
def retry(
    file: Configuration,
    match: Annotated[
        str | None,
        typer.Option(metavar="FROM..TO", help="Match the events of these days again, now.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let the next run read quarantined files again, or match past days."""
    from serai.pipeline.config import load_pipeline
    from serai.pipeline.replay import days_of
    from serai.pipeline.run import match_again
    from serai.pipeline.run import retry as try_again

    config = load_pipeline(file)
    if match is not None:
        days = days_of(match, "--match")
        found = match_again(config, days, _shown(sys.stderr if as_json else sys.stdout), _session(config))
        if as_json:
            print_json(found.as_dict())
        return
    count = try_again(config)
    if as_json:
        print_json({"files": count})
    else:
        print(f"{count} file{'s' if count != 1 else ''} will be read again by the next run")


def _session(config: Any) -> Any:
    from serai.spark.session import spark_session

    if config.master is None:
        return None
    print("starting Spark ...", file=sys.stderr, flush=True)
    return spark_session(config.master, only_schedules=True)


@pipelines.command()
def replay(
    file: Configuration,
    protocol: ProtocolName = None,
    days: Annotated[
        str | None,
        typer.Option(metavar="FROM..TO", help="Only these days, such as 2026-11-01..07.", show_default=False),
    ] = None,
    settings: Settings = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="For random orders; default: the recorded seed, or 0.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the simulated run to this folder.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate recorded contacts and events under a protocol."""
    from serai.cli.runs import measured
    from serai.kinds import kind_of
    from serai.lab import measure, write_run
    from serai.log.folder import check_out
    from serai.pipeline.config import load_pipeline
    from serai.pipeline.replay import in_words
    from serai.pipeline.replay import replay as simulate_recorded

    if out is not None:
        check_out(out)
    found = simulate_recorded(load_pipeline(file), protocol, days, settings or (), seed)
    run = found.simulated
    metrics = measure(run)
    before = None if found.recorded is None else found.recorded.metrics
    if out is not None:
        write_run(run, out)
    if as_json:
        told = None if before is None else {name: getattr(before, name) for name in _RECORDED_METRICS}
        print_json({"recorded": told, "simulated": metrics.as_dict(), "interval": list(found.interval)})
        return
    print(f"{run.protocol.upper()} · {in_words(found.interval)} · {', '.join(run.in_numbers()[:3])}\n")
    print(measured(kind_of(run.scenario).summary(run, metrics), metrics))
    if before is not None:
        print(
            f"\nrecorded: {before.delivered_pairs:,} of {before.wanted_pairs:,} pairs delivered"
            f" ({before.delivery_ratio:.1%}), mean delay {before.mean_delay_s:,.0f} s"
        )
    if out is not None:
        print(f"\nwritten to {out}")


@examples.command("copy")
def copy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which example.", show_default=False)],
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Where to.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Copy an example into a folder of the same name."""
    import shutil

    from serai.core.placing import check_new

    found = example_folders()
    if name not in found:
        raise BadInput(f'no example "{name}"; {did_you_mean(name, found)}')
    place = Path(out or name)
    check_new(place, place, ": exists already; name another folder with --out")
    shutil.copytree(found[name], place, ignore=shutil.ignore_patterns("__pycache__", "home", "outbox"))
    files = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
    if as_json:
        print_json({"folder": str(place), "files": files})
    else:
        print("\n".join([f"copied to {place}:", *(f"  {file}" for file in files)]))


def _shown(where: Any) -> Any:
    """What a pipeline does, a line each."""
    from serai.pipeline.run import Progress

    class Lines(Progress):
        def on_batch(self, done: Any) -> None:
            if not done.files:
                print(
                    f"batch {done.batch}: {done.rows:,} past events matched anew, {done.pairs:,} new pairs", file=where
                )
                return
            bad = f", {done.quarantined} in quarantine" if done.quarantined else ""
            print(
                f"batch {done.batch}: {done.files} files{bad}, {done.new:,} new events ({done.repeated:,} repeated,"
                f" {done.rejected:,} rejected), {done.pairs:,} pairs",
                file=where,
                flush=True,
            )

        def on_delivery(self, cursor: Any) -> None:
            if cursor.last_error:
                print(f"{cursor.receiver}: not told yet ({cursor.last_error})", file=sys.stderr, flush=True)

        def on_trouble(self, words: str) -> None:
            print(words, file=sys.stderr, flush=True)

    return Lines()


def _as_text(found: Any, home: Any) -> str:
    lines = [
        f"batches        {found.batches:>12,}   {found.files:,} files, {found.waiting:,} waiting,"
        f" {len(found.quarantined):,} in quarantine",
        f"events         {found.events:>12,}   {found.repeated:,} repeats left out, {found.rejected:,} rows rejected",
        f"pairs          {found.pairs:>12,}   for {len(found.subscriptions):,} subscriptions",
    ]
    for node in found.nodes[:20]:
        whole = "" if node.completeness is None else f"{node.completeness:7.1%} of its events"
        lines.append(
            f"  {node.node:<12} {node.arrived:>12,}   {whole}{'; missing ' if node.gaps else ''}{', '.join(node.gaps)}"
        )
    lines += [f"  quarantined: {each['name']}: {each['reason']}" for each in found.quarantined[:5]]
    lines += [f"  {each.receiver}: {each.last_error}" for each in found.receivers if each.last_error]
    lines += [f"alert: {alert}" for alert in found.alerts]
    return "\n".join([*lines, f"report: {home}/report.html"])
