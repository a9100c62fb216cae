"""`serai report`: the report of a run or of a finished sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from serai.cli.options import AsJson, Master, Remote, print_json
from serai.cli.spark import session


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run or a sweep.", show_default=False)],
    master: Master = None,
    remote: Remote = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a run, demo, sweep or paper folder."""
    from serai.log.folder import RUN_FILE
    from serai.report import write_report, write_run_report
    from serai.sweeping.results import open_sweep
    from serai.sweeping.store import Store

    if (folder / RUN_FILE).exists():
        page = write_run_report(folder)
    else:
        Store(folder).plan()  # a folder without a sweep is found out before Spark is started
        with session(master, remote) as spark:
            page = folder / write_report(open_sweep(folder, spark)).name
    if as_json:
        print_json({"report": str(page)})
    else:
        print(f"written to {page}")
