"""Movement files of simulators, in metres: The ONE's external movement, BonnMotion, ns-2 (setdest)."""

import math
from pathlib import Path

import numpy as np

from serai.core.errors import BadInput
from serai.core.jit import kernel, rule
from serai.traces.names import natural_order
from serai.traces.tracks import FARTHEST_M, TOO_FAR, Fixes, TrackTrace, joined, trace_of, tracks_of
from serai.traces.warnings import ParseWarnings
from serai.traces.words import Flags, Places, Words, chunks, lines_of
from serai.world.grid import Floats

_HEADER_WORDS = (6, 8)  # of The ONE's movement: lowest and highest time, x, y (and z)
_SET_X, _SET_Y, _GO = range(3)
_VERBS = ((b"set", b"X_"), (b"set", b"Y_"), (b"setdest", b""))
# Where "$node_" stands, how many words the line has, how many numbers at its end; node and verb follow.
_COMMANDS = ((0, 5, 1), (3, 8, 1), (3, 9, 3))


def read_one_movement(path: Path, strict: bool = False) -> TrackTrace:
    """The positions of an external movement file of The ONE: a header of limits, then `time node x y`."""
    warnings, book, lines, parts = ParseWarnings(path, strict), dict[str, int](), 0, []
    for words in chunks(path):
        parts.append(_positions_in(words, book, warnings))
        lines = words.first_line + words.first.size - 2
    fixes = joined(path, parts, 'lines such as "10.0 n3 120.5 80.0": time node x y')
    return trace_of("one-movement", book, fixes, True, lines, warnings)


def _positions_in(words: Words, book: dict[str, int], warnings: ParseWarnings) -> Fixes:
    """The positions in a chunk of a file; its first line may be the header."""
    counts = words.counts
    at, line, others = lines_of(words, (counts == 4) | (counts == 5))  # z may follow
    if (
        words.first_line == 1
        and others.size
        and counts[others[0] - 1] in _HEADER_WORDS
        and not (line < others[0]).any()
    ):
        others = others[1:]
    values, fine = zip(*(words.numbers(at + column) for column in (0, 2, 3)), strict=True)
    reads = fine[0] & fine[1] & fine[2]
    far = reads & ((np.abs(values[1]) > FARTHEST_M) | (np.abs(values[2]) > FARTHEST_M))
    warnings.left_out({"expected: time node x y": np.append(others, line[~reads]), TOO_FAR: line[far]})
    reads &= ~far
    node = words.names(at[reads] + 1, book)
    return Fixes(node, values[0][reads], values[1][reads], values[2][reads], line[reads])


def read_bonnmotion(path: Path, strict: bool = False) -> TrackTrace:
    """The waypoints of a BonnMotion file: one line a node, `time x y` again and again; nodes are called 0, 1, ..."""
    warnings, lines, nodes, parts = ParseWarnings(path, strict), 0, 0, []
    for words in chunks(path):
        parts.append(_waypoints_in(words, nodes, warnings))
        nodes += int((words.counts > 0).sum())
        lines = words.first_line + words.first.size - 2
    fixes = joined(path, parts, 'one line a node, "0.0 10.5 20.0 60.0 80.0 95.5": time x y, time x y, ...')
    return trace_of("bonnmotion", {str(node): node for node in range(nodes)}, fixes, True, lines, warnings)


def _waypoints_in(words: Words, nodes: int, warnings: ParseWarnings) -> Fixes:
    """The waypoints in a chunk of a file, whose first node has the number `nodes`."""
    counts = words.counts
    values, fine = words.numbers(np.arange(words.start.size))
    in_line = np.repeat(np.arange(counts.size), counts)
    wrong = np.bincount(in_line[~fine], minlength=counts.size) > 0
    reads = (counts > 0) & (counts % 3 == 0) & ~wrong
    number = words.first_line + np.arange(counts.size)
    place = np.arange(words.start.size) - np.repeat(words.first[:-1], counts)  # in the line: time, x, y, time, ...
    beyond = fine & (place % 3 != 0) & (np.abs(values) > FARTHEST_M)
    far = reads & (np.bincount(in_line[beyond], minlength=counts.size) > 0)
    expected = "expected numbers only, three for each waypoint: time x y"
    warnings.left_out({expected: number[(counts > 0) & ~reads], TOO_FAR: number[far]})
    reads &= ~far
    node = (nodes + np.cumsum(counts > 0) - 1).astype(np.int32)
    kept = reads[in_line]
    time_s, x, y = values[kept].reshape(-1, 3).T.copy()
    return Fixes(node[in_line[kept][::3]], time_s, x, y, number[in_line[kept][::3]])


def read_ns2(path: Path, strict: bool = False) -> TrackTrace:
    """The movement that an ns-2 script makes: positions (set X_, set Y_) and `setdest x y speed`."""
    warnings, book, lines, parts = ParseWarnings(path, strict), dict[str, int](), 0, []
    for words in chunks(path, b' \t\r"();'):
        parts.append(_commands_in(words, book, warnings))
        lines = words.first_line + words.first.size - 2
    commands = np.concatenate(parts) if parts else np.empty((0, 6))
    if not len(commands):
        raise BadInput(f'{path}: no movement in it; expected lines such as "$ns_ at 5.0 "$node_(0) setdest 90 20 1.5""')
    names, number = natural_order(book)
    commands[:, 0] = number[commands[:, 0].astype(np.int64)]
    points = _follow(commands[np.lexsort((commands[:, 1], commands[:, 0]))])
    tracks = tracks_of(len(names), points[:, 0].astype(np.int32), *points[:, 1:].T.copy())
    return TrackTrace("ns2", names, tracks, True, lines, warnings.listed())


