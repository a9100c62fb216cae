"""Every metric of a run of an opportunistic network, defined once; and The ONE's names for those that it has."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.log.losses import loss_metrics
from serai.log.metrics import TimedMetrics, delay_metrics, jain, mean, metric, ratio
from serai.log.pairs import RunPairs
from serai.opportunistic.engine.state import DROPS, RELAYED, TRANSFERS
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.losses import losses_of
from serai.opportunistic.pairs import Pairs, delivered_pairs, wanted_pairs
from serai.world.grid import Floats, Numbers

Counts = NDArray[np.int64]

_WORST: Final = 0.1  # the share of subscribers that are called the worst served


@dataclass(frozen=True, kw_only=True, repr=False)
class OpportunisticMetrics(TimedMetrics):
    """All metrics of one run of an opportunistic network; `docs/opportunistic/results.md` says more."""

    nodes: int = metric(says="Nodes in the network.")
    contacts: int = metric(says="Contacts that began within the run, except those of zero length.")
    bundles: int = metric(says="Bundles published.")
    mean_hops: float = metric(better=-1, says="Mean number of transfers from the source to the subscriber.")
    copies_per_bundle: float = metric(better=-1, says="Copies that arrived somewhere, per bundle.", chapter="cost")
    transmissions_per_delivery: float = metric(better=-1, says="Transfers begun, per delivered pair.", chapter="cost")
    bytes_per_delivery: float = metric(
        "byte", better=-1, says="All bytes on the air, per delivered pair.", label="on air per delivery", chapter="cost"
    )
    payload_bytes: int = metric(
        "byte", better=-1, says="Bytes of bundles on the air, whether they arrived or not.", chapter="cost"
    )
    control_bytes: int = metric("byte", better=-1, says="Bytes of lists on the air.", chapter="cost")
    wasted_bytes: int = metric(
        "byte",
        better=-1,
        says="Payload bytes of transfers that were broken off or refused, or that came twice or too late.",
        chapter="cost",
    )
    control_share: float = metric("fraction", better=-1, says="Share of lists in all bytes on the air.")
    lists: int = metric(says="Lists that arrived.")
    transfers_relayed: int = metric(says="Transfers that gave a node a bundle it had not seen before.")
    transfers_duplicate: int = metric(better=-1, says="Transfers of a bundle that the receiver had already seen.")
    transfers_refused: int = metric(better=-1, says="Transfers of a bundle for which the receiver had no room.")
    transfers_late: int = metric(better=-1, says="Transfers that ended after the bundle had expired.")
    transfers_broken: int = metric(better=-1, says="Transfers broken off by the end of the contact.")
    transfers_unfinished: int = metric(says="Transfers under way when the run ended.")
    drops_expired: int = metric(
        better=-1, says="Copies that left a store because the bundle had expired.", chapter="drops"
    )
    drops_evicted: int = metric(
        better=-1, says="Copies that left a full store to make room for others.", chapter="drops"
    )
    drops_full: int = metric(
        better=-1, says="Bundles dropped at birth because their source's store was full.", chapter="drops"
    )
    store_mean_bytes: float = metric(
        "byte", better=-1, says="Mean number of bytes in a store, over all nodes and the whole run."
    )
    store_peak_bytes: int = metric("byte", better=-1, says="Largest number of bytes that any store held.")
    fairness_channels: float = metric(
        better=+1,
        says="Jain's index of the delivery ratios of channels.",
        label="fairness over channels",
        chapter="fairness",
    )
    fairness_subscribers: float = metric(
        better=+1,
        says="Jain's index of the delivery ratios of subscribers.",
        label="fairness over subscribers",
        chapter="fairness",
    )
    worst_tenth_ratio: float = metric(
        "fraction",
        better=+1,
        says="Mean delivery ratio of the worst-served tenth of the subscribers.",
        label="worst tenth delivered",
        chapter="fairness",
    )
    starved_subscribers: float = metric(
        "fraction",
        better=-1,
        says="Share of the subscribers that received nothing they wanted.",
        chapter="fairness",
    )

    def __repr__(self) -> str:
        return (
            f"OpportunisticMetrics({self.protocol}, seed {self.seed}: {self.delivery_ratio:.1%} delivered,"
            f" delay {self.mean_delay_s:.0f} s (median {self.median_delay_s:.0f} s),"
            f" {self.copies_per_bundle:.1f} copies per bundle)"
        )


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
        delivery_ratio=ratio(len(delivered.bundle), len(wanted.bundle)),
        mean_hops=mean(delivered.hops),
        copies_per_bundle=ratio(int(outcome.relays.sum()), len(outcome.relays)),
        transmissions_per_delivery=ratio(begun, len(delivered.bundle)),
        payload_bytes=outcome.payload_bytes,
        control_bytes=outcome.control_bytes,
        wasted_bytes=outcome.wasted_bytes,
        control_share=ratio(outcome.control_bytes, on_air),
        bytes_per_delivery=ratio(on_air, len(delivered.bundle)),
        lists=outcome.lists,
        store_mean_bytes=ratio(float(outcome.stored_byte_s.sum()), run.world.nodes * run_s),
        store_peak_bytes=int(outcome.peak_bytes.max(initial=0)),
        **delay_metrics(delivered.delay_s),
        **_fairness(run, wanted, delivered),
        **loss_metrics(losses_of(run)),
        **{f"transfers_{name}": outcome.transfers[name] for name in TRANSFERS},
        **{f"drops_{name}": outcome.drops[name] for name in DROPS},
    )


# --- Who is served


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
        "starved_subscribers": ratio(int((subscribers == 0).sum()), len(subscribers)),
    }


def ratios(wanted: Numbers, delivered: Numbers) -> Floats:
    """The delivery ratio of each group that wanted something; a group is a number."""
    asked = np.bincount(wanted)
    got = np.bincount(delivered, minlength=len(asked))
    shares: Floats = got[asked > 0] / asked[asked > 0]
    return shares


def pairs_opportunistic(run: OpportunisticRun) -> RunPairs:
    """What became of every wanted pair; a node that carries a bundle for others has not received it."""
    delivered, bundles = delivered_pairs(run), run.world.bundles
    bundle = delivered.bundle.astype(np.int64)
    return RunPairs(
        born_s=bundles.created_s,
        wanted=np.bincount(wanted_pairs(run).bundle, minlength=len(bundles.created_s)),
        delivered=bundle,
        delay_s=delivered.delay_s,
        received=bundle,
        received_delay_s=delivered.delay_s,
        lifetime_s=bundles.lifetime_s,
        duration_s=float(run.scenario.duration_s),
    )


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
        "delivery_prob": ratio(got, len(wanted_pairs(run).bundle)),
        "response_prob": 0.0,
        "overhead_ratio": ratio(transfers["relayed"] - got, got),
        "latency_avg": mean(delivered.delay_s),
        "latency_med": _upper_median(delivered.delay_s),
        "hopcount_avg": mean(delivered.hops),
        "hopcount_med": _upper_median(delivered.hops),
        "buffertime_avg": mean(buffered_s),
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


def _upper_median(values: NDArray[Any]) -> float:
    return float(np.sort(values)[len(values) // 2]) if len(values) else math.nan


def _times_in_store(run: OpportunisticRun) -> Floats:
    """How long each copy that was dropped had been in its store; of nothing without a full log."""
    transfers, bundles = run.outcome.transfer_log, run.world.bundles
    came = transfers[transfers.outcome == RELAYED]
    drops = run.outcome.drop_log[run.outcome.drop_log.reason < DROPS.index("full")]
    bundle = np.concatenate((np.arange(len(bundles.source)), came.bundle, drops.bundle)).astype(np.int64)
    node = np.concatenate((bundles.source, came.receiver, drops.node))
    time_s = np.concatenate((bundles.created_s, came.end_s, drops.time_s))
    leaves = np.arange(len(time_s)) >= len(time_s) - len(drops)
    # A store may take a bundle several times: what leaves it came with the row before, among those of one copy.
    order = np.lexsort((leaves, time_s, bundle * run.world.nodes + node))
    gone = np.flatnonzero(leaves[order])
    held: Floats = time_s[order[gone]] - time_s[order[gone - 1]]
    return held
