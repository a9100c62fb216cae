"""A run in a field for people: the metrics that are looked for first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from serai.field.engine.state import DROPS
from serai.field.log import FieldRun
from serai.field.metrics import FieldMetrics
from serai.field.naps import dead_times, first_death_s
from serai.field.paper import METRICS
from serai.log.summary import DELAY, DELIVERED, Line, counted, counted_losses

HEADLINES: Final = METRICS

_COSTS: Final = (
    Line("copies", "{copies_per_event}", "as the paper counts; {transmissions_per_event} transmissions per event"),
    Line("lifetime", "{lifetime_days} d", "extrapolated to the first death"),
    Line("", "{lifetime_with_control_days} d", "if control messages cost energy, too"),
    Line("energy", "{energy_j} J", "the busiest sensor {load_imbalance} times the mean"),
    Line("alive", "{sensors_alive}", "sensors at the end"),
    Line("fairness", "{fairness_communities}", "over communities (Jain)"),
)
_UPPER_BOUNDS: Final = (
    Line("bound", "{upper_bound_direct}", "if every contact with an event's sensor delivered it"),
    Line("", "{upper_bound_community}", "if every contact with its community did"),
    Line("", "{upper_bound_epidemic}", "if subscribers carried everything everywhere"),
)


def summary_field(run: FieldRun, metrics: FieldMetrics) -> Sequence[Line]:
    """A run in a field for the terminal."""
    simulated = first_death_s(run.ledger) is not None
    costs = [line._replace(remark="simulated") if simulated and line.name == "lifetime" else line for line in _COSTS]
    dropped = counted("dropped", {reason: getattr(metrics, f"drops_{reason}") for reason in DROPS})
    bounds = () if math.isnan(metrics.upper_bound_direct) else _UPPER_BOUNDS
    if run.world.harvest is not None:
        costs.insert(-1, deaths_and_wakings(run))
    return [DELIVERED, DELAY, *costs, dropped, *counted_losses(metrics), *bounds]


def deaths_and_wakings(run: FieldRun) -> Line:
    """How often sensors that harvest died and woke, and how much of the run they lived."""
    deaths = len(dead_times(run.ledger).node)
    return Line("died", f"{deaths:,}", "times, woke {wakings} times; lived {alive_share} of the run")
