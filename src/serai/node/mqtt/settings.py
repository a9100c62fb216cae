"""What a node's MQTT server is set to; `serai.node.config` reads it from TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from serai.node.mqtt.access import User


@dataclass(frozen=True)
class MqttSettings:
    """Limits and lifetimes; sizes are in bytes."""

    lifetime_s: float = 7 * 86400.0  # of a message whose publisher names none
    session_s: float = 30 * 86400.0  # of a session of 3.1.1 that is not clean, after its connection
    in_flight: int = 20  # messages of QoS 1 and 2 on their way to one client, and from it
    largest: int = 16 << 20  # payload
    parked: int = 256  # messages of one client that wait for room in the store
    users: Mapping[str, User] = field(default_factory=dict)
    anonymous: bool = True  # from this machine; from elsewhere never

    @property
    def largest_packet(self) -> int:
        """The largest packet that is read: payload, topic and properties."""
        return self.largest + (64 << 10)
