"""A run of an opportunistic network for people: the metrics that are looked for first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from serai.log.summary import DELAY, DELIVERED, Line, counted, counted_losses
from serai.opportunistic.engine.state import DROPS
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.metrics import OpportunisticMetrics

HEADLINES: Final = ("delivery_ratio", "mean_delay_s", "copies_per_bundle", "bytes_per_delivery")

_WASTED: Final = ("duplicate", "refused", "late", "broken")
_BEFORE: Final = (
    DELIVERED,
    DELAY,
    Line("hops", "{mean_hops}", "from the source to a subscriber"),
    Line("copies", "{copies_per_bundle}", "per bundle; {transfers_relayed} transfers over {contacts} contacts"),
)
_AFTER: Final = (
    Line("on air", "{bytes_per_delivery} B", "per delivery; lists are {control_share} of all bytes"),
    Line("store", "{store_mean_bytes} B", "on average, {store_peak_bytes} at most"),
    Line("fairness", "{fairness_subscribers}", "over subscribers, {fairness_channels} over channels (Jain)"),
    Line("", "{worst_tenth_ratio}", "delivered to the worst-served tenth of subscribers"),
)


def summary_opportunistic(run: OpportunisticRun, metrics: OpportunisticMetrics) -> Sequence[Line]:
    """A run of an opportunistic network for the terminal."""
    wasted = counted("wasted", {fate: getattr(metrics, f"transfers_{fate}") for fate in _WASTED}, "transfers: ")
    dropped = counted("dropped", {reason: getattr(metrics, f"drops_{reason}") for reason in DROPS})
    return [*_BEFORE, wasted, *_AFTER, dropped, *counted_losses(metrics)]
