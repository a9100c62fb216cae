"""The command that looks for the cheapest deployment."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from serai.cli.options import WIDTH, AsJson, Master, Remote, ScenarioName, print_json
from serai.cli.spark import say, session, shown_progress
from serai.core.counting import counted

if TYPE_CHECKING:
    from serai.planning.deployments import Search
    from serai.planning.race import Round
    from serai.planning.search import Found


def plan(
    scenario: ScenarioName,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The plan's folder (SCENARIO-plan); an unfinished one is resumed."),
    ] = None,
    goal: Annotated[
        list[str] | None, typer.Option(metavar="G", help='A goal: "delivery_ratio >= 95 %". May be repeated.')
    ] = None,
    cost: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="What each one costs: subscribers=400. May be repeated.")
    ] = None,
    vary: Annotated[
        list[str] | None, typer.Option(metavar="K=V,V", help="What may be chosen: subscribers.count=2..8.")
    ] = None,
    at_most: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The most runs, over all deployments together.")
    ] = None,
    certain: Annotated[
        bool, typer.Option("--certain", help="Hold the stated certainty for any results; takes more runs.")
    ] = False,
    master: Master = None,
    remote: Remote = None,
    as_json: AsJson = False,
) -> None:
    """Find the cheapest deployment that meets your goals."""
    from serai.planning.deployments import plan_search
    from serai.planning.search import find_deployment
    from serai.report.plan import write_plan_report
    from serai.sweeping.store import Store

    wanted = {"vary": _pairs(vary, "--vary"), "cost": _pairs(cost, "--cost")}
    search = plan_search(scenario, goal=goal or (), at_most=at_most, certain=certain, **wanted)
    folder = out or Path(f"{search.name}-plan")
    Store(folder).check(search.sweep)
    if not as_json:
        print(f"serai plan  {_in_one_line(search)}\n", flush=True)
    with session(master, remote) as spark, shown_progress() as progress:
        found = find_deployment(search, folder, spark, progress, lambda one: say("round", _round(one, search)))
    page = write_plan_report(found)
    say("report", str(page))
    if as_json:
        print_json(_as_json(found, page))
    else:
        _print_answer(found)


def _pairs(written: list[str] | None, option: str) -> dict[str, Any] | None:
    """What options of the form key=value say."""
    from serai.core.errors import BadInput
    from serai.scenario.load import toml_value

    if not written:
        return None
    found = {}
    for text in written:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            example = "subscribers=400" if option == "--cost" else "subscribers.count=2..8"
            raise BadInput(f"{option} {text}: no key=value; write it like {option} {example}")
        # Values of settings are read later: a range is no TOML.
        is_toml = option == "--cost" or value.lstrip().startswith("{")
        found[key.strip()] = toml_value(value) if is_toml else value
    return found


def _in_one_line(search: Search) -> str:
    goals = " · ".join(goal.text for goal in search.goals)
    return f"{search.name} · {counted(len(search.deployments), 'deployments')} · {goals}"


def _round(one: Round, search: Search) -> str:
    states = [f"{one.missing} miss a goal", f"{one.dearer} dearer", f"{one.meeting} meet all"]
    return (
        f"{one.number}: {counted(one.deployments, 'deployments')}, {', '.join(states)}, {one.still_open} in the race;"
        f" {one.runs:,} of at most {search.limits.budget:,} runs"
    )


def _print_answer(found: Found) -> None:
    from serai.planning.answer import explanation, headline
    from serai.report.plan import terminal_table
    from serai.report.tables import to_text

    print(f"\n{headline(found)}")
    for sentence in explanation(found):
        print(textwrap.fill(sentence, WIDTH))
    print(f"\n{to_text(terminal_table(found))}")
    for number, goal in enumerate(found.search.goals, start=1):
        print(f" ({number}) {goal.text}")
    print(f"\nwritten to {found.folder}")


def _as_json(found: Found, page: Path) -> dict[str, Any]:
    from serai.report.plan import answer_json

    return answer_json(found) | {"folder": str(found.folder), "report": str(page)}
