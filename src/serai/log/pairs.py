"""What became of every wanted pair of an event and a subscriber, and what a plan counts of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class RunPairs(NamedTuple):
    """The pairs of a run. An event may be received by somebody who did not ask for it: that is no delivered pair."""

    born_s: Floats
    """When each event was published."""
    wanted: Indices
    """How many subscribers want each event."""
    delivered: Indices
    """The event of each delivered pair."""
    delay_s: Floats
    """From its birth, of each delivered pair."""
    received: Indices
    """The event of each reception, wanted or not."""
    received_delay_s: Floats
    lifetime_s: Floats
    """Of each event."""
    duration_s: float


@dataclass(frozen=True)
class Count:
    """Something to be counted in a run: how many there are, and how many of them went well."""

    what: str
    within_s: float | None = None

    def columns(self) -> tuple[str, str]:
        """The names of the two numbers in a table of runs."""
        name = self.what if self.within_s is None else f"{self.what}_{self.within_s:.17g}s"
        return f"{name}_met", f"{name}_of"


COUNTS: Final = ("on_time", "reached")
"""What is counted within a time, besides `delivered`."""


def count(pairs: RunPairs, what: Count) -> tuple[int, int]:
    """How many went well, and of how many.

    Only events with a chance count: those that were born so long before the end that their time was not cut short.
    """
    limit_s = pairs.lifetime_s if what.within_s is None else np.full(len(pairs.born_s), what.within_s)
    fair = pairs.born_s + limit_s <= pairs.duration_s
    if what.what == "reached":
        in_time = pairs.received[pairs.received_delay_s <= limit_s[pairs.received]]
        return int(np.count_nonzero(fair[np.unique(in_time)])), int(np.count_nonzero(fair))
    in_time = pairs.delivered[pairs.delay_s <= limit_s[pairs.delivered]]
    return int(np.count_nonzero(fair[in_time])), int(pairs.wanted[fair].sum())
