"""From a trace to a scenario: what a file holds, and the TOML that runs it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from serai.core.errors import BadInput, did_you_mean
from serai.core.jit import announced_compilation
from serai.core.units import LENGTH, TIME, format_quantity, parse_quantity
from serai.opportunistic.presets import PRESETS
from serai.opportunistic.protocols import PROTOCOLS
from serai.opportunistic.sections import ContactRadioSection
from serai.traces import FORMATS, Adjustments, ContactTrace, TrackTrace, read_trace
from serai.traces.adjust import TIME_UNITS, no_shorter
from serai.traces.messages import Messages, read_messages
from serai.traces.names import NodeNames
from serai.world.contacts import contacts_by_range

_BUNDLES = 1000  # about how many an imported scenario publishes
_LIFETIMES = 10  # of a bundle, in a run
_YEAR_S = 365.25 * 86_400
_LONGEST_S = 10 * _YEAR_S  # in seconds that nobody has vouched for
_LATEST_S = 1e11
_LONGEST_RUN_S = 2e9
_ENOUGH_TIMES = 10  # different ones, to see that all are whole thousands
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
    begin_s: float  # when a run would begin and end, in the time of the file
    end_s: float
    gap_s: float  # two positions further apart are a gap; 0: none are
    gaps: int
    time_unit: str
    only: str  # these nodes; empty: all
    min_contact_s: float
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
    time_unit: str | None = None
    nodes: str = ""
    gap_text: str | None = None
    min_contact_text: str | None = None
    offset_text: str | None = None
    until_text: str | None = None
    like: str | None = None


def import_trace(file: Path, out: Path, options: ImportOptions) -> tuple[FoundTrace, str]:
    """What a trace holds, and a scenario made of it as TOML, to be written to `out`."""
    allowed = list(PROTOCOLS)
    if options.protocol not in allowed:
        raise BadInput(
            f'protocol "{options.protocol}" does not run on contacts; {did_you_mean(options.protocol, allowed)}'
        )
    if options.like is not None and options.like not in PRESETS:
        raise BadInput(f'--like "{options.like}": {did_you_mean(options.like, list(PRESETS))}')
    range_m = _range_m(options.range_text)
    wanted = _adjustments(options)
    with announced_compilation("traces"):
        trace = read_trace(file, options.form, options.strict, wanted)
        _refuse_times(file, trace, options)
        messages = None
        if options.messages is not None:
            messages = _found_messages(options.messages, read_messages(options.messages, options.strict), trace)
        found = _found_trace(file, trace, range_m, messages, wanted, _run_s(file, trace, options))
    preset = PRESETS[options.like](options.protocol) if options.like is not None else {}
    return found, "\n".join(_lines(found, out, options.protocol, wanted.gap_s > 0, preset)) + "\n"


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


def _time_s(option: str, text: str | None) -> float:
    """The time that the user gave with an option; 0 if he did not."""
    if text is None:
        return 0.0
    try:
        time_s = parse_quantity(text, TIME)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from None
    if not 0 <= time_s < math.inf:
        raise BadInput(f"{option} {text}: must not be below 0")
    return time_s


def _adjustments(options: ImportOptions) -> Adjustments:
    """How the user wants the trace to be changed."""
    unit = options.time_unit or "s"
    if unit not in TIME_UNITS:
        raise BadInput(f'--time-unit "{unit}": {did_you_mean(unit, list(TIME_UNITS))}')
    gap_s, least_s = _time_s("--gap", options.gap_text), _time_s("--min-contact", options.min_contact_text)
    return Adjustments(unit, options.nodes, gap_s, least_s)


def _refuse_times(file: Path, trace: ContactTrace | TrackTrace, options: ImportOptions) -> None:
    """Ask for the unit of time if seconds make no sense: nobody records for ten years, or in the year 5000.

    Nor is there a clock that only knows each thousandth second.
    """
    dated = trace.format in ("gpx", "movebank")
    if dated and options.time_unit is not None:
        raise BadInput(f"--time-unit: {trace.format} has dates, and needs none")
    if dated or options.time_unit is not None:
        return
    span_s, asked = trace.end_s - trace.begin_s, "say what they are: --time-unit ms, or us, or s if it is so"
    if span_s > _LONGEST_S or abs(trace.begin_s) > _LATEST_S:
        raise BadInput(
            f"{file}: its times, from {trace.begin_s:.0f} to {trace.end_s:.0f}, would be {span_s / _YEAR_S:,.1f} years"
            f" if they were seconds; {asked}"
        )
    if _in_thousands(trace):
        raise BadInput(f"{file}: its times are whole thousands, as if they were milliseconds; {asked}")


def _in_thousands(trace: ContactTrace | TrackTrace) -> bool:
    """Whether there are times enough to tell, and all of them are whole thousands."""
    times = np.concatenate(trace.contacts[2:]) if isinstance(trace, ContactTrace) else trace.tracks.time_s
    return not np.any(times % 1000) and np.unique(times).size >= _ENOUGH_TIMES


def _run_s(file: Path, trace: ContactTrace | TrackTrace, options: ImportOptions) -> tuple[float, float]:
    """When a run begins and ends, in the time of the file; --offset and --until count from where the trace begins."""
    zero_s = _begin_s(trace)
    begin_s = zero_s + _time_s("--offset", options.offset_text)
    end_s = trace.end_s
    if options.until_text is not None:
        end_s = min(end_s, zero_s + _time_s("--until", options.until_text))
    if end_s <= begin_s and (options.offset_text or options.until_text):
        last = format_quantity(float(math.ceil(trace.end_s - zero_s)), TIME)
        raise BadInput(f"{file}: nothing is left from --offset to --until; the trace lasts {last}")
    if end_s - begin_s > _LONGEST_RUN_S:
        raise BadInput(f"{file}: {(end_s - begin_s) / _YEAR_S:,.1f} years are too long for a run; use --until")
    return begin_s, end_s


def _found_trace(
    file: Path,
    trace: ContactTrace | TrackTrace,
    range_m: float,
    messages: FoundMessages | None,
    wanted: Adjustments,
    run_s: tuple[float, float],
) -> FoundTrace:
    """What a trace holds; contacts are those in the time of the run, of positions those at the radio range."""
    begin_s, end_s = run_s
    gap_s, gaps, positions, origin = wanted.gap_s, 0, 0, ""
    if isinstance(trace, ContactTrace):
        contacts = int(((trace.contacts.down_s >= begin_s) & (trace.contacts.up_s <= end_s)).sum())
    else:
        positions, origin = trace.tracks.time_s.size, trace.origin
        gap_s = gap_s or (0.0 if trace.stays else float(math.ceil(trace.usual_gap_s)))
        gaps = int((trace.apart_s > gap_s).sum()) if gap_s else 0
        journeys = trace.journeys(begin_s, gap_s or math.inf)
        near = contacts_by_range(journeys, range_m, max(end_s - begin_s, 1.0))
        contacts = no_shorter(near, wanted.min_contact_s).a.size
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
        end_s=end_s,
        gap_s=gap_s,
        gaps=gaps,
        time_unit=wanted.time_unit,
        only=wanted.nodes,
        min_contact_s=wanted.min_contact_s,
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


def _lines(found: FoundTrace, out: Path, protocol: str, given_gap: bool, preset: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the scenario; what is not in them has its default."""
    duration_s = max(math.ceil(found.end_s - found.begin_s), 1)
    yield f"title = {_quoted(f'{Path(found.file).name}: {found.title}')}"
    yield f"duration = {_time(duration_s)}"
    yield from _of_section("", preset)
    yield "\n[contacts]"
    yield 'source = "trace"'
    yield f"file = {_quoted(_seen_from(out, found.file))}"
    yield f"format = {_quoted(found.format)}"
    if found.time_unit != "s":
        yield f"time_unit = {_quoted(found.time_unit)}"
    if found.only:
        yield f"nodes = {_quoted(found.only)}"
    if found.begin_s:
        first = "  # the first time in the file" if found.begin_s == math.floor(found.first_s) else ""
        yield f"begin = {_time(found.begin_s)}{first}"
    if found.gap_s:
        usual = "" if given_gap else "  # ten times the usual time between two positions"
        yield f"gap = {_time(found.gap_s)}{usual}"
    if found.min_contact_s:
        yield f"min_contact = {_time(found.min_contact_s)}"
    if any(key.startswith("nodes.") for key in preset):
        yield "\n[nodes]"
        yield from _of_section("nodes.", preset)
    radio = [f"range = {_quoted(format_quantity(found.range_m, LENGTH))}"] if found.range_m is not None else []
    radio += _of_section("radio.", preset)
    if radio:
        yield from ("\n[radio]", *radio)
    yield "\n[bundles]"
    if found.messages is not None:
        yield f"file = {_quoted(_seen_from(out, found.messages.file))}"
    else:
        yield f"interval = {_time(_rounded_s(duration_s / _BUNDLES))}  # about a thousand bundles or more"
        yield f"lifetime = {_time(_rounded_s(duration_s / _LIFETIMES))}"
    yield from _of_section("bundles.", preset)
    yield f"\n[protocol]\nname = {_quoted(protocol)}"
    yield from _of_section("protocol.", preset)


def _of_section(section: str, preset: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a preset for one section; "": for the top of the scenario."""
    for key, value in preset.items():
        name = key.removeprefix(section)
        if key.startswith(section) and "." not in name:
            yield f"{name} = {json.dumps(value)}"


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
