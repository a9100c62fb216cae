"""What a user asks of a trace beyond its file: another unit of time, some of the nodes, contacts joined or left out."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.traces.contacts import ContactTrace, joined_over
from serai.traces.names import natural_order
from serai.traces.tracks import TrackTrace
from serai.traces.warnings import ParseWarning
from serai.world.contacts import Contacts, in_order
from serai.world.grid import Floats, Numbers

# As a factor and a divisor, so that 1500 ms are 1.5 s to the last bit.
TIME_UNITS = {"us": (1.0, 1e6), "ms": (1.0, 1e3), "s": (1.0, 1.0), "min": (60.0, 1.0), "h": (3600.0, 1.0)}
_MOST_NODES = 1_000_000
_SPAN = re.compile(r"([^0-9]*)([0-9]+)-([^0-9]*)([0-9]+)")


class Adjustments(NamedTuple):
    """How a trace is to be changed once it is read."""

    time_unit: str = "s"
    nodes: str = ""  # "1-41, n50"; empty: all
    gap_s: float = 0.0  # contacts of two nodes that are no further apart than this are one
    min_contact_s: float = 0.0  # shorter contacts are left out; those of positions, too, once they are found


def adjusted(path: Path, trace: ContactTrace | TrackTrace, wanted: Adjustments) -> ContactTrace | TrackTrace:
    """The trace as it is wanted; what is left out is said."""
    if isinstance(trace, TrackTrace):
        return _some_walkers(path, _walkers_in_seconds(trace, wanted.time_unit), wanted.nodes)
    trace = _some_nodes(path, _in_seconds(trace, wanted.time_unit), wanted.nodes)
    if wanted.gap_s > 0:
        contacts = joined_over(trace.contacts, wanted.gap_s)
        trace = _said(trace, contacts, f"at most {wanted.gap_s:g} s after another contact of the same two: made one")
    if wanted.min_contact_s > 0:
        contacts = no_shorter(trace.contacts, wanted.min_contact_s)
        trace = _said(trace, contacts, f"shorter than {wanted.min_contact_s:g} s: left out")
    return trace


def no_shorter(contacts: Contacts, least_s: float) -> Contacts:
    """Only contacts that last as long as this."""
    return contacts.at(contacts.down_s - contacts.up_s >= least_s)


def _said(trace: ContactTrace, contacts: Contacts, what: str) -> ContactTrace:
    """The trace with these contacts instead, and why there are fewer."""
    fewer = trace.contacts.a.size - contacts.a.size
    said = (ParseWarning(what, fewer),) if fewer else ()
    return trace._replace(contacts=contacts, warnings=trace.warnings + said)


def _seconds(times: Floats, unit: str) -> Floats:
    factor, divisor = TIME_UNITS[unit]
    return times * factor / divisor


def _in_seconds(trace: ContactTrace, unit: str) -> ContactTrace:
    if unit == "s":
        return trace
    a, b, up, down = trace.contacts
    begin_s, end_s = _seconds(np.array([trace.begin_s, trace.end_s]), unit).tolist()
    contacts = Contacts(a, b, _seconds(up, unit), _seconds(down, unit))
    return trace._replace(contacts=contacts, begin_s=begin_s, end_s=end_s)


def _walkers_in_seconds(trace: TrackTrace, unit: str) -> TrackTrace:
    if unit == "s":
        return trace
    return trace._replace(tracks=trace.tracks._replace(time_s=_seconds(trace.tracks.time_s, unit)))


def _some_nodes(path: Path, trace: ContactTrace, text: str) -> ContactTrace:
    if not text:
        return trace
    names, number = _chosen(path, trace.names, text)
    a, b = number[trace.contacts.a], number[trace.contacts.b]
    both = (a >= 0) & (b >= 0)
    contacts = in_order(trace.contacts._replace(a=a, b=b).at(both))
    return _said(trace._replace(names=names), contacts, "with a node that is not asked for: left out")


def _some_walkers(path: Path, trace: TrackTrace, text: str) -> TrackTrace:
    if not text:
        return trace
    names, number = _chosen(path, trace.names, text)
    points = np.repeat(number, np.diff(trace.tracks.start))
    if not (points >= 0).any():
        raise BadInput(f'{path}: nodes "{text}": nobody knows where any of them is')
    left = ParseWarning("a node that is not asked for: left out", int((number < 0).sum()))
    return trace.only(names, number)._replace(warnings=trace.warnings + ((left,) if left.count else ()))


def _chosen(path: Path, names: tuple[str, ...], text: str) -> tuple[tuple[str, ...], Numbers]:
    """The names asked for, in natural order, and for each node its number among them; -1: not asked for."""
    known, wanted = set(names), dict[str, None]()
    for part in (part.strip() for part in text.split(",")):
        wanted |= dict.fromkeys([part] if part in known else _spanned(part))
    ordered, _ = natural_order(wanted)
    place = {name: number for number, name in enumerate(ordered)}
    number = np.array([place.get(name, -1) for name in names], np.int32)
    if (number < 0).all():
        some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise BadInput(f'{path}: nodes "{text}": the trace has none of them; it has {some}')
    return ordered, number


def _spanned(part: str) -> list[str]:
    """The names that `1-41` or `n1-n41` stands for; else the name itself, of a node that meets nobody."""
    found = _SPAN.fullmatch(part)
    if not part:
        raise BadInput('nodes: a name is missing; write "1-41, n50"')
    if found is None or found[3] not in ("", found[1]):
        return [part]
    first, last = int(found[2]), int(found[4])
    if not 0 <= last - first < _MOST_NODES:
        raise BadInput(f'nodes: "{part}" must go up, and be at most {_MOST_NODES:,} nodes')
    return [f"{found[1]}{number}" for number in range(first, last + 1)]
