"""What was published, from files: The ONE's report on created messages, its external events, or CSV with channels."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.traces.warnings import ParseWarning, ParseWarnings
from serai.traces.words import Flags, Places, Words, blocks, chunks, lines_of
from serai.world.grid import Floats

_COLUMNS = ("time", "source", "channel", "size")
_MINUTE_S = 60.0  # The ONE counts lifetimes in minutes
_EXPECTED = "expected: time id size from to minutes ..., or time C id from to size"


class Messages(NamedTuple):
    """What was published, in order of time; a message to one node has a target, others have a channel."""

    time_s: Floats
    source: list[str]
    target: list[str]  # "" where there is a channel instead
    channel: list[str]
    size_bytes: Floats
    lifetime_s: Floats  # NaN where the file does not say
    warnings: tuple[ParseWarning, ...]


class Interests(NamedTuple):
    """Who wants which channel, from when to when."""

    node: list[str]
    channel: list[str]
    from_s: Floats
    to_s: Floats
    warnings: tuple[ParseWarning, ...]


def read_messages(path: Path, strict: bool = False) -> Messages:
    """The messages of a file: CSV if its first line names columns, else as The ONE writes them."""
    first = next(blocks(path, 4096), b"").split(b"\n")[0]
    warnings = ParseWarnings(path, strict)
    found = _from_csv(path, warnings) if b"," in first else _from_one(path, warnings)
    if not found.source:
        raise BadInput(f"{path}: no message in it; {_EXPECTED}, or CSV with columns {', '.join(_COLUMNS)}")
    return _in_time(found, warnings)


def _in_time(found: Messages, warnings: ParseWarnings) -> Messages:
    """The same in order of time."""
    order = np.argsort(found.time_s, kind="stable")
    warnings.counted("earlier than the message before: sorted", int((np.diff(found.time_s) < 0).sum()))
    source, target, channel = (_reordered(texts, order) for texts in (found.source, found.target, found.channel))
    size_bytes, lifetime_s = found.size_bytes[order], found.lifetime_s[order]
    return Messages(found.time_s[order], source, target, channel, size_bytes, lifetime_s, warnings.listed())


def _reordered(texts: list[str], order: Places) -> list[str]:
    return [texts[place] for place in order.tolist()]


# ---- The ONE


def _from_one(path: Path, warnings: ParseWarnings) -> Messages:
    """A report on created messages, or the C lines of an external events file."""
    parts = [_messages_in(words, warnings) for words in chunks(path)]
    numbers = np.concatenate([part[0] for part in parts]) if parts else np.empty((0, 3))
    source, target, channel = ([text for part in parts for text in part[column]] for column in (1, 2, 3))
    return Messages(numbers[:, 0], source, target, channel, numbers[:, 1], numbers[:, 2], ())


def _messages_in(words: Words, warnings: ParseWarnings) -> tuple[Floats, list[str], list[str], list[str]]:
    """Time, size and lifetime of the messages in a chunk of a file; from whom, to whom, and their ids."""
    at, line, others = lines_of(words, words.counts >= 6)
    event = words.are(at + 1, b"C")
    time_s, timed = words.numbers(at)
    # A report has: time id size from to minutes ...; an event: time C id from to size
    size, sized = words.numbers(at + np.where(event, 5, 2))
    minutes, limited = words.numbers(at + 5)
    reads = timed & sized & (event | limited) & (size >= 0)
    warnings.left_out({_EXPECTED: np.append(others, line[~reads])})
    lifetime_s = np.where(event, np.nan, minutes * _MINUTE_S)
    source, target = _words_at(words, at + 3, reads), _words_at(words, at + 4, reads)
    name = _words_at(words, at + np.where(event, 2, 1), reads)
    return np.column_stack((time_s, size, lifetime_s))[reads], source, target, name


def _words_at(words: Words, places: Places, kept: Flags) -> list[str]:
    return [words.word(place) for place in places[kept].tolist()]


# ---- CSV


def _from_csv(path: Path, warnings: ParseWarnings) -> Messages:
    """A table with columns time (s), source, channel, size (bytes) and perhaps lifetime (s)."""
    rows, bad = [], []
    for line, row in _rows(path, _COLUMNS):
        numbers = [_number(row.get(column, "")) for column in ("time", "size", "lifetime")]
        if numbers[0] is None or numbers[1] is None or not row["source"] or not row["channel"]:
            bad.append(line)
        else:
            rows.append((numbers[0], numbers[1], np.nan if numbers[2] is None else numbers[2], row))
    warnings.left_out({"expected time (s), source, channel and size (bytes)": bad})
    time_s, size, lifetime_s = np.array([row[:3] for row in rows], np.float64).reshape(-1, 3).T
    source, channel = ([row[3][column] for row in rows] for column in ("source", "channel"))
    return Messages(time_s, source, [""] * len(rows), channel, size, lifetime_s, ())


def read_interests(path: Path, strict: bool = False) -> Interests:
    """The subscriptions of a CSV file with columns node, channel and perhaps from and to (s)."""
    warnings = ParseWarnings(path, strict)
    rows, bad = [], []
    for line, row in _rows(path, ("node", "channel")):
        begin, end = (_number(row[key]) if row.get(key) else default for key, default in _ALWAYS.items())
        if begin is None or end is None or end < begin or not row["node"] or not row["channel"]:
            bad.append(line)
        else:
            rows.append((row["node"], row["channel"], begin, end))
    warnings.left_out({"expected node, channel, and a time `to` (s) not before `from`": bad})
    if not rows:
        raise BadInput(f"{path}: no subscription in it; expected CSV with columns node, channel (and from, to)")
    node, channel, begins, ends = zip(*rows, strict=True)
    return Interests(list(node), list(channel), np.array(begins), np.array(ends), warnings.listed())


_ALWAYS = {"from": -np.inf, "to": np.inf}


def _rows(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and cells, by column, of every row of a CSV file."""
    text = b"".join(blocks(path)).decode("utf-8-sig", "replace")
    reader = csv.reader(io.StringIO(text))
    header = [cell.strip().lower() for cell in next(reader, [])]
    missing = [column for column in needed if column not in header]
    if missing:
        raise BadInput(f"{path}: missing column {', '.join(missing)}; the header has: {', '.join(header)}")
    for cells in reader:
        if cells:
            row = dict.fromkeys(header, "") | dict(zip(header, (cell.strip() for cell in cells), strict=False))
            yield reader.line_num, row


def _number(text: str) -> float | None:
    """The number that is written there; None if it is none, or not a finite one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None
