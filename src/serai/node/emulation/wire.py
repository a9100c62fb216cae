"""Wires of an emulation by the clock: TCP between two nodes, as slow as the scenario's links, until they are cut."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Final

_STEP_S: Final = 0.01
_LEAST_BYTES: Final = 256
_BUFFER: Final = 16 << 10  # of the sockets: what is in there when a wire is cut was sent for nothing


class Wire:
    """One contact: whoever dials `port` is joined with the node at another one."""

    def __init__(self, to_port: int, bytes_per_s: float) -> None:
        self._to_port, self._rate = to_port, bytes_per_s
        self._step = max(_LEAST_BYTES, int(bytes_per_s * _STEP_S))
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def open(self) -> int:
        """Begin; the port to dial."""
        near = socket.socket()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        near.bind(("127.0.0.1", 0))
        self._server = await asyncio.start_server(self._joined, sock=near, limit=self._step)
        port: int = near.getsockname()[1]
        return port

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.append(writer)
        try:
            far = socket.socket()
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            far.setblocking(False)
            await asyncio.get_running_loop().sock_connect(far, ("127.0.0.1", self._to_port))
            there_reader, there_writer = await asyncio.open_connection(sock=far, limit=self._step)
            self._writers.append(there_writer)
            await asyncio.gather(self._carry(reader, there_writer), self._carry(there_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clock = asyncio.get_running_loop().time
        free_s = clock()
        while data := await reader.read(self._step):
            free_s = max(free_s, clock()) + len(data) / self._rate
            await asyncio.sleep(max(0.0, free_s - clock()))
            writer.write(data)
            await writer.drain()
        writer.close()

    def cut(self) -> None:
        """The contact is over: both sides see a reset."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            with suppress(OSError):
                writer.transport.abort()
