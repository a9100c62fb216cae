"""Which format a file is in, told from its first lines; if two fit about as well, the user is asked.

A format's fit is the share of the lines that it can read. One odd line changes it a little, never the answer.
"""

from collections import Counter
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from serai.core.errors import BadInput
from serai.traces.words import blocks

_LOOKED_AT = 1 << 16  # bytes, from which the format is told
_MOST_LINES = 2000
_LEAST_FIT = 0.5  # of the lines: a format that reads fewer is none
_AS_GOOD = 0.8  # of the best fit: whoever comes so near may be meant as well
_MOSTLY = 0.8  # of the lines are as a format wants them, if it is that format
_ODD = 0.05  # of the lines at most are odd
_SORTED = 0.95

Fits = dict[str, float]


class _Row:
    """A line: its words, and each as a number; None: it is none."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    @cached_property
    def numbers(self) -> list[float | None]:
        """Each word as a number."""
        return [_number(word) for word in self.words]

    def has_numbers(self, *places: int) -> bool:
        """Whether there are numbers at these places."""
        return all(place < len(self.words) and self.numbers[place] is not None for place in places)

    def has_nodes(self, *places: int) -> bool:
        """Whether these words may be nodes, two different ones: nobody is called 0.5."""
        names = [self.words[place] for place in places]
        return not any("." in self.words[place] and self.numbers[place] is not None for place in places) and (
            len(set(names)) == len(names)
        )

    def at(self, place: int) -> float:
        """The number at a place that has one."""
        number = self.numbers[place]
        assert number is not None
        return number


def detect_format(path: Path, allowed: tuple[str, ...]) -> str:
    """The name of the format that fits a file best; if others fit as well, the user has to say."""
    block = next(blocks(path, _LOOKED_AT), b"")
    text = block.decode("utf-8", "replace")
    if "\0" in text:
        raise BadInput(f"{path}: not a text file; one of: {', '.join(allowed)}")
    if len(block) == _LOOKED_AT and "\n" in text:
        text = text[: text.rfind("\n")]  # the last line may be cut
    fits = _xml_fits(text) if text.lstrip().startswith("<") else _table_fits(text)
    fits = {name: fit for name, fit in fits.items() if fit > _LEAST_FIT}
    if not fits:
        raise BadInput(
            f"{path}: cannot tell the format from its first lines; name it with --format; one of: {', '.join(allowed)}"
        )
    likely = sorted(name for name, fit in fits.items() if fit >= _AS_GOOD * max(fits.values()))
    if len(likely) > 1:
        raise BadInput(ambiguous(path, likely))
    return likely[0]


def ambiguous(path: Path, likely: list[str]) -> str:
    """The question which of these formats a file is in."""
    return f"{path}: may be {' or '.join(likely)}; say which: {' or '.join(f'--format {name}' for name in likely)}"


def _xml_fits(text: str) -> Fits:
    if "<fcd-export" in text:
        return {"sumo": 1.0}
    return {"gpx": 1.0} if "<gpx" in text else {}


def _table_fits(text: str) -> Fits:
    """The formats of a text of lines: by what only one of them has, then by its numbers."""
    header = text.split("\n", 1)[0].lower()
    if "timestamp" in header and "," in header and any(sign in header for sign in ("location", "long")):
        return {"movebank": 1.0}
    lines = (line.split("#")[0].replace(",", " ").replace(";", " ").split() for line in text.split("\n")[:_MOST_LINES])
    rows = [_Row(words) for words in lines if words]
    if not rows:
        return {}
    reports = sum(len(row.words) >= 2 and row.words[1] == "CONN" for row in rows) / len(rows)
    commands = sum(row.words[0].startswith(("$node_(", "$ns_", "$god_")) for row in rows) / len(rows)
    if max(reports, commands) > _LEAST_FIT:
        return {"one-contacts": reports, "ns2": commands}
    fits = _contact_fits(rows) | _sighting_fits(rows) | {"bonnmotion": _waypoint_fit(rows)}
    if not any(fit > _LEAST_FIT for fit in fits.values()) and commands:
        return {"ns2": 1.0}  # a long script around a few movements
    return fits


def _contact_fits(rows: list[_Row]) -> Fits:
    """Four columns or more: `node node begin end`, `node node begin duration`, `time node x y`."""
    moves, certain = _movement_fit(rows)
    if certain:
        return {"one-movement": moves}
    likely = [row for row in rows if row.has_numbers(2, 3) and row.has_nodes(0) and row.has_nodes(1)]
    forward = sum(row.at(2) <= row.at(3) for row in likely)
    backward = len(likely) - forward
    if forward >= _MOSTLY * len(likely) and not many_backward(backward, len(likely)):  # they are odd lines
        return {"crawdad": len(likely) / len(rows), "one-movement": moves}
    lasting = sum(row.at(3) >= 0 for row in likely) / len(rows)
    fits = {"begin-duration": lasting, "one-movement": moves}
    if forward > backward:
        fits["crawdad"] = lasting  # a duration is longer than the time of the day, or an end is wrong: who knows
    timed = [row for row in rows if len(row.words) in (4, 5) and row.has_numbers(0, 2, 3)]
    if _is_sorted(timed, 0) and not _is_sorted(timed, 2):  # it may have lost its header
        fits["one-movement"] = len(timed) / len(rows)
    return fits


def many_backward(backward: int, contacts: int) -> bool:
    """Whether so many contacts end before they begin that the column may not be their end at all."""
    return backward > max(1, _ODD * contacts)


def _movement_fit(rows: list[_Row]) -> tuple[float, bool]:
    """How well limits and then `time node x y` fits, and whether the times lie within the limits: then it is that."""
    head, body = rows[0], rows[1:]
    if len(head.words) not in (6, 8) or None in head.numbers or not body:
        return 0.0, False
    if any(head.at(place) > head.at(place + 1) for place in range(0, len(head.words), 2)):
        return 0.0, False
    fine = [row for row in body if len(row.words) in (4, 5) and row.has_numbers(0, 2, 3)]
    within = sum(head.at(0) <= row.at(0) <= head.at(1) for row in fine)
    fit = (len(fine) + 1) / len(rows)
    return fit, fit > _LEAST_FIT and within >= _MOSTLY * len(fine)


def _sighting_fits(rows: list[_Row]) -> Fits:
    """Three columns, `time node node` or `node node time`; five, of which the last two are classes of people."""
    three = [row for row in rows if len(row.words) == 3]
    first = [row for row in three if row.has_numbers(0) and row.has_nodes(1, 2)]
    last = [row for row in three if row.has_numbers(2) and row.has_nodes(0, 1)]
    five = [row for row in rows if len(row.words) == 5 and row.has_numbers(0) and row.has_nodes(1, 2)]
    classed = [row for row in five if row.numbers[3] is None or row.numbers[4] is None]
    fits = {
        "sightings": len(first) / len(rows),
        "sightings-time-last": len(last) / len(rows),
        "sociopatterns": len(classed) / len(rows),
    }
    if min(fits["sightings"], fits["sightings-time-last"]) > _LEAST_FIT:
        # All are numbers: time goes on, and is not drawn from the same few as the nodes are.
        begins, ends = _is_sorted(first, 0), _is_sorted(last, 2)
        front, back = _in_common(three, 0, 1), _in_common(three, 1, 2)
        if begins and not ends and back > front:
            del fits["sightings-time-last"]
        elif ends and not begins and front > back:
            del fits["sightings"]
    return fits


def _waypoint_fit(rows: list[_Row]) -> float:
    """How well `time x y time x y ...` fits: time goes on in a line, and begins at 0 or lines differ in length."""
    fine = [row for row in rows if len(row.words) % 3 == 0 and None not in row.numbers and _goes_on(row)]
    if not fine:
        return 0.0
    zero = sum(row.at(0) == 0 for row in fine)
    lengths = [count for _, count in Counter(len(row.words) for row in fine).most_common(2)]
    differ = len(lengths) == 2 and lengths[1] >= max(2, len(fine) / 10)
    return len(fine) / len(rows) if differ or 2 * zero > len(fine) else 0.0


def _goes_on(row: _Row) -> bool:
    times = [row.at(place) for place in range(0, len(row.words), 3)]
    return times == sorted(times)


def _is_sorted(rows: list[_Row], place: int) -> bool:
    """Whether the numbers of a column hardly ever fall, and are not all the same."""
    column = [row.at(place) for row in rows]
    rises = sum(one <= other for one, other in pairwise(column))
    return len(set(column)) > 1 and rises >= _SORTED * (len(column) - 1)


def _in_common(rows: list[_Row], one: int, other: int) -> float:
    """How much two columns have in common: the share of the values of the shorter list that are in both."""
    left, right = ({row.words[place] for row in rows} for place in (one, other))
    return len(left & right) / max(min(len(left), len(right)), 1)


def _number(word: str) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None
