"""What a node keeps of its MQTT clients from one connection to the next: wills, and identifiers that were used."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import cbor2

from serai.node.mqtt.delivery import NOTHING, Load
from serai.node.mqtt.packets import Publish, Will
from serai.node.mqtt.properties import Properties
from serai.node.mqtt.settings import MqttSettings
from serai.node.words import Effects, Message, Row, joined

if TYPE_CHECKING:
    from serai.node.core import Node
    from serai.node.mqtt.session import Session

_REPEATED_S: Final = 60.0
_RETRY_S: Final = 1.0


class Received:
    """Messages of QoS 2 that a client has sent, by packet identifier.

    Between PUBLISH and PUBREL an identifier is open: the same again is the same message. Some clients (paho 2.2.0)
    repeat PUBLISH, without DUP, where they should repeat PUBREL, when their connection was cut at the wrong moment. So
    identifiers are remembered for a minute after PUBREL: the same one with the same content in the next connection is
    answered and not stored again.
    """

    def __init__(self, client: str, *, kept: bool) -> None:
        self.client, self.kept = client, kept
        self.open: dict[int, bytes] = {}  # content by identifier
        self._done: dict[int, tuple[bytes, float]] = {}
        self._order: deque[tuple[float, int]] = deque()
        self._earlier: set[int] = set()  # done before this connection

    def restore(self, packet: int, digest: bytes, done_ms: int | None) -> None:
        """Remember a row of the table `inbound`."""
        if done_ms is None:
            self.open[packet] = digest
        else:
            self._done[packet] = digest, done_ms / 1000

    def connected(self, ended_s: float | None) -> tuple[Row, ...]:
        """A new connection begins; the last one ended then (None: not known, so at the last thing that it did)."""
        last_s = max((done_s for _, done_s in self._done.values()), default=0.0) if ended_s is None else ended_s
        old = [packet for packet, (_, done_s) in self._done.items() if last_s - done_s >= _REPEATED_S]
        rows = tuple(self._forget(packet) for packet in old)
        self._earlier = set(self._done)
        self._order = deque(sorted((done_s, packet) for packet, (_, done_s) in self._done.items()))
        return rows

    def is_repeated(self, publish: Publish) -> bool:
        """Whether this message is here already, so that it is only to be answered."""
        if publish.packet in self.open:
            return True
        if publish.packet in self._earlier and self._done[publish.packet][0] == digest_of(publish):
            self._earlier.discard(publish.packet)
            self.open[publish.packet] = self._done.pop(publish.packet)[0]
            return True
        return False

    def accept(self, publish: Publish) -> tuple[Row, ...]:
        """A message is taken."""
        self._done.pop(publish.packet, None)
        self._earlier.discard(publish.packet)
        self.open[publish.packet] = digest = digest_of(publish)
        return (("inbound", (self.client, publish.packet, digest, None)),) if self.kept else ()

    def release(self, packet: int, now_s: float) -> tuple[Row, ...] | None:
        """PUBREL has come; None if the identifier is not known."""
        if packet not in self.open:
            return () if packet in self._done else None
        digest = self.open.pop(packet)
        if not self.kept:
            return ()
        self._done[packet] = digest, now_s
        self._order.append((now_s, packet))
        rows: list[Row] = [("inbound", (self.client, packet, digest, int(now_s * 1000)))]
        while self._order[0][0] <= now_s - _REPEATED_S:
            done_s, old = self._order.popleft()
            if self._done.get(old, (b"", -1.0))[1] == done_s:
                rows.append(self._forget(old))
        return tuple(rows)

    def goodbye(self) -> tuple[Row, ...]:
        """The client has disconnected in order, so it will not repeat what is done."""
        return tuple(self._forget(packet) for packet in list(self._done)) if self.kept else ()

    def _forget(self, packet: int) -> Row:
        del self._done[packet]
        self._earlier.discard(packet)
        return "inbound.forget", (self.client, packet)


def digest_of(publish: Publish) -> bytes:
    """Tells one message from another."""
    return hashlib.blake2b(publish.topic.encode() + b"\0" + publish.payload, digest_size=16).digest()


def message_of(topic: str, payload: bytes, qos: int, retain: bool, properties: Properties) -> Message:
    """What a client publishes, in the words of the core."""
    if not properties:
        return Message(topic, payload, qos, retain)
    return Message(
        topic,
        payload,
        qos,
        retain,
        properties.get("content_type"),
        properties.get("response_topic"),
        properties.get("correlation_data"),
        properties.get("user_property", ()),
        properties.get("payload_format_indicator"),
    )


def packed(will: Will) -> bytes:
    """A will as it is kept in the store."""
    return cbor2.dumps([*will[:4], dict(will.properties)])


def unpacked(data: bytes) -> Will:
    """A will from the store."""
    topic, payload, qos, retain, properties = cbor2.loads(data)
    if "user_property" in properties:
        properties["user_property"] = tuple((name, value) for name, value in properties["user_property"])
    return Will(topic, payload, qos, retain, properties)


@dataclass
class Client:
    """One client, connected or not."""

    name: str
    received: Received
    session: Session | None = None
    ended_s: float | None = None
    lifetime_s: float = 0.0  # of the session, after its connection


@dataclass
class Clients:
    """All clients of a node; `due_s` is when `tick` has something to do."""

    node: Node
    settings: MqttSettings
    load: Load
    by_name: dict[str, Client] = field(default_factory=dict)
    wills: dict[str, tuple[float, Will]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def restore(self, inbound: Iterable[tuple[str, int, bytes, int | None]], now_s: float) -> None:
        """Take over what the last run left: clients that were connected then have gone without a word."""
        for client, packet, digest, done_ms in inbound:
            self.of(client).received.restore(packet, digest, done_ms)
        for known in self.node.sessions():
            if known.will is not None:
                will = unpacked(known.will)
                wait_s = min(will.properties.get("will_delay_interval", 0), max(0.0, known.expires_s - now_s))
                self.wills[known.client] = now_s + wait_s, will

    def of(self, name: str) -> Client:
        """The client of this name, with what is known of it."""
        if name not in self.by_name:
            self.by_name[name] = Client(name, Received(name, kept=True))
        return self.by_name[name]

    def leave_will(self, client: str, will: Will, now_s: float, lifetime_s: float) -> Effects:
        """Publish a will when its delay is over, at the latest when the session is (3.1.2.5)."""
        self.wills[client] = now_s + min(will.properties.get("will_delay_interval", 0), lifetime_s), will
        return self.tick(now_s)

    def due_s(self) -> float:
        """When a will is to be published next."""
        return min((due_s for due_s, _ in self.wills.values()), default=float("inf"))

    def tick(self, now_s: float) -> Effects:
        """Publish wills whose time has come, and forget sessions whose time is over."""
        due = [client for client, (due_s, _) in self.wills.items() if due_s <= now_s]
        parts = [self._publish_will(client, now_s) for client in due]
        for name, client in list(self.by_name.items()):
            if client.session is None and client.ended_s is not None and client.ended_s + client.lifetime_s <= now_s:
                del self.by_name[name]
        return joined(parts) if parts else NOTHING

    def _publish_will(self, client: str, now_s: float) -> Effects:
        will = self.wills[client][1]
        lifetime_s: Any = will.properties.get("message_expiry_interval", self.settings.lifetime_s)
        message = message_of(*will)
        effects = self.node.published(client, message, max(1.0, lifetime_s), now_s)
        if effects.outcome == "full":  # it stays on disk, and is tried again
            self.wills[client] = now_s + _RETRY_S, will
            return effects
        del self.wills[client]
        self.counts["wills"] += 1
        return effects.also(("session.will", (None, client)))
