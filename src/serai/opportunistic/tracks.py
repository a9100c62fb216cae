"""Where nodes were in the time of a run, as the log tells it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serai.world.contacts import Journeys
from serai.world.mobility import Tracks


def tracks_in_run(journeys: Journeys, duration_s: float, nodes: int) -> Tracks | None:
    """The turning points that matter from 0 to `duration_s`; a NaN point says that from here on nobody knows.

    A node that stands still before its first point gets a point at 0. None: nobody was anywhere.
    """
    time_s, x_m, y_m = journeys.tracks[1:]
    node = np.repeat(np.arange(len(journeys.tracks.start) - 1), np.diff(journeys.tracks.start))
    change = node[1:] != node[:-1]
    first, last = np.append(True, change)[: len(node)], np.append(change, True)[: len(node)]
    before_s = np.where(first, -np.inf, np.append(-np.inf, time_s[:-1])[: len(node)])
    after_s = np.where(last, np.inf, np.append(time_s[1:], np.inf)[: len(node)])
    kept = (after_s > 0) & (before_s < duration_s)
    stood = kept & first & (time_s > 0) & journeys.stays
    lost = kept & np.where(last, not journeys.stays, after_s - time_s > journeys.gap_s)
    row, extra = _side_by_side(kept, stood, lost)
    if not len(row):
        return None
    start = np.searchsorted(node[row], np.arange(nodes + 1)).astype(np.int64)
    x_m, y_m = (np.where(extra > 0, np.nan, column[row]) for column in (x_m, y_m))
    return Tracks(start, np.where(extra < 0, 0.0, time_s[row]), x_m, y_m)


def _side_by_side(*masks: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of three masks in one order, and whether each stands for the row itself (0), before (-1) or after it."""
    kept, before, after = (np.flatnonzero(mask) for mask in masks)
    row = np.concatenate([before, kept, after])
    extra = np.repeat([-1, 0, 1], [len(before), len(kept), len(after)])
    order = np.lexsort((extra, row))
    return row[order], extra[order]
