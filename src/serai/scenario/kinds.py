"""Which class reads a scenario: each kind of network has one, and the protocol says the kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serai.protocols import PROTOCOLS
from serai.scenario.contacts import ContactsScenario
from serai.scenario.field import FieldScenario
from serai.scenario.overlay import OverlayScenario
from serai.scenario.section import DEFAULT_PROTOCOL, Scenario

SCENARIOS: dict[str, type[Scenario]] = {
    kind.network: kind for kind in (FieldScenario, OverlayScenario, ContactsScenario)
}
"""The class of scenario of each kind of network."""


def kind_of(data: Mapping[str, Any]) -> type[Scenario]:
    """The class that reads this TOML data; a protocol that nobody knows counts as the usual one."""
    table = data.get("protocol")
    name = table.get("name") if isinstance(table, Mapping) else None
    protocol = PROTOCOLS[name if name in list(PROTOCOLS) else DEFAULT_PROTOCOL]
    return SCENARIOS[protocol.network]
