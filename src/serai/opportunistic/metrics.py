"""Every metric of a run of an opportunistic network, defined once; and The ONE's names for those that it has."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.log.metrics import Definition, jain
from serai.opportunistic.engine.state import DROPS, RELAYED, TRANSFERS
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.world import within_ranges
from serai.world.grid import Floats, Numbers

Counts = NDArray[np.int64]

_WORST: Final = 0.1  # the share of subscribers that are called the worst served

DEFINITIONS: Final[dict[str, Definition]] = {
    "protocol": Definition("", "The protocol's name."),
    "seed": Definition("", "The seed of the run."),
    "nodes": Definition("", "Nodes of the network."),
    "contacts": Definition("", "Contacts that began within the run and lasted."),
    "bundles": Definition("", "Bundles published."),
    "wanted_pairs": Definition("", "Pairs of a bundle and a node that has subscribed to it while it lives."),
    "delivered_pairs": Definition("", "Wanted pairs whose node got the bundle while it lived and was wanted."),
    "delivery_ratio": Definition("fraction", "Delivered pairs, of all wanted ones."),
    "mean_delay_s": Definition("s", "Mean time from creation to delivery, of the delivered pairs."),
    "median_delay_s": Definition("s", "Median delay of the delivered pairs."),
    "p95_delay_s": Definition("s", "Delay that 95 % of the delivered pairs stay within."),
    "mean_hops": Definition("", "Mean number of transfers from the source to the subscriber."),
    "copies_per_bundle": Definition("", "Copies that arrived somewhere, per bundle."),
    "transmissions_per_delivery": Definition("", "Transfers begun, per delivered pair."),
    "payload_bytes": Definition("byte", "Bytes of bundles on the air, whether they arrived or not."),
    "control_bytes": Definition("byte", "Bytes of lists on the air."),
    "wasted_bytes": Definition("byte", "Payload in transfers that broke, came twice or late, or were refused."),
    "control_share": Definition("fraction", "Bytes of lists, of all bytes on the air."),
    "bytes_per_delivery": Definition("byte", "All bytes on the air, per delivered pair."),
    "lists": Definition("", "Lists that arrived."),
    "transfers_relayed": Definition("", "Transfers that gave a node a bundle which it had not seen."),
    "transfers_duplicate": Definition("", "Transfers of a bundle that the receiver had seen."),
    "transfers_refused": Definition("", "Transfers of a bundle for which the receiver had no room."),
    "transfers_late": Definition("", "Transfers that ended when the bundle had expired."),
    "transfers_broken": Definition("", "Transfers that the end of the contact broke."),
    "transfers_unfinished": Definition("", "Transfers under way when the run ended."),
    "drops_expired": Definition("", "Copies that left a store because the bundle had expired."),
    "drops_evicted": Definition("", "Copies that left a full store for others."),
    "drops_full": Definition("", "Bundles born into a store without room."),
    "store_mean_bytes": Definition("byte", "What a store held, over nodes and time."),
    "store_peak_bytes": Definition("byte", "The most that any store held."),
    "fairness_channels": Definition("", "Jain's index of the delivery ratios of channels."),
    "fairness_subscribers": Definition("", "Jain's index of the delivery ratios of subscribers."),
    "worst_tenth_ratio": Definition("fraction", "Mean delivery ratio of the worst served tenth of the subscribers."),
    "starved_subscribers": Definition("fraction", "Subscribers that got nothing of what they wanted, of all."),
}
"""Every metric by name; `docs/metrics.md` says more."""


@dataclass(frozen=True, repr=False)
class OpportunisticMetrics:
    """All metrics of one run; `DEFINITIONS` says what each of them is."""

    protocol: str
    seed: int
    nodes: int
    contacts: int
    bundles: int
    wanted_pairs: int
    delivered_pairs: int
    delivery_ratio: float
    mean_delay_s: float
    median_delay_s: float
    p95_delay_s: float
    mean_hops: float
    copies_per_bundle: float
    transmissions_per_delivery: float
    payload_bytes: int
    control_bytes: int
    wasted_bytes: int
    control_share: float
    bytes_per_delivery: float
    lists: int
    transfers_relayed: int
    transfers_duplicate: int
    transfers_refused: int
    transfers_late: int
    transfers_broken: int
    transfers_unfinished: int
    drops_expired: int
    drops_evicted: int
    drops_full: int
    store_mean_bytes: float
    store_peak_bytes: int
    fairness_channels: float
    fairness_subscribers: float
    worst_tenth_ratio: float
    starved_subscribers: float

    def as_dict(self) -> dict[str, str | int | float | None]:
        """Every metric by name, ready for JSON: None where there is no finite number."""
        return {metric.name: _finite(getattr(self, metric.name)) for metric in fields(self)}

    def __repr__(self) -> str:
        return (
            f"OpportunisticMetrics({self.protocol}, seed {self.seed}: {self.delivery_ratio:.1%} delivered,"
            f" delay {self.mean_delay_s:.0f} s (median {self.median_delay_s:.0f} s),"
            f" {self.copies_per_bundle:.1f} copies per bundle)"
        )


def _finite(value: str | int | float) -> str | int | float | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def measure_opportunistic(run: OpportunisticRun) -> OpportunisticMetrics:
    """Every metric of a run."""
    outcome, wanted, delivered = run.outcome, wanted_pairs(run), delivered_pairs(run)
    on_air = outcome.payload_bytes + outcome.control_bytes
    begun = sum(outcome.transfers.values())
    run_s = run.scenario.duration_s
    return OpportunisticMetrics(
        protocol=run.protocol,
        seed=run.seed,
        nodes=run.world.nodes,
        contacts=outcome.contacts,
        bundles=len(run.world.bundles.source),
        wanted_pairs=len(wanted.bundle),
        delivered_pairs=len(delivered.bundle),
        delivery_ratio=_ratio(len(delivered.bundle), len(wanted.bundle)),
        mean_hops=float(delivered.hops.mean()) if len(delivered.hops) else math.nan,
        copies_per_bundle=_ratio(int(outcome.relays.sum()), len(outcome.relays)),
        transmissions_per_delivery=_ratio(begun, len(delivered.bundle)),
        payload_bytes=outcome.payload_bytes,
        control_bytes=outcome.control_bytes,
        wasted_bytes=outcome.wasted_bytes,
        control_share=_ratio(outcome.control_bytes, on_air),
        bytes_per_delivery=_ratio(on_air, len(delivered.bundle)),
        lists=outcome.lists,
        store_mean_bytes=_ratio(float(outcome.stored_byte_s.sum()), run.world.nodes * run_s),
        store_peak_bytes=int(outcome.peak_bytes.max(initial=0)),
        **_delays(delivered.delay_s),
        **_fairness(run, wanted, delivered),
        **{f"transfers_{name}": outcome.transfers[name] for name in TRANSFERS},
        **{f"drops_{name}": outcome.drops[name] for name in DROPS},
    )


def _ratio(part: float, whole: float) -> float:
    """part / whole, NaN of nothing."""
    return float(part) / float(whole) if whole else math.nan


# --- Who wanted what, who got what


class Pairs(NamedTuple):
    """Pairs of a bundle and a node; of delivered ones also when and over how many hops."""

    bundle: Numbers
    node: Numbers
    delay_s: Floats = np.empty(0)
    hops: Numbers = np.empty(0, np.int32)


def wanted_pairs(run: OpportunisticRun) -> Pairs:
    """Every bundle with every node, but its source, that has subscribed to its channel at some time of its life.

    With ranges a channel is a part of what a node has subscribed to: only what lies within its ranges counts.
    """
    bundles, subscriptions = run.world.bundles, run.world.subscriptions
    by_channel = np.argsort(bundles.channel, kind="stable")
    start = np.searchsorted(bundles.channel[by_channel], subscriptions.channel, "left")
    end = np.searchsorted(bundles.channel[by_channel], subscriptions.channel, "right")
    row = np.repeat(np.arange(len(start)), end - start)
    within = np.arange(len(row)) - np.repeat(np.cumsum(end - start) - (end - start), end - start)
    bundle, node = by_channel[start[row] + within], subscriptions.node[row]
    born_s, over_s = bundles.created_s[bundle], (bundles.created_s + bundles.lifetime_s)[bundle]
    since_s = np.maximum(born_s, subscriptions.from_s[row])
    meet = (since_s < np.minimum(over_s, subscriptions.to_s[row])) & (since_s <= run.scenario.duration_s)
    meet &= bundles.source[bundle] != node
    meet[meet] &= within_ranges(run.published, run.wanted, bundle[meet], node[meet])
    pair = np.unique(bundle[meet].astype(np.int64) * run.world.nodes + node[meet])
    return Pairs((pair // run.world.nodes).astype(np.int32), (pair % run.world.nodes).astype(np.int32))


def delivered_pairs(run: OpportunisticRun) -> Pairs:
    """Every delivery, in the order in which they happened; with ranges only what was wanted."""
    outcome = run.outcome
    right = within_ranges(run.published, run.wanted, outcome.delivery_bundle, outcome.delivery_node)
    bundle = outcome.delivery_bundle[right]
    delay_s = outcome.delivery_s[right] - run.world.bundles.created_s[bundle]
    return Pairs(bundle, outcome.delivery_node[right], delay_s, outcome.delivery_hops[right])


def _delays(delays_s: Floats) -> dict[str, Any]:
    if not len(delays_s):
        return dict.fromkeys(("mean_delay_s", "median_delay_s", "p95_delay_s"), math.nan)
    median, p95 = np.quantile(delays_s, (0.5, 0.95), method="linear")
    return {"mean_delay_s": float(delays_s.mean()), "median_delay_s": float(median), "p95_delay_s": float(p95)}


def _fairness(run: OpportunisticRun, wanted: Pairs, delivered: Pairs) -> dict[str, Any]:
    """How evenly channels and subscribers are served."""
    channel = run.world.bundles.channel
    channels = ratios(channel[wanted.bundle], channel[delivered.bundle])
    subscribers = ratios(wanted.node, delivered.node)
    worst = np.sort(subscribers)[: max(math.ceil(_WORST * len(subscribers)), 1)]
    return {
        "fairness_channels": jain(channels),
        "fairness_subscribers": jain(subscribers),
        "worst_tenth_ratio": float(worst.mean()) if len(worst) else math.nan,
        "starved_subscribers": _ratio(int((subscribers == 0).sum()), len(subscribers)),
    }


def ratios(wanted: Numbers, delivered: Numbers) -> Floats:
    """The delivery ratio of each group that wanted something; a group is a number."""
    asked = np.bincount(wanted)
    got = np.bincount(delivered, minlength=len(asked))
    shares: Floats = got[asked > 0] / asked[asked > 0]
    return shares


def delays_opportunistic(run: OpportunisticRun) -> tuple[Floats, int]:
    """The delay of each delivered pair, and how many pairs were wanted."""
    return delivered_pairs(run).delay_s, len(wanted_pairs(run).bundle)


def delay_cdf(run: OpportunisticRun) -> tuple[Floats, Floats]:
    """The delays of delivered pairs, ascending, and the fraction of all *wanted* pairs served within each.

    The undelivered count: the curve ends at the delivery ratio, not at 1.
    """
    delays_s, wanted = delays_opportunistic(run)
    return np.sort(delays_s), np.arange(1, len(delays_s) + 1) / max(wanted, 1)


# --- In The ONE's words


def message_stats(run: OpportunisticRun) -> dict[str, float]:
    """The numbers of The ONE's MessageStatsReport, by its names and in its order.

    A message that several nodes want counts as delivered to each; `delivery_prob` is the delivery ratio. Medians are
    The ONE's: the upper of the two in the middle. Times in buffers need a full log.
    """
    outcome, delivered = run.outcome, delivered_pairs(run)
    got, transfers = len(delivered.bundle), outcome.transfers
    buffered_s = _times_in_store(run)
    return {
        "sim_time": float(run.scenario.duration_s),
        "created": len(run.world.bundles.source),
        "started": sum(transfers.values()),
        "relayed": transfers["relayed"],
        "aborted": transfers["broken"],
        "dropped": sum(outcome.drops.values()),
        "removed": 0,
        "delivered": got,
        "delivery_prob": _ratio(got, len(wanted_pairs(run).bundle)),
        "response_prob": 0.0,
        "overhead_ratio": _ratio(transfers["relayed"] - got, got),
        "latency_avg": _mean(delivered.delay_s),
        "latency_med": _upper_median(delivered.delay_s),
        "hopcount_avg": _mean(delivered.hops),
        "hopcount_med": _upper_median(delivered.hops),
        "buffertime_avg": _mean(buffered_s),
        "buffertime_med": _upper_median(buffered_s),
        "rtt_avg": math.nan,
        "rtt_med": math.nan,
    }


def as_one_report(name: str, stats: dict[str, float]) -> str:
    """The text of The ONE's report."""
    whole = ("created", "started", "relayed", "aborted", "dropped", "removed", "delivered", "hopcount_med")
    lines = [
        f"{key}: {'NaN' if math.isnan(value) else f'{value:.0f}' if key in whole else f'{value:.4f}'}"
        for key, value in stats.items()
    ]
    return "\n".join([f"Message stats for scenario {name}", *lines]) + "\n"


def write_message_stats(run: OpportunisticRun, file: Path) -> None:
    """Write The ONE's report on messages to a file, whole or not at all."""
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        aside.write_text(as_one_report(run.scenario.name, message_stats(run)), encoding="utf-8")
        aside.replace(file)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise BadInput(f"{file}: {error.strerror}; choose another place for the report") from error


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else math.nan


def _upper_median(values: NDArray[Any]) -> float:
    return float(np.sort(values)[len(values) // 2]) if len(values) else math.nan


def _times_in_store(run: OpportunisticRun) -> Floats:
    """How long each copy that was dropped had been in its store; of nothing without a full log."""
    transfers, drops = run.outcome.transfer_log, run.outcome.drop_log
    came = transfers[transfers.outcome == RELAYED]
    bundles = run.world.bundles
    count, nodes = len(bundles.source), run.world.nodes
    since_s = np.full(count * nodes, math.nan)
    since_s[np.arange(count) * nodes + bundles.source] = bundles.created_s
    since_s[came.bundle.astype(np.int64) * nodes + came.receiver] = came.end_s
    held: Floats = drops.time_s - since_s[drops.bundle.astype(np.int64) * nodes + drops.node]
    left: Floats = held[drops.reason < DROPS.index("full")]
    return left
