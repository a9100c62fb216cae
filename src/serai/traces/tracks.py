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
from serai.world.grid import Floats, Numbers
from serai.world.mobility import Tracks
from serai.world.positions import local_metres

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
    node, time_s, x, y, _ = fixes.where(~again)
    tracks = tracks_of(len(names), node, time_s, x, y)
    return TrackTrace(name, names, tracks, stays, lines, warnings.listed())


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
        raise BadInput(f"{warnings.path}: no position in it that can be used")
    origin, fixes = [], found.fixes
    if found.dates:
        first_s = float(fixes.time_s.min())
        fixes = fixes._replace(time_s=fixes.time_s - first_s)
        origin.append(f"time from {datetime.fromtimestamp(first_s, UTC):%Y-%m-%d %H:%M:%S} UTC")
    if found.degrees:
        x, y, middle = _metres(fixes.x, fixes.y)
        fixes = fixes._replace(x=x, y=y)
        origin.append(f"x, y from {middle}")
    used = np.flatnonzero(np.bincount(fixes.node))  # not those of whom nothing is left
    names = list(found.book)
    book = {names[number]: place for place, number in enumerate(used.tolist())}
    fixes = fixes._replace(node=np.searchsorted(used, fixes.node).astype(np.int32))
    return trace_of(found.format, book, fixes, False, lines, warnings)._replace(origin="; ".join(origin))


def _metres(lon: Floats, lat: Floats) -> tuple[Floats, Floats, str]:
    """Positions in degrees as metres to the east and north of their middle, and where that is."""
    if np.ptp(lon) > 180.0:  # on both sides of the date line
        lon = np.where(lon < 0.0, lon + 360.0, lon)
    lon0, lat0 = float(np.median(lon)), float(np.median(lat))
    east, north = local_metres(lon, lat, lon0, lat0)
    return east, north, f"latitude {lat0:.5f}, longitude {(lon0 + 180) % 360 - 180:.5f}"
