"""Where a node takes connections, one at a time; and why it cannot listen: a port in use says by what, where the system
tells."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from serai.core.errors import BadInput

log = logging.getLogger("serai.node.doors")

_LISTENS: Final = "0A"  # TCP_LISTEN in /proc/net/tcp
_WAITING: Final = 32  # connections that the system takes before we do
_REST_S: Final = 0.01  # after one that was turned away; who waits meanwhile costs nothing
_TELL_S: Final = 10.0


class Door:
    """Takes connections at an address. Who is turned away costs a hundredth of a session, and at most 100 a second are.

    `why_not`: what is against a connection from an address, None: nothing.
    """

    def __init__(self, why_not: Callable[[str], str | None], made: Callable[[], asyncio.BaseProtocol]) -> None:
        self.why_not, self.made = why_not, made
        self.coming: set[asyncio.Task[None]] = set()  # connections that were taken and are not made yet
        self._sockets: list[socket.socket] = []
        self._turned_away, self._told_s = 0, -_TELL_S
        self._loop = asyncio.get_running_loop()

    async def open(self, host: str, port: int) -> int:
        """Listen there; the port is returned, in case it was 0."""
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, *_, address in dict.fromkeys(found):
            one = socket.create_server(address, family=family, backlog=_WAITING)
            one.setblocking(False)
            self._sockets.append(one)
            self._listen(one)
        return int(self._sockets[0].getsockname()[1])

    def close(self) -> None:
        """Take no more."""
        for one in self._sockets:
            self._loop.remove_reader(one)
            one.close()
        self._sockets.clear()

    def _listen(self, one: socket.socket) -> None:
        if one in self._sockets:
            self._loop.add_reader(one, self._knock, one)

    def _knock(self, one: socket.socket) -> None:
        try:
            connection, address = one.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                log.warning("no connection can be taken: %s", error.strerror)
                self._rest(one)
            return
        why = self.why_not(address[0])
        if why is None:
            task = self._loop.create_task(self._take(connection))
            self.coming.add(task)
            task.add_done_callback(self.coming.discard)
            return
        with suppress(OSError):
            connection.close()
        self._tell(address[0], why)
        self._rest(one)

    async def _take(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self.made, connection)
        except OSError as error:
            log.debug("a connection that was gone at once: %s", error)

    def _rest(self, one: socket.socket) -> None:
        self._loop.remove_reader(one)
        self._loop.call_later(_REST_S, self._listen, one)

    def _tell(self, address: str, why: str) -> None:
        """Say who was turned away, and then how many; a crowd does not fill the log."""
        self._turned_away += 1
        if time.monotonic() - self._told_s >= _TELL_S:
            others = f" (and {self._turned_away - 1} others before)" if self._turned_away > 1 else ""
            log.warning("%s turned away: %s%s", address, why, others)
            self._turned_away, self._told_s = 0, time.monotonic()


def cannot_listen(what: str, host: str, port: int, error: OSError) -> BadInput:
    """What to tell whoever has started the node."""
    said = f"{what} cannot listen on {host}:{port}: {error.strerror or error}"
    if error.errno == errno.EADDRINUSE:
        holder = listener(port)
        said = f"{what} cannot listen on {host}:{port}: address already in use{f' by {holder}' if holder else ''}"
    return BadInput(said)


def listener(port: int, proc: Path = Path("/proc")) -> str:
    """The process that listens on a port of this machine, as Linux tells; "" where it does not."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{fields[9]}]")
    for process in proc.glob("[0-9]*") if sockets else ():
        try:
            if any(str(file.readlink()) in sockets for file in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} (process {process.name})"
        except OSError:  # it is another user's, or has just ended
            continue
    return ""
