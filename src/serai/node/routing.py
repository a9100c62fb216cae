"""Which protocols a live node can run, and their settings as numbers: for emulations, and for what nodes logged."""

from __future__ import annotations

from typing import Any, Final

from serai.core.errors import BadInput
from serai.opportunistic import direct, dpsp, flooding
from serai.opportunistic.settings import RouterSettings

LIVE: Final = dpsp.Settings(priorities=("long-delay",), combine="order", order="oldest", announce="change")
"""What live nodes run. `serai.node.settings.RULES` has it as numbers, so that no node loads what reads settings."""

_PROTOCOLS = (dpsp.PROTOCOL, flooding.PROTOCOL, direct.PROTOCOL)
"""Others count copies, which a cut may lose, or tell of likelihoods, which no list has."""


def routing(settings: RouterSettings) -> dict[str, Any]:
    """The fields of `NodeSettings` that make a node run a protocol with these settings."""
    found = next((protocol for protocol in _PROTOCOLS if isinstance(settings, protocol.settings)), None)
    if found is None:
        names = ", ".join(protocol.name for protocol in _PROTOCOLS)
        raise BadInput(f"protocol {getattr(settings, 'name', '')}: a live node runs one of: {names}")
    if settings.seen == "live":
        raise BadInput('protocol.seen = "live": no real neighbour answers for nothing; one of: vector, bloom')
    return {"decisions": found, "rules": found.rules_of(settings)}
