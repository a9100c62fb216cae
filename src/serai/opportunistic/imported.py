"""From a trace to a scenario: what a file holds, and the TOML that runs it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from serai.core.errors import BadInput, did_you_mean
from serai.core.jit import announced_compilation
from serai.core.units import LENGTH, TIME, format_quantity, parse_quantity
from serai.opportunistic.protocols import PROTOCOLS
from serai.opportunistic.sections import ContactRadioSection
from serai.traces import FORMATS, ContactTrace, TrackTrace, detect_format, read_trace
from serai.traces.messages import Messages, read_messages
from serai.traces.names import NodeNames
from serai.world.contacts import contacts_by_range

_BUNDLES = 1000  # about how many an imported scenario publishes
_LIFETIMES = 10  # of a bundle, in a run
_ROUND_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400)


@dataclass(frozen=True)
class FoundMessages:
    """What was found in a file of messages."""

    file: str
    count: int
    directed: int  # those to one node; the others are on channels
    strangers: int  # nodes that the trace does not know
    noticed: tuple[str, ...]


@dataclass(frozen=True)
class FoundTrace:
    """What was found in a trace."""

    file: str
    format: str
    title: str
    lines: int
    nodes: int
    contacts: int
    range_m: float | None  # at which the contacts were found, if the trace has positions
    positions: int
    first_s: float
    last_s: float
    begin_s: float  # when a run would begin, in the time of the file
    gap_s: float  # two positions further apart are a gap; 0: none are
    gaps: int
    origin: str
    noticed: tuple[str, ...]
    messages: FoundMessages | None

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ImportOptions:
    """How a trace is to be read, and what the scenario should have besides."""

    messages: Path | None = None
    form: str = "auto"
    strict: bool = False
    range_text: str | None = None
    protocol: str = "dpsp"


def import_trace(file: Path, out: Path, options: ImportOptions) -> tuple[FoundTrace, str]:
    """What a trace holds, and a scenario made of it as TOML, to be written to `out`."""
    allowed = list(PROTOCOLS)
    if options.protocol not in allowed:
        raise BadInput(
            f'protocol "{options.protocol}" does not run on contacts; {did_you_mean(options.protocol, allowed)}'
        )
    range_m = _range_m(options.range_text)
    form = detect_format(file) if options.form == "auto" else options.form
    with announced_compilation("traces"):
        trace = read_trace(file, form, options.strict)
        messages = None
        if options.messages is not None:
            messages = _found_messages(options.messages, read_messages(options.messages, options.strict), trace)
        found = _found_trace(file, trace, range_m, messages)
    return found, "\n".join(_lines(found, out, options.protocol)) + "\n"


def _range_m(text: str | None) -> float:
    """The radio range that the user gave, or the usual one."""
    if text is None:
        return float(ContactRadioSection().range_m)
    try:
        range_m = parse_quantity(text, LENGTH)
    except ValueError as error:
        raise BadInput(f"--range: {error}") from None
    if not 0 < range_m <= 1e7:
        raise BadInput(f"--range {text}: must be more than 0 m and at most 10,000 km")
    return range_m


def _found_trace(
    file: Path, trace: ContactTrace | TrackTrace, range_m: float, messages: FoundMessages | None
) -> FoundTrace:
    """What a trace holds; contacts of positions are those at the radio range."""
    begin_s = _begin_s(trace)
    gap_s, gaps, positions, origin = 0.0, 0, 0, ""
    if isinstance(trace, ContactTrace):
        contacts = trace.contacts.a.size
    else:
        positions, origin = trace.tracks.time_s.size, trace.origin
        gap_s = 0.0 if trace.stays else float(math.ceil(trace.usual_gap_s))
        gaps = int((trace.apart_s > gap_s).sum()) if gap_s else 0
        journeys = trace.journeys(begin_s, gap_s or math.inf)
        contacts = contacts_by_range(journeys, range_m, max(trace.end_s - begin_s, 1.0)).a.size
    return FoundTrace(
        file=str(file),
        format=trace.format,
        title=FORMATS[trace.format].title,
        lines=trace.lines,
        nodes=len(trace.names),
        contacts=contacts,
        range_m=None if isinstance(trace, ContactTrace) else range_m,
        positions=positions,
        first_s=trace.begin_s,
        last_s=trace.end_s,
        begin_s=begin_s,
        gap_s=gap_s,
        gaps=gaps,
        origin=origin,
        noticed=tuple(str(warning) for warning in trace.warnings),
        messages=messages,
    )


def _begin_s(trace: ContactTrace | TrackTrace) -> float:
    """When a run begins: at the file's time 0, or at its first entry if that is far away (seconds since 1970)."""
    far = trace.begin_s < 0 or trace.begin_s > trace.end_s - trace.begin_s
    return float(math.floor(trace.begin_s)) if far else 0.0


def _found_messages(file: Path, messages: Messages, trace: ContactTrace | TrackTrace) -> FoundMessages:
    """What a file of messages holds."""
    nodes = NodeNames(trace.names, growing=True)
    for name in dict.fromkeys(messages.source + messages.target):
        if name:
            nodes.number(name, file)
    directed = sum(1 for target in messages.target if target)
    noticed = tuple(str(warning) for warning in messages.warnings)
    return FoundMessages(str(file), len(messages.source), directed, len(nodes.names) - len(trace.names), noticed)


def _lines(found: FoundTrace, out: Path, protocol: str) -> Iterator[str]:
    """The lines of the scenario; what is not in them has its default."""
    duration_s = max(math.ceil(found.last_s - found.begin_s), 1)
    yield f"title = {_quoted(f'{Path(found.file).name}: {found.title}')}"
    yield f"duration = {_time(duration_s)}"
    yield "\n[contacts]"
    yield 'source = "trace"'
    yield f"file = {_quoted(_seen_from(out, found.file))}"
    yield f"format = {_quoted(found.format)}"
    if found.begin_s:
        yield f"begin = {_time(found.begin_s)}  # the first time in the file"
    if found.gap_s:
        yield f"gap = {_time(found.gap_s)}  # ten times the usual time between two positions"
    if found.range_m is not None:
        yield f"\n[radio]\nrange = {_quoted(format_quantity(found.range_m, LENGTH))}"
    yield "\n[bundles]"
    if found.messages is not None:
        yield f"file = {_quoted(_seen_from(out, found.messages.file))}"
    else:
        yield f"interval = {_time(_rounded_s(duration_s / _BUNDLES))}  # about a thousand bundles or more"
        yield f"lifetime = {_time(_rounded_s(duration_s / _LIFETIMES))}"
    yield f"\n[protocol]\nname = {_quoted(protocol)}"


def _rounded_s(time_s: float) -> float:
    """The round time just below; whole days if it is longer than that, the time itself if it is under a second."""
    if time_s >= _ROUND_S[-1]:
        return time_s // _ROUND_S[-1] * _ROUND_S[-1]
    return float(max((round_s for round_s in _ROUND_S if round_s <= time_s), default=time_s))


def _time(time_s: float) -> str:
    return _quoted(format_quantity(float(time_s), TIME))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _seen_from(out: Path, file: str) -> str:
    """The path of a file as a scenario at `out` names it."""
    try:
        return Path(os.path.relpath(Path(file).absolute(), out.absolute().parent)).as_posix()
    except ValueError:  # on another drive
        return str(Path(file).absolute())
