"""What every page of a replay is made of, whatever the kind of network."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from serai.log.losses import Losses

Numbers = NDArray[Any]

_MOST_DECIMALS: Final = 99  # that browsers write


class Sheet(NamedTuple):
    """A run as its page gets it: facts, columns, and which columns are written as differences."""

    head: dict[str, Any]
    columns: dict[str, Numbers]
    rising: tuple[str, ...]


class Links(NamedTuple):
    """Pairs of sender and receiver, each once, and which of them each transfer went over."""

    source: Numbers
    target: Numbers
    of_row: Numbers


class Kept(NamedTuple):
    """Which transfers, drops and events of a run a page gets: masks, or slices of everything."""

    rows: Any = slice(None)
    drops: Any = slice(None)
    events: Any = slice(None)


EVERYTHING = Kept()


class Change(NamedTuple):
    """What changes at nodes (-1: at none) from a time on: what they hold, what they have spent; None: nothing."""

    time_s: Numbers
    node: Numbers
    held: Any
    spent: Any


class Streams(NamedTuple):
    """A run's whole log, as whoever thins it needs it."""

    nodes: int
    events: int
    end_s: float
    row_s: Numbers
    link: Numbers
    event: Numbers
    drop_s: Numbers
    drop_event: Numbers
    changes: Callable[[], list[Change]]


def links_of(sender: Numbers, receiver: Numbers, nodes: int) -> Links:
    """One number for sender and receiver; links are numbered by their ends."""
    told = pa.array(sender.astype(np.int64) * nodes + receiver).dictionary_encode()  # links are few: no sorting of rows
    found, of_row = told.dictionary.to_numpy(), told.indices.to_numpy()
    order = np.argsort(found)
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order))
    return Links(found[order] // nodes, found[order] % nodes, place[of_row])


def of_losses(found: Losses | None, kept: Kept) -> dict[str, Numbers]:
    """Why pairs were lost, of the events that are kept; every subscriber a number, times in milliseconds."""
    assert found is not None  # a full log tells
    chosen = slice(None) if kept is EVERYTHING else kept.events[found.event]
    return {
        "lostEvent": found.event[chosen],
        "lostNode": found.subscriber[chosen],
        "lostWhy": found.why[chosen],
        "lostAt": found.node[chosen],
        "lostMs": np.rint(found.time_s[chosen] * 1000).astype(np.int64),
    }


def in_bits(wanted: NDArray[np.bool_]) -> Numbers:
    """Who wants each event, [event, node], as a row of bytes for each event, the first node in the lowest bit."""
    packed: Numbers = np.packbits(wanted, axis=1, bitorder="little").ravel()
    return packed


def in_steps(values: NDArray[np.float64]) -> tuple[Numbers, list[list[int]]]:
    """Values, [event, attribute], as whole numbers of steps, and for each attribute the first of them and its decimals.

    A step is a decimal of which an attribute's span has 50 to 500; whole numbers have no decimals. Where values are
    missing (NaN) a third number says which one stands for them.
    """
    told, steps = np.zeros(values.shape, np.int64), []
    for place, every in enumerate(values.T):
        given = ~np.isnan(every)
        column = every[given]
        span = (float(np.ptp(column)) or float(np.abs(column).max())) if len(column) else 0.0
        decimals = min(math.floor(math.log10(500) - math.log10(span)), _MOST_DECIMALS) if span else 0
        whole = decimals > 0 and bool((column == np.rint(column)).all())
        decimals = 0 if whole else decimals
        rounded = np.rint(column * 10.0**decimals)
        first = int(rounded.min()) if len(column) else 0
        told[given, place] = rounded - first
        steps.append([first, decimals])
        if not given.all():
            missing = int(told[:, place].max()) + 1
            told[~given, place] = missing
            steps[-1].append(missing)
    return told.ravel(), steps


def per_second(times: Numbers, seconds: int) -> Numbers:
    """How many rows there are in each second."""
    counts: Numbers = np.bincount(times.astype(np.int64), minlength=seconds)[:seconds]
    return counts
