"""What the commands share: their panels, their common options, their JSON."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any, Final

import typer

SIMULATE: Final = "Simulate and compare"
PLAN: Final = "Plan and prepare"
PIPELINE: Final = "Data pipeline"
LIVE: Final = "Live nodes"
HOUSEKEEPING: Final = "Housekeeping"
WIDTH: Final = 80
"""Columns of a terminal."""

PANELS: Final = (SIMULATE, PLAN, PIPELINE, LIVE, HOUSEKEEPING)

PLAIN: Final[dict[str, Any]] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
}
"""How every group of commands is made: plain text, our own messages."""

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
Like = Annotated[
    str | None,
    typer.Option("--like", metavar="NAME", help="Set what makes a run comparable with another simulator: the-one."),
]
Master = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="Run on this Spark cluster: spark://host:7077.")
]
Remote = Annotated[
    str | None, typer.Option("--remote", metavar="URL", help="Run on this Spark Connect server: sc://host:15002.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def print_json(answer: dict[str, Any]) -> None:
    """Print one JSON object, null for what is no finite number."""
    print(json.dumps(_finite(answer), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    """The same value with null for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def seeds_of(count: int) -> str:
    """The number of seeds in words: 20 seeds, 1 seed."""
    return f"{count} seed{'s' if count > 1 else ''}"
