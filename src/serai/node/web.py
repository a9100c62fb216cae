"""The page about a node, read only: `/`, `/status.json`, `/metrics`, `/events` (the page as it changes)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import h11

from serai.node.doors import cannot_listen
from serai.node.status import POLICY, Status, metrics, middle, page

_CONNECTIONS: Final = 64
_IDLE_S: Final = 30.0
_EVERY_S: Final = 1.0
_STILL_S: Final = 15.0  # so often an unchanged page is said to be unchanged: else proxies and browsers give up
_LARGEST_HEAD: Final = 16 << 10

_Answer = tuple[int, str, bytes]


class WebServer:
    """The page; `status` says what there is to tell."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self.status = status
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._names: frozenset[str] = frozenset()

    async def listen(self, host: str, port: int) -> int:
        """Answer at this address; the port is returned, in case it was 0."""
        try:
            self._server = await asyncio.start_server(self._connected, host, port, limit=_LARGEST_HEAD)
        except OSError as error:
            raise cannot_listen("the page", host, port, error) from None
        # Another site may name its own host and point it here, and its scripts would then read our answers.
        self._names = frozenset((host, "localhost", "127.0.0.1", "[::1]", f"[{host}]"))
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def stop(self) -> None:
        """Answer nobody any more."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= _CONNECTIONS:
            writer.close()
            return
        self._tasks.add(task)
        try:
            await _Exchange(self, reader, writer).run()
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass  # whoever asked has gone, or the node stops
        finally:
            self._tasks.discard(task)
            writer.close()

    def is_ours(self, host: str) -> bool:
        """Whether a browser was sent here under one of our names."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return name in self._names

    def answer(self, path: str) -> _Answer:
        """Status, type and body for a path."""
        if path == "/":
            return 200, "text/html; charset=utf-8", page(self.status()).encode()
        if path == "/status.json":
            return 200, "application/json", json.dumps(self.status()).encode()
        if path == "/metrics":
            return 200, "text/plain; version=0.0.4; charset=utf-8", metrics(self.status()).encode()
        return 404, "text/plain", b"/, /status.json, /metrics and /events are here\n"


class _Exchange:
    """One connection: request, answer, and again."""

    def __init__(self, server: WebServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server, self.reader, self.writer = server, reader, writer
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST_HEAD)

    async def run(self) -> None:
        """Until the other side has had enough."""
        while self.http.our_state is h11.IDLE:
            try:
                async with asyncio.timeout(_IDLE_S):
                    request = await self._request()
            except h11.RemoteProtocolError as error:
                if self.http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                    await self._send(
                        error.error_status_hint, "text/plain", b"this is not HTTP\n", head=False, last=True
                    )
                return
            if request is None:
                return
            await self._respond(request)
            if self.http.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                return
            self.http.start_next_cycle()

    async def _request(self) -> h11.Request | None:
        """The next request, its body read and thrown away."""
        request = None
        while True:
            event = self.http.next_event()
            if event is h11.NEED_DATA:
                self.http.receive_data(await self.reader.read(_LARGEST_HEAD))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.EndOfMessage):
                return request
            elif isinstance(event, h11.ConnectionClosed):
                return None

    async def _respond(self, request: h11.Request) -> None:
        host = next((value.decode("latin-1") for name, value in request.headers if name == b"host"), "")
        path = request.target.decode("latin-1").partition("?")[0]
        head = request.method == b"HEAD"
        if request.method not in (b"GET", b"HEAD"):
            await self._send(405, "text/plain", b"this page is only for reading\n", head=False, last=True)
        elif not self.server.is_ours(host):
            await self._send(403, "text/plain", b"ask for localhost\n", head=head, last=True)
        elif path == "/events" and not head:
            await self._events()
        else:
            await self._send(*self.server.answer(path), head=head)

    async def _send(self, status: int, kind: str, body: bytes, *, head: bool, last: bool = False) -> None:
        self._begin(status, kind, [("Content-Length", str(len(body)))], last)
        if not head:
            self._write(h11.Data(data=body))
        self._write(h11.EndOfMessage())
        await self._drain()

    async def _drain(self) -> None:
        async with asyncio.timeout(_IDLE_S):  # wait_for of Python 3.11 may swallow that it was cancelled
            await self.writer.drain()

    def _begin(self, status: int, kind: str, more: list[tuple[str, str]], last: bool) -> None:
        headers = [
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            *more,
            *([("Connection", "close")] if last else []),
        ]
        self._write(h11.Response(status_code=status, headers=headers))

    def _write(self, event: h11.Event) -> None:
        self.writer.write(self.http.send(event) or b"")

    async def _events(self) -> None:
        """Server-sent events: the page's middle, when it is not as it was; until the browser goes."""
        self._begin(200, "text/event-stream", [], last=True)
        told, still_s = "", 0.0
        while not self.reader.at_eof():
            now = json.dumps(middle(self.server.status()))
            still_s = 0.0 if now != told else still_s + _EVERY_S
            if now != told or still_s >= _STILL_S:
                self._write(h11.Data(data=(f"data: {now}\n\n" if now != told else ":\n\n").encode()))
                told = now
                still_s = 0.0
                await self._drain()
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY_S):
                    await self.reader.read(1)  # nothing is to come but the end
