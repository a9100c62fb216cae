"""The commands on scenario files: list, show, check, new, import, schema."""

from __future__ import annotations

import errno
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from serai.cli.options import PLAIN, WIDTH, AsJson, Like, ProtocolName, ScenarioName, Settings, print_json
from serai.core.errors import BadInput, BadScenario, Problem

if TYPE_CHECKING:
    from serai.opportunistic.imported import FoundMessages, FoundTrace

scenarios = typer.Typer(**PLAIN)


@scenarios.callback(invoke_without_command=True)
def _scenario(context: typer.Context) -> None:
    """Scenario files: list, show, check, new, import, schema."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@scenarios.command("list")
def scenario_list(as_json: AsJson = False) -> None:
    """List the built-in scenarios."""
    from serai.lab import load_scenario
    from serai.scenario.load import builtin_names

    titles = {name: load_scenario(name).title for name in builtin_names()}
    if as_json:
        print_json({"scenarios": [{"name": name, "title": title} for name, title in titles.items()]})
    else:
        print("\n".join(f"{name:<8} {title}" for name, title in titles.items()))


@scenarios.command("show")
def scenario_show(
    scenario: ScenarioName, protocol: ProtocolName = None, settings: Settings = None, as_json: AsJson = False
) -> None:
    """Print a scenario as TOML, every default included."""
    from serai.lab import load_scenario
    from serai.scenario.write import to_toml

    loaded = load_scenario(scenario, overrides=settings or (), protocol=protocol)
    if as_json:
        print_json(loaded.model_dump(mode="json", by_alias=True))
    else:
        print(to_toml(loaded), end="")


@scenarios.command("check")
def scenario_check(
    scenario: ScenarioName, protocol: ProtocolName = None, settings: Settings = None, as_json: AsJson = False
) -> None:
    """List all that is wrong with a scenario and the files it names."""
    from serai.kinds import kind_of
    from serai.lab import load_scenario

    try:
        loaded = load_scenario(scenario, overrides=settings or (), protocol=protocol)
        kind_of(loaded).check_files(loaded)
    except BadInput as error:
        if not as_json:
            raise
        problems = error.problems if isinstance(error, BadScenario) else (Problem("", str(error)),)
        print_json({"ok": False, "problems": [vars(problem) for problem in problems]})
        raise typer.Exit(2) from None
    if as_json:
        print_json({"ok": True, "problems": []})
    else:
        print(f"{scenario}: ok · {loaded.protocol.name.upper()} · {loaded.in_one_line()}")


@scenarios.command("new")
def scenario_new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.", show_default=False)],
    builtin: Annotated[
        str, typer.Option("--from", metavar="NAME", help="Start from this built-in scenario.")
    ] = "field",
    as_json: AsJson = False,
) -> None:
    """Write a scenario file of your own to start from."""
    from serai.lab import new_scenario_text

    _write_new(file, new_scenario_text(builtin))
    if as_json:
        print_json({"file": str(file), "from": builtin})
    else:
        print(f"written to {file}; try: serai run {file}")


@scenarios.command("import")
def scenario_import(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace of contacts or positions.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="NAME.toml", help="The scenario to write.", show_default=False)],
    messages: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What is published: a report of The ONE, or CSV.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="The format, if it cannot be told from the file.")
    ] = "auto",
    radio_range: Annotated[
        str | None, typer.Option("--range", metavar="M", help='Radio range for positions: --range "100 m".')
    ] = None,
    protocol: Annotated[str, typer.Option(metavar="P", help="The protocol to run.")] = "dpsp",
    like: Like = None,
    time_unit: Annotated[
        str | None, typer.Option(metavar="U", help="The file's unit of time: us, ms, s, min or h.")
    ] = None,
    nodes: Annotated[str, typer.Option(metavar="N", help='Only these nodes: --nodes "1-41, n50".')] = "",
    gap: Annotated[
        str | None, typer.Option(metavar="T", help="Join contacts no further apart; positions further apart are a gap.")
    ] = None,
    min_contact: Annotated[str | None, typer.Option(metavar="T", help="Leave out contacts shorter than this.")] = None,
    offset: Annotated[
        str | None, typer.Option(metavar="T", help="The run begins this long after the trace does.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="T", help="The run ends this long after the trace begins.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first line that cannot be read, instead of counting it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a scenario from a trace, and show what is in it."""
    from serai.opportunistic.imported import ImportOptions, import_trace

    if out.exists():
        raise BadInput(f"{out}: exists already; choose another name, or remove it first")
    wanted = ImportOptions(
        messages, form, strict, radio_range, protocol, time_unit, nodes, gap, min_contact, offset, until, like
    )
    found, text = import_trace(file, out, wanted)
    _write_new(out, text)
    if as_json:
        print_json(found.as_dict() | {"scenario": str(out)})
    else:
        print(f"{_found_in_trace(found)}\nwritten to {out}; try: serai run {out}")


def _found_in_trace(found: FoundTrace) -> str:
    """What `serai scenario import` found: format, nodes, contacts, span, gaps, and what it had to decide."""
    lines = [f"{found.file}: {found.format} ({found.title})", f" lines      {found.lines:>10,}"]
    lines.append(f" nodes      {found.nodes:>10,}")
    if found.range_m is not None:
        lines.append(f" positions  {found.positions:>10,}")
    at = f"   within {found.range_m:g} m of each other" if found.range_m is not None else ""
    lines.append(f" contacts   {found.contacts:>10,}{at}")
    span = f"{found.last_s - found.first_s:,.0f} s"
    lines.append(f" span       {span:>10}   from {found.first_s:,.0f} s to {found.last_s:,.0f} s of the file")
    if found.begin_s > found.first_s or found.end_s < found.last_s:
        run = f"{found.end_s - found.begin_s:,.0f} s"
        lines.append(f" run        {run:>10}   from {found.begin_s:,.0f} s to {found.end_s:,.0f} s of the file")
    if found.gap_s and found.range_m is not None:
        lines.append(f" gaps       {found.gaps:>10,}   longer than {found.gap_s:,.0f} s between two positions")
    if found.messages is not None:
        lines += _found_messages(found.messages)
    lines += [f" {found.origin}"] if found.origin else []
    noticed = [*found.noticed, *(f"messages: {what}" for what in (found.messages.noticed if found.messages else ()))]
    for what in noticed:
        lines += textwrap.wrap(what, WIDTH, initial_indent=" ! ", subsequent_indent="   ")
    return "\n".join(lines)


def _found_messages(messages: FoundMessages) -> list[str]:
    to_whom = f"{messages.directed:,} of them to one node each, the others on channels"
    if messages.directed in (0, messages.count):
        to_whom = "to one node each" if messages.directed else "on channels"
    lines = [f" messages   {messages.count:>10,}   {to_whom}"]
    if messages.strangers:
        lines.append(f"            {messages.strangers:>10,}   nodes of theirs are not in the trace and meet nobody")
    return lines


def _write_new(file: Path, text: str) -> None:
    """Write a file that is not there yet."""
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise BadInput(f"{file}: exists already; choose another name, or remove it first") from None
    except OSError as error:
        if error.errno == errno.ENOSPC:  # made, and not filled
            file.unlink(missing_ok=True)
        raise BadInput(f"{file}: cannot be written: {error.strerror}") from None


@scenarios.command("schema")
def scenario_schema(as_json: AsJson = False) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from serai.lab import scenario_schema

    print_json(scenario_schema())
