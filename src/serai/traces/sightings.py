"""Who was seen with whom at a time, again and again: lists of sightings, and those of SocioPatterns.

A sighting lasts as long as the smallest step of time in the file, so those of two nodes in a row are one contact.
"""

from pathlib import Path

import numpy as np

from serai.core.errors import BadInput
from serai.traces.contacts import ContactTrace, contact_trace, smallest_step
from serai.traces.warnings import ParseWarnings
from serai.traces.words import OTHER_COLUMNS, Words, chunks, lines_of, unlike_most
from serai.world.contacts import Contacts, pair_of

_ROUNDING = 1e-3  # of a step: sightings in a row are no further apart than a step and this


def read_sightings(path: Path, strict: bool = False) -> ContactTrace:
    """The contacts of a list of sightings `time node node`."""
    return _read(path, strict, "sightings", "time node node")


def read_sightings_time_last(path: Path, strict: bool = False) -> ContactTrace:
    """The contacts of a list of sightings `node node time`."""
    return _read(path, strict, "sightings-time-last", "node node time")


def read_sociopatterns(path: Path, strict: bool = False) -> ContactTrace:
    """The contacts of a list of SocioPatterns: `time node node class class`; a time is the end of its 20 seconds."""
    return _read(path, strict, "sociopatterns", "time node node")


def _read(path: Path, strict: bool, form: str, columns: str) -> ContactTrace:
    warnings, book, lines, parts = ParseWarnings(path, strict), dict[str, int](), 0, []
    for words in chunks(path, b" \t\r,;"):
        parts.append(_sightings_in(words, book, columns, warnings))
        lines = words.first_line + words.first.size - 2
    if not any(part.a.size for part in parts):
        raise BadInput(f"{path}: no contact in it; expected lines with {columns}")
    found = Contacts(*map(np.concatenate, zip(*parts, strict=True)))
    step = smallest_step(found.up_s)
    a, b, first_s, last_s = _runs(found, step)
    begin_s, end_s = (first_s - step, last_s) if form == "sociopatterns" else (first_s, last_s + step)
    warnings.counted(f"a sighting: lasts the smallest step of time in the file, {step:g}", found.a.size)
    span_s = float(begin_s.min()), float(end_s.max())
    return contact_trace(form, book, Contacts(a, b, begin_s, end_s), span_s, lines, warnings)


def _runs(found: Contacts, step: float) -> Contacts:
    """Sightings of two nodes in a row, from the first of them to the last."""
    if (found.up_s[1:] < found.up_s[:-1]).any():
        found = found.at(np.argsort(found.up_s, kind="stable"))
    a, b, time_s, _ = found.at(np.argsort(pair_of(found.a, found.b), kind="stable"))
    goes_on = (a[1:] == a[:-1]) & (b[1:] == b[:-1]) & (np.diff(time_s) <= (1 + _ROUNDING) * step)
    first, last = np.append(True, ~goes_on), np.append(~goes_on, True)
    return Contacts(a[first], b[first], time_s[first], time_s[last])


def _sightings_in(words: Words, book: dict[str, int], columns: str, warnings: ParseWarnings) -> Contacts:
    """The sightings in a chunk of a file, the lower node first, as contacts of no length."""
    at, line, others = lines_of(words, words.counts >= 3)
    time = columns.split().index("time")
    first = 1 if time == 0 else 0
    time_s, reads = words.numbers(at + time)
    a, b = words.names(at[reads] + first, book), words.names(at[reads] + first + 1, book)
    warnings.left_out(
        {
            f"expected: {columns}": np.append(others, line[~reads]),
            "a node meets itself": line[reads][a == b],
        }
    )
    warnings.decided(OTHER_COLUMNS, line[reads & unlike_most(words, words.counts >= 3)])
    return Contacts(np.minimum(a, b), np.maximum(a, b), time_s[reads], time_s[reads]).at(a != b)
