"""Beacons over UDP: IPv4 multicast and broadcast, IPv6 multicast, on every interface."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from serai.core.errors import BadInput, PeerError
from serai.node.wire.beacon import Beacon, decode_beacon, encode_beacon

log = logging.getLogger("serai.node.discovery")

GROUP_4, GROUP_6, EVERYBODY = "224.0.0.26", "ff02::1", "255.255.255.255"
PORT: Final = 3003
QUICK_S, QUICK_FOR_S = 2.0, 20.0
"""At first, and when an interface has come or gone, beacons are sent more often."""


@dataclass(frozen=True)
class BeaconSettings:
    """How a node says that it is here; times in seconds."""

    on: bool = True
    port: int = PORT
    period_s: int = 10
    quiet: bool = False  # leaves out the name


class Discovery(asyncio.DatagramProtocol):
    """Sends beacons and hears others'."""

    def __init__(self, settings: BeaconSettings, beacon: Beacon, heard: Callable[[Beacon, str], None]) -> None:
        self.settings, self.heard = settings, heard
        self.datagram = encode_beacon(beacon)
        self._sockets: list[socket.socket] = []
        self._transports: list[asyncio.DatagramTransport] = []
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to listen and to send."""
        loop = asyncio.get_running_loop()
        for family in (socket.AF_INET, socket.AF_INET6):
            try:
                opened = _open(family, self.settings.port)
            except OSError as error:
                if family == socket.AF_INET:
                    raise BadInput(f"beacons cannot use UDP port {self.settings.port}: {error.strerror}") from None
                continue  # a machine without IPv6
            self._sockets.append(opened)
            transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=opened)
            self._transports.append(transport)
        self._task = asyncio.create_task(self._send())

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        """Somebody is here."""
        if data == self.datagram:
            return  # our own
        try:
            self.heard(decode_beacon(data), addr[0])
        except PeerError as error:
            log.debug("%s: %s", addr[0], error)

    def error_received(self, exc: Exception) -> None:
        """An interface has gone; the next beacon finds the others."""

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        known: set[str] = set()
        quick_until_s = 0.0
        while True:
            found = {name for _, name in socket.if_nameindex()}
            if found != known:
                known, quick_until_s = found, loop.time() + QUICK_FOR_S
            for opened in self._sockets:
                for target in _targets(opened, self.settings.port):
                    with suppress(OSError):
                        opened.sendto(self.datagram, target)
            quick = loop.time() < quick_until_s
            await asyncio.sleep(min(QUICK_S, self.settings.period_s) if quick else self.settings.period_s)

    def stop(self) -> None:
        """Send no more."""
        if self._task is not None:
            self._task.cancel()
        for transport in self._transports:
            transport.close()


def _open(family: socket.AddressFamily, port: int) -> socket.socket:
    """A socket that hears multicast and broadcast, beside those of other nodes on this machine."""
    opened = socket.socket(family, socket.SOCK_DGRAM)
    opened.setblocking(False)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened.bind(("::", port))
        else:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            opened.bind(("", port))
    except OSError:
        opened.close()
        raise
    return opened


def _targets(opened: socket.socket, port: int) -> Iterator[tuple[Any, ...]]:
    """Where a beacon goes: once for each interface, whose group is joined on the way."""
    for index, _ in socket.if_nameindex():
        with suppress(OSError):
            if opened.family == socket.AF_INET6:
                with suppress(OSError):  # joined already
                    request = socket.inet_pton(socket.AF_INET6, GROUP_6) + struct.pack("@I", index)
                    opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
                yield GROUP_6, port, 0, index
            else:
                everywhere = struct.pack("=4s4si", bytes(4), bytes(4), index)
                opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, everywhere)
                with suppress(OSError):
                    member = struct.pack("=4s4si", socket.inet_aton(GROUP_4), bytes(4), index)
                    opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
                yield GROUP_4, port
    if opened.family == socket.AF_INET:
        yield EVERYBODY, port
