"""A run of an opportunistic network: what was given, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from serai.log.run import SimulatedRun, TableForm
from serai.opportunistic.engine.state import Outcome
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.world import ContactWorld, Published, Wanted
from serai.world.mobility import Tracks

if TYPE_CHECKING:
    from serai.opportunistic.metrics import OpportunisticMetrics


@dataclass(frozen=True, eq=False, repr=False)
class OpportunisticRun(SimulatedRun):
    """One run of an opportunistic network: what was given, and what came of it."""

    scenario: OpportunisticScenario
    world: ContactWorld
    outcome: Outcome
    names: tuple[str, ...]  # of the nodes
    published: Published
    wanted: Wanted
    full_log: bool = False
    tracks: Tracks | None = None  # where the nodes were; None: nobody knows

    COUNTED = ("payload_bytes", "control_bytes", "wasted_bytes", "lists", "contacts", "transfers", "drops")

    @cached_property
    def metrics(self) -> OpportunisticMetrics:
        """Every metric of the run, worked out when first asked for."""
        from serai.opportunistic.metrics import measure_opportunistic

        return measure_opportunistic(self)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the events' attributes; none where subscriptions are to channels only."""
        names = tuple(attribute.name for attribute in self.scenario.events.attributes)
        return names[: self.published.values.shape[1]]

    def in_numbers(self) -> tuple[str, ...]:
        """How much there is of everything, in a few words each."""
        return (
            f"{len(self.names)} nodes",
            f"{self.outcome.contacts} contacts",
            f"{len(self.world.bundles.source)} bundles",
            f"{len(self.outcome.delivery_s)} deliveries",
        )

    def counts(self) -> dict[str, Any]:
        """Sums that need no table."""
        return {name: getattr(self.outcome, name) for name in self.COUNTED}

    @staticmethod
    def form() -> TableForm[OpportunisticRun, OpportunisticScenario]:
        """How runs of this kind of network stand in tables."""
        from serai.opportunistic.tables import FORM

        return FORM
