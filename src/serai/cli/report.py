"""`serai report`: the report of a run or of a finished sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from serai.cli.options import AsJson, Master, Remote, print_json
from serai.cli.spark import session
from serai.core.errors import BadInput


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run or a sweep.", show_default=False)],
    master: Master = None,
    remote: Remote = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a run, demo, sweep or paper."""
    from serai.log.folder import RUN_FILE
    from serai.report import write_report, write_run_report
    from serai.sweeping.results import open_sweep
    from serai.sweeping.store import PLAN_FILE, Store

    if (folder / RUN_FILE).exists():
        page = write_run_report(folder)
    elif not (folder / PLAN_FILE).exists():
        missing = f"no run and no sweep here (neither {RUN_FILE} nor {PLAN_FILE})"
        raise BadInput(f"{folder}: {missing}; name a folder written with --out")
    else:
        Store(folder).plan()  # a damaged one is found out before Spark is started
        with session(master, remote) as spark:
            page = folder / write_report(open_sweep(folder, spark)).name
    if as_json:
        print_json({"report": str(page)})
    else:
        print(f"written to {page}")