def _commands_in(words: Words, book: dict[str, int], warnings: ParseWarnings) -> Floats:
    """The commands in a chunk of a script as rows node, time, what, and its numbers: x, y, speed or one value."""
    rows, bad, beyond, known = [], [], [], np.zeros(words.counts.size, bool)
    first = words.first[:-1].astype(np.int64)
    for word, count, numbers in _COMMANDS:
        fits = np.flatnonzero(words.counts == count)
        fits = fits[words.are(first[fits] + word, b"$node_")]
        for what, (verb, axis) in enumerate(_VERBS):
            at = fits[words.are(first[fits] + word + 2, verb)]
            if axis:
                at = at[words.are(first[at] + word + 3, axis)]
            if bool(axis) == (numbers == 3):
                continue
            known[at] = True
            row, fine = _command(words, first[at], (word, count, numbers), what)
            far = fine & (np.abs(row[:, 3:5]) > FARTHEST_M).any(1)
            beyond.append(words.first_line + at[far])
            bad.append(words.first_line + at[~fine])
            fine &= ~far
            row[fine, 0] = words.names(first[at[fine]] + word + 1, book)
            rows.append(np.column_stack((row, at))[fine])
    warnings.left_out({"expected numbers in this command": np.concatenate(bad), TOO_FAR: np.concatenate(beyond)})
    number = words.first_line + np.arange(known.size)
    warnings.decided("another command of the script: not looked at", number[~known & (words.counts > 0)])
    found: Floats = np.concatenate(rows)
    return found[np.argsort(found[:, -1], kind="stable"), :-1]


def _command(words: Words, first: Places, shape: tuple[int, int, int], what: int) -> tuple[Floats, Flags]:
    """Commands of one shape as rows node (left open), time, what, numbers; and which have numbers where they should."""
    word, count, numbers = shape
    row, fine = np.zeros((first.size, 6)), np.ones(first.size, bool)
    row[:, 2] = what
    if word:  # "$ns_ at 5.0" comes before the node
        row[:, 1], fine = words.numbers(first + 2)
    for place in range(numbers):
        row[:, 3 + place], reads = words.numbers(first + count - numbers + place)
        fine &= reads
    return row, fine


@kernel
def _follow(commands: Floats) -> Floats:
    """Turning points (node, time, x, y) of nodes that follow their commands, given by node and time.

    A node on its way to one destination turns to the next when told to; a new position is a jump.
    """
    points = np.empty((3 * commands.shape[0] + 1, 4))
    count, first = 0, 0
    to_x, to_y, arrival_s = 0.0, 0.0, -1.0  # before its arrival, a node is on its way
    for row in range(commands.shape[0] + 1):
        done = row == commands.shape[0]
        if done or row == 0 or commands[row, 0] != commands[row - 1, 0]:
            if row > 0 and arrival_s > points[count - 1, 1]:
                count = _point(points, count, commands[row - 1, 0], arrival_s, to_x, to_y)
            if done:
                break
            first = count
            count = _point(points, count, commands[row, 0], commands[row, 1], 0.0, 0.0)
            arrival_s = -1.0
        node, time_s, what = commands[row, 0], commands[row, 1], commands[row, 2]
        count = _go_on(points, count, time_s, to_x, to_y, arrival_s)
        x, y = points[count - 1, 2], points[count - 1, 3]
        if what == _GO:
            to_x, to_y, speed_mps = commands[row, 3], commands[row, 4], commands[row, 5]
            far_m = math.sqrt((to_x - x) * (to_x - x) + (to_y - y) * (to_y - y))
            arrival_s = time_s + far_m / speed_mps if speed_mps > 0.0 and far_m > 0.0 else -1.0
            continue
        x, y = (commands[row, 3], y) if what == _SET_X else (x, commands[row, 3])
        arrival_s = -1.0
        if count == first + 1 and points[first, 1] == time_s:
            count = first  # it has not been anywhere yet
        count = _point(points, count, node, time_s, x, y)
    return points[:count]


@rule
def _go_on(points: Floats, count: int, time_s: float, to_x: float, to_y: float, arrival_s: float) -> int:
    """Add where a node turned since its last point, and where it is now, if that is news; how many points now."""
    node, since_s = points[count - 1, 0], points[count - 1, 1]
    x, y = points[count - 1, 2], points[count - 1, 3]
    if since_s < arrival_s <= time_s:
        count = _point(points, count, node, arrival_s, to_x, to_y)
        x, y = to_x, to_y
    elif since_s < time_s < arrival_s:
        share = (time_s - since_s) / (arrival_s - since_s)
        x, y = x + (to_x - x) * share, y + (to_y - y) * share
    if points[count - 1, 1] < time_s:
        count = _point(points, count, node, time_s, x, y)
    return count


@rule
def _point(points: Floats, count: int, node: float, time_s: float, x: float, y: float) -> int:
    """Write down a turning point; how many there are now."""
    points[count, 0], points[count, 1], points[count, 2], points[count, 3] = node, time_s, x, y
    return count + 1
