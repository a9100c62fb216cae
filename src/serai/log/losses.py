"""Why what was wanted never came: the words that all kinds of network share; each finds the reasons in its own log.

A pair of something published and a subscriber that wants it is lost when its time is over and it has not come; a pair
whose time is not over when the run ends only waits. The reasons, in the order in which they are asked for:

    sent        something was sent towards the subscriber, and the fate of the last one counts: `stranded` (it never got
                there), `expired` (its time ran out on the way), `full` (no room for it), `dead` (with its sensor)
    never_met   while it was worth having the subscriber never met anybody who had it
    full, dead  they met, but there it had met a full queue or store, or gone with a sensor
    not_sent    they met, and nothing was sent: others came first

What "towards the subscriber" and "met" mean in a kind of network stands in its `losses.py`, and in docs/metrics.md.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

LOST: Final = ("never_met", "not_sent", "stranded", "expired", "full", "dead")
NEVER_MET, NOT_SENT, STRANDED, EXPIRED, FULL, DEAD = range(len(LOST))

Numbers = NDArray[Any]


class Losses(NamedTuple):
    """Every lost pair, by event and subscriber: why, and at which node and when that was decided."""

    event: Numbers
    subscriber: Numbers
    why: Numbers  # place in `LOST`
    node: Numbers
    time_s: Numbers


def loss_metrics(found: Losses | None) -> dict[str, Any]:
    """How many pairs were lost for each reason; NaN where nobody knows."""
    counts = [math.nan] * len(LOST) if found is None else np.bincount(found.why, minlength=len(LOST)).tolist()
    return {f"lost_{name}": count for name, count in zip(LOST, counts, strict=True)}
