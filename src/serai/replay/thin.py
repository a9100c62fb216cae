"""Pages of runs that are too large to be shown whole: what is left out, and what takes its place.

    kept whole      every transfer and drop of a span of whole minutes (`--from`, `--to`); the whole life of one event
                    in n, chosen by a hash of its number, never by its outcome, and of those named (`--events`)
    in sums         transfers elsewhere: how often each link was used in each minute
    worked out      what lies at every node and what it has spent, at every minute: exact, from the whole log

What is counted (the sentence, the strip) is never thinned. The page says all this, and so does the command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from serai.replay.pack import zigzag
from serai.replay.sheet import Kept, Numbers, Sheet, Streams

MINUTE_S: Final = 60
_MOST_NUMBERS: Final = 4_000_000  # of keyframes
_HASH: Final = 2654435761  # Knuth's multiplier: neighbouring numbers fall far apart
_ROW_BYTES: Final = 2.0  # of the page, for a transfer


class Wish(NamedTuple):
    """What a page is asked to keep whole, whatever it must leave out."""

    begin_s: float | None = None
    end_s: float | None = None
    events: tuple[int, ...] = ()


class Cut(NamedTuple):
    """What a page keeps whole: a span of time, one event in so many, and the named ones."""

    begin_s: float
    end_s: float
    one_in: int
    events: tuple[int, ...] = ()


def cut_to_fit(streams: Streams, wish: Wish, most_bytes: int) -> Cut:
    """A first try: about half of the page for the span of time, and half for lives of events."""
    rows, step = max(int(most_bytes / 2 / _ROW_BYTES), 1), _every(streams)
    begin, end = wish.begin_s, wish.end_s
    if begin is None and end is None:  # from the middle on, as long as there is room
        begin = streams.end_s / 2 // step * step
        first = int(np.searchsorted(streams.row_s, begin))
        last = streams.row_s[min(first + rows, len(streams.row_s)) - 1] if len(streams.row_s) else begin
        end = max(last // step * step, begin + step)
    begin = (begin or 0.0) // step * step
    end = min(-(-(streams.end_s if end is None else end) // step) * step, streams.end_s)
    one_in = 1 << max(1, int(np.ceil(np.log2(max(len(streams.row_s) / rows, 1)))))
    return Cut(float(begin), float(end), one_in, wish.events)


def fewer_events(cut: Cut, page_bytes: int, most_bytes: int) -> Cut:
    """The next try after a page that is too large: about half of it were lives, and all else stays as large."""
    room = most_bytes - page_bytes / 2
    times = min(page_bytes / 2 / room, 16.0) if room > 0 else 16.0
    return cut._replace(one_in=cut.one_in << max(1, int(np.ceil(np.log2(times)))))


def rest_of(streams: Streams) -> dict[str, Numbers]:
    """What takes the place of whatever a cut leaves out: keyframes of all nodes, and sums by the minute."""
    moments = np.append(np.arange(0, streams.end_s, _every(streams)), streams.end_s)
    level, spent = keyframes(streams, moments)
    return {
        "keyAt": moments,
        "keyLevel": _steps(level),
        "keySpent": np.diff(spent, axis=0, prepend=0).astype(np.float64).ravel(),
        **_sums(streams),
    }


def thin(sheet_of: Callable[[Kept], Sheet], streams: Streams, cut: Cut, rest: Mapping[str, Numbers]) -> Sheet:
    """The sheet of a run with what the cut keeps, and with the rest (`rest_of`) in sums and keyframes."""
    events = kept_events(streams.events, cut)
    within = [(time_s > cut.begin_s) & (time_s <= cut.end_s) for time_s in (streams.row_s, streams.drop_s)]
    kept = Kept(within[0] | events[streams.event], within[1] | events[streams.drop_event], events)
    sheet = sheet_of(kept)
    columns = sheet.columns | {"keptEvent": np.flatnonzero(events), **rest}
    said = {"rows": len(streams.row_s), "kept": int(kept.rows.sum()), "every": _every(streams)}
    head = {"thin": cut._asdict() | said}
    return Sheet(sheet.head | head, columns, (*sheet.rising, "keptEvent", "sumLink"))


def _every(streams: Streams) -> int:
    """How many seconds lie between keyframes: a minute, or more where there are too many nodes."""
    return MINUTE_S * max(1, int(np.ceil(streams.end_s / MINUTE_S * streams.nodes / _MOST_NUMBERS)))


def kept_events(events: int, cut: Cut) -> Numbers:
    """Which events are kept whole."""
    chosen: Numbers = (np.arange(events, dtype=np.uint64) * _HASH) % (1 << 32) < (1 << 32) // cut.one_in
    chosen[list(cut.events)] = True
    return chosen


def keyframes(streams: Streams, moments: Numbers) -> tuple[Numbers, Numbers]:
    """What lies at every node and what it has spent, after all that happened up to each moment: [moment, node]."""
    shape = (len(moments), streams.nodes)
    level, spent = np.zeros(shape), np.zeros(shape)
    for time_s, node, held, paid in streams.changes():
        known = node >= 0
        place = np.searchsorted(moments, time_s[known]) * streams.nodes + node[known]
        size = (len(moments) + 1) * streams.nodes  # behind the last moment: never
        for sums, change in ((level, held), (spent, paid)):
            if change is not None:
                told = np.bincount(place, np.broadcast_to(change, known.shape)[known], size)[: sums.size]
                sums += told.reshape(shape)
    return np.cumsum(level, axis=0).astype(np.int64), np.cumsum(spent, axis=0)


def _steps(values: Numbers) -> Numbers:
    """What each node's value changes from one moment to the next, the sign in the lowest bit."""
    return zigzag(np.diff(values, axis=0, prepend=0).ravel())


def _sums(streams: Streams) -> dict[str, Numbers]:
    """How often each link was used in each minute: minutes one after the other, links ascending."""
    minute = (np.ceil(streams.row_s / MINUTE_S) - 1).clip(0).astype(np.int64)
    links = int(streams.link.max(initial=0)) + 1
    found, count = np.unique(minute * links + streams.link, return_counts=True)
    minutes = int(np.ceil(streams.end_s / MINUTE_S))
    return {
        "sumLinks": np.bincount(found // links, minlength=minutes),
        "sumLink": found % links,
        "sumCount": count,
    }


def in_words(head: dict[str, Any]) -> str:
    """What a thinned page leaves out, for the terminal."""
    cut = head["thin"]
    named = f" and of {', '.join(map(str, cut['events']))}" if cut["events"] else ""
    return (
        f"{cut['kept']:,} of {cut['rows']:,} transfers are in the page: all from {cut['begin_s']:.0f} s to"
        f" {cut['end_s']:.0f} s (--from, --to), and the whole life of 1 event in {cut['one_in']}{named} (--events); the"
        " others are summed by the minute. Counts, queues and energy are exact"
    )
