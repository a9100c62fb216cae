"""Runs, and the folders that keep them. Engines write them, all else reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from serai.log import contacts, field, overlay
from serai.log.contacts import ContactsRun
from serai.log.field import OUTCOMES, Drops, FullLog, Ledger, Run, Transfers
from serai.log.folder import RUN_FILE, check_keys, check_out, package_versions, read_description
from serai.log.overlay import OverlayRun
from serai.scenario import ContactsScenario, FieldScenario, OverlayScenario, Scenario, parse_scenario

__all__ = [
    "OUTCOMES",
    "ContactsRun",
    "Drops",
    "FullLog",
    "Ledger",
    "OverlayRun",
    "Run",
    "Transfers",
    "check_out",
    "package_versions",
    "read_run",
    "write_run",
]


def write_run(run: Any, folder: str | Path) -> Path:
    """Write a run to a new or empty folder, whole or not at all, and say where it is."""
    return _WRITE[type(run)](run, folder)  # type: ignore[no-any-return]


def read_run(folder: str | Path) -> Any:
    """The run that a folder keeps, equal to the one that was written there."""
    place = Path(folder)
    said = read_description(place)
    check_keys(place, said, ("scenario", "tables"))
    scenario = parse_scenario(said["scenario"], source=str(place / RUN_FILE))
    return _READ[type(scenario)](place, said, scenario)


_WRITE: dict[type, Any] = {
    Run: field.write_field_run,
    OverlayRun: overlay.write_overlay_run,
    ContactsRun: contacts.write_contacts_run,
}
_READ: dict[type[Scenario], Any] = {
    FieldScenario: field.read_field_run,
    OverlayScenario: overlay.read_overlay_run,
    ContactsScenario: contacts.read_contacts_run,
}
