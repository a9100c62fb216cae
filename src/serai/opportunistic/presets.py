"""Settings under which a scenario does what another simulator does, so that the two can be compared."""

from __future__ import annotations

from typing import Any, Final

AS_THE_ONE: Final[dict[str, Any]] = {
    "step": "1 s",
    "nodes.when_full": "first-in",
    "radio.single": True,
    "bundles.lifetime_unit": "1 min",
    "protocol.seen": "live",
    "protocol.wanted_first": True,
    "protocol.consume": True,
}
"""What all routers of The ONE have in common; updateInterval is taken to be 1."""

ROUTERS_OF_THE_ONE: Final[dict[str, dict[str, Any]]] = {
    "prophet": {
        "protocol.variant": "the-one",
        "protocol.encounter": 0.75,
        "protocol.transitivity": 0.25,
        "protocol.aging": 0.98,
    },
    "prophet2": {
        "protocol.variant": "the-one",
        "protocol.encounter_max": 0.5,
        "protocol.first_threshold": 0.0,
        "protocol.aging": 0.999885791,
        "protocol.forward": "at-least",
    },
    "maxprop": {"protocol.follows": "the-one", "protocol.order": "oldest"},
    "first-contact": {"protocol.at_subscriber": "ends"},
}
"""What single routers have besides; there is no default for the time unit of aging in PRoPHET."""

PRESETS: Final = {"the-one": lambda protocol: AS_THE_ONE | ROUTERS_OF_THE_ONE.get(protocol, {})}
"""By name: the settings for a protocol, as `dotted.key: value`. For a protocol that it does not know: those for all."""
