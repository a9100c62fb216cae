"""Which events are new, and which are missing: the sequence numbers of each node and epoch as a bitmap.

Of 9 events in 10 that arrive, a bitmap takes some 0.2 bytes an event. A gap in it is an event that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyroaring import BitMap64

Key = tuple[str, str]  # node and epoch


class Gap(NamedTuple):
    """Events that are missing: first and last."""

    first: int
    last: int


@dataclass
class Numbers:
    """The sequence numbers that came, of each node and epoch; `folder` holds what each batch changed."""

    folder: Path
    came: dict[Key, BitMap64] = field(default_factory=dict)

    @classmethod
    def before(cls, folder: Path, batch: int) -> Numbers:
        """What came in all batches before this one."""
        numbers = cls(folder)
        for path in sorted(folder.glob("*.parquet")):
            if int(path.stem) < batch:
                for row in pq.read_table(path).to_pylist():  # a later one replaces an earlier one
                    numbers.came[row["node"], row["epoch"]] = BitMap64.deserialize(row["numbers"])
        return numbers

    def fresh(self, key: Key, seq: NDArray[np.int64], more: dict[Key, BitMap64]) -> NDArray[np.bool_]:
        """Which of a node's events did not come before, nor earlier in this array; they are put into `more`."""
        mine = more.setdefault(key, BitMap64())
        before = self.came.get(key)
        first = np.zeros(len(seq), np.bool_)
        first[np.unique(seq, return_index=True)[1]] = True
        numbers = BitMap64(seq[first])
        repeated = numbers & (mine if before is None else mine | before)
        if repeated:
            first &= ~np.isin(seq, np.array(list(repeated), np.int64))
        more[key] = mine | numbers
        return first

    def write(self, batch: int, more: dict[Key, BitMap64]) -> None:
        """Keep what a batch has added, whole or not at all; made anew it is the same."""
        self.folder.mkdir(parents=True, exist_ok=True)
        after = {key: (self.came[key] | new) if key in self.came else new for key, new in sorted(more.items())}
        table = pa.table(
            {
                "node": pa.array([node for node, _ in after], pa.string()),
                "epoch": pa.array([epoch for _, epoch in after], pa.string()),
                "numbers": pa.array([numbers.serialize() for numbers in after.values()], pa.binary()),
            }
        )
        aside = self.folder / f".{batch:08}"
        pq.write_table(table, aside)
        aside.replace(self.folder / f"{batch:08}.parquet")

    def add(self, more: dict[Key, BitMap64]) -> None:
        """Remember what a batch has added, which is done."""
        for key, new in more.items():
            self.came[key] = self.came[key] | new if key in self.came else new


def gaps(numbers: BitMap64) -> Iterator[Gap]:
    """The events between the first and the last that came, which are missing; nodes count from 0 or from 1."""
    if not numbers:
        return
    expected = min(1, numbers.min())
    absent = BitMap64()
    absent.add_range(expected, numbers.max() + 1)
    absent -= numbers
    first = last = -2
    for number in absent:
        if number != last + 1:
            if first >= 0:
                yield Gap(first, last)
            first = number
        last = number
    if first >= 0:
        yield Gap(first, last)


def missing_count(numbers: BitMap64) -> int:
    """How many events are missing between the first and the last."""
    return int(numbers.max() - min(1, numbers.min()) + 1 - len(numbers)) if numbers else 0
