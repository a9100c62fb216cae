"""Traces of contacts: connectivity reports of The ONE, and the four columns that CRAWDAD's data sets have.

Each case that a file may hold and a network cannot is decided here, and counted: a node that meets itself and
a contact that ends before it begins are left out, overlapping contacts of a pair become one, a contact that is
still up where the file ends, ends there, in tables one of no length gets the trace's resolution. Lines need not
be in order of time.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.traces.names import natural_order
from serai.traces.warnings import ParseWarning, ParseWarnings
from serai.traces.words import OTHER_COLUMNS, Flags, Places, Words, chunks, lines_of, unlike_most
from serai.world.contacts import Contacts, in_order, merged, pair_of
from serai.world.grid import Floats, Numbers
from serai.world.orders import order_of

BACKWARD = "ends before it begins"


class ContactTrace(NamedTuple):
    """Contacts that somebody recorded, between nodes numbered in the natural order of their names."""

    format: str
    names: tuple[str, ...]
    contacts: Contacts  # in the file's own time
    begin_s: float  # the first and the last time that the file speaks of
    end_s: float
    lines: int
    warnings: tuple[ParseWarning, ...]


class _Changes(NamedTuple):
    """Links going up and down, in the order of the file."""

    a: Numbers
    b: Numbers
    time_s: Floats
    up: Flags
    line: Places

    def at(self, rows: Places | Flags) -> "_Changes":
        """Only these changes, in this order."""
        return _Changes(self.a[rows], self.b[rows], self.time_s[rows], self.up[rows], self.line[rows])


def read_one_contacts(path: Path, strict: bool = False) -> ContactTrace:
    """The contacts of a connectivity report of The ONE: `time CONN node node up|down`."""
    warnings, book, lines, parts = ParseWarnings(path, strict), dict[str, int](), 0, []
    for words in chunks(path):
        parts.append(_changes_in(words, book, warnings))
        lines = words.first_line + words.first.size - 2
    changes = _joined(path, parts, "time CONN node node up")
    changes = _in_time(changes, warnings)
    begin_s, end_s = float(changes.time_s[0]), float(changes.time_s[-1])
    contacts = _paired(changes, end_s, warnings)
    return contact_trace("one-contacts", book, contacts, (begin_s, end_s), lines, warnings)


def _changes_in(words: Words, book: dict[str, int], warnings: ParseWarnings) -> _Changes:
    """The links that go up and down in a chunk of a file."""
    at, line, others = lines_of(words, words.counts == 5)
    time_s, timed = words.numbers(at)
    up, down = words.are(at + 4, b"up"), words.are(at + 4, b"down")
    reads = timed & words.are(at + 1, b"CONN") & (up | down)
    a, b = words.names(at[reads] + 2, book), words.names(at[reads] + 3, book)
    warnings.left_out(
        {
            "expected: time CONN node node up|down": np.append(others, line[~reads]),
            "a node meets itself": line[reads][a == b],
        }
    )
    found = _Changes(np.minimum(a, b), np.maximum(a, b), time_s[reads], up[reads], line[reads])
    return found if (a != b).all() else found.at(a != b)


def _joined(path: Path, parts: list[_Changes], example: str) -> _Changes:
    """The chunks of a file as one; a file with nothing in it is refused."""
    if not any(part.line.size for part in parts):
        raise BadInput(f'{path}: no contact in it; expected lines such as "{example}"')
    return _Changes(*map(np.concatenate, zip(*parts, strict=True)))


def _in_time(changes: _Changes, warnings: ParseWarnings) -> _Changes:
    """The same by time, those at the same time in the order of the file."""
    back = np.flatnonzero(np.diff(changes.time_s) < 0) + 1
    if not back.size:
        return changes
    warnings.decided("earlier than the line before: sorted", changes.line[back])
    return changes.at(order_of(changes.time_s))


def _paired(changes: _Changes, end_s: float, warnings: ParseWarnings) -> Contacts:
    """Each going up with the going down that follows it, in whatever order.

    After any change the link is what the change says, so what counts is whether it says something new.
    """
    pair = pair_of(changes.a, changes.b)
    by_pair = order_of(pair)
    a, b, time_s, up, line = changes.at(by_pair)
    begins = np.diff(pair[by_pair], prepend=-1) != 0
    was_up = np.concatenate(([False], up[:-1])) & ~begins
    warnings.left_out({"up, but it is up already": line[up & was_up], "down, but it is not up": line[~up & ~was_up]})
    rising, falling = up & ~was_up, ~up & was_up
    ends = np.append(begins[1:], True)
    open_end = ends & up  # the pair's last word was that it is up
    warnings.counted(f"still up at the end of the file: ends there, at {end_s:g} s", int(open_end.sum()))
    # Rising and falling of a pair alternate, so the n-th end belongs to the n-th beginning.
    closing = np.flatnonzero(falling | open_end)
    down_s = np.where(falling[closing], time_s[closing], end_s)
    return Contacts(a[rising], b[rising], time_s[rising], down_s)


def read_crawdad(path: Path, strict: bool = False) -> ContactTrace:
    """The contacts of a table `node node begin end`, with more columns behind them or not (CRAWDAD)."""
    return _read_table(path, strict, "crawdad", "end")


def read_begin_duration(path: Path, strict: bool = False) -> ContactTrace:
    """The contacts of a table `node node begin duration`, with more columns behind them or not."""
    return _read_table(path, strict, "begin-duration", "duration")


def _read_table(path: Path, strict: bool, form: str, fourth: str) -> ContactTrace:
    warnings, book, lines, parts = ParseWarnings(path, strict), dict[str, int](), 0, []
    for words in chunks(path, b" \t\r,;"):
        parts.append(_rows_in(words, book, fourth, warnings))
        lines = words.first_line + words.first.size - 2
    if not any(part.a.size for part in parts):
        raise BadInput(f'{path}: no contact in it; expected lines such as "1 2 30.0 75.5": node node begin {fourth}')
    found = _with_length(in_order(Contacts(*map(np.concatenate, zip(*parts, strict=True)))), warnings)
    contacts = merged(found)
    count = found.a.size - contacts.a.size
    warnings.counted("overlaps or touches another contact of the same two nodes: made one", count)
    return contact_trace(form, book, contacts, (float(found.up_s[0]), float(found.down_s.max())), lines, warnings)


def _with_length(found: Contacts, warnings: ParseWarnings) -> Contacts:
    """The same contacts; one that was seen once only, so that it has no length, lasts as long as time is exact."""
    once = found.down_s == found.up_s
    if not once.any():
        return found
    step = smallest_step(np.concatenate((found.up_s, found.down_s)))
    warnings.counted(f"of no length: lasts the smallest step of time in the file, {step:g}", int(once.sum()))
    return found._replace(down_s=np.where(once, found.up_s + step, found.down_s))


def smallest_step(times: Floats) -> float:
    """The resolution of a trace: the smallest step from one time in it to another; 1 if there is but one."""
    steps = np.diff(np.unique(times))
    steps = steps[steps > 1e-9 * np.abs(times).max()]  # less is rounding
    return float(steps.min()) if steps.size else 1.0


def joined_over(contacts: Contacts, gap_s: float) -> Contacts:
    """Contacts of the same two nodes that are no further apart than this made one; they must not overlap."""
    by_pair = contacts.at(order_of(pair_of(contacts.a, contacts.b)))
    a, b, up_s, down_s = by_pair
    goes_on = (a[1:] == a[:-1]) & (b[1:] == b[:-1]) & (up_s[1:] - down_s[:-1] <= gap_s)
    first, last = np.append(True, ~goes_on)[: a.size], np.append(~goes_on, True)[-a.size :]
    return in_order(Contacts(a[first], b[first], up_s[first], down_s[last])) if a.size else contacts


def _rows_in(words: Words, book: dict[str, int], fourth: str, warnings: ParseWarnings) -> Contacts:
    """The contacts in a chunk of a file, the lower node first."""
    at, line, others = lines_of(words, words.counts >= 4)
    (up_s, first_fine), (down_s, last_fine) = words.numbers(at + 2), words.numbers(at + 3)
    reads = first_fine & last_fine
    a, b = words.names(at[reads], book), words.names(at[reads] + 1, book)
    up_s, down_s = up_s[reads], down_s[reads]
    if fourth == "duration":
        down_s = up_s + down_s
    itself, backward = a == b, (a != b) & (down_s < up_s)
    warnings.left_out(
        {
            f"expected: node node begin {fourth}": np.append(others, line[~reads]),
            "a node meets itself": line[reads][itself],
            BACKWARD: line[reads][backward],
        }
    )
    warnings.decided(OTHER_COLUMNS, line[reads & unlike_most(words, words.counts >= 4)])
    return Contacts(np.minimum(a, b), np.maximum(a, b), up_s, down_s).at(~itself & ~backward)


def contact_trace(
    name: str,
    book: dict[str, int],
    contacts: Contacts,
    span_s: tuple[float, float],
    lines: int,
    warnings: ParseWarnings,
) -> ContactTrace:
    """A trace whose nodes are numbered in the natural order of their names."""
    names, number = natural_order(book)
    a, b = number[contacts.a], number[contacts.b]
    ordered = in_order(Contacts(np.minimum(a, b), np.maximum(a, b), contacts.up_s, contacts.down_s))
    return ContactTrace(name, names, ordered, *span_s, lines, warnings.listed())
