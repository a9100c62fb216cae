"""`serai paper`: the tables, figures and claims of the papers, reproduced on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from serai.cli.options import AsJson, Master, Remote, print_json
from serai.cli.spark import say, session, shown_progress
from serai.core.errors import BadInput


def paper(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Which paper: ced, cet (all: both), tinymq or dpsp; serai: our own protocol.",
            show_default=False,
        ),
    ],
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds per set-up.")] = 100,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of runs and report.", show_default="serai-paper-NAME"),
    ] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="Also try each other reading of the open points.")] = False,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the results as Markdown.", show_default=False)
    ] = None,
    master: Master = None,
    remote: Remote = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce a paper: published, ours, every claim judged."""
    from serai.cli.sweep import sweep_line
    from serai.report.studies import find_study
    from serai.sweeping.run import run_sweep
    from serai.sweeping.store import Store

    study, papers = find_study(name)
    study.check(name, {"--ablate": ablate, "--markdown": markdown is not None})
    folder = out or Path(f"serai-paper-{name}")
    plan = study.plan(papers, seeds, ablate)
    Store(folder).check(plan)
    if not as_json:
        print(f"serai {sweep_line(plan)}\n", flush=True)
    with session(master, remote) as spark:
        with shown_progress() as progress:
            sweep = run_sweep(plan, folder, spark, progress=progress)
        found = study.read(sweep)
    page = study.write(found, folder)
    say("report", str(page))
    if markdown is not None and study.as_markdown is not None:
        _write(markdown, study.as_markdown(found))
    if as_json:
        print_json({"paper": name, "seeds": seeds, "confidence": 0.95, "report": str(page), **study.as_dict(found)})
    else:
        print(study.as_text(found))


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{file}: cannot be written: {error.strerror}") from None
