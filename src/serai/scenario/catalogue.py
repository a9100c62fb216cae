"""The kinds of scenario there are, and which of them a file describes: its protocol says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from serai.core.errors import BadInput, did_you_mean
from serai.scenario.protocol import Protocol
from serai.scenario.section import DEFAULT_PROTOCOL, Scenario

OwnInFile = Callable[[Path, str | None], tuple[Protocol, type[Scenario]]]
OwnInstalled = Callable[[str], tuple[Protocol, type[Scenario]] | None]
_OWN = re.compile(r"(?P<file>.+\.py)(?::(?P<cls>[A-Za-z_]\w*))?")


class Catalogue:
    """Scenario classes, one for each kind of network, found by the protocols that run on them."""

    def __init__(self, scenarios: Sequence[type[Scenario]], in_file: OwnInFile, installed: OwnInstalled) -> None:
        """`in_file` and `installed` find a protocol of the user's, and the kind of scenario that it runs on."""
        self.scenarios = tuple(scenarios)
        self.in_file, self.installed = in_file, installed
        self._of_protocol = {name: kind for kind in scenarios for name in kind.PROTOCOLS}
        self.protocols: dict[str, Protocol] = {
            name: protocol for kind in scenarios for name, protocol in kind.PROTOCOLS.items()
        }

    def known(self, name: str, folder: Path = Path()) -> str:
        """The name of a protocol; of `mine.py` or `mine.py:Class`, seen from a folder, that of the class in it.

        A name that is new may be that of a protocol of an installed package.
        """
        found = _OWN.fullmatch(name)
        if found:
            return self.adopt((folder / found["file"]).absolute(), found["cls"])
        if name not in self.protocols and (offered := self.installed(name)) is not None:
            self._know(*offered)
        return name

    def adopt(self, file: Path, wanted: str | None) -> str:
        """Know the protocol of a file of the user's from now on; its name."""
        protocol, kind = self.in_file(file, wanted)
        before = self.protocols.get(protocol.name)
        if before is not None and before.own is None:
            raise BadInput(f'{file}: "{protocol.name}" is the name of a protocol of serai; choose another one')
        return self._know(protocol, kind)

    def _know(self, protocol: Protocol, kind: type[Scenario]) -> str:
        self.protocols[protocol.name] = kind.PROTOCOLS[protocol.name] = protocol
        self._of_protocol[protocol.name] = kind
        return protocol.name

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
