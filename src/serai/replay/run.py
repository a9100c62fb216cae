"""From a run folder to its page: the full log is read, or simulated again and checked against the folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from serai.core.errors import BadInput
from serai.field.log import FieldRun
from serai.lab import read_run, simulate
from serai.log.folder import package_versions
from serai.log.run import SimulatedRun
from serai.replay.contacts import contacts_sheet
from serai.replay.field import field_sheet
from serai.replay.overlay import overlay_sheet
from serai.replay.page import render, write_page
from serai.replay.sheet import Sheet

PAGE: Final = "replay.html"
MOST_BYTES: Final = 25_000_000
"""A page beyond this is slow to open, and the command says so."""


_SHEETS: Final[dict[str, Callable[[Any], Sheet]]] = {
    "field": field_sheet,
    "opportunistic": contacts_sheet,
    "overlay": overlay_sheet,
}


class Replay(NamedTuple):
    """A page that was written."""

    page: Path
    bytes: int
    simulated_again: bool


def write_replay(folder: str | Path, out: str | Path | None = None) -> Replay:
    """Write the page that plays the run of a folder, by default into the folder."""
    run = read_run(folder)
    if not isinstance(run, SimulatedRun):
        raise BadInput(f"{folder}: real nodes logged this; only simulated runs can be played so far")
    page, again = page_of(run, str(folder))
    file = write_page(page, Path(folder) / PAGE if out is None else Path(out))
    return Replay(file, len(page.encode()), again)


def page_of(run: SimulatedRun, source: str = "run") -> tuple[str, bool]:
    """The page of a run, and whether it had to be simulated again for it."""
    whole = run if run.full_log else again_with_full_log(run, source)
    return render(run.kind, _sheet(whole)), whole is not run


def again_with_full_log(run: SimulatedRun, source: str) -> SimulatedRun:
    """The same run with its full log; refused if this version of serai gives another one."""
    options = {"full_log": True} | ({"until_death": True} if _died(run) else {})
    whole = simulate(run.scenario, None, run.seed, **options)
    different = [
        name for name, table in run.tables.items() if not whole.tables[name].equals(table, check_metadata=False)
    ]
    if different or whole.counts() != run.counts():
        told = _difference(run.versions, package_versions())
        raise BadInput(
            f"{source}: kept without the full log, and simulated again it is not the same run"
            f" ({', '.join(different) or 'its counts'} differ; {told}); simulate it with --full-log"
        )
    return whole


def _died(run: SimulatedRun) -> bool:
    return isinstance(run, FieldRun) and run.ledger.ended_s is not None


def _difference(one: dict[str, str], other: dict[str, str]) -> str:
    changed = [
        f"{name} was {version}, is {other.get(name)}" for name, version in one.items() if other.get(name) != version
    ]
    return ", ".join(changed) or "the versions are the same"


def _sheet(run: SimulatedRun) -> Sheet:
    sheet = _SHEETS[run.kind](run)
    common: dict[str, Any] = {
        "title": run.scenario.title or run.scenario.name,
        "protocol": run.protocol,
        "seed": run.seed,
        "attributes": list(run.attributes),
    }
    return sheet._replace(head=common | sheet.head)
