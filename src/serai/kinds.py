"""The registry of the kinds of network: the one place that knows all of them, and the only one that dispatches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from serai.field.log import FieldRun, read_field_run
from serai.field.metrics import delays_field, measure_field
from serai.field.sections import FieldScenario
from serai.field.simulation import simulate_field
from serai.opportunistic.log import OpportunisticRun, read_opportunistic_run
from serai.opportunistic.metrics import delays_opportunistic, measure_opportunistic
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import simulate_opportunistic
from serai.overlay.log import OverlayRun, read_overlay_run
from serai.overlay.metrics import measure_overlay
from serai.overlay.sections import OverlayScenario
from serai.overlay.simulation import simulate_overlay
from serai.scenario.catalogue import Catalogue
from serai.scenario.section import Scenario


@dataclass(frozen=True)
class Kind:
    """Everything that the rest of serai asks of a kind of network."""

    scenario: type[Scenario]
    run: type
    simulate: Callable[..., Any]
    measure: Callable[..., Any]
    read: Callable[..., Any]
    delays: Callable[[Any], Any] | None = None
    """The delay of each delivered pair, and how many pairs were wanted; None where nobody waits."""

    @property
    def name(self) -> str:
        """How scenarios of this kind call it."""
        return self.scenario.network


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(FieldScenario, FieldRun, simulate_field, measure_field, read_field_run, delays_field),
        Kind(OverlayScenario, OverlayRun, simulate_overlay, measure_overlay, read_overlay_run),
        Kind(
            OpportunisticScenario,
            OpportunisticRun,
            simulate_opportunistic,
            measure_opportunistic,
            read_opportunistic_run,
            delays_opportunistic,
        ),
    )
}

CATALOGUE = Catalogue([kind.scenario for kind in KINDS.values()])
PROTOCOLS = CATALOGUE.protocols


def kind_of_run(run: Any) -> Kind:
    """The kind of network that a run is of."""
    return next(kind for kind in KINDS.values() if isinstance(run, kind.run))
