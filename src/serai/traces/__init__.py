"""Readers of other people's traces: who met whom, or who was where, in the formats that the field uses.

Every reader takes a path (plain or gzip) and answers a `ContactTrace` or a `TrackTrace`. Lines that cannot be
read are left out, counted and named; a strict reader stops at the first of them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from serai.core.errors import BadInput, did_you_mean
from serai.traces.contacts import ContactTrace, read_crawdad, read_one_contacts
from serai.traces.movebank import read_movebank
from serai.traces.movement import read_bonnmotion, read_ns2, read_one_movement
from serai.traces.tracks import TrackTrace
from serai.traces.warnings import ParseWarning
from serai.traces.words import blocks
from serai.traces.xml import read_gpx, read_sumo

__all__ = ["FORMATS", "ContactTrace", "ParseWarning", "TraceFormat", "TrackTrace", "detect_format", "read_trace"]

Trace = ContactTrace | TrackTrace

_LOOKED_AT = 1 << 16  # bytes, from which the format is told
_MOST_LINES = 50


class TraceFormat(NamedTuple):
    """A format of traces: its name, what it is, and how it is read."""

    name: str
    title: str
    read: Callable[[Path, bool], Trace]


FORMATS: dict[str, TraceFormat] = {
    form.name: form
    for form in (
        TraceFormat("one-contacts", "connectivity report of The ONE", read_one_contacts),
        TraceFormat("crawdad", "table of contacts: node node begin end", read_crawdad),
        TraceFormat("one-movement", "external movement of The ONE", read_one_movement),
        TraceFormat("bonnmotion", "BonnMotion movements, 2-D", read_bonnmotion),
        TraceFormat("ns2", "ns-2 movement (setdest)", read_ns2),
        TraceFormat("gpx", "GPX tracks", read_gpx),
        TraceFormat("movebank", "Movebank CSV", read_movebank),
        TraceFormat("sumo", "SUMO floating car data (FCD)", read_sumo),
    )
}


def read_trace(path: Path, form: str = "auto", strict: bool = False) -> Trace:
    """What a trace file says; its format is told from its first lines unless it is given."""
    if form != "auto" and form not in FORMATS:
        raise BadInput(f'unknown trace format "{form}"; {did_you_mean(form, ["auto", *FORMATS])}')
    name = detect_format(path) if form == "auto" else form
    return FORMATS[name].read(path, strict)


def detect_format(path: Path) -> str:
    """The name of the format that a file is in, told from its first lines."""
    text = next(blocks(path, _LOOKED_AT), b"").decode("utf-8-sig", "replace")
    if "\0" in text:
        raise BadInput(f"{path}: not a text file; {_allowed()}")
    found = _xml_format(text) if text.lstrip().startswith("<") else _table_format(text)
    if found is None:
        raise BadInput(f"{path}: cannot tell the format from its first lines; name it with --format; {_allowed()}")
    return found


def _allowed() -> str:
    return f"one of: {', '.join(FORMATS)}"


def _xml_format(text: str) -> str | None:
    if "<fcd-export" in text:
        return "sumo"
    return "gpx" if "<gpx" in text else None


def _table_format(text: str) -> str | None:
    """The format of a text of lines: by what only one of them has, then by how many numbers there are in a line."""
    lines = [line.split("#")[0] for line in text.split("\n")[:_MOST_LINES]]
    header = text.split("\n", 1)[0].lower()
    if "timestamp" in header and "," in header and any(sign in header for sign in ("location", "long")):
        return "movebank"
    rows = [line.replace(",", " ").replace(";", " ").split() for line in lines if line.strip()]
    if any(len(row) >= 2 and row[1] == "CONN" for row in rows):
        return "one-contacts"
    if any(row[0].startswith(("$node_(", "$ns_", "$god_")) for row in rows):
        return "ns2"
    return _number_format(rows)


def _number_format(rows: list[list[str]]) -> str | None:
    numbers = [[_is_number(word) for word in row] for row in rows]
    if len(rows) > 1 and len(rows[0]) in (6, 8) and all(numbers[0]) and len(rows[1]) in (4, 5):
        return "one-movement"
    likely = [row for row, reads in zip(rows, numbers, strict=True) if len(row) >= 4 and reads[2] and reads[3]]
    in_order = [row for row in likely if float(row[2]) <= float(row[3])]
    short = all(len(row) < 9 for row in rows)
    if likely and short and 2 * len(in_order) > len(likely) > len(rows) / 2:
        return "crawdad"
    waypoints = [row for row, reads in zip(rows, numbers, strict=True) if len(row) % 3 == 0 and all(reads)]
    return "bonnmotion" if 2 * len(waypoints) > len(rows) else None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
