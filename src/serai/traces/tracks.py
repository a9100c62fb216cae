"""Positions over time, whatever file they come from, as tracks: sorted, each node at one place at a time."""

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.traces.names import natural_order
from serai.traces.warnings import ParseWarning, ParseWarnings
from serai.traces.words import Flags, Places
from serai.world.contacts import Journeys
from serai.world.geography import local_metres
from serai.world.grid import Floats, Numbers
from serai.world.mobility import Tracks

FARTHEST_M = 1e8  # from the origin: more than twice around the earth; nobody walks there
TOO_FAR = "farther than 100,000 km from the origin"
_USUAL_GAPS = 10  # times the usual time between two points: nobody knows where a node was


class TrackTrace(NamedTuple):
    """Where nodes were, as somebody recorded it, numbered in the natural order of their names."""

    format: str
    names: tuple[str, ...]
    tracks: Tracks  # in the file's own time; metres
    stays: bool  # whether a node is there before its first and after its last point
    lines: int
    warnings: tuple[ParseWarning, ...]
    origin: str = ""  # what time 0 and place 0 are, if the file has dates or degrees
    line: Places | None = None  # in which each point stands, where points stand in lines
    degrees: tuple[Floats, Floats] | None = None  # longitude and latitude of each point, if the file has them
    epoch_s: float | None = None  # time 0 in seconds since 1970, if the file has dates

    @property
    def begin_s(self) -> float:
        """The first time that the file speaks of."""
        return float(self.tracks.time_s.min())

    @property
    def end_s(self) -> float:
        """The last time that the file speaks of."""
        return float(self.tracks.time_s.max())

    @property
    def usual_gap_s(self) -> float:
        """A time between two points that is far from usual: ten times the median; 0 where nobody has two points."""
        apart_s = self.apart_s
        return float(_USUAL_GAPS * np.median(apart_s)) if apart_s.size else 0.0

    @property
    def apart_s(self) -> Floats:
        """The times between one point of a node and its next."""
        node = np.repeat(np.arange(len(self.names)), np.diff(self.tracks.start))
        time_s = self.tracks.time_s
        apart_s: Floats = (time_s[1:] - time_s[:-1])[node[1:] == node[:-1]]
        return apart_s

    def only(self, names: tuple[str, ...], number: Numbers) -> "TrackTrace":
        """The trace of these nodes, given the new number of each old one; -1: it is left out."""
        node = np.repeat(number, np.diff(self.tracks.start))
        kept = np.argsort(node, kind="stable")[np.count_nonzero(node < 0) :]
        start = np.searchsorted(node[kept], np.arange(len(names) + 1)).astype(np.int64)
        return self._replace(
            names=names,
            tracks=Tracks(start, *(column[kept] for column in self.tracks[1:])),
            line=None if self.line is None else self.line[kept],
            degrees=None if self.degrees is None else (self.degrees[0][kept], self.degrees[1][kept]),
        )

    def journeys(self, begin_s: float, gap_s: float) -> Journeys:
        """Where the nodes are, with time 0 at `begin_s` of the file."""
        tracks = self.tracks
        return Journeys(Tracks(tracks.start, tracks.time_s - begin_s, tracks.x_m, tracks.y_m), gap_s, self.stays)


class Fixes(NamedTuple):
    """Positions in the order of the file: node (as numbered by appearance), time, x, y, line."""

    node: Numbers
    time_s: Floats
    x: Floats
    y: Floats
    line: Places

    def where(self, kept: Flags | Places) -> "Fixes":
        """Only these, in this order."""
        return Fixes(self.node[kept], self.time_s[kept], self.x[kept], self.y[kept], self.line[kept])


def joined(path: Path, parts: list[Fixes], example: str) -> Fixes:
    """Pieces of a file as one; a file with nothing in it is refused."""
    if not any(part.line.size for part in parts):
        raise BadInput(f"{path}: no position in it; expected {example}")
    return Fixes(*map(np.concatenate, zip(*parts, strict=True)))


