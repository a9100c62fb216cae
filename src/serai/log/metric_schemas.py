"""The schemas of rows of metrics, for each kind of network, and of the tables of sweeps."""

from __future__ import annotations

import pyarrow as pa


def _always(kind: pa.DataType, *names: str) -> list[pa.Field]:
    return [pa.field(name, kind, nullable=False) for name in names]


def _where_defined(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.float64()) for name in names]


METRICS = pa.schema(
    [
        *_always(pa.string(), "protocol"),
        *_always(pa.int64(), "seed", "events"),
        *_where_defined("delivery_ratio", "copies_per_event", "transmissions_per_event"),
        *_where_defined("mean_delay_s", "median_delay_s", "p95_delay_s"),
        *_where_defined("lifetime_days", "lifetime_events_only_days", "lifetime_with_control_days"),
        *_always(pa.int64(), "wanted_pairs", "delivered_pairs", "receptions", "transmissions"),
        *_always(pa.float64(), "energy_j", "control_energy_j"),
        *_always(pa.int64(), "control_messages", "control_bits"),
        *_always(pa.int64(), "drops_expired", "drops_spent", "drops_full", "drops_stranded"),
        *_where_defined("fairness_communities", "load_imbalance"),
        *_where_defined("ceiling_direct", "ceiling_community", "ceiling_epidemic"),
        *_where_defined("ceiling_direct_delay_s", "ceiling_community_delay_s", "ceiling_epidemic_delay_s"),
    ]
)
"""One row per run in a field; `serai.field.metrics` explains each column. Null: the run has no such metric."""

OVERLAY_METRICS = pa.schema(
    [
        *_always(pa.string(), "protocol"),
        *_always(pa.int64(), "seed", "nodes", "trees", "events", "subscriptions"),
        *_where_defined("delivery_ratio"),
        *_always(pa.int64(), "wanted_pairs", "delivered_pairs", "duplicates", "lost_events"),
        *_where_defined("nodes_per_query", "query_path_hops", "query_hops_own_tree", "query_hops_all_trees"),
        *_where_defined("notification_delay_ratio", "notification_delay_ratio_of_means", "notification_hops"),
        *_where_defined("shortest_hops", "transmissions_per_event", "notification_transmissions_per_event"),
        *_where_defined("busiest_share", "load_gini", "busiest_rendezvous_share"),
        *_where_defined("state_per_node", "state_per_node_max"),
        *_always(pa.int64(), "info_messages"),
        *_always(pa.float64(), "energy_j", "control_energy_j", "busiest_energy_j"),
        *_always(pa.int64(), "failed_nodes"),
        *_where_defined("cut_off_nodes", "rekeyed_nodes", "changed_nodes", "repair_messages"),
        *_where_defined("handed_off_messages", "resubscription_messages"),
        *_where_defined("delivery_ratio_unrepaired", "delivery_ratio_repaired", "delivery_ratio_renewed"),
    ]
)
"""One row per run of an overlay."""

CONTACTS_METRICS = pa.schema(
    [
        *_always(pa.string(), "protocol"),
        *_always(pa.int64(), "seed", "nodes", "contacts", "bundles", "wanted_pairs", "delivered_pairs"),
        *_where_defined("delivery_ratio", "mean_delay_s", "median_delay_s", "p95_delay_s", "mean_hops"),
        *_where_defined("copies_per_bundle", "transmissions_per_delivery"),
        *_always(pa.int64(), "payload_bytes", "control_bytes", "wasted_bytes"),
        *_where_defined("control_share", "bytes_per_delivery"),
        *_always(pa.int64(), "lists", "transfers_relayed", "transfers_duplicate", "transfers_refused"),
        *_always(pa.int64(), "transfers_late", "transfers_broken", "transfers_unfinished"),
        *_always(pa.int64(), "drops_expired", "drops_evicted", "drops_full"),
        *_where_defined("store_mean_bytes"),
        *_always(pa.int64(), "store_peak_bytes"),
        *_where_defined("fairness_channels", "fairness_subscribers", "worst_tenth_ratio", "starved_subscribers"),
    ]
)
"""One row per run of an opportunistic network; `serai.opportunistic.metrics.DEFINITIONS` explains each column."""

METRICS_OF = {"field": METRICS, "overlay": OVERLAY_METRICS, "opportunistic": CONTACTS_METRICS}
"""The schema of a row of metrics, for each kind of network."""

_DELAYS = [
    pa.field("undelivered_pairs", pa.int64()),
    pa.field("delay_bin", pa.list_(pa.field("element", pa.int16(), nullable=False))),
    pa.field("delay_count", pa.list_(pa.field("element", pa.int32(), nullable=False))),
]


def sweep_schema(network: str) -> pa.Schema:
    """The table of a sweep: the point, the metrics of the run, and its delays as counts in bins."""
    return pa.schema([*_always(pa.int32(), "point"), *METRICS_OF[network], *_DELAYS])


def part_schema(network: str) -> pa.Schema:
    """What the tasks of a sweep write: as its table, but by the name of the cell instead of the point's number."""
    return pa.schema([*_always(pa.string(), "cell"), *METRICS_OF[network], *_DELAYS])
