"""The command line: each command calls one public function and prints what it answers.

Whatever is heavy (numpy, numba, pydantic, pyarrow) is imported inside the commands, so that `serai --help` is
quick. Answers go to stdout, everything else (progress, notices, errors) to stderr.
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from serai import __version__
from serai.errors import BadInput, BadScenario, SeraiError, did_you_mean

_SIMULATE: Final = "Simulate and compare"
_PLAN: Final = "Plan and prepare"
_HOUSEKEEPING: Final = "Housekeeping"


class _GroupedCommands(TyperGroup):
    """A list of commands in the order of the panels, plain text, 80 columns."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {_SIMULATE: [], _PLAN: [], _HOUSEKEEPING: []}
        for name, command in self.commands.items():
            rows[command.rich_help_panel].append((name, command.get_short_help_str(60)))  # type: ignore[attr-defined]
        for panel, commands in rows.items():
            with formatter.section(panel):
                formatter.write_dl(commands)


_PLAIN: Final[dict[str, Any]] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
}
app = typer.Typer(cls=_GroupedCommands, **_PLAIN)
scenarios = typer.Typer(**_PLAIN)
app.add_typer(scenarios, name="scenario", rich_help_panel=_PLAN)

ScenarioName = Annotated[
    str,
    typer.Argument(metavar="SCENARIO", help="A TOML file, or the name of a built-in scenario.", show_default=False),
]
ProtocolName = Annotated[
    str | None, typer.Option("--protocol", metavar="P", help="Use this protocol, with its defaults, instead.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="K=V", help="Change one setting: --set protocol.alpha=10. May be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def main() -> None:
    """The entry point: run the command line and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal without "±" gets a "?"
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """The exit code of a command line: 0 done, 1 failed, 2 bad input, 130 stopped by Ctrl-C."""
    try:
        code = app(args=list(arguments), prog_name="serai", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our answer has gone; what is left to say goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except typer.TyperException as error:
        return _complain(_usage_message(error), code=2)
    except BadInput as error:
        return _complain(str(error), code=2)
    except SeraiError as error:
        return _complain(str(error), code=1)
    except OSError as error:  # the machine's doing: a full disk, no permission
        return _complain(f"serai: {error.filename or 'this machine'}: {error.strerror or error}", code=1)
    except MemoryError:
        return _complain("serai: not enough memory for this scenario; try fewer sensors or subscribers", code=1)
    except Exception as error:
        return _complain(_bug_message(error), code=1)


def _complain(message: str, code: int) -> int:
    if os.environ.get("SERAI_DEBUG"):
        traceback.print_exc()
    print(message, file=sys.stderr)
    return code


def _usage_message(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "serai"
    return f"{command}: {error.format_message()}\nTry: {command} --help"


def _bug_message(error: Exception) -> str:
    return (
        f"serai: this is a bug in serai, not in your input: {type(error).__name__}: {error}\n"
        "Please report it with the command and the output of `serai doctor`; SERAI_DEBUG=1 shows more."
    )


def _print_json(answer: dict[str, Any]) -> None:
    print(json.dumps(_finite(answer), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    """The same value with null for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"serai {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Publish/subscribe for rarely connected sensor networks: simulate and measure."""
    if context.invoked_subcommand is None:
        print(context.get_help())


# Simulate and compare


@app.command(rich_help_panel=_SIMULATE)
def demo(
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds per protocol.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Compare CED, CET and DG with their papers, over a few seeds."""
    from serai.demo import SCENARIOS, compare
    from serai.present import comparison, seeds_of, world_line
    from serai.scenario import load_scenario

    if not as_json:
        print(f"serai demo   {world_line(load_scenario(SCENARIOS[0]))} · {seeds_of(seeds)}\n", flush=True)
    with _progress(seeds, len(SCENARIOS)) as on_run:
        rows = compare(seeds, on_run)
    if as_json:
        _print_json({"seeds": seeds, "confidence": 0.95, "protocols": {row.protocol: row.as_dict() for row in rows}})
    else:
        print(comparison(rows, seeds))


@app.command(rich_help_panel=_SIMULATE)
def run(
    scenario: ScenarioName,
    protocol: ProtocolName = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="World, movement, events: all follow from it.")] = 0,
    settings: Settings = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the run to this new or empty folder.", show_default=False),
    ] = None,
    full_log: Annotated[
        bool, typer.Option("--full-log", help="Also write every transfer and drop (needs --out).")
    ] = False,
    until_death: Annotated[
        bool,
        typer.Option("--until-death", help="Simulate until the first sensor dies, for its real lifetime."),
    ] = False,
    ceiling: Annotated[bool, typer.Option(help="Also say what contacts alone would allow.")] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate one run of a scenario and measure it."""
    if full_log and out is None:
        raise BadInput("--full-log: the transfer log is written to the run's folder; name one with --out DIR")
    from serai.log import check_out, write_run
    from serai.metrics import measure
    from serai.present import measured, world_line
    from serai.scenario import load_scenario
    from serai.simulate import simulate

    if out is not None:
        check_out(out)
    loaded = load_scenario(scenario, overrides=settings or (), protocol=protocol)
    result = simulate(loaded, seed=seed, full_log=full_log, until_death=until_death)
    metrics = measure(result, ceiling=ceiling).as_dict()
    if out is not None:
        write_run(result, out)
    if as_json:
        _print_json(metrics)
    else:
        print(f"{loaded.protocol.name.upper()} · seed {seed} · {world_line(loaded)}\n")
        print(measured(metrics, until_death, ceiling))
        if out is not None:
            print(f"\nwritten to {out}")


@contextmanager
def _progress(seeds: int, protocols: int) -> Iterator[Callable[[str], None]]:
    """A function to call after each run: a bar on a terminal, a line per protocol elsewhere; on stderr."""
    if not sys.stderr.isatty():
        yield _line_per_protocol(seeds)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(" simulate"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("simulate", total=seeds * protocols)
        yield lambda _protocol: bar.advance(task)


def _line_per_protocol(seeds: int) -> Callable[[str], None]:
    done: Counter[str] = Counter()

    def on_run(protocol: str) -> None:
        done[protocol] += 1
        if done[protocol] == seeds:
            print(f"{protocol}: {seeds} runs done", file=sys.stderr, flush=True)

    return on_run


# Plan and prepare


@scenarios.callback(invoke_without_command=True)
def _scenario(context: typer.Context) -> None:
    """Scenario files: list, show, check, new, schema."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@scenarios.command("list")
def scenario_list(as_json: AsJson = False) -> None:
    """List the built-in scenarios."""
    from serai.scenario import builtin_names, load_scenario

    titles = {name: load_scenario(name).title for name in builtin_names()}
    if as_json:
        _print_json({"scenarios": [{"name": name, "title": title} for name, title in titles.items()]})
    else:
        print("\n".join(f"{name:<8} {title}" for name, title in titles.items()))


@scenarios.command("show")
def scenario_show(
    scenario: ScenarioName, protocol: ProtocolName = None, settings: Settings = None, as_json: AsJson = False
) -> None:
    """Print a scenario as TOML, every default included."""
    from serai.scenario import load_scenario, to_toml

    loaded = load_scenario(scenario, overrides=settings or (), protocol=protocol)
    if as_json:
        _print_json(loaded.model_dump(mode="json", by_alias=True))
    else:
        print(to_toml(loaded), end="")


@scenarios.command("check")
def scenario_check(
    scenario: ScenarioName, protocol: ProtocolName = None, settings: Settings = None, as_json: AsJson = False
) -> None:
    """Say everything that is wrong with a scenario, without running it."""
    from serai.present import world_line
    from serai.scenario import load_scenario

    try:
        loaded = load_scenario(scenario, overrides=settings or (), protocol=protocol)
    except BadScenario as error:
        if not as_json:
            raise
        _print_json({"ok": False, "problems": [vars(problem) for problem in error.problems]})
        raise typer.Exit(2) from None
    if as_json:
        _print_json({"ok": True, "problems": []})
    else:
        print(f"{scenario}: ok · {loaded.protocol.name.upper()} · {world_line(loaded)}")


@scenarios.command("new")
def scenario_new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.", show_default=False)],
    builtin: Annotated[
        str, typer.Option("--from", metavar="NAME", help="Start from this built-in scenario.")
    ] = "field",
    as_json: AsJson = False,
) -> None:
    """Write a scenario file of your own to start from."""
    from serai.scenario import new_scenario_text

    text = new_scenario_text(builtin)
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise BadInput(f"{file}: exists already; choose another name, or remove it first") from None
    except OSError as error:
        raise BadInput(f"{file}: cannot be written: {error.strerror}") from None
    if as_json:
        _print_json({"file": str(file), "from": builtin})
    else:
        print(f"written to {file}; try: serai run {file}")


@scenarios.command("schema")
def scenario_schema(as_json: AsJson = False) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from serai.scenario import scenario_schema

    _print_json(scenario_schema())


# Housekeeping


@app.command(rich_help_panel=_HOUSEKEEPING)
def protocols(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Only this protocol.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the protocols and their settings."""
    from serai.present import protocol_as_dict, protocol_as_text
    from serai.protocols import PROTOCOLS

    if name is not None and name not in PROTOCOLS:
        raise BadInput(f'no protocol "{name}"; {did_you_mean(name, PROTOCOLS)}')
    chosen = [PROTOCOLS[name]] if name else list(PROTOCOLS.values())
    if as_json:
        _print_json({"protocols": [protocol_as_dict(protocol) for protocol in chosen]})
    else:
        print("\n\n".join(protocol_as_text(protocol) for protocol in chosen))


@app.command(rich_help_panel=_HOUSEKEEPING)
def doctor(as_json: AsJson = False) -> None:
    """Check that this machine is ready to run serai."""
    from serai.doctor import check_machine
    from serai.present import checked

    checks = check_machine()
    if as_json:
        _print_json({"ok": all(check.ok for check in checks), "checks": [vars(check) for check in checks]})
    else:
        print(checked(checks))
    if not all(check.ok for check in checks):
        raise typer.Exit(1)
