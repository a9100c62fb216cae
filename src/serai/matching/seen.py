"""Which events are new? Networks deliver repeats, and files may bring old events late."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass
class SeenIds:
    """The ids of events that came before, so far back as events can still come: a few sorted runs, newest last.

    Runs of like size are merged, so that a look-up searches few of them and an id is moved only a few times.
    """

    runs: list[tuple[NDArray[Any], float]] = field(default_factory=list)  # ids ascending, latest time among them

    def fresh(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of the ids were neither seen before nor stand earlier in the same array."""
        fresh = np.zeros(len(ids), np.bool_)
        _, first = np.unique(ids, return_index=True)
        fresh[first] = True
        for run, _ in self.runs:
            place = np.minimum(np.searchsorted(run, ids), len(run) - 1)
            fresh &= run[place] != ids
        return fresh

    def add(self, ids: NDArray[Any], latest: float) -> None:
        """Remember ids, of events up to the time `latest`."""
        if len(ids) == 0:
            return
        self.runs.append((np.sort(ids), latest))
        while len(self.runs) > 1 and len(self.runs[-2][0]) <= 2 * len(self.runs[-1][0]):
            (newer, later), (older, earlier) = self.runs.pop(), self.runs.pop()
            self.runs.append((np.sort(np.concatenate([older, newer]), kind="stable"), max(later, earlier)))

    def forget_before(self, time: float) -> None:
        """Forget runs whose events are all so old that they would now be late."""
        self.runs = [(run, latest) for run, latest in self.runs if latest >= time]


def as_ids(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Ids as an array that can be sorted: numbers as they are, all else as texts."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return np.array([*column.cast(pa.string()).to_pylist(), None], dtype=np.object_)[:-1]
