"""Movement in XML: GPX tracks, and SUMO's floating car data."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from serai.core.errors import BadInput
from serai.traces.columns import are, numbered, numbers_of, seconds_of, texts
from serai.traces.fcd import Fcd, Recording, scan_fcd
from serai.traces.gpx import Gpx, scan_gpx
from serai.traces.tracks import FARTHEST_M, TOO_FAR, Fixes, Recorded, TrackTrace, recorded_trace
from serai.traces.warnings import ParseWarnings
from serai.traces.words import blocks


def read_gpx(path: Path, strict: bool = False) -> TrackTrace:
    """The tracks of a GPX file: every <trk> is a node, called by its <name> or else by its number from 0."""
    warnings, gpx = ParseWarnings(path, strict), scan_gpx(path) or parse_gpx(path)
    time_s, dated = seconds_of(gpx.times)
    tracked = gpx.track >= 0
    reads = dated & (np.abs(gpx.lon) <= 180) & (np.abs(gpx.lat) <= 90)
    expected = "expected lon, lat and a <time> such as 2026-05-01T08:00:00Z"
    warnings.left_out({expected: gpx.line[tracked & ~reads], "a <trkpt> that stands in no <trk>": gpx.line[~tracked]})
    book: dict[str, int] = {}
    number = np.array([book.setdefault(name, len(book)) for name in gpx.names], np.int32)
    kept = reads & tracked
    fixes = Fixes(number[gpx.track[kept]], time_s[kept], gpx.lon[kept], gpx.lat[kept], gpx.line[kept])
    return recorded_trace(Recorded("gpx", book, fixes, dates=True, degrees=True), gpx.lines, warnings)


def parse_gpx(path: Path) -> Gpx:
    """A GPX file, by a parser of XML."""
    said = _Gpx()
    lines = _parse(path, said.parser)
    lon, lat = numbers_of(texts(said.lon)), numbers_of(texts(said.lat))
    track, line = np.array(said.tracks, np.int32), np.array(said.lines, np.int64)
    return Gpx(track, texts(said.times), lon, lat, line, said.names, lines)


class _Gpx:
    """What a GPX file has said so far: points with the number of their track, and the tracks' names."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.tracks: list[int] = []
        self.lon: list[str] = []
        self.lat: list[str] = []
        self.times: list[str] = []
        self.lines: list[int] = []
        self._inside: list[str] = []
        self._text: list[str] = []
        self.parser = _parser(self._begin)
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text.append

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        self._inside.append(tag)
        self._text.clear()
        if tag == "trk":
            self.names.append(str(len(self.names)))
        elif tag == "trkpt":
            self.tracks.append(len(self.names) - 1 if "trk" in self._inside else -1)
            self.lon.append(attributes.get("lon", ""))
            self.lat.append(attributes.get("lat", ""))
            self.times.append("")
            self.lines.append(self.parser.CurrentLineNumber)

    def _end(self, _tag: str) -> None:
        if self._inside[-2:] == ["trkpt", "time"]:
            self.times[-1] = "".join(self._text).strip()
        elif self._inside[-2:] == ["trk", "name"]:
            self.names[-1] = "".join(self._text).strip() or self.names[-1]
        self._inside.pop()


def read_sumo(path: Path, strict: bool = False) -> TrackTrace:
    """The vehicles and persons of SUMO's floating car data (--fcd-output), in metres or (--fcd-output.geo) degrees."""
    warnings, fcd = ParseWarnings(path, strict), scan_fcd(path) or parse_fcd(path)
    node, named, time_s, x, y, line = fcd.rows
    reads = np.isfinite(x) & np.isfinite(y) & np.isfinite(time_s) & named
    limits = (180.0, 90.0) if fcd.degrees else (FARTHEST_M, FARTHEST_M)
    far = reads & ((np.abs(x) > limits[0]) | (np.abs(y) > limits[1]))
    beyond = "more than 180 or 90 degrees" if fcd.degrees else TOO_FAR
    warnings.left_out({"expected id, x and y, in a timestep that has a time": line[~reads], beyond: line[far]})
    fixes = Fixes(node, time_s, x, y, line).where(reads & ~far)
    return recorded_trace(Recorded("sumo", fcd.book, fixes, dates=False, degrees=fcd.degrees), fcd.lines, warnings)


def parse_fcd(path: Path) -> Fcd:
    """A file of floating car data, by a parser of XML."""
    said = _Fcd()
    lines = _parse(path, said.parser)
    x, y, time_s = (numbers_of(texts(column)) for column in (said.x, said.y, said.times))
    ids = texts(said.ids)
    node, book = numbered(ids)
    rows = Recording(node, ~are(ids, ""), time_s, x, y, np.array(said.lines, np.int64))
    return Fcd(rows, book, said.degrees, lines)


class _Fcd:
    """What a file of floating car data has said so far."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.x: list[str] = []
        self.y: list[str] = []
        self.times: list[str] = []
        self.lines: list[int] = []
        self.degrees = False
        self._now = ""
        self.parser = _parser(self._begin)
        self.parser.CommentHandler = self._comment

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in ("vehicle", "person"):
            self.ids.append(attributes.get("id", ""))
            self.x.append(attributes.get("x", ""))
            self.y.append(attributes.get("y", ""))
            self.times.append(self._now)
            self.lines.append(self.parser.CurrentLineNumber)
        elif tag == "timestep":
            self._now = attributes.get("time", "")

    def _comment(self, text: str) -> None:
        # SUMO writes the options it ran with into a comment at the top.
        self.degrees |= bool(re.search(r'fcd-output\.geo\s+value="(true|1|yes|on|x)"', text))


def _parser(begin: Callable[[str, dict[str, str]], None]) -> Any:
    """A parser of XML that says where elements begin."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = begin
    return parser


def _parse(path: Path, parser: Any) -> int:
    """Let the parser read the file; how many lines that were."""
    try:
        for block in blocks(path):
            parser.Parse(block, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        said = expat.ErrorString(error.code)
        raise BadInput(f"{path}: line {error.lineno}: not well-formed XML: {said}; is the file whole?") from None
    except (LookupError, ValueError) as error:  # of the encoding that it names
        raise BadInput(f"{path}: cannot be read: {error}; save it as UTF-8") from None
    return int(parser.CurrentLineNumber)
