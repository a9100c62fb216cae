"""What every page of a replay is made of, whatever the kind of network."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


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


def links_of(sender: Numbers, receiver: Numbers, nodes: int) -> Links:
    """One number for sender and receiver; links are numbered by their ends."""
    found, of_row = np.unique(sender.astype(np.int64) * nodes + receiver, return_inverse=True)
    return Links(found // nodes, found % nodes, of_row)


def in_bits(wanted: NDArray[np.bool_]) -> Numbers:
    """Who wants each event, [event, node], as a row of bytes for each event, the first node in the lowest bit."""
    packed: Numbers = np.packbits(wanted, axis=1, bitorder="little").ravel()
    return packed


def per_second(times: Numbers, seconds: int) -> Numbers:
    """How many rows there are in each second."""
    counts: Numbers = np.bincount(times.astype(np.int64), minlength=seconds)[:seconds]
    return counts
