"""A run of an overlay for people: the metrics that are looked for first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from serai.log.summary import DELIVERED, Line, counted_losses
from serai.overlay.log import OverlayRun
from serai.overlay.metrics import OverlayMetrics

HEADLINES: Final = ("delivery_ratio", "nodes_per_query", "query_hops_own_tree", "notification_delay_ratio")

_LINES: Final = (
    DELIVERED._replace(remark=f"{DELIVERED.remark}, {{duplicates}} more than once"),
    Line("stored", "{nodes_per_query}", "nodes per query, over all {trees} trees"),
    Line("query", "{query_path_hops}", "hops to where it is stored"),
    Line("", "{query_hops_own_tree}", "transmissions in its own tree; {query_hops_all_trees} in all"),
    Line(
        "delay",
        "{notification_delay_ratio}",
        "times the shortest path; {notification_delay_ratio_of_means} as a ratio of means",
    ),
    Line("event", "{transmissions_per_event}", "transmissions to where it meets queries"),
    Line("load", "{busiest_share}", "of all messages at the busiest node; Gini {load_gini}"),
    Line("state", "{state_per_node}", "keys and queries at a node, {state_per_node_max} at most"),
    Line("energy", "{energy_j} J", "and {control_energy_j} J to build the trees"),
)
_AFTER_FAILURES: Final = (
    Line("failed", "{failed_nodes}", "nodes; {rekeyed_nodes} others lost their key, {cut_off_nodes} any path"),
    Line("repair", "{repair_messages}", "messages; {changed_nodes} nodes changed state"),
    Line("delivered", "{delivery_ratio_unrepaired}", "before any failure is noticed"),
    Line("", "{delivery_ratio_repaired}", "once the trees are mended"),
    Line("", "{delivery_ratio_renewed}", "once all queries are renewed"),
)


def summary_overlay(run: OverlayRun, metrics: OverlayMetrics) -> Sequence[Line]:
    """A run of an overlay for the terminal."""
    return [*_LINES, *counted_losses(metrics), *(_AFTER_FAILURES if metrics.failed_nodes else ())]
