"""The kinds of scenario there are, and which of them a file describes: its protocol says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from serai.core.errors import BadInput, did_you_mean
from serai.scenario.protocol import Protocol
from serai.scenario.section import DEFAULT_PROTOCOL, Scenario


class Catalogue:
    """Scenario classes, one for each kind of network, found by the protocols that run on them."""

    def __init__(self, scenarios: Sequence[type[Scenario]]) -> None:
        self.scenarios = tuple(scenarios)
        self._of_protocol = {name: kind for kind in scenarios for name in kind.PROTOCOLS}
        self.protocols: dict[str, Protocol] = {
            name: protocol for kind in scenarios for name, protocol in kind.PROTOCOLS.items()
        }

    def scenario_of(self, protocol: str) -> type[Scenario]:
        """The class of scenarios that a protocol runs on."""
        return self._of_protocol[protocol]

    def described_by(self, data: Mapping[str, Any]) -> type[Scenario]:
        """The class that reads this TOML data; an unknown protocol counts as the default one."""
        table = data.get("protocol")
        name = table.get("name") if isinstance(table, Mapping) else None
        known = isinstance(name, str) and name in self._of_protocol
        return self._of_protocol[name if known else DEFAULT_PROTOCOL]  # type: ignore[index]

    def check_protocol(self, name: str, kind: type[Scenario] | None = None) -> None:
        """Complain about a protocol that does not exist, or that runs on another kind of network than `kind`."""
        if name not in self._of_protocol:
            raise BadInput(f'unknown protocol "{name}"; {did_you_mean(name, self.protocols)}')
        if kind is not None and self._of_protocol[name] is not kind:
            raise BadInput(
                f'protocol "{name}" runs on networks of another kind ({self._of_protocol[name].network}) than this'
                f" scenario describes ({kind.network}); here you can use: {', '.join(kind.PROTOCOLS)}"
            )
