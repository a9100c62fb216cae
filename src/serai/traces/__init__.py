"""Readers of other people's traces: who met whom, or who was where, in the formats that the field uses.

Every reader takes a path (plain or gzip) and answers a `ContactTrace` or a `TrackTrace`. Lines that cannot be
read are left out, counted and named; a strict reader stops at the first of them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from serai.core.errors import BadInput, did_you_mean
from serai.traces import detect
from serai.traces.adjust import Adjustments, adjusted
from serai.traces.contacts import BACKWARD, ContactTrace, read_begin_duration, read_crawdad, read_one_contacts
from serai.traces.movebank import read_movebank
from serai.traces.movement import read_bonnmotion, read_ns2, read_one_movement
from serai.traces.sightings import read_sightings, read_sightings_time_last, read_sociopatterns
from serai.traces.tracks import TrackTrace
from serai.traces.warnings import ParseWarning
from serai.traces.xml import read_gpx, read_sumo

__all__ = [
    "FORMATS",
    "Adjustments",
    "ContactTrace",
    "ParseWarning",
    "TraceFormat",
    "TrackTrace",
    "detect_format",
    "read_trace",
]

Trace = ContactTrace | TrackTrace


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
        TraceFormat("begin-duration", "table of contacts: node node begin duration", read_begin_duration),
        TraceFormat("sightings", "list of sightings: time node node", read_sightings),
        TraceFormat("sightings-time-last", "list of sightings: node node time", read_sightings_time_last),
        TraceFormat("sociopatterns", "SocioPatterns: time node node class class", read_sociopatterns),
        TraceFormat("one-movement", "external movement of The ONE", read_one_movement),
        TraceFormat("bonnmotion", "BonnMotion movements, 2-D", read_bonnmotion),
        TraceFormat("ns2", "ns-2 movement (setdest)", read_ns2),
        TraceFormat("gpx", "GPX tracks", read_gpx),
        TraceFormat("movebank", "Movebank CSV", read_movebank),
        TraceFormat("sumo", "SUMO floating car data (FCD)", read_sumo),
    )
}


def read_trace(
    path: Path, form: str = "auto", strict: bool = False, wanted: Adjustments | None = None
) -> ContactTrace | TrackTrace:
    """What a trace file says, as it is wanted; its format is told from its first lines unless it is given."""
    if form != "auto" and form not in FORMATS:
        raise BadInput(f'unknown trace format "{form}"; {did_you_mean(form, ["auto", *FORMATS])}')
    trace = FORMATS[detect_format(path) if form == "auto" else form].read(path, strict)
    if form == "auto" and trace.format == "crawdad":
        _ask_if_durations(path, trace)
    return adjusted(path, trace, wanted or Adjustments())


def detect_format(path: Path) -> str:
    """The name of the format that a file is in, told from its first lines."""
    return detect.detect_format(path, tuple(FORMATS))


def _ask_if_durations(path: Path, trace: Trace) -> None:
    """Refuse to go on if further down many contacts end before they begin: the fourth column is a duration, then."""
    backward = sum(warning.count for warning in trace.warnings if warning.what.startswith(BACKWARD))
    if detect.many_backward(backward, trace.lines):
        raise BadInput(detect.ambiguous(path, ["begin-duration", "crawdad"]))
