"""When sensors lived: from the start to the second of a death, and again from the second after they woke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from serai.field.log import Ledger, Naps

NEVER = (1 << 31) - 1
Numbers = NDArray[Any]


def dead_times(ledger: Ledger) -> Naps:
    """From which second to which each sensor was dead, by sensor and time; to `NEVER`: it woke no more."""
    from serai.field.log import Naps

    dead = np.flatnonzero(ledger.died >= 0).astype(np.int32)
    for_ever = Naps(dead, ledger.died[dead].astype(np.int32), np.full(len(dead), NEVER, np.int32))
    if ledger.naps is None:
        return for_ever
    node, since_s, until_s = (
        np.concatenate(columns).astype(np.int32) for columns in zip(ledger.naps, for_ever, strict=True)
    )
    order = np.lexsort((since_s, node))
    return Naps(node[order], since_s[order], until_s[order])


def lived_at(ledger: Ledger, sensor: Numbers, second: Numbers) -> NDArray[np.bool_]:
    """Whether each sensor lived in a second: it dies with the end of one, and wakes with the end of one."""
    naps = dead_times(ledger)
    if not len(naps.node):
        return np.ones(len(sensor), np.bool_)
    span = np.int64(NEVER) + 1
    begin = naps.node.astype(np.int64) * span + naps.since_s
    last = np.searchsorted(begin, np.asarray(sensor, np.int64) * span + second, side="left") - 1
    asleep: NDArray[np.bool_] = (last >= 0) & (naps.node[last] == sensor) & (second <= naps.until_s[last])
    return ~asleep


def lived_s(ledger: Ledger, seconds: int) -> Numbers:
    """How many of a run's seconds each sensor lived."""
    naps = dead_times(ledger)
    asleep = np.minimum(naps.until_s, seconds - 1) - naps.since_s
    lived: Numbers = seconds - np.bincount(naps.node, asleep, len(ledger.died)).astype(np.int64)
    return lived


def first_death_s(ledger: Ledger) -> int | None:
    """The second of the first death, whether or not that sensor woke again."""
    since_s = dead_times(ledger).since_s
    return int(since_s.min()) if len(since_s) else None


def cut(ledger: Ledger, sensor: Numbers, start_s: Numbers, end_s: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The pieces of spans of time (the end excluded) in which their sensors lived: whose each is, begin and end."""
    naps = dead_times(ledger)
    dead_since, dead_until = np.append(naps.since_s, NEVER), np.append(NEVER, naps.until_s).astype(np.int64)
    first, last = (np.searchsorted(naps.node, sensor, side) for side in ("left", "right"))
    row = np.repeat(np.arange(len(sensor)), last - first + 1)  # a piece before each nap, and one after the last
    nap = np.arange(len(row)) - np.searchsorted(row, row) + first[row]
    begins = np.where(nap > first[row], np.maximum(start_s[row], dead_until[nap] + 1), start_s[row])
    ends = np.where(nap < last[row], np.minimum(end_s[row], dead_since[nap] + np.int64(1)), end_s[row])
    kept = begins < ends
    return row[kept], begins[kept], ends[kept]
