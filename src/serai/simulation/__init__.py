"""One run: a scenario and a seed -> what happened. Each kind of network has its own file."""

from __future__ import annotations

from typing import Any

from serai._jit import announced_compilation
from serai.scenario import ContactsScenario, FieldScenario, OverlayScenario, Scenario
from serai.simulation import contacts, field, overlay


def simulate(scenario: Scenario, protocol: str | None = None, seed: int = 0, **options: Any) -> Any:
    """Run a scenario once. The same scenario, protocol and seed give the same run, on any machine.

    `full_log=True` keeps every transfer and drop; in a field, `until_death=True` goes on until a sensor dies.
    """
    if protocol is not None:
        scenario = scenario.with_protocol(protocol)
    with announced_compilation(scenario.protocol.name):
        return _SIMULATE[type(scenario)](scenario, seed, **options)


_SIMULATE: dict[type[Scenario], Any] = {
    FieldScenario: field.simulate_field,
    ContactsScenario: contacts.simulate_contacts,
    OverlayScenario: overlay.simulate_overlay,
}
