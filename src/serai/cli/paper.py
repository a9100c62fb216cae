"""`serai paper`: the tables, figures and claims of the papers, reproduced on Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from serai.cli.options import AsJson, Master, Remote, print_json
from serai.cli.spark import say, session, shown_progress
from serai.core.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    from serai.report.reproduction import Reproduction
    from serai.sweep.plan import Plan


def paper(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Which paper: ced, cet (all: both), tinymq or dpsp.", show_default=False),
    ],
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds per set-up.")] = 100,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of runs and report.", show_default="serai-paper-NAME"),
    ] = None,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Also run the other readings of the open points, one by one.")
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the results as Markdown.", show_default=False)
    ] = None,
    master: Master = None,
    remote: Remote = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce a paper: published, ours, every claim judged."""
    from serai.cli.present import sweep_line
    from serai.report import read_reproduction, write_pages
    from serai.sweep.run import run_sweep
    from serai.sweep.store import Store

    folder = out or Path(f"serai-paper-{name}")
    if name == "dpsp":
        if ablate or markdown:
            raise BadInput("--ablate and --markdown: not for dpsp, whose text prints no numbers")
        _study(seeds, folder, master, remote, as_json)
        return
    plan, words = _how_to_reproduce(name, seeds, ablate)
    Store(folder).check(plan)
    if not as_json:
        print(f"serai {sweep_line(plan)}\n", flush=True)
    with session(master, remote) as spark:
        with shown_progress() as progress:
            run_sweep(plan, folder, spark, progress=progress)
        found = read_reproduction(folder, spark)
    page = write_pages(found, folder)
    say("report", str(page))
    if markdown is not None:
        _write(markdown, words.as_markdown(found))
    if as_json:
        print_json({"paper": name, "seeds": seeds, "confidence": 0.95, "report": str(page), **words.as_dict(found)})
    else:
        print(words.as_text(found))


class _Words(NamedTuple):
    """A reproduction for machines, terminals and pages."""

    as_dict: Callable[[Reproduction], dict[str, Any]]
    as_text: Callable[[Reproduction], str]
    as_markdown: Callable[[Reproduction], str]


def _how_to_reproduce(name: str, seeds: int, ablate: bool) -> tuple[Plan, _Words]:
    """The runs that a paper takes, and how its reproduction is told."""
    from serai.field.paper import PAPERS
    from serai.overlay.paper import PAPER as TINYMQ
    from serai.report import markdown, reproduction, terminal, tinymq
    from serai.report.paper import paper_plan

    if name == TINYMQ.name:
        if ablate:
            raise BadInput("--ablate: not for tinymq, whose readings are always run")
        return tinymq.tinymq_plan(seeds), _Words(tinymq.as_dict, tinymq.as_text, tinymq.as_markdown)
    if name != "all" and name not in PAPERS:
        raise BadInput(f'no paper "{name}"; {did_you_mean(name, [*PAPERS, TINYMQ.name, "dpsp", "all"])}')
    plan = paper_plan(tuple(PAPERS) if name == "all" else (name,), seeds, ablate)
    return plan, _Words(reproduction.as_dict, terminal.as_text, markdown.as_markdown)


def _study(seeds: int, folder: Path, master: str | None, remote: str | None, as_json: bool) -> None:
    """DPSP: every combination of filters and priorities, ranked; the text's claims judged."""
    from serai.cli.present import sweep_line
    from serai.report.dpsp import as_dict, as_text, read_study, study_plan, write_study
    from serai.sweep.run import run_sweep
    from serai.sweep.store import Store

    plan = study_plan(seeds)
    Store(folder).check(plan)
    if not as_json:
        print(f"serai {sweep_line(plan)}\n", flush=True)
    with session(master, remote) as spark:
        with shown_progress() as progress:
            sweep = run_sweep(plan, folder, spark, progress=progress)
        found = read_study(sweep)
    page = write_study(found, folder)
    say("report", str(page))
    if as_json:
        print_json({"paper": "dpsp", "seeds": seeds, "confidence": 0.95, "report": str(page), **as_dict(found)})
    else:
        print(as_text(found))


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{file}: cannot be written: {error.strerror}") from None
