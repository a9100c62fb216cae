"""`serai replay`: a run to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from serai.cli.options import AsJson, print_json


def replay(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page here, not into the folder.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a page that plays a run in any browser."""
    from serai.cli.spark import say
    from serai.replay import run

    made = run.write_replay(folder, out)
    if made.bytes > run.MOST_BYTES:
        say("notice", f"{made.bytes / 1e6:.0f} MB: browsers take a while to open this page; nothing was left out of it")
    if as_json:
        print_json({"replay": str(made.page), "bytes": made.bytes, "simulated_again": made.simulated_again})
    else:
        print(f"written to {made.page} ({made.bytes / 1e6:.1f} MB)")
