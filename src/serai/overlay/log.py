"""A run of an overlay: the network as it was drawn, and all that happened in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from serai.log.run import SimulatedRun, TableForm
from serai.overlay.engine.network import Network
from serai.overlay.engine.run import Damage, Outcome, Stage
from serai.overlay.sections import OverlayScenario

if TYPE_CHECKING:
    from serai.overlay.metrics import OverlayMetrics


@dataclass(frozen=True, eq=False, repr=False)
class OverlayRun(SimulatedRun):
    """One simulated run: what was asked for, the network it happened in, and what happened."""

    scenario: OverlayScenario
    network: Network
    outcome: Outcome

    COUNTED = ("damage",)

    @cached_property
    def metrics(self) -> OverlayMetrics:
        """Every metric of the run, worked out when first asked for."""
        from serai.overlay.metrics import measure_overlay

        return measure_overlay(self)

    @property
    def full_log(self) -> bool:
        """Whether every transfer and every drop was kept."""
        return self.outcome.full is not None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the events' attributes."""
        return tuple(attribute.name for attribute in self.network.attributes)

    def in_numbers(self) -> tuple[str, ...]:
        """How much there is of everything, in a few words each."""
        return (
            f"{len(self.network.names)} nodes",
            f"{len(self.network.roots)} trees",
            f"{len(self.network.low)} subscriptions",
            f"{len(self.network.publisher)} events",
            f"{len(self.outcome.notifications.event)} notifications",
        )

    def counts(self) -> dict[str, Any]:
        """Sums that need no table."""
        damage = self.outcome.damage
        return {"damage": None if damage is None else _damage_as_dict(damage)}

    @staticmethod
    def form() -> TableForm[OverlayRun, OverlayScenario]:
        """How runs of this kind of network stand in tables."""
        from serai.overlay.tables import FORM

        return FORM


def _damage_as_dict(damage: Damage) -> dict[str, Any]:
    return {name: value._asdict() if isinstance(value, Stage) else value for name, value in damage._asdict().items()}