def trace_of(
    name: str, book: dict[str, int], fixes: Fixes, stays: bool, lines: int, warnings: ParseWarnings
) -> TrackTrace:
    """The trace of positions in metres: by node and time; of two at the same time the first counts."""
    names, number = natural_order(book)
    fixes = fixes._replace(node=number[fixes.node]).where(np.argsort(number[fixes.node], kind="stable"))
    same_node = np.append(False, fixes.node[1:] == fixes.node[:-1])
    back = same_node & np.append(False, fixes.time_s[1:] < fixes.time_s[:-1])
    if back.any():
        warnings.decided("earlier than the node's position before: sorted", fixes.line[back])
        fixes = fixes.where(np.lexsort((fixes.time_s, fixes.node)))
    again = same_node & np.append(False, fixes.time_s[1:] == fixes.time_s[:-1])
    warnings.decided("a second position at the same time: left out", fixes.line[again])
    node, time_s, x, y, line = fixes.where(~again)
    tracks = tracks_of(len(names), node, time_s, x, y)
    return TrackTrace(name, names, tracks, stays, lines, warnings.listed(), line=line)


def tracks_of(count: int, node: Numbers, time_s: Floats, x_m: Floats, y_m: Floats) -> Tracks:
    """The tracks of `count` nodes from points that stand by node."""
    return Tracks(np.searchsorted(node, np.arange(count + 1)).astype(np.int64), time_s, x_m, y_m)


class Recorded(NamedTuple):
    """Positions as a file of recordings has them: whose, when, and where in metres or degrees (x: longitude)."""

    format: str
    book: dict[str, int]  # names with their numbers
    fixes: Fixes
    dates: bool  # times count from 1970; otherwise from the file's own zero
    degrees: bool


def recorded_trace(found: Recorded, lines: int, warnings: ParseWarnings) -> TrackTrace:
    """The trace of recorded positions; with dates time 0 is the first, with degrees place 0 is the middle.

    A node is nowhere before its first and after its last position: a bird without a tag may be anywhere, and
    a vehicle that has arrived is gone.
    """
    if not found.fixes.line.size:
        why = "".join(f"; {warning}" for warning in warnings.listed())
        raise BadInput(f"{warnings.path}: no position in it that can be used{why}")
    origin, fixes, first_s = [], found.fixes, None
    if found.dates:
        first_s = float(fixes.time_s.min())
        fixes = fixes._replace(time_s=fixes.time_s - first_s)
        origin.append(f"time from {datetime.fromtimestamp(first_s, UTC):%Y-%m-%d %H:%M:%S} UTC")
    used = np.flatnonzero(np.bincount(fixes.node))  # not those of whom nothing is left
    names = list(found.book)
    book = {names[number]: place for place, number in enumerate(used.tolist())}
    fixes = fixes._replace(node=np.searchsorted(used, fixes.node).astype(np.int32))
    trace = trace_of(found.format, book, fixes, False, lines, warnings)._replace(epoch_s=first_s)
    if found.degrees:
        trace, middle = _in_metres(trace, fixes.x, fixes.y)
        origin.append(f"x, y from {middle}")
    return trace._replace(origin="; ".join(origin))


def _in_metres(trace: TrackTrace, lon: Floats, lat: Floats) -> tuple[TrackTrace, str]:
    """A trace in degrees as metres to the east and north of the middle of all positions in it, and where that is."""
    apart = bool(np.ptp(lon) > 180.0)  # on both sides of the date line
    degrees = trace.tracks.x_m, trace.tracks.y_m
    lon0, lat0 = float(np.median(_beyond(lon, apart))), float(np.median(lat))
    east, north = local_metres(_beyond(degrees[0], apart), degrees[1], lon0, lat0)
    moved = trace._replace(tracks=trace.tracks._replace(x_m=east, y_m=north), degrees=degrees)
    return moved, f"latitude {lat0:.5f}, longitude {(lon0 + 180) % 360 - 180:.5f}"


def _beyond(lon: Floats, apart: bool) -> Floats:
    """Longitudes that go on beyond 180 degrees instead of beginning anew."""
    return np.where(lon < 0.0, lon + 360.0, lon) if apart else lon
