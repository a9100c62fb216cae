"""Beacons: who is here, and how to be reached.

`[7, 3, [1, "//NAME/"], period_s, [[["tcpcl", 4556]], {"dpsp": 1, "net": id}]]` is one.
A quiet node leaves out its name: `[1, 0]`, the null endpoint, stands in its place. Other implementations (dtn7) count
their beacons where ours have their period, and may add a period at the end, with flags 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from serai.core.errors import PeerError
from serai.node.bundle.cbor import decode, encode
from serai.node.bundle.eid import eid_of, eid_value

VERSION: Final = 7
FLAGS: Final = 3
"""Bits: a node id is there, services are there."""

MAX_BYTES: Final = 1024
NETWORK_ID_BYTES: Final = 8


class Beacon(NamedTuple):
    """What a node says of itself to whoever is near."""

    node: str  # dtn:none if it is quiet
    period_s: int  # of a node that speaks DPSP; others count
    services: Sequence[tuple[str, int]]  # name and port
    network: bytes | None  # of a node that speaks DPSP

    def port(self, service: str) -> int | None:
        """Where a service is."""
        return next((port for name, port in self.services if name == service), None)


def encode_beacon(beacon: Beacon) -> bytes:
    """A beacon as bytes."""
    extra = {} if beacon.network is None else {"dpsp": 1, "net": beacon.network}
    services = [list(service) for service in beacon.services]
    return encode([VERSION, FLAGS, eid_value(beacon.node), beacon.period_s, [services, extra]])


def decode_beacon(data: bytes) -> Beacon:
    """The beacon that a datagram is."""
    if len(data) > MAX_BYTES:
        raise PeerError(f"a beacon of {len(data)} bytes, at most {MAX_BYTES}")
    match decode(data, items=200):
        case [7, 3, eid, int(number), [list(services), dict(extra)]] | [
            7,
            7,
            eid,
            int(number),
            [list(services), dict(extra)],
            int(_),
        ] if 0 <= number < 1 << 32:
            network = extra.get("net") if extra.get("dpsp") == 1 else None
            if network is not None and (not isinstance(network, bytes) or len(network) != NETWORK_ID_BYTES):
                raise PeerError(f"the id of a network has {NETWORK_ID_BYTES} bytes")
            return Beacon(eid_of(eid), number, tuple(map(_service, services)), network)
    raise PeerError("not a beacon that we know")


def _service(value: Any) -> tuple[str, int]:
    match value:
        case [str(name), int(port)] if 1 <= port <= 65_535 and len(name) <= 32:
            return name, port
    raise PeerError("a service of a beacon is a name and a port")
