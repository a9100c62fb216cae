"""The commands of field data: serai pipeline run, status and retry; and serai examples copy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import serai
from serai.cli.options import PLAIN, AsJson, print_json
from serai.core.errors import BadInput, did_you_mean

pipelines = typer.Typer(help="Keep, match, deliver and report what comes home.", **PLAIN)
examples = typer.Typer(help="Examples to copy and change.", **PLAIN)

Configuration = Annotated[str, typer.Argument(metavar="FILE", help="The TOML file of a pipeline.", show_default=False)]


@pipelines.command()
def run(
    file: Configuration,
    once: Annotated[bool, typer.Option("--once", help="Stop when all that is there is done.")] = False,
    poll: Annotated[str, typer.Option(metavar="T", help="How often to look for new files.")] = "5 s",
    as_json: AsJson = False,
) -> None:
    """Land, read, match, keep and deliver what arrives, until stopped."""
    import time

    from serai.cli.pipeline import seconds_of
    from serai.core.stopping import resumable
    from serai.pipeline.config import load_pipeline
    from serai.pipeline.run import run as go_on
    from serai.pipeline.run import run_once
    from serai.spark.session import spark_session

    config, poll_s = load_pipeline(file), seconds_of("--poll", poll)
    progress = _shown(sys.stderr if as_json else sys.stdout)
    with resumable("give the same command again to go on"):
        if config.master is not None:
            print("starting Spark ...", file=sys.stderr, flush=True)
        spark = None if config.master is None else spark_session(config.master)
        if once or spark is None:
            status = run_once(config, progress, spark)
            while not once:  # without Spark there is nobody else to call us
                time.sleep(poll_s)
                status = run_once(config, progress)
        else:
            go_on(config, spark, progress, poll_s)
            return
    if as_json:
        print_json(status.as_dict())
    else:
        print(_as_text(status, config.home))


@pipelines.command()
def status(file: Configuration, as_json: AsJson = False) -> None:
    """Say how a pipeline stands; exit code 1 if an alert is on."""
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
def retry(file: Configuration, as_json: AsJson = False) -> None:
    """Let the next run read quarantined files again."""
    from serai.pipeline.config import load_pipeline
    from serai.pipeline.run import retry as try_again

    count = try_again(load_pipeline(file))
    if as_json:
        print_json({"files": count})
    else:
        print(f"{count} file{'s' if count != 1 else ''} will be read again by the next run")


@examples.command("copy")
def copy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which example.", show_default=False)],
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Where to.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Copy an example into a folder of its name."""
    import shutil

    found = _examples()
    if name not in found:
        raise BadInput(f'no example "{name}"; {did_you_mean(name, found)}')
    place = Path(out or name)
    if place.exists():
        raise BadInput(f"{place}: exists already; name another folder with --out")
    shutil.copytree(found[name], place, ignore=shutil.ignore_patterns("__pycache__", "home", "outbox"))
    files = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
    if as_json:
        print_json({"folder": str(place), "files": files})
    else:
        print("\n".join([f"copied to {place}:", *(f"  {file}" for file in files)]))


def _examples() -> dict[str, Path]:
    """The folders of examples: beside the package as it is installed, or in the sources."""
    package = Path(serai.__file__).parent
    for there in (package / "examples", package.parents[1] / "examples"):
        if there.is_dir():
            return {each.name: each for each in sorted(there.iterdir()) if each.is_dir() and each.name[0] not in "._"}
    return {}


def _shown(where: Any) -> Any:
    """What a pipeline does, a line each."""
    from serai.pipeline.run import Progress

    class Lines(Progress):
        def on_batch(self, done: Any) -> None:
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

    return Lines()


def _as_text(found: Any, home: Path) -> str:
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
    return "\n".join([*lines, f"report: {home / 'report.html'}"])
