"""`serai replay`: a run to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from serai.cli.options import AsJson, print_json
from serai.core.errors import BadInput


def replay(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the page here instead of into the folder.", show_default=False),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar="T", help="Start here, and keep all from here: 0:44:00 or '44 min'."),
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="T", help="Keep all up to here.")] = None,
    events: Annotated[
        list[int] | None, typer.Option("--events", metavar="N", help="Keep this event's whole life. May be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a page that plays a run in any browser.

    Nothing is left out up to 25 MB. Of larger runs the page keeps all that happens from --from to --to, the whole life
    of one event in n and of those named, and exact sums of the rest; it says so.
    """
    from serai.cli.spark import say
    from serai.replay import run

    begin_s, end_s = _seconds(begin, "--from"), _seconds(end, "--to")
    made = run.write_replay(folder, out, begin_s=begin_s, end_s=end_s, events=events or ())
    if made.left_out:
        say("notice", made.left_out)
    if made.bytes > run.MOST_BYTES:
        say("notice", f"{made.bytes / 1e6:.0f} MB: browsers take a while to open this page")
    if as_json:
        answer = {"replay": str(made.page), "bytes": made.bytes, "simulated_again": made.simulated_again}
        print_json(answer | {"left_out": made.left_out or None})
    else:
        print(f"written to {made.page} ({made.bytes / 1e6:.1f} MB)")


def _seconds(text: str | None, option: str) -> float | None:
    """The time that a text says: as the page shows it (0:44:00), or with a unit (44 min)."""
    from serai.core.units import TIME, parse_quantity

    if text is None:
        return None
    parts = text.split(":")
    if len(parts) == 3 and all(part.isdigit() for part in parts):
        return float(3600 * int(parts[0]) + 60 * int(parts[1]) + int(parts[2]))
    try:
        return parse_quantity(text, TIME)
    except ValueError as error:
        raise BadInput(f"{option}: {error}, or like 0:44:00") from error
