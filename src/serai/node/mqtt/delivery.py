"""Messages on their way to one client: packet identifiers, the window, handshakes (4.3, 4.4, 4.9 of the standard)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from serai.core.errors import PeerError
from serai.node.interests import Content, Interest
from serai.node.mqtt.packets import V5, Ack, AckKind, Packet, Publish, encode
from serai.node.mqtt.properties import PROTOCOL_ERROR, Properties
from serai.node.words import Effects, Message, Queue, joined

if TYPE_CHECKING:
    from serai.node.core import Node

NOT_FOUND: Final = 0x92  # packet identifier
_AT_ONCE: Final = 64
_LONGEST_S: Final = 0xFFFFFFFF
_SENT, _RECEIVED = 1, 2  # states of an outbox row: PUBLISH sent; PUBREC came, so that only PUBREL may be sent
NOTHING: Final = Effects()


class Say(NamedTuple):
    """A packet to send on a connection."""

    connection: int
    packet: Packet


class Close(NamedTuple):
    """A connection to close when all that was said on it is sent."""

    connection: int
    why: str = ""


class Delivery(NamedTuple):
    """A message of the store, and the end of its lifetime."""

    message: Message
    expires_s: float


Load = Callable[[int], Delivery | None]
"""The message of a row of the outbox; None if the store does not know it yet."""


class Outgoing:
    """What is being sent over one connection. `more`: there is more for a socket that takes it."""

    def __init__(self, node: Node, client: str, connection: int, version: int, load: Load, limits: Properties) -> None:
        self.node, self.client, self.connection, self.version, self.load = node, client, connection, version, load
        self.window: int = limits["receive_maximum"]
        self.largest: int | None = limits.get("maximum_packet_size")
        self.identified: list[tuple[Interest, int]] = []  # subscriptions with an identifier
        self.more = False
        self._sending: dict[int, tuple[int, AckKind]] = {}  # packet: bundle, and what is to come next
        self._bundles: set[int] = set()
        self._taken = {queued.packet for queued in node.outbox(client)}  # also by what is not yet sent again
        self._last = 0

    @property
    def in_flight(self) -> int:
        """Messages that the client has not acknowledged."""
        return len(self._sending)

    def pump(self, now_s: float) -> Effects:
        """Send what waits, in order, as far as the window allows; first what an earlier connection left undone."""
        parts: list[Effects] = []
        self.more = False
        for queued in list(islice(self.node.outbox(self.client), self.window + _AT_ONCE)):
            if queued.bundle in self._bundles:
                continue
            if queued.qos and len(self._sending) >= self.window:
                break
            sent = self._send(queued, now_s)
            if sent is None:
                break
            parts.append(sent)
        else:
            self.more = bool(parts)
        return joined(parts) if parts else NOTHING

    def _send(self, queued: Queue, now_s: float) -> Effects | None:
        """None: it has only just come, and the store does not know it yet; `Queued` will be said when it does."""
        if queued.state == _RECEIVED:  # the client has the message: it must not be sent again (4.3.3)
            self._begin(queued, "pubcomp")
            return self._say(Ack("pubrel", queued.packet))
        found = self.load(queued.bundle)
        if found is None:
            return None
        publish = self._publish(queued, found, now_s) if found.expires_s > now_s else None
        if publish is None:
            return self.node.outbox_done(self.client, queued.bundle)
        if not queued.qos:
            return self.node.outbox_done(self.client, queued.bundle).then(Say(self.connection, publish))
        if queued.packet:
            self._begin(queued, "puback" if queued.qos == 1 else "pubrec")
            return self._say(publish)
        queued = queued._replace(packet=self._new_packet())
        self._begin(queued, "puback" if queued.qos == 1 else "pubrec")
        sent = self.node.outbox_sent(self.client, queued.bundle, queued.packet, _SENT)
        return sent.then(Say(self.connection, publish._replace(packet=queued.packet)))

    def _begin(self, queued: Queue, expected: AckKind) -> None:
        self._sending[queued.packet] = queued.bundle, expected
        self._bundles.add(queued.bundle)

    def _publish(self, queued: Queue, found: Delivery, now_s: float) -> Publish | None:
        """The packet; None if it is larger than what the client takes (3.1.2.11.4)."""
        message = found.message
        properties = self._properties(found, now_s) if self.version == V5 else {}
        again = bool(queued.packet)
        retain = bool(queued.flags & 1)
        publish = Publish(message.topic, message.payload, queued.qos, retain, queued.packet, again, properties)
        if self.largest is not None and len(encode(publish, self.version)) > self.largest:
            return None
        return publish

    def _properties(self, found: Delivery, now_s: float) -> Properties:
        message = found.message
        said: dict[str, Any] = {
            "payload_format_indicator": message.payload_format,
            "message_expiry_interval": min(_LONGEST_S, max(1, int(found.expires_s - now_s))),
            "content_type": message.content_type,
            "response_topic": message.response_topic,
            "correlation_data": message.correlation,
            "user_property": message.properties or None,
        }
        if self.identified:
            content = Content(message.topic, message.payload)
            said["subscription_identifier"] = (
                tuple(number for interest, number in self.identified if interest.matches(content)) or None
            )
        return {name: value for name, value in said.items() if value is not None}

    def _new_packet(self) -> int:
        packet = self._last
        while True:
            packet = packet % 0xFFFF + 1
            if packet not in self._taken:
                self._taken.add(packet)
                self._last = packet
                return packet

    def acknowledged(self, ack: Ack) -> Effects:
        """PUBACK, PUBREC or PUBCOMP: the next step of a delivery, or its end."""
        bundle, expected = self._sending.get(ack.packet, (0, None))
        if expected is None or (expected == "pubcomp" and ack.kind == "pubrec"):
            if ack.kind != "pubrec":
                return NOTHING  # of a message that has expired meanwhile
            return self._say(Ack("pubrel", ack.packet, 0 if expected or self.version != V5 else NOT_FOUND))
        if ack.kind != expected:
            raise PeerError(
                f"{ack.kind.upper()} of packet {ack.packet}, which awaits {expected.upper()}", PROTOCOL_ERROR
            )
        if ack.kind == "pubrec" and ack.reason < 0x80:
            self._sending[ack.packet] = bundle, "pubcomp"
            received = self.node.outbox_sent(self.client, bundle, ack.packet, _RECEIVED)
            return received.then(Say(self.connection, Ack("pubrel", ack.packet)))
        del self._sending[ack.packet]
        self._bundles.discard(bundle)
        self._taken.discard(ack.packet)
        return self.node.outbox_done(self.client, bundle)

    def _say(self, packet: Packet) -> Effects:
        return Effects((), (Say(self.connection, packet),))
