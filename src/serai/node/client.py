"""A node from Python, by way of MQTT 5.

    async with Node("localhost") as node:
        await node.publish("field/7/temperature", {"t": 21.5})
        async for message in node.messages("field/+/temperature", where="t > 30"):
            print(message.topic, message.payload)

`publish` returns when the node has it on disk. A message of `messages` counts as taken when the next one is asked for:
whoever dies over one gets it again, if the client has a name and a session that lasts (`session_s`) and asks for the
same in the same order.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple

from serai.core.errors import BadInput, CannotRun, PeerError
from serai.node.interests import interest, topic_problem
from serai.node.mqtt.packets import (
    V5,
    Ack,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Ping,
    Publish,
    Reader,
    Suback,
    Subscribe,
    Unsubscribe,
    Wish,
    encode,
)

_KEEP_ALIVE_S: Final = 30
_IN_FLIGHT: Final = 20
_GOODBYE: Final = 0x80  # reasons from here on are refusals


class Message(NamedTuple):
    """What a subscriber gets."""

    topic: str
    payload: bytes
    retained: bool = False
    properties: tuple[tuple[str, str], ...] = ()
    expires_in_s: int | None = None

    def json(self) -> Any:
        """The payload as JSON."""
        return json.loads(self.payload)


class Node:
    """A connection to a node; to be used with `async with`."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 1883,
        *,
        name: str = "",
        session_s: int = 0,
        user: str | None = None,
        password: bytes | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        self.host, self.port, self.tls, self.timeout_s = host, port, tls, timeout_s
        about = {"session_expiry_interval": session_s, "receive_maximum": _IN_FLIGHT}
        self._connect = Connect(name, V5, not session_s, _KEEP_ALIVE_S, None, user, password, about)
        self._answers: dict[tuple[str, int], asyncio.Future[Packet]] = {}
        self._queues: dict[int, asyncio.Queue[Publish | None]] = {}
        self._early: list[Publish] = []  # of a session that lasts: before it is asked for again
        self._packet = 0
        self._window = asyncio.Semaphore(_IN_FLIGHT)
        self._tasks: list[asyncio.Task[None]] = []
        self._lost: str | None = None

    async def __aenter__(self) -> Node:
        try:
            async with asyncio.timeout(self.timeout_s):
                self._reader, self._writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls)
                self._packets = Reader(version=V5)
                answer = self._expect("connack", 0)
                self._say(self._connect)
                self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._stay())]
                connack = await answer
        except (OSError, TimeoutError) as error:
            await self._close()
            why = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
            raise CannotRun(f"no node at {self.host}:{self.port}: {why}; `serai node run` starts one") from None
        assert isinstance(connack, Connack)
        if connack.reason:
            await self._close()
            raise BadInput(f"the node at {self.host}:{self.port} refuses: {_why(connack)}")
        self._window = asyncio.Semaphore(min(_IN_FLIGHT, connack.properties.get("receive_maximum", _IN_FLIGHT)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lost is None:
            self._say(Disconnect())
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._writer.drain()
        await self._close()

    async def publish(
        self,
        topic: str,
        payload: bytes | str | dict[str, Any] | list[Any],
        *,
        qos: int = 1,
        retain: bool = False,
        lifetime_s: int | None = None,
        properties: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Publish; objects and lists go as JSON. With `qos` 1 or 2 it is on the node's disk when this returns."""
        if problem := topic_problem(topic):
            raise BadInput(problem)
        data = payload if isinstance(payload, bytes) else (payload if isinstance(payload, str) else json.dumps(payload))
        body = data if isinstance(data, bytes) else data.encode()
        said: dict[str, Any] = {} if lifetime_s is None else {"message_expiry_interval": lifetime_s}
        said |= {"user_property": properties} if properties else {}
        if not qos:
            self._say(Publish(topic, body, 0, retain, properties=said))
            await self._writer.drain()
            return
        async with self._window:
            packet = self._new_packet()
            first = "puback" if qos == 1 else "pubrec"
            answer = await self._ask(Publish(topic, body, qos, retain, packet, properties=said), first, packet)
            if isinstance(answer, Ack) and answer.reason >= _GOODBYE:
                raise CannotRun(f"the node refuses a message on {topic}: {_why(answer)}")
            if qos == 2:
                await self._ask(Ack("pubrel", packet), "pubcomp", packet)

    async def messages(self, filter: str = "#", *, where: str = "", qos: int = 1) -> AsyncGenerator[Message, None]:
        """Messages that the filter asks for, and of those what meets the condition; for ever."""
        interest(filter.partition("/")[2].partition("/")[2] if filter.startswith("$share/") else filter, where)
        number = max(self._queues, default=0) + 1
        queue = self._queues[number] = asyncio.Queue()
        said: dict[str, Any] = {"subscription_identifier": (number,)}
        said |= {"user_property": (("where", where),)} if where else {}
        packet = self._new_packet()
        early, self._early = self._early, []
        for one in early:
            self._heard(one)
        try:
            answer = await self._ask(Subscribe(packet, (Wish(filter, qos),), said), "suback", packet)
            assert isinstance(answer, Suback)
            if answer.reasons[0] >= _GOODBYE:
                raise BadInput(f"the node refuses {filter}: {_why(answer, answer.reasons[0])}")
            while publish := await queue.get():
                about = publish.properties
                yield Message(
                    publish.topic,
                    publish.payload,
                    publish.retain,
                    about.get("user_property", ()),
                    about.get("message_expiry_interval"),
                )
                self._taken(publish)
            raise CannotRun(self._lost or "the connection is closed")
        finally:
            del self._queues[number]
            if self._lost is None and self._connect.clean:
                self._say(Unsubscribe(self._new_packet(), (filter,)))

    def _taken(self, publish: Publish) -> None:
        if publish.qos:
            self._say(Ack("puback" if publish.qos == 1 else "pubrec", publish.packet))

    # -- the connection

    async def _ask(self, packet: Packet, kind: str, number: int) -> Packet:
        answer = self._expect(kind, number)
        self._say(packet)
        await self._writer.drain()
        return await answer

    def _expect(self, kind: str, number: int) -> asyncio.Future[Packet]:
        if self._lost is not None:
            raise CannotRun(self._lost)
        found = self._answers[kind, number] = asyncio.get_running_loop().create_future()
        return found

    def _say(self, packet: Packet) -> None:
        if self._lost is not None:
            raise CannotRun(self._lost)
        self._writer.write(encode(packet, V5))

    def _new_packet(self) -> int:
        self._packet = self._packet % 0xFFFF + 1
        return self._packet

    async def _stay(self) -> None:
        while True:
            await asyncio.sleep(_KEEP_ALIVE_S / 2)
            self._say(Ping())

    async def _listen(self) -> None:
        why = "the node has closed the connection"
        try:
            while data := await self._reader.read(1 << 16):
                for packet in self._packets.feed(data):
                    if isinstance(packet, Disconnect):
                        why = f"the node has ended the connection: {_why(packet)}"
                    self._heard(packet)
        except (OSError, PeerError) as error:
            why = f"the connection to the node broke: {error}"
        self._lost = why
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(CannotRun(why))
        for queue in self._queues.values():
            queue.put_nowait(None)

    def _heard(self, packet: Packet) -> None:
        match packet:
            case Publish(properties=said):
                # What several of our subscriptions ask for comes once, with all their identifiers.
                numbers = [one for one in said.get("subscription_identifier", ()) if one in self._queues]
                for number in numbers[:1]:
                    self._queues[number].put_nowait(packet)
                for number in numbers[1:]:
                    self._queues[number].put_nowait(packet._replace(qos=0))
                if not numbers and self._connect.clean:
                    self._taken(packet)
                elif not numbers:
                    self._early.append(packet)
            case Ack("pubrel", number):
                self._say(Ack("pubcomp", number))
            case Ack(kind, number):
                self._answer(kind, number, packet)
            case Suback(number):
                self._answer("suback", number, packet)
            case Connack():
                self._answer("connack", 0, packet)
            case _:
                pass

    def _answer(self, kind: str, number: int, packet: Packet) -> None:
        answer = self._answers.pop((kind, number), None)
        if answer is not None and not answer.done():
            answer.set_result(packet)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if hasattr(self, "_writer"):
            self._writer.close()
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._writer.wait_closed()
        self._lost = self._lost or "the connection is closed"


def _why(packet: Connack | Ack | Suback | Disconnect, reason: int | None = None) -> str:
    if reason is None:
        reason = 0 if isinstance(packet, Suback) else packet.reason
    known = {0x86: "unknown user or wrong password", 0x87: "not allowed", 0x97: "its store is full"}
    said: str = packet.properties.get("reason_string", "") or known.get(reason, "")
    return f"{said} (0x{reason:02X})" if said else f"reason 0x{reason:02X}"
